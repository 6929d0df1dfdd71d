/*
 * The claim, the only decision there is, and renewing.
 */
#include "common/store/mem/store_mem_internal.h"

static bool
may_win(const struct toc_task *task, const struct toc_claim *claim,
        int64_t now_ms)
{
    return task->version == claim->ref.version && toc_mem_task_waits(task) &&
           task->due_ms <= now_ms;
}

static void
win(struct toc_mem_row *row, const struct toc_claim *claim,
    const struct toc_claim_lock *lock)
{
    struct toc_task *task = &row->task;

    task->state = TOC_STATE_EXECUTING;
    task->lock_token = lock->token;
    task->lock_until_ms = lock->lock_until_ms;
    task->claimed_ms = lock->now_ms;
    task->exec_node = lock->exec_node;
    task->sched_node = claim->sched_node;
    task->called_ms = task->ended_ms = 0;
    task->result = TOC_RESULT_NONE;
    toc_mem_text_set(&task->error, (struct toc_str){NULL, 0}, 0);
}

/* From the row as it is after the claim. */
static enum toc_claim_result
judge(const struct toc_task *task, const struct toc_claim *claim,
      uint64_t token)
{
    if (task->state == TOC_STATE_EXECUTING && task->lock_token == token)
        return TOC_CLAIM_WON;
    if (toc_mem_task_waits(task) && task->version == claim->ref.version)
        return TOC_CLAIM_EARLY; /* nothing but the clock was against it */
    return TOC_CLAIM_TAKEN;
}

static void
claim_one(struct toc_mem_txn *txn, struct toc_claim *claim,
          const struct toc_claim_lock *lock, struct toc_arena *arena)
{
    struct toc_mem_key key = toc_mem_key_ref(&claim->ref);
    const struct toc_mem_row *row = toc_mem_read(txn, TOC_MEM_TASK, &key);

    claim->result = TOC_CLAIM_TAKEN;
    claim->row = NULL;
    if (row == NULL)
        return;
    toc_mem_lock(txn, TOC_MEM_TASK, &key, false);
    if (may_win(&row->task, claim, toc_mem_earlier(txn->store, lock->now_ms))) {
        struct toc_mem_row *won = toc_mem_change(txn, TOC_MEM_TASK, &key);
        win(won, claim, lock);
        row = won;
    }
    claim->result = judge(&row->task, claim, lock->token);
    if (claim->result != TOC_CLAIM_WON || !claim->want_row)
        return;
    claim->row = toc_arena_alloc(arena, sizeof *claim->row);
    toc_mem_task_out(row, false, arena, claim->row);
}

enum toc_status
toc_mem_claim(void *self, struct toc_claim *claims, size_t n,
              const struct toc_claim_lock *lock, struct toc_arena *arena,
              struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    enum toc_status st = TOC_OK;

    for (size_t at = 0; st == TOC_OK && at < n; at += TOC_MEM_ROWS_MAX) {
        TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
        for (size_t i = at; i < n && i < at + TOC_MEM_ROWS_MAX; i++)
            claim_one(&txn, &claims[i], lock, arena);
        st = toc_mem_commit(&txn, lock->now_ms, reterr);
    }
    return st;
}

static bool
renew_one(struct toc_mem_txn *txn, const struct toc_task_ref *ref,
          uint64_t token, int64_t lock_until_ms)
{
    struct toc_mem_key key = toc_mem_key_ref(ref);
    const struct toc_mem_row *row = toc_mem_read(txn, TOC_MEM_TASK, &key);
    struct toc_task *task;

    if (row == NULL)
        return false;
    toc_mem_lock(txn, TOC_MEM_TASK, &key, false);
    if (row->task.state != TOC_STATE_EXECUTING || row->task.lock_token != token)
        return false;
    task = &toc_mem_change(txn, TOC_MEM_TASK, &key)->task;
    if (lock_until_ms > task->lock_until_ms)
        task->lock_until_ms = lock_until_ms;
    return true;
}

enum toc_status
toc_mem_renew(void *self, const struct toc_task_ref *refs,
              const uint64_t *tokens, size_t n, int64_t lock_until_ms,
              size_t *ret_renewed, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    enum toc_status st = TOC_OK;
    size_t renewed = 0;

    for (size_t at = 0; st == TOC_OK && at < n; at += TOC_MEM_ROWS_MAX) {
        TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
        for (size_t i = at; i < n && i < at + TOC_MEM_ROWS_MAX; i++)
            renewed += renew_one(&txn, &refs[i], tokens[i], lock_until_ms);
        st = toc_mem_commit(&txn, 0, reterr);
    }
    if (st == TOC_OK)
        *ret_renewed = renewed;
    return st;
}
