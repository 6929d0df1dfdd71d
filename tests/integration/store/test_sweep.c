/*
 * Goal: what the scheduler reads and keeps up: loading, scanning, stragglers,
 * the low-water mark, far rows, keys. Method: real database; rows that
 * must show and rows that must not.
 */
#include "tests/integration/store/fixture.h"

#define SEEN_MAX 4096

struct seen {
    struct toc_task tasks[SEEN_MAX];
    size_t n;
};

static struct seen *seen;

/* Copies what outlives the callback: numbers and the lengths of texts. */
static void
note(void *arg, const struct toc_task *task)
{
    struct seen *s = arg;

    ck_assert_uint_lt(s->n, SEEN_MAX);
    s->tasks[s->n++] = *task;
}

static uint16_t all_slices[TOC_SHARDS * 3];

static void
fill_slices(void)
{
    for (unsigned i = 0; i < TOC_SHARDS * 3u; i++)
        all_slices[i] =
            toc_slice_of((uint16_t)(i / 3), (enum toc_priority)(i % 3));
    if (seen == NULL)
        seen = toc_alloc(sizeof *seen);
    seen->n = 0;
}

static size_t
load(int64_t a, int64_t b, int64_t c, int64_t d)
{
    struct toc_slot_span spans[2] = {{a, b}, {c, d}};

    fill_slices();
    OK(toc_store_load(fx.store, all_slices, TOC_SHARDS * 3, spans,
                      c == d ? 1 : 2, note, seen, err));
    return seen->n;
}

static size_t
scan(int64_t from_ms, int64_t to_ms)
{
    fill_slices();
    OK(toc_store_scan(fx.store, all_slices, TOC_SHARDS * 3, from_ms, to_ms,
                      note, seen, err));
    return seen->n;
}

static size_t
stragglers(void)
{
    fill_slices();
    OK(toc_store_scan_stragglers(fx.store, all_slices, TOC_SHARDS * 3, note,
                                 seen, err));
    return seen->n;
}

static void
advance(int64_t at_ms)
{
    uint16_t shards[TOC_SHARDS];

    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        shards[i] = (uint16_t)(TOC_SHARDS - 1 - i);
    OK(toc_store_advance_low(fx.store, shards, TOC_SHARDS, at_ms, 60000, err));
}

static int64_t
low_of(const struct toc_task *task)
{
    return raw("SELECT low_ms FROM shard_owner WHERE shard_id=%u",
               toc_slice_shard(task->slice));
}

/* Stores a row with the slot as it is given (a row of the past). */
static struct toc_task
past_task(const char *id, int64_t slot_ms)
{
    struct toc_task task = make_task("order", id, "", slot_ms);
    struct toc_submit item = make_submit(&task, 1), *items[] = {&item};

    OK(toc_store_submit(fx.store, items, 1, slot_ms, err));
    ck_assert_int_eq(task.slot_ms, slot_ms);
    return task;
}

START_TEST(loads_what_is_due)
{
    int64_t t = now_ms() + 100000;
    struct toc_task a = stored_task("a", t), b = stored_task("b", t + 5000);
    struct toc_task gone = stored_task("c", t + 1), paused;
    char *large = toc_calloc(1, 5000);

    b = make_task("order", "big", "", t + 5000);
    b.payload = (struct toc_str){large, 5000};
    submit_one(&b, 1, TOC_ON_CONFLICT_REJECT, NULL);
    paused = stored_task("d", t + 1);
    command_id(TOC_COMMAND_CANCEL, gone.id, 0);
    command_id(TOC_COMMAND_PAUSE, paused.id, 0);
    ck_assert_uint_eq(load(t - 1, t, 0, 0), 1);
    ck_assert_int_eq(toc_task_id_cmp(seen->tasks[0].id, a.id), 0);
    ck_assert_uint_eq(seen->tasks[0].payload.len, 7);
    ck_assert_uint_eq(seen->tasks[0].version, 1);
    ck_assert_int_eq(seen->tasks[0].due_ms, t);
    ck_assert_uint_eq(seen->tasks[0].target_id, 77);
    ck_assert_uint_eq(load(t, t + 4999, 0, 0), 0); /* (after, to] */
    ck_assert_uint_eq(load(t - 1, t, t, t + 5000), 3);
    ck_assert_uint_eq(load(t + 4000, t + 5000, 0, 0), 2);
    for (size_t i = 0; i < 2; i++)
        if (seen->tasks[i].payload.len == 5000)
            ck_assert_ptr_null(seen->tasks[i].payload.ptr);
    toc_free(large);
}
END_TEST

