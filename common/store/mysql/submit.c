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
#include "common/store/mysql/store_mysql_internal.h"

#include "common/base/assert.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/store/mysql/log.h"
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

#include <stdlib.h>
#include <string.h>

enum plan {
    PLAN_NEW,     /* the key was free and is ours: insert the row */
    PLAN_TAKE,    /* take the key over from a task that ended */
    PLAN_REPLACE, /* cancel the task that holds it, take it over */
    PLAN_DECIDED, /* nothing to write */
};

/* The task that holds the key. */
struct holder {
    bool has_row;
    struct toc_task_ref ref;
    enum toc_state state;
    uint32_t fire;
    uint8_t content[8];
    int64_t ended_slot_ms; /* where it is once replaced */
};

struct entry {
    struct toc_submit *item;
    enum plan plan;
    struct holder old;
    size_t order; /* as given */
    bool raised;  /* above its mark, with its key inserted already */
    enum toc_submit_result sent_result;
    bool given;    /* the caller gave the id: it was sent in an earlier call */
    bool has_past; /* stored before, and has lost its key since: decided */
    bool waiting;  /* not decided in an earlier round */
};

struct submitting {
    struct entry *entries; /* one a key, sorted by key */
    struct toc_sql_row *rows;
    size_t n;
    int64_t now_ms;
    int64_t low_ms[TOC_SHARDS];
    struct toc_buf *packets; /* what inserts the rows */
    size_t n_packets, cap_packets;
};

static uint16_t
shard_of(const struct entry *e)
{
    return toc_slice_shard(e->item->task->slice);
}

static bool
id_is_zero(const struct toc_task_id *id)
{
    static const struct toc_task_id zero;

    return memcmp(id, &zero, sizeof zero) == 0;
}

