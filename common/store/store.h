/*
 * The store port: the transactions that TOC is made of.
 *
 * An operation is a whole transaction, never a statement. Every change of a
 * row is compare-and-set; losing a race is a value of the item's result, not an
 * error. A status other than TOC_OK means that nothing of the operation took
 * effect, or (TOC_UNAVAILABLE only) that this could not be found out; each
 * operation can then simply be made again with the same arguments.
 * TOC_DATA_LOSS: the database is there, but something that the operation had to
 * read or write is broken (a page, a partition); the same operation on other
 * shards or days may well succeed. Of load and scan, rows may have been seen
 * before.
 *
 * A row that can be read and makes no sense (its status is none that there is)
 * is left out by load, scan, lists and claim as if it were not there, so that
 * the others go on; toc_store_bad_row tells of each.
 *
 * Ownership: inputs are borrowed for the call. Outputs live in the arena given,
 * or, for callbacks, only during the callback. Threads: any number at a time;
 * each call takes a connection of the backend's pool. Blocking: all of them,
 * for at most the backend's timeouts, and until toc_store_interrupt. Times are
 * ms since 1970 UTC, given by the caller; where the database's own clock
 * decides, it says so.
 *
 * Backends: mysql/. Wrappers (store.c) check arguments and results.
 */
#ifndef TOC_STORE_STORE_H
#define TOC_STORE_STORE_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/model/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- submit -------------------------------------------------------- */

enum toc_on_conflict {
    TOC_ON_CONFLICT_REJECT,
    TOC_ON_CONFLICT_KEEP,
    TOC_ON_CONFLICT_REPLACE,
};

enum toc_submit_result {
    TOC_SUBMIT_CREATED,  /* durable, under this key (a free or expired one) */
    TOC_SUBMIT_SAME,     /* the key holds a task of the same content */
    TOC_SUBMIT_OTHER,    /* the key holds another content; nothing written */
    TOC_SUBMIT_REPLACED, /* the old task was cancelled, this one created */
    TOC_SUBMIT_TOO_LATE, /* replace: the old one is being called now */
};

struct toc_submit {
    /* In: everything but slot_ms, id, slice's place: see below. Out (CREATED,
     * REPLACED): id, slot_ms, version as stored. The caller fills slice,
     * due_ms, created_ms, fire = 1, version = 1, key_hash, texts, flags,
     * target_id. id must be zero on the first try; the store makes it and keeps
     * it when the submit is repeated after TOC_UNAVAILABLE, so that an unknown
     * commit is recognised as one's own. */
    struct toc_task *task;
    uint8_t content[8]; /* hash of the request as sent */
    enum toc_on_conflict on_conflict;
    int64_t key_window_ms; /* an ended task holds its key this long */
    /* Out. */
    enum toc_submit_result result;
    struct toc_task_ref stored; /* SAME, OTHER, TOO_LATE: the one there */
};

/* ---- looking up ---------------------------------------------------- */

/* A task by its key (texts set) or by its id (by_id). */
struct toc_find {
    bool by_id;
    struct toc_task_id id;
    struct toc_str biz_type, biz_id, name;
};

typedef void toc_store_task_fn(void *arg, const struct toc_task *task);

/* (after_ms, to_ms] of slots. */
struct toc_slot_span {
    int64_t after_ms, to_ms;
};

/* ---- claim and write-back ------------------------------------------- */

enum toc_claim_result {
    TOC_CLAIM_WON,
    TOC_CLAIM_TAKEN, /* executing elsewhere, moved, changed or ended */
    TOC_CLAIM_EARLY, /* refused by the clock alone: not decided, try later */
};

struct toc_claim {
    struct toc_task_ref ref; /* distinct within a call */
    uint32_t sched_node;     /* who hinted it */
    bool want_row;           /* read the row when won (payload not in hint) */
    /* Out. */
    enum toc_claim_result result;
    struct toc_task *row; /* when want_row and won, in the arena */
};

struct toc_claim_lock {
    uint64_t token; /* session << 24 | sequence or the like; not 0 */
    int64_t lock_until_ms;
    int64_t now_ms;
    uint32_t exec_node;
};

