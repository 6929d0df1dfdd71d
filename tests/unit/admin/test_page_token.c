/*
 * Goal: a page token brings back the place it was made for, and only with the
 * same list and filter.
 * Method: made and read; every character changed once; other filters and lists.
 */
#include "admin/page_token.h"

#include "tests/support/toc_check.h"
#include "toc/v1/admin.pb-c.h"

#include <string.h>

static struct toc_arena arena;

static struct toc_cursor
place(void)
{
    struct toc_cursor cursor = {
        .set = true, .slice = 1023, .slot_ms = -INT64_C(1125899906842624)};

    for (uint8_t i = 0; i < sizeof cursor.id.b; i++)
        cursor.id.b[i] = (uint8_t)(i * 17);
    return cursor;
}

START_TEST(comes_back)
{
    Toc__V1__TaskFilter filter = TOC__V1__TASK_FILTER__INIT;
    struct toc_cursor made = place(), read;
    char *token;

    filter.biz_type = "order";
    token = admin_page_token(&arena, "tasks", &filter.base, &made);
    ck_assert(admin_page_token_parse(token, "tasks", &filter.base, &read));
    ck_assert(read.set);
    ck_assert_uint_eq(read.slice, made.slice);
    ck_assert_int_eq(read.slot_ms, made.slot_ms);
    ck_assert_mem_eq(read.id.b, made.id.b, sizeof read.id.b);
    /* No filter and an empty one are the same question. */
    token = admin_page_token(&arena, "tasks", NULL, &made);
    filter.biz_type = "";
    ck_assert(admin_page_token_parse(token, "tasks", &filter.base, &read));
}
END_TEST

START_TEST(the_beginning_and_the_end_are_empty)
{
    struct toc_cursor cursor = {.set = false};

    ck_assert_str_eq(admin_page_token(&arena, "tasks", NULL, &cursor), "");
    cursor.set = true;
    ck_assert(admin_page_token_parse("", "tasks", NULL, &cursor));
    ck_assert(!cursor.set);
}
END_TEST

START_TEST(another_question_refuses_it)
{
    Toc__V1__TaskFilter filter = TOC__V1__TASK_FILTER__INIT;
    struct toc_cursor cursor = place();
    char *token = admin_page_token(&arena, "tasks", &filter.base, &cursor);

    ck_assert(!admin_page_token_parse(token, "dead", &filter.base, &cursor));
    filter.biz_type = "order";
    ck_assert(!admin_page_token_parse(token, "tasks", &filter.base, &cursor));
    ck_assert(!cursor.set);
}
END_TEST

START_TEST(a_changed_one_is_refused)
{
    struct toc_cursor cursor = place();
    char *token = admin_page_token(&arena, "tasks", NULL, &cursor);

    for (size_t i = 0; token[i] != '\0'; i++) {
        char was = token[i];
        token[i] = was == '0' ? '1' : '0';
        ck_assert_msg(!admin_page_token_parse(token, "tasks", NULL, &cursor),
                      "character %zu does not matter", i);
        token[i] = was;
    }
    ck_assert(!admin_page_token_parse("x", "tasks", NULL, &cursor));
    ck_assert(!admin_page_token_parse("00", "tasks", NULL, &cursor));
    token[strlen(token) - 2] = '\0';
    ck_assert(!admin_page_token_parse(token, "tasks", NULL, &cursor));
}
END_TEST

TOC_CHECK_MAIN("page_token", comes_back, the_beginning_and_the_end_are_empty,
               another_question_refuses_it, a_changed_one_is_refused)
