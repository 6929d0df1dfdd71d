/*
 * Goal: of all marks only those count that are of a partition which is ours,
 * within what was handed out, and upwards.
 * Method: sequences by hand; then random ones against a plain model.
 */
#include "common/base/rng.h"
#include "common/bus/assigned.h"
#include "tests/support/toc_check.h"

static struct toc_bus_assigned assigned;

static bool
take(int64_t offset)
{
    return toc_bus_assigned_take(&assigned, 0, 5, offset) != TOC_BUS_NOT_OURS;
}

static bool
mark(int64_t next)
{
    return toc_bus_assigned_mark(&assigned, 0, 5, next);
}

START_TEST(what_is_not_ours_counts_for_nothing)
{
    ck_assert(!take(0));
    ck_assert(!mark(1));
    toc_bus_assigned_add(&assigned, 0, 4);
    toc_bus_assigned_add(&assigned, 1, 5);
    ck_assert(!take(0));
    ck_assert(!mark(1));
    toc_bus_assigned_add(&assigned, 0, 5);
    ck_assert(!mark(1)); /* nothing was handed out */
    ck_assert(take(0));
    ck_assert(mark(1));
    toc_bus_assigned_remove(&assigned, 0, 5);
    ck_assert(!mark(2));
    toc_bus_assigned_remove(&assigned, 0, 5); /* twice is harmless */
    ck_assert_uint_eq(assigned.n, 2);
    toc_bus_assigned_done(&assigned);
}
END_TEST

START_TEST(marks_stay_within_what_was_handed_out)
{
    toc_bus_assigned_add(&assigned, 0, 5);
    ck_assert(take(100));
    ck_assert(take(101));
    ck_assert(take(105));  /* gaps are usual */
    ck_assert(!mark(100)); /* that says nothing */
    ck_assert(!mark(107));
    ck_assert(!mark(INT64_MAX));
    ck_assert(!mark(-1));
    ck_assert(mark(102));
    ck_assert(!mark(102));
    ck_assert(!mark(101));
    ck_assert(mark(106));
    toc_bus_assigned_done(&assigned);
}
END_TEST

START_TEST(a_new_assignment_forgets_the_old_one)
{
    toc_bus_assigned_add(&assigned, 0, 5);
    ck_assert(take(10));
    ck_assert(take(11));
    ck_assert(mark(12));
    toc_bus_assigned_add(&assigned, 0, 5);
    ck_assert_uint_eq(assigned.n, 1);
    ck_assert(!mark(12)); /* a late mark of before */
    ck_assert(take(11));
    ck_assert(!mark(11));
    ck_assert(mark(12));
    toc_bus_assigned_done(&assigned);
}
END_TEST

START_TEST(a_log_that_begins_anew_may_be_marked)
{
    toc_bus_assigned_add(&assigned, 0, 5);
    ck_assert(take(1000));
    ck_assert(mark(1001));
    /* the topic was made again */
    ck_assert_int_eq(toc_bus_assigned_take(&assigned, 0, 5, 0), TOC_BUS_ANEW);
    ck_assert_int_eq(toc_bus_assigned_take(&assigned, 0, 5, 1), TOC_BUS_OURS);
    ck_assert(!mark(1001));
    ck_assert(mark(1));
    toc_bus_assigned_done(&assigned);
}
END_TEST

START_TEST(what_comes_again_moves_nothing_back)
{
    toc_bus_assigned_add(&assigned, 0, 5);
    for (int64_t offset = 10; offset < 20; offset++)
        ck_assert(take(offset));
    ck_assert(mark(15));
    ck_assert_int_eq(toc_bus_assigned_take(&assigned, 0, 5, 12), TOC_BUS_OURS);
    ck_assert(!mark(13));
    ck_assert(mark(20));
    ck_assert(!mark(21));
    toc_bus_assigned_done(&assigned);
}
END_TEST

enum { TOPICS = 3, PARTS = 7 };

START_TEST(finds_what_is_there_among_many)
{
    bool there[TOPICS][PARTS] = {{false}};
    struct toc_rng rng;
    toc_rng_seed(&rng, 4711);
    for (int i = 0; i < 20000; i++) {
        int16_t t = (int16_t)toc_rng_below(&rng, TOPICS);
        int32_t p = (int32_t)toc_rng_below(&rng, PARTS);
        if (toc_rng_below(&rng, 2) == 0)
            toc_bus_assigned_add(&assigned, t, p);
        else
            toc_bus_assigned_remove(&assigned, t, p);
        there[t][p] = toc_bus_assigned_find(&assigned, t, p) != NULL;
        size_t n = 0;
        for (int16_t x = 0; x < TOPICS; x++)
            for (int32_t y = 0; y < PARTS; y++) {
                const struct toc_bus_part *part =
                    toc_bus_assigned_find(&assigned, x, y);
                ck_assert_int_eq(part != NULL, there[x][y]);
                ck_assert(part == NULL ||
                          (part->topic == x && part->partition == y));
                n += part != NULL;
            }
        ck_assert_uint_eq(assigned.n, n);
    }
    toc_bus_assigned_done(&assigned);
}
END_TEST

TOC_CHECK_MAIN("bus assigned", what_is_not_ours_counts_for_nothing,
               marks_stay_within_what_was_handed_out,
               a_new_assignment_forgets_the_old_one,
               a_log_that_begins_anew_may_be_marked,
               what_comes_again_moves_nothing_back,
               finds_what_is_there_among_many)
