#include "scheduler/quarantine.h"

#include "common/base/assert.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"

#include <string.h>

#define WAIT_MS 1000
#define WAIT_MAX_MS 60000

void
sched_quarantine_init(struct sched_quarantine *q, const char *reader)
{
    memset(q, 0, sizeof *q);
    q->reader = reader;
    for (size_t i = 0; i < TOC_SHARDS; i++)
        atomic_init(&q->holds[i], false);
}

/* ---- what is said ---------------------------------------------------------
 */

static const char *
bucket_text(int64_t bucket, char text[TOC_TIME_TEXT_MAX])
{
    switch (bucket) {
    case SCHED_BUCKET_FAR:
        return "far";
    case SCHED_BUCKET_STRAGGLERS:
        return "stragglers";
    case SCHED_BUCKET_RECORD:
        return "unrecorded";
    case SCHED_BUCKET_MARK:
        return "mark";
    default:
        toc_time_format(text, bucket * TOC_MS_PER_DAY);
        text[sizeof "2026-12-01" - 1] = '\0';
        return text;
    }
}

/* 3,7-9 */
static void
shards_text(const bool in[TOC_SHARDS], struct toc_buf *out)
{
    for (size_t i = 0; i < TOC_SHARDS; i++) {
        size_t last = i;
        if (!in[i])
            continue;
        while (last + 1 < TOC_SHARDS && in[last + 1])
            last++;
        toc_buf_printf(out, "%s%zu", out->len > 0 ? "," : "", i);
        if (last > i)
            toc_buf_printf(out, "-%zu", last);
        i = last;
    }
}

static void
say_held_in(struct sched_quarantine *q, int64_t bucket)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};
    char day[TOC_TIME_TEXT_MAX];
    bool in[TOC_SHARDS] = {false};

    for (size_t i = 0; i < q->n; i++)
        if (!q->held[i].said && q->held[i].bucket == bucket)
            q->held[i].said = in[q->held[i].shard] = true;
    shards_text(in, &text);
    TOC_LOG(ERROR, "shard.quarantined",
            F_MSG("cannot be read, is left out and tried again"),
            F_STR("reader", q->reader), F_SPAN("shards", toc_buf_view(&text)),
            F_STR("bucket", bucket_text(bucket, day)), F_ERR(&q->err),
            F_STR("hint", "its tasks wait until the table can be read: look "
                          "at the database's log, restore the pages or the "
                          "partition"));
}

static void
say_held(struct sched_quarantine *q)
{
    for (size_t i = 0; i < q->n; i++)
        if (!q->held[i].said)
            say_held_in(q, q->held[i].bucket);
}

static void
say_released(struct sched_quarantine *q)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};
    char day[TOC_TIME_TEXT_MAX];

    if (!q->any_released)
        return;
    shards_text(q->released, &text);
    TOC_LOG(INFO, "shard.released", F_MSG("can be read again"),
            F_STR("reader", q->reader), F_SPAN("shards", toc_buf_view(&text)),
            F_STR("bucket", bucket_text(q->released_bucket, day)));
    memset(q->released, 0, sizeof q->released);
    q->any_released = false;
}

/* ---- leaving out ----------------------------------------------------------
 */

int64_t
sched_quarantine_day(int64_t slot_ms)
{
    return slot_ms < 0 ? 0 : slot_ms / TOC_MS_PER_DAY;
}

static int64_t
first_day(int64_t after_ms)
{
    return sched_quarantine_day(after_ms + 1);
}

int64_t
sched_quarantine_cut(const struct sched_quarantine *q, int64_t after_ms,
                     int64_t to_ms)
{
    int64_t end_ms = (first_day(after_ms) + 1) * TOC_MS_PER_DAY - 1;

    return q->n > 0 && end_ms < to_ms ? end_ms : to_ms;
}

size_t
sched_quarantine_pass(const struct sched_quarantine *q, int64_t bucket,
                      int64_t after_ms, int64_t to_ms, const uint16_t *slices,
                      size_t n, uint16_t ret_slices[SCHED_SLICES])
{
    bool out[TOC_SHARDS] = {false};
    int64_t from = bucket, to = bucket;
    size_t passed = 0;

    if (bucket == SCHED_BUCKET_DAYS) {
        from = first_day(after_ms);
        to = sched_quarantine_day(to_ms);
    }
    for (size_t i = 0; i < q->n; i++)
        if (q->held[i].bucket >= from && q->held[i].bucket <= to)
            out[q->held[i].shard] = true;
    for (size_t i = 0; i < n; i++)
        if (!out[toc_slice_shard(slices[i])])
            ret_slices[passed++] = slices[i];
    return passed;
}

