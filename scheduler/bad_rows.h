/*
 * Rows that make no sense (store.h): each is said once, not with every reading,
 * and again only after it was not met for a while. They are read again and
 * again, so one that is mended in place simply fires.
 *
 * Bounds: SCHED_BAD_ROWS_MAX are remembered; of more only how many are met is
 * said, once. Threads: any (loader, sweep, workers). Locks: its own, a leaf.
 */
#ifndef TOC_SCHEDULER_BAD_ROWS_H
#define TOC_SCHEDULER_BAD_ROWS_H

#include "common/clock/clock.h"
#include "common/store/store.h"

#include <pthread.h>

#define SCHED_BAD_ROWS_MAX 256

struct sched_bad_rows {
    const struct toc_clock *clk;
    pthread_mutex_t lock; /* guards what follows */
    struct {
        uint16_t slice;
        int64_t slot_ms;
        struct toc_task_id id;
        int64_t seen_ns;
    } rows[SCHED_BAD_ROWS_MAX];
    size_t n;
    bool full; /* said */
};

/* The store tells of them from now on. */
void sched_bad_rows_init(struct sched_bad_rows *bad,
                         const struct toc_clock *clk, struct toc_store *store);
/* How many were met lately. */
size_t sched_bad_rows_count(struct sched_bad_rows *bad);

#endif
