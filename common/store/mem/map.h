/*
 * Rows in the order of their keys: what a table of the memory store is.
 *
 * A key is a row of bytes that compares as such (see row.h). The rows lie in
 * chunks of at most some dozens, so that finding takes O(log n) and inserting
 * moves little. Walking is by place, and the map must not change meanwhile.
 *
 * Ownership: the map owns its chunks, not the rows. Threads: one at a time.
 */
#ifndef TOC_STORE_MEM_MAP_H
#define TOC_STORE_MEM_MAP_H

#include <stddef.h>
#include <stdint.h>

struct toc_mem_row;

#define TOC_MEM_KEY_MAX 40

/* What the table does not use is zero. */
struct toc_mem_key {
    uint8_t b[TOC_MEM_KEY_MAX];
};

struct toc_mem_chunk;

struct toc_mem_map {
    struct toc_mem_chunk **chunks; /* none is empty */
    size_t n, cap;
    size_t len; /* rows in all */
};

/* Before this row comes the next of a walk. */
struct toc_mem_place {
    size_t chunk, at;
};

void toc_mem_map_done(struct toc_mem_map *map); /* zeroed: an empty map */
struct toc_mem_row *toc_mem_map_get(const struct toc_mem_map *map,
                                    const struct toc_mem_key *key);
/* Returns the row that was there, or NULL. */
struct toc_mem_row *toc_mem_map_put(struct toc_mem_map *map,
                                    const struct toc_mem_key *key,
                                    struct toc_mem_row *row);
struct toc_mem_row *toc_mem_map_take(struct toc_mem_map *map,
                                     const struct toc_mem_key *key);
/* The first key that is not below. */
struct toc_mem_place toc_mem_map_from(const struct toc_mem_map *map,
                                      const struct toc_mem_key *key);
/* The row at the place, which moves on; NULL at the end. */
struct toc_mem_row *toc_mem_map_next(const struct toc_mem_map *map,
                                     struct toc_mem_place *place);

int toc_mem_key_cmp(const struct toc_mem_key *a, const struct toc_mem_key *b);

#endif
