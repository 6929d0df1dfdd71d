/*
 * Looks once a second whether the store answers, and whether its clock agrees
 * with ours. With clocks apart nothing good comes of a hint: one that is due
 * seems far ahead, or its claim is refused as early again and again.
 *
 * Threads: its own. Blocking: the store's now.
 */
#ifndef TOC_EXECUTOR_PROBE_H
#define TOC_EXECUTOR_PROBE_H

#include "executor/core.h"

#define EXEC_SKEW_MS_MAX 1000

struct exec_probe {
    const struct toc_clock *clock;
    struct toc_store *store;
    struct exec_core *core; /* is told */
};

/* The store's clock less ours; the reading's own duration counts for us. */
TOC_MUST_CHECK enum toc_status exec_skew_measure(const struct toc_clock *clock,
                                                 struct toc_store *store,
                                                 int64_t *ret_skew_ms,
                                                 struct toc_error *reterr);
bool exec_skew_is_bad(int64_t skew_ms);

/* Returns when the monotonic clock must show to step again. */
int64_t exec_probe_step(struct exec_probe *probe);

#endif
