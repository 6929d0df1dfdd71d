#include "scheduler/access/content.h"

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/hash.h"

#include <string.h>

/* A canonical text of the request: each part its tag, its length or number, and
 * its bytes, in the order of the field numbers. */

static void
put_number(struct toc_buf *out, char tag, int64_t value)
{
    toc_buf_char(out, tag);
    toc_buf_i64(out, value);
    toc_buf_char(out, ';');
}

static void
put_bytes(struct toc_buf *out, char tag, struct toc_str s)
{
    put_number(out, tag, (int64_t)s.len);
    toc_buf_str(out, s);
}

static void
put_text(struct toc_buf *out, char tag, const char *text)
{
    put_bytes(out, tag, toc_str_of(text));
}

static void
put_duration(struct toc_buf *out, char tag,
             const Google__Protobuf__Duration *duration)
{
    if (duration == NULL)
        return;
    put_number(out, tag, duration->seconds);
    put_number(out, '.', duration->nanos);
}

static void
put_retry(struct toc_buf *out, const Toc__V1__RetryPolicy *policy)
{
    uint64_t factor_bits = 0;

    if (policy == NULL)
        return;
    toc_buf_char(out, 'R');
    if (policy->max_retries != NULL)
        put_number(out, 'm', policy->max_retries->value);
    for (size_t i = 0; i < policy->n_ladder; i++)
        put_duration(out, 'l', policy->ladder[i]);
    if (policy->exponential != NULL) {
        memcpy(&factor_bits, &policy->exponential->factor, sizeof factor_bits);
        put_duration(out, 'f', policy->exponential->first);
        put_duration(out, 'c', policy->exponential->cap);
        put_number(out, 'x', (int64_t)factor_bits);
    }
    put_number(out, 'j', policy->jitter_percent);
}

static void
put_when(struct toc_buf *out, const Toc__V1__SubmitRequest *request)
{
    if (request->when_case == TOC__V1__SUBMIT_REQUEST__WHEN_DELAY) {
        put_duration(out, 'D', request->delay);
    } else if (request->when_case == TOC__V1__SUBMIT_REQUEST__WHEN_DUE_TIME) {
        put_number(out, 'T', request->due_time->seconds);
        put_number(out, '.', request->due_time->nanos);
    }
}

static void
put_words(struct toc_buf *out, const Toc__V1__SubmitRequest *request)
{
    int delivery = (int)request->delivery_guarantee;
    int priority = (int)request->priority;

    if (delivery == TOC__V1__DELIVERY_GUARANTEE__DELIVERY_GUARANTEE_UNSPECIFIED)
        delivery =
            TOC__V1__DELIVERY_GUARANTEE__DELIVERY_GUARANTEE_AT_LEAST_ONCE;
    if (priority == TOC__V1__PRIORITY__PRIORITY_UNSPECIFIED)
        priority = TOC__V1__PRIORITY__PRIORITY_NORMAL;
    put_number(out, 'G', delivery);
    put_number(out, 'P', priority);
}

void
sched_content_hash(const Toc__V1__SubmitRequest *request,
                   uint8_t ret_content[8])
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};
    struct toc_str fields[2];
    uint8_t digest[32];

    put_text(&out, 'B', request->key->biz_type);
    put_text(&out, 'I', request->key->biz_id);
    put_text(&out, 'N', request->key->name);
    put_when(&out, request);
    put_text(&out, 'C', request->content_type);
    put_text(&out, 'U', request->target->url);
    put_number(&out, 'b', request->target->batch_max);
    put_retry(&out, request->retry_policy);
    put_words(&out, request);
    put_duration(&out, 'W', request->call_timeout);
    for (size_t i = 0; i < request->n_headers; i++) {
        put_text(&out, 'H', request->headers[i]->name);
        put_text(&out, 'V', request->headers[i]->value);
    }
    fields[0] = toc_buf_view(&out);
    fields[1] = (struct toc_str){(const char *)request->payload.data,
                                 request->payload.len};
    toc_sha256_fields(fields, 2, digest);
    memcpy(ret_content, digest, 8);
}
