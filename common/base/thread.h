/*
 * Threads with a name, and the doorbell that step loops sleep on.
 *
 * A loop reads: `for (;;) { wake = x_step(x, now); if (stopping) break;
 * toc_bell_wait(&bell, wake); }`. Ringing a bell is remembered, so a ring
 * between the step and the wait is not lost.
 */
#ifndef TOC_BASE_THREAD_H
#define TOC_BASE_THREAD_H

#include "common/base/buf.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void toc_thread_fn(void *arg);

struct toc_thread {
    pthread_t id;
    bool started;
};

/* name: up to 15 characters are shown by ps and gdb. Signals are blocked in
 * the new thread. Ends the process when the system has no thread to give. */
void toc_thread_start(struct toc_thread *thread, const char *name,
                      toc_thread_fn *fn, void *arg);
void toc_thread_join(struct toc_thread *thread); /* harmless if not started */
/* Appends the names of the process's threads, for a log: at most about max
 * bytes, equal neighbours once. Nothing where the system does not tell. */
void toc_thread_names(struct toc_buf *out, size_t max);

#define TOC_BELL_FOREVER INT64_MAX

struct toc_bell {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool rung;
};

void toc_bell_init(struct toc_bell *bell);
void toc_bell_done(struct toc_bell *bell);
void toc_bell_ring(struct toc_bell *bell); /* any thread */
/* Waits until rung or until the monotonic clock shows until_ns; true when
 * rung. Clears the ring. */
bool toc_bell_wait(struct toc_bell *bell, int64_t until_mono_ns);

#endif
