/*
 * What the scheduler reads: rows about to be due, unfinished rows of the past,
 * recorded stragglers. All are one SELECT with constant slot bounds and a list
 * of slices (anything else reads whole days), streamed to the caller. The index
 * is forced: a server that was just started knows no better than to read a
 * small day from end to end, and so meets a broken page of a shard that was
 * left out.
 *
 * When the connection breaks midway the statement is sent again, so a row may
 * come twice.
 */
#include "common/store/mysql/store_mysql_internal.h"

#include "common/store/mysql/find.h"
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

#include <stdlib.h>

struct loading {
    const struct toc_store_mysql *store;
    const uint16_t *slices;
    size_t n;
    const struct toc_slot_span *spans;
    size_t n_spans;
    int64_t from_ms, to_ms;
    toc_store_task_fn *fn;
    void *arg;
};

/* A row that makes no sense must not keep the others from being seen. */
static enum toc_status
take_row(void *arg, MYSQL_ROW row, const unsigned long *lens,
         struct toc_error *reterr)
{
    const struct loading *l = arg;
    struct toc_error error = {0};
    struct toc_task task;

    (void)reterr;
    if (toc_row_decode(row, lens, NULL, &task, &error) == TOC_OK)
        l->fn(l->arg, &task);
    else
        toc_row_bad(&l->store->port, row, lens, &error);
    return TOC_OK;
}

static void
select_rows(struct toc_buf *sql)
{
    toc_buf_text(sql, "SELECT ");
    toc_row_select(sql, "t.", TOC_ROW_HINT);
}

static enum toc_status
load_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct loading *l = arg;
    struct toc_buf *sql = toc_my_begin(conn);
    size_t seen;

    select_rows(sql);
    toc_buf_text(sql, " FROM task_info t FORCE INDEX (PRIMARY) "
                      "WHERE t.slice IN (");
    toc_sql_slices(sql, l->slices, l->n);
    toc_buf_text(sql, ") AND (");
    for (size_t i = 0; i < l->n_spans; i++)
        toc_buf_printf(sql, "%s(t.slot_ms>%lld AND t.slot_ms<=%lld)",
                       i > 0 ? " OR " : "", (long long)l->spans[i].after_ms,
                       (long long)l->spans[i].to_ms);
    toc_buf_printf(sql, ") AND t.status IN (%d,%d)", TOC_STATE_INIT,
                   TOC_STATE_RETRY);
    return toc_my_stream(conn, take_row, l, &seen, reterr);
}

enum toc_status
toc_my_load(void *self, const uint16_t *slices, size_t n,
            const struct toc_slot_span *spans, size_t n_spans,
            toc_store_task_fn *fn, void *arg, struct toc_error *reterr)
{
    struct loading l = {.store = self,
                        .slices = slices,
                        .n = n,
                        .spans = spans,
                        .n_spans = n_spans,
                        .fn = fn,
                        .arg = arg};

    return toc_my_transact(self, load_body, &l, 0, reterr);
}

/* ---- scan
 * -------------------------------------------------------------------- */

struct slice_from {
    uint16_t slice;
    int64_t from_ms;
};

static int
cmp_from(const void *a, const void *b)
{
    const struct slice_from *x = a, *y = b;

    if (x->from_ms != y->from_ms)
        return x->from_ms < y->from_ms ? -1 : 1;
    return (int)x->slice - (int)y->slice;
}

static enum toc_status
read_lows(struct toc_my_conn *conn, int64_t lows[TOC_SHARDS],
          struct toc_error *reterr)
{
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_text(toc_my_begin(conn), "SELECT shard_id,low_ms FROM shard_owner");
    st = toc_my_run(conn, reterr);
    while (st == TOC_OK && (row = toc_my_fetch(conn, 0, &lens)) != NULL) {
        uint64_t shard = toc_field_u64(row, lens, 0);
        if (shard < TOC_SHARDS)
            lows[shard] = toc_field_i64(row, lens, 1);
    }
    return st;
}

/* (slice IN (...) AND slot_ms>=A AND slot_ms<Z) OR ...: slices whose shards
 * have the same mark together. False when there is nothing to read. */
static bool
where_from(struct toc_buf *sql, const struct slice_from *at, size_t n,
           int64_t to_ms)
{
    const char * or = "";
    bool any = false;

    for (size_t i = 0; i < n;) {
        size_t same = i;
        if (at[i].from_ms >= to_ms)
            break;
        toc_buf_printf(sql, "%s(t.slice IN (", or);
        for (; same < n && at[same].from_ms == at[i].from_ms; same++)
            toc_buf_printf(sql, "%s%u", same > i ? "," : "", at[same].slice);
        toc_buf_printf(sql, ") AND t.slot_ms>=%lld AND t.slot_ms<%lld)",
                       (long long)at[i].from_ms, (long long)to_ms);
        or = " OR ";
        any = true;
        i = same;
    }
    return any;
}

static enum toc_status
scan_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct loading *l = arg;
    TOC_AUTO_FREE struct slice_from *from =
        TOC_NEW_ARRAY(struct slice_from, l->n);
    int64_t lows[TOC_SHARDS] = {0};
    enum toc_status st = read_lows(conn, lows, reterr);
    struct toc_buf *sql;
    size_t seen;

    if (st != TOC_OK)
        return st;
    for (size_t i = 0; i < l->n; i++) {
        int64_t low_ms = lows[toc_slice_shard(l->slices[i]) % TOC_SHARDS];
        from[i].slice = l->slices[i];
        from[i].from_ms = low_ms > l->from_ms ? low_ms : l->from_ms;
    }
    qsort(from, l->n, sizeof *from, cmp_from);
    sql = toc_my_begin(conn);
    select_rows(sql);
    toc_buf_text(sql, " FROM task_info t FORCE INDEX (PRIMARY) WHERE (");
    if (!where_from(sql, from, l->n, l->to_ms))
        return TOC_OK;
    toc_buf_printf(sql, ") AND t.status<%d", TOC_STATE_ENDED);
    return toc_my_stream(conn, take_row, l, &seen, reterr);
}

enum toc_status
toc_my_scan(void *self, const uint16_t *slices, size_t n, int64_t from_ms,
            int64_t to_ms, toc_store_task_fn *fn, void *arg,
            struct toc_error *reterr)
{
    struct loading l = {.store = self,
                        .slices = slices,
                        .n = n,
                        .from_ms = from_ms,
                        .to_ms = to_ms,
                        .fn = fn,
                        .arg = arg};

    return toc_my_transact(self, scan_body, &l, 0, reterr);
}

static enum toc_status
stragglers_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct loading *l = arg;
    struct toc_buf *sql = toc_my_begin(conn);
    size_t seen;

    select_rows(sql);
    toc_buf_text(sql, " FROM straggler k STRAIGHT_JOIN "
                      "task_info t ON t.slice=k.slice AND "
                      "t.slot_ms=k.slot_ms AND t.task_id=k.task_id "
                      "WHERE k.slice IN (");
    toc_sql_slices(sql, l->slices, l->n);
    toc_buf_printf(sql, ") AND t.status<%d", TOC_STATE_ENDED);
    return toc_my_stream(conn, take_row, l, &seen, reterr);
}

enum toc_status
toc_my_scan_stragglers(void *self, const uint16_t *slices, size_t n,
                       toc_store_task_fn *fn, void *arg,
                       struct toc_error *reterr)
{
    struct loading l = {
        .store = self, .slices = slices, .n = n, .fn = fn, .arg = arg};

    return toc_my_transact(self, stragglers_body, &l, 0, reterr);
}
