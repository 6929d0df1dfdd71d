#include "executor/core.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

/* The longest sleep: shows that the loop lives, and finds a wall clock that was
 * set forward. */
#define STEP_MS_MAX 1000
#define GATHER_FROM_PER_SEC 1000 /* below: each claim at once */
#define GATHER_N 32
#define GATHER_MS_MAX 10
/* A claim that takes longer says that something is wrong. */
#define CLAIM_MS_MAX 500

void
exec_core_init(struct exec_core *core, const struct exec_core_options *options)
{
    *core = (struct exec_core){.options = *options,
                               .pace = {.from_per_sec = GATHER_FROM_PER_SEC,
                                        .batch_n = GATHER_N,
                                        .ms_max = GATHER_MS_MAX}};
    exec_inbox_init(&core->inbox);
    exec_offsets_init(&core->offsets);
    exec_waiting_init(&core->waiting);
    exec_targets_init(&core->targets, options->calls_max,
                      options->target_calls_max, options->target_queue_max);
    exec_marks_init(&core->marks);
}

void
exec_core_done(struct exec_core *core)
{
    TOC_ASSERT(core->batch.n == 0 && core->aside.n == 0);
    exec_waiting_done(&core->waiting);
    exec_targets_done(&core->targets);
    exec_offsets_done(&core->offsets);
    exec_marks_done(&core->marks);
    exec_inbox_done(&core->inbox);
    toc_arena_done(&core->batch.rows);
}

/* ---- hints ----------------------------------------------------------- */

static void
forget(struct exec_core *core, struct exec_item *item)
{
    exec_waiting_remove(&core->waiting, item);
    /* One that was won keeps its slot until its call has one. */
    if (item->state != EXEC_ITEM_WON)
        exec_targets_leave(&core->targets, item);
    atomic_fetch_sub(&core->hints, 1);
}

void
exec_core_decided(struct exec_core *core, struct exec_item *item)
{
    forget(core, item);
    exec_item_decide(item, &core->offsets);
}

void
exec_core_crowded_out(struct exec_core *core, struct exec_item *item)
{
    EXEC_COUNT(core->options.counters, crowded, 1);
    exec_core_decided(core, item);
    exec_item_free(item);
}

void
exec_core_drop(struct exec_core *core, struct exec_item *item)
{
    forget(core, item);
    exec_item_free(item);
}

/* A hint equal to one that waits joins it: in one claim batch both would win.
 */
static void
add_item(struct exec_core *core, struct exec_item *item,
         struct exec_message *message)
{
    struct exec_item *equal = exec_waiting_find(&core->waiting, item);

    if (equal == NULL) {
        exec_item_add_ref(item, message);
        exec_waiting_add(&core->waiting, item);
        return;
    }
    if (equal->kept)
        exec_offsets_decide(&core->offsets, message);
    else
        exec_item_add_ref(equal, message);
    exec_item_free(item);
    atomic_fetch_sub(&core->hints, 1);
    EXEC_COUNT(core->options.counters, merged, 1);
}

static void
on_delivery(struct exec_core *core, struct exec_delivery *delivery)
{
    struct exec_partition *partition =
        exec_offsets_find(&core->offsets, &delivery->place);
    struct exec_message *message = NULL;

    if (partition != NULL && !atomic_load(&core->draining))
        message = exec_offsets_arrive(&core->offsets, partition,
                                      delivery->offset, delivery->n);
    for (size_t i = 0; i < delivery->n; i++) {
        if (message != NULL) {
            add_item(core, delivery->items[i], message);
            continue;
        }
        exec_item_free(delivery->items[i]);
        atomic_fetch_sub(&core->hints, 1);
    }
    toc_free(delivery);
}

/* Offsets do not wait for a target. Should we end before its turn comes, the
 * sweep finds the row, because the offset has passed. */
