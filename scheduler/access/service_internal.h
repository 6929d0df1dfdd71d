/*
 * Between the files of the service. Everything of a call lives in its arena and
 * is touched by one thread at a time.
 */
#ifndef TOC_SCHEDULER_ACCESS_SERVICE_INTERNAL_H
#define TOC_SCHEDULER_ACCESS_SERVICE_INTERNAL_H

#include "scheduler/access/check.h"
#include "scheduler/access/service.h"
#include "scheduler/access/validate.h"
#include "toc/v1/timeout.pb-c.h"

#define SCHED_RETRY_AFTER_MS 500

/* In the order of the service's descriptor. */
enum sched_method {
    SCHED_SUBMIT,
    SCHED_BATCH_SUBMIT,
    SCHED_GET,
    SCHED_LIST,
    SCHED_CANCEL,
    SCHED_BATCH_CANCEL,
    SCHED_RESCHEDULE,
    SCHED_PAUSE,
    SCHED_RESUME,
    SCHED_RUN_NOW,
    SCHED_UPDATE_ATTRIBUTES,
};

/* submit.c */
void sched_submit_handle(struct sched_access *access,
                         const Toc__V1__SubmitRequest *request,
                         struct toc_rpc_call *call);
void sched_batch_submit_handle(struct sched_access *access,
                               const Toc__V1__BatchSubmitRequest *request,
                               struct toc_rpc_call *call);

/* command.c */
void sched_command_handle(struct sched_access *access, enum sched_method method,
                          const ProtobufCMessage *request,
                          struct toc_rpc_call *call);

/* answer.c: tasks as the API shows them. learn: may ask the store for names of
 * nodes. */
Toc__V1__Task *sched_answer_task(struct sched_access *access,
                                 struct toc_arena *arena,
                                 const struct toc_task *task, bool learn);
/* Adds the stored task to what failed: without its payload, and without its
 * headers when they are large. */
void sched_answer_detail(struct sched_access *access,
                         struct toc_rpc_failure *failure,
                         const struct toc_task *task);
Google__Rpc__Status *sched_answer_status(const struct toc_rpc_failure *failure);
/* From a store's error: UNAVAILABLE and the like, in words for a caller. */
void sched_answer_store_error(struct toc_rpc_failure *failure,
                              enum toc_status st, const struct toc_error *err);
void sched_answer_full(struct toc_rpc_failure *failure, const char *what);
void sched_answer_fail_full(struct toc_rpc_call *call, const char *what);
/* Is there nobody to answer any more? */
bool sched_answer_useless(struct sched_access *access,
                          struct toc_rpc_call *call);
/* The bytes of the index-th element of a batch's field 1. */
struct toc_str sched_answer_item_bytes(struct toc_str *rest);

#endif
