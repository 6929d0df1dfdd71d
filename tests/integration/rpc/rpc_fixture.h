/*
 * A server of toc.v1.TimeoutHandler on a free loopback port, a client, and a
 * handler that does what the request's task_id says:
 *
 *     echo     answers DONE with the payload as message
 *     info     answers with what it sees of the call
 *     keep     keeps the call; the test answers it by desk_answer
 *     worker   has another thread answer, as echo
 *     refuse   fails with violations, retry info and a detail
 *     huge     fails with details far over what trailers hold
 *     big      answers with a message of 9 MiB
 *     slow     keeps the call till it is cancelled, then answers
 *
 * gRPC must not be used before a fork, and check forks each test: make all of
 * this inside the test (or a checked fixture).
 */
#ifndef TOC_TESTS_RPC_FIXTURE_H
#define TOC_TESTS_RPC_FIXTURE_H

#include "common/base/alloc.h"
#include "common/base/queue.h"
#include "common/base/thread.h"
#include "common/clock/os/clock_os.h"
#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "tests/support/toc_check.h"
#include "toc/v1/handler.pb-c.h"

#include <stdatomic.h>
#include <string.h>

#define ON_TIMEOUT "/toc.v1.TimeoutHandler/OnTimeout"
#define SERVICE (&toc__v1__timeout_handler__descriptor)
#define PATIENCE_MS 20000

struct desk {
    struct toc_rpc_server *server;
    struct toc_rpc_client *client;
    char address[64];
    struct toc_queue *kept, *work;
    struct toc_thread worker;
    atomic_int seen;
};

/* ---- the handler ----------------------------------------------------- */

static inline void
desk_answer(struct toc_rpc_call *call, const char *message)
{
    Toc__V1__OnTimeoutResponse reply = TOC__V1__ON_TIMEOUT_RESPONSE__INIT;

    reply.answer = TOC__V1__ANSWER__ANSWER_DONE;
    reply.message = (char *)message;
    toc_rpc_reply(call, &reply.base);
}

static inline void
desk_echo(struct toc_rpc_call *call)
{
    const Toc__V1__OnTimeoutRequest *request =
        toc_rpc_unpack(&toc__v1__on_timeout_request__descriptor,
                       toc_rpc_call_bytes(call), toc_rpc_call_arena(call));
    struct toc_str payload;

    ck_assert_ptr_nonnull(request);
    payload = (struct toc_str){(const char *)request->payload.data,
                               request->payload.len};
    desk_answer(call, toc_arena_text(toc_rpc_call_arena(call), payload));
}

static inline void
desk_info(struct toc_rpc_call *call)
{
    struct toc_str value = TOC_STR("none"), absent;
    int64_t now = toc_clock_mono(toc_clock_os()).ns;
    int64_t deadline = toc_rpc_call_deadline(call).ns;
    int64_t left_ms = (deadline - now) / TOC_NS_PER_MS;

    (void)toc_rpc_call_metadata(call, "x-colour", &value);
    ck_assert(!toc_rpc_call_metadata(call, "x-nothing", &absent));
    ck_assert(!toc_rpc_call_cancelled(call));
    toc_rpc_call_trailer(call, "x-server", "here");
    toc_rpc_call_trailer(call, "x-bad", "two\nlines");
    desk_answer(call, toc_arena_printf(toc_rpc_call_arena(call),
                                       "colour=%.*s deadline=%s peer=%s",
                                       (int)value.len, value.ptr,
                                       deadline == INT64_MAX ? "never"
                                       : left_ms > 0 && left_ms <= PATIENCE_MS
                                           ? "soon"
                                           : "wrong",
                                       toc_rpc_call_peer(call)));
}

static inline void
desk_refuse(struct toc_rpc_call *call)
{
    struct toc_rpc_failure failure;
    Toc__V1__TaskKey key = TOC__V1__TASK_KEY__INIT;

    key.biz_type = "order";
    toc_rpc_failure_init(&failure, toc_rpc_call_arena(call));
    toc_rpc_violate(&failure, "payload", "has no taste");
    failure.retry_after_ms = 1500;
    failure.details[failure.n_details++] = &key.base;
    toc_rpc_fail(call, &failure);
}

