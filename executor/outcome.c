#include "executor/outcome.h"

#include "common/model/retry.h"

#include <string.h>

static enum toc_result
result_of(enum toc_answer_kind kind)
{
    switch (kind) {
    case TOC_ANSWER_DONE:
        return TOC_RESULT_DONE;
    case TOC_ANSWER_FAILED:
        return TOC_RESULT_FAILED;
    case TOC_ANSWER_REJECTED:
        return TOC_RESULT_REJECTED;
    case TOC_ANSWER_SNOOZE:
        return TOC_RESULT_SNOOZED;
    case TOC_ANSWER_STOP:
        return TOC_RESULT_STOPPED;
    case TOC_ANSWER_UNREACHABLE:
        return TOC_RESULT_UNREACHABLE;
    case TOC_ANSWER_REFUSED:
        return TOC_RESULT_REFUSED;
    case TOC_ANSWER_BAD_TARGET:
        return TOC_RESULT_BAD_TARGET;
    case TOC_ANSWER_UNKNOWN:
        break;
    }
    return TOC_RESULT_TIMEOUT;
}

static bool
at_most_once(const struct toc_fire *fire)
{
    return fire->spec->at_most_once ||
           (fire->task->flags & TOC_FLAG_AT_MOST_ONCE) != 0;
}

static void
fail_for_good(struct toc_finish *finish, struct toc_str reason)
{
    finish->kind = TOC_FINISH_DEAD;
    finish->reason = reason;
}

/* A time the business named, within reason. */
static int64_t
named_time(int64_t at_ms, int64_t earliest_ms)
{
    if (at_ms < earliest_ms)
        return earliest_ms;
    return at_ms > TOC_DUE_MS_MAX ? TOC_DUE_MS_MAX : at_ms;
}

static void
fail_for_now(const struct toc_fire *fire, int64_t now_ms, uint64_t random,
             struct toc_finish *finish)
{
    int64_t due_ms;

    if (!toc_retry_next(&fire->spec->retry, finish->attempt, now_ms, random,
                        &due_ms)) {
        fail_for_good(finish, TOC_STR("out of attempts"));
        return;
    }
    finish->kind = TOC_FINISH_RETRY;
    finish->due_ms = fire->answer.retry_at_ms == 0
                         ? due_ms
                         : named_time(fire->answer.retry_at_ms, now_ms);
}

static void
decide(const struct toc_fire *fire, int64_t now_ms, uint64_t random,
       struct toc_finish *finish)
{
    switch (fire->answer.kind) {
    case TOC_ANSWER_DONE:
        finish->kind = TOC_FINISH_DONE;
        return;
    case TOC_ANSWER_STOP:
        finish->kind = TOC_FINISH_SKIPPED;
        return;
    case TOC_ANSWER_SNOOZE:
        finish->kind = TOC_FINISH_SNOOZE;
        finish->due_ms =
            named_time(fire->answer.retry_at_ms, now_ms + EXEC_SNOOZE_MS_MIN);
        return;
    case TOC_ANSWER_REJECTED:
        fail_for_good(finish, TOC_STR("rejected by the business"));
        return;
    case TOC_ANSWER_BAD_TARGET:
        fail_for_good(finish, TOC_STR("bad target"));
        return;
    case TOC_ANSWER_UNKNOWN:
        if (at_most_once(fire)) {
            fail_for_good(finish, TOC_STR("outcome unknown, at most once"));
            return;
        }
        break;
    case TOC_ANSWER_FAILED:
    case TOC_ANSWER_UNREACHABLE:
    case TOC_ANSWER_REFUSED:
        break;
    }
    fail_for_now(fire, now_ms, random, finish);
}

static bool
uses_attempt(enum toc_answer_kind kind)
{
    return kind != TOC_ANSWER_DONE && kind != TOC_ANSWER_STOP &&
           kind != TOC_ANSWER_SNOOZE;
}

void
exec_outcome_fill(const struct toc_fire *fire, int64_t now_ms, uint64_t random,
                  struct toc_finish *finish)
{
    const struct toc_answer *answer = &fire->answer;
    uint16_t failed = fire->task->attempt;

    if (uses_attempt(answer->kind) && failed < UINT16_MAX)
        failed++;
    finish->outcome = result_of(answer->kind);
    finish->attempt = failed;
    finish->ended_ms = now_ms;
    finish->error = toc_str_of(answer->error);
    decide(fire, now_ms, random, finish);
}
