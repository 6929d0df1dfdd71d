/*
 * The handle's life and its operations; the larger ones are in coord_etcd_*.c.
 */
#include "common/coord/etcd/coord_etcd.h"

#include "common/base/alloc.h"
#include "common/coord/etcd/coord_etcd_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define TTL_S_DEFAULT 2

static int64_t
op_deadline(void *self)
{
    struct toc_coord_etcd *coord = self;
    return toc_etcd_session_deadline(&coord->session);
}

static void
op_wake(void *self)
{
    struct toc_coord_etcd *coord = self;
    atomic_store(&coord->woken, true);
    toc_etcd_watch_wake(&coord->watch);
}

static void
op_interrupt(void *self)
{
    struct toc_coord_etcd *coord = self;
    atomic_store(&coord->interrupted_ns, toc_clock_mono(coord->clock).ns);
    op_wake(self);
}

static const struct toc_coord_ops ops = {
    .name = "etcd",
    .interrupt = op_interrupt,
    .poll = toc_coord_etcd_poll,
    .acquire = toc_coord_etcd_acquire,
    .release = toc_coord_etcd_release,
    .want = toc_coord_etcd_want,
    .leave = toc_coord_etcd_leave,
    .snapshot = toc_coord_etcd_snapshot,
    .deadline_boot_ns = op_deadline,
    .wake = op_wake,
};

/* Thread: keepalive. The poll looks at the session anew. */
static void
session_lost(void *arg)
{
    struct toc_coord_etcd *coord = arg;
    toc_etcd_watch_wake(&coord->watch);
}

static bool
names_are_good(const struct toc_coord_etcd_options *options)
{
    size_t prefix = toc_str_of(options->prefix).len;
    if (prefix == 0 || options->prefix[prefix - 1] != '/')
        return false;
    if (options->role == NULL)
        return true;
    struct toc_str node = toc_str_of(options->node);
    return options->role[0] != '\0' && strchr(options->role, '/') == NULL &&
           node.len > 0 && toc_utf8_valid(node);
}

static bool
make_texts(struct toc_coord_etcd *coord,
           const struct toc_coord_etcd_options *options)
{
    if (!names_are_good(options))
        return false;
    struct toc_buf watch_prefix = {0};
    toc_buf_printf(&watch_prefix, "%s%s", options->prefix,
                   options->watch_owners ? "" : "members/");
    coord->prefix = toc_strdup(options->prefix);
    coord->watch_prefix = watch_prefix.data;
    coord->member = options->role != NULL;
    if (!coord->member)
        return true;
    struct toc_str address = toc_str_of(options->address);
    toc_buf_printf(&coord->member_key, "%smembers/%s/%s", options->prefix,
                   options->role, options->node);
    return toc_etcd_put_member_value(&coord->member_value, address,
                                     options->node_id, options->started_ms) &&
           toc_etcd_put_owner_value(&coord->owner_value,
                                    toc_str_of(options->node), address);
}

static void
free_texts(struct toc_coord_etcd *coord)
{
    toc_free(coord->prefix);
    toc_free(coord->watch_prefix);
    toc_buf_done(&coord->member_key);
    toc_buf_done(&coord->member_value);
    toc_buf_done(&coord->owner_value);
    toc_etcd_endpoints_done(&coord->endpoints);
}

enum toc_status
toc_coord_etcd_open(const struct toc_coord_etcd_options *options,
                    struct toc_coord_etcd **ret_coord, struct toc_error *reterr)
{
    struct toc_coord_etcd *coord = TOC_NEW(struct toc_coord_etcd);
    enum toc_status st =
        toc_etcd_endpoints_init(&coord->endpoints, options->endpoints, reterr);
    if (st == TOC_OK && !make_texts(coord, options))
        st = toc_error_set(reterr, TOC_INVALID, "etcd", 0,
                           "the prefix must end in '/', role, node and address "
                           "must be UTF-8, the role without '/'");
    if (st != TOC_OK) {
        free_texts(coord);
        toc_free(coord);
        return st;
    }
    coord->port = (struct toc_coord){&ops, coord};
    coord->clock = options->clock;
    coord->ttl_s = options->ttl_s > 0 ? options->ttl_s : TTL_S_DEFAULT;
    toc_coord_etcd_all_is_well(coord);
    atomic_init(&coord->woken, false);
    atomic_init(&coord->interrupted_ns, 0);
    pthread_mutex_init(&coord->snapshot_lock, NULL);
    toc_etcd_http_init(&coord->http, coord->clock, &coord->endpoints);
    toc_etcd_http_init(&coord->snapshot_http, coord->clock, &coord->endpoints);
    coord->http.interrupted_ns = &coord->interrupted_ns;
    coord->snapshot_http.interrupted_ns = &coord->interrupted_ns;
    toc_etcd_watch_init(&coord->watch, coord->clock, &coord->endpoints);
    toc_etcd_session_init(&coord->session, coord->clock, &coord->endpoints,
                          session_lost, coord);
    *ret_coord = coord;
    return TOC_OK;
}

void
toc_coord_etcd_close(struct toc_coord_etcd *coord)
{
    if (coord == NULL)
        return;
    (void)toc_coord_etcd_leave(coord, NULL);
    toc_etcd_session_done(&coord->session);
    toc_etcd_watch_done(&coord->watch);
    toc_etcd_http_done(&coord->snapshot_http);
    toc_etcd_http_done(&coord->http);
    pthread_mutex_destroy(&coord->snapshot_lock);
    toc_arena_done(&coord->arena);
    free_texts(coord);
    toc_free(coord);
}

struct toc_coord *
toc_coord_etcd_port(struct toc_coord_etcd *coord)
{
    return &coord->port;
}
