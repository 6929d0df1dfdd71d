/*
 * The contract of firing: claims, results, expired locks.
 */
#ifndef TOC_TESTS_CONTRACT_STORE_SUITE_EXECUTE_H
#define TOC_TESTS_CONTRACT_STORE_SUITE_EXECUTE_H

#include "tests/contract/store/store_suite.h"

START_TEST(one_claim_wins)
{
    struct toc_task task = su_stored("a", su.now - 10), got;
    struct toc_task old = task;

    old.version++;
    ck_assert_int_eq(su_claim(&old, 1), TOC_CLAIM_TAKEN);
    ck_assert_int_eq(su_claim(&task, 1), TOC_CLAIM_WON);
    ck_assert_int_eq(su_claim(&task, 2), TOC_CLAIM_TAKEN);
    ck_assert_int_eq(su_claim(&task, 1), TOC_CLAIM_WON); /* asked again */
    got = su_get(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_EXECUTING);
    ck_assert_uint_eq(got.version, 1); /* a claim leaves it alone */
    ck_assert_uint_eq(got.lock_token, 1);
    ck_assert_int_eq(got.lock_until_ms, su.now + 30000);
    ck_assert_int_eq(got.claimed_ms, su.now);
    ck_assert_uint_eq(got.sched_node, 5);
    ck_assert_uint_eq(got.exec_node, 9);
}
END_TEST

/* By the caller's clock, and by the database's when that is behind. */
START_TEST(never_early)
{
    struct toc_task task = su_stored("a", su.now + SU_DAY);

    ck_assert_int_eq(su_claim(&task, 1), TOC_CLAIM_EARLY);
    ck_assert_int_eq(
        su_claim_at(&task, 1, su.now + 3 * SU_DAY, su.now + 2 * SU_DAY),
        TOC_CLAIM_EARLY);
    ck_assert_int_eq(su_get(task.id).state, TOC_STATE_INIT);
}
END_TEST

START_TEST(a_long_payload_comes_with_the_claim)
{
    static const char bytes[TOC_HINT_PAYLOAD_MAX + 1] = "long";
    struct toc_task task = su_task("a", "", su.now - 10);
    struct toc_submit item = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);
    struct toc_slot_span span = {su.now - 1000, su.now + 1000};
    struct toc_claim_lock lock = {
        .token = 1, .lock_until_ms = su.now + 1000, .now_ms = su.now};
    struct su_seen seen = {.n = 0};
    struct toc_claim claim;

    task.payload = (struct toc_str){bytes, sizeof bytes};
    ck_assert_int_eq(su_send(&item), TOC_SUBMIT_CREATED);
    SU_OK(toc_store_load(su.store, &task.slice, 1, &span, 1, su_see, &seen,
                         reterr));
    ck_assert_uint_eq(seen.n, 1);
    ck_assert_ptr_null(seen.tasks[0].payload.ptr);
    ck_assert_uint_eq(seen.tasks[0].payload.len, sizeof bytes);
    claim = (struct toc_claim){.ref = toc_task_ref_of(&task), .want_row = true};
    SU_OK(toc_store_claim(su.store, &claim, 1, &lock, &su.arena, reterr));
    ck_assert_int_eq(claim.result, TOC_CLAIM_WON);
    ck_assert(toc_str_eq(claim.row->payload, task.payload));
}
END_TEST

START_TEST(results_that_end_a_task)
{
    static const struct {
        enum toc_finish_kind kind;
        enum toc_state state;
    } cases[] = {{TOC_FINISH_DONE, TOC_STATE_SUCCESS},
                 {TOC_FINISH_SKIPPED, TOC_STATE_SKIPPED},
                 {TOC_FINISH_DEAD, TOC_STATE_DEAD}};

    for (size_t i = 0; i < 3; i++) {
        char biz[] = {(char)('a' + (int)i), '\0'};
        struct toc_task task = su_executing(biz, 3, 0, su.now + 30000), got;
        struct toc_finish item = su_finish(&task, 4, cases[i].kind);
        ck_assert_int_eq(su_write(&item), TOC_FINISH_LOST); /* wrong token */
        item.token = 3;
        ck_assert_int_eq(su_write(&item), TOC_FINISH_OK);
        got = su_get(task.id);
        ck_assert_int_eq(got.state, cases[i].state);
        ck_assert_uint_eq(got.version, task.version + 1);
        ck_assert_uint_eq(got.lock_token, 0);
        ck_assert_int_eq(got.slot_ms, task.slot_ms);
        ck_assert_int_eq(got.called_ms, item.called_ms);
        ck_assert_int_eq(got.ended_ms, item.ended_ms);
        ck_assert(toc_str_eq(got.error, TOC_STR("it failed")));
        ck_assert_int_eq(su_write(&item), TOC_FINISH_OK); /* sent again */
        ck_assert_uint_eq(su_get(task.id).version, got.version);
    }
}
END_TEST