enum toc_finish_kind {
    TOC_FINISH_DONE,      /* SUCCESS */
    TOC_FINISH_SKIPPED,   /* SKIPPED */
    TOC_FINISH_RETRY,     /* RETRY at due_ms, attempt as given, logged */
    TOC_FINISH_SNOOZE,    /* RETRY at due_ms, attempt as it was, logged */
    TOC_FINISH_DEAD,      /* DEAD, with a full copy among the dead letters */
    TOC_FINISH_GIVE_BACK, /* INIT or RETRY again, uncalled, lock gone */
};

enum toc_finish_result {
    TOC_FINISH_OK,
    TOC_FINISH_LOST,      /* the lock was not ours any more: no change */
    TOC_FINISH_CANCELLED, /* a cancel was noted: CANCELLED instead of RETRY */
};

struct toc_finish {
    struct toc_task_ref ref; /* as claimed; distinct within a call */
    uint64_t token;
    enum toc_finish_kind kind;
    enum toc_result outcome;
    uint16_t attempt;  /* RETRY: failed attempts including this one */
    int64_t due_ms;    /* RETRY, SNOOZE: the next attempt's time */
    int64_t called_ms; /* when the call was sent; 0: not sent */
    int64_t ended_ms;
    struct toc_str error;  /* what the business or the transport said */
    struct toc_str reason; /* DEAD: why, for the dead letter */
    /* Out. */
    enum toc_finish_result result;
    struct toc_task_ref moved; /* RETRY, SNOOZE: where the row is now */
};

/* ---- commands -------------------------------------------------------- */

enum toc_command_kind {
    TOC_COMMAND_CANCEL,
    TOC_COMMAND_PAUSE,
    TOC_COMMAND_RESUME,
    TOC_COMMAND_RESCHEDULE, /* to due_ms; keeps the state */
    TOC_COMMAND_RUN_NOW,    /* reschedule to now; a paused one is resumed */
};

enum toc_command_result {
    TOC_COMMAND_APPLIED,
    TOC_COMMAND_ALREADY,   /* it was so before: cancelled, paused, ... */
    TOC_COMMAND_TOO_LATE,  /* it is executing; a cancel was noted, so that no
                              further attempt follows */
    TOC_COMMAND_ENDED,     /* it ended otherwise */
    TOC_COMMAND_NOT_FOUND, /* no such task */
    TOC_COMMAND_MISMATCH,  /* the etag is not the task's version */
};

struct toc_command {
    enum toc_command_kind kind;
    struct toc_find find;
    uint32_t etag; /* version it must have; 0: any */
    int64_t due_ms;
    int64_t now_ms;
    struct toc_str who, why;
    /* Out: task as it is after the command (or as it stands), unless not
     * found; texts in the arena. before_*: what it was, for peers. */
    enum toc_command_result result;
    struct toc_task *task;
};

/* ---- timeline, lists -------------------------------------------------- */

enum toc_log_kind {
    TOC_LOG_KIND_ATTEMPT = 1, /* a superseded attempt */
    TOC_LOG_KIND_CANCEL = 2,
    TOC_LOG_KIND_PAUSE = 3,
    TOC_LOG_KIND_RESUME = 4,
    TOC_LOG_KIND_RESCHEDULE = 5,
    TOC_LOG_KIND_RUN_NOW = 6,
    TOC_LOG_KIND_LOCK_LOST = 7,
    TOC_LOG_KIND_REDRIVE = 8,
    TOC_LOG_KIND_CANCEL_NOTED = 9, /* cancel of an executing task */
};

struct toc_log_entry {
    enum toc_log_kind kind;
    enum toc_result result;
    uint32_t fire, version;
    uint16_t attempt; /* number of the attempt, from 1; 0 for a command */
    uint32_t sched_node, exec_node;
    int64_t claimed_ms, called_ms, at_ms;
    struct toc_str who, detail;
};

struct toc_task_filter {
    struct toc_str biz_type, biz_id; /* empty: any */
    uint16_t state_mask;             /* 1 << state; 0: any */
    int64_t due_from_ms, due_to_ms;  /* [from, to); both 0: any */
};

/* A place in (slice, slot, id) order; all zero: the beginning. */
struct toc_cursor {
    bool set;
    uint16_t slice;
    int64_t slot_ms;
    struct toc_task_id id;
};

/* Which rows to count: those that lie in slots [from, to), from >= 0. Parked
 * ones (paused, far) have no such place. */
struct toc_bucket_query {
    int64_t from_ms, to_ms;
    int64_t width_ms;        /* of a bucket; buckets begin at its multiples */
    struct toc_str biz_type; /* empty: any */
};

