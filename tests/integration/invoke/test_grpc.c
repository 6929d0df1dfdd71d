/*
 * Goal: what is sent is what the business is promised, and everything that can
 * come back becomes the answer that docs/HANDLERS.md says. (What every backend
 * keeps is in tests/contract/invoke.)
 * Method: a server on a free loopback port whose replies the test sets, and the
 * backend against it; for what no server answers, an address where none is.
 */
#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/cleanup.h"
#include "common/clock/os/clock_os.h"
#include "common/invoke/grpc/invoke_grpc.h"
#include "common/rpc/server.h"
#include "toc/v1/handler.pb-c.h"
#include "tests/support/toc_check.h"

#include <stdatomic.h>
#include <string.h>

#define FIRES 3
#define NOT_AFTER INT64_C(4000000000000)

static struct {
    struct toc_rpc_server *server;
    struct toc_invoke_grpc *grpc;
    struct toc_invoke *invoke;
    char target[96];
    /* What the server does. */
    enum toc_status fail;
    const char *message;
    int64_t retry_after_ms;
    Toc__V1__Answer answer;
    const char *said;
    int64_t retry_s;
    size_t answers; /* of a batch */
    size_t reply_bytes;
    /* What it saw. */
    char seen[6][64]; /* metadata */
    char payload[64], biz_id[64];
    int64_t due_s;
    unsigned method;
    size_t fires;
    /* The call. */
    struct toc_task task[FIRES];
    struct toc_spec spec;
    struct toc_fire fire[FIRES];
    struct toc_call call;
    atomic_int done;
    /* Says to a race detector, which sees no sockets, what comes after what:
     * test, server, test. */
    atomic_int order;
} fx;

/* ---- the server ------------------------------------------------------ */

static void
see(const struct toc_rpc_call *call, const char *name, size_t at)
{
    struct toc_str value = {NULL, 0};

    (void)toc_rpc_call_metadata(call, name, &value);
    toc_copy(fx.seen[at], sizeof fx.seen[at], value);
}

static Toc__V1__OnTimeoutResponse *
response(struct toc_arena *arena)
{
    Toc__V1__OnTimeoutResponse *reply = toc_arena_alloc(arena, sizeof *reply);
    Google__Protobuf__Timestamp *time = toc_arena_alloc(arena, sizeof *time);

    toc__v1__on_timeout_response__init(reply);
    reply->answer = fx.answer;
    reply->message =
        toc_arena_text(arena, toc_str_of(fx.said != NULL ? fx.said : ""));
    if (fx.retry_s != 0) {
        google__protobuf__timestamp__init(time);
        time->seconds = fx.retry_s;
        reply->retry_time = time;
    }
    if (fx.reply_bytes > 0) {
        reply->message = toc_arena_alloc(arena, fx.reply_bytes + 1);
        memset(reply->message, 'x', fx.reply_bytes);
        reply->message[fx.reply_bytes] = '\0';
    }
    return reply;
}

static void
reply_batch(struct toc_rpc_call *call)
{
    struct toc_arena *arena = toc_rpc_call_arena(call);
    Toc__V1__OnTimeoutBatchResponse reply =
        TOC__V1__ON_TIMEOUT_BATCH_RESPONSE__INIT;

    reply.n_answers = fx.answers;
    reply.answers = toc_arena_calloc(arena, fx.answers, sizeof(void *));
    for (size_t i = 0; i < fx.answers; i++)
        reply.answers[i] = response(arena);
    atomic_fetch_add(&fx.order, 1);
    toc_rpc_reply(call, &reply.base);
}

static void
look_at(const Toc__V1__OnTimeoutRequest *request)
{
    toc_copy(
        fx.payload, sizeof fx.payload,
        (struct toc_str){(char *)request->payload.data, request->payload.len});
    toc_copy(fx.biz_id, sizeof fx.biz_id, toc_str_of(request->key->biz_id));
    fx.due_s = request->due_time->seconds;
}

static void
serve(void *self, unsigned method, const ProtobufCMessage *request,
      struct toc_rpc_call *call)
{
    struct toc_rpc_failure failure;

