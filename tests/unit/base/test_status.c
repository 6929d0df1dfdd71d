/*
 * Goal: outcomes map to their wire codes and errors are filled safely.
 * Method: every row of the map, and texts that are too long, of several lines
 * or made from the error itself.
 */
#include "common/base/status.h"

#include "tests/support/toc_check.h"

#include <string.h>

START_TEST(codes_are_those_of_google_rpc)
{
    ck_assert_int_eq(TOC_OK, 0);
    ck_assert_int_eq(TOC_INVALID, 3);
    ck_assert_int_eq(TOC_CONFLICT, 10);
    ck_assert_int_eq(TOC_UNAUTHENTICATED, 16);
}
END_TEST

START_TEST(every_status_has_a_text_of_its_own)
{
    for (int a = 0; a <= 16; a++)
        for (int b = 0; b < a; b++)
            ck_assert_str_ne(toc_status_text((enum toc_status)a),
                             toc_status_text((enum toc_status)b));
    ck_assert_str_eq(toc_status_text((enum toc_status)99), "unknown");
}
END_TEST

START_TEST(only_what_may_pass_is_retryable)
{
    unsigned retryable = 0;

    for (int st = 0; st <= 16; st++)
        if (toc_status_retryable((enum toc_status)st))
            retryable |= 1u << st;
    ck_assert_uint_eq(retryable, 1u << TOC_DEADLINE | 1u << TOC_EXHAUSTED |
                                     1u << TOC_CONFLICT |
                                     1u << TOC_UNAVAILABLE);
    ck_assert(!toc_status_retryable((enum toc_status)99));
}
END_TEST

START_TEST(set_fills_and_returns)
{
    struct toc_error err;

    ck_assert_int_eq(
        toc_error_set(&err, TOC_UNAVAILABLE, "mysql", 2006, "gone %d", 7),
        TOC_UNAVAILABLE);
    ck_assert_int_eq(err.status, TOC_UNAVAILABLE);
    ck_assert_str_eq(err.source, "mysql");
    ck_assert_int_eq(err.native, 2006);
    ck_assert_str_eq(err.msg, "gone 7");
    ck_assert_int_eq(toc_error_set(NULL, TOC_RANGE, "x", 0, "y"), TOC_RANGE);
}
END_TEST

START_TEST(set_cuts_what_is_too_long)
{
    struct toc_error err;
    char text[1000];

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)toc_error_set(&err, TOC_INVALID, "x", 0, "%s", text);
    ck_assert_uint_eq(strlen(err.msg), sizeof err.msg - 1);
}
END_TEST

START_TEST(set_makes_one_line)
{
    struct toc_error err;

    (void)toc_error_set(&err, TOC_INVALID, "x", 0, "a\r\nb\n\n");
    ck_assert_str_eq(err.msg, "a  b");
    (void)toc_error_set(&err, TOC_INVALID, "x", 0, "%s", "\n");
    ck_assert_str_eq(err.msg, "");
}
END_TEST

START_TEST(set_may_quote_the_error_it_fills)
{
    struct toc_error err;

    (void)toc_error_set(&err, TOC_INVALID, "x", 0, "inner");
    (void)toc_error_set(&err, TOC_INVALID, "x", 0, "outer: %s", err.msg);
    ck_assert_str_eq(err.msg, "outer: inner");
}
END_TEST

TOC_CHECK_MAIN("status", codes_are_those_of_google_rpc,
               every_status_has_a_text_of_its_own,
               only_what_may_pass_is_retryable, set_fills_and_returns,
               set_cuts_what_is_too_long, set_makes_one_line,
               set_may_quote_the_error_it_fills)
