/*
 * Submit: many tasks in one transaction.
 *
 * Nearly all keys are new, so it goes in one packet at first: the shared lock
 * on the marks, the keys, the rows, COMMIT, with guards that break it off when
 * a slot is behind its mark or a key was taken. No lock is then held over a
 * round trip.
 *
 * If a guard broke, or the packet would be too large, it goes in two: packet 1
 * takes the lock and inserts the keys; what they hold is read in between and
 * decides; packet 2 (several when it is large) inserts the rows and commits.
 *
 * An id is made once and kept: when a COMMIT's outcome is unknown, the repeated
 * insert of the key waits for the earlier one's lock and then finds either
 * nothing or its own id. (A plain look at the table would be a race: the commit
 * may come after it.) Or the key has been taken over or freed since; then the
 * history of keys has the id. So a submit that was sent before, by this call or
 * by one that the caller repeats, looks there too.
 *
 * Equal keys inside a call: the first goes ahead, then the others are compared
 * with it; one that replaces goes in a round of its own.
 */
#include "common/store/mysql/submit.h"

#include "common/base/assert.h"
#include "common/base/rng.h"
#include "common/store/mysql/row.h"

#include <stdlib.h>
#include <string.h>

static bool
id_is_zero(const struct toc_task_id *id)
{
    static const struct toc_task_id zero;

    return memcmp(id, &zero, sizeof zero) == 0;
}

static void
place(struct toc_submit_entry *e, int64_t now_ms)
{
    struct toc_task *task = e->item->task;

    e->plan = TOC_SUBMIT_PLAN_NEW;
    e->has_past = e->raised = false;
    task->slot_ms = toc_slot_for_due(task->due_ms, now_ms);
    if (id_is_zero(&task->id))
        task->id = toc_task_id_make(task->key_hash, task->slot_ms,
                                    (uint32_t)toc_rng_u64());
}

/* ---- keys and marks (packet 1)
 * ---------------------------------------------------------------
 */

static void
lock_marks(struct toc_my_conn *conn, const struct toc_submitting *s)
{
    bool seen[TOC_SHARDS] = {false};
    struct toc_buf *sql = toc_my_next(conn);
    const char *comma = "";

    toc_buf_text(sql, "SELECT shard_id,state,low_ms FROM shard_owner "
                      "WHERE shard_id IN (");
    for (size_t i = 0; i < s->n; i++) {
        uint16_t shard = toc_submit_shard(&s->entries[i]);
        if (seen[shard])
            continue;
        seen[shard] = true;
        toc_buf_printf(sql, "%s%u", comma, shard);
        comma = ",";
    }
    toc_buf_text(sql, ")" TOC_MY_SHARED);
}

/* Guarded: the packet goes on only if all of them were free. */
static void
insert_keys(struct toc_my_conn *conn, const struct toc_submitting *s,
            bool guarded)
{
    struct toc_buf *sql = &conn->sql;

    for (size_t i = 0; i < s->n; i++) {
        const struct toc_task *task = s->entries[i].item->task;
        if (guarded && i > 0 && i % TOC_MY_ROWS_MAX == 0)
            toc_my_guard_rows(conn, TOC_MY_ROWS_MAX);
        if (i % TOC_MY_ROWS_MAX == 0)
            toc_buf_text(toc_my_next(conn),
                         "INSERT IGNORE INTO task_key "
                         "(key_hash,task_id,slice,slot_ms,content) VALUES ");
        else
            toc_buf_char(sql, ',');
        toc_buf_char(sql, '(');
        toc_sql_hash(sql, task->key_hash);
        toc_buf_char(sql, ',');
        toc_sql_id(sql, task->id);
        toc_buf_printf(sql, ",%u,%lld,", task->slice, (long long)task->slot_ms);
        toc_sql_bytes(sql, (struct toc_str){
                               (const char *)s->entries[i].item->content, 8});
        toc_buf_char(sql, ')');
    }
    if (guarded)
        toc_my_guard_rows(conn, (s->n - 1) % TOC_MY_ROWS_MAX + 1);
}

