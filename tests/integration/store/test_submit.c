/*
 * Goal: submit and look-up keep every promise of store.h: what is stored is
 * what was given, keys are unique whatever happens, conflicts are answered by
 * the stated rule. Method: real database, one store, sometimes many threads.
 */
#include "tests/integration/store/fixture.h"

START_TEST(migrates_again)
{
    struct toc_store_mysql *other = open_store(fx.url, 2);

    OK(toc_store_mysql_migrate(other, err));
    OK(toc_store_mysql_migrate(fx.mysql, err));
    toc_store_mysql_close(other);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM shard_owner"), 256);
    ck_assert_int_ge(raw("SELECT COUNT(*) FROM information_schema.PARTITIONS "
                         "WHERE TABLE_SCHEMA=DATABASE() AND "
                         "TABLE_NAME='task_info'"),
                     37);
}
END_TEST

struct migrator {
    struct toc_thread thread;
    enum toc_status st;
    struct toc_error error;
};

static void
migrate(void *arg)
{
    struct migrator *m = arg;
    struct toc_store_mysql *store = open_store(fx.url, 1);

    m->st = toc_store_mysql_migrate(store, &m->error);
    toc_store_mysql_close(store);
}

/* Six processes start on an empty database. */
START_TEST(migrates_an_empty_database_at_once)
{
    struct migrator migrators[6];

    raw("DROP DATABASE %s; CREATE DATABASE %s; USE %s", fx.db, fx.db, fx.db);
    for (int i = 0; i < 6; i++)
        toc_thread_start(&migrators[i].thread, "migrate", migrate,
                         &migrators[i]);
    for (int i = 0; i < 6; i++) {
        toc_thread_join(&migrators[i].thread);
        ck_assert_msg(migrators[i].st == TOC_OK, "%s", migrators[i].error.msg);
    }
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM schema_version"), 3);
    (void)stored_task("a", now_ms() + 1000);
}
END_TEST

START_TEST(refuses_a_newer_schema)
{
    struct toc_error error = {0};

    raw("INSERT INTO schema_version VALUES (999,'later',0)");
    ck_assert_int_eq(toc_store_mysql_migrate(fx.mysql, &error),
                     TOC_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(error.msg, "999"));
}
END_TEST

START_TEST(stores_what_was_given)
{
    static const char bytes[] = "\x00\xff\xfe'\"\\\n\x80;--";
    int64_t due_ms = now_ms() + 5000;
    struct toc_task task = make_task("a'b", "id\\\"", "n", due_ms), got;

    task.flags = TOC_FLAG_AT_MOST_ONCE;
    task.line_id = 4000000000u;
    task.payload = (struct toc_str){bytes, sizeof bytes - 1};
    ck_assert_int_eq(submit_one(&task, 7, TOC_ON_CONFLICT_REJECT, NULL),
                     TOC_SUBMIT_CREATED);
    ck_assert_int_eq(task.slot_ms, due_ms);
    got = get_id(task.id);
    ck_assert_int_eq(got.slice, task.slice);
    ck_assert_int_eq(got.slot_ms, due_ms);
    ck_assert_int_eq(got.due_ms, due_ms);
    ck_assert_int_eq(got.state, TOC_STATE_INIT);
    ck_assert_uint_eq(got.flags, TOC_FLAG_AT_MOST_ONCE);
    ck_assert_uint_eq(got.version, 1);
    ck_assert_uint_eq(got.fire, 1);
    ck_assert_int_eq(got.created_ms, task.created_ms);
    ck_assert_uint_eq(got.line_id, 4000000000u);
    ck_assert_uint_eq(got.target_id, 77);
    ck_assert(toc_str_eq(got.payload, task.payload));
    ck_assert(toc_str_eq(got.biz_type, task.biz_type));
    ck_assert(toc_str_eq(got.biz_id, task.biz_id));
    ck_assert(toc_str_eq(got.name, task.name));
    ck_assert(toc_str_eq(got.spec, task.spec));
    check_key(&task);
    ck_assert(is_there(find_biz("a'b", "id\\\"", "n")));
    ck_assert(!is_there(find_biz("a'b", "id\\\"", "")));
}
END_TEST

