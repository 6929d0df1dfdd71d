/*
 * Bringing a database to this program's schema. All changes of tables, here and
 * in days.c, happen under one lock of the server, GET_LOCK by database name, so
 * any number of processes may start at once: one works, the others wait and
 * find it done.
 */
#include "common/store/mysql/schema.h"
#include "common/store/mysql/store_mysql.h"
#include "common/store/mysql/store_mysql_internal.h"

#include "common/store/mysql/sql.h"

#define LOCK_WAIT_S 60
#define DDL_TIMEOUT_MS 120000
/* A new shard's low-water mark: this far behind the first migration. */
#define FIRST_LOW_BEHIND_MS 60000

enum toc_status
toc_my_lock_schema(struct toc_my_conn *conn, int seconds,
                   struct toc_error *reterr)
{
    enum toc_status st;

    toc_buf_printf(toc_my_begin(conn),
                   "SELECT GET_LOCK(CONCAT('toc.schema.',LEFT(DATABASE(),40)),"
                   "%d)",
                   seconds);
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK && toc_my_number(conn, 0, 0) != 1)
        st = toc_error_set(reterr, TOC_UNAVAILABLE, "mysql", 0,
                           "another process changes the tables for over %d s",
                           seconds);
    return st;
}

void
toc_my_unlock_schema(struct toc_my_conn *conn)
{
    if (conn->fault != TOC_MY_FINE)
        return; /* it will be closed, which frees the lock */
    toc_buf_text(toc_my_begin(conn),
                 "DO RELEASE_LOCK(CONCAT('toc.schema.',LEFT(DATABASE(),40)))");
    if (toc_my_run(conn, NULL) != TOC_OK)
        return; /* as above */
}

/* The database's version, 0 when empty. */
static enum toc_status
read_version(struct toc_my_conn *conn, int *ret_version,
             struct toc_error *reterr)
{
    enum toc_status st;

    toc_buf_text(toc_my_begin(conn),
                 "CREATE TABLE IF NOT EXISTS schema_version ("
                 "version INT NOT NULL PRIMARY KEY,"
                 "name VARBINARY(128) NOT NULL,"
                 "applied_ms BIGINT NOT NULL) ENGINE=InnoDB");
    toc_my_add(conn, "SELECT COALESCE(MAX(version),0) FROM schema_version");
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        *ret_version = (int)toc_my_number(conn, 1, 0);
    return st;
}

static enum toc_status
apply(struct toc_my_conn *conn, const struct toc_my_schema *step,
      struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    enum toc_status st;

    toc_buf_add(sql, step->sql, step->len);
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    sql = toc_my_begin(conn);
    toc_buf_printf(sql, "INSERT INTO schema_version VALUES (%d,",
                   step->version);
    toc_sql_bytes(sql, toc_str_of(step->name));
    toc_buf_text(sql, "," TOC_MY_NOW ")");
    return toc_my_run(conn, reterr);
}

static enum toc_status
fill_shards(struct toc_my_conn *conn, struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);

    toc_buf_printf(sql, "SET @low=" TOC_MY_NOW "-%d", FIRST_LOW_BEHIND_MS);
    sql = toc_my_next(conn);
    toc_buf_text(sql, "INSERT IGNORE INTO shard_owner VALUES ");
    for (unsigned shard = 0; shard < TOC_SHARDS; shard++)
        toc_buf_printf(sql, "%s(%u,0,@low,@low)", shard > 0 ? "," : "", shard);
    return toc_my_run(conn, reterr);
}

static enum toc_status
days_of_today(struct toc_my_conn *conn, struct toc_error *reterr)
{
    enum toc_status st;

    toc_buf_text(toc_my_begin(conn), "SELECT " TOC_MY_NOW);
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        st = toc_my_make_days(conn, toc_my_number(conn, 0, 0), reterr);
    return st;
}

static enum toc_status
migrate_locked(struct toc_my_conn *conn, struct toc_error *reterr)
{
    int version = 0, newest = (int)toc_my_schema_n;
    enum toc_status st = read_version(conn, &version, reterr);

    if (st == TOC_OK && version > newest)
        return toc_error_set(reterr, TOC_PRECONDITION, "mysql", 0,
                             "the database's schema is version %d, this "
                             "program knows %d: use a newer program",
                             version, newest);
    for (int i = version; st == TOC_OK && i < newest; i++)
        st = apply(conn, &toc_my_schema[i], reterr);
    if (st == TOC_OK)
        st = days_of_today(conn, reterr);
    if (st == TOC_OK)
        st = fill_shards(conn, reterr);
    return st;
}

enum toc_status
toc_store_mysql_migrate(struct toc_store_mysql *store, struct toc_error *reterr)
{
    struct toc_my_conn *conn;
    enum toc_status st = toc_my_connect(store, DDL_TIMEOUT_MS, &conn, reterr);

    if (st != TOC_OK)
        return st;
    st = toc_my_lock_schema(conn, LOCK_WAIT_S, reterr);
    if (st == TOC_OK) {
        st = migrate_locked(conn, reterr);
        toc_my_unlock_schema(conn);
    }
    toc_my_disconnect(conn);
    return st;
}
