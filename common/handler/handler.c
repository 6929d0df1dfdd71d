/*
 * A pool of workers in front of the RPC server's handlers.
 *
 * A call becomes a job in a bounded queue. The job of a batch is queued once
 * for each worker that may help; helpers take the fires one by one, whoever
 * ends the last one answers the call. A job outlives its call (a helper may
 * find it in the queue later and see that nothing is left), so it is counted.
 *
 * toc-not-after is looked at when the work begins, not when the call comes in:
 * what has waited in the queue must not begin too late either.
 */
#include "common/handler/handler.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/list.h"
#include "common/base/queue.h"
#include "common/base/thread.h"
#include "common/clock/os/clock_os.h"
#include "toc/v1/handler.pb-c.h"

#include <stdatomic.h>

#define THREADS_DEFAULT 4
#define QUEUE_MAX_DEFAULT 1000
#define TOO_LATE "toc-not-after passed"

struct pool {
    struct toc_queue *queue; /* of struct job */
    struct toc_thread *threads;
    size_t n;
};

struct binding { /* of a further service */
    struct toc_handler *handler;
    struct toc_handler_service service;
};

struct toc_handler {
    toc_on_timeout_fn *on_timeout;
    void *self;
    bool inline_calls;
    const struct toc_clock *clk;
    struct toc_rpc_server *server;
    struct pool timeouts, others;
    struct binding *bindings;
    _Atomic int64_t stop_mono_ns; /* the end of the grace; INT64_MAX: none */
};

struct job {
    void (*run)(struct job *job);
    struct toc_handler *handler;
    struct toc_rpc_call *call;
    const ProtobufCMessage *request;
    int64_t arrived_ms;
    atomic_size_t refs;
    /* A batch: fires begun and ended, and their answers (in the arena). */
    size_t n_fires;
    atomic_size_t next, done;
    Toc__V1__OnTimeoutResponse **answers;
    /* A further service. */
    const struct toc_handler_service *service;
    unsigned method;
};

static void
job_unref(struct job *job)
{
    if (atomic_fetch_sub(&job->refs, 1) == 1)
        toc_free(job);
}

static void
work(void *arg)
{
    struct pool *pool = arg;
    void *item;

    while (toc_queue_pop(pool->queue, &item, 1, TOC_BELL_FOREVER) == 1) {
        struct job *job = item;
        job->run(job);
        job_unref(job);
    }
}

static void
pool_start(struct pool *pool, const char *name, size_t threads,
           size_t queue_max)
{
    pool->queue = toc_queue_new(queue_max);
    pool->threads = TOC_NEW_ARRAY(struct toc_thread, threads);
    pool->n = threads;
    for (size_t i = 0; i < threads; i++)
        toc_thread_start(&pool->threads[i], name, work, pool);
}

static void
pool_stop(struct pool *pool)
{
    if (pool->queue == NULL)
        return;
    toc_queue_close(pool->queue);
    for (size_t i = 0; i < pool->n; i++)
        toc_thread_join(&pool->threads[i]);
    toc_queue_free(pool->queue);
    toc_free(pool->threads);
}

/* Runs the job in the pool, by up to `helpers` workers, or refuses its call. */
static void
dispatch(struct pool *pool, struct job *job, size_t helpers)
{
    if (job->handler->inline_calls) {
        job->run(job);
        job_unref(job);
        return;
    }
    atomic_fetch_add(&job->refs, helpers);
    for (size_t i = 0; i < helpers; i++) {
        if (toc_queue_push(pool->queue, job))
            continue;
        if (i == 0)
            toc_rpc_fail_text(job->call, TOC_EXHAUSTED,
                              "too many calls wait for a worker");
        atomic_fetch_sub(&job->refs, helpers - i);
        break;
    }
    job_unref(job);
}

static struct job *
job_new(struct toc_handler *handler, struct toc_rpc_call *call,
        const ProtobufCMessage *request, void (*run)(struct job *job))
{
    struct job *job = TOC_NEW(struct job);

    job->run = run;
    job->handler = handler;
    job->call = call;
    job->request = request;
    job->arrived_ms = toc_clock_wall(handler->clk).ms;
    atomic_init(&job->refs, 1);
    return job;
}

