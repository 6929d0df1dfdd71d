/*
 * How threads hand things to a step loop: a list under a lock, and the bell
 * that the loop sleeps on.
 *
 * It has no maximum of its own: what can be in it is bounded by whoever makes
 * it (hints by the lanes' pressure, calls by the call slots, attempts by
 * open_max).
 *
 * Ownership: of what is posted passes to the loop. Threads: any may post and
 * ring; one takes and waits. Locks: its own, a leaf.
 */
#ifndef TOC_EXECUTOR_INBOX_H
#define TOC_EXECUTOR_INBOX_H

#include "common/base/list.h"
#include "common/base/thread.h"

#include <pthread.h>

struct exec_inbox {
    pthread_mutex_t lock;
    struct toc_link items;
    bool rung; /* since things were last taken */
    struct toc_bell bell;
};

void exec_inbox_init(struct exec_inbox *inbox);
void exec_inbox_done(struct exec_inbox *inbox); /* must be empty */
/* Wakes the loop, once until it has taken what is there. */
void exec_inbox_post(struct exec_inbox *inbox, struct toc_link *item);
/* For what the loop need not wake for. */
void exec_inbox_leave(struct exec_inbox *inbox, struct toc_link *item);
bool exec_inbox_empty(struct exec_inbox *inbox);
void exec_inbox_ring(struct exec_inbox *inbox);
/* Moves all that was posted, in order, to the end of `to`. */
void exec_inbox_take(struct exec_inbox *inbox, struct toc_link *to);
/* Sleeps until something is posted, the bell is rung, or the monotonic clock
 * shows until_ns. */
void exec_inbox_wait(struct exec_inbox *inbox, int64_t until_ns);

#endif
