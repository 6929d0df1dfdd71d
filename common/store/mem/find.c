/*
 * Looking up: by key or id, all of a business id, timeline.
 */
#include "common/store/mem/store_mem_internal.h"

#include <stdlib.h>
#include <string.h>

#define LIST_MAX 1000
#define ENTRIES_MAX 1000

static bool
same_texts(const struct toc_find *find, const struct toc_task *task)
{
    return toc_str_eq(find->biz_type, task->biz_type) &&
           toc_str_eq(find->biz_id, task->biz_id) &&
           toc_str_eq(find->name, task->name);
}

static const struct toc_mem_row *
row_at(const struct toc_store_mem *store, const struct toc_task_ref *at)
{
    struct toc_mem_key key = toc_mem_key_ref(at);

    return toc_mem_map_get(&store->tables[TOC_MEM_TASK], &key);
}

/* Behind the key's window: the one that was last. */
static const struct toc_mem_row *
find_in_history(const struct toc_store_mem *store, const struct toc_find *find,
                struct toc_key_hash hash)
{
    const struct toc_mem_map *history = &store->tables[TOC_MEM_HISTORY];
    struct toc_mem_key from = toc_mem_key_hash(hash);
    struct toc_mem_place place = toc_mem_map_from(history, &from);
    const struct toc_mem_row *row, *last = NULL;

    while ((row = toc_mem_map_next(history, &place)) != NULL &&
           memcmp(&row->hash, &hash, sizeof hash) == 0) {
        const struct toc_mem_row *task = row_at(store, &row->at);
        if (task != NULL && same_texts(find, &task->task))
            last = task;
    }
    return last;
}

const struct toc_mem_row *
toc_mem_find(const struct toc_store_mem *store, const struct toc_find *find)
{
    const struct toc_mem_row *row;
    struct toc_key_hash hash;
    struct toc_mem_key key;

    if (find->by_id) {
        key = toc_mem_key_id(find->id);
        return toc_mem_map_get(&store->by_id, &key);
    }
    hash = toc_key_hash_of(find->biz_type, find->biz_id, find->name);
    key = toc_mem_key_hash(hash);
    row = toc_mem_map_get(&store->tables[TOC_MEM_KEY], &key);
    if (row != NULL)
        row = row_at(store, &row->at);
    if (row != NULL && same_texts(find, &row->task))
        return row;
    return find_in_history(store, find, hash);
}

enum toc_status
toc_mem_get(void *self, const struct toc_find *find, struct toc_arena *arena,
            struct toc_task *ret_task, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    const struct toc_mem_row *row = toc_mem_find(store, find);

    if (row == NULL)
        return toc_error_set(reterr, TOC_NOT_FOUND, NULL, 0, "no such task");
    toc_mem_task_out(row, false, arena, ret_task);
    return TOC_OK;
}

/* ---- all of a business id
 * ---------------------------------------------------- */

struct biz_list {
    const struct toc_store_mem *store;
    struct toc_str biz_type, biz_id;
    const struct toc_mem_row **rows;
    size_t n, cap;
};

static int
cmp_due(const void *a, const void *b)
{
    const struct toc_task *x = &(*(const struct toc_mem_row *const *)a)->task;
    const struct toc_task *y = &(*(const struct toc_mem_row *const *)b)->task;

    if (x->due_ms != y->due_ms)
        return x->due_ms < y->due_ms ? -1 : 1;
    return toc_task_id_cmp(x->id, y->id);
}

static int
cmp_live_due(const void *a, const void *b)
{
    bool x =
        toc_state_ended((*(const struct toc_mem_row *const *)a)->task.state);
    bool y =
        toc_state_ended((*(const struct toc_mem_row *const *)b)->task.state);

    return x != y ? (int)x - (int)y : cmp_due(a, b);
}