bool
sched_quarantine_holds(const struct sched_quarantine *q, uint16_t shard)
{
    return atomic_load(&q->holds[shard]);
}

size_t
sched_quarantine_shards(const struct sched_quarantine *q)
{
    size_t n = 0;

    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        n += sched_quarantine_holds(q, i);
    return n;
}

/* ---- the table ------------------------------------------------------------
 */

static bool
add(struct sched_quarantine *q, uint16_t shard, int64_t bucket,
    int64_t after_ms, int64_t to_ms, int64_t now_ns)
{
    for (size_t i = 0; i < q->n; i++)
        if (q->held[i].shard == shard && q->held[i].bucket == bucket)
            return true; /* a second piece of the same day */
    if (q->n == SCHED_HELD_MAX)
        return false;
    q->held[q->n++] =
        (struct sched_held){.shard = shard,
                            .bucket = bucket,
                            .after_ms = after_ms,
                            .to_ms = to_ms,
                            .again_ns = now_ns + WAIT_MS * TOC_NS_PER_MS,
                            .wait_ms = WAIT_MS};
    atomic_store(&q->holds[shard], true);
    return true;
}

static void
drop(struct sched_quarantine *q, struct sched_held *held)
{
    uint16_t shard = held->shard;
    bool more = false;

    *held = q->held[--q->n];
    for (size_t i = 0; i < q->n && !more; i++)
        more = q->held[i].shard == shard;
    atomic_store(&q->holds[shard], more);
}

bool
sched_quarantine_hold(struct sched_quarantine *q, uint16_t shard,
                      int64_t bucket, int64_t after_ms, int64_t to_ms,
                      const struct toc_error *err, int64_t now_ns)
{
    q->err = *err;
    if (!add(q, shard, bucket, after_ms, to_ms, now_ns))
        return false;
    say_held(q);
    return true;
}

void
sched_quarantine_keep(struct sched_quarantine *q,
                      const uint32_t gen[TOC_SHARDS])
{
    for (size_t i = q->n; i-- > 0;)
        if (gen[q->held[i].shard] == 0)
            drop(q, &q->held[i]);
}

void
sched_quarantine_forget_before(struct sched_quarantine *q, int64_t day)
{
    for (size_t i = q->n; i-- > 0;)
        if (q->held[i].bucket >= 0 && q->held[i].bucket < day)
            drop(q, &q->held[i]);
}

/* ---- searching ------------------------------------------------------------
 */

static void
push(struct sched_quarantine *q, struct sched_suspects suspects)
{
    TOC_ASSERT(q->n_suspects < SCHED_SUSPECTS_MAX);
    q->suspects[q->n_suspects++] = suspects;
}

