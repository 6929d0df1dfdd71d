/*
 * The machine's clocks, and sleeping by them, on common/base/os_time (the one
 * place that asks the kernel).
 */
#ifndef TOC_CLOCK_OS_H
#define TOC_CLOCK_OS_H

#include "common/clock/clock.h"

const struct toc_clock *toc_clock_os(void); /* static, for all threads */

/* Sleeps until the monotonic clock shows `until`. For tools and tests'
 * `eventually`; services wait on bells and queues. */
void toc_clock_os_sleep_until(struct toc_mono until);

#endif
