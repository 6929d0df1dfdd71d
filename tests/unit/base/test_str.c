/*
 * Goal: borrowed texts and checked parsing hold at their edges.
 * Method: tables of inputs on both sides of each rule.
 */
#include "common/base/str.h"

#include "tests/support/toc_check.h"

#include <errno.h>
#include <string.h>

START_TEST(compare)
{
    struct toc_str none = {NULL, 0};

    ck_assert(toc_str_eq(none, TOC_STR("")));
    ck_assert(toc_str_eq(toc_str_of(NULL), none));
    ck_assert(toc_str_eq(TOC_STR("a\0b"), TOC_STR("a\0b")));
    ck_assert(!toc_str_eq(TOC_STR("a\0b"), TOC_STR("a\0c")));
    ck_assert(!toc_str_eq(TOC_STR("a"), TOC_STR("ab")));
    ck_assert_int_eq(toc_str_cmp(none, TOC_STR("")), 0);
    ck_assert_int_lt(toc_str_cmp(none, TOC_STR("a")), 0);
    ck_assert_int_lt(toc_str_cmp(TOC_STR("a"), TOC_STR("ab")), 0);
    ck_assert_int_gt(toc_str_cmp(TOC_STR("b"), TOC_STR("ab")), 0);
    ck_assert_int_gt(toc_str_cmp(TOC_STR("\xff"), TOC_STR("a")), 0);
    ck_assert(toc_str_starts(TOC_STR("abc"), TOC_STR("ab")));
    ck_assert(toc_str_starts(none, none));
    ck_assert(!toc_str_starts(TOC_STR("ab"), TOC_STR("abc")));
}
END_TEST

START_TEST(next_gives_every_part)
{
    struct toc_str rest = TOC_STR("a,,b,"), part;

    ck_assert(toc_str_next(&rest, ',', &part));
    TOC_ASSERT_STR(part, "a");
    ck_assert(toc_str_next(&rest, ',', &part));
    TOC_ASSERT_STR(part, "");
    ck_assert(toc_str_next(&rest, ',', &part));
    TOC_ASSERT_STR(part, "b");
    ck_assert(toc_str_next(&rest, ',', &part));
    TOC_ASSERT_STR(part, "");
    ck_assert(!toc_str_next(&rest, ',', &part));
}
END_TEST

START_TEST(next_of_nothing)
{
    struct toc_str rest = {NULL, 0}, part;

    ck_assert(!toc_str_next(&rest, ',', &part));
    rest = TOC_STR("");
    ck_assert(toc_str_next(&rest, ',', &part));
    ck_assert_uint_eq(part.len, 0);
    ck_assert(!toc_str_next(&rest, ',', &part));
}
END_TEST

