/*
 * Only for cluster*.c: what a cluster is made of, and running programs.
 *
 * Threads: main.
 */
#ifndef TOC_BENCH_CLUSTER_INTERNAL_H
#define TOC_BENCH_CLUSTER_INTERNAL_H

#include "common/base/buf.h"
#include "tests/bench/cluster.h"

#include <mysql.h>

struct cluster {
    char *toc;
    char home[256];
    bool own;
    char *mysql_url, *password_file, *admin;
    char *schedulers[CLUSTER_ADDRESSES_MAX];
    size_t n_schedulers, n_executors;
    MYSQL *sql;
};

/* Runs a program (found on the PATH) and takes its standard output when
 * ret_output is not NULL; false unless it ends with 0. */
bool run_program(const char *const *argv, struct toc_buf *ret_output);
/* A small file as text; false when it cannot be read. */
bool read_file(const char *path, struct toc_buf *ret_text);
/* The database's answer to a statement: its first row's column; "?" when there
 * is none. */
void sql_text(struct cluster *cluster, const char *statement, unsigned column,
              char *ret_text, size_t cap);
/* 0: not a process of the cluster, or not running. */
long process_pid(const struct cluster *cluster, const char *name);
TOC_MUST_CHECK enum toc_status sql_connect(struct cluster *cluster,
                                           struct toc_error *reterr);

#endif
