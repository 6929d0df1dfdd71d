/*
 * A byte buffer that grows. Always followed by a NUL that is not counted, so
 * that `data` is a C string when its content is text.
 *
 * Ownership: the holder; toc_buf_done frees. Threads: one at a time.
 */
#ifndef TOC_BASE_BUF_H
#define TOC_BASE_BUF_H

#include "common/base/str.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct toc_buf {
    char *data; /* NULL while nothing was added */
    size_t len;
    size_t cap;
};

void toc_buf_done(struct toc_buf *buf);  /* frees; empty again */
void toc_buf_reset(struct toc_buf *buf); /* empty, memory kept */
void toc_buf_reserve(struct toc_buf *buf, size_t more);
void toc_buf_add(struct toc_buf *buf, const void *bytes, size_t len);
void toc_buf_str(struct toc_buf *buf, struct toc_str s);
void toc_buf_text(struct toc_buf *buf, const char *text);
void toc_buf_char(struct toc_buf *buf, char c);
void toc_buf_i64(struct toc_buf *buf, int64_t value);
void toc_buf_u64(struct toc_buf *buf, uint64_t value);
/* Lower case hexadecimal digits of the bytes. */
void toc_buf_hex(struct toc_buf *buf, const void *bytes, size_t len);
__attribute__((format(printf, 2, 3))) void toc_buf_printf(struct toc_buf *buf,
                                                          const char *format,
                                                          ...);
struct toc_str toc_buf_view(const struct toc_buf *buf);

#endif
