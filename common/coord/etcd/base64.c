#include "common/coord/etcd/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
toc_base64_add(struct toc_buf *out, struct toc_str bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.ptr;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t bits = (uint32_t)p[i] << 16;
        if (left > 1)
            bits |= (uint32_t)p[i + 1] << 8;
        if (left > 2)
            bits |= p[i + 2];
        char quad[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                        left > 1 ? digits[bits >> 6 & 63] : '=',
                        left > 2 ? digits[bits & 63] : '='};
        toc_buf_add(out, quad, sizeof quad);
    }
}

size_t
toc_base64_room(size_t text_len)
{
    return text_len / 4 * 3;
}

/* The digit's value; -1 for what is none. */
static int32_t
digit_value(char c)
{
    const char *at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int32_t)(at - digits);
}

/* Decodes four characters, of which `pad` are '='; false when malformed. */
static bool
decode_quad(const char *text, size_t pad, unsigned char out[3])
{
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        int32_t value = i >= 4 - pad ? 0 : digit_value(text[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
    }
    out[0] = (unsigned char)(bits >> 16);
    out[1] = (unsigned char)(bits >> 8);
    out[2] = (unsigned char)bits;
    /* the bits behind the last whole byte */
    return (pad < 1 || out[2] == 0) && (pad < 2 || out[1] == 0);
}

bool
toc_base64_decode(struct toc_str text, char *out, size_t *ret_len)
{
    if (text.len % 4 != 0)
        return false;
    size_t len = 0;
    for (size_t i = 0; i < text.len; i += 4) {
        const char *quad = text.ptr + i;
        size_t pad = 0;
        if (i + 4 == text.len && quad[3] == '=')
            pad = quad[2] == '=' ? 2 : 1;
        unsigned char bytes[3];
        if (!decode_quad(quad, pad, bytes))
            return false;
        memcpy(out + len, bytes, 3 - pad);
        len += 3 - pad;
    }
    *ret_len = len;
    return true;
}
