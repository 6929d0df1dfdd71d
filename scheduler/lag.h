/*
 * Looks at how far the executors have come in the lanes where many hints are
 * out, so that the publisher goes on (or holds: marks.h).
 *
 * Threads: lag. Blocking: bus calls.
 */
#ifndef TOC_SCHEDULER_LAG_H
#define TOC_SCHEDULER_LAG_H

#include "common/bus/bus.h"
#include "common/clock/clock.h"
#include "scheduler/marks.h"

struct sched_lag {
    const struct toc_clock *clk;
    struct toc_bus *bus;
    struct sched_marks *marks;
    const char *const *topics;
    const char *group;
};

/* Returns when to step again (monotonic ns). */
int64_t sched_lag_step(struct sched_lag *lag);

#endif