static enum toc_status
take_marks(struct toc_my_conn *conn, struct toc_submitting *s,
           struct toc_error *reterr)
{
    const unsigned long *lens;
    MYSQL_ROW row;

    for (size_t i = 0; i < TOC_SHARDS; i++)
        s->low_ms[i] = INT64_MIN;
    while ((row = toc_my_fetch(conn, 1, &lens)) != NULL) {
        uint64_t shard = toc_field_u64(row, lens, 0);
        if (toc_field_u64(row, lens, 1) == TOC_SHARD_MOVING)
            return toc_error_set(reterr, TOC_UNAVAILABLE, "mysql", 0,
                                 "shard %u is being moved", (unsigned)shard);
        if (shard < TOC_SHARDS)
            s->low_ms[shard] = toc_field_i64(row, lens, 2);
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->low_ms[toc_submit_shard(&s->entries[i])] == INT64_MIN)
            return toc_error_set(reterr, TOC_PRECONDITION, "mysql", 0,
                                 "shard_owner has no shard %u: migrate first",
                                 toc_submit_shard(&s->entries[i]));
    return TOC_OK;
}

/* Slots behind their mark (a clock a minute slow, a long freeze) are raised
 * above it. The lock is held, so the mark stays where it is. */
static void
raise_slots(struct toc_submitting *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct toc_submit_entry *e = &s->entries[i];
        int64_t low_ms = s->low_ms[toc_submit_shard(e)];
        struct toc_task *task = e->item->task;
        if (toc_slot_is_parked(task->slot_ms) || task->slot_ms > low_ms)
            continue;
        task->slot_ms = low_ms + 1;
        e->raised = true;
    }
}

static bool
all_keys_new(const struct toc_my_conn *conn, size_t n)
{
    uint64_t inserted = 0;

    for (size_t i = 2; i < conn->n_replies; i++)
        inserted += conn->replies[i].affected;
    return inserted == n;
}

/* ---- all in one packet
 * --------------------------------------------------------- */

/* So many submits go in two packets after one whose keys were not all new:
 * where submits are repeated often, trying in one is mostly in vain. */
#define TRUST_AFTER 8

static bool
trusted(struct toc_store_mysql *store)
{
    unsigned left =
        atomic_load_explicit(&store->submits_in_two, memory_order_relaxed);

    /* Not exact when two threads meet here, and need not be. */
    if (left > 0)
        atomic_store_explicit(&store->submits_in_two, left - 1,
                              memory_order_relaxed);
    return left == 0;
}

static bool
goes_at_once(struct toc_my_conn *conn, const struct toc_submitting *s)
{
    const size_t key_size = 160; /* and its share of the rest */

    if (conn->again->unknown || s->n_packets != 1 ||
        s->packets[0].len + s->n * key_size > conn->packet_max - 64 * 1024)
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].given)
            return false;
    return trusted(conn->store);
}

/* The shared lock on the marks; fails the packet unless every slot is above its
 * mark and no shard is being moved. */
static void
lock_and_guard_marks(struct toc_my_conn *conn, const struct toc_submitting *s)
{
    int64_t first_ms[TOC_SHARDS]; /* the earliest slot that is not parked */
    struct toc_buf *sql = toc_my_next(conn);
    size_t marks = 0;

    memset(first_ms, 0, sizeof first_ms);
    for (size_t i = 0; i < s->n; i++) {
        int64_t *first = &first_ms[toc_submit_shard(&s->entries[i])];
        int64_t slot_ms = s->entries[i].item->task->slot_ms;
        marks += *first == 0 ? 1 : 0;
        if (*first == 0)
            *first = INT64_MAX;
        if (!toc_slot_is_parked(slot_ms) && slot_ms < *first)
            *first = slot_ms;
    }
    toc_buf_printf(sql,
                   "SELECT IF(COUNT(*)=%zu,1,(SELECT 1 UNION SELECT 2)) FROM "
                   "shard_owner WHERE state<>%d AND (",
                   marks, TOC_SHARD_MOVING);
    for (unsigned shard = 0, seen = 0; shard < TOC_SHARDS; shard++)
        if (first_ms[shard] != 0)
            toc_buf_printf(sql, "%s(shard_id=%u AND low_ms<%lld)",
                           seen++ > 0 ? " OR " : "", shard,
                           (long long)first_ms[shard]);
    toc_buf_text(sql, ")" TOC_MY_SHARED);
}

