/*
 * Goal: a setting comes from the flag, else the environment, else the table,
 * and whatever breaks a rule refuses to start with a text that helps.
 * Method: one small table, argument lists and environments on both sides of
 * each rule.
 */
#include "common/base/config.h"

#include "common/base/cleanup.h"

#include "tests/support/toc_check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct settings {
    const char *mysql_url;
    int64_t lead_ms;
    bool fast;
};

static const struct toc_setting table[] = {
    {"mysql_url", TOC_SETTING_TEXT, offsetof(struct settings, mysql_url), NULL,
     0, 0, "", "Where the database is"},
    {"lead_ms", TOC_SETTING_INT, offsetof(struct settings, lead_ms), "20", 0,
     1000, "ms", "How early a hint goes | out"},
    {"fast", TOC_SETTING_BOOL, offsetof(struct settings, fast), "false", 0, 0,
     "", "Fast or not"},
};

static struct settings got;
static struct toc_error err;
static bool done;

/* The words after the program's name, up to four. */
static enum toc_status
parse(const char *a, const char *b, const char *c, const char *d)
{
    const char *words[] = {a, b, c, d};
    char copies[5][100] = {"prog"};
    char *argv[6] = {copies[0], NULL};
    int argc = 1;

    memset(&got, 0, sizeof got);
    err.msg[0] = '\0';
    for (size_t i = 0; i < 4 && words[i] != NULL; i++) {
        toc_copy(copies[argc], sizeof copies[0], toc_str_of(words[i]));
        argv[argc] = copies[argc];
        argc++;
    }
    return toc_config_parse(table, 3, &got, argc, argv, "prog: tests", &done,
                            &err);
}

static void
refused(const char *a, const char *b, const char *part)
{
    ck_assert_int_eq(parse("--mysql-url=x", a, b, NULL), TOC_INVALID);
    ck_assert_msg(strstr(err.msg, part) != NULL, "\"%s\" lacks \"%s\"", err.msg,
                  part);
}

START_TEST(fallbacks)
{
    done = true;
    ck_assert_int_eq(parse("--mysql-url=x", NULL, NULL, NULL), TOC_OK);
    ck_assert(!done);
    ck_assert_int_eq(got.lead_ms, 20);
    ck_assert(!got.fast);
}
END_TEST

START_TEST(flags)
{
    const char *value;
    static char url[] = "--mysql-url=a=b";
    static char prog[] = "prog";
    char *argv[] = {prog, url, NULL};

    ck_assert_int_eq(parse("--mysql-url", "x", "--lead-ms", "7"), TOC_OK);
    ck_assert_int_eq(got.lead_ms, 7);
    ck_assert_int_eq(parse("--fast", "--mysql-url=x", "--lead-ms=0", NULL),
                     TOC_OK);
    ck_assert(got.fast);
    ck_assert_int_eq(parse("--mysql-url=x", "--fast=false", NULL, NULL),
                     TOC_OK);
    ck_assert(!got.fast);
    ck_assert_int_eq(parse("--mysql-url=x", "--fast", "true", NULL), TOC_OK);
    ck_assert(got.fast);
    ck_assert_int_eq(parse("--mysql-url=x", "--lead-ms=1", "--lead-ms=2", NULL),
                     TOC_OK);
    ck_assert_int_eq(got.lead_ms, 2); /* the last one counts */
    ck_assert_int_eq(
        toc_config_parse(table, 3, &got, 2, argv, "prog", &done, &err), TOC_OK);
    value = got.mysql_url;
    ck_assert_str_eq(value, "a=b");
}
END_TEST

