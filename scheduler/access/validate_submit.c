#include "scheduler/access/validate.h"

#include "common/api/api.h"
#include "common/base/cleanup.h"
#include "common/model/limits.h"
#include "scheduler/access/url.h"

#include <math.h>
#include <string.h>

#define CONTENT_TYPE_MAX 128

static struct toc_str
str_of(const ProtobufCBinaryData *data)
{
    return (struct toc_str){(const char *)data->data, data->len};
}

static bool
is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* ---- what is not served yet --------------------------------------------- */

static void
refuse_unserved(struct sched_check *check,
                const Toc__V1__SubmitRequest *request)
{
    const struct {
        const char *field;
        bool set;
    } unserved[] = {
        {"rule", request->when_case == TOC__V1__SUBMIT_REQUEST__WHEN_RULE},
        {"cron", request->when_case == TOC__V1__SUBMIT_REQUEST__WHEN_CRON},
        {"period", request->when_case == TOC__V1__SUBMIT_REQUEST__WHEN_PERIOD},
        {"stages", request->when_case == TOC__V1__SUBMIT_REQUEST__WHEN_STAGES},
        {"attributes", request->n_attributes > 0},
        {"scene", is_set(request->scene)},
        {"spread", request->spread != NULL},
        {"max_lateness", request->max_lateness != NULL},
        {"request_id", is_set(request->request_id)},
        {"fire_if", is_set(request->fire_if)},
        {"result_target", is_set(request->result_target)},
    };

    for (size_t i = 0; i < sizeof unserved / sizeof unserved[0]; i++)
        if (unserved[i].set)
            sched_check_unserved(check, unserved[i].field);
}

/* ---- key and time
 * ------------------------------------------------------------ */

static void
read_key(struct sched_check *check, const Toc__V1__TaskKey *key,
         struct sched_submit_ask *ret)
{
    size_t mark;

    if (key == NULL) {
        sched_check_missing(check, "key", "must be set");
        return;
    }
    ret->biz_type = toc_str_of(key->biz_type);
    ret->biz_id = toc_str_of(key->biz_id);
    ret->name = toc_str_of(key->name);
    mark = sched_check_push(check, "key.");
    (void)sched_check_length(check, "biz_type", ret->biz_type, 1,
                             TOC_BIZ_TYPE_MAX);
    (void)sched_check_length(check, "biz_id", ret->biz_id, 0, TOC_BIZ_ID_MAX);
    (void)sched_check_length(check, "name", ret->name, 0, TOC_NAME_MAX);
    sched_check_pop(check, mark);
}

static void
read_when(struct sched_check *check, const Toc__V1__SubmitRequest *request,
          int64_t now_ms, struct sched_submit_ask *ret)
{
    if (request->when_case == TOC__V1__SUBMIT_REQUEST__WHEN_DUE_TIME)
        (void)sched_validate_due(check, "due_time", request->due_time,
                                 &ret->due_ms);
    else if (request->when_case == TOC__V1__SUBMIT_REQUEST__WHEN_DELAY)
        (void)sched_validate_delay(check, "delay", request->delay, now_ms,
                                   &ret->due_ms);
    else
        sched_check_missing(check, "when",
                            "one of due_time, delay must be set");
}

/* ---- target, retry policy, headers
 * --------------------------------------------- */

static void
read_target(struct sched_check *check, const Toc__V1__Target *target,
            struct toc_spec *spec)
{
    const char *rule;
    size_t mark;
    bool method = false;

    if (target == NULL) {
        sched_check_missing(check, "target", "must be set");
        return;
    }
    mark = sched_check_push(check, "target.");
    spec->target = toc_str_of(target->url);
    if (sched_check_length(check, "url", spec->target, 1, TOC_TARGET_MAX)) {
        rule = sched_url_check(spec->target, &method);
        if (rule != NULL)
            sched_check_bad_text(check, "url", spec->target, rule);
    }
    if (target->batch_max > 256)
        sched_check_bad_number(check, "batch_max", target->batch_max,
                               "must be 0 to 256");
    else if (target->batch_max > 1 && method)
        sched_check_bad_number(check, "batch_max", target->batch_max,
                               "goes only with a url without a method: "
                               "OnTimeoutBatch of toc.v1.TimeoutHandler");
    spec->batch_max = target->batch_max;
    sched_check_pop(check, mark);
}

