/*
 * Goal: what the main path missed goes on, and nothing else is sent twice: a
 * lost hint is sent again once the executors are past it, a backlog is not, an
 * expired lock is freed, a takeover hints the past when the log has been read,
 * stragglers let the mark pass and are still looked after.
 * Method: rows in the fake store in the state that a fault leaves behind; the
 * committed offsets are moved by hand; simulated seconds.
 */
#include "tests/unit/scheduler/rig.h"

static void
set_up(void)
{
    rig_set_up();
    rig_own(0, 9);
    rig_run(6000); /* the takeover is over */
}

START_TEST(a_lost_hint_is_sent_again_and_only_then)
{
    set_up();
    fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() + 1000);
    rig_run(2000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1);
    /* A backlog: the executors have not come so far. */
    rig_run(30000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1);
    /* They are past it, and the row still waits. */
    fake_bus_decide_all(rig.bus);
    rig_run(6000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2);
    /* The second hint waits in its turn. */
    rig_run(30000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2);
    fake_bus_decide_all(rig.bus);
    rig_run(11000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 3);
    rig_tear_down();
}
END_TEST

START_TEST(nothing_when_the_offsets_cannot_be_read)
{
    set_up();
    fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() + 1000);
    rig_run(2000);
    fake_bus_decide_all(rig.bus);
    rig.bus->committed_fails = true;
    rig_run(30000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1);
    rig.bus->committed_fails = false;
    rig_run(6000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2);
    rig_tear_down();
}
END_TEST

START_TEST(offsets_are_not_asked_for_when_nothing_waits)
{
    set_up();
    rig.bus->committed_asked = 0;
    rig_run(30000);
    ck_assert_uint_eq(rig.bus->committed_asked, 0);
    rig_tear_down();
}
END_TEST

START_TEST(a_topic_made_anew_has_lost_all)
{
    set_up();
    for (int i = 0; i < 5; i++) { /* so that the mark is far in the log */
        fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() + 500)->state =
            TOC_STATE_INIT;
        rig_run(2000);
        rig.store->rows[rig.store->n - 1].state = TOC_STATE_SUCCESS;
    }
    fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() + 500);
    rig_run(2000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 6);
    memset(rig.bus->ends, 0, sizeof rig.bus->ends);
    memset(rig.bus->committed, 0, sizeof rig.bus->committed);
    rig_run(12000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 7);
    rig_tear_down();
}
END_TEST

static void
sweep_until_scanned(unsigned scans)
{
    for (int i = 0; i < 100 && rig.store->scans < scans; i++)
        (void)sched_sweep_step(&rig.sweep);
}

START_TEST(an_end_read_before_a_hint_proves_nothing)
{
    unsigned scans;
    size_t lane;

    set_up();
    lane = sched_marks_lane(&rig.marks, toc_slice_of(1, TOC_PRIORITY_NORMAL));
    for (int i = 0; i < TOC_SHARDS; i++)
        rig.store->low_ms[i] = rig_now();
    fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() + 100);
    fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() + 6000);
    rig.with_sweep = false;
    rig_run(15000); /* both are hinted, and wait in a backlog */
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2);
    rig.sweep.walk.step_ms = 1000;
    scans = rig.store->scans;
    sweep_until_scanned(scans + 1);
    ck_assert_uint_ge(rig.bus->ends_asked, 1);
    /* Meanwhile another hint of the lane is stored again. */
    sched_marks_stored(&rig.marks, lane, FAKE_START_MS, 1,
                       rig.bus->ends[1][1]++);
    sweep_until_scanned(scans + 10);
    rig_run(100);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2);
    rig_tear_down();
}
END_TEST

START_TEST(an_expired_lock_is_freed_and_hinted)
{
    struct toc_task *task;

    set_up();
    task = fake_row(rig.store, 2, TOC_PRIORITY_NORMAL, rig_now() + 500);
    rig_run(2000);
    fake_bus_decide_all(rig.bus);
    task->state = TOC_STATE_EXECUTING;
    task->lock_until_ms = rig_now() + 20000;
    task->lock_token = 5;
    rig_run(20000);
    ck_assert_int_eq(task->state, TOC_STATE_EXECUTING);
    ck_assert_uint_eq(rig.store->frees, 0);
    rig_run(6000);
    ck_assert_int_eq(task->state, TOC_STATE_RETRY);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2);
    rig_tear_down();
}
END_TEST

