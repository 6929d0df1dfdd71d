/*
 * The sweep's writes: expired locks, stragglers, the low-water mark. What is
 * later than the caller's clock or the database's has not come yet.
 */
#include "common/store/mem/store_mem_internal.h"

#include <stdlib.h>

/* ---- expired locks
 * -------------------------------------------------------------- */

static enum toc_state
freed_state(const struct toc_task *task)
{
    if ((task->flags & TOC_FLAG_AT_MOST_ONCE) != 0 ||
        task->claims >= TOC_CLAIMS_MAX)
        return TOC_STATE_DEAD;
    return (task->flags & TOC_FLAG_CANCEL) != 0 ? TOC_STATE_CANCELLED
                                                : TOC_STATE_RETRY;
}

static void
log_lost(struct toc_mem_txn *txn, const struct toc_task *task)
{
    struct toc_task_ref at = toc_task_ref_of(task);
    struct toc_mem_row *log = toc_mem_log_new(&at, TOC_LOG_KIND_LOCK_LOST);

    log->entry.result = TOC_RESULT_LOST;
    log->entry.fire = task->fire;
    log->entry.attempt = (uint16_t)(task->attempt + 1);
    log->entry.sched_node = task->sched_node;
    log->entry.exec_node = task->exec_node;
    log->entry.claimed_ms = task->claimed_ms;
    log->entry.called_ms = task->called_ms;
    log->entry.at_ms = task->ended_ms;
    toc_mem_insert_ignore(txn, log);
}

static size_t
free_one(struct toc_mem_txn *txn, const struct toc_task *seen, int64_t now_ms)
{
    struct toc_task_ref ref = toc_task_ref_of(seen);
    struct toc_mem_key key = toc_mem_key_ref(&ref);
    const struct toc_mem_row *old = toc_mem_read(txn, TOC_MEM_TASK, &key);
    struct toc_mem_row *row;

    if (old == NULL)
        return 0;
    toc_mem_lock(txn, TOC_MEM_TASK, &key, false);
    if (old->task.version != ref.version ||
        old->task.lock_token != seen->lock_token ||
        old->task.state != TOC_STATE_EXECUTING ||
        old->task.lock_until_ms >= now_ms)
        return 0;
    row = toc_mem_change(txn, TOC_MEM_TASK, &key);
    row->task.state = freed_state(&row->task);
    row->task.version++;
    row->task.claims++;
    row->task.lock_token = 0;
    row->task.result = TOC_RESULT_LOST;
    row->task.ended_ms = now_ms;
    log_lost(txn, &row->task);
    if (row->task.state == TOC_STATE_DEAD)
        toc_mem_insert_ignore(
            txn, toc_mem_dead_new(
                     row, now_ms,
                     (row->task.flags & TOC_FLAG_AT_MOST_ONCE) != 0
                         ? TOC_STR("at most once, and the outcome is unknown")
                         : TOC_STR("its lock was lost too often")));
    return 1;
}

enum toc_status
toc_mem_free_expired(void *self, const struct toc_task *tasks, size_t n,
                     int64_t now_ms, size_t *ret_freed,
                     struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    int64_t by_ms = toc_mem_earlier(store, now_ms);
    enum toc_status st = TOC_OK;
    size_t freed = 0;

    for (size_t at = 0; st == TOC_OK && at < n; at += TOC_MEM_ROWS_MAX) {
        TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
        for (size_t i = at; i < n && i < at + TOC_MEM_ROWS_MAX; i++)
            freed += free_one(&txn, &tasks[i], by_ms);
        st = toc_mem_commit(&txn, now_ms, reterr);
    }
    if (st == TOC_OK)
        *ret_freed = freed;
    return st;
}

/* ---- stragglers
 * ------------------------------------------------------------------- */

static bool
is_straggler(const struct toc_store_mem *store, const struct toc_mem_row *row)
{
    struct toc_mem_key key = toc_mem_key_of(row);

    return toc_mem_map_get(&store->tables[TOC_MEM_STRAGGLER], &key) != NULL;
}

/* The next unfinished and unrecorded row of the slice with slot < to. */
static const struct toc_mem_row *
next_unrecorded(const struct toc_store_mem *store, uint16_t slice,
                int64_t to_ms, struct toc_mem_place *place)
{
    const struct toc_mem_row *row;

    while ((row = toc_mem_map_next(&store->tables[TOC_MEM_TASK], place)) !=
               NULL &&
           row->task.slice == slice && row->task.slot_ms < to_ms)
        if (!toc_state_ended(row->task.state) && !is_straggler(store, row))
            return row;
    return NULL;
}

static struct toc_mem_place
from_slot(const struct toc_store_mem *store, uint16_t slice, int64_t slot_ms)
{
    struct toc_mem_key key =
        toc_mem_key_place(slice, slot_ms, (struct toc_task_id){{0}});

    return toc_mem_map_from(&store->tables[TOC_MEM_TASK], &key);
}