START_TEST(loads_only_the_slices_asked_for)
{
    int64_t t = now_ms() + 100000;
    struct toc_task a = stored_task("a", t);
    struct toc_slot_span span = {t - 1, t};
    uint16_t slice = a.slice;

    fill_slices();
    OK(toc_store_load(fx.store, &slice, 1, &span, 1, note, seen, err));
    ck_assert_uint_eq(seen->n, 1);
    slice = (uint16_t)(slice + 1); /* the next priority */
    OK(toc_store_load(fx.store, &slice, 1, &span, 1, note, seen, err));
    ck_assert_uint_eq(seen->n, 1);
}
END_TEST

START_TEST(scans_what_is_unfinished)
{
    int64_t t = now_ms();
    struct toc_task init, executing, done, behind;
    struct toc_finish end;

    set_low(t - 300000);
    init = past_task("a", t - 200000);
    executing = claimed_task("b", 7, t + 1000);
    done = claimed_task("c", 7, t + 60000);
    end = make_finish(&done, 7, TOC_FINISH_DONE);
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    ck_assert_uint_eq(scan(0, t + 99999), 2);
    ck_assert_uint_eq(scan(0, init.slot_ms), 0);
    ck_assert_uint_eq(scan(0, init.slot_ms + 1), 1);
    ck_assert_int_eq(seen->tasks[0].state, TOC_STATE_INIT);
    ck_assert_uint_eq(scan(init.slot_ms + 1, t + 99999), 1);
    ck_assert_int_eq(seen->tasks[0].state, TOC_STATE_EXECUTING);
    ck_assert_uint_eq(seen->tasks[0].lock_token, 7);
    ck_assert_int_eq(seen->tasks[0].lock_until_ms, t + 1000);
    ck_assert_int_eq(toc_task_id_cmp(seen->tasks[0].id, executing.id), 0);
    /* from is raised to the mark, each shard's own */
    behind = past_task("d", t - 200001);
    raw("UPDATE shard_owner SET low_ms=%lld WHERE shard_id=%u",
        (long long)(t - 100000), toc_slice_shard(behind.slice));
    ck_assert_uint_eq(
        scan(0, t + 99999),
        toc_slice_shard(behind.slice) == toc_slice_shard(init.slice) ? 1 : 2);
}
END_TEST

START_TEST(mark_stops_at_the_first_unfinished)
{
    int64_t t = now_ms();
    struct toc_task a, b, idle;
    size_t waiting;

    set_low(t - 600000);
    a = past_task("a", t - 500000);
    b = make_task("order", "a", "second", t - 400000); /* the same shard */
    b.slice = a.slice;
    submit_one(&b, 1, TOC_ON_CONFLICT_REJECT, NULL); /* slot = now */
    idle = make_task("order", "idle", "", t);
    advance(t);
    ck_assert_int_eq(low_of(&a), t - 500000);
    ck_assert_int_eq(low_of(&idle), t - 60000);
    /* recorded, it is passed */
    OK(toc_store_record_stragglers(fx.store, toc_slice_shard(a.slice),
                                   t - 60000, 10, &waiting, err));
    ck_assert_uint_eq(waiting, 1);
    ck_assert_uint_eq(stragglers(), 1);
    ck_assert_int_eq(toc_task_id_cmp(seen->tasks[0].id, a.id), 0);
    advance(t);
    ck_assert_int_eq(low_of(&a), t - 60000);
    ck_assert_uint_eq(scan(0, t - 60000), 0);
    /* never back */
    advance(t - 300000);
    ck_assert_int_eq(low_of(&a), t - 60000);
    /* it ends: forgotten */
    ck_assert_int_eq(claim_one(&a, 7, t + 60000), TOC_CLAIM_WON);
    ck_assert_uint_eq(stragglers(), 1);
    {
        struct toc_task got = get_id(a.id);
        struct toc_finish end = make_finish(&got, 7, TOC_FINISH_DONE);
        OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    }
    ck_assert_uint_eq(stragglers(), 0);
    OK(toc_store_record_stragglers(fx.store, toc_slice_shard(a.slice),
                                   t - 60000, 10, &waiting, err));
    ck_assert_uint_eq(waiting, 0);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM straggler"), 0);
}
END_TEST

