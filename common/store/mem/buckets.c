/*
 * Counts of the rows that lie in a range of time, all of them in one call.
 */
#include "common/store/mem/store_mem_internal.h"

#include <stdlib.h>

struct found {
    const struct toc_task **tasks;
    size_t n;
};

static void
gather_slice(const struct toc_store_mem *store, uint16_t slice,
             const struct toc_bucket_query *q, struct found *found)
{
    const struct toc_mem_map *map = &store->tables[TOC_MEM_TASK];
    struct toc_mem_key from =
        toc_mem_key_place(slice, q->from_ms, (struct toc_task_id){{0}});
    struct toc_mem_place place = toc_mem_map_from(map, &from);
    const struct toc_mem_row *row;

    while ((row = toc_mem_map_next(map, &place)) != NULL &&
           row->task.slice == slice && row->task.slot_ms < q->to_ms)
        if (q->biz_type.len == 0 || toc_str_eq(q->biz_type, row->task.biz_type))
            found->tasks[found->n++] = &row->task;
}

static int
cmp_slot(const void *a, const void *b)
{
    const struct toc_task *x = *(const struct toc_task *const *)a;
    const struct toc_task *y = *(const struct toc_task *const *)b;

    return (x->slot_ms > y->slot_ms) - (x->slot_ms < y->slot_ms);
}

static int
cmp_count(const void *a, const void *b)
{
    const struct toc_bucket_count *x = a, *y = b;

    if (x->start_ms != y->start_ms)
        return x->start_ms < y->start_ms ? -1 : 1;
    return toc_str_cmp(x->biz_type, y->biz_type);
}

/* The count of the task's bucket and type: among those of its bucket, which
 * are the last ones. */
static struct toc_bucket_count *
count_of(const struct toc_task *task, int64_t start_ms, struct toc_arena *arena,
         struct toc_bucket_count *counts, size_t *n)
{
    for (size_t i = *n; i > 0 && counts[i - 1].start_ms == start_ms; i--)
        if (toc_str_eq(counts[i - 1].biz_type, task->biz_type))
            return &counts[i - 1];
    counts[*n] = (struct toc_bucket_count){
        .start_ms = start_ms, .biz_type = toc_arena_str(arena, task->biz_type)};
    return &counts[(*n)++];
}

enum toc_status
toc_mem_count_buckets(void *self, const struct toc_bucket_query *query,
                      struct toc_cursor *cursor, struct toc_arena *arena,
                      struct toc_bucket_count **ret_counts, size_t *ret_n,
                      struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    TOC_AUTO_FREE const struct toc_task **tasks = TOC_NEW_ARRAY(
        const struct toc_task *, store->tables[TOC_MEM_TASK].len + 1);
    struct found found = {.tasks = tasks};

    (void)reterr;
    for (unsigned shard = 0; shard < TOC_SHARDS; shard++)
        for (unsigned prio = 0; prio < TOC_PRIORITIES; prio++)
            gather_slice(store, (uint16_t)(shard * TOC_SLICES_PER_SHARD + prio),
                         query, &found);
    qsort(tasks, found.n, sizeof *tasks, cmp_slot);
    *ret_counts = toc_arena_calloc(arena, found.n + 1, sizeof **ret_counts);
    *ret_n = 0;
    for (size_t i = 0; i < found.n; i++) {
        int64_t start_ms =
            tasks[i]->slot_ms - tasks[i]->slot_ms % query->width_ms;
        count_of(tasks[i], start_ms, arena, *ret_counts, ret_n)
            ->n[tasks[i]->state]++;
    }
    qsort(*ret_counts, *ret_n, sizeof **ret_counts, cmp_count);
    cursor->set = false;
    return TOC_OK;
}
