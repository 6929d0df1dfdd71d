#include "admin/ctl/submit.h"

#include "admin/ctl/ask.h"
#include "admin/ctl/command.h"
#include "common/api/api.h"
#include "common/base/cleanup.h"
#include "common/model/limits.h"

#include <stdlib.h>
#include <string.h>

#define HEADERS_READ_MAX 256 /* the server says what it takes */

static char *
kept_flag(struct ctl *ctl, const char *flag)
{
    return toc_arena_text(&ctl->keep, toc_str_of(ctl_flag(ctl, flag)));
}

static enum ctl_exit
read_key(struct ctl *ctl, Toc__V1__SubmitRequest *request)
{
    bool flags = ctl_has(ctl, "biz-type") || ctl_has(ctl, "biz-id") ||
                 ctl_has(ctl, "name");
    const char *why = "";
    struct ctl_ref ref;
    Toc__V1__TaskKey *key = toc_arena_alloc(&ctl->keep, sizeof *key);

    toc__v1__task_key__init(key);
    request->key = key;
    if (ctl->n_args == 0) {
        if (!ctl_has(ctl, "biz-type"))
            return ctl_fail(ctl, CTL_USAGE, "tocctl help submit",
                            "no key: give KEY or --biz-type");
        key->biz_type = kept_flag(ctl, "biz-type");
        key->biz_id = kept_flag(ctl, "biz-id");
        key->name = kept_flag(ctl, "name");
        return CTL_OK;
    }
    if (flags)
        return ctl_fail(ctl, CTL_USAGE, NULL,
                        "KEY and --biz-type, --biz-id, --name exclude each "
                        "other");
    if (!ctl_key_parse(&ctl->keep, ctl->args[0], &ref, &why))
        return ctl_fail(ctl, CTL_USAGE, NULL, "%s: %s",
                        ctl_safe(&ctl->arena, toc_str_of(ctl->args[0])), why);
    key->biz_type = ref.biz_type;
    key->biz_id = ref.biz_id;
    key->name = ref.name;
    return CTL_OK;
}

static enum ctl_exit
read_when(struct ctl *ctl, Toc__V1__SubmitRequest *request)
{
    struct ctl_when when;
    enum ctl_exit end = ctl_ask_when(ctl, true, &when);

    if (end != CTL_OK)
        return end;
    if (when.at != NULL) {
        request->when_case = TOC__V1__SUBMIT_REQUEST__WHEN_DUE_TIME;
        request->due_time = when.at;
    } else {
        request->when_case = TOC__V1__SUBMIT_REQUEST__WHEN_DELAY;
        request->delay = when.in;
    }
    return CTL_OK;
}

static enum ctl_exit
read_payload(struct ctl *ctl, Toc__V1__SubmitRequest *request)
{
    const char *file = ctl_flag(ctl, "payload-file");
    struct toc_str bytes = toc_str_of(ctl_flag(ctl, "payload"));

    if (file != NULL && ctl_has(ctl, "payload"))
        return ctl_fail(ctl, CTL_USAGE, NULL,
                        "--payload and --payload-file exclude each other");
    if (file != NULL) {
        enum ctl_exit end = ctl_ask_file(ctl, file, TOC_PAYLOAD_MAX, &bytes);
        if (end != CTL_OK)
            return end;
    }
    request->payload.data = (uint8_t *)(uintptr_t)bytes.ptr;
    request->payload.len = bytes.len;
    request->content_type = kept_flag(ctl, "content-type");
    return CTL_OK;
}

static enum ctl_exit
read_target(struct ctl *ctl, Toc__V1__SubmitRequest *request)
{
    Toc__V1__Target *target = toc_arena_alloc(&ctl->keep, sizeof *target);
    int64_t batch_max = 0;
    enum ctl_exit end =
        ctl_ask_number(ctl, "batch-max", 0, UINT32_MAX, &batch_max);

    if (end != CTL_OK)
        return end;
    if (!ctl_has(ctl, "target"))
        return ctl_fail(ctl, CTL_USAGE, "--target grpc://host:port",
                        "--target is missing");
    toc__v1__target__init(target);
    target->url = kept_flag(ctl, "target");
    target->batch_max = (uint32_t)batch_max;
    request->target = target;
    return CTL_OK;
}

