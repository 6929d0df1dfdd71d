/*
 * Goal: the way of a hint through the executor: never early, claimed once,
 * called within its lock, offsets only behind decisions; and what goes wrong on
 * that way.
 * Method: lane, core and results on ports in memory, stepped through simulated
 * milliseconds.
 */
#include "tests/unit/executor/fakes.h"

#include "executor/probe.h"

#define CORE TOC_PRIORITY_CORE
#define NORMAL TOC_PRIORITY_NORMAL

START_TEST(one_task_from_hint_to_success)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 20);
    struct toc_call *call;

    hint_one(rig, row, 0);
    rig_run(rig, 19);
    ck_assert_uint_eq(rig->store.claims, 0);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 0);
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 1);
    ck_assert_int_eq(rig->invoke.called_ms[0], row->due_ms);
    ck_assert_int_eq(row->state, TOC_STATE_EXECUTING);
    /* Decided when claimed: the offset does not wait for the call. */
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 1);
    call = rig->invoke.calls[0];
    ck_assert_uint_eq(call->fires[0].attempt, 1);
    ck_assert_int_eq(call->not_after_ms, rig->store.lock.lock_until_ms - 2000);
    ck_assert_uint_eq(rig->store.lock.token >> 24, FAKE_NODE);
    fake_answer(&rig->invoke, 0, (struct toc_answer){.kind = TOC_ANSWER_DONE});
    rig_run(rig, 1);
    ck_assert_int_eq(row->state, TOC_STATE_SUCCESS);
    ck_assert_int_eq(row->called_ms, row->due_ms);
    rig_free(rig);
}
END_TEST

START_TEST(equal_hints_become_one_claim)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 5);

    hint_one(rig, row, 0);
    hint_one(rig, row, 0);
    hint_one(rig, row, 1);
    rig_run(rig, 5);
    ck_assert_uint_eq(rig->invoke.n, 1);
    ck_assert_uint_eq(rig->store.claims_n_max, 1);
    ck_assert_uint_eq(rig_count(&rig->counters.merged), 2);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 2);
    ck_assert_int_eq(rig->bus.marks[NORMAL][1], 1);
    /* One that comes after the claim wins nothing, and is decided. */
    hint_one(rig, row, 0);
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 1);
    ck_assert_uint_eq(rig_count(&rig->counters.taken), 1);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 3);
    rig_free(rig);
}
END_TEST

START_TEST(two_versions_of_a_row_do_not_share_a_claim)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 5), old = *row;
    struct toc_task *both[2] = {&old, row};

    row->version = 2;
    fake_hint(&rig->bus, NORMAL, 0, both, 2, true);
    rig_run(rig, 5);
    ck_assert_uint_eq(rig->invoke.n, 1);
    ck_assert_uint_eq(rig_count(&rig->counters.taken), 1);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 1);
    rig_free(rig);
}
END_TEST

START_TEST(database_clock_behind_puts_the_claim_off)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 5);

    rig->store.behind_ms = 7;
    hint_one(rig, row, 0);
    rig_run(rig, 5);
    ck_assert_uint_eq(rig->store.claims, 1);
    ck_assert_uint_eq(rig->invoke.n, 0);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 0); /* not decided */
    rig_run(rig, 16);
    ck_assert_uint_eq(rig->invoke.n, 1);
    ck_assert_int_ge(rig->invoke.called_ms[0] - 7, row->due_ms);
    ck_assert_int_le(rig->invoke.called_ms[0] - 7, row->due_ms + 4);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 1);
    rig_free(rig);
}
END_TEST

START_TEST(a_slow_claim_shortens_the_call_or_forbids_it)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row =
        fake_task(&rig->store, &(struct fake_task){.due_ms = rig_now(rig) + 1,
                                                   .timeout_ms = 1000});

    hint_one(rig, row, 0);
    rig->store.claim_takes_ms = 900;
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 1);
    /* 1000 + 250 - 900 */
    ck_assert_int_eq(rig->invoke.calls[0]->deadline_ns,
                     toc_clock_mono(&rig->sim.clock).ns + 350 * TOC_NS_PER_MS);
    row = fake_task(&rig->store, &(struct fake_task){.due_ms = rig_now(rig) + 1,
                                                     .timeout_ms = 1000});
    hint_one(rig, row, 0);
    rig->store.claim_takes_ms = 1250;
    rig_run(rig, 2);
    ck_assert_uint_eq(rig->invoke.n, 1); /* not called, given back */
    ck_assert_uint_eq(rig_count(&rig->counters.given_back), 1);
    ck_assert_int_eq(row->state, TOC_STATE_INIT);
    ck_assert_int_eq(row->called_ms, 0);
    rig_free(rig);
}
END_TEST

