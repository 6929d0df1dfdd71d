/*
 * The handle, and what its parts share: each part is an operation of the port
 * (a `self` is the handle) or a step of poll. Only for this folder.
 *
 * Threads: as the port says; without a word here, the one that polls.
 */
#ifndef TOC_COORD_ETCD_INTERNAL_H
#define TOC_COORD_ETCD_INTERNAL_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/base/str.h"
#include "common/clock/clock.h"
#include "common/coord/coord.h"
#include "common/coord/etcd/coord_etcd.h"
#include "common/coord/etcd/http.h"
#include "common/coord/etcd/session.h"
#include "common/coord/etcd/watch.h"
#include "common/coord/etcd/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOC_COORD_ETCD_REQUEST_MS 2000

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

/* Whom poll tells. */
struct toc_coord_etcd_teller {
    toc_coord_event_fn *fn;
    void *arg;
};

/* ---- poll ---- */

struct toc_str toc_coord_etcd_prefix(const struct toc_coord_etcd *coord);
void toc_coord_etcd_tell(struct toc_coord_etcd *coord,
                         struct toc_coord_etcd_teller to,
                         const struct toc_coord_event *event);
void toc_coord_etcd_tell_kind(struct toc_coord_etcd *coord,
                              struct toc_coord_etcd_teller to,
                              enum toc_coord_event_kind kind);
bool toc_coord_etcd_may_try(const struct toc_coord_etcd *coord);
/* The next try is after a pause; returns st. */
enum toc_status toc_coord_etcd_back_off(struct toc_coord_etcd *coord,
                                        enum toc_status st);
void toc_coord_etcd_all_is_well(struct toc_coord_etcd *coord);
TOC_MUST_CHECK enum toc_status toc_coord_etcd_poll(void *self,
                                                   int64_t timeout_ms,
                                                   toc_coord_event_fn *fn,
                                                   void *arg,
                                                   struct toc_error *reterr);

/* ---- session ---- */

/* Sees to it that there is a session. */
TOC_MUST_CHECK enum toc_status toc_coord_etcd_step_session(
    struct toc_coord_etcd *coord, struct toc_coord_etcd_teller to,
    struct toc_error *reterr);
/* Should there be one, and is none? */
bool toc_coord_etcd_session_missing(struct toc_coord_etcd *coord);
enum toc_status toc_coord_etcd_leave(void *self, struct toc_error *reterr);

/* ---- reading everything, and watching ---- */

/* All keys under the prefix. Threads: the handle's of http. */
TOC_MUST_CHECK enum toc_status toc_coord_etcd_read_all(
    struct toc_etcd_http *http, const char *prefix, struct toc_arena *arena,
    struct toc_etcd_reply *ret_reply, struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status toc_coord_etcd_step_sync(
    struct toc_coord_etcd *coord, struct toc_coord_etcd_teller to,
    struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status toc_coord_etcd_step_watch(
    struct toc_coord_etcd *coord, struct toc_coord_etcd_teller to,
    struct toc_error *reterr);
/* Threads: any. */
TOC_MUST_CHECK enum toc_status toc_coord_etcd_snapshot(
    void *self, struct toc_arena *arena, struct toc_member **ret_members,
    size_t *ret_n_members, struct toc_owner **ret_owners, size_t *ret_n_owners,
    struct toc_error *reterr);

/* ---- owner keys and wishes ---- */

TOC_MUST_CHECK enum toc_status toc_coord_etcd_acquire(void *self,
                                                      const uint16_t *shards,
                                                      size_t n, bool *ret_won,
                                                      struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status toc_coord_etcd_release(void *self,
                                                      const uint16_t *shards,
                                                      size_t n,
                                                      struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status toc_coord_etcd_want(void *self,
                                                   const uint16_t *shards,
                                                   size_t n, bool wanted,
                                                   struct toc_error *reterr);

#endif
