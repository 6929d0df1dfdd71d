/*
 * Goal: nothing gathers at a low rate; at a high one a batch has its size, and
 * no wait is longer than its limit.
 * Method: arrivals at made-up times.
 */
#include "executor/pace.h"
#include "tests/support/toc_check.h"

#define MS INT64_C(1000000)

/* A second of n arrivals, evenly spread, from start_ms on. */
static void
arrive(struct exec_pace *pace, int64_t start_ms, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        exec_pace_note(pace, 1, start_ms * MS + i * (1000 * MS / n));
}

START_TEST(gathers_by_the_rate)
{
    struct exec_pace pace = {.from_per_sec = 1000, .batch_n = 32, .ms_max = 10};

    ck_assert_int_eq(exec_pace_gather_ns(&pace), 0);
    arrive(&pace, 1000, 500);
    ck_assert_int_eq(exec_pace_gather_ns(&pace), 0);
    arrive(&pace, 2000, 2000);
    ck_assert_int_eq(exec_pace_gather_ns(&pace), 10 * MS); /* 16, at most 10 */
    arrive(&pace, 3000, 8000);
    ck_assert_int_ge(exec_pace_gather_ns(&pace), 3 * MS);
    ck_assert_int_le(exec_pace_gather_ns(&pace), 5 * MS);
    arrive(&pace, 4000, 100000);
    ck_assert_int_eq(exec_pace_gather_ns(&pace), 0); /* a batch comes at once */
    arrive(&pace, 5000, 10);
    ck_assert_int_eq(exec_pace_gather_ns(&pace), 0); /* slow again */
}
END_TEST

TOC_CHECK_MAIN("pace", gathers_by_the_rate)