START_TEST(without_a_session_nothing_is_claimed)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 2);

    rig->coord.deadline_ns = 0;
    hint_one(rig, row, 0);
    rig_run(rig, 10);
    ck_assert_uint_eq(rig->store.claims, 0);
    rig->coord.deadline_ns = INT64_MAX;
    exec_inbox_ring(&rig->core.inbox);
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 1);
    rig_free(rig);
}
END_TEST

START_TEST(session_that_ends_during_the_claim_gives_back)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 2);

    rig->coord.deadline_ns =
        toc_clock_boot(&rig->sim.clock).ns + 50 * TOC_NS_PER_MS;
    rig->store.claim_takes_ms = 100;
    hint_one(rig, row, 0);
    rig_run(rig, 3);
    ck_assert_uint_eq(rig->invoke.n, 0);
    ck_assert_int_eq(row->state, TOC_STATE_INIT);
    rig_free(rig);
}
END_TEST

START_TEST(lost_answer_of_a_claim_is_found_again)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 2);

    rig->store.fail_claims = 3;
    rig->store.fail_as = TOC_UNAVAILABLE;
    rig->store.applied = true;
    hint_one(rig, row, 0);
    rig_run(rig, 1000);
    ck_assert_uint_eq(rig->store.claims, 4);
    ck_assert_uint_eq(rig->invoke.n, 1);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 1);
    rig_free(rig);
}
END_TEST

START_TEST(claims_go_on_after_a_long_failure)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 2);
    uint64_t token;

    rig->store.fail_claims = 40;
    rig->store.fail_as = TOC_UNAVAILABLE;
    hint_one(rig, row, 0);
    rig_run(rig, 5);
    token = rig->store.lock.token;
    rig_run(rig, 60000);
    ck_assert_uint_eq(rig->store.fail_claims, 0);
    ck_assert_uint_eq(rig->invoke.n, 1);
    ck_assert_uint_ne(rig->store.lock.token, token); /* claimed anew */
    rig_free(rig);
}
END_TEST

START_TEST(one_bad_claim_does_not_stop_the_others)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *rows[3];

    for (size_t i = 0; i < 3; i++)
        rows[i] = task_in(rig, 2);
    rig->store.poison = rows[1];
    fake_hint(&rig->bus, NORMAL, 0, rows, 3, true);
    rig_run(rig, 5);
    ck_assert_uint_eq(rig->invoke.n, 2);
    ck_assert_uint_eq(rig_count(&rig->counters.dropped), 1);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 1);
    rig_free(rig);
}
END_TEST

START_TEST(payload_that_is_not_in_the_hint_is_read)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row =
        fake_task(&rig->store, &(struct fake_task){.due_ms = rig_now(rig),
                                                   .payload = "large one"});

    fake_hint(&rig->bus, CORE, 0, &row, 1, false);
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 1);
    ck_assert(toc_str_eq(rig->invoke.calls[0]->fires[0].task->payload,
                         TOC_STR("large one")));
    rig_free(rig);
}
END_TEST

START_TEST(revoked_hints_are_dropped_and_calls_go_on)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *called = task_in(rig, 1), *waits = task_in(rig, 50);
    struct toc_task *both = task_in(rig, 50);

    hint_one(rig, called, 0);
    hint_one(rig, waits, 0);
    hint_one(rig, both, 0);
    hint_one(rig, both, 1);
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 1);
    exec_lane_rebalance(&rig->lane, TOC_BUS_REVOKED, NORMAL, 0, false);
    rig_run(rig, 60);
    ck_assert_uint_eq(rig->invoke.n, 2); /* `both`, by its other partition */
    ck_assert_int_eq(waits->state, TOC_STATE_INIT);
    ck_assert_int_eq(both->state, TOC_STATE_EXECUTING);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 1);
    ck_assert_int_eq(rig->bus.marks[NORMAL][1], 1);
    fake_answer(&rig->invoke, 0, (struct toc_answer){.kind = TOC_ANSWER_DONE});
    rig_run(rig, 1);
    ck_assert_int_eq(called->state, TOC_STATE_SUCCESS);
    ck_assert_uint_eq(atomic_load(&rig->core.hints), 0);
    rig_free(rig);
}
END_TEST

/* A partition that comes back begins anew: old marks say nothing. */
START_TEST(marks_of_an_older_time_are_ignored)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 1);

    hint_one(rig, row, 0);
    exec_lane_step(&rig->lane);
    toc_clock_sim_advance_ns(&rig->sim, 2 * TOC_NS_PER_MS);
    exec_lane_rebalance(&rig->lane, TOC_BUS_REVOKED, NORMAL, 0, true);
    exec_lane_rebalance(&rig->lane, TOC_BUS_ASSIGNED, NORMAL, 0, false);
    exec_marks_put(&rig->core.marks,
                   &(struct exec_place){.topic = NORMAL, .generation = 1}, 99);
    rig_run(rig, 1);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 0);
    ck_assert_uint_eq(rig->invoke.n, 0); /* its hint went with the partition */
    rig_free(rig);
}
END_TEST

