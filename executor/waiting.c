#include "executor/waiting.h"

#include "common/base/assert.h"
#include "common/base/hash.h"

#include <stdint.h>
#include <string.h>

static const struct exec_item *
item_of_node(const struct toc_heap_node *node)
{
    return (const struct exec_item *)(const void *)((const char *)node -
                                                    offsetof(struct exec_item,
                                                             node));
}

static struct exec_item *
item_of_hnode(struct toc_hnode *node)
{
    return node == NULL ? NULL
                        : toc_container_of(node, struct exec_item, hnode);
}

static bool
wakes_before(const struct toc_heap_node *a, const struct toc_heap_node *b)
{
    return item_of_node(a)->wake_ms < item_of_node(b)->wake_ms;
}

void
exec_waiting_init(struct exec_waiting *waiting)
{
    *waiting = (struct exec_waiting){0};
    for (size_t i = 0; i < TOC_PRIORITIES; i++)
        for (size_t age = 0; age < EXEC_AGES; age++)
            toc_heap_init(&waiting->heaps[i][age], wakes_before);
}

void
exec_waiting_done(struct exec_waiting *waiting)
{
    TOC_ASSERT(waiting->known.len == 0);
    for (size_t i = 0; i < TOC_PRIORITIES; i++)
        for (size_t age = 0; age < EXEC_AGES; age++)
            toc_heap_done(&waiting->heaps[i][age]);
    toc_hmap_done(&waiting->known);
}

size_t
exec_waiting_len(const struct exec_waiting *waiting)
{
    return waiting->known.len;
}

static uint64_t
hash_of(const struct exec_item *item)
{
    return toc_hash64(item->task.id.b, sizeof item->task.id.b) ^
           toc_hash64_mix(item->task.version);
}

static bool
is_like(const struct toc_hnode *node, const void *key)
{
    const struct exec_item *like = key;
    const struct exec_item *item =
        (const struct exec_item *)(const void *)((const char *)node -
                                                 offsetof(struct exec_item,
                                                          hnode));

    return item->task.version == like->task.version &&
           toc_task_id_cmp(item->task.id, like->task.id) == 0;
}

struct exec_item *
exec_waiting_find(const struct exec_waiting *waiting,
                  const struct exec_item *like)
{
    return item_of_hnode(
        toc_hmap_find(&waiting->known, hash_of(like), is_like, like));
}

void
exec_waiting_add(struct exec_waiting *waiting, struct exec_item *item)
{
    toc_hmap_insert(&waiting->known, &item->hnode, hash_of(item));
    exec_waiting_again(waiting, item);
}

static struct toc_heap *
heap_of(struct exec_waiting *waiting, const struct exec_item *item)
{
    return &waiting->heaps[exec_item_priority(item)][item->age];
}

void
exec_waiting_again(struct exec_waiting *waiting, struct exec_item *item)
{
    item->state = EXEC_ITEM_WAITING;
    toc_heap_insert(heap_of(waiting, item), &item->node);
}

static struct exec_item *
pop(struct toc_heap *heap, int64_t now_ms)
{
    struct toc_heap_node *node = toc_heap_min(heap);

    if (node == NULL || item_of_node(node)->wake_ms > now_ms)
        return NULL;
    node = toc_heap_pop(heap);
    return toc_container_of(node, struct exec_item, node);
}

/* A fresh one; what has become late meanwhile goes into its own heap. */
static struct exec_item *
pop_fresh(struct exec_waiting *waiting, enum toc_priority priority,
          int64_t now_ms)
{
    struct exec_item *item;

    while ((item = pop(&waiting->heaps[priority][EXEC_FRESH], now_ms)) != NULL)
        if (exec_item_ages(item, now_ms))
            exec_waiting_again(waiting, item);
        else
            return item;
    return NULL;
}

struct exec_item *
exec_waiting_pop(struct exec_waiting *waiting, enum toc_priority priority,
                 int64_t now_ms)
{
    enum exec_age turn = waiting->turn[priority];
    struct exec_item *fresh = NULL, *item;

    if (turn == EXEC_FRESH)
        fresh = pop_fresh(waiting, priority, now_ms);
    item = fresh != NULL ? fresh
                         : pop(&waiting->heaps[priority][EXEC_LATE], now_ms);
    if (item == NULL && turn == EXEC_LATE)
        item = pop_fresh(waiting, priority, now_ms);
    waiting->turn[priority] = turn == EXEC_FRESH ? EXEC_LATE : EXEC_FRESH;
    return item;
}

void
exec_waiting_remove(struct exec_waiting *waiting, struct exec_item *item)
{
    if (item->state == EXEC_ITEM_WAITING)
        toc_heap_remove(heap_of(waiting, item), &item->node);
    toc_hmap_remove(&waiting->known, &item->hnode);
}

int64_t
exec_waiting_next_ms(const struct exec_waiting *waiting)
{
    int64_t next_ms = INT64_MAX;

    for (size_t i = 0; i < TOC_PRIORITIES; i++)
        for (size_t age = 0; age < EXEC_AGES; age++) {
            const struct toc_heap_node *node =
                toc_heap_min(&waiting->heaps[i][age]);

            if (node != NULL && item_of_node(node)->wake_ms < next_ms)
                next_ms = item_of_node(node)->wake_ms;
        }
    return next_ms;
}

struct exec_item *
exec_waiting_first(const struct exec_waiting *waiting)
{
    return item_of_hnode(toc_hmap_first(&waiting->known));
}

struct exec_item *
exec_waiting_next(const struct exec_waiting *waiting,
                  const struct exec_item *item)
{
    return item_of_hnode(toc_hmap_next(&waiting->known, &item->hnode));
}
