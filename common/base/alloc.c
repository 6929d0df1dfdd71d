#include "common/base/alloc.h"

#include "common/base/assert.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct toc_allocator system_allocator = {
    .alloc = malloc, .realloc = realloc, .free = free};
static const struct toc_allocator *source = &system_allocator;

void
toc_alloc_use(const struct toc_allocator *allocator)
{
    source = allocator;
}

static void *
checked(void *ptr)
{
    TOC_ASSERT(ptr != NULL && "out of memory");
    return ptr;
}

/* malloc(0) may be NULL; a caller of ours never gets NULL. */
static size_t
not_zero(size_t size)
{
    return size > 0 ? size : 1;
}

void *
toc_alloc(size_t size)
{
    return checked(source->alloc(not_zero(size)));
}

void *
toc_calloc(size_t n, size_t size)
{
    size_t bytes;

    TOC_ASSERT(!__builtin_mul_overflow(n, size, &bytes));
    if (source == &system_allocator)
        return checked(calloc(1, not_zero(bytes)));
    return memset(checked(source->alloc(not_zero(bytes))), 0, bytes);
}

void *
toc_realloc(void *ptr, size_t size)
{
    return checked(source->realloc(ptr, not_zero(size)));
}

char *
toc_strdup(const char *text)
{
    return toc_strndup(text, strlen(text));
}

char *
toc_strndup(const char *text, size_t len)
{
    char *copy;

    TOC_ASSERT(len < SIZE_MAX);
    copy = toc_alloc(len + 1);
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void
toc_free(void *ptr)
{
    source->free(ptr);
}
