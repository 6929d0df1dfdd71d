/*
 * One connection: session, packets of statements, replies, faults.
 */
#include "common/store/mysql/store_mysql_internal.h"

#include "common/base/assert.h"

#include <errmsg.h>
#include <mysqld_error.h>
#include <string.h>

#define WRITE_TIMEOUT_S 10u
#define HASTY_MS 1000 /* for opening a connection while the process stops */
#define PACKET_MIN (4u * 1024 * 1024) /* the largest payload, as hex, fits */
#define PACKET_MAX (16u * 1024 * 1024)

/* ---- faults ------------------------------------------------------------- */

/* MySQL's and MariaDB's numbers that the other's header does not know. */
enum {
    CONNECTION_KILLED = 1927,          /* MariaDB */
    SUBQUERY_MANY_ROWS = 1242,         /* the guard */
    RECORD_CHANGED = 1020,             /* MariaDB, snapshot isolation */
    IDLE_TRANSACTION_KILLED = 4150,    /* MariaDB */
    CLIENT_INTERACTION_TIMEOUT = 4031, /* MySQL: was idle */
    DISK_FULL = 1021,
    READ_ONLY_MODE = 1836,            /* MySQL */
    ROLLED_BACK_DURING_COMMIT = 3101, /* MySQL, group replication */
    SECURE_TRANSPORT_REQUIRED = 3159, /* MySQL */
    SESSION_KILLED = 3169,            /* MySQL */
    INDEX_CORRUPT = 1712,
    TABLESPACE_MISSING = 1812,
    TABLESPACE_DISCARDED = 1814,
    TABLE_CORRUPT = 1877,
    NO_SUCH_TABLE_IN_ENGINE = 1932,
};

static enum toc_my_fault
fault_of(unsigned code, bool commits)
{
    if (code >= CR_MIN_ERROR && code <= CR_MAX_ERROR)
        return commits ? TOC_MY_UNKNOWN : TOC_MY_LOST;
    switch (code) {
    case ER_LOCK_DEADLOCK:
    case RECORD_CHANGED:
    case ROLLED_BACK_DURING_COMMIT:
        return TOC_MY_DEADLOCK;
    case ER_LOCK_WAIT_TIMEOUT:
        return TOC_MY_LOCKED;
    case SUBQUERY_MANY_ROWS:
        return TOC_MY_GUARD;
    case ER_NO_PARTITION_FOR_GIVEN_VALUE:
        return TOC_MY_NO_DAY;
    case ER_DUP_ENTRY:
        return TOC_MY_DUPLICATE;
    case ER_SERVER_SHUTDOWN:
    case ER_QUERY_INTERRUPTED:
    case ER_ERROR_DURING_COMMIT:
    case CONNECTION_KILLED:
    case IDLE_TRANSACTION_KILLED:
    case SESSION_KILLED:
        return commits ? TOC_MY_UNKNOWN : TOC_MY_LOST;
    case CLIENT_INTERACTION_TIMEOUT: /* before it read this packet */
        return TOC_MY_LOST;
    default:
        return TOC_MY_REFUSED;
    }
}

/* Does the server say that it cannot read a page, a file or a partition? Other
 * rows may well be read. */
static bool
is_broken(unsigned code)
{
    switch (code) {
    case ER_CANT_OPEN_FILE:
    case ER_FILE_NOT_FOUND:
    case ER_ERROR_ON_READ:
    case ER_GET_ERRNO: /* the engine's own, of which it has no name */
    case ER_NOT_FORM_FILE:
    case ER_NOT_KEYFILE: /* what InnoDB says of a page that is no page */
    case ER_OLD_KEYFILE:
    case ER_CRASHED_ON_USAGE:
    case ER_CRASHED_ON_REPAIR:
    case ER_GET_ERRMSG:
    case INDEX_CORRUPT:
    case TABLESPACE_MISSING:
    case TABLESPACE_DISCARDED:
    case TABLE_CORRUPT:
    case NO_SUCH_TABLE_IN_ENGINE:
        return true;
    default:
        return false;
    }
}

