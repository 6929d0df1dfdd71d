#include "common/model/unpack.h"

#include "common/base/assert.h"

static void *
take(void *arena, size_t size)
{
    return toc_arena_alloc(arena, size);
}

static void
leave(void *arena, void *ptr)
{
    (void)arena;
    (void)ptr;
}

ProtobufCAllocator
toc_unpack_allocator(struct toc_arena *arena)
{
    return (ProtobufCAllocator){
        .alloc = take, .free = leave, .allocator_data = arena};
}

void
toc_pack_message(const ProtobufCMessage *message, struct toc_buf *out)
{
    size_t len = protobuf_c_message_get_packed_size(message);

    toc_buf_reserve(out, len);
    TOC_ASSERT(protobuf_c_message_pack(message,
                                       (uint8_t *)out->data + out->len) == len);
    out->len += len;
    out->data[out->len] = '\0';
}
