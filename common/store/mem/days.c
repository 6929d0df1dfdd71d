/*
 * Days: made ahead, dropped whole. A row before the first day lies in it (as a
 * row below the first bound does in a partitioned table); one beyond the last
 * day is refused.
 */
#include "common/store/mem/store_mem_internal.h"

#include <string.h>

#define DAYS_AHEAD 36
#define DAYS_ADDED_MAX 400
#define DAYS_DROPPED_MAX 32
#define LOG_ROWS_MAX 20000
#define DEAD_ROWS_MAX 10000

bool
toc_mem_has_day(const struct toc_store_mem *store, int64_t slot_ms)
{
    return slot_ms < 0 ||
           (store->n_days > 0 && slot_ms < store->day_ends[store->n_days - 1]);
}

static void
add_day(struct toc_store_mem *store, int64_t end_ms)
{
    if (store->n_days == store->cap_days) {
        store->cap_days = store->cap_days * 2 + 64;
        store->day_ends =
            toc_realloc(store->day_ends, store->cap_days * sizeof(int64_t));
    }
    store->day_ends[store->n_days++] = end_ms;
}

/* Whoever has written and not committed keeps the tables from being changed. */
static enum toc_status
tables_are_free(const struct toc_store_mem *store, struct toc_error *reterr)
{
    if (store->n_held == 0)
        return TOC_OK;
    return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                         "a held transaction keeps the tables");
}

enum toc_status
toc_mem_make_days(struct toc_store_mem *store, int64_t now_ms,
                  struct toc_error *reterr)
{
    int64_t today_ms = now_ms - now_ms % TOC_MS_PER_DAY;
    int64_t want = today_ms + DAYS_AHEAD * TOC_MS_PER_DAY;
    int64_t end = today_ms - TOC_MS_PER_DAY; /* yesterday's is the first */
    enum toc_status st;

    if (now_ms < 0 || now_ms > TOC_DUE_MS_MAX - 100 * TOC_MS_PER_DAY)
        return toc_error_set(reterr, TOC_INVALID, "mem", 0,
                             "no days are made for the time %lld",
                             (long long)now_ms);
    if (store->n_days > 0)
        end = store->day_ends[store->n_days - 1];
    if (end >= want)
        return TOC_OK;
    st = tables_are_free(store, reterr);
    if (st != TOC_OK)
        return st;
    /* A gap of years becomes one long day. */
    if (want - end > DAYS_ADDED_MAX * TOC_MS_PER_DAY)
        end = want - DAYS_ADDED_MAX * TOC_MS_PER_DAY;
    while (end < want) {
        end += TOC_MS_PER_DAY;
        add_day(store, end);
    }
    return TOC_OK;
}

enum toc_status
toc_mem_make_days_op(void *self, int64_t now_ms, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);

    return toc_mem_make_days(store, now_ms, reterr);
}

/* ---- dropping
 * ------------------------------------------------------------------ */

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Days that end before this may go: every shard's marks have passed it, no
 * unfinished straggler is in it, retention is over. */
static int64_t
limit_of(const struct toc_store_mem *store, int64_t kept_from_ms)
{
    struct toc_mem_txn txn = {.store = store->port.self};
    struct toc_mem_place place = {0, 0};
    const struct toc_mem_row *row, *task;
    int64_t limit = kept_from_ms;

    while (TOC_MEM_EACH(store, TOC_MEM_SHARD, row, place))
        limit = least(limit, least(row->shard.low_ms, row->shard.keygc_ms));
    place = (struct toc_mem_place){0, 0};
    while (TOC_MEM_EACH(store, TOC_MEM_STRAGGLER, row, place)) {
        task = toc_mem_task_at(&txn, &row->at);
        if (task != NULL && !toc_state_ended(task->task.state))
            limit = least(limit, row->at.slot_ms);
    }
    return limit;
}

static int64_t
slot_of(const struct toc_mem_row *row)
{
    return row->table == TOC_MEM_TASK ? row->task.slot_ms : row->at.slot_ms;
}

static bool
has_unfinished(const struct toc_store_mem *store, int64_t end_ms)
{
    struct toc_mem_place place = {0, 0};
    const struct toc_mem_row *row;

    while (TOC_MEM_EACH(store, TOC_MEM_TASK, row, place))
        if (row->task.slot_ms >= 0 && row->task.slot_ms < end_ms &&
            !toc_state_ended(row->task.state))
            return true;
    return false;
}

/* Removes the table's rows of the day, which is the first. */
static void
drop_rows(struct toc_mem_txn *txn, enum toc_mem_table table, int64_t end_ms)
{
    struct toc_mem_place place = {0, 0};
    const struct toc_mem_row *row;

    while (TOC_MEM_EACH(txn->store, table, row, place)) {
        struct toc_mem_key key = toc_mem_key_of(row);
        if (slot_of(row) >= 0 && slot_of(row) < end_ms)
            toc_mem_remove(txn, table, &key);
    }
}

static enum toc_status
drop_first_day(struct toc_store_mem *store, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
    int64_t end_ms = store->day_ends[0];
    enum toc_status st = tables_are_free(store, reterr);

    if (st != TOC_OK)
        return st;
    drop_rows(&txn, TOC_MEM_TASK, end_ms);
    drop_rows(&txn, TOC_MEM_LOG, end_ms);
    drop_rows(&txn, TOC_MEM_HISTORY, end_ms);
    st = toc_mem_commit(&txn, 0, reterr);
    if (st != TOC_OK)
        return st;
    store->n_days--;
    memmove(store->day_ends, store->day_ends + 1,
            store->n_days * sizeof *store->day_ends);
    return TOC_OK;
}

/* What lies in no day goes by its age: log rows of parked tasks, dead letters.
 */
static enum toc_status
prune(struct toc_store_mem *store, int64_t kept_ms, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
    struct toc_mem_place place = {0, 0};
    const struct toc_mem_row *row;
    size_t n = 0;

    while (n < LOG_ROWS_MAX && TOC_MEM_EACH(store, TOC_MEM_LOG, row, place)) {
        struct toc_mem_key key = toc_mem_key_of(row);
        if (row->at.slot_ms >= 0 || row->entry.at_ms >= kept_ms)
            continue;
        toc_mem_remove(&txn, TOC_MEM_LOG, &key);
        n++;
    }
    place = (struct toc_mem_place){0, 0};
    n = 0;
    while (n < DEAD_ROWS_MAX && TOC_MEM_EACH(store, TOC_MEM_DEAD, row, place)) {
        struct toc_mem_key key = toc_mem_key_of(row);
        if (row->dead_ms >= kept_ms)
            continue;
        toc_mem_remove(&txn, TOC_MEM_DEAD, &key);
        n++;
    }
    return toc_mem_commit(&txn, 0, reterr);
}

enum toc_status
toc_mem_drop_days(void *self, int64_t now_ms, int64_t retention_ms,
                  size_t *ret_dropped, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    int64_t limit = limit_of(store, now_ms - retention_ms);
    enum toc_status st = TOC_OK;
    size_t dropped = 0;

    while (st == TOC_OK && dropped < DAYS_DROPPED_MAX && store->n_days > 1 &&
           store->day_ends[0] <= limit &&
           !has_unfinished(store, store->day_ends[0])) {
        st = drop_first_day(store, reterr);
        dropped += st == TOC_OK;
    }
    if (st == TOC_OK)
        st =
            prune(store, toc_mem_earlier(store, now_ms) - retention_ms, reterr);
    if (st == TOC_OK)
        *ret_dropped = dropped;
    return st;
}