static void
place(struct entry *e, int64_t now_ms)
{
    struct toc_task *task = e->item->task;

    e->plan = PLAN_NEW;
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
lock_marks(struct toc_my_conn *conn, const struct submitting *s)
{
    bool seen[TOC_SHARDS] = {false};
    struct toc_buf *sql = toc_my_next(conn);
    const char *comma = "";

    toc_buf_text(sql, "SELECT shard_id,state,low_ms FROM shard_owner "
                      "WHERE shard_id IN (");
    for (size_t i = 0; i < s->n; i++) {
        uint16_t shard = shard_of(&s->entries[i]);
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
insert_keys(struct toc_my_conn *conn, const struct submitting *s, bool guarded)
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
take_marks(struct toc_my_conn *conn, struct submitting *s,
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
        if (s->low_ms[shard_of(&s->entries[i])] == INT64_MIN)
            return toc_error_set(reterr, TOC_PRECONDITION, "mysql", 0,
                                 "shard_owner has no shard %u: migrate first",
                                 shard_of(&s->entries[i]));
    return TOC_OK;
}

/* Slots behind their mark (a clock a minute slow, a long freeze) are raised
 * above it. The lock is held, so the mark stays where it is. */
static void
raise_slots(struct submitting *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct entry *e = &s->entries[i];
        int64_t low_ms = s->low_ms[shard_of(e)];
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

/* ---- keys that were taken
 * ------------------------------------------------------ */

static void
select_holders(struct toc_my_conn *conn, const struct submitting *s)
{
    struct toc_buf *sql = toc_my_begin(conn);

    toc_buf_text(sql,
                 "SELECT k.key_hash,k.task_id,k.slice,k.slot_ms,k.content,"
                 "t.status,t.version,t.ended_ms,t.fire,t.biz_type,t.biz_id,"
                 "t.name FROM task_key k LEFT JOIN task_info t ON "
                 "t.slice=k.slice AND t.slot_ms=k.slot_ms AND "
                 "t.task_id=k.task_id WHERE k.key_hash IN (");
    for (size_t i = 0; i < s->n; i++) {
        if (i > 0)
            toc_buf_char(sql, ',');
        toc_sql_hash(sql, s->entries[i].item->task->key_hash);
    }
    toc_buf_char(sql, ')');
}

static struct entry *
entry_of(const struct submitting *s, const struct toc_key_hash *hash)
{
    size_t low = 0, high = s->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order =
            memcmp(hash, &s->entries[mid].item->task->key_hash, sizeof *hash);
        if (order == 0)
            return &s->entries[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

static void
decided(struct entry *e, enum toc_submit_result result)
{
    e->plan = PLAN_DECIDED;
    e->item->result = result;
    e->item->stored = e->old.ref;
}

/* The key is ours: inserted just now, or by an earlier try. */
static void
decide_own(struct entry *e, bool has_row)
{
    if (!has_row)
        return;
    e->item->task->slot_ms = e->old.ref.slot_ms;
    decided(e, e->sent_result);
}

static bool
same_texts(const struct toc_task *task, MYSQL_ROW row,
           const unsigned long *lens)
{
    return toc_str_eq(task->biz_type, toc_field_str(row, lens, 9)) &&
           toc_str_eq(task->biz_id, toc_field_str(row, lens, 10)) &&
           toc_str_eq(task->name, toc_field_str(row, lens, 11));
}

static void
decide_live(struct entry *e)
{
    if (e->item->on_conflict != TOC_ON_CONFLICT_REPLACE)
        decided(e, TOC_SUBMIT_OTHER);
    else if (e->old.state == TOC_STATE_EXECUTING)
        decided(e, TOC_SUBMIT_TOO_LATE);
    else
        e->plan = PLAN_REPLACE;
}

static void
decide(struct entry *e, MYSQL_ROW row, const unsigned long *lens,
       int64_t now_ms)
{
    int64_t ended_ms = toc_field_i64(row, lens, 7);
    bool ended = toc_state_ended(e->old.state);

    if (!e->old.has_row) {
        e->plan = PLAN_TAKE; /* its day is gone */
        e->sent_result = TOC_SUBMIT_CREATED;
    } else if (!same_texts(e->item->task, row, lens)) {
        TOC_LOG(DEBUG, "store.collision", F_MSG("two keys have one hash"),
                F_SPAN("biz_type", e->item->task->biz_type),
                F_SPAN("biz_id", e->item->task->biz_id));
        decided(e, TOC_SUBMIT_OTHER);
    } else if (ended && now_ms - ended_ms >= e->item->key_window_ms) {
        e->plan = PLAN_TAKE;
        e->sent_result = TOC_SUBMIT_CREATED;
    } else if (memcmp(e->old.content, e->item->content, 8) == 0) {
        decided(e, TOC_SUBMIT_SAME);
    } else if (ended && e->item->on_conflict == TOC_ON_CONFLICT_REPLACE) {
        e->plan = PLAN_TAKE;
        e->sent_result = TOC_SUBMIT_REPLACED;
    } else {
        decide_live(e);
        if (e->plan == PLAN_REPLACE)
            e->sent_result = TOC_SUBMIT_REPLACED;
    }
}

static enum toc_status
take_holder(struct submitting *s, MYSQL_ROW row, const unsigned long *lens,
            struct toc_error *reterr)
{
    struct toc_key_hash hash;
    struct toc_task_id id;
    struct entry *e = NULL;
    int64_t state = toc_field_i64(row, lens, 5);

    if (toc_field_bytes(row, lens, 0, hash.b, sizeof hash.b))
        e = entry_of(s, &hash);
    if (e == NULL || !toc_field_bytes(row, lens, 1, id.b, sizeof id.b) ||
        !toc_field_bytes(row, lens, 4, e->old.content, 8) ||
        !toc_state_valid(state))
        return toc_error_set(reterr, TOC_DATA_LOSS, "mysql", 0,
                             "a row of task_key makes no sense (status %lld)",
                             (long long)state);
    e->old.has_row = row[5] != NULL;
    e->old.state = (enum toc_state)state;
    e->old.ref =
        (struct toc_task_ref){.slice = (uint16_t)toc_field_u64(row, lens, 2),
                              .slot_ms = toc_field_i64(row, lens, 3),
                              .id = id,
                              .version = (uint32_t)toc_field_u64(row, lens, 6)};
    e->old.fire = (uint32_t)toc_field_u64(row, lens, 8);
    if (e->has_past)
        return TOC_OK;
    if (toc_task_id_cmp(id, e->item->task->id) == 0)
        decide_own(e, e->old.has_row);
    else
        decide(e, row, lens, s->now_ms);
    return TOC_OK;
}

static enum toc_status
read_holders(struct toc_my_conn *conn, struct submitting *s,
             struct toc_error *reterr)
{
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    select_holders(conn, s);
    st = toc_my_run(conn, reterr);
    while (st == TOC_OK && (row = toc_my_fetch(conn, 0, &lens)) != NULL)
        st = take_holder(s, row, lens, reterr);
    return st;
}

/* ---- tasks that had their key and lost it
 * ------------------------------------------------------ */

static bool
sent_before(const struct toc_my_conn *conn, const struct entry *e)
{
    return e->given || conn->again->unknown;
}

static void
select_past(struct toc_my_conn *conn, const struct submitting *s)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf ids = {0};
    struct toc_buf *sql = toc_my_begin(conn);
    const char *comma = "";

    for (size_t i = 0; i < s->n; i++) {
        const struct toc_task *task = s->entries[i].item->task;
        if (!sent_before(conn, &s->entries[i]))
            continue;
        if (ids.len == 0)
            toc_buf_text(sql, "SELECT key_hash,task_id,slot_ms FROM "
                              "key_history WHERE key_hash IN (");
        toc_buf_text(sql, comma);
        toc_sql_hash(sql, task->key_hash);
        toc_buf_text(&ids, comma);
        toc_sql_id(&ids, task->id);
        comma = ",";
    }
    if (ids.len > 0)
        toc_buf_printf(sql, ") AND task_id IN (%s)", ids.data);
}

static void
take_past(struct submitting *s, MYSQL_ROW row, const unsigned long *lens)
{
    struct toc_key_hash hash;
    struct toc_task_id id;
    struct entry *e = NULL;

    if (toc_field_bytes(row, lens, 0, hash.b, sizeof hash.b) &&
        toc_field_bytes(row, lens, 1, id.b, sizeof id.b))
        e = entry_of(s, &hash);
    if (e == NULL || toc_task_id_cmp(id, e->item->task->id) != 0)
        return;
    e->has_past = true;
    e->item->task->slot_ms = toc_field_i64(row, lens, 2);
    decided(e, e->sent_result);
}

/* Tasks that were stored before and have lost their key since: whoever holds
 * the key now came later. */
static enum toc_status
read_past(struct toc_my_conn *conn, struct submitting *s,
          struct toc_error *reterr)
{
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    select_past(conn, s);
    if (conn->sql.len == 0)
        return TOC_OK;
    st = toc_my_run(conn, reterr);
    while (st == TOC_OK && (row = toc_my_fetch(conn, 0, &lens)) != NULL)
        take_past(s, row, lens);
    return st;
}

/* ---- takeovers and rows (packet 2)
 * -------------------------------------------------------------------- */

/* Cancels the old task; parked, it moves to now (see command.c). */
static void
cancel_old(struct toc_my_conn *conn, const struct submitting *s,
           struct entry *e)
{
    struct toc_buf *sql = toc_my_next(conn);
    struct holder *old = &e->old;

    old->ended_slot_ms = old->ref.slot_ms;
    toc_buf_printf(sql,
                   "UPDATE task_info SET version=version+1,status=%d,"
                   "ended_ms=%lld",
                   TOC_STATE_CANCELLED, (long long)s->now_ms);
    if (toc_slot_is_parked(old->ref.slot_ms)) {
        old->ended_slot_ms =
            toc_sql_slot_value(s->now_ms, s->low_ms[shard_of(e)]);
        toc_buf_printf(sql, ",slot_ms=%lld", (long long)old->ended_slot_ms);
    }
    toc_buf_text(sql, " WHERE ");
    toc_sql_where_ref(sql, "", &old->ref, TOC_SQL_VERSION);
    toc_buf_printf(sql, " AND status=%d", (int)old->state);
    toc_my_guard_rows(conn, 1);
}

static void
take_key(struct toc_my_conn *conn, const struct entry *e)
{
    const struct toc_task *task = e->item->task;
    struct toc_buf *sql = toc_my_next(conn);

    toc_buf_text(sql, "UPDATE task_key SET task_id=");
    toc_sql_id(sql, task->id);
    toc_buf_printf(sql, ",slice=%u,slot_ms=%lld,content=", task->slice,
                   (long long)task->slot_ms);
    toc_sql_bytes(sql, (struct toc_str){(const char *)e->item->content, 8});
    toc_buf_text(sql, " WHERE key_hash=");
    toc_sql_hash(sql, task->key_hash);
    toc_buf_text(sql, " AND task_id=");
    toc_sql_id(sql, e->old.ref.id);
    toc_my_guard_rows(conn, 1);
}

static void
keep_history(struct toc_my_conn *conn, const struct entry *e)
{
    struct toc_buf *sql = toc_my_next(conn);

    toc_buf_text(sql, "INSERT IGNORE INTO key_history "
                      "(key_hash,slot_ms,task_id,slice) VALUES (");
    toc_sql_hash(sql, e->item->task->key_hash);
    toc_buf_printf(sql, ",%lld,", (long long)e->old.ended_slot_ms);
    toc_sql_id(sql, e->old.ref.id);
    toc_buf_printf(sql, ",%u)", e->old.ref.slice);
}

static void
log_cancel(struct toc_my_conn *conn, const struct entry *e, int64_t now_ms)
{
    struct toc_log_row row = {.at = e->old.ref,
                              .kind = TOC_LOG_KIND_CANCEL,
                              .fire = e->old.fire,
                              .next_slot_ms = e->old.ended_slot_ms,
                              .at_ms = now_ms,
                              .detail = TOC_STR("replaced by a new submit")};

    row.at.version++;
    toc_log_insert(toc_my_next(conn));
    toc_log_values(&conn->sql, &row);
}

/* The key was inserted before the mark was known. */
static void
raise_key(struct toc_my_conn *conn, const struct toc_task *task)
{
    struct toc_buf *sql = toc_my_next(conn);

    toc_buf_printf(sql, "UPDATE task_key SET slot_ms=%lld WHERE key_hash=",
                   (long long)task->slot_ms);
    toc_sql_hash(sql, task->key_hash);
    toc_buf_text(sql, " AND task_id=");
    toc_sql_id(sql, task->id);
    toc_my_guard_rows(conn, 1);
}

/* Takes back the key that packet 1 may have inserted. */
static void
remove_key(struct toc_my_conn *conn, const struct toc_task *task)
{
    struct toc_buf *sql = toc_my_next(conn);

    toc_buf_text(sql, "DELETE FROM task_key WHERE key_hash=");
    toc_sql_hash(sql, task->key_hash);
    toc_buf_text(sql, " AND task_id=");
    toc_sql_id(sql, task->id);
}

static void
write_takeovers(struct toc_my_conn *conn, const struct submitting *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct entry *e = &s->entries[i];
        if (e->has_past)
            remove_key(conn, e->item->task);
        if (e->plan == PLAN_NEW && e->raised)
            raise_key(conn, e->item->task);
        if (e->plan != PLAN_TAKE && e->plan != PLAN_REPLACE)
            continue;
        e->old.ended_slot_ms = e->old.ref.slot_ms;
        if (e->plan == PLAN_REPLACE)
            cancel_old(conn, s, e);
        take_key(conn, e);
        if (e->old.has_row)
            keep_history(conn, e);
        if (e->plan == PLAN_REPLACE)
            log_cancel(conn, e, s->now_ms);
    }
}

static size_t
sorted_rows(const struct submitting *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].plan != PLAN_DECIDED)
            s->rows[n++] = (struct toc_sql_row){
                .ref = toc_task_ref_of(s->entries[i].item->task), .item = i};
    toc_sql_sort_rows(s->rows, n);
    return n;
}

static struct toc_buf *
new_packet(struct submitting *s)
{
    if (s->n_packets == s->cap_packets) {
        s->cap_packets = s->cap_packets * 2 + 4;
        s->packets =
            toc_realloc(s->packets, s->cap_packets * sizeof *s->packets);
    }
    s->packets[s->n_packets] = (struct toc_buf){0};
    return &s->packets[s->n_packets++];
}

static void
drop_packets(struct submitting *s)
{
    for (size_t i = 0; i < s->n_packets; i++)
        toc_buf_done(&s->packets[i]);
    s->n_packets = 0;
}

/* The statements for the rows to be inserted, in packets that the server
 * takes. */
static void
pack_rows(struct submitting *s, size_t packet_max)
{
    size_t room = packet_max - 64 * 1024;
    size_t n = sorted_rows(s), in_statement = 0;
    struct toc_buf *sql = NULL;

    drop_packets(s);
    for (size_t i = 0; i < n; i++) {
        const struct toc_task *task = s->entries[s->rows[i].item].item->task;
        if (sql == NULL || sql->len + toc_row_size(task) > room) {
            sql = new_packet(s);
            in_statement = 0;
        }
        if (in_statement++ % TOC_MY_ROWS_MAX == 0) {
            toc_buf_text(sql, sql->len > 0 ? ";\n" : "");
            toc_buf_text(sql, "INSERT INTO task_info (");
            toc_row_names(sql);
            toc_buf_text(sql, ") VALUES ");
        } else {
            toc_buf_char(sql, ',');
        }
        toc_row_values(sql, task);
    }
}

static enum toc_status
send_packets(struct toc_my_conn *conn, struct submitting *s,
             struct toc_error *reterr)
{
    enum toc_status st = TOC_OK;

    for (size_t i = 0; st == TOC_OK && i < s->n_packets; i++) {
        struct toc_buf own = conn->sql;
        toc_my_begin(conn);
        conn->sql = s->packets[i];
        if (i + 1 == s->n_packets)
            toc_my_commit(conn);
        st = toc_my_run(conn, reterr);
        s->packets[i] = conn->sql;
        conn->sql = own;
    }
    return st;
}

/* Is everything still as it was packed? */
static bool
as_packed(const struct submitting *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].plan != PLAN_NEW || s->entries[i].raised)
            return false;
    return true;
}

