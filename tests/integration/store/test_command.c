/*
 * Goal: each command in each state answers what store.h says, changes what it
 * says and nothing else, and leaves a log row. Method: a table of states and
 * commands on a real database, then the details one by one.
 */
#include "tests/integration/store/fixture.h"

/* A task in the state. */
static struct toc_task
task_in(enum toc_state state, const char *id)
{
    struct toc_task task;
    struct toc_finish end;

    if (state == TOC_STATE_INIT || state == TOC_STATE_PAUSED ||
        state == TOC_STATE_CANCELLED) {
        task = stored_task(id, now_ms() + 60000);
        if (state == TOC_STATE_PAUSED)
            command_id(TOC_COMMAND_PAUSE, task.id, 0);
        if (state == TOC_STATE_CANCELLED)
            command_id(TOC_COMMAND_CANCEL, task.id, 0);
        return get_id(task.id);
    }
    task = claimed_task(id, 7, now_ms() + 60000);
    if (state == TOC_STATE_EXECUTING)
        return task;
    end = make_finish(&task, 7,
                      state == TOC_STATE_RETRY     ? TOC_FINISH_RETRY
                      : state == TOC_STATE_SUCCESS ? TOC_FINISH_DONE
                      : state == TOC_STATE_DEAD    ? TOC_FINISH_DEAD
                                                   : TOC_FINISH_SKIPPED);
    end.due_ms = now_ms() + 30000;
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    return get_id(task.id);
}

