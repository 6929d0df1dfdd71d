/*
 * What the files of the memory store share: the store, a transaction.
 *
 * A transaction reads what is committed, or what it wrote itself; its writes
 * are kept apart until the commit. It notes the locks that MySQL would take.
 * Every operation is: enter, begin, read and write, commit.
 *
 *     TOC_CLEANUP(toc_mem_leave) struct toc_store_mem *store =
 *         toc_mem_enter(self);
 *     TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
 */
#ifndef TOC_STORE_MEM_INTERNAL_H
#define TOC_STORE_MEM_INTERNAL_H

#include "common/base/cleanup.h"
#include "common/base/list.h"
#include "common/base/rng.h"
#include "common/clock/clock.h"
#include "common/model/limits.h"
#include "common/store/mem/row.h"
#include "common/store/mem/store_mem.h"

#include <pthread.h>

#define TOC_MEM_ROWS_MAX 500 /* items of one transaction, as in MySQL */

struct toc_store_mem {
    struct toc_store port;
    pthread_mutex_t lock;
    const struct toc_clock *clock;
    struct toc_rng rng;
    struct toc_mem_map tables[TOC_MEM_TABLES];
    struct toc_mem_map by_id; /* the rows of TOC_MEM_TASK */
    uint32_t last_node;
    /* Ends of the days that are there, ascending, without gaps. */
    int64_t *day_ends;
    size_t n_days, cap_days;
    /* Held transactions. */
    struct toc_link held;
    size_t n_held;
    uint64_t last_held;
    bool hold_next;
    enum toc_store_mem_answer answer;
};

struct toc_mem_lock {
    enum toc_mem_table table;
    struct toc_mem_key key;
    bool shared;
};

struct toc_mem_txn {
    struct toc_store_mem *store;
    struct toc_mem_map writes[TOC_MEM_TABLES];
    struct toc_mem_lock *locks;
    size_t n_locks, cap_locks;
    bool duplicate; /* a row was to be inserted where one is */
    struct toc_link link;
    uint64_t number; /* of a held one */
};

struct toc_store_mem *toc_mem_enter(void *self);
void toc_mem_leave(struct toc_store_mem **store);
int64_t toc_mem_clock(const struct toc_store_mem *store);
/* The earlier of the caller's clock and the database's. */
int64_t toc_mem_earlier(const struct toc_store_mem *store, int64_t now_ms);

/* ---- txn.c ------------------------------------------------------------- */

void toc_mem_txn_done(struct toc_mem_txn *txn);
/* What the transaction sees at the key; NULL: nothing. */
const struct toc_mem_row *toc_mem_read(const struct toc_mem_txn *txn,
                                       enum toc_mem_table table,
                                       const struct toc_mem_key *key);
void toc_mem_lock(struct toc_mem_txn *txn, enum toc_mem_table table,
                  const struct toc_mem_key *key, bool shared);
/* The row at the key, locked and to be written; NULL: nothing is there. */
struct toc_mem_row *toc_mem_change(struct toc_mem_txn *txn,
                                   enum toc_mem_table table,
                                   const struct toc_mem_key *key);
/* Takes the row over. With or without (INSERT IGNORE) a fault when there is
 * one already. */
void toc_mem_insert(struct toc_mem_txn *txn, struct toc_mem_row *row);
void toc_mem_insert_ignore(struct toc_mem_txn *txn, struct toc_mem_row *row);
/* In place of one that may be there. */
void toc_mem_replace(struct toc_mem_txn *txn, struct toc_mem_row *row);
void toc_mem_remove(struct toc_mem_txn *txn, enum toc_mem_table table,
                    const struct toc_mem_key *key);
/* now_ms: for days that turn out to be missing. */
TOC_MUST_CHECK enum toc_status toc_mem_commit(struct toc_mem_txn *txn,
                                              int64_t now_ms,
                                              struct toc_error *reterr);
void toc_mem_drop_held(struct toc_store_mem *store);

/* The committed rows of a table, from a key on. */
#define TOC_MEM_EACH(store, table, row, place) \
    ((row) = toc_mem_map_next(&(store)->tables[table], &(place))) != NULL

/* ---- task.c: rows of tasks and what goes with them ---------------------- */

const struct toc_mem_row *toc_mem_task_at(const struct toc_mem_txn *txn,
                                          const struct toc_task_ref *ref);
/* The shared lock on the shard; returns its mark. */
int64_t toc_mem_share_low(struct toc_mem_txn *txn, uint16_t shard);
/* Above the mark, unless parked. */
int64_t toc_mem_slot_above(int64_t slot_ms, int64_t low_ms);
/* The row, to be changed; locked also when there is none. */
struct toc_mem_row *toc_mem_task_change(struct toc_mem_txn *txn,
                                        const struct toc_task_ref *ref);
/* A row that is being changed goes to another slot, its key with it. */
struct toc_mem_row *toc_mem_task_move(struct toc_mem_txn *txn,
                                      struct toc_mem_row *row, int64_t slot_ms);
/* at.version: the log id. */
struct toc_mem_row *toc_mem_log_new(const struct toc_task_ref *at,
                                    enum toc_log_kind kind);
void toc_mem_log_texts(struct toc_mem_row *log, struct toc_str who,
                       struct toc_str detail);
/* A dead letter of the row. */
struct toc_mem_row *toc_mem_dead_new(const struct toc_mem_row *row,
                                     int64_t dead_ms, struct toc_str reason);
bool toc_mem_task_waits(const struct toc_task *task); /* INIT, RETRY */

/* ---- find.c -------------------------------------------------------------- */

/* The committed row that is meant, or NULL. */
const struct toc_mem_row *toc_mem_find(const struct toc_store_mem *store,
                                       const struct toc_find *find);
