/*
 * A walk over (time, slices) in bounded chunks: so many ms at a time, and when
 * a single ms holds too much, so many slices at a time. Chunks shrink when one
 * brings too much and grow again when they bring little.
 *
 * Threads: one at a time. Pure.
 */
#ifndef TOC_SCHEDULER_WALK_H
#define TOC_SCHEDULER_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sched_walk {
    int64_t pos_ms;  /* everything up to here is done */
    int64_t step_ms; /* width of the next chunk */
    int64_t step_max_ms;
    size_t group;  /* slices in a chunk */
    size_t at;     /* slices before this one are done for the present step */
    int64_t to_ms; /* where the present step ends, while at > 0 */
};

struct sched_chunk {
    int64_t after_ms, to_ms; /* (after, to] */
    size_t first, n;         /* of the slices */
};

/* rows: what a chunk should bring at most. */
#define SCHED_CHUNK_ROWS 20000
#define SCHED_CHUNK_ROWS_FEW 4000

void sched_walk_start(struct sched_walk *walk, int64_t from_ms, int64_t step_ms,
                      int64_t step_max_ms, size_t n_slices);
/* The set of slices changed: the present step begins anew. */
void sched_walk_restart(struct sched_walk *walk, size_t n_slices);
/* The next chunk up to end_ms; false when all is done. */
bool sched_walk_next(const struct sched_walk *walk, int64_t end_ms,
                     size_t n_slices, struct sched_chunk *ret_chunk);
/* The chunk was read to its end, and brought so many rows. */
void sched_walk_done(struct sched_walk *walk, const struct sched_chunk *chunk,
                     size_t n_slices, size_t rows);
/* It brought more than could be taken: to be read again, in smaller pieces.
 * False when it cannot be made smaller. */
bool sched_walk_shrink(struct sched_walk *walk,
                       const struct sched_chunk *chunk);

#endif
