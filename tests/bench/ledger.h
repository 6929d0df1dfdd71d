/*
 * The tasks of a run, by number: when each was due, whether TOC has taken it,
 * and when and how often the business was called for it. And the business
 * itself: a handler that notes the arrival and answers done.
 *
 * Threads: any, by atomics; start and stop: main.
 */
#ifndef TOC_BENCH_LEDGER_H
#define TOC_BENCH_LEDGER_H

#include "common/base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entry {
    int64_t due_ms;
    _Atomic int64_t first_us; /* first arrival, wall clock; 0: none */
    _Atomic int64_t last_us;  /* latest one */
    atomic_uint times;
    atomic_bool acked; /* Submit was answered with success */
};

struct toc_handler;

struct ledger {
    struct entry *entries;
    size_t n;
    char run[16];            /* what this run's business ids begin with */
    atomic_size_t acked;     /* entries that are */
    atomic_size_t arrived;   /* entries that were called for at least once */
    atomic_size_t early;     /* calls before their due time */
    atomic_size_t strangers; /* calls for what is not ours */
    struct toc_handler *handler;
};

TOC_MUST_CHECK enum toc_status ledger_open(struct ledger *ledger, size_t n,
                                           struct toc_error *reterr);
void ledger_close(struct ledger *ledger);
const char *ledger_address(const struct ledger *ledger);

#define LEDGER_BIZ_TYPE "bench"
#define LEDGER_BIZ_ID_MAX 40
/* "<run>-<index>" */
void ledger_biz_id(const struct ledger *ledger, size_t index,
                   char ret_biz_id[LEDGER_BIZ_ID_MAX]);

#endif
