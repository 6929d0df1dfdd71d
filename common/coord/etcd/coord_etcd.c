/*
 * The handle: a small state machine that poll drives.
 *
 *     session (if we are a member) -> read everything -> watch -> ...
 *          ^ lost                        ^ compacted, wiped, session lost
 *
 * Each step either makes progress, or fails and is tried again after a pause
 * that grows. The events of one step are told before poll returns.
 */
#include "common/coord/etcd/coord_etcd.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/coord/etcd/http.h"
#include "common/coord/etcd/session.h"
#include "common/coord/etcd/watch.h"
#include "common/coord/etcd/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define REQUEST_MS 2000
/* A revoke is a courtesy where the lease ends soon anyway. */
#define REVOKE_MS 500
#define LEAVE_MS 1000 /* then the lease ends by itself, soon after */
#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 1000
#define TTL_S_DEFAULT 2

struct toc_coord_etcd {
    struct toc_coord port;
    const struct toc_clock *clock;
    struct toc_etcd_endpoints endpoints;
    char *prefix, *watch_prefix;
    struct toc_buf member_key, member_value, owner_value;
    bool member; /* we have a member key, and so a session */
    int64_t ttl_s;

    /* Thread: the one that polls. */
    struct toc_etcd_http http;
    struct toc_etcd_watch watch;
    struct toc_arena arena;
    bool left;    /* no session any more */
    bool in_sync; /* everything up to revision has been told */
    int64_t revision;
    int64_t backoff_ms;
    struct toc_mono retry_at;
    size_t told; /* events, by this poll */
    int64_t old_lease;

    struct toc_etcd_session session;
    _Atomic int64_t interrupted_ns; /* monotonic clock; 0: not */
    atomic_bool woken;

    pthread_mutex_t snapshot_lock;
    struct toc_etcd_http snapshot_http;
};

struct teller {
    toc_coord_event_fn *fn;
    void *arg;
};

static struct toc_str
prefix_of(const struct toc_coord_etcd *coord)
{
    return toc_str_of(coord->prefix);
}

static void
tell(struct toc_coord_etcd *coord, struct teller to,
     const struct toc_coord_event *event)
{
    coord->told++;
    to.fn(to.arg, event);
}

static void
tell_kind(struct toc_coord_etcd *coord, struct teller to,
          enum toc_coord_event_kind kind)
{
    tell(coord, to, &(struct toc_coord_event){.kind = kind});
}

/* ---- backing off ------------------------------------------------------ */

static bool
may_try(const struct toc_coord_etcd *coord)
{
    return toc_clock_mono(coord->clock).ns >= coord->retry_at.ns;
}

/* The next try, after a pause between half and all of the current length. */
static enum toc_status
back_off(struct toc_coord_etcd *coord, enum toc_status st)
{
    uint64_t half = (uint64_t)coord->backoff_ms / 2;
    int64_t ms = (int64_t)(half + toc_rng_u64() % (half + 1));
    coord->retry_at = toc_mono_add_ms(toc_clock_mono(coord->clock), ms);
    coord->backoff_ms *= 2;
    if (coord->backoff_ms > BACKOFF_MS_MAX)
        coord->backoff_ms = BACKOFF_MS_MAX;
    return st;
}

static void
all_is_well(struct toc_coord_etcd *coord)
{
    coord->backoff_ms = BACKOFF_MS_MIN;
    coord->retry_at.ns = 0;
}

/* ---- session ----------------------------------------------------------- */

static enum toc_status
revoke(struct toc_coord_etcd *coord, int64_t lease, int64_t timeout_ms,
       struct toc_error *reterr)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf body = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf reply = {0};
    toc_etcd_put_lease_id(&body, lease);
    enum toc_status st =
        toc_etcd_http_post(&coord->http, "/v3/lease/revoke",
                           toc_buf_view(&body), timeout_ms, &reply, reterr);
    return st == TOC_NOT_FOUND ? TOC_OK : st;
}

