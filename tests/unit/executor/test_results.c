/*
 * Goal: results are written at once at a low rate and together at a high one;
 * a failing store costs time, never a result; locks that wait are renewed
 * first; late results change nothing.
 * Method: the rig, with calls answered at once.
 */
#include "tests/unit/executor/fakes.h"

static struct rig *
rig_with_calls(size_t n, struct toc_task **rows)
{
    struct rig *rig = rig_new(rig_options());

    for (size_t i = 0; i < n; i++)
        rows[i] =
            fake_task(&rig->store, &(struct fake_task){.due_ms = rig_now(rig)});
    fake_hint(&rig->bus, 0, 0, rows, n, true);
    rig_settle(rig);
    ck_assert_uint_eq(rig->invoke.n, n);
    return rig;
}

static void
answer_all(struct rig *rig)
{
    for (size_t i = 0; i < rig->invoke.n; i++)
        if (rig->invoke.calls[i] != NULL)
            fake_answer(&rig->invoke, i,
                        (struct toc_answer){.kind = TOC_ANSWER_DONE});
}

START_TEST(written_at_once_when_idle)
{
    struct toc_task *rows[1];
    struct rig *rig = rig_with_calls(1, rows);

    answer_all(rig);
    rig_settle(rig);
    ck_assert_int_eq(rows[0]->state, TOC_STATE_SUCCESS);
    rig_free(rig);
}
END_TEST

START_TEST(gathered_at_a_high_rate)
{
    struct rig *rig = rig_new(rig_options());

    rig->invoke.answer_at_once = true;
    for (int i = 0; i < 1000; i++) { /* 1,000/s for a second */
        struct toc_task *row =
            fake_task(&rig->store, &(struct fake_task){.due_ms = rig_now(rig)});
        fake_hint(&rig->bus, 0, 0, &row, 1, true);
        rig_run(rig, 1);
    }
    rig_run(rig, 200);
    ck_assert_uint_eq(rig_count(&rig->counters.done), 1000);
    /* The first quarter of a second one by one, then about 64 together. */
    ck_assert_uint_lt(rig->store.finishes, 300);
    ck_assert_uint_ge(rig->store.finish_n_max, 50);
    rig_free(rig);
}
END_TEST

START_TEST(kept_while_the_store_fails_and_locks_renewed_first)
{
    struct toc_task *rows[3];
    struct rig *rig = rig_with_calls(3, rows);
    int64_t lock_ms = rows[0]->lock_until_ms;

    toc_clock_sim_advance_ns(&rig->sim, 9000 * TOC_NS_PER_MS);
    answer_all(rig);
    rig->store.fail_finishes = 4;
    rig->store.fail_as = TOC_UNAVAILABLE;
    rig_run(rig, 300);
    ck_assert_int_eq(rows[0]->state, TOC_STATE_EXECUTING);
    ck_assert_uint_ge(rig->store.renewals, 1);
    ck_assert_int_gt(rows[0]->lock_until_ms, lock_ms);
    rig_run(rig, 2000);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(rows[i]->state, TOC_STATE_SUCCESS);
    ck_assert_uint_eq(rig_count(&rig->counters.lost), 0);
    rig_free(rig);
}
END_TEST

START_TEST(renewal_that_fails_is_tried_again)
{
    struct toc_task *rows[1];
    struct rig *rig = rig_with_calls(1, rows);

    toc_clock_sim_advance_ns(&rig->sim, 11800 * TOC_NS_PER_MS);
    rig->store.fail_renewals = 2;
    rig->store.fail_as = TOC_UNAVAILABLE;
    answer_all(rig);
    rig_run(rig, 1000);
    ck_assert_uint_eq(rig->store.renewals, 3);
    ck_assert_int_eq(rows[0]->state, TOC_STATE_SUCCESS);
    rig_free(rig);
}
END_TEST

/* Many answered calls whose locks are short, and a store that takes its time.
 */
static struct rig *
rig_with_many(size_t n)
{
    struct exec_core_options options = rig_options();
    struct rig *rig;

    options.calls_max = 4 * n;
    options.target_calls_max = n;
    options.attempts_max = n;
    rig = rig_new(options);
    for (size_t i = 0; i < n; i++) {
        struct toc_task *row =
            fake_task(&rig->store, &(struct fake_task){.due_ms = rig_now(rig),
                                                       .timeout_ms = 100});
        fake_hint(&rig->bus, 0, 0, &row, 1, true);
    }
    while (rig->invoke.n < n)
        rig_settle(rig);
    answer_all(rig);
    return rig;
}

START_TEST(a_slow_store_loses_no_lock)
{
    struct rig *rig = rig_with_many(900);

    rig->store.finish_takes_ms = 900;
    rig_run(rig, 100);
    ck_assert_uint_eq(rig_count(&rig->counters.done), 900);
    ck_assert_uint_eq(rig_count(&rig->counters.lost), 0);
    rig_free(rig);
}
END_TEST

