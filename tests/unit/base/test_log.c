/*
 * Goal: one line per event, whatever the values hold; lines of several threads
 * never mix.
 * Method: stderr goes to a file that is read back and compared.
 */
#include "common/base/log.h"

#include "common/base/thread.h"

#include "tests/support/toc_check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static FILE *sink;
static char text[400000];

static void
open_sink(void)
{
    sink = tmpfile();
    ck_assert_ptr_nonnull(sink);
    ck_assert_int_ge(dup2(fileno(sink), STDERR_FILENO), 0);
    toc_log_init("tester", "node-1", TOC_LOG_INFO);
}

/* What was written since, without the time at its start. */
static const char *
logged(void)
{
    size_t len;

    ck_assert_int_eq(fseek(sink, 0, SEEK_SET), 0);
    len = fread(text, 1, sizeof text - 1, sink);
    text[len] = '\0';
    ck_assert_int_eq(ftruncate(fileno(sink), 0), 0);
    rewind(sink);
    return len > 30 ? text + 30 : text;
}

#define HEAD(level) "level=" level " role=tester node=node-1 event="

START_TEST(a_line)
{
    int64_t ms;

    open_sink();
    TOC_LOG(INFO, "a.b", F_INT("i", INT64_MIN), F_MSG("two words"),
            F_UINT("u", UINT64_MAX), F_STR("s", "plain"));
    ck_assert_str_eq(logged(), HEAD("info") "a.b msg=\"two words\" "
                                            "i=-9223372036854775808 "
                                            "u=18446744073709551615 s=plain\n");
    ck_assert_int_eq(strncmp(text, "time=", 5), 0);
    ck_assert(toc_time_parse((struct toc_str){text + 5, 24}, &ms));
    ck_assert(text[29] == ' ');
}
END_TEST

START_TEST(levels)
{
    enum toc_log_level level = TOC_LOG_INFO;

    open_sink();
    TOC_LOG(DEBUG, "quiet", F_MSG("x"));
    ck_assert_str_eq(logged(), "");
    toc_log_init("tester", "node-1", TOC_LOG_ERROR);
    TOC_LOG(WARN, "quiet", F_MSG("x"));
    ck_assert_str_eq(logged(), "");
    TOC_LOG(ERROR, "loud", F_MSG("x"));
    ck_assert_str_eq(logged(), HEAD("error") "loud msg=x\n");
    ck_assert(toc_log_level_parse(TOC_STR("debug"), &level));
    ck_assert_int_eq(level, TOC_LOG_DEBUG);
    ck_assert(toc_log_level_parse(TOC_STR("error"), &level));
    ck_assert_int_eq(level, TOC_LOG_ERROR);
    ck_assert(!toc_log_level_parse(TOC_STR("ERROR"), &level));
    ck_assert(!toc_log_level_parse(TOC_STR(""), &level));
}
END_TEST

START_TEST(values_cannot_break_out)
{
    static const struct {
        struct toc_str value;
        const char *shown;
    } cases[] = {
        {{NULL, 0}, "\"\""},
        {{"a\nlevel=error", 13}, "\"a\\nlevel=error\""},
        {{"\r\t\0\x1b", 4}, "\"\\r\\t\\x00\\x1b\""},
        {{"say \"hi\"", 8}, "\"say \\\"hi\\\"\""},
        {{"back\\slash", 10}, "\"back\\\\slash\""},
        {{"a=b", 3}, "\"a=b\""},
        {{"\xff\xc2", 2}, "\"\\xff\\xc2\""},
        {{"\xc2\x85", 2}, "\"\\xc2\\x85\""}, /* U+0085: NEL */
        {{"\x7f", 1}, "\"\\x7f\""},
        {{"gr\xc3\xbc\xc3\x9f", 6}, "gr\xc3\xbc\xc3\x9f"},
        {{"\xe6\x97\xa5 x", 5}, "\"\xe6\x97\xa5 x\""},
        {{"cut\xe6\x97", 5}, "\"cut\\xe6\\x97\""},
    };

    open_sink();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char want[200];
        TOC_LOG(INFO, "e", F_SPAN("v", cases[i].value));
        toc_format(want, sizeof want, HEAD("info") "e v=%s\n", cases[i].shown);
        ck_assert_str_eq(logged(), want);
    }
}
END_TEST

