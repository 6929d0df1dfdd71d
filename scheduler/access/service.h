/*
 * toc.v1.TimeoutService: what comes in by RPC becomes store transactions.
 *
 * On the completion thread a request is checked and understood; a Submit then
 * goes to the combiner, everything else to the workers; when either is full the
 * answer is RESOURCE_EXHAUSTED, at once, with a time to try again.
 *
 * Files: service.c (entry, reading), submit.c (Submit, BatchSubmit), command.c
 * (the rest), answer.c (building answers).
 *
 * Threads: any may run the handler.
 */
#ifndef TOC_SCHEDULER_ACCESS_SERVICE_H
#define TOC_SCHEDULER_ACCESS_SERVICE_H

#include "common/rpc/server.h"
#include "scheduler/access/combiner.h"
#include "scheduler/access/names.h"
#include "scheduler/access/workers.h"
#include "scheduler/peers.h"
#include "scheduler/skew.h"

struct sched_access {
    const struct toc_clock *clk;
    struct toc_store *store;
    struct sched_combiner *combiner;
    struct sched_workers *workers;
    struct sched_peers *peers;
    struct sched_names *names;
    size_t payload_max;
    int64_t key_window_ms;
    struct sched_skew *skew; /* a clock that is off: nothing is taken */
};

/* The handler of toc.v1.TimeoutService; self: struct sched_access. */
void sched_access_handle(void *self, unsigned method,
                         const ProtobufCMessage *request,
                         struct toc_rpc_call *call);

#endif
