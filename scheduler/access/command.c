#include "scheduler/access/service_internal.h"

#include "google/rpc/status.pb-c.h"
#include "scheduler/access/wire.h"

#include <string.h>

/* One thing asked of stored tasks, and the answer to it. */
struct ask {
    struct sched_command_ask ask;
    struct toc_rpc_failure failure; /* set: it failed */
    Toc__V1__CommandResult **results;
    size_t n_results;
};

struct errand {
    struct sched_access *access;
    struct toc_rpc_call *call;
    enum sched_method method;
    size_t n; /* asks: 1, or those of a BatchCancel */
    struct ask *asks;
    struct sched_job job;
};

static struct toc_arena *
arena_of(const struct errand *errand)
{
    return toc_rpc_call_arena(errand->call);
}

/* ---- outcomes
 * ------------------------------------------------------------------ */

static Toc__V1__Outcome
outcome_of(enum toc_command_result result)
{
    switch (result) {
    case TOC_COMMAND_APPLIED:
        return TOC__V1__OUTCOME__OUTCOME_APPLIED;
    case TOC_COMMAND_ALREADY:
        return TOC__V1__OUTCOME__OUTCOME_ALREADY;
    case TOC_COMMAND_TOO_LATE:
        return TOC__V1__OUTCOME__OUTCOME_TOO_LATE;
    case TOC_COMMAND_ENDED:
        return TOC__V1__OUTCOME__OUTCOME_ENDED;
    case TOC_COMMAND_NOT_FOUND:
    case TOC_COMMAND_MISMATCH:
        break;
    }
    return TOC__V1__OUTCOME__OUTCOME_UNSPECIFIED;
}

static void
add_result(struct errand *errand, struct ask *ask,
           enum toc_command_result result, const struct toc_task *task)
{
    struct toc_arena *arena = arena_of(errand);
    Toc__V1__CommandResult *out = toc_arena_alloc(arena, sizeof *out);

    toc__v1__command_result__init(out);
    out->outcome = outcome_of(result);
    out->task = sched_answer_task(errand->access, arena, task, true);
    ask->results[ask->n_results++] = out;
}

static void
fail_not_found(struct ask *ask)
{
    toc_rpc_failure_set(&ask->failure, TOC_NOT_FOUND,
                        "no such task, or its day is no longer kept");
}

static void
fail_mismatch(struct errand *errand, struct ask *ask,
              const struct toc_task *task)
{
    toc_rpc_failure_set(&ask->failure, TOC_CONFLICT,
                        "the task has changed: its etag is %lu, not %lu",
                        (unsigned long)task->version,
                        (unsigned long)ask->ask.etag);
    sched_answer_detail(errand->access, &ask->failure, task);
}

/* ---- one command
 * -------------------------------------------------------------------- */

static enum toc_command_kind
kind_of(enum sched_method method)
{
    switch (method) {
    case SCHED_PAUSE:
        return TOC_COMMAND_PAUSE;
    case SCHED_RESUME:
        return TOC_COMMAND_RESUME;
    case SCHED_RESCHEDULE:
        return TOC_COMMAND_RESCHEDULE;
    case SCHED_RUN_NOW:
        return TOC_COMMAND_RUN_NOW;
    case SCHED_CANCEL:
    case SCHED_BATCH_CANCEL:
    case SCHED_SUBMIT:
    case SCHED_BATCH_SUBMIT:
    case SCHED_GET:
    case SCHED_LIST:
    case SCHED_UPDATE_ATTRIBUTES:
        break;
    }
    return TOC_COMMAND_CANCEL;
}

/* What the command would come to, from the task as it stands. */
static enum toc_command_result
foresee(enum toc_command_kind kind, const struct toc_task *task)
{
    bool paused = task->state == TOC_STATE_PAUSED;

    if (task->state == TOC_STATE_EXECUTING)
        return TOC_COMMAND_TOO_LATE;
    if (kind == TOC_COMMAND_CANCEL && task->state == TOC_STATE_CANCELLED)
        return TOC_COMMAND_ALREADY;
    if (toc_state_ended(task->state))
        return TOC_COMMAND_ENDED;
    if ((kind == TOC_COMMAND_PAUSE && paused) ||
        (kind == TOC_COMMAND_RESUME && !paused))
        return TOC_COMMAND_ALREADY;
    return TOC_COMMAND_APPLIED;
}

