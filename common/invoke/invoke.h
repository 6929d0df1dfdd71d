/*
 * The invoke port: calling the business.
 *
 * A call carries one or more fires (more only for targets that serve batches).
 * It ends exactly once, by toc_invoke_done_fn, whatever happens: answer,
 * deadline, broken connection, cancel.
 *
 * Ownership: the caller keeps the call and everything it points to until done.
 * Threads: start from any thread; done runs on a thread of the backend and must
 * not block. Blocking: never.
 */
#ifndef TOC_INVOKE_INVOKE_H
#define TOC_INVOKE_INVOKE_H

#include "common/base/status.h"
#include "common/model/spec.h"
#include "common/model/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum toc_answer_kind {
    TOC_ANSWER_DONE,
    TOC_ANSWER_FAILED,      /* try again: as the policy says, or at retry_at */
    TOC_ANSWER_REJECTED,    /* failed for good */
    TOC_ANSWER_SNOOZE,      /* not yet: again at retry_at, uses no attempt */
    TOC_ANSWER_STOP,        /* not needed any more */
    TOC_ANSWER_UNREACHABLE, /* surely not begun: connection refused, ... */
    TOC_ANSWER_UNKNOWN,     /* may have run: deadline, connection lost */
    TOC_ANSWER_REFUSED,     /* the handler refused it: past toc-not-after */
    TOC_ANSWER_BAD_TARGET,  /* the target cannot be called as written */
};

struct toc_answer {
    enum toc_answer_kind kind;
    /* UNKNOWN: yet the handler has surely ended (it sent the failure itself);
     * else it may be at work until the call's not_after. */
    bool ended;
    int64_t retry_at_ms; /* 0: as the policy says */
    char error[256];     /* for people; "" when done */
};

struct toc_fire {
    const struct toc_task *task;
    const struct toc_spec *spec;
    uint32_t attempt; /* number of this attempt, from 1 */
    struct toc_answer answer;
};

struct toc_call;
typedef void toc_invoke_done_fn(struct toc_call *call);

struct toc_call {
    struct toc_str target;
    struct toc_fire *fires; /* n of them */
    size_t n;
    bool batch;           /* use the batch form (also for n == 1) */
    int64_t not_after_ms; /* wall: the handler must not begin after it */
    int64_t deadline_ns;  /* monotonic: the call is ended at it */
    toc_invoke_done_fn *done;
    void *arg;     /* the caller's */
    void *backend; /* the backend's, while the call is under way */
};

struct toc_invoke_ops {
    const char *name;
    void (*start)(void *self, struct toc_call *call);
    void (*cancel)(void *self, struct toc_call *call);
    void (*cancel_all)(void *self);
};

struct toc_invoke {
    const struct toc_invoke_ops *ops;
    void *self;
};

void toc_invoke_start(struct toc_invoke *invoke, struct toc_call *call);
/* The call ends soon, as UNKNOWN unless it had its answer. */
void toc_invoke_cancel(struct toc_invoke *invoke, struct toc_call *call);
void toc_invoke_cancel_all(struct toc_invoke *invoke);

#endif