/* ---- one fire ------------------------------------------------------- */

/* Rounded up, as all times of TOC; a peer's nonsense only gives nonsense. */
static int64_t
ms_of(const Google__Protobuf__Timestamp *time)
{
    int64_t ms;

    if (time == NULL || __builtin_mul_overflow(time->seconds, 1000, &ms) ||
        __builtin_add_overflow(ms, ((int64_t)time->nanos + 999999) / 1000000,
                               &ms))
        return 0;
    return ms;
}

static void
timeout_fill(struct toc_timeout *timeout,
             const Toc__V1__OnTimeoutRequest *request, int64_t arrived_ms)
{
    *timeout = (struct toc_timeout){
        .task_id = toc_str_of(request->task_id),
        .fire_id = toc_str_of(request->fire_id),
        .attempt = request->attempt,
        .due_ms = ms_of(request->due_time),
        .not_after_ms = ms_of(request->not_after),
        .arrived_ms = arrived_ms,
        .payload = {(const char *)request->payload.data, request->payload.len},
        .content_type = toc_str_of(request->content_type),
    };
    if (request->key == NULL)
        return;
    timeout->biz_type = toc_str_of(request->key->biz_type);
    timeout->biz_id = toc_str_of(request->key->biz_id);
    timeout->name = toc_str_of(request->key->name);
}

/* What the call's metadata says wins. False: it is not understood. */
static bool
timeout_metadata(struct toc_timeout *timeout, const struct toc_rpc_call *call)
{
    struct toc_str value;
    int64_t number;

    if (toc_rpc_call_metadata(call, "toc-fire-id", &value))
        timeout->fire_id = value;
    if (toc_rpc_call_metadata(call, "toc-attempt", &value)) {
        if (!toc_parse_i64(value, 0, UINT32_MAX, &number))
            return false;
        timeout->attempt = (uint32_t)number;
    }
    if (toc_rpc_call_metadata(call, "toc-not-after", &value))
        return toc_parse_i64(value, 0, INT64_MAX, &timeout->not_after_ms);
    return true;
}

bool
toc_timeout_expired(const struct toc_handler *handler,
                    const struct toc_timeout *timeout)
{
    if (toc_clock_mono(handler->clk).ns >= atomic_load(&handler->stop_mono_ns))
        return true;
    return timeout->not_after_ms != 0 &&
           toc_clock_wall(handler->clk).ms > timeout->not_after_ms;
}

static Toc__V1__Answer
answer_of(enum toc_timeout_verdict verdict)
{
    switch (verdict) {
    case TOC_TIMEOUT_DONE:
        return TOC__V1__ANSWER__ANSWER_DONE;
    case TOC_TIMEOUT_RETRY:
        return TOC__V1__ANSWER__ANSWER_RETRY;
    case TOC_TIMEOUT_FAILED:
        return TOC__V1__ANSWER__ANSWER_FAILED;
    case TOC_TIMEOUT_SNOOZE:
        return TOC__V1__ANSWER__ANSWER_SNOOZE;
    case TOC_TIMEOUT_STOP:
        return TOC__V1__ANSWER__ANSWER_STOP;
    }
    TOC_ASSERT(false && "a handler gave no such verdict");
    return TOC__V1__ANSWER__ANSWER_UNSPECIFIED;
}

/* An answer as it is sent: what protobuf-c points to, in one piece. */
struct reply {
    struct toc_timeout_answer answer;
    Google__Protobuf__Timestamp retry_time;
    Toc__V1__OnTimeoutResponse message;
};

