/*
 * What the store's tests share: a database of their own (toc_test_<random>,
 * dropped afterwards), a store on it, a plain second connection for holding
 * transactions open, and short ways to make and look at tasks.
 *
 * The server's address comes from TOC_MYSQL and TOC_MYSQL_PASSWORD_FILE. It may
 * be MariaDB or MySQL: SQL in tests is what both understand, or goes through a
 * helper of here.
 */
#ifndef TOC_TESTS_INTEGRATION_STORE_FIXTURE_H
#define TOC_TESTS_INTEGRATION_STORE_FIXTURE_H

#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/cleanup.h"
#include "common/base/config.h"
#include "common/base/hash.h"
#include "common/base/rng.h"
#include "common/base/thread.h"
#include "common/clock/os/clock_os.h"
#include "common/model/limits.h"
#include "common/store/mysql/store_mysql.h"
#include "tests/support/toc_check.h"

#include <mysql.h>
#include <stdio.h>
#include <string.h>

#define DAY TOC_MS_PER_DAY

static struct {
    char db[64];
    char url[512];
    char password[128];
    char user[64], host[128];
    unsigned port;
    struct toc_store_mysql *mysql;
    struct toc_store *store;
    struct toc_arena arena;
    MYSQL *raw; /* a second connection, autocommit */
    bool mariadb;
} fx;

#define OK(call)                                          \
    do {                                                  \
        struct toc_error err_ = {0};                      \
        struct toc_error *err = &err_;                    \
        enum toc_status st_ = (call);                     \
        (void)err;                                        \
        ck_assert_msg(st_ == TOC_OK, "%s: %s: %s", #call, \
                      toc_status_text(st_), err_.msg);    \
    } while (0)

static inline int64_t
now_ms(void)
{
    return toc_clock_wall(toc_clock_os()).ms;
}

