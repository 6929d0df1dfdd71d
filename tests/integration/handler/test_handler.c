/*
 * Goal: a business's handler gets what was sent, its answers come back, and
 * nothing begins after toc-not-after.
 * Method: a handler server on a free loopback port and a real client in the
 * same process (made in the forked child of each test). Handlers block on a
 * gate where the order of things matters.
 */
#include "common/base/alloc.h"
#include "common/base/thread.h"
#include "common/clock/os/clock_os.h"
#include "common/handler/handler.h"
#include "common/rpc/client.h"
#include "toc/sample/v1/shop.pb-c.h"
#include "toc/v1/handler.pb-c.h"
#include "tests/support/toc_check.h"

#include <stdatomic.h>
#include <string.h>

#define ONE "/toc.v1.TimeoutHandler/OnTimeout"
#define BATCH "/toc.v1.TimeoutHandler/OnTimeoutBatch"
#define STOCK "/toc.sample.v1.Shop/GetStock"
#define FIRES_MAX 8
#define REPLIES_MAX 8

/* How a call ended. */
struct reply {
    atomic_bool done;
    enum toc_status status;
    char message[128];
    struct toc_arena arena;
    char *bytes;
    size_t len;
};

/* What the handler saw, and what it is to do. */
struct stub {
    struct toc_handler *handler;
    struct toc_rpc_client *client;
    atomic_int begun, ended, others;
    atomic_bool closed;  /* the gate: handlers wait before it */
    atomic_bool expired; /* wait until expired instead */
    struct toc_timeout_answer answer;
    struct toc_timeout seen; /* by the last one; texts below */
    char texts[8][64];
    struct reply replies[REPLIES_MAX];
    size_t n_replies;
};

static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t
now_ms(void)
{
    return toc_clock_wall(toc_clock_os()).ms;
}

static bool
gate_open(void *arg)
{
    return !atomic_load(&((struct stub *)arg)->closed);
}

static struct toc_str
keep(struct stub *stub, size_t at, struct toc_str s)
{
    return toc_str_of(toc_copy(stub->texts[at], sizeof stub->texts[at], s));
}

struct expiry {
    struct stub *stub;
    const struct toc_timeout *timeout;
};

static bool
has_expired(void *arg)
{
    struct expiry *expiry = arg;
    return toc_timeout_expired(expiry->stub->handler, expiry->timeout);
}

static void
on_timeout(void *self, const struct toc_timeout *timeout,
           struct toc_timeout_answer *answer)
{
    struct stub *stub = self;

    atomic_fetch_add(&stub->begun, 1);
    ck_assert_int_eq(answer->verdict, TOC_TIMEOUT_DONE);
    ck_assert(toc_eventually(gate_open, stub));
    if (atomic_load(&stub->expired))
        ck_assert(toc_eventually(has_expired, &(struct expiry){stub, timeout}));
    pthread_mutex_lock(&seen_lock);
    stub->seen = *timeout;
    stub->seen.task_id = keep(stub, 0, timeout->task_id);
    stub->seen.biz_type = keep(stub, 1, timeout->biz_type);
    stub->seen.biz_id = keep(stub, 2, timeout->biz_id);
    stub->seen.name = keep(stub, 3, timeout->name);
    stub->seen.fire_id = keep(stub, 4, timeout->fire_id);
    stub->seen.payload = keep(stub, 5, timeout->payload);
    stub->seen.content_type = keep(stub, 6, timeout->content_type);
    pthread_mutex_unlock(&seen_lock);
    *answer = stub->answer;
    atomic_fetch_add(&stub->ended, 1);
}

static void
on_stock(void *self, unsigned method, const ProtobufCMessage *request,
         struct toc_rpc_call *call)
{
    Toc__Sample__V1__Stock stock = TOC__SAMPLE__V1__STOCK__INIT;
    struct stub *stub = self;

    (void)request;
    ck_assert_uint_eq(method, 4);
    atomic_fetch_add(&stub->others, 1);
    stock.available = 7;
    toc_rpc_reply(call, &stock.base);
}

