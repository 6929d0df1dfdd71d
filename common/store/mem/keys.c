/*
 * Keys of tasks that ended long ago move to the history of keys. A shard's
 * cursor, keygc_ms, says: no task at a slot below it holds its key any more. A
 * row that still needs its key holds the cursor; the other keys of its step are
 * freed, none beyond it.
 */
#include "common/store/mem/store_mem_internal.h"

#include <stdlib.h>

struct freeing {
    struct toc_store_mem *store;
    uint16_t shard;
    int64_t ended_before_ms; /* now - window */
    size_t max;              /* of one transaction */
    int64_t from_ms, to_ms, limit_ms;
    size_t freed;
    bool more; /* there is a next step */
    /* Of this step. */
    const struct toc_mem_row **rows;
    size_t n;
    int64_t blocker_ms;
};

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool
is_over(const struct freeing *f, const struct toc_task *task)
{
    return toc_state_ended(task->state) && task->ended_ms < f->ended_before_ms;
}

static bool
has_its_key(const struct freeing *f, const struct toc_task *task)
{
    struct toc_mem_key key = toc_mem_key_hash(task->key_hash);
    const struct toc_mem_row *row =
        toc_mem_map_get(&f->store->tables[TOC_MEM_KEY], &key);

    return row != NULL && toc_task_id_cmp(row->at.id, task->id) == 0;
}

static const struct toc_mem_row *
next_row(const struct freeing *f, uint16_t slice, int64_t to_ms,
         struct toc_mem_place *place)
{
    const struct toc_mem_row *row =
        toc_mem_map_next(&f->store->tables[TOC_MEM_TASK], place);

    if (row == NULL || row->task.slice != slice || row->task.slot_ms >= to_ms)
        return NULL;
    return row;
}

static struct toc_mem_place
from_slot(const struct freeing *f, uint16_t slice)
{
    struct toc_mem_key key =
        toc_mem_key_place(slice, f->from_ms, (struct toc_task_id){{0}});

    return toc_mem_map_from(&f->store->tables[TOC_MEM_TASK], &key);
}

/* A step ends where any of the slices has max / 3 rows. */
static void
find_step(struct freeing *f, const struct toc_shard_row *shard)
{
    f->from_ms = shard->keygc_ms;
    f->limit_ms = least(shard->low_ms, f->ended_before_ms);
    f->to_ms = f->limit_ms;
    if (f->from_ms >= f->limit_ms)
        return;
    for (int prio = 0; prio < TOC_PRIORITIES; prio++) {
        uint16_t slice = toc_slice_of(f->shard, (enum toc_priority)prio);
        struct toc_mem_place place = from_slot(f, slice);
        const struct toc_mem_row *row = NULL;
        size_t skip = f->max / 3 + 1;
        while ((row = next_row(f, slice, f->limit_ms, &place)) != NULL &&
               skip > 0)
            skip--;
        if (row != NULL)
            f->to_ms = least(f->to_ms, row->task.slot_ms);
    }
    if (f->to_ms <= f->from_ms)
        f->to_ms = f->from_ms + 1;
}

static int
cmp_hash(const void *a, const void *b)
{
    const struct toc_mem_row *x = *(const struct toc_mem_row *const *)a;
    const struct toc_mem_row *y = *(const struct toc_mem_row *const *)b;
    struct toc_mem_key p = toc_mem_key_hash(x->task.key_hash);
    struct toc_mem_key q = toc_mem_key_hash(y->task.key_hash);

    return toc_mem_key_cmp(&p, &q);
}

/* The rows whose keys go, and the first one that still needs its own. */
static void
read_step(struct freeing *f)
{
    size_t cap = 0;

    f->n = 0;
    f->blocker_ms = f->to_ms;
    for (int prio = 0; prio < TOC_PRIORITIES; prio++) {
        uint16_t slice = toc_slice_of(f->shard, (enum toc_priority)prio);
        struct toc_mem_place place = from_slot(f, slice);
        const struct toc_mem_row *row;
        while ((row = next_row(f, slice, f->to_ms, &place)) != NULL) {
            if (!is_over(f, &row->task))
                f->blocker_ms = least(f->blocker_ms, row->task.slot_ms);
            else if (has_its_key(f, &row->task)) {
                if (f->n == cap) {
                    cap = cap * 2 + 64;
                    f->rows = toc_realloc(f->rows, cap * sizeof *f->rows);
                }
                f->rows[f->n++] = row;
            }
        }
    }
    if (f->n > 0)
        qsort(f->rows, f->n, sizeof *f->rows, cmp_hash);
    if (f->n > f->max - f->freed)
        f->n = f->max - f->freed;
}

static void
free_key(struct toc_mem_txn *txn, const struct toc_task *task)
{
    struct toc_mem_key key = toc_mem_key_hash(task->key_hash);
    struct toc_mem_row *history = toc_mem_row_new(TOC_MEM_HISTORY);

    history->hash = task->key_hash;
    history->at = toc_task_ref_of(task);
    toc_mem_insert_ignore(txn, history);
    toc_mem_remove(txn, TOC_MEM_KEY, &key);
}

static enum toc_status
free_step(struct freeing *f, int64_t now_ms, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = f->store};
    struct toc_mem_key key = toc_mem_key_number(f->shard);
    enum toc_status st;
    bool full;

    f->more = false;
    find_step(f, &toc_mem_read(&txn, TOC_MEM_SHARD, &key)->shard);
    if (f->from_ms >= f->limit_ms)
        return TOC_OK;
    read_step(f);
    for (size_t i = 0; i < f->n; i++)
        free_key(&txn, &f->rows[i]->task);
    full = f->freed + f->n >= f->max;
    if (!full && f->blocker_ms > f->from_ms)
        toc_mem_change(&txn, TOC_MEM_SHARD, &key)->shard.keygc_ms =
            f->blocker_ms;
    st = toc_mem_commit(&txn, now_ms, reterr);
    if (st != TOC_OK)
        return st;
    f->freed += f->n;
    f->more = !full && f->blocker_ms >= f->to_ms && f->to_ms < f->limit_ms;
    return TOC_OK;
}

enum toc_status
toc_mem_gc_keys(void *self, uint16_t shard, int64_t now_ms, int64_t window_ms,
                size_t max, size_t *ret_freed, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    struct freeing f = {.store = store,
                        .shard = shard,
                        .ended_before_ms = now_ms - window_ms,
                        .max = max < TOC_MEM_ROWS_MAX ? max : TOC_MEM_ROWS_MAX};
    size_t freed = 0;
    enum toc_status st;

    do {
        st = free_step(&f, now_ms, reterr);
        toc_free(f.rows);
        f.rows = NULL;
        if (f.freed == f.max && freed + f.freed < max) {
            freed += f.freed;
            f.freed = 0;
            f.max =
                max - freed < TOC_MEM_ROWS_MAX ? max - freed : TOC_MEM_ROWS_MAX;
            f.more = true;
        }
    } while (st == TOC_OK && f.more);
    if (st == TOC_OK)
        *ret_freed = freed + f.freed;
    return st;
}
