/*
 * Goal: a connection that is lost while a COMMIT is under way never makes the
 * store tell a wrong outcome, lose a change or make it twice.
 *
 * Method: a TCP proxy between the store and the server cuts the connection at
 * the packet that holds the commit, in four ways: the packet goes on to the
 * server and the answer is lost; it goes on half a second later, when the store
 * tries again already; it is swallowed; it is swallowed and the old connection
 * stays open with its locks. The proxy also lets others act between two packets
 * of a call, or after a commit whose answer is lost.
 */
#include "tests/integration/store/fixture.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum cut { CUT_ANSWER, CUT_LATE, CUT_SWALLOW, CUT_STUCK, CUTS };

#define CONNS 32

struct pipe {
    int client, server;
    bool cut;        /* the client is gone, the server's side is not */
    int64_t late_ns; /* when to pass the packet on; 0: never */
    char held[1 << 20];
    size_t n_held;
};

static struct {
    struct toc_thread thread;
    int listener;
    unsigned port;
    struct pipe *pipes[CONNS];
    size_t n;
    const char *marker; /* the packet to cut at; NULL: none */
    enum cut cut;
    int cuts;                 /* so many times done */
    const char *pause_marker; /* the packet before which others act */
    void (*others)(void);     /* then, or after CUT_ANSWER; NULL: nobody */
    bool stop;
} proxy;

static pthread_mutex_t proxy_lock = PTHREAD_MUTEX_INITIALIZER;

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
close_client(struct pipe *p)
{
    shutdown(p->client, SHUT_RDWR);
    close(p->client);
    p->client = -1;
}

static void
close_server(struct pipe *p)
{
    if (p->server >= 0)
        close(p->server);
    p->server = -1;
}

static bool
holds(const char *marker, const char *bytes, size_t n)
{
    size_t len = marker != NULL ? strlen(marker) : 0;

    for (size_t i = 0; len > 0 && i + len <= n; i++)
        if (memcmp(bytes + i, marker, len) == 0)
            return true;
    return false;
}

/* So that the server does not end the idle transaction before we look. */
static void
stretch_timeout(char *bytes, size_t n)
{
    const char *set = fx.mariadb ? "idle_transaction_timeout=1"
                                 : "SET SESSION wait_timeout=1";
    size_t len = strlen(set);

    for (size_t i = 0; i + len <= n; i++)
        if (memcmp(bytes + i, set, len) == 0)
            bytes[i + len - 1] = '9';
}

/* In the proxy's thread: nothing passes meanwhile. */
static void
let_others_act(void)
{
    void (*others)(void) = proxy.others;

    proxy.others = NULL;
    if (others != NULL)
        others();
}

static void
cut_here(struct pipe *p, const char *bytes, size_t n)
{
    proxy.marker = NULL;
    proxy.cuts++;
    if (proxy.cut == CUT_ANSWER) {
        ck_assert_int_eq(write(p->server, bytes, n), (ssize_t)n);
        let_others_act();
    }
    close_client(p);
    if (proxy.cut == CUT_SWALLOW)
        close_server(p);
    p->cut = true;
    if (proxy.cut == CUT_LATE) {
        memcpy(p->held, bytes, n);
        p->n_held = n;
        p->late_ns = toc_os_mono_ns() + 500000000;
    }
}

static void
from_client(struct pipe *p)
{
    static char bytes[1 << 20];
    ssize_t n = read(p->client, bytes, sizeof bytes);

    if (n <= 0) {
        close_client(p);
        close_server(p);
        return;
    }
    pthread_mutex_lock(&proxy_lock);
    if (proxy.cut == CUT_STUCK)
        stretch_timeout(bytes, (size_t)n);
    if (holds(proxy.pause_marker, bytes, (size_t)n)) {
        proxy.pause_marker = NULL;
        let_others_act();
    }
    if (holds(proxy.marker, bytes, (size_t)n))
        cut_here(p, bytes, (size_t)n);
    else if (write(p->server, bytes, (size_t)n) != n)
        close_client(p);
    pthread_mutex_unlock(&proxy_lock);
}

static void
from_server(struct pipe *p)
{
    static char bytes[1 << 20];
    ssize_t n = read(p->server, bytes, sizeof bytes);

    if (n <= 0) {
        close_server(p);
        if (p->client >= 0)
            close_client(p);
    } else if (p->client >= 0 && write(p->client, bytes, (size_t)n) != n) {
        close_client(p);
    }
}

