/*
 * Goal: buffers and arenas grow without losing a byte, never hand out NULL, and
 * impossible sizes end the process.
 * Method: small steps across the sizes where they grow, contents compared;
 * SIGABRT expected where a bug would be.
 */
#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/assert.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

#include "tests/support/toc_check.h"

#include <signal.h>
#include <string.h>

START_TEST(alloc_is_never_null)
{
    void *p = toc_alloc(0);
    char *text;

    ck_assert_ptr_nonnull(p);
    p = toc_realloc(p, 0);
    ck_assert_ptr_nonnull(p);
    toc_free(p);
    p = toc_calloc(0, 8);
    ck_assert_ptr_nonnull(p);
    toc_free(p);
    toc_free(NULL);
    text = toc_strndup("abcdef", 3);
    ck_assert_str_eq(text, "abc");
    toc_free(text);
}
END_TEST

START_TEST(assert_fails)
{
    TOC_ASSERT(1 + 1 == 3);
}
END_TEST

START_TEST(steal_leaves_nothing_to_free)
{
    char *kept;
    {
        TOC_AUTO_FREE char *text = toc_strdup("x");
        kept = toc_steal(&text);
        ck_assert_ptr_null(text);
    }
    ck_assert_str_eq(kept, "x");
    toc_free(kept);
}
END_TEST

START_TEST(buf_grows_byte_by_byte)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};

    for (int i = 0; i < 5000; i++) {
        toc_buf_char(&buf, (char)('a' + i % 26));
        ck_assert_uint_eq(buf.len, (size_t)i + 1);
        ck_assert(buf.data[buf.len] == '\0');
    }
    for (int i = 0; i < 5000; i++)
        ck_assert(buf.data[i] == 'a' + i % 26);
    toc_buf_reset(&buf);
    ck_assert_str_eq(buf.data, "");
    ck_assert_uint_eq(toc_buf_view(&buf).len, 0);
}
END_TEST

START_TEST(buf_writes_numbers)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};

    toc_buf_i64(&buf, INT64_MIN);
    toc_buf_char(&buf, ' ');
    toc_buf_i64(&buf, INT64_MAX);
    toc_buf_char(&buf, ' ');
    toc_buf_u64(&buf, UINT64_MAX);
    toc_buf_char(&buf, ' ');
    toc_buf_i64(&buf, 0);
    toc_buf_char(&buf, ' ');
    toc_buf_hex(&buf, "\x00\xff\x1a", 3);
    ck_assert_str_eq(buf.data, "-9223372036854775808 9223372036854775807 "
                               "18446744073709551615 0 00ff1a");
}
END_TEST

START_TEST(buf_prints_and_takes_nothing)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    char long_text[500];

    toc_buf_str(&buf, (struct toc_str){NULL, 0});
    ck_assert_str_eq(buf.data, "");
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    toc_buf_printf(&buf, "%d:%s", 7, long_text);
    ck_assert_uint_eq(buf.len, 501);
    ck_assert_str_eq(buf.data + 2, long_text);
    toc_buf_printf(&buf, "%s", "");
    ck_assert_uint_eq(buf.len, 501);
    toc_buf_done(&buf);
    ck_assert_ptr_null(buf.data);
    toc_buf_reset(&buf);
    toc_buf_done(&buf);
}
END_TEST

START_TEST(buf_of_impossible_size)
{
    struct toc_buf buf = {0};

    toc_buf_reserve(&buf, SIZE_MAX - 1);
}
END_TEST

START_TEST(arena_pieces_do_not_touch)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    unsigned char *pieces[300];

    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 300; i++) {
            pieces[i] = toc_arena_alloc(&arena, i * 7);
            ck_assert_uint_eq((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
            memset(pieces[i], (int)(i % 251), i * 7);
        }
        for (size_t i = 0; i < 300; i++)
            for (size_t k = 0; k < i * 7; k++)
                ck_assert_uint_eq(pieces[i][k], i % 251);
        ck_assert_uint_ge(arena.used, 7 * 299 * 300 / 2);
        toc_arena_reset(&arena);
        ck_assert_uint_eq(arena.used, 0);
    }
}
END_TEST

START_TEST(arena_takes_huge_pieces)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    char *big = toc_arena_alloc(&arena, 3000000);
    char *zero;

    memset(big, 1, 3000000);
    toc_arena_reset(&arena); /* and does not keep them */
    ck_assert_ptr_null(arena.blocks);
    zero = toc_arena_calloc(&arena, 100, 3);
    for (int i = 0; i < 300; i++)
        ck_assert_int_eq(zero[i], 0);
    toc_arena_reset(&arena);
    ck_assert_ptr_nonnull(arena.blocks);
}
END_TEST

START_TEST(arena_texts)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    struct toc_str copy = toc_arena_str(&arena, TOC_STR("a\0b"));

    ck_assert(toc_str_eq(copy, TOC_STR("a\0b")));
    ck_assert_str_eq(toc_arena_text(&arena, (struct toc_str){NULL, 0}), "");
    ck_assert_str_eq(toc_arena_printf(&arena, "%s-%d", "x", 5), "x-5");
}
END_TEST

static size_t allocated, freed;

static void *
count_alloc(size_t size)
{
    allocated++;
    return memset(malloc(size), 0xff, size); /* not cleared */
}

static void *
count_realloc(void *ptr, size_t size)
{
    allocated += ptr == NULL;
    return realloc(ptr, size);
}

static void
count_free(void *ptr)
{
    freed += ptr != NULL;
    free(ptr);
}

START_TEST(another_source)
{
    static const struct toc_allocator counting = {count_alloc, count_realloc,
                                                  count_free};
    char *text;
    int *cleared;

    toc_alloc_use(&counting);
    text = toc_strdup("x");
    cleared = TOC_NEW_ARRAY(int, 10);
    for (size_t i = 0; i < 10; i++)
        ck_assert_int_eq(cleared[i], 0);
    text = toc_realloc(text, 100);
    ck_assert_str_eq(text, "x");
    toc_free(text);
    toc_free(cleared);
    toc_free(NULL);
    ck_assert_uint_eq(allocated, 2);
    ck_assert_uint_eq(freed, 2);
}
END_TEST

START_TEST(calloc_checks_products)
{
    (void)toc_calloc(SIZE_MAX / 2, 3);
}
END_TEST

START_TEST(arena_checks_products)
{
    struct toc_arena arena = {0};

    (void)toc_arena_calloc(&arena, SIZE_MAX / 2, 3);
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {alloc_is_never_null,
                                    steal_leaves_nothing_to_free,
                                    buf_grows_byte_by_byte,
                                    buf_writes_numbers,
                                    buf_prints_and_takes_nothing,
                                    arena_pieces_do_not_touch,
                                    arena_takes_huge_pieces,
                                    arena_texts,
                                    another_source};
    const toc_check_test aborting[] = {assert_fails, buf_of_impossible_size,
                                       arena_checks_products,
                                       calloc_checks_products};
    int rc = toc_check_run("memory", tests, sizeof tests / sizeof tests[0]);
    int aborts =
        toc_check_run_signal("memory_aborts", aborting,
                             sizeof aborting / sizeof aborting[0], SIGABRT);

    return rc != EXIT_SUCCESS ? rc : aborts;
}