static void
reply_fill(struct reply *reply)
{
    int64_t ms = reply->answer.retry_ms;

    toc__v1__on_timeout_response__init(&reply->message);
    reply->message.answer = answer_of(reply->answer.verdict);
    reply->message.message = reply->answer.message;
    if (ms == 0)
        return;
    google__protobuf__timestamp__init(&reply->retry_time);
    reply->retry_time.seconds = ms / 1000 - (ms % 1000 < 0);
    ms -= reply->retry_time.seconds * 1000;
    reply->retry_time.nanos = (int32_t)ms * 1000000;
    reply->message.retry_time = &reply->retry_time;
}

static void
run_single(struct job *job)
{
    struct toc_handler *handler = job->handler;
    struct toc_timeout timeout;
    struct reply reply = {0};

    timeout_fill(&timeout, (const Toc__V1__OnTimeoutRequest *)job->request,
                 job->arrived_ms);
    if (!timeout_metadata(&timeout, job->call)) {
        toc_rpc_fail_text(job->call, TOC_INVALID,
                          "toc-attempt, toc-not-after: must be numbers");
        return;
    }
    if (toc_rpc_call_cancelled(job->call)) {
        toc_rpc_fail_text(job->call, TOC_CANCELLED, "the caller has gone");
        return;
    }
    if (toc_timeout_expired(handler, &timeout)) {
        toc_rpc_fail_text(job->call, TOC_CONFLICT, TOO_LATE);
        return;
    }
    handler->on_timeout(handler->self, &timeout, &reply.answer);
    reply_fill(&reply);
    toc_rpc_reply(job->call, &reply.message.base);
}

/* ---- a batch -------------------------------------------------------- */

static void
run_fire(struct job *job, size_t i)
{
    const Toc__V1__OnTimeoutBatchRequest *batch =
        (const Toc__V1__OnTimeoutBatchRequest *)job->request;
    struct reply *reply =
        toc_container_of(job->answers[i], struct reply, message);
    struct toc_timeout timeout;

    timeout_fill(&timeout, batch->fires[i], job->arrived_ms);
    if (toc_timeout_expired(job->handler, &timeout) ||
        toc_rpc_call_cancelled(job->call)) {
        reply->answer.verdict = TOC_TIMEOUT_RETRY;
        toc_copy(reply->answer.message, sizeof reply->answer.message,
                 TOC_STR(TOO_LATE));
    } else {
        job->handler->on_timeout(job->handler->self, &timeout, &reply->answer);
    }
    reply_fill(reply);
}

static void
reply_batch(struct job *job, size_t n)
{
    Toc__V1__OnTimeoutBatchResponse response;

    toc__v1__on_timeout_batch_response__init(&response);
    response.n_answers = n;
    response.answers = job->answers;
    toc_rpc_reply(job->call, &response.base);
}

/* By several workers at once. Once next has passed n the request may be gone
 * with its call: only the job itself is looked at then. */
static void
run_batch(struct job *job)
{
    size_t n = job->n_fires;

    for (;;) {
        size_t i = atomic_fetch_add(&job->next, 1);
        if (i >= n)
            return;
        run_fire(job, i);
        if (atomic_fetch_add(&job->done, 1) + 1 == n)
            reply_batch(job, n);
    }
}

static void
accept_batch(struct toc_handler *handler, const ProtobufCMessage *request,
             struct toc_rpc_call *call)
{
    const Toc__V1__OnTimeoutBatchRequest *batch =
        (const Toc__V1__OnTimeoutBatchRequest *)request;
    struct toc_arena *arena = toc_rpc_call_arena(call);
    struct job *job = job_new(handler, call, request, run_batch);
    size_t n = batch->n_fires;
    struct reply *replies = toc_arena_calloc(arena, n, sizeof *replies);

    job->n_fires = n;
    job->answers = toc_arena_calloc(arena, n, sizeof(job->answers[0]));
    for (size_t i = 0; i < n; i++)
        job->answers[i] = &replies[i].message;
    if (n == 0) {
        reply_batch(job, 0);
        job_unref(job);
        return;
    }
    dispatch(&handler->timeouts, job,
             n < handler->timeouts.n ? n : handler->timeouts.n);
}

/* ---- what the server calls ------------------------------------------ */

