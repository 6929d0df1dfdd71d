/* Keys and leases as they stand. */
#include "common/coord/mem/mem_internal.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <string.h>

struct mem_key *
toc_coord_mem_key_new(const struct mem_key *from)
{
    struct mem_key *key = TOC_NEW(struct mem_key);

    *key = *from;
    key->refs = 1;
    key->role = toc_strdup(from->role == NULL ? "" : from->role);
    key->node = toc_strdup(from->node == NULL ? "" : from->node);
    key->address = toc_strdup(from->address == NULL ? "" : from->address);
    return key;
}

struct mem_key *
toc_coord_mem_key_ref(struct mem_key *key)
{
    key->refs++;
    return key;
}

void
toc_coord_mem_key_unref(struct mem_key *key)
{
    if (key == NULL || --key->refs > 0)
        return;
    toc_free(key->role);
    toc_free(key->node);
    toc_free(key->address);
    toc_free(key);
}

int
toc_coord_mem_key_cmp(const struct mem_key *a, const struct mem_key *b)
{
    if (a->kind != b->kind)
        return a->kind > b->kind ? 1 : -1;
    if (a->kind != MEM_MEMBER)
        return (a->shard > b->shard) - (a->shard < b->shard);
    int order = strcmp(a->role, b->role);
    return order != 0 ? order : strcmp(a->node, b->node);
}

void
toc_coord_mem_table_done(struct mem_table *table)
{
    for (size_t i = 0; i < table->n_keys; i++)
        toc_coord_mem_key_unref(table->keys[i]);
    toc_free(table->keys);
    toc_free(table->leases);
    *table = (struct mem_table){0};
}

void
toc_coord_mem_table_copy(const struct mem_table *from, struct mem_table *ret)
{
    *ret = (struct mem_table){.revision = from->revision,
                              .n_keys = from->n_keys,
                              .keys_cap = from->n_keys,
                              .n_leases = from->n_leases,
                              .leases_cap = from->n_leases};
    ret->keys = TOC_NEW_ARRAY(struct mem_key *, from->n_keys + 1);
    ret->leases = TOC_NEW_ARRAY(struct mem_lease, from->n_leases + 1);
    for (size_t i = 0; i < from->n_keys; i++)
        ret->keys[i] = toc_coord_mem_key_ref(from->keys[i]);
    for (size_t i = 0; i < from->n_leases; i++)
        ret->leases[i] = from->leases[i];
}

struct mem_key *
toc_coord_mem_table_find(const struct mem_table *table,
                         const struct mem_key *like, size_t *ret_at)
{
    size_t low = 0, high = table->n_keys;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (toc_coord_mem_key_cmp(table->keys[mid], like) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (ret_at != NULL)
        *ret_at = low;
    if (low == table->n_keys ||
        toc_coord_mem_key_cmp(table->keys[low], like) != 0)
        return NULL;
    return table->keys[low];
}

struct mem_lease *
toc_coord_mem_table_lease(const struct mem_table *table, int64_t id)
{
    for (size_t i = 0; i < table->n_leases; i++)
        if (table->leases[i].id == id)
            return &table->leases[i];
    return NULL;
}
