/*
 * The contract of storing: keys, conflicts, repeats, places, looking up.
 */
#ifndef TOC_TESTS_CONTRACT_STORE_SUITE_SUBMIT_H
#define TOC_TESTS_CONTRACT_STORE_SUITE_SUBMIT_H

#include "tests/contract/store/store_suite.h"

START_TEST(stores_and_finds)
{
    struct toc_task task = su_stored("a", su.now + 60000),
                    got = su_get(task.id);

    ck_assert_int_eq(got.state, TOC_STATE_INIT);
    ck_assert_int_eq(got.slot_ms, task.due_ms);
    ck_assert_int_eq(toc_task_id_first_slot(task.id), task.slot_ms);
    ck_assert_uint_eq(got.version, 1);
    ck_assert(toc_str_eq(got.payload, task.payload));
    ck_assert(toc_str_eq(got.biz_id, task.biz_id));
    su_check_key(&task);
    task.id.b[15] ^= 1;
    ck_assert_int_eq(su_looks(su_by_id(task.id), &got), TOC_NOT_FOUND);
}
END_TEST

START_TEST(a_key_is_one_task)
{
    static const struct {
        uint8_t content;
        enum toc_on_conflict on_conflict;
        enum toc_submit_result result;
    } cases[] = {
        {1, TOC_ON_CONFLICT_REJECT, TOC_SUBMIT_SAME},
        {1, TOC_ON_CONFLICT_REPLACE, TOC_SUBMIT_SAME},
        {2, TOC_ON_CONFLICT_REJECT, TOC_SUBMIT_OTHER},
        {2, TOC_ON_CONFLICT_KEEP, TOC_SUBMIT_OTHER},
        {2, TOC_ON_CONFLICT_REPLACE, TOC_SUBMIT_REPLACED},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char biz[] = {(char)('a' + (int)i), '\0'};
        struct toc_task first = su_stored(biz, su.now + 60000), got;
        struct toc_task second = su_task(biz, "", su.now + 90000);
        struct toc_submit item =
            su_submit(&second, cases[i].content, cases[i].on_conflict);
        bool replaced = cases[i].result == TOC_SUBMIT_REPLACED;
        ck_assert_int_eq(su_send(&item), cases[i].result);
        got = su_get(first.id);
        ck_assert_int_eq(got.state,
                         replaced ? TOC_STATE_CANCELLED : TOC_STATE_INIT);
        if (!replaced)
            ck_assert(toc_task_id_cmp(item.stored.id, first.id) == 0);
        su_check_key(replaced ? &second : &first);
    }
}
END_TEST

START_TEST(equal_keys_in_a_call)
{
    struct toc_task tasks[4];
    struct toc_submit items[4];
    struct toc_submit *list[4];

    for (size_t i = 0; i < 4; i++) {
        tasks[i] = su_task("a", "", su.now + 60000 + (int64_t)i);
        items[i] = su_submit(&tasks[i], i < 2 ? 1 : 2, TOC_ON_CONFLICT_REJECT);
        list[i] = &items[i];
    }
    items[3].on_conflict = TOC_ON_CONFLICT_REPLACE;
    SU_OK(toc_store_submit(su.store, list, 4, su.now, reterr));
    ck_assert_int_eq(items[0].result, TOC_SUBMIT_CREATED);
    ck_assert_int_eq(items[1].result, TOC_SUBMIT_SAME);
    ck_assert_int_eq(items[2].result, TOC_SUBMIT_OTHER);
    ck_assert_int_eq(items[3].result, TOC_SUBMIT_REPLACED);
    ck_assert(toc_task_id_cmp(items[1].stored.id, tasks[0].id) == 0);
    ck_assert_int_eq(su_get(tasks[0].id).state, TOC_STATE_CANCELLED);
    ck_assert_int_eq(su_get(tasks[3].id).state, TOC_STATE_INIT);
}
END_TEST

