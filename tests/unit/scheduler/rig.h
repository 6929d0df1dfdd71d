/*
 * The firing side of a scheduler on fake ports and a simulated clock: shards,
 * memory, marks, publisher, loader, sweep. rig_run makes all of them step, as
 * their threads would, through milliseconds.
 */
#ifndef TOC_TESTS_UNIT_SCHEDULER_RIG_H
#define TOC_TESTS_UNIT_SCHEDULER_RIG_H

#include "scheduler/loader.h"
#include "scheduler/publisher.h"
#include "scheduler/sweep.h"

#include "tests/unit/scheduler/fakes.h"

static struct rig {
    struct toc_clock_sim sim;
    struct toc_bell bell;
    struct fake_store *store;
    struct fake_bus *bus;
    struct fake_coord coord;
    struct sched_shards shards;
    struct sched_memory memory;
    struct sched_marks marks;
    struct sched_publisher publisher;
    struct sched_loader loader;
    struct sched_sweep sweep;
    struct sched_skew skew;
    int64_t publisher_ns, loader_ns, sweep_ns;
    bool with_loader, with_sweep;
} rig;

static inline int64_t
rig_now(void)
{
    return toc_clock_wall(&rig.sim.clock).ms;
}

/* The clock is compared with the store's, which is off_ms behind. */
static inline void
rig_compare_clocks(int64_t off_ms)
{
    rig.store->now_ms = rig_now() - off_ms;
    (void)sched_skew_step(&rig.skew);
}

static inline void
rig_set_up_with(size_t entries_max, int64_t lag_max)
{
    const struct toc_clock *clk = &rig.sim.clock;

    memset(&rig, 0, sizeof rig);
    toc_clock_sim_init(&rig.sim, (struct toc_wall){FAKE_START_MS});
    toc_bell_init(&rig.bell);
    rig.store = fake_store_new();
    rig.bus = fake_bus_new(sched_publisher_reported);
    fake_coord_init(&rig.coord);
    sched_shards_init(&rig.shards, clk);
    sched_shards_set_coord(&rig.shards, &rig.coord.port);
    sched_memory_init(&rig.memory,
                      &(struct sched_memory_options){.shards = &rig.shards,
                                                     .bell = &rig.bell,
                                                     .entries_max = entries_max,
                                                     .now_ms = FAKE_START_MS});
    sched_marks_init(&rig.marks, FAKE_PARTITIONS, lag_max);
    sched_publisher_init(
        &rig.publisher, &(struct sched_publisher_options){.clk = clk,
                                                          .bus = &rig.bus->port,
                                                          .shards = &rig.shards,
                                                          .memory = &rig.memory,
                                                          .marks = &rig.marks,
                                                          .topics = fake_topics,
                                                          .node_id = 7,
                                                          .lead_ms = 30});
    sched_loader_init(&rig.loader,
                      &(struct sched_loader_options){.clk = clk,
                                                     .store = &rig.store->port,
                                                     .shards = &rig.shards,
                                                     .memory = &rig.memory});
    sched_sweep_init(&rig.sweep,
                     &(struct sched_sweep_options){.clk = clk,
                                                   .store = &rig.store->port,
                                                   .bus = &rig.bus->port,
                                                   .shards = &rig.shards,
                                                   .memory = &rig.memory,
                                                   .marks = &rig.marks,
                                                   .skew = &rig.skew,
                                                   .loader = &rig.loader,
                                                   .publisher = &rig.publisher,
                                                   .topics = fake_topics,
                                                   .group = "group",
                                                   .period_ms = 5000});
    rig.skew.clk = clk;
    rig.skew.store = &rig.store->port;
    rig_compare_clocks(0);
    rig.with_loader = rig.with_sweep = true;
}

static inline void
rig_set_up(void)
{
    rig_set_up_with(10000, 1000000);
}

/* As if a backlog had gone fast until now: much of it may be out. */
static inline void
rig_executors_are_fast(void)
{
    for (size_t i = 0; i < sched_marks_lanes(&rig.marks); i++)
        rig.marks.lanes[i].per_second = 1e12;
}

static inline void
rig_own(uint16_t from, uint16_t to)
{
    for (uint16_t i = from; i <= to; i++)
        sched_shards_take(&rig.shards, i);
    rig.loader_ns = rig.sweep_ns = 0; /* their bells ring */
}

static inline void
rig_step(void)
{
    int64_t now_ns = toc_clock_mono(&rig.sim.clock).ns;

    for (int i = 0; i < 100 && rig.with_loader && now_ns >= rig.loader_ns; i++)
        rig.loader_ns = sched_loader_step(&rig.loader);
    for (int i = 0; i < 2000 && rig.with_sweep && now_ns >= rig.sweep_ns; i++)
        rig.sweep_ns = sched_sweep_step(&rig.sweep);
    if (toc_bell_wait(&rig.bell, 0) || now_ns >= rig.publisher_ns)
        rig.publisher_ns = sched_publisher_step(&rig.publisher);
}

static inline void
rig_run(int64_t ms)
{
    for (int64_t i = 0; i < ms; i++) {
        rig_step();
        toc_clock_sim_advance_ns(&rig.sim, TOC_NS_PER_MS);
    }
    rig_step();
}

static inline void
rig_tear_down(void)
{
    rig.bus->held = false;
    (void)toc_bus_poll(&rig.bus->port, 0);
    sched_sweep_done(&rig.sweep);
    sched_publisher_done(&rig.publisher);
    sched_marks_done(&rig.marks);
    sched_memory_done(&rig.memory);
    sched_shards_done(&rig.shards);
    fake_bus_free(rig.bus);
    toc_free(rig.store);
    toc_bell_done(&rig.bell);
}

#endif
