#include "common/base/arena.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FIRST_BLOCK ((size_t)4096)
#define LARGEST_BLOCK ((size_t)256 * 1024)
#define ALIGNMENT _Alignof(max_align_t)

/* The newest block is first; only it has room to give. */
struct toc_arena_block {
    struct toc_arena_block *next;
    size_t size, used;
    max_align_t data[];
};

void
toc_arena_done(struct toc_arena *arena)
{
    struct toc_arena_block *block = arena->blocks;

    while (block != NULL) {
        struct toc_arena_block *next = block->next;
        toc_free(block);
        block = next;
    }
    *arena = (struct toc_arena){0};
}

void
toc_arena_reset(struct toc_arena *arena)
{
    struct toc_arena_block *keep = arena->blocks;

    if (keep == NULL)
        return;
    arena->blocks = keep->next;
    toc_arena_done(arena);
    /* One huge request must not hold its memory for ever. */
    if (keep->size > LARGEST_BLOCK) {
        toc_free(keep);
        return;
    }
    keep->next = NULL;
    keep->used = 0;
    arena->blocks = keep;
}

static struct toc_arena_block *
add_block(struct toc_arena *arena, size_t at_least)
{
    size_t size = FIRST_BLOCK;
    struct toc_arena_block *block;

    if (arena->blocks != NULL)
        size = arena->blocks->size * 2;
    if (size > LARGEST_BLOCK)
        size = LARGEST_BLOCK;
    if (size < at_least)
        size = at_least;
    block = toc_alloc(sizeof *block + size);
    block->size = size;
    block->used = 0;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *
toc_arena_alloc(struct toc_arena *arena, size_t size)
{
    struct toc_arena_block *block = arena->blocks;
    char *ptr;

    TOC_ASSERT(size < SIZE_MAX / 4);
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size == 0)
        size = ALIGNMENT;
    if (block == NULL || block->size - block->used < size)
        block = add_block(arena, size);
    ptr = (char *)block->data + block->used;
    block->used += size;
    arena->used += size;
    return ptr;
}

void *
toc_arena_calloc(struct toc_arena *arena, size_t n, size_t size)
{
    void *ptr;

    TOC_ASSERT(size == 0 || n <= SIZE_MAX / size);
    ptr = toc_arena_alloc(arena, n * size);
    memset(ptr, 0, n * size);
    return ptr;
}

char *
toc_arena_text(struct toc_arena *arena, struct toc_str s)
{
    char *copy;

    TOC_ASSERT(s.len < SIZE_MAX);
    copy = toc_arena_alloc(arena, s.len + 1);
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

struct toc_str
toc_arena_str(struct toc_arena *arena, struct toc_str s)
{
    return (struct toc_str){toc_arena_text(arena, s), s.len};
}

char *
toc_arena_printf(struct toc_arena *arena, const char *format, ...)
{
    va_list args, again;
    char *text;
    int len;

    va_start(args, format);
    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    TOC_ASSERT(len >= 0);
    text = toc_arena_alloc(arena, (size_t)len + 1);
    (void)vsnprintf(text, (size_t)len + 1, format, again);
    va_end(again);
    return text;
}
