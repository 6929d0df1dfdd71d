/*
 * What handlers and callers of RPCs share: status with details, metadata, and
 * the bridge between arenas and protobuf-c. No gRPC types appear in the headers
 * of this box.
 */
#ifndef TOC_RPC_RPC_H
#define TOC_RPC_RPC_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"

#include <protobuf-c/protobuf-c.h>

/* An allocator whose memory is the arena's; freeing does nothing. The struct
 * must live as long as the messages unpacked with it. */
ProtobufCAllocator toc_rpc_allocator(struct toc_arena *arena);

/* NULL when the bytes are not such a message. */
void *toc_rpc_unpack(const ProtobufCMessageDescriptor *type,
                     struct toc_str bytes, struct toc_arena *arena);
void toc_rpc_pack(const ProtobufCMessage *message, struct toc_buf *out);

struct toc_rpc_metadata {
    struct toc_str name, value;
};

/*
 * A failure with google.rpc details. Build it with the functions below; texts
 * live in the arena it was begun with.
 */
struct toc_rpc_violation;
struct toc_rpc_failure {
    struct toc_arena *arena;
    enum toc_status status;
    const char *message;
    struct toc_rpc_violation *violations; /* google.rpc.BadRequest */
    size_t n_violations;
    int64_t retry_after_ms; /* google.rpc.RetryInfo; 0: none */
    /* Further details, packed as google.protobuf.Any (the type's full name is
     * taken from its descriptor). */
    const ProtobufCMessage *details[4];
    size_t n_details;
};

void toc_rpc_failure_init(struct toc_rpc_failure *failure,
                          struct toc_arena *arena);
/* "INVALID_ARGUMENT: field: rule". At most 100 are kept. The first one also
 * makes status INVALID and gives the message, unless they are set. */
__attribute__((format(printf, 3, 4))) void toc_rpc_violate(
    struct toc_rpc_failure *failure, const char *field, const char *format,
    ...);
__attribute__((format(printf, 3, 4))) void toc_rpc_failure_set(
    struct toc_rpc_failure *failure, enum toc_status st, const char *format,
    ...);
/* The failure as a packed google.rpc.Status (what grpc-status-details-bin
 * holds, and what an item of a batch answer holds). */
void toc_rpc_failure_pack(const struct toc_rpc_failure *failure,
                          struct toc_buf *out);
/* Unpacks a google.rpc.Status into lines for a person: the message, then
 * "  field: rule" of each violation. For command line tools. */
void toc_rpc_failure_text(struct toc_str packed_status, struct toc_buf *out);

#endif
