/*
 * Base64 (RFC 4648, section 4) for keys and values of etcd's JSON gateway.
 *
 * Threads: any. Decoding is strict: padding must be there, bits that carry
 * nothing must be zero, no other characters are skipped.
 */
#ifndef TOC_COORD_ETCD_BASE64_H
#define TOC_COORD_ETCD_BASE64_H

#include "common/base/buf.h"
#include "common/base/str.h"

#include <stdbool.h>
#include <stddef.h>

void toc_base64_add(struct toc_buf *out, struct toc_str bytes);
/* What a text of this length decodes to at most. */
size_t toc_base64_room(size_t text_len);
/* Writes to out (toc_base64_room bytes); false when text is not base64. */
bool toc_base64_decode(struct toc_str text, char *out, size_t *ret_len);

#endif
