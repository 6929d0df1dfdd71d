#include "common/coord/etcd/http.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/coord/etcd/wire.h"

#include <pthread.h>
#include <string.h>

/* A peer that is there accepts within this time. */
#define CONNECT_MS 1000
/* Less is not worth a try. */
#define ATTEMPT_MS_MIN 50
/* A request that is interrupted has this time left, enough for a server that is
 * well; curl looks once a second. */
#define INTERRUPTED_MS 300

/* ---- endpoints ------------------------------------------------------- */

static bool
is_endpoint(struct toc_str url)
{
    struct toc_str http = TOC_STR("http://"), https = TOC_STR("https://");
    return (toc_str_starts(url, http) && url.len > http.len) ||
           (toc_str_starts(url, https) && url.len > https.len);
}

enum toc_status
toc_etcd_endpoints_init(struct toc_etcd_endpoints *endpoints, const char *text,
                        struct toc_error *reterr)
{
    struct toc_str rest = toc_str_of(text), url;
    struct toc_etcd_endpoints list = {0};
    list.urls = TOC_NEW_ARRAY(char *, rest.len / 8 + 1);
    while (toc_str_next(&rest, ',', &url)) {
        while (url.len > 0 && url.ptr[url.len - 1] == '/')
            url.len--;
        if (!is_endpoint(url)) {
            toc_etcd_endpoints_done(&list);
            return toc_error_set(reterr, TOC_INVALID, "etcd", 0,
                                 "\"%.*s\" is not http://host:port",
                                 (int)(url.len < 100 ? url.len : 100),
                                 url.len == 0 ? "" : url.ptr);
        }
        list.urls[list.n++] = toc_strndup(url.ptr, url.len);
    }
    if (list.n == 0) {
        toc_etcd_endpoints_done(&list);
        return toc_error_set(reterr, TOC_INVALID, "etcd", 0, "no endpoint");
    }
    *endpoints = list;
    return TOC_OK;
}

void
toc_etcd_endpoints_done(struct toc_etcd_endpoints *endpoints)
{
    for (size_t i = 0; i < endpoints->n; i++)
        toc_free(endpoints->urls[i]);
    toc_free(endpoints->urls);
    *endpoints = (struct toc_etcd_endpoints){0};
}

/* ---- one handle ------------------------------------------------------ */

static void
init_curl(void)
{
    TOC_ASSERT(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
}

static size_t
collect(char *bytes, size_t size, size_t n, void *arg)
{
    struct toc_buf *reply = arg;
    size_t len = size * n;
    if (reply->len + len > TOC_ETCD_REPLY_MAX)
        return 0; /* curl ends the transfer with CURLE_WRITE_ERROR */
    toc_buf_add(reply, bytes, len);
    return len;
}

void
toc_etcd_http_init(struct toc_etcd_http *http, const struct toc_clock *clock,
                   const struct toc_etcd_endpoints *endpoints)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, init_curl);

    *http = (struct toc_etcd_http){.clock = clock, .endpoints = endpoints};
    http->easy = curl_easy_init();
    http->headers =
        curl_slist_append(http->headers, "Content-Type: application/json");
    TOC_ASSERT(http->easy != NULL && http->headers != NULL);
    struct curl_slist *more = curl_slist_append(http->headers, "Expect:");
    TOC_ASSERT(more != NULL);
}

void
toc_etcd_http_done(struct toc_etcd_http *http)
{
    curl_easy_cleanup(http->easy);
    curl_slist_free_all(http->headers);
    *http = (struct toc_etcd_http){0};
}

void
toc_etcd_http_next_endpoint(struct toc_etcd_http *http)
{
    http->at = (http->at + 1) % http->endpoints->n;
}

void
toc_etcd_http_prepare(struct toc_etcd_http *http, const char *path,
                      struct toc_str body, struct toc_buf *reply)
{
    CURL *easy = http->easy;
    char url[512];
    toc_format(url, sizeof url, "%s%s", http->endpoints->urls[http->at], path);
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body.len);
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body.ptr);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, http->headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, reply);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* the environment's proxy is not for this */
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 2L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
}

