/*
 * Goal: the interleavings that lose or double tasks when a statement is written
 * carelessly. Method: a second connection holds a transaction open, or changes
 * a row between two steps; each test says which mistake it looks for.
 */
#include "tests/integration/store/fixture.h"

static void
advance(int64_t at_ms)
{
    uint16_t shards[TOC_SHARDS];

    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        shards[i] = i;
    OK(toc_store_advance_low(fx.store, shards, TOC_SHARDS, at_ms, 60000, err));
}

struct call {
    struct toc_thread thread;
    enum toc_status st;
    struct toc_error error;
    bool ended;
    struct toc_task *task;
    struct toc_submit *item;
    struct toc_command *command;
    struct toc_arena arena;
};

static void
call_advance(void *arg)
{
    struct call *c = arg;
    uint16_t shards[TOC_SHARDS];

    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        shards[i] = i;
    c->st = toc_store_advance_low(fx.store, shards, TOC_SHARDS, now_ms(), 0,
                                  &c->error);
    __atomic_store_n(&c->ended, true, __ATOMIC_RELEASE);
}

static void
call_submit(void *arg)
{
    struct call *c = arg;

    c->st = toc_store_submit(fx.store, &c->item, 1, now_ms(), &c->error);
    __atomic_store_n(&c->ended, true, __ATOMIC_RELEASE);
}

static void
call_command(void *arg)
{
    struct call *c = arg;

    c->st = toc_store_command(fx.store, c->command, &c->arena, &c->error);
    __atomic_store_n(&c->ended, true, __ATOMIC_RELEASE);
}

static bool
has_ended(struct call *c)
{
    return __atomic_load_n(&c->ended, __ATOMIC_ACQUIRE);
}

/* Does the server show somebody waiting for a row lock? MySQL tells whole
 * seconds only; a lock is waited for for two. */
static bool
somebody_waits(void *arg)
{
    (void)arg;
    return raw("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE "
               "DB=DATABASE() AND COMMAND='Query' AND ID<>CONNECTION_ID() AND "
               "%s",
               fx.mariadb ? "TIME_MS>50" : "TIME>=1") > 0;
}

/* Mistake: a submit inserts, is frozen, commits later; the mark moved on. The
 * shared lock keeps the mark where it is until the commit. */
START_TEST(mark_waits_for_an_open_submit)
{
    MYSQL *frozen = raw_connect(fx.db);
    struct call c = {.st = TOC_OK};
    struct toc_task task = make_task("order", "a", "", now_ms());
    int64_t slot_ms = now_ms() - 1000, low_ms;

    raw_on(frozen, "START TRANSACTION");
    raw_on(frozen,
           "SELECT low_ms FROM shard_owner WHERE shard_id=%u LOCK IN "
           "SHARE MODE",
           toc_slice_shard(task.slice));
    raw_on(frozen,
           "INSERT INTO task_info SELECT %u,%lld,UNHEX('%032d'),0,0,0,0,1,1,0,"
           "0,0,0,0,0,0,0,0,0,'',0,0,UNHEX('%032d'),'','','','',0,'',NULL",
           task.slice, (long long)slot_ms, 1, 1);
    toc_thread_start(&c.thread, "advance", call_advance, &c);
    ck_assert(toc_eventually(somebody_waits, NULL));
    ck_assert(!has_ended(&c));
    low_ms = raw("SELECT low_ms FROM shard_owner WHERE shard_id=%u",
                 toc_slice_shard(task.slice));
    ck_assert_int_lt(low_ms, slot_ms);
    raw_on(frozen, "COMMIT");
    toc_thread_join(&c.thread);
    ck_assert_msg(c.st == TOC_OK, "%s", c.error.msg);
    ck_assert_int_eq(raw("SELECT low_ms FROM shard_owner WHERE shard_id=%u",
                         toc_slice_shard(task.slice)),
                     slot_ms); /* the row was seen */
    mysql_close(frozen);
}
END_TEST

/* Mistake: the mark reads rows with locks, so that it waits for (or blocks)
 * every claim and write-back. */
