/*
 * Goal: claims have one winner and are never early; results are written only
 * under the lock, and say what became of each. Method: real database, each
 * operation with each of its results; rows are checked afterwards.
 */
#include "tests/integration/store/fixture.h"

START_TEST(one_winner)
{
    struct toc_task task = stored_task("a", now_ms() - 10), got;

    ck_assert_int_eq(claim_one(&task, 1, now_ms() + 60000), TOC_CLAIM_WON);
    ck_assert_int_eq(claim_one(&task, 2, now_ms() + 60000), TOC_CLAIM_TAKEN);
    /* The same claim again is the same claim: an answer may get lost. */
    ck_assert_int_eq(claim_one(&task, 1, now_ms() + 60000), TOC_CLAIM_WON);
    got = get_id(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_EXECUTING);
    ck_assert_uint_eq(got.version, 1);
    ck_assert_uint_eq(got.lock_token, 1);
    ck_assert_uint_eq(got.sched_node, 5);
    ck_assert_uint_eq(got.exec_node, 9);
    ck_assert_int_gt(got.claimed_ms, now_ms() - 10000);
}
END_TEST

START_TEST(never_early)
{
    struct toc_task task = stored_task("a", now_ms() + 60000);
    struct toc_claim claim = {.ref = toc_task_ref_of(&task)};
    struct toc_claim_lock lock = lock_of(1, now_ms() + 99000);

    OK(toc_store_claim(fx.store, &claim, 1, &lock, &fx.arena, err));
    ck_assert_int_eq(claim.result, TOC_CLAIM_EARLY);
    lock.now_ms = now_ms() + 120000; /* a clock two minutes ahead */
    OK(toc_store_claim(fx.store, &claim, 1, &lock, &fx.arena, err));
    ck_assert_int_eq(claim.result, TOC_CLAIM_EARLY);
    ck_assert_int_eq(get_id(task.id).state, TOC_STATE_INIT);
}
END_TEST

START_TEST(claims_that_lose)
{
    struct toc_task a = stored_task("a", now_ms() - 10);
    struct toc_task b = stored_task("b", now_ms() - 10);
    struct toc_task c = stored_task("c", now_ms() - 10);
    struct toc_task d = stored_task("d", now_ms() - 10);
    struct toc_claim claims[4] = {{.ref = toc_task_ref_of(&a)},
                                  {.ref = toc_task_ref_of(&b)},
                                  {.ref = toc_task_ref_of(&c)},
                                  {.ref = toc_task_ref_of(&d)}};
    struct toc_claim_lock lock = lock_of(3, now_ms() + 60000);

    ck_assert_int_eq(command_id(TOC_COMMAND_CANCEL, a.id, 0),
                     TOC_COMMAND_APPLIED);
    ck_assert_int_eq(command_id(TOC_COMMAND_RESCHEDULE, b.id, now_ms() + 5000),
                     TOC_COMMAND_APPLIED);
    claims[2].ref.version = 9; /* a hint of another version */
    for (int i = 0; i < 4; i++) {
        claims[i].sched_node = (uint32_t)i + 1;
        claims[i].want_row = true;
    }
    OK(toc_store_claim(fx.store, claims, 4, &lock, &fx.arena, err));
    ck_assert_int_eq(claims[0].result, TOC_CLAIM_TAKEN);
    ck_assert_int_eq(claims[1].result, TOC_CLAIM_TAKEN);
    ck_assert_int_eq(claims[2].result, TOC_CLAIM_TAKEN);
    ck_assert_int_eq(claims[3].result, TOC_CLAIM_WON);
    ck_assert_uint_eq(claims[3].row->sched_node, 4);
    TOC_ASSERT_STR(claims[3].row->payload, "payload");
    TOC_ASSERT_STR(claims[3].row->biz_id, "d");
}
END_TEST

