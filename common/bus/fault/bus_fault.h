/*
 * The bus with faults: every operation asks the plan before it takes effect
 * and before its caller is told (common/base/fault.h).
 *
 *   send       FAIL: refused; LOSE_ACK: stored, and reported as refused
 *   poll       of a consumer. FAIL: nothing comes; LOSE_ACK: what comes is lost
 *   mark       FAIL: forgotten
 *   the rest   as any operation; on LOSE_ACK results are untouched
 *
 * Ownership: inner and plan are borrowed. Threads, blocking: those of inner and
 * plan.
 */
#ifndef TOC_BUS_FAULT_H
#define TOC_BUS_FAULT_H

#include "common/base/fault.h"
#include "common/base/list.h"
#include "common/bus/bus.h"

struct toc_bus_fault {
    struct toc_bus port; /* pass &fault.port */
    struct toc_bus *inner;
    const struct toc_fault_plan *plan;
    toc_bus_report_fn *report;
    void *report_arg;
    struct toc_link tickets; /* sent and not reported */
};

/* First this; then the backend is opened with toc_bus_fault_report and the
 * fault as its report function; then its port becomes inner. */
void toc_bus_fault_init(struct toc_bus_fault *fault,
                        const struct toc_fault_plan *plan,
                        toc_bus_report_fn *report, void *report_arg);
/* Behind the inner one's closing. */
void toc_bus_fault_done(struct toc_bus_fault *fault);
void toc_bus_fault_report(void *arg, void *opaque, enum toc_status st,
                          int64_t offset);

struct toc_consumer_fault {
    struct toc_bus_consumer port; /* pass &fault.port */
    struct toc_bus_consumer *inner;
    const struct toc_fault_plan *plan;
};

void toc_consumer_fault_init(struct toc_consumer_fault *fault,
                             struct toc_bus_consumer *inner,
                             const struct toc_fault_plan *plan);

#endif
