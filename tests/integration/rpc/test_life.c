/*
 * Goal: servers and clients start, stop, come back and go in any order, with
 * calls under way, and lose or leak nothing.
 * Method: server and client in one process; calls that the test itself keeps
 * decide the order of things. The sanitizers do the rest.
 */
#include "tests/integration/rpc/rpc_fixture.h"

static struct desk desk;

struct stopping {
    struct toc_rpc_server *server;
    int64_t grace_ms;
    atomic_bool done;
    struct toc_thread thread;
};

static void
stop(void *arg)
{
    struct stopping *stopping = arg;

    toc_rpc_server_stop(stopping->server, stopping->grace_ms);
    atomic_store(&stopping->done, true);
}

static void
stop_begin(struct stopping *stopping, int64_t grace_ms)
{
    stopping->server = desk.server;
    stopping->grace_ms = grace_ms;
    atomic_init(&stopping->done, false);
    toc_thread_start(&stopping->thread, "stopper", stop, stopping);
}

static void
server_again(void)
{
    struct toc_rpc_server_options options = desk_server_options();
    char address[sizeof desk.address];

    toc_rpc_server_free(desk.server);
    memcpy(address, desk.address, sizeof address);
    options.listen = address;
    desk_serve(&desk, &options);
    ck_assert_str_eq(desk.address, address);
}

static bool
refuses_new_calls(void *arg)
{
    struct ask ask;
    enum toc_status st;

    (void)arg;
    ask_start(&ask, &desk, "echo", "");
    ask_wait(&ask);
    st = ask.result.status;
    ask_end(&ask);
    return st == TOC_UNAVAILABLE;
}

static bool
serves(void *arg)
{
    struct ask ask;
    enum toc_status st;

    (void)arg;
    ask_start(&ask, &desk, "echo", "");
    ask_wait(&ask);
    st = ask.result.status;
    ask_end(&ask);
    return st == TOC_OK;
}

START_TEST(stop_lets_calls_end)
{
    struct stopping stopping;
    struct toc_rpc_call *call;
    struct ask ask;

    desk_open(&desk);
    ask_start(&ask, &desk, "keep", "");
    call = desk_kept(&desk);
    stop_begin(&stopping, PATIENCE_MS);
    ck_assert(toc_eventually(refuses_new_calls, NULL));
    ck_assert(!atomic_load(&stopping.done));
    ck_assert(!toc_rpc_call_cancelled(call));
    desk_answer(call, "in time");
    ask_expect(&ask, TOC_OK);
    ck_assert_str_eq(ask.reply->message, "in time");
    ask_end(&ask);
    toc_thread_join(&stopping.thread);
    desk_close(&desk);
}
END_TEST

START_TEST(stop_cancels_what_is_left)
{
    struct stopping stopping;
    struct toc_rpc_call *calls[20];
    struct ask asks[20];

    desk_open(&desk);
    for (int i = 0; i < 20; i++) {
        ask_start(&asks[i], &desk, "keep", "");
        calls[i] = desk_kept(&desk);
    }
    stop_begin(&stopping, 50);
    for (int i = 0; i < 20; i++) {
        ask_wait(&asks[i]);
        ck_assert_int_ne(asks[i].result.status, TOC_OK);
        ck_assert(!asks[i].result.not_sent);
        ask_end(&asks[i]);
        ck_assert(toc_eventually(desk_gone, calls[i]));
    }
    /* Stop waits for the keepers, however long they take. */
    for (int i = 0; i < 20; i++) {
        ck_assert(!atomic_load(&stopping.done));
        desk_answer(calls[i], "nobody hears this");
    }
    toc_thread_join(&stopping.thread);
    desk_close(&desk);
}
END_TEST

START_TEST(stop_at_once_and_before_start)
{
    struct toc_rpc_server_options options = desk_server_options();
    struct toc_rpc_server *server;

    ck_assert_int_eq(toc_rpc_server_new(&options, &server, NULL), TOC_OK);
    toc_rpc_server_stop(server, 0);
    toc_rpc_server_free(server);
    toc_rpc_server_free(NULL);
    desk_open(&desk);
    toc_rpc_server_stop(desk.server, 0);
    toc_rpc_server_stop(desk.server, 0);
    desk_close(&desk);
}
END_TEST

