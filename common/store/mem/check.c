/*
 * What must be true of everything stored, whatever was done. For the checkers
 * of tests and simulations.
 */
#include "common/store/mem/store_mem_internal.h"

struct checking {
    const struct toc_store_mem *store;
    struct toc_buf *out;
};

static void
broken(struct checking *c, const struct toc_task_ref *at, const char *what)
{
    char id[TOC_TASK_ID_TEXT_MAX];

    toc_buf_printf(c->out, "%s: slice %u, slot %lld, task %s\n", what,
                   at->slice, (long long)at->slot_ms,
                   toc_task_id_format(at->id, id));
}

static const struct toc_mem_row *
row_at(const struct checking *c, enum toc_mem_table table,
       struct toc_mem_key key)
{
    return toc_mem_map_get(&c->store->tables[table], &key);
}

/* Sweeps look from the mark on, and at what is recorded. */
static bool
is_lost(const struct checking *c, const struct toc_mem_row *row)
{
    const struct toc_task *task = &row->task;
    const struct toc_mem_row *mark = row_at(
        c, TOC_MEM_SHARD, toc_mem_key_number(toc_slice_shard(task->slice)));

    return !toc_slot_is_parked(task->slot_ms) &&
           task->slot_ms < mark->shard.low_ms &&
           row_at(c, TOC_MEM_STRAGGLER, toc_mem_key_of(row)) == NULL;
}

static bool
has_its_key(const struct checking *c, const struct toc_task *task)
{
    const struct toc_mem_row *key =
        row_at(c, TOC_MEM_KEY, toc_mem_key_hash(task->key_hash));

    return key != NULL && toc_task_id_cmp(key->at.id, task->id) == 0 &&
           key->at.slice == task->slice && key->at.slot_ms == task->slot_ms;
}

static void
check_task(struct checking *c, const struct toc_mem_row *row)
{
    const struct toc_task *task = &row->task;
    struct toc_task_ref at = toc_task_ref_of(task);
    bool ended = toc_state_ended(task->state);

    if (!ended && is_lost(c, row))
        broken(c, &at, "unfinished, behind its mark, not recorded");
    if (!ended && !has_its_key(c, task))
        broken(c, &at, "unfinished, and its key leads elsewhere");
    if (ended && toc_slot_is_parked(task->slot_ms))
        broken(c, &at, "ended, and parked");
    if ((task->state == TOC_STATE_EXECUTING) != (task->lock_token != 0))
        broken(c, &at, "a lock without execution, or the other way round");
}

static void
check_key(struct checking *c, const struct toc_mem_row *row)
{
    if (row_at(c, TOC_MEM_TASK, toc_mem_key_ref(&row->at)) == NULL)
        broken(c, &row->at, "a key that leads nowhere");
}

bool
toc_store_mem_check(struct toc_store_mem *self, struct toc_buf *out)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    struct checking c = {store, out};
    struct toc_mem_place place = {0, 0};
    size_t before = out->len;
    const struct toc_mem_row *row;

    while (TOC_MEM_EACH(store, TOC_MEM_TASK, row, place))
        check_task(&c, row);
    place = (struct toc_mem_place){0, 0};
    while (TOC_MEM_EACH(store, TOC_MEM_KEY, row, place))
        check_key(&c, row);
    return out->len == before;
}

void
toc_store_mem_lost(struct toc_store_mem *self, toc_store_task_fn *fn, void *arg)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    struct checking c = {store, NULL};
    struct toc_mem_place place = {0, 0};
    const struct toc_mem_row *row;

    while (TOC_MEM_EACH(store, TOC_MEM_TASK, row, place))
        if (!toc_state_ended(row->task.state) && is_lost(&c, row))
            fn(arg, &row->task);
}
