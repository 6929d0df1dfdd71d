/*
 * Goal: what a handle has been told equals what stands in etcd, whatever
 * happens to the stream between them.
 * Method: a real etcd of our own is killed, compacted, wiped; endpoints that
 * refuse or hang stand in front of it.
 */
#define _GNU_SOURCE
#include "tests/integration/coord/etcd_fixture.h"

#include "common/base/thread.h"
#include "common/coord/etcd/base64.h"

static void
put_owner(const struct etcd *etcd, int shard, const char *node)
{
    char name[16], value[64];
    toc_format(name, sizeof name, "own/%03d", shard);
    toc_format(value, sizeof value, "{\"node\":\"%s\",\"address\":\"\"}", node);
    etcd_put_text(etcd, name, value);
}

START_TEST(goes_on_after_a_restart_without_missing_anything)
{
    struct etcd etcd;
    struct view look;
    etcd_private(&etcd);
    view_open(&look, &etcd, NULL);
    POLL_UNTIL(&look, look.synced);
    put_owner(&etcd, 1, "x");
    POLL_UNTIL(&look, strcmp(look.owners[1], "x") == 0);
    put_owner(&etcd, 2, "y");
    etcd_kill(&etcd);
    view_poll(&look, 50);
    etcd_start(&etcd);
    put_owner(&etcd, 3, "z");
    POLL_UNTIL(&look, strcmp(look.owners[3], "z") == 0);
    ck_assert_str_eq(look.owners[1], "x");
    ck_assert_str_eq(look.owners[2], "y");
    /* without having to forget: it went on where it stood */
    ck_assert_str_eq(look.kinds, "RSOOO");
    view_close(&look);
    etcd_remove(&etcd);
}
END_TEST

START_TEST(a_compacted_watch_reads_everything_anew)
{
    struct etcd etcd;
    struct view look;
    char node[16];
    etcd_private(&etcd);
    view_open(&look, &etcd, NULL);
    POLL_UNTIL(&look, look.synced);
    put_owner(&etcd, 1, "x");
    put_owner(&etcd, 200, "goes");
    POLL_UNTIL(&look, strcmp(look.owners[200], "goes") == 0);
    /* a stream that cannot deliver: the handle is not polled, etcd restarts */
    etcd_kill(&etcd);
    etcd_start(&etcd);
    for (int i = 0; i < 1000; i++) {
        toc_format(node, sizeof node, "n%d", i);
        put_owner(&etcd, i % 100, node);
    }
    struct toc_buf body = {0}, reply = {0};
    char key[64];
    toc_format(key, sizeof key, "%sown/200", etcd.prefix);
    toc_buf_text(&body, "{\"key\":\"");
    /* deleted while nobody watches: only a full read can tell */
    toc_base64_add(&body, toc_str_of(key));
    toc_buf_text(&body, "\"}");
    ck_assert_int_eq(
        etcd_post(&etcd, "/v3/kv/deleterange", toc_buf_view(&body), &reply),
        TOC_OK);
    toc_buf_done(&body);
    toc_buf_done(&reply);
    etcd_compact(&etcd);
    POLL_UNTIL(&look, strcmp(look.owners[99], "n999") == 0);
    for (int s = 0; s < 100; s++) {
        toc_format(node, sizeof node, "n%d", 900 + s);
        ck_assert_str_eq(look.owners[s], node);
    }
    ck_assert_str_eq(look.owners[200], "");
    ck_assert_ptr_nonnull(strstr(look.kinds, "OR"));
    ck_assert(look.synced);
    /* and it watches again */
    put_owner(&etcd, 201, "later");
    POLL_UNTIL(&look, strcmp(look.owners[201], "later") == 0);
    view_close(&look);
    etcd_remove(&etcd);
}
END_TEST

START_TEST(a_wiped_etcd_is_told_anew)
{
    struct etcd etcd;
    struct view a;
    bool won;
    etcd_private(&etcd);
    for (int i = 0; i < 20; i++)
        put_owner(&etcd, 50, "old");
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    ck_assert_str_eq(a.owners[50], "old");
    ck_assert_int_eq(toc_coord_acquire(a.coord, &(uint16_t){9}, 1, &won, NULL),
                     TOC_OK);
    etcd_kill(&etcd);
    etcd_wipe(&etcd);
    etcd_start(&etcd);
    /* the new one has fewer revisions than the handle has seen */
    POLL_UNTIL(&a, strchr(a.kinds, 'L') != NULL);
    POLL_UNTIL(&a, a.session && a.synced && a.owners[50][0] == '\0');
    ck_assert_str_eq(a.owners[9], "");
    ck_assert_int_eq(toc_coord_acquire(a.coord, &(uint16_t){9}, 1, &won, NULL),
                     TOC_OK);
    ck_assert(won);
    POLL_UNTIL(&a, strcmp(a.owners[9], "a") == 0);
    view_close(&a);
    etcd_remove(&etcd);
}
END_TEST

/* Who only looks has no session whose end would show that etcd is another. */
START_TEST(a_wiped_etcd_is_noticed_by_who_only_looks)
{
    struct etcd etcd;
    struct view look;
    etcd_private(&etcd);
    for (int i = 0; i < 20; i++)
        put_owner(&etcd, 50, "old");
    view_open(&look, &etcd, NULL);
    POLL_UNTIL(&look, strcmp(look.owners[50], "old") == 0);
    etcd_kill(&etcd);
    etcd_wipe(&etcd);
    etcd_start(&etcd);
    POLL_UNTIL(&look, look.synced && look.owners[50][0] == '\0');
    put_owner(&etcd, 51, "new");
    POLL_UNTIL(&look, strcmp(look.owners[51], "new") == 0);
    view_close(&look);
    etcd_remove(&etcd);
}
END_TEST