static void
try_out(struct errand *errand, struct ask *ask, enum toc_command_kind kind,
        const struct toc_find *find)
{
    struct toc_error err = {0};
    struct toc_task task;
    enum toc_status st = toc_store_get(errand->access->store, find,
                                       arena_of(errand), &task, &err);

    if (st == TOC_NOT_FOUND)
        fail_not_found(ask);
    else if (st != TOC_OK)
        sched_answer_store_error(&ask->failure, st, &err);
    else if (ask->ask.etag != 0 && ask->ask.etag != task.version)
        fail_mismatch(errand, ask, &task);
    else
        add_result(errand, ask, foresee(kind, &task), &task);
}

static bool
may_be_due_soon(enum toc_command_kind kind, enum toc_command_result result)
{
    return result == TOC_COMMAND_APPLIED &&
           (kind == TOC_COMMAND_RESUME || kind == TOC_COMMAND_RESCHEDULE ||
            kind == TOC_COMMAND_RUN_NOW);
}

/* No one waits for the answer any more, and nothing was written yet. */
static bool
gone(struct errand *errand, struct ask *ask)
{
    struct toc_error err = {0};

    if (!sched_answer_useless(errand->access, errand->call))
        return false;
    sched_answer_store_error(&ask->failure, TOC_CANCELLED, &err);
    return true;
}

static enum toc_command_result
carry_out(struct errand *errand, struct ask *ask, enum toc_command_kind kind,
          const struct toc_find *find)
{
    struct sched_access *access = errand->access;
    struct toc_error err = {0};
    struct toc_command command = {
        .kind = kind,
        .find = *find,
        .etag = ask->ask.etag,
        .due_ms = ask->ask.due_ms,
        .now_ms = toc_clock_wall(access->clk).ms,
        .who = toc_str_of(toc_rpc_call_peer(errand->call)),
        .why = ask->ask.reason,
    };
    enum toc_status st =
        toc_store_command(access->store, &command, arena_of(errand), &err);

    if (st != TOC_OK) {
        sched_answer_store_error(&ask->failure, st, &err);
        return TOC_COMMAND_NOT_FOUND;
    }
    if (command.result == TOC_COMMAND_NOT_FOUND) {
        fail_not_found(ask);
    } else if (command.result == TOC_COMMAND_MISMATCH) {
        fail_mismatch(errand, ask, command.task);
    } else {
        if (may_be_due_soon(kind, command.result))
            sched_peers_offer(access->peers, command.task);
        add_result(errand, ask, command.result, command.task);
    }
    return command.result;
}

static void
run_one(struct errand *errand, struct ask *ask, enum toc_command_kind kind,
        const struct toc_find *find)
{
    if (gone(errand, ask))
        return;
    if (sched_skew_off_ms(errand->access->skew) != 0) {
        toc_rpc_failure_set(&ask->failure, TOC_UNAVAILABLE,
                            "this node's clock was set, and is off the "
                            "database's; ask another");
        return;
    }
    if (ask->ask.validate_only)
        try_out(errand, ask, kind, find);
    else
        (void)carry_out(errand, ask, kind, find);
}

/* ---- everything of a business id
 * -------------------------------------------------------- */

#define LISTED_MAX 1000 /* what toc_store_list_biz gives at most */
#define ROUNDS_MAX 100  /* for a business id with more */

/* Seen to in this call; it may be live all the same (executing). */
static bool
is_done(const struct toc_task *done, size_t n, struct toc_task_id id)
{
    for (size_t i = 0; i < n; i++)
        if (toc_task_id_cmp(done[i].id, id) == 0)
            return true;
    return false;
}

/* Cancels what is live among the tasks and was not in the last round; how
 * many. */
static size_t
cancel_live(struct errand *errand, struct ask *ask,
            const struct toc_task *tasks, size_t n, const struct toc_task *last,
            size_t n_last)
{
    struct toc_arena *arena = arena_of(errand);
    Toc__V1__CommandResult **results =
        toc_arena_calloc(arena, ask->n_results + n, sizeof *results);
    size_t done = 0;

    if (ask->n_results > 0)
        memcpy(results, ask->results, ask->n_results * sizeof *results);
    ask->results = results;
    for (size_t i = 0; i < n && ask->failure.status == TOC_OK; i++) {
        struct toc_find find = {.by_id = true, .id = tasks[i].id};
        if (toc_state_ended(tasks[i].state) ||
            is_done(last, n_last, tasks[i].id))
            continue;
        run_one(errand, ask, TOC_COMMAND_CANCEL, &find);
        if (ask->failure.status == TOC_NOT_FOUND) /* gone meanwhile */
            toc_rpc_failure_init(&ask->failure, arena);
        done++;
    }
    return done;
}

/* A list has a maximum, live tasks first: what is ended makes room for the
 * rest. */
