/*
 * Goal: the pure parts of the MySQL backend: addresses, pieces of statements,
 * what differs between servers. Method: texts in, texts out.
 */
#include "common/base/cleanup.h"
#include "common/store/mysql/dialect.h"
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"
#include "common/store/mysql/url.h"
#include "tests/support/toc_check.h"

#include <string.h>

START_TEST(addresses)
{
    static const struct {
        const char *url, *host, *user, *db, *socket;
        unsigned port;
    } good[] = {
        {"mysql://toc@127.0.0.1:3307/toc", "127.0.0.1", "toc", "toc", "", 3307},
        {"mysql://u@h/d", "h", "u", "d", "", 3306},
        {"mysql://u@[::1]:99/d", "::1", "u", "d", "", 99},
        {"mysql://u@[::1]/d", "::1", "u", "d", "", 3306},
        {"mysql://u@/d?socket=/run/x.sock", "", "u", "d", "/run/x.sock", 3306},
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct toc_my_address at;
        ck_assert_int_eq(toc_my_url_parse(good[i].url, &at, NULL), TOC_OK);
        ck_assert_str_eq(at.host, good[i].host);
        ck_assert_str_eq(at.user, good[i].user);
        ck_assert_str_eq(at.db, good[i].db);
        ck_assert_str_eq(at.socket, good[i].socket);
        ck_assert_uint_eq(at.port, good[i].port);
    }
}
END_TEST

START_TEST(bad_addresses)
{
    static const char *const bad[] = {
        "",
        "postgres://u@h/d",
        "mysql://h/d",
        "mysql://@h/d",
        "mysql://u@h",
        "mysql://u@h/",
        "mysql://u:secret@h/d",
        "mysql://u@h:0/d",
        "mysql://u@h:65536/d",
        "mysql://u@h:x/d",
        "mysql://u@[::1/d",
        "mysql://u@[::1]x/d",
        "mysql://u@/d",
        "mysql://u@h/d?ssl=1",
        "mysql://u@h\n/d",
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct toc_my_address at;
        struct toc_error error;
        ck_assert_msg(toc_my_url_parse(bad[i], &at, &error) == TOC_INVALID,
                      "%s", bad[i]);
        ck_assert_ptr_null(strstr(error.msg, "\n"));
    }
}
END_TEST

START_TEST(rows_in_a_condition)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf sql = {0};
    struct toc_sql_row rows[2] = {
        {.ref = {.slice = 9, .slot_ms = -5, .version = 3}, .token = UINT64_MAX},
        {.ref = {.slice = 9, .slot_ms = -6, .version = 4}, .token = 1}};

    toc_sql_sort_rows(rows, 2);
    ck_assert_int_eq(rows[0].ref.slot_ms, -6);
    toc_sql_where_rows(&sql, "t.", rows, 2, TOC_SQL_VERSION | TOC_SQL_TOKEN);
    ck_assert_str_eq(sql.data,
                     "(t.slice,t.slot_ms,t.task_id,t.version,t.lock_token) IN ("
                     "(9,-6,x'00000000000000000000000000000000',4,1),"
                     "(9,-5,x'00000000000000000000000000000000',3,"
                     "18446744073709551615))");
    toc_buf_reset(&sql);
    /* one alone: a list of one would read every partition */
    toc_sql_where_rows(&sql, "", rows, 1, TOC_SQL_VERSION);
    ck_assert_str_eq(sql.data,
                     "slice=9 AND slot_ms=-6 AND "
                     "task_id=x'00000000000000000000000000000000' AND "
                     "version=4");
}
END_TEST

START_TEST(values_by_case)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf sql = {0};
    struct toc_sql_row rows[2] = {{.item = 1}, {.item = 0}};
    int64_t values[2] = {7, 7};

    rows[1].ref.id.b[15] = 1;
    toc_sql_case_i64(&sql, rows, values, 2);
    ck_assert_str_eq(sql.data, "7");
    toc_buf_reset(&sql);
    values[0] = -8;
    toc_sql_case_slot(&sql, rows, values, 2);
    ck_assert_str_eq(sql.data,
                     "CASE task_id WHEN x'00000000000000000000000000000000' "
                     "THEN GREATEST(7,@low+1) WHEN "
                     "x'00000000000000000000000000000001' THEN -8 END");
    ck_assert_int_eq(toc_sql_slot_value(7, 7), 8);
    ck_assert_int_eq(toc_sql_slot_value(8, 7), 8);
    ck_assert_int_eq(toc_sql_slot_value(-8, 7), -8);
}
END_TEST

