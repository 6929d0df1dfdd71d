/*
 * Goal: a waiting row counts as having lost its hint exactly when the rules say
 * so: the committed offset has reached its mark, a second hint raises what it
 * is judged by, a takeover judges by where the log ended, a log made anew
 * counts as passed, and a backlog never does. Method: the publisher's reports
 * are told by hand, and single rows are asked for from both sides of each edge.
 */
#include "scheduler/marks.h"
#include "tests/support/toc_check.h"

#define T INT64_C(1800000000000)
#define SLICE ((uint16_t)(3 * TOC_SLICES_PER_SHARD + TOC_PRIORITY_NORMAL))

static struct sched_marks marks;
static size_t lane;

static void
set_up(void)
{
    sched_marks_init(&marks, 4, 1000);
    lane = sched_marks_lane(&marks, SLICE);
}

START_TEST(lanes_follow_shard_and_priority)
{
    set_up();
    ck_assert_uint_eq(sched_marks_lanes(&marks), 12);
    ck_assert_uint_eq(lane, 4 + 3);
    ck_assert_int_eq(sched_marks_partition(&marks, 7), 3);
    sched_marks_done(&marks);
}
END_TEST

START_TEST(judged_by_the_mark_of_its_slot)
{
    set_up();
    /* No mark: it may still be on its way. */
    ck_assert(!sched_marks_passed(&marks, SLICE, T, 100, -1));
    sched_marks_stored(&marks, lane, T, 10, 40);
    sched_marks_reach(&marks, lane, T);
    sched_marks_stored(&marks, lane, T + 500, 10, 41);
    sched_marks_reach(&marks, lane, T + 1000);
    ck_assert(!sched_marks_passed(&marks, SLICE, T, 40, -1));
    ck_assert(sched_marks_passed(&marks, SLICE, T, 41, -1));
    ck_assert(!sched_marks_passed(&marks, SLICE, T + 1, 41, -1));
    ck_assert(sched_marks_passed(&marks, SLICE, T + 1, 42, -1));
    ck_assert(!sched_marks_passed(&marks, SLICE, T + 1001, 42, -1));
    sched_marks_done(&marks);
}
END_TEST

START_TEST(a_second_hint_raises_it)
{
    set_up();
    sched_marks_stored(&marks, lane, T, 1, 9);
    sched_marks_reach(&marks, lane, T + 10);
    ck_assert(sched_marks_passed(&marks, SLICE, T, 10, -1));
    /* Sent again: stored with a slot that the mark has passed already. */
    sched_marks_stored(&marks, lane, T, 1, 20);
    ck_assert(!sched_marks_passed(&marks, SLICE, T, 20, -1));
    ck_assert(sched_marks_passed(&marks, SLICE, T, 21, -1));
    sched_marks_done(&marks);
}
END_TEST

START_TEST(nothing_committed_is_the_start_of_the_log)
{
    set_up();
    sched_marks_stored(&marks, lane, T, 1, 0);
    sched_marks_reach(&marks, lane, T);
    /* The bus gives the log's start for a group that never committed. */
    ck_assert(!sched_marks_passed(&marks, SLICE, T, 0, 1));
    ck_assert(sched_marks_passed(&marks, SLICE, T, 1, 1));
    sched_marks_done(&marks);
}
END_TEST

START_TEST(a_log_made_anew_has_lost_everything)
{
    set_up();
    sched_marks_stored(&marks, lane, T, 1, 500);
    sched_marks_reach(&marks, lane, T);
    ck_assert(!sched_marks_passed(&marks, SLICE, T, 0, -1));
    ck_assert(!sched_marks_passed(&marks, SLICE, T, 0, 501));
    ck_assert(sched_marks_passed(&marks, SLICE, T, 0, 500)); /* need 501 */
    /* The committed offset beyond the end says the same. */
    ck_assert(sched_marks_passed(&marks, SLICE, T, 490, 480));
    /* What is stored in the new one is judged by it. */
    sched_marks_stored(&marks, lane, T + 50, 1, 3);
    sched_marks_reach(&marks, lane, T + 60);
    ck_assert(!sched_marks_passed(&marks, SLICE, T + 50, 3, 4));
    ck_assert(sched_marks_passed(&marks, SLICE, T + 50, 4, 4));
    sched_marks_done(&marks);
}
END_TEST

START_TEST(a_takeover_judges_by_the_end_of_the_log)
{
    set_up();
    sched_marks_take_over(&marks, 3, T);
    ck_assert(sched_marks_wants_end(&marks, SLICE, T));
    ck_assert(!sched_marks_wants_end(&marks, SLICE, T + 1));
    ck_assert(!sched_marks_passed(&marks, SLICE, T, 1000, -1));
    sched_marks_set_end(&marks, SLICE, 70);
    ck_assert(!sched_marks_wants_end(&marks, SLICE, T));
    ck_assert(!sched_marks_passed(&marks, SLICE, T - 5000, 69, -1));
    ck_assert(sched_marks_passed(&marks, SLICE, T - 5000, 70, -1));
    /* An empty log that nobody reads: nothing can be in it. */
    sched_marks_take_over(&marks, 3, T);
    sched_marks_set_end(&marks, SLICE, 0);
    ck_assert(sched_marks_passed(&marks, SLICE, T, 0, 0));
    /* Hinted again at the takeover: judged by that hint from then on. */
    sched_marks_reach(&marks, lane, T + 1);
    sched_marks_stored(&marks, lane, T - 5000, 1, 80);
    ck_assert(!sched_marks_passed(&marks, SLICE, T - 5000, 80, -1));
    ck_assert(sched_marks_passed(&marks, SLICE, T - 5000, 81, -1));
    sched_marks_done(&marks);
}
END_TEST

