/*
 * What the files of this folder share: the store itself, a connection, packets
 * of statements and the loop that repeats a transaction.
 *
 * A packet is a text of one or more statements that goes to the server in one
 * round trip; conn->replies has one reply a statement. A packet stops at the
 * first statement that fails. TOC_MY_GUARD is a statement that fails unless a
 * condition holds, so a packet can hold its own compare-and-set: what follows
 * the guard, COMMIT first of all, does not happen when it is broken.
 *
 * A body (toc_my_body) is one try of a transaction on one connection. It may
 * run several times: after a deadlock, a lock wait, a broken guard, a lost
 * connection. When the connection was lost while a COMMIT was under way,
 * conn->again->unknown says so: the body must then recognise its own work.
 *
 * Threads: a connection belongs to who took it from the pool.
 */
#ifndef TOC_STORE_MYSQL_INTERNAL_H
#define TOC_STORE_MYSQL_INTERNAL_H

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/list.h"
#include "common/base/thread.h"
#include "common/clock/clock.h"
#include "common/store/mysql/dialect.h"
#include "common/store/store.h"

#include <mysql.h>
#include <pthread.h>
#include <stdatomic.h>

#define TOC_MY_ROWS_MAX 500 /* rows of one statement */

struct toc_my_address {
    char host[256], user[128], db[128], socket[108];
    unsigned port;
};

struct toc_store_mysql {
    struct toc_store port;
    const struct toc_clock *clock;
    struct toc_my_address address;
    char *password;
    int64_t connect_timeout_ms, wait_timeout_ms;
    /* The pool. */
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct toc_my_conn *idle;
    size_t n_open, pool_max;
    struct toc_link watched; /* every connection: pooled, in use, DDL's */
    _Atomic bool hasty;
    _Atomic bool interrupted; /* set under the lock */
    _Atomic uint64_t statements;
    _Atomic unsigned submits_in_two; /* so many more in two packets */
};

enum toc_my_fault {
    TOC_MY_FINE,
    TOC_MY_LOST,      /* the connection is gone; nothing took effect */
    TOC_MY_UNKNOWN,   /* it is gone, and a COMMIT was under way */
    TOC_MY_LOCKED,    /* waited too long for a row */
    TOC_MY_DEADLOCK,  /* the server chose this transaction to give way */
    TOC_MY_GUARD,     /* a guard was broken: somebody else was first */
    TOC_MY_NO_DAY,    /* no partition for a slot */
    TOC_MY_DUPLICATE, /* a primary key is there already */
    TOC_MY_BUSY,      /* the table is in use (ALTER NOWAIT) */
    TOC_MY_REFUSED,   /* anything else: trying again will not help */
};

struct toc_my_reply {
    uint64_t affected, insert_id;
    MYSQL_RES *rows; /* NULL for a statement without rows */
};

/* What is known of earlier tries of the same transaction. */
struct toc_my_again {
    bool unknown;
    unsigned long lost_id; /* connection that may still hold locks; 0: none */
    char lost_host[80];
};

struct toc_my_conn {
    struct toc_my_conn *next;
    struct toc_link watched;
    int socket; /* a descriptor of our own for it; -1: not watched */
    struct toc_store_mysql *store;
    MYSQL *mysql;
    struct toc_my_dialect dialect;
    unsigned long id;
    char host[80]; /* this connection as the server sees it */
    size_t packet_max;
    struct toc_buf sql;
    bool commits; /* the packet being built has a lasting effect */
    enum toc_my_fault fault;
    struct toc_my_reply *replies;
    size_t n_replies, cap_replies;
    struct toc_my_again *again;
};

/* ---- pool.c ----------------------------------------------------------- */

TOC_MUST_CHECK enum toc_status toc_my_take(struct toc_store_mysql *store,
                                           struct toc_my_conn **ret_conn,
                                           struct toc_error *reterr);
/* Back into the pool, or closed when it had a fault. */
void toc_my_give(struct toc_my_conn *conn);
void toc_my_drop_idle(struct toc_store_mysql *store);

/* ---- interrupt.c ------------------------------------------------------- */

/* From here to unwatch an interrupt reaches the connection; refused once there
 * was one. */
TOC_MUST_CHECK enum toc_status toc_my_watch(struct toc_my_conn *conn,
                                            struct toc_error *reterr);
void toc_my_unwatch(struct toc_my_conn *conn);
enum toc_status toc_my_say_interrupted(struct toc_error *reterr);

