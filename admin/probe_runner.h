/*
 * Asks the database once a second whether it is there, and keeps the check
 * "store" of the process's readiness: a heartbeat, so that a database that
 * hangs counts as away before the question to it times out.
 *
 * Ownership: all must outlive it. Threads: main. Blocking: stop, until the
 * question under way ends.
 */
#ifndef TOC_ADMIN_PROBE_RUNNER_H
#define TOC_ADMIN_PROBE_RUNNER_H

#include "common/app/app.h"
#include "common/clock/clock.h"
#include "common/store/store.h"

struct admin_probe;

struct admin_probe *admin_probe_start(struct toc_store *store,
                                      struct toc_app *app,
                                      const struct toc_clock *clk);
void admin_probe_stop(struct admin_probe *probe); /* and frees */

#endif