START_TEST(marks_are_bounded_and_err_on_the_late_side)
{
    set_up();
    for (int64_t i = 0; i < 10000; i++) {
        sched_marks_stored(&marks, lane, T + i, 1, i);
        sched_marks_reach(&marks, lane, T + i);
        ck_assert_uint_le(marks.lanes[lane].n, SCHED_MARKS_MAX);
    }
    for (int64_t i = 0; i < 10000; i += 97)
        ck_assert(!sched_marks_passed(&marks, SLICE, T + i, i, -1));
    ck_assert(sched_marks_passed(&marks, SLICE, T + 9999, 10000, -1));
    ck_assert(sched_marks_passed(&marks, SLICE, T, 10000, -1));
    sched_marks_done(&marks);
}
END_TEST

START_TEST(a_clock_set_back_makes_marks_again)
{
    set_up();
    sched_marks_take_over(&marks, 3, T - 7000000);
    sched_marks_set_end(&marks, SLICE, 2);
    sched_marks_stored(&marks, lane, T - 7200000, 1, 4);
    sched_marks_reach(&marks, lane, T - 7200000);
    sched_marks_stored(&marks, lane, T, 1, 5);
    sched_marks_reach(&marks, lane, T);
    sched_marks_rewind(&marks, T - 500); /* within what clocks do */
    ck_assert(!sched_marks_passed(&marks, SLICE, T, 5, -1));
    ck_assert(sched_marks_passed(&marks, SLICE, T, 6, -1));
    sched_marks_rewind(&marks, T - 7199000); /* two hours back */
    sched_marks_stored(&marks, lane, T - 7198000, 1, 8);
    sched_marks_reach(&marks, lane, T - 7198000);
    ck_assert(!sched_marks_passed(&marks, SLICE, T - 7198000, 8, -1));
    ck_assert(sched_marks_passed(&marks, SLICE, T - 7198000, 9, -1));
    ck_assert_int_eq(marks.lanes[lane].again, 0); /* none was a second hint */
    sched_marks_done(&marks);
}
END_TEST

START_TEST(a_lane_with_much_undecided_holds)
{
    int64_t committed[4] = {0};

    set_up();
    ck_assert(sched_marks_room(&marks, lane, false));
    for (int64_t i = 0; i < 10; i++) {
        sched_marks_sent(&marks, lane, 100);
        sched_marks_stored(&marks, lane, T, 100, i);
    }
    ck_assert(!sched_marks_room(&marks, lane, false));
    ck_assert(sched_marks_wants_committed(&marks, TOC_PRIORITY_NORMAL));
    ck_assert(!sched_marks_wants_committed(&marks, TOC_PRIORITY_CORE));
    committed[3] = 10; /* all decided */
    sched_marks_set_committed(&marks, TOC_PRIORITY_NORMAL, committed, 1);
    ck_assert(sched_marks_room(&marks, lane, false));
    ck_assert(!sched_marks_wants_committed(&marks, TOC_PRIORITY_NORMAL));
    /* What the bus refused is not out. */
    sched_marks_sent(&marks, lane, 1000);
    ck_assert(!sched_marks_room(&marks, lane, false));
    sched_marks_refused(&marks, lane, 1000);
    ck_assert(sched_marks_room(&marks, lane, false));
    sched_marks_done(&marks);
}
END_TEST

/* n messages of 100 hints each, of which so many are decided. */
static void
send_and_decide(int64_t n, int64_t decided, int64_t now_ns)
{
    static int64_t at;
    int64_t committed[4] = {0};

    if (now_ns == 1)
        at = 0;
    for (int64_t i = 0; i < n; i++) {
        sched_marks_sent(&marks, lane, 100);
        sched_marks_stored(&marks, lane, T, 100, at++);
    }
    committed[3] = decided;
    sched_marks_set_committed(&marks, TOC_PRIORITY_NORMAL, committed, now_ns);
}

START_TEST(a_backlog_may_be_out_for_two_seconds)
{
    int64_t s = INT64_C(1000000000);

    sched_marks_init(&marks, 4, 100000);
    lane = sched_marks_lane(&marks, SLICE);
    marks.lanes[lane].per_message = 100;
    send_and_decide(6, 0, 1); /* 600 out; not measured yet */
    ck_assert(!sched_marks_room(&marks, lane, true));
    ck_assert(sched_marks_room(&marks, lane, false));
    send_and_decide(20, 10, s); /* 1,000/s; 1,600 out */
    ck_assert(sched_marks_room(&marks, lane, true));
    send_and_decide(5, 10, s + s / 10); /* a short look says nothing; 2,100 */
    ck_assert(!sched_marks_room(&marks, lane, true));
    send_and_decide(0, 20, 2 * s);
    ck_assert(sched_marks_room(&marks, lane, true)); /* 1,100 */
    for (int64_t i = 3; i < 10; i++)                 /* executors stand still */
        send_and_decide(0, 20, i * s);
    ck_assert(!sched_marks_room(&marks, lane, true));
    ck_assert(sched_marks_room(&marks, lane, false));
    sched_marks_done(&marks);
}
END_TEST

TOC_CHECK_MAIN("marks", lanes_follow_shard_and_priority,
               judged_by_the_mark_of_its_slot, a_second_hint_raises_it,
               nothing_committed_is_the_start_of_the_log,
               a_log_made_anew_has_lost_everything,
               a_takeover_judges_by_the_end_of_the_log,
               marks_are_bounded_and_err_on_the_late_side,
               a_clock_set_back_makes_marks_again,
               a_lane_with_much_undecided_holds,
               a_backlog_may_be_out_for_two_seconds)
