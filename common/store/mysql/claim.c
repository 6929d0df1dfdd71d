/*
 * The claim: one UPDATE, the only decision there is. It leaves the version
 * alone, and compares the server's clock as well as the executor's.
 *
 * An UPDATE whose outcome is unknown is simply sent again: rows that it won the
 * first time bear the token and are found when reading back.
 */
#include "common/store/mysql/store_mysql_internal.h"

#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

#include <string.h>

struct claiming {
    struct toc_claim *claims;
    const struct toc_sql_row *rows; /* sorted; item: place in claims */
    size_t n;
    const struct toc_claim_lock *lock;
    struct toc_arena *arena;
};

static void
write_update(struct toc_my_conn *conn, const struct claiming *c,
             const int64_t *sched_nodes)
{
    const struct toc_claim_lock *lock = c->lock;
    struct toc_buf *sql = toc_my_begin(conn);

    toc_buf_printf(sql,
                   "UPDATE task_info SET status=%d,lock_token=%llu,"
                   "lock_until_ms=%lld,claimed_ms=%lld,exec_node=%lu,"
                   "called_ms=0,ended_ms=0,result=0,error='',sched_node=",
                   TOC_STATE_EXECUTING, (unsigned long long)lock->token,
                   (long long)lock->lock_until_ms, (long long)lock->now_ms,
                   (unsigned long)lock->exec_node);
    toc_sql_case_i64(sql, c->rows, sched_nodes, c->n);
    toc_buf_text(sql, " WHERE ");
    toc_sql_where_rows(sql, "", c->rows, c->n, TOC_SQL_VERSION);
    toc_buf_printf(sql,
                   " AND status IN (%d,%d) AND due_ms<=%lld AND "
                   "due_ms<=" TOC_MY_NOW,
                   TOC_STATE_INIT, TOC_STATE_RETRY, (long long)lock->now_ms);
    conn->commits = true;
}

static enum toc_claim_result
judge(const struct toc_task *task, const struct toc_claim *claim,
      uint64_t token)
{
    bool waits =
        task->state == TOC_STATE_INIT || task->state == TOC_STATE_RETRY;

    if (task->state == TOC_STATE_EXECUTING && task->lock_token == token)
        return TOC_CLAIM_WON;
    if (waits && task->version == claim->ref.version)
        return TOC_CLAIM_EARLY; /* nothing but the clock was against it */
    return TOC_CLAIM_TAKEN;
}

static int
cmp_id(const void *key, const void *row)
{
    const struct toc_task *task = key;
    const struct toc_sql_row *at = row;
    const struct toc_task_ref ref = toc_task_ref_of(task);

    return toc_task_ref_cmp(&ref, &at->ref);
}

/* Binary search: rows are sorted by key. */
static struct toc_claim *
claim_of(const struct claiming *c, const struct toc_task *task)
{
    size_t low = 0, high = c->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = cmp_id(task, &c->rows[mid]);
        if (order == 0)
            return &c->claims[c->rows[mid].item];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

static enum toc_status
read_back(struct toc_my_conn *conn, const struct claiming *c, bool full,
          struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_text(sql, "SELECT ");
    toc_row_select(sql, "", full ? TOC_ROW_FULL : TOC_ROW_HINT);
    toc_buf_text(sql, " FROM task_info WHERE ");
    toc_sql_where_rows(sql, "", c->rows, c->n, 0);
    st = toc_my_run(conn, reterr);
    while (st == TOC_OK && (row = toc_my_fetch(conn, 0, &lens)) != NULL) {
        struct toc_error bad = {0};
        struct toc_claim *claim;
        struct toc_task task;
        if (toc_row_decode(row, lens, NULL, &task, &bad) != TOC_OK) {
            toc_row_bad(&conn->store->port, row, lens, &bad);
            continue; /* nobody can run it; the others go on */
        }
        if ((claim = claim_of(c, &task)) == NULL)
            continue;
        claim->result = judge(&task, claim, c->lock->token);
        if (claim->result != TOC_CLAIM_WON || !claim->want_row)
            continue;
        claim->row = toc_arena_alloc(c->arena, sizeof *claim->row);
        st = toc_row_decode(row, lens, c->arena, claim->row, reterr);
    }
    return st;
}

static enum toc_status
claim_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    const struct claiming *c = arg;
    int64_t sched_nodes[TOC_MY_ROWS_MAX];
    bool all, full = false;
    enum toc_status st;

    for (size_t i = 0; i < c->n; i++) {
        sched_nodes[i] = c->claims[i].sched_node;
        full = full || c->claims[i].want_row;
    }
    write_update(conn, c, sched_nodes);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    all = conn->replies[0].affected == c->n;
    /* When rows are read, only a row that was seen is won: one that is gone by
     * then lost its lock to a sweep and moved. */
    for (size_t i = 0; i < c->n; i++) {
        c->claims[i].result = all && !full ? TOC_CLAIM_WON : TOC_CLAIM_TAKEN;
        c->claims[i].row = NULL;
    }
    return all && !full ? TOC_OK : read_back(conn, c, full, reterr);
}

