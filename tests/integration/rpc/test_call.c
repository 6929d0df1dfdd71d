/*
 * Goal: a unary call does what it says on both sides, in the ordinary cases and
 * in all that can go wrong with one call.
 * Method: server and client in one process over loopback.
 */
#include "tests/integration/rpc/rpc_fixture.h"

#include "google/protobuf/any.pb-c.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"

#include <signal.h>

static struct desk desk;

START_TEST(echoes)
{
    desk_open(&desk);
    ask_once(&desk, "echo", TOC_OK);
    ask_once(&desk, "worker", TOC_OK);
    desk_close(&desk);
}
END_TEST

START_TEST(waits_for_the_answer)
{
    struct toc_arena arena = {0};
    struct toc_error error = {0};
    struct toc_str details = {0};
    Toc__V1__OnTimeoutRequest request = TOC__V1__ON_TIMEOUT_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;

    desk_open(&desk);
    request.task_id = "echo";
    request.payload.data = (uint8_t *)"hi";
    request.payload.len = 2;
    ck_assert_int_eq(toc_rpc_call(desk.client, desk.address, SERVICE,
                                  "OnTimeout", &request.base, PATIENCE_MS,
                                  &arena, &reply, NULL, &error),
                     TOC_OK);
    ck_assert_str_eq(((Toc__V1__OnTimeoutResponse *)reply)->message, "hi");
    request.task_id = "refuse";
    ck_assert_int_eq(toc_rpc_call(desk.client, desk.address, SERVICE,
                                  "OnTimeout", &request.base, PATIENCE_MS,
                                  &arena, &reply, &details, &error),
                     TOC_INVALID);
    ck_assert_str_eq(error.msg, "payload: has no taste");
    ck_assert_str_eq(error.source, "grpc");
    ck_assert_uint_gt(details.len, 0);
    request.task_id = "keep";
    ck_assert_int_eq(toc_rpc_call(desk.client, desk.address, SERVICE,
                                  "OnTimeout", &request.base, 50, &arena,
                                  &reply, &details, &error),
                     TOC_DEADLINE);
    desk_answer(desk_kept(&desk), "too late");
    toc_arena_done(&arena);
    desk_close(&desk);
}
END_TEST

START_TEST(a_thousand_at_once)
{
    enum { N = 1000 };
    struct ask *asks = TOC_NEW_ARRAY(struct ask, N);
    char text[16];

    desk_open(&desk);
    for (int i = 0; i < N; i++) {
        toc_format(text, sizeof text, "no %d", i);
        ask_start(&asks[i], &desk,
                  i % 3 == 0   ? "echo"
                  : i % 3 == 1 ? "worker"
                               : "keep",
                  text);
    }
    for (int i = 2; i < N; i += 3)
        desk_echo(desk_kept(&desk));
    for (int i = 0; i < N; i++) {
        toc_format(text, sizeof text, "no %d", i);
        ask_expect(&asks[i], TOC_OK);
        ck_assert_str_eq(asks[i].reply->message, text);
        ask_end(&asks[i]);
    }
    ck_assert_int_eq(atomic_load(&desk.seen), N);
    toc_free(asks);
    desk_close(&desk);
}
END_TEST

START_TEST(deadline_while_the_handler_keeps_the_call)
{
    struct toc_buf bytes = {0};
    struct toc_rpc_request request;
    struct toc_rpc_call *call;
    struct ask ask;

    desk_open(&desk);
    ask_bytes(&bytes, "keep", "");
    request = ask_request(&desk, toc_buf_view(&bytes));
    request.deadline = toc_mono_add_ms(toc_clock_mono(toc_clock_os()), 200);
    ask_start_raw(&ask, &desk, &request);
    call = desk_kept(&desk);
    ask_expect(&ask, TOC_DEADLINE);
    ck_assert(!ask.result.not_sent);
    ck_assert(toc_eventually(desk_gone, call));
    desk_answer(call, "nobody hears this");
    ask_end(&ask);
    toc_buf_done(&bytes);
    ask_once(&desk, "echo", TOC_OK);
    desk_close(&desk);
}
END_TEST

