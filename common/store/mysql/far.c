/*
 * Far rows, which lie parked until their due time is a day ahead, move into
 * their day. Anybody may do it: the move is compare-and-set on the version.
 */
#include "common/store/mysql/store_mysql_internal.h"

#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

#include <string.h>

struct far_move {
    const uint16_t *slices;
    size_t n_slices;
    int64_t now_ms;
    size_t max;
    size_t n;
    struct toc_sql_row rows[TOC_MY_ROWS_MAX];
    int64_t slots[TOC_MY_ROWS_MAX];
    struct toc_key_hash keys[TOC_MY_ROWS_MAX];
};

static enum toc_status
read_far(struct toc_my_conn *conn, struct far_move *m, struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_text(sql, "SELECT slice,slot_ms,task_id,version,due_ms,key_hash "
                      "FROM task_info FORCE INDEX (PRIMARY) WHERE slice IN (");
    toc_sql_slices(sql, m->slices, m->n_slices);
    toc_buf_printf(sql,
                   ") AND slot_ms>=%lld AND slot_ms<%lld AND status IN (%d,%d) "
                   "LIMIT %zu",
                   (long long)-TOC_PARK_FAR_MS,
                   (long long)(m->now_ms + TOC_FAR_MOVE_MS - TOC_PARK_FAR_MS),
                   TOC_STATE_INIT, TOC_STATE_RETRY, m->max);
    st = toc_my_run(conn, reterr);
    m->n = 0;
    while (st == TOC_OK && (row = toc_my_fetch(conn, 0, &lens)) != NULL) {
        struct toc_sql_row *at = &m->rows[m->n];
        at->item = m->n;
        at->ref.slice = (uint16_t)toc_field_u64(row, lens, 0);
        at->ref.slot_ms = toc_field_i64(row, lens, 1);
        at->ref.version = (uint32_t)toc_field_u64(row, lens, 3);
        m->slots[m->n] =
            toc_slot_for_due(toc_field_i64(row, lens, 4), m->now_ms);
        if (toc_slot_is_parked(m->slots[m->n])) { /* it would go nowhere */
            struct toc_error bad = {0};
            (void)toc_error_set(&bad, TOC_DATA_LOSS, "mysql", 0,
                                "a far row's due time is not that of its "
                                "place");
            toc_row_bad(&conn->store->port, row, lens, &bad);
            continue;
        }
        if (toc_field_bytes(row, lens, 2, at->ref.id.b, sizeof at->ref.id.b) &&
            toc_field_bytes(row, lens, 5, m->keys[m->n].b, 16))
            m->n++;
    }
    return st;
}

static void
write_keys(struct toc_buf *sql, const struct far_move *m)
{
    toc_buf_text(sql, "UPDATE task_key SET slot_ms=");
    toc_sql_case_slot(sql, m->rows, m->slots, m->n);
    toc_buf_text(sql, " WHERE key_hash IN (");
    for (size_t i = 0; i < m->n; i++) {
        if (i > 0)
            toc_buf_char(sql, ',');
        toc_sql_hash(sql, m->keys[m->rows[i].item]);
    }
    toc_buf_text(sql, ") AND task_id IN (");
    for (size_t i = 0; i < m->n; i++) {
        if (i > 0)
            toc_buf_char(sql, ',');
        toc_sql_id(sql, m->rows[i].ref.id);
    }
    toc_buf_char(sql, ')');
}

static enum toc_status
far_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct far_move *m = arg;
    enum toc_status st = read_far(conn, m, reterr);
    struct toc_buf *sql;

    if (st != TOC_OK || m->n == 0)
        return st;
    toc_sql_sort_rows(m->rows, m->n);
    toc_my_begin(conn);
    toc_my_add(conn, "START TRANSACTION");
    toc_sql_lock_shards(toc_my_next(conn), m->rows, m->n);
    sql = toc_my_next(conn);
    toc_buf_text(sql, "UPDATE task_info SET version=version+1,slot_ms=");
    toc_sql_case_slot(sql, m->rows, m->slots, m->n);
    toc_buf_text(sql, " WHERE ");
    toc_sql_where_rows(sql, "", m->rows, m->n, TOC_SQL_VERSION);
    toc_buf_printf(sql, " AND status IN (%d,%d)", TOC_STATE_INIT,
                   TOC_STATE_RETRY);
    toc_my_guard_rows(conn, m->n);
    write_keys(toc_my_next(conn), m);
    toc_my_commit(conn);
    return toc_my_run(conn, reterr);
}

/* The day of the slots may not be made yet when now is a caller's own. */
enum toc_status
toc_my_move_far(void *self, const uint16_t *slices, size_t n, int64_t now_ms,
                size_t max, size_t *ret_moved, struct toc_error *reterr)
{
    TOC_AUTO_FREE struct far_move *m = TOC_NEW(struct far_move);
    enum toc_status st = TOC_OK;
    size_t moved = 0;

    m->slices = slices;
    m->n_slices = n;
    m->now_ms = now_ms;
    while (st == TOC_OK && moved < max) {
        m->max = max - moved < TOC_MY_ROWS_MAX ? max - moved : TOC_MY_ROWS_MAX;
        st = toc_my_transact(self, far_body, m, now_ms, reterr);
        if (st == TOC_OK && m->n == 0)
            break;
        moved += m->n;
    }
    if (st == TOC_OK)
        *ret_moved = moved;
    return st;
}
