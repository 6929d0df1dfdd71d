/*
 * What the scheduler reads: rows about to be due, unfinished rows of the past,
 * recorded stragglers; and the mover of far rows.
 */
#include "common/store/mem/store_mem_internal.h"

/* Calls fn for the rows of a slice with from <= slot < to that it wants. */
typedef bool wants_fn(const struct toc_task *task);

static void
each_of_slice(const struct toc_store_mem *store, uint16_t slice,
              int64_t from_ms, int64_t to_ms, wants_fn *wants,
              toc_store_task_fn *fn, void *arg)
{
    const struct toc_mem_map *map = &store->tables[TOC_MEM_TASK];
    struct toc_mem_key from =
        toc_mem_key_place(slice, from_ms, (struct toc_task_id){{0}});
    struct toc_mem_place place = toc_mem_map_from(map, &from);
    const struct toc_mem_row *row;

    while ((row = toc_mem_map_next(map, &place)) != NULL &&
           row->task.slice == slice && row->task.slot_ms < to_ms) {
        struct toc_task task = toc_mem_task_hint(row);
        if (wants(&row->task))
            fn(arg, &task);
    }
}

static bool
unfinished(const struct toc_task *task)
{
    return !toc_state_ended(task->state);
}

#define SLICES (TOC_SHARDS * TOC_SLICES_PER_SHARD)

/* A slice that is named twice counts once. */
static bool
is_new(bool seen[SLICES], uint16_t slice)
{
    bool was = seen[slice % SLICES];

    seen[slice % SLICES] = true;
    return !was;
}

/* Rows in both spans come once. */
static void
load_slice(const struct toc_store_mem *store, uint16_t slice,
           const struct toc_slot_span *spans, size_t n_spans,
           toc_store_task_fn *fn, void *arg)
{
    struct toc_slot_span a = spans[0], b = spans[n_spans - 1];

    if (n_spans == 2 && b.after_ms < a.after_ms) {
        a = spans[1];
        b = spans[0];
    }
    if (n_spans == 2 && b.after_ms <= a.to_ms) {
        a.to_ms = a.to_ms > b.to_ms ? a.to_ms : b.to_ms;
        n_spans = 1;
    }
    each_of_slice(store, slice, a.after_ms + 1, a.to_ms + 1, toc_mem_task_waits,
                  fn, arg);
    if (n_spans == 2)
        each_of_slice(store, slice, b.after_ms + 1, b.to_ms + 1,
                      toc_mem_task_waits, fn, arg);
}

enum toc_status
toc_mem_load(void *self, const uint16_t *slices, size_t n,
             const struct toc_slot_span *spans, size_t n_spans,
             toc_store_task_fn *fn, void *arg, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    bool seen[SLICES] = {false};

    (void)reterr;
    for (size_t i = 0; i < n; i++)
        if (is_new(seen, slices[i]))
            load_slice(store, slices[i], spans, n_spans, fn, arg);
    return TOC_OK;
}

static int64_t
low_of(const struct toc_store_mem *store, uint16_t slice)
{
    struct toc_mem_key key = toc_mem_key_number(toc_slice_shard(slice));
    const struct toc_mem_row *row =
        toc_mem_map_get(&store->tables[TOC_MEM_SHARD], &key);

    return row != NULL ? row->shard.low_ms : 0;
}

enum toc_status
toc_mem_scan(void *self, const uint16_t *slices, size_t n, int64_t from_ms,
             int64_t to_ms, toc_store_task_fn *fn, void *arg,
             struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    bool seen[SLICES] = {false};

    (void)reterr;
    for (size_t i = 0; i < n; i++) {
        int64_t low_ms = low_of(store, slices[i]);
        if (is_new(seen, slices[i]))
            each_of_slice(store, slices[i], low_ms > from_ms ? low_ms : from_ms,
                          to_ms, unfinished, fn, arg);
    }
    return TOC_OK;
}

enum toc_status
toc_mem_scan_stragglers(void *self, const uint16_t *slices, size_t n,
                        toc_store_task_fn *fn, void *arg,
                        struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    struct toc_mem_txn txn = {.store = store};
    struct toc_mem_place place = {0, 0};
    const struct toc_mem_row *row, *task;
    bool named[SLICES] = {false};

    (void)reterr;
    for (size_t i = 0; i < n; i++)
        (void)is_new(named, slices[i]);
    while (TOC_MEM_EACH(store, TOC_MEM_STRAGGLER, row, place)) {
        task = named[row->at.slice % SLICES] ? toc_mem_task_at(&txn, &row->at)
                                             : NULL;
        if (task != NULL && unfinished(&task->task)) {
            struct toc_task hint = toc_mem_task_hint(task);
            fn(arg, &hint);
        }
    }
    return TOC_OK;
}

/* ---- far rows
 * ------------------------------------------------------------------ */

struct far_batch {
    struct toc_task_ref refs[TOC_MEM_ROWS_MAX];
    size_t n, max;
};

static void
take_far(void *arg, const struct toc_task *task)
{
    struct far_batch *batch = arg;

    if (batch->n < batch->max)
        batch->refs[batch->n++] = toc_task_ref_of(task);
}

/* Above the highest mark of all that move together. */
static enum toc_status
move_batch(struct toc_store_mem *store, const struct far_batch *batch,
           int64_t now_ms, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
    int64_t low_ms = INT64_MIN;

    for (size_t i = 0; i < batch->n; i++) {
        int64_t low =
            toc_mem_share_low(&txn, toc_slice_shard(batch->refs[i].slice));
        low_ms = low > low_ms ? low : low_ms;
    }
    for (size_t i = 0; i < batch->n; i++) {
        struct toc_mem_row *row = toc_mem_task_change(&txn, &batch->refs[i]);
        int64_t slot_ms = toc_slot_for_due(row->task.due_ms, now_ms);
        row->task.version++;
        toc_mem_task_move(&txn, row, toc_mem_slot_above(slot_ms, low_ms));
    }
    return toc_mem_commit(&txn, now_ms, reterr);
}

enum toc_status
toc_mem_move_far(void *self, const uint16_t *slices, size_t n, int64_t now_ms,
                 size_t max, size_t *ret_moved, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    TOC_AUTO_FREE struct far_batch *batch = TOC_NEW(struct far_batch);
    enum toc_status st = TOC_OK;
    size_t moved = 0;

    do {
        bool seen[SLICES] = {false};
        batch->n = 0;
        batch->max =
            max - moved < TOC_MEM_ROWS_MAX ? max - moved : TOC_MEM_ROWS_MAX;
        for (size_t i = 0; i < n && batch->n < batch->max; i++)
            if (is_new(seen, slices[i]))
                each_of_slice(store, slices[i], -TOC_PARK_FAR_MS,
                              now_ms + TOC_FAR_MOVE_MS - TOC_PARK_FAR_MS,
                              toc_mem_task_waits, take_far, batch);
        if (batch->n > 0)
            st = move_batch(store, batch, now_ms, reterr);
        moved += batch->n;
    } while (st == TOC_OK && batch->n > 0 && moved < max);
    if (st == TOC_OK)
        *ret_moved = moved;
    return st;
}
