#include "common/invoke/fault/invoke_fault.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

static const struct toc_fault_op start_op = {"invoke", "start"};

/* What the inner one is given in the caller's place: the same fires. */
struct proxy {
    struct toc_call call;
    struct toc_call *outer;
    struct toc_invoke_fault *fault;
    enum toc_fault how;
};

static void
set_all(struct toc_call *call, enum toc_answer_kind kind, const char *why)
{
    for (size_t i = 0; i < call->n; i++) {
        struct toc_answer *answer = &call->fires[i].answer;
        *answer = (struct toc_answer){.kind = kind};
        toc_copy(answer->error, sizeof answer->error, toc_str_of(why));
    }
}

static void
ended(struct toc_call *call)
{
    struct proxy *proxy = call->arg;
    struct toc_invoke_fault *fault = proxy->fault;
    struct toc_call *outer = proxy->outer;

    if (toc_fault_after(fault->plan, &start_op, proxy->how, TOC_OK, NULL) !=
        TOC_OK)
        set_all(outer, TOC_ANSWER_UNKNOWN, "injected: the answer is lost");
    pthread_mutex_lock(&fault->lock);
    outer->backend = NULL;
    pthread_mutex_unlock(&fault->lock);
    toc_free(proxy);
    outer->done(outer);
}

static void
fault_start(void *self, struct toc_call *outer)
{
    struct toc_invoke_fault *fault = self;
    enum toc_fault how = toc_fault_before(fault->plan, &start_op);
    struct proxy *proxy;

    outer->backend = NULL;
    if (how == TOC_FAULT_FAIL) {
        set_all(outer, TOC_ANSWER_UNREACHABLE, "injected: nobody answers");
        outer->done(outer);
        return;
    }
    proxy = TOC_NEW(struct proxy);
    proxy->call = *outer;
    proxy->call.done = ended;
    proxy->call.arg = proxy;
    proxy->outer = outer;
    proxy->fault = fault;
    proxy->how = how;
    outer->backend = proxy;
    /* it may have ended, and the proxy be gone, when this returns */
    toc_invoke_start(fault->inner, &proxy->call);
}

static void
fault_cancel(void *self, struct toc_call *outer)
{
    struct toc_invoke_fault *fault = self;
    struct proxy *proxy;

    pthread_mutex_lock(&fault->lock);
    proxy = outer->backend;
    if (proxy != NULL)
        toc_invoke_cancel(fault->inner, &proxy->call);
    pthread_mutex_unlock(&fault->lock);
}

static void
fault_cancel_all(void *self)
{
    struct toc_invoke_fault *fault = self;

    toc_invoke_cancel_all(fault->inner);
}

static const struct toc_invoke_ops fault_ops = {
    .name = "fault",
    .start = fault_start,
    .cancel = fault_cancel,
    .cancel_all = fault_cancel_all,
};

void
toc_invoke_fault_init(struct toc_invoke_fault *fault, struct toc_invoke *inner,
                      const struct toc_fault_plan *plan)
{
    *fault = (struct toc_invoke_fault){
        .port = {&fault_ops, fault}, .inner = inner, .plan = plan};
    TOC_ASSERT(pthread_mutex_init(&fault->lock, NULL) == 0);
}

void
toc_invoke_fault_done(struct toc_invoke_fault *fault)
{
    pthread_mutex_destroy(&fault->lock);
}