START_TEST(utf8)
{
    static const struct {
        const char *text;
        size_t len;
        bool valid;
    } cases[] = {
        {"", 0, true},
        {"abc\0d", 5, true},
        {"\x7f", 1, true},
        {"\xc2\x80", 2, true},          /* U+0080 */
        {"\xdf\xbf", 2, true},          /* U+07FF */
        {"\xe0\xa0\x80", 3, true},      /* U+0800 */
        {"\xed\x9f\xbf", 3, true},      /* U+D7FF */
        {"\xee\x80\x80", 3, true},      /* U+E000 */
        {"\xef\xbf\xbf", 3, true},      /* U+FFFF */
        {"\xf0\x90\x80\x80", 4, true},  /* U+10000 */
        {"\xf4\x8f\xbf\xbf", 4, true},  /* U+10FFFF */
        {"\x80", 1, false},             /* continuation alone */
        {"\xc0\x80", 2, false},         /* overlong NUL */
        {"\xc1\xbf", 2, false},         /* overlong */
        {"\xe0\x9f\xbf", 3, false},     /* overlong */
        {"\xf0\x8f\xbf\xbf", 4, false}, /* overlong */
        {"\xed\xa0\x80", 3, false},     /* U+D800 */
        {"\xed\xbf\xbf", 3, false},     /* U+DFFF */
        {"\xf4\x90\x80\x80", 4, false}, /* U+110000 */
        {"\xf5\x80\x80\x80", 4, false},
        {"\xff", 1, false},
        {"\xc2", 1, false},         /* cut */
        {"\xe2\x82", 2, false},     /* cut */
        {"\xf0\x9f\x98", 3, false}, /* cut */
        {"\xe2\x28\xa1", 3, false},
        {"\xe2\x82\x28", 3, false},
        {"a\xc2\x80\xff", 4, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(toc_utf8_valid((struct toc_str){
                          cases[i].text, cases[i].len}) == cases[i].valid,
                      "case %zu", i);
    ck_assert_uint_eq(toc_utf8_len(TOC_STR("\xf0\x9f\x98\x80x")), 4);
    ck_assert_uint_eq(toc_utf8_len(TOC_STR("\xff")), 0);
    ck_assert_uint_eq(toc_utf8_len((struct toc_str){NULL, 0}), 0);
}
END_TEST

START_TEST(control)
{
    ck_assert(!toc_str_has_control(TOC_STR("")));
    ck_assert(!toc_str_has_control(TOC_STR(" ~\xc2\xa0\xe2\x82\x80")));
    ck_assert(toc_str_has_control(TOC_STR("a\0")));
    ck_assert(toc_str_has_control(TOC_STR("a\x1f")));
    ck_assert(toc_str_has_control(TOC_STR("a\x7f")));
    ck_assert(toc_str_has_control(TOC_STR("\xc2\x80")));
    ck_assert(toc_str_has_control(TOC_STR("\xc2\x9f")));
    ck_assert(!toc_str_has_control(TOC_STR("\xc2"))); /* cut: not UTF-8 */
}
END_TEST

START_TEST(numbers)
{
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1a",
                                      "0x1",
                                      "--1",
                                      "1-",
                                      "1.0",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999999"};
    int64_t value = 77;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(
            !toc_parse_i64(toc_str_of(bad[i]), INT64_MIN, INT64_MAX, &value),
            "\"%s\"", bad[i]);
    ck_assert_int_eq(value, 77);
    ck_assert(toc_parse_i64(TOC_STR("-0"), 0, 0, &value));
    ck_assert_int_eq(value, 0);
    ck_assert(toc_parse_i64(TOC_STR("007"), 0, 9, &value));
    ck_assert_int_eq(value, 7);
    ck_assert(toc_parse_i64(TOC_STR("9223372036854775807"), INT64_MIN,
                            INT64_MAX, &value));
    ck_assert(value == INT64_MAX);
    ck_assert(toc_parse_i64(TOC_STR("-9223372036854775808"), INT64_MIN,
                            INT64_MAX, &value));
    ck_assert(value == INT64_MIN);
    ck_assert(!toc_parse_i64(TOC_STR("10"), 0, 9, &value));
    ck_assert(!toc_parse_i64(TOC_STR("-1"), 0, 9, &value));
    ck_assert(!toc_parse_i64((struct toc_str){NULL, 0}, 0, 9, &value));
    ck_assert(!toc_parse_i64(TOC_STR("1\0"), 0, 9, &value));
}
END_TEST

START_TEST(hex)
{
    uint8_t out[3] = {9, 9, 9};

    ck_assert(toc_parse_hex(TOC_STR("00fFa5"), out, 3));
    ck_assert_mem_eq(out, "\x00\xff\xa5", 3);
    ck_assert(!toc_parse_hex(TOC_STR("00fFa"), out, 3));
    ck_assert(!toc_parse_hex(TOC_STR("00fFa5a"), out, 3));
    ck_assert(!toc_parse_hex(TOC_STR("0000g0"), out, 3));
    ck_assert_mem_eq(out, "\x00\xff\xa5", 3);
    ck_assert(toc_parse_hex(TOC_STR(""), out, 0));
}
END_TEST

START_TEST(copies_are_cut_and_terminated)
{
    char out[4];

    ck_assert_str_eq(toc_copy(out, sizeof out, TOC_STR("abcdef")), "abc");
    ck_assert_str_eq(toc_copy(out, sizeof out, TOC_STR("abc")), "abc");
    ck_assert_str_eq(toc_copy(out, sizeof out, (struct toc_str){NULL, 0}), "");
    ck_assert_str_eq(toc_copy(out, 1, TOC_STR("a")), "");
    ck_assert_uint_eq(toc_format(out, sizeof out, "%d", 12345), 3);
    ck_assert_str_eq(out, "123");
    ck_assert_uint_eq(toc_format(out, sizeof out, "%d", 12), 2);
    ck_assert_str_eq(out, "12");
}
END_TEST

START_TEST(errno_texts)
{
    ck_assert_str_eq(toc_errno_text(ENOENT), "No such file or directory");
    ck_assert_uint_gt(strlen(toc_errno_text(123456)), 0);
}
END_TEST

TOC_CHECK_MAIN("str", compare, next_gives_every_part, next_of_nothing, utf8,
               control, numbers, hex, copies_are_cut_and_terminated,
               errno_texts)
