/*
 * A clock that stands where a test put it. Threads: any (it is atomic).
 */
#ifndef TOC_CLOCK_SIM_H
#define TOC_CLOCK_SIM_H

#include "common/clock/clock.h"

#include <stdatomic.h>

struct toc_clock_sim {
    struct toc_clock clock; /* pass &sim.clock */
    _Atomic int64_t wall_ns;
    _Atomic int64_t mono_ns;
};

void toc_clock_sim_init(struct toc_clock_sim *sim, struct toc_wall start);
/* All three clocks go on by ns. */
void toc_clock_sim_advance_ns(struct toc_clock_sim *sim, int64_t ns);
/* Only the wall clock jumps (a step by NTP or a hand). */
void toc_clock_sim_step_wall(struct toc_clock_sim *sim, int64_t by_ms);

#endif
