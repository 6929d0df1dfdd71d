/*
 * Bounded queue of pointers between threads.
 *
 * Ownership: of what was pushed passes to who pops it. Threads: any number on
 * both sides. Locks: its own, a leaf.
 */
#ifndef TOC_BASE_QUEUE_H
#define TOC_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct toc_queue;

struct toc_queue *toc_queue_new(size_t max);
void toc_queue_free(struct toc_queue *queue); /* must be empty */

/* False when full or closed: the item stays the caller's. Never blocks. */
bool toc_queue_push(struct toc_queue *queue, void *item);
/* Takes up to max items, waiting until one is there, the monotonic clock
 * shows until_ns, or the queue is closed; returns how many. */
size_t toc_queue_pop(struct toc_queue *queue, void **items, size_t max,
                     int64_t until_mono_ns);
size_t toc_queue_len(struct toc_queue *queue);
/* No more pushes; pop hands out the rest, then returns 0 at once. */
void toc_queue_close(struct toc_queue *queue);
bool toc_queue_closed(struct toc_queue *queue);

#endif