START_TEST(environment)
{
    setenv("TOC_MYSQL_URL", "from-env", 1);
    setenv("TOC_LEAD_MS", "5", 1);
    setenv("TOC_FAST", "", 1);
    setenv("TOC_SOMETHING_ELSE", "1", 1);
    ck_assert_int_eq(parse(NULL, NULL, NULL, NULL), TOC_OK);
    ck_assert_str_eq(got.mysql_url, "from-env");
    ck_assert_int_eq(got.lead_ms, 5);
    ck_assert(!got.fast);
    ck_assert_int_eq(parse("--lead-ms=6", NULL, NULL, NULL), TOC_OK);
    ck_assert_int_eq(got.lead_ms, 6);
    setenv("TOC_LEAD_MS", "1001", 1);
    ck_assert_int_eq(parse(NULL, NULL, NULL, NULL), TOC_INVALID);
    ck_assert_str_eq(err.msg, "TOC_LEAD_MS: \"1001\" is not valid, must be 0 "
                              "to 1000 ms");
    ck_assert_str_eq(toc_env("TOC_MYSQL_URL"), "from-env");
    ck_assert_ptr_null(toc_env("TOC_NOT_THERE"));
}
END_TEST

START_TEST(errors_name_setting_value_and_rule)
{
    refused("--lead-ms=-1", NULL,
            "--lead-ms: \"-1\" is not valid, must be 0 "
            "to 1000 ms");
    refused("--lead-ms=1s", NULL, "0 to 1000 ms");
    refused("--lead-ms=", NULL, "0 to 1000 ms");
    refused("--lead-ms", NULL, "--lead-ms needs a value");
    refused("--lead-ms", "--fast", "--lead-ms needs a value");
    refused("--fast=yes", NULL, "true, false");
    refused("--mysql-url=a\nb", NULL, "--mysql-url");
    refused("extra", NULL, "unexpected argument \"extra\"");
    refused("-h", NULL, "unexpected argument");
    refused("--laed-ms=1", NULL,
            "unknown flag --laed-ms, the nearest is "
            "--lead-ms");
    refused("--mysql_url=1", NULL, "the nearest is --mysql-url");
    refused("--hlep", NULL, "the nearest is --help");
    ck_assert_int_eq(parse("--fast", NULL, NULL, NULL), TOC_INVALID);
    ck_assert_str_eq(err.msg, "--mysql-url=VALUE (or TOC_MYSQL_URL) must be "
                              "given: Where the database is");
}
END_TEST

static const char *
printed(const char *flag)
{
    static char text[4000];
    FILE *file = tmpfile();
    size_t len;

    ck_assert_ptr_nonnull(file);
    (void)fflush(stdout);
    ck_assert_int_ge(dup2(fileno(file), STDOUT_FILENO), 0);
    ck_assert_int_eq(parse(flag, NULL, NULL, NULL), TOC_OK);
    (void)fflush(stdout);
    rewind(file);
    len = fread(text, 1, sizeof text - 1, file);
    text[len] = '\0';
    (void)fclose(file);
    return text;
}

START_TEST(questions)
{
    const char *help = printed("--help");

    ck_assert(done);
    ck_assert_ptr_nonnull(strstr(help, "prog: tests\n"));
    ck_assert_ptr_nonnull(strstr(help, "--lead-ms"));
    ck_assert_ptr_nonnull(strstr(help, "0 to 1000 ms; default: 20; "
                                       "TOC_LEAD_MS"));
    ck_assert_ptr_nonnull(strstr(help, "default: required"));
    done = false;
    ck_assert_int_eq(strncmp(printed("--version"), "toc ", 4), 0);
    ck_assert(done);
}
END_TEST

START_TEST(markdown)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};

    toc_config_markdown(table, 3, &out);
    ck_assert_ptr_nonnull(
        strstr(out.data, "| `--lead-ms` | `TOC_LEAD_MS` | `20` | 0 to 1000 ms "
                         "| How early a hint goes \\| out |\n"));
    ck_assert_ptr_nonnull(strstr(out.data, "| required |"));
}
END_TEST

TOC_CHECK_MAIN("config", fallbacks, flags, environment,
               errors_name_setting_value_and_rule, questions, markdown)
