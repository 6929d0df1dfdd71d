/*
 * Names of processes by their number, for answers that say who published and
 * who called. Read from the store when an unknown number turns up, at most
 * every few seconds; a name never changes once known.
 *
 * Ownership: names live as long as the cache. Threads: any. Locks: its own, a
 * leaf. Blocking: learn makes a store call; find does not.
 */
#ifndef TOC_SCHEDULER_ACCESS_NAMES_H
#define TOC_SCHEDULER_ACCESS_NAMES_H

#include "common/api/api.h"
#include "common/clock/clock.h"
#include "common/store/store.h"

struct sched_names;

struct sched_names *sched_names_new(struct toc_store *store,
                                    const struct toc_clock *clk);
void sched_names_free(struct sched_names *names);
/* Makes sure, if that is possible, that the task's nodes are known. */
void sched_names_learn(struct sched_names *names, const struct toc_task *task);
/* For toc_api_view. */
struct toc_api_names sched_names_view(struct sched_names *names);

#endif
