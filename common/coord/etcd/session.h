/*
 * The process's lease, and the thread that keeps it alive.
 *
 * A lease counts as lost when etcd says so, or when the local deadline (boot
 * clock before the last good renewal was sent + TTL - a margin) has passed,
 * whatever etcd may still believe: an etcd that stalls must not make an owner.
 *
 * Threads: begin, end and check on the handle's thread; deadline on any. The
 * keepalive thread belongs to the session. Locks: its own, a leaf.
 */
#ifndef TOC_COORD_ETCD_SESSION_H
#define TOC_COORD_ETCD_SESSION_H

#include "common/base/thread.h"
#include "common/clock/clock.h"
#include "common/coord/etcd/http.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct toc_etcd_session {
    const struct toc_clock *clock;
    struct toc_etcd_http http; /* Thread: keepalive */
    struct toc_thread thread;
    struct toc_bell bell;
    void (*on_loss)(void *arg); /* Thread: keepalive */
    void *arg;
    _Atomic int64_t deadline_boot_ns; /* 0: no session */

    pthread_mutex_t lock; /* for what follows */
    int64_t lease;        /* 0: none */
    int64_t ttl_ms;
    bool lost; /* told by check */
    bool stopping;
};

void toc_etcd_session_init(struct toc_etcd_session *session,
                           const struct toc_clock *clock,
                           const struct toc_etcd_endpoints *endpoints,
                           void (*on_loss)(void *arg), void *arg);
void toc_etcd_session_done(struct toc_etcd_session *session);

/* The lease was granted by a request that was sent at sent. */
void toc_etcd_session_begin(struct toc_etcd_session *session, int64_t lease,
                            int64_t ttl_ms, struct toc_boot sent);
/* Forgets the lease and returns it (0: none); nothing renews it any more. */
int64_t toc_etcd_session_end(struct toc_etcd_session *session);
/* etcd has said elsewhere that the lease is gone. */
void toc_etcd_session_fail(struct toc_etcd_session *session, int64_t lease);
/* The lease, as long as its deadline has not passed; else 0. */
int64_t toc_etcd_session_lease(struct toc_etcd_session *session);
/* True once after each loss; *ret_lease is what was lost. */
bool toc_etcd_session_take_loss(struct toc_etcd_session *session,
                                int64_t *ret_lease);
int64_t toc_etcd_session_deadline(struct toc_etcd_session *session);

#endif