struct toc_bucket_count {
    int64_t start_ms; /* of the bucket */
    struct toc_str biz_type;
    uint64_t n[TOC_STATES]; /* by stored state */
};

struct toc_dead_filter {
    struct toc_str biz_type, biz_id;
    int64_t dead_from_ms, dead_to_ms; /* [from, to); both 0: any */
    struct toc_str reason;            /* exact; empty: any */
};

struct toc_dead {
    struct toc_task task;
    int64_t dead_ms;
    struct toc_str reason;
};

enum toc_redrive_result {
    TOC_REDRIVE_APPLIED,
    TOC_REDRIVE_NOT_FOUND,
    TOC_REDRIVE_KEY_TAKEN, /* its key holds a newer task */
};

enum toc_shard_state {
    TOC_SHARD_OPEN = 0,
    TOC_SHARD_MOVING = 1,
    TOC_SHARD_HELD = 2,
};

struct toc_shard_row {
    uint16_t shard;
    enum toc_shard_state state;
    int64_t low_ms, keygc_ms;
};

struct toc_node_row {
    uint32_t id;
    struct toc_str role, name, address;
    int64_t started_ms;
};

/* ---- the operations ---------------------------------------------------- */

struct toc_store;

struct toc_store_ops {
    const char *name;
    enum toc_status (*submit)(void *self, struct toc_submit **items, size_t n,
                              int64_t now_ms, struct toc_error *reterr);
    enum toc_status (*get)(void *self, const struct toc_find *find,
                           struct toc_arena *arena, struct toc_task *ret_task,
                           struct toc_error *reterr);
    enum toc_status (*list_biz)(void *self, struct toc_str biz_type,
                                struct toc_str biz_id, struct toc_arena *arena,
                                struct toc_task **ret_tasks, size_t *ret_n,
                                struct toc_error *reterr);
    enum toc_status (*load)(void *self, const uint16_t *slices, size_t n,
                            const struct toc_slot_span *spans, size_t n_spans,
                            toc_store_task_fn *fn, void *arg,
                            struct toc_error *reterr);
    enum toc_status (*scan)(void *self, const uint16_t *slices, size_t n,
                            int64_t from_ms, int64_t to_ms,
                            toc_store_task_fn *fn, void *arg,
                            struct toc_error *reterr);
    enum toc_status (*move_far)(void *self, const uint16_t *slices, size_t n,
                                int64_t now_ms, size_t max, size_t *ret_moved,
                                struct toc_error *reterr);
    enum toc_status (*claim)(void *self, struct toc_claim *claims, size_t n,
                             const struct toc_claim_lock *lock,
                             struct toc_arena *arena, struct toc_error *reterr);
    enum toc_status (*renew)(void *self, const struct toc_task_ref *refs,
                             const uint64_t *tokens, size_t n,
                             int64_t lock_until_ms, size_t *ret_renewed,
                             struct toc_error *reterr);
    enum toc_status (*finish)(void *self, struct toc_finish *items, size_t n,
                              int64_t now_ms, struct toc_error *reterr);
    enum toc_status (*free_expired)(void *self, const struct toc_task *tasks,
                                    size_t n, int64_t now_ms, size_t *ret_freed,
                                    struct toc_error *reterr);
    enum toc_status (*record_stragglers)(void *self, uint16_t shard,
                                         int64_t before_ms, size_t max,
                                         size_t *ret_waiting,
                                         struct toc_error *reterr);
    enum toc_status (*scan_stragglers)(void *self, const uint16_t *slices,
                                       size_t n, toc_store_task_fn *fn,
                                       void *arg, struct toc_error *reterr);
    enum toc_status (*advance_low)(void *self, const uint16_t *shards, size_t n,
                                   int64_t now_ms, int64_t behind_ms,
                                   struct toc_error *reterr);
    enum toc_status (*command)(void *self, struct toc_command *command,
                               struct toc_arena *arena,
                               struct toc_error *reterr);
    enum toc_status (*timeline)(void *self, const struct toc_find *find,
                                struct toc_arena *arena,
                                struct toc_task *ret_task,
                                struct toc_log_entry **ret_entries,
                                size_t *ret_n, struct toc_error *reterr);
    enum toc_status (*list_tasks)(void *self,
                                  const struct toc_task_filter *filter,
                                  size_t max, struct toc_cursor *cursor,
                                  struct toc_arena *arena,
                                  struct toc_task **ret_tasks, size_t *ret_n,
                                  struct toc_error *reterr);
    enum toc_status (*count_buckets)(void *self,
                                     const struct toc_bucket_query *query,
                                     struct toc_cursor *cursor,
                                     struct toc_arena *arena,
                                     struct toc_bucket_count **ret_counts,
                                     size_t *ret_n, struct toc_error *reterr);
    enum toc_status (*list_dead)(void *self,
                                 const struct toc_dead_filter *filter,
                                 size_t max, struct toc_cursor *cursor,
                                 struct toc_arena *arena,
                                 struct toc_dead **ret_dead, size_t *ret_n,
                                 struct toc_error *reterr);
    enum toc_status (*redrive)(void *self, struct toc_task_id id,
                               int64_t now_ms, struct toc_str who,
                               struct toc_str why,
                               enum toc_redrive_result *ret_result,
                               struct toc_error *reterr);
    enum toc_status (*list_shards)(void *self, struct toc_arena *arena,
                                   struct toc_shard_row **ret_shards,
                                   size_t *ret_n, struct toc_error *reterr);
    enum toc_status (*register_node)(void *self, struct toc_str role,
                                     struct toc_str name,
                                     struct toc_str address, int64_t now_ms,
                                     uint32_t *ret_id,
                                     struct toc_error *reterr);
    enum toc_status (*list_nodes)(void *self, struct toc_arena *arena,
                                  struct toc_node_row **ret_nodes,
                                  size_t *ret_n, struct toc_error *reterr);
    enum toc_status (*gc_keys)(void *self, uint16_t shard, int64_t now_ms,
                               int64_t window_ms, size_t max, size_t *ret_freed,
                               struct toc_error *reterr);
    enum toc_status (*make_days)(void *self, int64_t now_ms,
                                 struct toc_error *reterr);
    enum toc_status (*drop_days)(void *self, int64_t now_ms,
                                 int64_t retention_ms, size_t *ret_dropped,
                                 struct toc_error *reterr);
    enum toc_status (*now)(void *self, int64_t *ret_now_ms,
                           struct toc_error *reterr);
    void (*hasten)(void *self);    /* NULL: nothing waits for long */
    void (*interrupt)(void *self); /* NULL: nothing to interrupt */
};