static void
pass_late(struct pipe *p)
{
    if (p->late_ns == 0 || toc_os_mono_ns() < p->late_ns)
        return;
    p->late_ns = 0;
    if (p->server >= 0)
        (void)!write(p->server, p->held, p->n_held);
}

static void
run_proxy(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&proxy.stop, __ATOMIC_ACQUIRE)) {
        struct pollfd fds[1 + 2 * CONNS];
        fds[0] = (struct pollfd){.fd = proxy.listener, .events = POLLIN};
        for (size_t i = 0; i < proxy.n; i++) {
            fds[1 + 2 * i] =
                (struct pollfd){.fd = proxy.pipes[i]->client, .events = POLLIN};
            fds[2 + 2 * i] =
                (struct pollfd){.fd = proxy.pipes[i]->server, .events = POLLIN};
        }
        (void)poll(fds, (nfds_t)(1 + 2 * proxy.n), 10);
        for (size_t i = 0; i < proxy.n; i++) {
            struct pipe *p = proxy.pipes[i];
            pass_late(p);
            if (fds[1 + 2 * i].revents != 0 && p->client >= 0)
                from_client(p);
            if (fds[2 + 2 * i].revents != 0 && p->server >= 0)
                from_server(p);
        }
        if (fds[0].revents != 0) {
            struct pipe *p = TOC_NEW(struct pipe);
            ck_assert_uint_lt(proxy.n, CONNS);
            p->client = accept(proxy.listener, NULL, NULL);
            p->server = connect_server();
            proxy.pipes[proxy.n++] = p;
        }
    }
}

/* The store of the fixture goes through the proxy from now on. */
static void
setup_proxy(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char url[512];

    setup();
    proxy.listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(proxy.listener, (struct sockaddr *)&at, sizeof at),
                     0);
    ck_assert_int_eq(listen(proxy.listener, CONNS), 0);
    getsockname(proxy.listener, (struct sockaddr *)&at, &len);
    proxy.port = ntohs(at.sin_port);
    toc_store_mysql_close(fx.mysql);
    toc_thread_start(&proxy.thread, "proxy", run_proxy, NULL);
    snprintf(url, sizeof url, "mysql://%s@127.0.0.1:%u/%s", fx.user, proxy.port,
             fx.db);
    fx.mysql = open_store(url, 4);
    fx.store = toc_store_mysql_port(fx.mysql);
}

static void
arm(const char *marker, enum cut cut)
{
    pthread_mutex_lock(&proxy_lock);
    if (cut == CUT_STUCK && proxy.cut != CUT_STUCK) {
        /* needs new connections, whose timeout is stretched */
        proxy.cut = cut;
        pthread_mutex_unlock(&proxy_lock);
        toc_store_mysql_close(fx.mysql);
        {
            char url[512];
            snprintf(url, sizeof url, "mysql://%s@127.0.0.1:%u/%s", fx.user,
                     proxy.port, fx.db);
            fx.mysql = open_store(url, 4);
            fx.store = toc_store_mysql_port(fx.mysql);
        }
        pthread_mutex_lock(&proxy_lock);
    }
    proxy.cut = cut;
    proxy.marker = marker;
    proxy.cuts = 0;
    pthread_mutex_unlock(&proxy_lock);
}

static void
arm_others(const char *pause_marker, void (*others)(void))
{
    pthread_mutex_lock(&proxy_lock);
    proxy.pause_marker = pause_marker;
    proxy.others = others;
    pthread_mutex_unlock(&proxy_lock);
}

static void
check_cut(void)
{
    pthread_mutex_lock(&proxy_lock);
    ck_assert_int_eq(proxy.cuts, 1);
    pthread_mutex_unlock(&proxy_lock);
}

static const char *
id_of(const char *what, int cut)
{
    return toc_arena_printf(&fx.arena, "%s%d", what, cut);
}

static int64_t
count_of(const char *biz_id)
{
    return raw("SELECT COUNT(*) FROM task_info WHERE biz_id='%s'", biz_id);
}