    (void)self;
    (void)atomic_load(&fx.order);
    fx.method = method;
    see(call, "toc-fire-id", 0);
    see(call, "toc-attempt", 1);
    see(call, "toc-task-id", 2);
    see(call, "toc-not-after", 3);
    see(call, "traceparent", 4);
    see(call, "x-line", 5);
    if (method == 0) {
        fx.fires = 1;
        look_at((const Toc__V1__OnTimeoutRequest *)request);
    } else {
        fx.fires = ((const Toc__V1__OnTimeoutBatchRequest *)request)->n_fires;
        look_at(((const Toc__V1__OnTimeoutBatchRequest *)request)->fires[1]);
    }
    if (fx.fail != TOC_OK) {
        toc_rpc_failure_init(&failure, toc_rpc_call_arena(call));
        toc_rpc_failure_set(&failure, fx.fail, "%s", fx.message);
        failure.retry_after_ms = fx.retry_after_ms;
        atomic_fetch_add(&fx.order, 1);
        toc_rpc_fail(call, &failure);
    } else if (method == 0) {
        Toc__V1__OnTimeoutResponse *reply = response(toc_rpc_call_arena(call));

        atomic_fetch_add(&fx.order, 1);
        toc_rpc_reply(call, &reply->base);
    } else {
        reply_batch(call);
    }
}

/* ---- the call -------------------------------------------------------- */

static void
call_done(struct toc_call *call)
{
    (void)call;
    atomic_fetch_add(&fx.done, 1);
}

static void
make_fire(size_t i)
{
    static const char *const ids[FIRES] = {"1", "2", "3"};
    struct toc_task *task = &fx.task[i];

    *task = (struct toc_task){.fire = 1,
                              .version = 1,
                              .due_ms = 1800000000000,
                              .biz_type = TOC_STR("order"),
                              .biz_id = toc_str_of(ids[i]),
                              .payload = TOC_STR("the payload")};
    task->key_hash = toc_key_hash_of(task->biz_type, task->biz_id, task->name);
    task->id = toc_task_id_make(task->key_hash, task->due_ms, 1);
    fx.fire[i] =
        (struct toc_fire){.task = task, .spec = &fx.spec, .attempt = 2};
}

