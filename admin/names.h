/*
 * Names of processes by their number in the store, for people who read
 * timelines. A cache: read anew when a number is asked for that it does not
 * hold, at most once a second.
 *
 * Threads: any; a user one at a time. Locks: its own, a leaf, not held over the
 * store. Blocking: a lookup may ask the store.
 */
#ifndef TOC_ADMIN_NAMES_H
#define TOC_ADMIN_NAMES_H

#include "common/api/api.h"
#include "common/clock/clock.h"
#include "common/store/store.h"

struct admin_names;

struct admin_names *admin_names_new(struct toc_store *store,
                                    const struct toc_clock *clk);
void admin_names_free(struct admin_names *names);

/* For one call: texts go into its arena. */
struct admin_names_user {
    struct admin_names *names;
    struct toc_arena *arena;
};
/* What toc_api_task wants; user must live as long. */
struct toc_api_names admin_names_of(struct admin_names_user *user);

#endif
