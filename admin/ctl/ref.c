#include "admin/ctl/text.h"

#include "common/base/cleanup.h"
#include "common/model/key.h"

#include <string.h>

/* %XX to bytes. */
static bool
unescape(struct toc_arena *arena, struct toc_str part, char **ret_text,
         const char **ret_why)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};
    uint8_t byte;

    for (size_t i = 0; i < part.len; i++) {
        if (part.ptr[i] != '%') {
            toc_buf_char(&out, part.ptr[i]);
            continue;
        }
        if (i + 2 >= part.len ||
            !toc_parse_hex((struct toc_str){part.ptr + i + 1, 2}, &byte, 1)) {
            *ret_why = "% must be followed by two hexadecimal digits "
                       "(%25 is % itself)";
            return false;
        }
        if (byte == 0) {
            *ret_why = "%00 cannot be part of a key";
            return false;
        }
        toc_buf_char(&out, (char)byte);
        i += 2;
    }
    if (!toc_utf8_valid(toc_buf_view(&out))) {
        *ret_why = "a key is UTF-8 text";
        return false;
    }
    *ret_text = toc_arena_text(arena, toc_buf_view(&out));
    return true;
}

bool
ctl_key_parse(struct toc_arena *arena, const char *text,
              struct ctl_ref *ret_ref, const char **ret_why)
{
    struct ctl_ref ref = {.by_id = false};
    char **parts[] = {&ref.biz_type, &ref.biz_id, &ref.name};
    struct toc_str rest = toc_str_of(text), part;

    for (size_t i = 0; i < 3; i++)
        *parts[i] = toc_arena_text(arena, TOC_STR(""));
    while (toc_str_next(&rest, '/', &part)) {
        if (ref.parts == 3) {
            *ret_why = "a key has up to three parts: biz_type/biz_id/name "
                       "(write a / inside a part as %2F)";
            return false;
        }
        if (!unescape(arena, part, parts[ref.parts++], ret_why))
            return false;
    }
    if (ref.biz_type[0] == '\0') {
        *ret_why = "the biz_type is empty";
        return false;
    }
    if (ref.parts > 1 && ref.biz_id[0] == '\0') {
        *ret_why = "the biz_id is empty";
        return false;
    }
    *ret_ref = ref;
    return true;
}

bool
ctl_ref_parse(struct toc_arena *arena, const char *text,
              struct ctl_ref *ret_ref, const char **ret_why)
{
    struct toc_task_id id;
    struct ctl_ref ref;

    if (strchr(text, '/') == NULL) {
        if (!toc_task_id_parse(toc_str_of(text), &id)) {
            *ret_why = "neither a task id (26 letters and digits) nor a key "
                       "(biz_type/biz_id or biz_type/biz_id/name)";
            return false;
        }
        *ret_ref = (struct ctl_ref){
            .by_id = true, .task_id = toc_arena_text(arena, toc_str_of(text))};
        return true;
    }
    if (!ctl_key_parse(arena, text, &ref, ret_why))
        return false;
    *ret_ref = ref;
    return true;
}

/* The character of n bytes at the front, as %XX when it would mislead. */
static void
add_char(struct toc_buf *out, const char *at, size_t n)
{
    struct toc_str s = {at, n};

    if (*at != '/' && *at != '%' && *at != '\n' && *at != '\t' &&
        ctl_is_text(s)) {
        toc_buf_str(out, s);
        return;
    }
    for (size_t i = 0; i < n; i++)
        toc_buf_printf(out, "%%%02X", (unsigned)(uint8_t)at[i]);
}

static void
add_part(struct toc_buf *out, const char *part)
{
    struct toc_str s = toc_str_of(part);

    while (s.len > 0) {
        size_t n = toc_utf8_len(s);
        n = n == 0 ? 1 : n;
        add_char(out, s.ptr, n);
        s.ptr += n;
        s.len -= n;
    }
}

char *
ctl_key_text(struct toc_arena *arena, const char *biz_type, const char *biz_id,
             const char *name)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};

    add_part(&out, biz_type);
    toc_buf_char(&out, '/');
    add_part(&out, biz_id);
    if (name[0] != '\0') {
        toc_buf_char(&out, '/');
        add_part(&out, name);
    }
    return toc_arena_text(arena, toc_buf_view(&out));
}