static enum toc_status
status_of(unsigned code, enum toc_my_fault fault)
{
    if (fault != TOC_MY_REFUSED)
        return TOC_UNAVAILABLE;
    if (is_broken(code))
        return TOC_DATA_LOSS;
    switch (code) {
    case ER_ACCESS_DENIED_ERROR:
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR:
    case SECURE_TRANSPORT_REQUIRED:
        return TOC_DENIED;
    case ER_BAD_DB_ERROR:
    case ER_NO_SUCH_TABLE:
    case ER_BAD_FIELD_ERROR:
        return TOC_PRECONDITION;
    case ER_DATA_TOO_LONG:
    case ER_WARN_DATA_OUT_OF_RANGE:
    case ER_NET_PACKET_TOO_LARGE:
        return TOC_INVALID;
    case ER_CON_COUNT_ERROR:
    case ER_TOO_MANY_USER_CONNECTIONS:
    case ER_OUT_OF_RESOURCES:
    case DISK_FULL:
    case ER_RECORD_FILE_FULL:
    case ER_OPTION_PREVENTS_STATEMENT: /* read only: a failover goes on */
    case READ_ONLY_MODE:
        return TOC_UNAVAILABLE;
    default:
        return TOC_INTERNAL;
    }
}

static enum toc_status
failed(struct toc_my_conn *conn, struct toc_error *reterr)
{
    unsigned code = mysql_errno(conn->mysql);

    conn->fault = fault_of(code, conn->commits);
    if (conn->fault == TOC_MY_GUARD)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "mysql", (int)code,
                             "the rows were changed by others all the time");
    if (status_of(code, conn->fault) == TOC_UNAVAILABLE &&
        atomic_load(&conn->store->interrupted))
        return toc_my_say_interrupted(reterr);
    return toc_error_set(reterr, status_of(code, conn->fault), "mysql",
                         (int)code, "%s", mysql_error(conn->mysql));
}

/* ---- packets --------------------------------------------------------------
 */

struct toc_buf *
toc_my_begin(struct toc_my_conn *conn)
{
    toc_buf_reset(&conn->sql);
    conn->commits = false;
    return &conn->sql;
}

struct toc_buf *
toc_my_next(struct toc_my_conn *conn)
{
    if (conn->sql.len > 0)
        toc_buf_text(&conn->sql, ";\n");
    return &conn->sql;
}

void
toc_my_add(struct toc_my_conn *conn, const char *statement)
{
    toc_buf_text(toc_my_next(conn), statement);
}

void
toc_my_commit(struct toc_my_conn *conn)
{
    toc_my_add(conn, "COMMIT");
    conn->commits = true;
}

void
toc_my_guard_rows(struct toc_my_conn *conn, size_t rows)
{
    struct toc_buf *sql = toc_my_next(conn);

    toc_buf_text(sql, "SELECT IF(ROW_COUNT()=");
    toc_buf_u64(sql, rows);
    toc_buf_text(sql, ",1,(SELECT 1 UNION SELECT 2))");
}

void
toc_my_forget(struct toc_my_conn *conn)
{
    for (size_t i = 0; i < conn->n_replies; i++)
        if (conn->replies[i].rows != NULL)
            mysql_free_result(conn->replies[i].rows);
    conn->n_replies = 0;
}

/* Takes the reply that has arrived; false when it is an error. */
static bool
take_reply(struct toc_my_conn *conn)
{
    struct toc_my_reply *reply;

    if (conn->n_replies == conn->cap_replies) {
        conn->cap_replies = conn->cap_replies * 2 + 8;
        conn->replies = toc_realloc(conn->replies,
                                    conn->cap_replies * sizeof *conn->replies);
    }
    reply = &conn->replies[conn->n_replies];
    reply->rows = mysql_store_result(conn->mysql);
    if (reply->rows == NULL && mysql_errno(conn->mysql) != 0)
        return false;
    reply->affected = mysql_affected_rows(conn->mysql);
    reply->insert_id = mysql_insert_id(conn->mysql);
    conn->n_replies++;
    atomic_fetch_add_explicit(&conn->store->statements, 1,
                              memory_order_relaxed);
    return true;
}