START_TEST(every_command_in_every_state)
{
    enum {
        APPLIED = TOC_COMMAND_APPLIED,
        ALREADY = TOC_COMMAND_ALREADY,
        LATE = TOC_COMMAND_TOO_LATE,
        ENDED = TOC_COMMAND_ENDED
    };
    static const struct {
        enum toc_state state;
        int results[5]; /* cancel, pause, resume, reschedule, run now */
        int states[5];  /* afterwards; -1: as it was */
    } rows[] = {
        {TOC_STATE_INIT,
         {APPLIED, APPLIED, ALREADY, APPLIED, APPLIED},
         {7, 3, -1, -1, -1}},
        {TOC_STATE_RETRY,
         {APPLIED, APPLIED, ALREADY, APPLIED, APPLIED},
         {7, 3, -1, -1, -1}},
        {TOC_STATE_PAUSED,
         {APPLIED, ALREADY, APPLIED, APPLIED, APPLIED},
         {7, -1, 0, -1, 0}},
        {TOC_STATE_EXECUTING,
         {LATE, LATE, ALREADY, LATE, LATE},
         {-1, -1, -1, -1, -1}},
        {TOC_STATE_SUCCESS,
         {ENDED, ENDED, ENDED, ENDED, ENDED},
         {-1, -1, -1, -1, -1}},
        {TOC_STATE_DEAD,
         {ENDED, ENDED, ENDED, ENDED, ENDED},
         {-1, -1, -1, -1, -1}},
        {TOC_STATE_CANCELLED,
         {ALREADY, ENDED, ENDED, ENDED, ENDED},
         {-1, -1, -1, -1, -1}},
        {TOC_STATE_SKIPPED,
         {ENDED, ENDED, ENDED, ENDED, ENDED},
         {-1, -1, -1, -1, -1}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int kind = 0; kind < 5; kind++) {
            char id[16];
            struct toc_task before, after;
            struct toc_command command;
            bool noted = rows[i].state == TOC_STATE_EXECUTING && kind == 0;
            bool changed = rows[i].results[kind] == APPLIED || noted;
            snprintf(id, sizeof id, "t%zu-%d", i, kind);
            before = task_in(rows[i].state, id);
            ck_assert_int_eq(before.state, rows[i].state);
            command = command_of((enum toc_command_kind)kind, before.id);
            command.due_ms = now_ms() + 500000;
            OK(toc_store_command(fx.store, &command, &fx.arena, err));
            ck_assert_msg((int)command.result == rows[i].results[kind],
                          "command %d in %s: %d", kind,
                          toc_state_text(rows[i].state), (int)command.result);
            after = get_id(before.id);
            if (rows[i].states[kind] < 0)
                ck_assert_int_eq(after.state, before.state);
            else
                ck_assert_int_eq((int)after.state, rows[i].states[kind]);
            ck_assert_uint_eq(after.version, before.version + changed);
            ck_assert_int_eq(command.task->state, after.state);
            ck_assert_uint_eq(command.task->version, after.version);
            ck_assert_int_eq(command.task->slot_ms, after.slot_ms);
            ck_assert_int_eq(command.task->due_ms, after.due_ms);
            check_key(&after);
        }
}
END_TEST

START_TEST(not_found)
{
    struct toc_command command =
        command_of(TOC_COMMAND_CANCEL, (struct toc_task_id){{1, 2, 3}});

    OK(toc_store_command(fx.store, &command, &fx.arena, err));
    ck_assert_int_eq(command.result, TOC_COMMAND_NOT_FOUND);
    ck_assert_ptr_null(command.task);
    command.find = find_biz("order", "none", "");
    OK(toc_store_command(fx.store, &command, &fx.arena, err));
    ck_assert_int_eq(command.result, TOC_COMMAND_NOT_FOUND);
}
END_TEST

START_TEST(etag)
{
    struct toc_task task = stored_task("a", now_ms() + 60000);
    struct toc_command command = command_of(TOC_COMMAND_PAUSE, task.id);

    command.etag = 2;
    OK(toc_store_command(fx.store, &command, &fx.arena, err));
    ck_assert_int_eq(command.result, TOC_COMMAND_MISMATCH);
    ck_assert_uint_eq(command.task->version, 1);
    command.etag = 1;
    OK(toc_store_command(fx.store, &command, &fx.arena, err));
    ck_assert_int_eq(command.result, TOC_COMMAND_APPLIED);
    OK(toc_store_command(fx.store, &command, &fx.arena, err));
    ck_assert_int_eq(command.result, TOC_COMMAND_MISMATCH); /* before ALREADY */
}
END_TEST

START_TEST(pause_parks_and_resume_returns)
{
    struct toc_task task = stored_task("a", now_ms() + 60000), got;

    command_id(TOC_COMMAND_PAUSE, task.id, 0);
    got = get_id(task.id);
    ck_assert_int_eq(got.slot_ms,
                     toc_slot_parked(task.due_ms, TOC_PARK_PAUSED_MS));
    ck_assert_int_eq(got.due_ms, task.due_ms);
    command_id(TOC_COMMAND_RESUME, task.id, 0);
    got = get_id(task.id);
    ck_assert_int_eq(got.slot_ms, task.due_ms);
    ck_assert_int_eq(got.state, TOC_STATE_INIT);
    ck_assert_uint_eq(got.version, 3);
}
END_TEST

START_TEST(resume_after_the_due_time)
{
    struct toc_task task = stored_task("a", now_ms() - 5000), got;
    int64_t before = now_ms();

    command_id(TOC_COMMAND_PAUSE, task.id, 0);
    command_id(TOC_COMMAND_RESUME, task.id, 0);
    got = get_id(task.id);
    ck_assert_int_ge(got.slot_ms, before);
    ck_assert_int_eq(got.due_ms, task.due_ms);
    ck_assert_int_eq(claim_one(&got, 1, now_ms() + 9999), TOC_CLAIM_WON);
}
END_TEST

START_TEST(resume_of_a_failed_one_is_retry)
{
    struct toc_task task = task_in(TOC_STATE_RETRY, "a");

    command_id(TOC_COMMAND_PAUSE, task.id, 0);
    command_id(TOC_COMMAND_RESUME, task.id, 0);
    ck_assert_int_eq(get_id(task.id).state, TOC_STATE_RETRY);
    ck_assert_uint_eq(get_id(task.id).attempt, 1);
}
END_TEST

START_TEST(reschedule_everywhere)
{
    struct toc_task task = stored_task("a", now_ms() + 60000), got;
    int64_t far_ms = now_ms() + 400 * DAY;

    command_id(TOC_COMMAND_RESCHEDULE, task.id, far_ms);
    got = get_id(task.id);
    ck_assert(toc_slot_is_far(got.slot_ms));
    ck_assert_int_eq(got.due_ms, far_ms);
    ck_assert_int_eq(command_id(TOC_COMMAND_RESCHEDULE, task.id, far_ms),
                     TOC_COMMAND_ALREADY);
    command_id(TOC_COMMAND_RESCHEDULE, task.id, -5);
    got = get_id(task.id);
    ck_assert_int_eq(got.due_ms, -5);
    ck_assert_int_gt(got.slot_ms, now_ms() - 10000);
    command_id(TOC_COMMAND_PAUSE, task.id, 0);
    command_id(TOC_COMMAND_RESCHEDULE, task.id, far_ms);
    got = get_id(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_PAUSED);
    ck_assert_int_eq(got.slot_ms, toc_slot_parked(far_ms, TOC_PARK_PAUSED_MS));
    check_key(&got);
    command_id(TOC_COMMAND_RESUME, task.id, 0);
    ck_assert(toc_slot_is_far(get_id(task.id).slot_ms));
}
END_TEST

START_TEST(run_now)
{
    struct toc_task near = stored_task("a", now_ms() + 60000);
    struct toc_task far = stored_task("b", now_ms() + 900 * DAY), got;

    command_id(TOC_COMMAND_RUN_NOW, near.id, 0);
    got = get_id(near.id);
    ck_assert_int_le(got.due_ms, now_ms());
    ck_assert_int_eq(got.slot_ms, got.due_ms);
    ck_assert_int_eq(claim_one(&got, 1, now_ms() + 9999), TOC_CLAIM_WON);
    command_id(TOC_COMMAND_RUN_NOW, far.id, 0);
    got = get_id(far.id);
    ck_assert_int_eq(claim_one(&got, 1, now_ms() + 9999), TOC_CLAIM_WON);
    near = stored_task("c", now_ms() - 1);
    ck_assert_int_eq(command_id(TOC_COMMAND_RUN_NOW, near.id, 0),
                     TOC_COMMAND_ALREADY);
}
END_TEST

/* What ends while parked must lie in a day, or it is never cleared away. */
START_TEST(cancelled_rows_leave_the_parking)
{
    struct toc_task far = stored_task("a", now_ms() + 900 * DAY), got;
    struct toc_task paused = stored_task("b", now_ms() + 60000);

    command_id(TOC_COMMAND_PAUSE, paused.id, 0);
    command_id(TOC_COMMAND_CANCEL, far.id, 0);
    command_id(TOC_COMMAND_CANCEL, paused.id, 0);
    got = get_id(far.id);
    ck_assert(!toc_slot_is_parked(got.slot_ms));
    check_key(&got);
    got = get_id(paused.id);
    ck_assert(!toc_slot_is_parked(got.slot_ms));
    ck_assert_int_gt(got.ended_ms, now_ms() - 10000);
    check_key(&got);
}
END_TEST

START_TEST(commands_land_above_the_mark)
{
    struct toc_task task = stored_task("a", now_ms() + 60000);
    int64_t low_ms = now_ms() + 5000;

    raw("UPDATE shard_owner SET low_ms=%lld", (long long)low_ms);
    command_id(TOC_COMMAND_RESCHEDULE, task.id, now_ms() + 100);
    ck_assert_int_eq(get_id(task.id).slot_ms, low_ms + 1);
    command_id(TOC_COMMAND_PAUSE, task.id, 0);
    command_id(TOC_COMMAND_RESUME, task.id, 0);
    ck_assert_int_eq(get_id(task.id).slot_ms, low_ms + 1);
    task = stored_task("b", now_ms() - 5);
    ck_assert_int_eq(get_id(task.id).slot_ms, low_ms + 1);
    check_key(&task);
}
END_TEST

START_TEST(a_timeline)
{
    static const enum toc_log_kind kinds[] = {
        TOC_LOG_KIND_PAUSE,   TOC_LOG_KIND_RESCHEDULE, TOC_LOG_KIND_RESUME,
        TOC_LOG_KIND_RUN_NOW, TOC_LOG_KIND_ATTEMPT,    TOC_LOG_KIND_CANCEL};
    struct toc_task task = stored_task("a", now_ms() + 60000), got;
    struct toc_find find = find_biz("order", "a", "");
    struct toc_log_entry *log;
    struct toc_finish end;
    size_t n;

    command_id(TOC_COMMAND_PAUSE, task.id, 0);
    command_id(TOC_COMMAND_RESCHEDULE, task.id, now_ms() + 90000);
    command_id(TOC_COMMAND_RESUME, task.id, 0);
    command_id(TOC_COMMAND_RUN_NOW, task.id, 0);
    got = get_id(task.id);
    ck_assert_int_eq(claim_one(&got, 1, now_ms() + 9999), TOC_CLAIM_WON);
    end = make_finish(&got, 1, TOC_FINISH_RETRY);
    end.due_ms = now_ms() + 1000;
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    command_id(TOC_COMMAND_CANCEL, task.id, 0);
    OK(toc_store_timeline(fx.store, &find, &fx.arena, &got, &log, &n, err));
    ck_assert_uint_eq(n, 6);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(log[i].kind, kinds[i]);
        ck_assert_uint_eq(log[i].version, i + 2);
        if (kinds[i] != TOC_LOG_KIND_ATTEMPT) {
            TOC_ASSERT_STR(log[i].who, "tester");
            TOC_ASSERT_STR(log[i].detail, "because");
            ck_assert_uint_eq(log[i].attempt, 0);
        }
    }
    ck_assert_uint_eq(got.version, 7);
}
END_TEST

