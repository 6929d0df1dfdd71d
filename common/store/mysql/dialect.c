#include "common/store/mysql/dialect.h"

#include <errmsg.h>
#include <mysqld_error.h>
#include <string.h>

enum { SECURE_TRANSPORT_REQUIRED = 3159 }; /* MySQL; MariaDB has no name */

struct toc_my_dialect
toc_my_dialect_of(const char *server_version)
{
    return (struct toc_my_dialect){
        .mariadb = strstr(server_version, "MariaDB") != NULL,
    };
}

/*
 * - READ COMMITTED: locks only rows that match, reads what is committed.
 * - sql_mode: too long or out of range is an error, never a cut value.
 * - lock waits are short: the transaction is repeated. For tables a second on
 *   MySQL, which cannot say NOWAIT: everybody else waits behind an ALTER TABLE
 *   that waits.
 * - in_predicate_conversion_threshold (MariaDB): a list of 1,000 or more values
 *   would become a join with a temporary table, and read every partition.
 * - idle_transaction_timeout (MariaDB, s): a process that is frozen between two
 *   packets of a transaction must not hold its locks for long.
 * - wait_timeout (MySQL, s), which has nothing like it: the same, but coarse,
 *   for it ends idle connections too. Where a transaction stays open between
 *   packets it is a second meanwhile: toc_my_dialect_hold.
 * - optimizer_max_sel_arg_weight (MariaDB), range_optimizer_max_mem_size
 * (MySQL): the ranges of 768 slices and 500 rows must never be given up for a
 * scan.
 */
void
toc_my_dialect_session(const struct toc_my_dialect *dialect,
                       struct toc_buf *sql)
{
    toc_buf_text(sql, "SET NAMES binary;"
                      "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
                      "SET SESSION autocommit=1,time_zone='+00:00',"
                      "sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',"
                      "innodb_lock_wait_timeout=2");
    toc_buf_printf(sql, ",lock_wait_timeout=%d", dialect->mariadb ? 2 : 1);
    if (dialect->mariadb)
        toc_buf_text(sql, ",in_predicate_conversion_threshold=0,"
                          "idle_transaction_timeout=1,"
                          "optimizer_max_sel_arg_weight=0");
    else
        toc_buf_text(sql, ",wait_timeout=60,range_optimizer_max_mem_size=0");
}

const char *
toc_my_dialect_hold(const struct toc_my_dialect *dialect)
{
    return dialect->mariadb ? NULL : "SET SESSION wait_timeout=1";
}

const char *
toc_my_dialect_release(const struct toc_my_dialect *dialect)
{
    return dialect->mariadb ? NULL : "SET SESSION wait_timeout=60";
}

const char *
toc_my_dialect_hint(unsigned code, const char *message, bool encrypted)
{
    /* libmariadb gives a plugin that it misses the number of a wrong password.
     */
    if (code == CR_AUTH_PLUGIN_CANNOT_LOAD || code == CR_AUTH_PLUGIN_ERR ||
        strstr(message, "could not be loaded") != NULL)
        return "is the client library's plugin installed? Debian's libmariadb3 "
               "brings caching_sha2_password";
    switch (code) {
    case ER_ACCESS_DENIED_ERROR:
        return encrypted ? "check user, password file, the account's host"
                         : "check user, password file, the account's host; "
                           "without TLS, as here, an account that requires "
                           "TLS is refused too";
    case SECURE_TRANSPORT_REQUIRED:
        return "TLS is not used here: connect by the server's socket, "
               "mysql://user@/db?socket=PATH";
    case ER_BAD_DB_ERROR:
        return "make it first: CREATE DATABASE ... CHARACTER SET binary";
    default:
        return NULL;
    }
}

const char *
toc_my_dialect_wait(const struct toc_my_dialect *dialect, bool a_second)
{
    if (!dialect->mariadb)
        return " ";
    return a_second ? " WAIT 1 " : " NOWAIT ";
}