static void
open_all(void)
{
    struct toc_error err = {0};

    memset(&fx, 0, sizeof fx);
    fx.message = "told so";
    fx.answer = TOC__V1__ANSWER__ANSWER_DONE;
    ck_assert_int_eq(toc_rpc_server_new(
                         &(struct toc_rpc_server_options){
                             .listen = "127.0.0.1:0", .clock = toc_clock_os()},
                         &fx.server, &err),
                     TOC_OK);
    toc_rpc_server_add(fx.server, &toc__v1__timeout_handler__descriptor, serve,
                       NULL);
    ck_assert_int_eq(toc_rpc_server_start(fx.server, &err), TOC_OK);
    toc_format(fx.target, sizeof fx.target, "grpc://%s",
               toc_rpc_server_address(fx.server));
    fx.grpc = toc_invoke_grpc_new(
        &(struct toc_invoke_grpc_options){.clock = toc_clock_os()});
    fx.invoke = toc_invoke_grpc_port(fx.grpc);
    fx.spec.traceparent =
        TOC_STR("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    fx.spec.headers[0] =
        (struct toc_header){TOC_STR("x-line"), TOC_STR("orders")};
    fx.spec.n_headers = 1;
    for (size_t i = 0; i < FIRES; i++)
        make_fire(i);
}

static void
close_all(void)
{
    toc_invoke_grpc_free(fx.grpc);
    toc_rpc_server_stop(fx.server, 500);
    toc_rpc_server_free(fx.server);
}

static bool
is_done(void *arg)
{
    (void)arg;
    (void)atomic_load(&fx.order);
    return atomic_load(&fx.done) > 0;
}

static void
start(const char *target, size_t n, bool batch, int64_t timeout_ms)
{
    fx.call = (struct toc_call){
        .target = toc_str_of(target),
        .fires = fx.fire,
        .n = n,
        .batch = batch,
        .not_after_ms = NOT_AFTER,
        .deadline_ns =
            toc_mono_add_ms(toc_clock_mono(toc_clock_os()), timeout_ms).ns,
        .done = call_done};
    atomic_store(&fx.done, 0);
    atomic_fetch_add(&fx.order, 1);
    toc_invoke_start(fx.invoke, &fx.call);
}

static const struct toc_answer *
call(const char *target, size_t n, bool batch)
{
    start(target, n, batch, 5000);
    ck_assert(toc_eventually(is_done, NULL));
    ck_assert_int_eq(atomic_load(&fx.done), 1);
    return &fx.fire[0].answer;
}

static const struct toc_answer *
call_one(void)
{
    return call(fx.target, 1, false);
}

/* ---- tests ----------------------------------------------------------- */

START_TEST(sends_what_is_promised)
{
    char id[TOC_TASK_ID_TEXT_MAX], fire[TOC_FIRE_ID_TEXT_MAX];

    ck_assert_int_eq(call_one()->kind, TOC_ANSWER_DONE);
    ck_assert_str_eq(fx.seen[0], toc_fire_id_format(fx.task[0].id, 1, fire));
    ck_assert_str_eq(fx.seen[1], "2");
    ck_assert_str_eq(fx.seen[2], toc_task_id_format(fx.task[0].id, id));
    ck_assert_str_eq(fx.seen[3], "4000000000000");
    ck_assert(toc_str_eq(toc_str_of(fx.seen[4]), fx.spec.traceparent));
    ck_assert_str_eq(fx.seen[5], "orders");
    ck_assert_str_eq(fx.payload, "the payload");
    ck_assert_str_eq(fx.biz_id, "1");
    ck_assert_int_eq(fx.due_s, 1800000000);
    ck_assert_uint_eq(fx.method, 0);
}
END_TEST

static const struct {
    Toc__V1__Answer said;
    enum toc_answer_kind kind;
} answers[] = {
    {TOC__V1__ANSWER__ANSWER_UNSPECIFIED, TOC_ANSWER_DONE},
    {TOC__V1__ANSWER__ANSWER_DONE, TOC_ANSWER_DONE},
    {TOC__V1__ANSWER__ANSWER_RETRY, TOC_ANSWER_FAILED},
    {TOC__V1__ANSWER__ANSWER_FAILED, TOC_ANSWER_REJECTED},
    {TOC__V1__ANSWER__ANSWER_SNOOZE, TOC_ANSWER_SNOOZE},
    {TOC__V1__ANSWER__ANSWER_STOP, TOC_ANSWER_STOP},
    {(Toc__V1__Answer)99, TOC_ANSWER_FAILED},
};

START_TEST(reads_answers)
{
    fx.retry_s = 1900000000;
    fx.said = "because";
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        const struct toc_answer *answer;
        fx.answer = answers[i].said;
        answer = call_one();
        ck_assert_int_eq(answer->kind, answers[i].kind);
        if (answer->kind == TOC_ANSWER_SNOOZE ||
            answer->kind == TOC_ANSWER_STOP) {
            ck_assert_str_eq(answer->error, "because");
            ck_assert_int_eq(answer->retry_at_ms, 1900000000000);
        }
    }
    /* What is not understood may have run. */
    fx.spec.at_most_once = true;
    fx.answer = (Toc__V1__Answer)99;
    ck_assert_int_eq(call_one()->kind, TOC_ANSWER_UNKNOWN);
}
END_TEST

