/*
 * What the files of submit share: the tasks of one transaction, what is known
 * of each, and the steps between its packets (see submit.c).
 */
#ifndef TOC_STORE_MYSQL_SUBMIT_H
#define TOC_STORE_MYSQL_SUBMIT_H

#include "common/store/mysql/sql.h"
#include "common/store/mysql/store_mysql_internal.h"

enum toc_submit_plan {
    TOC_SUBMIT_PLAN_NEW,     /* the key was free and is ours: insert the row */
    TOC_SUBMIT_PLAN_TAKE,    /* take the key over from a task that ended */
    TOC_SUBMIT_PLAN_REPLACE, /* cancel the task that holds it, take it over */
    TOC_SUBMIT_PLAN_DECIDED, /* nothing to write */
};

/* The task that holds the key. */
struct toc_submit_holder {
    bool has_row;
    struct toc_task_ref ref;
    enum toc_state state;
    uint32_t fire;
    uint8_t content[8];
    int64_t ended_slot_ms; /* where it is once replaced */
};

struct toc_submit_entry {
    struct toc_submit *item;
    enum toc_submit_plan plan;
    struct toc_submit_holder old;
    size_t order; /* as given */
    bool raised;  /* above its mark, with its key inserted already */
    struct toc_task_id key_id; /* which the key was inserted with */
    enum toc_submit_result sent_result;
    bool given;    /* the caller gave the id: it was sent in an earlier call */
    bool has_past; /* stored before, and has lost its key since: decided */
    bool waiting;  /* not decided in an earlier round */
};

struct toc_submitting {
    struct toc_submit_entry *entries; /* one a key, sorted by key */
    struct toc_sql_row *rows;
    size_t n;
    int64_t now_ms;
    int64_t low_ms[TOC_SHARDS];
    struct toc_buf *packets; /* what inserts the rows */
    size_t n_packets, cap_packets;
};

static inline uint16_t
toc_submit_shard(const struct toc_submit_entry *e)
{
    return toc_slice_shard(e->item->task->slice);
}

/* submit_holders.c: after packet 1, what is to become of each entry; all_new:
 * every key was free. */
TOC_MUST_CHECK enum toc_status toc_submit_decide(struct toc_my_conn *conn,
                                                 struct toc_submitting *s,
                                                 bool all_new,
                                                 struct toc_error *reterr);

/* submit_write.c: the statements for the rows to be inserted, in packets that
 * the server takes. */
void toc_submit_pack(struct toc_submitting *s, size_t packet_max);
void toc_submit_drop_packets(struct toc_submitting *s);
/* What was decided, and COMMIT. */
TOC_MUST_CHECK enum toc_status toc_submit_write(struct toc_my_conn *conn,
                                                struct toc_submitting *s,
                                                struct toc_error *reterr);

#endif
