/*
 * Keys of tasks that ended long ago move to the history of keys, which is
 * dropped by day.
 *
 * Each shard has a cursor, keygc_ms: no task at a slot below it holds its key
 * any more. The range behind it is taken in steps of about as many rows as may
 * be freed. A row that still needs its key (unfinished, or ended within the
 * window) holds the cursor. The other keys of its step are freed (those freed
 * before are skipped, because only rows that hold their key are taken), but no
 * step beyond it: each call would have to read its way there anew. A straggler
 * thus lets the keys of its shard pile up until it ends. They are not in the
 * way: a submit takes an expired key over by itself.
 */
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"
#include "common/store/mysql/store_mysql_internal.h"

struct freeing_keys {
    uint16_t shard;
    int64_t ended_before_ms; /* now - window */
    size_t max;
    int64_t from_ms, to_ms; /* this step: [from, to) */
    int64_t limit_ms;
    size_t freed;
    bool more; /* there is a next step */
};

static void
in_range(struct toc_buf *sql, const struct freeing_keys *f)
{
    unsigned first = f->shard * TOC_SLICES_PER_SHARD;

    toc_buf_printf(sql,
                   "t.slice IN (%u,%u,%u) AND t.slot_ms>=%lld AND "
                   "t.slot_ms<%lld",
                   first, first + 1, first + 2, (long long)f->from_ms,
                   (long long)f->to_ms);
}

/* The step's end: where any of the slices has max / 3 rows. */
static enum toc_status
find_step(struct toc_my_conn *conn, struct freeing_keys *f,
          struct toc_error *reterr)
{
    unsigned first = f->shard * TOC_SLICES_PER_SHARD;
    int64_t low_ms;
    enum toc_status st;

    toc_buf_printf(toc_my_begin(conn),
                   "SELECT low_ms FROM shard_owner WHERE shard_id=%u",
                   f->shard);
    toc_buf_printf(toc_my_next(conn),
                   "SELECT keygc_ms FROM shard_owner WHERE shard_id=%u",
                   f->shard);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    low_ms = toc_my_number(conn, 0, 0);
    f->from_ms = toc_my_number(conn, 1, 0);
    f->limit_ms = low_ms < f->ended_before_ms ? low_ms : f->ended_before_ms;
    f->to_ms = f->limit_ms;
    if (f->from_ms >= f->limit_ms)
        return TOC_OK;
    toc_my_begin(conn);
    for (unsigned prio = 0; prio < TOC_PRIORITIES; prio++)
        toc_buf_printf(toc_my_next(conn),
                       "SELECT slot_ms FROM task_info WHERE slice=%u AND "
                       "slot_ms>=%lld AND slot_ms<%lld ORDER BY slot_ms "
                       "LIMIT 1 OFFSET %zu",
                       first + prio, (long long)f->from_ms,
                       (long long)f->limit_ms, f->max / 3 + 1);
    st = toc_my_run(conn, reterr);
    for (unsigned prio = 0; st == TOC_OK && prio < TOC_PRIORITIES; prio++) {
        int64_t slot_ms = toc_my_number(conn, prio, f->limit_ms);
        if (slot_ms < f->to_ms)
            f->to_ms = slot_ms;
    }
    if (f->to_ms <= f->from_ms)
        f->to_ms = f->from_ms + 1;
    return st;
}

static void
ask_rows(struct toc_my_conn *conn, const struct freeing_keys *f)
{
    struct toc_buf *sql = toc_my_begin(conn);

    toc_buf_text(sql, "SELECT t.key_hash,t.slot_ms,t.task_id,t.slice "
                      "FROM task_info t STRAIGHT_JOIN task_key k ON "
                      "k.key_hash=t.key_hash AND k.task_id=t.task_id WHERE ");
    in_range(sql, f);
    toc_buf_printf(sql,
                   " AND t.status>=%d AND t.ended_ms<%lld "
                   "ORDER BY t.key_hash LIMIT %zu",
                   TOC_STATE_ENDED, (long long)f->ended_before_ms,
                   f->max - f->freed);
    sql = toc_my_next(conn);
    toc_buf_text(sql, "SELECT MIN(t.slot_ms) FROM task_info t WHERE ");
    in_range(sql, f);
    toc_buf_printf(sql, " AND NOT (t.status>=%d AND t.ended_ms<%lld)",
                   TOC_STATE_ENDED, (long long)f->ended_before_ms);
}

