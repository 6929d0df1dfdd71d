/*
 * Write-back. Results that stay in place (done, skipped, dead) are one UPDATE
 * with a guard: the packet commits only if every row still had its token. A
 * result that moves its row (retry, snooze) or depends on the cancel flag (and
 * giving back) is read first and then compared by version too, so that a cancel
 * noted in between is not missed.
 *
 * When a guard breaks, or an outcome is unknown, all rows are looked at: one
 * that bears our own result is done, one without our token is lost, and the
 * rest is tried again. So a call that is made again finds its own work.
 */
#include "common/store/mysql/store_mysql_internal.h"

#include "common/model/limits.h"
#include "common/store/mysql/log.h"
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

/* Where an item goes; the groups are written in this order. */
enum way {
    WAY_END,  /* stays where it is, ended */
    WAY_MOVE, /* RETRY at a new slot */
    WAY_BACK, /* waits again where it is */
    WAY_DECIDED,
};
#define WAYS 3

/* What was read of a row. */
struct seen {
    bool there;
    enum toc_state state;
    uint64_t token;
    uint32_t version, fire, sched_node, exec_node;
    uint16_t attempt, claims;
    uint8_t flags;
    struct toc_key_hash key_hash;
    int64_t claimed_ms, called_ms, ended_ms;
    enum toc_result result;
};

struct finishing {
    struct toc_finish *items;
    size_t n;
    int64_t now_ms;
    unsigned tries;
    struct toc_sql_row *rows; /* all, sorted; item: place in items */
    /* By item. */
    enum way *way;
    struct seen *seen;
    int64_t *state, *result, *called, *ended, *attempt, *due, *slot;
    struct toc_str *error, *reason;
    /* Scratch for one group. */
    struct toc_sql_row *group;
};

static bool
needs_reading(const struct toc_finish *item)
{
    return item->kind == TOC_FINISH_RETRY || item->kind == TOC_FINISH_SNOOZE ||
           item->kind == TOC_FINISH_GIVE_BACK;
}

static int64_t
end_of(const struct finishing *f, const struct toc_finish *item)
{
    return item->ended_ms > 0 ? item->ended_ms : f->now_ms;
}

/* ---- looking
 * ------------------------------------------------------------------ */

static void
take_seen(struct finishing *f, MYSQL_ROW row, const unsigned long *lens)
{
    struct toc_task_ref ref = {.slice = (uint16_t)toc_field_u64(row, lens, 0),
                               .slot_ms = toc_field_i64(row, lens, 1)};
    struct seen *seen = NULL;

    if (!toc_field_bytes(row, lens, 2, ref.id.b, sizeof ref.id.b))
        return;
    for (size_t i = 0; i < f->n && seen == NULL; i++)
        if (toc_task_ref_cmp(&f->items[i].ref, &ref) == 0)
            seen = &f->seen[i];
    if (seen == NULL || !toc_field_bytes(row, lens, 14, seen->key_hash.b,
                                         sizeof seen->key_hash.b))
        return;
    seen->there = true;
    seen->state = (enum toc_state)toc_field_u64(row, lens, 3);
    seen->token = toc_field_u64(row, lens, 4);
    seen->version = (uint32_t)toc_field_u64(row, lens, 5);
    seen->flags = (uint8_t)toc_field_u64(row, lens, 6);
    seen->attempt = (uint16_t)toc_field_u64(row, lens, 7);
    seen->claims = (uint16_t)toc_field_u64(row, lens, 8);
    seen->fire = (uint32_t)toc_field_u64(row, lens, 9);
    seen->sched_node = (uint32_t)toc_field_u64(row, lens, 10);
    seen->exec_node = (uint32_t)toc_field_u64(row, lens, 11);
    seen->claimed_ms = toc_field_i64(row, lens, 12);
    seen->called_ms = toc_field_i64(row, lens, 13);
    seen->ended_ms = toc_field_i64(row, lens, 15);
    seen->result = (enum toc_result)toc_field_u64(row, lens, 16);
}

/* Reads the group's rows. */
static enum toc_status
look(struct toc_my_conn *conn, struct finishing *f, size_t n,
     struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    for (size_t i = 0; i < n; i++)
        f->seen[f->group[i].item].there = false;
    toc_buf_text(sql, "SELECT slice,slot_ms,task_id,status,lock_token,version,"
                      "flags,attempt,claims,fire,sched_node,exec_node,"
                      "claimed_ms,called_ms,key_hash,ended_ms,result "
                      "FROM task_info WHERE ");
    toc_sql_where_rows(sql, "", f->group, n, 0);
    st = toc_my_run(conn, reterr);
    while (st == TOC_OK && (row = toc_my_fetch(conn, 0, &lens)) != NULL)
        take_seen(f, row, lens);
    return st;
}

