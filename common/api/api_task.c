#include "common/api/api.h"

#include "common/model/spec.h"

#include <string.h>

char *
toc_api_node(struct toc_arena *arena, const struct toc_api_names *names,
             uint32_t node_id)
{
    const char *name = NULL;

    if (node_id == 0)
        return toc_arena_text(arena, TOC_STR(""));
    if (names->fn != NULL)
        name = names->fn(names->arg, node_id);
    if (name == NULL)
        return toc_arena_printf(arena, "#%lu", (unsigned long)node_id);
    return toc_api_text(arena, toc_str_of(name));
}

/* Results that are counted in `attempt` when the task goes on to RETRY. */
static bool
is_counted(enum toc_result result)
{
    switch (result) {
    case TOC_RESULT_FAILED:
    case TOC_RESULT_REJECTED:
    case TOC_RESULT_UNREACHABLE:
    case TOC_RESULT_TIMEOUT:
    case TOC_RESULT_REFUSED:
    case TOC_RESULT_BAD_TARGET:
        return true;
    case TOC_RESULT_NONE:
    case TOC_RESULT_DONE:
    case TOC_RESULT_SNOOZED:
    case TOC_RESULT_STOPPED:
    case TOC_RESULT_LOST:
        break;
    }
    return false;
}

/* An attempt that ends its task is not added to `attempt`: the task died of
 * it, or a cancel was noted meanwhile. */
static bool
ended_by_attempt(const struct toc_task *task)
{
    return task->state == TOC_STATE_DEAD ||
           task->state == TOC_STATE_DISCARDED ||
           (task->state == TOC_STATE_CANCELLED &&
            (task->flags & TOC_FLAG_CANCEL) != 0);
}

static uint32_t
latest_number(const struct toc_task *task)
{
    if (task->attempt > 0 && is_counted(task->result) &&
        !ended_by_attempt(task))
        return task->attempt;
    return task->attempt + 1u;
}

Toc__V1__Attempt *
toc_api_last_attempt(struct toc_arena *arena, const struct toc_task *task,
                     const struct toc_api_names *names)
{
    bool under_way = task->state == TOC_STATE_EXECUTING;
    /* A claim that was given back uncalled left only its mark. */
    bool given_back = !under_way && task->ended_ms < task->claimed_ms;
    Toc__V1__Attempt *attempt;

    if (task->claimed_ms == 0 || (given_back && task->ended_ms == 0))
        return NULL;
    attempt = toc_arena_alloc(arena, sizeof *attempt);
    toc__v1__attempt__init(attempt);
    if (!given_back)
        attempt->claim_time = toc_api_time(arena, task->claimed_ms);
    attempt->scheduler_node = toc_api_node(arena, names, task->sched_node);
    attempt->executor_node = toc_api_node(arena, names, task->exec_node);
    if (under_way) { /* a claim leaves the rest as the attempt before had it */
        attempt->number = task->attempt + 1u;
        return attempt;
    }
    attempt->number = latest_number(task);
    if (task->called_ms >= task->claimed_ms || given_back)
        attempt->call_time = toc_api_time_or_unset(arena, task->called_ms);
    attempt->end_time = toc_api_time_or_unset(arena, task->ended_ms);
    attempt->result = toc_api_result(task->result);
    attempt->error = toc_api_text(arena, task->error);
    return attempt;
}

static void
fill_delays(struct toc_arena *arena, const struct toc_retry *retry,
            Toc__V1__RetryPolicy *policy)
{
    Toc__V1__ExponentialBackoff *grow;

    if (retry->n_steps > 0) {
        policy->n_ladder = retry->n_steps;
        policy->ladder =
            toc_arena_calloc(arena, retry->n_steps, sizeof *policy->ladder);
        for (size_t i = 0; i < retry->n_steps; i++)
            policy->ladder[i] = toc_api_duration(arena, retry->step_ms[i]);
        return;
    }
    grow = toc_arena_alloc(arena, sizeof *grow);
    toc__v1__exponential_backoff__init(grow);
    grow->first = toc_api_duration(arena, retry->first_ms);
    if (retry->cap_ms > 0)
        grow->cap = toc_api_duration(arena, retry->cap_ms);
    grow->factor = retry->factor_permille / 1000.0;
    policy->exponential = grow;
}

