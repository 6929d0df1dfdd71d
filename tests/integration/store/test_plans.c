/*
 * Goal: what an operation reads depends on what it is for, never on how many
 * tasks have ended or are pending; and the number of statements stays within
 * what 5,000 tasks a second allow.
 *
 * Method: a million finished rows of today and a million pending ones (today
 * and tomorrow), their keys; around each operation the server's counters of
 * rows and key look-ups. The bounds are a few times what is needed, and far
 * below what a scan of a day, or of all partitions, would show. One test, for
 * filling takes most of the time.
 */
#include "tests/integration/store/fixture.h"

#define FINISHED 1000000
#define PENDING 1000000
#define SLICES (TOC_SHARDS * 3)

static uint16_t slices[SLICES];
static int64_t base_ms; /* the finished end here, the pending begin after it */

static void
fill(void)
{
    base_ms = now_ms() - 120000;
    for (unsigned i = 0; i < SLICES; i++)
        slices[i] = toc_slice_of((uint16_t)(i / 3), (enum toc_priority)(i % 3));
    make_numbers(FINISHED + PENDING + 1);
    raw("SET unique_checks=0, foreign_key_checks=0");
    /* finished: 5,000 a second up to base; pending: 5,000 a second from 60 s
     * after now, the second half a day later */
    raw("SET @base=%lld", (long long)base_ms);
    raw("INSERT INTO task_info SELECT CONV(LEFT(h,2),16,10)*4+seq MOD 3,slot,"
        "UNHEX(CONCAT(LEFT(h,12),LPAD(HEX(slot),12,'0'),RIGHT(h,8))),status,0,"
        "0,0,1,1,0,0,slot,0,slot,slot,slot,1,1,1,'',1,1,UNHEX(h),'order',"
        "CAST(seq AS BINARY),'','spec',7,'payload',NULL FROM "
        "(SELECT seq,LEFT(SHA2(seq,256),32) AS h,IF(seq<=%d,5,0) AS status,"
        "@base+IF(seq<=%d,-(seq DIV 5),180000+(seq-%d) DIV 5+IF(seq MOD 2=0,0,"
        "86400000)) AS slot FROM numbers WHERE seq BETWEEN 1 AND %d) AS s",
        FINISHED, FINISHED, FINISHED, FINISHED + PENDING);
    raw("INSERT INTO task_key SELECT key_hash,task_id,slice,slot_ms,"
        "UNHEX('0100000000000000') FROM task_info ORDER BY key_hash");
    raw("UPDATE shard_owner SET low_ms=%lld,keygc_ms=%lld",
        (long long)(base_ms - 1000), (long long)(base_ms - 100000));
}

/* ---- measuring --------------------------------------------------------------
 */

struct counts {
    int64_t rows, keys, statements, ns;
};

/* All ways of reading a row but a look-up by key. */
static int64_t
rows_read(void)
{
    return server_counts("Handler_read_%", "Handler_read_key");
}

static struct counts start;
static int64_t own_rows; /* what measuring itself reads */

static void
begin(void)
{
    start.rows = rows_read();
    start.keys = server_counts("Handler_read_key", "");
    start.statements = (int64_t)toc_store_mysql_statements(fx.mysql);
    start.ns = toc_os_mono_ns();
}

static void
end(const char *what, int64_t rows_max, int64_t keys_max,
    int64_t statements_max)
{
    int64_t ns = toc_os_mono_ns() - start.ns;
    int64_t statements =
        (int64_t)toc_store_mysql_statements(fx.mysql) - start.statements;
    int64_t rows = rows_read() - start.rows - own_rows;
    int64_t keys = server_counts("Handler_read_key", "") - start.keys;

    printf("%-28s %7lld rows %6lld keys %4lld statements %8.2f ms\n", what,
           (long long)rows, (long long)keys, (long long)statements,
           (double)ns / 1e6);
    fflush(stdout);
    ck_assert_msg(rows <= rows_max, "%s read %lld rows", what, (long long)rows);
    ck_assert_msg(keys <= keys_max, "%s looked up %lld keys", what,
                  (long long)keys);
    ck_assert_msg(statements <= statements_max, "%s took %lld statements", what,
                  (long long)statements);
}

static size_t n_seen;
static struct toc_task last_seen;

static void
count(void *arg, const struct toc_task *task)
{
    (void)arg;
    n_seen++;
    last_seen = *task;
}

