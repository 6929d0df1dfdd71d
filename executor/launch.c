/*
 * From won attempts to calls on their way.
 *
 * The lock is looked at last, by the boot-time clock, right before sending:
 * what passed since the claim (a freeze, a slow database) comes off the call's
 * time, and a call that has none left is not made.
 */
#include "executor/core.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

/* Of one batch call: servers accept 4 MiB by default. */
#define BATCH_PAYLOAD_BYTES_MAX ((size_t)2 * 1024 * 1024)

bool
exec_session_holds(const struct exec_core *core)
{
    int64_t deadline_ns;

    if (core->options.coord == NULL)
        return true;
    deadline_ns = toc_coord_deadline_boot_ns(core->options.coord);
    return toc_clock_boot(core->options.clock).ns < deadline_ns;
}

/* ---- answers (on a thread of the invoke port) ------------------------ */

/*
 * An answer that is not known says nothing about the handler: it may be at work
 * until its toc-not-after by its own clock. Until then the row stays claimed,
 * so that no second call of the fire begins (a retry, a run-now) and a cancel
 * is told the truth, that it is too late. The last quarter of the margin is for
 * the write, which would else meet a lock that has ended.
 */
static int64_t
write_from_ns(const struct exec_core *core, const struct exec_attempt *attempt,
              const struct toc_fire *fire)
{
    if (fire->answer.kind != TOC_ANSWER_UNKNOWN || fire->answer.ended)
        return 0;
    return attempt->lock_until_boot_ns -
           core->options.margin_ms * TOC_NS_PER_MS / 4;
}

/* As long as its handler may be at work the call counts: its slot is given back
 * by the results, with the attempt. */
static struct exec_slot *
keep_slot(struct exec_call *call)
{
    struct exec_slot *slot = TOC_NEW(struct exec_slot);

    toc_list_init(&slot->event.link);
    slot->event.kind = EXEC_EVENT_SLOT_FREE;
    slot->target = call->target;
    call->keeps_slot = true;
    return slot;
}

/* The call first: what it keeps is given back after it has ended. */
static void
post_all(struct exec_core *core, struct exec_call *call)
{
    struct exec_attempt **attempts = call->attempts;
    size_t n = call->n;

    call->attempts = NULL;
    exec_call_post(core, call); /* not ours any more */
    for (size_t i = 0; i < n; i++)
        exec_inbox_post(core->options.results, &attempts[i]->link);
    toc_free(attempts);
}

static void
call_ended(struct toc_call *ended)
{
    struct exec_call *call = ended->arg;
    struct exec_core *core = call->core;
    int64_t now_ms = toc_clock_wall(core->options.clock).ms;

    for (size_t i = 0; i < call->n; i++) {
        struct exec_attempt *attempt = call->attempts[i];

        exec_attempt_answer(attempt, &call->fires[i], now_ms);
        attempt->write_from_ns = write_from_ns(core, attempt, &call->fires[i]);
        if (attempt->write_from_ns > 0 && !call->keeps_slot)
            attempt->slot = keep_slot(call);
    }
    post_all(core, call);
}

/* ---- putting calls together ------------------------------------------ */

static struct exec_call *
new_call(struct exec_core *core, const struct exec_attempt *first,
         size_t fires_max)
{
    const struct exec_item *item = first->item;
    struct exec_call *call = TOC_NEW(struct exec_call);

    toc_list_init(&call->event.link);
    call->event.kind = EXEC_EVENT_CALL_ENDED;
    call->core = core;
    call->target = item->to;
    call->timeout_ms = item->call_timeout_ms;
    call->cap = item->batch_max < fires_max ? item->batch_max : fires_max;
    call->attempts = TOC_NEW_ARRAY(struct exec_attempt *, call->cap);
    call->fires = TOC_NEW_ARRAY(struct toc_fire, call->cap);
    call->call = (struct toc_call){.target = first->spec.target,
                                   .fires = call->fires,
                                   .batch = first->spec.batch_max > 1,
                                   .done = call_ended,
                                   .arg = call};
    exec_targets_call_begun(&core->targets, call->target);
    atomic_fetch_add(&core->calls, 1);
    return call;
}

