#include "tests/sim/pool.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Stands before each block, and keeps its alignment. */
struct block {
    struct toc_link link;
    max_align_t bytes[];
};

static struct sim_pool main_pool; /* what belongs to nobody else */
static struct sim_pool *current = &main_pool;

static struct block *
block_of(void *ptr)
{
    return toc_container_of(ptr, struct block, bytes);
}

static void *
give(struct block *block)
{
    if (block == NULL)
        return NULL;
    toc_list_push(&current->blocks, &block->link);
    return block->bytes;
}

static void *
pool_alloc(size_t size)
{
    TOC_ASSERT(size < SIZE_MAX / 2);
    return give(malloc(sizeof(struct block) + size));
}

static void
pool_free(void *ptr)
{
    if (ptr == NULL)
        return;
    toc_list_remove(&block_of(ptr)->link);
    free(block_of(ptr));
}

/* The block stays in its pool. */
static void *
pool_realloc(void *ptr, size_t size)
{
    struct toc_link *after;
    struct block *block;

    if (ptr == NULL)
        return pool_alloc(size);
    TOC_ASSERT(size < SIZE_MAX / 2);
    after = block_of(ptr)->link.next;
    toc_list_remove(&block_of(ptr)->link);
    block = realloc(block_of(ptr), sizeof(struct block) + size);
    if (block == NULL)
        return NULL;
    toc_list_insert_before(after, &block->link);
    return block->bytes;
}

void
sim_pool_begin(void)
{
    static const struct toc_allocator pools = {pool_alloc, pool_realloc,
                                               pool_free};

    sim_pool_init(&main_pool);
    toc_alloc_use(&pools);
}

void
sim_pool_init(struct sim_pool *pool)
{
    toc_list_init(&pool->blocks);
}

void
sim_pool_drop(struct sim_pool *pool)
{
    struct toc_link *link;

    while ((link = toc_list_pop(&pool->blocks)) != NULL)
        free(toc_container_of(link, struct block, link));
}

struct sim_pool *
sim_pool_use(struct sim_pool *pool)
{
    struct sim_pool *before = current;

    current = pool;
    return before;
}
