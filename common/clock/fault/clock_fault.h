/*
 * A process's own clock, made from another one: the wall clock off by some
 * time and set at will, all of them running fast or slow. What several
 * processes of a simulation see of one simulated time.
 *
 * Ownership: base is borrowed. Threads: any. Locks: its own, a leaf.
 */
#ifndef TOC_CLOCK_FAULT_H
#define TOC_CLOCK_FAULT_H

#include "common/clock/clock.h"

#include <pthread.h>

/* Parts per million; a quartz is off by tens of them. */
#define TOC_CLOCK_DRIFT_PPM_MAX 500000

struct toc_clock_fault {
    struct toc_clock clock; /* pass &fault.clock */
    const struct toc_clock *base;
    pthread_mutex_t lock; /* for what follows */
    int64_t drift_ppm;
    int64_t wall_off_ms;              /* without what drift has added since */
    int64_t since_ns;                 /* base's monotonic clock */
    int64_t mono_off_ns, boot_off_ns; /* likewise */
};

void toc_clock_fault_init(struct toc_clock_fault *fault,
                          const struct toc_clock *base);
void toc_clock_fault_done(struct toc_clock_fault *fault);
/* Only the wall clock jumps. */
void toc_clock_fault_step_wall(struct toc_clock_fault *fault, int64_t by_ms);
/* From now on all three run faster (or, below 0, slower) than the base. */
void toc_clock_fault_drift(struct toc_clock_fault *fault, int64_t ppm);

#endif