static void
run_biz(struct errand *errand, struct ask *ask)
{
    struct toc_arena *arena = arena_of(errand);
    struct toc_task *tasks = NULL, *last;
    size_t n = 0, n_last, done;

    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct toc_error err = {0};
        enum toc_status st;
        last = tasks;
        n_last = n;
        st = toc_store_list_biz(errand->access->store, ask->ask.find.biz_type,
                                ask->ask.find.biz_id, arena, &tasks, &n, &err);
        if (st != TOC_OK) {
            sched_answer_store_error(&ask->failure, st, &err);
            return;
        }
        done = cancel_live(errand, ask, tasks, n, last, n_last);
        if (n < LISTED_MAX || done == 0 || ask->failure.status != TOC_OK)
            return;
    }
    toc_rpc_failure_set(&ask->failure, TOC_EXHAUSTED,
                        "too many tasks of this business id for one call; the "
                        "first ones were cancelled, call again");
}

static void
run_ask(struct errand *errand, struct ask *ask)
{
    if (ask->failure.status != TOC_OK)
        return;
    if (ask->ask.biz) {
        run_biz(errand, ask);
        return;
    }
    ask->results = toc_arena_calloc(arena_of(errand), 1, sizeof *ask->results);
    run_one(errand, ask, kind_of(errand->method), &ask->ask.find);
}

/* ---- answers
 * -----------------------------------------------------------------------------
 */

static void
fill_cancel(const struct ask *ask, Toc__V1__CancelResponse *response)
{
    toc__v1__cancel_response__init(response);
    response->results = ask->results;
    response->n_results = ask->n_results;
}

static void
command_job(struct sched_job *job)
{
    struct errand *errand = job->arg;
    struct ask *ask = &errand->asks[0];
    Toc__V1__CancelResponse response;

    run_ask(errand, ask);
    if (ask->failure.status != TOC_OK) {
        toc_rpc_fail(errand->call, &ask->failure);
    } else if (errand->method == SCHED_CANCEL) {
        fill_cancel(ask, &response);
        toc_rpc_reply(errand->call, &response.base);
    } else {
        toc_rpc_reply(errand->call, &ask->results[0]->base);
    }
}

static void
batch_job(struct sched_job *job)
{
    struct errand *errand = job->arg;
    struct toc_arena *arena = arena_of(errand);
    Toc__V1__BatchCancelResponse reply = TOC__V1__BATCH_CANCEL_RESPONSE__INIT;
    Toc__V1__BatchCancelResult *results =
        toc_arena_calloc(arena, errand->n, sizeof *results);

    reply.n_results = errand->n;
    reply.results = toc_arena_calloc(arena, errand->n, sizeof *reply.results);
    for (size_t i = 0; i < errand->n; i++) {
        struct ask *ask = &errand->asks[i];
        run_ask(errand, ask);
        toc__v1__batch_cancel_result__init(&results[i]);
        reply.results[i] = &results[i];
        if (ask->failure.status != TOC_OK) {
            results[i].error = sched_answer_status(&ask->failure);
            continue;
        }
        results[i].response =
            toc_arena_alloc(arena, sizeof *results[i].response);
        fill_cancel(ask, results[i].response);
    }
    toc_rpc_reply(errand->call, &reply.base);
}

static void
get_job(struct sched_job *job)
{
    struct errand *errand = job->arg;
    struct ask *ask = &errand->asks[0];
    struct toc_error err = {0};
    struct toc_task task;
    enum toc_status st = toc_store_get(errand->access->store, &ask->ask.find,
                                       arena_of(errand), &task, &err);

    if (st == TOC_OK) {
        toc_rpc_reply(
            errand->call,
            &sched_answer_task(errand->access, arena_of(errand), &task, true)
                 ->base);
        return;
    }
    if (st == TOC_NOT_FOUND)
        fail_not_found(ask);
    else
        sched_answer_store_error(&ask->failure, st, &err);
    toc_rpc_fail(errand->call, &ask->failure);
}

static void
list_job(struct sched_job *job)
{
    struct errand *errand = job->arg;
    struct ask *ask = &errand->asks[0];
    struct toc_arena *arena = arena_of(errand);
    Toc__V1__ListResponse reply = TOC__V1__LIST_RESPONSE__INIT;
    struct toc_error err = {0};
    struct toc_task *tasks;
    size_t n;
    enum toc_status st =
        toc_store_list_biz(errand->access->store, ask->ask.find.biz_type,
                           ask->ask.find.biz_id, arena, &tasks, &n, &err);

    if (st != TOC_OK) {
        sched_answer_store_error(&ask->failure, st, &err);
        toc_rpc_fail(errand->call, &ask->failure);
        return;
    }
    reply.tasks = toc_arena_calloc(arena, n, sizeof *reply.tasks);
    for (size_t i = 0; i < n; i++)
        reply.tasks[reply.n_tasks++] =
            sched_answer_task(errand->access, arena, &tasks[i], true);
    toc_rpc_reply(errand->call, &reply.base);
}

