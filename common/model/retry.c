#include "common/model/retry.h"

#define MINUTE_MS INT64_C(60000)

const struct toc_retry toc_retry_default = {
    .max_retries = 10,
    .n_steps = 4,
    .step_ms = {MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS},
};

/* A policy comes from a caller by way of the database: what is out of bounds
 * is brought to the nearest bound. */
static int64_t
bounded(int64_t delay_ms)
{
    if (delay_ms < 0)
        return 0;
    return delay_ms < TOC_RETRY_DELAY_MS_MAX ? delay_ms
                                             : TOC_RETRY_DELAY_MS_MAX;
}

static int64_t
ladder_delay(const struct toc_retry *retry, uint32_t failed)
{
    uint32_t n = retry->n_steps;

    if (n > TOC_LADDER_MAX)
        n = TOC_LADDER_MAX;
    return bounded(retry->step_ms[(failed < n ? failed : n) - 1]);
}

static int64_t
exponential_delay(const struct toc_retry *retry, uint32_t failed)
{
    /* delay <= 30 days < 2^32 and factor < 2^32: the product fits. */
    uint64_t delay = (uint64_t)bounded(retry->first_ms);
    uint64_t factor = retry->factor_permille;
    uint64_t cap = (uint64_t)bounded(retry->cap_ms);

    if (cap == 0)
        cap = (uint64_t)TOC_RETRY_DELAY_MS_MAX;
    /* Rounded up, or a small first delay would never grow. */
    for (uint32_t i = 1; i < failed && factor > 1000; i++) {
        if (delay == 0 || delay >= cap)
            break;
        delay = (delay * factor + 999) / 1000;
    }
    return (int64_t)(delay < cap ? delay : cap);
}

static int64_t
take_jitter(int64_t delay_ms, uint16_t percent, uint64_t random)
{
    int64_t share = delay_ms * (percent < 100 ? percent : 100) / 100;

    return delay_ms - (int64_t)(random % ((uint64_t)share + 1));
}

bool
toc_retry_next(const struct toc_retry *retry, uint32_t failed,
               int64_t failed_at_ms, uint64_t random, int64_t *ret_due_ms)
{
    int64_t delay;

    if (failed == 0)
        failed = 1;
    if (failed > retry->max_retries)
        return false;
    delay = retry->n_steps > 0 ? ladder_delay(retry, failed)
                               : exponential_delay(retry, failed);
    delay = take_jitter(delay, retry->jitter_percent, random);
    if (failed_at_ms > INT64_MAX - delay)
        *ret_due_ms = INT64_MAX;
    else
        *ret_due_ms = failed_at_ms + delay;
    return true;
}