static const struct {
    enum toc_status status;
    enum toc_answer_kind kind;
} codes[] = {
    {TOC_CANCELLED, TOC_ANSWER_UNKNOWN},
    {TOC_UNKNOWN, TOC_ANSWER_UNKNOWN},
    {TOC_INVALID, TOC_ANSWER_REJECTED},
    {TOC_DEADLINE, TOC_ANSWER_UNKNOWN},
    {TOC_NOT_FOUND, TOC_ANSWER_FAILED},
    {TOC_EXISTS, TOC_ANSWER_REJECTED},
    {TOC_DENIED, TOC_ANSWER_FAILED},
    {TOC_EXHAUSTED, TOC_ANSWER_FAILED},
    {TOC_PRECONDITION, TOC_ANSWER_FAILED},
    {TOC_CONFLICT, TOC_ANSWER_REFUSED},
    {TOC_RANGE, TOC_ANSWER_FAILED},
    {TOC_UNIMPLEMENTED, TOC_ANSWER_FAILED},
    {TOC_INTERNAL, TOC_ANSWER_UNKNOWN},
    {TOC_UNAVAILABLE, TOC_ANSWER_UNKNOWN},
    {TOC_DATA_LOSS, TOC_ANSWER_UNKNOWN},
    {TOC_UNAUTHENTICATED, TOC_ANSWER_FAILED},
};

START_TEST(reads_codes)
{
    ck_assert_uint_eq(sizeof codes / sizeof codes[0], TOC_UNAUTHENTICATED);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        fx.fail = codes[i].status;
        ck_assert_msg(call_one()->kind == codes[i].kind, "code %d: answer %d",
                      (int)codes[i].status, (int)fx.fire[0].answer.kind);
        /* Whoever sends its own failure has ended; these are no proxy's words.
         */
        ck_assert_msg(fx.fire[0].answer.ended ==
                          (codes[i].status == TOC_UNKNOWN ||
                           codes[i].status == TOC_INTERNAL ||
                           codes[i].status == TOC_DATA_LOSS),
                      "code %d: ended", (int)codes[i].status);
        ck_assert_ptr_nonnull(strstr(fx.fire[0].answer.error, "told so"));
    }
}
END_TEST

START_TEST(honours_retry_info)
{
    int64_t before_ms = toc_clock_wall(toc_clock_os()).ms;

    fx.fail = TOC_EXHAUSTED;
    fx.retry_after_ms = 90000;
    ck_assert_int_eq(call_one()->kind, TOC_ANSWER_FAILED);
    ck_assert_int_ge(fx.fire[0].answer.retry_at_ms, before_ms + 90000);
    ck_assert_int_le(fx.fire[0].answer.retry_at_ms,
                     toc_clock_wall(toc_clock_os()).ms + 90000);
}
END_TEST

START_TEST(nobody_there_is_unreachable)
{
    ck_assert_int_eq(call("grpc://127.0.0.1:1", 1, false)->kind,
                     TOC_ANSWER_UNREACHABLE);
    ck_assert_int_eq(call("grpc://no-such-host.invalid:80", 1, false)->kind,
                     TOC_ANSWER_UNREACHABLE);
}
END_TEST

START_TEST(batch_shorter_than_its_fires)
{
    fx.answers = 2;
    fx.answer = TOC__V1__ANSWER__ANSWER_STOP;
    (void)call(fx.target, FIRES, true);
    ck_assert_uint_eq(fx.method, 1);
    ck_assert_uint_eq(fx.fires, FIRES);
    ck_assert_str_eq(fx.biz_id, "2");
    ck_assert_str_eq(fx.seen[3], "4000000000000");
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_STOP);
    ck_assert_int_eq(fx.fire[1].answer.kind, TOC_ANSWER_STOP);
    ck_assert_int_eq(fx.fire[2].answer.kind, TOC_ANSWER_FAILED);
    fx.answers = 50; /* too many are no harm */
    (void)call(fx.target, FIRES, true);
    ck_assert_int_eq(fx.fire[2].answer.kind, TOC_ANSWER_STOP);
    fx.fail = TOC_PRECONDITION;
    (void)call(fx.target, FIRES, true);
    for (size_t i = 0; i < FIRES; i++)
        ck_assert_int_eq(fx.fire[i].answer.kind, TOC_ANSWER_FAILED);
}
END_TEST

START_TEST(a_reply_too_large_fails_for_good)
{
    fx.reply_bytes = (size_t)9 * 1024 * 1024;
    ck_assert_int_eq(call_one()->kind, TOC_ANSWER_REJECTED);
    fx.reply_bytes = (size_t)5 * 1024 * 1024; /* cut, not refused */
    ck_assert_int_eq(call_one()->kind, TOC_ANSWER_DONE);
}
END_TEST

