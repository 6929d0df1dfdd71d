/*
 * The contract of everything around firing: commands, loading, marks, far rows,
 * keys, dead letters.
 */
#ifndef TOC_TESTS_CONTRACT_STORE_SUITE_SWEEP_H
#define TOC_TESTS_CONTRACT_STORE_SUITE_SWEEP_H

#include "tests/contract/store/store_suite.h"

START_TEST(pause_and_resume)
{
    struct toc_task task = su_stored("a", su.now + 60000), got;
    struct toc_log_entry *log;

    ck_assert_int_eq(su_do(TOC_COMMAND_PAUSE, task.id), TOC_COMMAND_APPLIED);
    ck_assert_int_eq(su_do(TOC_COMMAND_PAUSE, task.id), TOC_COMMAND_ALREADY);
    got = su_get(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_PAUSED);
    ck_assert_int_eq(got.slot_ms, task.due_ms - TOC_PARK_PAUSED_MS);
    su_check_key(&got);
    ck_assert_int_eq(su_do(TOC_COMMAND_RESCHEDULE, task.id),
                     TOC_COMMAND_APPLIED);
    ck_assert_int_eq(su_get(task.id).state, TOC_STATE_PAUSED);
    ck_assert_int_eq(su_do(TOC_COMMAND_RESUME, task.id), TOC_COMMAND_APPLIED);
    got = su_get(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_INIT);
    ck_assert_int_eq(got.slot_ms, su.now + 120000);
    ck_assert_uint_eq(got.version, 4);
    su_check_key(&got);
    ck_assert_uint_eq(su_timeline(task.id, &log), 3);
    ck_assert_int_eq(log[0].kind, TOC_LOG_KIND_PAUSE);
    ck_assert_int_eq(log[1].kind, TOC_LOG_KIND_RESCHEDULE);
    ck_assert_int_eq(log[2].kind, TOC_LOG_KIND_RESUME);
    ck_assert(toc_str_eq(log[2].who, TOC_STR("tester")));
}
END_TEST

START_TEST(cancel)
{
    struct toc_task task = su_stored("a", su.now + 60000), got;
    struct toc_task parked = su_stored("b", su.now + 60 * SU_DAY);

    ck_assert_int_eq(su_do(TOC_COMMAND_CANCEL, task.id), TOC_COMMAND_APPLIED);
    ck_assert_int_eq(su_do(TOC_COMMAND_CANCEL, task.id), TOC_COMMAND_ALREADY);
    ck_assert_int_eq(su_do(TOC_COMMAND_PAUSE, task.id), TOC_COMMAND_ENDED);
    got = su_get(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_CANCELLED);
    ck_assert_int_eq(got.ended_ms, su.now);
    ck_assert_int_eq(su_claim(&got, 1), TOC_CLAIM_TAKEN);
    ck_assert_int_eq(su_do(TOC_COMMAND_CANCEL, parked.id), TOC_COMMAND_APPLIED);
    ck_assert_int_eq(su_get(parked.id).slot_ms, su.now); /* not parked */
    task.id.b[15] ^= 1;
    ck_assert_int_eq(su_do(TOC_COMMAND_CANCEL, task.id), TOC_COMMAND_NOT_FOUND);
}
END_TEST

START_TEST(run_now_and_etag)
{
    struct toc_task task = su_stored("a", su.now + 60000), got;
    struct toc_command command = {.kind = TOC_COMMAND_RUN_NOW,
                                  .find = su_by_id(task.id),
                                  .etag = 7,
                                  .now_ms = su.now};

    SU_OK(toc_store_command(su.store, &command, &su.arena, reterr));
    ck_assert_int_eq(command.result, TOC_COMMAND_MISMATCH);
    command.etag = 1;
    SU_OK(toc_store_command(su.store, &command, &su.arena, reterr));
    ck_assert_int_eq(command.result, TOC_COMMAND_APPLIED);
    got = su_get(task.id);
    ck_assert_int_eq(got.due_ms, su.now);
    ck_assert_int_eq(got.slot_ms, su.now);
    ck_assert_uint_eq(command.task->version, got.version);
    ck_assert_int_eq(su_do(TOC_COMMAND_RUN_NOW, task.id), TOC_COMMAND_ALREADY);
    ck_assert_int_eq(su_claim(&task, 1), TOC_CLAIM_TAKEN); /* the old hint */
    ck_assert_int_eq(su_claim(&got, 1), TOC_CLAIM_WON);
    ck_assert_int_eq(su_do(TOC_COMMAND_PAUSE, task.id), TOC_COMMAND_TOO_LATE);
    ck_assert_int_eq(su_do(TOC_COMMAND_RESUME, task.id), TOC_COMMAND_ALREADY);
}
END_TEST

