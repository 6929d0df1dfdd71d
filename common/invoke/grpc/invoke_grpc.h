/*
 * Calls by gRPC: grpc://host:port[/package.Service/Method]; without a method,
 * toc.v1.TimeoutHandler/OnTimeout (or OnTimeoutBatch). One channel per target
 * is kept and reused; idle ones are closed. Metadata sent: toc-fire-id,
 * toc-attempt, toc-not-after (ms since 1970), toc-task-id, traceparent, and the
 * spec's headers. How gRPC codes become answers is the table in
 * docs/HANDLERS.md.
 */
#ifndef TOC_INVOKE_GRPC_H
#define TOC_INVOKE_GRPC_H

#include "common/clock/clock.h"
#include "common/invoke/invoke.h"

struct toc_invoke_grpc_options {
    const struct toc_clock *clock;
    size_t threads;      /* completion threads; 0: 1 */
    size_t channels_max; /* 0: 1,024 */
};

struct toc_invoke_grpc;
struct toc_invoke_grpc *toc_invoke_grpc_new(
    const struct toc_invoke_grpc_options *options);
/* Cancels what is under way, waits for its done callbacks, frees. */
void toc_invoke_grpc_free(struct toc_invoke_grpc *invoke);
struct toc_invoke *toc_invoke_grpc_port(struct toc_invoke_grpc *invoke);
/* Is this text a target this backend can call? Used by submit's checks. */
bool toc_invoke_grpc_target_valid(struct toc_str target);

#endif