START_TEST(a_takeover_waits_for_the_log_to_be_read)
{
    rig_set_up();
    /* Another owner has published; executors have not read it all. */
    rig.bus->ends[1][1] = 50;
    rig.bus->committed[1][1] = 49;
    fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() - 5000);
    rig_own(0, 9);
    rig_run(2000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 0);
    rig.bus->committed[1][1] = 50;
    rig_run(300);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1);
    rig_tear_down();
}
END_TEST

START_TEST(a_cold_start_fires_the_past_at_once)
{
    rig_set_up();
    fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() - 5000);
    fake_row(rig.store, 2, TOC_PRIORITY_NORMAL, rig_now() - 86400000);
    rig_own(0, 9);
    rig_run(50);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2);
    rig_tear_down();
}
END_TEST

START_TEST(a_shard_taken_during_a_backlog_is_seen_to)
{
    rig_set_up();
    rig.bus->ends[1][1] = 50; /* not decided: the first takeover goes on */
    fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() - 5000);
    rig_own(0, 3);
    rig_run(1000);
    fake_row(rig.store, 6, TOC_PRIORITY_NORMAL, rig_now() - 5000);
    rig_own(6, 6);
    rig_run(50);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1);
    rig.bus->committed[1][1] = 50;
    rig_run(400);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2);
    rig_tear_down();
}
END_TEST

START_TEST(the_mark_rises_and_stragglers_are_kept)
{
    struct toc_task *slow;

    set_up();
    slow = fake_row(rig.store, 4, TOC_PRIORITY_NORMAL, rig_now() + 100);
    rig_run(2000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1);
    slow->state = TOC_STATE_EXECUTING;
    slow->lock_until_ms = rig_now() + 600000;
    rig_run(40000);
    ck_assert_int_eq(rig.store->low_ms[4], slow->slot_ms);
    rig_run(60000); /* unfinished for over a minute */
    ck_assert(rig.store->straggler[rig.store->n - 1]);
    ck_assert_int_gt(rig.store->low_ms[4], slow->slot_ms);
    /* Its lock expires: it is below the mark, and found all the same. */
    slow->lock_until_ms = rig_now();
    fake_bus_decide_all(rig.bus);
    rig_run(20000);
    ck_assert_int_eq(slow->state, TOC_STATE_RETRY);
    ck_assert_uint_ge(fake_bus_hints(rig.bus, 0), 2);
    rig_tear_down();
}
END_TEST

START_TEST(stragglers_that_ended_are_forgotten)
{
    struct toc_task *mine, *theirs;
    unsigned records;

    rig_set_up();
    theirs = fake_row(rig.store, 9, TOC_PRIORITY_NORMAL, rig_now() - 3600000);
    theirs->state = TOC_STATE_SUCCESS;
    rig.store->straggler[0] = true; /* recorded by the owner before */
    mine = fake_row(rig.store, 4, TOC_PRIORITY_NORMAL, rig_now() + 100);
    rig_own(0, 9);
    rig_run(2000);
    mine->state = TOC_STATE_EXECUTING;
    mine->lock_until_ms = rig_now() + 600000;
    rig_run(100000);
    ck_assert(!rig.store->straggler[0]);
    ck_assert(rig.store->straggler[1]);
    mine->state = TOC_STATE_SUCCESS;
    rig_run(40000);
    ck_assert(!rig.store->straggler[1]);
    records = rig.store->records; /* and that is the end of it */
    rig_run(100000);
    ck_assert_uint_eq(rig.store->records, records);
    rig_tear_down();
}
END_TEST

START_TEST(little_work_when_idle)
{
    set_up();
    rig_run(30000);
    unsigned scans = rig.store->scans, advances = rig.store->advances;
    rig_run(60000);
    ck_assert_uint_le(rig.store->scans - scans, 13);
    ck_assert_uint_eq(rig.store->advances, advances);
    rig_tear_down();
}
END_TEST

START_TEST(failures_begin_anew)
{
    set_up();
    fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() + 1000);
    rig_run(2000);
    fake_bus_decide_all(rig.bus);
    rig.with_loader = false;
    for (unsigned i = 1; i < 6; i++) { /* each call of a pass once */
        rig.store->fail = 1;
        rig_run(5000 + (int64_t)i);
    }
    rig_run(10000);
    ck_assert_uint_ge(fake_bus_hints(rig.bus, 0), 2);
    rig_tear_down();
}
END_TEST