static enum toc_status
grant(struct toc_coord_etcd *coord, int64_t *ret_lease, int64_t *ret_ttl_ms,
      struct toc_error *reterr)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf body = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf reply = {0};
    toc_etcd_put_lease_grant(&body, coord->ttl_s);
    enum toc_status st =
        toc_etcd_http_post(&coord->http, "/v3/lease/grant", toc_buf_view(&body),
                           REQUEST_MS, &reply, reterr);
    int64_t ttl_s;
    if (st == TOC_OK)
        st = toc_etcd_parse_lease(toc_buf_view(&reply), ret_lease, &ttl_s,
                                  reterr);
    if (st == TOC_OK && ttl_s < 1)
        st = toc_error_set(reterr, TOC_INTERNAL, "etcd", 0,
                           "etcd granted a lease without time");
    if (st == TOC_OK)
        *ret_ttl_ms = ttl_s * TOC_MS_PER_SEC;
    return st;
}

static enum toc_status
put_member(struct toc_coord_etcd *coord, int64_t lease,
           struct toc_error *reterr)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf body = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf reply = {0};
    toc_etcd_put_key(&body, toc_buf_view(&coord->member_key),
                     toc_buf_view(&coord->member_value), lease);
    return toc_etcd_http_post(&coord->http, "/v3/kv/put", toc_buf_view(&body),
                              REQUEST_MS, &reply, reterr);
}

static enum toc_status
open_session(struct toc_coord_etcd *coord, struct teller to,
             struct toc_error *reterr)
{
    /* what etcd still holds of the session before would be in our way */
    if (coord->old_lease != 0)
        (void)revoke(coord, coord->old_lease, REVOKE_MS, NULL);
    coord->old_lease = 0;
    int64_t lease, ttl_ms;
    enum toc_status st = grant(coord, &lease, &ttl_ms, reterr);
    if (st != TOC_OK)
        return st;
    toc_etcd_session_begin(&coord->session, lease, ttl_ms, coord->http.sent);
    st = put_member(coord, lease, reterr);
    if (st != TOC_OK) {
        coord->old_lease = toc_etcd_session_end(&coord->session);
        return st;
    }
    tell_kind(coord, to, TOC_COORD_SESSION_NEW);
    return TOC_OK;
}

static void
report_loss(struct toc_coord_etcd *coord, struct teller to)
{
    if (!toc_etcd_session_take_loss(&coord->session, &coord->old_lease))
        return;
    coord->in_sync = false;
    toc_etcd_watch_close(&coord->watch);
    tell_kind(coord, to, TOC_COORD_SESSION_LOST);
}

/* Sees to it that there is a session. */
static enum toc_status
step_session(struct toc_coord_etcd *coord, struct teller to,
             struct toc_error *reterr)
{
    if (!coord->member || coord->left)
        return TOC_OK;
    report_loss(coord, to);
    if (toc_etcd_session_lease(&coord->session) != 0 || !may_try(coord))
        return TOC_OK;
    report_loss(coord, to); /* its deadline may have passed just now */
    enum toc_status st = open_session(coord, to, reterr);
    return st == TOC_OK ? st : back_off(coord, st);
}

static bool
session_missing(struct toc_coord_etcd *coord)
{
    return coord->member && !coord->left &&
           toc_etcd_session_lease(&coord->session) == 0;
}

/* ---- reading everything ------------------------------------------------ */

static enum toc_status
read_all(struct toc_etcd_http *http, const char *prefix,
         struct toc_arena *arena, struct toc_etcd_reply *ret_reply,
         struct toc_error *reterr)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf body = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf reply = {0};
    toc_etcd_put_range(&body, toc_str_of(prefix));
    enum toc_status st = toc_etcd_http_post(
        http, "/v3/kv/range", toc_buf_view(&body), REQUEST_MS, &reply, reterr);
    if (st != TOC_OK)
        return st;
    return toc_etcd_parse_range(toc_buf_view(&reply), arena, ret_reply, reterr);
}

static void
tell_kvs(struct toc_coord_etcd *coord, struct teller to,
         const struct toc_etcd_reply *reply)
{
    for (size_t i = 0; i < reply->n_kvs; i++) {
        struct toc_coord_event event;
        if (toc_etcd_event_of(prefix_of(coord), &reply->kvs[i], &coord->arena,
                              &event))
            tell(coord, to, &event);
        else
            TOC_LOG(DEBUG, "etcd.key.ignored",
                    F_SPAN("key", reply->kvs[i].key));
    }
}