static bool
takes(const struct exec_call *call, const struct exec_attempt *attempt)
{
    return call->call.batch && call->n < call->cap &&
           call->target == attempt->item->to &&
           call->timeout_ms == attempt->item->call_timeout_ms &&
           call->payload_bytes + attempt->task.payload.len <=
               BATCH_PAYLOAD_BYTES_MAX;
}

static void
join(struct exec_call *call, struct exec_attempt *attempt)
{
    call->attempts[call->n] = attempt;
    call->fires[call->n] =
        (struct toc_fire){.task = &attempt->task,
                          .spec = &attempt->spec,
                          .attempt = (uint32_t)attempt->task.attempt + 1};
    call->payload_bytes += attempt->task.payload.len;
    call->n++;
    call->call.n = call->n;
}

/* Payloads that were not in the hints may ask for more calls than there are
 * slots kept; a few too many for a moment do no harm. */
static size_t
put_together(struct exec_core *core, struct exec_attempt **won, size_t n,
             struct exec_call **calls)
{
    size_t n_calls = 0;

    for (size_t i = 0; i < n; i++) {
        struct exec_call *call = NULL;

        for (size_t k = n_calls; k-- > 0 && call == NULL;)
            if (won[i]->item->batch_max > 1 && takes(calls[k], won[i]))
                call = calls[k];
        if (call == NULL)
            call = calls[n_calls++] = new_call(core, won[i], n - i);
        join(call, won[i]);
    }
    for (size_t i = 0; i < n; i++)
        exec_targets_leave(&core->targets, won[i]->item);
    return n_calls;
}

/* ---- sending --------------------------------------------------------- */

static void
give_back(struct exec_core *core, struct exec_call *call)
{
    int64_t now_ms = toc_clock_wall(core->options.clock).ms;

    EXEC_COUNT(core->options.counters, given_back, call->n);
    for (size_t i = 0; i < call->n; i++) {
        exec_attempt_give_back(call->attempts[i], now_ms);
        exec_inbox_post(core->options.results, &call->attempts[i]->link);
    }
    exec_call_post(core, call);
}

static void
start(struct exec_core *core, struct exec_call *call)
{
    const struct exec_batch *batch = &core->batch;
    const struct toc_clock *clk = core->options.clock;
    int64_t end_ns = batch->begun.ns + batch->call_ms * TOC_NS_PER_MS;
    int64_t left_ns = end_ns - toc_clock_boot(clk).ns;
    int64_t timeout_ns = call->timeout_ms * TOC_NS_PER_MS;
    int64_t now_ms = toc_clock_wall(clk).ms;

    if (left_ns < TOC_NS_PER_MS || !exec_session_holds(core)) {
        give_back(core, call);
        return;
    }
    if (timeout_ns > left_ns)
        timeout_ns = left_ns;
    for (size_t i = 0; i < call->n; i++)
        call->attempts[i]->finish.called_ms = now_ms;
    call->call.not_after_ms = batch->lock.now_ms + batch->call_ms;
    call->call.deadline_ns = toc_clock_mono(clk).ns + timeout_ns;
    EXEC_COUNT(core->options.counters, calls, 1);
    EXEC_COUNT(core->options.counters, fires, call->n);
    toc_invoke_start(core->options.invoke, &call->call);
}

void
exec_launch(struct exec_core *core, struct exec_attempt **won, size_t n)
{
    struct exec_call *calls[EXEC_CLAIMS_MAX];
    size_t n_calls = put_together(core, won, n, calls);

    for (size_t i = 0; i < n_calls; i++)
        start(core, calls[i]);
}