static void
start(struct stub *stub, size_t threads, size_t queue_max, bool inline_calls)
{
    static struct toc_handler_service service;
    struct toc_error err;

    service = (struct toc_handler_service){&toc__sample__v1__shop__descriptor,
                                           on_stock, stub};
    ck_assert_msg(
        toc_handler_start(
            &(struct toc_handler_options){.listen = "127.0.0.1:0",
                                          .on_timeout = on_timeout,
                                          .self = stub,
                                          .threads = threads,
                                          .queue_max = queue_max,
                                          .services = &service,
                                          .n_services = 1,
                                          .inline_calls = inline_calls},
            &stub->handler, &err) == TOC_OK,
        "%s", err.msg);
    stub->client = toc_rpc_client_new(
        &(struct toc_rpc_client_options){.clock = toc_clock_os()});
}

static void
free_rest(struct stub *stub)
{
    toc_rpc_client_free(stub->client);
    for (size_t i = 0; i < stub->n_replies; i++)
        toc_arena_done(&stub->replies[i].arena);
}

static void
stop(struct stub *stub)
{
    toc_handler_stop(stub->handler, 1000);
    free_rest(stub);
}

/* ---- calling -------------------------------------------------------- */

static void
on_done(void *arg, const struct toc_rpc_result *result)
{
    struct reply *reply = arg;

    reply->status = result->status;
    toc_copy(reply->message, sizeof reply->message, result->message);
    reply->bytes = toc_arena_text(&reply->arena, result->reply);
    reply->len = result->reply.len;
    atomic_store(&reply->done, true);
}

static bool
is_done(void *arg)
{
    return atomic_load(&((struct reply *)arg)->done);
}

static struct reply *
call(struct stub *stub, const char *method, const ProtobufCMessage *message,
     const struct toc_rpc_metadata *metadata, size_t n)
{
    struct reply *reply = &stub->replies[stub->n_replies++];
    struct toc_buf bytes = {0};

    ck_assert_uint_le(stub->n_replies, REPLIES_MAX);

    toc_rpc_pack(message, &bytes);
    toc_rpc_start(
        stub->client,
        &(struct toc_rpc_request){
            .address = toc_handler_address(stub->handler),
            .method = method,
            .bytes = toc_buf_view(&bytes),
            .metadata = metadata,
            .n_metadata = n,
            .deadline = toc_mono_add_ms(toc_clock_mono(toc_clock_os()), 20000)},
        on_done, reply);
    toc_buf_done(&bytes);
    return reply;
}

static void *
finished(struct reply *reply, const ProtobufCMessageDescriptor *type)
{
    void *message;

    ck_assert(toc_eventually(is_done, reply));
    ck_assert_msg(reply->status == TOC_OK, "%s: %s",
                  toc_status_text(reply->status), reply->message);
    message = toc_rpc_unpack(type, (struct toc_str){reply->bytes, reply->len},
                             &reply->arena);
    ck_assert_ptr_nonnull(message);
    return message;
}

static const Toc__V1__OnTimeoutRequest empty =
    TOC__V1__ON_TIMEOUT_REQUEST__INIT;

/* Sends one fire and waits for how it ends. */
static struct reply *
fire(struct stub *stub, const struct toc_rpc_metadata *metadata, size_t n)
{
    struct reply *reply = call(stub, ONE, &empty.base, metadata, n);

    ck_assert(toc_eventually(is_done, reply));
    return reply;
}

static struct toc_rpc_metadata
not_after(char text[24], int64_t ms)
{
    toc_format(text, 24, "%lld", (long long)ms);
    return (struct toc_rpc_metadata){TOC_STR("toc-not-after"),
                                     toc_str_of(text)};
}

/* ---- tests ---------------------------------------------------------- */

