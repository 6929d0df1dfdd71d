/*
 * The rules of every request, and what a request that keeps them means.
 *
 * Ownership: results borrow from the request and the failure's arena. Threads:
 * any. Pure: time is given.
 */
#ifndef TOC_SCHEDULER_ACCESS_VALIDATE_H
#define TOC_SCHEDULER_ACCESS_VALIDATE_H

#include "common/model/spec.h"
#include "common/model/task.h"
#include "common/store/store.h"
#include "scheduler/access/check.h"
#include "toc/v1/timeout.pb-c.h"

struct sched_rules {
    size_t payload_max;
    int64_t now_ms;
};

/* A SubmitRequest, understood. */
struct sched_submit_ask {
    struct toc_str biz_type, biz_id, name; /* biz_id empty: make one up */
    int64_t due_ms;
    enum toc_priority priority;
    enum toc_on_conflict on_conflict;
    bool validate_only;
    struct toc_spec spec;
    struct toc_str payload;
};

/* False: check's failure says why. */
bool sched_validate_submit(struct sched_check *check,
                           const Toc__V1__SubmitRequest *request,
                           const struct sched_rules *rules,
                           struct sched_submit_ask *ret);

/* Any request about stored tasks, understood. */
struct sched_command_ask {
    struct toc_find find; /* unless biz */
    bool biz;             /* everything of find's biz_type and biz_id */
    uint32_t etag;
    int64_t due_ms; /* of Reschedule */
    struct toc_str reason;
    bool validate_only;
};

bool sched_validate_get(struct sched_check *check,
                        const Toc__V1__GetRequest *request,
                        struct sched_command_ask *ret);
bool sched_validate_list(struct sched_check *check,
                         const Toc__V1__ListRequest *request,
                         struct sched_command_ask *ret);
bool sched_validate_cancel(struct sched_check *check,
                           const Toc__V1__CancelRequest *request,
                           struct sched_command_ask *ret);
bool sched_validate_reschedule(struct sched_check *check,
                               const Toc__V1__RescheduleRequest *request,
                               const struct sched_rules *rules,
                               struct sched_command_ask *ret);
bool sched_validate_pause(struct sched_check *check,
                          const Toc__V1__PauseRequest *request,
                          struct sched_command_ask *ret);
bool sched_validate_resume(struct sched_check *check,
                           const Toc__V1__ResumeRequest *request,
                           struct sched_command_ask *ret);
bool sched_validate_run_now(struct sched_check *check,
                            const Toc__V1__RunNowRequest *request,
                            struct sched_command_ask *ret);

/* 1 to TOC_BATCH_MAX items? */
bool sched_validate_batch(struct sched_check *check, size_t n);

/* Shared by the two above. */
bool sched_validate_due(struct sched_check *check, const char *field,
                        const Google__Protobuf__Timestamp *time,
                        int64_t *ret_due_ms);
bool sched_validate_delay(struct sched_check *check, const char *field,
                          const Google__Protobuf__Duration *delay,
                          int64_t now_ms, int64_t *ret_due_ms);
/* A duration of [min, max] ms. */
bool sched_validate_span(struct sched_check *check, const char *field,
                         const Google__Protobuf__Duration *duration,
                         int64_t min_ms, int64_t max_ms, int64_t *ret_ms);

#endif
