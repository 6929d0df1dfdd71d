/*
 * Goal: list, heap and hash table hold what they were given, in their order,
 * through any mixture of operations.
 * Method: a seeded random walk beside a plain array that is searched the slow
 * way.
 */
#include "common/base/alloc.h"
#include "common/base/hash.h"
#include "common/base/heap.h"
#include "common/base/hmap.h"
#include "common/base/list.h"
#include "common/base/rng.h"

#include "tests/support/toc_check.h"

#include <string.h>

#define ITEMS 500

struct item {
    struct toc_heap_node heap_node;
    struct toc_hnode hnode;
    struct toc_link link;
    uint64_t key;
    bool in;
};

static struct item *
of_heap(const struct toc_heap_node *node)
{
    return toc_container_of(node, struct item, heap_node);
}

static bool
less(const struct toc_heap_node *a, const struct toc_heap_node *b)
{
    return of_heap(a)->key < of_heap(b)->key;
}

static void
check_heap(const struct toc_heap *heap, const struct item *items, size_t n)
{
    uint64_t least = UINT64_MAX;
    size_t in = 0;

    for (size_t i = 0; i < n; i++) {
        if (!items[i].in) {
            ck_assert(items[i].heap_node.index == SIZE_MAX);
            continue;
        }
        in++;
        if (items[i].key < least)
            least = items[i].key;
    }
    ck_assert_uint_eq(heap->len, in);
    if (in == 0)
        ck_assert_ptr_null(toc_heap_min(heap));
    else
        ck_assert_uint_eq(of_heap(toc_heap_min(heap))->key, least);
}

static void
step_heap(struct toc_heap *heap, struct item *item, struct toc_rng *rng)
{
    if (!item->in) {
        item->key = toc_rng_below(rng, 50);
        toc_heap_insert(heap, &item->heap_node);
        item->in = true;
    } else if (toc_rng_below(rng, 2) == 0) {
        item->key = toc_rng_below(rng, 50);
        toc_heap_update(heap, &item->heap_node);
    } else {
        toc_heap_remove(heap, &item->heap_node);
        item->in = false;
    }
}

START_TEST(heap_walk)
{
    struct item *items = TOC_NEW_ARRAY(struct item, ITEMS);
    struct toc_heap heap;
    struct toc_rng rng;
    uint64_t before = 0;

    toc_rng_seed(&rng, 1);
    toc_heap_init(&heap, less);
    for (size_t i = 0; i < ITEMS; i++)
        items[i].heap_node.index = SIZE_MAX;
    for (int i = 0; i < 5000; i++) {
        step_heap(&heap, &items[toc_rng_below(&rng, ITEMS)], &rng);
        if (i % 20 == 0)
            check_heap(&heap, items, ITEMS);
    }
    for (struct toc_heap_node *node; (node = toc_heap_pop(&heap)) != NULL;) {
        ck_assert_uint_ge(of_heap(node)->key, before);
        before = of_heap(node)->key;
        of_heap(node)->in = false;
    }
    check_heap(&heap, items, ITEMS);
    toc_heap_insert(&heap, &items[0].heap_node);
    toc_heap_done(&heap);
    ck_assert(items[0].heap_node.index == SIZE_MAX);
    toc_free(items);
}
END_TEST

static bool
has_key(const struct toc_hnode *node, const void *key)
{
    const struct item *item = toc_container_of(node, struct item, hnode);

    return item->key == *(const uint64_t *)key;
}

/* Few different hashes: chains of several keys with one hash. */
static uint64_t
poor_hash(uint64_t key)
{
    return key % 37;
}

static struct item *
find(const struct toc_hmap *map, uint64_t key)
{
    struct toc_hnode *node = toc_hmap_find(map, poor_hash(key), has_key, &key);

    return node != NULL ? toc_container_of(node, struct item, hnode) : NULL;
}

static size_t
visit_all(const struct toc_hmap *map)
{
    size_t n = 0;

    for (struct toc_hnode *node = toc_hmap_first(map); node != NULL;
         node = toc_hmap_next(map, node)) {
        ck_assert(toc_container_of(node, struct item, hnode)->in);
        n++;
    }
    return n;
}

START_TEST(hmap_walk)
{
    struct item *items = TOC_NEW_ARRAY(struct item, ITEMS);
    struct toc_hmap map = {0};
    struct toc_rng rng;

    toc_rng_seed(&rng, 2);
    ck_assert_ptr_null(find(&map, 5));
    ck_assert_ptr_null(toc_hmap_first(&map));
    for (size_t i = 0; i < ITEMS; i++)
        items[i].key = i;
    for (int step = 0; step < 20000; step++) {
        uint64_t key = toc_rng_below(&rng, ITEMS);
        struct item *item = &items[key];
        ck_assert_ptr_eq(find(&map, key), item->in ? item : NULL);
        if (item->in)
            toc_hmap_remove(&map, &item->hnode);
        else
            toc_hmap_insert(&map, &item->hnode, poor_hash(key));
        item->in = !item->in;
        if (step % 100 == 0)
            ck_assert_uint_eq(visit_all(&map), map.len);
    }
    toc_hmap_done(&map);
    ck_assert_uint_eq(map.len, 0);
    toc_free(items);
}
END_TEST

START_TEST(hmap_remove_while_visiting)
{
    struct item *items = TOC_NEW_ARRAY(struct item, ITEMS);
    struct toc_hmap map = {0};
    struct toc_hnode *node;
    size_t left = ITEMS;

    for (size_t i = 0; i < ITEMS; i++)
        toc_hmap_insert(&map, &items[i].hnode, toc_hash64_mix(i));
    node = toc_hmap_first(&map);
    while (node != NULL) {
        struct toc_hnode *next = toc_hmap_next(&map, node);
        toc_hmap_remove(&map, node);
        ck_assert_uint_eq(map.len, --left);
        node = next;
    }
    ck_assert_uint_eq(left, 0);
    toc_hmap_done(&map);
    toc_free(items);
}
END_TEST

START_TEST(list_keeps_order)
{
    struct item items[4] = {{.key = 0}};
    struct toc_link head;

    toc_list_init(&head);
    ck_assert(toc_list_empty(&head));
    ck_assert_ptr_null(toc_list_pop(&head));
    for (uint64_t i = 0; i < 3; i++)
        toc_list_push(&head, &items[i].link);
    toc_list_insert_before(&items[0].link, &items[3].link);
    toc_list_remove(&items[1].link);
    toc_list_remove(&items[1].link); /* harmless */
    ck_assert_ptr_eq(toc_list_pop(&head), &items[3].link);
    ck_assert_ptr_eq(toc_list_pop(&head), &items[0].link);
    ck_assert_ptr_eq(toc_list_pop(&head), &items[2].link);
    ck_assert(toc_list_empty(&head));
    ck_assert(toc_list_empty(&items[2].link)); /* points to itself */
}
END_TEST

TOC_CHECK_MAIN("tables", heap_walk, hmap_walk, hmap_remove_while_visiting,
               list_keeps_order)
