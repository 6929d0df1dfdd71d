#include "common/invoke/grpc/invoke_grpc.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/cleanup.h"
#include "common/invoke/grpc/answer.h"
#include "common/invoke/grpc/request.h"
#include "common/invoke/target.h"
#include "common/rpc/client.h"

#include <pthread.h>

#define METHOD "/toc.v1.TimeoutHandler/OnTimeout"
#define METHOD_BATCH "/toc.v1.TimeoutHandler/OnTimeoutBatch"

struct toc_invoke_grpc {
    struct toc_invoke port;
    const struct toc_clock *clock;
    struct toc_rpc_client *client;
    /* Makes cancel and the end of a call take turns; a leaf. */
    pthread_mutex_t lock;
};

/* A call under way. Its end may come before its start has returned, so both
 * hold it. */
struct op {
    struct toc_invoke_grpc *invoke;
    struct toc_call *call;
    bool raw;
    /* Under the lock. */
    struct toc_rpc_pending *pending;
    bool cancelled;
    int holders;
};

/* Under the lock; true: the op is the caller's to free. */
static bool
let_go(struct op *op)
{
    op->holders--;
    return op->holders == 0;
}

static void
on_done(void *arg, const struct toc_rpc_result *result)
{
    struct op *op = arg;
    struct toc_invoke_grpc *invoke = op->invoke;
    struct toc_call *call = op->call;
    bool last;

    toc_grpc_answer(call, result, op->raw, toc_clock_wall(invoke->clock).ms);
    pthread_mutex_lock(&invoke->lock);
    call->backend = NULL;
    op->pending = NULL;
    op->call = NULL;
    last = let_go(op);
    pthread_mutex_unlock(&invoke->lock);
    if (last)
        toc_free(op);
    call->done(call);
}

static void
end_bad(struct toc_call *call, const char *why)
{
    for (size_t i = 0; i < call->n; i++) {
        struct toc_answer *answer = &call->fires[i].answer;

        *answer = (struct toc_answer){.kind = TOC_ANSWER_BAD_TARGET};
        toc_copy(answer->error, sizeof answer->error, toc_str_of(why));
    }
    call->done(call);
}

static void
send(struct toc_invoke_grpc *invoke, struct toc_call *call,
     const struct toc_invoke_target *target)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf bytes = {0};
    struct toc_grpc_metadata metadata;
    struct op *op = TOC_NEW(struct op);
    struct toc_rpc_pending *pending;
    struct toc_rpc_request request = {
        .address = toc_arena_text(&arena, target->address),
        .method = call->batch ? METHOD_BATCH : METHOD,
        .deadline = {call->deadline_ns}};
    bool last;

    *op = (struct op){.invoke = invoke,
                      .call = call,
                      .raw = target->method.len > 0,
                      .holders = 2};
    call->backend = op;
    toc_grpc_request_metadata(call, &arena, &metadata);
    request.metadata = metadata.items;
    request.n_metadata = metadata.n;
    if (op->raw) {
        request.method = toc_arena_text(&arena, target->method);
        request.bytes = call->fires[0].task->payload;
    } else {
        toc_grpc_request_pack(call, &arena, &bytes);
        request.bytes = toc_buf_view(&bytes);
    }
    pending = toc_rpc_start(invoke->client, &request, on_done, op);
    pthread_mutex_lock(&invoke->lock);
    if (op->call != NULL) { /* not ended meanwhile */
        op->pending = pending;
        if (op->cancelled)
            toc_rpc_cancel(pending);
    }
    last = let_go(op);
    pthread_mutex_unlock(&invoke->lock);
    if (last)
        toc_free(op);
}

static void
op_start(void *self, struct toc_call *call)
{
    struct toc_invoke_target target;
    const char *wrong = toc_invoke_target_parse(call->target, &target);

    call->backend = NULL;
    for (size_t i = 0; i < call->n; i++)
        call->fires[i].answer = (struct toc_answer){0};
    if (wrong == NULL && call->batch && target.method.len > 0)
        wrong = "a target with a method of its own takes no batches";
    if (wrong != NULL)
        end_bad(call, wrong);
    else
        send(self, call, &target);
}

static void
op_cancel(void *self, struct toc_call *call)
{
    struct toc_invoke_grpc *invoke = self;
    struct op *op;

    pthread_mutex_lock(&invoke->lock);
    op = call->backend;
    if (op != NULL) {
        op->cancelled = true;
        if (op->pending != NULL)
            toc_rpc_cancel(op->pending);
    }
    pthread_mutex_unlock(&invoke->lock);
}

static void
op_cancel_all(void *self)
{
    struct toc_invoke_grpc *invoke = self;

    toc_rpc_cancel_all(invoke->client);
}

static const struct toc_invoke_ops ops = {
    .name = "grpc",
    .start = op_start,
    .cancel = op_cancel,
    .cancel_all = op_cancel_all,
};

struct toc_invoke_grpc *
toc_invoke_grpc_new(const struct toc_invoke_grpc_options *options)
{
    struct toc_invoke_grpc *invoke = TOC_NEW(struct toc_invoke_grpc);

    invoke->port = (struct toc_invoke){&ops, invoke};
    invoke->clock = options->clock;
    TOC_ASSERT(pthread_mutex_init(&invoke->lock, NULL) == 0);
    invoke->client = toc_rpc_client_new(&(struct toc_rpc_client_options){
        .clock = options->clock,
        .threads = options->threads,
        .channels_max = options->channels_max});
    return invoke;
}

void
toc_invoke_grpc_free(struct toc_invoke_grpc *invoke)
{
    if (invoke == NULL)
        return;
    toc_rpc_client_free(invoke->client);
    pthread_mutex_destroy(&invoke->lock);
    toc_free(invoke);
}

struct toc_invoke *
toc_invoke_grpc_port(struct toc_invoke_grpc *invoke)
{
    return &invoke->port;
}

bool
toc_invoke_grpc_target_valid(struct toc_str target)
{
    struct toc_invoke_target parsed;

    return toc_invoke_target_parse(target, &parsed) == NULL;
}
