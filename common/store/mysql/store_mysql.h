/*
 * The store on MySQL or MariaDB (docs: SCHEMA in docs/STORAGE.md).
 *
 * Ownership: toc_store_mysql_close frees it; no operation may be under way.
 * Threads: any; connections come from a pool of at most pool_max.
 */
#ifndef TOC_STORE_MYSQL_H
#define TOC_STORE_MYSQL_H

#include "common/clock/clock.h"
#include "common/store/store.h"

struct toc_store_mysql;

struct toc_store_mysql_options {
    const char *url; /* mysql://user@host:port/db, mysql://user@/db?socket=P */
    const char *password; /* NULL: none */
    const struct toc_clock *clock;
    size_t pool_max;            /* connections, 1 to 256 */
    int64_t connect_timeout_ms; /* 0: 3 s */
    int64_t wait_timeout_ms;    /* for a free connection; 0: 3 s */
};

/* Connects once to see that it can; does not create tables. */
TOC_MUST_CHECK enum toc_status toc_store_mysql_open(
    const struct toc_store_mysql_options *options,
    struct toc_store_mysql **ret_store, struct toc_error *reterr);
void toc_store_mysql_close(struct toc_store_mysql *store);
struct toc_store *toc_store_mysql_port(struct toc_store_mysql *store);

/* Brings the schema to this program's version, under a server-wide lock so
 * that any number of processes may call it at once; makes the day partitions.
 * Refuses (TOC_PRECONDITION) a schema newer than the program. */
TOC_MUST_CHECK enum toc_status toc_store_mysql_migrate(
    struct toc_store_mysql *store, struct toc_error *reterr);

/* Statements sent since open: for benchmarks and tests. */
uint64_t toc_store_mysql_statements(const struct toc_store_mysql *store);

#endif