START_TEST(a_silent_watch_is_opened_anew_and_misses_nothing)
{
    struct etcd etcd;
    struct view look;
    etcd_shared(&etcd);
    view_open(&look, &etcd, NULL);
    POLL_UNTIL(&look, look.synced);
    int64_t until = now_ms() + 6000; /* it is opened anew after 5 s */
    while (now_ms() < until)
        view_poll(&look, until - now_ms());
    put_owner(&etcd, 7, "x");
    POLL_UNTIL(&look, strcmp(look.owners[7], "x") == 0);
    ck_assert_str_eq(look.kinds, "RSO");
    ck_assert_uint_eq(look.errors, 0);
    view_close(&look);
}
END_TEST

/* A listener that accepts and never answers. */
static int
open_hanging(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(fd, 64), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

START_TEST(endpoints_that_refuse_or_hang_are_passed)
{
    struct etcd etcd;
    struct view a;
    int port;
    char endpoints[256];
    etcd_shared(&etcd);
    int fd = open_hanging(&port);
    toc_format(endpoints, sizeof endpoints,
               "http://127.0.0.1:%d,http://127.0.0.1:%d/,%s", free_port(), port,
               etcd.url);
    view_open_at(&a, &etcd, endpoints, "a");
    UNTIL_READY(&a);
    int64_t first = toc_coord_deadline_boot_ns(a.coord);
    put_owner(&etcd, 7, "x");
    POLL_UNTIL(&a, strcmp(a.owners[7], "x") == 0);
    POLL_UNTIL(&a, toc_coord_deadline_boot_ns(a.coord) >
                       first + 2000 * TOC_NS_PER_MS);
    ck_assert_ptr_null(strchr(a.kinds, 'L'));
    view_close(&a);
    close(fd);
}
END_TEST

struct waker {
    struct toc_coord *coord;
    struct toc_thread thread;
};

static void
wake_main(void *arg)
{
    struct waker *waker = arg;
    toc_coord_wake(waker->coord);
}

START_TEST(wake_ends_a_poll)
{
    struct etcd etcd;
    struct view look;
    etcd_shared(&etcd);
    view_open(&look, &etcd, NULL);
    POLL_UNTIL(&look, look.synced);
    for (int i = 0; i < 20; i++) {
        struct waker waker = {.coord = look.coord};
        toc_thread_start(&waker.thread, "waker", wake_main, &waker);
        view_poll(&look, 60000); /* the test's time limit would end it */
        toc_thread_join(&waker.thread);
    }
    /* a wake before the poll is remembered, and once only */
    toc_coord_wake(look.coord);
    view_poll(&look, 60000);
    int64_t begun = now_ms();
    view_poll(&look, 50);
    ck_assert_int_ge(now_ms() - begun, 49);
    view_close(&look);
}
END_TEST

START_TEST(events_come_soon)
{
    enum { N = 50 };
    struct etcd etcd;
    struct view a, look;
    int64_t sum = 0;
    etcd_shared(&etcd);
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    view_open(&look, &etcd, NULL);
    POLL_UNTIL(&look, look.synced);
    for (uint16_t s = 0; s < N; s++) {
        bool won;
        int64_t begun = toc_clock_mono(toc_clock_os()).ns;
        ck_assert_int_eq(toc_coord_acquire(a.coord, &s, 1, &won, NULL), TOC_OK);
        POLL_UNTIL(&look, strcmp(look.owners[s], "a") == 0);
        sum += toc_clock_mono(toc_clock_os()).ns - begun;
    }
    printf("acquire -> another handle is told: mean %lld us\n",
           (long long)(sum / N / 1000));
    view_close(&a);
    view_close(&look);
}
END_TEST

/* Bad settings are told at once, not by silence. */
START_TEST(bad_settings_are_refused)
{
    const char *const endpoints[] = {"", "127.0.0.1:2379", "http://",
                                     "http://a,", "ftp://a:1"};
    struct toc_coord_etcd *handle;
    struct toc_error error;
    struct toc_coord_etcd_options options = {.prefix = "/toc/x/",
                                             .clock = toc_clock_os()};
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++) {
        options.endpoints = endpoints[i];
        ck_assert_int_eq(toc_coord_etcd_open(&options, &handle, &error),
                         TOC_INVALID);
    }
    options.endpoints = "http://127.0.0.1:1";
    options.prefix = "/toc/x"; /* would see /toc/xy too */
    ck_assert_int_eq(toc_coord_etcd_open(&options, &handle, &error),
                     TOC_INVALID);
    options.prefix = "/toc/x/";
    options.role = "scheduler";
    options.address = "h:1";
    options.node = "\xff";
    ck_assert_int_eq(toc_coord_etcd_open(&options, &handle, &error),
                     TOC_INVALID);
    options.node = "a";
    options.address = "\xff";
    ck_assert_int_eq(toc_coord_etcd_open(&options, &handle, &error),
                     TOC_INVALID);
}
END_TEST

TOC_CHECK_MAIN("coord watch", goes_on_after_a_restart_without_missing_anything,
               a_compacted_watch_reads_everything_anew,
               a_wiped_etcd_is_told_anew,
               a_wiped_etcd_is_noticed_by_who_only_looks,
               a_silent_watch_is_opened_anew_and_misses_nothing,
               endpoints_that_refuse_or_hang_are_passed, wake_ends_a_poll,
               events_come_soon, bad_settings_are_refused)
