/*
 * A pass: where it begins and over which shards, chunk by chunk up to its end.
 */
#include "scheduler/sweep_internal.h"

#include <stdatomic.h>
#include <string.h>

#define PAST_MS 2000  /* younger rows are the main path's */
#define CHUNKS_MAX 10 /* in a period, of those that hint none */
#define FULL_MS 500   /* for memory to have room again */

void
sched_sweep_start_pass(struct sched_sweep *sweep, bool takeover)
{
    sweep->takeover = takeover;
    sweep->n_slices = sched_shards_slices(sweep->pass_gen, sweep->slices);
    sweep->chunks = sweep->undecided = sweep->hinted = sweep->freed = 0;
    memset(sweep->old, 0, sizeof sweep->old);
    for (size_t i = 0; i < sched_marks_lanes(sweep->opt.marks); i++)
        sweep->ends[i].offset = -1;
    memset(sweep->committed_ns, 0, sizeof sweep->committed_ns);
    sweep->phase = SCHED_SWEEP_LOWS;
}

static bool
is_new(struct sched_sweep *sweep, uint16_t shard)
{
    uint32_t gen = sched_shards_gen(sweep->opt.shards, shard);

    return gen != 0 && gen != sweep->seen[shard];
}

bool
sched_sweep_any_new(struct sched_sweep *sweep)
{
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        if (is_new(sweep, i))
            return true;
    return false;
}

/* Rows due before now may have been published by somebody else. Shards whose
 * takeover is still being repeated stay in the pass. */
void
sched_sweep_take_over(struct sched_sweep *sweep)
{
    int64_t now_ms = sched_sweep_wall_ms(sweep);

    if (!sweep->takeover)
        memset(sweep->pass_gen, 0, sizeof sweep->pass_gen);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        if (is_new(sweep, i)) {
            sweep->pass_gen[i] = sweep->seen[i] =
                sched_shards_gen(sweep->opt.shards, i);
            sweep->recorded[i] = true; /* by the owner before */
            sched_marks_take_over(sweep->opt.marks, i, now_ms);
        }
    sweep->end_ms = now_ms;
    sweep->retries = 0;
    sweep->stragglers = true; /* to be looked for */
    sched_sweep_start_pass(sweep, true);
}