START_TEST(straggler_that_moves_is_forgotten)
{
    int64_t t = now_ms();
    struct toc_task a;
    size_t waiting;

    set_low(t - 600000);
    a = past_task("a", t - 500000);
    OK(toc_store_record_stragglers(fx.store, toc_slice_shard(a.slice), t, 10,
                                   &waiting, err));
    ck_assert_uint_eq(waiting, 1);
    command_id(TOC_COMMAND_RESCHEDULE, a.id, t + 60000);
    OK(toc_store_record_stragglers(fx.store, toc_slice_shard(a.slice), t, 10,
                                   &waiting, err));
    ck_assert_uint_eq(waiting, 0);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM straggler"), 0);
}
END_TEST

START_TEST(too_many_stragglers_are_a_backlog)
{
    int64_t t = now_ms();
    struct toc_task task = make_task("order", "a", "", 0);
    size_t waiting;

    set_low(t - 600000);
    for (int i = 0; i < 12; i++) {
        char name[8];
        struct toc_submit item, *items[] = {&item};
        snprintf(name, sizeof name, "n%d", i);
        task = make_task("order", "a", name, t - 500000 + i);
        item = make_submit(&task, 1);
        OK(toc_store_submit(fx.store, items, 1, t - 500000 + i, err));
    }
    OK(toc_store_record_stragglers(fx.store, toc_slice_shard(task.slice), t, 10,
                                   &waiting, err));
    ck_assert_uint_gt(waiting, 10);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM straggler"), 0);
    advance(t);
    ck_assert_int_eq(low_of(&task), t - 500000);
    OK(toc_store_record_stragglers(fx.store, toc_slice_shard(task.slice), t, 12,
                                   &waiting, err));
    ck_assert_uint_eq(waiting, 12);
    advance(t);
    ck_assert_int_eq(low_of(&task), t - 60000);
}
END_TEST

/* A mark far behind rises in steps, and gets there. */
START_TEST(mark_far_behind)
{
    int64_t t = now_ms();
    struct toc_task task = make_task("order", "a", "", t);

    set_low(t - 20 * DAY);
    make_numbers(50000);
    raw("INSERT INTO task_info SELECT %u,%lld+seq,UNHEX(LPAD(HEX(seq),32,0)),5,"
        "0,0,0,1,2,0,0,0,0,0,0,0,0,0,1,'',0,0,UNHEX(LPAD(HEX(seq),32,0)),'','',"
        "'','',0,'',NULL FROM numbers WHERE seq<50000",
        task.slice, (long long)(t - 10 * DAY));
    for (int i = 0; i < 6 && low_of(&task) < t - 60000; i++)
        advance(t);
    ck_assert_int_eq(low_of(&task), t - 60000);
}
END_TEST

/* A caller two hours ahead counts as the server's clock: rows to come are
 * neither recorded nor passed by the mark. */
START_TEST(mark_is_not_raised_by_a_clock_ahead)
{
    int64_t t = now_ms(), ahead_ms = t + 7200000;
    struct toc_task a = stored_task("a", t + 3600000), b;
    size_t waiting;

    set_low(t - 600000);
    OK(toc_store_record_stragglers(fx.store, toc_slice_shard(a.slice),
                                   ahead_ms - 60000, 10, &waiting, err));
    ck_assert_uint_eq(waiting, 0);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM straggler"), 0);
    advance(ahead_ms);
    ck_assert_int_ge(low_of(&a), t - 60000);
    ck_assert_int_le(low_of(&a), now_ms() - 60000);
    b = stored_task("b", t + 1000);
    ck_assert_int_eq(b.slot_ms, t + 1000);
}
END_TEST

