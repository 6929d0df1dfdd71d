/*
 * Heap memory. Running out of it ends the process (docs/adr): every queue,
 * cache and batch has a maximum, so it cannot happen by load, and restart is a
 * path that is tested far better than any half-failed allocation would be.
 *
 * Threads: any.
 */
#ifndef TOC_BASE_ALLOC_H
#define TOC_BASE_ALLOC_H

#include <stddef.h>

void *toc_alloc(size_t size);            /* not cleared; never NULL */
void *toc_calloc(size_t n, size_t size); /* cleared; n * size is checked */
void *toc_realloc(void *ptr, size_t size);
char *toc_strdup(const char *text);
char *toc_strndup(const char *text, size_t len);
void toc_free(void *ptr); /* NULL is fine */

/*
 * Another source of memory, for a program that has to drop all that a part of
 * it holds (a simulated process that is killed). Set before the first
 * allocation, by the only thread.
 */
struct toc_allocator {
    void *(*alloc)(size_t size);              /* cleared or not; size > 0 */
    void *(*realloc)(void *ptr, size_t size); /* ptr may be NULL */
    void (*free)(void *ptr);                  /* ptr may be NULL */
};
void toc_alloc_use(const struct toc_allocator *allocator);

/* A new, cleared object of the type. */
#define TOC_NEW(type) ((type *)toc_calloc(1, sizeof(type)))
#define TOC_NEW_ARRAY(type, n) ((type *)toc_calloc((n), sizeof(type)))

#endif
