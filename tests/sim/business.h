/*
 * The businesses: an invoke backend for each simulated executor whose calls
 * arrive at stubs that answer as the ledger's manners say.
 *
 * A call takes a moment there and back; faults make it slow, lose it, lose its
 * answer, or kill or freeze the executor between its last look at the lock and
 * the sending. The stub is a handler as our libraries are: it refuses a call
 * that arrives after its toc-not-after, and stops at it. The call itself is the
 * executor's memory; the stub works on a copy, so it goes on when the executor
 * is killed.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_BUSINESS_H
#define TOC_SIM_BUSINESS_H

#include "common/invoke/invoke.h"
#include "tests/sim/faults.h"
#include "tests/sim/ledger.h"

struct sim_business {
    struct sim_world *world;
    struct sim_ledger *ledger;
    bool down;             /* connections are refused */
    struct toc_link calls; /* struct call, in the world's memory */
};

/* A process's way there. */
struct sim_caller {
    struct toc_invoke port; /* pass &caller.port */
    struct sim_business *business;
    struct sim_door door;
};

void sim_business_init(struct sim_business *business,
                       struct sim_ledger *ledger);
void sim_caller_init(struct sim_caller *caller, struct sim_business *business,
                     struct sim_faults *faults, struct sim_proc *proc);

#endif
