/*
 * Goal: an interrupt ends calls that hang, refuses later ones, and an
 * interrupted COMMIT is unknown, never told wrongly.
 *
 * Method: a relay between the store and the server falls silent, as a frozen
 * server does: in both directions, or for answers only. Then the calls that
 * wait are interrupted; without it they would wait for 10 s and try again.
 */
#include "tests/integration/store/fixture.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 8
#define STOPPING "interrupted: the process is stopping"

static struct {
    struct toc_thread thread;
    int listener;
    int fds[PAIRS_MAX][2]; /* the store's side, the server's */
    size_t n;
    _Atomic bool deaf, mute; /* asks nothing, answers nothing */
    _Atomic size_t waiting;  /* stores that ask a deaf one, or connect */
    _Atomic bool stop;
} relay;

static int
connect_server(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)fx.port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(inet_pton(AF_INET, fx.host, &to.sin_addr), 1);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void
pass(int pair[2], int from)
{
    static char bytes[1 << 16];
    ssize_t n = read(pair[from], bytes, sizeof bytes);

    if (n > 0 && send(pair[!from], bytes, (size_t)n, MSG_NOSIGNAL) == n)
        return;
    close(pair[0]);
    close(pair[1]);
    pair[0] = pair[1] = -1;
}

static void
look(const struct pollfd *fds)
{
    bool deaf = atomic_load(&relay.deaf), mute = atomic_load(&relay.mute);
    size_t waiting = fds[2 * relay.n].revents != 0;

    for (size_t i = 0; i < relay.n; i++) {
        waiting += fds[2 * i].revents != 0;
        if (fds[2 * i].revents != 0 && !deaf)
            pass(relay.fds[i], 0);
        if (fds[2 * i + 1].revents != 0 && !deaf && !mute &&
            relay.fds[i][1] >= 0)
            pass(relay.fds[i], 1);
    }
    atomic_store(&relay.waiting, deaf ? waiting : 0);
    if (fds[2 * relay.n].revents == 0 || deaf)
        return;
    ck_assert_uint_lt(relay.n, PAIRS_MAX);
    relay.fds[relay.n][0] = accept(relay.listener, NULL, NULL);
    relay.fds[relay.n++][1] = connect_server();
}

static void
run_relay(void *arg)
{
    struct pollfd fds[2 * PAIRS_MAX + 1];

    (void)arg;
    while (!atomic_load(&relay.stop)) {
        bool quiet = atomic_load(&relay.deaf) || atomic_load(&relay.mute);
        for (size_t i = 0; i < 2 * relay.n; i++)
            fds[i] = (struct pollfd){.fd = relay.fds[i / 2][i % 2],
                                     .events = POLLIN};
        fds[2 * relay.n] =
            (struct pollfd){.fd = relay.listener, .events = POLLIN};
        (void)poll(fds, (nfds_t)(2 * relay.n + 1), 10);
        look(fds);
        if (quiet) /* what is ready stays so */
            toc_os_sleep_until_mono(toc_os_mono_ns() + 2000000);
    }
}

/* The fixture's store goes through the relay, by two connections at most. */
static void
setup_relay(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char url[512];

    setup();
    toc_store_mysql_close(fx.mysql);
    relay.listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(relay.listener, (struct sockaddr *)&at, sizeof at),
                     0);
    ck_assert_int_eq(listen(relay.listener, PAIRS_MAX), 0);
    getsockname(relay.listener, (struct sockaddr *)&at, &len);
    toc_thread_start(&relay.thread, "relay", run_relay, NULL);
    snprintf(url, sizeof url, "mysql://%s@127.0.0.1:%u/%s", fx.user,
             ntohs(at.sin_port), fx.db);
    fx.mysql = open_store(url, 2);
    fx.store = toc_store_mysql_port(fx.mysql);
}

static void
teardown_relay(void)
{
    atomic_store(&relay.stop, true);
    toc_thread_join(&relay.thread);
    for (size_t i = 0; i < 2 * relay.n; i++)
        (void)close(relay.fds[i / 2][i % 2]);
    (void)close(relay.listener);
}

/* ---- callers ----------------------------------------------------------- */

struct asker {
    struct toc_thread thread;
    enum toc_status st;
    struct toc_error err;
};

static void
ask_now(void *arg)
{
    struct asker *asker = arg;
    int64_t there_ms;

    asker->st = toc_store_now(fx.store, &there_ms, &asker->err);
}

