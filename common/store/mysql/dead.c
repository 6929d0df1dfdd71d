/*
 * Dead letters: full copies, so that they can be looked at and redriven when
 * their day is long gone.
 */
#include "common/store/mysql/find.h"

#include "common/base/rng.h"
#include "common/store/mysql/log.h"
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

#include <string.h>

#define EXAMINED_MAX 5000

/* ---- listing
 * ------------------------------------------------------------------- */

struct listing {
    const struct toc_dead_filter *filter;
    size_t max;
    struct toc_cursor cursor;
    struct toc_arena *arena;
    struct toc_dead *dead;
    size_t n;
    size_t seen; /* rows of the page, and the last of them */
    struct toc_cursor last;
};

static bool
has_time(const struct toc_dead_filter *f)
{
    return f->dead_from_ms != 0 || f->dead_to_ms != 0;
}

/* What an index serves: the cursor, the time, the business id. */
static void
where_indexed(struct toc_buf *sql, const struct listing *l)
{
    const struct toc_cursor *c = &l->cursor;
    const struct toc_dead_filter *f = l->filter;

    toc_buf_text(sql, " WHERE 1=1");
    if (c->set) {
        toc_buf_printf(sql, " AND dead_ms<=%lld AND (dead_ms<%lld OR task_id<",
                       (long long)c->slot_ms, (long long)c->slot_ms);
        toc_sql_id(sql, c->id);
        toc_buf_char(sql, ')');
    }
    if (has_time(f))
        toc_buf_printf(sql, " AND dead_ms>=%lld AND dead_ms<%lld",
                       (long long)f->dead_from_ms, (long long)f->dead_to_ms);
    if (f->biz_id.len > 0) {
        toc_buf_text(sql, " AND biz_id=");
        toc_sql_bytes(sql, f->biz_id);
    }
}

static void
where_rest(struct toc_buf *sql, const struct toc_dead_filter *f)
{
    if (f->biz_type.len > 0) {
        toc_buf_text(sql, " AND biz_type=");
        toc_sql_bytes(sql, f->biz_type);
    }
    if (f->reason.len > 0) {
        toc_buf_text(sql, " AND reason=");
        toc_sql_bytes(sql, f->reason);
    }
}

/* As in list.c: where the page ends is read first. */
static enum toc_status
read_end(struct toc_my_conn *conn, const struct listing *l,
         struct toc_cursor *end, struct toc_error *reterr)
{
    const struct toc_dead_filter *f = l->filter;
    size_t examined =
        f->biz_type.len > 0 || f->reason.len > 0 ? EXAMINED_MAX : l->max;
    struct toc_buf *sql = toc_my_begin(conn);
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_text(sql, "SELECT dead_ms,task_id FROM dead_task");
    where_indexed(sql, l);
    toc_buf_printf(sql,
                   " ORDER BY dead_ms DESC,task_id DESC LIMIT 1 OFFSET %zu",
                   examined - 1);
    st = toc_my_run(conn, reterr);
    *end = (struct toc_cursor){.set = false};
    if (st != TOC_OK || (row = toc_my_fetch(conn, 0, &lens)) == NULL)
        return st;
    end->set = toc_field_bytes(row, lens, 1, end->id.b, sizeof end->id.b);
    end->slot_ms = toc_field_i64(row, lens, 0);
    return TOC_OK;
}

static void
where_until(struct toc_buf *sql, const struct toc_cursor *end)
{
    if (!end->set)
        return;
    toc_buf_printf(sql, " AND dead_ms>=%lld AND (dead_ms>%lld OR task_id>=",
                   (long long)end->slot_ms, (long long)end->slot_ms);
    toc_sql_id(sql, end->id);
    toc_buf_char(sql, ')');
}