static void
read_ladder(struct sched_check *check, const Toc__V1__RetryPolicy *policy,
            struct toc_retry *retry)
{
    if (policy->n_ladder > TOC_LADDER_MAX) {
        sched_check_bad_number(check, "ladder", (int64_t)policy->n_ladder,
                               "steps, must be at most 32");
        return;
    }
    for (size_t i = 0; i < policy->n_ladder; i++) {
        char field[24];
        toc_format(field, sizeof field, "ladder[%zu]", i);
        (void)sched_validate_span(check, field, policy->ladder[i], 0,
                                  TOC_RETRY_DELAY_MS_MAX, &retry->step_ms[i]);
    }
    retry->n_steps = (uint16_t)policy->n_ladder;
}

static void
read_factor(struct sched_check *check, double factor, struct toc_retry *retry)
{
    if (factor == 0)
        factor = 2;
    if (isfinite(factor) && factor >= 1 && factor <= 100) {
        retry->factor_permille = (uint32_t)(factor * 1000 + 0.5);
        return;
    }
    sched_check_missing(check, "factor",
                        toc_arena_printf(check->failure->arena,
                                         "%g must be a number from 1 to 100",
                                         factor));
}

static void
read_exponential(struct sched_check *check,
                 const Toc__V1__ExponentialBackoff *backoff,
                 struct toc_retry *retry)
{
    size_t mark = sched_check_push(check, "exponential.");

    retry->n_steps = 0;
    retry->first_ms = 1;
    if (backoff->first == NULL)
        sched_check_missing(check, "first", "must be set");
    else
        (void)sched_validate_span(check, "first", backoff->first, 1,
                                  TOC_RETRY_DELAY_MS_MAX, &retry->first_ms);
    if (backoff->cap != NULL)
        (void)sched_validate_span(check, "cap", backoff->cap, retry->first_ms,
                                  TOC_RETRY_DELAY_MS_MAX, &retry->cap_ms);
    read_factor(check, backoff->factor, retry);
    sched_check_pop(check, mark);
}

static void
read_policy(struct sched_check *check, const Toc__V1__RetryPolicy *policy,
            struct toc_retry *retry)
{
    size_t mark;

    *retry = toc_retry_default;
    if (policy == NULL)
        return;
    mark = sched_check_push(check, "retry_policy.");
    if (policy->max_retries != NULL) {
        if (policy->max_retries->value > TOC_RETRIES_MAX)
            sched_check_bad_number(check, "max_retries",
                                   policy->max_retries->value,
                                   "must be 0 to 1000");
        else
            retry->max_retries = (uint16_t)policy->max_retries->value;
    }
    if (policy->n_ladder > 0 && policy->exponential != NULL)
        sched_check_missing(check, "exponential",
                            "must not be set together with ladder");
    else if (policy->n_ladder > 0)
        read_ladder(check, policy, retry);
    else if (policy->exponential != NULL)
        read_exponential(check, policy->exponential, retry);
    if (policy->jitter_percent > 100)
        sched_check_bad_number(check, "jitter_percent", policy->jitter_percent,
                               "must be 0 to 100");
    else
        retry->jitter_percent = (uint16_t)policy->jitter_percent;
    sched_check_pop(check, mark);
}

static bool
is_header_name(struct toc_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
              c == '.' || c == '-'))
            return false;
    }
    return name.len > 0;
}

static bool
is_reserved(struct toc_str name)
{
    static const char *const taken[] = {
        "content-type",      "te",      "host",       "user-agent",
        "connection",        "upgrade", "keep-alive", "proxy-connection",
        "transfer-encoding", "trailer", "traceparent"};

    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (toc_str_eq(name, toc_str_of(taken[i])))
            return true;
    return toc_str_starts(name, TOC_STR("grpc-")) ||
           toc_str_starts(name, TOC_STR("toc-"));
}

static bool
is_binary(struct toc_str name)
{
    return name.len >= 4 && memcmp(name.ptr + name.len - 4, "-bin", 4) == 0;
}

static bool
is_printable(struct toc_str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] < 0x20 || value.ptr[i] > 0x7e)
            return false;
    return true;
}

static void
read_header(struct sched_check *check, const Toc__V1__Header *header,
            struct toc_spec *spec)
{
    struct toc_str name = toc_str_of(header->name);
    struct toc_str value = toc_str_of(header->value);