START_TEST(submit)
{
    for (int cut = 0; cut < CUTS; cut++) {
        const char *id = id_of("s", cut);
        struct toc_task task = make_task("order", id, "", now_ms() + 60000);
        arm("COMMIT", (enum cut)cut);
        ck_assert_int_eq(submit_one(&task, 1, TOC_ON_CONFLICT_REJECT, NULL),
                         TOC_SUBMIT_CREATED);
        check_cut();
        ck_assert_int_eq(count_of(id), 1);
        ck_assert_uint_eq(get_id(task.id).version, 1);
        check_key(&task);
    }
}
END_TEST

/* The packet that commits a submit in two packets, by how it begins; the one
 * packet that was tried before it holds a COMMIT too, but does not get there.
 */
#define LAST_OF_SUBMIT "\x03INSERT INTO task_info"

/* New keys: one packet, so that no lock waits for a second one. */
START_TEST(submit_in_one_packet)
{
    struct toc_task task;

    arm(LAST_OF_SUBMIT, CUT_SWALLOW);
    task = stored_task("one", now_ms() + 60000);
    pthread_mutex_lock(&proxy_lock);
    ck_assert_int_eq(proxy.cuts, 0);
    pthread_mutex_unlock(&proxy_lock);
    check_key(&task);
}
END_TEST

START_TEST(submit_that_replaces)
{
    for (int cut = 0; cut < CUTS; cut++) {
        const char *id = id_of("p", cut);
        struct toc_task old = stored_task(id, now_ms() + 60000), task;
        arm(LAST_OF_SUBMIT, (enum cut)cut);
        task = make_task("order", id, "", now_ms() + 70000);
        ck_assert_int_eq(submit_one(&task, 2, TOC_ON_CONFLICT_REPLACE, NULL),
                         TOC_SUBMIT_REPLACED);
        check_cut();
        ck_assert_int_eq(get_id(old.id).state, TOC_STATE_CANCELLED);
        ck_assert_uint_eq(get_id(old.id).version, 2);
        check_key(&task);
    }
}
END_TEST

static int64_t
count_of_row(const char *what)
{
    return raw("SELECT COUNT(*) FROM task_info WHERE biz_id='r' AND name='' "
               "AND %s",
               what);
}

static bool
second_is_there(void *arg)
{
    (void)arg;
    return count_of_row("version=1 AND due_ms MOD 10=2") == 1;
}

/* Waits for the commit whose answer is lost, then takes the key over, by a
 * store with a connection of its own. */
static void
replace_again(void)
{
    struct toc_store_mysql *direct = open_store(fx.url, 1);
    struct toc_task task =
        make_task("order", "r", "", (now_ms() + 80000) / 10 * 10 + 3);
    struct toc_submit item = make_submit(&task, 3), *items[] = {&item};

    ck_assert(toc_eventually(second_is_there, NULL));
    item.on_conflict = TOC_ON_CONFLICT_REPLACE;
    OK(toc_store_submit(toc_store_mysql_port(direct), items, 1, now_ms(), err));
    ck_assert_int_eq(item.result, TOC_SUBMIT_REPLACED);
    toc_store_mysql_close(direct);
}

static bool
mark_is_free(void *arg)
{
    MYSQL_RES *rows = NULL;

    (void)arg;
    if (mysql_query(fx.raw,
                    "SELECT low_ms FROM shard_owner FOR UPDATE NOWAIT") == 0)
        rows = mysql_store_result(fx.raw); /* here too it may fail */
    if (rows == NULL)
        return false;
    mysql_free_result(rows);
    return true;
}

static void
wait_for_the_mark(void)
{
    ck_assert(!mark_is_free(NULL));
    ck_assert(toc_eventually(mark_is_free, NULL));
}

/* Frozen between its two packets it holds the mark no longer than the server's
 * timeout; awake again, it begins anew. */
START_TEST(submit_frozen_between_packets)
{
    struct toc_task old = stored_task("z", now_ms() + 60000), task;

    task = make_task("order", "z", "", now_ms() + 70000);
    arm_others(LAST_OF_SUBMIT, wait_for_the_mark);
    ck_assert_int_eq(submit_one(&task, 2, TOC_ON_CONFLICT_REPLACE, NULL),
                     TOC_SUBMIT_REPLACED);
    pthread_mutex_lock(&proxy_lock);
    ck_assert(proxy.others == NULL); /* they did act */
    pthread_mutex_unlock(&proxy_lock);
    ck_assert_int_eq(get_id(old.id).state, TOC_STATE_CANCELLED);
    ck_assert_uint_eq(get_id(old.id).version, 2);
    check_key(&task);
}
END_TEST