START_TEST(far_rows_move_into_their_day)
{
    int64_t t = now_ms(), due_ms = t + 60 * DAY;
    struct toc_task far[3], late, paused, got;
    size_t moved;

    for (int i = 0; i < 3; i++)
        far[i] = stored_task(toc_arena_printf(&fx.arena, "f%d", i),
                             due_ms + i * 1000);
    late = stored_task("late", due_ms + 40 * DAY);
    paused = stored_task("paused", due_ms);
    command_id(TOC_COMMAND_PAUSE, paused.id, 0);
    fill_slices();
    OK(toc_store_move_far(fx.store, all_slices, TOC_SHARDS * 3,
                          due_ms - TOC_FAR_MOVE_MS - DAY, 10, &moved, err));
    ck_assert_uint_eq(moved, 0);
    OK(toc_store_move_far(fx.store, all_slices, TOC_SHARDS * 3,
                          due_ms - TOC_FAR_MOVE_MS + 60000, 2, &moved, err));
    ck_assert_uint_eq(moved, 2);
    OK(toc_store_move_far(fx.store, all_slices, TOC_SHARDS * 3,
                          due_ms - TOC_FAR_MOVE_MS + 60000, 10, &moved, err));
    ck_assert_uint_eq(moved, 1);
    for (int i = 0; i < 3; i++) {
        got = get_id(far[i].id);
        ck_assert_int_eq(got.slot_ms, due_ms + i * 1000);
        ck_assert_int_eq(got.due_ms, due_ms + i * 1000);
        ck_assert_uint_eq(got.version, 2);
        check_key(&got);
    }
    ck_assert(toc_slot_is_far(get_id(late.id).slot_ms));
    ck_assert_int_eq(get_id(paused.id).state, TOC_STATE_PAUSED);
    ck_assert_uint_eq(load(due_ms - 1, due_ms + 2000, 0, 0), 3);
    /* The mover was away past the due time: the row is placed at now. */
    OK(toc_store_move_far(fx.store, all_slices, TOC_SHARDS * 3,
                          late.due_ms + 5000, 10, &moved, err));
    ck_assert_uint_eq(moved, 1);
    ck_assert_int_eq(get_id(late.id).slot_ms, late.due_ms + 5000);
}
END_TEST

/* ---- keys
 * ---------------------------------------------------------------------- */

START_TEST(keys_of_ended_tasks_are_freed)
{
    int64_t t = now_ms();
    struct toc_task old[20], young, open_one, *all;
    size_t freed, total = 0, n;
    uint16_t shard;

    set_low(t - 10 * DAY);
    for (int i = 0; i < 20; i++) {
        char name[8];
        struct toc_submit item, *items[] = {&item};
        snprintf(name, sizeof name, "n%d", i);
        old[i] =
            make_task("order", "a", toc_arena_printf(&fx.arena, "%s", name),
                      t - 5 * DAY + i);
        item = make_submit(&old[i], 1);
        OK(toc_store_submit(fx.store, items, 1, t - 5 * DAY + i, err));
    }
    shard = toc_slice_shard(old[0].slice);
    raw("UPDATE task_info SET status=5,ended_ms=slot_ms+5");
    young = make_task("order", "a", "young", t - 2 * DAY);
    open_one = make_task("order", "a", "open", t - 3 * DAY);
    {
        struct toc_submit a = make_submit(&young, 1),
                          b = make_submit(&open_one, 1);
        struct toc_submit *items[] = {&a, &b};
        OK(toc_store_submit(fx.store, items, 2, t - 3 * DAY, err));
    }
    raw("UPDATE task_info SET status=5,ended_ms=%lld WHERE name='young'",
        (long long)(t - 3600000));
    raw("UPDATE shard_owner SET low_ms=%lld", (long long)(t - 60000));
    do {
        OK(toc_store_gc_keys(fx.store, shard, t, DAY, 6, &freed, err));
        ck_assert_uint_le(freed, 6);
        total += freed;
    } while (freed == 6);
    ck_assert_uint_eq(total, 20);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_key"), 2);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM key_history"), 20);
    /* The unfinished one holds the cursor. */
    ck_assert_int_eq(
        raw("SELECT keygc_ms FROM shard_owner WHERE shard_id=%u", shard),
        open_one.slot_ms);
    /* Still found in every way, and a command is answered. */
    ck_assert_int_eq(get_id(old[3].id).state, TOC_STATE_SUCCESS);
    ck_assert(is_there(find_biz("order", "a", "n3")));
    ck_assert_int_eq(command_id(TOC_COMMAND_CANCEL, old[3].id, 0),
                     TOC_COMMAND_ENDED);
    OK(toc_store_list_biz(fx.store, TOC_STR("order"), TOC_STR("a"), &fx.arena,
                          &all, &n, err));
    ck_assert_uint_eq(n, 22);
    /* The key is free. */
    old[3] = make_task("order", "a", "n3", t + 1000);
    ck_assert_int_eq(submit_one(&old[3], 1, TOC_ON_CONFLICT_REJECT, NULL),
                     TOC_SUBMIT_CREATED);
    check_key(&old[3]);
}
END_TEST

