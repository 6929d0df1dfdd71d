#include "common/base/fault.h"

enum toc_fault
toc_fault_before(const struct toc_fault_plan *plan,
                 const struct toc_fault_op *op)
{
    if (plan == NULL || plan->before == NULL)
        return TOC_FAULT_NONE;
    return plan->before(plan->arg, op);
}

enum toc_status
toc_fault_failed(const struct toc_fault_op *op, struct toc_error *reterr)
{
    return toc_error_set(reterr, TOC_UNAVAILABLE, "fault", 0,
                         "injected: %s of the %s", op->op, op->port);
}

enum toc_status
toc_fault_after(const struct toc_fault_plan *plan,
                const struct toc_fault_op *op, enum toc_fault fault,
                enum toc_status st, struct toc_error *reterr)
{
    if (plan != NULL && plan->after != NULL)
        plan->after(plan->arg, op, st);
    if (fault == TOC_FAULT_LOSE_ACK && st == TOC_OK)
        return toc_fault_failed(op, reterr);
    return st;
}