START_TEST(the_client_cancels)
{
    struct toc_rpc_call *call;
    struct ask ask, slow;

    desk_open(&desk);
    ask_start(&ask, &desk, "keep", "");
    call = desk_kept(&desk);
    ck_assert(!toc_rpc_call_cancelled(call));
    toc_rpc_cancel(ask.pending);
    ask_expect(&ask, TOC_CANCELLED);
    ck_assert(!ask.result.not_sent);
    ck_assert(toc_eventually(desk_gone, call));
    desk_answer(call, "nobody hears this");
    ask_end(&ask);
    ask_start(&slow, &desk, "slow", "");
    ask_start(&ask, &desk, "keep", "");
    call = desk_kept(&desk);
    toc_rpc_cancel_all(desk.client);
    ask_expect(&slow, TOC_CANCELLED);
    ask_expect(&ask, TOC_CANCELLED);
    toc_rpc_fail_text(call, TOC_UNAVAILABLE, "nobody hears this");
    ask_end(&slow);
    ask_end(&ask);
    ask_once(&desk, "echo", TOC_OK);
    desk_close(&desk);
}
END_TEST

START_TEST(metadata_deadline_and_peer_arrive)
{
    struct toc_rpc_metadata metadata[] = {
        {TOC_STR("x-other"), TOC_STR("1")},
        {TOC_STR("x-colour"), TOC_STR("red")},
    };
    struct toc_buf bytes = {0};
    struct toc_rpc_request request;
    struct ask ask;

    desk_open(&desk);
    ask_bytes(&bytes, "info", "");
    request = ask_request(&desk, toc_buf_view(&bytes));
    request.metadata = metadata;
    request.n_metadata = 2;
    ask_start_raw(&ask, &desk, &request);
    ask_expect(&ask, TOC_OK);
    ck_assert_msg(
        strncmp(ask.reply->message,
                "colour=red deadline=soon peer=ipv4:127.0.0.1:", 45) == 0,
        "%s", ask.reply->message);
    ask_end(&ask);
    request.n_metadata = 0;
    request.deadline.ns = INT64_MAX;
    ask_start_raw(&ask, &desk, &request);
    ask_expect(&ask, TOC_OK);
    ck_assert_msg(
        strncmp(ask.reply->message, "colour=none deadline=never", 26) == 0,
        "%s", ask.reply->message);
    ask_end(&ask);
    toc_buf_done(&bytes);
    desk_close(&desk);
}
END_TEST

static Google__Rpc__Status *
details_of(struct ask *ask)
{
    Google__Rpc__Status *status = toc_rpc_unpack(
        &google__rpc__status__descriptor, ask->result.details, &ask->arena);

    ck_assert_ptr_nonnull(status);
    ck_assert_int_eq(status->code, (int)ask->result.status);
    TOC_ASSERT_STR(ask->result.message, status->message);
    return status;
}

START_TEST(details_arrive)
{
    Google__Rpc__Status *status;
    struct ask ask;

    desk_open(&desk);
    ask_start(&ask, &desk, "refuse", "");
    ask_expect(&ask, TOC_INVALID);
    ck_assert(!ask.result.not_sent);
    status = details_of(&ask);
    ck_assert_uint_eq(status->n_details, 3);
    ck_assert_str_eq(status->details[0]->type_url,
                     "type.googleapis.com/google.rpc.BadRequest");
    ck_assert_str_eq(status->details[1]->type_url,
                     "type.googleapis.com/google.rpc.RetryInfo");
    ck_assert_str_eq(status->details[2]->type_url,
                     "type.googleapis.com/toc.v1.TaskKey");
    ask_end(&ask);
    desk_close(&desk);
}
END_TEST

/* Too much detail must not cost the status itself. */
START_TEST(details_that_do_not_fit_are_left_out)
{
    Google__Rpc__Status *status;
    Google__Rpc__BadRequest *bad;
    struct ask ask;
    struct toc_str value;

    desk_open(&desk);
    ask_start(&ask, &desk, "huge", "");
    ask_expect(&ask, TOC_INVALID);
    status = details_of(&ask);
    ck_assert_uint_le(ask.result.details.len, 4500);
    ck_assert_uint_eq(status->n_details, 1);
    value = (struct toc_str){(const char *)status->details[0]->value.data,
                             status->details[0]->value.len};
    bad = toc_rpc_unpack(&google__rpc__bad_request__descriptor, value,
                         &ask.arena);
    ck_assert_ptr_nonnull(bad);
    ck_assert_uint_ge(bad->n_field_violations, 1);
    ask_end(&ask);
    desk_close(&desk);
}
END_TEST