START_TEST(results_that_move_a_task)
{
    struct toc_task task = su_executing("a", 3, 0, su.now + 30000), got;
    struct toc_finish item = su_finish(&task, 3, TOC_FINISH_RETRY);
    struct toc_task_ref moved;
    struct toc_log_entry *log;

    ck_assert_int_eq(su_write(&item), TOC_FINISH_OK);
    moved = item.moved;
    got = su_get(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_RETRY);
    ck_assert_int_eq(got.slot_ms, item.due_ms);
    ck_assert_int_eq(moved.slot_ms, got.slot_ms);
    ck_assert_uint_eq(moved.version, got.version);
    ck_assert_uint_eq(got.attempt, 1);
    su_check_key(&got);
    item.moved = (struct toc_task_ref){.version = 0};
    ck_assert_int_eq(su_write(&item), TOC_FINISH_OK); /* sent again */
    ck_assert_int_eq(toc_task_ref_cmp(&item.moved, &moved), 0);
    ck_assert_uint_eq(item.moved.version, moved.version);
    ck_assert_uint_eq(su_timeline(task.id, &log), 1);
    ck_assert_int_eq(log[0].kind, TOC_LOG_KIND_ATTEMPT);
    ck_assert_uint_eq(log[0].attempt, 1);
    ck_assert_int_eq(log[0].at_ms, item.ended_ms);
}
END_TEST

/* The mark has passed the retry's time while its result waited. */
START_TEST(no_retry_behind_the_mark)
{
    struct toc_task task = su_task("a", "", su.now - 9000);
    struct toc_submit sent = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);
    struct toc_submit *items[] = {&sent};
    struct toc_finish item;
    int64_t mark_ms;

    SU_OK(toc_store_submit(su.store, items, 1, su.now - 9000, reterr));
    ck_assert_int_eq(su_claim(&task, 3), TOC_CLAIM_WON);
    ck_assert_uint_eq(su_record(task.slice, su.now - 1000, 10), 1);
    mark_ms = su_advance(task.slice, su.now);
    item = su_finish(&task, 3, TOC_FINISH_RETRY);
    item.due_ms = su.now - 1000;
    SU_OK(toc_store_finish(su.store, &item, 1, su.now - 500, reterr));
    ck_assert_int_eq(item.result, TOC_FINISH_OK);
    ck_assert_int_eq(item.moved.slot_ms, mark_ms + 1);
    ck_assert_int_eq(su_get(task.id).slot_ms, mark_ms + 1);
}
END_TEST

START_TEST(snooze_and_give_back)
{
    struct toc_task task = su_executing("a", 3, 0, su.now + 30000), got;
    struct toc_finish item = su_finish(&task, 3, TOC_FINISH_SNOOZE);

    item.attempt = 9;
    ck_assert_int_eq(su_write(&item), TOC_FINISH_OK);
    got = su_get(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_RETRY);
    ck_assert_uint_eq(got.attempt, 0);
    task = su_executing("b", 4, 0, su.now + 30000);
    item = su_finish(&task, 4, TOC_FINISH_GIVE_BACK);
    ck_assert_int_eq(su_write(&item), TOC_FINISH_OK);
    got = su_get(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_INIT);
    ck_assert_int_eq(got.slot_ms, task.slot_ms);
    ck_assert_uint_eq(got.version, item.moved.version);
    ck_assert_int_eq(su_claim(&got, 5), TOC_CLAIM_WON);
}
END_TEST

