/*
 * The sweep's writes: expired locks, stragglers, the low-water mark.
 *
 * All three measure time since something, so a caller whose clock is ahead
 * would take running locks away and raise marks over rows to come. The
 * server's clock bounds the caller's, as in the claim: what is later than
 * either of them has not come yet.
 */
#include "common/store/mysql/store_mysql_internal.h"

#include "common/model/limits.h"
#include "common/store/mysql/log.h"
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

#include <stdlib.h>

/* ---- expired locks
 * --------------------------------------------------------------
 *
 * Each row stands alone: those that somebody else was faster with are simply
 * not among the changed ones. The log and the dead letters are written from
 * the rows as they are afterwards; a row that another sweeper freed in the same
 * millisecond was also logged by it (hence IGNORE).
 */

struct freeing {
    const struct toc_sql_row *rows;
    size_t n;
    int64_t now_ms;
    size_t freed;
};

static void
write_freed_log(struct toc_buf *sql, const struct freeing *f,
                const struct toc_sql_row *after)
{
    toc_buf_printf(sql,
                   "INSERT IGNORE INTO task_log (" TOC_LOG_COLUMNS ") SELECT "
                   "slice,slot_ms,task_id,version,%d,%d,fire,attempt+1,version,"
                   "slot_ms,sched_node,exec_node,claimed_ms,called_ms,@now,'',"
                   "x'00000000000000000000000000000000','' FROM task_info "
                   "WHERE ",
                   TOC_LOG_KIND_LOCK_LOST, TOC_RESULT_LOST);
    toc_sql_where_rows(sql, "", after, f->n, TOC_SQL_VERSION);
    toc_buf_printf(sql, " AND result=%d AND ended_ms=@now", TOC_RESULT_LOST);
}

static void
write_freed_dead(struct toc_buf *sql, const struct freeing *f,
                 const struct toc_sql_row *after)
{
    toc_buf_text(sql, "INSERT IGNORE INTO dead_task SELECT ");
    toc_row_names(sql);
    toc_buf_printf(sql, ",@now,IF(flags & %u,", TOC_FLAG_AT_MOST_ONCE);
    toc_sql_bytes(sql, TOC_STR("at most once, and the outcome is unknown"));
    toc_buf_char(sql, ',');
    toc_sql_bytes(sql, TOC_STR("its lock was lost too often"));
    toc_buf_text(sql, ") FROM task_info WHERE ");
    toc_sql_where_rows(sql, "", after, f->n, TOC_SQL_VERSION);
    toc_buf_printf(sql, " AND status=%d", TOC_STATE_DEAD);
}

static enum toc_status
free_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct freeing *f = arg;
    struct toc_sql_row after[TOC_MY_ROWS_MAX];
    struct toc_buf *sql;
    enum toc_status st;

    for (size_t i = 0; i < f->n; i++) {
        after[i] = f->rows[i];
        after[i].ref.version++;
    }
    toc_my_begin(conn);
    toc_buf_printf(toc_my_next(conn), "SET @now=LEAST(%lld," TOC_MY_NOW ")",
                   (long long)f->now_ms);
    toc_my_add(conn, "START TRANSACTION");
    sql = toc_my_next(conn);
    /* The status first: it is made from the flags and claims as they were. */
    toc_buf_printf(sql,
                   "UPDATE task_info SET status=IF(flags & %u OR claims>=%d,%d,"
                   "IF(flags & %u,%d,%d)),version=version+1,claims=claims+1,"
                   "lock_token=0,result=%d,ended_ms=@now WHERE ",
                   TOC_FLAG_AT_MOST_ONCE, TOC_CLAIMS_MAX, TOC_STATE_DEAD,
                   TOC_FLAG_CANCEL, TOC_STATE_CANCELLED, TOC_STATE_RETRY,
                   TOC_RESULT_LOST);
    toc_sql_where_rows(sql, "", f->rows, f->n, TOC_SQL_VERSION | TOC_SQL_TOKEN);
    toc_buf_printf(sql, " AND status=%d AND lock_until_ms<@now",
                   TOC_STATE_EXECUTING);
    write_freed_log(toc_my_next(conn), f, after);
    write_freed_dead(toc_my_next(conn), f, after);
    toc_my_commit(conn);
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        f->freed = (size_t)conn->replies[2].affected;
    return st;
}

