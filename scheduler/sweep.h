/*
 * Finds what the main path missed in the shards that are ours, and moves it
 * on: locks that expired are freed, rows whose hint is lost are hinted again
 * (the rule is in marks.h), what stays unfinished for over a minute is recorded
 * as a straggler, and the low-water mark of shards where something was fired
 * rises behind it all.
 *
 * A pass goes over [low, now - 2 s) in bounded chunks, a bounded number of them
 * each period that had nothing to hint; a backlog takes several periods. When
 * memory is full the pass waits where it is as long as that goes on. Shards
 * newly ours get a pass of
 * their own at once, up to the moment of the takeover, repeated shortly while
 * the executors have not yet decided what the owner before had published. What
 * cannot be read is left out and tried again by itself (quarantine.h); the mark
 * of such a shard does not rise.
 *
 * Threads: sweep. Blocking: store and bus calls.
 */
#ifndef TOC_SCHEDULER_SWEEP_H
#define TOC_SCHEDULER_SWEEP_H

#include "common/base/arena.h"
#include "common/bus/bus.h"
#include "common/store/store.h"
#include "scheduler/loader.h"
#include "scheduler/marks.h"
#include "scheduler/memory.h"
#include "scheduler/publisher.h"
#include "scheduler/quarantine.h"
#include "scheduler/skew.h"
#include "scheduler/walk.h"

struct sched_sweep_options {
    const struct toc_clock *clk;
    struct toc_store *store;
    struct toc_bus *bus;
    struct sched_shards *shards;
    struct sched_memory *memory;
    struct sched_marks *marks;
    struct sched_skew *skew;           /* without a right clock no writes */
    struct sched_loader *loader;       /* for its cursor */
    struct sched_publisher *publisher; /* for its dirty shards */
    const char *const *topics;         /* by priority */
    const char *group;                 /* of the executors */
    int64_t period_ms;
};

enum sched_sweep_phase {
    SCHED_SWEEP_IDLE,
    SCHED_SWEEP_LOWS,       /* read where the pass begins */
    SCHED_SWEEP_SCAN,       /* chunk by chunk */
    SCHED_SWEEP_FREE,       /* locks that the last chunk showed as expired */
    SCHED_SWEEP_STRAGGLERS, /* look at them */
    SCHED_SWEEP_RECORD,     /* new ones, shard by shard */
    SCHED_SWEEP_ADVANCE,    /* the low-water marks */
};

struct sched_sweep_end {
    int64_t offset;  /* where the partition ends; -1: not read */
    int64_t stored;  /* what we had stored in it before that */
    int64_t read_ns; /* when */
};

struct sched_sweep {
    struct sched_sweep_options opt;
    enum sched_sweep_phase phase, after_free;
    bool takeover;             /* the pass is for shards newly ours */
    uint32_t seen[TOC_SHARDS]; /* generations that had their takeover pass */
    uint32_t pass_gen[TOC_SHARDS];
    uint16_t slices[SCHED_SLICES]; /* of the pass */
    size_t n_slices;
    struct sched_walk walk; /* its width is kept from pass to pass */
    int64_t end_ms;
    size_t chunks;    /* in this period */
    int64_t next_ns;  /* of the next pass */
    unsigned retries; /* of the takeover pass */
    size_t undecided; /* rows of the pass that wait for a committed offset */
    size_t hinted, freed; /* in this pass */
    bool full;            /* memory took not all of the last chunk */

    /* What the last reading brought. */
    struct toc_arena arena;
    struct toc_task *expired, *waiting;
    size_t n_expired, n_waiting, rows;

    bool old[TOC_SHARDS];      /* holds rows to be recorded as stragglers */
    bool recorded[TOC_SHARDS]; /* has recorded ones, or may have */
    uint16_t record_at;
    unsigned rechecked; /* shards of this round, only because of `recorded` */
    bool stragglers;    /* there are some */
    int64_t stragglers_ns, record_ns; /* next time */

    int64_t committed_ns[TOC_PRIORITIES]; /* when read; 0: not */
    int64_t *committed;                   /* by lane */
    struct sched_sweep_end *ends;         /* by lane */
    int64_t bus_again_ns; /* it failed: not asked again before */
    bool failing;
    struct sched_quarantine held; /* what cannot be read */
};

void sched_sweep_init(struct sched_sweep *sweep,
                      const struct sched_sweep_options *opt);
void sched_sweep_done(struct sched_sweep *sweep);
int64_t sched_sweep_step(struct sched_sweep *sweep);

#endif