enum toc_status
toc_etcd_http_error(CURLcode code, struct toc_error *reterr)
{
    enum toc_status st = TOC_UNAVAILABLE;
    if (code == CURLE_OPERATION_TIMEDOUT)
        st = TOC_DEADLINE;
    else if (code == CURLE_WRITE_ERROR)
        st = TOC_RANGE;
    return toc_error_set(reterr, st, "etcd", (int)code, "etcd: %s",
                         st == TOC_RANGE ? "the answer is too large"
                                         : curl_easy_strerror(code));
}

/* ---- interrupting ---------------------------------------------------- */

static bool
is_interrupted(const struct toc_etcd_http *http)
{
    return http->interrupted_ns != NULL &&
           atomic_load(http->interrupted_ns) != 0;
}

static int
shall_give_up(void *arg, curl_off_t down_total, curl_off_t down,
              curl_off_t up_total, curl_off_t up)
{
    const struct toc_etcd_http *http = arg;

    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    return is_interrupted(http) &&
           toc_clock_mono(http->clock).ns >= atomic_load(http->interrupted_ns) +
                                                 INTERRUPTED_MS * TOC_NS_PER_MS;
}

static void
let_interrupt(struct toc_etcd_http *http)
{
    curl_easy_setopt(http->easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(http->easy, CURLOPT_XFERINFOFUNCTION, shall_give_up);
    curl_easy_setopt(http->easy, CURLOPT_XFERINFODATA, http);
}

/* ---- requests -------------------------------------------------------- */

/* One attempt at the current endpoint; tells how long it took. */
static enum toc_status
post_once(struct toc_etcd_http *http, const char *path, struct toc_str body,
          int64_t timeout_ms, struct toc_buf *reply, int64_t *ret_spent_ms,
          struct toc_error *reterr)
{
    toc_buf_reset(reply);
    toc_etcd_http_prepare(http, path, body, reply);
    curl_easy_setopt(http->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    let_interrupt(http);
    http->sent = toc_clock_boot(http->clock);
    CURLcode code = curl_easy_perform(http->easy);
    curl_off_t spent_us = 0;
    long http_code = 0;
    curl_easy_getinfo(http->easy, CURLINFO_TOTAL_TIME_T, &spent_us);
    curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &http_code);
    *ret_spent_ms = (int64_t)spent_us / 1000;
    if (code != CURLE_OK)
        return toc_etcd_http_error(code, reterr);
    if (http_code != 200)
        return toc_etcd_parse_error(http_code, toc_buf_view(reply), reterr);
    return TOC_OK;
}

/* Is it worth asking another endpoint? What etcd decided stands. */
static bool
try_next(enum toc_status st)
{
    return st == TOC_UNAVAILABLE || st == TOC_DEADLINE;
}

enum toc_status
toc_etcd_http_post(struct toc_etcd_http *http, const char *path,
                   struct toc_str body, int64_t timeout_ms,
                   struct toc_buf *reply, struct toc_error *reterr)
{
    enum toc_status st = TOC_UNAVAILABLE;
    int64_t left_ms = timeout_ms;
    for (size_t left = http->endpoints->n; left > 0; left--) {
        if (is_interrupted(http))
            return toc_error_set(reterr, TOC_UNAVAILABLE, "etcd", 0,
                                 "interrupted: the process is stopping");
        /* an endpoint that hangs leaves time for the others */
        int64_t attempt_ms = left_ms / (int64_t)left;
        if (attempt_ms < ATTEMPT_MS_MIN)
            attempt_ms = ATTEMPT_MS_MIN;
        int64_t spent_ms;
        st = post_once(http, path, body, attempt_ms, reply, &spent_ms, reterr);
        if (!try_next(st))
            return st;
        toc_etcd_http_next_endpoint(http);
        left_ms -= spent_ms;
    }
    return st;
}
