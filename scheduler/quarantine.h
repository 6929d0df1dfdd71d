/*
 * What cannot be read, so that the rest goes on.
 *
 * One statement reads all slices of a node. When the store answers that data
 * cannot be read (TOC_DATA_LOSS: a broken page, a day whose file is gone), the
 * reader hands the pieces of that statement over as suspects. They are read
 * again by halves, one statement a step: time first, down to a day, then
 * shards, down to one. What still fails alone is held: (shard, bucket), the
 * bucket being a day or one of a few other places. Statements leave out what
 * is held. Each held piece is tried again alone, after 1 s and then twice as
 * long each time up to 60 s, and released once it can be read; the others of
 * its bucket are tried at once then, for one repair often mends them all. A
 * search over all shards takes 2 * 256 - 1 statements for each day.
 *
 * Every reader (thread) has one of its own: what one cannot read may not
 * concern another one at all. Said once for many shards: shard.quarantined,
 * shard.released.
 *
 * Bounds: SCHED_HELD_MAX held pieces; beyond, a failure is the reader's as any
 * other is. Threads: the reader's; sched_quarantine_shards: any. Pure but for
 * the log.
 */
#ifndef TOC_SCHEDULER_QUARANTINE_H
#define TOC_SCHEDULER_QUARANTINE_H

#include "common/base/status.h"
#include "scheduler/shards.h"

#define SCHED_HELD_MAX 2048
#define SCHED_SUSPECTS_MAX 64 /* a stack: twice the halvings, and some */

/* Buckets: a day since 1970, or one of these. */
enum {
    SCHED_BUCKET_DAYS = -1,       /* a piece that is cut into days */
    SCHED_BUCKET_FAR = -2,        /* far rows */
    SCHED_BUCKET_STRAGGLERS = -3, /* recorded ones, wherever they lie */
    SCHED_BUCKET_RECORD = -4,     /* rows to be recorded as stragglers */
    SCHED_BUCKET_MARK = -5,       /* rows above the low-water mark */
};

struct sched_held {
    uint16_t shard;
    int64_t bucket;
    int64_t after_ms, to_ms; /* (after, to] that failed; of a day */
    int64_t again_ns;
    int64_t wait_ms;
    bool said;
};

/* A part of what failed, to be read by itself. */
struct sched_suspects {
    int64_t bucket; /* SCHED_BUCKET_DAYS: by the span */
    int64_t after_ms, to_ms;
    uint16_t first, n; /* of the shards of the search */
};

struct sched_quarantine {
    const char *reader;
    struct sched_held held[SCHED_HELD_MAX];
    size_t n;
    _Atomic bool holds[TOC_SHARDS]; /* in any bucket */
    /* The search under way. */
    uint16_t shards[TOC_SHARDS];
    size_t n_shards;
    struct sched_suspects suspects[SCHED_SUSPECTS_MAX];
    size_t n_suspects;
    size_t found;
    struct toc_error err;
    uint16_t slices[SCHED_SLICES]; /* of the last of the suspects */
    size_t n_slices;
    /* Released, and not said yet. */
    bool released[TOC_SHARDS];
    int64_t released_bucket;
    bool any_released;
};

/* reader: static text, for the log. */
void sched_quarantine_init(struct sched_quarantine *q, const char *reader);

/* ---- leaving out ---------------------------------------------------- */

int64_t sched_quarantine_day(int64_t slot_ms);
/* Where a piece that begins after after_ms is to end, so that it lies in one
 * day; to_ms when nothing is held. */
int64_t sched_quarantine_cut(const struct sched_quarantine *q, int64_t after_ms,
                             int64_t to_ms);
/* Those of the slices that are not held in the bucket; SCHED_BUCKET_DAYS: in
 * any day of (after, to]. */
size_t sched_quarantine_pass(const struct sched_quarantine *q, int64_t bucket,
                             int64_t after_ms, int64_t to_ms,
                             const uint16_t *slices, size_t n,
                             uint16_t ret_slices[SCHED_SLICES]);
/* Is the shard held in any bucket? Threads: any. */
bool sched_quarantine_holds(const struct sched_quarantine *q, uint16_t shard);
size_t sched_quarantine_shards(const struct sched_quarantine *q);

/* ---- searching ------------------------------------------------------ */

/* A statement over these slices and (after, to] failed so. May be called for
 * several pieces before the search goes on; all with the same slices. False:
 * there is no room, it is the reader's failure. */
bool sched_quarantine_suspect(struct sched_quarantine *q, int64_t bucket,
                              int64_t after_ms, int64_t to_ms,
                              const uint16_t *slices, size_t n,
                              const struct toc_error *err);
/* The next piece to be read, its slices in q->slices and its shards from
 * q->shards + first. False: no search. */
bool sched_quarantine_next(struct sched_quarantine *q,
                           struct sched_suspects *ret_suspects);
/* How that went: TOC_OK, TOC_DATA_LOSS with err, or anything else: the search
 * is given up, and begins anew with the reader's next failure. */
void sched_quarantine_tell(struct sched_quarantine *q, enum toc_status st,
                           const struct toc_error *err, int64_t now_ns);
/* Has the last search ended without finding any? Then the reader is to wait
 * before it reads on. */
bool sched_quarantine_in_vain(const struct sched_quarantine *q);
/* What failed when it was read alone already. False: no room. */
bool sched_quarantine_hold(struct sched_quarantine *q, uint16_t shard,
                           int64_t bucket, int64_t after_ms, int64_t to_ms,
                           const struct toc_error *err, int64_t now_ns);

/* ---- trying again --------------------------------------------------- */

/* One that is to be read again now; the pointer holds until the next call. */
bool sched_quarantine_due(struct sched_quarantine *q, int64_t now_ns,
                          struct sched_held **ret_held);
/* When the next one is; INT64_MAX: none. */
int64_t sched_quarantine_wake(const struct sched_quarantine *q);
/* How that went; when it could be read it is released. */
void sched_quarantine_tried(struct sched_quarantine *q, struct sched_held *held,
                            bool read, int64_t now_ns);
/* The slices of a shard. */
size_t sched_quarantine_slices(uint16_t shard,
                               uint16_t ret_slices[TOC_PRIORITIES]);
/* Forgets shards whose gen is 0: they are another's. */
void sched_quarantine_keep(struct sched_quarantine *q,
                           const uint32_t gen[TOC_SHARDS]);
/* Forgets days before this one. */
void sched_quarantine_forget_before(struct sched_quarantine *q, int64_t day);

#endif