    if (!sched_check_length(check, "name", name, 1, TOC_HEADER_BYTES_MAX))
        return;
    if (!is_header_name(name))
        sched_check_bad_text(check, "name", name,
                             "must be of a-z, 0-9, '_', '.' and '-'");
    else if (is_reserved(name))
        sched_check_bad_text(check, "name", name, "is reserved");
    else if (is_binary(name))
        sched_check_bad_text(check, "name", name, "must not end in \"-bin\"");
    for (size_t i = 0; i < spec->n_headers; i++)
        if (toc_str_eq(spec->headers[i].name, name))
            sched_check_bad_text(check, "name", name, "is there twice");
    if (sched_check_length(check, "value", value, 0, TOC_HEADER_BYTES_MAX) &&
        !is_printable(value))
        sched_check_bad_text(check, "value", value, "must be printable ASCII");
    spec->headers[spec->n_headers++] = (struct toc_header){name, value};
}

static void
read_headers(struct sched_check *check, const Toc__V1__SubmitRequest *request,
             struct toc_spec *spec)
{
    if (request->n_headers > TOC_HEADERS_MAX) {
        sched_check_bad_number(check, "headers", (int64_t)request->n_headers,
                               "headers, must be at most 16");
        return;
    }
    for (size_t i = 0; i < request->n_headers; i++) {
        size_t mark = sched_check_push(check, "headers[%zu].", i);
        read_header(check, request->headers[i], spec);
        sched_check_pop(check, mark);
    }
}

/* ---- words and the rest
 * ------------------------------------------------------------ */

static void
read_words(struct sched_check *check, const Toc__V1__SubmitRequest *request,
           struct sched_submit_ask *ret)
{
    if (!toc_api_priority_of(request->priority, &ret->priority))
        sched_check_bad_number(check, "priority", request->priority,
                               "is no priority");
    ret->spec.at_most_once =
        request->delivery_guarantee ==
        TOC__V1__DELIVERY_GUARANTEE__DELIVERY_GUARANTEE_AT_MOST_ONCE;
    ret->on_conflict = TOC_ON_CONFLICT_REJECT;
    if (request->on_conflict == TOC__V1__ON_CONFLICT__ON_CONFLICT_KEEP)
        ret->on_conflict = TOC_ON_CONFLICT_KEEP;
    if (request->on_conflict == TOC__V1__ON_CONFLICT__ON_CONFLICT_REPLACE)
        ret->on_conflict = TOC_ON_CONFLICT_REPLACE;
    ret->validate_only = request->validate_only != 0;
}

static void
read_call(struct sched_check *check, const Toc__V1__SubmitRequest *request,
          size_t payload_max, struct sched_submit_ask *ret)
{
    if (request->call_timeout != NULL)
        (void)sched_validate_span(check, "call_timeout", request->call_timeout,
                                  TOC_CALL_TIMEOUT_MS_MIN,
                                  TOC_CALL_TIMEOUT_MS_MAX,
                                  &ret->spec.call_timeout_ms);
    ret->payload = str_of(&request->payload);
    if (ret->payload.len > payload_max)
        sched_check_missing(check, "payload",
                            toc_arena_printf(check->failure->arena,
                                             "%zu bytes, must be at most %zu",
                                             ret->payload.len, payload_max));
    ret->spec.content_type = toc_str_of(request->content_type);
    if (sched_check_length(check, "content_type", ret->spec.content_type, 0,
                           CONTENT_TYPE_MAX) &&
        !is_printable(ret->spec.content_type))
        sched_check_bad_text(check, "content_type", ret->spec.content_type,
                             "must be printable ASCII");
}

/* Each part keeps its own bound, yet together they may not fit. */
static void
check_spec_size(struct sched_check *check, const struct toc_spec *spec)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};

    toc_spec_encode(spec, &buf);
    if (buf.len > TOC_SPEC_MAX)
        sched_check_missing(
            check, "headers",
            toc_arena_printf(check->failure->arena,
                             "target, retry policy, content type and headers "
                             "are %zu bytes together, must be at most %d",
                             buf.len, TOC_SPEC_MAX));
}

bool
sched_validate_submit(struct sched_check *check,
                      const Toc__V1__SubmitRequest *request,
                      const struct sched_rules *rules,
                      struct sched_submit_ask *ret)
{
    memset(ret, 0, sizeof *ret);
    refuse_unserved(check, request);
    if (check->failure->status == TOC_UNIMPLEMENTED)
        return false;
    read_key(check, request->key, ret);
    read_when(check, request, rules->now_ms, ret);
    read_target(check, request->target, &ret->spec);
    read_policy(check, request->retry_policy, &ret->spec.retry);
    read_headers(check, request, &ret->spec);
    read_words(check, request, ret);
    read_call(check, request, rules->payload_max, ret);
    if (sched_check_ok(check))
        check_spec_size(check, &ret->spec);
    return sched_check_ok(check);
}
