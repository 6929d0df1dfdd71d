/*
 * Day partitions: made ahead, dropped whole.
 *
 * A day goes in steps, each quick: its partition is exchanged for an empty
 * table (a rename), the rows in that table are looked at, then both are
 * dropped. A plain DROP PARTITION would wait behind any open reader, and make
 * everybody else wait behind itself; see alter() for what is done instead. If
 * anything unfinished turns up in the detached table, which the rule for
 * dropping excludes, the day is put back.
 *
 * A crash in between leaves the detached table; the next call takes it up.
 *
 * What lies in no day goes by its age: log rows of parked tasks, dead letters.
 */
#include "common/store/mysql/store_mysql_internal.h"

#include "common/store/mysql/sql.h"

#include "common/store/mysql/row.h"

#include <string.h>

#define DAYS_AHEAD 36 /* whole days: at least 35 days from any moment */
#define DAYS_ADDED_MAX 400
#define DAYS_DROPPED_MAX 32
#define DDL_TIMEOUT_MS 120000
#define TRIES_AT_ONCE 20 /* the table is free at this very moment, or not */
#define TRIES_WAITING 2  /* a second each, during which others wait too */
#define LOCK_WAIT_S 5
#define DEAD_AT_ONCE 1000
#define DEAD_STEPS_MAX 10
#define LOG_ROWS_MAX 1000 /* of the parked log, a statement */
#define LOG_STEPS_MAX 20  /* a call */

/* task_info last: while it has the day, the day counts as there. */
static const char *const tables[] = {"task_log", "key_history", "task_info"};
#define N_TABLES (sizeof tables / sizeof tables[0])

struct day {
    char name[16];
    int64_t end_ms;
};

/* p20270115: the day that ends at end_ms. Years after 9999 do not come up. */
static void
name_day(int64_t end_ms, char name[16])
{
    char text[TOC_TIME_TEXT_MAX];

    toc_time_format(text, end_ms - TOC_MS_PER_DAY);
    toc_format(name, 16, "p%.4s%.2s%.2s", text, text + 5, text + 8);
}

/* The table's partition bounds, ascending, without p_parked. */
static enum toc_status
read_days(struct toc_my_conn *conn, const char *table, struct toc_arena *arena,
          struct day **ret_days, size_t *ret_n, struct toc_error *reterr)
{
    const unsigned long *lens;
    struct day *days;
    enum toc_status st;
    MYSQL_ROW row;
    size_t n = 0;

    toc_buf_printf(toc_my_begin(conn),
                   "SELECT PARTITION_NAME,PARTITION_DESCRIPTION FROM "
                   "information_schema.PARTITIONS WHERE "
                   "TABLE_SCHEMA=DATABASE() AND TABLE_NAME='%s' AND "
                   "PARTITION_NAME LIKE 'p2%%' "
                   "ORDER BY PARTITION_ORDINAL_POSITION",
                   table);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    days = toc_arena_calloc(
        arena, (size_t)mysql_num_rows(conn->replies[0].rows) + 1, sizeof *days);
    while ((row = toc_my_fetch(conn, 0, &lens)) != NULL) {
        toc_copy(days[n].name, sizeof days[n].name,
                 toc_field_str(row, lens, 0));
        days[n].end_ms = toc_field_i64(row, lens, 1);
        n++;
    }
    *ret_days = days;
    *ret_n = n;
    return TOC_OK;
}

/*
 * An ALTER TABLE needs a moment without any statement on the table. On a busy
 * one there is none, so in the end it must queue, and others behind it: for
 * milliseconds as long as statements are short; when somebody sits on an open
 * transaction, for a second, and then it gives up.
 */
static enum toc_status
alter(struct toc_my_conn *conn, const char *table, const char *change,
      struct toc_error *reterr)
{
    int at_once = conn->dialect.mariadb ? TRIES_AT_ONCE : 0;
    enum toc_status st = TOC_OK;

    for (int i = 0; i < at_once + TRIES_WAITING; i++) {
        bool waiting = i >= at_once;
        toc_buf_printf(toc_my_begin(conn), "ALTER TABLE %s%s%s", table,
                       toc_my_dialect_wait(&conn->dialect, waiting), change);
        st = toc_my_run(conn, reterr);
        if (st == TOC_OK || conn->fault != TOC_MY_LOCKED)
            return st;
        conn->fault = TOC_MY_FINE;
        toc_my_pause(conn->store, waiting ? 500 : 20);
    }
    return st;
}

