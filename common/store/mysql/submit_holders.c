/*
 * Submit, between its packets: what the keys hold that were taken, and whether
 * a task that is submitted again was stored before.
 */
#include "common/store/mysql/submit.h"

#include "common/base/log.h"
#include "common/store/mysql/row.h"

#include <string.h>

/* ---- keys that were taken
 * ------------------------------------------------------ */

static void
select_holders(struct toc_my_conn *conn, const struct toc_submitting *s)
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

static struct toc_submit_entry *
entry_of(const struct toc_submitting *s, const struct toc_key_hash *hash)
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
decided(struct toc_submit_entry *e, enum toc_submit_result result)
{
    e->plan = TOC_SUBMIT_PLAN_DECIDED;
    e->item->result = result;
    e->item->stored = e->old.ref;
}

/* The key is ours: inserted just now, or by an earlier try. */
static void
decide_own(struct toc_submit_entry *e, bool has_row)
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
decide_live(struct toc_submit_entry *e)
{
    if (e->item->on_conflict != TOC_ON_CONFLICT_REPLACE)
        decided(e, TOC_SUBMIT_OTHER);
    else if (e->old.state == TOC_STATE_EXECUTING)
        decided(e, TOC_SUBMIT_TOO_LATE);
    else
        e->plan = TOC_SUBMIT_PLAN_REPLACE;
}

static void
decide(struct toc_submit_entry *e, MYSQL_ROW row, const unsigned long *lens,
       int64_t now_ms)
{
    int64_t ended_ms = toc_field_i64(row, lens, 7);
    bool ended = toc_state_ended(e->old.state);

    if (!e->old.has_row) {
        e->plan = TOC_SUBMIT_PLAN_TAKE; /* its day is gone */
        e->sent_result = TOC_SUBMIT_CREATED;
    } else if (!same_texts(e->item->task, row, lens)) {
        TOC_LOG(DEBUG, "store.collision", F_MSG("two keys have one hash"),
                F_SPAN("biz_type", e->item->task->biz_type),
                F_SPAN("biz_id", e->item->task->biz_id));
        decided(e, TOC_SUBMIT_OTHER);
    } else if (ended && now_ms - ended_ms >= e->item->key_window_ms) {
        e->plan = TOC_SUBMIT_PLAN_TAKE;
        e->sent_result = TOC_SUBMIT_CREATED;
    } else if (memcmp(e->old.content, e->item->content, 8) == 0) {
        decided(e, TOC_SUBMIT_SAME);
    } else if (ended && e->item->on_conflict == TOC_ON_CONFLICT_REPLACE) {
        e->plan = TOC_SUBMIT_PLAN_TAKE;
        e->sent_result = TOC_SUBMIT_REPLACED;
    } else {
        decide_live(e);
        if (e->plan == TOC_SUBMIT_PLAN_REPLACE)
            e->sent_result = TOC_SUBMIT_REPLACED;
    }
}

static enum toc_status
take_holder(struct toc_submitting *s, MYSQL_ROW row, const unsigned long *lens,
            struct toc_error *reterr)
{
    struct toc_key_hash hash;
    struct toc_task_id id;
    struct toc_submit_entry *e = NULL;
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
read_holders(struct toc_my_conn *conn, struct toc_submitting *s,
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
sent_before(const struct toc_my_conn *conn, const struct toc_submit_entry *e)
{
    return e->given || conn->again->unknown;
}

static void
select_past(struct toc_my_conn *conn, const struct toc_submitting *s)
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
take_past(struct toc_submitting *s, MYSQL_ROW row, const unsigned long *lens)
{
    struct toc_key_hash hash;
    struct toc_task_id id;
    struct toc_submit_entry *e = NULL;

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
read_past(struct toc_my_conn *conn, struct toc_submitting *s,
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

enum toc_status
toc_submit_decide(struct toc_my_conn *conn, struct toc_submitting *s,
                  bool all_new, struct toc_error *reterr)
{
    enum toc_status st = read_past(conn, s, reterr);

    return st == TOC_OK && !all_new ? read_holders(conn, s, reterr) : st;
}