/* From one far place to another, into its day without a log row, and on: what
 * happened in that day is told, and the id alone finds the row. */
START_TEST(a_timeline_over_far_places)
{
    int64_t t = now_ms(), due_ms = t + 70 * DAY;
    struct toc_task task = stored_task("a", t + 60 * DAY), got;
    struct toc_find find = find_id(task.id);
    uint16_t slice = task.slice;
    struct toc_log_entry *log;
    size_t n;

    command_id(TOC_COMMAND_RESCHEDULE, task.id, due_ms);
    ck_assert(toc_slot_is_far(get_id(task.id).slot_ms));
    OK(toc_store_move_far(fx.store, &slice, 1, due_ms - DAY / 2, 10, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(get_id(task.id).slot_ms, due_ms);
    command_id(TOC_COMMAND_RUN_NOW, task.id, 0);
    command_id(TOC_COMMAND_RESCHEDULE, task.id, t + 1000);
    OK(toc_store_timeline(fx.store, &find, &fx.arena, &got, &log, &n, err));
    ck_assert_uint_eq(n, 3);
    ck_assert_int_eq(log[0].kind, TOC_LOG_KIND_RESCHEDULE);
    ck_assert_int_eq(log[1].kind, TOC_LOG_KIND_RUN_NOW);
    ck_assert_int_eq(log[2].kind, TOC_LOG_KIND_RESCHEDULE);
    raw("DELETE FROM task_key");
    ck_assert_uint_eq(get_id(task.id).version, 5);
}
END_TEST

/* ---- races
 * ------------------------------------------------------------------- */

struct rescheduler {
    struct toc_thread thread;
    struct toc_task_id id;
    int number;
    unsigned applied, bad;
};

static void
reschedule_often(void *arg)
{
    struct rescheduler *r = arg;
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};

    for (int i = 0; i < 20; i++) {
        struct toc_command command = command_of(TOC_COMMAND_RESCHEDULE, r->id);
        command.due_ms = now_ms() + 60000 + r->number * 1000 + i;
        if (toc_store_command(fx.store, &command, &arena, NULL) != TOC_OK)
            r->bad++;
        else if (command.result == TOC_COMMAND_APPLIED)
            r->applied++;
        else
            r->bad++;
    }
}

/* 8 threads move one row 20 times each: every one gets a definite answer. */
START_TEST(many_reschedule_one_task)
{
    struct toc_task task = stored_task("a", now_ms() + 60000), got;
    struct rescheduler threads[8];
    unsigned applied = 0;

    for (int i = 0; i < 8; i++) {
        threads[i] = (struct rescheduler){.id = task.id, .number = i};
        toc_thread_start(&threads[i].thread, "resched", reschedule_often,
                         &threads[i]);
    }
    for (int i = 0; i < 8; i++) {
        toc_thread_join(&threads[i].thread);
        ck_assert_uint_eq(threads[i].bad, 0);
        applied += threads[i].applied;
    }
    got = get_id(task.id);
    ck_assert_uint_eq(applied, 160);
    ck_assert_uint_eq(got.version, 161);
    check_key(&got);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_log"), 160);
}
END_TEST

STORE_TESTS("store_command", 120, every_command_in_every_state, not_found, etag,
            pause_parks_and_resume_returns, resume_after_the_due_time,
            resume_of_a_failed_one_is_retry, reschedule_everywhere, run_now,
            cancelled_rows_leave_the_parking, commands_land_above_the_mark,
            a_timeline, a_timeline_over_far_places, many_reschedule_one_task)
