/*
 * The simulated world: one true time, a queue of events in its order, seeded
 * chance, and a trace of what happened. Everything else (nodes, servers,
 * clients, faults, checks) is an event here, so that a seed tells all.
 *
 * Time: ns since the world began. Events of one moment happen in the order in
 * which they were placed.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_WORLD_H
#define TOC_SIM_WORLD_H

#include "common/base/heap.h"
#include "common/base/rng.h"
#include "tests/sim/pool.h"
#include "tests/sim/trace.h"

#include <stdbool.h>
#include <stdint.h>

#define SIM_MS INT64_C(1000000)
#define SIM_SEC INT64_C(1000000000)
/* 2030-01-07, a Monday, 00:00 UTC: the world begins in the middle of a year,
 * at a day's edge, so that days change early. */
#define SIM_BEGIN_MS INT64_C(1893974400000)

struct sim_event;
typedef void sim_event_fn(struct sim_event *event);

/* Embedded in what it is about. */
struct sim_event {
    struct toc_heap_node node;
    int64_t at_ns;
    uint64_t order;
    sim_event_fn *fn;
    void *arg; /* fn's, if it wants one */
};

struct sim_world {
    uint64_t seed;
    int64_t now_ns;
    struct toc_rng chance; /* delays, faults: whatever the world decides */
    struct toc_rng ids;    /* what processes ask the kernel for */
    struct toc_heap events;
    uint64_t placed, happened;
    struct sim_trace trace;
    struct toc_link procs;
    struct sim_pool pool; /* what no process holds: servers, clients */
    bool over;            /* a check failed: nothing more happens */
};

void sim_world_init(struct sim_world *world, uint64_t seed);
/* Processes and servers must have been dropped before. */
void sim_world_done(struct sim_world *world);

void sim_event_init(struct sim_event *event, sim_event_fn *fn);
/* Places it (or moves it); a time that has passed means now. */
void sim_place(struct sim_world *world, struct sim_event *event, int64_t at_ns);
void sim_remove(struct sim_world *world, struct sim_event *event);
bool sim_placed(const struct sim_event *event);
/* Lets events happen until the time, or until the world is over. */
void sim_run_until(struct sim_world *world, int64_t until_ns);

/* The true wall clock. */
int64_t sim_wall_ms(const struct sim_world *world);

/* ---- chance ---------------------------------------------------------- */

/* Uniform in [least, most]. */
int64_t sim_between(struct sim_world *world, int64_t least, int64_t most);
/* True once in n. */
bool sim_one_in(struct sim_world *world, uint64_t n);

#endif
