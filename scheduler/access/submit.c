#include "scheduler/access/service_internal.h"

#include "common/base/cleanup.h"
#include "common/base/rng.h"
#include "google/rpc/status.pb-c.h"
#include "scheduler/access/content.h"
#include "scheduler/access/wire.h"

#include <string.h>

/* One item of a call, on its way. */
struct part {
    struct sched_submit_item item;
    struct toc_rpc_failure failure; /* set: it failed */
    Toc__V1__SubmitResponse response;
    bool refused; /* before it came to the combiner */
    bool validate_only;
};

struct submission {
    struct sched_access *access;
    struct toc_rpc_call *call;
    bool batch;
    size_t n;
    struct part *parts;
    _Atomic size_t left;
    struct sched_job job;
};

/* ---- from request to task
 * ------------------------------------------------------ */

static struct toc_str
make_up_id(struct toc_arena *arena)
{
    uint8_t bytes[16];
    TOC_CLEANUP(toc_buf_done) struct toc_buf hex = {0};

    toc_rng_bytes(bytes, sizeof bytes);
    toc_buf_hex(&hex, bytes, sizeof bytes);
    return toc_arena_str(arena, toc_buf_view(&hex));
}

/* W3C: version-traceid-parentid-flags, lower case hexadecimal. */
static bool
is_traceparent(struct toc_str s)
{
    if (s.len != 55)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        bool dash = i == 2 || i == 35 || i == 52;
        char c = s.ptr[i];
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (dash ? c != '-' : !hex)
            return false;
    }
    return true;
}

static struct toc_str
encode_spec(struct toc_arena *arena, struct toc_spec *spec,
            struct toc_rpc_call *call)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    struct toc_str trace;

    toc_spec_encode(spec, &buf);
    if (toc_rpc_call_metadata(call, "traceparent", &trace) &&
        is_traceparent(trace) && buf.len + 64 <= TOC_SPEC_MAX) {
        spec->traceparent = trace;
        toc_buf_reset(&buf);
        toc_spec_encode(spec, &buf);
    }
    return toc_arena_str(arena, toc_buf_view(&buf));
}

static void
fill_task(struct submission *submission, struct sched_submit_ask *ask,
          int64_t now_ms, struct toc_task *task)
{
    struct toc_arena *arena = toc_rpc_call_arena(submission->call);

    if (ask->biz_id.len == 0)
        ask->biz_id = make_up_id(arena);
    *task = (struct toc_task){
        .state = TOC_STATE_INIT,
        .flags = ask->spec.at_most_once ? TOC_FLAG_AT_MOST_ONCE : 0,
        .fire = 1,
        .version = 1,
        .due_ms = ask->due_ms,
        .created_ms = now_ms,
        .target_id = toc_target_id(ask->spec.target),
        .biz_type = ask->biz_type,
        .biz_id = ask->biz_id,
        .name = ask->name,
        .payload = ask->payload,
    };
    task->key_hash = toc_key_hash_of(task->biz_type, task->biz_id, task->name);
    task->slice = toc_slice_of(toc_key_shard(task->key_hash), ask->priority);
    task->spec = encode_spec(arena, &ask->spec, submission->call);
}

/* False: the part has failed. */
static bool
read_part(struct submission *submission, struct part *part, const char *prefix,
          const Toc__V1__SubmitRequest *request, struct toc_str bytes)
{
    struct sched_access *access = submission->access;
    struct sched_submit_item *item = &part->item;
    struct sched_rules rules = {.payload_max = access->payload_max,
                                .now_ms = toc_clock_wall(access->clk).ms};
    struct sched_submit_ask ask;
    struct sched_check check;

    toc_rpc_failure_init(&part->failure, toc_rpc_call_arena(submission->call));
    toc__v1__submit_response__init(&part->response);
    sched_check_init(&check, &part->failure, prefix);
    if (submission->batch) /* a single one has been checked */
        sched_wire_check(&check, bytes, &toc__v1__submit_request__descriptor);
    if (!sched_check_ok(&check) ||
        !sched_validate_submit(&check, request, &rules, &ask))
        return false;
    fill_task(submission, &ask, rules.now_ms, &item->task);
    sched_content_hash(request, item->submit.content);
    item->submit.task = &item->task;
    item->submit.on_conflict = ask.on_conflict;
    item->submit.key_window_ms = access->key_window_ms;
    part->validate_only = ask.validate_only;
    return true;
}