START_TEST(payloads_of_any_size)
{
    static const size_t sizes[] = {0,    1,    1023,  1024,
                                   1025, 8191, 65536, 1048576};
    char *bytes = toc_alloc(1048576);

    for (size_t i = 0; i < 1048576; i++)
        bytes[i] = (char)(i * 7);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char id[16];
        struct toc_task task, got;
        snprintf(id, sizeof id, "p%zu", i);
        task = make_task("order", id, "", now_ms() + 1000);
        task.payload = (struct toc_str){bytes, sizes[i]};
        ck_assert_int_eq(submit_one(&task, 1, TOC_ON_CONFLICT_REJECT, NULL),
                         TOC_SUBMIT_CREATED);
        got = get_id(task.id);
        ck_assert(toc_str_eq(got.payload, task.payload));
    }
    toc_free(bytes);
}
END_TEST

/* A batch whose sum is beyond the packet limit goes in several packets. */
START_TEST(batch_beyond_the_packet)
{
    enum { N = 24 };
    struct toc_task tasks[N];
    struct toc_submit items[N], *list[N];
    char ids[N][8];
    char *bytes = toc_calloc(1, 1048576);

    for (int i = 0; i < N; i++) {
        snprintf(ids[i], sizeof ids[i], "b%d", i);
        tasks[i] = make_task("order", ids[i], "", now_ms() + 1000);
        tasks[i].payload = (struct toc_str){bytes, 1048576};
        items[i] = make_submit(&tasks[i], 1);
        list[i] = &items[i];
    }
    OK(toc_store_submit(fx.store, list, N, now_ms(), err));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(items[i].result, TOC_SUBMIT_CREATED);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info WHERE "
                         "LENGTH(payload_long)=1048576"),
                     N);
    toc_free(bytes);
}
END_TEST

/* Due times from the year 1 to 9999 are stored exactly; the slot says where. */
START_TEST(due_times_of_all_ages)
{
    static const int64_t dues[] = {TOC_DUE_MS_MIN, -1, 0, 1, TOC_DUE_MS_MAX - 1,
                                   TOC_DUE_MS_MAX};

    for (size_t i = 0; i < sizeof dues / sizeof dues[0]; i++) {
        char id[16];
        struct toc_task task, got;
        snprintf(id, sizeof id, "d%zu", i);
        task = stored_task(id, dues[i]);
        got = get_id(task.id);
        ck_assert_int_eq(got.due_ms, dues[i]);
        ck_assert_int_eq(got.slot_ms, task.slot_ms);
        ck_assert(toc_slot_is_far(got.slot_ms) == (dues[i] > now_ms()));
        check_key(&task);
    }
}
END_TEST

START_TEST(due_around_the_last_day)
{
    for (int day = 30; day < 40; day++) {
        char id[16];
        struct toc_task task;
        snprintf(id, sizeof id, "l%d", day);
        task = stored_task(id, now_ms() + day * DAY);
        ck_assert_int_eq(get_id(task.id).slot_ms, task.slot_ms);
    }
}
END_TEST

/* A slot for which no day was made: the day is made, nothing fails. */
START_TEST(day_not_made_yet)
{
    int64_t ahead = now_ms() + 40 * DAY; /* a submitter's clock */
    struct toc_task task = make_task("order", "x", "", ahead + 20 * DAY);
    struct toc_submit item = make_submit(&task, 1), *items[] = {&item};

    OK(toc_store_submit(fx.store, items, 1, ahead, err));
    ck_assert_int_eq(item.result, TOC_SUBMIT_CREATED);
    ck_assert_int_eq(get_id(task.id).slot_ms, ahead + 20 * DAY);
}
END_TEST

