#include "common/store/mem/store_mem.h"

#include "common/store/mem/store_mem_internal.h"

#define FIRST_LOW_BEHIND_MS 60000

const struct toc_store_ops toc_mem_ops = {
    .name = "mem",
    .submit = toc_mem_submit,
    .get = toc_mem_get,
    .list_biz = toc_mem_list_biz,
    .load = toc_mem_load,
    .scan = toc_mem_scan,
    .move_far = toc_mem_move_far,
    .claim = toc_mem_claim,
    .renew = toc_mem_renew,
    .finish = toc_mem_finish,
    .free_expired = toc_mem_free_expired,
    .record_stragglers = toc_mem_record_stragglers,
    .scan_stragglers = toc_mem_scan_stragglers,
    .advance_low = toc_mem_advance_low,
    .command = toc_mem_command,
    .timeline = toc_mem_timeline,
    .list_tasks = toc_mem_list_tasks,
    .count_buckets = toc_mem_count_buckets,
    .list_dead = toc_mem_list_dead,
    .redrive = toc_mem_redrive,
    .list_shards = toc_mem_list_shards,
    .register_node = toc_mem_register_node,
    .list_nodes = toc_mem_list_nodes,
    .gc_keys = toc_mem_gc_keys,
    .make_days = toc_mem_make_days_op,
    .drop_days = toc_mem_drop_days,
    .now = toc_mem_now,
};

struct toc_store_mem *
toc_mem_enter(void *self)
{
    struct toc_store_mem *store = self;

    pthread_mutex_lock(&store->lock);
    return store;
}

void
toc_mem_leave(struct toc_store_mem **store)
{
    pthread_mutex_unlock(&(*store)->lock);
}

int64_t
toc_mem_clock(const struct toc_store_mem *store)
{
    return toc_clock_wall(store->clock).ms;
}

int64_t
toc_mem_earlier(const struct toc_store_mem *store, int64_t now_ms)
{
    int64_t clock_ms = toc_mem_clock(store);

    return now_ms < clock_ms ? now_ms : clock_ms;
}

static void
put_shard(struct toc_store_mem *store, const struct toc_shard_row *shard)
{
    struct toc_mem_row *row = toc_mem_row_new(TOC_MEM_SHARD);
    struct toc_mem_key key;

    row->shard = *shard;
    key = toc_mem_key_of(row);
    toc_mem_row_free(toc_mem_map_put(&store->tables[TOC_MEM_SHARD], &key, row));
}

struct toc_store_mem *
toc_store_mem_open(const struct toc_store_mem_options *options)
{
    struct toc_store_mem *store = TOC_NEW(struct toc_store_mem);
    int64_t now_ms;

    store->port.ops = &toc_mem_ops;
    store->port.self = store;
    pthread_mutex_init(&store->lock, NULL);
    store->clock = options->clock;
    toc_rng_seed(&store->rng, options->seed);
    toc_list_init(&store->held);
    now_ms = toc_mem_clock(store);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        put_shard(store, &(struct toc_shard_row){
                             .shard = i,
                             .low_ms = now_ms - FIRST_LOW_BEHIND_MS,
                             .keygc_ms = now_ms - FIRST_LOW_BEHIND_MS});
    /* A clock before 1970 or near the end of time has no days: what is not
     * parked is then refused. */
    (void)!toc_mem_make_days(store, now_ms, NULL);
    return store;
}

void
toc_store_mem_close(struct toc_store_mem *store)
{
    struct toc_mem_txn all;

    if (store == NULL)
        return;
    toc_mem_drop_held(store);
    /* The tables go as a write set does. */
    all = (struct toc_mem_txn){.store = store};
    for (size_t i = 0; i < TOC_MEM_TABLES; i++)
        all.writes[i] = store->tables[i];
    toc_mem_txn_done(&all);
    toc_mem_map_done(&store->by_id);
    toc_free(store->day_ends);
    pthread_mutex_destroy(&store->lock);
    toc_free(store);
}

struct toc_store *
toc_store_mem_port(struct toc_store_mem *store)
{
    return &store->port;
}

void
toc_store_mem_hold_next(struct toc_store_mem *self,
                        enum toc_store_mem_answer answer)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);

    store->hold_next = true;
    store->answer = answer;
}

void
toc_store_mem_hold_none(struct toc_store_mem *self)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);

    store->hold_next = false;
}

uint64_t
toc_store_mem_last_held(struct toc_store_mem *self)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);

    return store->last_held;
}

size_t
toc_store_mem_n_held(struct toc_store_mem *self)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);

    return store->n_held;
}

void
toc_store_mem_set_shard(struct toc_store_mem *self,
                        const struct toc_shard_row *shard)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);

    put_shard(store, shard);
}
