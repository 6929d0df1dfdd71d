/*
 * Processes that registered, shards, the clock.
 */
#include "common/store/mem/store_mem_internal.h"

#define LIST_MAX 1000

enum toc_status
toc_mem_register_node(void *self, struct toc_str role, struct toc_str name,
                      struct toc_str address, int64_t now_ms, uint32_t *ret_id,
                      struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
    struct toc_mem_row *row = toc_mem_row_new(TOC_MEM_NODE);
    uint32_t id = ++store->last_node;
    enum toc_status st;

    row->node.id = id;
    row->node.role = toc_mem_text(role, 32);
    row->node.name = toc_mem_text(name, 128);
    row->node.address = toc_mem_text(address, 128);
    row->node.started_ms = now_ms;
    toc_mem_insert(&txn, row);
    st = toc_mem_commit(&txn, now_ms, reterr);
    if (st == TOC_OK)
        *ret_id = id;
    return st;
}

enum toc_status
toc_mem_list_nodes(void *self, struct toc_arena *arena,
                   struct toc_node_row **ret_nodes, size_t *ret_n,
                   struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    size_t all = store->tables[TOC_MEM_NODE].len;
    size_t n = all < LIST_MAX ? all : LIST_MAX, at = 0;
    struct toc_node_row *nodes = toc_arena_calloc(arena, n + 1, sizeof *nodes);
    struct toc_mem_place place = {0, 0};
    const struct toc_mem_row *row;

    (void)reterr;
    while (TOC_MEM_EACH(store, TOC_MEM_NODE, row, place)) {
        size_t from_end = all - ++at;
        if (from_end >= n)
            continue;
        nodes[from_end] = row->node;
        nodes[from_end].role = toc_arena_str(arena, row->node.role);
        nodes[from_end].name = toc_arena_str(arena, row->node.name);
        nodes[from_end].address = toc_arena_str(arena, row->node.address);
    }
    *ret_nodes = nodes;
    *ret_n = n;
    return TOC_OK;
}

enum toc_status
toc_mem_list_shards(void *self, struct toc_arena *arena,
                    struct toc_shard_row **ret_shards, size_t *ret_n,
                    struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    struct toc_shard_row *shards =
        toc_arena_calloc(arena, TOC_SHARDS, sizeof *shards);
    struct toc_mem_place place = {0, 0};
    const struct toc_mem_row *row;
    size_t n = 0;

    (void)reterr;
    while (TOC_MEM_EACH(store, TOC_MEM_SHARD, row, place))
        shards[n++] = row->shard;
    *ret_shards = shards;
    *ret_n = n;
    return TOC_OK;
}

enum toc_status
toc_mem_now(void *self, int64_t *ret_now_ms, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);

    (void)reterr;
    *ret_now_ms = toc_mem_clock(store);
    return TOC_OK;
}
