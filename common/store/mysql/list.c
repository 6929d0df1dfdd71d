/*
 * Lists of tasks in the order of the primary key, a page at a time.
 *
 * A page looks at about EXAMINED_MAX rows, whatever the filter lets through, so
 * it may hold fewer than asked for, with more to come. Where it ends is read
 * first, then the matches up to there: were it the other way round, a row that
 * is removed in between would move the end over rows that were not looked at.
 * With a business id the tasks are found by their keys.
 */
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"
#include "common/store/mysql/store_mysql_internal.h"

#include <stdlib.h>

#define EXAMINED_MAX 5000

struct listing {
    const struct toc_task_filter *filter;
    size_t max;
    struct toc_cursor cursor;
    struct toc_arena *arena;
    struct toc_task *tasks;
    size_t n;
    size_t seen; /* rows of the page, and the last of them */
    struct toc_cursor last;
};

static bool
has_due(const struct toc_task_filter *f)
{
    return f->due_from_ms != 0 || f->due_to_ms != 0;
}

static bool
filters(const struct toc_task_filter *f)
{
    return f->biz_type.len > 0 || f->biz_id.len > 0 || f->state_mask != 0 ||
           has_due(f);
}

static bool
matches(const struct toc_task_filter *f, const struct toc_task *task)
{
    if (f->biz_type.len > 0 && !toc_str_eq(f->biz_type, task->biz_type))
        return false;
    if (f->biz_id.len > 0 && !toc_str_eq(f->biz_id, task->biz_id))
        return false;
    if (f->state_mask != 0 && (f->state_mask & 1u << task->state) == 0)
        return false;
    return !has_due(f) ||
           (task->due_ms >= f->due_from_ms && task->due_ms < f->due_to_ms);
}

static void
where_after(struct toc_buf *sql, const struct toc_cursor *c)
{
    if (!c->set) {
        toc_buf_text(sql, "1=1");
        return;
    }
    toc_buf_printf(sql, "((slice=%u AND slot_ms=%lld AND task_id>", c->slice,
                   (long long)c->slot_ms);
    toc_sql_id(sql, c->id);
    toc_buf_printf(sql, ") OR (slice=%u AND slot_ms>%lld) OR slice>%u)",
                   c->slice, (long long)c->slot_ms, c->slice);
}

static void
where_until(struct toc_buf *sql, const struct toc_cursor *end)
{
    if (!end->set)
        return;
    toc_buf_printf(sql,
                   " AND (slice<%u OR (slice=%u AND slot_ms<%lld) OR (slice=%u "
                   "AND slot_ms=%lld AND task_id<=",
                   end->slice, end->slice, (long long)end->slot_ms, end->slice,
                   (long long)end->slot_ms);
    toc_sql_id(sql, end->id);
    toc_buf_text(sql, "))");
}

static void
where_filter(struct toc_buf *sql, const struct toc_task_filter *f)
{
    const char *comma = "";

    if (f->biz_type.len > 0) {
        toc_buf_text(sql, " AND biz_type=");
        toc_sql_bytes(sql, f->biz_type);
    }
    if (f->biz_id.len > 0) {
        toc_buf_text(sql, " AND biz_id=");
        toc_sql_bytes(sql, f->biz_id);
    }
    if (has_due(f))
        toc_buf_printf(sql, " AND due_ms>=%lld AND due_ms<%lld",
                       (long long)f->due_from_ms, (long long)f->due_to_ms);
    if (f->state_mask == 0)
        return;
    toc_buf_text(sql, " AND status IN (");
    for (unsigned state = 0; state < 16; state++) {
        if ((f->state_mask & 1u << state) == 0)
            continue;
        toc_buf_printf(sql, "%s%u", comma, state);
        comma = ",";
    }
    toc_buf_char(sql, ')');
}

/* The last row of the page; not set: the page goes to the end. */
static enum toc_status
read_end(struct toc_my_conn *conn, const struct listing *l,
         struct toc_cursor *end, struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    size_t examined = filters(l->filter) ? EXAMINED_MAX : l->max;
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_text(sql, "SELECT slice,slot_ms,task_id FROM task_info FORCE INDEX "
                      "(PRIMARY) WHERE ");
    where_after(sql, &l->cursor);
    toc_buf_printf(sql, " ORDER BY slice,slot_ms,task_id LIMIT 1 OFFSET %zu",
                   examined - 1);
    st = toc_my_run(conn, reterr);
    *end = (struct toc_cursor){.set = false};
    if (st != TOC_OK || (row = toc_my_fetch(conn, 0, &lens)) == NULL)
        return st;
    end->set = toc_field_bytes(row, lens, 2, end->id.b, sizeof end->id.b);
    end->slice = (uint16_t)toc_field_u64(row, lens, 0);
    end->slot_ms = toc_field_i64(row, lens, 1);
    return TOC_OK;
}