static enum toc_status
step_sync(struct toc_coord_etcd *coord, struct teller to,
          struct toc_error *reterr)
{
    if (coord->in_sync || session_missing(coord) || !may_try(coord))
        return TOC_OK;
    toc_etcd_watch_close(&coord->watch);
    toc_arena_reset(&coord->arena);
    struct toc_etcd_reply reply;
    enum toc_status st = read_all(&coord->http, coord->watch_prefix,
                                  &coord->arena, &reply, reterr);
    if (st != TOC_OK)
        return back_off(coord, st);
    tell_kind(coord, to, TOC_COORD_RESET);
    tell_kvs(coord, to, &reply);
    tell_kind(coord, to, TOC_COORD_SYNCED);
    coord->revision = reply.revision;
    coord->in_sync = true;
    return TOC_OK;
}

/* ---- watching ----------------------------------------------------------- */

static void
open_watch(struct toc_coord_etcd *coord)
{
    toc_etcd_watch_open(&coord->watch, toc_str_of(coord->watch_prefix),
                        coord->revision + 1);
}

static void
take_reply(struct toc_coord_etcd *coord, struct teller to,
           const struct toc_etcd_reply *reply)
{
    /* Compacted, or cancelled for another reason; or the server knows less
     * than we do: it was wiped or restored. */
    if (reply->canceled ||
        (reply->created && reply->revision < coord->revision)) {
        TOC_LOG(DEBUG, "etcd.watch.reset",
                F_INT("compact_revision", reply->compact_revision),
                F_INT("revision", reply->revision));
        toc_etcd_watch_close(&coord->watch);
        coord->in_sync = false;
        return;
    }
    if (reply->created)
        all_is_well(coord);
    if (reply->n_kvs == 0) {
        /* progress: all up to this revision has come. (The answer to a new
         * watch says nothing about what is still to come.) */
        if (!reply->created && reply->revision > coord->revision)
            coord->revision = reply->revision;
        return;
    }
    tell_kvs(coord, to, reply);
    coord->revision = reply->kvs[reply->n_kvs - 1].mod_revision;
}

/* Takes every whole line. */
static enum toc_status
take_lines(struct toc_coord_etcd *coord, struct teller to,
           struct toc_error *reterr)
{
    struct toc_str line;
    while (coord->in_sync && toc_etcd_watch_line(&coord->watch, &line)) {
        if (line.len == 0)
            continue;
        struct toc_etcd_reply reply;
        toc_arena_reset(&coord->arena);
        enum toc_status st =
            toc_etcd_parse_watch(line, &coord->arena, &reply, reterr);
        if (st != TOC_OK) {
            toc_etcd_watch_close(&coord->watch);
            coord->in_sync = false;
            return back_off(coord, st);
        }
        take_reply(coord, to, &reply);
    }
    return TOC_OK;
}

static enum toc_status
step_watch(struct toc_coord_etcd *coord, struct teller to,
           struct toc_error *reterr)
{
    struct toc_etcd_watch *watch = &coord->watch;
    if (!coord->in_sync)
        return TOC_OK;
    if (!watch->open && may_try(coord))
        open_watch(coord);
    enum toc_status ended = toc_etcd_watch_pump(watch, reterr);
    enum toc_status st = take_lines(coord, to, ended == TOC_OK ? reterr : NULL);
    if (ended != TOC_OK)
        return back_off(coord, ended);
    if (st != TOC_OK || !watch->open ||
        toc_clock_mono(coord->clock).ns < toc_etcd_watch_stale_at(watch))
        return st;
    bool answered = watch->answered;
    toc_etcd_watch_close(watch);
    toc_etcd_http_next_endpoint(&watch->http);
    if (answered)
        return TOC_OK; /* silent, which is usual: look anew */
    return back_off(coord, toc_error_set(reterr, TOC_DEADLINE, "etcd", 0,
                                         "etcd does not answer the watch"));
}

/* ---- poll ---------------------------------------------------------------- */

static enum toc_status
step(struct toc_coord_etcd *coord, struct teller to, struct toc_error *reterr)
{
    enum toc_status st = step_session(coord, to, reterr);
    if (st == TOC_OK)
        st = step_sync(coord, to, reterr);
    if (st == TOC_OK)
        st = step_watch(coord, to, reterr);
    return st;
}

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When something is to be done that no byte announces. */
static int64_t
next_look(struct toc_coord_etcd *coord, int64_t until)
{
    int64_t now = toc_clock_mono(coord->clock).ns;
    int64_t next = until;
    if (coord->watch.open)
        next = earlier(next, toc_etcd_watch_stale_at(&coord->watch));
    if (coord->retry_at.ns > now &&
        (!coord->watch.open || session_missing(coord)))
        next = earlier(next, coord->retry_at.ns);
    else if (!coord->watch.open)
        next = now;
    int64_t deadline = toc_etcd_session_deadline(&coord->session);
    if (deadline != 0)
        next = earlier(next, now + deadline - toc_clock_boot(coord->clock).ns);
    return next;
}

