/*
 * Fibers: the loops of simulated processes, each on a stack of its own, in one
 * thread. A loop that calls a port gives the stage to others until the call has
 * its effect, and again until it has its answer; that is where a process can be
 * killed or frozen.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_FIBER_H
#define TOC_SIM_FIBER_H

#include <stdbool.h>

struct sim_fiber;
typedef void sim_fiber_fn(void *arg);

struct sim_fiber *sim_fiber_new(sim_fiber_fn *fn, void *arg);
/* Runs it until it yields or returns; not from inside a fiber. */
void sim_fiber_resume(struct sim_fiber *fiber);
/* Back to whoever resumed; from inside a fiber. */
void sim_fiber_yield(void);
/* Wherever it stands: it will not go on. NULL is fine. */
void sim_fiber_drop(struct sim_fiber *fiber);
/* Gives back the stacks that are kept for the next ones. */
void sim_fiber_trim(void);

#endif