static enum toc_status
read_page(struct toc_my_conn *conn, struct listing *l,
          const struct toc_cursor *end, struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_text(sql, "SELECT ");
    toc_row_select(sql, "", TOC_ROW_HINT);
    toc_buf_text(sql, ",dead_ms,reason FROM dead_task");
    where_indexed(sql, l);
    where_until(sql, end);
    where_rest(sql, l->filter);
    toc_buf_printf(sql, " ORDER BY dead_ms DESC,task_id DESC LIMIT %zu",
                   l->max);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    l->n = 0;
    l->dead = toc_arena_calloc(
        l->arena, (size_t)mysql_num_rows(conn->replies[0].rows) + 1,
        sizeof *l->dead);
    l->seen = 0;
    while ((row = toc_my_fetch(conn, 0, &lens)) != NULL) {
        struct toc_dead *dead = &l->dead[l->n];
        struct toc_error bad = {0};
        l->seen++;
        l->last.set =
            toc_field_bytes(row, lens, 2, l->last.id.b, sizeof l->last.id.b);
        l->last.slot_ms = toc_field_i64(row, lens, TOC_ROW_COLUMNS);
        if (toc_row_decode(row, lens, l->arena, &dead->task, &bad) != TOC_OK) {
            toc_row_bad(&conn->store->port, row, lens, &bad);
            continue;
        }
        l->n++;
        dead->dead_ms = toc_field_i64(row, lens, TOC_ROW_COLUMNS);
        dead->reason = toc_arena_str(
            l->arena, toc_field_str(row, lens, TOC_ROW_COLUMNS + 1));
    }
    return TOC_OK;
}

static enum toc_status
page_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct listing *l = arg;
    struct toc_cursor end;
    enum toc_status st = read_end(conn, l, &end, reterr);

    if (st == TOC_OK)
        st = read_page(conn, l, &end, reterr);
    if (st != TOC_OK)
        return st;
    l->cursor = l->seen == l->max ? l->last : end;
    return TOC_OK;
}

enum toc_status
toc_my_list_dead(void *self, const struct toc_dead_filter *filter, size_t max,
                 struct toc_cursor *cursor, struct toc_arena *arena,
                 struct toc_dead **ret_dead, size_t *ret_n,
                 struct toc_error *reterr)
{
    struct listing l = {.filter = filter,
                        .max = max < EXAMINED_MAX ? max : EXAMINED_MAX,
                        .cursor = *cursor,
                        .arena = arena};
    enum toc_status st = toc_my_transact(self, page_body, &l, 0, reterr);

    if (st != TOC_OK)
        return st;
    *cursor = l.cursor;
    *ret_dead = l.dead;
    *ret_n = l.n;
    return TOC_OK;
}

/* ---- redriving
 * ------------------------------------------------------------------
 *
 * The row is where it died, or its day is gone and it is made anew from the
 * copy; its key is its own still, or in the history, or another task's.
 */

struct redriving {
    struct toc_task_id id;
    int64_t now_ms;
    struct toc_str who, why;
    uint8_t trace[16];
    bool sent;
    struct toc_task_ref sent_at;
    enum toc_redrive_result result;
    /* Read. */
    struct toc_task dead;
    bool has_row, has_key;
};

static enum toc_status
read_dead(struct toc_my_conn *conn, struct redriving *r,
          struct toc_arena *arena, bool *ret_there, struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_text(sql, "SELECT ");
    toc_row_select(sql, "", TOC_ROW_HINT);
    toc_buf_text(sql, " FROM dead_task WHERE task_id=");
    toc_sql_id(sql, r->id);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    row = toc_my_fetch(conn, 0, &lens);
    *ret_there = row != NULL;
    if (row == NULL)
        return TOC_OK;
    return toc_row_decode(row, lens, arena, &r->dead, reterr);
}