/* Called for each row that was left out, each time, by the thread that reads.
 * why is borrowed for the call. */
struct toc_bad_row {
    uint16_t slice;
    int64_t slot_ms;
    struct toc_task_id id; /* all zero: not to be read either */
    const char *why;
};
typedef void toc_store_bad_row_fn(void *arg, const struct toc_bad_row *row);

struct toc_store {
    const struct toc_store_ops *ops;
    void *self;
    toc_store_bad_row_fn *bad_row; /* NULL: nobody */
    void *bad_row_arg;
};

/* For backends. */
void toc_store_bad_row(const struct toc_store *store,
                       const struct toc_bad_row *row);

/*
 * Stores n tasks in one transaction (the caller combines concurrent submits).
 * Items with equal keys inside the call are allowed: the first wins, the others
 * see SAME or OTHER. Slot: greatest of due (now, for a past due) and low + 1,
 * or parked as far.
 */
TOC_MUST_CHECK enum toc_status toc_store_submit(struct toc_store *store,
                                                struct toc_submit **items,
                                                size_t n, int64_t now_ms,
                                                struct toc_error *reterr);

/* The task, with its payload, or TOC_NOT_FOUND. Ended tasks are found as long
 * as their day is kept. */
TOC_MUST_CHECK enum toc_status toc_store_get(struct toc_store *store,
                                             const struct toc_find *find,
                                             struct toc_arena *arena,
                                             struct toc_task *ret_task,
                                             struct toc_error *reterr);

/* All tasks of a business id, live and ended, oldest due first; at most 1,000.
 * When there are more, ended ones are left out before any live one. */
TOC_MUST_CHECK enum toc_status toc_store_list_biz(
    struct toc_store *store, struct toc_str biz_type, struct toc_str biz_id,
    struct toc_arena *arena, struct toc_task **ret_tasks, size_t *ret_n,
    struct toc_error *reterr);

/* Calls fn for each INIT or RETRY row of the slices inside one or two spans,
 * with what a hint carries (payload only up to TOC_HINT_PAYLOAD_MAX; then
 * payload.ptr is NULL and payload.len its length). */
