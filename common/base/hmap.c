#include "common/base/hmap.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#define FIRST_CAP 16 /* a power of two, as all later ones */

static size_t
bucket_of(const struct toc_hmap *map, uint64_t hash)
{
    return (size_t)hash & (map->cap - 1);
}

void
toc_hmap_done(struct toc_hmap *map)
{
    toc_free(map->buckets);
    *map = (struct toc_hmap){0};
}

struct toc_hnode *
toc_hmap_find(const struct toc_hmap *map, uint64_t hash, toc_hmap_eq_fn *eq,
              const void *key)
{
    struct toc_hnode *node;

    if (map->len == 0)
        return NULL;
    node = map->buckets[bucket_of(map, hash)];
    for (; node != NULL; node = node->next)
        if (node->hash == hash && eq(node, key))
            return node;
    return NULL;
}

static void
link_node(struct toc_hmap *map, struct toc_hnode *node)
{
    struct toc_hnode **bucket = &map->buckets[bucket_of(map, node->hash)];

    node->next = *bucket;
    *bucket = node;
}

static void
grow(struct toc_hmap *map)
{
    struct toc_hnode **old = map->buckets;
    size_t old_cap = map->cap;

    map->cap = old_cap > 0 ? old_cap * 2 : FIRST_CAP;
    map->buckets = TOC_NEW_ARRAY(struct toc_hnode *, map->cap);
    for (size_t i = 0; i < old_cap; i++) {
        struct toc_hnode *node = old[i];
        while (node != NULL) {
            struct toc_hnode *next = node->next;
            link_node(map, node);
            node = next;
        }
    }
    toc_free(old);
}

void
toc_hmap_insert(struct toc_hmap *map, struct toc_hnode *node, uint64_t hash)
{
    if (map->len >= map->cap)
        grow(map);
    node->hash = hash;
    link_node(map, node);
    map->len++;
}

void
toc_hmap_remove(struct toc_hmap *map, struct toc_hnode *node)
{
    struct toc_hnode **at;

    TOC_ASSERT(map->len > 0);
    at = &map->buckets[bucket_of(map, node->hash)];
    while (*at != node) {
        TOC_ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = node->next;
    node->next = NULL;
    map->len--;
}

static struct toc_hnode *
first_from(const struct toc_hmap *map, size_t bucket)
{
    for (; bucket < map->cap; bucket++)
        if (map->buckets[bucket] != NULL)
            return map->buckets[bucket];
    return NULL;
}

struct toc_hnode *
toc_hmap_first(const struct toc_hmap *map)
{
    return first_from(map, 0);
}

struct toc_hnode *
toc_hmap_next(const struct toc_hmap *map, const struct toc_hnode *node)
{
    if (node->next != NULL)
        return node->next;
    return first_from(map, bucket_of(map, node->hash) + 1);
}
