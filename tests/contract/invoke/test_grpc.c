/*
 * Goal: the backend on gRPC keeps the port's contract.
 * Method: the suite against a server on a free loopback port.
 */
#include "common/base/arena.h"
#include "common/base/os_time.h"
#include "common/clock/os/clock_os.h"
#include "common/invoke/grpc/invoke_grpc.h"
#include "common/rpc/server.h"
#include "toc/v1/handler.pb-c.h"

static void
time_goes_on(void)
{
    toc_os_sleep_until_mono(toc_os_mono_ns() + 1000000);
}

#define SEEDS_USUAL 2
#include "tests/contract/invoke/invoke_suite.h"

static struct toc_rpc_server *server;
static struct toc_invoke_grpc *grpc;
static struct toc_rpc_call *held;
static bool held_batch;

/* ---- the server -----------------------------------------------------------
 */

static Toc__V1__Answer
wire_kind(enum toc_answer_kind kind)
{
    static const Toc__V1__Answer kinds[] = {
        [TOC_ANSWER_DONE] = TOC__V1__ANSWER__ANSWER_DONE,
        [TOC_ANSWER_FAILED] = TOC__V1__ANSWER__ANSWER_RETRY,
        [TOC_ANSWER_REJECTED] = TOC__V1__ANSWER__ANSWER_FAILED,
        [TOC_ANSWER_SNOOZE] = TOC__V1__ANSWER__ANSWER_SNOOZE,
        [TOC_ANSWER_STOP] = TOC__V1__ANSWER__ANSWER_STOP};

    return kinds[kind];
}

static Toc__V1__OnTimeoutResponse *
response(struct toc_arena *arena)
{
    Toc__V1__OnTimeoutResponse *reply = toc_arena_alloc(arena, sizeof *reply);
    Google__Protobuf__Timestamp *time = toc_arena_alloc(arena, sizeof *time);

    toc__v1__on_timeout_response__init(reply);
    reply->answer = wire_kind(fx.plan.kind);
    reply->message = toc_arena_text(arena, toc_str_of(fx.plan.said));
    google__protobuf__timestamp__init(time);
    time->seconds = fx.plan.retry_at_ms / TOC_MS_PER_SEC;
    if (time->seconds != 0)
        reply->retry_time = time;
    return reply;
}

static void
reply_to(struct toc_rpc_call *incoming, bool batch)
{
    struct toc_arena *arena = toc_rpc_call_arena(incoming);
    Toc__V1__OnTimeoutBatchResponse all =
        TOC__V1__ON_TIMEOUT_BATCH_RESPONSE__INIT;

    if (!batch) {
        toc_rpc_reply(incoming, &response(arena)->base);
        return;
    }
    all.n_answers = fx.plan.answers;
    all.answers = toc_arena_calloc(arena, all.n_answers, sizeof(void *));
    for (size_t i = 0; i < all.n_answers; i++)
        all.answers[i] = response(arena);
    toc_rpc_reply(incoming, &all.base);
}

static void
look_at(const Toc__V1__OnTimeoutRequest *request)
{
    struct toc_str payload = {(const char *)request->payload.data,
                              request->payload.len};

    toc_copy(fx.seen.payload, sizeof fx.seen.payload, payload);
    toc_copy(fx.seen.biz_id, sizeof fx.seen.biz_id,
             toc_str_of(request->key->biz_id));
    toc_copy(fx.seen.fire_id, sizeof fx.seen.fire_id,
             toc_str_of(request->fire_id));
    fx.seen.attempt = (uint32_t)request->attempt;
    fx.seen.due_ms = request->due_time->seconds * TOC_MS_PER_SEC;
    fx.seen.not_after_ms = request->not_after->seconds * TOC_MS_PER_SEC;
}

static void
serve(void *self, unsigned method, const ProtobufCMessage *request,
      struct toc_rpc_call *incoming)
{
    (void)self;
    (void)atomic_load(&fx.order);
    fx.seen.batch = method == 1;
    if (method == 0) {
        fx.seen.fires = 1;
        look_at((const Toc__V1__OnTimeoutRequest *)request);
    } else {
        const Toc__V1__OnTimeoutBatchRequest *batch =
            (const Toc__V1__OnTimeoutBatchRequest *)request;
        fx.seen.fires = batch->n_fires;
        look_at(batch->fires[batch->n_fires > 1 ? 1 : 0]);
    }
    if (atomic_load(&fx.plan.hold)) {
        held = incoming;
        held_batch = fx.seen.batch;
        atomic_store(&fx.plan.hold, false);
        atomic_fetch_add(&fx.order, 1);
        atomic_fetch_add(&fx.served, 1);
        return;
    }
    atomic_fetch_add(&fx.order, 1);
    atomic_fetch_add(&fx.served, 1);
    reply_to(incoming, fx.seen.batch);
}

/* ---- for the suite ---------------------------------------------------------
 */

static const struct toc_clock *
backend_clock(void)
{
    return toc_clock_os();
}

static void
backend_begin(void)
{
    struct toc_error err = {0};

    ck_assert_int_eq(toc_rpc_server_new(
                         &(struct toc_rpc_server_options){
                             .listen = "127.0.0.1:0", .clock = toc_clock_os()},
                         &server, &err),
                     TOC_OK);
    toc_rpc_server_add(server, &toc__v1__timeout_handler__descriptor, serve,
                       NULL);
    ck_assert_int_eq(toc_rpc_server_start(server, &err), TOC_OK);
    toc_format(fx.target, sizeof fx.target, "grpc://%s",
               toc_rpc_server_address(server));
    toc_format(fx.nobody, sizeof fx.nobody, "grpc://127.0.0.1:1");
    grpc = toc_invoke_grpc_new(
        &(struct toc_invoke_grpc_options){.clock = toc_clock_os()});
    fx.invoke = toc_invoke_grpc_port(grpc);
}

static void
backend_release(void)
{
    struct toc_rpc_call *incoming = held;

    (void)atomic_load(&fx.order);
    held = NULL;
    if (incoming != NULL)
        reply_to(incoming, held_batch);
}

static void
backend_stop_server(void)
{
    struct toc_rpc_call *incoming = held;

    held = NULL;
    toc_rpc_fail_text(incoming, TOC_UNAVAILABLE, "going down");
}

static void
backend_end(void)
{
    toc_invoke_grpc_free(grpc);
    backend_release();
    toc_rpc_server_stop(server, 500);
    toc_rpc_server_free(server);
}

int
main(void)
{
    const toc_check_test tests[] = {INVOKE_SUITE};

    return invoke_suite_run("invoke contract: grpc", tests,
                            sizeof tests / sizeof tests[0]);
}