TOC_MUST_CHECK enum toc_status toc_store_load(struct toc_store *store,
                                              const uint16_t *slices, size_t n,
                                              const struct toc_slot_span *spans,
                                              size_t n_spans,
                                              toc_store_task_fn *fn, void *arg,
                                              struct toc_error *reterr);

/* Calls fn for each unfinished row with from_ms <= slot < to_ms, with state,
 * due and lock but what a hint carries too; from_ms is raised to the shard's
 * low-water mark. */
TOC_MUST_CHECK enum toc_status toc_store_scan(struct toc_store *store,
                                              const uint16_t *slices, size_t n,
                                              int64_t from_ms, int64_t to_ms,
                                              toc_store_task_fn *fn, void *arg,
                                              struct toc_error *reterr);

/* Moves up to max far rows that are due within TOC_FAR_MOVE_MS into their day;
 * call again while *ret_moved == max. */
TOC_MUST_CHECK enum toc_status toc_store_move_far(struct toc_store *store,
                                                  const uint16_t *slices,
                                                  size_t n, int64_t now_ms,
                                                  size_t max, size_t *ret_moved,
                                                  struct toc_error *reterr);

/* Claims each ref that is INIT or RETRY in that version and due by both the
 * lock's now and the database's clock. */
TOC_MUST_CHECK enum toc_status toc_store_claim(
    struct toc_store *store, struct toc_claim *claims, size_t n,
    const struct toc_claim_lock *lock, struct toc_arena *arena,
    struct toc_error *reterr);

/* Prolongs locks that are still held. */
TOC_MUST_CHECK enum toc_status toc_store_renew(struct toc_store *store,
                                               const struct toc_task_ref *refs,
                                               const uint64_t *tokens, size_t n,
                                               int64_t lock_until_ms,
                                               size_t *ret_renewed,
                                               struct toc_error *reterr);

/* Writes results back in one transaction. */
TOC_MUST_CHECK enum toc_status toc_store_finish(struct toc_store *store,
                                                struct toc_finish *items,
                                                size_t n, int64_t now_ms,
                                                struct toc_error *reterr);

/* Frees rows seen EXECUTING with an expired lock (compare-and-set on version,
 * token and expiry): to DEAD when at most once or lost over TOC_CLAIMS_MAX
 * times, to CANCELLED when a cancel was noted, else to RETRY, due at once. A
 * now_ms ahead of the database's clock counts as that clock: a caller whose
 * clock is ahead takes no running lock away. */
TOC_MUST_CHECK enum toc_status toc_store_free_expired(
    struct toc_store *store, const struct toc_task *tasks, size_t n,
    int64_t now_ms, size_t *ret_freed, struct toc_error *reterr);

/* Records unfinished rows of the shard with slot < before_ms, so that the mark
 * can pass them, and forgets recorded ones that ended or moved. When more than
 * max would wait it records none (a backlog: the mark waits). before_ms is at
 * most the database's clock. */
