#include "scheduler/shards.h"

#include "common/base/assert.h"

void
sched_shards_init(struct sched_shards *shards, const struct toc_clock *clk)
{
    shards->clk = clk;
    shards->coord = NULL;
    atomic_init(&shards->changes, 0);
    atomic_init(&shards->owned, 0);
    for (size_t i = 0; i < TOC_SHARDS; i++) {
        atomic_init(&shards->gen[i], 0);
        atomic_init(&shards->handing[i], false);
        shards->address[i][0] = '\0';
    }
    TOC_ASSERT(pthread_mutex_init(&shards->lock, NULL) == 0);
}

void
sched_shards_done(struct sched_shards *shards)
{
    pthread_mutex_destroy(&shards->lock);
}

void
sched_shards_set_coord(struct sched_shards *shards, struct toc_coord *coord)
{
    shards->coord = coord;
}

void
sched_shards_take(struct sched_shards *shards, uint16_t shard)
{
    uint32_t change = atomic_fetch_add(&shards->changes, 1) + 1;

    atomic_store(&shards->handing[shard], false);
    if (atomic_exchange(&shards->gen[shard], change) == 0)
        atomic_fetch_add(&shards->owned, 1);
}

void
sched_shards_drop(struct sched_shards *shards, uint16_t shard)
{
    if (atomic_exchange(&shards->gen[shard], 0) == 0)
        return;
    atomic_store(&shards->handing[shard], false);
    atomic_fetch_sub(&shards->owned, 1);
    atomic_fetch_add(&shards->changes, 1);
}

void
sched_shards_drop_all(struct sched_shards *shards)
{
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        sched_shards_drop(shards, i);
}

uint32_t
sched_shards_gen(struct sched_shards *shards, uint16_t shard)
{
    return atomic_load(&shards->gen[shard]);
}

bool
sched_shards_live(struct sched_shards *shards)
{
    return shards->coord != NULL &&
           toc_clock_boot(shards->clk).ns <
               toc_coord_deadline_boot_ns(shards->coord);
}

size_t
sched_shards_owned(struct sched_shards *shards)
{
    return atomic_load(&shards->owned);
}

void
sched_shards_snapshot(struct sched_shards *shards, uint32_t ret_gen[TOC_SHARDS])
{
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        ret_gen[i] = sched_shards_gen(shards, i);
}

size_t
sched_shards_slices(const uint32_t gen[TOC_SHARDS],
                    uint16_t ret_slices[SCHED_SLICES])
{
    size_t n = 0;

    for (int priority = 0; priority < TOC_PRIORITIES; priority++)
        for (uint16_t shard = 0; shard < TOC_SHARDS; shard++)
            if (gen[shard] != 0)
                ret_slices[n++] =
                    toc_slice_of(shard, (enum toc_priority)priority);
    return n;
}

void
sched_shards_set_owner(struct sched_shards *shards, uint16_t shard,
                       struct toc_str address)
{
    pthread_mutex_lock(&shards->lock);
    toc_copy(shards->address[shard], SCHED_ADDRESS_MAX, address);
    pthread_mutex_unlock(&shards->lock);
}

bool
sched_shards_owner(struct sched_shards *shards, uint16_t shard,
                   char ret_address[SCHED_ADDRESS_MAX])
{
    pthread_mutex_lock(&shards->lock);
    toc_copy(ret_address, SCHED_ADDRESS_MAX,
             toc_str_of(shards->address[shard]));
    pthread_mutex_unlock(&shards->lock);
    return ret_address[0] != '\0';
}
