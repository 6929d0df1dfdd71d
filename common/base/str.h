/*
 * Text and bytes that somebody else owns, and checked parsing of numbers.
 *
 * Threads: any. Nothing here allocates.
 */
#ifndef TOC_BASE_STR_H
#define TOC_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed bytes; may hold NUL; ptr may be NULL when len is 0. */
struct toc_str {
    const char *ptr;
    size_t len;
};

#define TOC_STR(literal) ((struct toc_str){(literal), sizeof(literal) - 1})

struct toc_str toc_str_of(const char *text); /* NULL is empty */
bool toc_str_eq(struct toc_str a, struct toc_str b);
int toc_str_cmp(struct toc_str a, struct toc_str b); /* as bytes */
bool toc_str_starts(struct toc_str s, struct toc_str prefix);

/* Splits off what stands before `sep`; false when *rest is used up. */
bool toc_str_next(struct toc_str *rest, char sep, struct toc_str *ret_part);

/* Well-formed UTF-8 (no surrogates, no overlong forms, up to U+10FFFF). */
bool toc_utf8_valid(struct toc_str s);
/* Bytes of the well-formed character at the front; 0 when there is none. */
size_t toc_utf8_len(struct toc_str s);
/* Holds a control character: U+0000 to U+001F, U+007F to U+009F. */
bool toc_str_has_control(struct toc_str s);

/* Decimal, whole text, no sign but '-', within [min, max]; else false. */
bool toc_parse_i64(struct toc_str s, int64_t min, int64_t max,
                   int64_t *ret_value);
/* Lower or upper case hexadecimal, exactly 2 * len digits. */
bool toc_parse_hex(struct toc_str s, uint8_t *out, size_t len);

/* Copies and terminates; cuts what does not fit into cap. Returns dst. */
char *toc_copy(char *dst, size_t cap, struct toc_str src);
/* snprintf that always terminates; returns the length written. */
__attribute__((format(printf, 3, 4))) size_t toc_format(char *dst, size_t cap,
                                                        const char *format,
                                                        ...);
const char *toc_errno_text(int err); /* static or thread-local text */

/* RFC 3339 in UTC with milliseconds, for years 0001 to 9999; a time outside
 * them is shown as "@<ms>ms". */
#define TOC_TIME_TEXT_MAX 32
char *toc_time_format(char dst[TOC_TIME_TEXT_MAX], int64_t wall_ms);
/* RFC 3339 with any offset and up to 9 digits of fraction, rounded up. A leap
 * second (23:59:60 UTC) counts as the start of the next day. The result lies
 * within the years 0001 to 9999. */
bool toc_time_parse(struct toc_str s, int64_t *ret_wall_ms);

#endif
