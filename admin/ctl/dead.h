/*
 * Dead letters page by page, for the list and for redrive --all.
 *
 * Threads: one.
 */
#ifndef TOC_ADMIN_CTL_DEAD_H
#define TOC_ADMIN_CTL_DEAD_H

#include "admin/ctl/ctl.h"

#include "toc/v1/admin.pb-c.h"

typedef void ctl_dead_fn(void *arg, const Toc__V1__DeadLetter *dead);
typedef void ctl_page_fn(void *arg);

/* Calls fn for each dead letter that the flags of the filter let through, up to
 * limit, and page (may be NULL) after each page; the arena is reset then.
 * *ret_more (may be NULL): there are more. */
TOC_MUST_CHECK enum ctl_exit ctl_dead_each(struct ctl *ctl, size_t limit,
                                           ctl_dead_fn *fn, ctl_page_fn *page,
                                           void *arg, bool *ret_more);

#endif