static inline MYSQL *
raw_connect(const char *db)
{
    MYSQL *mysql = mysql_init(NULL);

    ck_assert_msg(mysql_real_connect(mysql, fx.host, fx.user, fx.password, db,
                                     fx.port, NULL,
                                     CLIENT_MULTI_STATEMENTS) != NULL,
                  "%s", mysql_error(mysql));
    ck_assert_int_eq(mysql_query(mysql, "SET NAMES binary"), 0);
    ck_assert_int_eq(
        mysql_query(mysql,
                    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"),
        0);
    return mysql;
}

/* "12" and "12.5": 12. */
static inline int64_t
whole_number(const char *text)
{
    struct toc_str s = toc_str_of(text), whole;
    int64_t value = INT64_MIN;

    if (toc_str_next(&s, '.', &whole))
        ck_assert_msg(toc_parse_i64(whole, INT64_MIN, INT64_MAX, &value),
                      "%s is no number", text);
    return value;
}

/* Runs a statement on a raw connection; returns the first field of the first
 * row as a number, or `none`. */
__attribute__((format(printf, 2, 3))) static inline int64_t
raw_on(MYSQL *mysql, const char *format, ...)
{
    char sql[4096];
    int64_t value = INT64_MIN;
    MYSQL_RES *rows;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    ck_assert_msg(mysql_query(mysql, sql) == 0, "%s: %s", sql,
                  mysql_error(mysql));
    do {
        rows = mysql_store_result(mysql);
        if (rows != NULL) {
            MYSQL_ROW row = mysql_fetch_row(rows);
            if (row != NULL && row[0] != NULL)
                value = whole_number(row[0]);
            mysql_free_result(rows);
        }
    } while (mysql_next_result(mysql) == 0);
    ck_assert_msg(mysql_errno(mysql) == 0, "%s: %s", sql, mysql_error(mysql));
    return value;
}
#define raw(...) raw_on(fx.raw, __VA_ARGS__)

/* A table with the column seq: 0 to count-1, and perhaps more. (MariaDB's
 * sequence tables are not in MySQL, whose recursion ends at a thousand.) */
static inline void
make_numbers(unsigned count)
{
    raw("CREATE TABLE numbers (seq INT NOT NULL PRIMARY KEY)");
    raw("INSERT INTO numbers VALUES (0)");
    for (unsigned n = 1; n < count; n *= 2)
        raw("INSERT INTO numbers SELECT seq+%u FROM numbers", n);
}

/* The sum of the server's counters whose names are LIKE this, without one. */
static inline int64_t
server_counts(const char *like, const char *without)
{
    int64_t sum = 0;
    MYSQL_RES *rows;
    MYSQL_ROW row;
    char sql[256];

    snprintf(sql, sizeof sql,
             "SHOW GLOBAL STATUS WHERE Variable_name LIKE '%s' AND "
             "Variable_name<>'%s'",
             like, without);
    ck_assert_int_eq(mysql_query(fx.raw, sql), 0);
    rows = mysql_store_result(fx.raw);
    ck_assert(rows != NULL && mysql_num_rows(rows) > 0);
    while ((row = mysql_fetch_row(rows)) != NULL)
        sum += whole_number(row[1]);
    mysql_free_result(rows);
    return sum;
}

static inline void
parse_address(void)
{
    const char *url = toc_env("TOC_MYSQL");
    const char *file = toc_env("TOC_MYSQL_PASSWORD_FILE");
    FILE *in;

    ck_assert_msg(url != NULL, "TOC_MYSQL is not set");
    ck_assert_msg(sscanf(url, "mysql://%63[^@]@%127[^:]:%u/", fx.user, fx.host,
                         &fx.port) == 3,
                  "TOC_MYSQL is not mysql://user@host:port/db: %s", url);
    if (file == NULL)
        return;
    in = fopen(file, "r");
    ck_assert_msg(in != NULL, "cannot read %s", file);
    ck_assert_int_eq(fscanf(in, "%127s", fx.password), 1);
    fclose(in);
}

static inline struct toc_store_mysql *
open_store(const char *url, size_t pool_max)
{
    struct toc_store_mysql_options options = {.url = url,
                                              .password = fx.password,
                                              .clock = toc_clock_os(),
                                              .pool_max = pool_max};
    struct toc_store_mysql *store = NULL;

    OK(toc_store_mysql_open(&options, &store, err));
    return store;
}

static inline void
setup_empty(void)
{
    memset(&fx, 0, sizeof fx);
    parse_address();
    snprintf(fx.db, sizeof fx.db, "toc_test_%016llx",
             (unsigned long long)toc_rng_u64());
    snprintf(fx.url, sizeof fx.url, "mysql://%s@%s:%u/%s", fx.user, fx.host,
             fx.port, fx.db);
    fx.raw = raw_connect(NULL);
    fx.mariadb = strstr(mysql_get_server_info(fx.raw), "MariaDB") != NULL;
    raw("CREATE DATABASE %s CHARACTER SET binary", fx.db);
    raw("USE %s", fx.db);
    fx.mysql = open_store(fx.url, 64);
    fx.store = toc_store_mysql_port(fx.mysql);
}

static inline void
setup(void)
{
    setup_empty();
    OK(toc_store_mysql_migrate(fx.mysql, err));
}

/* Connections that a test has left behind would keep the database from going,
 * each as long as the server lets it sit in an open transaction. */
static inline void
end_others(void)
{
    char sql[256];
    MYSQL_RES *rows;
    MYSQL_ROW row;

    snprintf(sql, sizeof sql,
             "SELECT ID FROM information_schema.PROCESSLIST WHERE DB='%s' AND "
             "ID<>CONNECTION_ID()",
             fx.db);
    if (mysql_query(fx.raw, sql) != 0 ||
        (rows = mysql_store_result(fx.raw)) == NULL)
        return;
    while ((row = mysql_fetch_row(rows)) != NULL) {
        snprintf(sql, sizeof sql, "KILL %s", row[0]);
        (void)mysql_query(fx.raw, sql);
    }
    mysql_free_result(rows);
}

static inline void
teardown(void)
{
    if (fx.mysql != NULL)
        toc_store_mysql_close(fx.mysql);
    if (fx.raw != NULL) {
        (void)mysql_query(fx.raw, "UNLOCK TABLES");
        end_others();
        raw("DROP DATABASE IF EXISTS %s", fx.db);
        mysql_close(fx.raw);
    }
    toc_arena_done(&fx.arena);
    memset(&fx, 0, sizeof fx);
}

/* Every test in a process of its own, the database too: check forks. */
static inline int
run_tests(const char *name, const toc_check_test *tests, size_t n, int timeout,
          void (*before)(void))
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, before, teardown);
    tcase_set_timeout(tcase, timeout);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define STORE_TESTS(name, timeout, ...)                                        \
    int main(void)                                                             \
    {                                                                          \
        const toc_check_test tests[] = {__VA_ARGS__};                          \
        return run_tests(name, tests, sizeof tests / sizeof tests[0], timeout, \
                         setup);                                               \
    }

/* ---- tasks ----------------------------------------------------------------
 */

static inline struct toc_task
make_task(const char *biz_type, const char *biz_id, const char *name,
          int64_t due_ms)
{
    struct toc_task task = {.fire = 1, .version = 1, .due_ms = due_ms};

    task.biz_type = toc_str_of(biz_type);
    task.biz_id = toc_str_of(biz_id);
    task.name = toc_str_of(name);
    task.key_hash = toc_key_hash_of(task.biz_type, task.biz_id, task.name);
    task.slice =
        toc_slice_of(toc_key_shard(task.key_hash), TOC_PRIORITY_NORMAL);
    task.created_ms = now_ms();
    task.spec = TOC_STR("spec");
    task.payload = TOC_STR("payload");
    task.target_id = 77;
    return task;
}