enum toc_status
toc_my_free_expired(void *self, const struct toc_task *tasks, size_t n,
                    int64_t now_ms, size_t *ret_freed, struct toc_error *reterr)
{
    struct toc_sql_row rows[TOC_MY_ROWS_MAX];
    enum toc_status st = TOC_OK;
    size_t freed = 0;

    for (size_t at = 0; st == TOC_OK && at < n; at += TOC_MY_ROWS_MAX) {
        size_t some = n - at < TOC_MY_ROWS_MAX ? n - at : TOC_MY_ROWS_MAX;
        struct freeing f = {rows, some, now_ms, 0};
        for (size_t i = 0; i < some; i++)
            rows[i] =
                (struct toc_sql_row){.ref = toc_task_ref_of(&tasks[at + i]),
                                     .token = tasks[at + i].lock_token};
        toc_sql_sort_rows(rows, some);
        st = toc_my_transact(self, free_body, &f, now_ms, reterr);
        freed += f.freed;
    }
    if (st == TOC_OK)
        *ret_freed = freed;
    return st;
}

/* ---- stragglers
 * ------------------------------------------------------------------- */

struct recording {
    uint16_t shard;
    int64_t before_ms;
    size_t max, waiting;
};

static void
in_slices(struct toc_buf *sql, const char *column, uint16_t shard)
{
    unsigned first = shard * TOC_SLICES_PER_SHARD;

    toc_buf_printf(sql, "%s IN (%u,%u,%u)", column, first, first + 1,
                   first + 2);
}

static int64_t
earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* The rows of a reply as (slice,slot,id),... ; returns how many. */
static size_t
add_places(struct toc_my_conn *conn, size_t reply, struct toc_buf *out)
{
    const unsigned long *lens;
    MYSQL_ROW row;
    size_t n = 0;

    while ((row = toc_my_fetch(conn, reply, &lens)) != NULL) {
        toc_buf_printf(out, "%s(%llu,%lld,", n++ > 0 ? "," : "",
                       (unsigned long long)toc_field_u64(row, lens, 0),
                       (long long)toc_field_i64(row, lens, 1));
        toc_sql_bytes(out, toc_field_str(row, lens, 2));
        toc_buf_char(out, ')');
    }
    return n;
}

/* Replies: the mark, how many are recorded, those that ended or moved, the
 * server's clock. */
static void
ask_recorded(struct toc_my_conn *conn, uint16_t shard)
{
    struct toc_buf *sql = toc_my_begin(conn);

    toc_buf_printf(sql, "SELECT low_ms FROM shard_owner WHERE shard_id=%u",
                   shard);
    toc_buf_text(toc_my_next(conn), "SELECT COUNT(*) FROM straggler WHERE ");
    in_slices(sql, "slice", shard);
    toc_buf_text(toc_my_next(conn),
                 "SELECT k.slice,k.slot_ms,k.task_id FROM straggler k LEFT "
                 "JOIN task_info t ON t.slice=k.slice AND "
                 "t.slot_ms=k.slot_ms AND t.task_id=k.task_id WHERE ");
    in_slices(sql, "k.slice", shard);
    toc_buf_printf(sql, " AND (t.status IS NULL OR t.status>=%d)",
                   TOC_STATE_ENDED);
    toc_my_add(conn, "SELECT " TOC_MY_NOW);
}

static void
ask_unrecorded(struct toc_my_conn *conn, const struct recording *r,
               int64_t low_ms, int64_t before_ms)
{
    struct toc_buf *sql = toc_my_begin(conn);

    toc_buf_text(sql, "SELECT t.slice,t.slot_ms,t.task_id FROM task_info t "
                      "FORCE INDEX (PRIMARY) WHERE ");
    in_slices(sql, "t.slice", r->shard);
    toc_buf_printf(sql,
                   " AND t.slot_ms>=%lld AND t.slot_ms<%lld AND t.status<%d "
                   "AND NOT EXISTS (SELECT 1 FROM straggler g WHERE "
                   "g.slice=t.slice AND g.slot_ms=t.slot_ms AND "
                   "g.task_id=t.task_id) LIMIT %zu",
                   (long long)low_ms, (long long)before_ms, TOC_STATE_ENDED,
                   r->max + 1);
}

