/*
 * Condition variables that wait by the monotonic clock, for what is built on
 * them in this folder (bell, queue).
 *
 * Threads: any.
 */
#ifndef TOC_BASE_THREAD_WAIT_H
#define TOC_BASE_THREAD_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void toc_cond_init_mono(pthread_cond_t *cond);
/* False when the clock shows until_mono_ns (INT64_MAX: never). May wake for
 * no reason, as every condition variable. */
bool toc_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock,
                         int64_t until_mono_ns);

#endif