static void
on_call(void *self, unsigned method, const ProtobufCMessage *request,
        struct toc_rpc_call *call)
{
    struct toc_handler *handler = self;

    if (method == 0)
        dispatch(&handler->timeouts,
                 job_new(handler, call, request, run_single), 1);
    else
        accept_batch(handler, request, call);
}

static void
run_other(struct job *job)
{
    job->service->handler(job->service->self, job->method, job->request,
                          job->call);
}

static void
on_other_call(void *self, unsigned method, const ProtobufCMessage *request,
              struct toc_rpc_call *call)
{
    struct binding *binding = self;
    struct job *job = job_new(binding->handler, call, request, run_other);

    job->service = &binding->service;
    job->method = method;
    dispatch(&binding->handler->others, job, 1);
}

/* ---- start and stop ------------------------------------------------- */

static void
add_services(struct toc_handler *handler,
             const struct toc_handler_options *options)
{
    toc_rpc_server_add(handler->server, &toc__v1__timeout_handler__descriptor,
                       on_call, handler);
    handler->bindings = TOC_NEW_ARRAY(struct binding, options->n_services);
    for (size_t i = 0; i < options->n_services; i++) {
        struct binding *binding = &handler->bindings[i];
        binding->handler = handler;
        binding->service = options->services[i];
        toc_rpc_server_add(handler->server, binding->service.service,
                           on_other_call, binding);
    }
}

static void
start_pools(struct toc_handler *handler,
            const struct toc_handler_options *options)
{
    size_t threads = options->threads != 0 ? options->threads : THREADS_DEFAULT;
    size_t max =
        options->queue_max != 0 ? options->queue_max : QUEUE_MAX_DEFAULT;

    if (handler->inline_calls)
        return;
    pool_start(&handler->timeouts, "timeout", threads, max);
    if (options->n_services > 0)
        pool_start(&handler->others, "service", threads, max);
}

static void
handler_free(struct toc_handler *handler)
{
    pool_stop(&handler->timeouts);
    pool_stop(&handler->others);
    toc_rpc_server_free(handler->server);
    toc_free(handler->bindings);
    toc_free(handler);
}

enum toc_status
toc_handler_start(const struct toc_handler_options *options,
                  struct toc_handler **ret_handler, struct toc_error *reterr)
{
    struct toc_handler *handler = TOC_NEW(struct toc_handler), *before;
    enum toc_status st;

    handler->on_timeout = options->on_timeout;
    handler->self = options->self;
    handler->inline_calls = options->inline_calls;
    handler->clk = options->clock != NULL ? options->clock : toc_clock_os();
    atomic_init(&handler->stop_mono_ns, INT64_MAX);
    st = toc_rpc_server_new(
        &(struct toc_rpc_server_options){.listen = options->listen,
                                         .clock = handler->clk},
        &handler->server, reterr);
    if (st != TOC_OK) {
        handler_free(handler);
        return st;
    }
    add_services(handler, options);
    start_pools(handler, options);
    before = *ret_handler;
    *ret_handler = handler; /* the first call may come before start returns */
    st = toc_rpc_server_start(handler->server, reterr);
    if (st != TOC_OK) {
        *ret_handler = before;
        handler_free(handler);
        return st;
    }
    toc_rpc_server_serving(handler->server, true);
    return TOC_OK;
}

const char *
toc_handler_address(const struct toc_handler *handler)
{
    return toc_rpc_server_address(handler->server);
}

struct toc_rpc_server *
toc_handler_server(struct toc_handler *handler)
{
    return handler->server;
}

void
toc_handler_stop(struct toc_handler *handler, int64_t grace_ms)
{
    if (handler == NULL)
        return;
    atomic_store(&handler->stop_mono_ns,
                 toc_mono_add_ms(toc_clock_mono(handler->clk), grace_ms).ns);
    toc_rpc_server_serving(handler->server, false);
    /* The workers go on until every call has been answered. */
    toc_rpc_server_stop(handler->server, grace_ms);
    handler_free(handler);
}