/* ---- conn.c ------------------------------------------------------------ */

TOC_MUST_CHECK enum toc_status toc_my_connect(struct toc_store_mysql *store,
                                              int64_t timeout_ms,
                                              struct toc_my_conn **ret_conn,
                                              struct toc_error *reterr);
void toc_my_disconnect(struct toc_my_conn *conn);

/* Starts a packet. */
struct toc_buf *toc_my_begin(struct toc_my_conn *conn);
/* The next statement of the packet; returns where to write it. */
struct toc_buf *toc_my_next(struct toc_my_conn *conn);
/* Adds a whole statement. */
void toc_my_add(struct toc_my_conn *conn, const char *statement);
void toc_my_commit(struct toc_my_conn *conn);
/* Fails the packet unless the last statement changed (or, for a condition in
 * text, unless it holds) as it should. */
void toc_my_guard_rows(struct toc_my_conn *conn, size_t rows);
/* Sends the packet, takes all replies. */
TOC_MUST_CHECK enum toc_status toc_my_run(struct toc_my_conn *conn,
                                          struct toc_error *reterr);
/* Sends the packet (one query) and calls fn for each row as it comes; a status
 * other than TOC_OK of fn ends it. *ret_seen counts the calls. */
typedef enum toc_status toc_my_row_fn(void *arg, MYSQL_ROW row,
                                      const unsigned long *lens,
                                      struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status toc_my_stream(struct toc_my_conn *conn,
                                             toc_my_row_fn *fn, void *arg,
                                             size_t *ret_seen,
                                             struct toc_error *reterr);
/* Undoes the transaction, so that the connection can be used again. */
void toc_my_rollback(struct toc_my_conn *conn);
/* Frees the replies. */
void toc_my_forget(struct toc_my_conn *conn);
/* The next row of reply i; NULL after the last. */
MYSQL_ROW toc_my_fetch(struct toc_my_conn *conn, size_t i,
                       const unsigned long **ret_lens);
/* The one number of reply i, or `none`. */
int64_t toc_my_number(struct toc_my_conn *conn, size_t i, int64_t none);

/* ---- transact.c ---------------------------------------------------------- */

typedef enum toc_status toc_my_body(struct toc_my_conn *conn, void *arg,
                                    struct toc_error *reterr);

/* Runs the body until it is through, or trying again does not help. now_ms is
 * for day partitions that turn out to be missing. */
TOC_MUST_CHECK enum toc_status toc_my_transact(struct toc_store_mysql *store,
                                               toc_my_body *body, void *arg,
                                               int64_t now_ms,
                                               struct toc_error *reterr);
void toc_my_pause(struct toc_store_mysql *store, int64_t mean_ms);
/* For a transaction that stays open when its packet ends, after its first
 * statements; and after its COMMIT (a rollback does it by itself). May add a
 * reply without rows. */
void toc_my_hold(struct toc_my_conn *conn);
void toc_my_release(struct toc_my_conn *conn);

/* ---- shared by operations ------------------------------------------------ */

/* days.c: on a connection that is in no transaction. */
TOC_MUST_CHECK enum toc_status toc_my_make_days(struct toc_my_conn *conn,
                                                int64_t now_ms,
                                                struct toc_error *reterr);
/* Under the lock that all changes of tables take; TOC_UNAVAILABLE when another
 * process has it for longer than seconds. */
TOC_MUST_CHECK enum toc_status toc_my_lock_schema(struct toc_my_conn *conn,
                                                  int seconds,
                                                  struct toc_error *reterr);
void toc_my_unlock_schema(struct toc_my_conn *conn);

extern const struct toc_store_ops toc_my_ops;

#define TOC_MY_OP(name) enum toc_status toc_my_##name
TOC_MY_OP(submit)
(void *self, struct toc_submit **items, size_t n, int64_t now_ms,
 struct toc_error *reterr);
TOC_MY_OP(get)
(void *self, const struct toc_find *find, struct toc_arena *arena,
 struct toc_task *ret_task, struct toc_error *reterr);
TOC_MY_OP(list_biz)
(void *self, struct toc_str biz_type, struct toc_str biz_id,
 struct toc_arena *arena, struct toc_task **ret_tasks, size_t *ret_n,
 struct toc_error *reterr);
TOC_MY_OP(load)
(void *self, const uint16_t *slices, size_t n,
 const struct toc_slot_span *spans, size_t n_spans, toc_store_task_fn *fn,
 void *arg, struct toc_error *reterr);
TOC_MY_OP(scan)
(void *self, const uint16_t *slices, size_t n, int64_t from_ms, int64_t to_ms,
 toc_store_task_fn *fn, void *arg, struct toc_error *reterr);
TOC_MY_OP(move_far)
(void *self, const uint16_t *slices, size_t n, int64_t now_ms, size_t max,
 size_t *ret_moved, struct toc_error *reterr);
TOC_MY_OP(claim)
(void *self, struct toc_claim *claims, size_t n,
 const struct toc_claim_lock *lock, struct toc_arena *arena,
 struct toc_error *reterr);
TOC_MY_OP(renew)
(void *self, const struct toc_task_ref *refs, const uint64_t *tokens, size_t n,
 int64_t lock_until_ms, size_t *ret_renewed, struct toc_error *reterr);
TOC_MY_OP(finish)
(void *self, struct toc_finish *items, size_t n, int64_t now_ms,
 struct toc_error *reterr);
TOC_MY_OP(free_expired)
(void *self, const struct toc_task *tasks, size_t n, int64_t now_ms,
 size_t *ret_freed, struct toc_error *reterr);
TOC_MY_OP(record_stragglers)
(void *self, uint16_t shard, int64_t before_ms, size_t max, size_t *ret_waiting,
 struct toc_error *reterr);
TOC_MY_OP(scan_stragglers)
(void *self, const uint16_t *slices, size_t n, toc_store_task_fn *fn, void *arg,
 struct toc_error *reterr);
TOC_MY_OP(advance_low)
(void *self, const uint16_t *shards, size_t n, int64_t now_ms,
 int64_t behind_ms, struct toc_error *reterr);
TOC_MY_OP(command)
(void *self, struct toc_command *command, struct toc_arena *arena,
 struct toc_error *reterr);
TOC_MY_OP(timeline)
(void *self, const struct toc_find *find, struct toc_arena *arena,
 struct toc_task *ret_task, struct toc_log_entry **ret_entries, size_t *ret_n,
 struct toc_error *reterr);
TOC_MY_OP(list_tasks)
(void *self, const struct toc_task_filter *filter, size_t max,
 struct toc_cursor *cursor, struct toc_arena *arena,
 struct toc_task **ret_tasks, size_t *ret_n, struct toc_error *reterr);
TOC_MY_OP(count_buckets)
(void *self, const struct toc_bucket_query *query, struct toc_cursor *cursor,
 struct toc_arena *arena, struct toc_bucket_count **ret_counts, size_t *ret_n,
 struct toc_error *reterr);
TOC_MY_OP(list_dead)
(void *self, const struct toc_dead_filter *filter, size_t max,
 struct toc_cursor *cursor, struct toc_arena *arena, struct toc_dead **ret_dead,
 size_t *ret_n, struct toc_error *reterr);
TOC_MY_OP(redrive)
(void *self, struct toc_task_id id, int64_t now_ms, struct toc_str who,
 struct toc_str why, enum toc_redrive_result *ret_result,
 struct toc_error *reterr);
TOC_MY_OP(list_shards)
(void *self, struct toc_arena *arena, struct toc_shard_row **ret_shards,
 size_t *ret_n, struct toc_error *reterr);
TOC_MY_OP(register_node)
(void *self, struct toc_str role, struct toc_str name, struct toc_str address,
 int64_t now_ms, uint32_t *ret_id, struct toc_error *reterr);
TOC_MY_OP(list_nodes)
(void *self, struct toc_arena *arena, struct toc_node_row **ret_nodes,
 size_t *ret_n, struct toc_error *reterr);
TOC_MY_OP(gc_keys)
(void *self, uint16_t shard, int64_t now_ms, int64_t window_ms, size_t max,
 size_t *ret_freed, struct toc_error *reterr);
TOC_MY_OP(make_days_op)
(void *self, int64_t now_ms, struct toc_error *reterr);
TOC_MY_OP(drop_days)
(void *self, int64_t now_ms, int64_t retention_ms, size_t *ret_dropped,
 struct toc_error *reterr);
TOC_MY_OP(now)(void *self, int64_t *ret_now_ms, struct toc_error *reterr);
void toc_my_hasten(void *self);
void toc_my_interrupt(void *self);

#endif
