/*
 * Goal: a bucket's name is its time in UTC, in as many digits as the size
 * needs, also where days, months and years end.
 * Method: a table of times and names.
 */
#include "admin/bucket_id.h"

#include "common/base/str.h"
#include "tests/support/toc_check.h"

#define DAY TOC__V1__BUCKET_SIZE__BUCKET_SIZE_DAY
#define HOUR TOC__V1__BUCKET_SIZE__BUCKET_SIZE_HOUR
#define MINUTE TOC__V1__BUCKET_SIZE__BUCKET_SIZE_MINUTE
#define SECOND TOC__V1__BUCKET_SIZE__BUCKET_SIZE_SECOND

START_TEST(names)
{
    static const struct {
        const char *time;
        Toc__V1__BucketSize size;
        const char *id;
    } cases[] = {
        {"2025-12-18T10:30:59.999Z", DAY, "20251218"},
        {"2025-12-18T10:30:59.999Z", HOUR, "2025121810"},
        {"2025-12-18T10:30:59.999Z", MINUTE, "202512181030"},
        {"2025-12-18T10:30:59.999Z", SECOND, "20251218103059"},
        {"2025-12-31T23:59:59.999Z", MINUTE, "202512312359"},
        {"2026-01-01T00:00:00.000Z", MINUTE, "202601010000"},
        {"2025-12-31T23:59:59.999Z", DAY, "20251231"},
        {"2026-01-01T00:00:00.000Z", DAY, "20260101"},
        {"2028-02-29T23:59:59.999Z", HOUR, "2028022923"},
        {"2028-03-01T00:00:00.000Z", HOUR, "2028030100"},
        {"1970-01-01T00:00:00.000Z", SECOND, "19700101000000"},
        {"9999-12-31T23:59:59.999Z", SECOND, "99991231235959"},
    };
    char id[ADMIN_BUCKET_ID_MAX];
    int64_t ms;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert(toc_time_parse(toc_str_of(cases[i].time), &ms));
        ck_assert_str_eq(admin_bucket_id(id, cases[i].size, ms), cases[i].id);
    }
}
END_TEST

TOC_CHECK_MAIN("bucket_id", names)
