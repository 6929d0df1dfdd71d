#include "common/coord/etcd/watch.h"

#include "common/base/assert.h"
#include "common/coord/etcd/wire.h"

#include <string.h>

/* etcd answers a new watch at once. */
#define ANSWER_MS 1000
/* Then it may be silent, for the keys rarely change. */
#define SILENCE_MS 5000
#define WAIT_MS_MAX 1000

void
toc_etcd_watch_init(struct toc_etcd_watch *watch, const struct toc_clock *clock,
                    const struct toc_etcd_endpoints *endpoints)
{
    *watch = (struct toc_etcd_watch){.clock = clock};
    toc_etcd_http_init(&watch->http, clock, endpoints);
    watch->multi = curl_multi_init();
    TOC_ASSERT(watch->multi != NULL);
}

void
toc_etcd_watch_done(struct toc_etcd_watch *watch)
{
    toc_etcd_watch_close(watch);
    toc_etcd_http_done(&watch->http);
    (void)curl_multi_cleanup(watch->multi);
    toc_buf_done(&watch->data);
}

void
toc_etcd_watch_open(struct toc_etcd_watch *watch, struct toc_str prefix,
                    int64_t from_revision)
{
    TOC_ASSERT(!watch->open);
    struct toc_buf body = {0};
    toc_etcd_put_watch(&body, prefix, from_revision);
    toc_buf_reset(&watch->data);
    watch->read = watch->received = 0;
    toc_etcd_http_prepare(&watch->http, "/v3/watch", toc_buf_view(&body),
                          &watch->data);
    toc_buf_done(&body);
    /* a stream is never to be used again for something else */
    curl_easy_setopt(watch->http.easy, CURLOPT_FORBID_REUSE, 1L);
    CURLMcode code = curl_multi_add_handle(watch->multi, watch->http.easy);
    TOC_ASSERT(code == CURLM_OK);
    watch->open = true;
    watch->answered = false;
    watch->heard = toc_clock_mono(watch->clock);
}

void
toc_etcd_watch_close(struct toc_etcd_watch *watch)
{
    if (!watch->open)
        return;
    (void)curl_multi_remove_handle(watch->multi, watch->http.easy);
    watch->open = false;
}

/* Forgets the lines that were handed out. */
static void
compact(struct toc_etcd_watch *watch)
{
    struct toc_buf *data = &watch->data;
    if (watch->read == 0)
        return;
    memmove(data->data, data->data + watch->read, data->len - watch->read);
    data->len -= watch->read;
    watch->read = 0;
    watch->received = data->len;
}

/* What a stream that has ended has to say. */
static enum toc_status
end_of(struct toc_etcd_watch *watch, CURLcode code, struct toc_error *reterr)
{
    long http_code = 0;
    curl_easy_getinfo(watch->http.easy, CURLINFO_RESPONSE_CODE, &http_code);
    if (code != CURLE_OK)
        return toc_etcd_http_error(code, reterr);
    if (http_code != 200)
        return toc_etcd_parse_error(http_code, toc_buf_view(&watch->data),
                                    reterr);
    return toc_error_set(reterr, TOC_UNAVAILABLE, "etcd", 0,
                         "etcd ended the watch");
}

enum toc_status
toc_etcd_watch_pump(struct toc_etcd_watch *watch, struct toc_error *reterr)
{
    if (!watch->open)
        return TOC_OK;
    compact(watch);
    int running, queued;
    CURLMcode code = curl_multi_perform(watch->multi, &running);
    if (watch->data.len != watch->received) {
        watch->received = watch->data.len;
        watch->answered = true;
        watch->heard = toc_clock_mono(watch->clock);
    }
    if (code == CURLM_OK && running > 0)
        return TOC_OK;
    enum toc_status st = TOC_UNAVAILABLE;
    CURLMsg *end = curl_multi_info_read(watch->multi, &queued);
    if (end != NULL && end->msg == CURLMSG_DONE)
        st = end_of(watch, end->data.result, reterr);
    else
        st = toc_error_set(reterr, st, "etcd", (int)code, "etcd: %s",
                           curl_multi_strerror(code));
    toc_etcd_watch_close(watch);
    toc_etcd_http_next_endpoint(&watch->http);
    return st;
}

bool
toc_etcd_watch_line(struct toc_etcd_watch *watch, struct toc_str *ret)
{
    size_t left = watch->data.len - watch->read;
    if (left == 0)
        return false;
    const char *line = watch->data.data + watch->read;
    const char *end = memchr(line, '\n', left);
    if (end == NULL)
        return false;
    *ret = (struct toc_str){line, (size_t)(end - line)};
    watch->read += ret->len + 1;
    return true;
}

int64_t
toc_etcd_watch_stale_at(const struct toc_etcd_watch *watch)
{
    int64_t ms = watch->answered ? SILENCE_MS : ANSWER_MS;
    return toc_mono_add_ms(watch->heard, ms).ns;
}

void
toc_etcd_watch_wait(struct toc_etcd_watch *watch, int64_t until_mono_ns)
{
    int64_t ns = until_mono_ns - toc_clock_mono(watch->clock).ns;
    if (ns <= 0)
        return;
    int64_t ms = ns / TOC_NS_PER_MS + 1;
    if (ms > WAIT_MS_MAX)
        ms = WAIT_MS_MAX;
    (void)curl_multi_poll(watch->multi, NULL, 0, (int)ms, NULL);
}

void
toc_etcd_watch_wake(struct toc_etcd_watch *watch)
{
    (void)curl_multi_wakeup(watch->multi);
}
