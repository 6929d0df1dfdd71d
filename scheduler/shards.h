/*
 * Which shards are ours, as every thread of the process sees it, and whom the
 * others belong to.
 *
 * A shard that is ours has a generation, a number that was never used before:
 * what was loaded under an older one is not to be trusted any more. Nothing
 * rests on it being right (two owners, or none, cost time only).
 *
 * Threads: take, drop and the owners' addresses are written by the
 * coordination thread; anybody reads. Locks: its own, a leaf. Nothing blocks.
 */
#ifndef TOC_SCHEDULER_SHARDS_H
#define TOC_SCHEDULER_SHARDS_H

#include "common/clock/clock.h"
#include "common/coord/coord.h"
#include "common/model/key.h"
#include "common/model/slot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHED_SLICES (TOC_SHARDS * TOC_PRIORITIES) /* slices that are used */
#define SCHED_ADDRESS_MAX 256

struct sched_shards {
    const struct toc_clock *clk;
    struct toc_coord *coord; /* for the session's deadline */
    _Atomic uint32_t gen[TOC_SHARDS];
    _Atomic bool handing[TOC_SHARDS]; /* about to be given away */
    _Atomic uint32_t changes;         /* grows with every take and drop */
    _Atomic uint32_t owned;
    pthread_mutex_t lock; /* guards what follows */
    char address[TOC_SHARDS][SCHED_ADDRESS_MAX];
};

void sched_shards_init(struct sched_shards *shards,
                       const struct toc_clock *clk);
void sched_shards_done(struct sched_shards *shards);
/* The session comes later than who reads the table. Until then nothing is ours.
 * Before the threads that ask for live are started. */
void sched_shards_set_coord(struct sched_shards *shards,
                            struct toc_coord *coord);

void sched_shards_take(struct sched_shards *shards, uint16_t shard);
void sched_shards_drop(struct sched_shards *shards, uint16_t shard);
void sched_shards_drop_all(struct sched_shards *shards);
/* 0: not ours. */
uint32_t sched_shards_gen(struct sched_shards *shards, uint16_t shard);
/* Has our session's deadline not passed? Without it nothing is ours. */
bool sched_shards_live(struct sched_shards *shards);
size_t sched_shards_owned(struct sched_shards *shards);
/* The generations of all shards at one time. */
void sched_shards_snapshot(struct sched_shards *shards,
                           uint32_t ret_gen[TOC_SHARDS]);
/* Slices of the shards whose gen is not 0, core ones first. */
size_t sched_shards_slices(const uint32_t gen[TOC_SHARDS],
                           uint16_t ret_slices[SCHED_SLICES]);

/* Where the shard's owner is; an empty address: nobody, or not known. */
void sched_shards_set_owner(struct sched_shards *shards, uint16_t shard,
                            struct toc_str address);
bool sched_shards_owner(struct sched_shards *shards, uint16_t shard,
                        char ret_address[SCHED_ADDRESS_MAX]);

#endif
