/*
 * The results combiner: writes attempts back.
 *
 * At a low rate each result is written at once; at a higher one they gather for
 * up to GATHER_MS_MAX, so that a transaction holds about GATHER_N of them. What
 * comes while one transaction commits goes into the next. An attempt whose call
 * may still run is held until it cannot any more (write_from_ns).
 *
 * A store that fails changes nothing: the batch is kept and written again. And
 * whether it fails or is only slow, locks of what waits that end soon are
 * prolonged, first in line, or successful calls would repeat. Renewals and
 * writes take turns: however many locks end, results get written.
 *
 * Ownership: attempts posted to the inbox are its own; it frees them. Threads:
 * results; the inbox any. Blocking: the store's renew and finish, at most one
 * of them in a step.
 */
#ifndef TOC_EXECUTOR_RESULTS_H
#define TOC_EXECUTOR_RESULTS_H

#include "executor/core.h"
#include "executor/pace.h"

#define EXEC_RESULTS_MAX 256   /* of one transaction */
#define EXEC_RENEWALS_MAX 2048 /* before one transaction */

struct exec_results_options {
    const struct toc_clock *clock;
    struct toc_store *store;
    struct exec_counters *counters;
    struct exec_core *core; /* is told of each attempt that is gone */
};

struct exec_renewal {
    struct exec_attempt *attempts[EXEC_RENEWALS_MAX];
    struct toc_task_ref refs[EXEC_RENEWALS_MAX];
    uint64_t tokens[EXEC_RENEWALS_MAX];
    size_t n;
};

struct exec_results {
    struct exec_results_options options;
    struct exec_inbox inbox; /* any thread posts attempts */

    struct toc_heap held;    /* attempts, by write_from_ns */
    struct toc_link waiting; /* attempts */
    size_t n_waiting;
    int64_t first_end_ms; /* no lock of these ends before */
    int64_t oldest_ns;    /* when the first of them came */
    /* Rate of arrival, measured over slices of RATE_MS. */
    struct exec_pace pace;

    struct exec_attempt *batch[EXEC_RESULTS_MAX];
    size_t n;
    bool alone; /* what waits is written one by one: a batch was refused */
    unsigned failures;
    int64_t retry_ns;
    int64_t took_ms; /* the last call of the store */
    bool renewed;    /* by the last step: now a write */
    struct exec_renewal renewal;

    _Atomic bool hurry; /* no gathering any more; any thread sets it */
};

void exec_results_init(struct exec_results *results);
/* Gives up what is left, logged. */
void exec_results_done(struct exec_results *results);
int64_t exec_results_step(struct exec_results *results);

#endif
