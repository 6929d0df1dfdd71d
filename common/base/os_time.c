#define _GNU_SOURCE /* CLOCK_BOOTTIME */
#include "common/base/os_time.h"

#include "common/base/assert.h"

#include <errno.h>
#include <time.h>

#define NS_PER_SEC INT64_C(1000000000)

static int64_t
clock_ns(clockid_t id)
{
    struct timespec ts;

    TOC_ASSERT(clock_gettime(id, &ts) == 0);
    return (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

int64_t
toc_os_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

int64_t
toc_os_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t
toc_os_boot_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

int64_t
toc_os_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void
toc_os_sleep_until_mono(int64_t until_ns)
{
    struct timespec ts;
    int rc;

    if (until_ns <= 0)
        return;
    ts.tv_sec = until_ns / NS_PER_SEC;
    ts.tv_nsec = until_ns % NS_PER_SEC;
    do {
        rc = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
    } while (rc == EINTR);
    TOC_ASSERT(rc == 0);
}