static enum toc_status
send_packet(struct toc_my_conn *conn, struct toc_error *reterr)
{
    toc_my_forget(conn);
    conn->fault = TOC_MY_FINE;
    if (mysql_real_query(conn->mysql, conn->sql.data,
                         (unsigned long)conn->sql.len) != 0)
        return failed(conn, reterr);
    return TOC_OK;
}

enum toc_status
toc_my_run(struct toc_my_conn *conn, struct toc_error *reterr)
{
    enum toc_status st = send_packet(conn, reterr);
    int more;

    if (st != TOC_OK)
        return st;
    do {
        if (!take_reply(conn))
            return failed(conn, reterr);
        more = mysql_next_result(conn->mysql);
        if (more > 0)
            return failed(conn, reterr);
    } while (more == 0);
    return TOC_OK;
}

/* Reads what is left of a stream that its reader gave up. */
static void
skip_rows(MYSQL_RES *rows)
{
    while (mysql_fetch_row(rows) != NULL)
        ;
}

enum toc_status
toc_my_stream(struct toc_my_conn *conn, toc_my_row_fn *fn, void *arg,
              size_t *ret_seen, struct toc_error *reterr)
{
    enum toc_status st = send_packet(conn, reterr);
    MYSQL_RES *rows;
    MYSQL_ROW row;

    *ret_seen = 0;
    if (st != TOC_OK)
        return st;
    rows = mysql_use_result(conn->mysql);
    if (rows == NULL)
        return failed(conn, reterr);
    atomic_fetch_add_explicit(&conn->store->statements, 1,
                              memory_order_relaxed);
    while (st == TOC_OK && (row = mysql_fetch_row(rows)) != NULL) {
        st = fn(arg, row, mysql_fetch_lengths(rows), reterr);
        *ret_seen += 1;
    }
    if (st != TOC_OK)
        skip_rows(rows);
    if (mysql_errno(conn->mysql) != 0)
        st = failed(conn, reterr);
    mysql_free_result(rows);
    return st;
}

void
toc_my_rollback(struct toc_my_conn *conn)
{
    while (mysql_more_results(conn->mysql) &&
           mysql_next_result(conn->mysql) == 0) {
        MYSQL_RES *rows = mysql_store_result(conn->mysql);
        if (rows != NULL)
            mysql_free_result(rows);
    }
    toc_buf_text(toc_my_begin(conn), "ROLLBACK");
    toc_my_release(conn);
    if (toc_my_run(conn, NULL) != TOC_OK)
        conn->fault = TOC_MY_LOST;
}

MYSQL_ROW
toc_my_fetch(struct toc_my_conn *conn, size_t i, const unsigned long **ret_lens)
{
    MYSQL_ROW row;

    TOC_ASSERT(i < conn->n_replies && conn->replies[i].rows != NULL);
    row = mysql_fetch_row(conn->replies[i].rows);
    if (row != NULL)
        *ret_lens = mysql_fetch_lengths(conn->replies[i].rows);
    return row;
}

int64_t
toc_my_number(struct toc_my_conn *conn, size_t i, int64_t none)
{
    const unsigned long *lens;
    MYSQL_ROW row = toc_my_fetch(conn, i, &lens);
    int64_t value;

    if (row == NULL || row[0] == NULL ||
        !toc_parse_i64((struct toc_str){row[0], lens[0]}, INT64_MIN, INT64_MAX,
                       &value))
        return none;
    return value;
}

/* ---- connecting ------------------------------------------------------------
 */

static unsigned
seconds(int64_t ms)
{
    return (unsigned)((ms + 999) / 1000);
}

