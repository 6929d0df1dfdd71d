/*
 * Goal: the memory backend keeps the port's contract, and fails as it is told.
 * Method: the suite by a simulated clock, one thread; then each fault.
 */
#include "common/clock/sim/clock_sim.h"
#include "common/invoke/mem/invoke_mem.h"

static struct toc_clock_sim sim;
static struct toc_invoke_mem_world *world;

static void
time_goes_on(void)
{
    (void)toc_invoke_mem_pump(world);
    toc_clock_sim_advance_ns(&sim, 10 * TOC_NS_PER_MS);
    (void)toc_invoke_mem_pump(world);
}

#define SEEDS_USUAL 20
#include "tests/contract/invoke/invoke_suite.h"

#include "tests/contract/invoke/mem_business.h"

static struct toc_invoke_mem *client;
static struct toc_invoke_mem_fate fate; /* of the next call */

static struct toc_invoke_mem_fate
take_fate(void *arg, const struct toc_call *starting)
{
    struct toc_invoke_mem_fate taken = fate;

    (void)arg;
    (void)starting;
    fate = (struct toc_invoke_mem_fate){.lose = false};
    return taken;
}

static const struct toc_clock *
backend_clock(void)
{
    return &sim.clock;
}

static void
backend_begin(void)
{
    toc_clock_sim_init(&sim, (struct toc_wall){1800000000000});
    world = toc_invoke_mem_world_new(&(struct toc_invoke_mem_options){
        .clock = &sim.clock, .fate = take_fate});
    client = toc_invoke_mem_new(world, NULL);
    fx.invoke = toc_invoke_mem_port(client);
    business_begin(world);
}

static void
backend_release(void)
{
    business_release();
}

static void
backend_stop_server(void)
{
    toc_invoke_mem_unserve(world, BUSINESS);
}

static void
backend_end(void)
{
    toc_invoke_mem_free(client);
    toc_invoke_mem_world_free(world);
}

/* ---- faults -------------------------------------------------------------- */

static void
pass(int64_t ms)
{
    (void)toc_invoke_mem_pump(world);
    toc_clock_sim_advance_ns(&sim, ms * TOC_NS_PER_MS);
    (void)toc_invoke_mem_pump(world);
}

START_TEST(a_call_can_be_refused_lost_and_late)
{
    fate.unreachable = true;
    ck_assert_int_eq(call_one()->kind, TOC_ANSWER_UNREACHABLE);
    fate.lose = true;
    start(fx.target, 1, false, 1000);
    pass(999);
    ck_assert_int_eq(atomic_load(&fx.done), 0);
    pass(1);
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_UNKNOWN);
    ck_assert_int_eq(atomic_load(&fx.served), 0);
    fate.delay_ms = 100;
    start(fx.target, 1, false, 1000);
    ck_assert_int_eq(toc_invoke_mem_pump(world),
                     toc_clock_mono(&sim.clock).ns + 100 * TOC_NS_PER_MS);
    pass(99);
    ck_assert_int_eq(atomic_load(&fx.served), 0);
    pass(1);
    ck_assert_int_eq(atomic_load(&fx.done), 1);
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_DONE);
}
END_TEST

START_TEST(an_answer_can_be_lost_late_and_broken_off)
{
    fate.lose_answer = true;
    start(fx.target, 1, false, 1000);
    pass(999);
    ck_assert_int_eq(atomic_load(&fx.served), 1);
    ck_assert_int_eq(atomic_load(&fx.done), 0);
    pass(1);
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_UNKNOWN);
    fate.break_off = true;
    start(fx.target, 1, false, 1000);
    pass(0);
    ck_assert_int_eq(atomic_load(&fx.served), 1);
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_UNKNOWN);
    fate.answer_delay_ms = 300;
    start(fx.target, 1, false, 1000);
    pass(299);
    ck_assert_int_eq(atomic_load(&fx.done), 0);
    pass(1);
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_DONE);
}
END_TEST

START_TEST(an_answer_on_its_way_does_not_save_a_cancelled_call)
{
    fate.answer_delay_ms = 300;
    start(fx.target, 1, false, 1000);
    pass(200);
    toc_invoke_cancel(fx.invoke, &fx.call);
    pass(0);
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_UNKNOWN);
    /* one that is here does */
    fate.answer_delay_ms = 300;
    start(fx.target, 1, false, 1000);
    pass(200);
    toc_clock_sim_advance_ns(&sim, 100 * TOC_NS_PER_MS);
    toc_invoke_cancel(fx.invoke, &fx.call);
    pass(0);
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_DONE);
}
END_TEST

START_TEST(a_handler_works_on_after_its_caller_is_gone)
{
    atomic_store(&fx.plan.hold, true);
    start(fx.target, 1, false, 1000);
    pass(0);
    ck_assert(!toc_invoke_mem_gone(world, held));
    toc_invoke_cancel(fx.invoke, &fx.call);
    pass(0);
    ck_assert(toc_invoke_mem_gone(world, held));
    fx.task[0].payload = (struct toc_str){NULL, 0};
    TOC_ASSERT_STR(held->fires[0].payload, "the payload");
    business_release();
}
END_TEST

START_TEST(a_killed_client_leaves_its_work_running)
{
    atomic_store(&fx.plan.hold, true);
    start(fx.target, 1, false, 1000);
    pass(0);
    toc_invoke_mem_kill(client);
    client = NULL;
    pass(2000);
    ck_assert_int_eq(atomic_load(&fx.done), 0);
    ck_assert(toc_invoke_mem_gone(world, held));
    business_release();
    fx.call.done = NULL; /* nobody was told */
}
END_TEST

START_TEST(a_client_cut_off_gets_its_answers_when_it_is_over)
{
    atomic_store(&fx.plan.hold, true);
    start(fx.target, 1, false, 1000);
    pass(0);
    toc_invoke_mem_cut(client, true);
    business_release();
    pass(500);
    ck_assert_int_eq(atomic_load(&fx.done), 0);
    toc_invoke_mem_cut(client, false);
    pass(0);
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_DONE);
    toc_invoke_mem_cut(client, true);
    ck_assert_int_eq(call_one()->kind, TOC_ANSWER_UNREACHABLE);
}
END_TEST

START_TEST(raw_methods_are_told)
{
    char target[160];

    toc_format(target, sizeof target, "%s/shop.Orders/Expire", fx.target);
    ck_assert_int_eq(call(target, 1, false)->kind, TOC_ANSWER_DONE);
    ck_assert_str_eq(method_seen, "/shop.Orders/Expire");
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {
        INVOKE_SUITE,
        a_call_can_be_refused_lost_and_late,
        an_answer_can_be_lost_late_and_broken_off,
        an_answer_on_its_way_does_not_save_a_cancelled_call,
        a_handler_works_on_after_its_caller_is_gone,
        a_killed_client_leaves_its_work_running,
        a_client_cut_off_gets_its_answers_when_it_is_over,
        raw_methods_are_told,
    };

    return invoke_suite_run("invoke contract: memory", tests,
                            sizeof tests / sizeof tests[0]);
}
