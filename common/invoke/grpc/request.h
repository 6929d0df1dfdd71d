/*
 * What is sent: the message, and the metadata that goes with it.
 *
 * Threads: any. Everything lives in the arena given, or borrows from the call.
 */
#ifndef TOC_INVOKE_GRPC_REQUEST_H
#define TOC_INVOKE_GRPC_REQUEST_H

#include "common/base/buf.h"
#include "common/invoke/invoke.h"
#include "common/rpc/rpc.h"

#define TOC_GRPC_METADATA_MAX (TOC_HEADERS_MAX + 5)

struct toc_grpc_metadata {
    struct toc_rpc_metadata items[TOC_GRPC_METADATA_MAX];
    size_t n;
};

/* Of a call with one fire: ids, attempt, headers. Of a batch: what all have. */
void toc_grpc_request_metadata(const struct toc_call *call,
                               struct toc_arena *arena,
                               struct toc_grpc_metadata *out);
/* OnTimeoutRequest or, for a batch, OnTimeoutBatchRequest. */
void toc_grpc_request_pack(const struct toc_call *call, struct toc_arena *arena,
                           struct toc_buf *out);

#endif
