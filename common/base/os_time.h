/*
 * The one place that asks the kernel for the time. The log and the clock
 * port's real backend (common/clock/os) stand on it; everybody else uses the
 * clock port, so that a test can set the time.
 *
 * Threads: any. Only the sleep blocks.
 */
#ifndef TOC_BASE_OS_TIME_H
#define TOC_BASE_OS_TIME_H

#include <stdint.h>

int64_t toc_os_wall_ns(void); /* since 1970 UTC; may jump */
int64_t toc_os_mono_ns(void); /* steady */
int64_t toc_os_boot_ns(void); /* steady, counts while the machine sleeps */
int64_t toc_os_cpu_ns(void);  /* what this process has used, all threads */

void toc_os_sleep_until_mono(int64_t until_ns);

#endif
