/*
 * What cannot be read: the search for it, piece by piece, and trying again what
 * is held (quarantine.h).
 */
#include "scheduler/sweep_internal.h"

#include <stdatomic.h>

/* It is read for whether it can be read: what it holds is the pass's. */
static void
pass_over(void *arg, const struct toc_task *task)
{
    (void)arg;
    (void)task;
}

/* One store call. */
static enum toc_status
read_alone(struct sched_sweep *sweep, const struct sched_suspects *at,
           const uint16_t *shards, const uint16_t *slices, size_t n,
           struct toc_error *err)
{
    struct toc_store *store = sweep->opt.store;
    size_t waiting;

    switch (at->bucket) {
    case SCHED_BUCKET_STRAGGLERS:
        return toc_store_scan_stragglers(store, slices, n, pass_over, NULL,
                                         err);
    case SCHED_BUCKET_MARK:
        return toc_store_advance_low(store, shards, n / TOC_PRIORITIES,
                                     sched_sweep_wall_ms(sweep),
                                     SCHED_SWEEP_BEHIND_MS, err);
    case SCHED_BUCKET_RECORD: /* one shard: it was alone when it failed */
        return toc_store_record_stragglers(
            store, shards[0],
            sched_sweep_wall_ms(sweep) - SCHED_SWEEP_STRAGGLER_MS,
            SCHED_SWEEP_STRAGGLERS_MAX, &waiting, err);
    default:
        return toc_store_scan(store, slices, n, at->after_ms + 1, at->to_ms + 1,
                              pass_over, NULL, err);
    }
}

int64_t
sched_sweep_search(struct sched_sweep *sweep, const struct sched_suspects *at)
{
    struct sched_quarantine *held = &sweep->held;
    struct toc_error err = {0};
    enum toc_status st = read_alone(sweep, at, held->shards + at->first,
                                    held->slices, held->n_slices, &err);

    sched_quarantine_tell(held, st, &err, sched_sweep_mono_ns(sweep));
    if (st != TOC_OK && st != TOC_DATA_LOSS)
        return sched_sweep_failed(sweep, "looking for what cannot be read",
                                  &err);
    if (sched_quarantine_in_vain(held)) /* the whole failed, no part does */
        return sched_sweep_failed(sweep, "looking for what cannot be read",
                                  &held->err);
    return sched_sweep_mono_ns(sweep);
}

int64_t
sched_sweep_try_held(struct sched_sweep *sweep, struct sched_held *held)
{
    struct sched_suspects at = {held->bucket, held->after_ms, held->to_ms, 0,
                                1};
    uint16_t shard = held->shard, slices[TOC_PRIORITIES];
    size_t n = sched_quarantine_slices(shard, slices);
    struct toc_error err = {0};
    bool read = (held->bucket >= 0 || sched_sweep_may_write(sweep)) &&
                read_alone(sweep, &at, &shard, slices, n, &err) == TOC_OK;

    sched_quarantine_tried(&sweep->held, held, read,
                           sched_sweep_mono_ns(sweep));
    if (read)
        atomic_store(&sweep->opt.publisher->dirty[shard], true);
    return sched_sweep_mono_ns(sweep);
}