/* A method of one's own: payload in, any OK is done. Here the payload is a
 * request that our server understands. */
START_TEST(raw_methods)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf bytes = {0};
    Toc__V1__OnTimeoutRequest request = TOC__V1__ON_TIMEOUT_REQUEST__INIT;
    Toc__V1__TaskKey key = TOC__V1__TASK_KEY__INIT;
    Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    char biz_id[] = "raw", target[160];

    key.biz_id = biz_id;
    request.key = &key;
    request.due_time = &time;
    toc_rpc_pack(&request.base, &bytes);
    fx.task[0].payload = toc_buf_view(&bytes);
    fx.answer = TOC__V1__ANSWER__ANSWER_FAILED; /* nobody reads it */
    toc_format(target, sizeof target, "%s/toc.v1.TimeoutHandler/OnTimeout",
               fx.target);
    ck_assert_int_eq(call(target, 1, false)->kind, TOC_ANSWER_DONE);
    ck_assert_str_eq(fx.biz_id, "raw");
    ck_assert_str_eq(fx.seen[1], "2");
    toc_format(target, sizeof target, "%s/no.Such/Method", fx.target);
    ck_assert_int_eq(call(target, 1, false)->kind, TOC_ANSWER_FAILED);
}
END_TEST

static const char *const good[] = {
    "grpc://shop:1",         "grpc://127.0.0.1:65535/a.b.C/Do",
    "grpc://[::1]:80",       "dns:///shop.example.com:443",
    "grpc://shop:1/",        "grpc://s_h-o.p:80/S/m_1",
    "dns:///shop:443/a.B/Do"};
static const char *const bad[] = {
    "",
    "shop:1",
    "grpc://",
    "grpc://shop",
    "grpc://shop:",
    "grpc://shop:0",
    "grpc://shop:65536",
    "grpc://shop:1x",
    "grpc://:1",
    "grpc://sh op:1",
    "grpc://shop:1/Service",
    "grpc://shop:1/a/b/c",
    "grpc://shop:1/a.b/",
    "grpc://shop:1//b",
    "grpc://shop:1/a/b/",
    "grpc://shop:1/a/b?c",
    "grpcs://shop:1",
    "http://shop:1",
    "dns://shop:1",
    "grpc://user@shop:1",
    "grpc://::1:80",
    "grpc://[]:80",
};

START_TEST(targets)
{
    static char longest[TOC_TARGET_MAX + 20];

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        ck_assert_msg(toc_invoke_grpc_target_valid(toc_str_of(good[i])), "%s",
                      good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!toc_invoke_grpc_target_valid(toc_str_of(bad[i])), "%s",
                      bad[i]);
        ck_assert_int_eq(call(bad[i], 1, false)->kind, TOC_ANSWER_BAD_TARGET);
        ck_assert_str_ne(fx.fire[0].answer.error, "");
    }
    memset(longest, 'a', sizeof longest - 1);
    memcpy(longest, "grpc://shop:1/", 14);
    longest[30] = '/';
    ck_assert(!toc_invoke_grpc_target_valid(toc_str_of(longest)));
    /* A header that cannot be sent. */
    fx.spec.headers[0].name = TOC_STR("Not Legal");
    ck_assert_int_eq(call_one()->kind, TOC_ANSWER_BAD_TARGET);
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {sends_what_is_promised,
                                    reads_answers,
                                    reads_codes,
                                    honours_retry_info,
                                    nobody_there_is_unreachable,
                                    batch_shorter_than_its_fires,
                                    a_reply_too_large_fails_for_good,
                                    raw_methods,
                                    targets};
    Suite *suite = suite_create("invoke_grpc");
    TCase *tcase = tcase_create("invoke_grpc");
    SRunner *runner;
    int failed;

    /* Checked: gRPC must begin in the forked process. */
    tcase_add_checked_fixture(tcase, open_all, close_all);
    tcase_set_timeout(tcase, 60);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
