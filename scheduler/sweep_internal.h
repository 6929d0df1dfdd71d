/*
 * What the parts of the sweep share: small helpers, and what each part does for
 * the step or for the next part. Only for this folder.
 *
 * A part's step does one piece of work, sets the phase that is to follow, and
 * returns when to step again (monotonic clock, ns). Threads: sweep.
 */
#ifndef TOC_SCHEDULER_SWEEP_INTERNAL_H
#define TOC_SCHEDULER_SWEEP_INTERNAL_H

#include "scheduler/sweep.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHED_SWEEP_STRAGGLER_MS 60000  /* unfinished for longer: recorded */
#define SCHED_SWEEP_STRAGGLERS_MAX 1000 /* of a shard; more is a backlog */
#define SCHED_SWEEP_BEHIND_MS 8000      /* the low-water mark stays behind */
#define SCHED_SWEEP_FREE_AT_ONCE 500
#define SCHED_SWEEP_COMMITTED_NS (INT64_C(1000) * TOC_NS_PER_MS)
/* older marks rise, of idle shards too */
#define SCHED_SWEEP_OLD_LOW_MS (15 * 60000)
#define SCHED_SWEEP_STEP_MAX_MS SCHED_SWEEP_OLD_LOW_MS

int64_t sched_sweep_mono_ns(const struct sched_sweep *sweep);
int64_t sched_sweep_wall_ms(const struct sched_sweep *sweep);
bool sched_sweep_may_write(const struct sched_sweep *sweep);
int64_t sched_sweep_failed(struct sched_sweep *sweep, const char *what,
                           const struct toc_error *err);
int64_t sched_sweep_unread(struct sched_sweep *sweep, const char *what,
                           enum toc_status st, const struct sched_suspects *at,
                           const uint16_t *slices, size_t n,
                           const struct toc_error *err);

/* ---- rows ---- */

/* Keeps what is to be done about the row; arg is the sweep. */
void sched_sweep_look_at_row(void *arg, const struct toc_task *task);
/* Before the next reading. */
void sched_sweep_forget_rows(struct sched_sweep *sweep);
int64_t sched_sweep_free_locks(struct sched_sweep *sweep);

/* ---- hints ---- */

/* Hints the waiting rows that lost theirs. Did memory take any? */
bool sched_sweep_hint_lost(struct sched_sweep *sweep);

/* ---- a pass ---- */

/* Over the shards of pass_gen, up to end_ms. */
void sched_sweep_start_pass(struct sched_sweep *sweep, bool takeover);
/* Are there shards that had no takeover yet? Theirs begins with take_over. */
bool sched_sweep_any_new(struct sched_sweep *sweep);
void sched_sweep_take_over(struct sched_sweep *sweep);
int64_t sched_sweep_wait_pass(struct sched_sweep *sweep);
int64_t sched_sweep_read_lows(struct sched_sweep *sweep);
int64_t sched_sweep_scan_chunk(struct sched_sweep *sweep);

/* ---- stragglers and marks ---- */

int64_t sched_sweep_scan_stragglers(struct sched_sweep *sweep);
int64_t sched_sweep_record_stragglers(struct sched_sweep *sweep);
int64_t sched_sweep_advance_low(struct sched_sweep *sweep);

/* ---- what cannot be read ---- */

int64_t sched_sweep_search(struct sched_sweep *sweep,
                           const struct sched_suspects *at);
int64_t sched_sweep_try_held(struct sched_sweep *sweep,
                             struct sched_held *held);

#endif
