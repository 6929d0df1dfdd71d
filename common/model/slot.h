/*
 * Where a row lives: slice and slot.
 *
 * due is the promise, slot the place. They are equal for the usual task. A due
 * time in the past gets slot = now. Rows that must not be seen by the loader
 * are parked at negative slots: due minus a constant of their kind, each a
 * multiple of 2^48 so that the low 48 bits still show the due time.
 *
 * slice = shard * 4 + priority.
 */
#ifndef TOC_MODEL_SLOT_H
#define TOC_MODEL_SLOT_H

#include <stdbool.h>
#include <stdint.h>

enum toc_priority {
    TOC_PRIORITY_CORE = 0,
    TOC_PRIORITY_NORMAL = 1,
    TOC_PRIORITY_LOW = 2,
};
#define TOC_PRIORITIES 3
#define TOC_SLICES_PER_SHARD 4

#define TOC_PARK_FAR_MS (INT64_C(1) << 50)    /* due beyond the partitions */
#define TOC_PARK_PAUSED_MS (INT64_C(1) << 51) /* paused */
#define TOC_PARK_HELD_MS (INT64_C(1) << 52)   /* line or target held back */

/* Rows due later than this wait parked as far. */
#define TOC_FAR_AFTER_MS (INT64_C(34) * 86400000)
/* A far row is moved into its day when it is due within this. */
#define TOC_FAR_MOVE_MS INT64_C(86400000)

/* Due times: 0001-01-01 to 9999-12-31T23:59:59.999Z. */
#define TOC_DUE_MS_MIN (-INT64_C(62135596800000))
#define TOC_DUE_MS_MAX INT64_C(253402300799999)

uint16_t toc_slice_of(uint16_t shard, enum toc_priority priority);
uint16_t toc_slice_shard(uint16_t slice);
enum toc_priority toc_slice_priority(uint16_t slice);

/* The slot of a row that becomes due at due_ms, seen at now_ms: the due time,
 * now for a past one, parked as far for one beyond the partitions. */
int64_t toc_slot_for_due(int64_t due_ms, int64_t now_ms);
/* The parked slot of a due time; a due time before 1970 counts as 1970. */
int64_t toc_slot_parked(int64_t due_ms, int64_t park_ms);
bool toc_slot_is_parked(int64_t slot_ms);
bool toc_slot_is_far(int64_t slot_ms);

#endif
