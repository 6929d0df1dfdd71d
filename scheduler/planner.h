/*
 * Carries out the plan: gathers the figures of all schedulers every 10 s, and
 * asks the node that is to take shards over to do so. Serves BalanceService,
 * by which the others do the same with us.
 *
 * The live scheduler with the least name plans; the others do nothing. There
 * may be two for a moment, or, while that one hangs, none: that costs a
 * needless move, or some time, so no key and no lease are spent on it.
 *
 * Threads: step: planner; handle and fit: any. Blocking: one call of at most
 * 500 ms a step.
 */
#ifndef TOC_SCHEDULER_PLANNER_H
#define TOC_SCHEDULER_PLANNER_H

#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "scheduler/load.h"
#include "scheduler/plan.h"
#include "scheduler/quarantine.h"
#include "scheduler/roster.h"

struct sched_planner_options {
    const struct toc_clock *clk;
    struct sched_roster *roster;
    struct sched_load *load;
    struct toc_rpc_client *rpc;
    const char *self; /* name of this node */
    /* Does this node serve as it should? One that cannot read its database
     * finds nothing to do and seems the emptiest: not fit, it has no figures to
     * tell and takes nothing. NULL: always. */
    bool (*fit)(void *arg);
    void *arg;
    struct sched_shards *shards; /* whose session must live, to plan; NULL: not
                                  * looked at */
    bool moves;                  /* false: it gathers and moves nothing */
    int64_t skew_ms;             /* how long a skew must last */
    /* What loader and sweep cannot read, to be told; NULL: nothing. */
    const struct sched_quarantine *held[2];
};

struct sched_planner {
    struct sched_planner_options opt;
    struct sched_plan plan;
    bool leading;     /* this node planned in the round before */
    uint64_t changes; /* of the roster, in that round */
    /* One round. */
    struct sched_roster_member *members;
    struct sched_plan_node *nodes;
    size_t n, at;
    int64_t next_round_ns;
    struct toc_arena arena; /* of one answer */
};

void sched_planner_init(struct sched_planner *planner,
                        const struct sched_planner_options *opt);
void sched_planner_done(struct sched_planner *planner);
int64_t sched_planner_step(struct sched_planner *planner);

/* The handler of toc.v1.BalanceService; self: struct sched_planner. */
void sched_planner_handle(void *self, unsigned method,
                          const ProtobufCMessage *request,
                          struct toc_rpc_call *call);

#endif