/* ---- from outcome to answer
 * -------------------------------------------------------- */

static void
fail_with_stored(struct submission *submission, struct part *part,
                 enum toc_status st, const char *message,
                 const struct toc_task *stored)
{
    toc_rpc_failure_set(&part->failure, st, "%s", message);
    sched_answer_detail(submission->access, &part->failure, stored);
}

/* The key holds another task: what that means depends on on_conflict. */
static void
answer_other(struct submission *submission, struct part *part,
             const struct toc_task *stored)
{
    struct toc_arena *arena = toc_rpc_call_arena(submission->call);

    if (part->item.submit.on_conflict == TOC_ON_CONFLICT_KEEP)
        part->response.task =
            sched_answer_task(submission->access, arena, stored, true);
    else
        fail_with_stored(submission, part, TOC_EXISTS,
                         "the key holds a task of another content", stored);
}

/* Worker: the stored task is read to be shown. */
static void
answer_stored(struct submission *submission, struct part *part)
{
    struct sched_access *access = submission->access;
    struct toc_arena *arena = toc_rpc_call_arena(submission->call);
    struct toc_find find = {.by_id = true, .id = part->item.submit.stored.id};
    struct toc_error err = {0};
    struct toc_task stored;
    enum toc_status st =
        toc_store_get(access->store, &find, arena, &stored, &err);

    if (st == TOC_NOT_FOUND) /* its day was dropped this very moment */
        toc_rpc_failure_set(&part->failure, TOC_CONFLICT,
                            "the stored task has just gone, try again");
    else if (st != TOC_OK)
        sched_answer_store_error(&part->failure, st, &err);
    else if (part->item.submit.result == TOC_SUBMIT_SAME)
        part->response.task = sched_answer_task(access, arena, &stored, true);
    else if (part->item.submit.result == TOC_SUBMIT_TOO_LATE)
        fail_with_stored(submission, part, TOC_PRECONDITION,
                         "the stored task is being called now; it cannot be "
                         "replaced",
                         &stored);
    else
        answer_other(submission, part, &stored);
}

static bool
is_stored_new(const struct part *part)
{
    return part->item.submit.result == TOC_SUBMIT_CREATED ||
           part->item.submit.result == TOC_SUBMIT_REPLACED;
}

static void
answer_part(struct submission *submission, struct part *part)
{
    struct sched_access *access = submission->access;

    if (part->refused || part->failure.status != TOC_OK)
        return;
    if (part->response.task != NULL) /* of validate_only */
        return;
    if (part->item.st != TOC_OK) {
        sched_answer_store_error(&part->failure, part->item.st,
                                 &part->item.err);
        return;
    }
    if (!is_stored_new(part)) {
        answer_stored(submission, part);
        return;
    }
    part->response.task = sched_answer_task(
        access, toc_rpc_call_arena(submission->call), &part->item.task, false);
    part->response.created = true;
    part->response.replaced = part->item.submit.result == TOC_SUBMIT_REPLACED;
}

static void
reply_batch(struct submission *submission)
{
    struct toc_arena *arena = toc_rpc_call_arena(submission->call);
    Toc__V1__BatchSubmitResponse reply = TOC__V1__BATCH_SUBMIT_RESPONSE__INIT;
    Toc__V1__BatchSubmitResult *results =
        toc_arena_calloc(arena, submission->n, sizeof *results);

    reply.n_results = submission->n;
    reply.results =
        toc_arena_calloc(arena, submission->n, sizeof *reply.results);
    for (size_t i = 0; i < submission->n; i++) {
        struct part *part = &submission->parts[i];
        toc__v1__batch_submit_result__init(&results[i]);
        if (part->failure.status != TOC_OK)
            results[i].error = sched_answer_status(&part->failure);
        else
            results[i].response = &part->response;
        reply.results[i] = &results[i];
    }
    toc_rpc_reply(submission->call, &reply.base);
}

