/*
 * Goal: who waits for whom when targets are full: nobody for a target that is
 * not his, offsets for none, new tasks not for a backlog, one kind of timeout
 * not for another; and how much may wait.
 * Method: lane, core and results on ports in memory, stepped through simulated
 * milliseconds.
 */
#include "tests/unit/executor/fakes.h"

#define CORE TOC_PRIORITY_CORE
#define NORMAL TOC_PRIORITY_NORMAL

/* One target hangs, others go on; it holds no more than its share. */
START_TEST(a_hanging_target_delays_nobody)
{
    struct rig *rig = rig_new(rig_options());
    int64_t worst_ms = 0;
    size_t hanging = 0;

    for (int i = 0; i < 60; i++) {
        struct toc_task *row = fake_task(
            &rig->store, &(struct fake_task){.due_ms = rig_now(rig) + 1 + i,
                                             .target = "grpc://hangs:1"});
        hint_one(rig, row, 0);
        row = fake_task(&rig->store,
                        &(struct fake_task){.due_ms = rig_now(rig) + 1 + i});
        hint_one(rig, row, 1);
    }
    for (int ms = 0; ms < 80; ms++) {
        rig_run(rig, 1);
        for (size_t i = 0; i < rig->invoke.n; i++)
            if (rig->invoke.calls[i] != NULL &&
                strcmp(rig->invoke.targets[i], "grpc://hangs:1") != 0) {
                const struct toc_task *task =
                    rig->invoke.calls[i]->fires[0].task;
                if (rig->invoke.called_ms[i] - task->due_ms > worst_ms)
                    worst_ms = rig->invoke.called_ms[i] - task->due_ms;
                fake_answer(&rig->invoke, i,
                            (struct toc_answer){.kind = TOC_ANSWER_DONE});
            }
    }
    for (size_t i = 0; i < rig->invoke.n; i++)
        hanging += rig->invoke.calls[i] != NULL;
    ck_assert_uint_eq(hanging, 16);
    ck_assert_uint_eq(rig->invoke.n, 60 + 16);
    ck_assert_int_eq(worst_ms, 0);
    /* What waits for it goes on when it answers. */
    for (size_t i = 0; i < rig->invoke.n; i++)
        if (rig->invoke.calls[i] != NULL)
            fake_answer(&rig->invoke, i,
                        (struct toc_answer){.kind = TOC_ANSWER_DONE});
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 60 + 32);
    rig_free(rig);
}
END_TEST

/* One whose calls end at once without an answer keeps no more attempts open
 * than it has slots: its handlers may be at work. */
START_TEST(a_target_without_answers_delays_nobody)
{
    struct exec_core_options options = rig_options();
    struct toc_task *row;
    struct rig *rig;
    size_t calls;

    options.attempts_max = 40;
    rig = rig_new(options);
    rig->invoke.answer_at_once = true;
    rig->invoke.answer = (struct toc_answer){.kind = TOC_ANSWER_UNKNOWN};
    for (int i = 0; i < 100; i++)
        hint_one(rig,
                 fake_task(&rig->store,
                           &(struct fake_task){.due_ms = rig_now(rig) + 1 + i,
                                               .target = "grpc://fails:1"}),
                 0);
    rig_run(rig, 120);
    ck_assert_uint_eq(rig->invoke.n, 16);
    rig->invoke.answer.kind = TOC_ANSWER_DONE;
    row = fake_task(&rig->store, &(struct fake_task){.due_ms = rig_now(rig)});
    hint_one(rig, row, 1);
    rig_run(rig, 1);
    ck_assert_int_eq(row->state, TOC_STATE_SUCCESS);
    /* When they cannot be at work any more, it goes on. */
    calls = rig->invoke.n;
    rig_run(rig, 20000);
    ck_assert_uint_gt(rig->invoke.n, calls + 16);
    rig_free(rig);
}
END_TEST

