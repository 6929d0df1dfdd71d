/*
 * A lane: a consumer, its partitions, and how its messages get to the core.
 *
 * Pressure: what is undecided is bounded. When much of the room is used, the
 * low topic is not fetched any more, then the normal one, at last core; each
 * resumes when there is room again. A few messages above the bound are what one
 * poll may bring.
 *
 * Who cannot claim leaves the group, so that others get the partitions.
 *
 * Threads: its own (the rebalance callback runs inside the consumer's poll).
 */
#ifndef TOC_EXECUTOR_LANE_H
#define TOC_EXECUTOR_LANE_H

#include "common/bus/bus.h"
#include "executor/core.h"
#include "executor/fitness.h"
#include "executor/intake.h"

/* Topics of a lane's consumer, most urgent first: the priorities. */
#define EXEC_TOPICS TOC_PRIORITIES

struct exec_assignment {
    struct exec_place place;
    bool ours;
};

struct exec_lane {
    uint16_t index;
    struct exec_core *core;
    struct toc_bus_consumer *consumer;
    const struct toc_clock *clock;
    size_t hints_max, messages_max;
    struct exec_intake intake;
    bool paused[EXEC_TOPICS];
    struct exec_fitness fitness;
    _Atomic bool away; /* out of the group; any thread reads */
    struct exec_assignment *assignments; /* one for each partition ever ours */
    size_t n, cap;
};

void exec_lane_init(struct exec_lane *lane, uint16_t index,
                    struct exec_core *core, struct exec_counters *counters,
                    size_t hints_max, size_t messages_max);
void exec_lane_done(struct exec_lane *lane);

/* The consumer's toc_bus_rebalance_fn; arg: the lane. */
void exec_lane_rebalance(void *arg, enum toc_bus_event_kind kind, int16_t topic,
                         int32_t partition, bool lost);

/* Marks what is decided, leaves or joins, pauses or resumes, polls once and
 * hands over. */
void exec_lane_step(struct exec_lane *lane);
/* Only the marks. */
void exec_lane_apply_marks(struct exec_lane *lane);

#endif