static int64_t
earlier_ns(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

int64_t
sched_sweep_wait_pass(struct sched_sweep *sweep)
{
    int64_t now_ns = sched_sweep_mono_ns(sweep);
    int64_t period_ns = sweep->opt.period_ms * TOC_NS_PER_MS;

    if (now_ns < sweep->next_ns)
        return earlier_ns(sweep->next_ns, sched_quarantine_wake(&sweep->held));
    sched_shards_snapshot(sweep->opt.shards, sweep->pass_gen);
    sched_quarantine_keep(&sweep->held, sweep->pass_gen);
    sweep->end_ms = sched_sweep_wall_ms(sweep) - PAST_MS;
    sched_sweep_start_pass(sweep, false);
    sweep->next_ns = now_ns + period_ns;
    if (sweep->n_slices > 0)
        return now_ns;
    sweep->phase = SCHED_SWEEP_IDLE;
    return sweep->next_ns;
}

/* The earliest mark of the pass; a shard whose mark is old has it raised at the
 * end of the pass, so that passes are short when all is idle. */
static int64_t
earliest_low(struct sched_sweep *sweep, const struct toc_shard_row *rows,
             size_t n)
{
    int64_t low_ms = sweep->end_ms;

    for (size_t i = 0; i < n; i++) {
        if (rows[i].shard >= TOC_SHARDS || sweep->pass_gen[rows[i].shard] == 0)
            continue;
        if (rows[i].low_ms < sweep->end_ms - SCHED_SWEEP_OLD_LOW_MS)
            atomic_store(&sweep->opt.publisher->dirty[rows[i].shard], true);
        if (rows[i].low_ms < low_ms)
            low_ms = rows[i].low_ms;
    }
    return low_ms < 0 ? 0 : low_ms; /* parked rows lie before */
}

int64_t
sched_sweep_read_lows(struct sched_sweep *sweep)
{
    struct toc_error err = {0};
    struct toc_shard_row *rows;
    size_t n;

    sched_sweep_forget_rows(sweep);
    if (toc_store_list_shards(sweep->opt.store, &sweep->arena, &rows, &n,
                              &err) != TOC_OK)
        return sched_sweep_failed(sweep, "reading low-water marks", &err);
    sched_walk_start(&sweep->walk, earliest_low(sweep, rows, n) - 1,
                     sweep->walk.step_ms, SCHED_SWEEP_STEP_MAX_MS,
                     sweep->n_slices);
    sweep->phase = SCHED_SWEEP_SCAN;
    return sched_sweep_mono_ns(sweep);
}

static int64_t
end_scan(struct sched_sweep *sweep)
{
    sweep->failing = false;
    sweep->phase = SCHED_SWEEP_STRAGGLERS;
    return sched_sweep_mono_ns(sweep);
}

/* A backlog: the rest later. A takeover becomes a pass over all shards, so that
 * the others are not left alone for long. */
static int64_t
pause_scan(struct sched_sweep *sweep, int64_t ms)
{
    int64_t later_ns = sched_sweep_mono_ns(sweep) + ms * TOC_NS_PER_MS;

    sweep->chunks = 0;
    if (sweep->takeover) {
        sweep->takeover = false;
        sweep->phase = SCHED_SWEEP_IDLE;
        sweep->next_ns = later_ns;
    }
    return later_ns;
}

/* A statement over a long time may meet a backlog of hours. Only a mark of long
 * ago (a cluster that was down, or is new) is approached in larger steps. */
static void
limit_step(struct sched_sweep *sweep)
{
    struct sched_walk *walk = &sweep->walk;
    int64_t quarter_ms = (sweep->end_ms - walk->pos_ms) / 4;

    walk->step_max_ms = quarter_ms > SCHED_SWEEP_STEP_MAX_MS
                            ? quarter_ms
                            : SCHED_SWEEP_STEP_MAX_MS;
    if (walk->step_ms > walk->step_max_ms)
        walk->step_ms = walk->step_max_ms;
}

/* False: it could not be read, and *ret_wake_ns is when to step again. */
static bool
read_chunk(struct sched_sweep *sweep, struct sched_chunk *chunk,
           int64_t *ret_wake_ns)
{
    struct toc_error err = {0};
    struct sched_suspects piece = {.bucket = SCHED_BUCKET_DAYS};
    uint16_t slices[SCHED_SLICES];
    enum toc_status st;
    size_t n;

    sched_sweep_forget_rows(sweep);
    chunk->to_ms =
        sched_quarantine_cut(&sweep->held, chunk->after_ms, chunk->to_ms);
    piece.after_ms = chunk->after_ms;
    piece.to_ms = chunk->to_ms;
    n = sched_quarantine_pass(&sweep->held, SCHED_BUCKET_DAYS, chunk->after_ms,
                              chunk->to_ms, sweep->slices + chunk->first,
                              chunk->n, slices);
    st = toc_store_scan(sweep->opt.store, slices, n, chunk->after_ms + 1,
                        chunk->to_ms + 1, sched_sweep_look_at_row, sweep, &err);
    if (st != TOC_OK)
        *ret_wake_ns = sched_sweep_unread(sweep, "looking for unfinished tasks",
                                          st, &piece, slices, n, &err);
    return st == TOC_OK;
}

/* Hints what it showed, and goes to the next one when all was seen. */
static int64_t
end_chunk(struct sched_sweep *sweep, const struct sched_chunk *chunk)
{
    bool some = sched_sweep_hint_lost(sweep);
    bool again = sweep->full && some; /* the publisher makes room */

    if (sweep->rows >= SCHED_CHUNK_ROWS_FEW && !some)
        sweep->chunks++;
    if (!again && (sweep->rows <= SCHED_CHUNK_ROWS ||
                   !sched_walk_shrink(&sweep->walk, chunk)))
        sched_walk_done(&sweep->walk, chunk, sweep->n_slices, sweep->rows);
    sweep->after_free = SCHED_SWEEP_SCAN;
    if (sweep->n_expired > 0)
        sweep->phase = SCHED_SWEEP_FREE;
    else if (again)
        return pause_scan(sweep, FULL_MS);
    return sched_sweep_mono_ns(sweep);
}

int64_t
sched_sweep_scan_chunk(struct sched_sweep *sweep)
{
    struct sched_chunk chunk;
    int64_t wake_ns;

    limit_step(sweep);
    if (!sched_walk_next(&sweep->walk, sweep->end_ms, sweep->n_slices, &chunk))
        return end_scan(sweep);
    if (sweep->chunks >= CHUNKS_MAX)
        return pause_scan(sweep, sweep->opt.period_ms);
    if (!read_chunk(sweep, &chunk, &wake_ns))
        return wake_ns;
    return end_chunk(sweep, &chunk);
}
