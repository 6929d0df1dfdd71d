/*
 * The servers of a simulated cluster: database, bus and coordination, all in
 * the world's memory, with the true time (the database's clock can be set).
 *
 * Threads: one.
 */
#ifndef TOC_SIM_SERVERS_H
#define TOC_SIM_SERVERS_H

#include "common/bus/mem/bus_mem.h"
#include "common/coord/mem/coord_mem.h"
#include "common/store/mem/store_mem.h"
#include "tests/sim/faults.h"

#define SIM_PARTITIONS 4
#define SIM_HELD_MAX 64
#define SIM_GROUP "sim.executor"

extern const char *const sim_topics[TOC_PRIORITIES];

/* A transaction that stands before its commit. */
struct sim_held {
    struct sim_event event;
    uint64_t number;
    bool commits;
};

struct sim_servers {
    struct sim_world *world;
    struct sim_proc database; /* only its clock and its name */
    struct toc_store_mem *store;
    struct toc_coord_mem_world *coord;
    struct toc_bus_mem_world *bus;
    struct sim_event pump;
    int64_t coord_next_ns, bus_next_ns;
    int64_t lose, twice, reorder; /* so many of the next messages */
    struct sim_held held[SIM_HELD_MAX];
    bool hold_next, hold_commits;
    int64_t hold_ns;
};

void sim_servers_init(struct sim_servers *servers, struct sim_world *world);
/* When no process uses them any more. */
void sim_servers_done(struct sim_servers *servers);

/* The next transaction that writes is kept before its commit for so long. */
void sim_servers_hold(struct sim_servers *servers, bool commits,
                      int64_t span_ns);
/* After each operation of the store: gives a held one its end. */
void sim_servers_settle(struct sim_servers *servers);
/* Commits what is held, keeps nothing more, ends lying and losing. */
void sim_servers_heal(struct sim_servers *servers);

#endif