static bool
wait_all(void *arg)
{
    return atomic_load(&relay.waiting) >= *(const size_t *)arg;
}

#define REFUSED(call)                                      \
    do {                                                   \
        struct toc_error err_ = {0}, *err = &err_;         \
        ck_assert_int_eq((call), TOC_UNAVAILABLE);         \
        ck_assert_ptr_nonnull(strstr(err->msg, STOPPING)); \
    } while (0)

/* One waits for an answer, one for its connection, one for a place. */
START_TEST(calls_that_hang_end)
{
    struct asker askers[3] = {{.st = TOC_OK}};
    struct toc_task task = make_task("order", "x", "", now_ms() + 60000);
    struct toc_submit item = make_submit(&task, 1), *items[] = {&item};
    size_t reached = 2;
    int64_t there_ms;

    atomic_store(&relay.deaf, true);
    for (size_t i = 0; i < 3; i++)
        toc_thread_start(&askers[i].thread, "asker", ask_now, &askers[i]);
    ck_assert(toc_eventually(wait_all, &reached));
    toc_store_hasten(fx.store);
    toc_store_interrupt(fx.store);
    for (size_t i = 0; i < 3; i++) {
        toc_thread_join(&askers[i].thread);
        ck_assert_int_eq(askers[i].st, TOC_UNAVAILABLE);
        ck_assert_ptr_nonnull(strstr(askers[i].err.msg, STOPPING));
    }
    atomic_store(&relay.deaf, false);
    REFUSED(toc_store_now(fx.store, &there_ms, err));
    REFUSED(toc_store_submit(fx.store, items, 1, now_ms(), err));
    REFUSED(toc_store_make_days(fx.store, now_ms(), err));
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 0);
    teardown_relay();
}
END_TEST

struct submitter {
    struct toc_thread thread;
    struct toc_submit *item;
    enum toc_status st;
    struct toc_error err;
};

static void
submit_it(void *arg)
{
    struct submitter *submitter = arg;

    submitter->st = toc_store_submit(fx.store, &submitter->item, 1, now_ms(),
                                     &submitter->err);
}

static bool
is_stored(void *arg)
{
    (void)arg;
    return raw("SELECT COUNT(*) FROM task_info") == 1;
}

/* The answer to COMMIT does not come: unavailable; the same submit, made again
 * as its caller would, finds its own row. */
START_TEST(a_commit_is_unknown)
{
    struct toc_task task = make_task("order", "x", "", now_ms() + 60000);
    struct toc_submit item = make_submit(&task, 1), *items[] = {&item};
    struct submitter submitter = {.item = &item};
    struct toc_store_mysql *direct = open_store(fx.url, 1);

    atomic_store(&relay.mute, true);
    toc_thread_start(&submitter.thread, "submitter", submit_it, &submitter);
    ck_assert(toc_eventually(is_stored, NULL));
    toc_store_interrupt(fx.store);
    toc_thread_join(&submitter.thread);
    ck_assert_int_eq(submitter.st, TOC_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(submitter.err.msg, STOPPING));
    OK(toc_store_submit(toc_store_mysql_port(direct), items, 1, now_ms(), err));
    ck_assert_int_eq(item.result, TOC_SUBMIT_CREATED);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 1);
    toc_store_mysql_close(direct);
    teardown_relay();
}
END_TEST

/* Nothing hangs: an interrupt at any moment of many calls is safe. */
static void
ask_on(void *arg)
{
    struct asker *asker = arg;
    int64_t there_ms;

    do
        asker->st = toc_store_now(fx.store, &there_ms, &asker->err);
    while (asker->st == TOC_OK);
}

START_TEST(busy_calls_end)
{
    struct asker askers[6] = {{.st = TOC_OK}};

    for (size_t i = 0; i < 6; i++)
        toc_thread_start(&askers[i].thread, "asker", ask_on, &askers[i]);
    toc_os_sleep_until_mono(toc_os_mono_ns() + 50000000);
    toc_store_interrupt(fx.store);
    for (size_t i = 0; i < 6; i++) {
        toc_thread_join(&askers[i].thread);
        ck_assert_int_eq(askers[i].st, TOC_UNAVAILABLE);
        ck_assert_ptr_nonnull(strstr(askers[i].err.msg, STOPPING));
    }
    teardown_relay();
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {calls_that_hang_end, a_commit_is_unknown,
                                    busy_calls_end};

    return run_tests("interrupt", tests, sizeof tests / sizeof tests[0], 60,
                     setup_relay);
}