static enum toc_status
write_all(struct toc_my_conn *conn, struct submitting *s,
          struct toc_error *reterr)
{
    enum toc_status st = TOC_OK;

    toc_my_begin(conn);
    if (!as_packed(s)) {
        pack_rows(s, conn->packet_max);
        write_takeovers(conn, s);
    }
    if (s->n_packets == 0)
        toc_my_add(conn, "ROLLBACK");
    if (conn->sql.len > 0)
        st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        st = send_packets(conn, s, reterr);
    return st;
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
goes_at_once(struct toc_my_conn *conn, const struct submitting *s)
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
lock_and_guard_marks(struct toc_my_conn *conn, const struct submitting *s)
{
    int64_t first_ms[TOC_SHARDS]; /* the earliest slot that is not parked */
    struct toc_buf *sql = toc_my_next(conn);
    size_t marks = 0;

    memset(first_ms, 0, sizeof first_ms);
    for (size_t i = 0; i < s->n; i++) {
        int64_t *first = &first_ms[shard_of(&s->entries[i])];
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
settle_written(struct submitting *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].plan != PLAN_DECIDED)
            s->entries[i].item->result = s->entries[i].sent_result;
}

/* *ret_broken: nothing is written, it must go in two packets. */
static enum toc_status
submit_at_once(struct toc_my_conn *conn, struct submitting *s, bool *ret_broken,
               struct toc_error *reterr)
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
submit_in_two(struct toc_my_conn *conn, struct submitting *s,
              struct toc_error *reterr)
{
    enum toc_status st;
    bool all_new;

