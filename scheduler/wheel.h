/*
 * Timing wheel with one slot per millisecond: which entries come next.
 *
 * Two turns cannot be mixed up: only entries within one turn of the wheel's
 * base stand in slots, later ones wait in a list of their own until the base
 * has come close. The base goes back by up to a second for an entry that is
 * earlier; still earlier ones stand there in the order in which they came.
 * Times are wall clock ms; a clock that was set back by more makes the wheel be
 * built anew (sched_wheel_rewind).
 *
 * Ownership: the wheel owns only its slots. Threads: one at a time. O(1) but
 * for rewind and for the late list.
 */
#ifndef TOC_SCHEDULER_WHEEL_H
#define TOC_SCHEDULER_WHEEL_H

#include "common/base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Over the look-ahead of 10 s; a power of two. */
#define SCHED_WHEEL_SLOTS 16384
#define SCHED_WHEEL_BACK 1024 /* so far the base may go back */

/* Embedded in the entry. */
struct sched_wheel_node {
    struct toc_link link;
    int64_t at_ms;
};

struct sched_wheel {
    int64_t base_ms; /* no entry stands in an earlier slot */
    int64_t top_ms;  /* the latest base: slots reach to a turn less BACK on */
    size_t len;
    struct toc_link *slots;
    uint64_t *bits;       /* one per slot: not empty */
    struct toc_link late; /* beyond the slots */
    int64_t late_min_ms;  /* none of late is earlier */
};

void sched_wheel_init(struct sched_wheel *wheel, int64_t now_ms);
void sched_wheel_done(struct sched_wheel *wheel); /* must be empty */
void sched_wheel_insert(struct sched_wheel *wheel,
                        struct sched_wheel_node *node, int64_t at_ms);
void sched_wheel_remove(struct sched_wheel *wheel,
                        struct sched_wheel_node *node);
/* The earliest entry if it is at until_ms or before, taken out; else NULL. */
struct sched_wheel_node *sched_wheel_pop(struct sched_wheel *wheel,
                                         int64_t until_ms);
/* When the earliest entry is, or a little before; INT64_MAX: empty. */
int64_t sched_wheel_next(const struct sched_wheel *wheel);
/* Says that the clock shows now_ms: when it was set back by a second or so,
 * every entry is placed anew. */
void sched_wheel_rewind(struct sched_wheel *wheel, int64_t now_ms);

#endif
