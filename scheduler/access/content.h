/*
 * What makes two submits under one key the same: a hash over the request as it
 * was sent (a delay stays a delay, so that a repeated "in 30 minutes" is the
 * same). Not part of it: on_conflict, validate_only. An unspecified enum counts
 * as its default.
 *
 * Stored for as long as keys are kept: it must not change between versions.
 * Threads: any.
 */
#ifndef TOC_SCHEDULER_ACCESS_CONTENT_H
#define TOC_SCHEDULER_ACCESS_CONTENT_H

#include "toc/v1/timeout.pb-c.h"

#include <stdint.h>

/* Of a request that was found valid. */
void sched_content_hash(const Toc__V1__SubmitRequest *request,
                        uint8_t ret_content[8]);

#endif