START_TEST(key_cursor_reaches_the_mark)
{
    int64_t t = now_ms();
    size_t freed;

    set_low(t - 10 * DAY);
    raw("UPDATE shard_owner SET low_ms=%lld", (long long)(t - 60000));
    OK(toc_store_gc_keys(fx.store, 5, t, DAY, 100, &freed, err));
    ck_assert_uint_eq(freed, 0);
    ck_assert_int_eq(raw("SELECT keygc_ms FROM shard_owner WHERE shard_id=5"),
                     t - DAY);
}
END_TEST

/* ---- lists
 * -------------------------------------------------------------------- */

START_TEST(lists_page_by_page)
{
    struct toc_task_filter filter = {.state_mask = 0};
    struct toc_cursor cursor = {.set = false};
    struct toc_task *tasks;
    size_t n, total = 0, pages = 0;

    for (int i = 0; i < 50; i++)
        (void)stored_task(toc_arena_printf(&fx.arena, "l%d", i),
                          now_ms() + 1000 + i * DAY);
    do {
        OK(toc_store_list_tasks(fx.store, &filter, 7, &cursor, &fx.arena,
                                &tasks, &n, err));
        for (size_t i = 1; i < n; i++) {
            struct toc_task_ref a = toc_task_ref_of(&tasks[i - 1]);
            struct toc_task_ref b = toc_task_ref_of(&tasks[i]);
            ck_assert_int_lt(toc_task_ref_cmp(&a, &b), 0);
        }
        total += n;
        ck_assert_uint_lt(pages++, 20);
    } while (cursor.set);
    ck_assert_uint_eq(total, 50);
}
END_TEST

START_TEST(lists_by_filter)
{
    int64_t t = now_ms();
    struct toc_task_filter filter = {.biz_type = TOC_STR("order")};
    struct toc_cursor cursor = {.set = false};
    struct toc_task *tasks, other;
    size_t n;

    for (int i = 0; i < 20; i++) {
        struct toc_task task = stored_task(
            toc_arena_printf(&fx.arena, "l%d", i), t + 1000 + i * 1000);
        if (i % 4 == 0)
            command_id(TOC_COMMAND_CANCEL, task.id, 0);
    }
    other = make_task("coupon", "x", "", t + 5000);
    submit_one(&other, 1, TOC_ON_CONFLICT_REJECT, NULL);
    OK(toc_store_list_tasks(fx.store, &filter, 100, &cursor, &fx.arena, &tasks,
                            &n, err));
    ck_assert_uint_eq(n, 20);
    ck_assert(!cursor.set);
    filter.state_mask = 1u << TOC_STATE_CANCELLED;
    OK(toc_store_list_tasks(fx.store, &filter, 100, &cursor, &fx.arena, &tasks,
                            &n, err));
    ck_assert_uint_eq(n, 5);
    filter.state_mask = 0;
    filter.due_from_ms = t + 3000;
    filter.due_to_ms = t + 6000;
    OK(toc_store_list_tasks(fx.store, &filter, 100, &cursor, &fx.arena, &tasks,
                            &n, err));
    ck_assert_uint_eq(n, 3);
    filter = (struct toc_task_filter){.biz_type = TOC_STR("order"),
                                      .biz_id = TOC_STR("l7")};
    OK(toc_store_list_tasks(fx.store, &filter, 100, &cursor, &fx.arena, &tasks,
                            &n, err));
    ck_assert_uint_eq(n, 1);
    filter = (struct toc_task_filter){.biz_id = TOC_STR("x")};
    OK(toc_store_list_tasks(fx.store, &filter, 100, &cursor, &fx.arena, &tasks,
                            &n, err));
    ck_assert_uint_eq(n, 1);
    TOC_ASSERT_STR(tasks[0].biz_type, "coupon");
}
END_TEST

