/*
 * What is known of each lane (a partition of a due topic): up to where this
 * process's hints are stored, and how far the executors have decided them.
 *
 * A mark (S, O) says "every hint of mine with a slot up to S was stored below
 * offset O". A row that still waits although the executors' committed offset
 * has reached the mark of its slot has lost its hint (or never had one), and
 * only such a row is hinted again: what merely waits in a backlog is not. What
 * is stored later than the mark of its slot (a second hint, a late row) raises
 * the lane's `again` offset, and rows are judged by the greater of both. Rows
 * that were due before a shard was taken over are judged by where the
 * partitions ended then: their hints, if any, were another's.
 *
 * All of it bounds cost; nothing is lost when it is wrong.
 *
 * Threads: any. Locks: its own, a leaf. Nothing blocks.
 */
#ifndef TOC_SCHEDULER_MARKS_H
#define TOC_SCHEDULER_MARKS_H

#include "common/model/key.h"
#include "common/model/slot.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHED_MARKS_MAX 128 /* per lane; half of them go when it is full */

struct sched_mark {
    int64_t slot_ms;
    int64_t offset; /* that of the next message */
};

struct sched_lane_marks {
    struct sched_mark marks[SCHED_MARKS_MAX]; /* both growing */
    size_t n;
    int64_t stored; /* offset after the last message stored */
    int64_t again;
    int64_t committed;   /* as last seen; -1: never */
    int64_t outstanding; /* hints sent and, as far as known, not decided */
    double per_message;  /* hints in a message, lately */
    double per_second;   /* hints decided, lately */
    int64_t measured, measured_ns; /* from this offset and time; 0: not yet */
};

struct sched_takeover {
    int64_t until_ms; /* rows up to here are judged by end; INT64_MIN: none */
    int64_t end[TOC_PRIORITIES]; /* -1: not known yet */
};

struct sched_marks {
    int32_t partitions;
    int64_t lag_max;                /* hints of a lane that may be undecided */
    pthread_mutex_t lock;           /* guards what follows */
    struct sched_lane_marks *lanes; /* priority * partitions + partition */
    struct sched_takeover taken[TOC_SHARDS];
};

void sched_marks_init(struct sched_marks *marks, int32_t partitions,
                      int64_t lag_max);
void sched_marks_done(struct sched_marks *marks);
size_t sched_marks_lanes(const struct sched_marks *marks);
int32_t sched_marks_partition(const struct sched_marks *marks, uint16_t shard);
size_t sched_marks_lane(const struct sched_marks *marks, uint16_t slice);

/* ---- the publisher tells ---------------------------------------------- */

void sched_marks_sent(struct sched_marks *marks, size_t lane, size_t hints);
void sched_marks_refused(struct sched_marks *marks, size_t lane, size_t hints);
/* A message was stored at offset; the least slot of its hints. */
void sched_marks_stored(struct sched_marks *marks, size_t lane, int64_t slot_ms,
                        size_t hints, int64_t offset);
/* Nothing with a slot up to slot_ms is unsent or under way. */
void sched_marks_reach(struct sched_marks *marks, size_t lane, int64_t slot_ms);
/* The clock shows now_ms: when it was set back, what was noted under later
 * times is forgotten, so that marks go on. */
void sched_marks_rewind(struct sched_marks *marks, int64_t now_ms);
/* May the lane send more, or are too many of its hints undecided? Those of a
 * backlog (late) may be as many as are decided in about 2 s, so that new ones
 * do not wait behind more. */
bool sched_marks_room(struct sched_marks *marks, size_t lane, bool late);

/* ---- what the executors have committed -------------------------------- */

/* Does any lane of the priority need a fresh look at it? */
bool sched_marks_wants_committed(struct sched_marks *marks,
                                 enum toc_priority priority);
void sched_marks_set_committed(struct sched_marks *marks,
                               enum toc_priority priority,
                               const int64_t *offsets, int64_t now_ns);

/* ---- is a row's hint decided? ------------------------------------------ */

void sched_marks_take_over(struct sched_marks *marks, uint16_t shard,
                           int64_t until_ms);
/* Does a row need the end offset at its shard's takeover, not known yet? */
bool sched_marks_wants_end(struct sched_marks *marks, uint16_t slice,
                           int64_t slot_ms);
void sched_marks_set_end(struct sched_marks *marks, uint16_t slice,
                         int64_t end);
/*
 * committed: the lane's. end: where the partition ends now, -1 when not asked.
 * A need beyond the end: the topic was made anew, so the hint is gone.
 */
bool sched_marks_passed(struct sched_marks *marks, uint16_t slice,
                        int64_t slot_ms, int64_t committed, int64_t end);

/* Where the lane's last stored message ends: an end that was read since then is
 * one that `end` above may be. */
int64_t sched_marks_stored_to(struct sched_marks *marks, uint16_t slice);

#endif
