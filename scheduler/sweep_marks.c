/*
 * The end of a pass: stragglers are looked at and recorded, then the low-water
 * marks rise.
 */
#include "scheduler/sweep_internal.h"

#include "common/base/log.h"

#include <stdatomic.h>

#define RECHECK_MAX 4 /* shards at once, for those that ended only */
#define TAKEOVER_RETRY_MS 250
#define TAKEOVER_RETRIES 40
#define FREED_AGAIN_MS 100
#define MINUTE_NS (INT64_C(60000) * TOC_NS_PER_MS)

static void
look_at_straggler(void *arg, const struct toc_task *task)
{
    struct sched_sweep *sweep = arg;

    sched_sweep_look_at_row(arg, task);
    sweep->old[toc_slice_shard(task->slice)] = true;
}

int64_t
sched_sweep_scan_stragglers(struct sched_sweep *sweep)
{
    struct toc_error err = {0};
    int64_t now_ns = sched_sweep_mono_ns(sweep);
    struct sched_suspects piece = {.bucket = SCHED_BUCKET_STRAGGLERS};
    uint16_t slices[SCHED_SLICES];
    enum toc_status st;
    size_t n;

    sweep->phase = SCHED_SWEEP_RECORD;
    sweep->record_at = 0;
    sweep->rechecked = 0;
    if (!sweep->stragglers && now_ns < sweep->stragglers_ns)
        return now_ns;
    sched_sweep_forget_rows(sweep);
    n = sched_quarantine_pass(&sweep->held, SCHED_BUCKET_STRAGGLERS, 0, 0,
                              sweep->slices, sweep->n_slices, slices);
    st = toc_store_scan_stragglers(sweep->opt.store, slices, n,
                                   look_at_straggler, sweep, &err);
    if (st == TOC_DATA_LOSS)
        sweep->phase = SCHED_SWEEP_STRAGGLERS;
    if (st != TOC_OK)
        return sched_sweep_unread(sweep, "looking at stragglers", st, &piece,
                                  slices, n, &err);
    sweep->stragglers = sweep->rows > 0;
    sweep->stragglers_ns = now_ns + MINUTE_NS;
    (void)sched_sweep_hint_lost(sweep);
    sweep->after_free = SCHED_SWEEP_RECORD;
    if (sweep->n_expired > 0)
        sweep->phase = SCHED_SWEEP_FREE;
    return sched_sweep_mono_ns(sweep);
}

/* Recorded ones that have ended are forgotten by the same operation, so a shard
 * has its turn until none is left, a few shards at a time. */
static bool
wants_record(struct sched_sweep *sweep, uint16_t shard)
{
    if (sweep->pass_gen[shard] == 0 ||
        sched_quarantine_holds(&sweep->held, shard))
        return false;
    return sweep->old[shard] ||
           (sweep->recorded[shard] && sweep->rechecked++ < RECHECK_MAX);
}

/* The next shard from record_at on; TOC_SHARDS: none. */
static uint16_t
next_to_record(struct sched_sweep *sweep, int64_t now_ns)
{
    uint16_t shard = sweep->record_at;

    if (!sched_sweep_may_write(sweep) ||
        (shard == 0 && now_ns < sweep->record_ns))
        return TOC_SHARDS; /* not each time: a statement per shard */
    while (shard < TOC_SHARDS && !wants_record(sweep, shard))
        shard++;
    return shard;
}

int64_t
sched_sweep_record_stragglers(struct sched_sweep *sweep)
{
    struct toc_error err = {0};
    int64_t now_ns = sched_sweep_mono_ns(sweep);
    uint16_t shard = next_to_record(sweep, now_ns);
    size_t waiting = 0;
    enum toc_status st;

    sweep->record_at = (uint16_t)(shard + 1);
    if (shard == TOC_SHARDS) {
        sweep->phase = SCHED_SWEEP_ADVANCE;
        return now_ns;
    }
    st = toc_store_record_stragglers(
        sweep->opt.store, shard,
        sched_sweep_wall_ms(sweep) - SCHED_SWEEP_STRAGGLER_MS,
        SCHED_SWEEP_STRAGGLERS_MAX, &waiting, &err);
    if (st == TOC_DATA_LOSS &&
        sched_quarantine_hold(&sweep->held, shard, SCHED_BUCKET_RECORD, 0, 0,
                              &err, now_ns))
        return now_ns;
    if (st != TOC_OK)
        return sched_sweep_failed(sweep, "recording stragglers", &err);
    sweep->recorded[shard] = waiting > 0;
    if (waiting > 0)
        sweep->stragglers = true;
    sweep->record_ns = now_ns + MINUTE_NS / 4;
    return now_ns;
}

static void
end_pass(struct sched_sweep *sweep)
{
    int64_t now_ns = sched_sweep_mono_ns(sweep);

    if (sweep->hinted > 0)
        TOC_LOG(INFO, "sweep.hinted",
                F_MSG(sweep->takeover ? "hinted what was due at the takeover"
                                      : "hinted again what had lost its hint"),
                F_UINT("tasks", sweep->hinted));
    sweep->phase = SCHED_SWEEP_IDLE;
    if (sweep->freed > 0)
        sweep->next_ns = now_ns + FREED_AGAIN_MS * TOC_NS_PER_MS;
    if (sweep->takeover && sweep->undecided > 0 &&
        sweep->retries++ < TAKEOVER_RETRIES) {
        sched_sweep_start_pass(sweep, true);
        sweep->next_ns = now_ns + TAKEOVER_RETRY_MS * TOC_NS_PER_MS;
    } else {
        sweep->takeover = false;
    }
}

/* The mark of a shard that is held in part stays: rows may lie above it. */
static size_t
risen_shards(struct sched_sweep *sweep, uint16_t shards[TOC_SHARDS])
{
    size_t n = 0;

    for (uint16_t i = 0;
         i < TOC_SHARDS && !sweep->takeover && sched_sweep_may_write(sweep);
         i++)
        if (sweep->pass_gen[i] != 0 &&
            !sched_quarantine_holds(&sweep->held, i) &&
            atomic_exchange(&sweep->opt.publisher->dirty[i], false))
            shards[n++] = i;
    return n;
}

int64_t
sched_sweep_advance_low(struct sched_sweep *sweep)
{
    struct toc_error err = {0};
    struct sched_suspects piece = {.bucket = SCHED_BUCKET_MARK};
    uint16_t shards[TOC_SHARDS], slices[TOC_SHARDS];
    size_t n = risen_shards(sweep, shards);
    enum toc_status st = toc_store_advance_low(sweep->opt.store, shards, n,
                                               sched_sweep_wall_ms(sweep),
                                               SCHED_SWEEP_BEHIND_MS, &err);

    if (st == TOC_OK) {
        end_pass(sweep);
        return sweep->next_ns;
    }
    for (size_t i = 0; i < n; i++) {
        atomic_store(&sweep->opt.publisher->dirty[shards[i]], true);
        slices[i] = toc_slice_of(shards[i], TOC_PRIORITY_CORE);
    }
    return sched_sweep_unread(sweep, "raising low-water marks", st, &piece,
                              slices, n, &err);
}