static void
load(const char *what, int64_t a, int64_t b, int64_t c, int64_t d,
     size_t expected)
{
    struct toc_slot_span spans[2] = {{a, b}, {c, d}};

    n_seen = 0;
    begin();
    OK(toc_store_load(fx.store, slices, SLICES, spans, 2, count, NULL, err));
    end(what, (int64_t)expected + 2 * SLICES, 3 * SLICES, 1);
    ck_assert_uint_eq(n_seen, expected);
}

/* n tasks that are due now, submitted in one batch. */
static struct toc_task *
due_tasks(const char *prefix, size_t n)
{
    struct toc_task *tasks = toc_arena_calloc(&fx.arena, n, sizeof *tasks);
    struct toc_submit *items = toc_arena_calloc(&fx.arena, n, sizeof *items);
    struct toc_submit **list = toc_arena_calloc(&fx.arena, n, sizeof *list);

    for (size_t i = 0; i < n; i++) {
        tasks[i] =
            make_task("order", toc_arena_printf(&fx.arena, "%s%zu", prefix, i),
                      "", now_ms() - 10);
        items[i] = make_submit(&tasks[i], 1);
        list[i] = &items[i];
    }
    begin();
    OK(toc_store_submit(fx.store, list, n, now_ms(), err));
    end(toc_arena_printf(&fx.arena, "submit %zu", n), (int64_t)(256 + 2 * n),
        (int64_t)(300 + 2 * n), 6);
    return tasks;
}

static void
run_batch(size_t n, enum toc_finish_kind kind)
{
    const char *prefix = toc_arena_printf(&fx.arena, "k%zu-%d-", n, (int)kind);
    struct toc_task *tasks = due_tasks(prefix, n);
    struct toc_claim *claims = toc_arena_calloc(&fx.arena, n, sizeof *claims);
    struct toc_finish *ends = toc_arena_calloc(&fx.arena, n, sizeof *ends);
    struct toc_claim_lock lock = lock_of(n, now_ms() + 60000);
    int64_t many = (int64_t)n;

    for (size_t i = 0; i < n; i++)
        claims[i] = (struct toc_claim){.ref = toc_task_ref_of(&tasks[i]),
                                       .sched_node = (uint32_t)i};
    begin();
    OK(toc_store_claim(fx.store, claims, n, &lock, &fx.arena, err));
    end(toc_arena_printf(&fx.arena, "claim %zu", n), many + 2, many + 2, 1);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(claims[i].result, TOC_CLAIM_WON);
        ends[i] = make_finish(&tasks[i], n, kind);
        ends[i].called_ms = (int64_t)i + 1;
        ends[i].due_ms = now_ms() + 90000 + (int64_t)i;
    }
    begin();
    OK(toc_store_finish(fx.store, ends, n, now_ms(), err));
    if (kind == TOC_FINISH_DONE)
        end(toc_arena_printf(&fx.arena, "done %zu", n), many + 2, many + 2, 4);
    else
        end(toc_arena_printf(&fx.arena, "retry %zu", n), 4 * many + 260,
            4 * many + 260, 9);
}

static void
scan_all(const char *what, int64_t from_ms, int64_t to_ms, int64_t rows_max)
{
    n_seen = 0;
    begin();
    OK(toc_store_scan(fx.store, slices, SLICES, from_ms, to_ms, count, NULL,
                      err));
    end(what, rows_max, 2 * SLICES + 300, 2);
}

static void
look_ups(void)
{
    struct toc_find by_key = find_biz("order", "k64-0-1", "");
    struct toc_find by_id;
    struct toc_task task, *list;
    size_t n;

    begin();
    OK(toc_store_get(fx.store, &by_key, &fx.arena, &task, err));
    end("get by key", 3, 3, 1);
    by_id = find_id(task.id);
    begin();
    OK(toc_store_get(fx.store, &by_id, &fx.arena, &task, err));
    end("get by id", 4, 3, 1);
    begin();
    OK(toc_store_list_biz(fx.store, TOC_STR("order"), TOC_STR("k64-0-1"),
                          &fx.arena, &list, &n, err));
    end("list a business id", 10, 60, 3);
    ck_assert_uint_eq(n, 1);
    by_key.name = TOC_STR("nothing");
    begin();
    ck_assert(!is_there(by_key));
    end("get what is not there", 5, 60, 2);
}

