/*
 * Steps of random sequences: what the sweep and the housekeeping do.
 */
#ifndef TOC_TESTS_CONTRACT_STORE_COMPARE_SWEEP_H
#define TOC_TESTS_CONTRACT_STORE_COMPARE_SWEEP_H

#include "tests/contract/store/compare_ops.h"

/* ---- the sweep and housekeeping
 * ---------------------------------------------------- */

static inline void
op_free(void)
{
    struct toc_task seen[BATCH_MAX];
    size_t n = 0, want = (size_t)below(BATCH_MAX) + 1;
    int64_t by_ms = one_in(8) ? p.real_ms + DAY : p.now_ms;

    for (int i = 0; i < 12 && n < want; i++) {
        const struct toc_task *task = some_task(TOC_STATE_EXECUTING);
        bool twice = false;
        for (size_t j = 0; task != NULL && j < n; j++)
            twice = twice || toc_task_id_cmp(seen[j].id, task->id) == 0;
        if (task == NULL || twice)
            continue;
        seen[n] = *task;
        if (one_in(10))
            seen[n].version++;
        if (one_in(10))
            seen[n].lock_token++;
        n++;
    }
    EACH_SIDE(side)
    {
        struct toc_error err = {0};
        size_t freed = 0;
        add_status(
            &p.out[side],
            toc_store_free_expired(p.store[side], seen, n, by_ms, &freed, &err),
            &err);
        add_number(&p.out[side], freed);
    }
}

static inline uint16_t
some_shard(void)
{
    const struct toc_task *task = some_task(99);

    return task != NULL ? toc_slice_shard(task->slice) : 7;
}

static inline void
op_record(void)
{
    uint16_t shard = some_shard();
    int64_t before_ms = p.now_ms - below(3 * MINUTE);
    size_t max = (size_t)below(12);

    EACH_SIDE(side)
    {
        struct toc_error err = {0};
        size_t waiting = 0;
        add_status(&p.out[side],
                   toc_store_record_stragglers(p.store[side], shard, before_ms,
                                               max, &waiting, &err),
                   &err);
        /* How many too many is not told exactly. */
        add_number(&p.out[side], waiting > max ? max + 1 : waiting);
    }
}

static inline void
op_advance(void)
{
    uint16_t shards[TOC_SHARDS];
    size_t n = one_in(3) ? TOC_SHARDS : 1;
    int64_t behind_ms = one_in(2) ? MINUTE : below(MINUTE);

    shards[0] = some_shard();
    for (uint16_t i = 0; n > 1 && i < n; i++)
        shards[i] = i;
    EACH_SIDE(side)
    {
        struct toc_error err = {0};
        add_status(&p.out[side],
                   toc_store_advance_low(p.store[side], shards, n, p.now_ms,
                                         behind_ms, &err),
                   &err);
    }
}

static inline void
op_move_far(void)
{
    uint16_t slices[TOC_SHARDS];
    size_t n = some_slices(slices), max = (size_t)below(8) + 1;

    /* In the order of their keys, or the limit takes others. */
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && slices[j] < slices[j - 1]; j--) {
            uint16_t swap = slices[j];
            slices[j] = slices[j - 1];
            slices[j - 1] = swap;
        }
    EACH_SIDE(side)
    {
        struct toc_error err = {0};
        size_t moved = 0;
        add_status(&p.out[side],
                   toc_store_move_far(p.store[side], slices, n, p.now_ms, max,
                                      &moved, &err),
                   &err);
        add_number(&p.out[side], moved);
    }
}

static inline void
op_gc(void)
{
    uint16_t shard = some_shard();
    int64_t window_ms = one_in(2) ? HOUR : below(HOUR);
    size_t max = (size_t)below(9) + 1;

    EACH_SIDE(side)
    {
        struct toc_error err = {0};
        size_t freed = 0;
        add_status(&p.out[side],
                   toc_store_gc_keys(p.store[side], shard, p.now_ms, window_ms,
                                     max, &freed, &err),
                   &err);
        add_number(&p.out[side], freed);
    }
}

static inline void
set_shard(const struct toc_shard_row *shard)
{
    toc_store_mem_set_shard(p.mem, shard);
    raw("UPDATE shard_owner SET state=%d,low_ms=%lld,keygc_ms=%lld WHERE "
        "shard_id=%u",
        (int)shard->state, (long long)shard->low_ms, (long long)shard->keygc_ms,
        shard->shard);
}

/* A submit that meets a shard on its way to another server. */
static inline void
op_moving(void)
{
    uint16_t number = some_shard();
    struct toc_shard_row *shards;
    size_t n;

    OK(toc_store_list_shards(p.store[1], &p.arena, &shards, &n, err));
    if (shards[number].low_ms > p.real_ms - NOW_WITHIN)
        return;
    shards[number].state = TOC_SHARD_MOVING;
    set_shard(&shards[number]);
    op_submit();
    shards[number].state = TOC_SHARD_OPEN;
    set_shard(&shards[number]);
}

/* So that days can go: the marks of shards with tasks go as far as they may,
 * the others' are set. */
static inline void
tidy_shard(uint16_t shard)
{
    EACH_SIDE(side)
    {
        size_t n;
        OK(toc_store_record_stragglers(p.store[side], shard, p.now_ms - MINUTE,
                                       100, &n, err));
        OK(toc_store_advance_low(p.store[side], &shard, 1, p.now_ms, MINUTE,
                                 err));
        OK(toc_store_gc_keys(p.store[side], shard, p.now_ms, HOUR, 100, &n,
                             err));
    }
}

static inline void
tidy_up(void)
{
    bool used[TOC_SHARDS] = {false};
    int64_t mark_ms = p.now_ms - HOUR;
    size_t n;
    struct toc_task *tasks = all_tasks(&n);

    for (size_t i = 0; i < n; i++)
        used[toc_slice_shard(tasks[i].slice)] = true;
    raw("START TRANSACTION");
    for (uint16_t i = 0; i < TOC_SHARDS; i++) {
        struct toc_shard_row row = {
            .shard = i, .low_ms = mark_ms, .keygc_ms = mark_ms};
        if (used[i])
            continue;
        set_shard(&row);
    }
    raw("COMMIT");
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        if (used[i])
            tidy_shard(i);
}

static inline void
op_days(void)
{
    int64_t retention_ms = below(2 * DAY);

    tidy_up();
    EACH_SIDE(side)
    {
        struct toc_error err = {0};
        size_t dropped = 0;
        add_status(&p.out[side],
                   toc_store_make_days(p.store[side], p.now_ms, &err), &err);
        add_status(&p.out[side],
                   toc_store_drop_days(p.store[side], p.now_ms, retention_ms,
                                       &dropped, &err),
                   &err);
        add_number(&p.out[side], dropped);
    }
}

#endif
