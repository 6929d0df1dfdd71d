/*
 * Goal: days are made ahead and go whole when retention is over, never with
 * anything unfinished, whatever crashed before; what lies in no day goes too.
 * Method: real database; marks set as if time had passed.
 */
#include "tests/integration/store/fixture.h"

static int64_t
days_of(const char *table)
{
    return raw("SELECT COUNT(*) FROM information_schema.PARTITIONS WHERE "
               "TABLE_SCHEMA=DATABASE() AND TABLE_NAME='%s' AND "
               "PARTITION_NAME LIKE 'p2%%'",
               table);
}

START_TEST(days_are_made_once)
{
    int64_t t = now_ms(), before = days_of("task_info");

    OK(toc_store_make_days(fx.store, t, err));
    ck_assert_int_eq(days_of("task_info"), before);
    OK(toc_store_make_days(fx.store, t + 3 * DAY, err));
    ck_assert_int_eq(days_of("task_info"), before + 3);
    ck_assert_int_eq(days_of("task_log"), before + 3);
    ck_assert_int_eq(days_of("key_history"), before + 3);
    OK(toc_store_make_days(fx.store, t, err));
    ck_assert_int_eq(days_of("task_info"), before + 3);
    /* years of nothing do not become thousands of partitions */
    OK(toc_store_make_days(fx.store, t + 4000 * DAY, err));
    ck_assert_int_le(days_of("task_info"), before + 3 + 401);
}
END_TEST

START_TEST(days_are_dropped_by_the_rule)
{
    int64_t t = now_ms(), today = t - t % DAY;
    int64_t before = days_of("task_info");
    struct toc_task kept = stored_task("kept", today + 10 * DAY);
    struct toc_task done = stored_task("done", today + 2 * DAY + 1000);
    struct toc_task slow = stored_task("slow", today + DAY + 1000);
    size_t dropped;

    command_id(TOC_COMMAND_CANCEL, done.id, 0);
    /* the marks are at today: yesterday may go, no more */
    OK(toc_store_drop_days(fx.store, today + 9 * DAY, DAY, &dropped, err));
    ck_assert_uint_eq(dropped, 1);
    /* a straggler holds its day while it is unfinished, whether or not anybody
     * forgets it afterwards */
    raw("INSERT INTO straggler SELECT slice,slot_ms,task_id FROM task_info "
        "WHERE slot_ms=%lld",
        (long long)slow.slot_ms);
    set_low(today + 8 * DAY);
    OK(toc_store_drop_days(fx.store, today + 9 * DAY, 6 * DAY, &dropped, err));
    ck_assert_uint_eq(dropped, 1);
    command_id(TOC_COMMAND_CANCEL, slow.id, 0);
    OK(toc_store_drop_days(fx.store, today + 9 * DAY, 6 * DAY, &dropped, err));
    ck_assert_uint_eq(dropped, 2);
    ck_assert_int_eq(days_of("task_info"), before - 4);
    ck_assert_int_eq(days_of("task_log"), before - 4);
    ck_assert_int_eq(days_of("key_history"), before - 4);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM information_schema.TABLES WHERE "
                         "TABLE_SCHEMA=DATABASE() AND TABLE_NAME LIKE 'old%%'"),
                     0);
    ck_assert(!is_there(find_id(done.id)));
    ck_assert(is_there(find_id(kept.id)));
    /* parked rows stay, and what is submitted goes on working */
    (void)stored_task("new", t + 1000);
    (void)stored_task("new far", t + 1000 * DAY);
}
END_TEST

START_TEST(a_day_with_unfinished_rows_stays)
{
    int64_t t = now_ms(), today = t - t % DAY;
    struct toc_task open_one = stored_task("open", today + 2 * DAY + 1000);
    size_t dropped;

    set_low(today + 8 * DAY); /* wrongly so */
    OK(toc_store_drop_days(fx.store, today + 9 * DAY, DAY, &dropped, err));
    ck_assert_uint_eq(dropped, 3);
    ck_assert(is_there(find_id(open_one.id)));
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 1);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM information_schema.TABLES WHERE "
                         "TABLE_SCHEMA=DATABASE() AND TABLE_NAME LIKE 'old%%'"),
                     0);
}
END_TEST

/* A day is looked through by slice: the last slice too is found, and no single
 * statement has a whole day to read. */