static void
command_on(enum toc_command_kind kind, const char *what)
{
    struct toc_task task = stored_task(what, now_ms() + 50000);

    begin();
    ck_assert_int_eq(command_id(kind, task.id, now_ms() + 70000),
                     TOC_COMMAND_APPLIED);
    end(what, 12, 12, 9);
}

START_TEST(plans)
{
    int64_t t = base_ms;
    struct toc_task_filter filter = {.biz_type = TOC_STR("none")};
    struct toc_cursor cursor = {.set = false};
    struct toc_task *tasks;
    uint16_t shards[TOC_SHARDS];
    size_t n;
    int64_t filled = toc_os_mono_ns();

    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        shards[i] = i;
    fill();
    printf("%-28s %.1f s\n", "filled in",
           (double)(toc_os_mono_ns() - filled) / 1e9);

    /* A connection that was idle while the tables were filled may be gone. */
    OK(toc_store_now(fx.store, &t, err));
    t = base_ms;
    begin();
    end("nothing at all", 100000, 100, 0);
    begin();
    own_rows = rows_read() - start.rows;

    load("load, nothing due", t + 60000, t + 62400, t + 69000, t + 70000, 0);
    load("load 5,000 + 2,500", t + 200000, t + 202000, t + 210000, t + 211000,
         7500);
    run_batch(1, TOC_FINISH_DONE);
    run_batch(64, TOC_FINISH_DONE);
    run_batch(256, TOC_FINISH_DONE);
    run_batch(500, TOC_FINISH_DONE);
    run_batch(1, TOC_FINISH_RETRY);
    run_batch(50, TOC_FINISH_RETRY);
    look_ups();
    command_on(TOC_COMMAND_CANCEL, "cancel");
    command_on(TOC_COMMAND_PAUSE, "pause");
    command_on(TOC_COMMAND_RESCHEDULE, "reschedule");
    command_on(TOC_COMMAND_RUN_NOW, "run now");

    /* 10 s of finished rows lie between the marks and the end: 50,000. */
    raw("UPDATE shard_owner SET low_ms=%lld", (long long)(t - 10000));
    scan_all("sweep, 50,000 finished", 0, t + 1000, 50000 + 3 * SLICES);
    ck_assert_uint_eq(n_seen, 0);
    begin();
    OK(toc_store_advance_low(fx.store, shards, TOC_SHARDS, t + 60000, 60000,
                             err));
    end("advance 256 marks", 50000 + 6 * SLICES, 6 * SLICES, 6 * 8);
    scan_all("sweep, nothing", 0, t + 1000, 3 * SLICES);
    begin();
    OK(toc_store_advance_low(fx.store, shards, TOC_SHARDS, t + 61000, 60000,
                             err));
    end("advance, nothing there", 6 * SLICES, 6 * SLICES, 6 * 8);
    begin();
    OK(toc_store_record_stragglers(fx.store, 7, t + 1000, 1000, &n, err));
    end("record stragglers", 20, 20, 5);
    begin();
    OK(toc_store_scan_stragglers(fx.store, slices, SLICES, count, NULL, err));
    end("scan stragglers", 2 * SLICES, 2 * SLICES, 1);
    begin();
    OK(toc_store_move_far(fx.store, slices, SLICES, now_ms(), 500, &n, err));
    end("move far, nothing", 2 * SLICES, 2 * SLICES, 1);

    begin();
    OK(toc_store_gc_keys(fx.store, 7, t + 100, 0, 500, &n, err));
    end("free 500 keys", 6000, 3000, 40);
    ck_assert_uint_eq(n, 500);
    begin();
    OK(toc_store_list_tasks(fx.store, &filter, 50, &cursor, &fx.arena, &tasks,
                            &n, err));
    end("list, nothing matches", 2 * 5000 + 12000, 400, 2);
    ck_assert(cursor.set);
    begin();
    OK(toc_store_list_tasks(fx.store, &filter, 50, &cursor, &fx.arena, &tasks,
                            &n, err));
    end("list, next page", 2 * 5000 + 12000, 900, 2);
    filter.biz_type = (struct toc_str){NULL, 0};
    begin();
    OK(toc_store_list_tasks(fx.store, &filter, 50, &cursor, &fx.arena, &tasks,
                            &n, err));
    end("list 50", 1000, 900, 2);
    ck_assert_uint_eq(n, 50);
}
END_TEST

STORE_TESTS("store_plans", 590, plans)