static bool
holds(const struct toc_finish *item, const struct seen *seen)
{
    return seen->there && seen->state == TOC_STATE_EXECUTING &&
           seen->token == item->token;
}

/* The state that an item of this kind leaves when no cancel was noted. */
static enum toc_state
end_state(const struct toc_finish *item)
{
    switch (item->kind) {
    case TOC_FINISH_DONE:
        return TOC_STATE_SUCCESS;
    case TOC_FINISH_SKIPPED:
        return TOC_STATE_SKIPPED;
    case TOC_FINISH_DEAD:
        return TOC_STATE_DEAD;
    case TOC_FINISH_RETRY:
    case TOC_FINISH_SNOOZE:
    case TOC_FINISH_GIVE_BACK:
        break;
    }
    return TOC_STATE_CANCELLED;
}

/* A row that is not ours any more: perhaps because we wrote it before, in a
 * try whose answer never came. */
static bool
bears_our_end(const struct finishing *f, const struct toc_finish *item,
              const struct seen *seen)
{
    return seen->there && seen->state == end_state(item) &&
           seen->result == item->outcome &&
           seen->called_ms == item->called_ms &&
           (seen->ended_ms == item->ended_ms ||
            (item->ended_ms == 0 && seen->ended_ms <= f->now_ms));
}

static void
decide(struct finishing *f, size_t i, enum toc_finish_result result)
{
    f->way[i] = WAY_DECIDED;
    f->items[i].result = result;
}

/* An item whose row does not hold its token. */
static void
judge_lost(struct finishing *f, size_t i)
{
    struct toc_finish *item = &f->items[i];
    const struct seen *seen = &f->seen[i];
    bool waits = seen->there && (seen->state == TOC_STATE_INIT ||
                                 seen->state == TOC_STATE_RETRY);

    if (bears_our_end(f, item, seen)) {
        decide(f, i,
               seen->state == TOC_STATE_CANCELLED ? TOC_FINISH_CANCELLED
                                                  : TOC_FINISH_OK);
    } else if (item->kind == TOC_FINISH_GIVE_BACK && waits) {
        item->moved = item->ref;
        item->moved.version = seen->version;
        decide(f, i, TOC_FINISH_OK);
    } else {
        decide(f, i, TOC_FINISH_LOST);
    }
}

/* ---- evidence of a move
 * -------------------------------------------------------- */

static void
take_move(struct finishing *f, MYSQL_ROW row, const unsigned long *lens)
{
    struct toc_task_ref ref = {.slice = (uint16_t)toc_field_u64(row, lens, 0),
                               .slot_ms = toc_field_i64(row, lens, 1)};

    if (!toc_field_bytes(row, lens, 2, ref.id.b, sizeof ref.id.b))
        return;
    for (size_t i = 0; i < f->n; i++) {
        struct toc_finish *item = &f->items[i];
        if (toc_task_ref_cmp(&item->ref, &ref) != 0 ||
            item->result != TOC_FINISH_LOST ||
            (item->kind != TOC_FINISH_RETRY && item->kind != TOC_FINISH_SNOOZE))
            continue;
        if (toc_field_i64(row, lens, 5) != item->called_ms ||
            (item->ended_ms > 0 &&
             toc_field_i64(row, lens, 6) != item->ended_ms) ||
            toc_field_i64(row, lens, 7) != (int64_t)item->outcome)
            continue;
        item->result = TOC_FINISH_OK;
        item->moved = item->ref;
        item->moved.version = (uint32_t)toc_field_u64(row, lens, 3);
        item->moved.slot_ms = toc_field_i64(row, lens, 4);
    }
}

