/*
 * From what gRPC gave back to the answers of the fires; the table of
 * docs/HANDLERS.md.
 *
 * Threads: any. Pure.
 */
#ifndef TOC_INVOKE_GRPC_ANSWER_H
#define TOC_INVOKE_GRPC_ANSWER_H

#include "common/invoke/invoke.h"
#include "common/rpc/client.h"

/* raw: of a method that is not TOC's, where every OK is "done". now_ms: what a
 * RetryInfo counts from. */
void toc_grpc_answer(struct toc_call *call, const struct toc_rpc_result *result,
                     bool raw, int64_t now_ms);

#endif
