/*
 * Goal: housekeeping keeps up with what ends, costs little when nothing does,
 * and does nothing by a clock that is wrong. Method: a fake store with keys to
 * free, simulated time.
 */
#include "scheduler/housekeep.h"

#include "tests/unit/scheduler/rig.h"

static struct sched_housekeep house;

static void
set_up(void)
{
    rig_set_up();
    rig_own(0, 127); /* half of all, as one of two schedulers */
    sched_housekeep_init(&house, &(struct sched_housekeep_options){
                                     .clk = &rig.sim.clock,
                                     .store = &rig.store->port,
                                     .shards = &rig.shards,
                                     .skew = &rig.skew,
                                     .retention_ms = 30 * TOC_MS_PER_DAY,
                                     .key_window_ms = TOC_MS_PER_DAY});
}

/* Each statement takes 30 ms. */
static unsigned
run(int64_t ms)
{
    int64_t end_ns = toc_clock_mono(&rig.sim.clock).ns + ms * TOC_NS_PER_MS;
    unsigned steps = 0;

    for (int64_t now_ns; (now_ns = toc_clock_mono(&rig.sim.clock).ns) < end_ns;
         steps++) {
        int64_t wake_ns = sched_housekeep_step(&house);
        if (wake_ns < now_ns + 30 * TOC_NS_PER_MS)
            wake_ns = now_ns + 30 * TOC_NS_PER_MS;
        toc_clock_sim_advance_ns(&rig.sim, wake_ns - now_ns);
    }
    return steps;
}

static size_t
keys_left(void)
{
    size_t n = 0;

    for (size_t i = 0; i < 128; i++)
        n += rig.store->keys[i];
    return n;
}

START_TEST(keys_of_five_thousand_a_second_are_freed)
{
    set_up();
    for (int round = 0; round < 8; round++) { /* two hours of a half */
        for (size_t i = 0; i < 128; i++)
            rig.store->keys[i] += 900 * 6000 / 128;
        (void)run(900 * 1000);
    }
    ck_assert_uint_le(keys_left(), 900 * 6000);
    rig_tear_down();
}
END_TEST

START_TEST(little_when_nothing_ends)
{
    set_up();
    (void)run(120 * 1000);
    ck_assert_uint_le(run(900 * 1000), 600);
    rig_tear_down();
}
END_TEST

START_TEST(a_wrong_clock_drops_nothing)
{
    unsigned drops;

    set_up();
    (void)run(120 * 1000);
    drops = rig.store->drops;
    ck_assert_uint_ge(drops, 1);
    rig.store->keys[0] = 100;
    toc_clock_sim_step_wall(&rig.sim, 40 * TOC_MS_PER_DAY);
    (void)run(2 * 3600 * 1000);
    ck_assert_uint_eq(rig.store->drops, drops);
    ck_assert_uint_eq(rig.store->keys[0], 100);
    rig_tear_down();
}
END_TEST

TOC_CHECK_MAIN("housekeep", keys_of_five_thousand_a_second_are_freed,
               little_when_nothing_ends, a_wrong_clock_drops_nothing)
