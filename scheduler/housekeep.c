#include "scheduler/housekeep.h"

#include "common/base/log.h"

#include <string.h>

#define NS_PER_SEC (1000 * TOC_NS_PER_MS)
#define HOUR_NS (3600 * NS_PER_SEC)
#define FAILED_NS (60 * NS_PER_SEC)
#define GC_ROUND_NS (HOUR_NS / 4) /* all shards once */
#define GC_AT_ONCE 500
#define GC_MORE_NS (20 * TOC_NS_PER_MS) /* while shards give full chunks */
#define IDLE_NS (5 * NS_PER_SEC)

void
sched_housekeep_init(struct sched_housekeep *house,
                     const struct sched_housekeep_options *opt)
{
    int64_t now_ns = toc_clock_mono(opt->clk).ns;

    memset(house, 0, sizeof *house);
    house->opt = *opt;
    house->make_ns = now_ns + IDLE_NS;
    house->drop_ns = now_ns + FAILED_NS;
    house->gc_ns = now_ns + FAILED_NS;
}

static int64_t
later(const struct sched_housekeep *house, enum toc_status st, int64_t ns)
{
    return toc_clock_mono(house->opt.clk).ns + (st == TOC_OK ? ns : FAILED_NS);
}

static void
make_days(struct sched_housekeep *house, int64_t now_ms)
{
    struct toc_error err = {0};
    enum toc_status st = toc_store_make_days(house->opt.store, now_ms, &err);

    if (st != TOC_OK)
        TOC_LOG(ERROR, "housekeep.make_days_failed",
                F_MSG("cannot make partitions of the days to come, trying "
                      "again in a minute"),
                F_ERR(&err),
                F_STR("hint", "they are made 35 days ahead; tasks beyond the "
                              "last one are refused"));
    house->make_ns = later(house, st, HOUR_NS);
}

static void
drop_days(struct sched_housekeep *house, int64_t now_ms)
{
    struct toc_error err = {0};
    size_t dropped = 0;
    enum toc_status st = toc_store_drop_days(
        house->opt.store, now_ms, house->opt.retention_ms, &dropped, &err);

    if (st != TOC_OK)
        TOC_LOG(WARN, "housekeep.drop_days_failed",
                F_MSG("cannot drop days whose retention is over, trying again "
                      "in a minute"),
                F_ERR(&err));
    else if (dropped > 0)
        TOC_LOG(INFO, "housekeep.dropped",
                F_MSG("dropped days whose retention is over"),
                F_UINT("days", dropped));
    house->drop_ns = later(house, st, HOUR_NS);
}

static void
free_keys(struct sched_housekeep *house, int64_t now_ms)
{
    struct toc_error err = {0};
    uint16_t shard = house->gc_shard;
    size_t freed = 0;
    enum toc_status st = TOC_OK;
    bool full, busy;

    if (sched_shards_gen(house->opt.shards, shard) != 0)
        st = toc_store_gc_keys(house->opt.store, shard, now_ms,
                               house->opt.key_window_ms, GC_AT_ONCE, &freed,
                               &err);
    if (st != TOC_OK)
        TOC_LOG(WARN, "housekeep.keys_failed",
                F_MSG("cannot free keys of ended tasks, trying again in a "
                      "minute"),
                F_INT("shard", shard), F_ERR(&err));
    full = freed == GC_AT_ONCE;
    busy = full || house->gc_full;
    house->gc_full = full;
    /* What the store cannot read or refuses is passed, and comes round again.
     */
    if (!full && !toc_status_retryable(st))
        house->gc_shard = (uint16_t)((shard + 1) % TOC_SHARDS);
    /* Where one shard has much to free, the next one probably has, too. */
    house->gc_ns =
        later(house, st, busy ? GC_MORE_NS : GC_ROUND_NS / TOC_SHARDS);
}

int64_t
sched_housekeep_step(struct sched_housekeep *house)
{
    int64_t now_ns = toc_clock_mono(house->opt.clk).ns;
    int64_t now_ms = toc_clock_wall(house->opt.clk).ms;
    bool first = sched_shards_gen(house->opt.shards, 0) != 0;

    if (!sched_shards_live(house->opt.shards) ||
        !sched_skew_right(house->opt.skew))
        return now_ns + IDLE_NS;
    if (first && now_ns >= house->make_ns)
        make_days(house, now_ms);
    else if (first && now_ns >= house->drop_ns)
        drop_days(house, now_ms);
    else if (now_ns >= house->gc_ns)
        free_keys(house, now_ms);
    else
        return house->gc_ns < now_ns + IDLE_NS ? house->gc_ns
                                               : now_ns + IDLE_NS;
    return now_ns;
}
