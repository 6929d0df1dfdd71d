#include "common/model/slot.h"

#include "common/base/assert.h"
#include "common/model/key.h"

uint16_t
toc_slice_of(uint16_t shard, enum toc_priority priority)
{
    TOC_ASSERT(shard < TOC_SHARDS && (int)priority < TOC_PRIORITIES);
    return (uint16_t)(shard * TOC_SLICES_PER_SHARD + (int)priority);
}

uint16_t
toc_slice_shard(uint16_t slice)
{
    return (uint16_t)(slice / TOC_SLICES_PER_SHARD);
}

enum toc_priority
toc_slice_priority(uint16_t slice)
{
    unsigned priority = slice % TOC_SLICES_PER_SHARD;

    /* The fourth is not in use; what a later version put there comes last. */
    if (priority >= TOC_PRIORITIES)
        return TOC_PRIORITY_LOW;
    return (enum toc_priority)priority;
}

int64_t
toc_slot_for_due(int64_t due_ms, int64_t now_ms)
{
    if (due_ms <= now_ms)
        return now_ms;
    if (due_ms - TOC_FAR_AFTER_MS > now_ms)
        return toc_slot_parked(due_ms, TOC_PARK_FAR_MS);
    return due_ms;
}

int64_t
toc_slot_parked(int64_t due_ms, int64_t park_ms)
{
    TOC_ASSERT(park_ms == TOC_PARK_FAR_MS || park_ms == TOC_PARK_PAUSED_MS ||
               park_ms == TOC_PARK_HELD_MS);
    if (due_ms < 0)
        due_ms = 0;
    if (due_ms > TOC_DUE_MS_MAX)
        due_ms = TOC_DUE_MS_MAX;
    return due_ms - park_ms;
}

bool
toc_slot_is_parked(int64_t slot_ms)
{
    return slot_ms < 0;
}

/* The kinds do not overlap: a due time is below 2^48, so a paused row's slot
 * is below -2^51 + 2^48 and that is below -2^50. */
bool
toc_slot_is_far(int64_t slot_ms)
{
    return slot_ms >= -TOC_PARK_FAR_MS && slot_ms < 0;
}
