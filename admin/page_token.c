#include "admin/page_token.h"

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/hash.h"
#include "common/rpc/rpc.h"

#include <string.h>

/* slice (2) | slot (8) | task id (16) | check (8), big endian, in hex. */
#define PLACE_BYTES 26
#define CHECK_BYTES 8
#define TOKEN_BYTES (PLACE_BYTES + CHECK_BYTES)

static void
put(uint8_t *out, size_t n, uint64_t value)
{
    while (n > 0) {
        out[--n] = (uint8_t)(value & 0xff);
        value >>= 8;
    }
}

static uint64_t
get(const uint8_t *in, size_t n)
{
    uint64_t value = 0;

    for (size_t i = 0; i < n; i++)
        value = value << 8 | in[i];
    return value;
}

static void
fill_check(const char *list, const ProtobufCMessage *filter,
           uint8_t token[TOKEN_BYTES], uint8_t out[32])
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf packed = {0};

    if (filter != NULL)
        toc_rpc_pack(filter, &packed);
    const struct toc_str fields[] = {
        TOC_STR("toc page 1"),
        toc_str_of(list),
        toc_buf_view(&packed),
        {(const char *)token, PLACE_BYTES},
    };
    toc_sha256_fields(fields, sizeof fields / sizeof fields[0], out);
}

char *
admin_page_token(struct toc_arena *arena, const char *list,
                 const ProtobufCMessage *filter,
                 const struct toc_cursor *cursor)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf hex = {0};
    uint8_t token[TOKEN_BYTES], check[32];

    if (!cursor->set)
        return toc_arena_text(arena, TOC_STR(""));
    put(token, 2, cursor->slice);
    put(token + 2, 8, (uint64_t)cursor->slot_ms);
    memcpy(token + 10, cursor->id.b, sizeof cursor->id.b);
    fill_check(list, filter, token, check);
    memcpy(token + PLACE_BYTES, check, CHECK_BYTES);
    toc_buf_hex(&hex, token, sizeof token);
    return toc_arena_text(arena, toc_buf_view(&hex));
}

bool
admin_page_token_parse(const char *token, const char *list,
                       const ProtobufCMessage *filter,
                       struct toc_cursor *ret_cursor)
{
    uint8_t bytes[TOKEN_BYTES], check[32];

    *ret_cursor = (struct toc_cursor){.set = false};
    if (token == NULL || token[0] == '\0')
        return true;
    if (!toc_parse_hex(toc_str_of(token), bytes, sizeof bytes))
        return false;
    fill_check(list, filter, bytes, check);
    if (memcmp(bytes + PLACE_BYTES, check, CHECK_BYTES) != 0)
        return false;
    ret_cursor->set = true;
    ret_cursor->slice = (uint16_t)get(bytes, 2);
    ret_cursor->slot_ms = (int64_t)get(bytes + 2, 8);
    memcpy(ret_cursor->id.b, bytes + 10, sizeof ret_cursor->id.b);
    return true;
}
