#include "scheduler/loader.h"

#include "common/base/assert.h"
#include "common/base/log.h"

#include <string.h>

#define BAND_MS 1200
#define AHEAD_MS TOC_LOOK_AHEAD_MS
#define NEAR_MS 500
#define STEP_MAX_MS 12000
#define PERIOD_NS (INT64_C(1000) * TOC_NS_PER_MS)
#define FULL_NS (INT64_C(50) * TOC_NS_PER_MS)
#define FAILED_NS (INT64_C(250) * TOC_NS_PER_MS)
#define FAR_NS (INT64_C(60000) * TOC_NS_PER_MS)
#define FAR_AT_ONCE 500

/* What one reading brought. */
struct reading {
    struct sched_loader *loader;
    enum sched_road road;
    size_t rows;
    bool full;
};

void
sched_loader_init(struct sched_loader *loader,
                  const struct sched_loader_options *opt)
{
    memset(loader, 0, sizeof *loader);
    loader->opt = *opt;
    atomic_init(&loader->cursor_ms, INT64_MIN);
    sched_quarantine_init(&loader->held, "loader");
    sched_bad_rows_init(&loader->bad_rows, opt->clk, opt->store);
}

int64_t
sched_loader_cursor(struct sched_loader *loader)
{
    return atomic_load(&loader->cursor_ms);
}

static void
take_row(void *arg, const struct toc_task *task)
{
    struct reading *reading = arg;

    reading->rows++;
    if (sched_memory_offer(reading->loader->opt.memory, task, reading->road) ==
        SCHED_OFFER_FULL)
        reading->full = true;
}

/* The part of the statement that failed is to be looked for. */
static bool
suspect(struct sched_loader *loader, const uint16_t *slices, size_t n,
        const struct toc_slot_span *spans, size_t n_spans,
        const struct toc_error *err)
{
    bool room = true;

    for (size_t i = 0; i < n_spans; i++)
        room = sched_quarantine_suspect(&loader->held, SCHED_BUCKET_DAYS,
                                        spans[i].after_ms, spans[i].to_ms,
                                        slices, n, err) &&
               room;
    return room;
}

static void
say_answer(struct sched_loader *loader, enum toc_status st,
           const struct toc_error *err)
{
    if (st == TOC_OK) {
        if (loader->failing)
            TOC_LOG(INFO, "loader.recovered", F_MSG("the store answers again"));
        loader->failing = false;
        loader->loaded_ok_ns = toc_clock_mono(loader->opt.clk).ns;
    } else if (!loader->failing) {
        loader->failing = true;
        TOC_LOG(WARN, "loader.failed",
                F_MSG("cannot read what is due next, trying again in 250 ms"),
                F_ERR(err));
    }
}

/* Without what is held. TOC_CONFLICT: to be read again when the search for what
 * cannot be read has ended. */
static enum toc_status
read_rows(struct sched_loader *loader, const uint16_t *slices, size_t n,
          const struct toc_slot_span *spans, size_t n_spans,
          struct reading *reading)
{
    uint16_t passed[SCHED_SLICES];
    struct toc_error err = {0};
    enum toc_status st;

    if (loader->held.n > 0) {
        n = sched_quarantine_pass(&loader->held, SCHED_BUCKET_DAYS,
                                  spans[0].after_ms, spans[n_spans - 1].to_ms,
                                  slices, n, passed);
        slices = passed;
    }
    st = toc_store_load(loader->opt.store, slices, n, spans, n_spans, take_row,
                        reading, &err);
    if (st == TOC_DATA_LOSS && suspect(loader, slices, n, spans, n_spans, &err))
        return TOC_CONFLICT;
    say_answer(loader, st, &err);
    return st;
}

static int64_t
after_failure(enum toc_status st, int64_t now_ns)
{
    return st == TOC_CONFLICT ? now_ns : now_ns + FAILED_NS;
}

/* ---- which shards ----------------------------------------------------------
 */

/* Takes over what changed; true when there are slices to be read. */
static void
look_at_shards(struct sched_loader *loader)
{
    uint32_t gen[TOC_SHARDS];

    sched_shards_snapshot(loader->opt.shards, gen);
    if (memcmp(gen, loader->gen, sizeof gen) == 0)
        return;
    memcpy(loader->gen, gen, sizeof gen);
    sched_quarantine_keep(&loader->held, gen);
    for (size_t i = 0; i < TOC_SHARDS; i++) {
        if (loader->known[i] != gen[i])
            loader->known[i] = 0;
        if (loader->new_gen[i] != gen[i])
            loader->new_gen[i] = 0;
    }
    loader->n_slices = sched_shards_slices(loader->known, loader->slices);
    loader->n_new = sched_shards_slices(loader->new_gen, loader->new_slices);
    sched_walk_restart(&loader->fresh, loader->n_slices);
    sched_walk_restart(&loader->new_walk, loader->n_new);
    sched_walk_restart(&loader->band, loader->n_slices);
}

