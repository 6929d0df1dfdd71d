/*
 * The sweep's life and its step, which chooses the part that is to go on; the
 * parts are in sweep_*.c.
 */
#include "scheduler/sweep.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/log.h"
#include "scheduler/sweep_internal.h"

#include <string.h>

#define STEP_MS 1000 /* of the first chunk: it may be a backlog */

void
sched_sweep_init(struct sched_sweep *sweep,
                 const struct sched_sweep_options *opt)
{
    memset(sweep, 0, sizeof *sweep);
    sweep->opt = *opt;
    sweep->expired = TOC_NEW_ARRAY(struct toc_task, SCHED_SWEEP_FREE_AT_ONCE);
    sweep->waiting = TOC_NEW_ARRAY(struct toc_task, SCHED_CHUNK_ROWS);
    sweep->committed = TOC_NEW_ARRAY(int64_t, sched_marks_lanes(opt->marks));
    sweep->ends =
        TOC_NEW_ARRAY(struct sched_sweep_end, sched_marks_lanes(opt->marks));
    sched_walk_start(&sweep->walk, 0, STEP_MS, SCHED_SWEEP_STEP_MAX_MS, 0);
    sched_quarantine_init(&sweep->held, "sweep");
}

void
sched_sweep_done(struct sched_sweep *sweep)
{
    toc_free(sweep->expired);
    toc_free(sweep->waiting);
    toc_free(sweep->committed);
    toc_free(sweep->ends);
    toc_arena_done(&sweep->arena);
}

int64_t
sched_sweep_mono_ns(const struct sched_sweep *sweep)
{
    return toc_clock_mono(sweep->opt.clk).ns;
}

int64_t
sched_sweep_wall_ms(const struct sched_sweep *sweep)
{
    return toc_clock_wall(sweep->opt.clk).ms;
}

/* Only hints may come from a clock that is wrong: the claim does not heed it.
 */
bool
sched_sweep_may_write(const struct sched_sweep *sweep)
{
    return sched_skew_right(sweep->opt.skew);
}

/* Anything that failed ends the pass; it begins anew a period later. */
int64_t
sched_sweep_failed(struct sched_sweep *sweep, const char *what,
                   const struct toc_error *err)
{
    if (!sweep->failing)
        TOC_LOG(WARN, "sweep.failed",
                F_MSG("a sweep was broken off; the next one begins anew"),
                F_STR("doing", what), F_ERR(err));
    sweep->failing = true;
    sweep->phase = SCHED_SWEEP_IDLE;
    sweep->next_ns =
        sched_sweep_mono_ns(sweep) + sweep->opt.period_ms * TOC_NS_PER_MS;
    return sweep->next_ns;
}

/* Data that cannot be read is looked for, and what failed is done again without
 * it; any other failure ends the pass. */
int64_t
sched_sweep_unread(struct sched_sweep *sweep, const char *what,
                   enum toc_status st, const struct sched_suspects *at,
                   const uint16_t *slices, size_t n,
                   const struct toc_error *err)
{
    if (st == TOC_DATA_LOSS &&
        sched_quarantine_suspect(&sweep->held, at->bucket, at->after_ms,
                                 at->to_ms, slices, n, err))
        return sched_sweep_mono_ns(sweep);
    return sched_sweep_failed(sweep, what, err);
}

int64_t
sched_sweep_step(struct sched_sweep *sweep)
{
    int64_t now_ns = sched_sweep_mono_ns(sweep);
    struct sched_suspects suspects;
    struct sched_held *held;

    if (!sched_shards_live(sweep->opt.shards)) {
        sweep->phase = SCHED_SWEEP_IDLE;
        return now_ns + SCHED_SWEEP_COMMITTED_NS;
    }
    /* A takeover does not wait for a pass over a backlog to end. */
    if (sched_sweep_any_new(sweep))
        sched_sweep_take_over(sweep);
    if (sched_quarantine_next(&sweep->held, &suspects))
        return sched_sweep_search(sweep, &suspects);
    if (sched_quarantine_due(&sweep->held, now_ns, &held))
        return sched_sweep_try_held(sweep, held);
    switch (sweep->phase) {
    case SCHED_SWEEP_IDLE:
        return sched_sweep_wait_pass(sweep);
    case SCHED_SWEEP_LOWS:
        return sweep->next_ns > now_ns && sweep->takeover && sweep->retries > 0
                   ? sweep->next_ns
                   : sched_sweep_read_lows(sweep);
    case SCHED_SWEEP_SCAN:
        return sched_sweep_scan_chunk(sweep);
    case SCHED_SWEEP_FREE:
        return sched_sweep_free_locks(sweep);
    case SCHED_SWEEP_STRAGGLERS:
        return sched_sweep_scan_stragglers(sweep);
    case SCHED_SWEEP_RECORD:
        return sched_sweep_record_stragglers(sweep);
    case SCHED_SWEEP_ADVANCE:
        return sched_sweep_advance_low(sweep);
    }
    TOC_ASSERT(sweep->phase <= SCHED_SWEEP_ADVANCE); /* an unknown phase */
    return now_ns;
}