START_TEST(loads_what_waits)
{
    struct toc_task due = su_stored("due", su.now + 500);
    struct toc_task later = su_stored("later", su.now + 9000);
    struct toc_task paused = su_stored("paused", su.now + 600);
    struct toc_task running = su_executing("running", 1, 0, su.now + 30000);
    uint16_t slices[] = {due.slice, later.slice, paused.slice, running.slice};
    struct toc_slot_span spans[] = {{su.now - 1200, su.now + 1200},
                                    {su.now + 8999, su.now + 9000}};
    struct su_seen seen = {.n = 0};

    su_do(TOC_COMMAND_PAUSE, paused.id);
    SU_OK(toc_store_load(su.store, slices, 4, spans, 2, su_see, &seen, reterr));
    ck_assert_uint_eq(seen.n, 2);
    seen.n = 0;
    spans[1].after_ms = su.now + 9000; /* (after, to] */
    SU_OK(toc_store_load(su.store, slices, 4, spans, 1, su_see, &seen, reterr));
    ck_assert_uint_eq(seen.n, 1);
    ck_assert(su_is(&seen.tasks[0], due.id));
    seen.n = 0;
    SU_OK(toc_store_scan(su.store, slices, 4, su.now - 1000, su.now + 20000,
                         su_see, &seen, reterr));
    ck_assert_uint_eq(seen.n, 3); /* what runs too */
}
END_TEST

/* The mark stops at what is unfinished, passes what is recorded, and what is
 * recorded is still seen. */
START_TEST(marks_and_stragglers)
{
    struct toc_task task = su_task("a", "", su.now - 30000);
    struct toc_submit item = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);
    struct toc_submit *items[] = {&item};
    struct su_seen seen = {.n = 0};

    SU_OK(toc_store_submit(su.store, items, 1, su.now - 30000, reterr));
    ck_assert_int_eq(su_advance(task.slice, su.now - 1000), task.slot_ms);
    ck_assert_uint_eq(su_record(task.slice, su.now - 1000, 0), 1);
    ck_assert_int_eq(su_advance(task.slice, su.now - 1000), task.slot_ms);
    ck_assert_uint_eq(su_record(task.slice, su.now - 1000, 10), 1);
    ck_assert_int_eq(su_advance(task.slice, su.now - 1000), su.now - 1000);
    ck_assert_int_eq(su_advance(task.slice, su.now - 9000), su.now - 1000);
    SU_OK(toc_store_scan_stragglers(su.store, &task.slice, 1, su_see, &seen,
                                    reterr));
    ck_assert_uint_eq(seen.n, 1);
    su_do(TOC_COMMAND_CANCEL, task.id);
    ck_assert_uint_eq(su_record(task.slice, su.now - 1000, 10), 0);
    SU_OK(toc_store_scan_stragglers(su.store, &task.slice, 1, su_see, &seen,
                                    reterr));
    ck_assert_uint_eq(seen.n, 1);
}
END_TEST

/* Marks do not run ahead of the database's clock. */
START_TEST(marks_go_by_the_database_clock)
{
    struct toc_task task = su_task("a", "", su.now);
    uint16_t shard = toc_slice_shard(task.slice);

    SU_OK(toc_store_advance_low(su.store, &shard, 1, su.now + SU_DAY, 60000,
                                reterr));
    ck_assert_int_lt(su_shard(task.slice).low_ms, su.now + SU_DAY / 2);
}
END_TEST

START_TEST(far_rows_come_near)
{
    struct toc_task far = su_stored("a", su.now + 60 * SU_DAY), got;
    int64_t near_ms = far.due_ms - TOC_FAR_MOVE_MS + 1;
    size_t moved;

    SU_OK(toc_store_move_far(su.store, &far.slice, 1, near_ms - 2, 10, &moved,
                             reterr));
    ck_assert_uint_eq(moved, 0);
    SU_OK(toc_store_move_far(su.store, &far.slice, 1, near_ms, 10, &moved,
                             reterr));
    ck_assert_uint_eq(moved, 1);
    got = su_get(far.id);
    ck_assert_int_eq(got.slot_ms, far.due_ms);
    ck_assert_uint_eq(got.version, 2);
    su_check_key(&got);
}
END_TEST