/* ---- reading
 * ------------------------------------------------------------------------------
 */

static bool
read_ask(struct errand *errand, struct ask *ask, struct sched_check *check,
         const ProtobufCMessage *request)
{
    struct sched_rules rules = {.payload_max = errand->access->payload_max,
                                .now_ms =
                                    toc_clock_wall(errand->access->clk).ms};
    const void *message = request;

    switch (errand->method) {
    case SCHED_GET:
        return sched_validate_get(check, message, &ask->ask);
    case SCHED_LIST:
        return sched_validate_list(check, message, &ask->ask);
    case SCHED_CANCEL:
    case SCHED_BATCH_CANCEL:
        return sched_validate_cancel(check, message, &ask->ask);
    case SCHED_RESCHEDULE:
        return sched_validate_reschedule(check, message, &rules, &ask->ask);
    case SCHED_PAUSE:
        return sched_validate_pause(check, message, &ask->ask);
    case SCHED_RESUME:
        return sched_validate_resume(check, message, &ask->ask);
    case SCHED_RUN_NOW:
        return sched_validate_run_now(check, message, &ask->ask);
    case SCHED_SUBMIT:
    case SCHED_BATCH_SUBMIT:
    case SCHED_UPDATE_ATTRIBUTES:
        break;
    }
    return false;
}

static struct errand *
errand_new(struct sched_access *access, enum sched_method method, size_t n,
           struct toc_rpc_call *call)
{
    struct toc_arena *arena = toc_rpc_call_arena(call);
    struct errand *errand = toc_arena_calloc(arena, 1, sizeof *errand);

    errand->access = access;
    errand->call = call;
    errand->method = method;
    errand->n = n;
    errand->asks = toc_arena_calloc(arena, n, sizeof *errand->asks);
    for (size_t i = 0; i < n; i++)
        toc_rpc_failure_init(&errand->asks[i].failure, arena);
    return errand;
}

static void
run(struct errand *errand, sched_job_fn *fn)
{
    errand->job = (struct sched_job){.fn = fn, .arg = errand};
    if (!sched_workers_push(errand->access->workers, &errand->job))
        sched_answer_fail_full(errand->call, "requests");
}

static void
handle_batch(struct sched_access *access,
             const Toc__V1__BatchCancelRequest *request,
             struct toc_rpc_call *call)
{
    struct toc_str rest = toc_rpc_call_bytes(call);
    struct toc_rpc_failure failure;
    struct sched_check check;
    struct errand *errand;

    toc_rpc_failure_init(&failure, toc_rpc_call_arena(call));
    sched_check_init(&check, &failure, "");
    if (!sched_validate_batch(&check, request->n_items)) {
        toc_rpc_fail(call, &failure);
        return;
    }
    errand = errand_new(access, SCHED_BATCH_CANCEL, request->n_items, call);
    for (size_t i = 0; i < errand->n; i++) {
        char prefix[32];
        toc_format(prefix, sizeof prefix, "items[%zu].", i);
        sched_check_init(&check, &errand->asks[i].failure, prefix);
        sched_wire_check(&check, sched_answer_item_bytes(&rest),
                         &toc__v1__cancel_request__descriptor);
        if (sched_check_ok(&check))
            (void)read_ask(errand, &errand->asks[i], &check,
                           &request->items[i]->base);
    }
    run(errand, batch_job);
}

void
sched_command_handle(struct sched_access *access, enum sched_method method,
                     const ProtobufCMessage *request, struct toc_rpc_call *call)
{
    struct errand *errand;
    struct sched_check check;

    if (method == SCHED_BATCH_CANCEL) {
        handle_batch(access, (const void *)request, call);
        return;
    }
    errand = errand_new(access, method, 1, call);
    sched_check_init(&check, &errand->asks[0].failure, "");
    if (!read_ask(errand, &errand->asks[0], &check, request))
        toc_rpc_fail(call, &errand->asks[0].failure);
    else if (method == SCHED_GET)
        run(errand, get_job);
    else if (method == SCHED_LIST)
        run(errand, list_job);
    else
        run(errand, command_job);
}
