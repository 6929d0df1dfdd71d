/*
 * Memory of one request or one tick, dropped as a whole.
 *
 * Ownership: the holder of the arena; what it hands out lives until reset or
 * done. Threads: one at a time.
 */
#ifndef TOC_BASE_ARENA_H
#define TOC_BASE_ARENA_H

#include "common/base/str.h"

#include <stddef.h>

struct toc_arena_block;

struct toc_arena {
    struct toc_arena_block *blocks;
    size_t used; /* bytes handed out since the last reset */
};

void toc_arena_done(struct toc_arena *arena);
void toc_arena_reset(struct toc_arena *arena); /* keeps one block */
void *toc_arena_alloc(struct toc_arena *arena, size_t size); /* aligned */
void *toc_arena_calloc(struct toc_arena *arena, size_t n, size_t size);
struct toc_str toc_arena_str(struct toc_arena *arena, struct toc_str s);
char *toc_arena_text(struct toc_arena *arena, struct toc_str s); /* + NUL */
__attribute__((format(printf, 2, 3))) char *toc_arena_printf(
    struct toc_arena *arena, const char *format, ...);

#endif