static bool
connect_to(struct toc_my_conn *conn, int64_t timeout_ms)
{
    const struct toc_store_mysql *store = conn->store;
    const struct toc_my_address *to = &store->address;
    unsigned connect_s = seconds(
        atomic_load(&store->hasty) ? HASTY_MS : store->connect_timeout_ms);
    unsigned read_s = seconds(timeout_ms), write_s = WRITE_TIMEOUT_S;
    unsigned long packet = PACKET_MAX * 4ul;

    mysql_options(conn->mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
    mysql_options(conn->mysql, MYSQL_OPT_READ_TIMEOUT, &read_s);
    mysql_options(conn->mysql, MYSQL_OPT_WRITE_TIMEOUT, &write_s);
    mysql_options(conn->mysql, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
    return mysql_real_connect(
               conn->mysql, to->socket[0] != '\0' ? "localhost" : to->host,
               to->user, store->password, to->db, to->port,
               to->socket[0] != '\0' ? to->socket : NULL,
               CLIENT_FOUND_ROWS | CLIENT_MULTI_STATEMENTS) != NULL;
}

/* The server, or the client library, would not. */
static enum toc_status
refused(struct toc_my_conn *conn, struct toc_error *reterr)
{
    unsigned code = mysql_errno(conn->mysql);
    const char *message = mysql_error(conn->mysql);
    const char *hint = toc_my_dialect_hint(
        code, message, mysql_get_ssl_cipher(conn->mysql) != NULL);
    enum toc_status st = failed(conn, reterr);

    if (hint != NULL)
        (void)toc_error_set(reterr, st, "mysql", (int)code, "%s (%s)", message,
                            hint);
    return st;
}

static enum toc_status
open_session(struct toc_my_conn *conn, struct toc_error *reterr)
{
    const unsigned long *lens;
    enum toc_status st;
    int64_t packet;
    MYSQL_ROW row;
    size_t last;

    conn->dialect = toc_my_dialect_of(mysql_get_server_info(conn->mysql));
    toc_my_dialect_session(&conn->dialect, toc_my_begin(conn));
    toc_my_add(conn, "SELECT @@max_allowed_packet");
    toc_my_add(conn, "SELECT HOST FROM information_schema.PROCESSLIST "
                     "WHERE ID=CONNECTION_ID()");
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    last = conn->n_replies - 1;
    packet = toc_my_number(conn, last - 1, 0);
    if (packet < PACKET_MIN)
        return toc_error_set(reterr, TOC_PRECONDITION, "mysql", 0,
                             "the server's max_allowed_packet is %lld, less "
                             "than %u bytes: raise it",
                             (long long)packet, PACKET_MIN);
    conn->packet_max =
        packet < PACKET_MAX ? (size_t)packet : (size_t)PACKET_MAX;
    row = toc_my_fetch(conn, last, &lens);
    if (row != NULL && row[0] != NULL)
        toc_copy(conn->host, sizeof conn->host,
                 (struct toc_str){row[0], lens[0]});
    conn->id = mysql_thread_id(conn->mysql);
    return TOC_OK;
}

enum toc_status
toc_my_connect(struct toc_store_mysql *store, int64_t timeout_ms,
               struct toc_my_conn **ret_conn, struct toc_error *reterr)
{
    struct toc_my_conn *conn = TOC_NEW(struct toc_my_conn);
    enum toc_status st;

    conn->store = store;
    conn->socket = -1;
    conn->mysql = mysql_init(NULL);
    TOC_ASSERT(conn->mysql != NULL);
    if (atomic_load(&store->interrupted))
        st = toc_my_say_interrupted(reterr);
    else if (!connect_to(conn, timeout_ms))
        st = refused(conn, reterr);
    else
        st = toc_my_watch(conn, reterr);
    if (st == TOC_OK)
        st = open_session(conn, reterr);
    if (st != TOC_OK) {
        toc_my_disconnect(conn);
        return st;
    }
    *ret_conn = conn;
    return TOC_OK;
}

void
toc_my_disconnect(struct toc_my_conn *conn)
{
    if (conn == NULL)
        return;
    toc_my_forget(conn);
    toc_my_unwatch(conn);
    mysql_close(conn->mysql);
    toc_free(conn->replies);
    toc_buf_done(&conn->sql);
    toc_free(conn);
}
