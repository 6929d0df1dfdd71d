#include "common/store/mem/map.h"

#include "common/base/alloc.h"

#include <stdbool.h>
#include <string.h>

#define CHUNK_MAX 64

struct entry {
    struct toc_mem_key key;
    struct toc_mem_row *row;
};

struct toc_mem_chunk {
    size_t n;
    struct entry entries[CHUNK_MAX];
};

int
toc_mem_key_cmp(const struct toc_mem_key *a, const struct toc_mem_key *b)
{
    return memcmp(a->b, b->b, sizeof a->b);
}

void
toc_mem_map_done(struct toc_mem_map *map)
{
    for (size_t i = 0; i < map->n; i++)
        toc_free(map->chunks[i]);
    toc_free(map->chunks);
    *map = (struct toc_mem_map){0};
}

/* The last chunk that begins at or below the key; 0 when there is none. */
static size_t
chunk_of(const struct toc_mem_map *map, const struct toc_mem_key *key)
{
    size_t low = 0, high = map->n;

    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (toc_mem_key_cmp(&map->chunks[mid]->entries[0].key, key) <= 0)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* The first entry that is not below the key. */
static size_t
entry_of(const struct toc_mem_chunk *chunk, const struct toc_mem_key *key)
{
    size_t low = 0, high = chunk->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (toc_mem_key_cmp(&chunk->entries[mid].key, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct toc_mem_place
toc_mem_map_from(const struct toc_mem_map *map, const struct toc_mem_key *key)
{
    struct toc_mem_place place = {0, 0};

    if (map->n == 0)
        return place;
    place.chunk = chunk_of(map, key);
    place.at = entry_of(map->chunks[place.chunk], key);
    return place;
}

struct toc_mem_row *
toc_mem_map_next(const struct toc_mem_map *map, struct toc_mem_place *place)
{
    if (place->chunk < map->n && place->at == map->chunks[place->chunk]->n) {
        place->chunk++;
        place->at = 0;
    }
    if (place->chunk == map->n)
        return NULL;
    return map->chunks[place->chunk]->entries[place->at++].row;
}

static bool
is_at(const struct toc_mem_map *map, struct toc_mem_place place,
      const struct toc_mem_key *key)
{
    const struct toc_mem_chunk *chunk;

    if (place.chunk == map->n)
        return false;
    chunk = map->chunks[place.chunk];
    return place.at < chunk->n &&
           toc_mem_key_cmp(&chunk->entries[place.at].key, key) == 0;
}

struct toc_mem_row *
toc_mem_map_get(const struct toc_mem_map *map, const struct toc_mem_key *key)
{
    struct toc_mem_place place = toc_mem_map_from(map, key);

    return is_at(map, place, key)
               ? map->chunks[place.chunk]->entries[place.at].row
               : NULL;
}

static void
insert_chunk(struct toc_mem_map *map, size_t at, struct toc_mem_chunk *chunk)
{
    if (map->n == map->cap) {
        map->cap = map->cap * 2 + 4;
        map->chunks = toc_realloc(map->chunks, map->cap * sizeof *map->chunks);
    }
    memmove(map->chunks + at + 1, map->chunks + at,
            (map->n - at) * sizeof *map->chunks);
    map->chunks[at] = chunk;
    map->n++;
}

/* Makes room at the place, which may move into a new chunk. */
static void
split(struct toc_mem_map *map, struct toc_mem_place *place)
{
    struct toc_mem_chunk *full = map->chunks[place->chunk];
    struct toc_mem_chunk *upper = TOC_NEW(struct toc_mem_chunk);
    /* Keys that only rise fill their chunks. */
    size_t keep = place->at == CHUNK_MAX ? CHUNK_MAX - 1 : CHUNK_MAX / 2;

    upper->n = CHUNK_MAX - keep;
    memcpy(upper->entries, full->entries + keep,
           upper->n * sizeof *upper->entries);
    full->n = keep;
    insert_chunk(map, place->chunk + 1, upper);
    if (place->at > keep) {
        place->chunk++;
        place->at -= keep;
    }
}

struct toc_mem_row *
toc_mem_map_put(struct toc_mem_map *map, const struct toc_mem_key *key,
                struct toc_mem_row *row)
{
    struct toc_mem_place place = toc_mem_map_from(map, key);
    struct toc_mem_chunk *chunk;
    struct entry *entry;

    if (is_at(map, place, key)) {
        struct toc_mem_row *old;
        entry = &map->chunks[place.chunk]->entries[place.at];
        old = entry->row;
        entry->row = row;
        return old;
    }
    if (map->n == 0)
        insert_chunk(map, 0, TOC_NEW(struct toc_mem_chunk));
    if (map->chunks[place.chunk]->n == CHUNK_MAX)
        split(map, &place);
    chunk = map->chunks[place.chunk];
    entry = &chunk->entries[place.at];
    memmove(entry + 1, entry, (chunk->n - place.at) * sizeof *entry);
    *entry = (struct entry){*key, row};
    chunk->n++;
    map->len++;
    return NULL;
}

struct toc_mem_row *
toc_mem_map_take(struct toc_mem_map *map, const struct toc_mem_key *key)
{
    struct toc_mem_place place = toc_mem_map_from(map, key);
    struct toc_mem_chunk *chunk;
    struct toc_mem_row *row;
    struct entry *entry;

    if (!is_at(map, place, key))
        return NULL;
    chunk = map->chunks[place.chunk];
    entry = &chunk->entries[place.at];
    row = entry->row;
    chunk->n--;
    map->len--;
    memmove(entry, entry + 1, (chunk->n - place.at) * sizeof *entry);
    if (chunk->n > 0)
        return row;
    toc_free(chunk);
    map->n--;
    memmove(map->chunks + place.chunk, map->chunks + place.chunk + 1,
            (map->n - place.chunk) * sizeof *map->chunks);
    return row;
}
