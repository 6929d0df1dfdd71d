/*
 * What happened to a task: its log rows, from the place where it was first
 * stored along next_slot_ms to where it is. When the first days are gone, what
 * is left at the row's own place.
 */
#include "common/store/mysql/find.h"
#include "common/store/mysql/log.h"
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

#define ENTRIES_MAX 1000
#define HOPS_MAX 1000

struct telling {
    const struct toc_find *find;
    struct toc_arena *arena;
    struct toc_found found;
    struct toc_log_entry *entries;
    size_t n;
};

static void
take_entry(struct telling *t, MYSQL_ROW row, const unsigned long *lens)
{
    t->entries[t->n++] = (struct toc_log_entry){
        .kind = (enum toc_log_kind)toc_field_u64(row, lens, 4),
        .result = (enum toc_result)toc_field_u64(row, lens, 5),
        .fire = (uint32_t)toc_field_u64(row, lens, 6),
        .attempt = (uint16_t)toc_field_u64(row, lens, 7),
        .version = (uint32_t)toc_field_u64(row, lens, 8),
        .sched_node = (uint32_t)toc_field_u64(row, lens, 10),
        .exec_node = (uint32_t)toc_field_u64(row, lens, 11),
        .claimed_ms = toc_field_i64(row, lens, 12),
        .called_ms = toc_field_i64(row, lens, 13),
        .at_ms = toc_field_i64(row, lens, 14),
        .who = toc_arena_str(t->arena, toc_field_str(row, lens, 15)),
        .detail = toc_arena_str(t->arena, toc_field_str(row, lens, 17)),
    };
}

/* The log at one place (or the first places), after log_id; *next is where the
 * task went from there. */
static enum toc_status
read_place(struct toc_my_conn *conn, struct telling *t,
           const struct toc_sql_row *rows, size_t n, uint64_t *log_id,
           struct toc_task_ref *next, struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_text(sql, "SELECT " TOC_LOG_COLUMNS " FROM task_log WHERE ");
    toc_sql_where_rows(sql, "", rows, n, 0);
    toc_buf_printf(sql, " AND log_id>%llu ORDER BY log_id LIMIT %d",
                   (unsigned long long)*log_id, ENTRIES_MAX);
    st = toc_my_run(conn, reterr);
    next->version = 0; /* nowhere */
    while (st == TOC_OK && t->n < ENTRIES_MAX &&
           (row = toc_my_fetch(conn, 0, &lens)) != NULL) {
        take_entry(t, row, lens);
        *log_id = toc_field_u64(row, lens, 3);
        if (toc_field_i64(row, lens, 1) == toc_field_i64(row, lens, 9))
            continue;
        next->slice = (uint16_t)toc_field_u64(row, lens, 0);
        next->slot_ms = toc_field_i64(row, lens, 9);
        next->id = t->found.task.id;
        next->version = 1;
        break;
    }
    return st;
}

static enum toc_status
tell_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct telling *t = arg;
    struct toc_sql_row rows[TOC_FIRST_PLACES];
    size_t n = TOC_FIRST_PLACES;
    uint64_t log_id = 0;
    enum toc_status st =
        toc_my_find(conn, t->find, t->arena, &t->found, reterr);

    if (st != TOC_OK || !t->found.there)
        return st;
    t->n = 0;
    toc_my_first_places(t->found.task.id, rows);
    for (int hop = 0; hop < HOPS_MAX && t->n < ENTRIES_MAX; hop++) {
        struct toc_task_ref next;
        st = read_place(conn, t, rows, n, &log_id, &next, reterr);
        if (st != TOC_OK)
            return st;
        if (next.version != 0)
            rows[0].ref = next;
        else if (n > 1 || !toc_my_far_place(&rows[0]))
            break;
        n = 1;
    }
    /* The row's own place: a far row that was moved late is not at its due
     * time, and the first places may be gone. */
    rows[0].ref = toc_task_ref_of(&t->found.task);
    for (int hop = 0; hop < HOPS_MAX && t->n < ENTRIES_MAX; hop++) {
        struct toc_task_ref next;
        st = read_place(conn, t, rows, 1, &log_id, &next, reterr);
        if (st != TOC_OK || next.version == 0)
            return st;
        rows[0].ref = next;
    }
    return st;
}

enum toc_status
toc_my_timeline(void *self, const struct toc_find *find,
                struct toc_arena *arena, struct toc_task *ret_task,
                struct toc_log_entry **ret_entries, size_t *ret_n,
                struct toc_error *reterr)
{
    struct telling t = {.find = find, .arena = arena};
    enum toc_status st;

    t.entries = toc_arena_calloc(arena, ENTRIES_MAX, sizeof *t.entries);
    st = toc_my_transact(self, tell_body, &t, 0, reterr);
    if (st != TOC_OK)
        return st;
    if (!t.found.there)
        return toc_error_set(reterr, TOC_NOT_FOUND, NULL, 0, "no such task");
    *ret_task = t.found.task;
    *ret_entries = t.entries;
    *ret_n = t.n;
    return TOC_OK;
}