    toc_my_begin(conn);
    toc_my_add(conn, "START TRANSACTION");
    lock_marks(conn, s);
    insert_keys(conn, s, false);
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        st = take_marks(conn, s, reterr);
    if (st != TOC_OK)
        return st;
    raise_slots(s);
    all_new = all_keys_new(conn, s->n);
    st = read_past(conn, s, reterr);
    if (st == TOC_OK && !all_new)
        st = read_holders(conn, s, reterr);
    if (st == TOC_OK)
        st = write_all(conn, s, reterr);
    if (st == TOC_OK)
        settle_written(s);
    return st;
}

static enum toc_status
submit_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct submitting *s = arg;

    for (size_t i = 0; i < s->n; i++)
        place(&s->entries[i], s->now_ms);
    /* Before anything is locked: megabytes of hex take their time. */
    pack_rows(s, conn->packet_max);
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
    const struct entry *x = a, *y = b;
    int order = memcmp(&x->item->task->key_hash, &y->item->task->key_hash,
                       sizeof x->item->task->key_hash);

    if (order != 0)
        return order;
    return (x->order > y->order) - (x->order < y->order);
}

static bool
same_key(const struct entry *a, const struct entry *b)
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
decide_after(struct entry *e, const struct entry *first)
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
pick_round(struct entry *all, size_t n, struct entry *round)
{
    size_t picked = 0;

    for (size_t i = 0; i < n; i++)
        if (all[i].waiting &&
            (picked == 0 || !same_key(&round[picked - 1], &all[i])))
            round[picked++] = all[i];
    return picked;
}

