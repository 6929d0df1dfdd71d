#include "common/invoke/invoke.h"

#include "common/base/assert.h"

void
toc_invoke_start(struct toc_invoke *invoke, struct toc_call *call)
{
    TOC_ASSERT(call->n > 0 && call->fires != NULL && call->done != NULL);
    TOC_ASSERT(call->batch || call->n == 1);
    for (size_t i = 0; i < call->n; i++)
        TOC_ASSERT(call->fires[i].task != NULL && call->fires[i].spec != NULL);
    invoke->ops->start(invoke->self, call);
}

void
toc_invoke_cancel(struct toc_invoke *invoke, struct toc_call *call)
{
    invoke->ops->cancel(invoke->self, call);
}

void
toc_invoke_cancel_all(struct toc_invoke *invoke)
{
    invoke->ops->cancel_all(invoke->self);
}
