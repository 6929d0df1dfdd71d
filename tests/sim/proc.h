/*
 * A simulated process: its memory, its clock, and its loops, each a fiber that
 * runs a step and sleeps until the step's wake time or its bell, as the
 * runners' threads do. It can be killed at any point at which a fiber waits,
 * frozen (its clocks go on), and its wall clock can be set.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_PROC_H
#define TOC_SIM_PROC_H

#include "common/base/thread.h"
#include "common/clock/clock.h"
#include "tests/sim/fiber.h"
#include "tests/sim/world.h"

#define SIM_LOOPS_MAX 24

typedef int64_t sim_step_fn(void *self);

struct sim_fault;

struct sim_loop {
    struct sim_proc *proc;
    const char *name;
    sim_step_fn *step;
    void *self;
    struct toc_bell *bell; /* NULL: it has none */
    struct sim_event wake;
    struct sim_fiber *fiber;       /* NULL: unused */
    bool by_bell;                  /* it sleeps, and the bell may wake it */
    const void *awaits;            /* NULL: nothing in particular */
    const struct sim_fault *fault; /* of the operation under way */
};

struct sim_proc {
    struct toc_link link; /* of the world's processes */
    struct sim_world *world;
    const char *name;
    struct sim_pool pool;
    struct toc_clock clock;
    int64_t wall_ahead_ns; /* of the true time */
    int64_t frozen_until_ns;
    bool alive;
    unsigned life; /* raised by each kill: what a dead one began is ignored */
    struct sim_loop loops[SIM_LOOPS_MAX];
};

void sim_proc_init(struct sim_proc *proc, struct sim_world *world,
                   const char *name);
/* From now on it is alive; make its objects inside sim_proc_call. */
void sim_proc_begin(struct sim_proc *proc);
/* step(self) at once, then whenever it wants. */
void sim_proc_loop(struct sim_proc *proc, const char *name, sim_step_fn *step,
                   void *self, struct toc_bell *bell);
/* Memory, loops and all; not from inside one of its own fibers. */
void sim_proc_kill(struct sim_proc *proc);
/* Nothing of it runs until then. */
void sim_proc_freeze(struct sim_proc *proc, int64_t until_ns);

/* fn(arg) as on a thread of the process that never waits (callbacks of its
 * libraries); then the loops whose bells it rang are woken. Nothing when it is
 * dead. */
void sim_proc_call(struct sim_proc *proc, void (*fn)(void *arg), void *arg);

/* ---- from inside a loop ---------------------------------------------- */

/* The loop that runs; NULL: none. */
struct sim_loop *sim_loop_running(void);
/* Goes on at the time, or before when it is nudged, or never when it is killed
 * meanwhile. */
void sim_loop_pause(int64_t until_ns);
/* The same, until somebody nudges those who wait for `what`. */
void sim_loop_await(const void *what, int64_t until_ns);
/* From anywhere: the pauses of those who wait for it end at the time. */
void sim_nudge(struct sim_world *world, const void *what, int64_t at_ns);

#endif