/* A freed key is free, and its task found all the same. */
START_TEST(keys_are_freed)
{
    struct toc_task task = su_task("a", "", su.now - 50000), got, next;
    struct toc_submit item = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);
    struct toc_submit *items[] = {&item};
    uint16_t shard = toc_slice_shard(task.slice);
    size_t freed;

    SU_OK(toc_store_submit(su.store, items, 1, su.now - 50000, reterr));
    su_end_task(&task, TOC_FINISH_DONE);
    su_advance(task.slice, su.now - 1000);
    SU_OK(
        toc_store_gc_keys(su.store, shard, su.now, SU_DAY, 10, &freed, reterr));
    ck_assert_uint_eq(freed, 0);
    SU_OK(toc_store_gc_keys(su.store, shard, su.now, 0, 10, &freed, reterr));
    ck_assert_uint_eq(freed, 1);
    ck_assert_int_eq(su_shard(task.slice).keygc_ms, su.now - 1000);
    ck_assert_int_eq(su_get(task.id).state, TOC_STATE_SUCCESS);
    ck_assert_int_eq(su_looks(su_by_key(&task), &got), TOC_OK);
    ck_assert(su_is(&got, task.id));
    next = su_stored("a", su.now + 1000);
    su_check_key(&next);
}
END_TEST

START_TEST(redrive)
{
    struct toc_task task = su_stored("a", su.now - 10), got;
    enum toc_redrive_result result;
    struct toc_log_entry *log;
    struct toc_task other;
    struct toc_submit item;

    su_end_task(&task, TOC_FINISH_DEAD);
    SU_OK(toc_store_redrive(su.store, task.id, su.now, TOC_STR("tester"),
                            TOC_STR("again"), &result, reterr));
    ck_assert_int_eq(result, TOC_REDRIVE_APPLIED);
    got = su_get(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_RETRY);
    ck_assert_int_eq(got.due_ms, su.now);
    ck_assert_uint_eq(got.attempt, 0);
    su_check_key(&got);
    ck_assert_uint_eq(su_timeline(task.id, &log), 2);
    ck_assert_int_eq(log[0].kind, TOC_LOG_KIND_ATTEMPT);
    ck_assert_int_eq(log[1].kind, TOC_LOG_KIND_REDRIVE);
    SU_OK(toc_store_redrive(su.store, task.id, su.now, TOC_STR("t"),
                            TOC_STR("w"), &result, reterr));
    ck_assert_int_eq(result, TOC_REDRIVE_NOT_FOUND);
    su_end_task(&got, TOC_FINISH_DEAD);
    other = su_task("a", "", su.now + 1000);
    item = su_submit(&other, 9, TOC_ON_CONFLICT_REPLACE);
    ck_assert_int_eq(su_send(&item), TOC_SUBMIT_REPLACED);
    SU_OK(toc_store_redrive(su.store, task.id, su.now, TOC_STR("t"),
                            TOC_STR("w"), &result, reterr));
    ck_assert_int_eq(result, TOC_REDRIVE_KEY_TAKEN);
}
END_TEST

START_TEST(dead_letters_newest_first)
{
    struct toc_dead_filter filter = {.reason = {NULL, 0}};
    struct toc_cursor cursor = {.set = false};
    struct toc_dead *dead;
    size_t n;

    for (int i = 0; i < 5; i++) {
        char biz[] = {(char)('a' + i), '\0'};
        struct toc_task task = su_executing(biz, 7, 0, su.now + 30000);
        struct toc_finish item = su_finish(&task, 7, TOC_FINISH_DEAD);
        item.ended_ms = su.now - 100 + i;
        ck_assert_int_eq(su_write(&item), TOC_FINISH_OK);
    }
    for (int i = 4; i >= 0; i--) {
        SU_OK(toc_store_list_dead(su.store, &filter, 1, &cursor, &su.arena,
                                  &dead, &n, reterr));
        ck_assert_uint_eq(n, 1);
        ck_assert_int_eq(dead[0].dead_ms, su.now - 100 + i);
        ck_assert(toc_str_eq(dead[0].reason, TOC_STR("no more")));
    }
}
END_TEST

#define STORE_SUITE                                                         \
    stores_and_finds, a_key_is_one_task, equal_keys_in_a_call,              \
        what_is_called_is_not_replaced, the_window_of_a_key,                \
        a_repeated_submit, where_rows_live, days_are_made_when_missing,     \
        many_kinds_of_list, buckets_hold_what_lies_there,                   \
        nodes_have_numbers_of_their_own, one_claim_wins, never_early,       \
        a_long_payload_comes_with_the_claim, results_that_end_a_task,       \
        results_that_move_a_task, no_retry_behind_the_mark,                 \
        snooze_and_give_back, a_noted_cancel_is_heeded,                     \
        expired_locks_are_freed, locks_run_by_the_database_clock, renewing, \
        too_many_lost_locks, pause_and_resume, cancel, run_now_and_etag,    \
        loads_what_waits, marks_and_stragglers,                             \
        marks_go_by_the_database_clock, far_rows_come_near, keys_are_freed, \
        redrive, dead_letters_newest_first

#endif