/* Several targets that hang leave slots for others. */
START_TEST(many_hanging_targets_leave_slots)
{
    struct exec_core_options options = rig_options();
    struct rig *rig;
    struct toc_task *row;

    options.target_calls_max = 64;
    rig = rig_new(options);
    for (int i = 0; i < 400; i++) {
        char target[32];
        toc_format(target, sizeof target, "grpc://hangs-%d:1", i % 7);
        hint_one(rig,
                 fake_task(&rig->store,
                           &(struct fake_task){.due_ms = rig_now(rig) + 1,
                                               .target = target}),
                 0);
    }
    rig_run(rig, 10);
    ck_assert_uint_le(rig->invoke.n, 57); /* 64 / 8 are left */
    ck_assert_uint_ge(rig->invoke.n, 50);
    row =
        fake_task(&rig->store, &(struct fake_task){.due_ms = rig_now(rig) + 1});
    hint_one(rig, row, 1);
    rig_run(rig, 1);
    ck_assert_int_eq(row->state, TOC_STATE_EXECUTING);
    rig_free(rig);
}
END_TEST

/* A busy target keeps what waits for it; a slow one does not. */
START_TEST(a_full_queue_drops_the_least_urgent)
{
    struct exec_core_options options = rig_options();
    struct rig *rig;
    struct toc_task *core;

    options.target_calls_max = 1;
    options.target_queue_max = 3;
    rig = rig_new(options);
    for (int i = 0; i < 70; i++)
        hint_one(rig, task_in(rig, 1), 0);
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 1);
    ck_assert_uint_eq(rig_count(&rig->counters.crowded), 0);
    rig_run(rig, 2001); /* it does not answer: it is slow */
    hint_one(rig, task_in(rig, 1), 0);
    rig_run(rig, 1);
    ck_assert_uint_eq(rig_count(&rig->counters.crowded), 1);
    ck_assert_int_eq(rig->store.rows[70].state, TOC_STATE_INIT);
    core = fake_task(&rig->store,
                     &(struct fake_task){.due_ms = rig_now(rig) + 1,
                                         .priority = TOC_PRIORITY_CORE});
    hint_one(rig, core, 0);
    rig_run(rig, 1);
    ck_assert_uint_eq(rig_count(&rig->counters.crowded), 2);
    fake_answer(&rig->invoke, 0, (struct toc_answer){.kind = TOC_ANSWER_DONE});
    rig_run(rig, 1);
    ck_assert_int_eq(core->state, TOC_STATE_EXECUTING); /* first in line */
    rig_free(rig);
}
END_TEST

/* What waits for a target holds no offset for longer than a second, stays in
 * line, also when its partition goes, and takes in what is hinted again. */
START_TEST(offsets_do_not_wait_for_a_target)
{
    struct exec_core_options options = rig_options();
    struct rig *rig;
    struct toc_task *first, *second;

    options.target_calls_max = 1;
    rig = rig_new(options);
    first = task_in(rig, 1);
    second = task_in(rig, 2);
    hint_one(rig, first, 0);
    hint_one(rig, second, 0);
    rig_run(rig, 500);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 1); /* it may come soon */
    rig_run(rig, 510);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 2);
    ck_assert_uint_eq(rig_count(&rig->counters.kept), 1);
    hint_one(rig, second, 1); /* the sweep's */
    hint_one(rig, second, 1);
    rig_run(rig, 1);
    ck_assert_int_eq(rig->bus.marks[NORMAL][1], 2);
    ck_assert_uint_eq(atomic_load(&rig->core.hints), 1);
    exec_lane_rebalance(&rig->lane, TOC_BUS_REVOKED, NORMAL, 0, false);
    exec_lane_rebalance(&rig->lane, TOC_BUS_REVOKED, NORMAL, 1, false);
    rig_run(rig, 1);
    fake_answer(&rig->invoke, 0, (struct toc_answer){.kind = TOC_ANSWER_DONE});
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 2);
    ck_assert_int_eq(second->state, TOC_STATE_EXECUTING);
    rig_free(rig);
}
END_TEST

/* A claim that the clock puts off, or that fails, keeps a decided hint too. */
START_TEST(a_decided_hint_is_claimed_until_it_is_settled)
{
    struct exec_core_options options = rig_options();
    struct rig *rig;
    struct toc_task *second;

    options.target_calls_max = 1;
    rig = rig_new(options);
    hint_one(rig, task_in(rig, 1), 0);
    second = task_in(rig, 2);
    hint_one(rig, second, 0);
    rig_run(rig, 1500);
    rig->store.behind_ms = 2000;
    rig->store.fail_claims = 40;
    rig->store.fail_as = TOC_UNAVAILABLE;
    fake_answer(&rig->invoke, 0, (struct toc_answer){.kind = TOC_ANSWER_DONE});
    rig_run(rig, 60000);
    ck_assert_uint_eq(rig->store.fail_claims, 0);
    ck_assert_uint_eq(rig->invoke.n, 2);
    rig_free(rig);
}
END_TEST