START_TEST(mark_does_not_wait_for_row_locks)
{
    MYSQL *busy = raw_connect(fx.db);
    struct toc_task task = stored_task("a", now_ms() - 1000);
    struct toc_submit item;
    struct toc_submit *items[] = {&item};

    raw("UPDATE shard_owner SET low_ms=%lld", (long long)(now_ms() - 300000));
    task = make_task("order", "b", "", now_ms() - 200000);
    item = make_submit(&task, 1);
    OK(toc_store_submit(fx.store, items, 1, now_ms() - 200000, err));
    raw_on(busy, "START TRANSACTION");
    raw_on(busy, "UPDATE task_info SET version=version+1");
    advance(now_ms()); /* would be TOC_UNAVAILABLE after seconds of waiting */
    ck_assert_int_eq(raw("SELECT low_ms FROM shard_owner WHERE shard_id=%u",
                         toc_slice_shard(task.slice)),
                     task.slot_ms);
    raw_on(busy, "ROLLBACK");
    mysql_close(busy);
}
END_TEST

/* Mistake: a submit that met the mark's lock goes on with the mark as it was
 * before. It must wait, and place its row above the new one. */
START_TEST(submit_waits_for_the_mark)
{
    MYSQL *mark = raw_connect(fx.db);
    struct toc_task task = make_task("order", "a", "", now_ms());
    struct toc_submit item = make_submit(&task, 1);
    struct call c = {.item = &item};
    int64_t low_ms = now_ms() + 30000;

    raw_on(mark, "START TRANSACTION");
    raw_on(mark, "UPDATE shard_owner SET low_ms=%lld", (long long)low_ms);
    toc_thread_start(&c.thread, "submit", call_submit, &c);
    ck_assert(toc_eventually(somebody_waits, NULL));
    ck_assert(!has_ended(&c));
    raw_on(mark, "COMMIT");
    toc_thread_join(&c.thread);
    ck_assert_msg(c.st == TOC_OK, "%s", c.error.msg);
    ck_assert_int_eq(item.result, TOC_SUBMIT_CREATED);
    ck_assert_int_eq(get_id(task.id).slot_ms, low_ms + 1);
    ck_assert_int_eq(task.slot_ms, low_ms + 1);
    check_key(&task);
    mysql_close(mark);
}
END_TEST

/* Mistake: a key that another transaction has inserted and not committed is
 * taken for free, or for taken. Both ends are tried. */
START_TEST(key_in_the_balance)
{
    for (int commit = 0; commit < 2; commit++) {
        const char *biz = commit ? "yes" : "no";
        MYSQL *other = raw_connect(fx.db);
        struct toc_task task = make_task("order", biz, "", now_ms() + 60000);
        struct toc_submit item = make_submit(&task, 1);
        struct call c = {.item = &item};
        TOC_CLEANUP(toc_buf_done) struct toc_buf hash = {0};
        toc_buf_hex(&hash, task.key_hash.b, 16);
        raw_on(other, "START TRANSACTION");
        raw_on(other,
               "INSERT INTO task_key VALUES (x'%s',UNHEX('%032d'),%u,5,"
               "UNHEX('%016d'))",
               hash.data, 77, task.slice, 0);
        raw_on(other,
               "INSERT INTO task_info SELECT %u,5,UNHEX('%032d'),0,0,0,0,1,1,0,"
               "0,0,0,0,0,0,0,0,0,'',0,0,x'%s','order','%s','','',0,'',NULL",
               task.slice, 77, hash.data, biz);
        toc_thread_start(&c.thread, "submit", call_submit, &c);
        ck_assert(toc_eventually(somebody_waits, NULL));
        ck_assert(!has_ended(&c));
        raw_on(other, commit ? "COMMIT" : "ROLLBACK");
        toc_thread_join(&c.thread);
        ck_assert_msg(c.st == TOC_OK, "%s", c.error.msg);
        ck_assert_int_eq(item.result,
                         commit ? TOC_SUBMIT_OTHER : TOC_SUBMIT_CREATED);
        mysql_close(other);
    }
}
END_TEST