START_TEST(hands_over_what_was_sent)
{
    Toc__V1__OnTimeoutRequest request = TOC__V1__ON_TIMEOUT_REQUEST__INIT;
    Toc__V1__TaskKey key = TOC__V1__TASK_KEY__INIT;
    Google__Protobuf__Timestamp due = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    struct stub stub = {0};
    struct reply *reply;
    int64_t before = now_ms();
    char later[24];
    struct toc_rpc_metadata metadata[] = {
        {TOC_STR("toc-fire-id"), TOC_STR("T-3")},
        {TOC_STR("toc-attempt"), TOC_STR("5")},
        not_after(later, before + 60000),
    };

    start(&stub, 0, 0, false);
    request.task_id = "T";
    request.fire_id = "ignored";
    request.attempt = 1;
    request.key = &key;
    key.biz_type = "order";
    key.biz_id = "42";
    key.name = "pay";
    request.due_time = &due;
    due.seconds = 1700000000;
    due.nanos = 1; /* rounded up */
    request.payload.data = (uint8_t *)"a\0b";
    request.payload.len = 3;
    request.content_type = "text/plain";
    reply = call(&stub, ONE, &request.base, metadata, 3);
    finished(reply, &toc__v1__on_timeout_response__descriptor);
    TOC_ASSERT_STR(stub.seen.task_id, "T");
    TOC_ASSERT_STR(stub.seen.biz_type, "order");
    TOC_ASSERT_STR(stub.seen.biz_id, "42");
    TOC_ASSERT_STR(stub.seen.name, "pay");
    TOC_ASSERT_STR(stub.seen.fire_id, "T-3");
    ck_assert_uint_eq(stub.seen.attempt, 5);
    ck_assert_int_eq(stub.seen.due_ms, 1700000000001);
    ck_assert_int_eq(stub.seen.not_after_ms, before + 60000);
    ck_assert_int_ge(stub.seen.arrived_ms, before);
    ck_assert_int_le(stub.seen.arrived_ms, now_ms());
    TOC_ASSERT_STR(stub.seen.content_type, "text/plain");
    ck_assert_mem_eq(stub.texts[5], "a\0b", 3);
    stop(&stub);
}
END_TEST

START_TEST(brings_answers_back)
{
    static const struct {
        enum toc_timeout_verdict verdict;
        Toc__V1__Answer answer;
    } rows[] = {
        {TOC_TIMEOUT_DONE, TOC__V1__ANSWER__ANSWER_DONE},
        {TOC_TIMEOUT_RETRY, TOC__V1__ANSWER__ANSWER_RETRY},
        {TOC_TIMEOUT_FAILED, TOC__V1__ANSWER__ANSWER_FAILED},
        {TOC_TIMEOUT_SNOOZE, TOC__V1__ANSWER__ANSWER_SNOOZE},
        {TOC_TIMEOUT_STOP, TOC__V1__ANSWER__ANSWER_STOP},
    };
    struct stub stub = {0};

    start(&stub, 1, 0, false);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reply *reply;
        const Toc__V1__OnTimeoutResponse *response;
        stub.answer = (struct toc_timeout_answer){
            .verdict = rows[i].verdict, .retry_ms = -1, .message = "why"};
        reply = call(&stub, ONE, &empty.base, NULL, 0);
        response = finished(reply, &toc__v1__on_timeout_response__descriptor);
        ck_assert_int_eq(response->answer, rows[i].answer);
        ck_assert_str_eq(response->message, "why");
        ck_assert_int_eq(response->retry_time->seconds, -1);
        ck_assert_int_eq(response->retry_time->nanos, 999000000);
    }
    stop(&stub);
}
END_TEST

START_TEST(refuses_what_comes_too_late)
{
    struct stub stub = {0};
    struct reply *reply;
    char text[24];
    struct toc_rpc_metadata metadata = not_after(text, now_ms() - 1);

    start(&stub, 1, 0, false);
    reply = fire(&stub, &metadata, 1);
    ck_assert_int_eq(reply->status, TOC_CONFLICT);
    ck_assert_str_eq(reply->message, "toc-not-after passed");
    ck_assert_int_eq(atomic_load(&stub.begun), 0);
    stop(&stub);
}
END_TEST

START_TEST(refuses_metadata_that_is_no_number)
{
    static const char *const names[] = {"toc-not-after", "toc-attempt"};
    struct stub stub = {0};

    start(&stub, 1, 0, false);
    for (size_t i = 0; i < 2; i++) {
        struct reply *reply;
        struct toc_rpc_metadata bad = {toc_str_of(names[i]), TOC_STR("soon")};
        reply = fire(&stub, &bad, 1);
        ck_assert_int_eq(reply->status, TOC_INVALID);
    }
    ck_assert_int_eq(atomic_load(&stub.begun), 0);
    stop(&stub);
}
END_TEST

