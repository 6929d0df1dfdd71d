/*
 * Goal: everything due is in memory before its time: read ahead, found by the
 * band when it was missed, read at once when a shard becomes ours; with little
 * work when there is little, in pieces when there is much; and a store that
 * fails or a full memory only delays it.
 * Method: rows in the fake store, simulated seconds, the bus counted.
 */
#include "tests/unit/scheduler/rig.h"

static void
set_up(void)
{
    rig_set_up();
    rig.with_sweep = false;
    fake_bus_decide_all(rig.bus);
}

START_TEST(reads_ahead_and_fires_on_time)
{
    set_up();
    rig_own(0, 255);
    for (int i = 0; i < 200; i++)
        fake_row(rig.store, (uint16_t)i, TOC_PRIORITY_NORMAL,
                 rig_now() + 37 * i);
    rig_run(8000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 200);
    rig_tear_down();
}
END_TEST

START_TEST(one_statement_a_second_when_idle)
{
    set_up();
    rig_own(0, 255);
    rig_run(3000);
    unsigned before = rig.store->loads;
    rig_run(20000);
    ck_assert_uint_le(rig.store->loads - before, 21);
    ck_assert_uint_ge(rig.store->loads - before, 19);
    rig_tear_down();
}
END_TEST

START_TEST(the_band_finds_what_came_behind_the_cursor)
{
    set_up();
    rig_own(0, 255);
    rig_run(3000);
    fake_row(rig.store, 9, TOC_PRIORITY_CORE, rig_now() + 4000);
    rig_run(4000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1);
    /* Due at once, and nobody told: within about a second. */
    fake_row(rig.store, 9, TOC_PRIORITY_CORE, rig_now());
    rig_run(1100);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2);
    rig_tear_down();
}
END_TEST

START_TEST(a_new_shard_is_read_at_once)
{
    set_up();
    rig_own(0, 127);
    rig_run(5000);
    fake_row(rig.store, 200, TOC_PRIORITY_NORMAL, rig_now() + 300);
    fake_row(rig.store, 200, TOC_PRIORITY_NORMAL, rig_now() + 7000);
    rig_own(200, 200);
    rig_run(1);
    ck_assert_uint_eq(sched_memory_len(&rig.memory), 2);
    rig_run(300);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1);
    rig_run(7000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2);
    rig_tear_down();
}
END_TEST

START_TEST(a_failing_store_is_tried_again)
{
    set_up();
    rig_own(0, 255);
    rig_run(2000);
    fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() + 15000);
    rig.store->fail = 30;
    rig_run(10000);
    ck_assert_uint_eq(rig.store->fail, 0);
    rig_run(5000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1);
    rig_tear_down();
}
END_TEST

START_TEST(a_full_memory_waits_in_the_store)
{
    rig_set_up_with(1000, 1000000);
    rig.with_sweep = false;
    rig_own(0, 255);
    rig_run(1000);
    /* All at one millisecond, three times what fits. */
    for (int i = 0; i < 3000; i++)
        fake_row(rig.store, (uint16_t)(i % 256), TOC_PRIORITY_NORMAL,
                 FAKE_START_MS + 13000);
    rig_run(11000);
    ck_assert_uint_le(sched_memory_len(&rig.memory), 1000);
    ck_assert_uint_ge(sched_memory_len(&rig.memory), 700);
    for (int i = 0; i < 40; i++) { /* executors take what is hinted */
        struct toc_arena arena = {0};
        rig_run(250);
        (void)toc_bus_poll(&rig.bus->port, 0);
        for (size_t k = 0; k < rig.bus->n; k++) {
            struct toc_error err;
            struct toc_hint *hints;
            size_t n = 0;
            struct toc_str bytes = {rig.bus->messages[k].bytes,
                                    rig.bus->messages[k].len};
            ck_assert(toc_hint_decode(bytes, &arena, &hints, &n, &err) ==
                      TOC_OK);
            for (size_t j = 0; j < n; j++)
                for (size_t r = 0; r < rig.store->n; r++)
                    if (toc_task_id_cmp(rig.store->rows[r].id,
                                        hints[j].task.id) == 0)
                        rig.store->rows[r].state = TOC_STATE_SUCCESS;
            toc_arena_reset(&arena);
            toc_free(rig.bus->messages[k].bytes);
        }
        toc_arena_done(&arena);
        rig.bus->n = 0;
    }
    for (size_t r = 0; r < rig.store->n; r++)
        ck_assert_int_eq(rig.store->rows[r].state, TOC_STATE_SUCCESS);
    ck_assert_int_ge(sched_loader_cursor(&rig.loader), FAKE_START_MS + 13000);
    rig_tear_down();
}
END_TEST

START_TEST(a_large_takeover_leaves_room_for_what_is_near)
{
    rig_set_up_with(1000, 1000000);
    rig.with_sweep = false;
    rig_own(0, 127);
    rig_run(3000);
    for (int i = 0; i < 5000; i++)
        fake_row(rig.store, 200, TOC_PRIORITY_NORMAL, rig_now() + 8000);
    rig_own(200, 200);
    rig_run(1000);
    ck_assert_uint_le(sched_memory_len(&rig.memory), 800);
    fake_row(rig.store, 5, TOC_PRIORITY_NORMAL, rig_now() + 800);
    fake_row(rig.store, 200, TOC_PRIORITY_NORMAL, rig_now() + 800);
    rig_run(1900);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 2);
    rig_tear_down();
}
END_TEST

START_TEST(a_clock_set_back_reads_again)
{
    set_up();
    rig_own(0, 255);
    rig_run(3000);
    toc_clock_sim_step_wall(&rig.sim, -3600000);
    rig_run(1000);
    fake_row(rig.store, 9, TOC_PRIORITY_CORE, rig_now() + 15000);
    rig_run(15000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1);
    rig_tear_down();
}
END_TEST

TOC_CHECK_MAIN("loader", reads_ahead_and_fires_on_time,
               one_statement_a_second_when_idle,
               the_band_finds_what_came_behind_the_cursor,
               a_new_shard_is_read_at_once, a_failing_store_is_tried_again,
               a_full_memory_waits_in_the_store,
               a_large_takeover_leaves_room_for_what_is_near,
               a_clock_set_back_reads_again)
