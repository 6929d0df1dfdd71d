/*
 * Hints: has a row lost its own (the rule is in marks.h; here are the offsets
 * that it needs), and hinting it again.
 */
#include "scheduler/sweep_internal.h"

#include "common/base/log.h"

#define BUS_TIMEOUT_MS 2000
#define BUS_AGAIN_NS (INT64_C(2500) * TOC_NS_PER_MS)

/* A bus that does not answer costs a timeout now and then, not one a row: what
 * depends on it stays undecided, locks are freed all the same. */
static bool
bus_answers(struct sched_sweep *sweep)
{
    return sched_sweep_mono_ns(sweep) >= sweep->bus_again_ns;
}

static bool
bus_failed(struct sched_sweep *sweep, const char *what,
           const struct toc_error *err)
{
    TOC_LOG(DEBUG, "sweep.bus_silent",
            F_MSG("the bus does not tell offsets; hints wait"),
            F_STR("asked", what), F_ERR(err));
    sweep->bus_again_ns = sched_sweep_mono_ns(sweep) + BUS_AGAIN_NS;
    return false;
}

/* What the executors have committed in the row's lane; false: not to be known
 * now, so nothing is done. */
static bool
committed_of(struct sched_sweep *sweep, uint16_t slice, int64_t *ret)
{
    enum toc_priority priority = toc_slice_priority(slice);
    int32_t partitions = sweep->opt.marks->partitions;
    int64_t *first = sweep->committed + (size_t)priority * (size_t)partitions;
    struct toc_error err = {0};
    int64_t *read_ns = &sweep->committed_ns[priority];

    if (*read_ns == 0 ||
        sched_sweep_mono_ns(sweep) - *read_ns > SCHED_SWEEP_COMMITTED_NS) {
        *read_ns = 0;
        if (!bus_answers(sweep))
            return false;
        if (toc_bus_committed(sweep->opt.bus, sweep->opt.group,
                              sweep->opt.topics[priority], partitions,
                              BUS_TIMEOUT_MS, first, &err) != TOC_OK)
            return bus_failed(sweep, "committed", &err);
        *read_ns = sched_sweep_mono_ns(sweep);
        sched_marks_set_committed(sweep->opt.marks, priority, first, *read_ns);
    }
    *ret = sweep->committed[sched_marks_lane(sweep->opt.marks, slice)];
    return true;
}

static bool
end_of(struct sched_sweep *sweep, uint16_t slice, int64_t *ret_end)
{
    struct toc_error err = {0};
    struct sched_sweep_end *end =
        &sweep->ends[sched_marks_lane(sweep->opt.marks, slice)];

    *ret_end = end->offset;
    if (end->offset >= 0)
        return true;
    if (!bus_answers(sweep))
        return false;
    end->stored = sched_marks_stored_to(sweep->opt.marks, slice);
    if (toc_bus_end_offset(
            sweep->opt.bus, sweep->opt.topics[toc_slice_priority(slice)],
            sched_marks_partition(sweep->opt.marks, toc_slice_shard(slice)),
            BUS_TIMEOUT_MS, ret_end, &err) != TOC_OK)
        return bus_failed(sweep, "end", &err);
    end->offset = *ret_end;
    end->read_ns = sched_sweep_mono_ns(sweep);
    return true;
}

/* Was the end read before what it is compared with: our own messages since, or
 * offsets that the executors have committed since? Then it proves nothing. */
static bool
end_is_stale(struct sched_sweep *sweep, uint16_t slice)
{
    const struct sched_sweep_end *end =
        &sweep->ends[sched_marks_lane(sweep->opt.marks, slice)];

    return end->stored != sched_marks_stored_to(sweep->opt.marks, slice) ||
           end->read_ns < sweep->committed_ns[toc_slice_priority(slice)];
}

/* Was the topic made anew, so that the row's hint is gone with the old one? */
static bool
is_gone(struct sched_sweep *sweep, const struct toc_task *task,
        int64_t committed)
{
    size_t lane = sched_marks_lane(sweep->opt.marks, task->slice);
    int64_t end;

    for (int i = 0; i < 2; i++) {
        if (!end_of(sweep, task->slice, &end) ||
            !sched_marks_passed(sweep->opt.marks, task->slice, task->slot_ms,
                                committed, end))
            return false;
        if (!end_is_stale(sweep, task->slice))
            return true;
        sweep->ends[lane].offset = -1;
    }
    return false; /* it grew again meanwhile: so it is there */
}

/* Has the row lost its hint? */
static bool
is_lost(struct sched_sweep *sweep, const struct toc_task *task)
{
    int64_t committed, end;

    if (sched_marks_wants_end(sweep->opt.marks, task->slice, task->slot_ms)) {
        if (!end_of(sweep, task->slice, &end))
            return false;
        sched_marks_set_end(sweep->opt.marks, task->slice, end);
    }
    return committed_of(sweep, task->slice, &committed) &&
           (sched_marks_passed(sweep->opt.marks, task->slice, task->slot_ms,
                               committed, -1) ||
            is_gone(sweep, task, committed));
}

static void
hint_row(struct sched_sweep *sweep, const struct toc_task *task)
{
    enum sched_offer offer;

    if (!is_lost(sweep, task)) {
        sweep->undecided++;
        return;
    }
    offer = sched_memory_offer(sweep->opt.memory, task, SCHED_ROAD_NEAR);
    sweep->hinted += offer == SCHED_OFFER_TAKEN;
    sweep->full = offer == SCHED_OFFER_FULL;
}

/* Did memory take any? */
bool
sched_sweep_hint_lost(struct sched_sweep *sweep)
{
    size_t before = sweep->hinted;

    sweep->full = false;
    for (size_t i = 0; i < sweep->n_waiting && !sweep->full; i++)
        hint_row(sweep, &sweep->waiting[i]);
    sweep->n_waiting = 0;
    return sweep->hinted > before;
}
