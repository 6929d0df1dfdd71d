#include "executor/attempt.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/rng.h"
#include "executor/outcome.h"

/* Payload and spec as the row says, when it was read. */
static void
take_row(struct exec_attempt *attempt, const struct toc_task *row)
{
    struct toc_arena *arena = &attempt->arena;

    attempt->task.payload = toc_arena_str(arena, row->payload);
    attempt->task.spec = toc_arena_str(arena, row->spec);
    attempt->task.attempt = row->attempt;
    attempt->task.flags = row->flags;
}

struct exec_attempt *
exec_attempt_new(struct exec_item *item, const struct toc_task *row,
                 const struct toc_claim_lock *lock, bool *ret_spec_ok)
{
    struct exec_attempt *attempt = TOC_NEW(struct exec_attempt);

    TOC_ASSERT(item->state == EXEC_ITEM_WON && item->refs == NULL);
    toc_list_init(&attempt->link);
    attempt->held.index = SIZE_MAX; /* in no heap */
    attempt->item = item;
    attempt->task = item->task;
    if (row != NULL)
        take_row(attempt, row);
    attempt->token = lock->token;
    attempt->lock_until_ms = lock->lock_until_ms;
    attempt->finish.ref = toc_task_ref_of(&item->task);
    attempt->finish.token = lock->token;
    attempt->finish.attempt = attempt->task.attempt;
    *ret_spec_ok = toc_spec_decode(attempt->task.spec, &attempt->arena,
                                   &attempt->spec, NULL) == TOC_OK;
    return attempt;
}

void
exec_attempt_free(struct exec_attempt *attempt)
{
    if (attempt == NULL)
        return;
    exec_item_free(attempt->item);
    toc_arena_done(&attempt->arena);
    toc_free(attempt);
}

void
exec_attempt_give_back(struct exec_attempt *attempt, int64_t now_ms)
{
    attempt->finish.kind = TOC_FINISH_GIVE_BACK;
    attempt->finish.outcome = TOC_RESULT_NONE;
    attempt->finish.called_ms = 0;
    attempt->finish.ended_ms = now_ms;
}

void
exec_attempt_fail(struct exec_attempt *attempt, const char *error,
                  int64_t now_ms)
{
    struct toc_fire fire = {.task = &attempt->task,
                            .spec = &attempt->spec,
                            .answer.kind = TOC_ANSWER_BAD_TARGET};

    toc_copy(fire.answer.error, sizeof fire.answer.error, toc_str_of(error));
    exec_attempt_answer(attempt, &fire, now_ms);
}

void
exec_attempt_answer(struct exec_attempt *attempt, const struct toc_fire *fire,
                    int64_t now_ms)
{
    struct toc_finish *finish = &attempt->finish;

    exec_outcome_fill(fire, now_ms, toc_rng_u64(), finish);
    toc_copy(attempt->error, sizeof attempt->error, finish->error);
    finish->error = toc_str_of(attempt->error);
}
