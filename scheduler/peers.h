/*
 * The short way for a task that is due soon: straight into this node's memory
 * when the shard is ours, else as a hint to its owner.
 *
 * To each peer at most one RPC is under way; what comes meanwhile goes together
 * in the next. Nothing is repeated and nobody waits: a lost hint costs at most
 * a second, until the owner's loader finds the row. Bounded per peer and in the
 * number of peers; what does not fit is dropped.
 *
 * Threads: any. Locks: its own, a leaf (not held while a call is started).
 * Nothing blocks.
 */
#ifndef TOC_SCHEDULER_PEERS_H
#define TOC_SCHEDULER_PEERS_H

#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "scheduler/memory.h"

struct sched_peers;

struct sched_peers_options {
    const struct toc_clock *clk;
    struct sched_shards *shards;
    struct sched_memory *memory;
    struct toc_rpc_client *rpc; /* NULL: hints for others are dropped */
};

struct sched_peers *sched_peers_new(const struct sched_peers_options *opt);
/* After the rpc client was freed: no callback may come any more. */
void sched_peers_free(struct sched_peers *peers);

/* Of a task that was stored or changed just now: if it waits and is due within
 * the look-ahead, its hint takes the short way. */
void sched_peers_offer(struct sched_peers *peers, const struct toc_task *task);

/* The handler of toc.v1.PeerService; self: struct sched_peers. */
void sched_peers_handle(void *self, unsigned method,
                        const ProtobufCMessage *request,
                        struct toc_rpc_call *call);

#endif
