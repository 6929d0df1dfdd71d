/*
 * protobuf-c messages whose memory is an arena's: unpack with it, never free.
 *
 * Ownership: the allocator borrows the arena. Threads: the arena's.
 */
#ifndef TOC_MODEL_UNPACK_H
#define TOC_MODEL_UNPACK_H

#include "common/base/arena.h"
#include "common/base/buf.h"

#include <protobuf-c/protobuf-c.h>

ProtobufCAllocator toc_unpack_allocator(struct toc_arena *arena);

/* Appends the message's bytes. */
void toc_pack_message(const ProtobufCMessage *message, struct toc_buf *out);

#endif
