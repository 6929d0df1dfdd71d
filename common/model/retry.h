/*
 * When the next attempt comes.
 *
 * Default: the ladder 1 min, 5 min, 10 min, 30 min, then 30 min each, at most
 * 10 retries. A ladder's last step repeats. Exponential: first * factor^n up
 * to cap. Jitter takes away up to its share of the delay, at random, so that
 * failures that came together do not come back together (never added: a cap
 * stays a cap). All counted from the failure, not from the old due time.
 *
 * Threads: any. Pure.
 */
#ifndef TOC_MODEL_RETRY_H
#define TOC_MODEL_RETRY_H

#include "common/model/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct toc_retry {
    uint16_t max_retries;
    /* Ladder when n_steps > 0, else exponential. */
    uint16_t n_steps;
    int64_t step_ms[TOC_LADDER_MAX];
    int64_t first_ms, cap_ms; /* cap 0: the largest delay there is */
    uint32_t factor_permille; /* 2000 doubles; at least 1000 */
    uint16_t jitter_percent;  /* 0 to 100 */
};

extern const struct toc_retry toc_retry_default;

/*
 * failed: attempts that have failed in this fire, this one included (from 1).
 * random: 64 uniform bits, used only with jitter. False: no more attempts.
 * Never overflows; the result is at most failed_at_ms + the largest delay.
 */
bool toc_retry_next(const struct toc_retry *retry, uint32_t failed,
                    int64_t failed_at_ms, uint64_t random, int64_t *ret_due_ms);

#endif