/* Forgets those that ended or moved; returns how many are left. */
static size_t
forget_ended(struct toc_mem_txn *txn, uint16_t shard)
{
    const struct toc_mem_map *map = &txn->store->tables[TOC_MEM_STRAGGLER];
    struct toc_mem_key from =
        toc_mem_key_place(toc_slice_of(shard, TOC_PRIORITY_CORE), INT64_MIN,
                          (struct toc_task_id){{0}});
    struct toc_mem_place place = toc_mem_map_from(map, &from);
    const struct toc_mem_row *row, *task;
    size_t left = 0;

    while ((row = toc_mem_map_next(map, &place)) != NULL &&
           toc_slice_shard(row->at.slice) == shard) {
        struct toc_mem_key key = toc_mem_key_of(row);
        task = toc_mem_read(txn, TOC_MEM_TASK, &key);
        if (task != NULL && !toc_state_ended(task->task.state))
            left++;
        else
            toc_mem_remove(txn, TOC_MEM_STRAGGLER, &key);
    }
    return left;
}

static int64_t
low_of(const struct toc_mem_txn *txn, uint16_t shard)
{
    struct toc_mem_key key = toc_mem_key_number(shard);

    return toc_mem_read(txn, TOC_MEM_SHARD, &key)->shard.low_ms;
}

/* Counts at most max + 1; records them when `record`. */
static size_t
each_unrecorded(struct toc_mem_txn *txn, uint16_t shard, int64_t before_ms,
                size_t max, bool record)
{
    int64_t low_ms = low_of(txn, shard);
    const struct toc_mem_row *row;
    size_t n = 0;

    for (int prio = 0; prio < TOC_PRIORITIES; prio++) {
        uint16_t slice = toc_slice_of(shard, (enum toc_priority)prio);
        struct toc_mem_place place = from_slot(txn->store, slice, low_ms);
        while (n <= max && (row = next_unrecorded(txn->store, slice, before_ms,
                                                  &place)) != NULL) {
            struct toc_mem_row *straggler;
            n++;
            if (!record)
                continue;
            straggler = toc_mem_row_new(TOC_MEM_STRAGGLER);
            straggler->at = toc_task_ref_of(&row->task);
            toc_mem_insert_ignore(txn, straggler);
        }
    }
    return n;
}

enum toc_status
toc_mem_record_stragglers(void *self, uint16_t shard, int64_t before_ms,
                          size_t max, size_t *ret_waiting,
                          struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
    int64_t to_ms = toc_mem_earlier(store, before_ms);
    size_t waiting = forget_ended(&txn, shard);
    size_t more = each_unrecorded(&txn, shard, to_ms, max, false);
    enum toc_status st;

    waiting += more;
    if (waiting <= max)
        (void)each_unrecorded(&txn, shard, to_ms, max, true);
    st = toc_mem_commit(&txn, 0, reterr);
    if (st == TOC_OK)
        *ret_waiting = waiting;
    return st;
}

/* ---- the low-water mark
 * -------------------------------------------------------------
 *
 * The exclusive lock on the shard's row: whoever holds the shared one may have
 * a row that is not seen yet.
 */

#define SHARDS_AT_ONCE 32

static void
advance_one(struct toc_mem_txn *txn, uint16_t shard, int64_t to_ms)
{
    struct toc_mem_key key = toc_mem_key_number(shard);
    struct toc_mem_row *mark = toc_mem_change(txn, TOC_MEM_SHARD, &key);
    int64_t first_ms = to_ms;

    for (int prio = 0; prio < TOC_PRIORITIES; prio++) {
        uint16_t slice = toc_slice_of(shard, (enum toc_priority)prio);
        struct toc_mem_place place =
            from_slot(txn->store, slice, mark->shard.low_ms);
        const struct toc_mem_row *row =
            next_unrecorded(txn->store, slice, to_ms, &place);
        if (row != NULL && row->task.slot_ms < first_ms)
            first_ms = row->task.slot_ms;
    }
    if (first_ms > mark->shard.low_ms)
        mark->shard.low_ms = first_ms;
}

static int
cmp_shard(const void *a, const void *b)
{
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

enum toc_status
toc_mem_advance_low(void *self, const uint16_t *shards, size_t n,
                    int64_t now_ms, int64_t behind_ms, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    TOC_AUTO_FREE uint16_t *sorted = TOC_NEW_ARRAY(uint16_t, n);
    int64_t to_ms = toc_mem_earlier(store, now_ms) - behind_ms;
    enum toc_status st = TOC_OK;

    for (size_t i = 0; i < n; i++)
        sorted[i] = shards[i];
    qsort(sorted, n, sizeof *sorted, cmp_shard);
    for (size_t at = 0; st == TOC_OK && at < n; at += SHARDS_AT_ONCE) {
        TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
        for (size_t i = at; i < n && i < at + SHARDS_AT_ONCE; i++)
            advance_one(&txn, sorted[i], to_ms);
        st = toc_mem_commit(&txn, now_ms, reterr);
    }
    return st;
}