static void
reply(struct submission *submission)
{
    for (size_t i = 0; i < submission->n; i++)
        answer_part(submission, &submission->parts[i]);
    if (submission->batch)
        reply_batch(submission);
    else if (submission->parts[0].failure.status != TOC_OK)
        toc_rpc_fail(submission->call, &submission->parts[0].failure);
    else
        toc_rpc_reply(submission->call, &submission->parts[0].response.base);
}

static void
reply_job(struct sched_job *job)
{
    reply(job->arg);
}

/* ---- validate_only
 * ------------------------------------------------------------------- */

/* Would the stored task be "the same"? Its content hash is not shown, so what
 * it was made of is compared; a rescheduled one counts as other. */
static bool
looks_same(const struct toc_task *stored, const struct toc_task *task,
           bool delay)
{
    int64_t due = delay ? stored->created_ms + (task->due_ms - task->created_ms)
                        : task->due_ms;

    return stored->due_ms == due && stored->slice == task->slice &&
           toc_str_eq(stored->spec, task->spec) &&
           toc_str_eq(stored->payload, task->payload);
}

static bool
holds_key(const struct sched_access *access, const struct toc_task *stored)
{
    return !toc_state_ended(stored->state) ||
           stored->ended_ms + access->key_window_ms >
               toc_clock_wall(access->clk).ms;
}

static void
answer_would_be(struct submission *submission, struct part *part)
{
    struct toc_arena *arena = toc_rpc_call_arena(submission->call);
    struct toc_task shown = part->item.task;

    shown.slot_ms = toc_slot_for_due(
        shown.due_ms, toc_clock_wall(submission->access->clk).ms);
    part->response.created = true;
    part->response.task =
        sched_answer_task(submission->access, arena, &shown, false);
    part->response.task->task_id = toc_arena_text(arena, TOC_STR(""));
}

static void
answer_dry_conflict(struct submission *submission, struct part *part,
                    const struct toc_task *stored)
{
    struct toc_arena *arena = toc_rpc_call_arena(submission->call);
    const struct toc_task *task = &part->item.task;

    if (looks_same(stored, task, false) || looks_same(stored, task, true)) {
        part->response.task =
            sched_answer_task(submission->access, arena, stored, true);
    } else if (part->item.submit.on_conflict != TOC_ON_CONFLICT_REPLACE) {
        answer_other(submission, part, stored);
    } else if (stored->state == TOC_STATE_EXECUTING) {
        fail_with_stored(submission, part, TOC_PRECONDITION,
                         "the stored task is being called now; it cannot be "
                         "replaced",
                         stored);
    } else {
        answer_would_be(submission, part);
        part->response.replaced = !toc_state_ended(stored->state);
    }
}

static void
validate_part(struct submission *submission, struct part *part)
{
    struct sched_access *access = submission->access;
    const struct toc_task *task = &part->item.task;
    struct toc_find find = {
        .biz_type = task->biz_type, .biz_id = task->biz_id, .name = task->name};
    struct toc_error err = {0};
    struct toc_task stored;
    enum toc_status st =
        toc_store_get(access->store, &find,
                      toc_rpc_call_arena(submission->call), &stored, &err);

    if (st == TOC_NOT_FOUND || (st == TOC_OK && !holds_key(access, &stored)))
        answer_would_be(submission, part);
    else if (st != TOC_OK)
        sched_answer_store_error(&part->failure, st, &err);
    else
        answer_dry_conflict(submission, part, &stored);
}

/* ---- the way
 * -----------------------------------------------------------------------------
 */

static void
run_on_workers(struct submission *submission, sched_job_fn *fn)
{
    submission->job = (struct sched_job){.fn = fn, .arg = submission};
    if (!sched_workers_push(submission->access->workers, &submission->job))
        sched_answer_fail_full(submission->call, "requests");
}

/* Does the answer take reading from the store? */
static bool
must_read(const struct submission *submission)
{
    for (size_t i = 0; i < submission->n; i++) {
        const struct part *part = &submission->parts[i];
        if (!part->refused && part->failure.status == TOC_OK &&
            part->response.task == NULL && part->item.st == TOC_OK &&
            !is_stored_new(part))
            return true;
    }
    return false;
}