static Toc__V1__RetryPolicy *
retry_policy(struct toc_arena *arena, const struct toc_retry *retry)
{
    Toc__V1__RetryPolicy *policy = toc_arena_alloc(arena, sizeof *policy);
    Google__Protobuf__UInt32Value *max = toc_arena_alloc(arena, sizeof *max);

    toc__v1__retry_policy__init(policy);
    google__protobuf__uint32_value__init(max);
    max->value = retry->max_retries;
    policy->max_retries = max;
    policy->jitter_percent = retry->jitter_percent;
    fill_delays(arena, retry, policy);
    return policy;
}

static void
fill_headers(struct toc_arena *arena, const struct toc_spec *spec,
             Toc__V1__Task *out)
{
    out->n_headers = spec->n_headers;
    out->headers =
        toc_arena_calloc(arena, spec->n_headers, sizeof *out->headers);
    for (size_t i = 0; i < spec->n_headers; i++) {
        Toc__V1__Header *header = toc_arena_alloc(arena, sizeof *header);
        toc__v1__header__init(header);
        header->name = toc_api_text(arena, spec->headers[i].name);
        header->value = toc_api_text(arena, spec->headers[i].value);
        out->headers[i] = header;
    }
}

static void
fill_spec(struct toc_arena *arena, struct toc_str bytes, Toc__V1__Task *out)
{
    struct toc_spec spec;
    Toc__V1__Target *target;

    if (toc_spec_decode(bytes, arena, &spec, NULL) != TOC_OK)
        return;
    target = toc_arena_alloc(arena, sizeof *target);
    toc__v1__target__init(target);
    target->url = toc_api_text(arena, spec.target);
    target->batch_max = spec.batch_max;
    out->target = target;
    out->content_type = toc_api_text(arena, spec.content_type);
    out->retry_policy = retry_policy(arena, &spec.retry);
    out->call_timeout = toc_api_duration(arena, spec.call_timeout_ms);
    fill_headers(arena, &spec, out);
}

static Toc__V1__TaskKey *
task_key(struct toc_arena *arena, const struct toc_task *task)
{
    Toc__V1__TaskKey *key = toc_arena_alloc(arena, sizeof *key);

    toc__v1__task_key__init(key);
    key->biz_type = toc_api_text(arena, task->biz_type);
    key->biz_id = toc_api_text(arena, task->biz_id);
    key->name = toc_api_text(arena, task->name);
    return key;
}

static void
fill_state(struct toc_arena *arena, const struct toc_task *task,
           const struct toc_api_view *view, Toc__V1__Task *out)
{
    out->state = toc_api_state(
        toc_state_shown(task->state, task->slot_ms, view->now_ms));
    out->due_time = toc_api_time(arena, task->due_ms);
    out->create_time = toc_api_time(arena, task->created_ms);
    out->fire = task->fire;
    out->failed_attempts = task->attempt;
    out->etag = toc_api_etag(arena, task->version);
    out->priority = toc_api_priority(toc_slice_priority(task->slice));
    out->cancel_noted = (task->flags & TOC_FLAG_CANCEL) != 0;
    out->delivery_guarantee =
        task->flags & TOC_FLAG_AT_MOST_ONCE
            ? TOC__V1__DELIVERY_GUARANTEE__DELIVERY_GUARANTEE_AT_MOST_ONCE
            : TOC__V1__DELIVERY_GUARANTEE__DELIVERY_GUARANTEE_AT_LEAST_ONCE;
}

Toc__V1__Task *
toc_api_task(struct toc_arena *arena, const struct toc_task *task,
             const struct toc_api_view *view)
{
    Toc__V1__Task *out = toc_arena_alloc(arena, sizeof *out);
    char id[TOC_TASK_ID_TEXT_MAX];

    toc__v1__task__init(out);
    out->task_id =
        toc_arena_text(arena, toc_str_of(toc_task_id_format(task->id, id)));
    out->key = task_key(arena, task);
    fill_state(arena, task, view, out);
    fill_spec(arena, task->spec, out);
    if (view->with_payload && task->payload.ptr != NULL) {
        struct toc_str copy = toc_arena_str(arena, task->payload);
        out->payload.data = (uint8_t *)(uintptr_t)copy.ptr;
        out->payload.len = copy.len;
    }
    out->last_attempt = toc_api_last_attempt(arena, task, &view->names);
    return out;
}
