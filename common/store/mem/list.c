/*
 * Lists, a page at a time: tasks in the order of their places, dead letters the
 * newest first. A page looks at so many rows, whatever the filter lets through.
 */
#include "common/store/mem/store_mem_internal.h"

#include <stdlib.h>

#define EXAMINED_MAX 5000

/* ---- tasks
 * ---------------------------------------------------------------------- */

static bool
has_due(const struct toc_task_filter *f)
{
    return f->due_from_ms != 0 || f->due_to_ms != 0;
}

static bool
filters(const struct toc_task_filter *f)
{
    return f->biz_type.len > 0 || f->biz_id.len > 0 || f->state_mask != 0 ||
           has_due(f);
}

static bool
matches(const struct toc_task_filter *f, const struct toc_task *task)
{
    if (f->biz_type.len > 0 && !toc_str_eq(f->biz_type, task->biz_type))
        return false;
    if (f->biz_id.len > 0 && !toc_str_eq(f->biz_id, task->biz_id))
        return false;
    if (f->state_mask != 0 && (f->state_mask & 1u << task->state) == 0)
        return false;
    return !has_due(f) ||
           (task->due_ms >= f->due_from_ms && task->due_ms < f->due_to_ms);
}

static struct toc_task_ref
place_of(const struct toc_cursor *c)
{
    return (struct toc_task_ref){
        .slice = c->slice, .slot_ms = c->slot_ms, .id = c->id};
}

static void
set_cursor(struct toc_cursor *c, const struct toc_task *last)
{
    *c = (struct toc_cursor){.set = true,
                             .slice = last->slice,
                             .slot_ms = last->slot_ms,
                             .id = last->id};
}

static bool
is_after(const struct toc_cursor *c, const struct toc_task *task)
{
    struct toc_task_ref at = place_of(c), ref = toc_task_ref_of(task);

    return !c->set || toc_task_ref_cmp(&ref, &at) > 0;
}

/* The next page begins after the last match when this one is full, else after
 * the last row that it covers. */
static size_t
list_page(const struct toc_store_mem *store,
          const struct toc_task_filter *filter, size_t max,
          struct toc_cursor *cursor, struct toc_arena *arena,
          struct toc_task *tasks)
{
    const struct toc_mem_map *map = &store->tables[TOC_MEM_TASK];
    struct toc_task_ref after = place_of(cursor);
    struct toc_mem_key from = toc_mem_key_ref(&after);
    struct toc_mem_place place = {0, 0};
    size_t examined = filters(filter) ? EXAMINED_MAX : max, n = 0;
    struct toc_cursor begin = *cursor;
    const struct toc_mem_row *row;

    if (begin.set)
        place = toc_mem_map_from(map, &from);
    *cursor = (struct toc_cursor){.set = false};
    while ((row = toc_mem_map_next(map, &place)) != NULL) {
        if (!is_after(&begin, &row->task))
            continue;
        if (matches(filter, &row->task))
            toc_mem_task_out(row, true, arena, &tasks[n++]);
        if (--examined > 0 && n < max)
            continue;
        set_cursor(cursor, &row->task);
        break;
    }
    return n;
}

static int
cmp_place(const void *a, const void *b)
{
    struct toc_task_ref x = toc_task_ref_of(a), y = toc_task_ref_of(b);

    return toc_task_ref_cmp(&x, &y);
}

static size_t
list_by_biz(const struct toc_store_mem *store,
            const struct toc_task_filter *filter, size_t max,
            struct toc_cursor *cursor, struct toc_arena *arena,
            struct toc_task **ret_tasks)
{
    struct toc_task *tasks;
    size_t n, kept = 0;

    toc_mem_list_biz_of(store, filter->biz_type, filter->biz_id, arena, &tasks,
                        &n);
    for (size_t i = 0; i < n; i++)
        if (matches(filter, &tasks[i]) && is_after(cursor, &tasks[i]))
            tasks[kept++] = tasks[i];
    qsort(tasks, kept, sizeof *tasks, cmp_place);
    cursor->set = false;
    if (kept > max) {
        kept = max;
        set_cursor(cursor, &tasks[max - 1]);
    }
    *ret_tasks = tasks;
    return kept;
}

