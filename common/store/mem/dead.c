/*
 * Redriving a dead letter: its row is where it died, or its day is gone and it
 * is made anew from the copy; its key is its own still, or free, or another
 * task's.
 */
#include "common/store/mem/store_mem_internal.h"

static struct toc_mem_row *
revive_row(struct toc_mem_txn *txn, const struct toc_mem_row *dead)
{
    struct toc_task_ref at = toc_task_ref_of(&dead->task);
    struct toc_mem_row *row = toc_mem_task_change(txn, &at);

    if (row != NULL && row->task.version == at.version &&
        row->task.state == TOC_STATE_DEAD)
        return row;
    row = toc_mem_row_copy(dead);
    row->table = TOC_MEM_TASK;
    toc_mem_text_set(&row->reason, (struct toc_str){NULL, 0}, 0);
    toc_mem_insert(txn, row);
    return row;
}

/* The content of a freed key is not known any more: it compares with none. */
static void
revive_key(struct toc_mem_txn *txn, const struct toc_mem_row *dead,
           const struct toc_task *task)
{
    struct toc_mem_key key = toc_mem_key_hash(task->key_hash);
    struct toc_mem_key past =
        toc_mem_key_history(task->key_hash, dead->task.slot_ms, task->id);

    if (toc_mem_read(txn, TOC_MEM_KEY, &key) == NULL) {
        struct toc_mem_row *row = toc_mem_row_new(TOC_MEM_KEY);
        row->hash = task->key_hash;
        row->at = toc_task_ref_of(task);
        toc_mem_insert(txn, row);
    }
    toc_mem_remove(txn, TOC_MEM_HISTORY, &past);
}

static struct toc_mem_row *
log_of(const struct toc_task *task, enum toc_log_kind kind, uint32_t version)
{
    struct toc_task_ref at = toc_task_ref_of(task);
    struct toc_mem_row *log;

    at.version = version;
    log = toc_mem_log_new(&at, kind);
    log->entry.result = task->result;
    log->entry.fire = task->fire;
    log->entry.sched_node = task->sched_node;
    log->entry.exec_node = task->exec_node;
    log->entry.claimed_ms = task->claimed_ms;
    log->entry.called_ms = task->called_ms;
    return log;
}

/* The attempt that it died of is superseded now; that of a lost lock is in the
 * log already. */
static void
log_attempt(struct toc_mem_txn *txn, const struct toc_task *dead)
{
    struct toc_mem_row *log;

    if (dead->result == TOC_RESULT_LOST)
        return;
    log = log_of(dead, TOC_LOG_KIND_ATTEMPT, dead->version);
    log->entry.attempt = (uint16_t)(dead->attempt + 1);
    log->entry.at_ms = dead->ended_ms;
    toc_mem_log_texts(log, (struct toc_str){NULL, 0}, dead->error);
    toc_mem_insert(txn, log);
}

static void
log_redrive(struct toc_mem_txn *txn, const struct toc_task *dead,
            const struct toc_mem_row *row, int64_t now_ms, struct toc_str who,
            struct toc_str why)
{
    struct toc_mem_row *log =
        log_of(dead, TOC_LOG_KIND_REDRIVE, row->task.version);

    log->next_slot_ms = row->task.slot_ms;
    log->entry.at_ms = now_ms;
    toc_mem_log_texts(log, who, why);
    toc_mem_insert(txn, log);
}

static void
redrive(struct toc_mem_txn *txn, const struct toc_mem_row *dead, int64_t now_ms,
        struct toc_str who, struct toc_str why)
{
    int64_t low_ms = toc_mem_share_low(txn, toc_slice_shard(dead->task.slice));
    struct toc_mem_row *row = revive_row(txn, dead);
    struct toc_mem_key key = toc_mem_key_of(dead);

    row->task.version++;
    row->task.state = TOC_STATE_RETRY;
    row->task.flags &= (uint8_t)~TOC_FLAG_CANCEL;
    row->task.attempt = row->task.claims = 0;
    row->task.lock_token = 0;
    row->task.due_ms = now_ms;
    row = toc_mem_task_move(txn, row, toc_mem_slot_above(now_ms, low_ms));
    revive_key(txn, dead, &row->task);
    log_attempt(txn, &dead->task);
    log_redrive(txn, &dead->task, row, now_ms, who, why);
    toc_mem_remove(txn, TOC_MEM_DEAD, &key);
}

enum toc_status
toc_mem_redrive(void *self, struct toc_task_id id, int64_t now_ms,
                struct toc_str who, struct toc_str why,
                enum toc_redrive_result *ret_result, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
    struct toc_mem_key at = toc_mem_key_id(id), hash;
    const struct toc_mem_row *dead = toc_mem_read(&txn, TOC_MEM_DEAD, &at);
    const struct toc_mem_row *key;
    enum toc_status st;

    if (dead == NULL) {
        *ret_result = TOC_REDRIVE_NOT_FOUND;
        return TOC_OK;
    }
    hash = toc_mem_key_hash(dead->task.key_hash);
    key = toc_mem_read(&txn, TOC_MEM_KEY, &hash);
    if (key != NULL && toc_task_id_cmp(key->at.id, id) != 0) {
        *ret_result = TOC_REDRIVE_KEY_TAKEN;
        return TOC_OK;
    }
    redrive(&txn, dead, now_ms, who, why);
    st = toc_mem_commit(&txn, now_ms, reterr);
    if (st == TOC_OK)
        *ret_result = TOC_REDRIVE_APPLIED;
    return st;
}
