#include "scheduler/sweep.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/log.h"

#include <string.h>

#define PAST_MS 2000        /* younger rows are the main path's */
#define STRAGGLER_MS 60000  /* unfinished for longer: recorded */
#define STRAGGLERS_MAX 1000 /* of a shard; more is a backlog */
#define RECHECK_MAX 4       /* shards at once, for those that ended only */
#define BEHIND_MS 8000      /* the low-water mark stays so far behind */
#define CHUNKS_MAX 10       /* in a period, of those that hint none */
#define FULL_MS 500         /* for memory to have room again */
#define FREE_AT_ONCE 500
#define TAKEOVER_RETRY_MS 250
#define TAKEOVER_RETRIES 40
#define FREED_AGAIN_MS 100
#define BUS_TIMEOUT_MS 2000
#define BUS_AGAIN_NS (INT64_C(2500) * TOC_NS_PER_MS)
#define COMMITTED_NS (INT64_C(1000) * TOC_NS_PER_MS)
#define OLD_LOW_MS (15 * 60000) /* older marks rise, of idle shards too */
#define STEP_MS 1000            /* of the first chunk: it may be a backlog */
#define STEP_MAX_MS OLD_LOW_MS
#define MINUTE_NS (INT64_C(60000) * TOC_NS_PER_MS)