START_TEST(garbage_is_counted_and_passed)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 1), *far = task_in(rig, 120000);

    toc_buf_text(fake_send(&rig->bus, NORMAL, 0), "\xff\xfe not a hint");
    hint_one(rig, far, 0);
    hint_one(rig, row, 0);
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 1);
    ck_assert_uint_eq(rig_count(&rig->counters.garbage), 1);
    ck_assert_uint_eq(rig_count(&rig->counters.far), 1);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 3);
    rig_free(rig);
}
END_TEST

START_TEST(pressure_pauses_low_before_core)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *rows[250];

    for (size_t i = 0; i < 250; i++)
        rows[i] = task_in(rig, 100);
    for (size_t i = 0; i < 3; i++)
        fake_hint(&rig->bus, NORMAL, (int32_t)i, &rows[i * 80], 80, true);
    rig_settle(rig);
    ck_assert(!rig->bus.paused[0] && !rig->bus.paused[1] &&
              !rig->bus.paused[2]);
    atomic_fetch_add(&rig->core.hints, 600);
    exec_lane_step(&rig->lane);
    ck_assert(!rig->bus.paused[0]);
    ck_assert(rig->bus.paused[1]); /* 840 of 1000 */
    ck_assert(rig->bus.paused[2]);
    atomic_fetch_sub(&rig->core.hints, 300);
    exec_lane_step(&rig->lane);
    ck_assert(!rig->bus.paused[1]); /* 540 */
    ck_assert(rig->bus.paused[2]);
    atomic_fetch_sub(&rig->core.hints, 300);
    exec_lane_step(&rig->lane);
    ck_assert(!rig->bus.paused[2]);
    rig_free(rig);
}
END_TEST

/* Attempts that cannot be written back stop the claims, not the memory. */
START_TEST(open_attempts_are_bounded)
{
    struct exec_core_options options = rig_options();
    struct rig *rig;

    options.attempts_max = 5;
    rig = rig_new(options);
    rig->invoke.answer_at_once = true;
    rig->store.fail_finishes = 8;
    rig->store.fail_as = TOC_UNAVAILABLE;
    for (int i = 0; i < 20; i++)
        hint_one(rig, task_in(rig, 1), 0);
    rig_run(rig, 50);
    ck_assert_uint_eq(rig->invoke.n, 5);
    rig_run(rig, 20000);
    ck_assert_uint_eq(rig->invoke.n, 20);
    ck_assert_uint_eq(rig_count(&rig->counters.done), 20);
    rig_free(rig);
}
END_TEST

/* Failing calls: retry after retry as the policy says, then dead. */
START_TEST(retries_until_dead)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row =
        fake_task(&rig->store, &(struct fake_task){.due_ms = rig_now(rig) + 1,
                                                   .max_retries = 2});
    size_t i = (size_t)(row - rig->store.rows);

    rig->invoke.answer_at_once = true;
    rig->invoke.answer.kind = TOC_ANSWER_FAILED;
    toc_copy(rig->invoke.answer.error, 16, TOC_STR("no stock"));
    while (row->state != TOC_STATE_DEAD) {
        int64_t due_ms = row->due_ms;
        hint_one(rig, row, 0);
        if (due_ms > rig_now(rig) + 50)
            toc_clock_sim_advance_ns(&rig->sim,
                                     (due_ms - rig_now(rig)) * TOC_NS_PER_MS);
        rig_run(rig, 5);
        ck_assert_uint_lt(rig->invoke.n, 4);
    }
    ck_assert_uint_eq(rig->invoke.n, 3);
    ck_assert_int_eq(rig->invoke.called_ms[1] - rig->invoke.called_ms[0],
                     60000);
    ck_assert_str_eq(rig->store.errors[i], "no stock");
    ck_assert_str_eq(rig->store.reasons[i], "out of attempts");
    rig_free(rig);
}
END_TEST

/* Without a session, the partitions are others' after a while, with all that is
 * undecided; they come back when there is one. */
START_TEST(who_cannot_claim_leaves_the_group)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 2);

    rig->coord.deadline_ns = 0;
    hint_one(rig, row, 0);
    rig_run(rig, 2400);
    ck_assert(!rig->bus.left);
    rig_run(rig, 200);
    ck_assert(rig->bus.left);
    ck_assert(atomic_load(&rig->lane.away));
    ck_assert_uint_eq(atomic_load(&rig->core.hints), 0);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 0);
    rig_run(rig, 5000);
    ck_assert(rig->bus.left);
    rig->coord.deadline_ns = INT64_MAX;
    rig_run(rig, 5);
    ck_assert(!rig->bus.left);
    ck_assert_uint_eq(rig->invoke.n, 1);
    rig_free(rig);
}
END_TEST