START_TEST(a_day_is_looked_through_by_slice)
{
    int64_t t = now_ms(), day = t - t % DAY + DAY;
    uint64_t statements;
    size_t dropped;

    make_numbers(1023);
    raw("INSERT INTO task_info SELECT seq,%lld+seq,UNHEX(LPAD(HEX(seq),32,0)),"
        "5,0,0,0,1,2,0,0,0,0,0,0,0,0,0,1,'',0,0,UNHEX(LPAD(HEX(seq),32,0)),'',"
        "'','','',0,'',NULL FROM numbers WHERE seq<1023",
        (long long)day);
    raw("UPDATE task_info SET status=4 WHERE slice=1022");
    set_low(day + 8 * DAY);
    OK(toc_store_drop_days(fx.store, day + 9 * DAY, DAY, &dropped, err));
    ck_assert_uint_eq(dropped, 2); /* yesterday, today */
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 1023);
    raw("UPDATE task_info SET status=5");
    statements = toc_store_mysql_statements(fx.mysql);
    OK(toc_store_drop_days(fx.store, day + 9 * DAY, 8 * DAY, &dropped, err));
    ck_assert_uint_eq(dropped, 1);
    ck_assert_uint_ge(toc_store_mysql_statements(fx.mysql) - statements, 1023);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 0);
}
END_TEST

/* Log rows at negative slots are in no day: they go by age. */
START_TEST(old_log_of_parked_tasks_goes)
{
    int64_t t = now_ms();
    struct toc_task far = stored_task("far", t + 100 * DAY);
    size_t dropped;

    command_id(TOC_COMMAND_PAUSE, far.id, 0);
    command_id(TOC_COMMAND_RESUME, far.id, 0);
    command_id(TOC_COMMAND_RESCHEDULE, far.id, t + 200 * DAY);
    raw("UPDATE task_log SET at_ms=%lld WHERE kind IN (%d,%d)",
        (long long)(t - 31 * DAY), TOC_LOG_KIND_PAUSE, TOC_LOG_KIND_RESUME);
    OK(toc_store_drop_days(fx.store, t, 30 * DAY, &dropped, err));
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_log"), 1);
    ck_assert_int_eq(raw("SELECT kind FROM task_log"), TOC_LOG_KIND_RESCHEDULE);
    ck_assert(is_there(find_id(far.id)));
}
END_TEST

/* A crash after the exchange: the rows are in the detached table. */
START_TEST(a_crash_while_dropping)
{
    int64_t t = now_ms(), today = t - t % DAY;
    struct toc_task open_one = stored_task("open", t + 1000);
    char day[16];
    size_t dropped;

    raw("SET @d=DATE_FORMAT(FROM_UNIXTIME(%lld),'p%%Y%%m%%d')",
        (long long)(today / 1000));
    ck_assert_int_eq(mysql_query(fx.raw, "SELECT DATE_FORMAT(UTC_DATE(),"
                                         "'p%Y%m%d')"),
                     0);
    {
        MYSQL_RES *rows = mysql_store_result(fx.raw);
        snprintf(day, sizeof day, "%s", mysql_fetch_row(rows)[0]);
        mysql_free_result(rows);
    }
    raw("CREATE TABLE old_task_info_%s LIKE task_info", day);
    raw("ALTER TABLE old_task_info_%s REMOVE PARTITIONING", day);
    raw("ALTER TABLE task_info EXCHANGE PARTITION %s WITH TABLE "
        "old_task_info_%s",
        day, day);
    ck_assert(!is_there(find_id(open_one.id)));
    set_low(today + 8 * DAY);
    OK(toc_store_drop_days(fx.store, today + 9 * DAY, DAY, &dropped, err));
    ck_assert(is_there(find_id(open_one.id)));
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM information_schema.TABLES WHERE "
                         "TABLE_SCHEMA=DATABASE() AND TABLE_NAME LIKE 'old%%'"),
                     0);
}
END_TEST

/* A crash before the very last step: a detached table without a partition. */
START_TEST(a_crash_at_the_end_of_dropping)
{
    size_t dropped;

    raw("CREATE TABLE old_task_log_p20200101 LIKE task_log");
    raw("CREATE TABLE old_stock (a INT)"); /* not ours */
    OK(toc_store_drop_days(fx.store, now_ms(), 30 * DAY, &dropped, err));
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM information_schema.TABLES WHERE "
                         "TABLE_SCHEMA=DATABASE() AND TABLE_NAME LIKE 'old%%'"),
                     1);
}
END_TEST

STORE_TESTS("store_days", 120, days_are_made_once, days_are_dropped_by_the_rule,
            a_day_with_unfinished_rows_stays, a_day_is_looked_through_by_slice,
            old_log_of_parked_tasks_goes, a_crash_while_dropping,
            a_crash_at_the_end_of_dropping)
