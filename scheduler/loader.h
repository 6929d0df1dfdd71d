/*
 * Reads what is due next from the store into memory. It writes nothing.
 *
 * Once a second, in one statement for all slices that are ours: the band (slots
 * around now: what was lost on the way costs a second), and the fresh part
 * (from where it stands to now + 10 s). A shard newly ours is read at once, the
 * nearest 500 ms first; what was due before is the sweep's. When a part holds
 * more than memory has room for, it goes on in smaller pieces as room is made:
 * a backlog waits in the store. Far rows are moved into their day once a
 * minute. What cannot be read is left out and tried again by itself
 * (quarantine.h).
 *
 * Threads: loader; sched_loader_cursor: any. Blocking: store calls, at most one
 * a step.
 */
#ifndef TOC_SCHEDULER_LOADER_H
#define TOC_SCHEDULER_LOADER_H

#include "common/store/store.h"
#include "scheduler/bad_rows.h"
#include "scheduler/memory.h"
#include "scheduler/quarantine.h"
#include "scheduler/walk.h"

struct sched_loader_options {
    const struct toc_clock *clk;
    struct toc_store *store;
    struct sched_shards *shards;
    struct sched_memory *memory;
};

struct sched_loader {
    struct sched_loader_options opt;
    uint32_t gen[TOC_SHARDS];   /* as last seen */
    uint32_t known[TOC_SHARDS]; /* generation that has been read up to cursor */
    uint16_t slices[SCHED_SLICES];
    size_t n_slices;
    struct sched_walk fresh; /* its pos is the cursor */
    bool fresh_set;
    /* Shards newly ours. */
    uint32_t new_gen[TOC_SHARDS]; /* those being read; 0: not */
    uint16_t new_slices[SCHED_SLICES];
    size_t n_new;
    struct sched_walk new_walk;
    int64_t new_from_ms, new_end_ms;

    int64_t band_ns, far_ns; /* when due next */
    bool full;               /* memory was: said once */
    struct sched_walk band;  /* only its group: slices in one reading */
    int64_t loaded_ok_ns;    /* the last time the store answered */
    bool failing;
    struct sched_quarantine held;   /* what cannot be read */
    struct sched_bad_rows bad_rows; /* of every reader of the store */
    _Atomic int64_t cursor_ms;
};

/* The store outlives the loader. */
void sched_loader_init(struct sched_loader *loader,
                       const struct sched_loader_options *opt);
/* Returns when to step again (monotonic ns) unless the bell rings before. */
int64_t sched_loader_step(struct sched_loader *loader);
/* Rows with later slots may not have been read yet. */
int64_t sched_loader_cursor(struct sched_loader *loader);

#endif
