#include "common/base/heap.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <stdint.h>

#define FIRST_CAP 16

void
toc_heap_init(struct toc_heap *heap, toc_heap_less_fn *less)
{
    *heap = (struct toc_heap){.less = less};
}

void
toc_heap_done(struct toc_heap *heap)
{
    for (size_t i = 0; i < heap->len; i++)
        heap->nodes[i]->index = SIZE_MAX;
    toc_free(heap->nodes);
    heap->nodes = NULL;
    heap->len = heap->cap = 0;
}

static void
set(struct toc_heap *heap, size_t index, struct toc_heap_node *node)
{
    heap->nodes[index] = node;
    node->index = index;
}

static void
sift_up(struct toc_heap *heap, size_t index)
{
    struct toc_heap_node *node = heap->nodes[index];

    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (!heap->less(node, heap->nodes[parent]))
            break;
        set(heap, index, heap->nodes[parent]);
        index = parent;
    }
    set(heap, index, node);
}

static void
sift_down(struct toc_heap *heap, size_t index)
{
    struct toc_heap_node *node = heap->nodes[index];

    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= heap->len)
            break;
        if (child + 1 < heap->len &&
            heap->less(heap->nodes[child + 1], heap->nodes[child]))
            child++;
        if (!heap->less(heap->nodes[child], node))
            break;
        set(heap, index, heap->nodes[child]);
        index = child;
    }
    set(heap, index, node);
}

void
toc_heap_insert(struct toc_heap *heap, struct toc_heap_node *node)
{
    if (heap->len == heap->cap) {
        heap->cap = heap->cap > 0 ? heap->cap * 2 : FIRST_CAP;
        TOC_ASSERT(heap->cap <= SIZE_MAX / sizeof heap->nodes[0]);
        heap->nodes =
            toc_realloc(heap->nodes, heap->cap * sizeof heap->nodes[0]);
    }
    set(heap, heap->len++, node);
    sift_up(heap, node->index);
}

static void
assert_member(const struct toc_heap *heap, const struct toc_heap_node *node)
{
    TOC_ASSERT(node->index < heap->len && heap->nodes[node->index] == node);
}

void
toc_heap_update(struct toc_heap *heap, struct toc_heap_node *node)
{
    assert_member(heap, node);
    sift_up(heap, node->index);
    sift_down(heap, node->index);
}

void
toc_heap_remove(struct toc_heap *heap, struct toc_heap_node *node)
{
    size_t index = node->index;
    struct toc_heap_node *last;

    assert_member(heap, node);
    last = heap->nodes[--heap->len];
    node->index = SIZE_MAX;
    if (last == node)
        return;
    set(heap, index, last);
    toc_heap_update(heap, last);
}

struct toc_heap_node *
toc_heap_min(const struct toc_heap *heap)
{
    return heap->len > 0 ? heap->nodes[0] : NULL;
}

struct toc_heap_node *
toc_heap_pop(struct toc_heap *heap)
{
    struct toc_heap_node *node = toc_heap_min(heap);

    if (node != NULL)
        toc_heap_remove(heap, node);
    return node;
}