/* Lost retries may be moves of our own: the log at the old place tells. */
static enum toc_status
look_for_moves(struct toc_my_conn *conn, struct finishing *f,
               struct toc_error *reterr)
{
    struct toc_buf *sql;
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++) {
        const struct toc_finish *item = &f->items[f->rows[i].item];
        if (item->result == TOC_FINISH_LOST &&
            f->way[f->rows[i].item] == WAY_DECIDED &&
            (item->kind == TOC_FINISH_RETRY || item->kind == TOC_FINISH_SNOOZE))
            f->group[n++] = f->rows[i];
    }
    if (n == 0)
        return TOC_OK;
    sql = toc_my_begin(conn);
    toc_buf_text(sql, "SELECT slice,slot_ms,task_id,log_id,next_slot_ms,"
                      "called_ms,at_ms,result FROM task_log WHERE ");
    toc_sql_where_rows(sql, "", f->group, n, 0);
    toc_buf_printf(sql, " AND kind=%d", TOC_LOG_KIND_ATTEMPT);
    st = toc_my_run(conn, reterr);
    while (st == TOC_OK && (row = toc_my_fetch(conn, 0, &lens)) != NULL)
        take_move(f, row, lens);
    return st;
}

/* ---- planning
 * ------------------------------------------------------------------- */

static void
plan_end(struct finishing *f, size_t i, enum toc_state state)
{
    const struct toc_finish *item = &f->items[i];

    f->way[i] = WAY_END;
    f->state[i] = (int64_t)state;
    f->result[i] = (int64_t)item->outcome;
    f->called[i] = item->called_ms;
    f->ended[i] = end_of(f, item);
    f->error[i] = toc_row_cut(item->error, TOC_ERROR_MAX);
    f->reason[i] = toc_row_cut(item->reason, TOC_REASON_MAX);
}

static void
plan_move(struct finishing *f, size_t i)
{
    const struct toc_finish *item = &f->items[i];

    plan_end(f, i, TOC_STATE_RETRY);
    f->way[i] = WAY_MOVE;
    f->attempt[i] =
        item->kind == TOC_FINISH_RETRY ? item->attempt : f->seen[i].attempt;
    f->due[i] = item->due_ms;
    f->slot[i] = toc_slot_for_due(item->due_ms, f->now_ms);
}

static void
plan(struct finishing *f, size_t i)
{
    const struct toc_finish *item = &f->items[i];
    const struct seen *seen = &f->seen[i];

    if (!needs_reading(item)) {
        plan_end(f, i, end_state(item));
    } else if ((seen->flags & TOC_FLAG_CANCEL) != 0) {
        plan_end(f, i, TOC_STATE_CANCELLED);
    } else if (item->kind == TOC_FINISH_GIVE_BACK) {
        f->way[i] = WAY_BACK;
        f->state[i] = seen->attempt == 0 && seen->claims == 0 ? TOC_STATE_INIT
                                                              : TOC_STATE_RETRY;
    } else {
        plan_move(f, i);
    }
}

static enum toc_status
read_and_plan(struct toc_my_conn *conn, struct finishing *f,
              struct toc_error *reterr)
{
    enum toc_status st = TOC_OK;
    bool look_at_all = f->tries++ > 0;
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++) {
        size_t item = f->rows[i].item;
        if (f->way[item] != WAY_DECIDED &&
            (look_at_all || needs_reading(&f->items[item])))
            f->group[n++] = f->rows[i];
    }
    if (n > 0)
        st = look(conn, f, n, reterr);
    for (size_t i = 0; st == TOC_OK && i < n; i++) {
        size_t item = f->group[i].item;
        if (!holds(&f->items[item], &f->seen[item]))
            judge_lost(f, item);
    }
    if (st == TOC_OK && n > 0)
        st = look_for_moves(conn, f, reterr);
    for (size_t i = 0; st == TOC_OK && i < f->n; i++)
        if (f->way[i] != WAY_DECIDED)
            plan(f, i);
    return st;
}

/* ---- writing
 * --------------------------------------------------------------------- */

/* The rows of one way into f->group; for what was read, with its version. */
static size_t
gather(struct finishing *f, enum way way, bool with_version)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++) {
        size_t item = f->rows[i].item;
        if (f->way[item] != way ||
            needs_reading(&f->items[item]) != with_version)
            continue;
        f->group[n] = f->rows[i];
        if (with_version)
            f->group[n].ref.version = f->seen[item].version;
        n++;
    }
    return n;
}

static void
write_where(struct toc_my_conn *conn, struct finishing *f, size_t n,
            bool with_version)
{
    unsigned with = TOC_SQL_TOKEN | (with_version ? TOC_SQL_VERSION : 0u);

    toc_buf_text(&conn->sql, " WHERE ");
    toc_sql_where_rows(&conn->sql, "", f->group, n, with);
    toc_buf_printf(&conn->sql, " AND status=%d", TOC_STATE_EXECUTING);
    toc_my_guard_rows(conn, n);
}