/* ---- dead letters
 * ---------------------------------------------------------------- */

static struct toc_task
dead_one(const char *id, const char *reason, int64_t ended_ms)
{
    struct toc_task task = claimed_task(id, 7, now_ms() + 60000);
    struct toc_finish end = make_finish(&task, 7, TOC_FINISH_DEAD);

    end.reason = toc_str_of(reason);
    end.error = TOC_STR("no such order");
    end.ended_ms = ended_ms;
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    return get_id(task.id);
}

START_TEST(lists_dead_letters)
{
    int64_t t = now_ms();
    struct toc_dead_filter filter = {.reason = {NULL, 0}};
    struct toc_cursor cursor = {.set = false};
    struct toc_dead *dead;
    size_t n, total = 0;
    int64_t last = INT64_MAX;

    for (int i = 0; i < 10; i++)
        (void)dead_one(toc_arena_printf(&fx.arena, "d%d", i),
                       i % 2 == 0 ? "even" : "odd", t + i / 2);
    do {
        OK(toc_store_list_dead(fx.store, &filter, 3, &cursor, &fx.arena, &dead,
                               &n, err));
        for (size_t i = 0; i < n; i++) {
            ck_assert_int_le(dead[i].dead_ms, last);
            last = dead[i].dead_ms;
        }
        total += n;
    } while (cursor.set);
    ck_assert_uint_eq(total, 10);
    filter.reason = TOC_STR("odd");
    OK(toc_store_list_dead(fx.store, &filter, 30, &cursor, &fx.arena, &dead, &n,
                           err));
    ck_assert_uint_eq(n, 5);
    filter.reason = (struct toc_str){NULL, 0};
    filter.dead_from_ms = t + 1;
    filter.dead_to_ms = t + 3;
    OK(toc_store_list_dead(fx.store, &filter, 30, &cursor, &fx.arena, &dead, &n,
                           err));
    ck_assert_uint_eq(n, 4);
    filter = (struct toc_dead_filter){.biz_type = TOC_STR("order"),
                                      .biz_id = TOC_STR("d4")};
    OK(toc_store_list_dead(fx.store, &filter, 30, &cursor, &fx.arena, &dead, &n,
                           err));
    ck_assert_uint_eq(n, 1);
}
END_TEST

START_TEST(old_dead_letters_go)
{
    int64_t t = now_ms();
    size_t dropped;

    (void)dead_one("young", "x", t - 29 * DAY);
    (void)dead_one("old", "x", t - 31 * DAY);
    make_numbers(1500);
    raw("INSERT INTO dead_task SELECT slice,slot_ms,"
        "UNHEX(LPAD(HEX(seq),32,'0')),status,flags,attempt,claims,fire,version,"
        "lock_token,lock_until_ms,due_ms,created_ms,claimed_ms,called_ms,"
        "ended_ms,sched_node,exec_node,result,error,line_id,target_id,key_hash,"
        "biz_type,biz_id,name,spec,payload_len,payload_short,payload_long,"
        "dead_ms,reason FROM dead_task JOIN numbers WHERE biz_id='old'");
    OK(toc_store_drop_days(fx.store, t, 30 * DAY, &dropped, err));
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM dead_task"), 1);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM dead_task WHERE biz_id='young'"),
                     1);
}
END_TEST

