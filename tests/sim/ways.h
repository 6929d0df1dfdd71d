/*
 * Ports whose operations wait (coordination, consuming), over memory backends
 * that do not: here a loop that waits leaves the stage until its time has come
 * or something happened at the server.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_WAITS_H
#define TOC_SIM_WAITS_H

#include "common/bus/bus.h"
#include "common/coord/coord.h"
#include "tests/sim/proc.h"

struct sim_coord {
    struct toc_coord port; /* pass &coord.port */
    struct toc_coord *inner;
    struct sim_proc *proc;
    const void *server; /* what is nudged when something changes there */
};

void sim_coord_init(struct sim_coord *coord, struct toc_coord *inner,
                    struct sim_proc *proc, const void *server);

struct sim_consumer {
    struct toc_bus_consumer port; /* pass &consumer.port */
    struct toc_bus_consumer *inner;
    struct sim_proc *proc;
    const void *server;
};

void sim_consumer_init(struct sim_consumer *consumer,
                       struct toc_bus_consumer *inner, struct sim_proc *proc,
                       const void *server);

#endif