static inline void
desk_refuse_hugely(struct toc_rpc_call *call)
{
    struct toc_rpc_failure failure;
    Toc__V1__OnTimeoutRequest huge = TOC__V1__ON_TIMEOUT_REQUEST__INIT;

    huge.payload.len = 100000;
    huge.payload.data = toc_arena_calloc(toc_rpc_call_arena(call), 1, 100000);
    toc_rpc_failure_init(&failure, toc_rpc_call_arena(call));
    for (int i = 0; i < 100; i++)
        toc_rpc_violate(&failure, "items", "%0400d", i);
    failure.details[failure.n_details++] = &huge.base;
    toc_rpc_fail(call, &failure);
}

static inline void
desk_answer_bigly(struct toc_rpc_call *call)
{
    const size_t len = (size_t)9 * 1024 * 1024;
    char *text = toc_arena_alloc(toc_rpc_call_arena(call), len + 1);

    memset(text, 'x', len);
    text[len] = '\0';
    desk_answer(call, text);
}

static inline void
desk_handle(void *self, unsigned method, const ProtobufCMessage *message,
            struct toc_rpc_call *call)
{
    struct desk *desk = self;
    const Toc__V1__OnTimeoutRequest *request =
        (const Toc__V1__OnTimeoutRequest *)message;
    const char *what = request->task_id;

    if (method != 0) {
        toc_rpc_fail_text(call, TOC_UNIMPLEMENTED, "not in this test");
        return;
    }
    atomic_fetch_add(&desk->seen, 1);
    if (strcmp(what, "keep") == 0)
        ck_assert(toc_queue_push(desk->kept, call));
    else if (strcmp(what, "worker") == 0 || strcmp(what, "slow") == 0)
        ck_assert(toc_queue_push(desk->work, call));
    else if (strcmp(what, "info") == 0)
        desk_info(call);
    else if (strcmp(what, "refuse") == 0)
        desk_refuse(call);
    else if (strcmp(what, "huge") == 0)
        desk_refuse_hugely(call);
    else if (strcmp(what, "big") == 0)
        desk_answer_bigly(call);
    else
        desk_echo(call);
}

static inline bool
desk_gone(void *call)
{
    return toc_rpc_call_cancelled(call);
}

static inline void
desk_work(void *arg)
{
    struct desk *desk = arg;
    void *call;

    while (toc_queue_pop(desk->work, &call, 1, INT64_MAX) == 1) {
        struct toc_str bytes = toc_rpc_call_bytes(call);
        if (bytes.len >= 6 && memcmp(bytes.ptr + 2, "slow", 4) == 0)
            ck_assert(toc_eventually(desk_gone, call));
        desk_echo(call);
    }
}

/* ---- up and down ----------------------------------------------------- */

static inline void
desk_serve(struct desk *desk, const struct toc_rpc_server_options *options)
{
    struct toc_error error = {0};

    ck_assert_msg(toc_rpc_server_new(options, &desk->server, &error) == TOC_OK,
                  "%s", error.msg);
    toc_rpc_server_add(desk->server, SERVICE, desk_handle, desk);
    ck_assert_msg(toc_rpc_server_start(desk->server, &error) == TOC_OK, "%s",
                  error.msg);
    toc_copy(desk->address, sizeof desk->address,
             toc_str_of(toc_rpc_server_address(desk->server)));
}

static inline struct toc_rpc_server_options
desk_server_options(void)
{
    return (struct toc_rpc_server_options){.listen = "127.0.0.1:0",
                                           .clock = toc_clock_os()};
}

static inline void
desk_open_with(struct desk *desk,
               const struct toc_rpc_server_options *server_options,
               const struct toc_rpc_client_options *client_options)
{
    *desk = (struct desk){.kept = toc_queue_new(10000),
                          .work = toc_queue_new(10000)};
    desk_serve(desk, server_options);
    desk->client = toc_rpc_client_new(client_options);
    toc_thread_start(&desk->worker, "desk-worker", desk_work, desk);
}

static inline void
desk_open(struct desk *desk)
{
    struct toc_rpc_server_options server = desk_server_options();
    struct toc_rpc_client_options client = {.clock = toc_clock_os()};

    desk_open_with(desk, &server, &client);
}

