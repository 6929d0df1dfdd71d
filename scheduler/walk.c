#include "scheduler/walk.h"

void
sched_walk_start(struct sched_walk *walk, int64_t from_ms, int64_t step_ms,
                 int64_t step_max_ms, size_t n_slices)
{
    walk->pos_ms = from_ms;
    walk->step_ms = step_ms;
    walk->step_max_ms = step_max_ms;
    sched_walk_restart(walk, n_slices);
}

void
sched_walk_restart(struct sched_walk *walk, size_t n_slices)
{
    walk->group = n_slices > 0 ? n_slices : 1;
    walk->at = 0;
}

bool
sched_walk_next(const struct sched_walk *walk, int64_t end_ms, size_t n_slices,
                struct sched_chunk *ret_chunk)
{
    int64_t width = end_ms - walk->pos_ms;

    if (width <= 0 || walk->at >= n_slices)
        return false;
    if (width > walk->step_ms)
        width = walk->step_ms;
    if (walk->at > 0) /* the rest of the slices, over the same time */
        width = walk->to_ms - walk->pos_ms;
    ret_chunk->after_ms = walk->pos_ms;
    ret_chunk->to_ms = walk->pos_ms + width;
    ret_chunk->first = walk->at;
    ret_chunk->n = n_slices - walk->at;
    if (ret_chunk->n > walk->group)
        ret_chunk->n = walk->group;
    return true;
}

static void
grow(struct sched_walk *walk, size_t n_slices)
{
    if (walk->group < n_slices)
        walk->group = walk->group * 2 < n_slices ? walk->group * 2 : n_slices;
    else if (walk->step_ms < walk->step_max_ms / 2)
        walk->step_ms *= 2;
    else
        walk->step_ms = walk->step_max_ms;
}

void
sched_walk_done(struct sched_walk *walk, const struct sched_chunk *chunk,
                size_t n_slices, size_t rows)
{
    bool all = chunk->first + chunk->n >= n_slices;

    walk->at = all ? 0 : chunk->first + chunk->n;
    walk->to_ms = chunk->to_ms;
    if (all)
        walk->pos_ms = chunk->to_ms;
    if (rows > SCHED_CHUNK_ROWS && all)
        (void)sched_walk_shrink(walk, chunk);
    else if (rows > SCHED_CHUNK_ROWS)
        walk->group = walk->group > 1 ? walk->group / 2 : 1;
    else if (rows < SCHED_CHUNK_ROWS_FEW && all)
        grow(walk, n_slices);
}

/* Inside a step whose first slices are done, the time must stay as it is. */
bool
sched_walk_shrink(struct sched_walk *walk, const struct sched_chunk *chunk)
{
    int64_t width = chunk->to_ms - chunk->after_ms;

    if (width > 1 && walk->at == 0) {
        walk->step_ms = width / 2;
        return true;
    }
    if (chunk->n == 1)
        return false;
    walk->group = chunk->n / 2;
    return true;
}
