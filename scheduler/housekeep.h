/*
 * Slow work: day partitions are made ahead and dropped after retention (by the
 * owner of shard 0, hourly), keys of tasks that ended longer ago than the
 * idempotency window become free (by each shard's owner, in turn and paced).
 *
 * All of it may be done by anybody at any time. Threads: housekeep. Blocking:
 * store calls, at most one a step.
 */
#ifndef TOC_SCHEDULER_HOUSEKEEP_H
#define TOC_SCHEDULER_HOUSEKEEP_H

#include "common/store/store.h"
#include "scheduler/shards.h"
#include "scheduler/skew.h"

struct sched_housekeep_options {
    const struct toc_clock *clk;
    struct toc_store *store;
    struct sched_shards *shards;
    struct sched_skew *skew; /* nothing by a clock that is wrong */
    int64_t retention_ms, key_window_ms;
};

struct sched_housekeep {
    struct sched_housekeep_options opt;
    int64_t make_ns, drop_ns, gc_ns; /* next time */
    uint16_t gc_shard;
    bool gc_full; /* its last chunk was: there may be more */
};

void sched_housekeep_init(struct sched_housekeep *house,
                          const struct sched_housekeep_options *opt);
int64_t sched_housekeep_step(struct sched_housekeep *house);

#endif
