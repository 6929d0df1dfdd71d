#include "scheduler/access/validate.h"

#include "common/api/api.h"
#include "common/clock/clock.h"

#define NS_MAX 999999999

static const char *
shown_time(struct sched_check *check, int64_t seconds, int32_t nanos)
{
    return toc_arena_printf(check->failure->arena, "seconds %lld, nanos %ld",
                            (long long)seconds, (long)nanos);
}

static void
bad_time(struct sched_check *check, const char *field, int64_t seconds,
         int32_t nanos, const char *rule)
{
    sched_check_missing(check, field,
                        toc_arena_printf(check->failure->arena, "%s: %s",
                                         shown_time(check, seconds, nanos),
                                         rule));
}

bool
sched_validate_due(struct sched_check *check, const char *field,
                   const Google__Protobuf__Timestamp *time, int64_t *ret_due_ms)
{
    if (toc_api_time_ms(time, ret_due_ms))
        return true;
    bad_time(check, field, time->seconds, time->nanos,
             time->nanos < 0 || time->nanos > NS_MAX
                 ? "nanos must be 0 to 999999999"
                 : "must be 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999Z");
    return false;
}

bool
sched_validate_delay(struct sched_check *check, const char *field,
                     const Google__Protobuf__Duration *delay, int64_t now_ms,
                     int64_t *ret_due_ms)
{
    int64_t ms;

    if (!toc_api_duration_ms(delay, &ms)) {
        bad_time(check, field, delay->seconds, delay->nanos,
                 "is not a duration: seconds within 10,000 years, nanos within "
                 "a second and of the same sign");
        return false;
    }
    if (ms < 0 || delay->seconds < 0 || delay->nanos < 0) {
        bad_time(check, field, delay->seconds, delay->nanos,
                 "must not be negative");
        return false;
    }
    /* Both are far below 2^53: the sum fits. */
    if (now_ms + ms > TOC_DUE_MS_MAX) {
        bad_time(check, field, delay->seconds, delay->nanos,
                 "ends after the year 9999");
        return false;
    }
    *ret_due_ms = now_ms + ms;
    return true;
}

static const char *
shown_span(struct sched_check *check, int64_t ms)
{
    struct toc_arena *arena = check->failure->arena;

    if (ms >= TOC_MS_PER_DAY && ms % TOC_MS_PER_DAY == 0)
        return toc_arena_printf(arena, "%lld days",
                                (long long)(ms / TOC_MS_PER_DAY));
    return toc_arena_printf(arena, "%lld ms", (long long)ms);
}

bool
sched_validate_span(struct sched_check *check, const char *field,
                    const Google__Protobuf__Duration *duration, int64_t min_ms,
                    int64_t max_ms, int64_t *ret_ms)
{
    int64_t ms;

    if (toc_api_duration_ms(duration, &ms) && duration->seconds >= 0 &&
        duration->nanos >= 0 && ms >= min_ms && ms <= max_ms) {
        *ret_ms = ms;
        return true;
    }
    bad_time(check, field, duration->seconds, duration->nanos,
             toc_arena_printf(check->failure->arena, "must be %s to %s",
                              shown_span(check, min_ms),
                              shown_span(check, max_ms)));
    return false;
}
