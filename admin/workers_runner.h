/*
 * A fixed number of threads that take jobs from a bounded queue.
 *
 * Ownership: a job passes to fn, which is called once for each that was taken.
 * Threads: push on any; the rest on the main thread. Blocking: stop waits for
 * what is queued and under way.
 */
#ifndef TOC_ADMIN_WORKERS_RUNNER_H
#define TOC_ADMIN_WORKERS_RUNNER_H

#include <stdbool.h>
#include <stddef.h>

struct admin_workers;

typedef void admin_job_fn(void *job); /* Thread: a worker */

struct admin_workers *admin_workers_new(size_t threads, size_t queue_max,
                                        admin_job_fn *fn);
/* False when the queue is full or closed: the job stays the caller's. */
bool admin_workers_push(struct admin_workers *workers, void *job);
void admin_workers_stop(struct admin_workers *workers); /* may be repeated */
void admin_workers_free(struct admin_workers *workers); /* stopped before */

#endif
