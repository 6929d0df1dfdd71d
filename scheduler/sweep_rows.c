/*
 * Rows: what a reading shows of each, kept until the next reading, and the
 * locks among them that have expired.
 */
#include "scheduler/sweep_internal.h"

#include "common/base/log.h"

#include <stdatomic.h>

static struct toc_str
keep(struct toc_arena *arena, struct toc_str s)
{
    return s.ptr == NULL || s.len == 0 ? s : toc_arena_str(arena, s);
}

static void
keep_task(struct sched_sweep *sweep, const struct toc_task *task,
          struct toc_task *out)
{
    *out = *task;
    out->error = (struct toc_str){NULL, 0};
    out->biz_type = keep(&sweep->arena, task->biz_type);
    out->biz_id = keep(&sweep->arena, task->biz_id);
    out->name = keep(&sweep->arena, task->name);
    out->spec = keep(&sweep->arena, task->spec);
    out->payload = keep(&sweep->arena, task->payload);
}

static void
look_at_waiting(struct sched_sweep *sweep, const struct toc_task *task)
{
    /* Not read yet: a backlog that waits in the store. */
    if (!sweep->takeover &&
        task->slot_ms > sched_loader_cursor(sweep->opt.loader))
        return;
    if (sweep->n_waiting < SCHED_CHUNK_ROWS &&
        !sched_memory_knows(sweep->opt.memory, task->id, task->version))
        keep_task(sweep, task, &sweep->waiting[sweep->n_waiting++]);
}

void
sched_sweep_look_at_row(void *arg, const struct toc_task *task)
{
    struct sched_sweep *sweep = arg;
    int64_t now_ms = sched_sweep_wall_ms(sweep);

    sweep->rows++;
    /* Its end is not seen here: the mark is to be looked at again. */
    atomic_store(&sweep->opt.publisher->dirty[toc_slice_shard(task->slice)],
                 true);
    if (task->slot_ms < now_ms - SCHED_SWEEP_STRAGGLER_MS)
        sweep->old[toc_slice_shard(task->slice)] = true;
    if (task->state == TOC_STATE_INIT || task->state == TOC_STATE_RETRY)
        look_at_waiting(sweep, task);
    else if (task->state == TOC_STATE_EXECUTING &&
             task->lock_until_ms < now_ms &&
             sweep->n_expired < SCHED_SWEEP_FREE_AT_ONCE)
        keep_task(sweep, task, &sweep->expired[sweep->n_expired++]);
}

void
sched_sweep_forget_rows(struct sched_sweep *sweep)
{
    toc_arena_reset(&sweep->arena);
    sweep->n_expired = sweep->n_waiting = sweep->rows = 0;
}

int64_t
sched_sweep_free_locks(struct sched_sweep *sweep)
{
    struct toc_error err = {0};
    size_t freed = 0;

    if (sched_sweep_may_write(sweep) &&
        toc_store_free_expired(sweep->opt.store, sweep->expired,
                               sweep->n_expired, sched_sweep_wall_ms(sweep),
                               &freed, &err) != TOC_OK)
        return sched_sweep_failed(sweep, "freeing expired locks", &err);
    if (freed > 0)
        TOC_LOG(WARN, "sweep.freed",
                F_MSG("locks had expired: their executors died or were slow"),
                F_UINT("tasks", freed));
    sweep->freed += freed;
    sweep->n_expired = 0;
    sweep->phase = sweep->after_free;
    return sched_sweep_mono_ns(sweep);
}
