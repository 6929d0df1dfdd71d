/*
 * Calls with faults: a start asks the plan before the call is sent and before
 * its end is told (common/base/fault.h). FAIL: never sent, UNREACHABLE;
 * LOSE_ACK: the business has run, the answer is UNKNOWN.
 *
 * Ownership: inner and plan are borrowed; all calls have ended before done.
 * Threads, blocking: those of inner and plan. Locks: its own, held while a
 * cancel is passed on.
 */
#ifndef TOC_INVOKE_FAULT_H
#define TOC_INVOKE_FAULT_H

#include "common/base/fault.h"
#include "common/invoke/invoke.h"

#include <pthread.h>

struct toc_invoke_fault {
    struct toc_invoke port; /* pass &fault.port */
    struct toc_invoke *inner;
    const struct toc_fault_plan *plan;
    pthread_mutex_t lock; /* makes cancel and the end of a call take turns */
};

void toc_invoke_fault_init(struct toc_invoke_fault *fault,
                           struct toc_invoke *inner,
                           const struct toc_fault_plan *plan);
void toc_invoke_fault_done(struct toc_invoke_fault *fault);

#endif