/* Beyond what is kept, the backlog of a target that is busy holds offsets, and
 * so its senders; that of one that hangs does not, nor does it grow. */
START_TEST(a_busy_target_holds_its_backlog_back)
{
    struct exec_core_options options = rig_options();
    struct rig *rig;
    struct toc_task *core;

    options.target_calls_max = 1;
    options.target_queue_max = 5;
    rig = rig_new(options);
    for (int i = 0; i < 250; i++)
        hint_one(rig, task_in(rig, i - 250), 0);
    for (size_t i = 0; i < 30; i++) { /* 10 a second */
        rig_run(rig, 100);
        fake_answer(&rig->invoke, i,
                    (struct toc_answer){.kind = TOC_ANSWER_DONE});
    }
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 31);
    ck_assert_uint_eq(rig_count(&rig->counters.crowded), 0);
    ck_assert_int_ge(rig->bus.marks[NORMAL][0], 31);
    ck_assert_int_le(rig->bus.marks[NORMAL][0], 31 + 5);
    core = fake_task(&rig->store,
                     &(struct fake_task){.due_ms = rig_now(rig) + 1,
                                         .priority = TOC_PRIORITY_CORE});
    hint_one(rig, core, 0);
    rig_run(rig, 6000); /* it hangs */
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 250);
    ck_assert_int_eq(rig->bus.marks[CORE][0], 1);
    ck_assert_uint_eq(atomic_load(&rig->core.hints), 5);
    fake_answer(&rig->invoke, 30, (struct toc_answer){.kind = TOC_ANSWER_DONE});
    rig_run(rig, 1);
    ck_assert_int_eq(core->state, TOC_STATE_EXECUTING); /* it was kept */
    rig_free(rig);
}
END_TEST

/* One target that is busy leaves memory to the others. */
START_TEST(a_busy_target_has_its_share_of_the_memory)
{
    struct rig *rig = rig_new(rig_options()); /* 1000 hints */

    for (int i = 0; i < 600; i++) {
        hint_one(rig, task_in(rig, 1), 0);
        if (i % 50 == 0)
            rig_run(rig, 1);
    }
    rig_run(rig, 10);
    ck_assert_uint_le(atomic_load(&rig->core.hints), 1000 / 3);
    ck_assert_uint_ge(atomic_load(&rig->core.hints), 320);
    ck_assert_uint_eq(rig_count(&rig->counters.crowded) +
                          atomic_load(&rig->core.hints) + rig->invoke.n,
                      600);
    ck_assert(!rig->bus.paused[2]);
    rig_free(rig);
}
END_TEST

START_TEST(fires_of_a_batch_target_share_calls)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *rows[10];

    for (size_t i = 0; i < 10; i++)
        rows[i] = fake_task(
            &rig->store,
            &(struct fake_task){.due_ms = rig_now(rig) + 3, .batch_max = 4});
    fake_hint(&rig->bus, CORE, 0, rows, 10, true);
    rig_run(rig, 3);
    ck_assert_uint_eq(rig->invoke.n, 3);
    ck_assert_uint_eq(
        rig->invoke.fires[0] + rig->invoke.fires[1] + rig->invoke.fires[2], 10);
    ck_assert_uint_le(rig->invoke.fires[0], 4);
    ck_assert(rig->invoke.calls[0]->batch);
    for (size_t i = 0; i < 3; i++)
        fake_answer(&rig->invoke, i,
                    (struct toc_answer){.kind = TOC_ANSWER_DONE});
    rig_run(rig, 1);
    for (size_t i = 0; i < 10; i++)
        ck_assert_int_eq(rows[i]->state, TOC_STATE_SUCCESS);
    rig_free(rig);
}
END_TEST

