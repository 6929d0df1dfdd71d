/*
 * Measures this node's clock against the database's, by which every node is
 * compared. A node that is far off refuses to serve: it would compute wrong due
 * times from delays. Nor does it write what rests on "now": it would free locks
 * that are held, or raise marks over rows to come.
 *
 * Threads: skew; off_ms, right and ok: any. Blocking: a store call.
 */
#ifndef TOC_SCHEDULER_SKEW_H
#define TOC_SCHEDULER_SKEW_H

#include "common/clock/clock.h"
#include "common/store/store.h"

#include <stdatomic.h>
#include <stdbool.h>

#define SCHED_SKEW_MAX_MS 1000

struct sched_skew {
    const struct toc_clock *clk;
    struct toc_store *store;
    _Atomic bool ok;       /* the last one worked and was fine */
    _Atomic bool measured; /* at least once */
    /* As last measured: how far off it was, less what the wall clock was ahead
     * of the boot clock. One number, so that nobody reads halves of two. */
    _Atomic int64_t base_ms;
    bool bad; /* it was off when last measured; told */
};

/* How far our clock is ahead (negative: behind), less what the round trip may
 * explain; 0 when it may be right. */
int64_t sched_skew_of(int64_t before_ms, int64_t after_ms, int64_t store_ms);
/* Returns when to step again (monotonic ns). */
int64_t sched_skew_step(struct sched_skew *skew);
/* How far off the clock is, as last measured and with what it was set by since
 * then; 0 when that is tolerable, or nothing is known yet. */
int64_t sched_skew_off_ms(struct sched_skew *skew);
/* Was the clock measured, and is it not off? */
bool sched_skew_right(struct sched_skew *skew);

#endif
