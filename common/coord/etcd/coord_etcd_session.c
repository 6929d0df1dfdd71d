/*
 * Our session: a lease, our member key under it, told as new or lost; leaving.
 */
#include "common/coord/etcd/coord_etcd_internal.h"

#include "common/base/cleanup.h"

/* A revoke is a courtesy where the lease ends soon anyway. */
#define REVOKE_MS 500
#define LEAVE_MS 1000 /* then the lease ends by itself, soon after */

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
                           TOC_COORD_ETCD_REQUEST_MS, &reply, reterr);
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
                              TOC_COORD_ETCD_REQUEST_MS, &reply, reterr);
}

static enum toc_status
open_session(struct toc_coord_etcd *coord, struct toc_coord_etcd_teller to,
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
    toc_coord_etcd_tell_kind(coord, to, TOC_COORD_SESSION_NEW);
    return TOC_OK;
}

static void
report_loss(struct toc_coord_etcd *coord, struct toc_coord_etcd_teller to)
{
    if (!toc_etcd_session_take_loss(&coord->session, &coord->old_lease))
        return;
    coord->in_sync = false;
    toc_etcd_watch_close(&coord->watch);
    toc_coord_etcd_tell_kind(coord, to, TOC_COORD_SESSION_LOST);
}

/* Sees to it that there is a session. */
enum toc_status
toc_coord_etcd_step_session(struct toc_coord_etcd *coord,
                            struct toc_coord_etcd_teller to,
                            struct toc_error *reterr)
{
    if (!coord->member || coord->left)
        return TOC_OK;
    report_loss(coord, to);
    if (toc_etcd_session_lease(&coord->session) != 0 ||
        !toc_coord_etcd_may_try(coord))
        return TOC_OK;
    report_loss(coord, to); /* its deadline may have passed just now */
    enum toc_status st = open_session(coord, to, reterr);
    return st == TOC_OK ? st : toc_coord_etcd_back_off(coord, st);
}

bool
toc_coord_etcd_session_missing(struct toc_coord_etcd *coord)
{
    return coord->member && !coord->left &&
           toc_etcd_session_lease(&coord->session) == 0;
}

enum toc_status
toc_coord_etcd_leave(void *self, struct toc_error *reterr)
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