START_TEST(same_key_again)
{
    struct toc_task first = stored_task("k", now_ms() + 60000), again;
    struct toc_task_ref stored;

    again = make_task("order", "k", "", now_ms() + 70000);
    ck_assert_int_eq(submit_one(&again, 1, TOC_ON_CONFLICT_REJECT, &stored),
                     TOC_SUBMIT_SAME);
    ck_assert_int_eq(toc_task_id_cmp(stored.id, first.id), 0);
    ck_assert_uint_eq(stored.version, 1);
    ck_assert_int_eq(stored.slot_ms, first.slot_ms);
    again = make_task("order", "k", "", now_ms() + 70000);
    ck_assert_int_eq(submit_one(&again, 2, TOC_ON_CONFLICT_REJECT, &stored),
                     TOC_SUBMIT_OTHER);
    ck_assert_int_eq(toc_task_id_cmp(stored.id, first.id), 0);
    again = make_task("order", "k", "", now_ms() + 70000);
    ck_assert_int_eq(submit_one(&again, 2, TOC_ON_CONFLICT_KEEP, &stored),
                     TOC_SUBMIT_OTHER);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 1);
    ck_assert_int_eq(get_id(first.id).due_ms, first.due_ms);
}
END_TEST

START_TEST(replace_a_waiting_task)
{
    int64_t dues[] = {60000, 60 * DAY};

    for (int i = 0; i < 2; i++) {
        const char *biz = i == 0 ? "near" : "far";
        struct toc_task first = stored_task(biz, now_ms() + dues[i]), second,
                        old;
        second = make_task("order", biz, "", now_ms() + 90000);
        ck_assert_int_eq(submit_one(&second, 2, TOC_ON_CONFLICT_REPLACE, NULL),
                         TOC_SUBMIT_REPLACED);
        old = get_id(first.id);
        ck_assert_int_eq(old.state, TOC_STATE_CANCELLED);
        ck_assert_uint_eq(old.version, 2);
        ck_assert(!toc_slot_is_parked(old.slot_ms));
        ck_assert_int_eq(get_id(second.id).state, TOC_STATE_INIT);
        check_key(&second);
    }
}
END_TEST

START_TEST(replace_a_task_in_call)
{
    struct toc_task first = claimed_task("c", 11, now_ms() + 60000);
    struct toc_task second = make_task("order", "c", "", now_ms());
    struct toc_task_ref stored;

    ck_assert_int_eq(submit_one(&second, 2, TOC_ON_CONFLICT_REPLACE, &stored),
                     TOC_SUBMIT_TOO_LATE);
    ck_assert_int_eq(toc_task_id_cmp(stored.id, first.id), 0);
    ck_assert_int_eq(get_id(first.id).state, TOC_STATE_EXECUTING);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 1);
}
END_TEST

/* An ended task holds its key for the window, then the key is free; the old
 * task is still found. */
START_TEST(key_window)
{
    struct toc_task first = stored_task("w", now_ms() + 60000), next;
    struct toc_submit item, *items[] = {&item};
    struct toc_task *all;
    size_t n;

    ck_assert_int_eq(command_id(TOC_COMMAND_CANCEL, first.id, 0),
                     TOC_COMMAND_APPLIED);
    next = make_task("order", "w", "", now_ms() + 1000);
    ck_assert_int_eq(submit_one(&next, 1, TOC_ON_CONFLICT_REJECT, NULL),
                     TOC_SUBMIT_SAME);
    next = make_task("order", "w", "", now_ms() + 1000);
    ck_assert_int_eq(submit_one(&next, 2, TOC_ON_CONFLICT_REJECT, NULL),
                     TOC_SUBMIT_OTHER);
    next = make_task("order", "w", "", now_ms() + 1000);
    item = make_submit(&next, 1);
    item.key_window_ms = 0;
    OK(toc_store_submit(fx.store, items, 1, now_ms(), err));
    ck_assert_int_eq(item.result, TOC_SUBMIT_CREATED);
    check_key(&next);
    ck_assert_int_eq(get_id(first.id).state, TOC_STATE_CANCELLED);
    OK(toc_store_list_biz(fx.store, TOC_STR("order"), TOC_STR("w"), &fx.arena,
                          &all, &n, err));
    ck_assert_uint_eq(n, 2);
    next = make_task("order", "w", "", now_ms() + 1000);
    ck_assert_int_eq(submit_one(&next, 9, TOC_ON_CONFLICT_REPLACE, NULL),
                     TOC_SUBMIT_REPLACED);
    check_key(&next);
}
END_TEST