START_TEST(a_silent_bus_is_not_asked_for_every_row)
{
    struct toc_task *task;

    rig_set_up();
    rig.bus->committed_fails = rig.bus->ends_fail = true;
    for (int i = 0; i < 1000; i++)
        fake_row(rig.store, (uint16_t)(i % 10), TOC_PRIORITY_NORMAL,
                 rig_now() - 5000 - i);
    task = fake_row(rig.store, 2, TOC_PRIORITY_NORMAL, rig_now() - 60000);
    task->state = TOC_STATE_EXECUTING;
    task->lock_until_ms = rig_now() - 1;
    rig_own(0, 9);
    rig_run(10);
    ck_assert_int_eq(task->state, TOC_STATE_RETRY);
    ck_assert_uint_le(rig.bus->committed_asked + rig.bus->ends_asked, 1);
    rig_run(20000);
    ck_assert_uint_le(rig.bus->committed_asked + rig.bus->ends_asked, 9);
    rig.bus->committed_fails = rig.bus->ends_fail = false;
    rig_run(8000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1001);
    rig_tear_down();
}
END_TEST

START_TEST(no_statement_over_hours_of_backlog)
{
    rig_set_up_with(100000, 1000000);
    rig_executors_are_fast();
    for (int i = 0; i < TOC_SHARDS; i++)
        rig.store->low_ms[i] = rig_now() - 2 * 3600 * 1000;
    for (int i = 0; i < 60000; i++) /* one hour of nothing, one of 17/s */
        fake_row(rig.store, (uint16_t)(i % 10), TOC_PRIORITY_LOW,
                 rig_now() - 3600 * 1000 + i * 60);
    rig.with_loader = false;
    rig_own(0, 9);
    for (int i = 0; i < 60 && fake_bus_hints(rig.bus, 0) < 60000; i++)
        rig_run(1000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 60000);
    ck_assert_uint_le(rig.store->scan_rows_max, SCHED_CHUNK_ROWS);
    rig_tear_down();
}
END_TEST

START_TEST(marks_of_idle_shards_rise_too)
{
    rig_set_up();
    for (int i = 0; i < TOC_SHARDS; i++)
        rig.store->low_ms[i] = rig_now() - 86400 * 1000;
    rig_own(0, 9);
    rig_run(11000);
    ck_assert_int_gt(rig.store->low_ms[3], rig_now() - 20000);
    ck_assert_int_lt(rig.store->low_ms[10], rig_now() - 86400 * 1000);
    rig_tear_down();
}
END_TEST

/* An executing task whose lock has an hour to go, and one that has waited for
 * more than a minute. */
static struct toc_task *
locked_for_an_hour(void)
{
    struct toc_task *task =
        fake_row(rig.store, 2, TOC_PRIORITY_NORMAL, rig_now() + 500);

    rig_run(3000);
    fake_bus_decide_all(rig.bus);
    task->state = TOC_STATE_EXECUTING;
    task->lock_until_ms = rig_now() + 3600 * 1000;
    return task;
}

START_TEST(a_clock_that_jumps_writes_nothing)
{
    struct toc_task *task;
    int64_t now_ms;

    set_up();
    task = locked_for_an_hour();
    rig_run(6000);
    now_ms = rig_now();
    toc_clock_sim_step_wall(&rig.sim, 7200 * 1000); /* not measured yet */
    rig_run(11000);
    ck_assert_int_eq(task->state, TOC_STATE_EXECUTING);
    ck_assert_int_le(rig.store->low_ms[2], now_ms);
    ck_assert(!rig.store->straggler[0]);
    rig_compare_clocks(7200 * 1000); /* measured */
    rig_run(11000);
    ck_assert_int_eq(task->state, TOC_STATE_EXECUTING);
    ck_assert_int_le(rig.store->low_ms[2], now_ms);
    toc_clock_sim_step_wall(&rig.sim, -7200 * 1000); /* set right */
    rig_compare_clocks(0);
    task->lock_until_ms = rig_now();
    rig_run(11000);
    ck_assert_int_eq(task->state, TOC_STATE_RETRY);
    rig_tear_down();
}
END_TEST

