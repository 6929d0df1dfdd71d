/*
 * Goal: the three clocks stay apart, wall times are rounded down, and a wait
 * worked out from a wall time is never early.
 * Method: the simulated clock moved by hand around the edges; the real one
 * only for what holds on every machine.
 */
#include "common/clock/clock.h"
#include "common/clock/os/clock_os.h"
#include "common/clock/sim/clock_sim.h"

#include "tests/support/toc_check.h"

START_TEST(sim_clocks_go_together)
{
    struct toc_clock_sim sim;
    const struct toc_clock *clk = &sim.clock;
    int64_t mono, boot;

    toc_clock_sim_init(&sim, (struct toc_wall){1000});
    mono = toc_clock_mono(clk).ns;
    boot = toc_clock_boot(clk).ns;
    ck_assert_int_eq(toc_clock_wall(clk).ms, 1000);
    toc_clock_sim_advance_ns(&sim, 999999);
    ck_assert_int_eq(toc_clock_wall(clk).ms, 1000); /* rounded down */
    toc_clock_sim_advance_ns(&sim, 1);
    ck_assert_int_eq(toc_clock_wall(clk).ms, 1001);
    ck_assert_int_eq(toc_clock_mono(clk).ns, mono + 1000000);
    ck_assert_int_eq(toc_clock_boot(clk).ns, boot + 1000000);
}
END_TEST

START_TEST(only_the_wall_clock_jumps)
{
    struct toc_clock_sim sim;
    const struct toc_clock *clk = &sim.clock;
    int64_t mono, boot;

    toc_clock_sim_init(&sim, (struct toc_wall){1000});
    mono = toc_clock_mono(clk).ns;
    boot = toc_clock_boot(clk).ns;
    toc_clock_sim_step_wall(&sim, -5000);
    ck_assert_int_eq(toc_clock_wall(clk).ms, -4000);
    toc_clock_sim_advance_ns(&sim, 1);
    ck_assert_int_eq(toc_clock_wall(clk).ms, -4000);
    toc_clock_sim_step_wall(&sim, 8000);
    ck_assert_int_eq(toc_clock_wall(clk).ms, 4000);
    ck_assert_int_eq(toc_clock_mono(clk).ns, mono + 1);
    ck_assert_int_eq(toc_clock_boot(clk).ns, boot + 1);
}
END_TEST

START_TEST(before_1970_is_rounded_down_too)
{
    struct toc_clock_sim sim;

    toc_clock_sim_init(&sim, (struct toc_wall){-2});
    toc_clock_sim_advance_ns(&sim, 1);
    ck_assert_int_eq(toc_clock_wall(&sim.clock).ms, -2);
    toc_clock_sim_advance_ns(&sim, 999999);
    ck_assert_int_eq(toc_clock_wall(&sim.clock).ms, -1);
}
END_TEST

START_TEST(a_wait_until_is_never_early)
{
    struct toc_clock_sim sim;
    const struct toc_clock *clk = &sim.clock;

    for (int64_t into_ns = 0; into_ns < 1000000; into_ns += 99999) {
        for (int64_t ahead = 1; ahead < 4; ahead++) {
            struct toc_wall at = {1000 + ahead};
            struct toc_mono until;
            toc_clock_sim_init(&sim, (struct toc_wall){1000});
            toc_clock_sim_advance_ns(&sim, into_ns);
            until = toc_clock_mono_at(clk, at);
            toc_clock_sim_advance_ns(&sim, until.ns - toc_clock_mono(clk).ns);
            ck_assert_int_ge(toc_clock_wall(clk).ms, at.ms);
            ck_assert_int_le(toc_clock_wall(clk).ms, at.ms + 1);
        }
    }
}
END_TEST

START_TEST(mono_at_edges)
{
    struct toc_clock_sim sim;
    const struct toc_clock *clk = &sim.clock;
    int64_t now;

    toc_clock_sim_init(&sim, (struct toc_wall){1000});
    now = toc_clock_mono(clk).ns;
    ck_assert_int_eq(toc_clock_mono_at(clk, (struct toc_wall){1000}).ns, now);
    ck_assert_int_eq(toc_clock_mono_at(clk, (struct toc_wall){999}).ns, now);
    ck_assert_int_eq(toc_clock_mono_at(clk, (struct toc_wall){INT64_MIN}).ns,
                     now);
    ck_assert(toc_clock_mono_at(clk, (struct toc_wall){INT64_MAX}).ns ==
              INT64_MAX);
    toc_clock_sim_init(&sim, (struct toc_wall){-1000});
    ck_assert(toc_clock_mono_at(clk, (struct toc_wall){INT64_MAX}).ns ==
              INT64_MAX);
}
END_TEST

START_TEST(os_clock)
{
    const struct toc_clock *clk = toc_clock_os();
    int64_t before = toc_os_wall_ns() / 1000000;
    int64_t wall = toc_clock_wall(clk).ms;
    struct toc_mono until = toc_mono_add_ms(toc_clock_mono(clk), 2);
    int64_t boot = toc_clock_boot(clk).ns;

    ck_assert_ptr_eq(clk, toc_clock_os());
    ck_assert_int_ge(wall, before);
    ck_assert_int_le(wall, toc_os_wall_ns() / 1000000);
    toc_clock_os_sleep_until(until);
    ck_assert_int_ge(toc_clock_mono(clk).ns, until.ns);
    ck_assert_int_gt(toc_clock_boot(clk).ns, boot);
}
END_TEST

START_TEST(os_wait_until_the_next_ms)
{
    const struct toc_clock *clk = toc_clock_os();

    for (int i = 0; i < 20; i++) {
        struct toc_wall at = {toc_clock_wall(clk).ms + 1};
        toc_clock_os_sleep_until(toc_clock_mono_at(clk, at));
        ck_assert_int_ge(toc_clock_wall(clk).ms, at.ms);
    }
}
END_TEST

TOC_CHECK_MAIN("clock", sim_clocks_go_together, only_the_wall_clock_jumps,
               before_1970_is_rounded_down_too, a_wait_until_is_never_early,
               mono_at_edges, os_clock, os_wait_until_the_next_ms)
