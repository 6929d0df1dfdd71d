/*
 * Requests to etcd's JSON gateway: one curl handle, several endpoints that are
 * tried in turn, every wait bounded.
 *
 * Ownership: endpoints are shared and must outlive the handles. Threads: a
 * handle one at a time. Blocking: a post up to its timeout, whatever the
 * number of endpoints. Errors: TOC_UNAVAILABLE when no endpoint answers,
 * TOC_DEADLINE when time is up, else what etcd says.
 */
#ifndef TOC_COORD_ETCD_HTTP_H
#define TOC_COORD_ETCD_HTTP_H

#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/base/str.h"
#include "common/clock/clock.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* An answer larger than this is refused. */
#define TOC_ETCD_REPLY_MAX ((size_t)32 << 20)

struct toc_etcd_endpoints {
    char **urls; /* without a final '/' */
    size_t n;
};

/* text: http://host:port[,...] */
TOC_MUST_CHECK enum toc_status toc_etcd_endpoints_init(
    struct toc_etcd_endpoints *endpoints, const char *text,
    struct toc_error *reterr);
void toc_etcd_endpoints_done(struct toc_etcd_endpoints *endpoints);

struct toc_etcd_http {
    const struct toc_clock *clock;
    const struct toc_etcd_endpoints *endpoints;
    size_t at;            /* the endpoint that answered last */
    struct toc_boot sent; /* when the last attempt of a post began */
    CURL *easy;
    struct curl_slist *headers;
    /* When requests were interrupted, by the monotonic clock; 0: not. NULL:
     * they cannot be. */
    const _Atomic int64_t *interrupted_ns;
};

void toc_etcd_http_init(struct toc_etcd_http *http,
                        const struct toc_clock *clock,
                        const struct toc_etcd_endpoints *endpoints);
void toc_etcd_http_done(struct toc_etcd_http *http);

/* Sets what all requests have in common; reply collects the body. */
void toc_etcd_http_prepare(struct toc_etcd_http *http, const char *path,
                           struct toc_str body, struct toc_buf *reply);
void toc_etcd_http_next_endpoint(struct toc_etcd_http *http);

/* The answer's body is in *reply, also when etcd refused. */
TOC_MUST_CHECK enum toc_status toc_etcd_http_post(
    struct toc_etcd_http *http, const char *path, struct toc_str body,
    int64_t timeout_ms, struct toc_buf *reply, struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status toc_etcd_http_error(CURLcode code,
                                                   struct toc_error *reterr);

#endif
