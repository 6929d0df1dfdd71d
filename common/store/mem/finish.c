/*
 * Write-back. An item whose row holds its token is written; one whose row does
 * not is lost, unless the row (or, for one that moved, the log at its old
 * place) bears this very result: then it was written by an earlier call whose
 * answer never came.
 */
#include "common/store/mem/store_mem_internal.h"

/* Its effect depends on what the row says (moves it, heeds the cancel flag). */
static bool
reads_first(const struct toc_finish *item)
{
    return item->kind == TOC_FINISH_RETRY || item->kind == TOC_FINISH_SNOOZE ||
           item->kind == TOC_FINISH_GIVE_BACK;
}

static bool
may_move(const struct toc_finish *item)
{
    return item->kind == TOC_FINISH_RETRY || item->kind == TOC_FINISH_SNOOZE;
}

static bool
holds(const struct toc_mem_row *row, const struct toc_finish *item)
{
    return row != NULL && row->task.state == TOC_STATE_EXECUTING &&
           row->task.lock_token == item->token;
}

/* Read first: when a cancel was noted. */
static enum toc_state
end_state(const struct toc_finish *item)
{
    switch (item->kind) {
    case TOC_FINISH_DONE:
        return TOC_STATE_SUCCESS;
    case TOC_FINISH_SKIPPED:
        return TOC_STATE_SKIPPED;
    case TOC_FINISH_DEAD:
        return TOC_STATE_DEAD;
    case TOC_FINISH_RETRY:
    case TOC_FINISH_SNOOZE:
    case TOC_FINISH_GIVE_BACK:
        break;
    }
    return TOC_STATE_CANCELLED;
}

/* ---- lost, or written before
 * ------------------------------------------------------ */

static bool
bears_our_end(const struct toc_mem_row *row, const struct toc_finish *item,
              int64_t now_ms)
{
    return row != NULL && row->task.state == end_state(item) &&
           row->task.result == item->outcome &&
           row->task.called_ms == item->called_ms &&
           (row->task.ended_ms == item->ended_ms ||
            (item->ended_ms == 0 && row->task.ended_ms <= now_ms));
}

static bool
is_our_move(const struct toc_mem_row *log, const struct toc_finish *item)
{
    return log->at.slice == item->ref.slice &&
           log->at.slot_ms == item->ref.slot_ms &&
           log->entry.kind == TOC_LOG_KIND_ATTEMPT &&
           log->entry.called_ms == item->called_ms &&
           (item->ended_ms <= 0 || log->entry.at_ms == item->ended_ms) &&
           log->entry.result == item->outcome;
}

static void
look_for_move(const struct toc_store_mem *store, struct toc_finish *item)
{
    const struct toc_mem_map *logs = &store->tables[TOC_MEM_LOG];
    struct toc_mem_key from = toc_mem_key_log(item->ref.id, 0);
    struct toc_mem_place place = toc_mem_map_from(logs, &from);
    const struct toc_mem_row *log;

    while ((log = toc_mem_map_next(logs, &place)) != NULL &&
           toc_task_id_cmp(log->at.id, item->ref.id) == 0) {
        if (!is_our_move(log, item))
            continue;
        item->result = TOC_FINISH_OK;
        item->moved = item->ref;
        item->moved.version = log->at.version;
        item->moved.slot_ms = log->next_slot_ms;
        return;
    }
}

static void
judge_lost(const struct toc_store_mem *store, const struct toc_mem_row *row,
           struct toc_finish *item, int64_t now_ms)
{
    item->result = TOC_FINISH_LOST;
    if (bears_our_end(row, item, now_ms)) {
        item->result = row->task.state == TOC_STATE_CANCELLED
                           ? TOC_FINISH_CANCELLED
                           : TOC_FINISH_OK;
    } else if (item->kind == TOC_FINISH_GIVE_BACK && row != NULL &&
               toc_mem_task_waits(&row->task)) {
        item->result = TOC_FINISH_OK;
        item->moved = toc_task_ref_of(&row->task);
    } else if (may_move(item)) {
        look_for_move(store, item);
    }
}

/* ---- writing
 * --------------------------------------------------------------------- */

static void
write_outcome(struct toc_mem_row *row, const struct toc_finish *item,
              enum toc_state state, int64_t now_ms)
{
    struct toc_task *task = &row->task;

    task->version++;
    task->lock_token = 0;
    task->state = state;
    task->called_ms = item->called_ms;
    task->ended_ms = item->ended_ms > 0 ? item->ended_ms : now_ms;
    task->result = item->outcome;
    toc_mem_text_set(&task->error, item->error, TOC_ERROR_MAX);
}

