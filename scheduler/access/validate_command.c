#include "scheduler/access/validate.h"

#include "common/api/api.h"
#include "common/model/limits.h"

#include <string.h>

static void
read_biz(struct sched_check *check, const char *type, const char *id,
         struct toc_find *find)
{
    find->biz_type = toc_str_of(type);
    find->biz_id = toc_str_of(id);
    (void)sched_check_length(check, "biz_type", find->biz_type, 1,
                             TOC_BIZ_TYPE_MAX);
    (void)sched_check_length(check, "biz_id", find->biz_id, 1, TOC_BIZ_ID_MAX);
}

static void
read_key(struct sched_check *check, const Toc__V1__TaskKey *key,
         struct toc_find *find)
{
    size_t mark = sched_check_push(check, "key.");

    read_biz(check, key->biz_type, key->biz_id, find);
    find->name = toc_str_of(key->name);
    (void)sched_check_length(check, "name", find->name, 0, TOC_NAME_MAX);
    sched_check_pop(check, mark);
}

static void
read_id(struct sched_check *check, const char *text, struct toc_find *find)
{
    find->by_id = true;
    if (!toc_task_id_parse(toc_str_of(text), &find->id))
        sched_check_bad_text(check, "task_id", toc_str_of(text),
                             "must be 26 characters of Crockford's base32");
}

static void
read_ref(struct sched_check *check, const Toc__V1__BizRef *biz,
         struct sched_command_ask *ret)
{
    size_t mark = sched_check_push(check, "biz.");

    ret->biz = true;
    read_biz(check, biz->biz_type, biz->biz_id, &ret->find);
    sched_check_pop(check, mark);
}

/* What all commands have. id or key NULL: not given. */
struct common {
    const char *id;
    const Toc__V1__TaskKey *key;
    const char *etag, *reason, *request_id;
    bool validate_only;
};

static bool
read_common(struct sched_check *check, const struct common *common,
            struct sched_command_ask *ret)
{
    struct toc_str request_id = toc_str_of(common->request_id);

    if (request_id.len > 0) {
        sched_check_unserved(check, "request_id");
        return false;
    }
    if (common->id != NULL)
        read_id(check, common->id, &ret->find);
    else if (common->key != NULL)
        read_key(check, common->key, &ret->find);
    else if (!ret->biz)
        sched_check_missing(check, "which", "task_id or key must be set");
    if (!toc_api_etag_parse(common->etag, &ret->etag))
        sched_check_bad_text(check, "etag", toc_str_of(common->etag),
                             "is no etag of a task");
    ret->reason = toc_str_of(common->reason);
    (void)sched_check_length(check, "reason", ret->reason, 0, TOC_REASON_MAX);
    ret->validate_only = common->validate_only;
    return sched_check_ok(check);
}

/* The generated types differ in name only. */
#define COMMON_OF(TYPE, request)                                        \
    {                                                                   \
        .id = (request)->which_case == TOC__V1__##TYPE##__WHICH_TASK_ID \
                  ? (request)->task_id                                  \
                  : NULL,                                               \
        .key = (request)->which_case == TOC__V1__##TYPE##__WHICH_KEY    \
                   ? (request)->key                                     \
                   : NULL,                                              \
        .etag = (request)->etag, .reason = (request)->reason,           \
        .request_id = (request)->request_id,                            \
        .validate_only = (request)->validate_only != 0,                 \
    }

bool
sched_validate_get(struct sched_check *check,
                   const Toc__V1__GetRequest *request,
                   struct sched_command_ask *ret)
{
    memset(ret, 0, sizeof *ret);
    if (request->which_case == TOC__V1__GET_REQUEST__WHICH_TASK_ID)
        read_id(check, request->task_id, &ret->find);
    else if (request->which_case == TOC__V1__GET_REQUEST__WHICH_KEY)
        read_key(check, request->key, &ret->find);
    else
        sched_check_missing(check, "which", "task_id or key must be set");
    return sched_check_ok(check);
}

bool
sched_validate_list(struct sched_check *check,
                    const Toc__V1__ListRequest *request,
                    struct sched_command_ask *ret)
{
    memset(ret, 0, sizeof *ret);
    if (request->biz == NULL)
        sched_check_missing(check, "biz", "must be set");
    else
        read_ref(check, request->biz, ret);
    return sched_check_ok(check);
}

bool
sched_validate_cancel(struct sched_check *check,
                      const Toc__V1__CancelRequest *request,
                      struct sched_command_ask *ret)
{
    const struct common common = COMMON_OF(CANCEL_REQUEST, request);

    memset(ret, 0, sizeof *ret);
    if (request->which_case == TOC__V1__CANCEL_REQUEST__WHICH_BIZ)
        read_ref(check, request->biz, ret);
    (void)read_common(check, &common, ret);
    if (ret->biz && ret->etag != 0)
        sched_check_bad_text(check, "etag", toc_str_of(request->etag),
                             "must not be set together with biz");
    return sched_check_ok(check);
}

bool
sched_validate_reschedule(struct sched_check *check,
                          const Toc__V1__RescheduleRequest *request,
                          const struct sched_rules *rules,
                          struct sched_command_ask *ret)
{
    const struct common common = COMMON_OF(RESCHEDULE_REQUEST, request);

    memset(ret, 0, sizeof *ret);
    (void)read_common(check, &common, ret);
    if (request->when_case == TOC__V1__RESCHEDULE_REQUEST__WHEN_DUE_TIME)
        (void)sched_validate_due(check, "due_time", request->due_time,
                                 &ret->due_ms);
    else if (request->when_case == TOC__V1__RESCHEDULE_REQUEST__WHEN_DELAY)
        (void)sched_validate_delay(check, "delay", request->delay,
                                   rules->now_ms, &ret->due_ms);
    else
        sched_check_missing(check, "when",
                            "one of due_time, delay must be set");
    return sched_check_ok(check);
}

bool
sched_validate_pause(struct sched_check *check,
                     const Toc__V1__PauseRequest *request,
                     struct sched_command_ask *ret)
{
    const struct common common = COMMON_OF(PAUSE_REQUEST, request);

    memset(ret, 0, sizeof *ret);
    return read_common(check, &common, ret);
}

bool
sched_validate_resume(struct sched_check *check,
                      const Toc__V1__ResumeRequest *request,
                      struct sched_command_ask *ret)
{
    const struct common common = COMMON_OF(RESUME_REQUEST, request);

    memset(ret, 0, sizeof *ret);
    return read_common(check, &common, ret);
}

bool
sched_validate_run_now(struct sched_check *check,
                       const Toc__V1__RunNowRequest *request,
                       struct sched_command_ask *ret)
{
    const struct common common = COMMON_OF(RUN_NOW_REQUEST, request);

    memset(ret, 0, sizeof *ret);
    return read_common(check, &common, ret);
}

bool
sched_validate_batch(struct sched_check *check, size_t n)
{
    if (n == 0)
        sched_check_missing(check, "items", "must not be empty");
    else if (n > TOC_BATCH_MAX)
        sched_check_bad_number(check, "items", (int64_t)n,
                               "items, must be at most 1000");
    return sched_check_ok(check);
}
