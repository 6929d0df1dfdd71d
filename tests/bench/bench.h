/*
 * What the commands of toc-bench share: the options, the cluster, the report.
 *
 * Threads: main.
 */
#ifndef TOC_BENCH_BENCH_H
#define TOC_BENCH_BENCH_H

#include "tests/bench/cluster.h"
#include "tests/bench/ledger.h"
#include "tests/bench/load.h"
#include "tests/bench/report.h"

enum { KILL_SCHEDULER = 1, KILL_EXECUTOR = 2 };

/* Numbers are -1 while they are not given: each command has its own. */
struct bench_options {
    const char *home, *toc;
    int64_t rate, seconds, tasks, pending, batch, payload, delay_ms;
    int64_t schedulers, executors;
    bool live;
    unsigned kill; /* KILL_... */
};

struct bench {
    struct bench_options options;
    struct cluster *cluster;
    struct report *report;
};

typedef enum toc_status bench_command_fn(struct bench *bench,
                                         struct toc_error *reterr);

bench_command_fn bench_submit, bench_lateness, bench_drain, bench_idle,
    bench_life;

/* ---- helpers of the commands ---------------------------------------- */

/* A value that was not given. */
int64_t or_else(int64_t value, int64_t fallback);
/* A plan with what all have. */
struct load_plan bench_plan(const struct bench *bench, struct ledger *ledger);
/* Reports what became of the calls; TOC_INTERNAL when not all were taken. */
TOC_MUST_CHECK enum toc_status bench_report_load(
    struct bench *bench, const struct load_result *result,
    struct toc_error *reterr);
/* Fires some tasks when the cluster is fresh: the broker's virtual machine
 * compiles, connections open, the database's pages come in. */
TOC_MUST_CHECK enum toc_status bench_warm_up(struct bench *bench,
                                             struct toc_error *reterr);
/* Stores so many tasks that are due much later. */
TOC_MUST_CHECK enum toc_status bench_fill_pending(struct bench *bench,
                                                  int64_t pending,
                                                  struct toc_error *reterr);
void bench_sleep_ms(int64_t ms);
int64_t bench_now_ms(void);
/* Waits until all that was acked has arrived; gives up when nothing new has
 * come for quiet_ms after `from_ms`. */
void bench_wait_arrivals(const struct ledger *ledger, int64_t from_ms,
                         int64_t quiet_ms);
/* Lost, early and repeated ones, and how late they were: of entries [first,
 * end). */
void bench_report_arrivals(struct bench *bench, const struct ledger *ledger,
                           size_t first, size_t end);

/* ---- --kill --------------------------------------------------------- */

struct killing {
    unsigned what;
    int64_t at_ms, done_ms; /* when it was begun and ended, wall clock */
    bool shards[256];       /* of the scheduler that is killed */
    const char *names[2];
    size_t n;
};

/* Which shards the first scheduler owns (and by address, whose each is). */
TOC_MUST_CHECK enum toc_status bench_shard_owners(struct bench *bench,
                                                  char (*ret_addresses)[128],
                                                  struct killing *killing,
                                                  struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status bench_kill(struct bench *bench,
                                          struct killing *killing,
                                          struct toc_error *reterr);
void bench_report_kill(struct bench *bench, const struct ledger *ledger,
                       const struct killing *killing);

#endif
