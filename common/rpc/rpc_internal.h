/*
 * What server and client share of gRPC's C core. Only files of this folder may
 * include it: no gRPC type or code goes any further.
 *
 * A tag on a completion queue is always a struct rpc_tag inside the object that
 * owns the whole RPC. Each queue has one thread, which runs rpc_queue_run; so
 * all completion functions of one RPC run on one thread, one after the other.
 */
#ifndef TOC_RPC_INTERNAL_H
#define TOC_RPC_INTERNAL_H

#include "common/base/arena.h"
#include "common/clock/clock.h"
#include "common/rpc/rpc.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/impl/codegen/propagation_bits.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>

#include <stdatomic.h>
#include <stdbool.h>

#define RPC_DETAILS_KEY "grpc-status-details-bin"

/* ok: gRPC's "success" of the completed batch. */
typedef void rpc_tag_fn(void *object, bool ok);

struct rpc_tag {
    rpc_tag_fn *fn;
    void *object;
    /* gRPC orders a batch's start before its completion by ways that
     * ThreadSanitizer cannot see; this says the same in a way it can. */
    atomic_uint started;
};

void rpc_tag_init(struct rpc_tag *tag, rpc_tag_fn *fn, void *object);
/* To be called right before the tag is given to gRPC; from then on the object
 * belongs to the queue's thread. */
void rpc_tag_start(struct rpc_tag *tag);
void rpc_start_batch(grpc_call *call, const grpc_op *ops, size_t n,
                     struct rpc_tag *tag);

/* Counted; the first one sends gRPC's log to ours. */
void rpc_library_init(void);
void rpc_library_done(void);

grpc_completion_queue *rpc_queue_new(void);
/* Runs completions until the queue is shut down and empty. */
void rpc_queue_run(grpc_completion_queue *queue);

/* Monotonic time of the clock as gRPC's, and back. By difference from now, so
 * that a clock set by a test works too; INT64_MAX ns is never. */
gpr_timespec rpc_deadline_to_grpc(const struct toc_clock *clk,
                                  struct toc_mono deadline);
struct toc_mono rpc_deadline_from_grpc(const struct toc_clock *clk,
                                       gpr_timespec deadline);

/* Codes that gRPC does not define are UNKNOWN. */
enum toc_status rpc_status_from_grpc(grpc_status_code code);

struct toc_str rpc_slice_view(const grpc_slice *slice); /* lives as it does */
grpc_slice rpc_slice_copy(struct toc_str s);
/* The buffer's bytes in one piece: its own when they lie together, else copied
 * to the arena. Empty for NULL. */
struct toc_str rpc_buffer_view(grpc_byte_buffer *buffer,
                               struct toc_arena *arena);
grpc_byte_buffer *rpc_buffer_of_message(const ProtobufCMessage *message);
grpc_byte_buffer *rpc_buffer_of_bytes(struct toc_str bytes);

/* May gRPC send this? (It refuses the whole batch otherwise.) */
bool rpc_metadata_legal(struct toc_str name, struct toc_str value);
bool rpc_metadata_find(const grpc_metadata_array *array, const char *name,
                       struct toc_str *ret_value);

/* "host:port", "[v6]:port" with a port of 0 (only if zero_ok) to 65535; the
 * host not empty and of characters that names and addresses have. */
bool rpc_address_split(const char *address, bool zero_ok,
                       struct toc_str *ret_host, int *ret_port);

grpc_arg rpc_arg(const char *key, int value);

#endif
