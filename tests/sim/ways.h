/*
 * A simulated process's ways to the servers of coordination and bus, over the
 * memory backends: through doors that faults stand at, and with waiting, which
 * those backends do not do: here a loop that waits leaves the stage until its
 * time has come or something happened at the server.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_WAYS_H
#define TOC_SIM_WAYS_H

#include "common/bus/bus.h"
#include "common/coord/coord.h"
#include "tests/sim/faults.h"

struct sim_coord {
    struct toc_coord port; /* pass &coord.port */
    struct toc_coord *inner;
    struct sim_door door;
    const void *server; /* what is nudged when something changes there */
};

/* The door is initialised by the caller and stays; so do the others'. */
void sim_coord_init(struct sim_coord *coord, struct toc_coord *inner,
                    const void *server);

struct sim_bus {
    struct toc_bus port;
    struct toc_bus *inner;
    struct sim_door door;
    const void *server;
};

void sim_bus_init(struct sim_bus *bus, struct toc_bus *inner,
                  const void *server);

struct sim_consumer {
    struct toc_bus_consumer port;
    struct toc_bus_consumer *inner;
    struct sim_door door;
    const void *server;
};

void sim_consumer_init(struct sim_consumer *consumer,
                       struct toc_bus_consumer *inner, const void *server);

#endif