static bool
start_new(struct sched_loader *loader, int64_t now_ms)
{
    if (loader->n_new > 0)
        return true;
    for (size_t i = 0; i < TOC_SHARDS; i++)
        loader->new_gen[i] =
            loader->gen[i] != loader->known[i] ? loader->gen[i] : 0;
    loader->n_new = sched_shards_slices(loader->new_gen, loader->new_slices);
    if (loader->n_new == 0)
        return false;
    loader->new_from_ms = now_ms - BAND_MS;
    loader->new_end_ms = now_ms + AHEAD_MS;
    sched_walk_start(&loader->new_walk, loader->new_from_ms, BAND_MS + NEAR_MS,
                     STEP_MAX_MS, loader->n_new);
    return true;
}

static void
set_cursor(struct sched_loader *loader, int64_t at_ms)
{
    loader->fresh.pos_ms = at_ms;
    atomic_store(&loader->cursor_ms, at_ms);
}

/* The new shards are known up to new_end: with the cursor behind it nothing is
 * missed, with the cursor beyond it the cursor comes back. */
static void
finish_new(struct sched_loader *loader)
{
    for (size_t i = 0; i < TOC_SHARDS; i++) {
        if (loader->new_gen[i] != 0)
            loader->known[i] = loader->new_gen[i];
        loader->new_gen[i] = 0;
    }
    loader->n_new = 0;
    if (!loader->fresh_set || loader->n_slices == 0) {
        sched_walk_start(&loader->fresh, loader->new_end_ms, 2000, STEP_MAX_MS,
                         0);
        set_cursor(loader, loader->new_end_ms);
        loader->fresh_set = true;
    } else if (loader->fresh.pos_ms > loader->new_end_ms) {
        set_cursor(loader, loader->new_end_ms);
    }
    loader->n_slices = sched_shards_slices(loader->known, loader->slices);
    sched_walk_restart(&loader->fresh, loader->n_slices);
    sched_walk_restart(&loader->band, loader->n_slices);
}

/* ---- readings
 * ----------------------------------------------------------------- */

static int64_t
say_full(struct sched_loader *loader, int64_t now_ns)
{
    if (!loader->full)
        TOC_LOG(WARN, "loader.full",
                F_MSG("memory is full of hints; what comes later waits in the "
                      "store"),
                F_UINT("hints", sched_memory_len(loader->opt.memory)));
    loader->full = true;
    return now_ns + FULL_NS;
}

static int64_t
read_new(struct sched_loader *loader, int64_t now_ns)
{
    struct reading reading = {.loader = loader};
    struct toc_slot_span span;
    struct sched_chunk chunk;
    enum toc_status st;

    if (!sched_walk_next(&loader->new_walk, loader->new_end_ms, loader->n_new,
                         &chunk)) {
        finish_new(loader);
        return now_ns;
    }
    /* The nearest ones may take the last room. */
    reading.road = chunk.after_ms == loader->new_from_ms ? SCHED_ROAD_NEAR
                                                         : SCHED_ROAD_FRESH;
    chunk.to_ms =
        sched_quarantine_cut(&loader->held, chunk.after_ms, chunk.to_ms);
    span = (struct toc_slot_span){chunk.after_ms, chunk.to_ms};
    st = read_rows(loader, loader->new_slices + chunk.first, chunk.n, &span, 1,
                   &reading);
    if (st != TOC_OK)
        return after_failure(st, now_ns);
    if (reading.full) { /* the rest is the fresh part's, with all others */
        loader->new_end_ms = loader->new_walk.pos_ms;
        finish_new(loader);
        return say_full(loader, now_ns);
    }
    sched_walk_done(&loader->new_walk, &chunk, loader->n_new, reading.rows);
    return now_ns;
}

static struct toc_slot_span
band_span(int64_t now_ms)
{
    return (struct toc_slot_span){now_ms - BAND_MS, now_ms + BAND_MS};
}