static enum toc_status
op_poll(void *self, int64_t timeout_ms, toc_coord_event_fn *fn, void *arg,
        struct toc_error *reterr)
{
    struct toc_coord_etcd *coord = self;
    struct teller to = {fn, arg};
    int64_t until =
        toc_mono_add_ms(toc_clock_mono(coord->clock), timeout_ms).ns;
    coord->told = 0;
    for (;;) {
        enum toc_status st = step(coord, to, reterr);
        bool woken = atomic_exchange(&coord->woken, false);
        if (st != TOC_OK || coord->told > 0 || woken ||
            atomic_load(&coord->interrupted_ns) != 0 ||
            toc_clock_mono(coord->clock).ns >= until)
            return st;
        toc_etcd_watch_wait(&coord->watch, next_look(coord, until));
    }
}

/* ---- owner keys ------------------------------------------------------------
 */

static enum toc_status
check_shards(const uint16_t *shards, size_t n, struct toc_error *reterr)
{
    for (size_t i = 0; i < n; i++)
        if (shards[i] >= TOC_ETCD_SHARDS)
            return toc_error_set(reterr, TOC_INVALID, "etcd", 0,
                                 "there is no shard %u", (unsigned)shards[i]);
    return TOC_OK;
}

static enum toc_status
need_lease(struct toc_coord_etcd *coord, int64_t *ret_lease,
           struct toc_error *reterr)
{
    int64_t lease = toc_etcd_session_lease(&coord->session);
    if (lease == 0)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "etcd", 0,
                             "there is no session");
    *ret_lease = lease;
    return TOC_OK;
}

static enum toc_status
acquire_some(struct toc_coord_etcd *coord, int64_t lease,
             const uint16_t *shards, size_t n, bool *ret_won,
             struct toc_error *reterr)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf body = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf reply = {0};
    toc_etcd_put_acquire(&body, prefix_of(coord), shards, n,
                         toc_buf_view(&coord->owner_value), lease);
    enum toc_status st =
        toc_etcd_http_post(&coord->http, "/v3/kv/txn", toc_buf_view(&body),
                           REQUEST_MS, &reply, reterr);
    if (st == TOC_NOT_FOUND) {
        toc_etcd_session_fail(&coord->session, lease); /* poll tells */
        return toc_error_set(reterr, TOC_UNAVAILABLE, "etcd", 0,
                             "the session has ended");
    }
    if (st != TOC_OK)
        return st;
    return toc_etcd_parse_acquire(toc_buf_view(&reply), n, lease, ret_won,
                                  reterr);
}

static size_t
chunk_of(size_t left)
{
    return left < TOC_ETCD_TXN_MAX ? left : TOC_ETCD_TXN_MAX;
}

static enum toc_status
op_acquire(void *self, const uint16_t *shards, size_t n, bool *ret_won,
           struct toc_error *reterr)
{
    struct toc_coord_etcd *coord = self;
    int64_t lease = 0;
    enum toc_status st = check_shards(shards, n, reterr);
    if (st == TOC_OK)
        st = need_lease(coord, &lease, reterr);
    if (st != TOC_OK)
        return st;
    TOC_AUTO_FREE bool *won = TOC_NEW_ARRAY(bool, n);
    for (size_t i = 0; i < n; i += chunk_of(n - i)) {
        st = acquire_some(coord, lease, shards + i, chunk_of(n - i), won + i,
                          reterr);
        if (st != TOC_OK)
            return st;
    }
    /* keys of a session that has ended meanwhile are worth nothing */
    if (toc_etcd_session_lease(&coord->session) != lease)
        return need_lease(coord, &lease, reterr);
    memcpy(ret_won, won, n * sizeof *won);
    return TOC_OK;
}