static void
end(struct toc_mem_txn *txn, struct toc_mem_row *row, struct toc_finish *item,
    int64_t now_ms)
{
    enum toc_state state =
        reads_first(item) ? TOC_STATE_CANCELLED : end_state(item);

    write_outcome(row, item, state, now_ms);
    item->result = reads_first(item) ? TOC_FINISH_CANCELLED : TOC_FINISH_OK;
    if (state == TOC_STATE_DEAD)
        toc_mem_replace(
            txn, toc_mem_dead_new(row, row->task.ended_ms, item->reason));
}

static void
give_back(struct toc_mem_row *row, struct toc_finish *item)
{
    struct toc_task *task = &row->task;

    task->version++;
    task->lock_token = 0;
    task->state = task->attempt == 0 && task->claims == 0 ? TOC_STATE_INIT
                                                          : TOC_STATE_RETRY;
    item->moved = toc_task_ref_of(task);
    item->result = TOC_FINISH_OK;
}

static void
log_attempt(struct toc_mem_txn *txn, const struct toc_mem_row *row,
            const struct toc_task_ref *from, uint16_t attempt)
{
    const struct toc_task *task = &row->task;
    struct toc_task_ref at = *from;
    struct toc_mem_row *log;

    at.version = task->version;
    log = toc_mem_log_new(&at, TOC_LOG_KIND_ATTEMPT);
    log->next_slot_ms = task->slot_ms;
    log->entry.result = task->result;
    log->entry.fire = task->fire;
    log->entry.attempt = attempt;
    log->entry.sched_node = task->sched_node;
    log->entry.exec_node = task->exec_node;
    log->entry.claimed_ms = task->claimed_ms;
    log->entry.called_ms = task->called_ms;
    log->entry.at_ms = task->ended_ms;
    toc_mem_log_texts(log, (struct toc_str){NULL, 0}, task->error);
    toc_mem_insert(txn, log);
}

static void
retry(struct toc_mem_txn *txn, struct toc_mem_row *row, struct toc_finish *item,
      int64_t now_ms, int64_t low_ms)
{
    bool counts = item->kind == TOC_FINISH_RETRY;
    uint16_t attempt =
        counts ? item->attempt : (uint16_t)(row->task.attempt + 1);
    int64_t slot_ms = toc_slot_for_due(item->due_ms, now_ms);

    write_outcome(row, item, TOC_STATE_RETRY, now_ms);
    if (counts)
        row->task.attempt = item->attempt;
    row->task.due_ms = item->due_ms;
    row = toc_mem_task_move(txn, row, toc_mem_slot_above(slot_ms, low_ms));
    log_attempt(txn, row, &item->ref, attempt);
    item->moved = toc_task_ref_of(&row->task);
    item->result = TOC_FINISH_OK;
}

/* What moves goes above the highest mark of all that move together. */
static int64_t
share_lows(struct toc_mem_txn *txn, const struct toc_finish *items, size_t n)
{
    int64_t low_ms = INT64_MIN;

    for (size_t i = 0; i < n; i++) {
        const struct toc_mem_row *row = toc_mem_task_at(txn, &items[i].ref);
        int64_t low;
        if (!may_move(&items[i]) || !holds(row, &items[i]) ||
            (row->task.flags & TOC_FLAG_CANCEL) != 0)
            continue;
        low = toc_mem_share_low(txn, toc_slice_shard(items[i].ref.slice));
        low_ms = low > low_ms ? low : low_ms;
    }
    return low_ms;
}

static void
finish_one(struct toc_mem_txn *txn, struct toc_finish *item, int64_t now_ms,
           int64_t low_ms)
{
    struct toc_mem_key key = toc_mem_key_ref(&item->ref);
    const struct toc_mem_row *seen = toc_mem_read(txn, TOC_MEM_TASK, &key);
    struct toc_mem_row *row;

    if (!holds(seen, item)) {
        if (!reads_first(item))
            toc_mem_lock(txn, TOC_MEM_TASK, &key, false);
        judge_lost(txn->store, seen, item, now_ms);
        return;
    }
    row = toc_mem_change(txn, TOC_MEM_TASK, &key);
    if (!reads_first(item) || (row->task.flags & TOC_FLAG_CANCEL) != 0)
        end(txn, row, item, now_ms);
    else if (item->kind == TOC_FINISH_GIVE_BACK)
        give_back(row, item);
    else
        retry(txn, row, item, now_ms, low_ms);
}

enum toc_status
toc_mem_finish(void *self, struct toc_finish *items, size_t n, int64_t now_ms,
               struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    enum toc_status st = TOC_OK;

    for (size_t at = 0; st == TOC_OK && at < n; at += TOC_MEM_ROWS_MAX) {
        TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
        size_t some = n - at < TOC_MEM_ROWS_MAX ? n - at : TOC_MEM_ROWS_MAX;
        int64_t low_ms = share_lows(&txn, items + at, some);
        for (size_t i = at; i < at + some; i++)
            finish_one(&txn, &items[i], now_ms, low_ms);
        st = toc_mem_commit(&txn, now_ms, reterr);
    }
    return st;
}