void
sched_sweep_init(struct sched_sweep *sweep,
                 const struct sched_sweep_options *opt)
{
    memset(sweep, 0, sizeof *sweep);
    sweep->opt = *opt;
    sweep->expired = TOC_NEW_ARRAY(struct toc_task, FREE_AT_ONCE);
    sweep->waiting = TOC_NEW_ARRAY(struct toc_task, SCHED_CHUNK_ROWS);
    sweep->committed = TOC_NEW_ARRAY(int64_t, sched_marks_lanes(opt->marks));
    sweep->ends =
        TOC_NEW_ARRAY(struct sched_sweep_end, sched_marks_lanes(opt->marks));
    sched_walk_start(&sweep->walk, 0, STEP_MS, STEP_MAX_MS, 0);
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

static int64_t
mono_ns(const struct sched_sweep *sweep)
{
    return toc_clock_mono(sweep->opt.clk).ns;
}

static int64_t
wall_ms(const struct sched_sweep *sweep)
{
    return toc_clock_wall(sweep->opt.clk).ms;
}

/* Only hints may come from a clock that is wrong: the claim does not heed it.
 */
static bool
may_write(const struct sched_sweep *sweep)
{
    return sched_skew_right(sweep->opt.skew);
}

/* Anything that failed ends the pass; it begins anew a period later. */
static int64_t
failed(struct sched_sweep *sweep, const char *what, const struct toc_error *err)
{
    if (!sweep->failing)
        TOC_LOG(WARN, "sweep.failed",
                F_MSG("a sweep was broken off; the next one begins anew"),
                F_STR("doing", what), F_ERR(err));
    sweep->failing = true;
    sweep->phase = SCHED_SWEEP_IDLE;
    sweep->next_ns = mono_ns(sweep) + sweep->opt.period_ms * TOC_NS_PER_MS;
    return sweep->next_ns;
}

/* Data that cannot be read is looked for, and what failed is done again without
 * it; any other failure ends the pass. */
static int64_t
unread(struct sched_sweep *sweep, const char *what, enum toc_status st,
       const struct sched_suspects *at, const uint16_t *slices, size_t n,
       const struct toc_error *err)
{
    if (st == TOC_DATA_LOSS &&
        sched_quarantine_suspect(&sweep->held, at->bucket, at->after_ms,
                                 at->to_ms, slices, n, err))
        return mono_ns(sweep);
    return failed(sweep, what, err);
}

/* ---- a row ------------------------------------------------------------------
 */

static struct toc_str
keep(struct toc_arena *arena, struct toc_str s)
{
    return s.ptr == NULL || s.len == 0 ? s : toc_arena_str(arena, s);
}

static void
keep_task(struct sched_sweep *sweep, const struct toc_task *task,
          struct toc_task *out)
{
    *out = *task;
    out->error = (struct toc_str){NULL, 0};
    out->biz_type = keep(&sweep->arena, task->biz_type);
    out->biz_id = keep(&sweep->arena, task->biz_id);
    out->name = keep(&sweep->arena, task->name);
    out->spec = keep(&sweep->arena, task->spec);
    out->payload = keep(&sweep->arena, task->payload);
}

static void
look_at_waiting(struct sched_sweep *sweep, const struct toc_task *task)
{
    /* Not read yet: a backlog that waits in the store. */
    if (!sweep->takeover &&
        task->slot_ms > sched_loader_cursor(sweep->opt.loader))
        return;
    if (sweep->n_waiting < SCHED_CHUNK_ROWS &&
        !sched_memory_knows(sweep->opt.memory, task->id, task->version))
        keep_task(sweep, task, &sweep->waiting[sweep->n_waiting++]);
}

static void
look_at_row(void *arg, const struct toc_task *task)
{
    struct sched_sweep *sweep = arg;
    int64_t now_ms = wall_ms(sweep);

    sweep->rows++;
    /* Its end is not seen here: the mark is to be looked at again. */
    atomic_store(&sweep->opt.publisher->dirty[toc_slice_shard(task->slice)],
                 true);
    if (task->slot_ms < now_ms - STRAGGLER_MS)
        sweep->old[toc_slice_shard(task->slice)] = true;
    if (task->state == TOC_STATE_INIT || task->state == TOC_STATE_RETRY)
        look_at_waiting(sweep, task);
    else if (task->state == TOC_STATE_EXECUTING &&
             task->lock_until_ms < now_ms && sweep->n_expired < FREE_AT_ONCE)
        keep_task(sweep, task, &sweep->expired[sweep->n_expired++]);
}

static void
forget_rows(struct sched_sweep *sweep)
{
    toc_arena_reset(&sweep->arena);
    sweep->n_expired = sweep->n_waiting = sweep->rows = 0;
}

/* ---- hinting again
 * -------------------------------------------------------------- */

/* A bus that does not answer costs a timeout now and then, not one a row: what
 * depends on it stays undecided, locks are freed all the same. */
static bool
bus_answers(struct sched_sweep *sweep)
{
    return mono_ns(sweep) >= sweep->bus_again_ns;
}

static bool
bus_failed(struct sched_sweep *sweep, const char *what,
           const struct toc_error *err)
{
    TOC_LOG(DEBUG, "sweep.bus_silent",
            F_MSG("the bus does not tell offsets; hints wait"),
            F_STR("asked", what), F_ERR(err));
    sweep->bus_again_ns = mono_ns(sweep) + BUS_AGAIN_NS;
    return false;
}

/* What the executors have committed in the row's lane; false: not to be known
 * now, so nothing is done. */
static bool
committed_of(struct sched_sweep *sweep, uint16_t slice, int64_t *ret)
{
    enum toc_priority priority = toc_slice_priority(slice);
    int32_t partitions = sweep->opt.marks->partitions;
    int64_t *first = sweep->committed + (size_t)priority * (size_t)partitions;
    struct toc_error err = {0};
    int64_t *read_ns = &sweep->committed_ns[priority];

    if (*read_ns == 0 || mono_ns(sweep) - *read_ns > COMMITTED_NS) {
        *read_ns = 0;
        if (!bus_answers(sweep))
            return false;
        if (toc_bus_committed(sweep->opt.bus, sweep->opt.group,
                              sweep->opt.topics[priority], partitions,
                              BUS_TIMEOUT_MS, first, &err) != TOC_OK)
            return bus_failed(sweep, "committed", &err);
        *read_ns = mono_ns(sweep);
        sched_marks_set_committed(sweep->opt.marks, priority, first, *read_ns);
    }
    *ret = sweep->committed[sched_marks_lane(sweep->opt.marks, slice)];
    return true;
}

static bool
end_of(struct sched_sweep *sweep, uint16_t slice, int64_t *ret_end)
{
    struct toc_error err = {0};
    struct sched_sweep_end *end =
        &sweep->ends[sched_marks_lane(sweep->opt.marks, slice)];

    *ret_end = end->offset;
    if (end->offset >= 0)
        return true;
    if (!bus_answers(sweep))
        return false;
    end->stored = sched_marks_stored_to(sweep->opt.marks, slice);
    if (toc_bus_end_offset(
            sweep->opt.bus, sweep->opt.topics[toc_slice_priority(slice)],
            sched_marks_partition(sweep->opt.marks, toc_slice_shard(slice)),
            BUS_TIMEOUT_MS, ret_end, &err) != TOC_OK)
        return bus_failed(sweep, "end", &err);
    end->offset = *ret_end;
    end->read_ns = mono_ns(sweep);
    return true;
}

/* Was the end read before what it is compared with: our own messages since, or
 * offsets that the executors have committed since? Then it proves nothing. */
static bool
end_is_stale(struct sched_sweep *sweep, uint16_t slice)
{
    const struct sched_sweep_end *end =
        &sweep->ends[sched_marks_lane(sweep->opt.marks, slice)];

    return end->stored != sched_marks_stored_to(sweep->opt.marks, slice) ||
           end->read_ns < sweep->committed_ns[toc_slice_priority(slice)];
}

/* Was the topic made anew, so that the row's hint is gone with the old one? */
static bool
is_gone(struct sched_sweep *sweep, const struct toc_task *task,
        int64_t committed)
{
    size_t lane = sched_marks_lane(sweep->opt.marks, task->slice);
    int64_t end;

    for (int i = 0; i < 2; i++) {
        if (!end_of(sweep, task->slice, &end) ||
            !sched_marks_passed(sweep->opt.marks, task->slice, task->slot_ms,
                                committed, end))
            return false;
        if (!end_is_stale(sweep, task->slice))
            return true;
        sweep->ends[lane].offset = -1;
    }
    return false; /* it grew again meanwhile: so it is there */
}

/* Has the row lost its hint? */
static bool
is_lost(struct sched_sweep *sweep, const struct toc_task *task)
{
    int64_t committed, end;

    if (sched_marks_wants_end(sweep->opt.marks, task->slice, task->slot_ms)) {
        if (!end_of(sweep, task->slice, &end))
            return false;
        sched_marks_set_end(sweep->opt.marks, task->slice, end);
    }
    return committed_of(sweep, task->slice, &committed) &&
           (sched_marks_passed(sweep->opt.marks, task->slice, task->slot_ms,
                               committed, -1) ||
            is_gone(sweep, task, committed));
}

static void
hint_row(struct sched_sweep *sweep, const struct toc_task *task)
{
    enum sched_offer offer;

    if (!is_lost(sweep, task)) {
        sweep->undecided++;
        return;
    }
    offer = sched_memory_offer(sweep->opt.memory, task, SCHED_ROAD_NEAR);
    sweep->hinted += offer == SCHED_OFFER_TAKEN;
    sweep->full = offer == SCHED_OFFER_FULL;
}

/* Did memory take any? */
static bool
hint_lost(struct sched_sweep *sweep)
{
    size_t before = sweep->hinted;

    sweep->full = false;
    for (size_t i = 0; i < sweep->n_waiting && !sweep->full; i++)
        hint_row(sweep, &sweep->waiting[i]);
    sweep->n_waiting = 0;
    return sweep->hinted > before;
}

/* ---- a pass
 * ------------------------------------------------------------------------ */

static void
start_pass(struct sched_sweep *sweep, bool takeover)
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

static bool
any_new(struct sched_sweep *sweep)
{
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        if (is_new(sweep, i))
            return true;
    return false;
}

/* Rows due before now may have been published by somebody else. Shards whose
 * takeover is still being repeated stay in the pass. */
static void
take_over(struct sched_sweep *sweep)
{
    int64_t now_ms = wall_ms(sweep);

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
    start_pass(sweep, true);
}

static int64_t
earlier_ns(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static int64_t
idle(struct sched_sweep *sweep)
{
    int64_t now_ns = mono_ns(sweep);
    int64_t period_ns = sweep->opt.period_ms * TOC_NS_PER_MS;

    if (now_ns < sweep->next_ns)
        return earlier_ns(sweep->next_ns, sched_quarantine_wake(&sweep->held));
    sched_shards_snapshot(sweep->opt.shards, sweep->pass_gen);
    sched_quarantine_keep(&sweep->held, sweep->pass_gen);
    sweep->end_ms = wall_ms(sweep) - PAST_MS;
    start_pass(sweep, false);
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
        if (rows[i].low_ms < sweep->end_ms - OLD_LOW_MS)
            atomic_store(&sweep->opt.publisher->dirty[rows[i].shard], true);
        if (rows[i].low_ms < low_ms)
            low_ms = rows[i].low_ms;
    }
    return low_ms < 0 ? 0 : low_ms; /* parked rows lie before */
}

static int64_t
read_lows(struct sched_sweep *sweep)
{
    struct toc_error err = {0};
    struct toc_shard_row *rows;
    size_t n;

    forget_rows(sweep);
    if (toc_store_list_shards(sweep->opt.store, &sweep->arena, &rows, &n,
                              &err) != TOC_OK)
        return failed(sweep, "reading low-water marks", &err);
    sched_walk_start(&sweep->walk, earliest_low(sweep, rows, n) - 1,
                     sweep->walk.step_ms, STEP_MAX_MS, sweep->n_slices);
    sweep->phase = SCHED_SWEEP_SCAN;
    return mono_ns(sweep);
}

static int64_t
end_scan(struct sched_sweep *sweep)
{
    sweep->failing = false;
    sweep->phase = SCHED_SWEEP_STRAGGLERS;
    return mono_ns(sweep);
}

/* A backlog: the rest later. A takeover becomes a pass over all shards, so that
 * the others are not left alone for long. */
static int64_t
pause_scan(struct sched_sweep *sweep, int64_t ms)
{
    int64_t later_ns = mono_ns(sweep) + ms * TOC_NS_PER_MS;

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

    walk->step_max_ms = quarter_ms > STEP_MAX_MS ? quarter_ms : STEP_MAX_MS;
    if (walk->step_ms > walk->step_max_ms)
        walk->step_ms = walk->step_max_ms;
}

static int64_t
scan_chunk(struct sched_sweep *sweep)
{
    struct toc_error err = {0};
    struct sched_chunk chunk;
    struct sched_suspects piece = {.bucket = SCHED_BUCKET_DAYS};
    uint16_t slices[SCHED_SLICES];
    enum toc_status st;
    bool some, again;
    size_t n;

    limit_step(sweep);
    if (!sched_walk_next(&sweep->walk, sweep->end_ms, sweep->n_slices, &chunk))
        return end_scan(sweep);
    if (sweep->chunks >= CHUNKS_MAX)
        return pause_scan(sweep, sweep->opt.period_ms);
    forget_rows(sweep);
    chunk.to_ms =
        sched_quarantine_cut(&sweep->held, chunk.after_ms, chunk.to_ms);
    piece.after_ms = chunk.after_ms;
    piece.to_ms = chunk.to_ms;
    n = sched_quarantine_pass(&sweep->held, SCHED_BUCKET_DAYS, chunk.after_ms,
                              chunk.to_ms, sweep->slices + chunk.first, chunk.n,
                              slices);
    st = toc_store_scan(sweep->opt.store, slices, n, chunk.after_ms + 1,
                        chunk.to_ms + 1, look_at_row, sweep, &err);
    if (st != TOC_OK)
        return unread(sweep, "looking for unfinished tasks", st, &piece, slices,
                      n, &err);
    some = hint_lost(sweep);
    if (sweep->rows >= SCHED_CHUNK_ROWS_FEW && !some)
        sweep->chunks++;
    again = sweep->full && some; /* the publisher makes room */
    if (!again && (sweep->rows <= SCHED_CHUNK_ROWS ||
                   !sched_walk_shrink(&sweep->walk, &chunk)))
        sched_walk_done(&sweep->walk, &chunk, sweep->n_slices, sweep->rows);
    sweep->after_free = SCHED_SWEEP_SCAN;
    if (sweep->n_expired > 0)
        sweep->phase = SCHED_SWEEP_FREE;
    else if (again)
        return pause_scan(sweep, FULL_MS);
    return mono_ns(sweep);
}

static int64_t
free_locks(struct sched_sweep *sweep)
{
    struct toc_error err = {0};
    size_t freed = 0;

    if (may_write(sweep) &&
        toc_store_free_expired(sweep->opt.store, sweep->expired,
                               sweep->n_expired, wall_ms(sweep), &freed,
                               &err) != TOC_OK)
        return failed(sweep, "freeing expired locks", &err);
    if (freed > 0)
        TOC_LOG(WARN, "sweep.freed",
                F_MSG("locks had expired: their executors died or were slow"),
                F_UINT("tasks", freed));
    sweep->freed += freed;
    sweep->n_expired = 0;
    sweep->phase = sweep->after_free;
    return mono_ns(sweep);
}

/* ---- stragglers and the mark
 * -------------------------------------------------- */

static void
look_at_straggler(void *arg, const struct toc_task *task)
{
    struct sched_sweep *sweep = arg;

    look_at_row(arg, task);
    sweep->old[toc_slice_shard(task->slice)] = true;
}

static int64_t
scan_stragglers(struct sched_sweep *sweep)
{
    struct toc_error err = {0};
    int64_t now_ns = mono_ns(sweep);
    struct sched_suspects piece = {.bucket = SCHED_BUCKET_STRAGGLERS};
    uint16_t slices[SCHED_SLICES];
    enum toc_status st;
    size_t n;

    sweep->phase = SCHED_SWEEP_RECORD;
    sweep->record_at = 0;
    sweep->rechecked = 0;
    if (!sweep->stragglers && now_ns < sweep->stragglers_ns)
        return now_ns;
    forget_rows(sweep);
    n = sched_quarantine_pass(&sweep->held, SCHED_BUCKET_STRAGGLERS, 0, 0,
                              sweep->slices, sweep->n_slices, slices);
    st = toc_store_scan_stragglers(sweep->opt.store, slices, n,
                                   look_at_straggler, sweep, &err);
    if (st == TOC_DATA_LOSS)
        sweep->phase = SCHED_SWEEP_STRAGGLERS;
    if (st != TOC_OK)
        return unread(sweep, "looking at stragglers", st, &piece, slices, n,
                      &err);
    sweep->stragglers = sweep->rows > 0;
    sweep->stragglers_ns = now_ns + MINUTE_NS;
    (void)hint_lost(sweep);
    sweep->after_free = SCHED_SWEEP_RECORD;
    if (sweep->n_expired > 0)
        sweep->phase = SCHED_SWEEP_FREE;
    return mono_ns(sweep);
}

/* Recorded ones that have ended are forgotten by the same operation, so a shard
 * has its turn until none is left, a few shards at a time. */
static bool
wants_record(struct sched_sweep *sweep, uint16_t shard)
{
    if (sweep->pass_gen[shard] == 0 ||
        sched_quarantine_holds(&sweep->held, shard))
        return false;
    return sweep->old[shard] ||
           (sweep->recorded[shard] && sweep->rechecked++ < RECHECK_MAX);
}

static int64_t
record_stragglers(struct sched_sweep *sweep)
{
    struct toc_error err = {0};
    uint16_t shard = sweep->record_at;
    int64_t now_ns = mono_ns(sweep);
    size_t waiting = 0;
    enum toc_status st;

    if (!may_write(sweep) || (shard == 0 && now_ns < sweep->record_ns))
        shard = TOC_SHARDS; /* not each time: a statement per shard */
    while (shard < TOC_SHARDS && !wants_record(sweep, shard))
        shard++;
    sweep->record_at = (uint16_t)(shard + 1);
    if (shard == TOC_SHARDS) {
        sweep->phase = SCHED_SWEEP_ADVANCE;
        return now_ns;
    }
    st = toc_store_record_stragglers(sweep->opt.store, shard,
                                     wall_ms(sweep) - STRAGGLER_MS,
                                     STRAGGLERS_MAX, &waiting, &err);
    if (st == TOC_DATA_LOSS &&
        sched_quarantine_hold(&sweep->held, shard, SCHED_BUCKET_RECORD, 0, 0,
                              &err, now_ns))
        return now_ns;
    if (st != TOC_OK)
        return failed(sweep, "recording stragglers", &err);
    sweep->recorded[shard] = waiting > 0;
    if (waiting > 0)
        sweep->stragglers = true;
    sweep->record_ns = now_ns + MINUTE_NS / 4;
    return now_ns;
}

static void
end_pass(struct sched_sweep *sweep)
{
    int64_t now_ns = mono_ns(sweep);

    if (sweep->hinted > 0)
        TOC_LOG(INFO, "sweep.hinted",
                F_MSG(sweep->takeover ? "hinted what was due at the takeover"
                                      : "hinted again what had lost its hint"),
                F_UINT("tasks", sweep->hinted));
    sweep->phase = SCHED_SWEEP_IDLE;
    if (sweep->freed > 0)
        sweep->next_ns = now_ns + FREED_AGAIN_MS * TOC_NS_PER_MS;
    if (sweep->takeover && sweep->undecided > 0 &&
        sweep->retries++ < TAKEOVER_RETRIES) {
        start_pass(sweep, true);
        sweep->next_ns = now_ns + TAKEOVER_RETRY_MS * TOC_NS_PER_MS;
    } else {
        sweep->takeover = false;
    }
}

/* The mark of a shard that is held in part stays: rows may lie above it. */
static size_t
risen_shards(struct sched_sweep *sweep, uint16_t shards[TOC_SHARDS])
{
    size_t n = 0;

    for (uint16_t i = 0; i < TOC_SHARDS && !sweep->takeover && may_write(sweep);
         i++)
        if (sweep->pass_gen[i] != 0 &&
            !sched_quarantine_holds(&sweep->held, i) &&
            atomic_exchange(&sweep->opt.publisher->dirty[i], false))
            shards[n++] = i;
    return n;
}

static int64_t
advance_low(struct sched_sweep *sweep)
{
    struct toc_error err = {0};
    struct sched_suspects piece = {.bucket = SCHED_BUCKET_MARK};
    uint16_t shards[TOC_SHARDS], slices[TOC_SHARDS];
    size_t n = risen_shards(sweep, shards);
    enum toc_status st = toc_store_advance_low(sweep->opt.store, shards, n,
                                               wall_ms(sweep), BEHIND_MS, &err);

    if (st == TOC_OK) {
        end_pass(sweep);
        return sweep->next_ns;
    }
    for (size_t i = 0; i < n; i++) {
        atomic_store(&sweep->opt.publisher->dirty[shards[i]], true);
        slices[i] = toc_slice_of(shards[i], TOC_PRIORITY_CORE);
    }
    return unread(sweep, "raising low-water marks", st, &piece, slices, n,
                  &err);
}

/* ---- what cannot be read --------------------------------------------------
 */

/* It is read for whether it can be read: what it holds is the pass's. */
static void
pass_over(void *arg, const struct toc_task *task)
{
    (void)arg;
    (void)task;
}

/* One store call. */
static enum toc_status
read_alone(struct sched_sweep *sweep, const struct sched_suspects *at,
           const uint16_t *shards, const uint16_t *slices, size_t n,
           struct toc_error *err)
{
    struct toc_store *store = sweep->opt.store;
    size_t waiting;

    switch (at->bucket) {
    case SCHED_BUCKET_STRAGGLERS:
        return toc_store_scan_stragglers(store, slices, n, pass_over, NULL,
                                         err);
    case SCHED_BUCKET_MARK:
        return toc_store_advance_low(store, shards, n / TOC_PRIORITIES,
                                     wall_ms(sweep), BEHIND_MS, err);
    case SCHED_BUCKET_RECORD: /* one shard: it was alone when it failed */
        return toc_store_record_stragglers(store, shards[0],
                                           wall_ms(sweep) - STRAGGLER_MS,
                                           STRAGGLERS_MAX, &waiting, err);
    default:
        return toc_store_scan(store, slices, n, at->after_ms + 1, at->to_ms + 1,
                              pass_over, NULL, err);
    }
}

static int64_t
search(struct sched_sweep *sweep, const struct sched_suspects *at)
{
    struct sched_quarantine *held = &sweep->held;
    struct toc_error err = {0};
    enum toc_status st = read_alone(sweep, at, held->shards + at->first,
                                    held->slices, held->n_slices, &err);

    sched_quarantine_tell(held, st, &err, mono_ns(sweep));
    if (st != TOC_OK && st != TOC_DATA_LOSS)
        return failed(sweep, "looking for what cannot be read", &err);
    if (sched_quarantine_in_vain(held)) /* the whole failed, no part does */
        return failed(sweep, "looking for what cannot be read", &held->err);
    return mono_ns(sweep);
}

static int64_t
try_held(struct sched_sweep *sweep, struct sched_held *held)
{
    struct sched_suspects at = {held->bucket, held->after_ms, held->to_ms, 0,
                                1};
    uint16_t shard = held->shard, slices[TOC_PRIORITIES];
    size_t n = sched_quarantine_slices(shard, slices);
    struct toc_error err = {0};
    bool read = (held->bucket >= 0 || may_write(sweep)) &&
                read_alone(sweep, &at, &shard, slices, n, &err) == TOC_OK;

    sched_quarantine_tried(&sweep->held, held, read, mono_ns(sweep));
    if (read)
        atomic_store(&sweep->opt.publisher->dirty[shard], true);
    return mono_ns(sweep);
}

int64_t
sched_sweep_step(struct sched_sweep *sweep)
{
    int64_t now_ns = mono_ns(sweep);
    struct sched_suspects suspects;
    struct sched_held *held;

    if (!sched_shards_live(sweep->opt.shards)) {
        sweep->phase = SCHED_SWEEP_IDLE;
        return now_ns + COMMITTED_NS;
    }
    /* A takeover does not wait for a pass over a backlog to end. */
    if (any_new(sweep))
        take_over(sweep);
    if (sched_quarantine_next(&sweep->held, &suspects))
        return search(sweep, &suspects);
    if (sched_quarantine_due(&sweep->held, now_ns, &held))
        return try_held(sweep, held);
    switch (sweep->phase) {
    case SCHED_SWEEP_IDLE:
        return idle(sweep);
    case SCHED_SWEEP_LOWS:
        return sweep->next_ns > now_ns && sweep->takeover && sweep->retries > 0
                   ? sweep->next_ns
                   : read_lows(sweep);
    case SCHED_SWEEP_SCAN:
        return scan_chunk(sweep);
    case SCHED_SWEEP_FREE:
        return free_locks(sweep);
    case SCHED_SWEEP_STRAGGLERS:
        return scan_stragglers(sweep);
    case SCHED_SWEEP_RECORD:
        return record_stragglers(sweep);
    case SCHED_SWEEP_ADVANCE:
        return advance_low(sweep);
    }
    TOC_ASSERT(sweep->phase <= SCHED_SWEEP_ADVANCE); /* an unknown phase */
    return now_ns;
}
