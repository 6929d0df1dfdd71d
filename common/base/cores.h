/*
 * How many cores this process may use: those it may run on, or less where a
 * container's quota (cgroup 2) allows less; may be a fraction.
 *
 * Threads: any. Blocking: reads one file of the kernel. Errors: none; what
 * cannot be read limits nothing.
 */
#ifndef TOC_BASE_CORES_H
#define TOC_BASE_CORES_H

#include "common/base/str.h"

double toc_os_cores(void);

/* Of the text of cpu.max ("200000 100000", "max 100000"): 2, and 0 for none. */
double toc_cores_of_quota(struct toc_str text);

#endif
