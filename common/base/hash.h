/*
 * Hashes: a fast one for tables in memory, SHA-256 (libcrypto) for keys and
 * contents that are stored.
 *
 * Threads: any.
 */
#ifndef TOC_BASE_HASH_H
#define TOC_BASE_HASH_H

#include "common/base/str.h"

#include <stddef.h>
#include <stdint.h>

/* Not stable across versions; for tables in memory only. */
uint64_t toc_hash64(const void *bytes, size_t len);
uint64_t toc_hash64_mix(uint64_t value); /* good bits from a number */

/*
 * SHA-256 over the fields, each preceded by its length as 8 bytes big endian,
 * so that ("ab","c") and ("a","bc") differ.
 */
void toc_sha256_fields(const struct toc_str *fields, size_t n, uint8_t out[32]);

#endif
