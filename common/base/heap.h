/*
 * Binary min-heap of elements that know their index, so that any of them can
 * be removed or moved in O(log n).
 *
 * Ownership: the heap owns only its array of pointers. Threads: one at a time.
 */
#ifndef TOC_BASE_HEAP_H
#define TOC_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* Embedded in the element; index is SIZE_MAX while in no heap. */
struct toc_heap_node {
    size_t index;
};

typedef bool toc_heap_less_fn(const struct toc_heap_node *a,
                              const struct toc_heap_node *b);

struct toc_heap {
    toc_heap_less_fn *less;
    struct toc_heap_node **nodes;
    size_t len, cap;
};

void toc_heap_init(struct toc_heap *heap, toc_heap_less_fn *less);
void toc_heap_done(struct toc_heap *heap);
void toc_heap_insert(struct toc_heap *heap, struct toc_heap_node *node);
void toc_heap_remove(struct toc_heap *heap, struct toc_heap_node *node);
/* Call after the node's key changed. */
void toc_heap_update(struct toc_heap *heap, struct toc_heap_node *node);
struct toc_heap_node *toc_heap_min(const struct toc_heap *heap); /* or NULL */
struct toc_heap_node *toc_heap_pop(struct toc_heap *heap);       /* or NULL */

#endif