static void
write_outcome(struct toc_buf *sql, struct finishing *f, size_t n)
{
    toc_buf_text(sql, "UPDATE task_info SET version=version+1,lock_token=0,"
                      "status=");
    toc_sql_case_i64(sql, f->group, f->state, n);
    toc_buf_text(sql, ",called_ms=");
    toc_sql_case_i64(sql, f->group, f->called, n);
    toc_buf_text(sql, ",ended_ms=");
    toc_sql_case_i64(sql, f->group, f->ended, n);
    toc_buf_text(sql, ",result=");
    toc_sql_case_i64(sql, f->group, f->result, n);
    toc_buf_text(sql, ",error=");
    toc_sql_case_bytes(sql, f->group, f->error, n);
}

static void
write_ends(struct toc_my_conn *conn, struct finishing *f, bool with_version)
{
    size_t n = gather(f, WAY_END, with_version);

    if (n == 0)
        return;
    write_outcome(toc_my_next(conn), f, n);
    write_where(conn, f, n, with_version);
}

static void
write_backs(struct toc_my_conn *conn, struct finishing *f)
{
    size_t n = gather(f, WAY_BACK, true);

    if (n == 0)
        return;
    toc_buf_text(toc_my_next(conn),
                 "UPDATE task_info SET version=version+1,lock_token=0,status=");
    toc_sql_case_i64(&conn->sql, f->group, f->state, n);
    write_where(conn, f, n, true);
}

static void
write_keys(struct toc_buf *sql, struct finishing *f, size_t n)
{
    toc_buf_text(sql, "UPDATE task_key SET slot_ms=");
    toc_sql_case_slot(sql, f->group, f->slot, n);
    toc_buf_text(sql, n == 1 ? " WHERE key_hash="
                             : " WHERE (key_hash,task_id) IN (");
    for (size_t i = 0; i < n; i++) {
        toc_buf_text(sql, n == 1 ? "" : i > 0 ? ",(" : "(");
        toc_sql_hash(sql, f->seen[f->group[i].item].key_hash);
        toc_buf_text(sql, n == 1 ? " AND task_id=" : ",");
        toc_sql_id(sql, f->group[i].ref.id);
        toc_buf_text(sql, n == 1 ? "" : ")");
    }
    toc_buf_text(sql, n == 1 ? "" : ")");
}

static void
write_log(struct toc_buf *sql, const struct finishing *f, size_t item)
{
    const struct seen *seen = &f->seen[item];
    struct toc_log_row row = {
        .at = f->items[item].ref,
        .kind = TOC_LOG_KIND_ATTEMPT,
        .result = f->items[item].outcome,
        .fire = seen->fire,
        .sched_node = seen->sched_node,
        .exec_node = seen->exec_node,
        .attempt = f->items[item].kind == TOC_FINISH_RETRY
                       ? f->items[item].attempt
                       : (uint16_t)(seen->attempt + 1),
        .next_slot_ms = f->slot[item],
        .moves = true,
        .claimed_ms = seen->claimed_ms,
        .called_ms = f->called[item],
        .at_ms = f->ended[item],
        .detail = f->error[item],
    };

    row.at.version = seen->version + 1;
    toc_log_values(sql, &row);
}

static size_t
write_moves(struct toc_my_conn *conn, struct finishing *f)
{
    size_t n = gather(f, WAY_MOVE, true);
    struct toc_buf *sql;

    if (n == 0)
        return 0;
    sql = toc_my_next(conn);
    write_outcome(sql, f, n);
    toc_buf_text(sql, ",attempt=");
    toc_sql_case_i64(sql, f->group, f->attempt, n);
    toc_buf_text(sql, ",due_ms=");
    toc_sql_case_i64(sql, f->group, f->due, n);
    toc_buf_text(sql, ",slot_ms=");
    toc_sql_case_slot(sql, f->group, f->slot, n);
    write_where(conn, f, n, true);
    write_keys(toc_my_next(conn), f, n);
    toc_log_insert(toc_my_next(conn));
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            toc_buf_char(&conn->sql, ',');
        write_log(&conn->sql, f, f->group[i].item);
    }
    return n;
}

