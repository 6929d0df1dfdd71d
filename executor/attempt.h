/*
 * A claim that was won: to be called, and then written back.
 *
 * Ownership: passes from the core to the call, to the results, which free it.
 * Threads: one at a time, in that order.
 */
#ifndef TOC_EXECUTOR_ATTEMPT_H
#define TOC_EXECUTOR_ATTEMPT_H

#include "common/base/arena.h"
#include "common/base/heap.h"
#include "common/invoke/invoke.h"
#include "common/model/limits.h"
#include "common/model/spec.h"
#include "common/store/store.h"
#include "executor/item.h"

struct exec_slot;

struct exec_attempt {
    struct toc_link link;
    struct exec_item *item; /* holds the texts of task; ours */
    struct toc_task task;
    struct toc_spec spec;
    struct toc_arena arena; /* of spec, and of what was read from the row */
    uint64_t token;
    int64_t lock_until_ms;
    int64_t lock_until_boot_ns; /* the same, as it was when claimed */
    /* Its call may still run until then: not written back before (boot clock;
     * 0: at once). */
    int64_t write_from_ns;
    struct toc_heap_node held; /* the results', until then */
    struct exec_slot *slot;    /* given back then; NULL: none */
    struct toc_finish finish;  /* what is to be written back */
    char error[TOC_ERROR_MAX];
};

/* row: NULL when the hint has all the call needs. False in *ret_spec_ok: the
 * spec cannot be read, there is nothing to call. */
struct exec_attempt *exec_attempt_new(struct exec_item *item,
                                      const struct toc_task *row,
                                      const struct toc_claim_lock *lock,
                                      bool *ret_spec_ok);
void exec_attempt_free(struct exec_attempt *attempt);

/* How it ends without a call: the row becomes free again, or, for a target that
 * can never be called, a dead letter. */
void exec_attempt_give_back(struct exec_attempt *attempt, int64_t now_ms);
void exec_attempt_fail(struct exec_attempt *attempt, const char *error,
                       int64_t now_ms);
/* How it ends by the answer; copies what it keeps. */
void exec_attempt_answer(struct exec_attempt *attempt,
                         const struct toc_fire *fire, int64_t now_ms);

#endif