/* 1,200 at once: more than one statement holds. */
START_TEST(many_claims_and_results)
{
    enum { N = 1200 };
    struct toc_task *tasks =
        toc_arena_calloc(&fx.arena, N, sizeof(struct toc_task));
    struct toc_submit *items =
        toc_arena_calloc(&fx.arena, N, sizeof(struct toc_submit));
    struct toc_submit **list =
        toc_arena_calloc(&fx.arena, N, sizeof(struct toc_submit *));
    struct toc_claim *claims =
        toc_arena_calloc(&fx.arena, N, sizeof(struct toc_claim));
    struct toc_finish *ends =
        toc_arena_calloc(&fx.arena, N, sizeof(struct toc_finish));
    struct toc_claim_lock lock = lock_of(UINT64_MAX, now_ms() + 60000);

    for (int i = 0; i < N; i++) {
        char *id = toc_arena_printf(&fx.arena, "m%d", i);
        tasks[i] = make_task("order", id, "", now_ms() - 10);
        items[i] = make_submit(&tasks[i], 1);
        list[i] = &items[i];
    }
    OK(toc_store_submit(fx.store, list, N, now_ms(), err));
    for (int i = 0; i < N; i++)
        claims[i] = (struct toc_claim){.ref = toc_task_ref_of(&tasks[i])};
    lock.now_ms = now_ms();
    OK(toc_store_claim(fx.store, claims, N, &lock, &fx.arena, err));
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(claims[i].result, TOC_CLAIM_WON);
        ends[i] = make_finish(&tasks[i], UINT64_MAX,
                              i % 4 == 0   ? TOC_FINISH_DONE
                              : i % 4 == 1 ? TOC_FINISH_RETRY
                              : i % 4 == 2 ? TOC_FINISH_DEAD
                                           : TOC_FINISH_SKIPPED);
        ends[i].called_ms = i + 1;
        ends[i].due_ms = now_ms() + 1000 + i;
    }
    OK(toc_store_finish(fx.store, ends, N, now_ms(), err));
    for (int i = 0; i < N; i++) {
        struct toc_task got;
        ck_assert_int_eq(ends[i].result, TOC_FINISH_OK);
        if (i % 97 != 0)
            continue;
        got = get_id(tasks[i].id);
        ck_assert_int_eq(got.called_ms, i + 1);
        check_key(&got);
    }
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info WHERE status=5"), 300);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info WHERE status=4"), 300);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info WHERE status=6"), 300);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info WHERE status=8"), 300);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM dead_task"), 300);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_log"), 300);
}
END_TEST

START_TEST(done)
{
    struct toc_task task = claimed_task("a", 7, now_ms() + 60000), got;
    struct toc_finish end = make_finish(&task, 7, TOC_FINISH_DONE);

    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    ck_assert_int_eq(end.result, TOC_FINISH_OK);
    got = get_id(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_SUCCESS);
    ck_assert_int_eq(got.result, TOC_RESULT_DONE);
    ck_assert_uint_eq(got.version, 2);
    ck_assert_uint_eq(got.lock_token, 0);
    ck_assert_int_eq(got.called_ms, end.called_ms);
    ck_assert_int_eq(got.ended_ms, end.ended_ms);
    ck_assert_int_eq(got.slot_ms, task.slot_ms);
    check_key(&got);
    /* Made again (its answer was lost): the same answer, no second change. */
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    ck_assert_int_eq(end.result, TOC_FINISH_OK);
    ck_assert_uint_eq(get_id(task.id).version, 2);
}
END_TEST

