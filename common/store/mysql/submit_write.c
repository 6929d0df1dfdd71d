/*
 * Submit, its writing: keys that are taken over with what they held, rows,
 * COMMIT.
 */
#include "common/store/mysql/submit.h"

#include "common/store/mysql/log.h"
#include "common/store/mysql/row.h"

#include <string.h>

/* Cancels the old task; parked, it moves to now (see command.c). */
static void
cancel_old(struct toc_my_conn *conn, const struct toc_submitting *s,
           struct toc_submit_entry *e)
{
    struct toc_buf *sql = toc_my_next(conn);
    struct toc_submit_holder *old = &e->old;

    old->ended_slot_ms = old->ref.slot_ms;
    toc_buf_printf(sql,
                   "UPDATE task_info SET version=version+1,status=%d,"
                   "ended_ms=%lld",
                   TOC_STATE_CANCELLED, (long long)s->now_ms);
    if (toc_slot_is_parked(old->ref.slot_ms)) {
        old->ended_slot_ms =
            toc_sql_slot_value(s->now_ms, s->low_ms[toc_submit_shard(e)]);
        toc_buf_printf(sql, ",slot_ms=%lld", (long long)old->ended_slot_ms);
    }
    toc_buf_text(sql, " WHERE ");
    toc_sql_where_ref(sql, "", &old->ref, TOC_SQL_VERSION);
    toc_buf_printf(sql, " AND status=%d", (int)old->state);
    toc_my_guard_rows(conn, 1);
}

static void
take_key(struct toc_my_conn *conn, const struct toc_submit_entry *e)
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
keep_history(struct toc_my_conn *conn, const struct toc_submit_entry *e)
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
log_cancel(struct toc_my_conn *conn, const struct toc_submit_entry *e,
           int64_t now_ms)
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

/* An id tells where its task was first stored: one that is new, and was raised
 * above the mark, is made anew. One that may be stored already stays. */
static void
raise_id(const struct toc_my_conn *conn, struct toc_submit_entry *e)
{
    struct toc_task *task = e->item->task;
    struct toc_task_id id = toc_task_id_make(task->key_hash, task->slot_ms, 0);

    e->key_id = task->id;
    if (!e->raised || e->plan == TOC_SUBMIT_PLAN_DECIDED || e->given ||
        conn->again->unknown)
        return;
    memcpy(id.b + 12, task->id.b + 12, 4); /* the random part */
    task->id = id;
}

/* The key was inserted before the mark was known. */
static void
raise_key(struct toc_my_conn *conn, const struct toc_submit_entry *e)
{
    const struct toc_task *task = e->item->task;
    struct toc_buf *sql = toc_my_next(conn);

    toc_buf_printf(sql, "UPDATE task_key SET slot_ms=%lld,task_id=",
                   (long long)task->slot_ms);
    toc_sql_id(sql, task->id);
    toc_buf_text(sql, " WHERE key_hash=");
    toc_sql_hash(sql, task->key_hash);
    toc_buf_text(sql, " AND task_id=");
    toc_sql_id(sql, e->key_id);
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
write_takeovers(struct toc_my_conn *conn, const struct toc_submitting *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct toc_submit_entry *e = &s->entries[i];
        if (e->has_past)
            remove_key(conn, e->item->task);
        if (e->plan == TOC_SUBMIT_PLAN_NEW && e->raised)
            raise_key(conn, e);
        if (e->plan != TOC_SUBMIT_PLAN_TAKE &&
            e->plan != TOC_SUBMIT_PLAN_REPLACE)
            continue;
        e->old.ended_slot_ms = e->old.ref.slot_ms;
        if (e->plan == TOC_SUBMIT_PLAN_REPLACE)
            cancel_old(conn, s, e);
        take_key(conn, e);
        if (e->old.has_row)
            keep_history(conn, e);
        if (e->plan == TOC_SUBMIT_PLAN_REPLACE)
            log_cancel(conn, e, s->now_ms);
    }
}

static size_t
sorted_rows(const struct toc_submitting *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].plan != TOC_SUBMIT_PLAN_DECIDED)
            s->rows[n++] = (struct toc_sql_row){
                .ref = toc_task_ref_of(s->entries[i].item->task), .item = i};
    toc_sql_sort_rows(s->rows, n);
    return n;
}

static struct toc_buf *
new_packet(struct toc_submitting *s)
{
    if (s->n_packets == s->cap_packets) {
        s->cap_packets = s->cap_packets * 2 + 4;
        s->packets =
            toc_realloc(s->packets, s->cap_packets * sizeof *s->packets);
    }
    s->packets[s->n_packets] = (struct toc_buf){0};
    return &s->packets[s->n_packets++];
}

void
toc_submit_drop_packets(struct toc_submitting *s)
{
    for (size_t i = 0; i < s->n_packets; i++)
        toc_buf_done(&s->packets[i]);
    s->n_packets = 0;
}

void
toc_submit_pack(struct toc_submitting *s, size_t packet_max)
{
    size_t room = packet_max - 64 * 1024;
    size_t n = sorted_rows(s), in_statement = 0;
    struct toc_buf *sql = NULL;

    toc_submit_drop_packets(s);
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
send_packets(struct toc_my_conn *conn, struct toc_submitting *s,
             struct toc_error *reterr)
{
    enum toc_status st = TOC_OK;

    for (size_t i = 0; st == TOC_OK && i < s->n_packets; i++) {
        struct toc_buf own = conn->sql;
        toc_my_begin(conn);
        conn->sql = s->packets[i];
        if (i + 1 == s->n_packets) {
            toc_my_commit(conn);
            toc_my_release(conn);
        }
        st = toc_my_run(conn, reterr);
        s->packets[i] = conn->sql;
        conn->sql = own;
    }
    return st;
}

/* Is everything still as it was packed? */
static bool
as_packed(const struct toc_submitting *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].plan != TOC_SUBMIT_PLAN_NEW || s->entries[i].raised)
            return false;
    return true;
}

enum toc_status
toc_submit_write(struct toc_my_conn *conn, struct toc_submitting *s,
                 struct toc_error *reterr)
{
    enum toc_status st = TOC_OK;

    toc_my_begin(conn);
    if (!as_packed(s)) {
        for (size_t i = 0; i < s->n; i++)
            raise_id(conn, &s->entries[i]);
        toc_submit_pack(s, conn->packet_max);
        write_takeovers(conn, s);
    }
    if (s->n_packets == 0) {
        toc_my_add(conn, "ROLLBACK");
        toc_my_release(conn);
    }
    if (conn->sql.len > 0)
        st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        st = send_packets(conn, s, reterr);
    return st;
}