void toc_mem_list_biz_of(const struct toc_store_mem *store,
                         struct toc_str biz_type, struct toc_str biz_id,
                         struct toc_arena *arena, struct toc_task **ret_tasks,
                         size_t *ret_n);

/* ---- days.c -------------------------------------------------------------- */

TOC_MUST_CHECK enum toc_status toc_mem_make_days(struct toc_store_mem *store,
                                                 int64_t now_ms,
                                                 struct toc_error *reterr);
bool toc_mem_has_day(const struct toc_store_mem *store, int64_t slot_ms);

extern const struct toc_store_ops toc_mem_ops;

#define TOC_MEM_OP(name) enum toc_status toc_mem_##name
TOC_MEM_OP(submit)
(void *self, struct toc_submit **items, size_t n, int64_t now_ms,
 struct toc_error *reterr);
TOC_MEM_OP(get)
(void *self, const struct toc_find *find, struct toc_arena *arena,
 struct toc_task *ret_task, struct toc_error *reterr);
TOC_MEM_OP(list_biz)
(void *self, struct toc_str biz_type, struct toc_str biz_id,
 struct toc_arena *arena, struct toc_task **ret_tasks, size_t *ret_n,
 struct toc_error *reterr);
TOC_MEM_OP(load)
(void *self, const uint16_t *slices, size_t n,
 const struct toc_slot_span *spans, size_t n_spans, toc_store_task_fn *fn,
 void *arg, struct toc_error *reterr);
TOC_MEM_OP(scan)
(void *self, const uint16_t *slices, size_t n, int64_t from_ms, int64_t to_ms,
 toc_store_task_fn *fn, void *arg, struct toc_error *reterr);
TOC_MEM_OP(move_far)
(void *self, const uint16_t *slices, size_t n, int64_t now_ms, size_t max,
 size_t *ret_moved, struct toc_error *reterr);
TOC_MEM_OP(claim)
(void *self, struct toc_claim *claims, size_t n,
 const struct toc_claim_lock *lock, struct toc_arena *arena,
 struct toc_error *reterr);
TOC_MEM_OP(renew)
(void *self, const struct toc_task_ref *refs, const uint64_t *tokens, size_t n,
 int64_t lock_until_ms, size_t *ret_renewed, struct toc_error *reterr);
TOC_MEM_OP(finish)
(void *self, struct toc_finish *items, size_t n, int64_t now_ms,
 struct toc_error *reterr);
TOC_MEM_OP(free_expired)
(void *self, const struct toc_task *tasks, size_t n, int64_t now_ms,
 size_t *ret_freed, struct toc_error *reterr);
TOC_MEM_OP(record_stragglers)
(void *self, uint16_t shard, int64_t before_ms, size_t max, size_t *ret_waiting,
 struct toc_error *reterr);
TOC_MEM_OP(scan_stragglers)
(void *self, const uint16_t *slices, size_t n, toc_store_task_fn *fn, void *arg,
 struct toc_error *reterr);
TOC_MEM_OP(advance_low)
(void *self, const uint16_t *shards, size_t n, int64_t now_ms,
 int64_t behind_ms, struct toc_error *reterr);
TOC_MEM_OP(command)
(void *self, struct toc_command *command, struct toc_arena *arena,
 struct toc_error *reterr);
TOC_MEM_OP(timeline)
(void *self, const struct toc_find *find, struct toc_arena *arena,
 struct toc_task *ret_task, struct toc_log_entry **ret_entries, size_t *ret_n,
 struct toc_error *reterr);
TOC_MEM_OP(list_tasks)
(void *self, const struct toc_task_filter *filter, size_t max,
 struct toc_cursor *cursor, struct toc_arena *arena,
 struct toc_task **ret_tasks, size_t *ret_n, struct toc_error *reterr);
TOC_MEM_OP(count_buckets)
(void *self, const struct toc_bucket_query *query, struct toc_cursor *cursor,
 struct toc_arena *arena, struct toc_bucket_count **ret_counts, size_t *ret_n,
 struct toc_error *reterr);
TOC_MEM_OP(list_dead)
(void *self, const struct toc_dead_filter *filter, size_t max,
 struct toc_cursor *cursor, struct toc_arena *arena, struct toc_dead **ret_dead,
 size_t *ret_n, struct toc_error *reterr);
TOC_MEM_OP(redrive)
(void *self, struct toc_task_id id, int64_t now_ms, struct toc_str who,
 struct toc_str why, enum toc_redrive_result *ret_result,
 struct toc_error *reterr);
TOC_MEM_OP(list_shards)
(void *self, struct toc_arena *arena, struct toc_shard_row **ret_shards,
 size_t *ret_n, struct toc_error *reterr);
TOC_MEM_OP(register_node)
(void *self, struct toc_str role, struct toc_str name, struct toc_str address,
 int64_t now_ms, uint32_t *ret_id, struct toc_error *reterr);
TOC_MEM_OP(list_nodes)
(void *self, struct toc_arena *arena, struct toc_node_row **ret_nodes,
 size_t *ret_n, struct toc_error *reterr);
TOC_MEM_OP(gc_keys)
(void *self, uint16_t shard, int64_t now_ms, int64_t window_ms, size_t max,
 size_t *ret_freed, struct toc_error *reterr);
TOC_MEM_OP(make_days_op)
(void *self, int64_t now_ms, struct toc_error *reterr);
TOC_MEM_OP(drop_days)
(void *self, int64_t now_ms, int64_t retention_ms, size_t *ret_dropped,
 struct toc_error *reterr);
TOC_MEM_OP(now)(void *self, int64_t *ret_now_ms, struct toc_error *reterr);
void toc_my_hasten(void *self);
void toc_my_interrupt(void *self);

#endif