/* Nothing that is sent as a value can leave its literal. */
START_TEST(values_are_hex)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf sql = {0};

    toc_sql_bytes(&sql, TOC_STR("');--"));
    ck_assert_str_eq(sql.data, "x'27293b2d2d'");
    toc_buf_reset(&sql);
    toc_sql_bytes(&sql, (struct toc_str){NULL, 0});
    ck_assert_str_eq(sql.data, "''");
}
END_TEST

START_TEST(texts_are_cut_at_characters)
{
    ck_assert_uint_eq(toc_row_cut(TOC_STR("abc"), 3).len, 3);
    ck_assert_uint_eq(toc_row_cut(TOC_STR("abc"), 2).len, 2);
    ck_assert_uint_eq(toc_row_cut(TOC_STR("a\xe2\x82\xac"), 3).len, 1);
    ck_assert_uint_eq(toc_row_cut(TOC_STR("a\xe2\x82\xac"), 4).len, 4);
}
END_TEST

START_TEST(dialects)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf sql = {0};
    struct toc_my_dialect mariadb =
        toc_my_dialect_of("5.5.5-10.11.6-MariaDB-0+deb12u1");
    struct toc_my_dialect mysql = toc_my_dialect_of("8.0.36");

    ck_assert(mariadb.mariadb);
    ck_assert(!mysql.mariadb);
    toc_my_dialect_session(&mysql, &sql);
    ck_assert_ptr_null(strstr(sql.data, "idle_transaction"));
    ck_assert_ptr_null(strstr(sql.data, "in_predicate"));
    ck_assert_str_eq(toc_my_dialect_wait(&mysql, false), " ");
    ck_assert_str_eq(toc_my_dialect_wait(&mariadb, false), " NOWAIT ");
    /* a transaction that stays open is bounded: by the session, or by hand */
    ck_assert_ptr_null(toc_my_dialect_hold(&mariadb));
    ck_assert_ptr_null(toc_my_dialect_release(&mariadb));
    ck_assert_ptr_nonnull(strstr(toc_my_dialect_hold(&mysql), "timeout=1"));
    ck_assert_ptr_nonnull(strstr(sql.data, "wait_timeout=60"));
    ck_assert_str_eq(toc_my_dialect_release(&mysql),
                     "SET SESSION wait_timeout=60");
}
END_TEST

/* Whoever sees a refusal is told what else it may be. */
START_TEST(hints)
{
    const char *denied = "Access denied for user 'u'@'h'";
    const char *missing = "Plugin caching_sha2_password could not be loaded";

    ck_assert_ptr_nonnull(
        strstr(toc_my_dialect_hint(1045, denied, false), "TLS"));
    ck_assert_ptr_null(strstr(toc_my_dialect_hint(1045, denied, true), "TLS"));
    ck_assert_ptr_nonnull(
        strstr(toc_my_dialect_hint(1045, missing, false), "libmariadb3"));
    ck_assert_ptr_nonnull(
        strstr(toc_my_dialect_hint(2061, "RSA", false), "libmariadb3"));
    ck_assert_ptr_nonnull(
        strstr(toc_my_dialect_hint(3159, "insecure", false), "socket"));
    ck_assert_ptr_nonnull(
        strstr(toc_my_dialect_hint(1049, "unknown", false), "CREATE"));
    ck_assert_ptr_null(toc_my_dialect_hint(1064, "syntax", false));
}
END_TEST

TOC_CHECK_MAIN("store_pieces", addresses, bad_addresses, rows_in_a_condition,
               values_by_case, values_are_hex, texts_are_cut_at_characters,
               dialects, hints)
