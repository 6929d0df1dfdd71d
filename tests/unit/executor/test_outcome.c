/*
 * Goal: each answer becomes the write-back that the table in outcome.h says.
 * Method: the whole table, at least once and at most once, with and without
 * attempts left; times the business names, sane and absurd.
 */
#include "executor/outcome.h"

#include "tests/support/toc_check.h"

#define NOW INT64_C(1800000000000)

static struct toc_task task;
static struct toc_spec spec;

static struct toc_finish
outcome(struct toc_answer answer, uint16_t failed_before, bool once)
{
    struct toc_fire fire = {
        .task = &task, .spec = &spec, .attempt = 1, .answer = answer};
    struct toc_finish finish = {0};

    task.attempt = failed_before;
    task.flags = once ? TOC_FLAG_AT_MOST_ONCE : 0;
    spec.retry = toc_retry_default;
    exec_outcome_fill(&fire, NOW, 0, &finish);
    ck_assert_int_eq(finish.ended_ms, NOW);
    return finish;
}

static const struct {
    enum toc_answer_kind answer;
    enum toc_finish_kind kind, last, once; /* last: no attempt is left */
    enum toc_result result;
    bool counts; /* uses an attempt */
} rows[] = {
    {TOC_ANSWER_DONE, TOC_FINISH_DONE, TOC_FINISH_DONE, TOC_FINISH_DONE,
     TOC_RESULT_DONE, false},
    {TOC_ANSWER_FAILED, TOC_FINISH_RETRY, TOC_FINISH_DEAD, TOC_FINISH_RETRY,
     TOC_RESULT_FAILED, true},
    {TOC_ANSWER_REJECTED, TOC_FINISH_DEAD, TOC_FINISH_DEAD, TOC_FINISH_DEAD,
     TOC_RESULT_REJECTED, true},
    {TOC_ANSWER_SNOOZE, TOC_FINISH_SNOOZE, TOC_FINISH_SNOOZE, TOC_FINISH_SNOOZE,
     TOC_RESULT_SNOOZED, false},
    {TOC_ANSWER_STOP, TOC_FINISH_SKIPPED, TOC_FINISH_SKIPPED,
     TOC_FINISH_SKIPPED, TOC_RESULT_STOPPED, false},
    {TOC_ANSWER_UNREACHABLE, TOC_FINISH_RETRY, TOC_FINISH_DEAD,
     TOC_FINISH_RETRY, TOC_RESULT_UNREACHABLE, true},
    {TOC_ANSWER_UNKNOWN, TOC_FINISH_RETRY, TOC_FINISH_DEAD, TOC_FINISH_DEAD,
     TOC_RESULT_TIMEOUT, true},
    {TOC_ANSWER_REFUSED, TOC_FINISH_RETRY, TOC_FINISH_DEAD, TOC_FINISH_RETRY,
     TOC_RESULT_REFUSED, true},
    {TOC_ANSWER_BAD_TARGET, TOC_FINISH_DEAD, TOC_FINISH_DEAD, TOC_FINISH_DEAD,
     TOC_RESULT_BAD_TARGET, true},
};
#define ROWS (sizeof rows / sizeof rows[0])

START_TEST(table)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct toc_answer answer = {.kind = rows[i].answer};
        struct toc_finish f = outcome(answer, 0, false);

        ck_assert_int_eq(f.kind, rows[i].kind);
        ck_assert_int_eq(f.outcome, rows[i].result);
        ck_assert_uint_eq(f.attempt, rows[i].counts ? 1 : 0);
        if (f.kind == TOC_FINISH_RETRY)
            ck_assert_int_eq(f.due_ms, NOW + 60000);
        f = outcome(answer, 10, false);
        ck_assert_int_eq(f.kind, rows[i].last);
        f = outcome(answer, 0, true);
        ck_assert_int_eq(f.kind, rows[i].once);
        ck_assert(f.kind != TOC_FINISH_DEAD || f.reason.len > 0);
    }
}
END_TEST

START_TEST(times_named_by_the_business)
{
    struct toc_answer answer = {.kind = TOC_ANSWER_SNOOZE};

    ck_assert_int_eq(outcome(answer, 0, false).due_ms, NOW + 1000);
    answer.retry_at_ms = NOW - 5000;
    ck_assert_int_eq(outcome(answer, 0, false).due_ms, NOW + 1000);
    answer.retry_at_ms = NOW + 123456;
    ck_assert_int_eq(outcome(answer, 0, false).due_ms, NOW + 123456);
    answer.retry_at_ms = INT64_MAX;
    ck_assert_int_eq(outcome(answer, 0, false).due_ms, TOC_DUE_MS_MAX);
    answer.kind = TOC_ANSWER_FAILED;
    answer.retry_at_ms = NOW + 777;
    ck_assert_int_eq(outcome(answer, 3, false).due_ms, NOW + 777);
    ck_assert_uint_eq(outcome(answer, 3, false).attempt, 4);
    ck_assert_int_eq(outcome(answer, 10, false).kind, TOC_FINISH_DEAD);
}
END_TEST

START_TEST(retries_end)
{
    struct toc_answer answer = {.kind = TOC_ANSWER_FAILED};
    uint16_t failed = 0;

    while (outcome(answer, failed, false).kind == TOC_FINISH_RETRY)
        failed = outcome(answer, failed, false).attempt;
    ck_assert_uint_eq(failed, 10);
    ck_assert_uint_eq(outcome(answer, failed, false).attempt, 11);
}
END_TEST

TOC_CHECK_MAIN("exec_outcome", table, times_named_by_the_business, retries_end)
