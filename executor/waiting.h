/*
 * Hints that wait for their due time, or for a second try of their claim: two
 * heaps for each priority (fresh and late hints, which take turns), and a table
 * by task and version in which equal hints meet. A hint stays in the table
 * until it is decided or dropped, also while it is queued at its target or
 * being claimed.
 *
 * Ownership: the items', until removed. Threads: core.
 */
#ifndef TOC_EXECUTOR_WAITING_H
#define TOC_EXECUTOR_WAITING_H

#include "executor/item.h"

struct exec_waiting {
    struct toc_heap heaps[TOC_PRIORITIES][EXEC_AGES];
    enum exec_age turn[TOC_PRIORITIES];
    struct toc_hmap known;
};

void exec_waiting_init(struct exec_waiting *waiting);
void exec_waiting_done(struct exec_waiting *waiting); /* must be empty */
size_t exec_waiting_len(const struct exec_waiting *waiting);

/* The equal hint that is known already, or NULL. */
struct exec_item *exec_waiting_find(const struct exec_waiting *waiting,
                                    const struct exec_item *like);
/* Into table and heap. */
void exec_waiting_add(struct exec_waiting *waiting, struct exec_item *item);
/* Into the heap only: it is in the table. */
void exec_waiting_again(struct exec_waiting *waiting, struct exec_item *item);
/* Out of the heap, not out of the table; NULL: none is due. */
struct exec_item *exec_waiting_pop(struct exec_waiting *waiting,
                                   enum toc_priority priority, int64_t now_ms);
/* Out of the table, and of the heap if it is in it. */
void exec_waiting_remove(struct exec_waiting *waiting, struct exec_item *item);
/* When the next one wakes; INT64_MAX: none waits. */
int64_t exec_waiting_next_ms(const struct exec_waiting *waiting);

/* Visits all of the table; take the next before removing the current. */
struct exec_item *exec_waiting_first(const struct exec_waiting *waiting);
struct exec_item *exec_waiting_next(const struct exec_waiting *waiting,
                                    const struct exec_item *item);

#endif
