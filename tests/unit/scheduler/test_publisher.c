/*
 * Goal: hints leave just before they are due, packed, in the right lane, each
 * once; what the bus refuses waits and goes later, a bad one alone; nothing is
 * sent for shards that are not ours or without a session; the marks say what is
 * stored and nothing more.
 * Method: tasks are offered to memory as the loader and a submit would; the
 * fake bus keeps what was sent.
 */
#include "tests/unit/scheduler/rig.h"

static struct toc_task *
offer(uint16_t shard, enum toc_priority priority, int64_t due_ms)
{
    struct toc_task *task = fake_row(rig.store, shard, priority, due_ms);

    ck_assert_int_eq(sched_memory_offer(&rig.memory, task, SCHED_ROAD_NEAR),
                     SCHED_OFFER_TAKEN);
    return task;
}

static void
set_up(void)
{
    rig_set_up();
    rig.with_loader = rig.with_sweep = false;
    rig_own(0, 9);
    rig_run(5);
}

START_TEST(sent_just_before_due)
{
    set_up();
    offer(0, TOC_PRIORITY_NORMAL, rig_now() + 500);
    rig_run(465);
    ck_assert_uint_eq(rig.bus->n, 0);
    rig_run(6);
    ck_assert_uint_eq(rig.bus->n, 1);
    ck_assert_str_eq(rig.bus->messages[0].topic, "normal");
    rig_run(2000);
    ck_assert_uint_eq(rig.bus->n, 1);
    rig_tear_down();
}
END_TEST

START_TEST(a_steady_stream_goes_in_few_messages)
{
    set_up();
    for (int i = 0; i < 2000; i++) /* one in 2 ms */
        offer(0, TOC_PRIORITY_NORMAL, rig_now() + 500 + 2 * i);
    rig_run(5000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2000);
    ck_assert_uint_le(rig.bus->n, 4000 / 50 + 2);
    rig_tear_down();
}
END_TEST

START_TEST(a_later_offer_that_is_earlier_wakes_it)
{
    set_up();
    offer(0, TOC_PRIORITY_NORMAL, rig_now() + 5000);
    rig_run(100);
    offer(0, TOC_PRIORITY_NORMAL, rig_now() + 200);
    rig_run(171);
    ck_assert_uint_eq(rig.bus->n, 1);
    offer(0, TOC_PRIORITY_NORMAL, rig_now() - 7);
    rig_run(1);
    ck_assert_uint_eq(rig.bus->n, 2);
    rig_tear_down();
}
END_TEST

START_TEST(packs_by_lane)
{
    set_up();
    for (int i = 0; i < 600; i++)
        offer(1, TOC_PRIORITY_CORE, rig_now() + 100);
    offer(5, TOC_PRIORITY_CORE, rig_now() + 100); /* same partition: 4 */
    offer(2, TOC_PRIORITY_LOW, rig_now() + 100);
    rig_run(75);
    ck_assert_uint_eq(rig.bus->n, 4); /* 256, 256, 89, 1 */
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 602);
    ck_assert_str_eq(rig.bus->messages[0].topic, "core");
    ck_assert_int_eq(rig.bus->messages[0].partition, 1);
    rig_tear_down();
}
END_TEST

START_TEST(known_hints_are_not_taken_twice)
{
    struct toc_task *task;

    set_up();
    task = offer(0, TOC_PRIORITY_NORMAL, rig_now() + 50);
    ck_assert_int_eq(sched_memory_offer(&rig.memory, task, SCHED_ROAD_NEAR),
                     SCHED_OFFER_KNOWN);
    rig_run(100); /* sent and stored: still known, the band reads it again */
    ck_assert_int_eq(sched_memory_offer(&rig.memory, task, SCHED_ROAD_NEAR),
                     SCHED_OFFER_KNOWN);
    rig_run(8000); /* forgotten */
    ck_assert(!sched_memory_knows(&rig.memory, task->id, task->version));
    task->version++;
    ck_assert_int_eq(sched_memory_offer(&rig.memory, task, SCHED_ROAD_NEAR),
                     SCHED_OFFER_TAKEN);
    rig_run(10);
    ck_assert_uint_eq(rig.bus->n, 2);
    rig_tear_down();
}
END_TEST

