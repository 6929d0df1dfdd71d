/*
 * From the business's answer to what is written back. Pure.
 *
 *   DONE                          SUCCESS
 *   FAILED UNREACHABLE REFUSED    RETRY as the policy says (FAILED: or at the
 *                                 time named), DEAD when no attempt is left
 *   UNKNOWN                       the same; at most once: DEAD
 *   REJECTED BAD_TARGET           DEAD
 *   SNOOZE                        RETRY at the time named, no attempt used
 *   STOP                          SKIPPED
 */
#ifndef TOC_EXECUTOR_OUTCOME_H
#define TOC_EXECUTOR_OUTCOME_H

#include "common/invoke/invoke.h"
#include "common/store/store.h"

/* A snooze or retry into the past is moved to this much after now. */
#define EXEC_SNOOZE_MS_MIN 1000

/* Fills kind, outcome, attempt, due_ms, ended_ms, reason (static text) and
 * error (borrowed from the answer). random: 64 uniform bits, for jitter. */
void exec_outcome_fill(const struct toc_fire *fire, int64_t now_ms,
                       uint64_t random, struct toc_finish *finish);

#endif