START_TEST(renewals_do_not_stand_before_writes)
{
    struct rig *rig = rig_with_many(900);

    rig->store.fail_finishes = 1;
    rig->store.fail_as = TOC_UNAVAILABLE;
    rig->store.renew_takes_ms = 3100;
    rig_run(rig, 200);
    ck_assert_uint_gt(rig_count(&rig->counters.done), 0);
    ck_assert_uint_le(rig->store.renewals, 8);
    rig_free(rig);
}
END_TEST

START_TEST(late_result_changes_nothing)
{
    struct toc_task *rows[2];
    struct rig *rig = rig_with_calls(2, rows);

    rows[0]->state = TOC_STATE_RETRY; /* the sweep freed it */
    rows[0]->version++;
    answer_all(rig);
    rig_run(rig, 1);
    ck_assert_int_eq(rows[0]->state, TOC_STATE_RETRY);
    ck_assert_int_eq(rows[1]->state, TOC_STATE_SUCCESS);
    ck_assert_uint_eq(rig_count(&rig->counters.lost), 1);
    rig_free(rig);
}
END_TEST

START_TEST(only_the_refused_result_is_given_up)
{
    struct toc_task *rows[5];
    struct rig *rig = rig_with_calls(5, rows);

    answer_all(rig);
    rig->store.poison = rows[2];
    rig_run(rig, 300);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(rows[i]->state,
                         i == 2 ? TOC_STATE_EXECUTING : TOC_STATE_SUCCESS);
    ck_assert_uint_eq(rig_count(&rig->counters.unwritten), 1);
    ck_assert_uint_eq(atomic_load(&rig->core.attempts), 0);
    rig_free(rig);
}
END_TEST

/* Whoever gave no answer may be at work until the call's end by its own clock:
 * until then nobody else may begin, and a cancel must hear that it is too late.
 */
START_TEST(an_unknown_outcome_keeps_its_lock)
{
    struct toc_task *rows[2];
    struct rig *rig = rig_with_calls(2, rows);
    int64_t lock_ms = rows[0]->lock_until_ms;

    fake_answer(&rig->invoke, 0,
                (struct toc_answer){.kind = TOC_ANSWER_UNKNOWN});
    fake_answer(&rig->invoke, 1,
                (struct toc_answer){.kind = TOC_ANSWER_UNREACHABLE});
    rig_run(rig, lock_ms - 501 - rig_now(rig));
    ck_assert_int_eq(rows[0]->state, TOC_STATE_EXECUTING);
    ck_assert_int_eq(rows[1]->state, TOC_STATE_RETRY); /* surely not begun */
    rig_run(rig, 100);
    ck_assert_int_eq(rows[0]->state, TOC_STATE_RETRY);
    ck_assert_int_eq(rows[0]->attempt, 1);
    ck_assert_uint_eq(rig_count(&rig->counters.lost), 0);
    rig_free(rig);
}
END_TEST

/* By the boot clock: a wall clock that is set back does not keep it for longer.
 */
START_TEST(a_set_clock_changes_no_hold)
{
    struct toc_task *rows[1];
    struct rig *rig = rig_with_calls(1, rows);
    int64_t left_ms = rows[0]->lock_until_ms - rig_now(rig) - 500;

    fake_answer(&rig->invoke, 0,
                (struct toc_answer){.kind = TOC_ANSWER_UNKNOWN});
    toc_clock_sim_step_wall(&rig->sim, -3600000);
    rig_run(rig, left_ms - 50);
    ck_assert_int_eq(rows[0]->state, TOC_STATE_EXECUTING);
    rig_run(rig, 100);
    ck_assert_int_eq(rows[0]->state, TOC_STATE_RETRY);
    rig_free(rig);
}
END_TEST

START_TEST(a_handler_that_ended_holds_nothing)
{
    struct toc_task *rows[1];
    struct rig *rig = rig_with_calls(1, rows);

    fake_answer(&rig->invoke, 0,
                (struct toc_answer){.kind = TOC_ANSWER_UNKNOWN, .ended = true});
    rig_settle(rig);
    ck_assert_int_eq(rows[0]->state, TOC_STATE_RETRY);
    rig_free(rig);
}
END_TEST

TOC_CHECK_MAIN("exec_results", a_set_clock_changes_no_hold,
               a_handler_that_ended_holds_nothing,
               an_unknown_outcome_keeps_its_lock, written_at_once_when_idle,
               gathered_at_a_high_rate,
               kept_while_the_store_fails_and_locks_renewed_first,
               renewal_that_fails_is_tried_again, a_slow_store_loses_no_lock,
               renewals_do_not_stand_before_writes, late_result_changes_nothing,
               only_the_refused_result_is_given_up)
