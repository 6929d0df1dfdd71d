/*
 * Goal: times as text are right over all years, never rounded down, and what
 * is not RFC 3339 is refused.
 * Method: known values, tables of bad ones, and round trips over a walk through
 * all 10,000 years checked against a calendar that counts day by day.
 */
#include "common/base/str.h"

#include "tests/support/toc_check.h"

#define MS_PER_DAY INT64_C(86400000)
#define MS_MIN INT64_C(-62135596800000)
#define MS_MAX INT64_C(253402300799999)

static int64_t
parsed(const char *text)
{
    int64_t ms;

    ck_assert_msg(toc_time_parse(toc_str_of(text), &ms), "\"%s\"", text);
    return ms;
}

START_TEST(known_times)
{
    char text[TOC_TIME_TEXT_MAX];

    ck_assert_str_eq(toc_time_format(text, 0), "1970-01-01T00:00:00.000Z");
    ck_assert_str_eq(toc_time_format(text, -1), "1969-12-31T23:59:59.999Z");
    ck_assert_str_eq(toc_time_format(text, INT64_C(951782400000)),
                     "2000-02-29T00:00:00.000Z");
    ck_assert_str_eq(toc_time_format(text, INT64_C(1796119200123)),
                     "2026-12-01T10:00:00.123Z");
    ck_assert_str_eq(toc_time_format(text, MS_MIN), "0001-01-01T00:00:00.000Z");
    ck_assert_str_eq(toc_time_format(text, MS_MAX), "9999-12-31T23:59:59.999Z");
    ck_assert_int_eq(parsed("1970-01-01T00:00:00Z"), 0);
    ck_assert_int_eq(parsed("2026-12-01T10:00:00.123Z"),
                     INT64_C(1796119200123));
    ck_assert_int_eq(parsed("0001-01-01T00:00:00Z"), MS_MIN);
    ck_assert_int_eq(parsed("9999-12-31T23:59:59.999Z"), MS_MAX);
}
END_TEST

START_TEST(out_of_the_years)
{
    char text[TOC_TIME_TEXT_MAX];

    ck_assert_str_eq(toc_time_format(text, MS_MAX + 1), "@253402300800000ms");
    ck_assert_str_eq(toc_time_format(text, MS_MIN - 1), "@-62135596800001ms");
    ck_assert_str_eq(toc_time_format(text, INT64_MIN),
                     "@-9223372036854775808ms");
}
END_TEST

START_TEST(offsets_and_small_letters)
{
    ck_assert_int_eq(parsed("1970-01-01T01:00:00+01:00"), 0);
    ck_assert_int_eq(parsed("1969-12-31T18:30:00-05:30"), 0);
    ck_assert_int_eq(parsed("1970-01-01t00:00:00z"), 0);
    ck_assert_int_eq(parsed("1970-01-01T00:00:00-00:00"), 0);
    ck_assert_int_eq(parsed("1970-01-01T23:59:00+23:59"), 0);
    ck_assert_int_eq(parsed("9999-12-31T00:59:59.999-23:00"), MS_MAX);
}
END_TEST

START_TEST(fractions_are_rounded_up)
{
    ck_assert_int_eq(parsed("1970-01-01T00:00:00.1Z"), 100);
    ck_assert_int_eq(parsed("1970-01-01T00:00:00.000000000Z"), 0);
    ck_assert_int_eq(parsed("1970-01-01T00:00:00.000000001Z"), 1);
    ck_assert_int_eq(parsed("1970-01-01T00:00:00.001000000Z"), 1);
    ck_assert_int_eq(parsed("1970-01-01T00:00:00.001000001Z"), 2);
    ck_assert_int_eq(parsed("1970-01-01T00:00:00.9999Z"), 1000);
    ck_assert_int_eq(parsed("1969-12-31T23:59:59.9991Z"), 0);
}
END_TEST

START_TEST(leap_seconds_are_the_next_day)
{
    int64_t ms;

    ck_assert_int_eq(parsed("2016-12-31T23:59:60Z"),
                     parsed("2017-01-01T00:00:00Z"));
    ck_assert_int_eq(parsed("2016-12-31T23:59:60.999Z"),
                     parsed("2017-01-01T00:00:00Z"));
    ck_assert_int_eq(parsed("2017-01-01T00:59:60+01:00"),
                     parsed("2017-01-01T00:00:00Z"));
    ck_assert(!toc_time_parse(TOC_STR("2016-12-31T22:59:60Z"), &ms));
    ck_assert(!toc_time_parse(TOC_STR("2016-12-31T23:59:60+01:00"), &ms));
    ck_assert(!toc_time_parse(TOC_STR("2016-12-31T23:59:61Z"), &ms));
}
END_TEST

START_TEST(what_is_refused)
{
    static const char *const bad[] = {
        "",
        "1970-01-01",
        "1970-01-01T00:00:00",
        "1970-01-01 00:00:00Z",
        "1970-01-01T00:00:00Zx",
        " 1970-01-01T00:00:00Z",
        "1970-1-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "-001-01-01T00:00:00Z",
        "+970-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "1970-00-01T00:00:00Z",
        "1970-13-01T00:00:00Z",
        "1970-01-00T00:00:00Z",
        "1970-01-32T00:00:00Z",
        "1970-04-31T00:00:00Z",
        "1970-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2000-02-30T00:00:00Z",
        "1970-01-01T24:00:00Z",
        "1970-01-01T00:60:00Z",
        "1970-01-01T-1:00:00Z",
        "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00,5Z",
        "1970-01-01T00:00:00.1234567890Z",
        "1970-01-01T00:00:00+0100",
        "1970-01-01T00:00:00+24:00",
        "1970-01-01T00:00:00+01:60",
        "1970-01-01T00:00:00+1:00",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "9999-12-31T23:59:59.9991Z",
        "9999-12-31T23:59:60Z",
    };
    int64_t ms = 42;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!toc_time_parse(toc_str_of(bad[i]), &ms), "\"%s\"",
                      bad[i]);
    ck_assert(!toc_time_parse(TOC_STR("1970-01-01T00:00:00Z\0"), &ms));
    ck_assert_int_eq(ms, 42);
}
END_TEST

static int
days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

START_TEST(every_month_of_all_years)
{
    int64_t ms = MS_MIN;

    for (int year = 1; year <= 9999; year++) {
        for (int month = 1; month <= 12; month++) {
            char text[TOC_TIME_TEXT_MAX], want[TOC_TIME_TEXT_MAX];
            int64_t last = ms + days_in(year, month) * MS_PER_DAY - 1, back;
            toc_format(want, sizeof want, "%04d-%02d-01T00:00:00.000Z", year,
                       month);
            ck_assert_str_eq(toc_time_format(text, ms), want);
            toc_format(want, sizeof want, "%04d-%02d-%02dT23:59:59.999Z", year,
                       month, days_in(year, month));
            ck_assert_str_eq(toc_time_format(text, last), want);
            ck_assert(toc_time_parse(toc_str_of(text), &back));
            ck_assert_int_eq(back, last);
            ms = last + 1;
        }
    }
    ck_assert_int_eq(ms, MS_MAX + 1);
}
END_TEST

TOC_CHECK_MAIN("str_time", known_times, out_of_the_years,
               offsets_and_small_letters, fractions_are_rounded_up,
               leap_seconds_are_the_next_day, what_is_refused,
               every_month_of_all_years)
