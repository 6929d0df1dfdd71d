/*
 * An etcd to test with (the shared one under a prefix of its own, or a private
 * one that may be frozen, killed and wiped), and what a handle has been told.
 */
#ifndef TOC_TESTS_ETCD_FIXTURE_H
#define TOC_TESTS_ETCD_FIXTURE_H

#include "common/base/alloc.h"
#include "common/base/config.h"
#include "common/base/rng.h"
#include "common/base/str.h"
#include "common/clock/os/clock_os.h"
#include "common/coord/etcd/coord_etcd.h"
#include "common/coord/etcd/http.h"
#include "common/coord/etcd/wire.h"
#include "tests/contract/coord/coord_view.h"
#include "tests/support/toc_check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static inline int64_t
now_ms(void)
{
    return toc_clock_mono(toc_clock_os()).ns / TOC_NS_PER_MS;
}

static inline void
time_goes_on(void)
{
}

/* ---- servers ---------------------------------------------------------- */

struct etcd {
    char url[64];
    char prefix[64];
    char dir[256]; /* private: its data */
    int port, peer_port;
    pid_t pid; /* 0: the shared one */
};

static inline void
etcd_shared(struct etcd *etcd)
{
    const char *url = toc_env("TOC_ETCD");
    ck_assert_msg(url != NULL, "TOC_ETCD is not set; use tests/run");
    *etcd = (struct etcd){0};
    toc_format(etcd->url, sizeof etcd->url, "%s", url);
    toc_format(etcd->prefix, sizeof etcd->prefix, "/toc/t%016llx/",
               (unsigned long long)toc_rng_u64());
}

static inline int
free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static inline bool
etcd_answers(void *arg)
{
    struct etcd *etcd = arg;
    struct toc_etcd_endpoints endpoints;
    struct toc_etcd_http http;
    struct toc_buf reply = {0};
    ck_assert_int_eq(toc_etcd_endpoints_init(&endpoints, etcd->url, NULL),
                     TOC_OK);
    toc_etcd_http_init(&http, toc_clock_os(), &endpoints);
    enum toc_status st = toc_etcd_http_post(&http, "/v3/lease/leases",
                                            TOC_STR("{}"), 500, &reply, NULL);
    toc_etcd_http_done(&http);
    toc_etcd_endpoints_done(&endpoints);
    toc_buf_done(&reply);
    return st == TOC_OK;
}

static inline void
etcd_exec(const struct etcd *etcd)
{
    char peer[64], cluster[96], data[300];
    int log = open("/dev/null", O_WRONLY);
    toc_format(peer, sizeof peer, "http://127.0.0.1:%d", etcd->peer_port);
    toc_format(cluster, sizeof cluster, "default=%s", peer);
    toc_format(data, sizeof data, "%s/data", etcd->dir);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(log, 1);
    dup2(log, 2);
    execlp("etcd", "etcd", "--data-dir", data, "--listen-client-urls",
           etcd->url, "--advertise-client-urls", etcd->url,
           "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
           "--initial-cluster", cluster, (char *)NULL);
    _exit(127);
}

static inline void
etcd_start(struct etcd *etcd)
{
    etcd->pid = fork();
    ck_assert_int_ge(etcd->pid, 0);
    if (etcd->pid == 0)
        etcd_exec(etcd);
    ck_assert_msg(toc_eventually(etcd_answers, etcd), "etcd does not start");
}

static inline void
etcd_kill(struct etcd *etcd)
{
    kill(etcd->pid, SIGCONT);
    kill(etcd->pid, SIGKILL);
    ck_assert_int_eq(waitpid(etcd->pid, NULL, 0), etcd->pid);
    etcd->pid = 0;
}

static inline void
etcd_private(struct etcd *etcd)
{
    const char *tmp = toc_env("TOC_TEST_TMP");
    *etcd = (struct etcd){.port = free_port(), .peer_port = free_port()};
    toc_format(etcd->url, sizeof etcd->url, "http://127.0.0.1:%d", etcd->port);
    toc_format(etcd->prefix, sizeof etcd->prefix, "/toc/private/");
    toc_format(etcd->dir, sizeof etcd->dir, "%s/toc-etcd.XXXXXX",
               tmp == NULL ? "/tmp" : tmp);
    ck_assert_ptr_nonnull(mkdtemp(etcd->dir));
    etcd_start(etcd);
}

static inline void
etcd_wipe(struct etcd *etcd)
{
    char command[400];
    toc_format(command, sizeof command, "rm -rf '%s/data'", etcd->dir);
    ck_assert_int_eq(system(command), 0);
}

static inline void
etcd_remove(struct etcd *etcd)
{
    etcd_kill(etcd);
    etcd_wipe(etcd);
    ck_assert_int_eq(rmdir(etcd->dir), 0);
}

/* ---- by hand ----------------------------------------------------------- */