static void
write_dead(struct toc_my_conn *conn, struct finishing *f)
{
    struct toc_buf *sql;
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++) {
        size_t item = f->rows[i].item;
        if (f->way[item] == WAY_END && f->state[item] == TOC_STATE_DEAD)
            f->group[n++] = f->rows[i];
    }
    if (n == 0)
        return;
    sql = toc_my_next(conn);
    toc_buf_text(sql, "REPLACE INTO dead_task SELECT ");
    toc_row_names(sql);
    toc_buf_text(sql, ",ended_ms,");
    toc_sql_case_bytes(sql, f->group, f->reason, n);
    toc_buf_text(sql, " FROM task_info WHERE ");
    toc_sql_where_rows(sql, "", f->group, n, 0);
}

static void
lock_for_moves(struct toc_my_conn *conn, struct finishing *f)
{
    size_t n = gather(f, WAY_MOVE, true);

    if (n > 0)
        toc_sql_lock_shards(toc_my_next(conn), f->group, n);
}

static void
settle(struct finishing *f, size_t i, int64_t low_ms)
{
    struct toc_finish *item = &f->items[i];

    switch (f->way[i]) {
    case WAY_END:
        item->result =
            needs_reading(item) ? TOC_FINISH_CANCELLED : TOC_FINISH_OK;
        break;
    case WAY_MOVE:
        item->moved = item->ref;
        item->moved.slot_ms = toc_sql_slot_value(f->slot[i], low_ms);
        item->moved.version = f->seen[i].version + 1;
        item->result = TOC_FINISH_OK;
        break;
    case WAY_BACK:
        item->moved = item->ref;
        item->moved.version = f->seen[i].version + 1;
        item->result = TOC_FINISH_OK;
        break;
    case WAY_DECIDED:
        break;
    }
}

static bool
all_decided(const struct finishing *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->way[i] != WAY_DECIDED)
            return false;
    return true;
}

static enum toc_status
finish_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct finishing *f = arg;
    enum toc_status st = read_and_plan(conn, f, reterr);
    int64_t low_ms = 0;
    size_t moves;

    if (st != TOC_OK || all_decided(f))
        return st;
    toc_my_begin(conn);
    toc_my_add(conn, "START TRANSACTION");
    lock_for_moves(conn, f);
    write_ends(conn, f, false);
    write_ends(conn, f, true);
    write_backs(conn, f);
    moves = write_moves(conn, f);
    write_dead(conn, f);
    if (moves > 0)
        toc_my_add(conn, "SELECT @low");
    toc_my_commit(conn);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    if (moves > 0)
        low_ms = toc_my_number(conn, conn->n_replies - 2, 0);
    for (size_t i = 0; i < f->n; i++)
        settle(f, i, low_ms);
    return TOC_OK;
}

static enum toc_status
finish_some(struct toc_store_mysql *store, struct toc_finish *items, size_t n,
            int64_t now_ms, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    struct finishing f = {.items = items, .n = n, .now_ms = now_ms};
    int64_t *numbers = toc_arena_calloc(&arena, 7 * n, sizeof *numbers);
    struct toc_str *texts = toc_arena_calloc(&arena, 2 * n, sizeof *texts);

    f.rows = toc_arena_calloc(&arena, 2 * n, sizeof *f.rows);
    f.group = f.rows + n;
    f.way = toc_arena_calloc(&arena, n, sizeof *f.way);
    f.seen = toc_arena_calloc(&arena, n, sizeof *f.seen);
    f.state = numbers;
    f.result = numbers + n;
    f.called = numbers + 2 * n;
    f.ended = numbers + 3 * n;
    f.attempt = numbers + 4 * n;
    f.due = numbers + 5 * n;
    f.slot = numbers + 6 * n;
    f.error = texts;
    f.reason = texts + n;
    for (size_t i = 0; i < n; i++)
        f.rows[i] = (struct toc_sql_row){
            .ref = items[i].ref, .token = items[i].token, .item = i};
    toc_sql_sort_rows(f.rows, n);
    return toc_my_transact(store, finish_body, &f, now_ms, reterr);
}

/* More than a statement's worth goes in several transactions; when a later one
 * fails, the call is made again and finds what it did before. */
enum toc_status
toc_my_finish(void *self, struct toc_finish *items, size_t n, int64_t now_ms,
              struct toc_error *reterr)
{
    enum toc_status st = TOC_OK;

    for (size_t at = 0; st == TOC_OK && at < n; at += TOC_MY_ROWS_MAX) {
        size_t some = n - at < TOC_MY_ROWS_MAX ? n - at : TOC_MY_ROWS_MAX;
        st = finish_some(self, items + at, some, now_ms, reterr);
    }
    return st;
}