START_TEST(long_values_are_cut)
{
    char big[5000];
    const char *line;

    open_sink();
    memset(big, 'x', sizeof big);
    TOC_LOG(INFO, "e", F_SPAN("v", ((struct toc_str){big, sizeof big})),
            F_INT("after", 1));
    line = logged();
    ck_assert_uint_le(strlen(line), 2048 + 100);
    ck_assert_uint_ge(strlen(line), 2000);
    ck_assert_ptr_nonnull(strstr(line, "xxx... after=1\n"));
    /* cut in the middle of no character, quotes closed */
    for (size_t i = 0; i + 1 < sizeof big; i += 2)
        memcpy(big + i, "\xc3\xbc", 2);
    TOC_LOG(INFO, "e", F_SPAN("v", ((struct toc_str){big, sizeof big})));
    ck_assert(toc_utf8_valid(toc_str_of(logged())));
    memset(big, '\x01', sizeof big);
    TOC_LOG(INFO, "e", F_SPAN("v", ((struct toc_str){big, sizeof big})));
    line = logged();
    ck_assert_ptr_nonnull(strstr(line, "\\x01...\"\n"));
    ck_assert_uint_le(strlen(line), 2048 + 100);
}
END_TEST

START_TEST(long_lines_are_cut_between_fields)
{
    char big[2000];
    struct toc_str value = {big, sizeof big};
    const char *line;

    open_sink();
    memset(big, 'x', sizeof big);
    TOC_LOG(INFO, "e", F_SPAN("a", value), F_SPAN("b", value),
            F_SPAN("c", value), F_INT("d", 4));
    line = logged();
    ck_assert_uint_le(strlen(text), 4096);
    ck_assert_ptr_nonnull(strstr(line, " a=xx"));
    ck_assert_ptr_null(strstr(line, " c=xx"));
    ck_assert_ptr_nonnull(strstr(line, " cut=true\n"));
}
END_TEST

#define LINES 500

static void
talk(void *arg)
{
    for (int i = 0; i < LINES; i++)
        TOC_LOG(INFO, "talk", F_MSG("some words"), F_STR("who", arg),
                F_INT("i", i));
}

START_TEST(threads_do_not_mix)
{
    char names[4][2] = {"a", "b", "c", "d"};
    struct toc_thread threads[4];
    char *line, *rest;
    int n = 0;

    open_sink();
    for (size_t i = 0; i < 4; i++)
        toc_thread_start(&threads[i], "talk", talk, names[i]);
    for (size_t i = 0; i < 4; i++)
        toc_thread_join(&threads[i]);
    (void)logged();
    for (line = text; (rest = strchr(line, '\n')) != NULL; line = rest + 1) {
        char who;
        int i;
        *rest = '\0';
        ck_assert_int_eq(
            sscanf(line + 30,
                   HEAD("info") "talk msg=\"some words\" who=%c i=%d", &who,
                   &i),
            2);
        n++;
    }
    ck_assert_int_eq(n, 4 * LINES);
}
END_TEST

static void
keep(void *arg, enum toc_log_level level, const char *event,
     const struct toc_field *fields, size_t n)
{
    char *kept = arg;

    ck_assert_int_eq(level, TOC_LOG_WARN);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(fields[1].i, 7);
    toc_copy(kept, 32, toc_str_of(event));
}

START_TEST(another_sink)
{
    char kept[32] = "";

    open_sink();
    toc_log_use(keep, kept);
    TOC_LOG(WARN, "lease.lost", F_MSG("gone"), F_INT("shards", 7));
    toc_log_use(NULL, NULL);
    ck_assert_str_eq(kept, "lease.lost");
    ck_assert_str_eq(logged(), "");
}
END_TEST

TOC_CHECK_MAIN("log", a_line, levels, values_cannot_break_out,
               long_values_are_cut, long_lines_are_cut_between_fields,
               threads_do_not_mix, another_sink)