static enum toc_redrive_result
redrive(struct toc_task_id id)
{
    enum toc_redrive_result result;

    OK(toc_store_redrive(fx.store, id, now_ms(), TOC_STR("op"),
                         TOC_STR("fixed"), &result, err));
    return result;
}

static void
check_redriven(struct toc_task_id id, uint32_t version)
{
    struct toc_task got = get_id(id);

    ck_assert_int_eq(got.state, TOC_STATE_RETRY);
    ck_assert_uint_eq(got.version, version);
    ck_assert_uint_eq(got.attempt, 0);
    ck_assert_uint_eq(got.fire, 1);
    TOC_ASSERT_STR(got.payload, "payload");
    check_key(&got);
    ck_assert_int_eq(claim_one(&got, 9, now_ms() + 60000), TOC_CLAIM_WON);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM dead_task"), 0);
}

START_TEST(redrive_in_place)
{
    struct toc_task task = dead_one("a", "x", now_ms()), got;
    struct toc_find find = find_id(task.id);
    struct toc_log_entry *log;
    size_t n;

    ck_assert_int_eq(redrive(task.id), TOC_REDRIVE_APPLIED);
    ck_assert_int_eq(redrive(task.id), TOC_REDRIVE_NOT_FOUND);
    OK(toc_store_timeline(fx.store, &find, &fx.arena, &got, &log, &n, err));
    ck_assert_uint_eq(n, 2);
    /* the attempt that it died of, whole */
    ck_assert_int_eq(log[0].kind, TOC_LOG_KIND_ATTEMPT);
    ck_assert_int_eq(log[0].result, TOC_RESULT_FAILED);
    ck_assert_uint_eq(log[0].attempt, 1);
    ck_assert_int_eq(log[0].at_ms, task.ended_ms);
    TOC_ASSERT_STR(log[0].detail, "no such order");
    ck_assert_int_eq(log[1].kind, TOC_LOG_KIND_REDRIVE);
    TOC_ASSERT_STR(log[1].who, "op");
    check_redriven(task.id, 3);
}
END_TEST

START_TEST(redrive_after_the_key_was_freed)
{
    struct toc_task task = dead_one("a", "x", now_ms());
    size_t freed;

    set_low(task.slot_ms - 1);
    raw("UPDATE shard_owner SET low_ms=%lld", (long long)(task.slot_ms + 1));
    OK(toc_store_gc_keys(fx.store, toc_slice_shard(task.slice),
                         now_ms() + 2 * DAY, DAY, 10, &freed, err));
    ck_assert_uint_eq(freed, 1);
    ck_assert_int_eq(redrive(task.id), TOC_REDRIVE_APPLIED);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM key_history"), 0);
    check_redriven(task.id, 3);
}
END_TEST

START_TEST(redrive_after_the_day_is_gone)
{
    struct toc_task task = dead_one("a", "x", now_ms());

    raw("DELETE FROM task_info");
    raw("DELETE FROM task_key");
    ck_assert_int_eq(redrive(task.id), TOC_REDRIVE_APPLIED);
    check_redriven(task.id, 3);
}
END_TEST

START_TEST(redrive_of_a_taken_key)
{
    struct toc_task task = dead_one("a", "x", now_ms()), next;
    struct toc_submit item, *items[] = {&item};

    next = make_task("order", "a", "", now_ms() + 60000);
    item = make_submit(&next, 1);
    item.key_window_ms = 0;
    OK(toc_store_submit(fx.store, items, 1, now_ms() + 1, err));
    ck_assert_int_eq(item.result, TOC_SUBMIT_CREATED);
    ck_assert_int_eq(redrive(task.id), TOC_REDRIVE_KEY_TAKEN);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM dead_task"), 1);
    check_key(&next);
}
END_TEST