START_TEST(what_is_called_is_not_replaced)
{
    struct toc_task first = su_executing("a", 1, 0, su.now + 30000);
    struct toc_task second = su_task("a", "", su.now + 90000);
    struct toc_submit item = su_submit(&second, 2, TOC_ON_CONFLICT_REPLACE);

    ck_assert_int_eq(su_send(&item), TOC_SUBMIT_TOO_LATE);
    ck_assert(toc_task_id_cmp(item.stored.id, first.id) == 0);
    ck_assert_int_eq(su_get(first.id).state, TOC_STATE_EXECUTING);
}
END_TEST

/* An ended task holds its key for the window, then both are found. */
START_TEST(the_window_of_a_key)
{
    struct toc_task first = su_stored("a", su.now - 10), got;
    struct toc_task second = su_task("a", "", su.now + 60000);
    struct toc_submit item = su_submit(&second, 2, TOC_ON_CONFLICT_REJECT);
    struct toc_task *tasks;
    size_t n;

    su_end_task(&first, TOC_FINISH_DONE);
    ck_assert_int_eq(su_send(&item), TOC_SUBMIT_OTHER);
    item.key_window_ms = 0;
    second.id = (struct toc_task_id){{0}};
    ck_assert_int_eq(su_send(&item), TOC_SUBMIT_CREATED);
    su_check_key(&second);
    got = su_get(first.id);
    ck_assert_int_eq(got.state, TOC_STATE_SUCCESS);
    SU_OK(toc_store_list_biz(su.store, first.biz_type, first.biz_id, &su.arena,
                             &tasks, &n, reterr));
    ck_assert_uint_eq(n, 2);
    ck_assert(su_is(&tasks[0], first.id) && su_is(&tasks[1], second.id));
}
END_TEST

/* The id of a submit whose answer was lost tells that it is one's own, whatever
 * has become of it. */
START_TEST(a_repeated_submit)
{
    struct toc_task first = su_stored("a", su.now - 10), again = first;
    struct toc_submit item = su_submit(&again, 1, TOC_ON_CONFLICT_REJECT);
    struct toc_task second = su_task("a", "", su.now + 60000);
    struct toc_submit other = su_submit(&second, 2, TOC_ON_CONFLICT_REJECT);

    ck_assert_int_eq(su_send(&item), TOC_SUBMIT_CREATED);
    ck_assert_int_eq(again.slot_ms, first.slot_ms);
    su_end_task(&first, TOC_FINISH_DONE);
    other.key_window_ms = 0;
    ck_assert_int_eq(su_send(&other), TOC_SUBMIT_CREATED);
    again = first;
    ck_assert_int_eq(su_send(&item), TOC_SUBMIT_CREATED);
    ck_assert_int_eq(su_get(first.id).state, TOC_STATE_SUCCESS);
    su_check_key(&second);
}
END_TEST

START_TEST(where_rows_live)
{
    struct toc_task past = su_stored("past", su.now - SU_DAY);
    struct toc_task far = su_stored("far", su.now + 60 * SU_DAY);
    struct toc_task low = su_task("low", "", su.now - 1000);
    struct toc_submit item = su_submit(&low, 1, TOC_ON_CONFLICT_REJECT);
    struct toc_submit *items[] = {&item};
    struct toc_log_entry *log;
    int64_t mark_ms;

    ck_assert_int_eq(past.slot_ms, su.now);
    ck_assert_int_eq(su_get(past.id).due_ms, su.now - SU_DAY);
    ck_assert_int_eq(far.slot_ms, far.due_ms - TOC_PARK_FAR_MS);
    mark_ms = su_advance(low.slice, su.now);
    ck_assert_int_eq(mark_ms, su.now);
    SU_OK(toc_store_submit(su.store, items, 1, su.now - 5000, reterr));
    ck_assert_int_eq(low.slot_ms, mark_ms + 1);
    ck_assert_int_eq(su_get(low.id).slot_ms, mark_ms + 1);
    su_check_key(&low);
    /* The id says where it was first, also when the mark raised it: from there
     * its log is followed. */
    ck_assert_int_eq(toc_task_id_first_slot(low.id), low.slot_ms);
    su_do(TOC_COMMAND_PAUSE, low.id);
    su_do(TOC_COMMAND_RESUME, low.id);
    ck_assert_uint_eq(su_timeline(low.id, &log), 2);
}
END_TEST