/* It replaced, unseen, and was replaced: it does not come back. */
START_TEST(submit_that_was_replaced_meanwhile)
{
    struct toc_task old = stored_task("r", now_ms() + 60000), task;

    task = make_task("order", "r", "", (now_ms() + 70000) / 10 * 10 + 2);
    arm_others(NULL, replace_again);
    arm(LAST_OF_SUBMIT, CUT_ANSWER);
    ck_assert_int_eq(submit_one(&task, 2, TOC_ON_CONFLICT_REPLACE, NULL),
                     TOC_SUBMIT_REPLACED);
    check_cut();
    ck_assert_int_eq(get_id(old.id).state, TOC_STATE_CANCELLED);
    ck_assert_int_eq(get_id(task.id).state, TOC_STATE_CANCELLED);
    ck_assert_int_eq(count_of_row("status=7"), 2);
    ck_assert_int_eq(count_of_row("status=0 AND due_ms MOD 10=3"), 1);
}
END_TEST

START_TEST(claiming)
{
    for (int cut = 0; cut < CUT_STUCK; cut++) {
        struct toc_task a = stored_task(id_of("a", cut), now_ms() - 10);
        struct toc_task b = stored_task(id_of("b", cut), now_ms() + 60000);
        struct toc_claim claims[2] = {
            {.ref = toc_task_ref_of(&a), .want_row = true},
            {.ref = toc_task_ref_of(&b), .want_row = true}};
        struct toc_claim_lock lock =
            lock_of((uint64_t)cut + 1, now_ms() + 60000);
        arm("UPDATE task_info SET status=2", (enum cut)cut);
        OK(toc_store_claim(fx.store, claims, 2, &lock, &fx.arena, err));
        check_cut();
        ck_assert_int_eq(claims[0].result, TOC_CLAIM_WON);
        ck_assert_int_eq(claims[1].result, TOC_CLAIM_EARLY);
        ck_assert_uint_eq(get_id(a.id).lock_token, (uint64_t)cut + 1);
        ck_assert_int_eq(claim_one(&a, 99, now_ms() + 60000), TOC_CLAIM_TAKEN);
    }
}
END_TEST

static void
remove_b(void)
{
    ck_assert_int_eq(
        raw("DELETE FROM task_info WHERE biz_id='b'; SELECT ROW_COUNT()"), 1);
}

/* A row that is gone when it is read back (its lock was lost to a sweep, then a
 * command moved it) is not won. */
START_TEST(claimed_and_gone)
{
    struct toc_task a = stored_task("a", now_ms() - 10);
    struct toc_task b = stored_task("b", now_ms() - 10);
    struct toc_claim claims[2] = {
        {.ref = toc_task_ref_of(&a), .want_row = true},
        {.ref = toc_task_ref_of(&b), .want_row = true}};
    struct toc_claim_lock lock = lock_of(1, now_ms() + 60000);

    arm_others("payload_long FROM task_info", remove_b);
    OK(toc_store_claim(fx.store, claims, 2, &lock, &fx.arena, err));
    ck_assert_int_eq(claims[0].result, TOC_CLAIM_WON);
    ck_assert_ptr_nonnull(claims[0].row);
    ck_assert_int_eq(claims[1].result, TOC_CLAIM_TAKEN);
    ck_assert_ptr_null(claims[1].row);
}
END_TEST

START_TEST(results)
{
    static const enum toc_finish_kind kinds[] = {
        TOC_FINISH_DONE, TOC_FINISH_RETRY, TOC_FINISH_DEAD,
        TOC_FINISH_GIVE_BACK};
    static const enum toc_state states[] = {TOC_STATE_SUCCESS, TOC_STATE_RETRY,
                                            TOC_STATE_DEAD, TOC_STATE_INIT};

    for (int cut = 0; cut < CUTS; cut++)
        for (size_t kind = 0; kind < 4; kind++) {
            const char *id = id_of(toc_state_text(states[kind]), cut);
            struct toc_task task = claimed_task(id, 7, now_ms() + 60000), got;
            struct toc_finish end = make_finish(&task, 7, kinds[kind]);
            end.due_ms = now_ms() + 60000;
            arm("COMMIT", (enum cut)cut);
            OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
            check_cut();
            ck_assert_int_eq(end.result, TOC_FINISH_OK);
            got = get_id(task.id);
            ck_assert_int_eq(got.state, states[kind]);
            ck_assert_uint_eq(got.version, 2);
            check_key(&got);
            if (kinds[kind] == TOC_FINISH_RETRY) {
                ck_assert_int_eq(end.moved.slot_ms, got.slot_ms);
                ck_assert_uint_eq(end.moved.version, 2);
            }
        }
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_log"), CUTS);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM dead_task"), CUTS);
}
END_TEST

