/*
 * The scheduler's threads: every loop around a step, their start and stop
 * order, heartbeats for readiness.
 *
 * Ownership: the runner owns everything of the role; ports are lent to it.
 * Threads: main.
 */
#ifndef TOC_SCHEDULER_RUNNER_H
#define TOC_SCHEDULER_RUNNER_H

#include "common/app/app.h"
#include "common/bus/bus.h"
#include "common/coord/coord.h"
#include "common/store/store.h"
#include "scheduler/settings.h"

struct sched_runner;

struct sched_runner_options {
    const struct sched_settings *settings;
    const struct toc_clock *clk;
    struct toc_app *app;
    struct toc_store *store;
    struct toc_bus *bus;
    int32_t partitions;        /* as the topics have */
    const char *const *topics; /* by priority */
    const char *group;         /* of the executors */
};

/* Binds the gRPC address and serves (health says NOT_SERVING until ready). */
TOC_MUST_CHECK enum toc_status sched_runner_new(
    const struct sched_runner_options *opt, struct sched_runner **ret_runner,
    struct toc_error *reterr);
/* What others are told: settings' advertise, or the bound address. */
const char *sched_runner_address(const struct sched_runner *runner);
/* The bus's report callback and its argument must be these. */
void sched_runner_reported(void *arg, void *opaque, enum toc_status st,
                           int64_t offset);
/* Starts the loops. node_id: the store's number of this process. */
void sched_runner_start(struct sched_runner *runner, struct toc_coord *coord,
                        uint32_t node_id);
/* In order: no new calls, hints of the next seconds sent, shards given up,
 * threads joined. Bounded: about 8 s, when the store is interrupted after 5 s
 * at the latest. */
void sched_runner_stop(struct sched_runner *runner);
/* After the bus was closed: what it still had has been reported. */
void sched_runner_free(struct sched_runner *runner);

#endif
