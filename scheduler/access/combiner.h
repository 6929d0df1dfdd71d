/*
 * Many submits, one transaction: while one commits, those that come meanwhile
 * queue and go together in the next. Nobody waits when nothing is under way.
 *
 * Callers that got their answer come back with their next submit a moment
 * later. Taking only those that came meanwhile would split a crowd in two
 * halves that take turns, each paying a whole commit; so the next transaction
 * gathers until as many are there as were before, at most for a quarter of the
 * time that the last one took.
 *
 * When the store's answer is not known, the same tasks are stored again under
 * the same ids, a few times, so that a commit that took effect is recognised;
 * then the submits fail as UNAVAILABLE. When a transaction is refused for good,
 * its submits are stored one by one, so that a bad one fails alone.
 *
 * Bounds: rows and bytes of a transaction, and of the queue (full: refused at
 * once). Ownership: items are the caller's and must stay until done is called.
 * Threads: push: any; the rest: combiner. Locks: its own, a leaf. Blocking:
 * step makes one store call.
 */
#ifndef TOC_SCHEDULER_ACCESS_COMBINER_H
#define TOC_SCHEDULER_ACCESS_COMBINER_H

#include "common/base/list.h"
#include "common/base/thread.h"
#include "common/clock/clock.h"
#include "common/store/store.h"
#include "scheduler/skew.h"

#include <stdbool.h>
#include <stdatomic.h>
#include <stddef.h>

#define SCHED_COMBINE_MAX 500

struct sched_submit_item;
/* Called once for each item, on the combiner's thread. */
typedef void sched_submit_done_fn(struct sched_submit_item *item);
/* Has the caller gone? Asked once, before the first try to store. */
typedef bool sched_submit_gone_fn(struct sched_submit_item *item);

struct sched_submit_item {
    struct toc_submit submit; /* submit.task points to task */
    struct toc_task task;
    sched_submit_done_fn *done;
    sched_submit_gone_fn *gone; /* NULL: never */
    void *arg;
    /* Out, when done is called: OK means that submit.result holds. */
    enum toc_status st;
    struct toc_error err;
    /* The combiner's. */
    struct toc_link link;
    size_t bytes;
};

struct sched_combiner_options {
    const struct toc_clock *clk;
    struct toc_store *store;
    struct sched_skew *skew; /* nothing is stored by a clock that is off; NULL:
                              * not looked at */
    size_t queue_rows_max;   /* 0: 20,000 */
    size_t queue_bytes_max;  /* 0: 64 MiB */
};

struct sched_combiner {
    struct sched_combiner_options opt;
    struct toc_bell bell;
    pthread_mutex_t lock; /* guards what follows */
    struct toc_link queue;
    size_t queued, queued_bytes;
    size_t wanted; /* gathering: so many ring the bell */
    bool closed;
    /* The combiner's thread only. */
    struct sched_submit_item *batch[SCHED_COMBINE_MAX];
    size_t n, at; /* those before at are done (one by one) */
    bool one_by_one;
    int64_t gather_until_ns;
    unsigned tries;
    int64_t retry_at_ns;
    _Atomic bool hurry; /* the process stops: no second try */
    bool failing;
    _Atomic uint64_t transactions, rows; /* since start, for tests and logs */
};

void sched_combiner_init(struct sched_combiner *combiner,
                         const struct sched_combiner_options *opt);
void sched_combiner_done(struct sched_combiner *combiner); /* must be idle */
/* All or none; false when they do not fit or it is closed. */
bool sched_combiner_push(struct sched_combiner *combiner,
                         struct sched_submit_item **items, size_t n);
/* No more pushes; what is queued is still stored. */
void sched_combiner_close(struct sched_combiner *combiner);
bool sched_combiner_idle(struct sched_combiner *combiner);
/* Returns when to step again (monotonic ns) unless the bell rings before. */
int64_t sched_combiner_step(struct sched_combiner *combiner);

#endif