/* *ret_taken: the key holds another task. */
static enum toc_status
read_places(struct toc_my_conn *conn, struct redriving *r, bool *ret_taken,
            struct toc_error *reterr)
{
    struct toc_task_ref at = toc_task_ref_of(&r->dead);
    struct toc_buf *sql = toc_my_begin(conn);
    const unsigned long *lens;
    struct toc_task_id holder;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_text(sql, "SELECT task_id FROM task_key WHERE key_hash=");
    toc_sql_hash(sql, r->dead.key_hash);
    sql = toc_my_next(conn);
    toc_buf_text(sql, "SELECT 1 FROM task_info WHERE ");
    toc_sql_where_ref(sql, "", &at, TOC_SQL_VERSION);
    toc_buf_printf(sql, " AND status=%d", TOC_STATE_DEAD);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    row = toc_my_fetch(conn, 0, &lens);
    r->has_key = row != NULL;
    *ret_taken = row != NULL &&
                 toc_field_bytes(row, lens, 0, holder.b, sizeof holder.b) &&
                 toc_task_id_cmp(holder, r->id) != 0;
    r->has_row = toc_my_number(conn, 1, 0) == 1;
    return TOC_OK;
}

static void
write_row(struct toc_my_conn *conn, const struct redriving *r)
{
    struct toc_task_ref at = toc_task_ref_of(&r->dead);
    struct toc_buf *sql = toc_my_next(conn);
    uint8_t flags = r->dead.flags & (uint8_t)~TOC_FLAG_CANCEL;

    if (!r->has_row) {
        toc_buf_text(sql, "INSERT INTO task_info (");
        toc_row_names(sql);
        toc_buf_text(sql, ") SELECT ");
        toc_row_names(sql);
        toc_buf_text(sql, " FROM dead_task WHERE task_id=");
        toc_sql_id(sql, r->id);
        toc_my_guard_rows(conn, 1);
        sql = toc_my_next(conn);
    }
    toc_buf_printf(sql,
                   "UPDATE task_info SET version=version+1,status=%d,flags=%u,"
                   "attempt=0,claims=0,lock_token=0,due_ms=%lld,slot_ms=",
                   TOC_STATE_RETRY, flags, (long long)r->now_ms);
    toc_sql_slot(sql, r->now_ms);
    toc_buf_text(sql, " WHERE ");
    toc_sql_where_ref(sql, "", &at, TOC_SQL_VERSION);
    toc_buf_printf(sql, " AND status=%d", TOC_STATE_DEAD);
    toc_my_guard_rows(conn, 1);
}

/* The content of a freed key is not known any more: it compares with none. */
static void
write_key(struct toc_my_conn *conn, const struct redriving *r)
{
    struct toc_buf *sql = toc_my_next(conn);

    if (r->has_key) {
        toc_buf_text(sql, "UPDATE task_key SET slot_ms=");
        toc_sql_slot(sql, r->now_ms);
        toc_buf_text(sql, " WHERE key_hash=");
        toc_sql_hash(sql, r->dead.key_hash);
        toc_buf_text(sql, " AND task_id=");
        toc_sql_id(sql, r->id);
        toc_my_guard_rows(conn, 1);
    } else {
        toc_buf_text(sql, "INSERT INTO task_key "
                          "(key_hash,task_id,slice,slot_ms,content) VALUES (");
        toc_sql_hash(sql, r->dead.key_hash);
        toc_buf_char(sql, ',');
        toc_sql_id(sql, r->id);
        toc_buf_printf(sql, ",%u,", r->dead.slice);
        toc_sql_slot(sql, r->now_ms);
        toc_buf_text(sql, ",x'0000000000000000')");
    }
    sql = toc_my_next(conn);
    toc_buf_text(sql, "DELETE FROM key_history WHERE key_hash=");
    toc_sql_hash(sql, r->dead.key_hash);
    toc_buf_printf(
        sql, " AND slot_ms=%lld AND task_id=", (long long)r->dead.slot_ms);
    toc_sql_id(sql, r->id);
}

/* The attempt that it died of is superseded now. It bears the version that the
 * death made, and so does the log row of a lost lock, which is there already.
 */
