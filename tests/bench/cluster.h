/*
 * The cluster under test: started for the run in a folder of its own (and
 * removed after it), or one that runs already. Through deploy/local/toc, as
 * users do.
 *
 * And what it costs: statements by the database's own counters, processor time
 * and memory of each process by /proc.
 *
 * Threads: main. All of it blocks.
 */
#ifndef TOC_BENCH_CLUSTER_H
#define TOC_BENCH_CLUSTER_H

#include "common/base/status.h"
#include "tests/bench/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLUSTER_PROCESSES_MAX 80
#define CLUSTER_ADDRESSES_MAX 32

struct cluster_options {
    const char *toc;  /* path of deploy/local/toc */
    const char *home; /* NULL: an own one */
    int64_t schedulers, executors;
};

struct cluster;

TOC_MUST_CHECK enum toc_status cluster_open(
    const struct cluster_options *options, struct cluster **ret_cluster,
    struct toc_error *reterr);
/* Was it started for this run? */
bool cluster_fresh(const struct cluster *cluster);
/* The folder that holds it. */
const char *cluster_home(const struct cluster *cluster);
/* Removes an own one. */
void cluster_close(struct cluster *cluster);

/* The schedulers' addresses. */
size_t cluster_schedulers(const struct cluster *cluster,
                          const char *const **ret_addresses);
const char *cluster_admin(const struct cluster *cluster);
size_t cluster_executors(const struct cluster *cluster);
/* `toc ARG NAME...`, one process for each name, at the same time. */
TOC_MUST_CHECK enum toc_status cluster_toc(struct cluster *cluster,
                                           const char *arg,
                                           const char *const *names, size_t n,
                                           struct toc_error *reterr);

/* Machine, versions, settings. */
void cluster_describe(struct cluster *cluster, struct report *report);

/* ---- cost ----------------------------------------------------------- */

struct process_cost {
    char name[32];
    long pid;
    double cpu_s;
    uint64_t rss_kib;
};

struct cost {
    struct process_cost processes[CLUSTER_PROCESSES_MAX];
    size_t n;
    int64_t at_ns; /* monotonic */
    uint64_t questions, selects, inserts, updates, deletes, commits;
    uint64_t rows_read; /* Handler_read_* */
};

void cluster_cost(struct cluster *cluster, struct cost *ret_cost);
/* Processor time per process and statements between the two, per task. */
void cluster_report_cost(struct report *report, const struct cost *before,
                         const struct cost *after, uint64_t tasks);
/* The same as shares of one core and statements a second. */
void cluster_report_idle(struct report *report, const struct cost *before,
                         const struct cost *after);

#endif
