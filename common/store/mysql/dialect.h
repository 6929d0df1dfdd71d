/*
 * All that differs between MariaDB (10.6 and later) and MySQL (8.0 and later).
 *
 * Threads: any.
 */
#ifndef TOC_STORE_MYSQL_DIALECT_H
#define TOC_STORE_MYSQL_DIALECT_H

#include "common/base/buf.h"

#include <stdbool.h>

struct toc_my_dialect {
    bool mariadb;
};

struct toc_my_dialect toc_my_dialect_of(const char *server_version);
/* SET statements for a new connection. */
void toc_my_dialect_session(const struct toc_my_dialect *dialect,
                            struct toc_buf *sql);
/* A statement for the beginning of a transaction that stays open between
 * packets: a frozen process loses its locks after a second. And one for after
 * its end. NULL: nothing is to be done. */
const char *toc_my_dialect_hold(const struct toc_my_dialect *dialect);
const char *toc_my_dialect_release(const struct toc_my_dialect *dialect);
/* What may be the matter when a connection is refused like this; NULL: the
 * message says it all. encrypted: the connection used TLS. */
const char *toc_my_dialect_hint(unsigned code, const char *message,
                                bool encrypted);
/* Between the table's name of an ALTER TABLE and what it does: give up at once
 * rather than queue before everybody else, or after a second. MySQL cannot say
 * it, and waits for the session's lock_wait_timeout, a second. */
const char *toc_my_dialect_wait(const struct toc_my_dialect *dialect,
                                bool a_second);
/* The server's clock in ms. The session's time zone is UTC: no hour is there
 * twice. */
#define TOC_MY_NOW "FLOOR(UNIX_TIMESTAMP(NOW(3))*1000)"
/* For rows read with a shared lock; the new spelling (FOR SHARE) is an error in
 * MariaDB, the old one works in both. */
#define TOC_MY_SHARED " LOCK IN SHARE MODE"

#endif
