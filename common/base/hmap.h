/*
 * Hash table whose links live in the elements (chained, grows by doubling).
 *
 * Ownership: the table owns only its buckets. Threads: one at a time.
 */
#ifndef TOC_BASE_HMAP_H
#define TOC_BASE_HMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct toc_hnode {
    struct toc_hnode *next;
    uint64_t hash;
};

struct toc_hmap {
    struct toc_hnode **buckets;
    size_t cap, len;
};

/* Does the element at node have this key? Asked only when the hash matches. */
typedef bool toc_hmap_eq_fn(const struct toc_hnode *node, const void *key);

void toc_hmap_done(struct toc_hmap *map); /* a zeroed map is an empty map */
struct toc_hnode *toc_hmap_find(const struct toc_hmap *map, uint64_t hash,
                                toc_hmap_eq_fn *eq, const void *key);
void toc_hmap_insert(struct toc_hmap *map, struct toc_hnode *node,
                     uint64_t hash);
void toc_hmap_remove(struct toc_hmap *map, struct toc_hnode *node);

/* Visits all: for (n = toc_hmap_first(m); n; n = toc_hmap_next(m, n)). Take
 * the next before removing the current. */
struct toc_hnode *toc_hmap_first(const struct toc_hmap *map);
struct toc_hnode *toc_hmap_next(const struct toc_hmap *map,
                                const struct toc_hnode *node);

#endif