static inline void
desk_close(struct desk *desk)
{
    toc_rpc_client_free(desk->client);
    toc_rpc_server_stop(desk->server, 1000);
    toc_queue_close(desk->work);
    toc_thread_join(&desk->worker);
    toc_rpc_server_free(desk->server);
    toc_queue_free(desk->work);
    toc_queue_free(desk->kept);
}

/* The next call that was kept. */
static inline struct toc_rpc_call *
desk_kept(struct desk *desk)
{
    void *call = NULL;
    struct toc_mono until =
        toc_mono_add_ms(toc_clock_mono(toc_clock_os()), PATIENCE_MS);

    ck_assert_uint_eq(toc_queue_pop(desk->kept, &call, 1, until.ns), 1);
    return call;
}

/* ---- asking ---------------------------------------------------------- */

/* One call from start to its result, which is copied. */
struct ask {
    struct toc_bell bell;
    atomic_int answered;
    struct toc_rpc_pending *pending;
    struct toc_arena arena;
    struct toc_rpc_result result;
    const Toc__V1__OnTimeoutResponse *reply; /* on TOC_OK */
};

static inline void
ask_done(void *arg, const struct toc_rpc_result *result)
{
    struct ask *ask = arg;

    ask->result = *result;
    ask->result.message = toc_arena_str(&ask->arena, result->message);
    ask->result.details = toc_arena_str(&ask->arena, result->details);
    ask->result.reply = toc_arena_str(&ask->arena, result->reply);
    if (result->status == TOC_OK)
        ask->reply = toc_rpc_unpack(&toc__v1__on_timeout_response__descriptor,
                                    ask->result.reply, &ask->arena);
    ck_assert_int_eq(atomic_fetch_add(&ask->answered, 1), 0);
    toc_bell_ring(&ask->bell);
}

static inline struct toc_rpc_request
ask_request(const struct desk *desk, struct toc_str bytes)
{
    return (struct toc_rpc_request){
        .address = desk->address,
        .method = ON_TIMEOUT,
        .bytes = bytes,
        .deadline =
            toc_mono_add_ms(toc_clock_mono(toc_clock_os()), PATIENCE_MS),
    };
}

static inline void
ask_start_raw(struct ask *ask, struct desk *desk,
              const struct toc_rpc_request *request)
{
    *ask = (struct ask){0};
    toc_bell_init(&ask->bell);
    ask->pending = toc_rpc_start(desk->client, request, ask_done, ask);
}

static inline void
ask_bytes(struct toc_buf *bytes, const char *what, const char *payload)
{
    Toc__V1__OnTimeoutRequest request = TOC__V1__ON_TIMEOUT_REQUEST__INIT;

    request.task_id = (char *)what;
    request.payload.data = (uint8_t *)payload;
    request.payload.len = strlen(payload);
    toc_rpc_pack(&request.base, bytes);
}

static inline void
ask_start(struct ask *ask, struct desk *desk, const char *what,
          const char *payload)
{
    struct toc_buf bytes = {0};
    struct toc_rpc_request request;

    ask_bytes(&bytes, what, payload);
    request = ask_request(desk, toc_buf_view(&bytes));
    ask_start_raw(ask, desk, &request);
    toc_buf_done(&bytes);
}

static inline void
ask_wait(struct ask *ask)
{
    struct toc_mono until =
        toc_mono_add_ms(toc_clock_mono(toc_clock_os()), 2 * PATIENCE_MS);

    ck_assert_msg(toc_bell_wait(&ask->bell, until.ns), "no answer came");
}

static inline void
ask_expect(struct ask *ask, enum toc_status st)
{
    ask_wait(ask);
    ck_assert_msg(ask->result.status == st, "status is %s (%s), not %s",
                  toc_status_text(ask->result.status), ask->result.message.ptr,
                  toc_status_text(st));
}

static inline void
ask_end(struct ask *ask)
{
    toc_arena_done(&ask->arena);
    toc_bell_done(&ask->bell);
}

/* Asks, waits, expects the status, forgets. */
static inline void
ask_once(struct desk *desk, const char *what, enum toc_status st)
{
    struct ask ask;

    ask_start(&ask, desk, what, "hello");
    ask_expect(&ask, st);
    if (st == TOC_OK)
        ck_assert_str_eq(ask.reply->message, "hello");
    ask_end(&ask);
}

#endif
