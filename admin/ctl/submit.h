/*
 * A SubmitRequest from the flags of the command line.
 *
 * Ownership: the request lives as long as the process. Threads: one.
 */
#ifndef TOC_ADMIN_CTL_SUBMIT_H
#define TOC_ADMIN_CTL_SUBMIT_H

#include "admin/ctl/ctl.h"

#include "toc/v1/timeout.pb-c.h"

TOC_MUST_CHECK enum ctl_exit ctl_submit_read(
    struct ctl *ctl, Toc__V1__SubmitRequest **ret_request);
/* With -f the file says it all: any flag of a task beside it is an error. */
TOC_MUST_CHECK enum ctl_exit ctl_submit_only_file(struct ctl *ctl);

#endif