START_TEST(nothing_is_written_before_the_clock_was_measured)
{
    struct toc_task *task;

    set_up();
    atomic_store(&rig.skew.measured, false);
    task = locked_for_an_hour();
    task->lock_until_ms = rig_now();
    rig_run(11000);
    ck_assert_int_eq(task->state, TOC_STATE_EXECUTING);
    rig_compare_clocks(0);
    rig_run(11000);
    ck_assert_int_eq(task->state, TOC_STATE_RETRY);
    rig_tear_down();
}
END_TEST

/* Until so many hints were sent; how long it took. */
static int64_t
ms_until_hinted(size_t hints)
{
    int64_t ms = 0;

    for (; ms < 60000 && fake_bus_hints(rig.bus, 0) < hints; ms += 100)
        rig_run(100);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), hints);
    return ms;
}

START_TEST(a_backlog_is_hinted_as_fast_as_it_is_taken)
{
    rig_set_up_with(100000, 1000000);
    rig_executors_are_fast();
    for (int i = 0; i < TOC_SHARDS; i++)
        rig.store->low_ms[i] = rig_now() - 20000;
    for (int i = 0; i < 65000; i++)
        fake_row(rig.store, (uint16_t)(i % 10), TOC_PRIORITY_LOW,
                 rig_now() - 20000 + i / 5);
    rig_own(0, 9);
    ck_assert_int_le(ms_until_hinted(65000), 3000);
    rig_tear_down();
}
END_TEST

START_TEST(a_full_memory_is_waited_for)
{
    rig_set_up_with(2000, 1000000);
    rig_executors_are_fast();
    for (int i = 0; i < 10000; i++)
        fake_row(rig.store, (uint16_t)(i % 10), TOC_PRIORITY_LOW,
                 rig_now() - 20000);
    rig_own(0, 9);
    ck_assert_int_le(ms_until_hinted(10000), 4000);
    rig_tear_down();
}
END_TEST

START_TEST(locks_behind_a_full_memory_are_freed)
{
    struct toc_task *task;

    rig_set_up_with(2000, 1000000);
    rig.bus->send_fails = TOC_UNAVAILABLE; /* it stays full */
    for (int i = 0; i < 10000; i++)
        fake_row(rig.store, (uint16_t)(i % 10), TOC_PRIORITY_LOW,
                 rig_now() - 20000);
    task = fake_row(rig.store, 1, TOC_PRIORITY_LOW, rig_now() - 5000);
    task->state = TOC_STATE_EXECUTING;
    task->lock_until_ms = rig_now() - 1;
    rig_own(0, 9);
    rig_run(12000);
    ck_assert_int_eq(task->state, TOC_STATE_RETRY);
    rig_tear_down();
}
END_TEST

START_TEST(a_large_backlog_is_swept_in_pieces)
{
    rig_set_up_with(100000, 1000000);
    rig_executors_are_fast();
    for (int i = 0; i < 60000; i++) /* all in one ms of three shards */
        fake_row(rig.store, (uint16_t)(i % 3), TOC_PRIORITY_LOW,
                 rig_now() - 7000);
    rig.with_loader = false;
    rig_own(0, 9);
    for (int i = 0; i < 60 && fake_bus_hints(rig.bus, 0) < 60000; i++)
        rig_run(1000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 60000);
    rig_tear_down();
}
END_TEST

TOC_CHECK_MAIN(
    "sweep", a_lost_hint_is_sent_again_and_only_then,
    nothing_when_the_offsets_cannot_be_read,
    offsets_are_not_asked_for_when_nothing_waits,
    a_topic_made_anew_has_lost_all, an_end_read_before_a_hint_proves_nothing,
    an_expired_lock_is_freed_and_hinted,
    a_takeover_waits_for_the_log_to_be_read,
    a_cold_start_fires_the_past_at_once,
    a_shard_taken_during_a_backlog_is_seen_to,
    the_mark_rises_and_stragglers_are_kept, stragglers_that_ended_are_forgotten,
    little_work_when_idle, failures_begin_anew,
    a_silent_bus_is_not_asked_for_every_row, no_statement_over_hours_of_backlog,
    marks_of_idle_shards_rise_too, a_clock_that_jumps_writes_nothing,
    nothing_is_written_before_the_clock_was_measured,
    a_backlog_is_hinted_as_fast_as_it_is_taken, a_full_memory_is_waited_for,
    locks_behind_a_full_memory_are_freed, a_large_backlog_is_swept_in_pieces)