/* Mistake: a command finds the place, a retry moves the row, the UPDATE hits 0
 * rows, and that is taken for "too late". Here the row is locked while the
 * command comes, and is elsewhere when it gets on. */
START_TEST(command_on_a_row_that_moves)
{
    MYSQL *mover = raw_connect(fx.db);
    struct toc_task task = stored_task("a", now_ms() + 60000), got;
    struct toc_command command = command_of(TOC_COMMAND_CANCEL, task.id);
    struct call c = {.command = &command};
    int64_t to_ms = task.slot_ms + DAY;

    raw_on(mover, "START TRANSACTION");
    raw_on(mover,
           "UPDATE task_info SET slot_ms=%lld,due_ms=%lld,version=version+1",
           (long long)to_ms, (long long)to_ms);
    raw_on(mover, "UPDATE task_key SET slot_ms=%lld", (long long)to_ms);
    toc_thread_start(&c.thread, "command", call_command, &c);
    ck_assert(toc_eventually(somebody_waits, NULL));
    raw_on(mover, "COMMIT");
    toc_thread_join(&c.thread);
    ck_assert_msg(c.st == TOC_OK, "%s", c.error.msg);
    ck_assert_int_eq(command.result, TOC_COMMAND_APPLIED);
    got = get_id(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_CANCELLED);
    ck_assert_int_eq(got.slot_ms, to_ms);
    ck_assert_uint_eq(got.version, 3);
    check_key(&got);
    toc_arena_done(&c.arena);
    mysql_close(mover);
}
END_TEST

/* Mistake: the claim is decided by the statement before it waited. A cancel
 * that is not committed yet comes first. */
START_TEST(cancel_commits_while_the_claim_waits)
{
    MYSQL *canceller = raw_connect(fx.db);
    struct toc_task task = stored_task("a", now_ms() - 10);
    struct toc_command command = command_of(TOC_COMMAND_CANCEL, task.id);
    struct call c = {.command = &command};

    /* The other way round as well: the claim is open, the cancel waits. */
    raw_on(canceller, "START TRANSACTION");
    raw_on(canceller,
           "UPDATE task_info SET status=2,lock_token=5,"
           "lock_until_ms=%lld",
           (long long)(now_ms() + 60000));
    toc_thread_start(&c.thread, "command", call_command, &c);
    ck_assert(toc_eventually(somebody_waits, NULL));
    raw_on(canceller, "COMMIT");
    toc_thread_join(&c.thread);
    ck_assert_msg(c.st == TOC_OK, "%s", c.error.msg);
    ck_assert_int_eq(command.result, TOC_COMMAND_TOO_LATE);
    ck_assert_uint_eq(get_id(task.id).flags, TOC_FLAG_CANCEL);
    toc_arena_done(&c.arena);
    mysql_close(canceller);
}
END_TEST

/* Mistake: the key row is moved though the row was not, and points nowhere. */
START_TEST(key_is_not_moved_without_its_row)
{
    struct toc_task task = claimed_task("a", 7, now_ms() + 60000), got;
    struct toc_finish end = make_finish(&task, 8, TOC_FINISH_RETRY);

    end.due_ms = now_ms() + DAY;
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    ck_assert_int_eq(end.result, TOC_FINISH_LOST);
    got = get_id(task.id);
    ck_assert_int_eq(got.slot_ms, task.slot_ms);
    check_key(&got);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_log"), 0);
}
END_TEST

/* Mistake: one stale result makes the whole batch fail, or one lost row is
 * counted as written because the number agrees. */
START_TEST(batch_with_one_stale_result)
{
    struct toc_task tasks[10];
    struct toc_finish ends[10];
    size_t freed;

    for (int i = 0; i < 10; i++) {
        tasks[i] = claimed_task(toc_arena_printf(&fx.arena, "s%d", i), 7,
                                now_ms() + (i == 4 ? -1 : 60000));
        ends[i] = make_finish(&tasks[i], 7,
                              i % 2 == 0 ? TOC_FINISH_DONE : TOC_FINISH_RETRY);
        ends[i].due_ms = now_ms() + 1000;
    }
    OK(toc_store_free_expired(fx.store, &tasks[4], 1, now_ms(), &freed, err));
    ck_assert_uint_eq(freed, 1);
    OK(toc_store_finish(fx.store, ends, 10, now_ms(), err));
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(ends[i].result,
                         i == 4 ? TOC_FINISH_LOST : TOC_FINISH_OK);
    ck_assert_int_eq(get_id(tasks[4].id).state, TOC_STATE_RETRY);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_log WHERE kind=1"), 5);
}
END_TEST