/* ---- making
 * ------------------------------------------------------------------ */

static enum toc_status
make_days_of(struct toc_my_conn *conn, const char *table, int64_t today_ms,
             struct toc_error *reterr)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf change = {0};
    int64_t want = today_ms + DAYS_AHEAD * TOC_MS_PER_DAY;
    int64_t end = today_ms - TOC_MS_PER_DAY; /* yesterday's is the first */
    struct day *days;
    size_t n;
    enum toc_status st = read_days(conn, table, &arena, &days, &n, reterr);

    if (st != TOC_OK)
        return st;
    if (n > 0)
        end = days[n - 1].end_ms;
    if (end >= want)
        return TOC_OK;
    /* A gap of years becomes one long partition. */
    if (want - end > DAYS_ADDED_MAX * TOC_MS_PER_DAY)
        end = want - DAYS_ADDED_MAX * TOC_MS_PER_DAY;
    toc_buf_text(&change, "ADD PARTITION (");
    for (const char *comma = ""; end < want; comma = ",") {
        char name[16];
        end += TOC_MS_PER_DAY;
        name_day(end, name);
        toc_buf_printf(&change, "%sPARTITION %s VALUES LESS THAN (%lld)", comma,
                       name, (long long)end);
    }
    toc_buf_char(&change, ')');
    return alter(conn, table, change.data, reterr);
}

enum toc_status
toc_my_make_days(struct toc_my_conn *conn, int64_t now_ms,
                 struct toc_error *reterr)
{
    int64_t today_ms = now_ms - now_ms % TOC_MS_PER_DAY;
    enum toc_status st;

    if (now_ms < 0 || now_ms > TOC_DUE_MS_MAX - 100 * TOC_MS_PER_DAY)
        return toc_error_set(reterr, TOC_INVALID, "mysql", 0,
                             "no days are made for the time %lld",
                             (long long)now_ms);
    st = toc_my_lock_schema(conn, LOCK_WAIT_S, reterr);
    for (size_t i = 0; st == TOC_OK && i < N_TABLES; i++)
        st = make_days_of(conn, tables[i], today_ms, reterr);
    toc_my_unlock_schema(conn);
    return st;
}

enum toc_status
toc_my_make_days_op(void *self, int64_t now_ms, struct toc_error *reterr)
{
    struct toc_my_conn *conn;
    enum toc_status st = toc_my_connect(self, DDL_TIMEOUT_MS, &conn, reterr);

    if (st != TOC_OK)
        return st;
    st = toc_my_make_days(conn, now_ms, reterr);
    toc_my_disconnect(conn);
    return st;
}

/* ---- dropping
 * ------------------------------------------------------------------ */

/* Days that end before this may go: every shard's marks have passed it, no
 * unfinished straggler is in it, retention is over. The table of stragglers
 * alone does not say it: an ended one stays there until its shard is looked at
 * again. */
static enum toc_status
read_limit(struct toc_my_conn *conn, int64_t kept_from_ms, int64_t *ret_limit,
           struct toc_error *reterr)
{
    int64_t marks, straggler;
    enum toc_status st;

    toc_buf_text(toc_my_begin(conn),
                 "SELECT IF(COUNT(*)=256,MIN(LEAST(low_ms,keygc_ms)),0) "
                 "FROM shard_owner");
    toc_buf_printf(toc_my_next(conn),
                   "SELECT MIN(k.slot_ms) FROM straggler k STRAIGHT_JOIN "
                   "task_info t ON t.slice=k.slice AND t.slot_ms=k.slot_ms AND "
                   "t.task_id=k.task_id WHERE t.status<%d",
                   TOC_STATE_ENDED);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    marks = toc_my_number(conn, 0, 0);
    straggler = toc_my_number(conn, 1, INT64_MAX);
    *ret_limit = kept_from_ms;
    if (marks < *ret_limit)
        *ret_limit = marks;
    if (straggler < *ret_limit)
        *ret_limit = straggler;
    return TOC_OK;
}

