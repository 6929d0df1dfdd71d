/*
 * Call slots, and who may have one.
 *
 * Two limits: calls_max of the process and target_max of each target. A third
 * keeps a hanging target from taking what others need: a target may have no
 * more calls under way than there are slots left (the dynamic threshold of
 * Choudhury and Hahne, "Dynamic queue length thresholds", 1998, with factor 1).
 * So k hanging targets together leave 1 / (k + 1) of all slots free, and alone
 * a target gets up to half of them.
 *
 * Hints of a full target wait in queues of their own, most urgent priority
 * first, fresh and late ones by turns. Nobody else may wait for them. So up to
 * queue_max of them are kept: decided after KEEP_MS, which lets the offsets of
 * their messages pass, while they stay in the queue. What goes beyond depends:
 *
 * - A target that is slow (its queue would take over SLOW_S to work off) keeps
 *   no more than that: the newest of its least urgent hints are dropped. They
 *   count as decided, and the sweep hints their tasks again. That costs time,
 *   never a call; to give a row back is not needed, it was not claimed.
 * - For one that is merely busy they wait undecided, for HOLD_MS at most, which
 *   makes the schedulers hold its backlog back. To drop them at once would make
 *   the schedulers send it over and over. A share of the memory that is left
 *   (the same dynamic threshold) bounds its queue.
 *
 * Ownership: targets exist while a hint or a call refers to them. Threads:
 * core.
 */
#ifndef TOC_EXECUTOR_TARGETS_H
#define TOC_EXECUTOR_TARGETS_H

#include "executor/item.h"

struct exec_target {
    struct toc_hnode hnode;
    struct toc_link link; /* among the crowded, while something is queued */
    struct toc_link queue[TOC_PRIORITIES][EXEC_AGES];
    enum exec_age turn;
    size_t queued;
    size_t kept;        /* of them: decided already */
    size_t in_flight;   /* calls under way, and slots kept for claims */
    size_t users;       /* hints and calls that refer to it */
    int64_t crowded_ns; /* since when something is queued */
    /* Fires that ended, over slices of a second. */
    int64_t slice_ns;
    uint64_t slice_n, per_sec;
    /* Fires that may join the batch call a slot is kept for, in this round. */
    uint64_t ride_round;
    size_t ride_left;
    int64_t ride_timeout_ms;
    struct toc_str text;
};

struct exec_targets {
    struct toc_hmap known;
    struct toc_link crowded;
    struct toc_link undecided; /* queued hints, by look_ns */
    size_t calls_max, target_max, queue_max;
    size_t in_flight;
    size_t queued;
    uint64_t round;
};

void exec_targets_init(struct exec_targets *targets, size_t calls_max,
                       size_t target_max, size_t queue_max);
void exec_targets_done(struct exec_targets *targets); /* nobody refers to any */

/* A new round of gathering: batch calls begin anew. */
void exec_targets_begin_round(struct exec_targets *targets);
bool exec_targets_full(const struct exec_targets *targets);

/* The hint is due: keeps a slot for it (or a place in a batch call) and returns
 * true, or leaves it to be queued. item->to is its target from now on. */
bool exec_targets_admit(struct exec_targets *targets, struct exec_item *item);
/* After admit said no. room: hints that memory has room for. Returns the hint
 * that had to go, or NULL; it refers to no target any more. */
struct exec_item *exec_targets_queue(struct exec_targets *targets,
                                     struct exec_item *item, size_t room,
                                     int64_t now_ns);
/* A queued hint whose target has a slot now, with the slot; targets take
 * turns. NULL: none. */
struct exec_item *exec_targets_pop(struct exec_targets *targets,
                                   enum toc_priority priority, int64_t now_ms);
/* A queued hint that has waited for long and is to be decided. Either it is
 * kept from now on, or (to is NULL) it has left its queue and is to be
 * dropped. NULL: none. */
struct exec_item *exec_targets_overdue(struct exec_targets *targets,
                                       int64_t now_ns);
/* When to ask for the next; INT64_MAX: none waits. */
int64_t exec_targets_overdue_ns(const struct exec_targets *targets);
/* The hint leaves its queue, or gives its slot back, and its target. */
void exec_targets_leave(struct exec_targets *targets, struct exec_item *item);

void exec_targets_call_begun(struct exec_targets *targets,
                             struct exec_target *target);
/* A call ended, with so many fires; 0: it was not made. */
void exec_targets_measure(struct exec_target *target, size_t fires,
                          int64_t now_ns);
/* The slot of a call that was begun: nobody may be at work for it any more. */
void exec_targets_slot_free(struct exec_targets *targets,
                            struct exec_target *target);

#endif
