/*
 * A bounded queue of jobs that block on the store (everything but Submit), and
 * what the threads that take them run.
 *
 * Threads: push: any; run: each worker. A job belongs to who takes it.
 */
#ifndef TOC_SCHEDULER_ACCESS_WORKERS_H
#define TOC_SCHEDULER_ACCESS_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

struct sched_job;
typedef void sched_job_fn(struct sched_job *job);

struct sched_job {
    sched_job_fn *fn;
    void *arg;
};

struct sched_workers;

struct sched_workers *sched_workers_new(size_t queue_max);
void sched_workers_free(struct sched_workers *workers); /* closed and drained */
/* False: full or closed; nothing was taken. */
bool sched_workers_push(struct sched_workers *workers, struct sched_job *job);
void sched_workers_close(struct sched_workers *workers);
/* Runs jobs until the queue is closed and empty. */
void sched_workers_run(struct sched_workers *workers);

#endif
