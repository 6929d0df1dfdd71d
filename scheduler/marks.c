#include "scheduler/marks.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <string.h>

#define LATE_S 2     /* of a backlog, what is decided in this time is out */
#define LATE_MIN 512 /* at least so many: two messages */
#define NS_PER_S 1e9
#define MEASURE_NS (INT64_C(500) * 1000000)
#define AHEAD_MS 1000 /* nothing is noted so far beyond the clock */

void
sched_marks_init(struct sched_marks *marks, int32_t partitions, int64_t lag_max)
{
    memset(marks, 0, sizeof *marks);
    marks->partitions = partitions;
    marks->lag_max = lag_max;
    TOC_ASSERT(pthread_mutex_init(&marks->lock, NULL) == 0);
    marks->lanes =
        TOC_NEW_ARRAY(struct sched_lane_marks, sched_marks_lanes(marks));
    for (size_t i = 0; i < sched_marks_lanes(marks); i++) {
        marks->lanes[i].committed = -1;
        marks->lanes[i].per_message = 1;
    }
    for (size_t i = 0; i < TOC_SHARDS; i++)
        marks->taken[i].until_ms = INT64_MIN;
}

void
sched_marks_done(struct sched_marks *marks)
{
    toc_free(marks->lanes);
    pthread_mutex_destroy(&marks->lock);
}

size_t
sched_marks_lanes(const struct sched_marks *marks)
{
    return (size_t)marks->partitions * TOC_PRIORITIES;
}

int32_t
sched_marks_partition(const struct sched_marks *marks, uint16_t shard)
{
    return (int32_t)shard % marks->partitions;
}

size_t
sched_marks_lane(const struct sched_marks *marks, uint16_t slice)
{
    return (size_t)toc_slice_priority(slice) * (size_t)marks->partitions +
           (size_t)sched_marks_partition(marks, toc_slice_shard(slice));
}

void
sched_marks_sent(struct sched_marks *marks, size_t lane, size_t hints)
{
    pthread_mutex_lock(&marks->lock);
    marks->lanes[lane].outstanding += (int64_t)hints;
    pthread_mutex_unlock(&marks->lock);
}

void
sched_marks_refused(struct sched_marks *marks, size_t lane, size_t hints)
{
    struct sched_lane_marks *at = &marks->lanes[lane];

    pthread_mutex_lock(&marks->lock);
    at->outstanding -= (int64_t)hints;
    if (at->outstanding < 0)
        at->outstanding = 0;
    pthread_mutex_unlock(&marks->lock);
}

static int64_t
last_slot(const struct sched_lane_marks *lane)
{
    return lane->n == 0 ? INT64_MIN : lane->marks[lane->n - 1].slot_ms;
}

void
sched_marks_stored(struct sched_marks *marks, size_t lane, int64_t slot_ms,
                   size_t hints, int64_t offset)
{
    struct sched_lane_marks *at = &marks->lanes[lane];

    pthread_mutex_lock(&marks->lock);
    if (offset + 1 < at->stored) { /* the topic was made anew */
        at->n = 0;
        at->again = 0;
        at->stored = 0;
    }
    if (offset + 1 > at->stored)
        at->stored = offset + 1;
    if (slot_ms <= last_slot(at) && offset + 1 > at->again)
        at->again = offset + 1;
    at->per_message += ((double)hints - at->per_message) / 16;
    pthread_mutex_unlock(&marks->lock);
}

/* Every other mark goes: rows are then judged by a later one, which only makes
 * a second hint wait longer. */
static void
thin_out(struct sched_lane_marks *lane)
{
    size_t n = 0;

    for (size_t i = 1; i < lane->n; i += 2)
        lane->marks[n++] = lane->marks[i];
    lane->n = n;
}

/* Marks that the committed offset has passed all say the same: one is enough.
 */
static void
forget_passed(struct sched_lane_marks *lane)
{
    size_t passed = 0;

    while (passed < lane->n && lane->marks[passed].offset <= lane->committed)
        passed++;
    if (passed < 2)
        return;
    memmove(&lane->marks[0], &lane->marks[passed - 1],
            (lane->n - passed + 1) * sizeof lane->marks[0]);
    lane->n -= passed - 1;
}

void
sched_marks_reach(struct sched_marks *marks, size_t lane, int64_t slot_ms)
{
    struct sched_lane_marks *at = &marks->lanes[lane];

    pthread_mutex_lock(&marks->lock);
    if (slot_ms > last_slot(at)) {
        forget_passed(at);
        if (at->n == SCHED_MARKS_MAX)
            thin_out(at);
        if (at->n == 0 || at->marks[at->n - 1].offset != at->stored)
            at->n++;
        at->marks[at->n - 1] = (struct sched_mark){slot_ms, at->stored};
    }
    pthread_mutex_unlock(&marks->lock);
}

void
sched_marks_rewind(struct sched_marks *marks, int64_t now_ms)
{
    pthread_mutex_lock(&marks->lock);
    for (size_t i = 0; i < sched_marks_lanes(marks); i++) {
        struct sched_lane_marks *lane = &marks->lanes[i];
        while (lane->n > 0 && last_slot(lane) > now_ms + AHEAD_MS)
            lane->n--;
    }
    for (size_t i = 0; i < TOC_SHARDS; i++)
        if (marks->taken[i].until_ms > now_ms + AHEAD_MS)
            marks->taken[i].until_ms = now_ms;
    pthread_mutex_unlock(&marks->lock);
}

