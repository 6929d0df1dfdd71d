/*
 * The store with faults: every operation asks the plan before it takes effect
 * and before its caller is told (common/base/fault.h).
 *
 * Ownership: inner and plan are borrowed. Threads, blocking: the inner store's
 * and the plan's.
 */
#ifndef TOC_STORE_FAULT_H
#define TOC_STORE_FAULT_H

#include "common/base/fault.h"
#include "common/store/store.h"

struct toc_store_fault {
    struct toc_store port; /* pass &fault.port */
    struct toc_store *inner;
    const struct toc_fault_plan *plan;
};

void toc_store_fault_init(struct toc_store_fault *fault,
                          struct toc_store *inner,
                          const struct toc_fault_plan *plan);

#endif
