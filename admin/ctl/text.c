#include "admin/ctl/text.h"

#include "common/base/cleanup.h"

#include <string.h>

/* The number of the well-formed character of n bytes at the front. */
static uint32_t
code_point(const char *at, size_t n)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t value = (uint8_t)at[0] & masks[n];

    for (size_t i = 1; i < n; i++)
        value = value << 6 | ((uint8_t)at[i] & 0x3f);
    return value;
}

/* What a terminal acts on, or what hides or reorders other text. */
static bool
is_unsafe(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
           c == 0xfeff;
}

static void
add_escape(struct toc_buf *out, uint32_t c)
{
    if (c == '\n')
        toc_buf_text(out, "\\n");
    else if (c == '\r')
        toc_buf_text(out, "\\r");
    else if (c == '\t')
        toc_buf_text(out, "\\t");
    else if (c < 0x80)
        toc_buf_printf(out, "\\x%02x", (unsigned)c);
    else
        toc_buf_printf(out, "\\u%04x", (unsigned)c);
}

static void
add_safe(struct toc_buf *out, struct toc_str s)
{
    while (s.len > 0) {
        size_t n = toc_utf8_len(s);
        if (n == 0) {
            toc_buf_printf(out, "\\x%02x", (unsigned)(uint8_t)s.ptr[0]);
            n = 1;
        } else if (is_unsafe(code_point(s.ptr, n))) {
            add_escape(out, code_point(s.ptr, n));
        } else {
            toc_buf_add(out, s.ptr, n);
        }
        s.ptr += n;
        s.len -= n;
    }
}

char *
ctl_safe(struct toc_arena *arena, struct toc_str s)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};

    add_safe(&out, s);
    return toc_arena_text(arena, toc_buf_view(&out));
}

/* The blocks that terminals show two columns wide (Unicode's East Asian Width,
 * coarsely). */
static bool
is_wide(uint32_t c)
{
    return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
           (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
           (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd);
}

static bool
is_combining(uint32_t c)
{
    return (c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200d) ||
           (c >= 0xfe00 && c <= 0xfe0f);
}

static size_t
char_columns(uint32_t c)
{
    if (is_combining(c))
        return 0;
    return is_wide(c) ? 2 : 1;
}

size_t
ctl_columns(const char *text)
{
    struct toc_str s = toc_str_of(text);
    size_t columns = 0, n;

    while (s.len > 0) {
        n = toc_utf8_len(s);
        columns += n == 0 ? 1 : char_columns(code_point(s.ptr, n));
        n = n == 0 ? 1 : n;
        s.ptr += n;
        s.len -= n;
    }
    return columns;
}

char *
ctl_safe_cut(struct toc_arena *arena, struct toc_str s, size_t columns)
{
    char *text = ctl_safe(arena, s);
    struct toc_str rest = toc_str_of(text);
    size_t used = 0;

    if (ctl_columns(text) <= columns)
        return text;
    while (rest.len > 0) {
        size_t n = toc_utf8_len(rest);
        used += char_columns(code_point(rest.ptr, n));
        if (used + 1 > columns)
            break;
        rest.ptr += n;
        rest.len -= n;
    }
    return toc_arena_printf(arena, "%.*s\xe2\x80\xa6", /* U+2026 */
                            (int)(rest.ptr - text), text);
}

bool
ctl_is_text(struct toc_str s)
{
    while (s.len > 0) {
        size_t n = toc_utf8_len(s);
        if (n == 0)
            return false;
        if (s.ptr[0] != '\n' && s.ptr[0] != '\t' &&
            is_unsafe(code_point(s.ptr, n)))
            return false;
        s.ptr += n;
        s.len -= n;
    }
    return true;
}
