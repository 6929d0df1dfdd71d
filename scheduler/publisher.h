/*
 * Sends hints to the bus just before they are due.
 *
 * It sleeps until the next send time (due less the lead), takes what is due
 * within the next few ms with it, and packs up to 256 hints for one lane (a
 * partition of a due topic; the topic is the priority's, the partition the
 * shard's) into a message. It never blocks: what the bus refuses waits in its
 * lane and is tried again; messages under way are bounded per lane, and so are
 * hints that the executors have not decided (marks), those of a backlog closer.
 * In a lane, what has become due just now and what is overdue take turns, so
 * that a backlog does not make new tasks late, and it goes oldest first.
 *
 * Threads: publisher, but sched_publisher_reported (the bus's report callback,
 * which comes inside toc_bus_poll on that same thread). Blocking: no.
 */
#ifndef TOC_SCHEDULER_PUBLISHER_H
#define TOC_SCHEDULER_PUBLISHER_H

#include "common/bus/bus.h"
#include "scheduler/marks.h"
#include "scheduler/memory.h"

#define SCHED_LEAD_MS_MAX 400 /* the wheel goes ahead of the clock with it */

struct sched_publisher_options {
    const struct toc_clock *clk;
    struct toc_bus *bus;
    struct sched_shards *shards;
    struct sched_memory *memory;
    struct sched_marks *marks;
    const char *const *topics; /* by priority */
    uint32_t node_id;
    int64_t lead_ms;
};

struct sched_lane {
    int32_t partition;
    const char *topic;
    struct toc_link fresh, late; /* entries: just due, overdue */
    size_t queued;
    int64_t queued_slot_ms;    /* none of the queued has a lesser slot */
    struct toc_link under_way; /* messages */
    size_t n_under_way;
    int64_t retry_at_ns; /* of the monotonic clock; after a refusal */
    int64_t backoff_ms;
    bool late_turn;
    size_t alone; /* the first so many go one by one: one of them is refused */
};

struct sched_publisher {
    struct sched_publisher_options opt;
    struct sched_lane *lanes;
    size_t queued, under_way; /* entries in lanes, messages */
    bool failing;             /* the bus refuses: said once */
    int64_t failing_since_ns;
    int64_t marked_ns;
    _Atomic uint64_t sent;          /* hints stored by the bus */
    _Atomic bool dirty[TOC_SHARDS]; /* hints were stored: the sweep clears it */
    struct toc_buf buf;
};

void sched_publisher_init(struct sched_publisher *publisher,
                          const struct sched_publisher_options *opt);
/* The bus must have reported every message. */
void sched_publisher_done(struct sched_publisher *publisher);
/* Returns when to step again (monotonic ns) unless the bell rings before. */
int64_t sched_publisher_step(struct sched_publisher *publisher);
void sched_publisher_reported(void *arg, void *opaque, enum toc_status st,
                              int64_t offset);

#endif
