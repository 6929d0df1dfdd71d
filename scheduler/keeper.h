/*
 * Carries out what the owner state machine decides, against the coordination
 * port: claims, hand-overs, releases, wishes, and the orderly leave at the end.
 * While the clock is off nothing is ours, once that has lasted for two seconds:
 * a hiccup of its measuring moves no shard.
 *
 * Threads: coordination. Blocking: coord calls, and poll up to its timeout.
 */
#ifndef TOC_SCHEDULER_KEEPER_H
#define TOC_SCHEDULER_KEEPER_H

#include "scheduler/memory.h"
#include "scheduler/owner.h"
#include "scheduler/roster.h"
#include "scheduler/skew.h"

struct sched_keeper {
    const struct toc_clock *clk;
    struct toc_coord *coord;
    struct sched_shards *shards;
    struct sched_memory *memory;
    struct sched_roster *roster;
    struct sched_skew *skew;    /* NULL: the clock is not looked at */
    void (*changed)(void *arg); /* shards were taken or dropped */
    void *arg;

    struct sched_owner owner;
    int64_t hand_until_ms; /* what is due by then is sent ahead */
    bool failing;
    bool off; /* the clock is, */
    int64_t off_since_ns;
    _Atomic bool session; /* there was one */
};

void sched_keeper_init(struct sched_keeper *keeper, struct toc_str node);
/* One poll, then all that is to be done; blocks up to max_ms. */
void sched_keeper_turn(struct sched_keeper *keeper, int64_t max_ms);
/* Sends ahead what is due soon, bounded in time, and gives everything up. */
void sched_keeper_leave(struct sched_keeper *keeper);

#endif