START_TEST(days_are_made_when_missing)
{
    struct toc_task task = su_task("a", "", su.now + 200 * SU_DAY);
    struct toc_submit item = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);
    struct toc_submit *items[] = {&item};
    size_t dropped;

    SU_OK(toc_store_submit(su.store, items, 1, su.now + 180 * SU_DAY, reterr));
    ck_assert_int_eq(su_get(task.id).slot_ms, task.due_ms);
    SU_OK(toc_store_make_days(su.store, su.now, reterr));
    SU_OK(toc_store_drop_days(su.store, su.now, 30 * SU_DAY, &dropped, reterr));
    ck_assert_uint_eq(dropped, 0);
    ck_assert_int_eq(toc_store_make_days(su.store, -1, NULL), TOC_INVALID);
}
END_TEST

START_TEST(many_kinds_of_list)
{
    struct toc_task_filter filter = {.state_mask = 0};
    struct toc_cursor cursor = {.set = false};
    struct toc_task *tasks;
    size_t n, all = 0;

    for (int i = 0; i < 20; i++) {
        char biz[] = {(char)('a' + i), '\0'};
        struct toc_task task = su_stored(biz, su.now - 10 + i);
        if (i % 4 == 0)
            su_do(TOC_COMMAND_CANCEL, task.id);
    }
    do {
        SU_OK(toc_store_list_tasks(su.store, &filter, 3, &cursor, &su.arena,
                                   &tasks, &n, reterr));
        all += n;
    } while (cursor.set);
    ck_assert_uint_eq(all, 20);
    filter.state_mask = 1u << TOC_STATE_CANCELLED;
    SU_OK(toc_store_list_tasks(su.store, &filter, 100, &cursor, &su.arena,
                               &tasks, &n, reterr));
    ck_assert_uint_eq(n, 5);
    filter = (struct toc_task_filter){.due_from_ms = su.now,
                                      .due_to_ms = su.now + 4};
    SU_OK(toc_store_list_tasks(su.store, &filter, 100, &cursor, &su.arena,
                               &tasks, &n, reterr));
    ck_assert_uint_eq(n, 4);
    ck_assert(!cursor.set);
}
END_TEST

/* All of the range, put together; *ret_n: how many. */
static inline struct toc_bucket_count *
su_buckets(const struct toc_bucket_query *query, size_t *ret_n)
{
    struct toc_bucket_count *all = toc_arena_calloc(&su.arena, 64, sizeof *all);
    struct toc_cursor cursor = {.set = false};

    *ret_n = 0;
    do {
        struct toc_bucket_count *counts;
        size_t n;
        SU_OK(toc_store_count_buckets(su.store, query, &cursor, &su.arena,
                                      &counts, &n, reterr));
        for (size_t i = 0; i < n; i++) {
            ck_assert_uint_lt(*ret_n, 64);
            all[(*ret_n)++] = counts[i];
        }
    } while (cursor.set);
    return all;
}

