/*
 * Keeps the process's membership: a thread that polls the coordination port,
 * which opens the session and opens it again after a loss.
 *
 * Being a member only tells others where this admin is: calls are served
 * whatever etcd says, so readiness does not depend on it.
 *
 * Ownership: coord must outlive it. Threads: main. Blocking: stop, for up to
 * the backend's request timeout.
 */
#ifndef TOC_ADMIN_COORD_RUNNER_H
#define TOC_ADMIN_COORD_RUNNER_H

#include "common/coord/coord.h"

struct admin_coord_runner;

struct admin_coord_runner *admin_coord_runner_start(struct toc_coord *coord);
void admin_coord_runner_stop(struct admin_coord_runner *runner); /* and frees */

#endif