static enum toc_status
op_release(void *self, const uint16_t *shards, size_t n,
           struct toc_error *reterr)
{
    struct toc_coord_etcd *coord = self;
    int64_t lease = 0;
    enum toc_status st = check_shards(shards, n, reterr);
    if (st == TOC_OK)
        st = need_lease(coord, &lease, reterr);
    for (size_t i = 0; st == TOC_OK && i < n; i += chunk_of(n - i)) {
        TOC_CLEANUP(toc_buf_done) struct toc_buf body = {0};
        TOC_CLEANUP(toc_buf_done) struct toc_buf reply = {0};
        toc_etcd_put_release(&body, prefix_of(coord), shards + i,
                             chunk_of(n - i), lease);
        st = toc_etcd_http_post(&coord->http, "/v3/kv/txn", toc_buf_view(&body),
                                REQUEST_MS, &reply, reterr);
    }
    return st;
}

/* Wishes stand under the lease, so that they go when we do. */
static enum toc_status
want_some(struct toc_coord_etcd *coord, int64_t lease, const uint16_t *shards,
          size_t n, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf body = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf reply = {0};
    toc_etcd_put_want(&body, prefix_of(coord), shards, n,
                      toc_buf_view(&coord->owner_value), lease);
    enum toc_status st =
        toc_etcd_http_post(&coord->http, "/v3/kv/txn", toc_buf_view(&body),
                           REQUEST_MS, &reply, reterr);
    if (st != TOC_NOT_FOUND)
        return st;
    toc_etcd_session_fail(&coord->session, lease); /* poll tells */
    return toc_error_set(reterr, TOC_UNAVAILABLE, "etcd", 0,
                         "the session has ended");
}

static enum toc_status
op_want(void *self, const uint16_t *shards, size_t n, bool wanted,
        struct toc_error *reterr)
{
    struct toc_coord_etcd *coord = self;
    int64_t lease = 0;
    enum toc_status st = check_shards(shards, n, reterr);
    if (st == TOC_OK)
        st = need_lease(coord, &lease, reterr);
    for (size_t i = 0; st == TOC_OK && i < n; i += chunk_of(n - i))
        st = want_some(coord, wanted ? lease : 0, shards + i, chunk_of(n - i),
                       reterr);
    return st;
}

static enum toc_status
op_leave(void *self, struct toc_error *reterr)
{
    struct toc_coord_etcd *coord = self;
    coord->left = true;
    coord->http.interrupted_ns = NULL;
    int64_t lease = toc_etcd_session_end(&coord->session);
    if (lease == 0)
        lease = coord->old_lease;
    coord->old_lease = 0;
    return lease == 0 ? TOC_OK : revoke(coord, lease, LEAVE_MS, reterr);
}

/* ---- the rest
 * ---------------------------------------------------------------- */

static void
sort_out(struct toc_coord_etcd *coord, const struct toc_etcd_reply *reply,
         struct toc_arena *arena, struct toc_member *members,
         size_t *ret_n_members, struct toc_owner *owners, size_t *ret_n_owners)
{
    for (size_t i = 0; i < reply->n_kvs; i++) {
        struct toc_coord_event event;
        if (!toc_etcd_event_of(prefix_of(coord), &reply->kvs[i], arena, &event))
            continue;
        if (event.kind == TOC_COORD_MEMBER_UP)
            members[(*ret_n_members)++] = event.member;
        else if (event.kind == TOC_COORD_OWNED)
            owners[(*ret_n_owners)++] = event.owner;
    }
}

static enum toc_status
op_snapshot(void *self, struct toc_arena *arena,
            struct toc_member **ret_members, size_t *ret_n_members,
            struct toc_owner **ret_owners, size_t *ret_n_owners,
            struct toc_error *reterr)
{
    struct toc_coord_etcd *coord = self;
    struct toc_etcd_reply reply;
    pthread_mutex_lock(&coord->snapshot_lock);
    enum toc_status st =
        read_all(&coord->snapshot_http, coord->prefix, arena, &reply, reterr);
    pthread_mutex_unlock(&coord->snapshot_lock);
    if (st != TOC_OK)
        return st;
    *ret_n_members = *ret_n_owners = 0;
    *ret_members =
        toc_arena_calloc(arena, reply.n_kvs + 1, sizeof **ret_members);
    *ret_owners = toc_arena_calloc(arena, reply.n_kvs + 1, sizeof **ret_owners);
    sort_out(coord, &reply, arena, *ret_members, ret_n_members, *ret_owners,
             ret_n_owners);
    return TOC_OK;
}

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
    .poll = op_poll,
    .acquire = op_acquire,
    .release = op_release,
    .want = op_want,
    .leave = op_leave,
    .snapshot = op_snapshot,
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
    all_is_well(coord);
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
    (void)op_leave(coord, NULL);
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
