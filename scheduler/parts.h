/*
 * The parts of a scheduler that find what is due and say so, put together: who
 * owns what, memory, loader, publisher, sweep and the rest. Each has a step;
 * whoever holds the parts decides when one is made: the runner's threads, or a
 * simulation.
 *
 * Ownership: ports and settings are lent. Threads: see each part.
 */
#ifndef TOC_SCHEDULER_PARTS_H
#define TOC_SCHEDULER_PARTS_H

#include "common/base/thread.h"
#include "scheduler/housekeep.h"
#include "scheduler/keeper.h"
#include "scheduler/lag.h"
#include "scheduler/loader.h"
#include "scheduler/publisher.h"
#include "scheduler/settings.h"
#include "scheduler/skew.h"
#include "scheduler/sweep.h"

struct sched_parts_options {
    const struct sched_settings *settings;
    const struct toc_clock *clk;
    struct toc_store *store;
    struct toc_bus *bus;
    int32_t partitions;        /* as the topics have */
    const char *const *topics; /* by priority */
    const char *group;         /* of the executors */
};

struct sched_parts {
    struct sched_parts_options opt;
    struct sched_shards shards;
    struct sched_memory memory;
    struct sched_marks marks;
    struct sched_publisher publisher;
    struct sched_loader loader;
    struct sched_sweep sweep;
    struct sched_lag lag;
    struct sched_housekeep house;
    struct sched_skew skew;
    struct sched_roster roster;
    struct sched_keeper keeper;
    /* Rung when there is something to do before the step's own time. */
    struct toc_bell publisher_bell, loader_bell, sweep_bell;
};

void sched_parts_init(struct sched_parts *parts,
                      const struct sched_parts_options *opt);
/* What it needs to own shards; before the coordination and the publisher begin
 * their steps. node_id: the store's number of this process. */
void sched_parts_join(struct sched_parts *parts, struct toc_coord *coord,
                      uint32_t node_id);
/* The bus must have reported every message. */
void sched_parts_done(struct sched_parts *parts);

#endif
