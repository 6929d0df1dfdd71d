/*
 * Goal: a node's own figures are what their definitions say: shares are means
 * of 10 s, capacity is measured while it can be, volumes follow a minute's
 * rate, also of shards that came just now.
 * Method: counters as they would be, a second apart.
 */
#include "scheduler/load.h"
#include "scheduler/memory.h"

#include "tests/unit/scheduler/fakes.h"

#include <math.h>

#define S INT64_C(1000000000)

static struct sched_load load;
static struct sched_load_counters counters;
static struct sched_figures figures;

static void
set_up(void)
{
    memset(&counters, 0, sizeof counters);
    counters.cores = 2;
    counters.now_ns = 1000 * S;
    sched_load_init(&load);
    sched_load_note(&load, &counters);
}

/* One second in which shards 1 and 2 get so many hints each. */
static void
second(double cpu, double busy, uint64_t sent, double memory, uint32_t one,
       uint32_t two)
{
    counters.now_ns += S;
    counters.cpu_ns += (int64_t)(cpu * 2 * (double)S);
    counters.busy_ns[0] += (int64_t)(busy * (double)S);
    counters.busy_ns[1] += (int64_t)(busy / 2 * (double)S);
    counters.sent += sent;
    counters.memory = memory;
    counters.offered[1] += one;
    counters.offered[2] += two;
    sched_load_note(&load, &counters);
    sched_load_figures(&load, &figures);
}

static bool
near(double a, double b)
{
    return fabs(a - b) <= 0.001 * (1 + fabs(b));
}

static double
volume(uint16_t shard)
{
    for (size_t i = 0; i < figures.n_shards; i++)
        if (figures.shards[i] == shard)
            return figures.volumes[i];
    return -1;
}

START_TEST(shares_are_means_of_10_seconds)
{
    set_up();
    for (int i = 0; i < 5; i++)
        second(0.9, 0.1, 100, 0, 0, 0);
    for (int i = 0; i < 5; i++)
        second(0.1, 0.3, 300, 0, 0, 0);
    ck_assert(near(figures.cpu, 0.5));
    ck_assert(near(figures.busy, 0.2)); /* the publisher's, the busier one */
    ck_assert(near(figures.rows, 200));
    ck_assert(near(figures.load, 0.5));
    for (int i = 0; i < 10; i++)
        second(0.1, 0.3, 300, 0.55, 0, 0);
    ck_assert(near(figures.cpu, 0.1)); /* what was before is forgotten */
    ck_assert(figures.memory > 0.45 && figures.memory <= 0.55);
    ck_assert(near(figures.load, figures.memory));
    sched_load_done(&load);
}
END_TEST

START_TEST(capacity_is_measured_by_busy_loops)
{
    set_up();
    for (int i = 0; i < 300; i++)
        second(0.9, 0.01, 10, 0, 0, 0); /* CPU for something else */
    ck_assert(near(figures.capacity, SCHED_CAPACITY_ASSUMED));
    for (int i = 0; i < 300; i++)
        second(0.6, 0.5, 1000, 0, 0, 0);
    ck_assert(near(figures.capacity, 2000));
    ck_assert(near(figures.rate, 0.5));
    for (int i = 0; i < 3; i++)
        second(0.6, 0.5, 2000, 0, 0, 0); /* it goes after, not along */
    ck_assert(figures.capacity > 2000 && figures.capacity < 2300);
    for (int i = 0; i < 1000; i++)
        second(0.1, 0.05, 50, 0, 0, 0);
    ck_assert(near(figures.capacity, SCHED_CAPACITY_ASSUMED));
    sched_load_done(&load);
}
END_TEST

START_TEST(volumes_follow_a_minutes_rate)
{
    set_up();
    counters.gen[1] = 1;
    for (int i = 0; i < 120; i++)
        second(0, 0, 0, 0, 50, 7);
    ck_assert_uint_eq(figures.n_shards, 1); /* the other is not ours */
    ck_assert(near(volume(1), 50 * 600));
    for (int i = 0; i < 30; i++)
        second(0, 0, 0, 0, 0, 0);
    ck_assert(volume(1) > 20 * 600 && volume(1) < 30 * 600);
    for (int i = 0; i < 40; i++)
        second(0, 0, 0, 0, 0, 0);
    ck_assert(near(volume(1), 0));
    counters.offered[1] = UINT32_MAX - 10; /* a counter that turns over */
    for (int i = 0; i < 70; i++)
        second(0, 0, 0, 0, 0, 0);
    second(0, 0, 0, 0, 60, 0);
    ck_assert(volume(1) > 500 && volume(1) < 800);
    sched_load_done(&load);
}
END_TEST

START_TEST(a_shard_that_came_just_now_is_no_more_than_it_is)
{
    set_up();
    for (int i = 0; i < 100; i++)
        second(0, 0, 0, 0, 0, 0);
    counters.gen[2] = 7;
    second(0, 0, 0, 0, 0, 300); /* the 10 s ahead come at once */
    ck_assert(near(volume(2), 30 * 600));
    for (int i = 0; i < 200; i++) {
        second(0, 0, 0, 0, 0, 30);
        ck_assert(volume(2) > 25 * 600 && volume(2) < 35 * 600);
    }
    counters.gen[2] = 0;
    second(0, 0, 0, 0, 0, 0);
    ck_assert_uint_eq(figures.n_shards, 0);
    counters.gen[2] = 9; /* back: what was before is not counted again */
    second(0, 0, 0, 0, 0, 100);
    ck_assert(near(volume(2), 10 * 600));
    sched_load_done(&load);
}
END_TEST

START_TEST(memory_counts_each_hint_once_and_says_how_full_it_is)
{
    struct toc_clock_sim clock;
    struct sched_shards shards;
    struct sched_memory memory;
    struct toc_bell bell;
    struct fake_store *store = fake_store_new();

    toc_clock_sim_init(&clock, (struct toc_wall){FAKE_START_MS});
    toc_bell_init(&bell);
    sched_shards_init(&shards, &clock.clock);
    sched_memory_init(&memory,
                      &(struct sched_memory_options){.shards = &shards,
                                                     .bell = &bell,
                                                     .entries_max = 1000,
                                                     .now_ms = FAKE_START_MS});
    sched_shards_take(&shards, 3);
    for (int i = 0; i < 400; i++) {
        const struct toc_task *task =
            fake_row(store, 3, TOC_PRIORITY_NORMAL, FAKE_START_MS + 1000 + i);
        for (int k = 0; k < 2; k++)
            (void)sched_memory_offer(&memory, task, SCHED_ROAD_FRESH);
    }
    ck_assert_uint_eq(atomic_load(&memory.offered[3]), 400);
    ck_assert_uint_eq(atomic_load(&memory.offered[4]), 0);
    ck_assert(near(sched_memory_share(&memory), 0.5)); /* of 800 */
    sched_memory_done(&memory);
    sched_shards_done(&shards);
    toc_bell_done(&bell);
    toc_free(store);
}
END_TEST

TOC_CHECK_MAIN("load", shares_are_means_of_10_seconds,
               capacity_is_measured_by_busy_loops,
               volumes_follow_a_minutes_rate,
               a_shard_that_came_just_now_is_no_more_than_it_is,
               memory_counts_each_hint_once_and_says_how_full_it_is)