START_TEST(different_timeouts_get_locks_of_their_own)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *brief, *lasting;

    brief =
        fake_task(&rig->store, &(struct fake_task){.due_ms = rig_now(rig) + 2,
                                                   .timeout_ms = 100});
    lasting =
        fake_task(&rig->store, &(struct fake_task){.due_ms = rig_now(rig) + 2,
                                                   .timeout_ms = 60000});
    hint_one(rig, brief, 0);
    hint_one(rig, lasting, 0);
    rig_run(rig, 2);
    ck_assert_uint_eq(rig->store.claims, 2);
    ck_assert_int_eq(brief->lock_until_ms, brief->due_ms + 100 + 250 + 2000);
    ck_assert_int_eq(lasting->lock_until_ms,
                     lasting->due_ms + 60000 + 250 + 2000);
    rig_free(rig);
}
END_TEST

/* A backlog, oldest first, takes turns with what falls due now: at a target
 * that is full, and in the heap. */
static void
check_backlog(size_t target_calls_max, size_t attempts_max)
{
    struct exec_core_options options = rig_options();
    struct rig *rig;
    struct toc_task *rows[100];
    int64_t last_ms = 0, fresh_late_ms = 0;

    options.target_calls_max = target_calls_max;
    options.attempts_max = attempts_max;
    rig = rig_new(options);
    for (int i = 0; i < 100; i++)
        rows[i] = task_in(rig, -10000 - i);
    fake_hint(&rig->bus, NORMAL, 0, rows, 100, true);
    for (int i = 0; i < 10; i++)
        hint_one(rig, task_in(rig, 1 + 10 * i), 0);
    rig_run(rig, 1);
    for (size_t i = 0; i < 110; i++) {
        const struct toc_task *task;

        ck_assert_uint_eq(rig->invoke.n, i + 1);
        task = rig->invoke.calls[i]->fires[0].task;
        if (task->due_ms > FAKE_START_MS &&
            rig->invoke.called_ms[i] - task->due_ms > fresh_late_ms)
            fresh_late_ms = rig->invoke.called_ms[i] - task->due_ms;
        if (task->due_ms < FAKE_START_MS) {
            ck_assert_int_gt(task->due_ms, last_ms);
            last_ms = task->due_ms;
        }
        fake_answer(&rig->invoke, i,
                    (struct toc_answer){.kind = TOC_ANSWER_DONE});
        rig_run(rig, 1);
    }
    ck_assert_int_le(fresh_late_ms, 3);
    rig_free(rig);
}

START_TEST(a_backlog_takes_turns_with_new_tasks)
{
    check_backlog(1, 1000);
    check_backlog(16, 1);
}
END_TEST

/* A crowd of one kind of timeout does not stand before those of another. */
START_TEST(every_kind_of_timeout_has_its_turn)
{
    struct exec_core_options options = rig_options();
    struct rig *rig;
    struct toc_task *brief;

    options.target_calls_max = 4;
    rig = rig_new(options);
    rig->invoke.answer_at_once = true;
    for (int i = 0; i < 100; i++)
        hint_one(
            rig,
            fake_task(&rig->store,
                      &(struct fake_task){.due_ms = rig_now(rig) + 1,
                                          .timeout_ms = 60000,
                                          .priority = TOC_PRIORITY_NORMAL}),
            0);
    brief = fake_task(&rig->store,
                      &(struct fake_task){.due_ms = rig_now(rig) + 1,
                                          .timeout_ms = 100,
                                          .target = "grpc://quick:1",
                                          .priority = TOC_PRIORITY_NORMAL});
    hint_one(rig, brief, 0);
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 101);
    for (size_t i = 0; i < rig->invoke.n; i++)
        if (strcmp(rig->invoke.targets[i], "grpc://quick:1") == 0)
            ck_assert_uint_le(i, 8); /* the second batch, not the last */
    rig_free(rig);
}
END_TEST

TOC_CHECK_MAIN("exec_crowd", a_target_without_answers_delays_nobody,
               a_hanging_target_delays_nobody, many_hanging_targets_leave_slots,
               a_full_queue_drops_the_least_urgent,
               offsets_do_not_wait_for_a_target,
               a_decided_hint_is_claimed_until_it_is_settled,
               a_busy_target_holds_its_backlog_back,
               a_busy_target_has_its_share_of_the_memory,
               fires_of_a_batch_target_share_calls,
               different_timeouts_get_locks_of_their_own,
               a_backlog_takes_turns_with_new_tasks,
               every_kind_of_timeout_has_its_turn)
