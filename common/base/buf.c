#include "common/base/buf.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <stdio.h>
#include <string.h>

#define FIRST_CAP 64

void
toc_buf_done(struct toc_buf *buf)
{
    toc_free(buf->data);
    *buf = (struct toc_buf){0};
}

void
toc_buf_reset(struct toc_buf *buf)
{
    buf->len = 0;
    if (buf->data != NULL)
        buf->data[0] = '\0';
}

void
toc_buf_reserve(struct toc_buf *buf, size_t more)
{
    size_t need;
    size_t cap = buf->cap > 0 ? buf->cap : FIRST_CAP;

    TOC_ASSERT(more < SIZE_MAX / 4 && buf->len < SIZE_MAX / 4);
    need = buf->len + more + 1; /* the NUL */
    if (need <= buf->cap)
        return;
    while (cap < need)
        cap *= 2;
    buf->data = toc_realloc(buf->data, cap);
    buf->cap = cap;
    buf->data[buf->len] = '\0';
}

void
toc_buf_add(struct toc_buf *buf, const void *bytes, size_t len)
{
    toc_buf_reserve(buf, len);
    if (len > 0)
        memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
}

void
toc_buf_str(struct toc_buf *buf, struct toc_str s)
{
    toc_buf_add(buf, s.ptr, s.len);
}

void
toc_buf_text(struct toc_buf *buf, const char *text)
{
    toc_buf_add(buf, text, strlen(text));
}

void
toc_buf_char(struct toc_buf *buf, char c)
{
    toc_buf_add(buf, &c, 1);
}

void
toc_buf_u64(struct toc_buf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value > 0);
    toc_buf_add(buf, digits + at, sizeof digits - at);
}

void
toc_buf_i64(struct toc_buf *buf, int64_t value)
{
    if (value < 0) {
        toc_buf_char(buf, '-');
        toc_buf_u64(buf, UINT64_C(0) - (uint64_t)value);
    } else {
        toc_buf_u64(buf, (uint64_t)value);
    }
}

void
toc_buf_hex(struct toc_buf *buf, const void *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *at = bytes;

    TOC_ASSERT(len < SIZE_MAX / 8);
    toc_buf_reserve(buf, 2 * len);
    for (size_t i = 0; i < len; i++) {
        buf->data[buf->len++] = digits[at[i] >> 4];
        buf->data[buf->len++] = digits[at[i] & 15];
    }
    buf->data[buf->len] = '\0';
}

void
toc_buf_printf(struct toc_buf *buf, const char *format, ...)
{
    va_list args, again;
    int len;

    va_start(args, format);
    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    TOC_ASSERT(len >= 0);
    toc_buf_reserve(buf, (size_t)len);
    (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, format, again);
    va_end(again);
    buf->len += (size_t)len;
}

struct toc_str
toc_buf_view(const struct toc_buf *buf)
{
    return (struct toc_str){buf->data, buf->len};
}