static enum toc_status
run_text(struct toc_my_conn *conn, struct toc_error *reterr, const char *format,
         const char *table, const char *day)
{
    toc_buf_printf(toc_my_begin(conn), "SET @table='%s_%s'", table, day);
    toc_buf_text(toc_my_next(conn), format);
    return toc_my_run(conn, reterr);
}

/* old_task_info_p20270115: where the day's rows are while it is dropped. */
static void
name_detached(const char *table, const char *day, char name[64])
{
    toc_format(name, 64, "old_%s_%s", table, day);
}

static enum toc_status
detach(struct toc_my_conn *conn, const char *table, const char *day,
       struct toc_error *reterr)
{
    char old[64], change[128];
    enum toc_status st;

    name_detached(table, day, old);
    toc_buf_printf(toc_my_begin(conn), "CREATE TABLE %s LIKE %s", old, table);
    toc_buf_printf(toc_my_next(conn), "ALTER TABLE %s REMOVE PARTITIONING",
                   old);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    toc_format(change, sizeof change, "EXCHANGE PARTITION %s WITH TABLE %s",
               day, old);
    return alter(conn, table, change, reterr);
}

/* Has the detached task_info an unfinished row? A day may have hundreds of
 * millions of rows: it is looked through by slice, a statement each. */
static enum toc_status
has_unfinished(struct toc_my_conn *conn, const char *old, bool *ret_has,
               struct toc_error *reterr)
{
    int64_t slice = -1;
    enum toc_status st;

    do {
        toc_buf_printf(toc_my_begin(conn),
                       "SELECT EXISTS(SELECT 1 FROM %s WHERE slice=%lld AND "
                       "status<%d)",
                       old, (long long)slice, TOC_STATE_ENDED);
        toc_buf_printf(toc_my_next(conn),
                       "SELECT MIN(slice) FROM %s WHERE slice>%lld", old,
                       (long long)slice);
        st = toc_my_run(conn, reterr);
        *ret_has = st == TOC_OK && toc_my_number(conn, 0, 1) != 0;
        slice = st == TOC_OK ? toc_my_number(conn, 1, INT64_MAX) : INT64_MAX;
    } while (st == TOC_OK && !*ret_has && slice != INT64_MAX);
    return st;
}

static enum toc_status
put_back(struct toc_my_conn *conn, const char *table, const char *day,
         struct toc_error *reterr)
{
    char old[64], change[128];
    enum toc_status st;

    name_detached(table, day, old);
    toc_format(change, sizeof change, "EXCHANGE PARTITION %s WITH TABLE %s",
               day, old);
    st = alter(conn, table, change, reterr);
    if (st != TOC_OK)
        return st;
    toc_buf_printf(toc_my_begin(conn), "DROP TABLE %s", old);
    return toc_my_run(conn, reterr);
}

/* Unfinished rows of the detached table: 0, whatever the program thought, or
 * it is put back. */
static enum toc_status
look_and_drop(struct toc_my_conn *conn, const char *table, const char *day,
              bool *ret_dropped, struct toc_error *reterr)
{
    char old[64], change[128];
    enum toc_status st = TOC_OK;
    bool unfinished = false;

    name_detached(table, day, old);
    *ret_dropped = false;
    if (strcmp(table, "task_info") == 0)
        st = has_unfinished(conn, old, &unfinished, reterr);
    if (st == TOC_OK && unfinished)
        return put_back(conn, table, day, reterr);
    if (st != TOC_OK)
        return st;
    toc_format(change, sizeof change, "DROP PARTITION %s", day);
    st = alter(conn, table, change, reterr);
    if (st != TOC_OK)
        return st;
    toc_buf_printf(toc_my_begin(conn), "DROP TABLE %s", old);
    *ret_dropped = true;
    return toc_my_run(conn, reterr);
}

/* Is there a detached table of this day (a crash between two steps)? */
static enum toc_status
find_detached(struct toc_my_conn *conn, const char *table, const char *day,
              bool *ret_there, struct toc_error *reterr)
{
    enum toc_status st =
        run_text(conn, reterr,
                 "SELECT COUNT(*) FROM information_schema.TABLES WHERE "
                 "TABLE_SCHEMA=DATABASE() AND TABLE_NAME=CONCAT('old_',@table)",
                 table, day);

    if (st == TOC_OK)
        *ret_there = toc_my_number(conn, 1, 0) != 0;
    return st;
}