static void
stop_amid_calls(int64_t grace_ms)
{
    enum { N = 300 };
    struct ask *asks = TOC_NEW_ARRAY(struct ask, N);
    struct stopping stopping;

    desk_open(&desk);
    ask_once(&desk, "echo", TOC_OK);
    for (int i = 0; i < N; i++) {
        ask_start(&asks[i], &desk, i % 2 ? "echo" : "worker", "hello");
        if (i == N / 2)
            stop_begin(&stopping, grace_ms);
    }
    for (int i = 0; i < N; i++) {
        ask_wait(&asks[i]);
        ck_assert_msg(asks[i].result.status == TOC_OK ||
                          asks[i].result.status == TOC_UNAVAILABLE,
                      "%s: %s", toc_status_text(asks[i].result.status),
                      asks[i].result.message.ptr);
        ask_end(&asks[i]);
    }
    toc_thread_join(&stopping.thread);
    toc_free(asks);
    desk_close(&desk);
}

/* Whatever a call meets, it is served or may be tried again: gRPC's own resets
 * of calls that come too late look like a cancel, which nobody asked for. */
START_TEST(stop_under_load)
{
    stop_amid_calls(1000);
    for (int i = 0; i < 5; i++)
        stop_amid_calls(0);
}
END_TEST

/* A restarted handler must be found again within the back-off of 2 s. */
START_TEST(the_client_finds_a_restarted_server)
{
    struct ask ask;

    desk_open(&desk);
    for (int i = 0; i < 2; i++) {
        ask_once(&desk, "echo", TOC_OK);
        toc_rpc_server_stop(desk.server, 0);
        ask_start(&ask, &desk, "echo", "");
        ask_expect(&ask, TOC_UNAVAILABLE);
        ask_end(&ask);
        server_again();
        ck_assert(toc_eventually(serves, NULL));
    }
    desk_close(&desk);
}
END_TEST

START_TEST(a_waiting_call_outlives_a_restart)
{
    struct toc_buf bytes = {0};
    struct toc_rpc_request request;
    struct ask ask;

    desk_open(&desk);
    toc_rpc_server_stop(desk.server, 0);
    ask_bytes(&bytes, "echo", "hello");
    request = ask_request(&desk, toc_buf_view(&bytes));
    request.wait_for_ready = true;
    ask_start_raw(&ask, &desk, &request);
    server_again();
    ask_expect(&ask, TOC_OK);
    ask_end(&ask);
    toc_buf_done(&bytes);
    desk_close(&desk);
}
END_TEST

/* The call was on its way: that it cannot have arrived must not be said. */
START_TEST(a_broken_connection_may_have_delivered)
{
    struct stopping stopping;
    struct toc_rpc_call *call;
    struct ask ask;

    desk_open(&desk);
    ask_start(&ask, &desk, "keep", "");
    call = desk_kept(&desk);
    stop_begin(&stopping, 0);
    ask_wait(&ask);
    ck_assert_int_ne(ask.result.status, TOC_OK);
    ck_assert(!ask.result.not_sent);
    ask_end(&ask);
    desk_answer(call, "");
    toc_thread_join(&stopping.thread);
    desk_close(&desk);
}
END_TEST

START_TEST(a_taken_port_is_an_error)
{
    struct toc_rpc_server_options options = desk_server_options();
    struct toc_rpc_server *server;
    struct toc_error error = {0};

    desk_open(&desk);
    options.listen = desk.address;
    ck_assert_int_eq(toc_rpc_server_new(&options, &server, &error), TOC_OK);
    ck_assert_int_eq(toc_rpc_server_start(server, &error), TOC_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(error.msg, desk.address));
    toc_rpc_server_stop(server, 0);
    toc_rpc_server_free(server);
    ask_once(&desk, "echo", TOC_OK);
    desk_close(&desk);
}
END_TEST

START_TEST(bad_addresses_to_listen_on)
{
    static const char *const bad[] = {NULL,         "",       "127.0.0.1",
                                      ":1",         "host:x", "127.0.0.1:70000",
                                      "unix:/tmp/x"};
    struct toc_rpc_server_options options = desk_server_options();
    struct toc_rpc_server *server = NULL;
    struct toc_error error = {0};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        options.listen = bad[i];
        ck_assert_int_eq(toc_rpc_server_new(&options, &server, &error),
                         TOC_INVALID);
        ck_assert_ptr_null(server);
    }
    /* One of the addresses kept for documentation: nobody's. */
    options.listen = "192.0.2.1:0";
    ck_assert_int_eq(toc_rpc_server_new(&options, &server, &error), TOC_OK);
    ck_assert_int_eq(toc_rpc_server_start(server, &error), TOC_UNAVAILABLE);
    toc_rpc_server_free(server);
}
END_TEST

START_TEST(freeing_the_client_ends_its_calls)
{
    struct toc_rpc_call *calls[10];
    struct ask asks[10];

    desk_open(&desk);
    for (int i = 0; i < 10; i++) {
        ask_start(&asks[i], &desk, "keep", "");
        calls[i] = desk_kept(&desk);
    }
    toc_rpc_client_free(desk.client);
    desk.client = NULL;
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(atomic_load(&asks[i].answered), 1);
        ck_assert_int_eq(asks[i].result.status, TOC_CANCELLED);
        ask_end(&asks[i]);
        desk_answer(calls[i], "nobody hears this");
    }
    desk_close(&desk);
}
END_TEST

