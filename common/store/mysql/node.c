/*
 * Processes that registered: their numbers name them in rows and logs.
 */
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"
#include "common/store/mysql/store_mysql_internal.h"

#define LIST_MAX 1000

struct registering {
    struct toc_str role, name, address;
    int64_t now_ms;
    uint32_t id;
};

/* Repeated after an unknown outcome it takes another number: nobody has the
 * first one. */
static enum toc_status
register_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct registering *r = arg;
    struct toc_buf *sql = toc_my_begin(conn);
    enum toc_status st;

    toc_buf_text(sql, "INSERT INTO node (role,name,address,started_ms) "
                      "VALUES (");
    toc_sql_bytes(sql, toc_row_cut(r->role, 32));
    toc_buf_char(sql, ',');
    toc_sql_bytes(sql, toc_row_cut(r->name, 128));
    toc_buf_char(sql, ',');
    toc_sql_bytes(sql, toc_row_cut(r->address, 128));
    toc_buf_printf(sql, ",%lld)", (long long)r->now_ms);
    conn->commits = true;
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        r->id = (uint32_t)conn->replies[0].insert_id;
    return st;
}

enum toc_status
toc_my_register_node(void *self, struct toc_str role, struct toc_str name,
                     struct toc_str address, int64_t now_ms, uint32_t *ret_id,
                     struct toc_error *reterr)
{
    struct registering r = {role, name, address, now_ms, 0};
    enum toc_status st = toc_my_transact(self, register_body, &r, 0, reterr);

    if (st == TOC_OK)
        *ret_id = r.id;
    return st;
}

struct node_list {
    struct toc_arena *arena;
    struct toc_node_row *nodes;
    size_t n;
};

static enum toc_status
list_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct node_list *list = arg;
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_printf(toc_my_begin(conn),
                   "SELECT id,role,name,address,started_ms FROM node "
                   "ORDER BY id DESC LIMIT %d",
                   LIST_MAX);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    list->n = 0;
    list->nodes = toc_arena_calloc(
        list->arena, (size_t)mysql_num_rows(conn->replies[0].rows) + 1,
        sizeof *list->nodes);
    while ((row = toc_my_fetch(conn, 0, &lens)) != NULL)
        list->nodes[list->n++] = (struct toc_node_row){
            .id = (uint32_t)toc_field_u64(row, lens, 0),
            .role = toc_arena_str(list->arena, toc_field_str(row, lens, 1)),
            .name = toc_arena_str(list->arena, toc_field_str(row, lens, 2)),
            .address = toc_arena_str(list->arena, toc_field_str(row, lens, 3)),
            .started_ms = toc_field_i64(row, lens, 4)};
    return TOC_OK;
}

enum toc_status
toc_my_list_nodes(void *self, struct toc_arena *arena,
                  struct toc_node_row **ret_nodes, size_t *ret_n,
                  struct toc_error *reterr)
{
    struct node_list list = {.arena = arena};
    enum toc_status st = toc_my_transact(self, list_body, &list, 0, reterr);

    if (st == TOC_OK) {
        *ret_nodes = list.nodes;
        *ret_n = list.n;
    }
    return st;
}