START_TEST(replace_an_ended_task)
{
    struct toc_task first = stored_task("e", now_ms() + 60000), next;

    ck_assert_int_eq(command_id(TOC_COMMAND_CANCEL, first.id, 0),
                     TOC_COMMAND_APPLIED);
    next = make_task("order", "e", "", now_ms() + 1000);
    ck_assert_int_eq(submit_one(&next, 2, TOC_ON_CONFLICT_REPLACE, NULL),
                     TOC_SUBMIT_REPLACED);
    ck_assert_uint_eq(get_id(first.id).version, 2);
    check_key(&next);
}
END_TEST

/* A submit that is made again with its id finds its own task, even when that
 * has lost its key since, to another submit or to time. */
START_TEST(repeated_after_the_key_went_on)
{
    struct toc_task a = stored_task("a", now_ms() + 60000), b, again, fresh;
    struct toc_submit items[2], *list[] = {&items[0], &items[1]};

    b = make_task("order", "a", "", now_ms() + 70000);
    ck_assert_int_eq(submit_one(&b, 2, TOC_ON_CONFLICT_REPLACE, NULL),
                     TOC_SUBMIT_REPLACED);
    again = make_task("order", "a", "", now_ms() + 60000);
    again.id = a.id;
    ck_assert_int_eq(submit_one(&again, 1, TOC_ON_CONFLICT_REPLACE, NULL),
                     TOC_SUBMIT_CREATED);
    ck_assert_int_eq(again.slot_ms, a.slot_ms);
    ck_assert_int_eq(get_id(b.id).state, TOC_STATE_INIT);
    check_key(&b);
    /* now the key is free, and the task comes with a new one */
    command_id(TOC_COMMAND_CANCEL, b.id, 0);
    raw("INSERT INTO key_history SELECT key_hash,slot_ms,task_id,slice FROM "
        "task_key; DELETE FROM task_key");
    again = make_task("order", "a", "", now_ms() + 80000);
    again.id = b.id;
    fresh = make_task("order", "fresh", "", now_ms() + 80000);
    items[0] = make_submit(&again, 2);
    items[1] = make_submit(&fresh, 1);
    OK(toc_store_submit(fx.store, list, 2, now_ms(), err));
    ck_assert_int_eq(items[0].result, TOC_SUBMIT_CREATED);
    ck_assert_int_eq(again.slot_ms, b.slot_ms);
    ck_assert_int_eq(items[1].result, TOC_SUBMIT_CREATED);
    check_key(&fresh);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 3);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_key"), 1);
}
END_TEST

/* A key whose row is gone (its day was dropped) is free. */
START_TEST(key_without_a_row)
{
    struct toc_task first = stored_task("g", now_ms() + 1000), next;

    raw("DELETE FROM task_info");
    ck_assert(!is_there(find_id(first.id)));
    next = make_task("order", "g", "", now_ms() + 1000);
    ck_assert_int_eq(submit_one(&next, 2, TOC_ON_CONFLICT_REJECT, NULL),
                     TOC_SUBMIT_CREATED);
    check_key(&next);
}
END_TEST

START_TEST(equal_keys_in_one_batch)
{
    enum { N = 5 };
    static const uint8_t contents[N] = {1, 1, 2, 3, 3};
    struct toc_task tasks[N];
    struct toc_submit items[N], *list[N];

    for (int i = 0; i < N; i++) {
        tasks[i] = make_task("order", "same", "", now_ms() + 60000);
        items[i] = make_submit(&tasks[i], contents[i]);
        list[i] = &items[i];
    }
    items[3].on_conflict = items[4].on_conflict = TOC_ON_CONFLICT_REPLACE;
    OK(toc_store_submit(fx.store, list, N, now_ms(), err));
    ck_assert_int_eq(items[0].result, TOC_SUBMIT_CREATED);
    ck_assert_int_eq(items[1].result, TOC_SUBMIT_SAME);
    ck_assert_int_eq(toc_task_id_cmp(items[1].stored.id, tasks[0].id), 0);
    ck_assert_int_eq(items[2].result, TOC_SUBMIT_OTHER);
    ck_assert_int_eq(items[3].result, TOC_SUBMIT_REPLACED);
    ck_assert_int_eq(items[4].result, TOC_SUBMIT_SAME);
    ck_assert_int_eq(toc_task_id_cmp(items[4].stored.id, tasks[3].id), 0);
    ck_assert_int_eq(get_id(tasks[0].id).state, TOC_STATE_CANCELLED);
    check_key(&tasks[3]);
}
END_TEST

