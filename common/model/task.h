/*
 * A task's row, its states and the edges between them.
 *
 * Every change of state is one edge of TOC_EDGE_MAP, made by compare-and-set
 * on the row; docs/STATES.md is written from this table. SCHEDULING is shown,
 * not stored: a task in INIT or RETRY whose slot lies inside the look-ahead.
 */
#ifndef TOC_MODEL_TASK_H
#define TOC_MODEL_TASK_H

#include "common/base/str.h"
#include "common/model/key.h"
#include "common/model/slot.h"

#include <stdbool.h>
#include <stdint.h>

/* Stored numbers: never change one. Below TOC_STATE_ENDED: unfinished. */
#define TOC_STATE_MAP(X)                                                   \
    X(INIT, 0, "waiting for its due time")                                 \
    X(SCHEDULING, 1, "inside the look-ahead window (shown, never stored)") \
    X(EXECUTING, 2, "claimed by an executor, under a lock")                \
    X(PAUSED, 3, "held by a person until resumed")                         \
    X(RETRY, 4, "failed, waiting for the next attempt")                    \
    X(SUCCESS, 5, "the business said done")                                \
    X(DEAD, 6, "out of attempts or failed for good; a dead letter")        \
    X(CANCELLED, 7, "will not be called")                                  \
    X(SKIPPED, 8, "not needed any more: condition, lateness or stop")      \
    X(DISCARDED, 9, "a dead letter put aside")

enum toc_state {
#define X(name, number, text) TOC_STATE_##name = number,
    TOC_STATE_MAP(X)
#undef X
};
#define TOC_STATES 10
#define TOC_STATE_ENDED TOC_STATE_SUCCESS

/* from, to, who does it, why. */
#define TOC_EDGE_MAP(X)                                                    \
    X(INIT, EXECUTING, "executor", "claimed at its due time")              \
    X(RETRY, EXECUTING, "executor", "claimed at its next attempt's time")  \
    X(EXECUTING, SUCCESS, "executor", "the business answered done")        \
    X(EXECUTING, RETRY, "executor", "attempt failed, or snoozed")          \
    X(EXECUTING, RETRY, "scheduler", "the lock expired, outcome unknown")  \
    X(EXECUTING, DEAD, "executor", "failed for good, or out of attempts")  \
    X(EXECUTING, DEAD, "scheduler",                                        \
      "the lock expired and the task is at most once, or lost too often")  \
    X(EXECUTING, CANCELLED, "executor", "failed after a cancel was noted") \
    X(EXECUTING, CANCELLED, "scheduler",                                   \
      "the lock expired after a cancel was noted")                         \
    X(EXECUTING, SKIPPED, "executor", "the business stopped it")           \
    X(EXECUTING, INIT, "executor", "given back uncalled")                  \
    X(INIT, PAUSED, "command", "pause")                                    \
    X(RETRY, PAUSED, "command", "pause")                                   \
    X(PAUSED, INIT, "command", "resume of a task never tried")             \
    X(PAUSED, RETRY, "command", "resume of a task that had failed")        \
    X(INIT, INIT, "command", "reschedule, run now, update")                \
    X(RETRY, RETRY, "command", "reschedule, run now, update")              \
    X(PAUSED, PAUSED, "command", "reschedule, update")                     \
    X(INIT, CANCELLED, "command", "cancel or replace")                     \
    X(RETRY, CANCELLED, "command", "cancel or replace")                    \
    X(PAUSED, CANCELLED, "command", "cancel or replace")                   \
    X(DEAD, RETRY, "command", "redrive")                                   \
    X(DEAD, DISCARDED, "command", "discard")

const char *toc_state_text(enum toc_state state); /* "INIT" ... */
bool toc_state_parse(struct toc_str text, enum toc_state *ret_state);
bool toc_state_valid(int64_t number); /* a number the store may hold */
bool toc_state_ended(enum toc_state state);
bool toc_edge_legal(enum toc_state from, enum toc_state to);
/* What a person is shown: SCHEDULING inside the look-ahead. */
enum toc_state toc_state_shown(enum toc_state state, int64_t slot_ms,
                               int64_t now_ms);
#define TOC_LOOK_AHEAD_MS INT64_C(10000)

/* Flags of a row, as stored. */
#define TOC_FLAG_CANCEL 1u       /* cancel noted while executing */
#define TOC_FLAG_AT_MOST_ONCE 2u /* an unknown outcome is not tried again */
#define TOC_FLAG_HELD 4u         /* parked by a hold, not by a person */

/* How the latest attempt ended, as stored (column result). */
#define TOC_RESULT_MAP(X)                                               \
    X(NONE, 0, "not ended")                                             \
    X(DONE, 1, "the business answered done")                            \
    X(FAILED, 2, "the business asked to be called again")               \
    X(REJECTED, 3, "the business refused for good")                     \
    X(SNOOZED, 4, "the business said not yet")                          \
    X(STOPPED, 5, "the business stopped it")                            \
    X(UNREACHABLE, 6, "the call did not reach the business")            \
    X(TIMEOUT, 7, "no answer within the deadline; outcome unknown")     \
    X(LOST, 8, "the executor died or its lock passed; outcome unknown") \
    X(REFUSED, 9, "the handler refused it as too late to begin")        \
    X(BAD_TARGET, 10, "the target cannot be called as written")

enum toc_result {
#define X(name, number, text) TOC_RESULT_##name = number,
    TOC_RESULT_MAP(X)
#undef X
};
const char *toc_result_text(enum toc_result result); /* "DONE" ... */
bool toc_result_valid(int64_t number); /* a number the store may hold */

/*
 * A row of task_info. Texts are borrowed: whoever fills the struct says for
 * how long. `spec` is a serialized toc.v1.TaskSpec.
 */
struct toc_task {
    uint16_t slice;
    int64_t slot_ms;
    struct toc_task_id id;
    enum toc_state state;
    uint8_t flags;
    uint16_t attempt; /* attempts that failed in this fire so far */
    uint16_t claims;  /* times a lock was taken away */
    uint32_t fire;    /* from 1 */
    uint32_t version; /* from 1; every change but a claim raises it */
    uint64_t lock_token;
    int64_t lock_until_ms;
    int64_t due_ms;
    int64_t created_ms;
    int64_t claimed_ms, called_ms, ended_ms; /* the latest attempt; 0: none */
    uint32_t sched_node, exec_node;
    enum toc_result result;
    struct toc_str error; /* up to 512 bytes */
    uint32_t line_id;
    uint32_t target_id; /* toc_target_id of the spec's target */
    struct toc_key_hash key_hash;
    struct toc_str biz_type, biz_id, name;
    struct toc_str spec;    /* up to 2048 bytes */
    struct toc_str payload; /* up to the limit of the line */
};

/* A number for grouping by target; equal texts have equal numbers. */
uint32_t toc_target_id(struct toc_str target);

/* Where a row is and in which version: what compare-and-set needs. */
struct toc_task_ref {
    uint16_t slice;
    int64_t slot_ms;
    struct toc_task_id id;
    uint32_t version;
};
struct toc_task_ref toc_task_ref_of(const struct toc_task *task);
/* Order of the primary key (slice, slot, id): the order of locks. */
int toc_task_ref_cmp(const struct toc_task_ref *a,
                     const struct toc_task_ref *b);

#endif
