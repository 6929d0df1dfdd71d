#include "admin/timeline.h"

#include "admin/request.h"
#include "admin/service_internal.h"

#include <stdlib.h>

/* An entry beside where it came from, so that equal times keep their order. */
struct entry {
    int64_t at_ms;
    size_t order;
    Toc__V1__TimelineEntry *message;
};

struct builder {
    struct toc_arena *arena;
    const struct toc_api_names *names;
    struct entry *entries;
    size_t n;
};

static char *
kind_text(enum toc_log_kind kind)
{
    switch (kind) {
    case TOC_LOG_KIND_ATTEMPT:
    case TOC_LOG_KIND_LOCK_LOST:
        return "attempt";
    case TOC_LOG_KIND_CANCEL:
        return "cancel";
    case TOC_LOG_KIND_PAUSE:
        return "pause";
    case TOC_LOG_KIND_RESUME:
        return "resume";
    case TOC_LOG_KIND_RESCHEDULE:
        return "reschedule";
    case TOC_LOG_KIND_RUN_NOW:
        return "run now";
    case TOC_LOG_KIND_REDRIVE:
        return "redrive";
    case TOC_LOG_KIND_CANCEL_NOTED:
        return "cancel noted";
    }
    return "unknown";
}

static bool
is_attempt(const struct toc_log_entry *entry)
{
    return entry->kind == TOC_LOG_KIND_ATTEMPT ||
           entry->kind == TOC_LOG_KIND_LOCK_LOST;
}

static Toc__V1__TimelineEntry *
add(struct builder *b, int64_t at_ms, char *event, uint32_t fire)
{
    Toc__V1__TimelineEntry *message =
        toc_arena_alloc(b->arena, sizeof *message);

    toc__v1__timeline_entry__init(message);
    message->time = toc_api_time(b->arena, at_ms);
    message->event = event;
    message->fire = fire;
    b->entries[b->n] = (struct entry){at_ms, b->n, message};
    b->n++;
    return message;
}

static Toc__V1__Attempt *
logged_attempt(struct builder *b, const struct toc_log_entry *entry)
{
    Toc__V1__Attempt *attempt = toc_arena_alloc(b->arena, sizeof *attempt);

    toc__v1__attempt__init(attempt);
    attempt->number = entry->attempt;
    attempt->claim_time = toc_api_time_or_unset(b->arena, entry->claimed_ms);
    if (entry->called_ms >= entry->claimed_ms)
        attempt->call_time = toc_api_time_or_unset(b->arena, entry->called_ms);
    attempt->result = toc_api_result(entry->result);
    attempt->scheduler_node =
        toc_api_node(b->arena, b->names, entry->sched_node);
    attempt->executor_node = toc_api_node(b->arena, b->names, entry->exec_node);
    return attempt;
}

/* An attempt stands at its claim: what came in while it ran follows it. */
static void
add_attempt(struct builder *b, const struct toc_log_entry *entry)
{
    Toc__V1__TimelineEntry *message =
        add(b, entry->claimed_ms > 0 ? entry->claimed_ms : entry->at_ms,
            "attempt", entry->fire);

    message->who = toc_api_text(b->arena, entry->who);
    message->attempt = logged_attempt(b, entry);
    message->attempt->end_time = toc_api_time(b->arena, entry->at_ms);
    message->attempt->error = toc_api_text(b->arena, entry->detail);
    if (entry->kind == TOC_LOG_KIND_LOCK_LOST)
        message->detail = "the lock expired before an answer was written back";
}

static bool
is_logged(const struct admin_story *story, uint32_t fire, int64_t claimed_ms)
{
    for (size_t i = 0; i < story->n; i++)
        if (is_attempt(&story->log[i]) && story->log[i].fire == fire &&
            story->log[i].claimed_ms == claimed_ms)
            return true;
    return false;
}

static void
add_logged(struct builder *b, const struct toc_log_entry *entry)
{
    Toc__V1__TimelineEntry *message;

    if (is_attempt(entry)) {
        add_attempt(b, entry);
        return;
    }
    message = add(b, entry->at_ms, kind_text(entry->kind), entry->fire);
    message->who = toc_api_text(b->arena, entry->who);
    message->detail = toc_api_text(b->arena, entry->detail);
}