START_TEST(buckets_hold_what_lies_there)
{
    int64_t day_ms = su.now - su.now % SU_DAY + SU_DAY; /* tomorrow */
    struct toc_bucket_query q = {
        .from_ms = day_ms, .to_ms = day_ms + SU_DAY, .width_ms = 60000};
    struct toc_bucket_count *c;
    struct toc_task task;
    struct toc_submit item;
    size_t n;

    (void)su_buckets(&q, &n);
    ck_assert_uint_eq(n, 0);
    (void)su_stored("a", day_ms - 1); /* the day before */
    (void)su_stored("b", day_ms);
    (void)su_stored("c", day_ms + 59999);
    task = su_stored("d", day_ms + 59999);
    su_do(TOC_COMMAND_CANCEL, task.id);
    task = su_stored("e", day_ms + 10);
    su_do(TOC_COMMAND_PAUSE, task.id); /* parked: in no bucket */
    (void)su_stored("f", day_ms + SU_DAY - 1);
    (void)su_stored("g", day_ms + SU_DAY); /* the day after */
    (void)su_stored("h", day_ms + 100 * SU_DAY);
    task = su_task("i", "", day_ms + 60000);
    task.biz_type = TOC_STR("invoice");
    task.key_hash = toc_key_hash_of(task.biz_type, task.biz_id, task.name);
    task.slice = toc_slice_of(toc_key_shard(task.key_hash), TOC_PRIORITY_LOW);
    item = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);
    ck_assert_int_eq(su_send(&item), TOC_SUBMIT_CREATED);
    (void)su_stored("j", day_ms + 60001);

    c = su_buckets(&q, &n);
    ck_assert_uint_eq(n, 4);
    ck_assert_int_eq(c[0].start_ms, day_ms);
    TOC_ASSERT_STR(c[0].biz_type, "order");
    ck_assert_uint_eq(c[0].n[TOC_STATE_INIT], 2);
    ck_assert_uint_eq(c[0].n[TOC_STATE_CANCELLED], 1);
    ck_assert_uint_eq(c[0].n[TOC_STATE_PAUSED], 0);
    ck_assert_int_eq(c[1].start_ms, day_ms + 60000);
    TOC_ASSERT_STR(c[1].biz_type, "invoice"); /* before "order" */
    ck_assert_int_eq(c[2].start_ms, day_ms + 60000);
    TOC_ASSERT_STR(c[2].biz_type, "order");
    ck_assert_uint_eq(c[2].n[TOC_STATE_INIT], 1);
    ck_assert_int_eq(c[3].start_ms, day_ms + SU_DAY - 60000);

    q.biz_type = TOC_STR("invoice");
    c = su_buckets(&q, &n);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(c[0].n[TOC_STATE_INIT], 1);

    /* Over the end of a day, and not from where a bucket begins. */
    q = (struct toc_bucket_query){.from_ms = day_ms - 1,
                                  .to_ms = day_ms + 2 * SU_DAY,
                                  .width_ms = SU_DAY};
    c = su_buckets(&q, &n);
    ck_assert_uint_eq(n, 4);
    ck_assert_int_eq(c[0].start_ms, day_ms - SU_DAY);
    ck_assert_uint_eq(c[0].n[TOC_STATE_INIT], 1);
    ck_assert_uint_eq(c[2].n[TOC_STATE_INIT], 4);
    ck_assert_int_eq(c[3].start_ms, day_ms + SU_DAY);
    ck_assert_uint_eq(c[3].n[TOC_STATE_INIT], 1);
}
END_TEST

START_TEST(nodes_have_numbers_of_their_own)
{
    struct toc_node_row *nodes;
    uint32_t first, second;
    size_t n;

    SU_OK(toc_store_register_node(su.store, TOC_STR("scheduler"), TOC_STR("a"),
                                  TOC_STR("h:1"), su.now, &first, reterr));
    SU_OK(toc_store_register_node(su.store, TOC_STR("scheduler"), TOC_STR("a"),
                                  TOC_STR("h:1"), su.now, &second, reterr));
    ck_assert_uint_ne(first, second);
    SU_OK(toc_store_list_nodes(su.store, &su.arena, &nodes, &n, reterr));
    ck_assert_uint_eq(n, 2);
    ck_assert_uint_eq(nodes[0].id, second); /* the newest first */
    ck_assert(toc_str_eq(nodes[1].address, TOC_STR("h:1")));
}
END_TEST

#endif