START_TEST(commands)
{
    static const enum toc_command_kind kinds[] = {
        TOC_COMMAND_CANCEL, TOC_COMMAND_PAUSE, TOC_COMMAND_RESCHEDULE,
        TOC_COMMAND_RUN_NOW};

    for (int cut = 0; cut < CUTS; cut++)
        for (size_t kind = 0; kind < 4; kind++) {
            const char *id = toc_arena_printf(&fx.arena, "c%d-%zu", cut, kind);
            struct toc_task task = stored_task(id, now_ms() + 60000), got;
            arm("COMMIT", (enum cut)cut);
            ck_assert_int_eq(command_id(kinds[kind], task.id, now_ms() + 90000),
                             TOC_COMMAND_APPLIED);
            check_cut();
            got = get_id(task.id);
            ck_assert_uint_eq(got.version, 2);
            check_key(&got);
        }
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_log"), 4 * CUTS);
}
END_TEST

START_TEST(redrive)
{
    for (int cut = 0; cut < CUTS; cut++) {
        struct toc_task task =
            claimed_task(id_of("d", cut), 7, now_ms() + 60000);
        struct toc_finish end = make_finish(&task, 7, TOC_FINISH_DEAD);
        enum toc_redrive_result result;
        OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
        arm("COMMIT", (enum cut)cut);
        OK(toc_store_redrive(fx.store, task.id, now_ms(), TOC_STR("x"),
                             TOC_STR("y"), &result, err));
        check_cut();
        ck_assert_int_eq(result, TOC_REDRIVE_APPLIED);
        ck_assert_uint_eq(get_id(task.id).version, 3);
        ck_assert_int_eq(get_id(task.id).state, TOC_STATE_RETRY);
    }
}
END_TEST

START_TEST(expired_locks)
{
    for (int cut = 0; cut < CUTS; cut++) {
        struct toc_task task = claimed_task(id_of("e", cut), 7, now_ms() - 1);
        size_t freed;
        arm("COMMIT", (enum cut)cut);
        OK(toc_store_free_expired(fx.store, &task, 1, now_ms(), &freed, err));
        check_cut();
        ck_assert_int_eq(get_id(task.id).state, TOC_STATE_RETRY);
        ck_assert_uint_eq(get_id(task.id).version, 2);
        ck_assert_uint_eq(get_id(task.id).claims, 1);
    }
}
END_TEST

/* Nobody listens any more: an answer in bounded time, and it is "unavailable",
 * never "not found" or another wrong outcome. */
START_TEST(server_gone)
{
    struct toc_task task = stored_task("a", now_ms() + 60000);
    struct toc_find find = find_id(task.id);
    struct toc_error error = {0};
    struct toc_task got;
    int64_t start = toc_os_mono_ns();

    __atomic_store_n(&proxy.stop, true, __ATOMIC_RELEASE);
    toc_thread_join(&proxy.thread);
    close(proxy.listener);
    for (size_t i = 0; i < proxy.n; i++) {
        if (proxy.pipes[i]->client >= 0)
            close_client(proxy.pipes[i]);
        close_server(proxy.pipes[i]);
    }
    ck_assert_int_eq(toc_store_get(fx.store, &find, &fx.arena, &got, &error),
                     TOC_UNAVAILABLE);
    ck_assert_int_eq(toc_store_get(fx.store, &find, &fx.arena, &got, &error),
                     TOC_UNAVAILABLE);
    ck_assert_int_lt(toc_os_mono_ns() - start, INT64_C(10000000000));
    ck_assert_str_eq(error.source, "mysql");
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {submit,
                                    submit_in_one_packet,
                                    submit_that_replaces,
                                    submit_that_was_replaced_meanwhile,
                                    submit_frozen_between_packets,
                                    claiming,
                                    claimed_and_gone,
                                    results,
                                    commands,
                                    redrive,
                                    expired_locks,
                                    server_gone};

    return run_tests("store_outcome", tests, sizeof tests / sizeof tests[0],
                     180, setup_proxy);
}