/* A band that holds very much is read by turns, some slices a second. */
static int64_t
read_band(struct sched_loader *loader, int64_t now_ns, int64_t now_ms)
{
    struct reading reading = {.loader = loader, .road = SCHED_ROAD_NEAR};
    struct toc_slot_span span = band_span(now_ms);
    struct sched_walk *band = &loader->band;
    size_t n = loader->n_slices - band->at;
    enum toc_status st;

    if (n > band->group)
        n = band->group;
    loader->band_ns = now_ns + PERIOD_NS;
    st = read_rows(loader, loader->slices + band->at, n, &span, 1, &reading);
    if (st == TOC_CONFLICT)
        loader->band_ns = now_ns;
    if (st != TOC_OK)
        return after_failure(st, now_ns);
    band->at = band->at + n >= loader->n_slices ? 0 : band->at + n;
    if (reading.rows > 2 * SCHED_CHUNK_ROWS && n > 1)
        band->group = n / 2;
    else if (reading.rows < SCHED_CHUNK_ROWS && band->group < loader->n_slices)
        band->group *= 2;
    return now_ns;
}

static int64_t
read_fresh(struct sched_loader *loader, int64_t now_ns,
           const struct sched_chunk *chunk)
{
    struct reading reading = {.loader = loader, .road = SCHED_ROAD_FRESH};
    struct toc_slot_span span = {chunk->after_ms, chunk->to_ms};
    enum toc_status st = read_rows(loader, loader->slices + chunk->first,
                                   chunk->n, &span, 1, &reading);

    if (st != TOC_OK)
        return after_failure(st, now_ns);
    if (reading.full) {
        (void)sched_walk_shrink(&loader->fresh, chunk);
        return say_full(loader, now_ns);
    }
    sched_walk_done(&loader->fresh, chunk, loader->n_slices, reading.rows);
    set_cursor(loader, loader->fresh.pos_ms);
    return now_ns;
}

/* The usual second: band and fresh in one statement. */
static int64_t
read_both(struct sched_loader *loader, int64_t now_ns, int64_t now_ms,
          const struct sched_chunk *chunk)
{
    struct reading reading = {.loader = loader, .road = SCHED_ROAD_FRESH};
    const struct toc_slot_span spans[] = {band_span(now_ms),
                                          {chunk->after_ms, chunk->to_ms}};
    enum toc_status st =
        read_rows(loader, loader->slices, loader->n_slices, spans, 2, &reading);

    if (st != TOC_OK)
        return after_failure(st, now_ns);
    if (reading.full) {
        (void)sched_walk_shrink(&loader->fresh, chunk);
        return say_full(loader, now_ns);
    }
    loader->band_ns = now_ns + PERIOD_NS;
    sched_walk_done(&loader->fresh, chunk, loader->n_slices, reading.rows);
    set_cursor(loader, loader->fresh.pos_ms);
    loader->full = false;
    return now_ns;
}

static int64_t
move_far(struct sched_loader *loader, int64_t now_ns, int64_t now_ms)
{
    uint16_t slices[SCHED_SLICES];
    struct toc_error err = {0};
    size_t moved = 0;
    size_t n = sched_quarantine_pass(&loader->held, SCHED_BUCKET_FAR, 0, 0,
                                     loader->slices, loader->n_slices, slices);
    enum toc_status st = toc_store_move_far(loader->opt.store, slices, n,
                                            now_ms, FAR_AT_ONCE, &moved, &err);

    if (st == TOC_DATA_LOSS &&
        sched_quarantine_suspect(&loader->held, SCHED_BUCKET_FAR, 0, 0, slices,
                                 n, &err))
        return now_ns;
    if (st != TOC_OK)
        TOC_LOG(WARN, "loader.far_failed",
                F_MSG("cannot move far tasks into their day, trying again in "
                      "a minute"),
                F_ERR(&err));
    loader->far_ns =
        st == TOC_OK && moved == FAR_AT_ONCE ? now_ns : now_ns + FAR_NS;
    return now_ns;
}

/* ---- what cannot be read --------------------------------------------------
 */

/* One store call: the rows of a piece, or its far rows. */
static enum toc_status
read_alone(struct sched_loader *loader, int64_t bucket,
           struct toc_slot_span span, const uint16_t *slices, size_t n,
           struct toc_error *err)
{
    struct reading reading = {.loader = loader, .road = SCHED_ROAD_FRESH};
    size_t moved = 0;

    if (bucket == SCHED_BUCKET_FAR)
        return toc_store_move_far(loader->opt.store, slices, n,
                                  toc_clock_wall(loader->opt.clk).ms,
                                  FAR_AT_ONCE, &moved, err);
    return toc_store_load(loader->opt.store, slices, n, &span, 1, take_row,
                          &reading, err);
}