bool
sched_quarantine_suspect(struct sched_quarantine *q, int64_t bucket,
                         int64_t after_ms, int64_t to_ms,
                         const uint16_t *slices, size_t n,
                         const struct toc_error *err)
{
    bool in[TOC_SHARDS] = {false};

    if (q->n == SCHED_HELD_MAX || n == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        in[toc_slice_shard(slices[i])] = true;
    if (q->n_suspects == 0) {
        q->n_shards = q->found = 0;
        for (uint16_t i = 0; i < TOC_SHARDS; i++)
            if (in[i])
                q->shards[q->n_shards++] = i;
    }
    q->err = *err;
    push(q, (struct sched_suspects){.bucket = bucket,
                                    .after_ms = after_ms,
                                    .to_ms = to_ms,
                                    .n = (uint16_t)q->n_shards});
    return true;
}

size_t
sched_quarantine_slices(uint16_t shard, uint16_t ret_slices[TOC_PRIORITIES])
{
    for (int i = 0; i < TOC_PRIORITIES; i++)
        ret_slices[i] = toc_slice_of(shard, (enum toc_priority)i);
    return TOC_PRIORITIES;
}

bool
sched_quarantine_next(struct sched_quarantine *q,
                      struct sched_suspects *ret_suspects)
{
    if (q->n_suspects == 0)
        return false;
    *ret_suspects = q->suspects[q->n_suspects - 1];
    q->n_slices = 0;
    for (size_t i = 0; i < ret_suspects->n; i++)
        q->n_slices += sched_quarantine_slices(
            q->shards[ret_suspects->first + i], q->slices + q->n_slices);
    return true;
}

/* Into two: at midnight while it lies in several days, then its shards. False:
 * it is one shard in one day. */
static bool
halve(struct sched_quarantine *q, struct sched_suspects at)
{
    struct sched_suspects a = at, b = at;
    int64_t from = first_day(at.after_ms), to = sched_quarantine_day(at.to_ms);

    if (at.bucket == SCHED_BUCKET_DAYS && from < to) {
        a.to_ms = (from + (to - from) / 2 + 1) * TOC_MS_PER_DAY - 1;
        b.after_ms = a.to_ms;
    } else if (at.n > 1) {
        a.n = at.n / 2;
        b.first = (uint16_t)(at.first + a.n);
        b.n = (uint16_t)(at.n - a.n);
    } else {
        return false;
    }
    push(q, b);
    push(q, a);
    return true;
}

void
sched_quarantine_tell(struct sched_quarantine *q, enum toc_status st,
                      const struct toc_error *err, int64_t now_ns)
{
    struct sched_suspects at;

    TOC_ASSERT(q->n_suspects > 0);
    at = q->suspects[--q->n_suspects];
    if (st == TOC_DATA_LOSS)
        q->err = *err;
    if (st == TOC_DATA_LOSS && !halve(q, at)) {
        int64_t bucket =
            at.bucket == SCHED_BUCKET_DAYS ? first_day(at.after_ms) : at.bucket;
        size_t before = q->n; /* one that is held already is no find */
        bool room =
            add(q, q->shards[at.first], bucket, at.after_ms, at.to_ms, now_ns);
        q->found = room ? q->found + (q->n - before) : 0;
        if (!room)
            q->n_suspects = 0;
    } else if (st != TOC_OK && st != TOC_DATA_LOSS) {
        q->n_suspects = 0;
    }
    if (q->n_suspects == 0)
        say_held(q);
}

bool
sched_quarantine_in_vain(const struct sched_quarantine *q)
{
    return q->n_suspects == 0 && q->found == 0;
}

/* ---- trying again ---------------------------------------------------------
 */

bool
sched_quarantine_due(struct sched_quarantine *q, int64_t now_ns,
                     struct sched_held **ret_held)
{
    struct sched_held *first = NULL;

    for (size_t i = 0; i < q->n; i++)
        if (q->held[i].again_ns <= now_ns &&
            (first == NULL || q->held[i].again_ns < first->again_ns))
            first = &q->held[i];
    if (first == NULL || first->bucket != q->released_bucket)
        say_released(q);
    *ret_held = first;
    return first != NULL;
}

int64_t
sched_quarantine_wake(const struct sched_quarantine *q)
{
    int64_t wake_ns = INT64_MAX;

    for (size_t i = 0; i < q->n; i++)
        if (q->held[i].again_ns < wake_ns)
            wake_ns = q->held[i].again_ns;
    return q->any_released ? 0 : wake_ns;
}

void
sched_quarantine_tried(struct sched_quarantine *q, struct sched_held *held,
                       bool read, int64_t now_ns)
{
    int64_t bucket = held->bucket;

    if (!read) {
        held->wait_ms *= 2;
        if (held->wait_ms > WAIT_MAX_MS)
            held->wait_ms = WAIT_MAX_MS;
        held->again_ns = now_ns + held->wait_ms * TOC_NS_PER_MS;
        return;
    }
    if (q->any_released && q->released_bucket != bucket)
        say_released(q);
    q->any_released = q->released[held->shard] = true;
    q->released_bucket = bucket;
    drop(q, held);
    for (size_t i = 0; i < q->n; i++)
        if (q->held[i].bucket == bucket && q->held[i].wait_ms > WAIT_MS) {
            q->held[i].again_ns = now_ns;
            q->held[i].wait_ms = WAIT_MS;
        }
}
