/*
 * The client's connections: a gRPC channel per address, made when first wanted,
 * the longest unused closed when there are too many.
 *
 * Threads: any. Locks: its own, a leaf.
 */
#ifndef TOC_RPC_CLIENT_CHANNEL_H
#define TOC_RPC_CLIENT_CHANNEL_H

#include "common/rpc/rpc_internal.h"

struct rpc_channels;

struct rpc_channels *rpc_channels_new(size_t max, int reply_bytes_max);
/* Calls under way keep what they need. */
void rpc_channels_free(struct rpc_channels *channels);

/* The address must be one that rpc_address_split accepts. */
grpc_call *rpc_channels_call(struct rpc_channels *channels,
                             grpc_completion_queue *queue, const char *address,
                             const char *method, gpr_timespec deadline);
/* A call that fails by itself, as CANCELLED or else INVALID, with this text: so
 * that a refusal reaches the callback the way everything does. */
grpc_call *rpc_channels_lame_call(grpc_completion_queue *queue,
                                  const char *text, bool cancelled);

#endif