static void
add_latest(struct builder *b, const struct admin_story *story)
{
    const struct toc_task *task = story->task;
    bool given_back =
        task->state != TOC_STATE_EXECUTING && task->ended_ms < task->claimed_ms;
    Toc__V1__Attempt *attempt = toc_api_last_attempt(b->arena, task, b->names);

    if (attempt == NULL || given_back ||
        is_logged(story, task->fire, task->claimed_ms))
        return;
    add(b, task->claimed_ms, "attempt", task->fire)->attempt = attempt;
}

static int
cmp_entry(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* The first entry, "created", always stays. Returns where the rest begins. */
static size_t
first_that_fits(const struct builder *b, size_t bytes_max)
{
    size_t bytes = 0, from = b->n;

    while (from > 1) {
        bytes += 8 + protobuf_c_message_get_packed_size(
                         &b->entries[from - 1].message->base);
        if (bytes > bytes_max)
            break;
        from--;
    }
    return from;
}

static void
hand_over(struct builder *b, size_t bytes_max, Toc__V1__Timeline *timeline)
{
    size_t from = first_that_fits(b, bytes_max), n = 0;
    Toc__V1__TimelineEntry **out =
        toc_arena_calloc(b->arena, b->n + 1, sizeof *out);

    out[n++] = b->entries[0].message;
    if (from > 1) {
        Toc__V1__TimelineEntry *gap = toc_arena_alloc(b->arena, sizeof *gap);
        toc__v1__timeline_entry__init(gap);
        gap->time = b->entries[1].message->time;
        gap->event = "left out";
        gap->detail = toc_arena_printf(b->arena, "%zu older entries", from - 1);
        out[n++] = gap;
    }
    for (size_t i = from; i < b->n; i++)
        out[n++] = b->entries[i].message;
    timeline->entries = out;
    timeline->n_entries = n;
}

void
admin_timeline_fill(struct toc_arena *arena, const struct admin_story *story,
                    const struct toc_api_names *names,
                    Toc__V1__Timeline *timeline)
{
    struct builder b = {.arena = arena, .names = names};

    b.entries = toc_arena_calloc(arena, 2 * story->n + 2, sizeof *b.entries);
    add(&b, story->task->created_ms, "created", 1);
    for (size_t i = 0; i < story->n; i++)
        add_logged(&b, &story->log[i]);
    add_latest(&b, story);
    /* "created" stays first even if another node's clock was behind. */
    qsort(b.entries + 1, b.n - 1, sizeof *b.entries, cmp_entry);
    hand_over(&b, story->bytes_max, timeline);
}

void
admin_get_timeline(struct admin_call *call)
{
    const struct toc_api_names names = admin_names_of(&call->names);
    const struct toc_api_view view = {
        .now_ms = call->now_ms, .with_payload = true, .names = names};
    Toc__V1__Timeline timeline = TOC__V1__TIMELINE__INIT;
    struct toc_error error = {.status = TOC_OK};
    struct toc_rpc_failure failure;
    struct toc_log_entry *log = NULL;
    struct admin_story story = {.n = 0};
    struct toc_task task;
    struct toc_find find;
    enum toc_status st;

    toc_rpc_failure_init(&failure, call->arena);
    find = admin_read_which((const Toc__V1__GetTimelineRequest *)call->request,
                            &failure);
    if (failure.status != TOC_OK) {
        toc_rpc_fail(call->rpc, &failure);
        return;
    }
    st = toc_store_timeline(admin_call_store(call), &find, call->arena, &task,
                            &log, &story.n, &error);
    if (st != TOC_OK) {
        admin_fail_error(call, st, &error);
        return;
    }
    timeline.task = toc_api_task(call->arena, &task, &view);
    story.task = &task;
    story.log = log;
    story.bytes_max = ADMIN_ANSWER_BYTES_MAX -
                      protobuf_c_message_get_packed_size(&timeline.task->base);
    admin_timeline_fill(call->arena, &story, &names, &timeline);
    toc_rpc_reply(call->rpc, &timeline.base);
}
