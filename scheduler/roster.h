/*
 * What the coordination thread and the planner tell each other: which
 * schedulers live and where, and which shards this node has been asked to want.
 *
 * Threads: any. Locks: its own, a leaf. Nothing blocks.
 */
#ifndef TOC_SCHEDULER_ROSTER_H
#define TOC_SCHEDULER_ROSTER_H

#include "scheduler/owner.h"
#include "scheduler/shards.h"

#include <pthread.h>

struct sched_roster_member {
    char name[SCHED_NODE_NAME_MAX];
    char address[SCHED_ADDRESS_MAX];
};

struct sched_roster {
    pthread_mutex_t lock; /* guards what follows */
    struct sched_roster_member members[SCHED_MEMBERS_MAX];
    size_t n;
    uint64_t changes; /* of who is there */
    bool asked[TOC_SHARDS];
    struct toc_coord *coord; /* to be woken; NULL: nobody polls yet */
};

void sched_roster_init(struct sched_roster *roster);
void sched_roster_done(struct sched_roster *roster);
/* Before the coordination thread starts. */
void sched_roster_set_coord(struct sched_roster *roster,
                            struct toc_coord *coord);

/* Thread: coordination. */
void sched_roster_event(struct sched_roster *roster,
                        const struct toc_coord_event *event);
/* The shards asked for since the last time; returns how many. */
size_t sched_roster_take_asked(struct sched_roster *roster,
                               uint16_t ret_shards[TOC_SHARDS]);

/* This node is to want the shards; false: it has no session to do so yet. */
bool sched_roster_ask(struct sched_roster *roster, const uint16_t *shards,
                      size_t n);
/* Copies who is there, by name in rising order; returns how many. */
size_t sched_roster_list(
    struct sched_roster *roster,
    struct sched_roster_member ret_members[SCHED_MEMBERS_MAX],
    uint64_t *ret_changes);

#endif
