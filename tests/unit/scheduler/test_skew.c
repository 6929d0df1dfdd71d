/*
 * Goal: a clock that is off is known to be off at once, also when it is set
 * while the database is asked, and looked at again soon; one that is put right
 * is trusted again at once. Method: a store that has nothing but a clock, and
 * that sets ours, and lets time pass, while it is asked.
 */
#include "common/clock/sim/clock_sim.h"
#include "scheduler/skew.h"
#include "tests/support/toc_check.h"

#define START_MS INT64_C(1800000000000)

static struct toc_clock_sim sim;
static struct double_store {
    struct toc_store port;
    int64_t behind_ms; /* of the time that really is */
    int64_t takes_ms;  /* half before it looks at its clock, half after */
    int64_t sets_before_ms, sets_after_ms; /* our clock, by so much */
    int64_t set_ms;                        /* our clock was, in all */
    bool fails;
} store;
static struct sched_skew skew;

static void
set_clock(int64_t by_ms)
{
    toc_clock_sim_step_wall(&sim, by_ms);
    store.set_ms += by_ms;
}

static enum toc_status
read_now(void *self, int64_t *ret_now_ms, struct toc_error *reterr)
{
    (void)self;
    if (store.fails)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "double", 0, "away");
    set_clock(store.sets_before_ms);
    toc_clock_sim_advance_ns(&sim, store.takes_ms * TOC_NS_PER_MS / 2);
    *ret_now_ms =
        toc_clock_wall(&sim.clock).ms - store.set_ms - store.behind_ms;
    toc_clock_sim_advance_ns(&sim, store.takes_ms * TOC_NS_PER_MS / 2);
    set_clock(store.sets_after_ms);
    return TOC_OK;
}

static void
set_up(void)
{
    static const struct toc_store_ops ops = {.name = "double", .now = read_now};

    toc_clock_sim_init(&sim, (struct toc_wall){START_MS});
    store = (struct double_store){.port = {.ops = &ops, .self = &store}};
    skew = (struct sched_skew){.clk = &sim.clock, .store = &store.port};
}

/* Returns in how many milliseconds it wants to look again. */
static int64_t
measure(void)
{
    int64_t wake_ns = sched_skew_step(&skew);

    return (wake_ns - toc_clock_mono(&sim.clock).ns) / TOC_NS_PER_MS;
}

START_TEST(right_until_set)
{
    set_up();
    ck_assert(!sched_skew_right(&skew)); /* not measured */
    store.takes_ms = 3000;
    ck_assert_int_eq(measure(), 10000);
    ck_assert(sched_skew_right(&skew) && atomic_load(&skew.ok));
    store.takes_ms = 0;
    set_clock(5000);
    ck_assert_int_eq(sched_skew_off_ms(&skew), 5000);
    ck_assert_int_eq(measure(), 1000);
    ck_assert(!atomic_load(&skew.ok));
    set_clock(-5000);
    ck_assert(sched_skew_right(&skew));
    ck_assert_int_eq(measure(), 10000);
}
END_TEST

START_TEST(set_while_the_database_is_asked)
{
    static const int64_t sets[][2] = {
        {60000, 0}, {-60000, 0}, {0, 60000}, {0, -60000}, {30000, 30000}};

    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        set_up();
        store.takes_ms = 20;
        store.sets_before_ms = sets[i][0];
        store.sets_after_ms = sets[i][1];
        ck_assert_int_eq(measure(), 1000);
        ck_assert_int_eq(sched_skew_off_ms(&skew), sets[i][0] + sets[i][1]);
        ck_assert(!atomic_load(&skew.ok));
        store.sets_before_ms = -store.set_ms; /* and back, in another call */
        store.sets_after_ms = 0;
        ck_assert_int_eq(measure(), 10000);
        ck_assert(sched_skew_right(&skew) && atomic_load(&skew.ok));
    }
}
END_TEST

/* The database's clock is mended: it is not long until we see it. */
START_TEST(off_it_is_measured_each_second)
{
    set_up();
    store.behind_ms = 4000;
    ck_assert_int_eq(measure(), 1000);
    ck_assert_int_eq(sched_skew_off_ms(&skew), 4000);
    store.fails = true;
    ck_assert_int_eq(measure(), 1000);
    ck_assert_int_eq(sched_skew_off_ms(&skew), 4000); /* as far as we know */
    store.fails = false;
    store.behind_ms = 0;
    ck_assert_int_eq(measure(), 10000);
    ck_assert_int_eq(sched_skew_off_ms(&skew), 0);
}
END_TEST

TOC_CHECK_MAIN("skew", right_until_set, set_while_the_database_is_asked,
               off_it_is_measured_each_second)