START_TEST(views_can_be_read)
{
    struct toc_task task = claimed_task("a", 7, now_ms() + 60000);
    struct toc_finish end = make_finish(&task, 7, TOC_FINISH_RETRY);

    end.due_ms = now_ms() - 1;
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    task = get_id(task.id);
    ck_assert_int_eq(claim_one(&task, 8, now_ms() + 60000), TOC_CLAIM_WON);
    end = make_finish(&task, 8, TOC_FINISH_DONE);
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM execute_log"), 2);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM retry_record"), 1);
}
END_TEST

static struct toc_task
lost_one(const char *id, uint8_t flags)
{
    struct toc_task task = make_task("order", id, "", now_ms() - 10);
    size_t freed;

    task.flags = flags;
    submit_one(&task, 1, TOC_ON_CONFLICT_REJECT, NULL);
    ck_assert_int_eq(claim_one(&task, 7, now_ms() - 1), TOC_CLAIM_WON);
    task = get_id(task.id);
    OK(toc_store_free_expired(fx.store, &task, 1, now_ms(), &freed, err));
    ck_assert_uint_eq(freed, 1);
    return get_id(task.id);
}

static void
finish_one(const struct toc_task *task, enum toc_finish_kind kind)
{
    struct toc_finish end = make_finish(task, 7, kind);

    end.due_ms = now_ms() + 60000;
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
}

/* However a task with one attempt went on, its attempt is there once. */
START_TEST(view_has_each_attempt_once)
{
    struct toc_task tasks[6];

    tasks[0] = claimed_task("cancelled in retry", 7, now_ms() + 60000);
    finish_one(&tasks[0], TOC_FINISH_RETRY);
    command_id(TOC_COMMAND_CANCEL, tasks[0].id, 0);
    tasks[1] = claimed_task("cancelled while it ran", 7, now_ms() + 60000);
    command_id(TOC_COMMAND_CANCEL, tasks[1].id, 0);
    finish_one(&tasks[1], TOC_FINISH_RETRY);
    tasks[2] = lost_one("dead by a lost lock", TOC_FLAG_AT_MOST_ONCE);
    tasks[3] = lost_one("lost, redriven", TOC_FLAG_AT_MOST_ONCE);
    ck_assert_int_eq(redrive(tasks[3].id), TOC_REDRIVE_APPLIED);
    tasks[4] = dead_one("redriven", "x", now_ms());
    ck_assert_int_eq(redrive(tasks[4].id), TOC_REDRIVE_APPLIED);
    tasks[5] = claimed_task("runs", 7, now_ms() + 60000);
    for (size_t i = 0; i < 6; i++) {
        TOC_CLEANUP(toc_buf_done) struct toc_buf id = {0};
        toc_buf_hex(&id, tasks[i].id.b, 16);
        ck_assert_msg(
            raw("SELECT COUNT(*) FROM execute_log WHERE task_id=x'%s'",
                id.data) == 1,
            "task %zu", i);
    }
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM execute_log"), 6);
}
END_TEST

START_TEST(shards_are_listed)
{
    struct toc_shard_row *shards;
    size_t n;

    OK(toc_store_list_shards(fx.store, &fx.arena, &shards, &n, err));
    ck_assert_uint_eq(n, 256);
    ck_assert_uint_eq(shards[255].shard, 255);
    ck_assert_int_eq(shards[0].state, TOC_SHARD_OPEN);
    ck_assert_int_lt(llabs(shards[7].low_ms - now_ms()), 90000);
}
END_TEST

STORE_TESTS("store_sweep", 120, loads_what_is_due,
            loads_only_the_slices_asked_for, scans_what_is_unfinished,
            mark_stops_at_the_first_unfinished,
            straggler_that_moves_is_forgotten,
            too_many_stragglers_are_a_backlog, mark_far_behind,
            mark_is_not_raised_by_a_clock_ahead, far_rows_move_into_their_day,
            keys_of_ended_tasks_are_freed, key_cursor_reaches_the_mark,
            lists_page_by_page, lists_by_filter, lists_dead_letters,
            old_dead_letters_go, redrive_in_place,
            redrive_after_the_key_was_freed, redrive_after_the_day_is_gone,
            redrive_of_a_taken_key, views_can_be_read,
            view_has_each_attempt_once, shards_are_listed)
