/*
 * Reading for callers: one task, all of a business id, the clock, shards.
 */
#include "common/store/mysql/find.h"
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

#include <stdlib.h>

#define LIST_MAX 1000

struct getting {
    const struct toc_find *find;
    struct toc_arena *arena;
    struct toc_found found;
};

static enum toc_status
get_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct getting *g = arg;

    return toc_my_find(conn, g->find, g->arena, &g->found, reterr);
}

enum toc_status
toc_my_get(void *self, const struct toc_find *find, struct toc_arena *arena,
           struct toc_task *ret_task, struct toc_error *reterr)
{
    struct getting g = {.find = find, .arena = arena};
    enum toc_status st = toc_my_transact(self, get_body, &g, 0, reterr);

    if (st != TOC_OK)
        return st;
    if (!g.found.there)
        return toc_error_set(reterr, TOC_NOT_FOUND, NULL, 0, "no such task");
    *ret_task = g.found.task;
    return TOC_OK;
}

/* ---- all of a business id
 * ---------------------------------------------------- */

struct biz_list {
    struct toc_str biz_type, biz_id;
    struct toc_arena *arena;
    struct toc_task *tasks;
    size_t n;
};

static int
cmp_due(const void *a, const void *b)
{
    const struct toc_task *x = a, *y = b;

    if (x->due_ms != y->due_ms)
        return x->due_ms < y->due_ms ? -1 : 1;
    return toc_task_id_cmp(x->id, y->id);
}

static int
cmp_live_due(const void *a, const void *b)
{
    const struct toc_task *x = a, *y = b;
    bool x_ended = toc_state_ended(x->state),
         y_ended = toc_state_ended(y->state);

    return x_ended != y_ended ? (int)x_ended - (int)y_ended : cmp_due(a, b);
}

/* The same task twice: the later version first. */
static int
cmp_id_version(const void *a, const void *b)
{
    const struct toc_task *x = a, *y = b;
    int order = toc_task_id_cmp(x->id, y->id);

    if (order != 0)
        return order;
    return (x->version < y->version) - (x->version > y->version);
}

/* Live and ended ones are asked for apart, so that no number of ended ones
 * stands before the live. */
static void
select_biz(struct toc_my_conn *conn, const char *table, const char *which,
           const struct biz_list *list)
{
    struct toc_buf *sql = toc_my_next(conn);

    toc_buf_text(sql, "SELECT ");
    toc_row_select(sql, "t.", TOC_ROW_HINT);
    toc_buf_printf(sql, " FROM %s k" TOC_MY_JOIN_ROW "k.key_hash", table);
    toc_sql_between_biz(sql, toc_key_hash_biz(list->biz_type, list->biz_id).b);
    toc_buf_printf(sql, " AND t.status%s%d LIMIT %d", which, TOC_STATE_ENDED,
                   2 * LIST_MAX);
}

static void
take_biz(struct toc_my_conn *conn, size_t reply, struct biz_list *list)
{
    const unsigned long *lens;
    MYSQL_ROW row;

    while ((row = toc_my_fetch(conn, reply, &lens)) != NULL) {
        struct toc_task *task = &list->tasks[list->n];
        struct toc_error bad = {0};
        if (toc_row_decode(row, lens, list->arena, task, &bad) != TOC_OK)
            toc_row_bad(&conn->store->port, row, lens, &bad);
        else if (toc_str_eq(task->biz_type, list->biz_type) &&
                 toc_str_eq(task->biz_id, list->biz_id))
            list->n++;
    }
}

#define BIZ_REPLIES 3

static enum toc_status
biz_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct biz_list *list = arg;
    enum toc_status st;
    size_t rows = 0;

    toc_my_begin(conn);
    select_biz(conn, "task_key", "<", list);
    select_biz(conn, "task_key", ">=", list);
    select_biz(conn, "key_history", ">=", list);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    for (size_t i = 0; i < BIZ_REPLIES; i++)
        rows += (size_t)mysql_num_rows(conn->replies[i].rows);
    list->n = 0;
    list->tasks = toc_arena_calloc(list->arena, rows + 1, sizeof *list->tasks);
    for (size_t i = 0; i < BIZ_REPLIES; i++)
        take_biz(conn, i, list);
    return TOC_OK;
}

/* A task that ends, or whose key moves to the history, between two statements
 * is seen twice. */
static void
drop_doubles(struct biz_list *list)
{
    size_t kept = 0;

    qsort(list->tasks, list->n, sizeof *list->tasks, cmp_id_version);
    for (size_t i = 0; i < list->n; i++)
        if (kept == 0 ||
            toc_task_id_cmp(list->tasks[kept - 1].id, list->tasks[i].id) != 0)
            list->tasks[kept++] = list->tasks[i];
    list->n = kept;
}

enum toc_status
toc_my_list_biz(void *self, struct toc_str biz_type, struct toc_str biz_id,
                struct toc_arena *arena, struct toc_task **ret_tasks,
                size_t *ret_n, struct toc_error *reterr)
{
    struct biz_list list = {
        .biz_type = biz_type, .biz_id = biz_id, .arena = arena};
    enum toc_status st = toc_my_transact(self, biz_body, &list, 0, reterr);

    if (st != TOC_OK)
        return st;
    drop_doubles(&list);
    qsort(list.tasks, list.n, sizeof *list.tasks, cmp_live_due);
    if (list.n > LIST_MAX)
        list.n = LIST_MAX;
    qsort(list.tasks, list.n, sizeof *list.tasks, cmp_due);
    *ret_tasks = list.tasks;
    *ret_n = list.n;
    return TOC_OK;
}

/* ---- clock, shards
 * -------------------------------------------------------------- */

static enum toc_status
now_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    int64_t *now_ms = arg;
    enum toc_status st;

    toc_buf_text(toc_my_begin(conn), "SELECT " TOC_MY_NOW);
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        *now_ms = toc_my_number(conn, 0, 0);
    return st;
}

enum toc_status
toc_my_now(void *self, int64_t *ret_now_ms, struct toc_error *reterr)
{
    return toc_my_transact(self, now_body, ret_now_ms, 0, reterr);
}

struct shard_list {
    struct toc_arena *arena;
    struct toc_shard_row *shards;
    size_t n;
};

static enum toc_status
shards_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct shard_list *list = arg;
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_text(toc_my_begin(conn), "SELECT shard_id,state,low_ms,keygc_ms "
                                     "FROM shard_owner ORDER BY shard_id");
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    list->n = 0;
    list->shards = toc_arena_calloc(
        list->arena, (size_t)mysql_num_rows(conn->replies[0].rows) + 1,
        sizeof *list->shards);
    while ((row = toc_my_fetch(conn, 0, &lens)) != NULL)
        list->shards[list->n++] = (struct toc_shard_row){
            .shard = (uint16_t)toc_field_u64(row, lens, 0),
            .state = (enum toc_shard_state)toc_field_u64(row, lens, 1),
            .low_ms = toc_field_i64(row, lens, 2),
            .keygc_ms = toc_field_i64(row, lens, 3)};
    return TOC_OK;
}

enum toc_status
toc_my_list_shards(void *self, struct toc_arena *arena,
                   struct toc_shard_row **ret_shards, size_t *ret_n,
                   struct toc_error *reterr)
{
    struct shard_list list = {.arena = arena};
    enum toc_status st = toc_my_transact(self, shards_body, &list, 0, reterr);

    if (st == TOC_OK) {
        *ret_shards = list.shards;
        *ret_n = list.n;
    }
    return st;
}
