/*
 * Goal: what is typed is understood or refused, what is shown is safe and
 * lines up.
 * Method: tables of inputs with what must come out, written by hand.
 */
#include "admin/ctl/text.h"

#include "admin/ctl/table.h"
#include "tests/support/toc_check.h"

#include <stdio.h>
#include <string.h>

static struct toc_arena arena;

START_TEST(durations_read)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"90s", 90000},
        {"1h30m", 5400000},
        {"250ms", 250},
        {"2d", 172800000},
        {"1.5h", 5400000},
        {"0s", 0},
        {"1m1ms", 60001},
        {"0.0001s", 1}, /* rounded up */
        {"3650000d", INT64_C(315360000000000)},
    };
    static const char *const bad[] = {
        "",      "s",        "5",
        "-5s",   "5 s",      "1h30",
        "1.s",   ".5s",      "1e3s",
        "5S",    "5sec",     "99999999999999d",
        "1h-2m", "3653000d", "1000000000000000000000s",
    };
    int64_t ms;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(ctl_duration_parse(toc_str_of(good[i].text), &ms), "%s",
                      good[i].text);
        ck_assert_int_eq(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!ctl_duration_parse(toc_str_of(bad[i]), &ms), "%s",
                      bad[i]);
}
END_TEST

START_TEST(durations_shown)
{
    static const struct {
        int64_t ms;
        const char *text;
    } all[] = {
        {0, "0ms"},         {250, "250ms"},     {1000, "1s"},
        {1500, "1s500ms"},  {59999, "59s"},     {60000, "1m"},
        {252000, "4m12s"},  {5400000, "1h30m"}, {86400000, "1d"},
        {90000000, "1d1h"}, {172800000, "2d"},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ck_assert_str_eq(ctl_duration_text(&arena, all[i].ms), all[i].text);
    ck_assert_str_eq(ctl_relative(&arena, 252000, 0), "in 4m12s");
    ck_assert_str_eq(ctl_relative(&arena, 0, 3500), "3s ago");
    ck_assert_str_eq(ctl_relative(&arena, 5, 5), "now");
    ck_assert_str_eq(ctl_relative(&arena, 105, 5), "in 100ms");
}
END_TEST

static const char *
why_not(const char *text)
{
    struct ctl_ref ref;
    const char *why = NULL;

    ck_assert_msg(!ctl_ref_parse(&arena, text, &ref, &why), "%s was taken",
                  text);
    ck_assert_ptr_nonnull(why);
    return why;
}

START_TEST(refs)
{
    struct ctl_ref ref;
    const char *why = NULL;

    ck_assert(ctl_ref_parse(&arena, "01ARZ3NDEKTSV4RRFFQ69G5FAV", &ref, &why));
    ck_assert(ref.by_id);
    ck_assert_str_eq(ref.task_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    ck_assert(ctl_ref_parse(&arena, "order/42", &ref, &why));
    ck_assert(!ref.by_id);
    ck_assert_uint_eq(ref.parts, 2);
    ck_assert_str_eq(ref.biz_type, "order");
    ck_assert_str_eq(ref.biz_id, "42");
    ck_assert_str_eq(ref.name, "");
    ck_assert(ctl_ref_parse(&arena, "a%2Fb/100%25/n%20m", &ref, &why));
    ck_assert_str_eq(ref.biz_type, "a/b");
    ck_assert_str_eq(ref.biz_id, "100%");
    ck_assert_str_eq(ref.name, "n m");
    /* 26 characters, but with a slash: a key. */
    ck_assert(ctl_ref_parse(&arena, "01ARZ3NDEKTSV4RRFFQ69/5FAV", &ref, &why));
    ck_assert(!ref.by_id);

    ck_assert_ptr_nonnull(strstr(why_not(""), "neither"));
    ck_assert_ptr_nonnull(strstr(why_not("order"), "neither"));
    ck_assert_ptr_nonnull(strstr(why_not("81ARZ3NDEKTSV4RRFFQ69G5FAV"),
                                 "neither")); /* over 128 bits */
    ck_assert_ptr_nonnull(strstr(why_not("/42"), "biz_type is empty"));
    ck_assert_ptr_nonnull(strstr(why_not("order/"), "biz_id is empty"));
    ck_assert_ptr_nonnull(strstr(why_not("a/b/c/d"), "three parts"));
    ck_assert_ptr_nonnull(strstr(why_not("a/b%2"), "hexadecimal"));
    ck_assert_ptr_nonnull(strstr(why_not("a/b%zz"), "hexadecimal"));
    ck_assert_ptr_nonnull(strstr(why_not("a/b%00"), "%00"));
    ck_assert_ptr_nonnull(strstr(why_not("a/%ff"), "UTF-8"));
}
END_TEST

START_TEST(keys_come_back)
{
    static const char *const parts[] = {
        "order",     "a/b",  "100%",     "\xe8\xae\xa2\xe5\x8d\x95",
        "a\x1b[2Jb", "x\ny", "\xc2\x9b", "\xe2\x80\xae",
        "%2F",
    };
    size_t n = sizeof parts / sizeof parts[0];

    for (size_t i = 0; i < n; i++) {
        const char *text =
            ctl_key_text(&arena, parts[i], parts[n - 1 - i], parts[i]);
        struct ctl_ref ref;
        const char *why = NULL;
        ck_assert_msg(ctl_is_text(toc_str_of(text)), "%s", text);
        ck_assert_msg(ctl_ref_parse(&arena, text, &ref, &why), "%s: %s", text,
                      why);
        ck_assert_str_eq(ref.biz_type, parts[i]);
        ck_assert_str_eq(ref.biz_id, parts[n - 1 - i]);
        ck_assert_str_eq(ref.name, parts[i]);
    }
    ck_assert_str_eq(ctl_key_text(&arena, "order", "42", ""), "order/42");
}
END_TEST

START_TEST(nothing_that_a_terminal_acts_on)
{
    ck_assert_str_eq(ctl_safe(&arena, TOC_STR("plain \xc3\xa4")),
                     "plain \xc3\xa4");
    ck_assert_str_eq(ctl_safe(&arena, TOC_STR("a\x1b[31m\r\n\t\x7f\0b")),
                     "a\\x1b[31m\\r\\n\\t\\x7f\\x00b");
    ck_assert_str_eq(ctl_safe(&arena, TOC_STR("\xc2\x9b"
                                              "2J")),
                     "\\u009b2J");
    ck_assert_str_eq(ctl_safe(&arena, TOC_STR("\xe2\x80\xaetxt")),
                     "\\u202etxt");
    ck_assert_str_eq(ctl_safe(&arena, TOC_STR("\xff\xc3")), "\\xff\\xc3");
    ck_assert_str_eq(ctl_safe_cut(&arena, TOC_STR("abcdef"), 6), "abcdef");
    ck_assert_str_eq(ctl_safe_cut(&arena, TOC_STR("abcdefg"), 6),
                     "abcde\xe2\x80\xa6");
    ck_assert(ctl_is_text(TOC_STR("a\n\tb")));
    ck_assert(!ctl_is_text(TOC_STR("a\rb")));
    ck_assert(!ctl_is_text(TOC_STR("\xff")));
}
END_TEST

START_TEST(tables_line_up)
{
    static const char *const heads[] = {"KEY", "STATE", "NOTE"};
    const char *rows[][3] = {
        {"order/1", "DEAD", ""},
        {"\xe8\xae\xa2\xe5\x8d\x95/1", "SUCCESS", "x"}, /* two wide, then 2 */
    };
    struct ctl_table table;
    static char *text;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    ctl_table_init(&table, &arena, heads, 3);
    ctl_table_row(&table, rows[0]);
    ctl_table_row(&table, rows[1]);
    ctl_table_print(&table, out);
    ctl_table_row(&table, rows[0]); /* a second page: no second heading */
    ctl_table_print(&table, out);
    fclose(out);
    ck_assert_str_eq(text, "KEY      STATE    NOTE\n"
                           "order/1  DEAD\n"
                           "\xe8\xae\xa2\xe5\x8d\x95/1   SUCCESS  x\n"
                           "order/1  DEAD\n");
}
END_TEST

TOC_CHECK_MAIN("text", durations_read, durations_shown, refs, keys_come_back,
               nothing_that_a_terminal_acts_on, tables_line_up)