static enum toc_status
drop_day_of(struct toc_my_conn *conn, const char *table, const char *day,
            bool *ret_dropped, struct toc_error *reterr)
{
    bool there = false;
    enum toc_status st = find_detached(conn, table, day, &there, reterr);

    if (st == TOC_OK && there) {
        /* Made, but perhaps not yet exchanged: then it is empty, and the
         * partition full. Begin anew unless it holds rows. */
        char old[64];
        name_detached(table, day, old);
        toc_buf_printf(toc_my_begin(conn), "SELECT EXISTS(SELECT 1 FROM %s)",
                       old);
        st = toc_my_run(conn, reterr);
        if (st == TOC_OK && toc_my_number(conn, 0, 1) == 0) {
            toc_buf_printf(toc_my_begin(conn), "DROP TABLE %s", old);
            st = toc_my_run(conn, reterr);
            there = false;
        }
    }
    if (st == TOC_OK && !there)
        st = detach(conn, table, day, reterr);
    if (st == TOC_OK)
        st = look_and_drop(conn, table, day, ret_dropped, reterr);
    return st;
}

static bool
has_day(const struct day *days, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(days[i].name, name) == 0)
            return true;
    return false;
}

/* From task_info first: if it has unfinished rows, all stay. */
static enum toc_status
drop_day(struct toc_my_conn *conn, const struct day *day, size_t *dropped,
         struct toc_error *reterr)
{
    bool gone = false;
    enum toc_status st =
        drop_day_of(conn, "task_info", day->name, &gone, reterr);

    if (st == TOC_OK && gone)
        *dropped += 1;
    return st;
}

/* The other tables lose every day that task_info no longer has. */
static enum toc_status
drop_orphan_days(struct toc_my_conn *conn, const char *table,
                 const struct day *kept, size_t n_kept,
                 struct toc_error *reterr)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    struct day *days;
    size_t n;
    enum toc_status st = read_days(conn, table, &arena, &days, &n, reterr);

    for (size_t i = 0; st == TOC_OK && i < n; i++) {
        bool gone;
        if (n_kept == 0 || days[i].end_ms >= kept[0].end_ms ||
            has_day(kept, n_kept, days[i].name))
            break;
        st = drop_day_of(conn, table, days[i].name, &gone, reterr);
    }
    return st;
}

/* Detached tables whose partition is gone: a crash before the very last step.
 * They were looked at before the partition went. LIKE, because MySQL has no
 * regular expressions over binary strings; a year has four digits. */
static enum toc_status
drop_leftovers(struct toc_my_conn *conn, const char *table,
               struct toc_error *reterr)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf names = {0};
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_printf(toc_my_begin(conn),
                   "SELECT TABLE_NAME FROM information_schema.TABLES AS old "
                   "WHERE TABLE_SCHEMA=DATABASE() AND "
                   "LEFT(TABLE_NAME,%zu)='old_%s_' AND "
                   "SUBSTR(TABLE_NAME,%zu) LIKE 'p2_______' AND NOT EXISTS "
                   "(SELECT 1 FROM information_schema.PARTITIONS AS day WHERE "
                   "day.TABLE_SCHEMA=DATABASE() AND day.TABLE_NAME='%s' AND "
                   "old.TABLE_NAME=CONCAT('old_%s_',day.PARTITION_NAME))",
                   strlen(table) + 5, table, strlen(table) + 6, table, table);
    st = toc_my_run(conn, reterr);
    while (st == TOC_OK && (row = toc_my_fetch(conn, 0, &lens)) != NULL) {
        toc_buf_text(&names, names.len > 0 ? "," : "");
        toc_buf_str(&names, toc_field_str(row, lens, 0));
    }
    if (st != TOC_OK || names.len == 0)
        return st;
    toc_buf_printf(toc_my_begin(conn), "DROP TABLE %s", names.data);
    return toc_my_run(conn, reterr);
}

