/*
 * Goal: simulated processes behave like processes: loops wake by time and by
 * bell, a killed one loses loops and memory wherever it stands, a frozen one
 * runs later, and a seed repeats all of it.
 * Method: small worlds of counting loops.
 */
#include "tests/sim/proc.h"

#include "common/base/alloc.h"
#include "tests/support/toc_check.h"

static struct sim_world world;
static struct sim_proc proc;

struct counter {
    int64_t every_ms, at_ns[64];
    int n;
    bool pauses; /* in the middle of each step */
    void *held;
};

static int64_t
count(void *self)
{
    struct counter *counter = self;

    counter->held = toc_alloc(100); /* nobody frees it */
    if (counter->pauses)
        sim_loop_pause(world.now_ns + SIM_MS);
    counter->at_ns[counter->n++] = world.now_ns;
    return toc_mono_add_ms(toc_clock_mono(&proc.clock), counter->every_ms).ns;
}

static void
begin(uint64_t seed)
{
    sim_pool_begin();
    sim_world_init(&world, seed);
    sim_proc_init(&proc, &world, "p");
    sim_proc_begin(&proc);
}

static void
end(void)
{
    if (proc.alive)
        sim_proc_kill(&proc);
    sim_world_done(&world);
    sim_fiber_trim();
}

START_TEST(loops_wake_by_time)
{
    struct counter fast = {.every_ms = 10}, slow = {.every_ms = 25};

    begin(1);
    sim_proc_loop(&proc, "fast", count, &fast, NULL);
    sim_proc_loop(&proc, "slow", count, &slow, NULL);
    sim_run_until(&world, 100 * SIM_MS);
    ck_assert_int_eq(fast.n, 11);
    ck_assert_int_eq(slow.n, 5);
    ck_assert_int_eq(slow.at_ns[4], 100 * SIM_MS);
    ck_assert_int_eq(world.now_ns, 100 * SIM_MS);
    end();
}
END_TEST

static void
ring(void *arg)
{
    toc_bell_ring(arg);
}

START_TEST(loops_wake_by_bell)
{
    struct counter loop = {.every_ms = 1000};
    struct toc_bell bell;

    begin(1);
    toc_bell_init(&bell);
    sim_proc_loop(&proc, "loop", count, &loop, &bell);
    sim_run_until(&world, 5 * SIM_MS);
    sim_proc_call(&proc, ring, &bell);
    sim_run_until(&world, 500 * SIM_MS);
    ck_assert_int_eq(loop.n, 2);
    ck_assert_int_eq(loop.at_ns[1], 5 * SIM_MS);
    sim_run_until(&world, 1200 * SIM_MS);
    ck_assert_int_eq(loop.n, 3); /* a ring counts once */
    end();
    toc_bell_done(&bell);
}
END_TEST

/* A ring while the loop stands in a step is not lost, and does not end the
 * pause of the step. */
START_TEST(a_ring_meanwhile_is_remembered)
{
    struct counter loop = {.every_ms = 1000, .pauses = true};
    struct toc_bell bell;

    begin(1);
    toc_bell_init(&bell);
    sim_proc_loop(&proc, "loop", count, &loop, &bell);
    sim_run_until(&world, SIM_MS / 2);
    sim_proc_call(&proc, ring, &bell);
    sim_run_until(&world, 10 * SIM_MS);
    ck_assert_int_eq(loop.n, 2);
    ck_assert_int_eq(loop.at_ns[0], SIM_MS);
    ck_assert_int_eq(loop.at_ns[1], 2 * SIM_MS);
    end();
    toc_bell_done(&bell);
}
END_TEST

START_TEST(a_killed_one_is_gone)
{
    struct counter loop = {.every_ms = 10, .pauses = true};

    begin(1);
    sim_proc_loop(&proc, "loop", count, &loop, NULL);
    sim_run_until(&world, SIM_MS / 2); /* in the middle of its step */
    sim_proc_kill(&proc);
    sim_run_until(&world, SIM_SEC);
    ck_assert_int_eq(loop.n, 0);
    ck_assert_uint_eq(proc.life, 1);
    sim_proc_begin(&proc);
    sim_proc_loop(&proc, "loop", count, &loop, NULL);
    sim_run_until(&world, SIM_SEC + 5 * SIM_MS);
    ck_assert_int_eq(loop.n, 1);
    end(); /* what it allocated is freed, or the leak checker says so */
}
END_TEST

START_TEST(a_frozen_one_runs_later)
{
    struct counter loop = {.every_ms = 10};

    begin(1);
    sim_proc_loop(&proc, "loop", count, &loop, NULL);
    sim_run_until(&world, 15 * SIM_MS);
    sim_proc_freeze(&proc, 500 * SIM_MS);
    sim_run_until(&world, 505 * SIM_MS);
    ck_assert_int_eq(loop.n, 3);
    ck_assert_int_eq(loop.at_ns[2], 500 * SIM_MS);
    end();
}
END_TEST

static int64_t
gamble(void *self)
{
    struct counter *counter = self;
    int64_t pause_ns = sim_between(&world, 0, 5 * SIM_MS);

    sim_loop_pause(world.now_ns + pause_ns);
    sim_trace_add(&world.trace, &(struct sim_entry){.at_ns = world.now_ns,
                                                    .who = "p",
                                                    .what = "gamble",
                                                    .task = SIM_NO_TASK,
                                                    .a = pause_ns});
    counter->n++;
    return toc_clock_mono(&proc.clock).ns;
}

static uint64_t
hash_of(uint64_t seed)
{
    struct counter a = {0}, b = {0};
    uint64_t hash;

    begin(seed);
    sim_proc_loop(&proc, "a", gamble, &a, NULL);
    sim_proc_loop(&proc, "b", gamble, &b, NULL);
    sim_run_until(&world, SIM_SEC);
    hash = world.trace.hash;
    end();
    ck_assert_int_gt(a.n + b.n, 100);
    return hash;
}

START_TEST(a_seed_repeats)
{
    ck_assert_uint_eq(hash_of(7), hash_of(7));
    ck_assert_uint_ne(hash_of(7), hash_of(8));
}
END_TEST

START_TEST(its_wall_clock_can_be_set)
{
    begin(1);
    ck_assert_int_eq(toc_clock_wall(&proc.clock).ms, SIM_BEGIN_MS);
    proc.wall_ahead_ns = -1; /* rounded down */
    ck_assert_int_eq(toc_clock_wall(&proc.clock).ms, SIM_BEGIN_MS - 1);
    proc.wall_ahead_ns = 1500 * SIM_MS;
    ck_assert_int_eq(toc_clock_wall(&proc.clock).ms, SIM_BEGIN_MS + 1500);
    ck_assert_int_eq(sim_wall_ms(&world), SIM_BEGIN_MS);
    end();
}
END_TEST

TOC_CHECK_MAIN("sim_proc", loops_wake_by_time, loops_wake_by_bell,
               a_ring_meanwhile_is_remembered, a_killed_one_is_gone,
               a_frozen_one_runs_later, a_seed_repeats,
               its_wall_clock_can_be_set)