/* Keys are bytes: none of these is another. */
START_TEST(keys_that_look_alike)
{
    static const char *const ids[] = {
        "order-a",          "Order-A",        "ORDER-A",   "ord\xc3\xa9r",
        "orde\xcc\x81r",    "order-a ",       " order-a",  "\xef\xbd\x8frder",
        "\xf0\x9f\x98\x80", "order-\xc3\xa4", "order-a\t",
    };
    struct toc_task tasks[sizeof ids / sizeof ids[0]];
    size_t n = sizeof ids / sizeof ids[0];

    for (size_t i = 0; i < n; i++)
        tasks[i] = stored_task(ids[i], now_ms() + 60000);
    ck_assert_int_eq(command_id(TOC_COMMAND_CANCEL, tasks[0].id, 0),
                     TOC_COMMAND_APPLIED);
    for (size_t i = 1; i < n; i++)
        ck_assert_int_eq(get_id(tasks[i].id).state, TOC_STATE_INIT);
    for (size_t i = 0; i < n; i++)
        ck_assert(is_there(find_biz("order", ids[i], "")));
}
END_TEST

/* A row with our hash but other texts (made by hand) is not taken for ours. */
START_TEST(collision_of_hashes)
{
    struct toc_task task = stored_task("one", now_ms() + 60000), other;

    raw("UPDATE task_info SET biz_id='two'");
    ck_assert(!is_there(find_biz("order", "one", "")));
    other = make_task("order", "one", "", now_ms() + 1000);
    ck_assert_int_eq(submit_one(&other, 1, TOC_ON_CONFLICT_REPLACE, NULL),
                     TOC_SUBMIT_OTHER);
    ck_assert_int_eq(get_id(task.id).state, TOC_STATE_INIT);
}
END_TEST

/* ---- many at once ---------------------------------------------------------
 */

#define THREADS 50

struct racer {
    struct toc_thread thread;
    struct toc_task task;
    struct toc_submit item;
    enum toc_status st;
};

static void
race(void *arg)
{
    struct racer *r = arg;
    struct toc_submit *items[] = {&r->item};

    r->st = toc_store_submit(fx.store, items, 1, now_ms(), NULL);
}

START_TEST(fifty_threads_one_key)
{
    struct racer *racers = TOC_NEW_ARRAY(struct racer, THREADS);
    const struct toc_task *winner = NULL;
    int created = 0, same = 0, other = 0;

    for (int i = 0; i < THREADS; i++) {
        racers[i].task = make_task("order", "race", "", now_ms() + 60000 + i);
        racers[i].item = make_submit(&racers[i].task, (uint8_t)(i % 2));
    }
    for (int i = 0; i < THREADS; i++)
        toc_thread_start(&racers[i].thread, "racer", race, &racers[i]);
    for (int i = 0; i < THREADS; i++) {
        toc_thread_join(&racers[i].thread);
        ck_assert_int_eq(racers[i].st, TOC_OK);
        created += racers[i].item.result == TOC_SUBMIT_CREATED;
        same += racers[i].item.result == TOC_SUBMIT_SAME;
        other += racers[i].item.result == TOC_SUBMIT_OTHER;
        if (racers[i].item.result == TOC_SUBMIT_CREATED)
            winner = &racers[i].task;
    }
    ck_assert_int_eq(created, 1);
    ck_assert_int_eq(same, THREADS / 2 - 1);
    ck_assert_int_eq(other, THREADS / 2);
    for (int i = 0; i < THREADS; i++)
        if (racers[i].item.result != TOC_SUBMIT_CREATED)
            ck_assert_int_eq(
                toc_task_id_cmp(racers[i].item.stored.id, winner->id), 0);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 1);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_key"), 1);
    toc_free(racers);
}
END_TEST

/* All replace: each that was told REPLACED or CREATED did exist, one is left.
 */