/* Without a measure it is the least; what is then decided raises it. */
static int64_t
late_max(const struct sched_marks *marks, const struct sched_lane_marks *lane)
{
    double max = lane->per_second * LATE_S;

    if (max < LATE_MIN)
        max = LATE_MIN;
    return max < (double)marks->lag_max ? (int64_t)max : marks->lag_max;
}

bool
sched_marks_room(struct sched_marks *marks, size_t lane, bool late)
{
    const struct sched_lane_marks *at = &marks->lanes[lane];
    bool room;

    pthread_mutex_lock(&marks->lock);
    room = at->outstanding < (late ? late_max(marks, at) : marks->lag_max);
    pthread_mutex_unlock(&marks->lock);
    return room;
}

bool
sched_marks_wants_committed(struct sched_marks *marks,
                            enum toc_priority priority)
{
    size_t first = (size_t)priority * (size_t)marks->partitions;
    bool wants = false;

    pthread_mutex_lock(&marks->lock);
    for (size_t i = 0; i < (size_t)marks->partitions; i++)
        wants = wants ||
                marks->lanes[first + i].outstanding > marks->lag_max / 4 ||
                marks->lanes[first + i].outstanding > LATE_MIN / 2;
    pthread_mutex_unlock(&marks->lock);
    return wants;
}

/* Offsets are committed in steps of up to half a second. What is faster than
 * thought counts at once, so that a backlog soon goes at full rate. */
static void
measure(struct sched_lane_marks *lane, int64_t committed, int64_t now_ns)
{
    int64_t past_ns = now_ns - lane->measured_ns;
    int64_t moved = committed - lane->measured;
    double per_second;

    if (lane->measured_ns != 0 && moved >= 0 && past_ns < MEASURE_NS)
        return;
    if (lane->measured_ns != 0 && moved >= 0) {
        per_second =
            (double)moved * lane->per_message * NS_PER_S / (double)past_ns;
        if (per_second < lane->per_second)
            per_second = (per_second + lane->per_second) / 2;
        lane->per_second = per_second;
    }
    lane->measured = committed;
    lane->measured_ns = now_ns;
}

void
sched_marks_set_committed(struct sched_marks *marks, enum toc_priority priority,
                          const int64_t *offsets, int64_t now_ns)
{
    size_t first = (size_t)priority * (size_t)marks->partitions;

    pthread_mutex_lock(&marks->lock);
    for (size_t i = 0; i < (size_t)marks->partitions; i++) {
        struct sched_lane_marks *lane = &marks->lanes[first + i];
        int64_t messages = lane->stored - offsets[i];
        double hints;
        lane->committed = offsets[i];
        measure(lane, offsets[i], now_ns);
        if (messages < 0)
            messages = 0;
        hints = (double)messages * lane->per_message;
        /* What is still on its way to the bus is not in `stored`; it is left
         * out, and counted again only by the next look. */
        lane->outstanding = hints < 1e15 ? (int64_t)hints : INT64_C(1) << 50;
    }
    pthread_mutex_unlock(&marks->lock);
}

void
sched_marks_take_over(struct sched_marks *marks, uint16_t shard,
                      int64_t until_ms)
{
    struct sched_takeover *taken = &marks->taken[shard];

    pthread_mutex_lock(&marks->lock);
    taken->until_ms = until_ms;
    for (size_t i = 0; i < TOC_PRIORITIES; i++)
        taken->end[i] = -1;
    pthread_mutex_unlock(&marks->lock);
}

bool
sched_marks_wants_end(struct sched_marks *marks, uint16_t slice,
                      int64_t slot_ms)
{
    const struct sched_takeover *taken = &marks->taken[toc_slice_shard(slice)];
    bool wants;

    pthread_mutex_lock(&marks->lock);
    wants =
        slot_ms <= taken->until_ms && taken->end[toc_slice_priority(slice)] < 0;
    pthread_mutex_unlock(&marks->lock);
    return wants;
}

void
sched_marks_set_end(struct sched_marks *marks, uint16_t slice, int64_t end)
{
    pthread_mutex_lock(&marks->lock);
    marks->taken[toc_slice_shard(slice)].end[toc_slice_priority(slice)] = end;
    pthread_mutex_unlock(&marks->lock);
}

/* The offset to be reached; -1: not to be told yet. */
static int64_t
need_of(struct sched_marks *marks, uint16_t slice, int64_t slot_ms)
{
    const struct sched_takeover *taken = &marks->taken[toc_slice_shard(slice)];
    const struct sched_lane_marks *lane =
        &marks->lanes[sched_marks_lane(marks, slice)];
    int64_t need = -1;

    if (slot_ms <= taken->until_ms) {
        need = taken->end[toc_slice_priority(slice)];
    } else {
        for (size_t i = 0; i < lane->n && need < 0; i++)
            if (lane->marks[i].slot_ms >= slot_ms)
                need = lane->marks[i].offset;
    }
    if (need < 0)
        return -1;
    return need > lane->again ? need : lane->again;
}

bool
sched_marks_passed(struct sched_marks *marks, uint16_t slice, int64_t slot_ms,
                   int64_t committed, int64_t end)
{
    int64_t need;

    pthread_mutex_lock(&marks->lock);
    need = need_of(marks, slice, slot_ms);
    pthread_mutex_unlock(&marks->lock);
    if (need < 0)
        return false;
    if (end >= 0 && (need > end || committed > end))
        return true;
    return committed >= need;
}

int64_t
sched_marks_stored_to(struct sched_marks *marks, uint16_t slice)
{
    int64_t stored;

    pthread_mutex_lock(&marks->lock);
    stored = marks->lanes[sched_marks_lane(marks, slice)].stored;
    pthread_mutex_unlock(&marks->lock);
    return stored;
}
