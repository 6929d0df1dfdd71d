#include "common/store/mysql/find.h"

#include "common/base/log.h"
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

#include <string.h>

#define HOPS_MAX 1000
/* Whole rows, payloads and all: one, but for a collision of hashes. */
#define HISTORY_MAX 3

static bool
same_texts(const struct toc_find *find, const struct toc_task *task)
{
    return toc_str_eq(find->biz_type, task->biz_type) &&
           toc_str_eq(find->biz_id, task->biz_id) &&
           toc_str_eq(find->name, task->name);
}

/* A hash says which row, only the texts say that it is the right one. */
static bool
is_it(const struct toc_find *find, const struct toc_task *task)
{
    if (find->by_id)
        return toc_task_id_cmp(find->id, task->id) == 0;
    if (same_texts(find, task))
        return true;
    TOC_LOG(DEBUG, "store.collision",
            F_MSG("two keys have one hash: the other one is stored"),
            F_SPAN("biz_type", find->biz_type), F_SPAN("biz_id", find->biz_id));
    return false;
}

static enum toc_status
take_first(struct toc_my_conn *conn, size_t reply, const struct toc_find *find,
           struct toc_arena *arena, struct toc_found *found,
           struct toc_error *reterr)
{
    const unsigned long *lens;
    MYSQL_ROW row;

    while ((row = toc_my_fetch(conn, reply, &lens)) != NULL) {
        struct toc_task task;
        enum toc_status st = toc_row_decode(row, lens, NULL, &task, reterr);
        if (st != TOC_OK)
            return st;
        if (!is_it(find, &task))
            continue;
        found->there = true;
        return toc_row_decode(row, lens, arena, &found->task, reterr);
    }
    return TOC_OK;
}

static void
select_by(struct toc_buf *sql, const char *table, const struct toc_find *find)
{
    toc_buf_text(sql, "SELECT ");
    toc_row_select(sql, "t.", TOC_ROW_FULL);
    toc_buf_printf(sql, " FROM %s k" TOC_MY_JOIN_ROW "k.key_hash", table);
    if (find->by_id) {
        toc_sql_between_biz(sql, find->id.b);
        toc_buf_text(sql, " AND k.task_id=");
        toc_sql_id(sql, find->id);
    } else {
        toc_buf_char(sql, '=');
        toc_sql_hash(sql,
                     toc_key_hash_of(find->biz_type, find->biz_id, find->name));
    }
}

void
toc_my_first_places(struct toc_task_id id,
                    struct toc_sql_row rows[TOC_FIRST_PLACES])
{
    static const int64_t kinds[] = {0, TOC_PARK_FAR_MS, TOC_PARK_PAUSED_MS,
                                    TOC_PARK_HELD_MS};
    int64_t slot_ms = toc_task_id_first_slot(id);
    size_t n = 0;

    for (int prio = 0; prio < TOC_PRIORITIES; prio++)
        for (size_t kind = 0; kind < 4; kind++)
            rows[n++] = (struct toc_sql_row){
                .ref = {.slice = toc_slice_of(id.b[0], (enum toc_priority)prio),
                        .slot_ms = slot_ms - kinds[kind],
                        .id = id}};
    toc_sql_sort_rows(rows, n);
}

static enum toc_status
find_at(struct toc_my_conn *conn, const struct toc_find *find,
        const struct toc_sql_row *rows, size_t n, struct toc_arena *arena,
        struct toc_found *found, struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    enum toc_status st;

    toc_buf_text(sql, "SELECT ");
    toc_row_select(sql, "", TOC_ROW_FULL);
    toc_buf_text(sql, " FROM task_info WHERE ");
    toc_sql_where_rows(sql, "", rows, n, 0);
    st = toc_my_run(conn, reterr);
    return st == TOC_OK ? take_first(conn, 0, find, arena, found, reterr) : st;
}

bool
toc_my_far_place(struct toc_sql_row *row)
{
    if (!toc_slot_is_far(row->ref.slot_ms))
        return false;
    row->ref.slot_ms += TOC_PARK_FAR_MS;
    return true;
}

/* Follows the log from where the task was first, until its row is found. */
static enum toc_status
follow_log(struct toc_my_conn *conn, const struct toc_find *find,
           struct toc_sql_row *rows, struct toc_arena *arena,
           struct toc_found *found, struct toc_error *reterr)
{
    size_t n = TOC_FIRST_PLACES;
    int64_t log_id = 0;

    for (int hop = 0; hop < HOPS_MAX && !found->there; hop++) {
        struct toc_buf *sql = toc_my_begin(conn);
        const unsigned long *lens;
        enum toc_status st;
        MYSQL_ROW row;
        toc_buf_text(sql, "SELECT slice,next_slot_ms,log_id FROM task_log "
                          "WHERE ");
        toc_sql_where_rows(sql, "", rows, n, 0);
        toc_buf_printf(sql,
                       " AND log_id>%lld AND next_slot_ms<>slot_ms "
                       "ORDER BY log_id LIMIT 1",
                       (long long)log_id);
        st = toc_my_run(conn, reterr);
        if (st != TOC_OK)
            return st;
        row = toc_my_fetch(conn, 0, &lens);
        if (row != NULL) {
            rows[0].ref.slice = (uint16_t)toc_field_u64(row, lens, 0);
            rows[0].ref.slot_ms = toc_field_i64(row, lens, 1);
            log_id = toc_field_i64(row, lens, 2);
        } else if (n > 1 || !toc_my_far_place(&rows[0])) {
            return TOC_OK;
        }
        n = 1;
        st = find_at(conn, find, rows, 1, arena, found, reterr);
        if (st != TOC_OK)
            return st;
    }
    return TOC_OK;
}

static enum toc_status
find_without_key(struct toc_my_conn *conn, const struct toc_find *find,
                 struct toc_arena *arena, struct toc_found *found,
                 struct toc_error *reterr)
{
    struct toc_sql_row rows[TOC_FIRST_PLACES];
    enum toc_status st;

    select_by(toc_my_begin(conn), "key_history", find);
    toc_buf_printf(&conn->sql, " ORDER BY k.slot_ms DESC LIMIT %d",
                   HISTORY_MAX);
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        st = take_first(conn, 0, find, arena, found, reterr);
    if (st != TOC_OK || found->there || !find->by_id)
        return st;
    toc_my_first_places(find->id, rows);
    st = find_at(conn, find, rows, TOC_FIRST_PLACES, arena, found, reterr);
    if (st == TOC_OK && !found->there)
        st = follow_log(conn, find, rows, arena, found, reterr);
    return st;
}

enum toc_status
toc_my_find(struct toc_my_conn *conn, const struct toc_find *find,
            struct toc_arena *arena, struct toc_found *ret_found,
            struct toc_error *reterr)
{
    struct toc_found found = {.there = false};
    enum toc_status st;

    select_by(toc_my_begin(conn), "task_key", find);
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        st = take_first(conn, 0, find, arena, &found, reterr);
    if (st == TOC_OK && found.there)
        found.has_key = true;
    else if (st == TOC_OK)
        st = find_without_key(conn, find, arena, &found, reterr);
    if (st == TOC_OK)
        *ret_found = found;
    return st;
}