static inline enum toc_status
etcd_post(const struct etcd *etcd, const char *path, struct toc_str body,
          struct toc_buf *reply)
{
    struct toc_etcd_endpoints endpoints;
    struct toc_etcd_http http;
    ck_assert_int_eq(toc_etcd_endpoints_init(&endpoints, etcd->url, NULL),
                     TOC_OK);
    toc_etcd_http_init(&http, toc_clock_os(), &endpoints);
    enum toc_status st =
        toc_etcd_http_post(&http, path, body, 5000, reply, NULL);
    toc_etcd_http_done(&http);
    toc_etcd_endpoints_done(&endpoints);
    return st;
}

static inline void
etcd_put(const struct etcd *etcd, struct toc_str key, struct toc_str value)
{
    struct toc_buf body = {0}, reply = {0};
    toc_etcd_put_key(&body, key, value, 0);
    ck_assert_int_eq(etcd_post(etcd, "/v3/kv/put", toc_buf_view(&body), &reply),
                     TOC_OK);
    toc_buf_done(&body);
    toc_buf_done(&reply);
}

static inline void
etcd_put_text(const struct etcd *etcd, const char *name, const char *value)
{
    char key[128];
    toc_format(key, sizeof key, "%s%s", etcd->prefix, name);
    etcd_put(etcd, toc_str_of(key), toc_str_of(value));
}

static inline void
etcd_read(const struct etcd *etcd, struct toc_arena *arena,
          struct toc_etcd_reply *ret)
{
    struct toc_buf body = {0}, reply = {0};
    toc_etcd_put_range(&body, toc_str_of(etcd->prefix));
    ck_assert_int_eq(
        etcd_post(etcd, "/v3/kv/range", toc_buf_view(&body), &reply), TOC_OK);
    ck_assert_int_eq(
        toc_etcd_parse_range(toc_buf_view(&reply), arena, ret, NULL), TOC_OK);
    toc_buf_done(&body);
    toc_buf_done(&reply);
}

/* The lease under which the key `name` stands; 0: none, or no key. */
static inline int64_t
etcd_lease_of(const struct etcd *etcd, const char *name)
{
    char key[128];
    struct toc_arena arena = {0};
    struct toc_etcd_reply reply;
    int64_t lease = 0;
    toc_format(key, sizeof key, "%s%s", etcd->prefix, name);
    etcd_read(etcd, &arena, &reply);
    for (size_t i = 0; i < reply.n_kvs; i++)
        if (toc_str_eq(reply.kvs[i].key, toc_str_of(key)))
            lease = reply.kvs[i].lease;
    toc_arena_done(&arena);
    return lease;
}

static inline void
etcd_revoke(const struct etcd *etcd, int64_t lease)
{
    struct toc_buf body = {0}, reply = {0};
    toc_etcd_put_lease_id(&body, lease);
    ck_assert_int_eq(
        etcd_post(etcd, "/v3/lease/revoke", toc_buf_view(&body), &reply),
        TOC_OK);
    toc_buf_done(&body);
    toc_buf_done(&reply);
}

/* Forgets all history up to now. */
static inline void
etcd_compact(const struct etcd *etcd)
{
    struct toc_arena arena = {0};
    struct toc_etcd_reply all;
    struct toc_buf body = {0}, reply = {0};
    etcd_read(etcd, &arena, &all);
    toc_buf_printf(&body, "{\"revision\":\"%lld\",\"physical\":true}",
                   (long long)all.revision);
    ck_assert_int_eq(
        etcd_post(etcd, "/v3/kv/compaction", toc_buf_view(&body), &reply),
        TOC_OK);
    toc_arena_done(&arena);
    toc_buf_done(&body);
    toc_buf_done(&reply);
}

/* ---- handles ----------------------------------------------------------- */

static inline void
view_open_at(struct view *view, const struct etcd *etcd, const char *endpoints,
             const char *node)
{
    char *address = toc_strdup("127.0.0.1:4711");
    const struct toc_coord_etcd_options options = {
        .endpoints = endpoints,
        .prefix = etcd->prefix,
        .clock = toc_clock_os(),
        .role = node == NULL ? NULL : "scheduler",
        .node = node,
        .address = address,
        .node_id = 4000000000,
        .started_ms = INT64_C(9007199254740993), /* 2^53 + 1 */
        .watch_owners = true,
    };
    memset(view, 0, sizeof *view);
    struct toc_error error;
    struct toc_coord_etcd *handle = NULL;
    enum toc_status st = toc_coord_etcd_open(&options, &handle, &error);
    view->handle = handle;
    ck_assert_msg(st == TOC_OK, "%s", st == TOC_OK ? "" : error.msg);
    toc_free(address);
    view->coord = toc_coord_etcd_port(handle);
}

static inline void
view_open(struct view *view, const struct etcd *etcd, const char *node)
{
    view_open_at(view, etcd, etcd->url, node);
}

static inline void
view_close(struct view *view)
{
    toc_coord_etcd_close(view->handle);
    view->handle = NULL;
}

#endif