static enum toc_status
record_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf gone = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf more = {0};
    struct recording *r = arg;
    size_t n_gone, n_more;
    int64_t low_ms, recorded;
    enum toc_status st;

    ask_recorded(conn, r->shard);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    low_ms = toc_my_number(conn, 0, 0);
    recorded = toc_my_number(conn, 1, 0);
    n_gone = add_places(conn, 2, &gone);
    ask_unrecorded(conn, r, low_ms,
                   earlier(r->before_ms, toc_my_number(conn, 3, 0)));
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    n_more = add_places(conn, 0, &more);
    r->waiting = (size_t)recorded - n_gone + n_more;
    toc_my_begin(conn);
    if (n_more > 0 && r->waiting <= r->max)
        toc_buf_printf(toc_my_next(conn),
                       "INSERT IGNORE INTO straggler VALUES %s", more.data);
    if (n_gone > 0)
        toc_buf_printf(toc_my_next(conn),
                       "DELETE FROM straggler WHERE (slice,slot_ms,task_id) "
                       "IN (%s)",
                       gone.data);
    if (conn->sql.len == 0)
        return TOC_OK;
    conn->commits = true;
    return toc_my_run(conn, reterr);
}

enum toc_status
toc_my_record_stragglers(void *self, uint16_t shard, int64_t before_ms,
                         size_t max, size_t *ret_waiting,
                         struct toc_error *reterr)
{
    struct recording r = {shard, before_ms, max, 0};
    enum toc_status st = toc_my_transact(self, record_body, &r, 0, reterr);

    if (st == TOC_OK)
        *ret_waiting = r.waiting;
    return st;
}

/* ---- the low-water mark
 * -------------------------------------------------------------
 *
 * The exclusive lock on the shards' rows first: it waits for every transaction
 * that has read the mark and not committed yet, and new ones wait for it. Only
 * then, in a statement and therefore a view of its own, the rows are looked at.
 * The subqueries of an UPDATE read without locks at READ COMMITTED. All of it
 * is one packet, so that a process frozen in between holds nothing up.
 *
 * The range to be looked at begins at a mark that was read before: marks only
 * rise, so it is at most too long. A shard far behind is raised in steps.
 */

#define SHARDS_AT_ONCE 32
#define STEP_ROWS 20000 /* of one slice, before a step ends */
#define FAR_BEHIND_MS 120000

struct advancing {
    const uint16_t *shards;
    size_t n;
    int64_t now_ms, behind_ms;
    int64_t to_ms; /* now - behind */
    int64_t low_ms[SHARDS_AT_ONCE], step_ms[SHARDS_AT_ONCE];
};

static void
in_shards(struct toc_buf *sql, const struct advancing *a)
{
    toc_buf_text(sql, " WHERE shard_id IN (");
    toc_sql_slices(sql, a->shards, a->n);
    toc_buf_char(sql, ')');
}

static enum toc_status
read_marks(struct toc_my_conn *conn, struct advancing *a,
           struct toc_error *reterr)
{
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_text(toc_my_begin(conn), "SELECT shard_id,low_ms FROM shard_owner");
    in_shards(&conn->sql, a);
    toc_my_add(conn, "SELECT " TOC_MY_NOW);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    a->to_ms = earlier(a->now_ms, toc_my_number(conn, 1, 0)) - a->behind_ms;
    for (size_t i = 0; i < a->n; i++)
        a->low_ms[i] = a->step_ms[i] = a->to_ms;
    while ((row = toc_my_fetch(conn, 0, &lens)) != NULL)
        for (size_t i = 0; i < a->n; i++)
            if (a->shards[i] == toc_field_u64(row, lens, 0))
                a->low_ms[i] = toc_field_i64(row, lens, 1);
    return TOC_OK;
}

/* For shards far behind: where to stop, so that not too many rows are read
 * under the lock. */
static enum toc_status
find_steps(struct toc_my_conn *conn, struct advancing *a,
           struct toc_error *reterr)
{
    enum toc_status st;
    size_t reply = 0;