START_TEST(unknown_methods_are_named)
{
    static const char *const methods[] = {
        "/toc.v1.TimeoutHandler/OnNothing",
        "/toc.v1.Nothing/OnTimeout",
        "/x",
    };

    desk_open(&desk);
    /* More than the catch-all has armed. */
    for (int i = 0; i < 30; i++) {
        struct toc_rpc_request request = ask_request(&desk, TOC_STR(""));
        struct ask ask;
        request.method = methods[i % 3];
        ask_start_raw(&ask, &desk, &request);
        ask_expect(&ask, TOC_UNIMPLEMENTED);
        ck_assert_ptr_nonnull(strstr(ask.result.message.ptr, request.method));
        ck_assert(!ask.result.not_sent);
        ask_end(&ask);
    }
    desk_close(&desk);
}
END_TEST

START_TEST(malformed_requests_are_refused)
{
    static const struct toc_str bad[] = {
        {"\x0a\x7f", 2}, /* longer than the rest */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11}, /* no tag */
        {"\x0b\x0c", 2},                                      /* a group */
        {"\x12\x02\x0a\x05", 4}, /* inside a nested message */
    };

    desk_open(&desk);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct toc_rpc_request request = ask_request(&desk, bad[i]);
        struct ask ask;
        ask_start_raw(&ask, &desk, &request);
        ask_expect(&ask, TOC_INVALID);
        ck_assert_ptr_nonnull(
            strstr(ask.result.message.ptr, "toc.v1.OnTimeoutRequest"));
        ask_end(&ask);
    }
    ck_assert_int_eq(atomic_load(&desk.seen), 0);
    ask_once(&desk, "echo", TOC_OK);
    desk_close(&desk);
}
END_TEST

START_TEST(sizes_are_limited)
{
    struct toc_rpc_server_options server = desk_server_options();
    struct toc_rpc_client_options client = {.clock = toc_clock_os()};
    const size_t limit = 100000;
    char *payload = toc_alloc(limit + 1);
    struct ask ask;

    server.request_bytes_max = limit;
    desk_open_with(&desk, &server, &client);
    memset(payload, 'x', limit);
    payload[limit] = '\0';
    ask_start(&ask, &desk, "echo", payload);
    ask_expect(&ask, TOC_EXHAUSTED);
    ask_end(&ask);
    ck_assert_int_eq(atomic_load(&desk.seen), 0);
    payload[limit - 100] = '\0';
    ask_start(&ask, &desk, "echo", payload);
    ask_expect(&ask, TOC_OK);
    ck_assert_uint_eq(strlen(ask.reply->message), limit - 100);
    ask_end(&ask);
    ask_start(&ask, &desk, "big", ""); /* the client's limit */
    ask_expect(&ask, TOC_EXHAUSTED);
    ask_end(&ask);
    ask_once(&desk, "echo", TOC_OK);
    toc_free(payload);
    desk_close(&desk);
}
END_TEST

START_TEST(calls_at_once_are_limited)
{
    struct toc_rpc_server_options server = desk_server_options();
    struct toc_rpc_client_options client = {.clock = toc_clock_os()};
    struct toc_rpc_call *kept[3];
    struct ask asks[3], ask;
    Google__Rpc__Status *status;

    server.calls_in_flight_max = 3;
    desk_open_with(&desk, &server, &client);
    for (int i = 0; i < 3; i++) {
        ask_start(&asks[i], &desk, "keep", "");
        kept[i] = desk_kept(&desk);
    }
    ask_start(&ask, &desk, "echo", "");
    ask_expect(&ask, TOC_EXHAUSTED);
    status = details_of(&ask);
    ck_assert_uint_eq(status->n_details, 1);
    ck_assert_str_eq(status->details[0]->type_url,
                     "type.googleapis.com/google.rpc.RetryInfo");
    ask_end(&ask);
    for (int i = 0; i < 3; i++) {
        desk_answer(kept[i], "at last");
        ask_expect(&asks[i], TOC_OK);
        ask_end(&asks[i]);
    }
    ask_once(&desk, "echo", TOC_OK);
    desk_close(&desk);
}
END_TEST