START_TEST(a_refusing_bus_is_tried_again)
{
    set_up();
    rig.bus->send_fails = TOC_EXHAUSTED;
    for (int i = 0; i < 10; i++)
        offer(0, TOC_PRIORITY_NORMAL, rig_now() + 10 * i);
    rig_run(3000);
    ck_assert_uint_eq(rig.bus->n, 0);
    ck_assert_uint_eq(sched_memory_len(&rig.memory), 10);
    rig.bus->send_fails = TOC_OK;
    rig.bus->report_fails = TOC_UNAVAILABLE; /* taken, then not stored */
    rig_run(3000);
    ck_assert_uint_gt(rig.bus->n, 0);
    ck_assert_uint_eq(sched_memory_len(&rig.memory), 10);
    size_t before = rig.bus->n;
    rig.bus->report_fails = TOC_OK;
    rig_run(3000);
    ck_assert_uint_eq(sched_memory_len(&rig.memory), 0);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, before), 10);
    rig_tear_down();
}
END_TEST

START_TEST(a_bad_hint_goes_alone)
{
    static char big[1000];

    set_up();
    memset(big, 'x', sizeof big);
    rig.bus->bytes_max = 900; /* no message with the big payload */
    for (int i = 0; i < 5; i++) {
        struct toc_task *task =
            fake_row(rig.store, 0, TOC_PRIORITY_NORMAL, rig_now() + 10);
        if (i == 2)
            task->payload = (struct toc_str){big, sizeof big};
        ck_assert_int_eq(sched_memory_offer(&rig.memory, task, SCHED_ROAD_NEAR),
                         SCHED_OFFER_TAKEN);
    }
    rig_run(200);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 5);
    ck_assert_uint_eq(sched_memory_len(&rig.memory), 0);
    rig_tear_down();
}
END_TEST

START_TEST(a_hint_refused_for_good_is_dropped)
{
    set_up();
    rig.bus->bytes_max = 10;
    for (int i = 0; i < 3; i++)
        offer(0, TOC_PRIORITY_NORMAL, rig_now());
    rig_run(200);
    ck_assert_uint_eq(rig.bus->n, 0);
    ck_assert_uint_eq(sched_memory_len(&rig.memory), 0);
    rig_tear_down();
}
END_TEST

START_TEST(nothing_without_a_session)
{
    set_up();
    rig.coord.deadline_ns = 0;
    offer(0, TOC_PRIORITY_NORMAL, rig_now() + 10);
    rig_run(2000);
    ck_assert_uint_eq(rig.bus->n, 0);
    rig.coord.deadline_ns = INT64_MAX;
    rig_run(1100);
    ck_assert_uint_eq(rig.bus->n, 1);
    rig_tear_down();
}
END_TEST

START_TEST(nothing_of_lost_shards)
{
    struct toc_task *task;

    set_up();
    task = offer(3, TOC_PRIORITY_NORMAL, rig_now() + 100);
    sched_shards_drop(&rig.shards, 3);
    ck_assert_int_eq(sched_memory_offer(&rig.memory, task, SCHED_ROAD_NEAR),
                     SCHED_OFFER_NOT_OURS);
    rig_run(500);
    ck_assert_uint_eq(rig.bus->n, 0);
    ck_assert_uint_eq(sched_memory_len(&rig.memory), 0);
    /* Ours again: what was loaded before is not what counts. */
    task->due_ms = task->slot_ms = rig_now() + 100;
    sched_shards_take(&rig.shards, 3);
    ck_assert_int_eq(sched_memory_offer(&rig.memory, task, SCHED_ROAD_NEAR),
                     SCHED_OFFER_TAKEN);
    sched_shards_drop(&rig.shards, 3);
    sched_shards_take(&rig.shards, 3);
    ck_assert_int_eq(sched_memory_offer(&rig.memory, task, SCHED_ROAD_NEAR),
                     SCHED_OFFER_TAKEN);
    rig_run(500);
    ck_assert_uint_eq(rig.bus->n, 1);
    rig_tear_down();
}
END_TEST

START_TEST(marks_wait_for_what_is_not_stored)
{
    const uint16_t slice = toc_slice_of(0, TOC_PRIORITY_NORMAL);
    int64_t slot;

    set_up();
    slot = rig_now() + 100;
    offer(0, TOC_PRIORITY_NORMAL, slot);
    rig.bus->held = true;
    rig_run(3000);
    ck_assert_uint_eq(rig.bus->n, 1);
    ck_assert(!sched_marks_passed(&rig.marks, slice, slot, 1000, -1));
    ck_assert(sched_marks_passed(&rig.marks, slice, slot - 1, 1000, -1));
    rig.bus->held = false;
    rig_run(2500);
    ck_assert(!sched_marks_passed(&rig.marks, slice, slot, 0, -1));
    ck_assert(sched_marks_passed(&rig.marks, slice, slot, 1, -1));
    rig_tear_down();
}
END_TEST