static int64_t
search(struct sched_loader *loader, const struct sched_suspects *at,
       int64_t now_ns)
{
    struct sched_quarantine *held = &loader->held;
    struct toc_error err = {0};
    enum toc_status st = read_alone(
        loader, at->bucket, (struct toc_slot_span){at->after_ms, at->to_ms},
        held->slices, held->n_slices, &err);

    sched_quarantine_tell(held, st, &err, now_ns);
    if (st != TOC_OK && st != TOC_DATA_LOSS)
        say_answer(loader, st, &err);
    else if (!sched_quarantine_in_vain(held))
        return now_ns;
    if (at->bucket == SCHED_BUCKET_FAR)
        loader->far_ns = now_ns + FAR_NS;
    return now_ns + FAILED_NS;
}

/* What can be read again is read once more, as a shard that is newly ours:
 * memory may have been full just now. What was due meanwhile is the sweep's. */
static int64_t
try_held(struct sched_loader *loader, struct sched_held *held, int64_t now_ns,
         int64_t now_ms)
{
    struct toc_slot_span span = {now_ms - BAND_MS, now_ms + AHEAD_MS};
    int64_t day_ms = held->bucket * TOC_MS_PER_DAY;
    uint16_t shard = held->shard, slices[TOC_PRIORITIES];
    struct toc_error err = {0};
    enum toc_status st;

    if (held->bucket >= 0 && span.after_ms < day_ms - 1)
        span.after_ms = day_ms - 1;
    if (held->bucket >= 0 && span.to_ms >= day_ms + TOC_MS_PER_DAY)
        span.to_ms = day_ms + TOC_MS_PER_DAY - 1;
    st = read_alone(loader, held->bucket, span, slices,
                    sched_quarantine_slices(shard, slices), &err);
    if (st == TOC_OK && held->bucket >= 0)
        loader->known[shard] = 0;
    sched_quarantine_tried(&loader->held, held, st == TOC_OK, now_ns);
    return now_ns;
}

/* One thing, the most urgent first. */
static int64_t
read_known(struct sched_loader *loader, int64_t now_ns, int64_t now_ms)
{
    struct sched_chunk chunk;
    struct sched_held *held;
    bool band = now_ns >= loader->band_ns;
    bool fresh;

    if (loader->fresh.pos_ms > now_ms + AHEAD_MS + TOC_MS_PER_SEC) {
        set_cursor(loader, now_ms); /* the clock was set back */
        sched_walk_restart(&loader->fresh, loader->n_slices);
    }
    fresh = sched_walk_next(&loader->fresh, now_ms + AHEAD_MS, loader->n_slices,
                            &chunk);
    if (fresh)
        chunk.to_ms =
            sched_quarantine_cut(&loader->held, chunk.after_ms, chunk.to_ms);
    if (band && fresh && chunk.n == loader->n_slices &&
        chunk.to_ms == now_ms + AHEAD_MS &&
        loader->band.group >= loader->n_slices &&
        sched_quarantine_cut(&loader->held, now_ms - BAND_MS, chunk.to_ms) ==
            chunk.to_ms)
        return read_both(loader, now_ns, now_ms, &chunk);
    if (band)
        return read_band(loader, now_ns, now_ms);
    /* A little at a time would be a statement each: only what lags behind. */
    if (fresh && loader->fresh.pos_ms < now_ms + AHEAD_MS - TOC_MS_PER_SEC)
        return read_fresh(loader, now_ns, &chunk);
    if (sched_quarantine_due(&loader->held, now_ns, &held))
        return try_held(loader, held, now_ns, now_ms);
    if (now_ns >= loader->far_ns)
        return move_far(loader, now_ns, now_ms);
    return loader->band_ns;
}

int64_t
sched_loader_step(struct sched_loader *loader)
{
    int64_t now_ns = toc_clock_mono(loader->opt.clk).ns;
    int64_t now_ms = toc_clock_wall(loader->opt.clk).ms;
    struct sched_suspects suspects;

    look_at_shards(loader);
    if (!sched_shards_live(loader->opt.shards))
        return now_ns + PERIOD_NS;
    sched_quarantine_forget_before(&loader->held,
                                   sched_quarantine_day(now_ms - BAND_MS));
    if (sched_quarantine_next(&loader->held, &suspects))
        return search(loader, &suspects, now_ns);
    if (start_new(loader, now_ms))
        return read_new(loader, now_ns);
    if (loader->n_slices == 0)
        return now_ns + PERIOD_NS;
    return read_known(loader, now_ns, now_ms);
}