static void
decide_overdue(struct exec_core *core, int64_t now_ns)
{
    struct exec_item *item;

    while ((item = exec_targets_overdue(&core->targets, now_ns)) != NULL) {
        if (item->to != NULL) {
            exec_item_decide(item, &core->offsets);
            EXEC_COUNT(core->options.counters, kept, 1);
        } else {
            exec_core_crowded_out(core, item);
        }
    }
}

/* ---- partitions ------------------------------------------------------ */

/* Hints that only this partition brought are somebody else's now. One that is
 * being claimed, or that another partition brought too, stays; so does one that
 * is decided and waits for its target. */
static void
drop_hints_of(struct exec_core *core, const struct exec_partition *partition)
{
    struct exec_item *item = exec_waiting_first(&core->waiting);

    while (item != NULL) {
        struct exec_item *next = exec_waiting_next(&core->waiting, item);

        exec_item_drop_refs(item, partition);
        if (exec_item_is_orphan(item) && item->state != EXEC_ITEM_CLAIMING)
            exec_core_drop(core, item);
        item = next;
    }
}

static void
revoke(struct exec_core *core, const struct exec_place *place)
{
    struct exec_partition *partition = exec_offsets_find(&core->offsets, place);

    if (partition == NULL)
        return;
    drop_hints_of(core, partition);
    exec_offsets_revoke(&core->offsets, partition);
}

static void
on_rebalance(struct exec_core *core, struct exec_rebalance *rebalance)
{
    if (rebalance->event.kind == EXEC_EVENT_ASSIGNED)
        exec_offsets_assign(&core->offsets, &rebalance->place);
    else
        revoke(core, &rebalance->place);
    toc_free(rebalance);
}

/* ---- calls ----------------------------------------------------------- */

static void
on_call_ended(struct exec_core *core, struct exec_call *call)
{
    exec_targets_measure(call->target, call->n,
                         toc_clock_mono(core->options.clock).ns);
    if (!call->keeps_slot)
        exec_targets_slot_free(&core->targets, call->target);
    atomic_fetch_sub(&core->calls, 1);
    toc_free(call->attempts);
    toc_free(call->fires);
    toc_free(call);
}

static void
on_slot_free(struct exec_core *core, struct exec_slot *slot)
{
    exec_targets_slot_free(&core->targets, slot->target);
    toc_free(slot);
}

/* Most calls end while nobody waits for their slot: then the core finds them
 * when it wakes for something else. */
void
exec_call_post(struct exec_core *core, struct exec_call *call)
{
    exec_inbox_leave(&core->inbox, &call->event.link);
    if (atomic_load(&core->wants_slots))
        exec_inbox_ring(&core->inbox);
}

void
exec_core_slot_free(struct exec_core *core, struct exec_slot *slot)
{
    exec_inbox_leave(&core->inbox, &slot->event.link);
    if (atomic_load(&core->wants_slots))
        exec_inbox_ring(&core->inbox);
}

/* Said first and looked at afterwards: either the call's thread sees that we
 * want slots, or we see its call. */
static bool
slots_came(struct exec_core *core)
{
    bool wants = core->targets.queued > 0 ||
                 exec_targets_full(&core->targets) ||
                 atomic_load(&core->draining);

    atomic_store(&core->wants_slots, wants);
    return wants && !exec_inbox_empty(&core->inbox);
}

void
exec_core_attempt_gone(struct exec_core *core)
{
    size_t before = atomic_fetch_sub(&core->attempts, 1);

    TOC_ASSERT(before > 0);
    if (before >= core->options.attempts_max)
        exec_inbox_ring(&core->inbox);
}

/* ---- the step -------------------------------------------------------- */

static void
take_events(struct exec_core *core)
{
    struct toc_link events, *link;

    toc_list_init(&events);
    exec_inbox_take(&core->inbox, &events);
    while ((link = toc_list_pop(&events)) != NULL) {
        struct exec_event *event =
            toc_container_of(link, struct exec_event, link);

        switch (event->kind) {
        case EXEC_EVENT_ASSIGNED:
        case EXEC_EVENT_REVOKED:
            on_rebalance(core,
                         toc_container_of(event, struct exec_rebalance, event));
            break;
        case EXEC_EVENT_DELIVERY:
            on_delivery(core,
                        toc_container_of(event, struct exec_delivery, event));
            break;
        case EXEC_EVENT_CALL_ENDED:
            on_call_ended(core,
                          toc_container_of(event, struct exec_call, event));
            break;
        case EXEC_EVENT_SLOT_FREE:
            on_slot_free(core,
                         toc_container_of(event, struct exec_slot, event));
            break;
        }
    }
}