START_TEST(late_results_are_lost)
{
    struct toc_task a = claimed_task("a", 7, now_ms() - 1);
    struct toc_task b = claimed_task("b", 7, now_ms() + 60000);
    struct toc_task c = claimed_task("c", 7, now_ms() - 1);
    struct toc_finish ends[3] = {make_finish(&a, 7, TOC_FINISH_DONE),
                                 make_finish(&b, 7, TOC_FINISH_DONE),
                                 make_finish(&c, 7, TOC_FINISH_RETRY)};
    struct toc_task expired[2] = {a, c}, got;
    size_t freed;

    ends[2].due_ms = now_ms() + 1000;
    OK(toc_store_free_expired(fx.store, expired, 2, now_ms(), &freed, err));
    ck_assert_uint_eq(freed, 2);
    OK(toc_store_finish(fx.store, ends, 3, now_ms(), err));
    ck_assert_int_eq(ends[0].result, TOC_FINISH_LOST);
    ck_assert_int_eq(ends[1].result, TOC_FINISH_OK);
    ck_assert_int_eq(ends[2].result, TOC_FINISH_LOST);
    got = get_id(a.id);
    ck_assert_int_eq(got.state, TOC_STATE_RETRY);
    ck_assert_uint_eq(got.claims, 1);
    ck_assert_uint_eq(got.attempt, 0);
    ck_assert_uint_eq(got.version, 2);
    ck_assert_int_eq(got.slot_ms, a.slot_ms);
    ck_assert_int_eq(claim_one(&got, 8, now_ms() + 60000), TOC_CLAIM_WON);
    /* And the holder of the new lock is not disturbed by the old result. */
    OK(toc_store_finish(fx.store, ends, 1, now_ms(), err));
    ck_assert_int_eq(ends[0].result, TOC_FINISH_LOST);
    ck_assert_int_eq(get_id(a.id).state, TOC_STATE_EXECUTING);
}
END_TEST

START_TEST(retry_moves)
{
    struct toc_task task = claimed_task("a", 7, now_ms() + 60000), got;
    struct toc_finish end = make_finish(&task, 7, TOC_FINISH_RETRY);
    struct toc_log_entry *log;
    struct toc_find find = find_id(task.id);
    size_t n;

    end.due_ms = now_ms() + 2 * DAY;
    end.attempt = 3;
    end.error = TOC_STR("no \xff luck");
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    ck_assert_int_eq(end.result, TOC_FINISH_OK);
    OK(toc_store_timeline(fx.store, &find, &fx.arena, &got, &log, &n, err));
    ck_assert_int_eq(got.state, TOC_STATE_RETRY);
    ck_assert_int_eq(got.slot_ms, end.due_ms);
    ck_assert_int_eq(got.due_ms, end.due_ms);
    ck_assert_uint_eq(got.attempt, 3);
    ck_assert_uint_eq(got.version, 2);
    ck_assert_int_eq(got.result, TOC_RESULT_FAILED);
    ck_assert(toc_str_eq(got.error, end.error));
    ck_assert_int_eq(end.moved.slot_ms, got.slot_ms);
    ck_assert_uint_eq(end.moved.version, got.version);
    check_key(&got);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(log[0].kind, TOC_LOG_KIND_ATTEMPT);
    ck_assert_int_eq(log[0].result, TOC_RESULT_FAILED);
    ck_assert_uint_eq(log[0].attempt, 3);
    ck_assert_uint_eq(log[0].exec_node, 9);
    ck_assert_uint_eq(log[0].sched_node, 5);
    ck_assert_int_eq(log[0].called_ms, end.called_ms);
    ck_assert_int_eq(log[0].at_ms, end.ended_ms);
    ck_assert(toc_str_eq(log[0].detail, end.error));
    /* Again: found in the log. */
    end.moved = (struct toc_task_ref){0};
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    ck_assert_int_eq(end.result, TOC_FINISH_OK);
    ck_assert_int_eq(end.moved.slot_ms, got.slot_ms);
    ck_assert_uint_eq(end.moved.version, 2);
    ck_assert_uint_eq(get_id(task.id).version, 2);
}
END_TEST

START_TEST(retry_far_away)
{
    struct toc_task task = claimed_task("a", 7, now_ms() + 60000), got;
    struct toc_finish end = make_finish(&task, 7, TOC_FINISH_SNOOZE);

    end.outcome = TOC_RESULT_SNOOZED;
    end.due_ms = now_ms() + 3000 * DAY;
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    got = get_id(task.id);
    ck_assert(toc_slot_is_far(got.slot_ms));
    ck_assert_uint_eq(got.attempt, 0);
    ck_assert_int_eq(end.moved.slot_ms, got.slot_ms);
    check_key(&got);
}
END_TEST

