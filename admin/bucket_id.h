/*
 * Names of buckets: digits of UTC, as many as the size needs. 20251218 is a
 * day, 2025121810 an hour of it, 202512181030 a minute, 20251218103059 a
 * second.
 *
 * Threads: any. Pure.
 */
#ifndef TOC_ADMIN_BUCKET_ID_H
#define TOC_ADMIN_BUCKET_ID_H

#include "toc/v1/admin.pb-c.h"

#include <stdint.h>

#define ADMIN_BUCKET_ID_MAX 16 /* with the 0 at the end */

/* Of the bucket that the time (years 0001 to 9999) lies in. Returns dst. */
char *admin_bucket_id(char dst[ADMIN_BUCKET_ID_MAX], Toc__V1__BucketSize size,
                      int64_t ms);

#endif