static void
settle_round(struct entry *all, size_t n, const struct entry *round,
             size_t picked)
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
    TOC_AUTO_FREE struct entry *all = TOC_NEW_ARRAY(struct entry, n);
    TOC_AUTO_FREE struct entry *round = TOC_NEW_ARRAY(struct entry, n);
    TOC_AUTO_FREE struct toc_sql_row *rows =
        TOC_NEW_ARRAY(struct toc_sql_row, n);
    TOC_AUTO_FREE struct submitting *s = TOC_NEW(struct submitting);
    size_t picked;

    for (size_t i = 0; i < n; i++)
        all[i] = (struct entry){.item = items[i],
                                .order = i,
                                .given = !id_is_zero(&items[i]->task->id),
                                .waiting = true};
    qsort(all, n, sizeof *all, cmp_entry);
    while ((picked = pick_round(all, n, round)) > 0) {
        enum toc_status st;
        *s = (struct submitting){
            .entries = round, .rows = rows, .n = picked, .now_ms = now_ms};
        for (size_t i = 0; i < picked; i++)
            round[i].sent_result = TOC_SUBMIT_CREATED;
        st = toc_my_transact(self, submit_body, s, now_ms, reterr);
        drop_packets(s);
        toc_free(s->packets);
        if (st != TOC_OK)
            return st;
        settle_round(all, n, round, picked);
    }
    return TOC_OK;
}
