#include "admin/bucket_id.h"

#include "common/base/str.h"

#include <stddef.h>

/* The digits of 2025-12-18T10:30:59.123Z, without what stands between. */
char *
admin_bucket_id(char dst[ADMIN_BUCKET_ID_MAX], Toc__V1__BucketSize size,
                int64_t ms)
{
    char text[TOC_TIME_TEXT_MAX];
    size_t digits = 6 + 2 * (size_t)size, n = 0;

    toc_time_format(text, ms);
    for (const char *at = text; *at != '\0' && n < digits; at++)
        if (*at >= '0' && *at <= '9' && n < ADMIN_BUCKET_ID_MAX - 1)
            dst[n++] = *at;
    dst[n] = '\0';
    return dst;
}