/* The mark moved on while the result waited: the row lands above it. */
START_TEST(retry_lands_above_the_mark)
{
    struct toc_task task = claimed_task("a", 7, now_ms() + 60000), got;
    struct toc_finish end = make_finish(&task, 7, TOC_FINISH_RETRY);
    int64_t low_ms = now_ms() + 5000;

    raw("UPDATE shard_owner SET low_ms=%lld", (long long)low_ms);
    end.due_ms = now_ms() - 1000;
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    got = get_id(task.id);
    ck_assert_int_eq(got.slot_ms, low_ms + 1);
    ck_assert_int_eq(end.moved.slot_ms, low_ms + 1);
    ck_assert_int_eq(got.due_ms, end.due_ms);
    check_key(&got);
}
END_TEST

START_TEST(dead_is_copied)
{
    struct toc_task task = claimed_task("a", 7, now_ms() + 60000);
    struct toc_finish end = make_finish(&task, 7, TOC_FINISH_DEAD);
    struct toc_dead_filter all = {.reason = {NULL, 0}};
    struct toc_cursor cursor = {.set = false};
    struct toc_dead *dead;
    size_t n;

    end.reason = TOC_STR("out of attempts");
    end.error = TOC_STR("boom");
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    ck_assert_int_eq(get_id(task.id).state, TOC_STATE_DEAD);
    OK(toc_store_list_dead(fx.store, &all, 10, &cursor, &fx.arena, &dead, &n,
                           err));
    ck_assert_uint_eq(n, 1);
    ck_assert(!cursor.set);
    ck_assert_int_eq(dead[0].dead_ms, end.ended_ms);
    TOC_ASSERT_STR(dead[0].reason, "out of attempts");
    TOC_ASSERT_STR(dead[0].task.error, "boom");
    TOC_ASSERT_STR(dead[0].task.payload, "payload");
    ck_assert_int_eq(dead[0].task.state, TOC_STATE_DEAD);
}
END_TEST

START_TEST(give_back)
{
    struct toc_task task = claimed_task("a", 7, now_ms() + 60000), got;
    struct toc_finish end = make_finish(&task, 7, TOC_FINISH_GIVE_BACK);

    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    ck_assert_int_eq(end.result, TOC_FINISH_OK);
    got = get_id(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_INIT);
    ck_assert_uint_eq(got.version, 2);
    ck_assert_uint_eq(got.lock_token, 0);
    ck_assert_int_eq(got.slot_ms, task.slot_ms);
    ck_assert_uint_eq(end.moved.version, 2);
    ck_assert_int_eq(claim_one(&task, 8, now_ms() + 60000), TOC_CLAIM_TAKEN);
    ck_assert_int_eq(claim_one(&got, 8, now_ms() + 60000), TOC_CLAIM_WON);
}
END_TEST

/* A cancel that was noted while the call went on: no retry, whoever writes. */
START_TEST(noted_cancel_is_honoured)
{
    static const enum toc_finish_kind kinds[] = {
        TOC_FINISH_RETRY, TOC_FINISH_SNOOZE, TOC_FINISH_GIVE_BACK};

    for (size_t i = 0; i < 3; i++) {
        char id[8];
        struct toc_task task, got;
        struct toc_finish end;
        snprintf(id, sizeof id, "c%zu", i);
        task = claimed_task(id, 7, now_ms() + 60000);
        ck_assert_int_eq(command_id(TOC_COMMAND_CANCEL, task.id, 0),
                         TOC_COMMAND_TOO_LATE);
        end = make_finish(&task, 7, kinds[i]);
        end.due_ms = now_ms() + 1000;
        OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
        ck_assert_int_eq(end.result, TOC_FINISH_CANCELLED);
        got = get_id(task.id);
        ck_assert_int_eq(got.state, TOC_STATE_CANCELLED);
        ck_assert_int_eq(got.slot_ms, task.slot_ms);
        ck_assert_int_eq(got.ended_ms, end.ended_ms);
    }
}
END_TEST