static enum ctl_exit
read_words(struct ctl *ctl, Toc__V1__SubmitRequest *request)
{
    const char *priority = ctl_flag(ctl, "priority");
    const char *delivery = ctl_flag(ctl, "delivery");
    const char *conflict = ctl_flag(ctl, "on-conflict");
    int number = 0;
    enum ctl_exit end = CTL_OK;

    if (priority != NULL) {
        end =
            ctl_ask_word(ctl, "priority", toc_str_of(priority),
                         &toc__v1__priority__descriptor, "PRIORITY_", &number);
        request->priority = (Toc__V1__Priority)number;
    }
    if (end == CTL_OK && delivery != NULL) {
        end = ctl_ask_word(ctl, "delivery", toc_str_of(delivery),
                           &toc__v1__delivery_guarantee__descriptor,
                           "DELIVERY_GUARANTEE_", &number);
        request->delivery_guarantee = (Toc__V1__DeliveryGuarantee)number;
    }
    if (end == CTL_OK && conflict != NULL) {
        end = ctl_ask_word(ctl, "on-conflict", toc_str_of(conflict),
                           &toc__v1__on_conflict__descriptor, "ON_CONFLICT_",
                           &number);
        request->on_conflict = (Toc__V1__OnConflict)number;
    }
    return end;
}

/* ---- retries ---- */

static enum ctl_exit
bad_list(struct ctl *ctl, const char *flag, const char *rule)
{
    return ctl_fail(ctl, CTL_USAGE, NULL, "--%s %s: %s", flag,
                    ctl_safe(&ctl->arena, toc_str_of(ctl_flag(ctl, flag))),
                    rule);
}

static enum ctl_exit
read_ladder(struct ctl *ctl, Toc__V1__RetryPolicy *policy)
{
    const char *text = ctl_flag(ctl, "ladder");
    struct toc_str rest = toc_str_of(text), part;
    int64_t ms;

    if (text == NULL)
        return CTL_OK;
    policy->ladder =
        toc_arena_calloc(&ctl->keep, strlen(text) + 1, sizeof *policy->ladder);
    while (toc_str_next(&rest, ',', &part)) {
        if (!ctl_duration_parse(part, &ms))
            return bad_list(ctl, "ladder", "must be durations as in 1s,5s,1m");
        policy->ladder[policy->n_ladder++] = toc_api_duration(&ctl->keep, ms);
    }
    return CTL_OK;
}

static bool
parse_factor(struct toc_str text, double *ret_factor)
{
    char copy[32], *end;

    if (text.len == 0 || text.len >= sizeof copy)
        return false;
    toc_copy(copy, sizeof copy, text);
    if (strspn(copy, "0123456789.") != text.len)
        return false;
    *ret_factor = strtod(copy, &end);
    return *end == '\0';
}

static enum ctl_exit
read_backoff(struct ctl *ctl, Toc__V1__RetryPolicy *policy)
{
    const char *text = ctl_flag(ctl, "backoff");
    struct toc_str rest = toc_str_of(text), first, cap, factor;
    Toc__V1__ExponentialBackoff *grow;
    int64_t first_ms, cap_ms;

    if (text == NULL)
        return CTL_OK;
    grow = toc_arena_alloc(&ctl->keep, sizeof *grow);
    toc__v1__exponential_backoff__init(grow);
    if (!toc_str_next(&rest, ',', &first) || !toc_str_next(&rest, ',', &cap) ||
        !ctl_duration_parse(first, &first_ms) ||
        !ctl_duration_parse(cap, &cap_ms) ||
        (toc_str_next(&rest, ',', &factor) &&
         !parse_factor(factor, &grow->factor)) ||
        rest.ptr != NULL)
        return bad_list(ctl, "backoff",
                        "must be FIRST,CAP[,FACTOR] as in 1s,10m,2");
    grow->first = toc_api_duration(&ctl->keep, first_ms);
    grow->cap = toc_api_duration(&ctl->keep, cap_ms);
    policy->exponential = grow;
    return CTL_OK;
}

