/*
 * Which shards should move to another node because of load: one move at most.
 *
 * A node gives shards away when, in this order,
 *
 *   load:  its load is above 80 %;
 *   level: its level is above 85 %: what is due on its shards in the next
 *          10 min over what it can send in 10 min;
 *   skew:  the standard deviation of the nodes' levels over their mean has been
 *          above 0.65 for 3 min (a setting); the fullest node gives to the
 *          emptiest.
 *
 * Then the fewest shards that bring it 10 points below that bound move, as far
 * as the node that takes them stays 10 points below the bounds, too, and does
 * not become the fuller one. What cannot be brought below is relieved as far as
 * goes; less than 2 points are not worth a move. One move in 30 s, none while
 * the cluster has little to do, and none for 30 s after a node came or went
 * (rendezvous hashing is at work then).
 *
 * With rendezvous hashing the shards of a node are no run of numbers, so that
 * all that a node owns is taken as its one range. A shard is never divided: a
 * single one hotter than everything stays where it is, and the others leave.
 *
 * Load is taken to be made by the shards in proportion to their volume. Where
 * it is not (the node takes most of the submits, say), shards leave it until
 * few are left, and then it stays so.
 *
 * Pure. Threads: planner.
 */
#ifndef TOC_SCHEDULER_PLAN_H
#define TOC_SCHEDULER_PLAN_H

#include "common/model/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHED_PLAN_LOAD_MAX 0.80
#define SCHED_PLAN_LEVEL_MAX 0.85
#define SCHED_PLAN_SKEW_MAX 0.65
#define SCHED_PLAN_BACK 0.10  /* hysteresis */
#define SCHED_PLAN_WORTH 0.02 /* a lesser change is no move */
/* Rows due in 10 min on all nodes together, below which nothing moves: 50 a
 * second, which any one node does besides. */
#define SCHED_PLAN_VOLUME_MIN 30000.0
#define SCHED_PLAN_PAUSE_MS 30000 /* between moves */
#define SCHED_PLAN_SHARDS_MAX 64  /* in one move */

enum sched_plan_why {
    SCHED_PLAN_LOAD,
    SCHED_PLAN_LEVEL,
    SCHED_PLAN_SKEW,
};

struct sched_plan_node {
    bool known; /* it told its figures; else it gives and takes nothing */
    double load;
    double capacity; /* rows in 10 min; above 0 */
    size_t n_shards;
    uint16_t shards[TOC_SHARDS];
    double volumes[TOC_SHARDS]; /* rows due in 10 min */
    double volume, level;       /* set by the plan */
};

struct sched_plan_move {
    enum sched_plan_why why;
    double value; /* what is too high */
    size_t from, to;
    size_t n;
    uint16_t shards[SCHED_PLAN_SHARDS_MAX];
    double volume; /* that moves */
};

struct sched_plan {
    int64_t skew_ns;  /* how long a skew must last */
    int64_t pause_ns; /* between moves */
    int64_t quiet_until_ns;
    bool skewed;
    int64_t skewed_since_ns;
};

/* pause: SCHED_PLAN_PAUSE_MS, or the time for skew if that is shorter. */
void sched_plan_init(struct sched_plan *plan, int64_t skew_ms);
/* The planner is new, or another set of nodes is there: all begins anew. */
void sched_plan_restart(struct sched_plan *plan, int64_t now_ns);
/* True: *ret_move is to be made. */
bool sched_plan_step(struct sched_plan *plan, struct sched_plan_node *nodes,
                     size_t n, int64_t now_ns,
                     struct sched_plan_move *ret_move);
const char *sched_plan_why_text(enum sched_plan_why why);

#endif