START_TEST(done_wins_over_a_noted_cancel)
{
    struct toc_task task = claimed_task("a", 7, now_ms() + 60000);
    struct toc_finish end = make_finish(&task, 7, TOC_FINISH_DONE);

    ck_assert_int_eq(command_id(TOC_COMMAND_CANCEL, task.id, 0),
                     TOC_COMMAND_TOO_LATE);
    OK(toc_store_finish(fx.store, &end, 1, now_ms(), err));
    ck_assert_int_eq(end.result, TOC_FINISH_OK);
    ck_assert_int_eq(get_id(task.id).state, TOC_STATE_SUCCESS);
}
END_TEST

START_TEST(expired_locks)
{
    struct toc_task tasks[5], got;
    struct toc_log_entry *log;
    struct toc_find find;
    size_t freed, n;

    for (int i = 0; i < 5; i++) {
        char id[8];
        snprintf(id, sizeof id, "x%d", i);
        tasks[i] = make_task("order", id, "", now_ms() - 10);
        if (i == 1)
            tasks[i].flags = TOC_FLAG_AT_MOST_ONCE;
        submit_one(&tasks[i], 1, TOC_ON_CONFLICT_REJECT, NULL);
        ck_assert_int_eq(
            claim_one(&tasks[i], 7, now_ms() + (i == 4 ? 60000 : -1)),
            TOC_CLAIM_WON);
    }
    command_id(TOC_COMMAND_CANCEL, tasks[2].id, 0);
    raw("UPDATE task_info SET claims=%d WHERE biz_id='x3'", TOC_CLAIMS_MAX);
    for (int i = 0; i < 5; i++)
        tasks[i] = get_id(tasks[i].id);
    OK(toc_store_free_expired(fx.store, tasks, 5, now_ms(), &freed, err));
    ck_assert_uint_eq(freed, 4);
    ck_assert_int_eq(get_id(tasks[0].id).state, TOC_STATE_RETRY);
    ck_assert_int_eq(get_id(tasks[1].id).state, TOC_STATE_DEAD);
    ck_assert_int_eq(get_id(tasks[2].id).state, TOC_STATE_CANCELLED);
    ck_assert_int_eq(get_id(tasks[3].id).state, TOC_STATE_DEAD);
    ck_assert_int_eq(get_id(tasks[4].id).state, TOC_STATE_EXECUTING);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM dead_task"), 2);
    find = find_id(tasks[0].id);
    OK(toc_store_timeline(fx.store, &find, &fx.arena, &got, &log, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(log[0].kind, TOC_LOG_KIND_LOCK_LOST);
    ck_assert_uint_eq(log[0].exec_node, 9);
    ck_assert_int_eq(got.result, TOC_RESULT_LOST);
    /* Again, with what was seen before: nothing. */
    OK(toc_store_free_expired(fx.store, tasks, 5, now_ms(), &freed, err));
    ck_assert_uint_eq(freed, 0);
    ck_assert_uint_eq(get_id(tasks[0].id).version, tasks[0].version + 1);
}
END_TEST

/* A caller two hours ahead takes no running lock away; an expired one it frees
 * at the server's time. */
START_TEST(locks_do_not_expire_by_a_clock_ahead)
{
    struct toc_task tasks[2] = {claimed_task("runs", 7, now_ms() + 60000),
                                claimed_task("expired", 7, now_ms() - 1)};
    size_t freed;

    OK(toc_store_free_expired(fx.store, tasks, 2, now_ms() + 7200000, &freed,
                              err));
    ck_assert_uint_eq(freed, 1);
    ck_assert_int_eq(get_id(tasks[0].id).state, TOC_STATE_EXECUTING);
    ck_assert_int_eq(get_id(tasks[1].id).state, TOC_STATE_RETRY);
    ck_assert_int_le(get_id(tasks[1].id).ended_ms, now_ms());
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_log WHERE at_ms<=%lld",
                         (long long)now_ms()),
                     1);
}
END_TEST

