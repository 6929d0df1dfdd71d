#include "executor/pace.h"

#include "common/clock/clock.h"

#define SLICE_MS 250

void
exec_pace_note(struct exec_pace *pace, size_t n, int64_t now_ns)
{
    int64_t passed_ns = now_ns - pace->slice_ns;

    pace->slice_n += n;
    if (passed_ns < SLICE_MS * TOC_NS_PER_MS)
        return;
    pace->per_sec =
        pace->slice_n * 1000 / (uint64_t)(passed_ns / TOC_NS_PER_MS);
    pace->slice_ns = now_ns;
    pace->slice_n = 0;
}

int64_t
exec_pace_gather_ns(const struct exec_pace *pace)
{
    int64_t ms;

    if (pace->per_sec == 0 || pace->per_sec < pace->from_per_sec)
        return 0;
    ms = (int64_t)(pace->batch_n * UINT64_C(1000) / pace->per_sec);
    return (ms < pace->ms_max ? ms : pace->ms_max) * TOC_NS_PER_MS;
}