static void
add_biz(struct biz_list *list, const struct toc_mem_row *row)
{
    if (row == NULL || !toc_str_eq(row->task.biz_type, list->biz_type) ||
        !toc_str_eq(row->task.biz_id, list->biz_id))
        return;
    for (size_t i = 0; i < list->n; i++)
        if (list->rows[i] == row)
            return;
    if (list->n == list->cap) {
        list->cap = list->cap * 2 + 16;
        list->rows = toc_realloc(list->rows, list->cap * sizeof *list->rows);
    }
    list->rows[list->n++] = row;
}

/* The rows that a table of keys names, from the first key of the business id.
 */
static void
add_table(struct biz_list *list, enum toc_mem_table table, bool ended_only)
{
    const struct toc_mem_map *map = &list->store->tables[table];
    struct toc_key_hash first = toc_key_hash_biz(list->biz_type, list->biz_id);
    struct toc_mem_key from = toc_mem_key_hash(first);
    struct toc_mem_place place = toc_mem_map_from(map, &from);
    const struct toc_mem_row *row;

    while ((row = toc_mem_map_next(map, &place)) != NULL &&
           memcmp(row->hash.b, first.b, 6) == 0) {
        const struct toc_mem_row *task = row_at(list->store, &row->at);
        if (task != NULL && (!ended_only || toc_state_ended(task->task.state)))
            add_biz(list, task);
    }
}

void
toc_mem_list_biz_of(const struct toc_store_mem *store, struct toc_str biz_type,
                    struct toc_str biz_id, struct toc_arena *arena,
                    struct toc_task **ret_tasks, size_t *ret_n)
{
    struct biz_list list = {
        .store = store, .biz_type = biz_type, .biz_id = biz_id};

    add_table(&list, TOC_MEM_KEY, false);
    add_table(&list, TOC_MEM_HISTORY, true);
    if (list.n > 0)
        qsort(list.rows, list.n, sizeof *list.rows, cmp_live_due);
    if (list.n > LIST_MAX)
        list.n = LIST_MAX;
    if (list.n > 0)
        qsort(list.rows, list.n, sizeof *list.rows, cmp_due);
    *ret_tasks = toc_arena_calloc(arena, list.n + 1, sizeof **ret_tasks);
    *ret_n = list.n;
    for (size_t i = 0; i < list.n; i++)
        toc_mem_task_out(list.rows[i], true, arena, &(*ret_tasks)[i]);
    toc_free(list.rows);
}

enum toc_status
toc_mem_list_biz(void *self, struct toc_str biz_type, struct toc_str biz_id,
                 struct toc_arena *arena, struct toc_task **ret_tasks,
                 size_t *ret_n, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);

    (void)reterr;
    toc_mem_list_biz_of(store, biz_type, biz_id, arena, ret_tasks, ret_n);
    return TOC_OK;
}

/* ---- timeline
 * ------------------------------------------------------------------ */

enum toc_status
toc_mem_timeline(void *self, const struct toc_find *find,
                 struct toc_arena *arena, struct toc_task *ret_task,
                 struct toc_log_entry **ret_entries, size_t *ret_n,
                 struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    const struct toc_mem_map *logs = &store->tables[TOC_MEM_LOG];
    const struct toc_mem_row *row = toc_mem_find(store, find), *log;
    struct toc_log_entry *entries;
    struct toc_mem_place place;
    struct toc_mem_key from;
    size_t n = 0;

    if (row == NULL)
        return toc_error_set(reterr, TOC_NOT_FOUND, NULL, 0, "no such task");
    entries = toc_arena_calloc(arena, ENTRIES_MAX, sizeof *entries);
    from = toc_mem_key_log(row->task.id, 0);
    place = toc_mem_map_from(logs, &from);
    while (n < ENTRIES_MAX && (log = toc_mem_map_next(logs, &place)) != NULL &&
           toc_task_id_cmp(log->at.id, row->task.id) == 0) {
        entries[n] = log->entry;
        entries[n].who = toc_arena_str(arena, log->entry.who);
        entries[n].detail = toc_arena_str(arena, log->entry.detail);
        n++;
    }
    toc_mem_task_out(row, false, arena, ret_task);
    *ret_entries = entries;
    *ret_n = n;
    return TOC_OK;
}