START_TEST(fifty_threads_replace)
{
    struct racer *racers = TOC_NEW_ARRAY(struct racer, THREADS);
    int made = 0;

    for (int i = 0; i < THREADS; i++) {
        racers[i].task = make_task("order", "race", "", now_ms() + 60000 + i);
        racers[i].item = make_submit(&racers[i].task, (uint8_t)i);
        racers[i].item.on_conflict = TOC_ON_CONFLICT_REPLACE;
    }
    for (int i = 0; i < THREADS; i++)
        toc_thread_start(&racers[i].thread, "racer", race, &racers[i]);
    for (int i = 0; i < THREADS; i++) {
        toc_thread_join(&racers[i].thread);
        if (racers[i].st == TOC_UNAVAILABLE)
            continue; /* too many races: allowed, and nothing happened */
        ck_assert_int_eq(racers[i].st, TOC_OK);
        made += racers[i].item.result == TOC_SUBMIT_CREATED ||
                racers[i].item.result == TOC_SUBMIT_REPLACED;
    }
    ck_assert_int_ge(made, THREADS / 2);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), made);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info WHERE status=0"), 1);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_key k JOIN task_info t ON "
                         "t.task_id=k.task_id AND t.status=0"),
                     1);
    toc_free(racers);
}
END_TEST

START_TEST(lists_a_business_id)
{
    struct toc_task *all;
    size_t n;

    for (int i = 0; i < 5; i++) {
        char name[8];
        struct toc_task task;
        snprintf(name, sizeof name, "n%d", i);
        task = make_task("order", "42", name, now_ms() + 60000 - i * 1000);
        submit_one(&task, 1, TOC_ON_CONFLICT_REJECT, NULL);
    }
    (void)stored_task("43", now_ms() + 1000);
    OK(toc_store_list_biz(fx.store, TOC_STR("order"), TOC_STR("42"), &fx.arena,
                          &all, &n, err));
    ck_assert_uint_eq(n, 5);
    for (size_t i = 1; i < n; i++)
        ck_assert_int_le(all[i - 1].due_ms, all[i].due_ms);
    OK(toc_store_list_biz(fx.store, TOC_STR("order"), TOC_STR("none"),
                          &fx.arena, &all, &n, err));
    ck_assert_uint_eq(n, 0);
}
END_TEST

/* A thousand and more that ended do not hide the one that lives: a cancel by
 * business id goes by this list. */
START_TEST(lists_the_live_one_of_many)
{
    struct toc_task live = stored_task("many", now_ms() + 60000), *all;
    TOC_CLEANUP(toc_buf_done) struct toc_buf biz = {0};
    size_t n, n_live = 0;

    toc_buf_hex(&biz, live.key_hash.b, 6);
    make_numbers(2500);
    raw("INSERT INTO task_info SELECT %u,%lld+seq,"
        "UNHEX(CONCAT('%s',LPAD(HEX(seq),20,'0'))),5,0,0,0,1,2,0,0,%lld+seq,0,"
        "0,0,1,0,0,1,'',0,0,UNHEX(CONCAT('%s',LPAD(HEX(seq),20,'0'))),'order',"
        "'many',seq,'',0,'',NULL FROM numbers WHERE "
        "seq<2500",
        live.slice, (long long)now_ms(), biz.data, (long long)now_ms(),
        biz.data);
    raw("INSERT INTO task_key SELECT key_hash,task_id,slice,slot_ms,"
        "x'0000000000000000' FROM task_info WHERE status=5");
    OK(toc_store_list_biz(fx.store, TOC_STR("order"), TOC_STR("many"),
                          &fx.arena, &all, &n, err));
    ck_assert_uint_eq(n, 1000);
    for (size_t i = 0; i < n; i++) {
        ck_assert(i == 0 || all[i - 1].due_ms <= all[i].due_ms);
        n_live += toc_state_ended(all[i].state) ? 0 : 1;
    }
    ck_assert_uint_eq(n_live, 1);
}
END_TEST

/* By id alone, when the key row is gone: the places where it may have been
 * stored first, then the log. */