/* A row that makes no sense has a place, too. */
static void
set_last(struct listing *l, MYSQL_ROW row, const unsigned long *lens)
{
    l->last.set =
        toc_field_bytes(row, lens, 2, l->last.id.b, sizeof l->last.id.b);
    l->last.slice = (uint16_t)toc_field_u64(row, lens, 0);
    l->last.slot_ms = toc_field_i64(row, lens, 1);
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
    toc_buf_text(sql, " FROM task_info FORCE INDEX (PRIMARY) WHERE ");
    where_after(sql, &l->cursor);
    where_until(sql, end);
    where_filter(sql, l->filter);
    toc_buf_printf(sql, " ORDER BY slice,slot_ms,task_id LIMIT %zu", l->max);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    l->n = 0;
    l->tasks = toc_arena_calloc(
        l->arena, (size_t)mysql_num_rows(conn->replies[0].rows) + 1,
        sizeof *l->tasks);
    l->seen = 0;
    while ((row = toc_my_fetch(conn, 0, &lens)) != NULL) {
        struct toc_error bad = {0};
        struct toc_task *task = &l->tasks[l->n];
        l->seen++;
        set_last(l, row, lens);
        if (toc_row_decode(row, lens, l->arena, task, &bad) == TOC_OK)
            l->n++;
        else
            toc_row_bad(&conn->store->port, row, lens, &bad);
    }
    return TOC_OK;
}

/* The next page begins after the last match when this one is full, else after
 * the last row that it covers. */
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

/* ---- by business id
 * ----------------------------------------------------------- */

static int
cmp_place(const void *a, const void *b)
{
    struct toc_task_ref x = toc_task_ref_of(a), y = toc_task_ref_of(b);

    return toc_task_ref_cmp(&x, &y);
}

static bool
is_after(const struct toc_cursor *c, const struct toc_task *task)
{
    struct toc_task_ref at = {
        .slice = c->slice, .slot_ms = c->slot_ms, .id = c->id};
    struct toc_task_ref ref = toc_task_ref_of(task);

    return !c->set || toc_task_ref_cmp(&ref, &at) > 0;
}

static enum toc_status
list_by_biz(void *self, struct listing *l, struct toc_error *reterr)
{
    size_t n, kept = 0;
    enum toc_status st =
        toc_my_list_biz(self, l->filter->biz_type, l->filter->biz_id, l->arena,
                        &l->tasks, &n, reterr);

    if (st != TOC_OK)
        return st;
    for (size_t i = 0; i < n; i++)
        if (matches(l->filter, &l->tasks[i]) &&
            is_after(&l->cursor, &l->tasks[i]))
            l->tasks[kept++] = l->tasks[i];
    qsort(l->tasks, kept, sizeof *l->tasks, cmp_place);
    l->cursor.set = false;
    l->n = kept;
    if (kept > l->max) {
        const struct toc_task *last = &l->tasks[l->max - 1];
        l->n = l->max;
        l->cursor =
            (struct toc_cursor){true, last->slice, last->slot_ms, last->id};
    }
    return TOC_OK;
}

enum toc_status
toc_my_list_tasks(void *self, const struct toc_task_filter *filter, size_t max,
                  struct toc_cursor *cursor, struct toc_arena *arena,
                  struct toc_task **ret_tasks, size_t *ret_n,
                  struct toc_error *reterr)
{
    struct listing l = {.filter = filter,
                        .max = max < EXAMINED_MAX ? max : EXAMINED_MAX,
                        .cursor = *cursor,
                        .arena = arena};
    enum toc_status st;

    if (filter->biz_type.len > 0 && filter->biz_id.len > 0)
        st = list_by_biz(self, &l, reterr);
    else
        st = toc_my_transact(self, page_body, &l, 0, reterr);
    if (st != TOC_OK)
        return st;
    *cursor = l.cursor;
    *ret_tasks = l.tasks;
    *ret_n = l.n;
    return TOC_OK;
}