/* ---- lists
 * ------------------------------------------------------------------ */

static bool stop_changing;

/* Removes and brings back 2,000 rows that every list begins with. */
static void
change_rows(void *arg)
{
    MYSQL *mysql = raw_connect(fx.db);

    (void)arg;
    while (!__atomic_load_n(&stop_changing, __ATOMIC_ACQUIRE)) {
        raw_on(mysql, "DELETE FROM task_info WHERE slice=0; "
                      "INSERT INTO task_info SELECT * FROM some; "
                      "DELETE FROM dead_task WHERE biz_type='moves'; "
                      "INSERT INTO dead_task SELECT "
                      "*,CONV(HEX(task_id),16,10),'' FROM some");
    }
    mysql_close(mysql);
}

static size_t
count_tasks(void)
{
    struct toc_task_filter filter = {.biz_type = TOC_STR("stays")};
    struct toc_cursor cursor = {.set = false};
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    struct toc_task *tasks;
    size_t n, total = 0;

    do {
        OK(toc_store_list_tasks(fx.store, &filter, 1000, &cursor, &arena,
                                &tasks, &n, err));
        total += n;
    } while (cursor.set);
    return total;
}

static size_t
count_dead(void)
{
    struct toc_dead_filter filter = {.biz_type = TOC_STR("stays")};
    struct toc_cursor cursor = {.set = false};
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    struct toc_dead *dead;
    size_t n, total = 0;

    do {
        OK(toc_store_list_dead(fx.store, &filter, 1000, &cursor, &arena, &dead,
                               &n, err));
        total += n;
    } while (cursor.set);
    return total;
}

/* Mistake: the page and where it ends are read one after the other; rows that
 * go in between move the end over rows that nobody looked at. */
START_TEST(lists_miss_nothing_that_stays)
{
    struct toc_thread thread;

    make_numbers(12001);
    raw("CREATE TABLE some LIKE task_info; ALTER TABLE some REMOVE "
        "PARTITIONING");
    for (unsigned slice = 0; slice < 2; slice++)
        raw("INSERT INTO %s SELECT %u,%lld+seq,UNHEX(LPAD(HEX(%u+seq),32,'0')),"
            "5,0,0,0,1,2,0,0,0,0,0,0,0,0,0,1,'',0,0,"
            "UNHEX(LPAD(HEX(seq),32,'0')),"
            "IF(%u AND seq%%100=0,'stays','moves'),'','','',0,'',NULL FROM "
            "numbers WHERE seq BETWEEN 1 AND %u",
            slice == 0 ? "some" : "task_info", slice, (long long)now_ms(),
            slice == 0 ? 1000000 : 0, slice, slice == 0 ? 2000 : 12000);
    raw("INSERT INTO dead_task SELECT *,CONV(HEX(task_id),16,10),'' FROM "
        "task_info");
    toc_thread_start(&thread, "changes", change_rows, NULL);
    for (int i = 0; i < 30; i++) {
        ck_assert_uint_eq(count_tasks(), 120);
        ck_assert_uint_eq(count_dead(), 120);
    }
    __atomic_store_n(&stop_changing, true, __ATOMIC_RELEASE);
    toc_thread_join(&thread);
}
END_TEST

/* ---- deadlocks
 * ------------------------------------------------------------------ */

#define SUBMITTERS 6
#define KEYS 100

struct submitter {
    struct toc_thread thread;
    unsigned number;
    unsigned bad;
};