START_TEST(a_lane_without_room_holds_and_others_go_on)
{
    int64_t committed[FAKE_PARTITIONS] = {0};

    rig_set_up_with(10000, 256);
    rig.with_loader = rig.with_sweep = false;
    rig_own(0, 9);
    for (int i = 0; i < 1000; i++)
        offer(0, TOC_PRIORITY_NORMAL, rig_now());
    rig_run(100);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 256);
    offer(1, TOC_PRIORITY_NORMAL, rig_now());
    offer(0, TOC_PRIORITY_CORE, rig_now());
    rig_run(10);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 258);
    committed[0] = 1;
    sched_marks_set_committed(&rig.marks, TOC_PRIORITY_NORMAL, committed, 1);
    rig_run(10);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 258 + 256);
    rig_tear_down();
}
END_TEST

START_TEST(new_ones_are_not_behind_a_backlog)
{
    int64_t committed[FAKE_PARTITIONS] = {0};

    rig_set_up_with(10000, 256);
    rig.with_loader = rig.with_sweep = false;
    rig_own(0, 9);
    for (int i = 0; i < 2000; i++)
        offer(0, TOC_PRIORITY_NORMAL, rig_now() - 60000);
    rig_run(25);
    offer(0, TOC_PRIORITY_NORMAL, rig_now());
    rig_run(25);
    for (int64_t i = 1; i <= 2; i++) { /* the next message or the one after */
        committed[0] = i;
        sched_marks_set_committed(&rig.marks, TOC_PRIORITY_NORMAL, committed,
                                  1);
        rig_run(25);
    }
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0) % 256, 1);
    rig_tear_down();
}
END_TEST

START_TEST(little_of_a_backlog_is_before_new_ones)
{
    rig_set_up_with(10000, 5000);
    rig.with_loader = rig.with_sweep = false;
    rig_own(0, 9);
    for (int i = 0; i < 4000; i++)
        offer(0, TOC_PRIORITY_NORMAL, rig_now() - 60000);
    rig_run(10);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 512);
    for (int i = 0; i < 1000; i++) /* these do not wait for them */
        offer(0, TOC_PRIORITY_NORMAL, rig_now());
    rig_run(10);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1512);
    rig_tear_down();
}
END_TEST

START_TEST(a_clock_set_back_stalls_nothing)
{
    set_up();
    offer(0, TOC_PRIORITY_NORMAL, rig_now() + 3000);
    rig_run(1000);
    toc_clock_sim_step_wall(&rig.sim, -7200000);
    rig_run(1100);
    offer(0, TOC_PRIORITY_NORMAL, rig_now() + 500);
    rig_run(480);
    ck_assert_uint_eq(rig.bus->n, 1); /* and the other one is not early */
    toc_clock_sim_step_wall(&rig.sim, 7200000);
    rig_run(1100);
    ck_assert_uint_eq(rig.bus->n, 2);
    rig_tear_down();
}
END_TEST

START_TEST(a_hand_over_sends_ahead)
{
    set_up();
    offer(0, TOC_PRIORITY_NORMAL, rig_now() + 1500);
    offer(1, TOC_PRIORITY_NORMAL, rig_now() + 1500);
    offer(0, TOC_PRIORITY_NORMAL, rig_now() + 9000);
    rig_run(10);
    atomic_store(&rig.shards.handing[0], true);
    ck_assert(sched_memory_unsent(&rig.memory, rig_now() + 2000));
    sched_memory_hasten(&rig.memory, rig_now() + 2000);
    rig_run(1);
    ck_assert_uint_eq(rig.bus->n, 1);
    rig_run(25); /* the report */
    ck_assert(!sched_memory_unsent(&rig.memory, rig_now() + 2000));
    rig_tear_down();
}
END_TEST

TOC_CHECK_MAIN("publisher", sent_just_before_due,
               a_steady_stream_goes_in_few_messages,
               a_later_offer_that_is_earlier_wakes_it, packs_by_lane,
               known_hints_are_not_taken_twice, a_refusing_bus_is_tried_again,
               a_bad_hint_goes_alone, a_hint_refused_for_good_is_dropped,
               nothing_without_a_session, nothing_of_lost_shards,
               marks_wait_for_what_is_not_stored,
               a_lane_without_room_holds_and_others_go_on,
               new_ones_are_not_behind_a_backlog,
               little_of_a_backlog_is_before_new_ones,
               a_clock_set_back_stalls_nothing, a_hand_over_sends_ahead)
