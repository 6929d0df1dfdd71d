/*
 * Goal: who is unfit leaves after a while and not before, comes back when well,
 * and stays away longer each time when that does not last.
 * Method: looks at simulated times.
 */
#include "executor/fitness.h"

#include "tests/support/toc_check.h"

#define MS INT64_C(1000000)

/* Looks every 50 ms until the answer is `until`; how long it took. */
static int64_t
look_until(struct exec_fitness *fitness, bool well, bool until, int64_t *now_ms)
{
    int64_t begun_ms = *now_ms;

    while (exec_fitness_look(fitness, well, *now_ms * MS) != until) {
        *now_ms += 50;
        ck_assert_int_lt(*now_ms - begun_ms, 100000);
    }
    return *now_ms - begun_ms;
}

START_TEST(a_moment_is_forgiven)
{
    struct exec_fitness fitness = {0};

    for (int64_t ms = 0; ms < 20000; ms += 100)
        ck_assert(exec_fitness_look(&fitness, ms % 2500 == 2400, ms * MS));
}
END_TEST

START_TEST(away_for_longer_each_time)
{
    static const int64_t expected[] = {1000,  2000,  4000, 8000,
                                       16000, 30000, 30000};
    struct exec_fitness fitness = {0};
    int64_t now_ms = 0;

    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        ck_assert_int_eq(look_until(&fitness, false, false, &now_ms), 2500);
        ck_assert_int_eq(look_until(&fitness, true, true, &now_ms),
                         expected[i]);
    }
    for (int64_t i = 0; i < 61000; i += 100)
        ck_assert(exec_fitness_look(&fitness, true, (now_ms += 100) * MS));
    (void)look_until(&fitness, false, false, &now_ms);
    ck_assert_int_eq(look_until(&fitness, true, true, &now_ms), 1000);
}
END_TEST

START_TEST(away_until_well)
{
    struct exec_fitness fitness = {0};
    int64_t now_ms = 0;

    (void)look_until(&fitness, false, false, &now_ms);
    for (int64_t i = 0; i < 50000; i += 100)
        ck_assert(!exec_fitness_look(&fitness, false, (now_ms += 100) * MS));
    ck_assert_int_eq(look_until(&fitness, true, true, &now_ms), 0);
}
END_TEST

TOC_CHECK_MAIN("exec_fitness", a_moment_is_forgiven, away_for_longer_each_time,
               away_until_well)
