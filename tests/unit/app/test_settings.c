/*
 * Goal: the settings that all roles share are checked before anything starts.
 * Method: a role's table made with the macro, parsed and finished; password
 * files with every kind of first line.
 */
#include "common/app/settings.h"

#include "tests/support/toc_check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct settings {
    int64_t own;
    struct toc_common_settings common;
};

static const struct toc_setting table[] = {
    TOC_COMMON_SETTINGS(struct settings){"own", TOC_SETTING_INT,
                                         offsetof(struct settings, own), "3", 0,
                                         9, "", "Of the role"},
};

static struct settings got;
static struct toc_error err;

static enum toc_status
finish(const char *flag)
{
    static char copies[3][200];
    char *argv[] = {copies[0], copies[1], copies[2], NULL};
    bool done;
    enum toc_status st;

    memset(&got, 0, sizeof got);
    toc_copy(copies[0], 200, TOC_STR("prog"));
    toc_copy(copies[1], 200, TOC_STR("--mysql=mysql://u@h/db"));
    toc_copy(copies[2], 200, toc_str_of(flag));
    st = toc_config_parse(table, sizeof table / sizeof table[0], &got, 3, argv,
                          "prog", &done, &err);
    if (st != TOC_OK)
        return st;
    return toc_common_settings_finish(&got.common, "tester", &err);
}

START_TEST(defaults)
{
    char pid[32];

    ck_assert_int_eq(finish("--own=4"), TOC_OK);
    ck_assert_int_eq(got.own, 4);
    ck_assert_str_eq(got.common.cluster, "toc");
    ck_assert_str_eq(got.common.listen, "127.0.0.1:0");
    ck_assert_str_eq(got.common.advertise, "");
    ck_assert_str_eq(got.common.mysql, "mysql://u@h/db");
    ck_assert_str_eq(got.common.mysql_password, "");
    ck_assert_int_eq(got.common.partitions, 8);
    ck_assert_int_eq(got.common.level, TOC_LOG_INFO);
    toc_format(pid, sizeof pid, "-%ld", (long)getpid());
    ck_assert_ptr_nonnull(strstr(got.common.node, pid));
}
END_TEST

START_TEST(names_and_levels)
{
    ck_assert_int_eq(finish("--node=a-b_c.D9"), TOC_OK);
    ck_assert_str_eq(got.common.node, "a-b_c.D9");
    ck_assert_int_eq(finish("--node=a/b"), TOC_INVALID);
    ck_assert_ptr_nonnull(strstr(err.msg, "--node: \"a/b\""));
    ck_assert_int_eq(finish("--node=gr\xc3\xbcn"), TOC_INVALID);
    ck_assert_int_eq(finish("--cluster="), TOC_INVALID);
    ck_assert_int_eq(finish("--cluster=123456789012345678901234567890123"),
                     TOC_INVALID);
    ck_assert_int_eq(finish("--cluster=12345678901234567890123456789012"),
                     TOC_OK);
    ck_assert_int_eq(finish("--log-level=debug"), TOC_OK);
    ck_assert_int_eq(got.common.level, TOC_LOG_DEBUG);
    ck_assert(toc_log_on(TOC_LOG_DEBUG));
    ck_assert_int_eq(finish("--log-level=loud"), TOC_INVALID);
    ck_assert_ptr_nonnull(strstr(err.msg, "debug, info, warn or error"));
    ck_assert_int_eq(finish("--partitions=0"), TOC_INVALID);
    ck_assert_int_eq(finish("--mysql-password-file=/no/such/file"),
                     TOC_INVALID);
    ck_assert_ptr_nonnull(strstr(err.msg, "/no/such/file"));
    ck_assert_ptr_nonnull(strstr(err.msg, "No such file"));
}
END_TEST

static enum toc_status
read_file_with(const char *content, size_t len, char *out, size_t cap)
{
    char path[] = "/tmp/toc-test-XXXXXX";
    int fd = mkstemp(path);
    enum toc_status st;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content, len), (ssize_t)len);
    ck_assert_int_eq(close(fd), 0);
    st = toc_password_read(path, out, cap, &err);
    ck_assert_int_eq(unlink(path), 0);
    return st;
}

START_TEST(passwords)
{
    char out[TOC_PASSWORD_MAX + 1], big[TOC_PASSWORD_MAX + 100];

    ck_assert_int_eq(toc_password_read("", out, sizeof out, &err), TOC_OK);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(read_file_with("", 0, out, sizeof out), TOC_OK);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(read_file_with("secret", 6, out, sizeof out), TOC_OK);
    ck_assert_str_eq(out, "secret");
    ck_assert_int_eq(read_file_with(" se cret \r\nmore\n", 16, out, sizeof out),
                     TOC_OK);
    ck_assert_str_eq(out, " se cret ");
    ck_assert_int_eq(read_file_with("se\0cret\n", 8, out, sizeof out),
                     TOC_INVALID);
    ck_assert_int_eq(read_file_with("abcd\n", 5, out, 4), TOC_INVALID);
    ck_assert_int_eq(read_file_with("abc\n", 4, out, 4), TOC_OK);
    memset(big, 'x', sizeof big);
    ck_assert_int_eq(read_file_with(big, TOC_PASSWORD_MAX, out, sizeof out),
                     TOC_OK);
    ck_assert_uint_eq(strlen(out), TOC_PASSWORD_MAX);
    ck_assert_int_eq(read_file_with(big, TOC_PASSWORD_MAX + 1, out, sizeof out),
                     TOC_INVALID);
    ck_assert_ptr_null(strstr(err.msg, "xxx")); /* never in a message */
    ck_assert_int_eq(read_file_with(big, sizeof big, out, sizeof out),
                     TOC_INVALID);
    ck_assert_int_eq(toc_password_read("/tmp", out, sizeof out, &err),
                     TOC_INVALID); /* a folder */
}
END_TEST

START_TEST(lists)
{
    struct toc_str items[3];
    size_t n = 9;

    ck_assert(toc_list_split(TOC_STR(" a:1 ,,b , "), items, 3, &n));
    ck_assert_uint_eq(n, 2);
    TOC_ASSERT_STR(items[0], "a:1");
    TOC_ASSERT_STR(items[1], "b");
    ck_assert(toc_list_split(TOC_STR("a,b,c"), items, 3, &n));
    ck_assert_uint_eq(n, 3);
    ck_assert(!toc_list_split(TOC_STR("a,b,c,d"), items, 3, &n));
    ck_assert(toc_list_split(TOC_STR("a,b,c,,"), items, 3, &n));
    ck_assert(toc_list_split(TOC_STR(""), items, 3, &n));
    ck_assert_uint_eq(n, 0);
    ck_assert(toc_list_split((struct toc_str){NULL, 0}, items, 3, &n));
    ck_assert_uint_eq(n, 0);
}
END_TEST

TOC_CHECK_MAIN("settings", defaults, names_and_levels, passwords, lists)