START_TEST(found_by_id_without_a_key)
{
    struct toc_task near = stored_task("n", now_ms() + 60000);
    struct toc_task far = stored_task("f", now_ms() + 300 * DAY);
    struct toc_task moved = stored_task("m", now_ms() + 60000);

    for (int i = 1; i <= 3; i++)
        ck_assert_int_eq(
            command_id(TOC_COMMAND_RESCHEDULE, moved.id, now_ms() + i * 100000),
            TOC_COMMAND_APPLIED);
    raw("DELETE FROM task_key");
    ck_assert_int_eq(get_id(near.id).slot_ms, near.slot_ms);
    ck_assert_int_eq(get_id(far.id).slot_ms, far.slot_ms);
    ck_assert_uint_eq(get_id(moved.id).version, 4);
    moved.id.b[15] ^= 1;
    ck_assert(!is_there(find_id(moved.id)));
}
END_TEST

/* A key that was used often: what is asked for is its latest task, not the
 * payloads of all of them. */
START_TEST(freed_key_of_many_tasks)
{
    struct toc_find find = find_biz("order", "often", "");
    struct toc_task task = make_task("order", "often", "", now_ms()), got;
    int64_t before;

    task.payload.len = 100000;
    task.payload.ptr = toc_arena_calloc(&fx.arena, task.payload.len, 1);
    for (int i = 0; i < 20; i++) {
        task.id = (struct toc_task_id){{0}};
        task.due_ms++;
        ck_assert_int_ne(submit_one(&task, 1, TOC_ON_CONFLICT_REJECT, NULL),
                         TOC_SUBMIT_SAME);
        command_id(TOC_COMMAND_CANCEL, task.id, 0);
        raw("INSERT INTO key_history SELECT key_hash,slot_ms,task_id,slice "
            "FROM task_key; DELETE FROM task_key");
    }
    before = server_counts("Bytes_sent", "");
    OK(toc_store_get(fx.store, &find, &fx.arena, &got, err));
    ck_assert_int_eq(toc_task_id_cmp(got.id, task.id), 0);
    ck_assert_uint_eq(got.payload.len, 100000);
    ck_assert_int_lt(server_counts("Bytes_sent", "") - before, 1000000);
}
END_TEST

START_TEST(nodes_have_numbers)
{
    struct toc_node_row *nodes;
    uint32_t a, b;
    size_t n;

    OK(toc_store_register_node(fx.store, TOC_STR("executor"), TOC_STR("e1"),
                               TOC_STR("h:1"), 5, &a, err));
    OK(toc_store_register_node(fx.store, TOC_STR("executor"), TOC_STR("e1"),
                               TOC_STR("h:1"), 6, &b, err));
    ck_assert_uint_ne(a, b);
    OK(toc_store_list_nodes(fx.store, &fx.arena, &nodes, &n, err));
    ck_assert_uint_eq(n, 2);
    ck_assert_uint_eq(nodes[0].id, b);
    ck_assert_int_eq(nodes[0].started_ms, 6);
    TOC_ASSERT_STR(nodes[1].role, "executor");
    TOC_ASSERT_STR(nodes[1].address, "h:1");
}
END_TEST

START_TEST(clock_of_the_database)
{
    int64_t at;

    raw("SET time_zone='+05:30'");
    OK(toc_store_now(fx.store, &at, err));
    ck_assert_int_lt(llabs(at - now_ms()), 2000);
}
END_TEST

STORE_TESTS("store_submit", 120, migrates_again,
            migrates_an_empty_database_at_once, refuses_a_newer_schema,
            stores_what_was_given, payloads_of_any_size,
            batch_beyond_the_packet, due_times_of_all_ages,
            due_around_the_last_day, day_not_made_yet, same_key_again,
            replace_a_waiting_task, replace_a_task_in_call, key_window,
            replace_an_ended_task, repeated_after_the_key_went_on,
            key_without_a_row, equal_keys_in_one_batch, keys_that_look_alike,
            collision_of_hashes, fifty_threads_one_key, fifty_threads_replace,
            lists_a_business_id, lists_the_live_one_of_many,
            found_by_id_without_a_key, freed_key_of_many_tasks,
            nodes_have_numbers, clock_of_the_database)