/* Batches of overlapping keys, in an order of each thread's own. */
static void
submit_batches(void *arg)
{
    struct submitter *s = arg;
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};

    for (int round = 0; round < 5; round++) {
        struct toc_task tasks[KEYS];
        struct toc_submit items[KEYS], *list[KEYS];
        for (unsigned i = 0; i < KEYS; i++) {
            unsigned key = (i * 37 + s->number * 11) % KEYS;
            tasks[i] = make_task("order",
                                 toc_arena_printf(&arena, "k%d-%u", round, key),
                                 "", now_ms() + 60000);
            items[i] = make_submit(&tasks[i], 1);
            list[i] = &items[i];
        }
        if (toc_store_submit(fx.store, list, KEYS, now_ms(), NULL) != TOC_OK)
            s->bad++;
    }
}

START_TEST(overlapping_batches)
{
    struct submitter threads[SUBMITTERS];

    for (unsigned i = 0; i < SUBMITTERS; i++) {
        threads[i] = (struct submitter){.number = i};
        toc_thread_start(&threads[i].thread, "submit", submit_batches,
                         &threads[i]);
    }
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        toc_thread_join(&threads[i].thread);
        ck_assert_uint_eq(threads[i].bad, 0);
    }
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 5 * KEYS);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_key"), 5 * KEYS);
}
END_TEST

/* Mistake: a connection that saw an error goes back with its transaction open,
 * and reads an old view, or holds locks. */
START_TEST(no_dirty_connection_comes_back)
{
    MYSQL *holder = raw_connect(fx.db);
    struct toc_task task = stored_task("a", now_ms() + 60000);
    struct toc_command command = command_of(TOC_COMMAND_PAUSE, task.id);
    struct toc_error error = {0};

    raw_on(holder, "START TRANSACTION");
    raw_on(holder, "SELECT * FROM task_info FOR UPDATE");
    ck_assert_int_eq(toc_store_command(fx.store, &command, &fx.arena, &error),
                     TOC_UNAVAILABLE); /* waited for a lock, four times */
    raw_on(holder, "ROLLBACK");
    raw("START TRANSACTION; SELECT COUNT(*) FROM task_info FOR UPDATE NOWAIT");
    raw("SELECT COUNT(*) FROM task_key FOR UPDATE NOWAIT");
    raw("SELECT COUNT(*) FROM shard_owner FOR UPDATE NOWAIT; ROLLBACK");
    OK(toc_store_command(fx.store, &command, &fx.arena, err));
    ck_assert_int_eq(command.result, TOC_COMMAND_APPLIED);
    mysql_close(holder);
}
END_TEST

/* A reader with an open transaction: the day is not dropped over its head, and
 * nobody has to wait behind the attempt. */
START_TEST(open_reader_and_a_drop)
{
    MYSQL *reader = raw_connect(fx.db);
    int64_t t = now_ms(), today = t - t % DAY;
    struct toc_error error = {0};
    size_t dropped = 0;

    raw("UPDATE shard_owner SET low_ms=%lld,keygc_ms=%lld",
        (long long)(today + 8 * DAY), (long long)(today + 8 * DAY));
    raw_on(reader, "START TRANSACTION");
    raw_on(reader, "SELECT COUNT(*) FROM task_info");
    ck_assert_int_eq(
        toc_store_drop_days(fx.store, today + 3 * DAY, DAY, &dropped, &error),
        TOC_UNAVAILABLE);
    (void)stored_task("a", t + 10 * DAY);
    raw_on(reader, "COMMIT");
    OK(toc_store_drop_days(fx.store, today + 3 * DAY, DAY, &dropped, err));
    ck_assert_uint_eq(dropped, 3);
    mysql_close(reader);
}
END_TEST

STORE_TESTS("store_races", 180, mark_waits_for_an_open_submit,
            mark_does_not_wait_for_row_locks, submit_waits_for_the_mark,
            key_in_the_balance, command_on_a_row_that_moves,
            cancel_commits_while_the_claim_waits,
            key_is_not_moved_without_its_row, batch_with_one_stale_result,
            overlapping_batches, no_dirty_connection_comes_back,
            open_reader_and_a_drop, lists_miss_nothing_that_stays)