START_TEST(failing_claims_leave_the_group)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 2);

    rig->store.fail_claims = 1000000;
    rig->store.fail_as = TOC_UNAVAILABLE;
    hint_one(rig, row, 0);
    rig_run(rig, 3100);
    ck_assert(rig->bus.left);
    rig->store.fail_claims = 0;
    rig_run(rig, 2000);
    ck_assert(!rig->bus.left);
    ck_assert_uint_eq(rig->invoke.n, 1);
    rig_free(rig);
}
END_TEST

/* Clocks apart, or a store that does not answer while nothing is due. */
START_TEST(the_probe_tells_what_is_not_sound)
{
    struct rig *rig = rig_new(rig_options());
    struct exec_probe probe = {&rig->sim.clock, &rig->store.port, &rig->core};
    int64_t now_ns = toc_clock_mono(&rig->sim.clock).ns;

    ck_assert_int_eq(exec_probe_step(&probe), now_ns + 1000 * TOC_NS_PER_MS);
    ck_assert(exec_core_is_well(&rig->core, now_ns));
    rig->store.behind_ms = 1100;
    (void)exec_probe_step(&probe);
    ck_assert(!exec_core_is_well(&rig->core, now_ns));
    rig_run(rig, 2600);
    ck_assert(rig->bus.left);
    rig->store.behind_ms = -1100;
    (void)exec_probe_step(&probe);
    ck_assert(!exec_core_is_well(&rig->core, now_ns));
    rig->store.behind_ms = 900;
    (void)exec_probe_step(&probe);
    ck_assert(exec_core_is_well(&rig->core, now_ns));
    rig->store.fail_nows = 1;
    rig->store.fail_as = TOC_UNAVAILABLE;
    (void)exec_probe_step(&probe);
    ck_assert(!exec_core_is_well(&rig->core, now_ns));
    (void)exec_probe_step(&probe);
    rig_run(rig, 1000);
    ck_assert(!rig->bus.left);
    rig_free(rig);
}
END_TEST

START_TEST(drain_drops_hints_undecided)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 50);

    hint_one(rig, row, 0);
    rig_run(rig, 1);
    atomic_store(&rig->core.draining, true);
    rig_run(rig, 100);
    ck_assert(atomic_load(&rig->core.drained));
    ck_assert_uint_eq(rig->store.claims, 0);
    ck_assert_int_eq(rig->bus.marks[NORMAL][0], 0);
    ck_assert_uint_eq(atomic_load(&rig->core.hints), 0);
    rig_free(rig);
}
END_TEST

/* Wall clock set forward by an hour while the core sleeps: what is due then is
 * called within a second; set back: nothing is called early. */
START_TEST(wall_clock_steps)
{
    struct rig *rig = rig_new(rig_options());
    struct toc_task *row = task_in(rig, 50000);
    int64_t wake_ns;

    hint_one(rig, row, 0);
    rig_settle(rig);
    wake_ns = exec_core_step(&rig->core);
    ck_assert_int_le(wake_ns - toc_clock_mono(&rig->sim.clock).ns,
                     1000 * TOC_NS_PER_MS);
    toc_clock_sim_step_wall(&rig->sim, -3600000);
    rig_run(rig, 2000);
    ck_assert_uint_eq(rig->invoke.n, 0);
    toc_clock_sim_step_wall(&rig->sim, 2 * 3600000);
    rig_run(rig, 1);
    ck_assert_uint_eq(rig->invoke.n, 1);
    rig_free(rig);
}
END_TEST

TOC_CHECK_MAIN(
    "exec_core", one_task_from_hint_to_success, equal_hints_become_one_claim,
    two_versions_of_a_row_do_not_share_a_claim,
    database_clock_behind_puts_the_claim_off,
    a_slow_claim_shortens_the_call_or_forbids_it,
    without_a_session_nothing_is_claimed,
    session_that_ends_during_the_claim_gives_back,
    lost_answer_of_a_claim_is_found_again, claims_go_on_after_a_long_failure,
    one_bad_claim_does_not_stop_the_others,
    payload_that_is_not_in_the_hint_is_read,
    revoked_hints_are_dropped_and_calls_go_on,
    marks_of_an_older_time_are_ignored, garbage_is_counted_and_passed,
    pressure_pauses_low_before_core, open_attempts_are_bounded,
    retries_until_dead, who_cannot_claim_leaves_the_group,
    failing_claims_leave_the_group, the_probe_tells_what_is_not_sound,
    drain_drops_hints_undecided, wall_clock_steps)