static void
log_attempt(struct toc_my_conn *conn, const struct redriving *r)
{
    struct toc_log_row log = {.at = toc_task_ref_of(&r->dead),
                              .kind = TOC_LOG_KIND_ATTEMPT,
                              .result = r->dead.result,
                              .fire = r->dead.fire,
                              .attempt = (uint16_t)(r->dead.attempt + 1),
                              .next_slot_ms = r->dead.slot_ms,
                              .sched_node = r->dead.sched_node,
                              .exec_node = r->dead.exec_node,
                              .claimed_ms = r->dead.claimed_ms,
                              .called_ms = r->dead.called_ms,
                              .at_ms = r->dead.ended_ms,
                              .detail = r->dead.error};

    if (r->dead.result == TOC_RESULT_LOST)
        return;
    toc_log_insert(toc_my_next(conn));
    toc_log_values(&conn->sql, &log);
}

static void
write_rest(struct toc_my_conn *conn, const struct redriving *r)
{
    struct toc_log_row log = {.at = toc_task_ref_of(&r->dead),
                              .kind = TOC_LOG_KIND_REDRIVE,
                              .result = r->dead.result,
                              .fire = r->dead.fire,
                              .next_slot_ms = r->now_ms,
                              .moves = true,
                              .sched_node = r->dead.sched_node,
                              .exec_node = r->dead.exec_node,
                              .claimed_ms = r->dead.claimed_ms,
                              .called_ms = r->dead.called_ms,
                              .at_ms = r->now_ms,
                              .who = r->who,
                              .detail = r->why};
    struct toc_buf *sql = toc_my_next(conn);

    toc_buf_text(sql, "DELETE FROM dead_task WHERE task_id=");
    toc_sql_id(sql, r->id);
    toc_buf_printf(sql, " AND version=%lu", (unsigned long)r->dead.version);
    toc_my_guard_rows(conn, 1);
    log_attempt(conn, r);
    log.at.version = r->dead.version + 1;
    memcpy(log.trace, r->trace, sizeof log.trace);
    toc_log_insert(toc_my_next(conn));
    toc_log_values(&conn->sql, &log);
}

static enum toc_status
was_ours(struct toc_my_conn *conn, struct redriving *r,
         struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    enum toc_status st;

    toc_buf_text(sql, "SELECT COUNT(*) FROM task_log WHERE ");
    toc_sql_where_ref(sql, "", &r->sent_at, 0);
    toc_buf_text(sql, " AND trace=");
    toc_sql_bytes(sql,
                  (struct toc_str){(const char *)r->trace, sizeof r->trace});
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK && toc_my_number(conn, 0, 0) == 1)
        r->result = TOC_REDRIVE_APPLIED;
    return st;
}

static enum toc_status
redrive_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    struct redriving *r = arg;
    struct toc_sql_row row;
    bool there = false, taken = false;
    enum toc_status st = read_dead(conn, r, &arena, &there, reterr);

    r->result = TOC_REDRIVE_NOT_FOUND;
    if (st != TOC_OK)
        return st;
    if (!there)
        return r->sent && conn->again->unknown ? was_ours(conn, r, reterr)
                                               : TOC_OK;
    st = read_places(conn, r, &taken, reterr);
    if (st != TOC_OK)
        return st;
    r->result = TOC_REDRIVE_KEY_TAKEN;
    if (taken)
        return TOC_OK;
    row = (struct toc_sql_row){.ref = toc_task_ref_of(&r->dead)};
    toc_my_begin(conn);
    toc_my_add(conn, "START TRANSACTION");
    toc_sql_lock_shards(toc_my_next(conn), &row, 1);
    write_row(conn, r);
    write_key(conn, r);
    write_rest(conn, r);
    toc_my_commit(conn);
    r->sent = true;
    r->sent_at = row.ref;
    st = toc_my_run(conn, reterr);
    r->result = TOC_REDRIVE_APPLIED;
    return st;
}

enum toc_status
toc_my_redrive(void *self, struct toc_task_id id, int64_t now_ms,
               struct toc_str who, struct toc_str why,
               enum toc_redrive_result *ret_result, struct toc_error *reterr)
{
    struct redriving r = {.id = id, .now_ms = now_ms, .who = who, .why = why};
    enum toc_status st;

    toc_rng_bytes(r.trace, sizeof r.trace);
    st = toc_my_transact(self, redrive_body, &r, now_ms, reterr);
    if (st == TOC_OK)
        *ret_result = r.result;
    return st;
}
