/*
 * Goal: a process's clock can be off, be set, and run fast or slow; the steady
 * clocks never go back.
 * Method: on a simulated clock, numbers worked out by hand.
 */
#include "common/clock/fault/clock_fault.h"
#include "common/clock/sim/clock_sim.h"
#include "tests/support/toc_check.h"

static struct toc_clock_sim sim;
static struct toc_clock_fault fault;

static void
setup(void)
{
    toc_clock_sim_init(&sim, (struct toc_wall){1800000000000});
    toc_clock_fault_init(&fault, &sim.clock);
}

static void
teardown(void)
{
    toc_clock_fault_done(&fault);
}

static void
pass(int64_t ms)
{
    toc_clock_sim_advance_ns(&sim, ms * TOC_NS_PER_MS);
}

START_TEST(is_the_base_until_told_otherwise)
{
    pass(1234);
    ck_assert_int_eq(toc_clock_wall(&fault.clock).ms, 1800000001234);
    ck_assert_int_eq(toc_clock_mono(&fault.clock).ns,
                     toc_clock_mono(&sim.clock).ns);
    ck_assert_int_eq(toc_clock_boot(&fault.clock).ns,
                     toc_clock_boot(&sim.clock).ns);
}
END_TEST

START_TEST(a_step_moves_the_wall_clock_alone)
{
    toc_clock_fault_step_wall(&fault, -5000);
    ck_assert_int_eq(toc_clock_wall(&fault.clock).ms, 1799999995000);
    ck_assert_int_eq(toc_clock_mono(&fault.clock).ns,
                     toc_clock_mono(&sim.clock).ns);
    toc_clock_fault_step_wall(&fault, 5001);
    ck_assert_int_eq(toc_clock_wall(&fault.clock).ms, 1800000000001);
}
END_TEST

START_TEST(a_drift_moves_all_three)
{
    toc_clock_fault_drift(&fault, 100);
    pass(100000);
    ck_assert_int_eq(toc_clock_wall(&fault.clock).ms, 1800000100010);
    ck_assert_int_eq(toc_clock_mono(&fault.clock).ns -
                         toc_clock_mono(&sim.clock).ns,
                     10 * TOC_NS_PER_MS);
    ck_assert_int_eq(toc_clock_boot(&fault.clock).ns -
                         toc_clock_boot(&sim.clock).ns,
                     10 * TOC_NS_PER_MS);
    /* what it has gained stays */
    toc_clock_fault_drift(&fault, 0);
    pass(100000);
    ck_assert_int_eq(toc_clock_wall(&fault.clock).ms, 1800000200010);
}
END_TEST

START_TEST(steady_clocks_never_go_back)
{
    int64_t last_ns = toc_clock_mono(&fault.clock).ns;
    const int64_t ppm[] = {500000, -500000, 0, -100, 100};

    for (int i = 0; i < 1000; i++) {
        toc_clock_fault_drift(&fault, ppm[i % 5]);
        toc_clock_sim_advance_ns(&sim, i * 7);
        ck_assert_int_ge(toc_clock_mono(&fault.clock).ns, last_ns);
        last_ns = toc_clock_mono(&fault.clock).ns;
    }
    /* nor overflow in years */
    toc_clock_fault_drift(&fault, 500000);
    pass(INT64_C(3600000) * 24 * 365 * 50);
    ck_assert_int_gt(toc_clock_mono(&fault.clock).ns, last_ns);
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {
        is_the_base_until_told_otherwise,
        a_step_moves_the_wall_clock_alone,
        a_drift_moves_all_three,
        steady_clocks_never_go_back,
    };

    return toc_check_run_with("clock faults", tests,
                              sizeof tests / sizeof tests[0], setup, teardown);
}
