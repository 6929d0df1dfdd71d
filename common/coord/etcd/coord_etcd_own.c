/*
 * Owner keys and wishes: transactions under our lease.
 */
#include "common/coord/etcd/coord_etcd_internal.h"

#include "common/base/alloc.h"
#include "common/base/cleanup.h"

#include <string.h>

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
    toc_etcd_put_acquire(&body, toc_coord_etcd_prefix(coord), shards, n,
                         toc_buf_view(&coord->owner_value), lease);
    enum toc_status st =
        toc_etcd_http_post(&coord->http, "/v3/kv/txn", toc_buf_view(&body),
                           TOC_COORD_ETCD_REQUEST_MS, &reply, reterr);
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

enum toc_status
toc_coord_etcd_acquire(void *self, const uint16_t *shards, size_t n,
                       bool *ret_won, struct toc_error *reterr)
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

enum toc_status
toc_coord_etcd_release(void *self, const uint16_t *shards, size_t n,
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
        toc_etcd_put_release(&body, toc_coord_etcd_prefix(coord), shards + i,
                             chunk_of(n - i), lease);
        st = toc_etcd_http_post(&coord->http, "/v3/kv/txn", toc_buf_view(&body),
                                TOC_COORD_ETCD_REQUEST_MS, &reply, reterr);
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
    toc_etcd_put_want(&body, toc_coord_etcd_prefix(coord), shards, n,
                      toc_buf_view(&coord->owner_value), lease);
    enum toc_status st =
        toc_etcd_http_post(&coord->http, "/v3/kv/txn", toc_buf_view(&body),
                           TOC_COORD_ETCD_REQUEST_MS, &reply, reterr);
    if (st != TOC_NOT_FOUND)
        return st;
    toc_etcd_session_fail(&coord->session, lease); /* poll tells */
    return toc_error_set(reterr, TOC_UNAVAILABLE, "etcd", 0,
                         "the session has ended");
}

enum toc_status
toc_coord_etcd_want(void *self, const uint16_t *shards, size_t n, bool wanted,
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
