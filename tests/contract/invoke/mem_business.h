/*
 * The business of the suite in an invoke world in memory. Included behind
 * invoke_suite.h.
 */
#ifndef TOC_TESTS_INVOKE_MEM_BUSINESS_H
#define TOC_TESTS_INVOKE_MEM_BUSINESS_H

#include "common/invoke/mem/invoke_mem.h"

#define BUSINESS "shop:7000"

static struct toc_invoke_mem_world *business_world;
static struct toc_invoke_mem_request *held;
static char method_seen[64];

static void
business_reply(struct toc_invoke_mem_request *request)
{
    struct toc_answer answers[FIRES * 20] = {{.kind = TOC_ANSWER_DONE}};
    size_t n = request->batch ? fx.plan.answers : 1;

    ck_assert_uint_le(n, FIRES * 20);
    for (size_t i = 0; i < n; i++) {
        answers[i].kind = fx.plan.kind;
        answers[i].retry_at_ms = fx.plan.retry_at_ms;
        toc_copy(answers[i].error, sizeof answers[i].error,
                 toc_str_of(fx.plan.said));
    }
    toc_invoke_mem_answer(business_world, request, answers, n);
}

static void
business_serve(void *arg, struct toc_invoke_mem_request *request)
{
    const struct toc_invoke_mem_fire *fire =
        &request->fires[request->n > 1 ? 1 : 0];

    (void)arg;
    (void)atomic_load(&fx.order);
    toc_copy(method_seen, sizeof method_seen, request->method);
    toc_copy(fx.seen.payload, sizeof fx.seen.payload, fire->payload);
    toc_copy(fx.seen.biz_id, sizeof fx.seen.biz_id, fire->biz_id);
    toc_fire_id_format(fire->task, fire->fire, fx.seen.fire_id);
    fx.seen.attempt = fire->attempt;
    fx.seen.due_ms = fire->due_ms;
    fx.seen.not_after_ms = request->not_after_ms;
    fx.seen.fires = request->n;
    fx.seen.batch = request->batch;
    if (atomic_load(&fx.plan.hold)) {
        held = request;
        atomic_store(&fx.plan.hold, false);
        atomic_fetch_add(&fx.order, 1);
        atomic_fetch_add(&fx.served, 1);
        return;
    }
    atomic_fetch_add(&fx.order, 1);
    atomic_fetch_add(&fx.served, 1);
    business_reply(request);
}

static void
business_begin(struct toc_invoke_mem_world *in)
{
    business_world = in;
    toc_format(fx.target, sizeof fx.target, "grpc://%s", BUSINESS);
    toc_format(fx.nobody, sizeof fx.nobody, "grpc://nobody:1");
    toc_invoke_mem_serve(in, BUSINESS, business_serve, NULL);
}

static void
business_release(void)
{
    struct toc_invoke_mem_request *request = held;

    held = NULL;
    if (request != NULL)
        business_reply(request);
}

#endif
