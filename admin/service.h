/*
 * toc.v1.AdminService: what operators ask for.
 *
 * Calls are checked on the server's threads and answered by a bounded number
 * of workers, because the store blocks. When their queue is full a call is
 * refused at once (RESOURCE_EXHAUSTED, with RetryInfo): a slow database must
 * not pile up work that nobody waits for any more.
 *
 * An answer stays below 3 MiB (clients take 4): a page ends early rather than
 * grow. A list looks at the database for about a second at most per call.
 *
 * Ownership: the options' store, coord and clock must outlive it. Threads: new
 * and free on the main thread. Blocking: free waits for the workers.
 */
#ifndef TOC_ADMIN_SERVICE_H
#define TOC_ADMIN_SERVICE_H

#include "common/clock/clock.h"
#include "common/coord/coord.h"
#include "common/rpc/server.h"
#include "common/store/store.h"

#include <stddef.h>
#include <stdint.h>

struct admin_service;

struct admin_service_options {
    struct toc_store *store;
    struct toc_coord *coord;
    const struct toc_clock *clk;
    size_t workers;      /* calls worked on at once; 0: 8 */
    size_t queue_max;    /* calls that wait; 0: 256 */
    int64_t list_ms_max; /* of one list call; 0: 1,000 */
};

struct admin_service *admin_service_new(
    const struct admin_service_options *options);
/* Before the server starts. */
void admin_service_add(struct admin_service *service,
                       struct toc_rpc_server *server);
/* Answers what waits as UNAVAILABLE and ends the workers. Before the server's
 * stop, which waits for all answers. */
void admin_service_stop(struct admin_service *service);
/* After the server's stop. */
void admin_service_free(struct admin_service *service);

#endif