struct chain {
    struct ask ask; /* the second call */
    atomic_int started;
};

static void
start_another(void *arg, const struct toc_rpc_result *result)
{
    struct chain *chain = arg;
    struct toc_rpc_request request = ask_request(&desk, TOC_STR(""));

    ck_assert_int_eq(result->status, TOC_CANCELLED);
    ask_start_raw(&chain->ask, &desk, &request);
    atomic_store(&chain->started, 1);
}

/* Callbacks that try again must not keep a client from ending. */
START_TEST(a_closing_client_refuses_by_callback)
{
    struct toc_buf bytes = {0};
    struct toc_rpc_request request;
    struct toc_rpc_call *call;
    struct chain chain = {0};

    desk_open(&desk);
    ask_bytes(&bytes, "keep", "");
    request = ask_request(&desk, toc_buf_view(&bytes));
    (void)toc_rpc_start(desk.client, &request, start_another, &chain);
    call = desk_kept(&desk);
    toc_rpc_client_free(desk.client);
    desk.client = NULL;
    ck_assert_int_eq(atomic_load(&chain.started), 1);
    ck_assert_int_eq(atomic_load(&chain.ask.answered), 1);
    ck_assert_int_eq(chain.ask.result.status, TOC_CANCELLED);
    ck_assert(chain.ask.result.not_sent);
    ask_end(&chain.ask);
    desk_answer(call, "nobody hears this");
    toc_buf_done(&bytes);
    desk_close(&desk);
}
END_TEST

/* More addresses than channels: all are served, and a call on a channel that
 * is closed meanwhile goes on. */
START_TEST(channels_are_bounded)
{
    struct toc_rpc_server_options server = desk_server_options();
    struct toc_rpc_client_options client = {.clock = toc_clock_os(),
                                            .channels_max = 2};
    struct toc_rpc_call *call;
    struct ask kept, ask;
    const char *port;

    server.listen = "0.0.0.0:0";
    desk_open_with(&desk, &server, &client);
    port = strrchr(desk.address, ':');
    ask_start(&kept, &desk, "keep", "");
    call = desk_kept(&desk);
    for (int i = 0; i < 20; i++) {
        struct toc_buf bytes = {0};
        struct toc_rpc_request request;
        char address[64];

        toc_format(address, sizeof address, "127.0.0.%d%s", i % 5 + 1, port);
        ask_bytes(&bytes, "echo", "hello");
        request = ask_request(&desk, toc_buf_view(&bytes));
        request.address = address;
        ask_start_raw(&ask, &desk, &request);
        ask_expect(&ask, TOC_OK);
        ask_end(&ask);
        toc_buf_done(&bytes);
    }
    desk_answer(call, "still here");
    ask_expect(&kept, TOC_OK);
    ask_end(&kept);
    desk_close(&desk);
}
END_TEST

START_TEST(several_threads_on_both_sides)
{
    enum { N = 400 };
    struct toc_rpc_server_options server = desk_server_options();
    struct toc_rpc_client_options client = {.clock = toc_clock_os(),
                                            .threads = 3};
    struct ask *asks = TOC_NEW_ARRAY(struct ask, N);

    server.threads = 4;
    server.calls_armed = 1;
    desk_open_with(&desk, &server, &client);
    for (int i = 0; i < N; i++)
        ask_start(&asks[i], &desk, i % 2 ? "echo" : "worker", "hello");
    for (int i = 0; i < N; i++) {
        ask_expect(&asks[i], TOC_OK);
        ask_end(&asks[i]);
    }
    toc_free(asks);
    desk_close(&desk);
}
END_TEST

/* The library itself comes and goes with the last of its users. */
START_TEST(again_and_again)
{
    for (int i = 0; i < 10; i++) {
        desk_open(&desk);
        ask_once(&desk, "echo", TOC_OK);
        desk_close(&desk);
    }
}
END_TEST

TOC_CHECK_MAIN("rpc_life", stop_lets_calls_end, stop_cancels_what_is_left,
               stop_at_once_and_before_start, stop_under_load,
               the_client_finds_a_restarted_server,
               a_waiting_call_outlives_a_restart,
               a_broken_connection_may_have_delivered, a_taken_port_is_an_error,
               bad_addresses_to_listen_on, freeing_the_client_ends_its_calls,
               a_closing_client_refuses_by_callback, channels_are_bounded,
               several_threads_on_both_sides, again_and_again)