TOC_MUST_CHECK enum toc_status toc_store_record_stragglers(
    struct toc_store *store, uint16_t shard, int64_t before_ms, size_t max,
    size_t *ret_waiting, struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status toc_store_scan_stragglers(
    struct toc_store *store, const uint16_t *slices, size_t n,
    toc_store_task_fn *fn, void *arg, struct toc_error *reterr);
/* Raises each shard's low-water mark to the first unfinished unrecorded row,
 * at most to now - behind, now being the earlier of now_ms and the database's
 * clock. */
TOC_MUST_CHECK enum toc_status toc_store_advance_low(struct toc_store *store,
                                                     const uint16_t *shards,
                                                     size_t n, int64_t now_ms,
                                                     int64_t behind_ms,
                                                     struct toc_error *reterr);

TOC_MUST_CHECK enum toc_status toc_store_command(struct toc_store *store,
                                                 struct toc_command *command,
                                                 struct toc_arena *arena,
                                                 struct toc_error *reterr);

/* The task and what happened to it, oldest first; the latest attempt is in the
 * task itself. */
TOC_MUST_CHECK enum toc_status toc_store_timeline(
    struct toc_store *store, const struct toc_find *find,
    struct toc_arena *arena, struct toc_task *ret_task,
    struct toc_log_entry **ret_entries, size_t *ret_n,
    struct toc_error *reterr);

/* Up to max matches after *cursor, which moves on; cursor->set is false
 * afterwards when there are no more. May return fewer than max, even none, with
 * more to come: work per call is bounded. */
TOC_MUST_CHECK enum toc_status toc_store_list_tasks(
    struct toc_store *store, const struct toc_task_filter *filter, size_t max,
    struct toc_cursor *cursor, struct toc_arena *arena,
    struct toc_task **ret_tasks, size_t *ret_n, struct toc_error *reterr);
/* Counts a piece of the range, from *cursor on, by bucket, biz_type (bytes) and
 * state, in this order; what holds nothing is left out. The cursor moves on:
 * slot_ms is where the next piece begins (with the whole of that millisecond
 * when slice is 0; the id is the backend's own); set is false after the last.
 * Work per call is bounded, so a bucket may be told in parts, by several calls:
 * their sum is the count. Rows that move meanwhile may be counted twice or not
 * at all. */
TOC_MUST_CHECK enum toc_status toc_store_count_buckets(
    struct toc_store *store, const struct toc_bucket_query *query,
    struct toc_cursor *cursor, struct toc_arena *arena,
    struct toc_bucket_count **ret_counts, size_t *ret_n,
    struct toc_error *reterr);
/* As list_tasks over dead letters, newest first; cursor->slot_ms is dead_ms. */
TOC_MUST_CHECK enum toc_status toc_store_list_dead(
    struct toc_store *store, const struct toc_dead_filter *filter, size_t max,
    struct toc_cursor *cursor, struct toc_arena *arena,
    struct toc_dead **ret_dead, size_t *ret_n, struct toc_error *reterr);
/* A dead letter becomes RETRY, due now, attempts counted anew, same fire;
 * works after its day is gone. */
TOC_MUST_CHECK enum toc_status toc_store_redrive(
    struct toc_store *store, struct toc_task_id id, int64_t now_ms,
    struct toc_str who, struct toc_str why, enum toc_redrive_result *ret_result,
    struct toc_error *reterr);

TOC_MUST_CHECK enum toc_status toc_store_list_shards(
    struct toc_store *store, struct toc_arena *arena,
    struct toc_shard_row **ret_shards, size_t *ret_n, struct toc_error *reterr);
/* A number for this process, never used before. */
TOC_MUST_CHECK enum toc_status toc_store_register_node(
    struct toc_store *store, struct toc_str role, struct toc_str name,
    struct toc_str address, int64_t now_ms, uint32_t *ret_id,
    struct toc_error *reterr);
/* Every process that ever registered, newest first, at most 1,000. */
TOC_MUST_CHECK enum toc_status toc_store_list_nodes(
    struct toc_store *store, struct toc_arena *arena,
    struct toc_node_row **ret_nodes, size_t *ret_n, struct toc_error *reterr);

/* Moves up to max keys of tasks that ended over window_ms ago to the history;
 * call again while *ret_freed == max. */
TOC_MUST_CHECK enum toc_status toc_store_gc_keys(struct toc_store *store,
                                                 uint16_t shard, int64_t now_ms,
                                                 int64_t window_ms, size_t max,
                                                 size_t *ret_freed,
                                                 struct toc_error *reterr);
/* Day partitions up to 35 days ahead of now; harmless when they are there. */
TOC_MUST_CHECK enum toc_status toc_store_make_days(struct toc_store *store,
                                                   int64_t now_ms,
                                                   struct toc_error *reterr);
/* Drops days that ended over retention_ms ago and hold nothing unfinished;
 * deletes, a bounded number a call, log rows of parked tasks and dead letters
 * that are older than that. */
TOC_MUST_CHECK enum toc_status toc_store_drop_days(struct toc_store *store,
                                                   int64_t now_ms,
                                                   int64_t retention_ms,
                                                   size_t *ret_dropped,
                                                   struct toc_error *reterr);
/* The database's clock. */
TOC_MUST_CHECK enum toc_status toc_store_now(struct toc_store *store,
                                             int64_t *ret_now_ms,
                                             struct toc_error *reterr);

/* The process begins to stop: from now on a call waits for a connection for a
 * second at most. Any thread; does not block. */
void toc_store_hasten(struct toc_store *store);
/* The process ends: every call under way and every further one ends soon
 * (within a second, if hastened before) with TOC_UNAVAILABLE, for ever. What a
 * call had sent may have taken effect. Any thread; does not block. */
void toc_store_interrupt(struct toc_store *store);

#endif
