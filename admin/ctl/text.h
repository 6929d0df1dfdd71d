/*
 * Text in and out: keys, durations, times for a person, and whatever came from
 * elsewhere made safe to show.
 *
 * Ownership: what is returned lives in the arena. Threads: any.
 */
#ifndef TOC_ADMIN_CTL_TEXT_H
#define TOC_ADMIN_CTL_TEXT_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Control characters (C0, DEL, C1), bidirectional overrides and bytes that are
 * no UTF-8 come out as \n, \t, \x1b, \u202e: nothing a terminal acts on. */
char *ctl_safe(struct toc_arena *arena, struct toc_str s);
/* The same, cut to so many columns, with an ellipsis. */
char *ctl_safe_cut(struct toc_arena *arena, struct toc_str s, size_t columns);
/* Columns a terminal uses for well-formed text. */
size_t ctl_columns(const char *text);
/* Is it text that can be shown as it is: UTF-8, no control characters but line
 * breaks and tabs? */
bool ctl_is_text(struct toc_str s);

/* 250ms, 90s, 1h30m, 2d, 1.5h: numbers with units, added up; up to 10,000
 * years. No sign. */
bool ctl_duration_parse(struct toc_str s, int64_t *ret_ms);
/* The two largest units: "1h30m", "2d", "12s", "250ms". */
char *ctl_duration_text(struct toc_arena *arena, int64_t ms);
/* "in 4m12s", "3s ago", "now". */
char *ctl_relative(struct toc_arena *arena, int64_t at_ms, int64_t now_ms);

/* How a task is named on the command line. */
struct ctl_ref {
    bool by_id;
    char *task_id;
    char *biz_type, *biz_id, *name; /* "" when left out */
    size_t parts;                   /* of a key: 1 to 3 */
};

/* A 26-character task id, or biz_type/biz_id[/name] with % escapes. False:
 * *ret_why says why. */
bool ctl_ref_parse(struct toc_arena *arena, const char *text,
                   struct ctl_ref *ret_ref, const char **ret_why);
/* A key alone, 1 to 3 parts. */
bool ctl_key_parse(struct toc_arena *arena, const char *text,
                   struct ctl_ref *ret_ref, const char **ret_why);
/* What ctl_key_parse reads back: / and % and what ctl_safe would escape come
 * out as %XX. The name is left out when it is empty. */
char *ctl_key_text(struct toc_arena *arena, const char *biz_type,
                   const char *biz_id, const char *name);

#endif