static enum toc_status
drop_days_locked(struct toc_my_conn *conn, int64_t kept_from_ms,
                 size_t *dropped, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    struct day *days;
    size_t n, before = *dropped;
    int64_t limit = 0;
    enum toc_status st = read_limit(conn, kept_from_ms, &limit, reterr);

    if (st == TOC_OK)
        st = read_days(conn, "task_info", &arena, &days, &n, reterr);
    for (size_t i = 0; st == TOC_OK && i + 1 < n && i < DAYS_DROPPED_MAX; i++) {
        if (days[i].end_ms > limit)
            break;
        st = drop_day(conn, &days[i], dropped, reterr);
        if (*dropped == before + i)
            break; /* unfinished rows: put back, the later days wait too */
    }
    if (st == TOC_OK)
        st = read_days(conn, "task_info", &arena, &days, &n, reterr);
    for (size_t i = 0; st == TOC_OK && i + 1 < N_TABLES; i++)
        st = drop_orphan_days(conn, tables[i], days, n, reterr);
    for (size_t i = 0; st == TOC_OK && i < N_TABLES; i++)
        st = drop_leftovers(conn, tables[i], reterr);
    return st;
}

/* ---- what lies in no day
 * ------------------------------------------------------- */

/* Log rows lie where the task was, those of parked ones in p_parked. All slices
 * are named: nothing but the key leads to them. */
static enum toc_status
prune_parked_log(struct toc_my_conn *conn, struct toc_error *reterr)
{
    uint16_t slices[TOC_SHARDS * TOC_PRIORITIES];
    size_t n = sizeof slices / sizeof *slices;
    enum toc_status st = TOC_OK;
    uint64_t deleted = LOG_ROWS_MAX;

    for (size_t i = 0; i < n; i++)
        slices[i] = toc_slice_of((uint16_t)(i / TOC_PRIORITIES),
                                 (enum toc_priority)(i % TOC_PRIORITIES));
    for (int i = 0; i < LOG_STEPS_MAX && deleted == LOG_ROWS_MAX; i++) {
        toc_buf_text(toc_my_begin(conn),
                     "DELETE FROM task_log WHERE slice IN (");
        toc_sql_slices(&conn->sql, slices, n);
        toc_buf_printf(&conn->sql, ") AND slot_ms<0 AND at_ms<@kept LIMIT %d",
                       LOG_ROWS_MAX);
        st = toc_my_run(conn, reterr);
        if (st != TOC_OK)
            return st;
        deleted = conn->replies[0].affected;
    }
    return st;
}

/* Dead letters outlive their day, not retention: they are whole copies. */
static enum toc_status
prune_dead(struct toc_my_conn *conn, struct toc_error *reterr)
{
    enum toc_status st = TOC_OK;
    uint64_t deleted = DEAD_AT_ONCE;

    for (int i = 0; i < DEAD_STEPS_MAX && deleted == DEAD_AT_ONCE; i++) {
        toc_buf_printf(toc_my_begin(conn),
                       "DELETE FROM dead_task WHERE dead_ms<@kept "
                       "ORDER BY dead_ms LIMIT %d",
                       DEAD_AT_ONCE);
        st = toc_my_run(conn, reterr);
        if (st != TOC_OK)
            return st;
        deleted = conn->replies[0].affected;
    }
    return st;
}

/* What is old is so by the server's clock too: no mark guards it as it does the
 * days. */
static enum toc_status
prune(struct toc_my_conn *conn, int64_t now_ms, int64_t retention_ms,
      struct toc_error *reterr)
{
    enum toc_status st;

    toc_buf_printf(toc_my_begin(conn),
                   "SET @kept=LEAST(%lld," TOC_MY_NOW ")-%lld",
                   (long long)now_ms, (long long)retention_ms);
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        st = prune_parked_log(conn, reterr);
    return st == TOC_OK ? prune_dead(conn, reterr) : st;
}

enum toc_status
toc_my_drop_days(void *self, int64_t now_ms, int64_t retention_ms,
                 size_t *ret_dropped, struct toc_error *reterr)
{
    struct toc_my_conn *conn;
    size_t dropped = 0;
    enum toc_status st = toc_my_connect(self, DDL_TIMEOUT_MS, &conn, reterr);

    if (st != TOC_OK)
        return st;
    st = toc_my_lock_schema(conn, LOCK_WAIT_S, reterr);
    if (st == TOC_OK) {
        st = drop_days_locked(conn, now_ms - retention_ms, &dropped, reterr);
        toc_my_unlock_schema(conn);
    }
    if (st == TOC_OK)
        st = prune(conn, now_ms, retention_ms, reterr);
    toc_my_disconnect(conn);
    if (st == TOC_OK)
        *ret_dropped = dropped;
    return st;
}