/* A cancel that came while it ran: no further attempt, by whatever way. */
START_TEST(a_noted_cancel_is_heeded)
{
    struct toc_task task = su_executing("a", 3, 0, su.now + 30000), got;
    struct toc_finish item;
    size_t freed;

    ck_assert_int_eq(su_do(TOC_COMMAND_CANCEL, task.id), TOC_COMMAND_TOO_LATE);
    item = su_finish(&task, 3, TOC_FINISH_RETRY);
    ck_assert_int_eq(su_write(&item), TOC_FINISH_CANCELLED);
    ck_assert_int_eq(su_get(task.id).state, TOC_STATE_CANCELLED);
    task = su_executing("b", 4, 0, su.now - 5);
    ck_assert_int_eq(su_do(TOC_COMMAND_CANCEL, task.id), TOC_COMMAND_TOO_LATE);
    got = su_get(task.id);
    SU_OK(toc_store_free_expired(su.store, &got, 1, su.now, &freed, reterr));
    ck_assert_uint_eq(freed, 1);
    ck_assert_int_eq(su_get(task.id).state, TOC_STATE_CANCELLED);
}
END_TEST

START_TEST(expired_locks_are_freed)
{
    struct toc_task held = su_executing("held", 3, 0, su.now + 30000);
    struct toc_task over = su_executing("over", 4, 0, su.now - 5), got;
    struct toc_task once =
        su_executing("once", 5, TOC_FLAG_AT_MOST_ONCE, su.now - 5);
    struct toc_task seen[3] = {held, over, once};
    struct toc_dead_filter filter = {.biz_id = TOC_STR("once")};
    struct toc_cursor cursor = {.set = false};
    struct toc_finish late;
    struct toc_dead *dead;
    size_t n;

    SU_OK(toc_store_free_expired(su.store, seen, 3, su.now, &n, reterr));
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(su_get(held.id).state, TOC_STATE_EXECUTING);
    got = su_get(over.id);
    ck_assert_int_eq(got.state, TOC_STATE_RETRY);
    ck_assert_uint_eq(got.claims, 1);
    ck_assert_int_eq(got.result, TOC_RESULT_LOST);
    ck_assert_int_eq(got.slot_ms, over.slot_ms);
    late = su_finish(&over, 4, TOC_FINISH_DONE);
    ck_assert_int_eq(su_write(&late), TOC_FINISH_LOST);
    ck_assert_int_eq(su_get(once.id).state, TOC_STATE_DEAD);
    SU_OK(toc_store_list_dead(su.store, &filter, 10, &cursor, &su.arena, &dead,
                              &n, reterr));
    ck_assert_uint_eq(n, 1);
    ck_assert(su_is(&dead[0].task, once.id));
    SU_OK(toc_store_free_expired(su.store, seen, 3, su.now, &n, reterr));
    ck_assert_uint_eq(n, 0);
}
END_TEST

/* A clock ahead of the database's takes no running lock away. */
START_TEST(locks_run_by_the_database_clock)
{
    struct toc_task held = su_executing("a", 3, 0, su.now + SU_DAY);
    size_t freed;

    SU_OK(toc_store_free_expired(su.store, &held, 1, su.now + 2 * SU_DAY,
                                 &freed, reterr));
    ck_assert_uint_eq(freed, 0);
    ck_assert_int_eq(su_get(held.id).state, TOC_STATE_EXECUTING);
}
END_TEST

START_TEST(renewing)
{
    struct toc_task task = su_executing("a", 3, 0, su.now + 30000);
    struct toc_task_ref ref = toc_task_ref_of(&task);
    uint64_t token = 3;
    size_t n;

    SU_OK(
        toc_store_renew(su.store, &ref, &token, 1, su.now + 60000, &n, reterr));
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(su_get(task.id).lock_until_ms, su.now + 60000);
    SU_OK(toc_store_renew(su.store, &ref, &token, 1, su.now, &n, reterr));
    ck_assert_int_eq(su_get(task.id).lock_until_ms, su.now + 60000);
    token = 4;
    SU_OK(
        toc_store_renew(su.store, &ref, &token, 1, su.now + 90000, &n, reterr));
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(too_many_lost_locks)
{
    struct toc_task task = su_task("a", "", su.now - 10);
    struct toc_submit item = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);
    size_t freed;

    task.claims = TOC_CLAIMS_MAX;
    ck_assert_int_eq(su_send(&item), TOC_SUBMIT_CREATED);
    ck_assert_int_eq(su_claim_at(&task, 1, su.now - 1, su.now), TOC_CLAIM_WON);
    task = su_get(task.id);
    SU_OK(toc_store_free_expired(su.store, &task, 1, su.now, &freed, reterr));
    ck_assert_uint_eq(freed, 1);
    ck_assert_int_eq(su_get(task.id).state, TOC_STATE_DEAD);
}
END_TEST

#endif