static void
put_mark(void *arg, const struct exec_place *place, int64_t next_offset)
{
    struct exec_core *core = arg;

    exec_marks_put(&core->marks, place, next_offset);
}

/* What was not claimed stays undecided: its partition's next owner gets it. */
static void
drain(struct exec_core *core)
{
    struct exec_item *item;

    exec_claims_put_all_back(core);
    while ((item = exec_waiting_first(&core->waiting)) != NULL) {
        while (item->refs != NULL)
            exec_item_drop_refs(item, item->refs->message->partition);
        exec_core_drop(core, item);
    }
    atomic_store(&core->drained, true);
}

static int64_t
sooner(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* Nothing was gathered at now_ms: either nothing was due, or what was due waits
 * for a slot, a session or the results, which ring. */
static int64_t
next_wake(struct exec_core *core, int64_t now_ms, int64_t latest_ns)
{
    struct toc_wall next = {exec_waiting_next_ms(&core->waiting)};

    if (next.ms == INT64_MAX || next.ms <= now_ms)
        return latest_ns;
    return sooner(toc_clock_mono_at(core->options.clock, next).ns, latest_ns);
}

bool
exec_core_is_well(const struct exec_core *core, int64_t now_ns)
{
    int64_t since_ns = atomic_load(&core->claim_since_ns);

    return exec_session_holds(core) && !atomic_load(&core->unsound) &&
           (since_ns == 0 || now_ns - since_ns < CLAIM_MS_MAX * TOC_NS_PER_MS);
}

/* At a high rate the next claim waits a little, so that it wins more at once;
 * a full one shows that more waits already. */
static void
gather_claims(struct exec_core *core, int64_t now_ns, int64_t now_ms)
{
    if (now_ns < core->gather_ns)
        return;
    exec_claims_gather(core, now_ms);
    exec_pace_note(&core->pace, core->batch.n, now_ns);
    core->gather_ns = now_ns;
    if (core->batch.n > 0 && core->batch.n < GATHER_N)
        core->gather_ns += exec_pace_gather_ns(&core->pace);
}

static int64_t
work(struct exec_core *core, int64_t now_ns)
{
    int64_t latest_ns = now_ns + STEP_MS_MAX * TOC_NS_PER_MS;
    int64_t now_ms = toc_clock_wall(core->options.clock).ms;

    if (atomic_load(&core->draining)) {
        drain(core);
        return latest_ns;
    }
    if (core->batch.n == 0)
        gather_claims(core, now_ns, now_ms);
    if (core->batch.n == 0 && now_ns < core->gather_ns)
        return core->gather_ns;
    if (core->batch.n == 0) {
        atomic_store(&core->claim_since_ns, 0); /* what failed has gone */
        return next_wake(core, now_ms, latest_ns);
    }
    if (core->batch.retry_ns > now_ns)
        return core->batch.retry_ns;
    exec_claims_try(core);
    return core->batch.n > 0 ? core->batch.retry_ns : now_ns;
}

int64_t
exec_core_step(struct exec_core *core)
{
    int64_t now_ns = toc_clock_mono(core->options.clock).ns;
    int64_t wake_ns;

    take_events(core);
    wake_ns = work(core, now_ns);
    decide_overdue(core, now_ns);
    wake_ns = sooner(wake_ns, exec_targets_overdue_ns(&core->targets));
    exec_offsets_take_marks(&core->offsets, put_mark, core);
    atomic_store(&core->messages, core->offsets.messages);
    return slots_came(core) ? now_ns : wake_ns;
}
