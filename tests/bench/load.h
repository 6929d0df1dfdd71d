/*
 * The load: Submit or BatchSubmit calls, by so many callers that each send the
 * next when the last was answered, or at a given rate.
 *
 * Threads: load_run from main, which it blocks; callers run on the gRPC
 * client's threads.
 */
#ifndef TOC_BENCH_LOAD_H
#define TOC_BENCH_LOAD_H

#include "tests/bench/ledger.h"
#include "tests/bench/report.h"

#include <stddef.h>
#include <stdint.h>

struct load;

/* When the task is due; called right before it is sent. */
typedef int64_t load_due_fn(void *arg, size_t index, int64_t now_ms);
/* Which scheduler takes it, of unary calls. */
typedef const char *load_address_fn(void *arg, size_t index);

struct load_plan {
    const char *const *schedulers;
    size_t n_schedulers;
    struct ledger *ledger; /* whose tasks; and whom TOC is to call */
    size_t first, end;     /* indexes of the tasks */
    size_t callers;
    size_t batch;          /* tasks a call; 0: unary Submit */
    int64_t rate;          /* tasks a second; 0: as fast as answers come */
    int64_t seconds;       /* no new call after it; 0: until end */
    uint32_t target_batch; /* what TOC may put into one call; 0: unary */
    size_t payload;        /* bytes */
    load_due_fn *due;
    load_address_fn *address; /* NULL: in turn */
    void *arg;
};

struct load_result {
    size_t sent, acked, failed, retried;
    double seconds;
    struct samples latency; /* of calls; the caller's to free */
    char error[240];        /* one of the failures */
};

void load_run(const struct load_plan *plan, struct load_result *ret_result);

#endif
