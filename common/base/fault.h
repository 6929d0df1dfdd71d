/*
 * Where faults come from. The decorators of the ports (common/<port>/fault/)
 * stand in front of a backend and ask here about every operation, twice: before
 * it has its effect and before its caller is told. Whoever answers decides: a
 * test by a table, a simulation by its seed; both may let time pass in either
 * place (a request or an answer that is under way), and that is all that a
 * delay is.
 *
 * Ownership: the plan is borrowed by the decorators. Threads: those that call
 * the decorated ports. Blocking: as long as the functions of the plan do.
 */
#ifndef TOC_BASE_FAULT_H
#define TOC_BASE_FAULT_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

enum toc_fault {
    TOC_FAULT_NONE,
    TOC_FAULT_FAIL,     /* no effect; the caller is told TOC_UNAVAILABLE */
    TOC_FAULT_LOSE_ACK, /* takes effect; the caller is told the same */
    TOC_FAULTS,
};

/* An operation of a port; both are literals: "store", "claim". */
struct toc_fault_op {
    const char *port, *op;
};

struct toc_fault_plan {
    /* NULL: TOC_FAULT_NONE. */
    enum toc_fault (*before)(void *arg, const struct toc_fault_op *op);
    /* st: what the backend said. Not called when nothing had an effect. NULL:
     * nothing. */
    void (*after)(void *arg, const struct toc_fault_op *op, enum toc_status st);
    void *arg;
};

/* What a decorator calls; plan NULL: no faults. */
enum toc_fault toc_fault_before(const struct toc_fault_plan *plan,
                                const struct toc_fault_op *op);
/* Returns what the caller is to be told: st, or TOC_UNAVAILABLE in *reterr when
 * the acknowledgement is lost. */
enum toc_status toc_fault_after(const struct toc_fault_plan *plan,
                                const struct toc_fault_op *op,
                                enum toc_fault fault, enum toc_status st,
                                struct toc_error *reterr);
/* Sets *reterr to an injected TOC_UNAVAILABLE, and returns it. */
enum toc_status toc_fault_failed(const struct toc_fault_op *op,
                                 struct toc_error *reterr);

#endif