static inline struct toc_submit
make_submit(struct toc_task *task, uint8_t content)
{
    struct toc_submit item = {.task = task,
                              .content = {content},
                              .on_conflict = TOC_ON_CONFLICT_REJECT,
                              .key_window_ms = TOC_KEY_WINDOW_MS_DEFAULT};
    return item;
}

static inline enum toc_submit_result
submit_one(struct toc_task *task, uint8_t content,
           enum toc_on_conflict on_conflict, struct toc_task_ref *stored)
{
    struct toc_submit item = make_submit(task, content);
    struct toc_submit *items[] = {&item};

    item.on_conflict = on_conflict;
    OK(toc_store_submit(fx.store, items, 1, now_ms(), err));
    if (stored != NULL)
        *stored = item.stored;
    return item.result;
}

/* A task that was stored: biz_id, due. */
static inline struct toc_task
stored_task(const char *biz_id, int64_t due_ms)
{
    struct toc_task task = make_task("order", biz_id, "", due_ms);

    ck_assert_int_eq(submit_one(&task, 1, TOC_ON_CONFLICT_REJECT, NULL),
                     TOC_SUBMIT_CREATED);
    return task;
}

/* Sets the marks so that slots from ms on are in front of them. */
static inline void
set_low(int64_t ms)
{
    raw("UPDATE shard_owner SET low_ms=%lld,keygc_ms=%lld", (long long)ms,
        (long long)ms);
}

static inline struct toc_find
find_id(struct toc_task_id id)
{
    return (struct toc_find){.by_id = true, .id = id};
}

static inline struct toc_find
find_biz(const char *biz_type, const char *biz_id, const char *name)
{
    return (struct toc_find){.biz_type = toc_str_of(biz_type),
                             .biz_id = toc_str_of(biz_id),
                             .name = toc_str_of(name)};
}

static inline struct toc_task
get_id(struct toc_task_id id)
{
    struct toc_find find = find_id(id);
    struct toc_task task;

    OK(toc_store_get(fx.store, &find, &fx.arena, &task, err));
    return task;
}

static inline bool
is_there(struct toc_find find)
{
    struct toc_error error = {0};
    struct toc_task task;
    enum toc_status st =
        toc_store_get(fx.store, &find, &fx.arena, &task, &error);

    ck_assert_msg(st == TOC_OK || st == TOC_NOT_FOUND, "%s", error.msg);
    return st == TOC_OK;
}

/* The key row points to the row: true for every task that holds its key. */
static inline void
check_key(const struct toc_task *task)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf hex = {0};

    toc_buf_hex(&hex, task->id.b, 16);
    ck_assert_int_eq(
        raw("SELECT COUNT(*) FROM task_key k JOIN task_info t ON "
            "t.slice=k.slice AND t.slot_ms=k.slot_ms AND t.task_id=k.task_id "
            "AND t.key_hash=k.key_hash WHERE k.task_id=x'%s'",
            hex.data),
        1);
}

static inline struct toc_claim_lock
lock_of(uint64_t token, int64_t until_ms)
{
    return (struct toc_claim_lock){.token = token,
                                   .lock_until_ms = until_ms,
                                   .now_ms = now_ms(),
                                   .exec_node = 9};
}

static inline enum toc_claim_result
claim_one(const struct toc_task *task, uint64_t token, int64_t until_ms)
{
    struct toc_claim claim = {.ref = toc_task_ref_of(task), .sched_node = 5};
    struct toc_claim_lock lock = lock_of(token, until_ms);

    OK(toc_store_claim(fx.store, &claim, 1, &lock, &fx.arena, err));
    return claim.result;
}

/* A task that is being executed under the token. */
static inline struct toc_task
claimed_task(const char *biz_id, uint64_t token, int64_t until_ms)
{
    struct toc_task task = stored_task(biz_id, now_ms() - 10);

    ck_assert_int_eq(claim_one(&task, token, until_ms), TOC_CLAIM_WON);
    return get_id(task.id);
}

static inline struct toc_finish
make_finish(const struct toc_task *task, uint64_t token,
            enum toc_finish_kind kind)
{
    return (struct toc_finish){.ref = toc_task_ref_of(task),
                               .token = token,
                               .kind = kind,
                               .outcome = kind == TOC_FINISH_DONE
                                              ? TOC_RESULT_DONE
                                              : TOC_RESULT_FAILED,
                               .attempt = 1,
                               .called_ms = now_ms() - 5,
                               .ended_ms = now_ms()};
}

static inline struct toc_command
command_of(enum toc_command_kind kind, struct toc_task_id id)
{
    return (struct toc_command){.kind = kind,
                                .find = find_id(id),
                                .now_ms = now_ms(),
                                .who = TOC_STR("tester"),
                                .why = TOC_STR("because")};
}

static inline enum toc_command_result
command_id(enum toc_command_kind kind, struct toc_task_id id, int64_t due_ms)
{
    struct toc_command command = command_of(kind, id);

    command.due_ms = due_ms;
    OK(toc_store_command(fx.store, &command, &fx.arena, err));
    return command.result;
}

#endif
