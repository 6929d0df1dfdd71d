/*
 * Coordination with faults: every operation asks the plan before it takes
 * effect and before its caller is told (common/base/fault.h). On LOSE_ACK
 * results are untouched; a poll has told its events all the same. The deadline
 * is asked as "deadline"; FAIL: there is no session.
 *
 * Ownership: inner and plan are borrowed. Threads, blocking: those of inner and
 * plan.
 */
#ifndef TOC_COORD_FAULT_H
#define TOC_COORD_FAULT_H

#include "common/base/fault.h"
#include "common/coord/coord.h"

struct toc_coord_fault {
    struct toc_coord port; /* pass &fault.port */
    struct toc_coord *inner;
    const struct toc_fault_plan *plan;
};

void toc_coord_fault_init(struct toc_coord_fault *fault,
                          struct toc_coord *inner,
                          const struct toc_fault_plan *plan);

#endif