static bool
is_gone(struct sched_submit_item *item)
{
    struct submission *submission = item->arg;

    return sched_answer_useless(submission->access, submission->call);
}

static void
part_done(struct sched_submit_item *item)
{
    struct submission *submission = item->arg;

    if (item->st == TOC_OK && (item->submit.result == TOC_SUBMIT_CREATED ||
                               item->submit.result == TOC_SUBMIT_REPLACED))
        sched_peers_offer(submission->access->peers, &item->task);
    if (atomic_fetch_sub(&submission->left, 1) > 1)
        return;
    if (must_read(submission))
        run_on_workers(submission, reply_job);
    else
        reply(submission);
}

/* Worker: those that only ask are answered, then the others are stored. */
static void store_parts(struct submission *submission);

static void
validate_job(struct sched_job *job)
{
    struct submission *submission = job->arg;

    for (size_t i = 0; i < submission->n; i++) {
        struct part *part = &submission->parts[i];
        if (!part->refused && part->validate_only)
            validate_part(submission, part);
    }
    store_parts(submission);
}

static void
store_parts(struct submission *submission)
{
    struct sched_submit_item **items =
        toc_arena_calloc(toc_rpc_call_arena(submission->call), submission->n,
                         sizeof(struct sched_submit_item *));
    size_t n = 0;

    for (size_t i = 0; i < submission->n; i++) {
        struct part *part = &submission->parts[i];
        if (part->refused || part->validate_only)
            continue;
        part->item.done = part_done;
        part->item.gone = is_gone;
        part->item.arg = submission;
        items[n++] = &part->item;
    }
    atomic_init(&submission->left, n);
    if (n == 0)
        reply(submission);
    else if (!sched_combiner_push(submission->access->combiner, items, n))
        sched_answer_fail_full(submission->call, "submits");
}

static struct submission *
submission_new(struct sched_access *access, struct toc_rpc_call *call, size_t n,
               bool batch)
{
    struct toc_arena *arena = toc_rpc_call_arena(call);
    struct submission *submission =
        toc_arena_calloc(arena, 1, sizeof *submission);

    submission->access = access;
    submission->call = call;
    submission->batch = batch;
    submission->n = n;
    submission->parts = toc_arena_calloc(arena, n, sizeof *submission->parts);
    return submission;
}

static void
start(struct submission *submission)
{
    bool any = false;

    for (size_t i = 0; i < submission->n; i++)
        any = any || (!submission->parts[i].refused &&
                      submission->parts[i].validate_only);
    if (any)
        run_on_workers(submission, validate_job);
    else
        store_parts(submission);
}

void
sched_submit_handle(struct sched_access *access,
                    const Toc__V1__SubmitRequest *request,
                    struct toc_rpc_call *call)
{
    struct submission *submission = submission_new(access, call, 1, false);
    struct part *part = &submission->parts[0];

    if (!read_part(submission, part, "", request, (struct toc_str){NULL, 0}))
        toc_rpc_fail(call, &part->failure);
    else
        start(submission);
}

void
sched_batch_submit_handle(struct sched_access *access,
                          const Toc__V1__BatchSubmitRequest *request,
                          struct toc_rpc_call *call)
{
    struct toc_str rest = toc_rpc_call_bytes(call);
    struct submission *submission;
    struct toc_rpc_failure failure;
    struct sched_check check;

    toc_rpc_failure_init(&failure, toc_rpc_call_arena(call));
    sched_check_init(&check, &failure, "");
    if (!sched_validate_batch(&check, request->n_items)) {
        toc_rpc_fail(call, &failure);
        return;
    }
    submission = submission_new(access, call, request->n_items, true);
    for (size_t i = 0; i < request->n_items; i++) {
        char prefix[32];
        struct part *part = &submission->parts[i];
        toc_format(prefix, sizeof prefix, "items[%zu].", i);
        part->refused = !read_part(submission, part, prefix, request->items[i],
                                   sched_answer_item_bytes(&rest));
    }
    start(submission);
}