static void
settle_written(struct toc_submitting *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].plan != TOC_SUBMIT_PLAN_DECIDED)
            s->entries[i].item->result = s->entries[i].sent_result;
}

/* *ret_broken: nothing is written, it must go in two packets. */
static enum toc_status
submit_at_once(struct toc_my_conn *conn, struct toc_submitting *s,
               bool *ret_broken, struct toc_error *reterr)
{
    enum toc_status st;

    for (size_t i = 0; i < s->n; i++)
        s->entries[i].sent_result = TOC_SUBMIT_CREATED;
    toc_my_begin(conn);
    toc_my_add(conn, "START TRANSACTION");
    lock_and_guard_marks(conn, s);
    insert_keys(conn, s, true);
    toc_buf_add(toc_my_next(conn), s->packets[0].data, s->packets[0].len);
    toc_my_commit(conn);
    st = toc_my_run(conn, reterr);
    *ret_broken = st != TOC_OK && conn->fault == TOC_MY_GUARD;
    if (st == TOC_OK)
        settle_written(s);
    if (!*ret_broken)
        return st;
    atomic_store_explicit(&conn->store->submits_in_two, TRUST_AFTER,
                          memory_order_relaxed);
    toc_my_rollback(conn);
    *ret_broken = conn->fault == TOC_MY_FINE;
    return st;
}

/* ---- in two
 * -------------------------------------------------------------------- */

static enum toc_status
submit_in_two(struct toc_my_conn *conn, struct toc_submitting *s,
              struct toc_error *reterr)
{
    enum toc_status st;

    toc_my_begin(conn);
    toc_my_add(conn, "START TRANSACTION");
    lock_marks(conn, s);
    toc_my_hold(conn);
    insert_keys(conn, s, false);
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        st = take_marks(conn, s, reterr);
    if (st != TOC_OK)
        return st;
    raise_slots(s);
    st = toc_submit_decide(conn, s, all_keys_new(conn, s->n), reterr);
    if (st == TOC_OK)
        st = toc_submit_write(conn, s, reterr);
    if (st == TOC_OK)
        settle_written(s);
    return st;
}

static enum toc_status
submit_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct toc_submitting *s = arg;

    for (size_t i = 0; i < s->n; i++)
        place(&s->entries[i], s->now_ms);
    /* Before anything is locked: megabytes of hex take their time. */
    toc_submit_pack(s, conn->packet_max);
    if (goes_at_once(conn, s)) {
        bool broken = false;
        enum toc_status st = submit_at_once(conn, s, &broken, reterr);
        if (!broken)
            return st;
    }
    return submit_in_two(conn, s, reterr);
}

/* ---- rounds
 * --------------------------------------------------------------------- */

static int
cmp_entry(const void *a, const void *b)
{
    const struct toc_submit_entry *x = a, *y = b;
    int order = memcmp(&x->item->task->key_hash, &y->item->task->key_hash,
                       sizeof x->item->task->key_hash);

    if (order != 0)
        return order;
    return (x->order > y->order) - (x->order < y->order);
}

