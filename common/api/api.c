#include "common/api/api.h"

#include "common/base/buf.h"
#include "common/base/cleanup.h"

#include <string.h>

#define NS_PER_MS 1000000
#define NS_MAX 999999999
/* google.protobuf.Duration: about 10,000 years. */
#define DURATION_SEC_MAX INT64_C(315576000000)

static int64_t
floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0 ? 1 : 0);
}

Google__Protobuf__Timestamp *
toc_api_time(struct toc_arena *arena, int64_t wall_ms)
{
    Google__Protobuf__Timestamp *time = toc_arena_alloc(arena, sizeof *time);
    int64_t seconds = floor_div(wall_ms, 1000);

    google__protobuf__timestamp__init(time);
    time->seconds = seconds;
    time->nanos = (int32_t)(wall_ms - seconds * 1000) * NS_PER_MS;
    return time;
}

Google__Protobuf__Timestamp *
toc_api_time_or_unset(struct toc_arena *arena, int64_t wall_ms)
{
    return wall_ms == 0 ? NULL : toc_api_time(arena, wall_ms);
}

bool
toc_api_time_ms(const Google__Protobuf__Timestamp *time, int64_t *ret_wall_ms)
{
    int64_t wall_ms;

    if (time->nanos < 0 || time->nanos > NS_MAX ||
        time->seconds < TOC_DUE_MS_MIN / 1000 ||
        time->seconds > TOC_DUE_MS_MAX / 1000)
        return false;
    wall_ms = time->seconds * 1000 + (time->nanos + NS_PER_MS - 1) / NS_PER_MS;
    if (wall_ms > TOC_DUE_MS_MAX)
        return false;
    *ret_wall_ms = wall_ms;
    return true;
}

Google__Protobuf__Duration *
toc_api_duration(struct toc_arena *arena, int64_t ms)
{
    Google__Protobuf__Duration *duration =
        toc_arena_alloc(arena, sizeof *duration);

    google__protobuf__duration__init(duration);
    duration->seconds = ms / 1000;
    duration->nanos = (int32_t)(ms % 1000) * NS_PER_MS;
    return duration;
}

bool
toc_api_duration_ms(const Google__Protobuf__Duration *duration, int64_t *ret_ms)
{
    int64_t seconds = duration->seconds;
    int32_t nanos = duration->nanos;

    if (seconds < -DURATION_SEC_MAX || seconds > DURATION_SEC_MAX ||
        nanos < -NS_MAX || nanos > NS_MAX || (seconds > 0 && nanos < 0) ||
        (seconds < 0 && nanos > 0))
        return false;
    /* Of a negative rest, division towards zero is rounding up. */
    *ret_ms = seconds * 1000 + (nanos > 0 ? (nanos + NS_PER_MS - 1) / NS_PER_MS
                                          : nanos / NS_PER_MS);
    return true;
}

Toc__V1__State
toc_api_state(enum toc_state state)
{
    switch (state) {
#define X(name, number, text) \
    case TOC_STATE_##name:    \
        return TOC__V1__STATE__STATE_##name;
        TOC_STATE_MAP(X)
#undef X
    }
    return TOC__V1__STATE__STATE_UNSPECIFIED;
}

bool
toc_api_state_of(Toc__V1__State state, enum toc_state *ret_state)
{
#define X(name, number, text)                    \
    if (state == TOC__V1__STATE__STATE_##name) { \
        *ret_state = TOC_STATE_##name;           \
        return true;                             \
    }
    TOC_STATE_MAP(X)
#undef X
    return false;
}

Toc__V1__Priority
toc_api_priority(enum toc_priority priority)
{
    switch (priority) {
    case TOC_PRIORITY_CORE:
        return TOC__V1__PRIORITY__PRIORITY_CORE;
    case TOC_PRIORITY_NORMAL:
        return TOC__V1__PRIORITY__PRIORITY_NORMAL;
    case TOC_PRIORITY_LOW:
        return TOC__V1__PRIORITY__PRIORITY_LOW;
    }
    return TOC__V1__PRIORITY__PRIORITY_UNSPECIFIED;
}

bool
toc_api_priority_of(Toc__V1__Priority priority, enum toc_priority *ret_priority)
{
    if (priority == TOC__V1__PRIORITY__PRIORITY_CORE)
        *ret_priority = TOC_PRIORITY_CORE;
    else if (priority == TOC__V1__PRIORITY__PRIORITY_NORMAL ||
             priority == TOC__V1__PRIORITY__PRIORITY_UNSPECIFIED)
        *ret_priority = TOC_PRIORITY_NORMAL;
    else if (priority == TOC__V1__PRIORITY__PRIORITY_LOW)
        *ret_priority = TOC_PRIORITY_LOW;
    else
        return false;
    return true;
}

Toc__V1__AttemptResult
toc_api_result(enum toc_result result)
{
    /* The numbers are the same, NONE being UNSPECIFIED (under way). */
    return toc_result_valid(result)
               ? (Toc__V1__AttemptResult)result
               : TOC__V1__ATTEMPT_RESULT__ATTEMPT_RESULT_UNSPECIFIED;
}

char *
toc_api_etag(struct toc_arena *arena, uint32_t version)
{
    return toc_arena_printf(arena, "%lu", (unsigned long)version);
}

bool
toc_api_etag_parse(const char *etag, uint32_t *ret_version)
{
    struct toc_str s = toc_str_of(etag);
    int64_t version = 0;

    /* One spelling only: "01" is not the etag that was handed out. */
    if (s.len > 0 &&
        (s.ptr[0] == '0' || !toc_parse_i64(s, 1, UINT32_MAX, &version)))
        return false;
    *ret_version = (uint32_t)version;
    return true;
}

char *
toc_api_text(struct toc_arena *arena, struct toc_str s)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};

    if (toc_utf8_valid(s) && (s.len == 0 || !memchr(s.ptr, '\0', s.len)))
        return toc_arena_text(arena, s);
    while (s.len > 0) {
        size_t n = s.ptr[0] == '\0' ? 0 : toc_utf8_len(s);
        if (n == 0) {
            toc_buf_text(&out, "\xef\xbf\xbd"); /* U+FFFD */
            n = 1;
        } else {
            toc_buf_add(&out, s.ptr, n);
        }
        s.ptr += n;
        s.len -= n;
    }
    return toc_arena_text(arena, toc_buf_view(&out));
}