static bool
has_begun(void *arg)
{
    return atomic_load(&((struct stub *)arg)->begun) > 0;
}

static bool
passed(void *arg)
{
    return now_ms() > *(int64_t *)arg;
}

/* One worker is held at the gate while a second call grows old in the queue. */
START_TEST(refuses_what_waited_too_long)
{
    struct stub stub = {.closed = true};
    struct reply *first, *second;
    int64_t limit = now_ms() + 100;
    char text[24];
    struct toc_rpc_metadata metadata = not_after(text, limit);

    start(&stub, 1, 0, false);
    first = call(&stub, ONE, &empty.base, NULL, 0);
    ck_assert(toc_eventually(has_begun, &stub));
    second = call(&stub, ONE, &empty.base, &metadata, 1);
    ck_assert(toc_eventually(passed, &limit));
    atomic_store(&stub.closed, false);
    ck_assert(toc_eventually(is_done, second));
    ck_assert_int_eq(second->status, TOC_CONFLICT);
    finished(first, &toc__v1__on_timeout_response__descriptor);
    ck_assert_int_eq(atomic_load(&stub.begun), 1);
    stop(&stub);
}
END_TEST

/* Of three calls one runs, one waits, and the queue holds no more. */
START_TEST(refuses_when_too_many_wait)
{
    struct stub stub = {.closed = true};
    struct reply *replies[3];
    int refused = 0;

    start(&stub, 1, 1, false);
    replies[0] = call(&stub, ONE, &empty.base, NULL, 0);
    ck_assert(toc_eventually(has_begun, &stub));
    replies[1] = call(&stub, ONE, &empty.base, NULL, 0);
    replies[2] = call(&stub, ONE, &empty.base, NULL, 0);
    /* Either of the two may have come in first. */
    while (!is_done(replies[1]) && !is_done(replies[2]))
        toc_clock_os_sleep_until(
            toc_mono_add_ms(toc_clock_mono(toc_clock_os()), 1));
    atomic_store(&stub.closed, false);
    for (size_t i = 0; i < 3; i++) {
        ck_assert(toc_eventually(is_done, replies[i]));
        refused += replies[i]->status == TOC_EXHAUSTED;
    }
    ck_assert_int_eq(refused, 1);
    ck_assert_int_eq(atomic_load(&stub.ended), 2);
    stop(&stub);
}
END_TEST

static void
fill_batch(Toc__V1__OnTimeoutBatchRequest *batch, size_t n)
{
    static Toc__V1__OnTimeoutRequest fires[FIRES_MAX];
    static Toc__V1__OnTimeoutRequest *pointers[FIRES_MAX];
    static Google__Protobuf__Timestamp past;

    google__protobuf__timestamp__init(&past);
    past.seconds = 1700000000;
    toc__v1__on_timeout_batch_request__init(batch);
    batch->n_fires = n;
    batch->fires = pointers;
    for (size_t i = 0; i < n; i++) {
        toc__v1__on_timeout_request__init(&fires[i]);
        pointers[i] = &fires[i];
        fires[i].fire_id = "F";
        fires[i].not_after = i % 2 == 1 ? &past : NULL;
    }
}

static void
check_batch(struct stub *stub)
{
    Toc__V1__OnTimeoutBatchRequest batch;
    const Toc__V1__OnTimeoutBatchResponse *response;
    struct reply *reply;

    fill_batch(&batch, FIRES_MAX);
    reply = call(stub, BATCH, &batch.base, NULL, 0);
    response = finished(reply, &toc__v1__on_timeout_batch_response__descriptor);
    ck_assert_uint_eq(response->n_answers, FIRES_MAX);
    for (size_t i = 0; i < FIRES_MAX; i++) {
        ck_assert_int_eq(response->answers[i]->answer,
                         i % 2 == 1 ? TOC__V1__ANSWER__ANSWER_RETRY
                                    : TOC__V1__ANSWER__ANSWER_DONE);
        ck_assert_str_eq(response->answers[i]->message,
                         i % 2 == 1 ? "toc-not-after passed" : "");
    }
    ck_assert_int_eq(atomic_load(&stub->begun), FIRES_MAX / 2);
}

START_TEST(answers_each_fire_of_a_batch)
{
    struct stub stub = {0};

    start(&stub, 3, 0, false);
    check_batch(&stub);
    stop(&stub);
}
END_TEST

