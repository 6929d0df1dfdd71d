/*
 * What operations do with a task's row: change it, move it with its key, log.
 */
#include "common/store/mem/store_mem_internal.h"

#define WHO_MAX 128
#define DETAIL_MAX 1024

bool
toc_mem_task_waits(const struct toc_task *task)
{
    return task->state == TOC_STATE_INIT || task->state == TOC_STATE_RETRY;
}

const struct toc_mem_row *
toc_mem_task_at(const struct toc_mem_txn *txn, const struct toc_task_ref *ref)
{
    struct toc_mem_key key = toc_mem_key_ref(ref);

    return toc_mem_read(txn, TOC_MEM_TASK, &key);
}

int64_t
toc_mem_share_low(struct toc_mem_txn *txn, uint16_t shard)
{
    struct toc_mem_key key = toc_mem_key_number(shard);

    toc_mem_lock(txn, TOC_MEM_SHARD, &key, true);
    return toc_mem_read(txn, TOC_MEM_SHARD, &key)->shard.low_ms;
}

int64_t
toc_mem_slot_above(int64_t slot_ms, int64_t low_ms)
{
    if (toc_slot_is_parked(slot_ms) || slot_ms > low_ms)
        return slot_ms;
    return low_ms + 1;
}

struct toc_mem_row *
toc_mem_task_change(struct toc_mem_txn *txn, const struct toc_task_ref *ref)
{
    struct toc_mem_key key = toc_mem_key_ref(ref);

    return toc_mem_change(txn, TOC_MEM_TASK, &key);
}

static void
move_key(struct toc_mem_txn *txn, const struct toc_task *task)
{
    struct toc_mem_key key = toc_mem_key_hash(task->key_hash);
    const struct toc_mem_row *old = toc_mem_read(txn, TOC_MEM_KEY, &key);

    if (old != NULL && toc_task_id_cmp(old->at.id, task->id) == 0)
        toc_mem_change(txn, TOC_MEM_KEY, &key)->at.slot_ms = task->slot_ms;
}

struct toc_mem_row *
toc_mem_task_move(struct toc_mem_txn *txn, struct toc_mem_row *row,
                  int64_t slot_ms)
{
    struct toc_mem_key from = toc_mem_key_of(row);

    if (slot_ms != row->task.slot_ms) {
        struct toc_mem_row *moved = toc_mem_row_copy(row);
        moved->task.slot_ms = slot_ms;
        toc_mem_remove(txn, TOC_MEM_TASK, &from);
        toc_mem_insert(txn, moved);
        row = moved;
    }
    move_key(txn, &row->task);
    return row;
}

struct toc_mem_row *
toc_mem_log_new(const struct toc_task_ref *at, enum toc_log_kind kind)
{
    struct toc_mem_row *log = toc_mem_row_new(TOC_MEM_LOG);

    log->at = *at;
    log->next_slot_ms = at->slot_ms;
    log->entry.kind = kind;
    log->entry.version = at->version;
    return log;
}

void
toc_mem_log_texts(struct toc_mem_row *log, struct toc_str who,
                  struct toc_str detail)
{
    toc_mem_text_set(&log->entry.who, who, WHO_MAX);
    toc_mem_text_set(&log->entry.detail, detail, DETAIL_MAX);
}

struct toc_mem_row *
toc_mem_dead_new(const struct toc_mem_row *row, int64_t dead_ms,
                 struct toc_str reason)
{
    struct toc_mem_row *dead = toc_mem_row_copy(row);

    dead->table = TOC_MEM_DEAD;
    dead->dead_ms = dead_ms;
    dead->reason = toc_mem_text(reason, TOC_REASON_MAX);
    return dead;
}