static enum toc_status
claim_some(struct toc_store_mysql *store, struct toc_claim *claims, size_t n,
           const struct toc_claim_lock *lock, struct toc_arena *arena,
           struct toc_error *reterr)
{
    struct toc_sql_row rows[TOC_MY_ROWS_MAX];
    struct claiming c = {claims, rows, n, lock, arena};

    for (size_t i = 0; i < n; i++)
        rows[i] = (struct toc_sql_row){.ref = claims[i].ref, .item = i};
    toc_sql_sort_rows(rows, n);
    return toc_my_transact(store, claim_body, &c, lock->now_ms, reterr);
}

/* Each claim stands alone, so more than a statement's worth is no transaction:
 * if a later part fails, the caller claims again with the same token. */
enum toc_status
toc_my_claim(void *self, struct toc_claim *claims, size_t n,
             const struct toc_claim_lock *lock, struct toc_arena *arena,
             struct toc_error *reterr)
{
    enum toc_status st = TOC_OK;

    for (size_t at = 0; st == TOC_OK && at < n; at += TOC_MY_ROWS_MAX) {
        size_t some = n - at < TOC_MY_ROWS_MAX ? n - at : TOC_MY_ROWS_MAX;
        st = claim_some(self, claims + at, some, lock, arena, reterr);
    }
    return st;
}

/* ---- renewing ---------------------------------------------------------------
 */

struct renewing {
    const struct toc_sql_row *rows;
    size_t n;
    int64_t until_ms;
    size_t renewed;
};

static enum toc_status
renew_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct renewing *r = arg;
    struct toc_buf *sql = toc_my_begin(conn);
    enum toc_status st;

    toc_buf_printf(sql,
                   "UPDATE task_info SET lock_until_ms="
                   "GREATEST(lock_until_ms,%lld) WHERE ",
                   (long long)r->until_ms);
    toc_sql_where_rows(sql, "", r->rows, r->n, TOC_SQL_TOKEN);
    toc_buf_printf(sql, " AND status=%d", TOC_STATE_EXECUTING);
    conn->commits = true;
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        r->renewed = (size_t)conn->replies[0].affected;
    return st;
}

enum toc_status
toc_my_renew(void *self, const struct toc_task_ref *refs,
             const uint64_t *tokens, size_t n, int64_t lock_until_ms,
             size_t *ret_renewed, struct toc_error *reterr)
{
    struct toc_sql_row rows[TOC_MY_ROWS_MAX];
    enum toc_status st = TOC_OK;
    size_t renewed = 0;

    for (size_t at = 0; st == TOC_OK && at < n; at += TOC_MY_ROWS_MAX) {
        size_t some = n - at < TOC_MY_ROWS_MAX ? n - at : TOC_MY_ROWS_MAX;
        struct renewing r = {rows, some, lock_until_ms, 0};
        for (size_t i = 0; i < some; i++)
            rows[i] = (struct toc_sql_row){
                .ref = refs[at + i], .token = tokens[at + i], .item = at + i};
        toc_sql_sort_rows(rows, some);
        st = toc_my_transact(self, renew_body, &r, 0, reterr);
        renewed += r.renewed;
    }
    if (st == TOC_OK)
        *ret_renewed = renewed;
    return st;
}