START_TEST(runs_inline)
{
    struct stub stub = {0};
    struct reply *reply;

    start(&stub, 1, 0, true);
    check_batch(&stub);
    reply = call(&stub, STOCK, &empty.base, NULL, 0);
    finished(reply, &toc__sample__v1__stock__descriptor);
    stop(&stub);
}
END_TEST

static bool
four_begun(void *arg)
{
    return atomic_load(&((struct stub *)arg)->begun) == 4;
}

/* The fires of one batch run at once when workers are idle; an empty batch is
 * answered. */
START_TEST(spreads_a_batch_over_workers)
{
    Toc__V1__OnTimeoutBatchRequest batch;
    struct stub stub = {.closed = true};
    struct reply *reply, *none;
    const Toc__V1__OnTimeoutBatchResponse *response;

    start(&stub, 4, 0, false);
    fill_batch(&batch, FIRES_MAX);
    for (size_t i = 0; i < FIRES_MAX; i++)
        batch.fires[i]->not_after = NULL;
    reply = call(&stub, BATCH, &batch.base, NULL, 0);
    ck_assert(toc_eventually(four_begun, &stub));
    atomic_store(&stub.closed, false);
    response = finished(reply, &toc__v1__on_timeout_batch_response__descriptor);
    ck_assert_uint_eq(response->n_answers, FIRES_MAX);
    ck_assert_int_eq(atomic_load(&stub.ended), FIRES_MAX);

    fill_batch(&batch, 0);
    none = call(&stub, BATCH, &batch.base, NULL, 0);
    response = finished(none, &toc__v1__on_timeout_batch_response__descriptor);
    ck_assert_uint_eq(response->n_answers, 0);
    stop(&stub);
}
END_TEST

/* All timeout workers are held; the other service answers all the same. */
START_TEST(serves_a_further_service_meanwhile)
{
    struct stub stub = {.closed = true};
    struct reply *held, *reply;
    const Toc__Sample__V1__Stock *stock;

    start(&stub, 1, 0, false);
    held = call(&stub, ONE, &empty.base, NULL, 0);
    ck_assert(toc_eventually(has_begun, &stub));
    reply = call(&stub, STOCK, &empty.base, NULL, 0);
    stock = finished(reply, &toc__sample__v1__stock__descriptor);
    ck_assert_uint_eq(stock->available, 7);
    ck_assert_int_eq(atomic_load(&stub.others), 1);
    atomic_store(&stub.closed, false);
    finished(held, &toc__v1__on_timeout_response__descriptor);
    stop(&stub);
}
END_TEST

/* A handler that works on is told to stop when the grace is over. */
START_TEST(stop_tells_running_handlers)
{
    struct stub stub = {.expired = true};
    struct reply *reply;

    start(&stub, 1, 0, false);
    reply = call(&stub, ONE, &empty.base, NULL, 0);
    ck_assert(toc_eventually(has_begun, &stub));
    toc_handler_stop(stub.handler, 50);
    ck_assert_int_eq(atomic_load(&stub.ended), 1);
    ck_assert(toc_eventually(is_done, reply));
    free_rest(&stub);
}
END_TEST

START_TEST(refuses_an_address_that_is_taken)
{
    struct stub stub = {0};
    struct toc_handler *second = NULL;
    struct toc_error err;

    start(&stub, 1, 0, false);
    ck_assert_int_eq(toc_handler_start(
                         &(struct toc_handler_options){
                             .listen = toc_handler_address(stub.handler),
                             .on_timeout = on_timeout,
                             .self = &stub},
                         &second, &err),
                     TOC_UNAVAILABLE);
    ck_assert_ptr_null(second);
    stop(&stub);
}
END_TEST

TOC_CHECK_MAIN("handler", hands_over_what_was_sent, brings_answers_back,
               refuses_what_comes_too_late, refuses_metadata_that_is_no_number,
               refuses_what_waited_too_long, refuses_when_too_many_wait,
               answers_each_fire_of_a_batch, runs_inline,
               spreads_a_batch_over_workers, serves_a_further_service_meanwhile,
               stop_tells_running_handlers, refuses_an_address_that_is_taken)