enum toc_status
toc_mem_list_tasks(void *self, const struct toc_task_filter *filter, size_t max,
                   struct toc_cursor *cursor, struct toc_arena *arena,
                   struct toc_task **ret_tasks, size_t *ret_n,
                   struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);

    (void)reterr;
    if (max > EXAMINED_MAX)
        max = EXAMINED_MAX;
    if (filter->biz_type.len > 0 && filter->biz_id.len > 0) {
        *ret_n = list_by_biz(store, filter, max, cursor, arena, ret_tasks);
        return TOC_OK;
    }
    *ret_tasks = toc_arena_calloc(arena, max, sizeof **ret_tasks);
    *ret_n = list_page(store, filter, max, cursor, arena, *ret_tasks);
    return TOC_OK;
}

/* ---- dead letters
 * --------------------------------------------------------------- */

/* The newest first, of one millisecond the highest id first. */
static int
cmp_dead(const void *a, const void *b)
{
    const struct toc_mem_row *x = *(const struct toc_mem_row *const *)a;
    const struct toc_mem_row *y = *(const struct toc_mem_row *const *)b;

    if (x->dead_ms != y->dead_ms)
        return x->dead_ms > y->dead_ms ? -1 : 1;
    return toc_task_id_cmp(y->task.id, x->task.id);
}

static bool
after_dead(const struct toc_cursor *c, const struct toc_mem_row *row)
{
    return !c->set || row->dead_ms < c->slot_ms ||
           (row->dead_ms == c->slot_ms &&
            toc_task_id_cmp(row->task.id, c->id) < 0);
}

/* What is looked at: by cursor, time, business id. */
static bool
is_looked_at(const struct toc_dead_filter *f, const struct toc_cursor *c,
             const struct toc_mem_row *row)
{
    bool has_time = f->dead_from_ms != 0 || f->dead_to_ms != 0;

    return after_dead(c, row) &&
           (!has_time || (row->dead_ms >= f->dead_from_ms &&
                          row->dead_ms < f->dead_to_ms)) &&
           (f->biz_id.len == 0 || toc_str_eq(f->biz_id, row->task.biz_id));
}

static bool
matches_dead(const struct toc_dead_filter *f, const struct toc_mem_row *row)
{
    return (f->biz_type.len == 0 ||
            toc_str_eq(f->biz_type, row->task.biz_type)) &&
           (f->reason.len == 0 || toc_str_eq(f->reason, row->reason));
}

static size_t
dead_page(const struct toc_mem_row **rows, size_t n_rows,
          const struct toc_dead_filter *filter, size_t max,
          struct toc_cursor *cursor, struct toc_arena *arena,
          struct toc_dead *dead)
{
    size_t examined =
        filter->biz_type.len > 0 || filter->reason.len > 0 ? EXAMINED_MAX : max;
    size_t n = 0;

    *cursor = (struct toc_cursor){.set = false};
    for (size_t i = 0; i < n_rows; i++) {
        if (matches_dead(filter, rows[i])) {
            toc_mem_task_out(rows[i], true, arena, &dead[n].task);
            dead[n].dead_ms = rows[i]->dead_ms;
            dead[n].reason = toc_arena_str(arena, rows[i]->reason);
            n++;
        }
        if (i + 1 < examined && n < max)
            continue;
        *cursor = (struct toc_cursor){
            .set = true, .slot_ms = rows[i]->dead_ms, .id = rows[i]->task.id};
        break;
    }
    return n;
}

enum toc_status
toc_mem_list_dead(void *self, const struct toc_dead_filter *filter, size_t max,
                  struct toc_cursor *cursor, struct toc_arena *arena,
                  struct toc_dead **ret_dead, size_t *ret_n,
                  struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    TOC_AUTO_FREE const struct toc_mem_row **rows = TOC_NEW_ARRAY(
        const struct toc_mem_row *, store->tables[TOC_MEM_DEAD].len + 1);
    struct toc_mem_place place = {0, 0};
    const struct toc_mem_row *row;
    size_t n = 0;

    (void)reterr;
    if (max > EXAMINED_MAX)
        max = EXAMINED_MAX;
    while (TOC_MEM_EACH(store, TOC_MEM_DEAD, row, place))
        if (is_looked_at(filter, cursor, row))
            rows[n++] = row;
    qsort(rows, n, sizeof *rows, cmp_dead);
    *ret_dead = toc_arena_calloc(arena, max, sizeof **ret_dead);
    *ret_n = dead_page(rows, n, filter, max, cursor, arena, *ret_dead);
    return TOC_OK;
}