START_TEST(impossible_requests_fail_by_callback)
{
    static const char *const addresses[] = {
        NULL,          "",           "host",     ":1",          "host:",
        "host:0",      "host:65536", "host:x",   "a b:1",       "/etc:1",
        "unix:/tmp/x", "dns:///a:1", "a,b:1",    "[::1:1",      "host:-1",
        "h%6f:1",      "a\nb:1",     "user@h:1", "host:1/path", "[]:1",
    };
    struct toc_rpc_metadata bad[] = {
        {TOC_STR("X-Upper"), TOC_STR("1")},
        {TOC_STR("x-value"), TOC_STR("two\nlines")},
        {TOC_STR(""), TOC_STR("")},
    };

    desk_open(&desk);
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        struct toc_rpc_request request = ask_request(&desk, TOC_STR(""));
        struct ask ask;
        request.address = addresses[i];
        ask_start_raw(&ask, &desk, &request);
        ask_expect(&ask, TOC_INVALID);
        ck_assert(ask.result.not_sent);
        ask_end(&ask);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct toc_rpc_request request = ask_request(&desk, TOC_STR(""));
        struct ask ask;
        request.metadata = &bad[i];
        request.n_metadata = 1;
        ask_start_raw(&ask, &desk, &request);
        ask_expect(&ask, TOC_INVALID);
        ck_assert(ask.result.not_sent);
        ask_end(&ask);
    }
    ck_assert_int_eq(atomic_load(&desk.seen), 0);
    desk_close(&desk);
}
END_TEST

START_TEST(a_deadline_in_the_past_is_not_sent)
{
    struct toc_rpc_request request;
    struct ask ask;

    desk_open(&desk);
    request = ask_request(&desk, TOC_STR(""));
    request.deadline.ns = 1;
    ask_start_raw(&ask, &desk, &request);
    ask_expect(&ask, TOC_DEADLINE);
    ck_assert_int_eq(atomic_load(&desk.seen), 0);
    ask_end(&ask);
    desk_close(&desk);
}
END_TEST

START_TEST(nobody_there_is_not_sent)
{
    struct toc_rpc_request request;
    struct ask ask;

    desk_open(&desk);
    request = ask_request(&desk, TOC_STR(""));
    request.address = "127.0.0.1:1";
    ask_start_raw(&ask, &desk, &request);
    ask_expect(&ask, TOC_UNAVAILABLE);
    ck_assert(ask.result.not_sent);
    ask_end(&ask);
    /* Without a name server at hand, nobody says so before the deadline. */
    request.address = "no-such-host.invalid:1";
    request.deadline = toc_mono_add_ms(toc_clock_mono(toc_clock_os()), 5000);
    ask_start_raw(&ask, &desk, &request);
    ask_wait(&ask);
    ck_assert(ask.result.status == TOC_DEADLINE ||
              (ask.result.status == TOC_UNAVAILABLE && ask.result.not_sent));
    ask_end(&ask);
    request.address = "127.0.0.1:1";
    request.wait_for_ready = true;
    request.deadline = toc_mono_add_ms(toc_clock_mono(toc_clock_os()), 300);
    ask_start_raw(&ask, &desk, &request);
    ask_expect(&ask, TOC_DEADLINE);
    ask_end(&ask);
    desk_close(&desk);
}
END_TEST

START_TEST(answering_twice_dies)
{
    struct toc_rpc_call *call;
    struct ask ask;

    desk_open(&desk);
    ask_start(&ask, &desk, "keep", "");
    call = desk_kept(&desk);
    desk_answer(call, "once");
    desk_answer(call, "twice");
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {
        echoes,
        waits_for_the_answer,
        a_thousand_at_once,
        deadline_while_the_handler_keeps_the_call,
        the_client_cancels,
        metadata_deadline_and_peer_arrive,
        details_arrive,
        details_that_do_not_fit_are_left_out,
        unknown_methods_are_named,
        malformed_requests_are_refused,
        sizes_are_limited,
        calls_at_once_are_limited,
        impossible_requests_fail_by_callback,
        a_deadline_in_the_past_is_not_sent,
        nobody_there_is_not_sent,
    };
    const toc_check_test deaths[] = {answering_twice_dies};
    int rc = toc_check_run("rpc_call", tests, sizeof tests / sizeof tests[0]);
    int rc_deaths = toc_check_run_signal("rpc_call_deaths", deaths, 1, SIGABRT);

    return rc != EXIT_SUCCESS ? rc : rc_deaths;
}