static enum ctl_exit
read_retries(struct ctl *ctl, Toc__V1__SubmitRequest *request)
{
    Toc__V1__RetryPolicy *policy = toc_arena_alloc(&ctl->keep, sizeof *policy);
    Google__Protobuf__UInt32Value *max = NULL;
    int64_t retries = 0, jitter = 0;
    enum ctl_exit end;

    if (!ctl_has(ctl, "retries") && !ctl_has(ctl, "ladder") &&
        !ctl_has(ctl, "backoff") && !ctl_has(ctl, "jitter"))
        return CTL_OK;
    toc__v1__retry_policy__init(policy);
    end = ctl_ask_number(ctl, "retries", 0, UINT32_MAX, &retries);
    if (end == CTL_OK)
        end = ctl_ask_number(ctl, "jitter", 0, UINT32_MAX, &jitter);
    if (end == CTL_OK)
        end = read_ladder(ctl, policy);
    if (end == CTL_OK)
        end = read_backoff(ctl, policy);
    if (ctl_has(ctl, "retries")) {
        max = toc_arena_alloc(&ctl->keep, sizeof *max);
        google__protobuf__uint32_value__init(max);
        max->value = (uint32_t)retries;
    }
    policy->max_retries = max;
    policy->jitter_percent = (uint32_t)jitter;
    request->retry_policy = policy;
    return end;
}

static enum ctl_exit
read_headers(struct ctl *ctl, Toc__V1__SubmitRequest *request)
{
    request->headers = toc_arena_calloc(&ctl->keep, HEADERS_READ_MAX,
                                        sizeof *request->headers);
    for (size_t i = 0; i < ctl->n_values; i++) {
        const struct ctl_value *value = &ctl->values[i];
        struct toc_str rest = toc_str_of(value->text), name;
        Toc__V1__Header *header;
        if (strcmp(value->flag->name, "header") != 0)
            continue;
        if (!toc_str_next(&rest, '=', &name) || rest.ptr == NULL ||
            request->n_headers == HEADERS_READ_MAX)
            return ctl_fail(ctl, CTL_USAGE, NULL,
                            "--header %s: must be NAME=VALUE",
                            ctl_safe(&ctl->arena, toc_str_of(value->text)));
        header = toc_arena_alloc(&ctl->keep, sizeof *header);
        toc__v1__header__init(header);
        header->name = toc_arena_text(&ctl->keep, name);
        header->value = toc_arena_text(&ctl->keep, rest);
        request->headers[request->n_headers++] = header;
    }
    return CTL_OK;
}

enum ctl_exit
ctl_submit_read(struct ctl *ctl, Toc__V1__SubmitRequest **ret_request)
{
    static enum ctl_exit (*const steps[])(struct ctl *,
                                          Toc__V1__SubmitRequest *) = {
        read_key,   read_when,    read_payload, read_target,
        read_words, read_retries, read_headers,
    };
    Toc__V1__SubmitRequest *request =
        toc_arena_alloc(&ctl->keep, sizeof *request);
    enum ctl_exit end = CTL_OK;

    toc__v1__submit_request__init(request);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        end = steps[i](ctl, request);
        if (end != CTL_OK)
            return end;
    }
    end = ctl_ask_duration(ctl, "timeout-call", &request->call_timeout);
    request->validate_only = ctl_has(ctl, "validate-only");
    *ret_request = request;
    return end;
}

enum ctl_exit
ctl_submit_only_file(struct ctl *ctl)
{
    static const char *const beside[] = {"file",  "validate-only", "scheduler",
                                         "admin", "timeout",       "output"};
    size_t n = sizeof beside / sizeof beside[0];

    if (ctl->n_args > 0)
        return ctl_fail(ctl, CTL_USAGE, NULL,
                        "KEY and --file exclude each "
                        "other");
    for (size_t i = 0; i < ctl->n_values; i++) {
        const char *name = ctl->values[i].flag->name;
        size_t k = 0;
        while (k < n && strcmp(beside[k], name) != 0)
            k++;
        if (k == n)
            return ctl_fail(ctl, CTL_USAGE, NULL,
                            "--%s and --file exclude each other", name);
    }
    return CTL_OK;
}
