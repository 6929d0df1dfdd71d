#define _GNU_SOURCE /* sched_getaffinity */
#include "common/base/cores.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#define QUOTA_FILE "/sys/fs/cgroup/cpu.max"
#define US_MAX INT64_C(1000000000000)

double
toc_cores_of_quota(struct toc_str text)
{
    struct toc_str quota, period;
    int64_t quota_us, period_us;

    while (text.len > 0 && text.ptr[text.len - 1] == '\n')
        text.len--;
    if (!toc_str_next(&text, ' ', &quota) || !toc_str_next(&text, ' ', &period))
        return 0;
    if (!toc_parse_i64(quota, 1, US_MAX, &quota_us) ||
        !toc_parse_i64(period, 1, US_MAX, &period_us))
        return 0;
    return (double)quota_us / (double)period_us;
}

static double
quota_now(void)
{
    char text[64];
    ssize_t n;
    int fd = open(QUOTA_FILE, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text);
    close(fd);
    return n <= 0 ? 0 : toc_cores_of_quota((struct toc_str){text, (size_t)n});
}

double
toc_os_cores(void)
{
    cpu_set_t set;
    double cores = 1, quota = quota_now();

    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        cores = CPU_COUNT(&set);
    return quota > 0 && quota < cores ? quota : cores;
}