START_TEST(renewed_locks)
{
    struct toc_task a = claimed_task("a", 7, now_ms() - 1);
    struct toc_task b = claimed_task("b", 8, now_ms() - 1);
    struct toc_task_ref refs[2] = {toc_task_ref_of(&a), toc_task_ref_of(&b)};
    uint64_t tokens[2] = {7, 9}; /* the second is not b's */
    size_t renewed, freed;

    OK(toc_store_renew(fx.store, refs, tokens, 2, now_ms() + 60000, &renewed,
                       err));
    ck_assert_uint_eq(renewed, 1);
    OK(toc_store_free_expired(fx.store, &a, 1, now_ms(), &freed, err));
    ck_assert_uint_eq(freed, 0);
    OK(toc_store_free_expired(fx.store, &b, 1, now_ms(), &freed, err));
    ck_assert_uint_eq(freed, 1);
    tokens[1] = 8;
    OK(toc_store_renew(fx.store, refs, tokens, 2, now_ms() + 60000, &renewed,
                       err));
    ck_assert_uint_eq(renewed, 1);
}
END_TEST

/* ---- all against all
 * --------------------------------------------------------- */

#define TASKS 60
#define EXECUTORS 8

struct executor {
    struct toc_thread thread;
    const struct toc_task *tasks;
    uint64_t token;
    unsigned won, bad;
};

static void
execute(void *arg)
{
    struct executor *e = arg;
    struct toc_claim claims[TASKS];
    struct toc_finish ends[TASKS];
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    struct toc_claim_lock lock = lock_of(e->token, now_ms() + 60000);
    size_t n = 0;

    for (int i = 0; i < TASKS; i++) /* each in an order of its own */
        claims[i] = (struct toc_claim){
            .ref = toc_task_ref_of(&e->tasks[(i * 7 + (int)e->token) % TASKS])};
    if (toc_store_claim(fx.store, claims, TASKS, &lock, &arena, NULL) != TOC_OK)
        e->bad++;
    for (int i = 0; i < TASKS; i++) {
        if (claims[i].result != TOC_CLAIM_WON)
            continue;
        ends[n] = make_finish(&e->tasks[(i * 7 + (int)e->token) % TASKS],
                              e->token, TOC_FINISH_DONE);
        n++;
    }
    e->won = (unsigned)n;
    if (toc_store_finish(fx.store, ends, n, now_ms(), NULL) != TOC_OK)
        e->bad++;
    for (size_t i = 0; i < n; i++)
        e->bad += ends[i].result != TOC_FINISH_OK;
}

START_TEST(executors_race_for_the_same_tasks)
{
    struct toc_task tasks[TASKS];
    struct executor executors[EXECUTORS];
    unsigned won = 0;

    for (int i = 0; i < TASKS; i++)
        tasks[i] =
            stored_task(toc_arena_printf(&fx.arena, "r%d", i), now_ms() - 10);
    for (unsigned i = 0; i < EXECUTORS; i++) {
        executors[i] = (struct executor){.tasks = tasks, .token = i + 1};
        toc_thread_start(&executors[i].thread, "exec", execute, &executors[i]);
    }
    for (unsigned i = 0; i < EXECUTORS; i++) {
        toc_thread_join(&executors[i].thread);
        ck_assert_uint_eq(executors[i].bad, 0);
        won += executors[i].won;
    }
    ck_assert_uint_eq(won, TASKS);
    ck_assert_int_eq(
        raw("SELECT COUNT(*) FROM task_info WHERE status=5 AND version=2"),
        TASKS);
}
END_TEST

STORE_TESTS("store_execute", 120, one_winner, never_early, claims_that_lose,
            many_claims_and_results, done, late_results_are_lost, retry_moves,
            retry_far_away, retry_lands_above_the_mark, dead_is_copied,
            give_back, noted_cancel_is_honoured, done_wins_over_a_noted_cancel,
            expired_locks, locks_do_not_expire_by_a_clock_ahead, renewed_locks,
            executors_race_for_the_same_tasks)
