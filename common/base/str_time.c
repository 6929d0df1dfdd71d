/* RFC 3339 <-> milliseconds since 1970 UTC; part of common/base/str.h. */
#include "common/base/str.h"

#define MS_PER_SEC INT64_C(1000)
#define SEC_PER_DAY INT64_C(86400)
#define MS_PER_DAY (SEC_PER_DAY * MS_PER_SEC)
#define MS_MIN INT64_C(-62135596800000) /* 0001-01-01T00:00:00.000Z */
#define MS_MAX INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

/* Days between 1970-01-01 and a date of the Gregorian calendar, and back, for
 * years from 0: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"
 * (days_from_civil, civil_from_days). A year begins in March there, so that
 * the leap day is its last. */
static int64_t
days_of_date(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t month_of_year = month > 2 ? month - 3 : month + 9;
    int64_t day_of_year = (153 * month_of_year + 2) / 5 + day - 1;
    int64_t day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + day_of_era - 719468;
}

static void
date_of_days(int64_t days, int64_t *ret_year, int64_t *ret_month,
             int64_t *ret_day)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;

    *ret_day = doy - (153 * mp + 2) / 5 + 1;
    *ret_month = mp < 10 ? mp + 3 : mp - 9;
    *ret_year = yoe + era * 400 + (*ret_month <= 2);
}

char *
toc_time_format(char dst[TOC_TIME_TEXT_MAX], int64_t wall_ms)
{
    int64_t days, ms, year, month, day;

    if (wall_ms < MS_MIN || wall_ms > MS_MAX) {
        toc_format(dst, TOC_TIME_TEXT_MAX, "@%lldms", (long long)wall_ms);
        return dst;
    }
    days = wall_ms / MS_PER_DAY;
    ms = wall_ms % MS_PER_DAY;
    if (ms < 0) {
        days--;
        ms += MS_PER_DAY;
    }
    date_of_days(days, &year, &month, &day);
    toc_format(dst, TOC_TIME_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
               (int)year, (int)month, (int)day, (int)(ms / 3600000),
               (int)(ms / 60000 % 60), (int)(ms / 1000 % 60), (int)(ms % 1000));
    return dst;
}

/* Reads exactly n digits off the front, within [min, max]. */
static bool
take_number(struct toc_str *s, size_t n, int64_t min, int64_t max,
            int64_t *ret_value)
{
    struct toc_str digits = {s->ptr, n};

    if (s->len < n || s->ptr[0] == '-')
        return false;
    if (!toc_parse_i64(digits, min, max, ret_value))
        return false;
    s->ptr += n;
    s->len -= n;
    return true;
}

static bool
take_char(struct toc_str *s, char upper, char lower)
{
    if (s->len == 0 || (s->ptr[0] != upper && s->ptr[0] != lower))
        return false;
    s->ptr++;
    s->len--;
    return true;
}

static bool
take_date(struct toc_str *s, int64_t *ret_days)
{
    static const int8_t lengths[] = {31, 28, 31, 30, 31, 30,
                                     31, 31, 30, 31, 30, 31};
    int64_t year, month, day, last;
    bool leap;

    if (!take_number(s, 4, 1, 9999, &year) || !take_char(s, '-', '-') ||
        !take_number(s, 2, 1, 12, &month) || !take_char(s, '-', '-'))
        return false;
    leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    last = month == 2 && leap ? 29 : lengths[month - 1];
    if (!take_number(s, 2, 1, last, &day))
        return false;
    *ret_days = days_of_date(year, month, day);
    return true;
}

/* Optional ".d" to ".ddddddddd", rounded up to milliseconds. */
static bool
take_fraction(struct toc_str *s, int64_t *ret_ms)
{
    int64_t ns = 0, scale = 100000000;
    size_t n = 0;

    *ret_ms = 0;
    if (!take_char(s, '.', '.'))
        return true;
    for (; s->len > 0 && s->ptr[0] >= '0' && s->ptr[0] <= '9'; n++) {
        if (n == 9)
            return false;
        ns += (s->ptr[0] - '0') * scale;
        scale /= 10;
        s->ptr++;
        s->len--;
    }
    *ret_ms = (ns + 999999) / 1000000;
    return n > 0;
}

static bool
take_offset(struct toc_str *s, int64_t *ret_sec)
{
    int64_t hours, minutes, sign = 1;

    *ret_sec = 0;
    if (take_char(s, 'Z', 'z'))
        return true;
    if (take_char(s, '-', '-'))
        sign = -1;
    else if (!take_char(s, '+', '+'))
        return false;
    if (!take_number(s, 2, 0, 23, &hours) || !take_char(s, ':', ':') ||
        !take_number(s, 2, 0, 59, &minutes))
        return false;
    *ret_sec = sign * (hours * 3600 + minutes * 60);
    return true;
}

bool
toc_time_parse(struct toc_str s, int64_t *ret_wall_ms)
{
    int64_t days, hour, minute, second, ms, offset, at, wall;

    if (!take_date(&s, &days) || !take_char(&s, 'T', 't') ||
        !take_number(&s, 2, 0, 23, &hour) || !take_char(&s, ':', ':') ||
        !take_number(&s, 2, 0, 59, &minute) || !take_char(&s, ':', ':') ||
        !take_number(&s, 2, 0, 60, &second) || !take_fraction(&s, &ms) ||
        !take_offset(&s, &offset) || s.len != 0)
        return false;
    at = days * SEC_PER_DAY + hour * 3600 + minute * 60 + second - offset;
    if (second == 60) {
        /* Leap seconds end a day in UTC; all of it is the next day's start. */
        if (at % SEC_PER_DAY != 0)
            return false;
        ms = 0;
    }
    wall = at * MS_PER_SEC + ms;
    if (wall < MS_MIN || wall > MS_MAX)
        return false;
    *ret_wall_ms = wall;
    return true;
}
