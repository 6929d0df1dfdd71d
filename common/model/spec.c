#include "common/model/spec.h"

#include "common/base/cleanup.h"
#include "common/model/unpack.h"
#include "toc/v1/types.pb-c.h"

static bool
retry_is_default(const struct toc_retry *retry)
{
    const struct toc_retry *usual = &toc_retry_default;

    if (retry->max_retries != usual->max_retries ||
        retry->n_steps != usual->n_steps ||
        retry->jitter_percent != usual->jitter_percent)
        return false;
    for (size_t i = 0; i < usual->n_steps; i++)
        if (retry->step_ms[i] != usual->step_ms[i])
            return false;
    return true;
}

static uint64_t
not_negative(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

/* steps: room for TOC_LADDER_MAX. */
static void
fill_retry(const struct toc_retry *retry, uint64_t *steps,
           Toc__V1__StoredRetry *out)
{
    size_t n = retry->n_steps;

    if (n > TOC_LADDER_MAX)
        n = TOC_LADDER_MAX;
    for (size_t i = 0; i < n; i++)
        steps[i] = not_negative(retry->step_ms[i]);
    out->n_step_ms = n;
    out->step_ms = steps;
    out->max_retries = retry->max_retries;
    out->first_ms = not_negative(retry->first_ms);
    out->cap_ms = not_negative(retry->cap_ms);
    out->factor_permille = retry->factor_permille;
    out->jitter_percent = retry->jitter_percent;
}

static uint32_t
stored_timeout(int64_t call_timeout_ms)
{
    if (call_timeout_ms <= 0 || call_timeout_ms == TOC_CALL_TIMEOUT_MS_DEFAULT)
        return 0;
    if (call_timeout_ms > TOC_CALL_TIMEOUT_MS_MAX)
        return TOC_CALL_TIMEOUT_MS_MAX;
    return (uint32_t)call_timeout_ms;
}

void
toc_spec_encode(const struct toc_spec *spec, struct toc_buf *out)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    Toc__V1__TaskSpec msg = TOC__V1__TASK_SPEC__INIT;
    Toc__V1__StoredRetry retry = TOC__V1__STORED_RETRY__INIT;
    Toc__V1__Header headers[TOC_HEADERS_MAX];
    Toc__V1__Header *refs[TOC_HEADERS_MAX];
    uint64_t steps[TOC_LADDER_MAX];

    msg.target = toc_arena_text(&arena, spec->target);
    msg.call_timeout_ms = stored_timeout(spec->call_timeout_ms);
    msg.batch_max = spec->batch_max;
    msg.at_most_once = spec->at_most_once;
    msg.content_type = toc_arena_text(&arena, spec->content_type);
    msg.traceparent = toc_arena_text(&arena, spec->traceparent);
    if (!retry_is_default(&spec->retry)) {
        fill_retry(&spec->retry, steps, &retry);
        msg.retry = &retry;
    }
    for (size_t i = 0; i < spec->n_headers && i < TOC_HEADERS_MAX; i++) {
        toc__v1__header__init(&headers[i]);
        headers[i].name = toc_arena_text(&arena, spec->headers[i].name);
        headers[i].value = toc_arena_text(&arena, spec->headers[i].value);
        refs[i] = &headers[i];
        msg.n_headers = i + 1;
    }
    msg.headers = refs;
    toc_pack_message(&msg.base, out);
}

static int64_t
bounded_delay(uint64_t delay_ms)
{
    if (delay_ms > (uint64_t)TOC_RETRY_DELAY_MS_MAX)
        return TOC_RETRY_DELAY_MS_MAX;
    return (int64_t)delay_ms;
}

static bool
read_retry(const Toc__V1__StoredRetry *msg, struct toc_retry *out)
{
    if (msg == NULL) {
        *out = toc_retry_default;
        return true;
    }
    if (msg->max_retries > UINT16_MAX || msg->n_step_ms > TOC_LADDER_MAX ||
        msg->jitter_percent > 100)
        return false;
    *out = (struct toc_retry){
        .max_retries = (uint16_t)msg->max_retries,
        .n_steps = (uint16_t)msg->n_step_ms,
        .first_ms = bounded_delay(msg->first_ms),
        .cap_ms = bounded_delay(msg->cap_ms),
        .factor_permille = msg->factor_permille,
        .jitter_percent = (uint16_t)msg->jitter_percent,
    };
    for (size_t i = 0; i < msg->n_step_ms; i++)
        out->step_ms[i] = bounded_delay(msg->step_ms[i]);
    return true;
}

static bool
read_headers(const Toc__V1__TaskSpec *msg, struct toc_spec *out)
{
    if (msg->n_headers > TOC_HEADERS_MAX)
        return false;
    for (size_t i = 0; i < msg->n_headers; i++) {
        out->headers[i].name = toc_str_of(msg->headers[i]->name);
        out->headers[i].value = toc_str_of(msg->headers[i]->value);
    }
    out->n_headers = (uint16_t)msg->n_headers;
    return true;
}

enum toc_status
toc_spec_decode(struct toc_str bytes, struct toc_arena *arena,
                struct toc_spec *ret_spec, struct toc_error *reterr)
{
    ProtobufCAllocator allocator = toc_unpack_allocator(arena);
    struct toc_spec spec = {.call_timeout_ms = TOC_CALL_TIMEOUT_MS_DEFAULT};
    Toc__V1__TaskSpec *msg = toc__v1__task_spec__unpack(
        &allocator, bytes.len, (const uint8_t *)bytes.ptr);

    if (msg == NULL || !read_retry(msg->retry, &spec.retry) ||
        !read_headers(msg, &spec) ||
        msg->call_timeout_ms > TOC_CALL_TIMEOUT_MS_MAX)
        return toc_error_set(reterr, TOC_DATA_LOSS, "spec", 0,
                             "not a task spec (%zu bytes)", bytes.len);
    spec.target = toc_str_of(msg->target);
    if (msg->call_timeout_ms > 0)
        spec.call_timeout_ms = msg->call_timeout_ms;
    spec.batch_max = msg->batch_max;
    spec.at_most_once = msg->at_most_once != 0;
    spec.content_type = toc_str_of(msg->content_type);
    spec.traceparent = toc_str_of(msg->traceparent);
    *ret_spec = spec;
    return TOC_OK;
}