    toc_my_begin(conn);
    for (size_t i = 0; i < a->n; i++) {
        if (a->to_ms - a->low_ms[i] <= FAR_BEHIND_MS)
            continue;
        for (unsigned prio = 0; prio < TOC_PRIORITIES; prio++)
            toc_buf_printf(
                toc_my_next(conn),
                "SELECT slot_ms FROM task_info FORCE INDEX (PRIMARY) "
                "WHERE slice=%u AND slot_ms>=%lld AND slot_ms<%lld "
                "ORDER BY slot_ms LIMIT 1 OFFSET %d",
                (unsigned)a->shards[i] * TOC_SLICES_PER_SHARD + prio,
                (long long)a->low_ms[i], (long long)a->to_ms, STEP_ROWS);
    }
    if (conn->sql.len == 0)
        return TOC_OK;
    st = toc_my_run(conn, reterr);
    for (size_t i = 0; st == TOC_OK && i < a->n; i++) {
        if (a->to_ms - a->low_ms[i] <= FAR_BEHIND_MS)
            continue;
        for (unsigned prio = 0; prio < TOC_PRIORITIES; prio++) {
            int64_t slot_ms = toc_my_number(conn, reply++, a->to_ms);
            if (slot_ms < a->step_ms[i])
                a->step_ms[i] = slot_ms;
        }
        if (a->step_ms[i] <= a->low_ms[i])
            a->step_ms[i] = a->low_ms[i] + 1;
    }
    return st;
}

static void
write_advance(struct toc_my_conn *conn, const struct advancing *a)
{
    struct toc_buf *sql = toc_my_begin(conn);

    toc_my_add(conn, "START TRANSACTION");
    toc_my_add(conn, "SELECT COUNT(low_ms) FROM shard_owner");
    in_shards(sql, a);
    toc_buf_text(sql, " FOR UPDATE");
    toc_my_add(conn, "UPDATE shard_owner SET low_ms=GREATEST(low_ms,"
                     "CASE shard_id");
    for (size_t i = 0; i < a->n; i++) {
        toc_buf_printf(sql,
                       " WHEN %u THEN COALESCE((SELECT MIN(t.slot_ms) FROM "
                       "task_info t FORCE INDEX (PRIMARY) WHERE ",
                       a->shards[i]);
        in_slices(sql, "t.slice", a->shards[i]);
        toc_buf_printf(sql,
                       " AND t.slot_ms>=%lld AND t.slot_ms<%lld AND t.status<%d"
                       " AND NOT EXISTS (SELECT 1 FROM straggler g WHERE "
                       "g.slice=t.slice AND g.slot_ms=t.slot_ms AND "
                       "g.task_id=t.task_id)),%lld)",
                       (long long)a->low_ms[i], (long long)a->step_ms[i],
                       TOC_STATE_ENDED, (long long)a->step_ms[i]);
    }
    toc_buf_text(sql, " END)");
    in_shards(sql, a);
    toc_my_commit(conn);
}

static enum toc_status
advance_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct advancing *a = arg;
    enum toc_status st = read_marks(conn, a, reterr);

    if (st == TOC_OK)
        st = find_steps(conn, a, reterr);
    if (st != TOC_OK)
        return st;
    write_advance(conn, a);
    return toc_my_run(conn, reterr);
}

static int
cmp_shard(const void *a, const void *b)
{
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

enum toc_status
toc_my_advance_low(void *self, const uint16_t *shards, size_t n, int64_t now_ms,
                   int64_t behind_ms, struct toc_error *reterr)
{
    TOC_AUTO_FREE uint16_t *sorted = TOC_NEW_ARRAY(uint16_t, n);
    enum toc_status st = TOC_OK;

    for (size_t i = 0; i < n; i++)
        sorted[i] = shards[i];
    qsort(sorted, n, sizeof *sorted, cmp_shard);
    for (size_t at = 0; st == TOC_OK && at < n; at += SHARDS_AT_ONCE) {
        struct advancing a = {.shards = sorted + at,
                              .n = n - at < SHARDS_AT_ONCE ? n - at
                                                           : SHARDS_AT_ONCE,
                              .now_ms = now_ms,
                              .behind_ms = behind_ms};
        st = toc_my_transact(self, advance_body, &a, now_ms, reterr);
    }
    return st;
}
