/*
 * Goal: a clock that is set while the store is asked for its own does not pass
 * for right, and one that is right is not blamed for a slow answer. Method: a
 * store that has nothing but a clock, and that sets ours, and lets time pass,
 * while it is asked.
 */
#include "common/clock/sim/clock_sim.h"
#include "executor/probe.h"
#include "tests/support/toc_check.h"

static struct toc_clock_sim sim;
static int64_t sets_before_ms, sets_after_ms, takes_ms, behind_ms;

static enum toc_status
read_now(void *self, int64_t *ret_now_ms, struct toc_error *reterr)
{
    (void)self, (void)reterr;
    toc_clock_sim_step_wall(&sim, sets_before_ms);
    toc_clock_sim_advance_ns(&sim, takes_ms * TOC_NS_PER_MS / 2);
    *ret_now_ms = toc_clock_wall(&sim.clock).ms - sets_before_ms - behind_ms;
    toc_clock_sim_advance_ns(&sim, takes_ms * TOC_NS_PER_MS / 2);
    toc_clock_sim_step_wall(&sim, sets_after_ms);
    return TOC_OK;
}

static int64_t
measure(int64_t before_ms, int64_t after_ms)
{
    static const struct toc_store_ops ops = {.name = "double", .now = read_now};
    struct toc_store store = {.ops = &ops};
    struct toc_error err = {0};
    int64_t skew_ms = -1;

    toc_clock_sim_init(&sim, (struct toc_wall){INT64_C(1800000000000)});
    sets_before_ms = before_ms;
    sets_after_ms = after_ms;
    ck_assert_int_eq(exec_skew_measure(&sim.clock, &store, &skew_ms, &err),
                     TOC_OK);
    return skew_ms;
}

START_TEST(set_while_the_store_is_asked)
{
    takes_ms = 20;
    behind_ms = 0;
    ck_assert_int_eq(measure(60000, 0), -60000);
    ck_assert_int_eq(measure(-60000, 0), 60000);
    ck_assert_int_eq(measure(0, 60000), -60000);
    ck_assert_int_eq(measure(0, -60000), 60000);
    ck_assert_int_eq(measure(-60000, 60000), 0);
}
END_TEST

START_TEST(the_answers_own_time_counts_for_us)
{
    takes_ms = 8000;
    behind_ms = 0;
    ck_assert_int_eq(measure(0, 0), 0);
    behind_ms = 3000;
    ck_assert_int_eq(measure(0, 0), 0);
    behind_ms = 5000;
    ck_assert_int_eq(measure(0, 0), -1000);
    behind_ms = -5000;
    ck_assert_int_eq(measure(0, 0), 1000);
}
END_TEST

TOC_CHECK_MAIN("exec_probe", set_while_the_store_is_asked,
               the_answers_own_time_counts_for_us)
