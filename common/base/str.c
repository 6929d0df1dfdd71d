#include "common/base/str.h"

#include "common/base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct toc_str
toc_str_of(const char *text)
{
    return (struct toc_str){text, text != NULL ? strlen(text) : 0};
}

bool
toc_str_eq(struct toc_str a, struct toc_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

int
toc_str_cmp(struct toc_str a, struct toc_str b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared > 0 ? memcmp(a.ptr, b.ptr, shared) : 0;

    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

bool
toc_str_starts(struct toc_str s, struct toc_str prefix)
{
    return s.len >= prefix.len &&
           toc_str_eq((struct toc_str){s.ptr, prefix.len}, prefix);
}

bool
toc_str_next(struct toc_str *rest, char sep, struct toc_str *ret_part)
{
    const char *at;

    if (rest->ptr == NULL)
        return false;
    at = memchr(rest->ptr, sep, rest->len);
    if (at == NULL) {
        *ret_part = *rest;
        *rest = (struct toc_str){NULL, 0};
        return true;
    }
    *ret_part = (struct toc_str){rest->ptr, (size_t)(at - rest->ptr)};
    rest->ptr = at + 1;
    rest->len -= ret_part->len + 1;
    return true;
}

/* Length of the well-formed character at the start of s, or 0. */
static size_t
utf8_char_len(const uint8_t *s, size_t len)
{
    /* Unicode 15, table 3-7: the second byte's bounds depend on the first. */
    uint8_t low = 0x80, high = 0xbf;
    size_t need;

    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    need = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (len < need)
        return 0;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return need;
}

size_t
toc_utf8_len(struct toc_str s)
{
    return s.len > 0 ? utf8_char_len((const uint8_t *)s.ptr, s.len) : 0;
}

bool
toc_utf8_valid(struct toc_str s)
{
    const uint8_t *at = (const uint8_t *)s.ptr;

    while (s.len > 0) {
        size_t n = utf8_char_len(at, s.len);
        if (n == 0)
            return false;
        at += n;
        s.len -= n;
    }
    return true;
}

bool
toc_str_has_control(struct toc_str s)
{
    const uint8_t *at = (const uint8_t *)s.ptr;

    for (size_t i = 0; i < s.len; i++) {
        if (at[i] < 0x20 || at[i] == 0x7f)
            return true;
        /* U+0080 to U+009F */
        if (at[i] == 0xc2 && i + 1 < s.len && at[i + 1] >= 0x80 &&
            at[i + 1] <= 0x9f)
            return true;
    }
    return false;
}

bool
toc_parse_i64(struct toc_str s, int64_t min, int64_t max, int64_t *ret_value)
{
    bool negative = s.len > 0 && s.ptr[0] == '-';
    int64_t value = 0; /* counted downwards: there is one more below zero */
    size_t i = negative ? 1 : 0;

    if (i == s.len)
        return false;
    for (; i < s.len; i++) {
        int digit = s.ptr[i] - '0';
        if (digit < 0 || digit > 9)
            return false;
        if (value < (INT64_MIN + digit) / 10)
            return false;
        value = value * 10 - digit;
    }
    if (!negative) {
        if (value == INT64_MIN)
            return false;
        value = -value;
    }
    if (value < min || value > max)
        return false;
    *ret_value = value;
    return true;
}

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool
toc_parse_hex(struct toc_str s, uint8_t *out, size_t len)
{
    if (len > SIZE_MAX / 2 || s.len != 2 * len)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (hex_digit(s.ptr[i]) < 0)
            return false;
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)(hex_digit(s.ptr[2 * i]) * 16 +
                           hex_digit(s.ptr[2 * i + 1]));
    return true;
}

char *
toc_copy(char *dst, size_t cap, struct toc_str src)
{
    size_t len = src.len;

    TOC_ASSERT(cap > 0);
    if (len > cap - 1)
        len = cap - 1;
    if (len > 0)
        memcpy(dst, src.ptr, len);
    dst[len] = '\0';
    return dst;
}

size_t
toc_format(char *dst, size_t cap, const char *format, ...)
{
    va_list args;
    int len;

    TOC_ASSERT(cap > 0);
    va_start(args, format);
    len = vsnprintf(dst, cap, format, args);
    va_end(args);
    TOC_ASSERT(len >= 0);
    return (size_t)len < cap ? (size_t)len : cap - 1;
}

const char *
toc_errno_text(int err)
{
    static _Thread_local char text[96];

    if (strerror_r(err, text, sizeof text) != 0)
        (void)snprintf(text, sizeof text, "error %d", err);
    return text;
}