static bool
same_key(const struct toc_submit_entry *a, const struct toc_submit_entry *b)
{
    return memcmp(&a->item->task->key_hash, &b->item->task->key_hash,
                  sizeof a->item->task->key_hash) == 0;
}

static bool
equal_to(const struct toc_task *a, const struct toc_task *b)
{
    return toc_str_eq(a->biz_type, b->biz_type) &&
           toc_str_eq(a->biz_id, b->biz_id) && toc_str_eq(a->name, b->name);
}

/* Compares an entry with the one of the same key that went ahead; false when
 * it must go in a round of its own. */
static bool
decide_after(struct toc_submit_entry *e, const struct toc_submit_entry *first)
{
    const struct toc_submit *ahead = first->item;
    bool stands = ahead->result == TOC_SUBMIT_OTHER ||
                  ahead->result == TOC_SUBMIT_TOO_LATE;
    const uint8_t *content = stands ? first->old.content : ahead->content;
    bool same = memcmp(content, e->item->content, 8) == 0 &&
                equal_to(e->item->task, ahead->task);

    if (!same && e->item->on_conflict == TOC_ON_CONFLICT_REPLACE)
        return false;
    e->item->result = same ? TOC_SUBMIT_SAME : TOC_SUBMIT_OTHER;
    e->item->stored = ahead->result == TOC_SUBMIT_CREATED ||
                              ahead->result == TOC_SUBMIT_REPLACED
                          ? toc_task_ref_of(ahead->task)
                          : ahead->stored;
    return true;
}

/* Copies the first waiting entry of each key into round; returns how many. */
static size_t
pick_round(struct toc_submit_entry *all, size_t n,
           struct toc_submit_entry *round)
{
    size_t picked = 0;

    for (size_t i = 0; i < n; i++)
        if (all[i].waiting &&
            (picked == 0 || !same_key(&round[picked - 1], &all[i])))
            round[picked++] = all[i];
    return picked;
}

static void
settle_round(struct toc_submit_entry *all, size_t n,
             const struct toc_submit_entry *round, size_t picked)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        while (at < picked && cmp_entry(&round[at], &all[i]) < 0 &&
               !same_key(&round[at], &all[i]))
            at++;
        if (!all[i].waiting)
            continue;
        TOC_ASSERT(at < picked);
        if (all[i].item == round[at].item || decide_after(&all[i], &round[at]))
            all[i].waiting = false;
    }
}

enum toc_status
toc_my_submit(void *self, struct toc_submit **items, size_t n, int64_t now_ms,
              struct toc_error *reterr)
{
    TOC_AUTO_FREE struct toc_submit_entry *all =
        TOC_NEW_ARRAY(struct toc_submit_entry, n);
    TOC_AUTO_FREE struct toc_submit_entry *round =
        TOC_NEW_ARRAY(struct toc_submit_entry, n);
    TOC_AUTO_FREE struct toc_sql_row *rows =
        TOC_NEW_ARRAY(struct toc_sql_row, n);
    TOC_AUTO_FREE struct toc_submitting *s = TOC_NEW(struct toc_submitting);
    size_t picked;

    for (size_t i = 0; i < n; i++)
        all[i] =
            (struct toc_submit_entry){.item = items[i],
                                      .order = i,
                                      .given = !id_is_zero(&items[i]->task->id),
                                      .waiting = true};
    qsort(all, n, sizeof *all, cmp_entry);
    while ((picked = pick_round(all, n, round)) > 0) {
        enum toc_status st;
        *s = (struct toc_submitting){
            .entries = round, .rows = rows, .n = picked, .now_ms = now_ms};
        for (size_t i = 0; i < picked; i++)
            round[i].sent_result = TOC_SUBMIT_CREATED;
        st = toc_my_transact(self, submit_body, s, now_ms, reterr);
        toc_submit_drop_packets(s);
        toc_free(s->packets);
        if (st != TOC_OK)
            return st;
        settle_round(all, n, round, picked);
    }
    return TOC_OK;
}