/* The history and the removal for the rows read. The slot is compared too: a
 * redriven task has its key back, at another slot. */
static size_t
write_free(struct toc_my_conn *conn)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf history = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf keys = {0};
    const unsigned long *lens;
    MYSQL_ROW row;
    size_t n = 0;

    while ((row = toc_my_fetch(conn, 0, &lens)) != NULL) {
        const char *comma = n++ > 0 ? "," : "";
        struct toc_str hash = toc_field_str(row, lens, 0);
        struct toc_str id = toc_field_str(row, lens, 2);
        int64_t slot_ms = toc_field_i64(row, lens, 1);
        toc_buf_printf(&history, "%s(", comma);
        toc_sql_bytes(&history, hash);
        toc_buf_printf(&history, ",%lld,", (long long)slot_ms);
        toc_sql_bytes(&history, id);
        toc_buf_printf(&history, ",%llu)",
                       (unsigned long long)toc_field_u64(row, lens, 3));
        toc_buf_printf(&keys, "%s(", comma);
        toc_sql_bytes(&keys, hash);
        toc_buf_char(&keys, ',');
        toc_sql_bytes(&keys, id);
        toc_buf_printf(&keys, ",%lld)", (long long)slot_ms);
    }
    toc_my_begin(conn);
    if (n == 0)
        return 0;
    toc_my_add(conn, "START TRANSACTION");
    /* The key first: the order of submit. */
    toc_buf_printf(toc_my_next(conn),
                   "DELETE FROM task_key WHERE (key_hash,task_id,slot_ms) IN "
                   "(%s%s)",
                   keys.data, n == 1 ? ",(x'',x'',0)" : "");
    toc_buf_printf(toc_my_next(conn),
                   "INSERT IGNORE INTO key_history "
                   "(key_hash,slot_ms,task_id,slice) VALUES %s",
                   history.data);
    toc_my_commit(conn);
    return n;
}

static enum toc_status
free_step(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct freeing_keys *f = arg;
    enum toc_status st = find_step(conn, f, reterr);
    int64_t blocker;
    bool full;
    size_t n;

    f->more = false;
    if (st != TOC_OK || f->from_ms >= f->limit_ms)
        return st;
    ask_rows(conn, f);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    blocker = toc_my_number(conn, 1, f->to_ms);
    n = write_free(conn);
    full = f->freed + n >= f->max;
    if (!full && blocker > f->from_ms) {
        toc_buf_printf(toc_my_next(conn),
                       "UPDATE shard_owner SET keygc_ms=GREATEST(keygc_ms,"
                       "%lld) WHERE shard_id=%u",
                       (long long)blocker, f->shard);
        conn->commits = true;
    }
    if (conn->sql.len > 0)
        st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    f->freed += n;
    f->more = !full && blocker >= f->to_ms && f->to_ms < f->limit_ms;
    return TOC_OK;
}

enum toc_status
toc_my_gc_keys(void *self, uint16_t shard, int64_t now_ms, int64_t window_ms,
               size_t max, size_t *ret_freed, struct toc_error *reterr)
{
    struct freeing_keys f = {.shard = shard,
                             .ended_before_ms = now_ms - window_ms,
                             .max =
                                 max < TOC_MY_ROWS_MAX ? max : TOC_MY_ROWS_MAX};
    size_t freed = 0;
    enum toc_status st;

    do {
        st = toc_my_transact(self, free_step, &f, now_ms, reterr);
        if (f.freed == f.max && freed + f.freed < max) {
            freed += f.freed;
            f.freed = 0;
            f.max =
                max - freed < TOC_MY_ROWS_MAX ? max - freed : TOC_MY_ROWS_MAX;
            f.more = true;
        }
    } while (st == TOC_OK && f.more);
    if (st == TOC_OK)
        *ret_freed = freed + f.freed;
    return st;
}
