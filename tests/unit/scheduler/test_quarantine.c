/*
 * Goal: what cannot be read is found by halves with few statements, left out,
 * tried again less and less often and read when it is mended, while all the
 * rest fires as ever; marks of what is left out stay.
 * Method: the table alone, told outcomes; then loader and sweep on a fake store
 * in which some shards are broken over some time; simulated seconds.
 */
#include "common/base/log.h"
#include "scheduler/housekeep.h"
#include "scheduler/quarantine.h"

#include "tests/unit/scheduler/rig.h"

#define DAY TOC_MS_PER_DAY
#define SECOND_NS (1000 * TOC_NS_PER_MS)

/* ---- the table -------------------------------------------------------- */

static struct sched_quarantine q;
static bool bad[TOC_SHARDS];
static int64_t bad_from_ms, bad_to_ms;
static const struct toc_error broken = {.status = TOC_DATA_LOSS,
                                        .msg = "broken"};

static size_t
all_slices(uint16_t slices[SCHED_SLICES])
{
    uint32_t gen[TOC_SHARDS];

    for (size_t i = 0; i < TOC_SHARDS; i++)
        gen[i] = 1;
    return sched_shards_slices(gen, slices);
}

static bool
touches_bad(const struct sched_suspects *at)
{
    for (size_t i = 0; i < at->n; i++)
        if (bad[q.shards[at->first + i]] && at->after_ms + 1 < bad_to_ms &&
            at->to_ms >= bad_from_ms)
            return true;
    return false;
}

/* Returns how many statements it took. */
static size_t
search(int64_t after_ms, int64_t to_ms)
{
    uint16_t slices[SCHED_SLICES];
    struct sched_suspects at;
    size_t n = 0;

    ck_assert(sched_quarantine_suspect(&q, SCHED_BUCKET_DAYS, after_ms, to_ms,
                                       slices, all_slices(slices), &broken));
    for (; sched_quarantine_next(&q, &at); n++) {
        ck_assert_uint_eq(q.n_slices, at.n * TOC_PRIORITIES);
        sched_quarantine_tell(&q, touches_bad(&at) ? TOC_DATA_LOSS : TOC_OK,
                              &broken, 0);
    }
    return n;
}

static void
reset(void)
{
    sched_quarantine_init(&q, "test");
    memset(bad, 0, sizeof bad);
}

START_TEST(one_shard_is_found_by_halves)
{
    uint16_t slices[SCHED_SLICES], passed[SCHED_SLICES];
    size_t n;

    reset();
    bad[77] = true;
    bad_from_ms = 40 * DAY + 5000;
    bad_to_ms = bad_from_ms + 1;
    ck_assert_uint_le(search(40 * DAY, 40 * DAY + 10000), 2 * 8 + 1);
    ck_assert_uint_eq(q.n, 1);
    ck_assert_uint_eq(q.held[0].shard, 77);
    ck_assert_int_eq(q.held[0].bucket, 40);
    ck_assert_uint_eq(sched_quarantine_shards(&q), 1);
    n = all_slices(slices);
    ck_assert_uint_eq(sched_quarantine_pass(&q, SCHED_BUCKET_DAYS, 40 * DAY,
                                            40 * DAY + 1, slices, n, passed),
                      n - TOC_PRIORITIES);
    for (size_t i = 0; i < n - TOC_PRIORITIES; i++)
        ck_assert_uint_ne(toc_slice_shard(passed[i]), 77);
    /* Other days and other buckets are not concerned. */
    ck_assert_uint_eq(sched_quarantine_pass(&q, SCHED_BUCKET_DAYS, 41 * DAY - 1,
                                            41 * DAY + 1, slices, n, passed),
                      n);
    ck_assert_uint_eq(
        sched_quarantine_pass(&q, SCHED_BUCKET_FAR, 0, 0, slices, n, passed),
        n);
}
END_TEST

START_TEST(a_day_is_found_among_many)
{
    reset();
    memset(bad, true, sizeof bad);
    bad_from_ms = 50 * DAY;
    bad_to_ms = 51 * DAY;
    ck_assert_uint_le(search(40 * DAY, 60 * DAY), 2 * 256 + 2 * 5);
    ck_assert_uint_eq(q.n, TOC_SHARDS);
    for (size_t i = 0; i < q.n; i++) {
        ck_assert_int_eq(q.held[i].bucket, 50);
        ck_assert_int_eq(q.held[i].after_ms, 50 * DAY - 1);
        ck_assert_int_eq(q.held[i].to_ms, 51 * DAY - 1);
    }
    /* Pieces end with the day only while something is held. */
    ck_assert_int_eq(sched_quarantine_cut(&q, 49 * DAY, 60 * DAY),
                     50 * DAY - 1);
    ck_assert_int_eq(sched_quarantine_cut(&q, 50 * DAY - 1, 60 * DAY),
                     51 * DAY - 1);
    sched_quarantine_forget_before(&q, 51);
    ck_assert_uint_eq(q.n, 0);
    ck_assert_int_eq(sched_quarantine_cut(&q, 49 * DAY, 60 * DAY), 60 * DAY);
}
END_TEST

START_TEST(what_is_held_is_tried_more_and_more_rarely)
{
    const int64_t waits_s[] = {1, 2, 4, 8, 16, 32, 60, 60};
    struct sched_held *held;
    int64_t now_ns = 0;

    reset();
    ck_assert(sched_quarantine_hold(&q, 3, 9, 0, 1, &broken, 0));
    ck_assert(sched_quarantine_hold(&q, 4, 9, 0, 1, &broken, 0));
    for (size_t i = 0; i < sizeof waits_s / sizeof waits_s[0]; i++) {
        ck_assert(!sched_quarantine_due(&q, now_ns + waits_s[i] * SECOND_NS - 1,
                                        &held));
        now_ns += waits_s[i] * SECOND_NS;
        ck_assert_int_eq(sched_quarantine_wake(&q), now_ns);
        for (int k = 0; k < 2; k++) {
            ck_assert(sched_quarantine_due(&q, now_ns, &held));
            sched_quarantine_tried(&q, held, false, now_ns);
        }
    }
    /* One is mended: the other one of its day is tried at once. */
    now_ns += 60 * SECOND_NS;
    ck_assert(sched_quarantine_due(&q, now_ns, &held));
    sched_quarantine_tried(&q, held, true, now_ns);
    ck_assert(sched_quarantine_due(&q, now_ns, &held));
    sched_quarantine_tried(&q, held, true, now_ns);
    ck_assert(!sched_quarantine_due(&q, now_ns, &held));
    ck_assert_uint_eq(sched_quarantine_shards(&q), 0);
}
END_TEST

START_TEST(a_store_that_is_away_ends_the_search)
{
    uint16_t slices[SCHED_SLICES];
    struct sched_suspects at;

    reset();
    ck_assert(sched_quarantine_suspect(&q, SCHED_BUCKET_DAYS, 0, 10, slices,
                                       all_slices(slices), &broken));
    ck_assert(sched_quarantine_next(&q, &at));
    sched_quarantine_tell(&q, TOC_DATA_LOSS, &broken, 0);
    ck_assert(sched_quarantine_next(&q, &at));
    ck_assert_uint_eq(at.n, 128);
    sched_quarantine_tell(&q, TOC_UNAVAILABLE, &broken, 0);
    ck_assert(!sched_quarantine_next(&q, &at));
    ck_assert_uint_eq(q.n, 0);
}
END_TEST

START_TEST(the_table_is_bounded)
{
    uint16_t slices[SCHED_SLICES];

    reset();
    for (int64_t i = 0; i < SCHED_HELD_MAX; i++)
        ck_assert(sched_quarantine_hold(&q, (uint16_t)(i % TOC_SHARDS), i, 0, 1,
                                        &broken, 0));
    ck_assert(!sched_quarantine_hold(&q, 1, 99999, 0, 1, &broken, 0));
    ck_assert(!sched_quarantine_suspect(&q, SCHED_BUCKET_DAYS, 0, 1, slices,
                                        all_slices(slices), &broken));
    /* Another's shards are no matter of ours. */
    sched_quarantine_keep(&q, (uint32_t[TOC_SHARDS]){[5] = 1});
    ck_assert_uint_eq(q.n, SCHED_HELD_MAX / TOC_SHARDS);
    ck_assert_uint_eq(sched_quarantine_shards(&q), 1);
}
END_TEST

/* ---- what is said ------------------------------------------------------ */

static struct said {
    unsigned quarantined, released, bad_rows, bad_many;
    char shards[1024], bucket[32];
} said;

static void
keep_field(const struct toc_field *f, const char *name, char *out, size_t max)
{
    if (strcmp(f->name, name) == 0)
        toc_copy(out, max, f->str);
}

static void
take_event(void *arg, enum toc_log_level level, const char *event,
           const struct toc_field *fields, size_t n)
{
    (void)arg;
    (void)level;
    said.quarantined += strcmp(event, "shard.quarantined") == 0;
    said.released += strcmp(event, "shard.released") == 0;
    said.bad_rows += strcmp(event, "row.unreadable") == 0;
    said.bad_many += strcmp(event, "row.unreadable_many") == 0;
    for (size_t i = 0; strncmp(event, "shard.", 6) == 0 && i < n; i++) {
        keep_field(&fields[i], "shards", said.shards, sizeof said.shards);
        keep_field(&fields[i], "bucket", said.bucket, sizeof said.bucket);
    }
}

START_TEST(many_shards_are_said_in_one_line)
{
    struct sched_held *held;

    memset(&said, 0, sizeof said);
    toc_log_use(take_event, NULL);
    reset();
    bad[3] = bad[7] = bad[8] = bad[9] = bad[255] = true;
    bad_from_ms = 40 * DAY;
    bad_to_ms = 41 * DAY;
    (void)search(40 * DAY, 40 * DAY + 10000);
    ck_assert_uint_eq(said.quarantined, 1);
    ck_assert_str_eq(said.shards, "3,7-9,255");
    ck_assert_str_eq(said.bucket, "1970-02-10");
    for (int i = 0; sched_quarantine_due(&q, SECOND_NS, &held); i++)
        sched_quarantine_tried(&q, held, true, SECOND_NS);
    ck_assert_uint_eq(said.released, 1);
    ck_assert_str_eq(said.shards, "3,7-9,255");
    toc_log_use(NULL, NULL);
}
END_TEST

START_TEST(a_row_that_makes_no_sense_is_said_once)
{
    struct toc_bad_row row = {.slice = 4, .slot_ms = 5, .why = "status 99"};

    memset(&said, 0, sizeof said);
    toc_log_use(take_event, NULL);
    rig_set_up(); /* its loader listens */
    for (int i = 0; i < 100; i++)
        toc_store_bad_row(&rig.store->port, &row);
    ck_assert_uint_eq(said.bad_rows, 1);
    ck_assert_uint_eq(sched_bad_rows_count(&rig.loader.bad_rows), 1);
    for (row.slot_ms = 100; row.slot_ms < 1000; row.slot_ms++)
        toc_store_bad_row(&rig.store->port, &row);
    ck_assert_uint_eq(said.bad_rows, SCHED_BAD_ROWS_MAX);
    ck_assert_uint_eq(said.bad_many, 1);
    /* Not met for long: it was mended, and is news when it comes back. */
    toc_clock_sim_advance_ns(&rig.sim, 3600 * SECOND_NS);
    ck_assert_uint_eq(sched_bad_rows_count(&rig.loader.bad_rows), 0);
    toc_store_bad_row(&rig.store->port, &row);
    ck_assert_uint_eq(said.bad_rows, SCHED_BAD_ROWS_MAX + 1);
    rig_tear_down();
    toc_log_use(NULL, NULL);
}
END_TEST

/* ---- loader and sweep -------------------------------------------------- */

static void
set_up(void)
{
    rig_set_up();
    rig_own(0, 255);
    rig_run(6000);
    fake_bus_decide_all(rig.bus);
}

static void
break_shard(uint16_t shard, int64_t from_ms, int64_t to_ms)
{
    rig.store->broken[shard] = true;
    rig.store->broken_from_ms = from_ms;
    rig.store->broken_to_ms = to_ms;
}

static void
mend_all(void)
{
    memset(rig.store->broken, 0, sizeof rig.store->broken);
}

/* The hinted rows end, as if executors took them at once. */
static void
end_hinted(void)
{
    struct toc_arena arena = {0};

    (void)toc_bus_poll(&rig.bus->port, 0);
    for (size_t k = 0; k < rig.bus->n; k++) {
        struct toc_str bytes = {rig.bus->messages[k].bytes,
                                rig.bus->messages[k].len};
        struct toc_error err;
        struct toc_hint *hints;
        size_t n = 0;
        ck_assert(toc_hint_decode(bytes, &arena, &hints, &n, &err) == TOC_OK);
        for (size_t j = 0; j < n; j++)
            for (size_t r = 0; r < rig.store->n; r++)
                if (toc_task_id_cmp(rig.store->rows[r].id, hints[j].task.id) ==
                    0)
                    rig.store->rows[r].state = TOC_STATE_SUCCESS;
        toc_free(rig.bus->messages[k].bytes);
    }
    rig.bus->n = 0;
    toc_arena_done(&arena);
    fake_bus_decide_all(rig.bus);
}

static void
run_and_end(int64_t seconds)
{
    for (int64_t i = 0; i < 4 * seconds; i++) {
        rig_run(250);
        end_hinted();
    }
}

static size_t
ended_of(uint16_t shard)
{
    size_t n = 0;

    for (size_t r = 0; r < rig.store->n; r++)
        n += toc_slice_shard(rig.store->rows[r].slice) == shard &&
             rig.store->rows[r].state == TOC_STATE_SUCCESS;
    return n;
}

/* Each shard has a task a second, over 20 s from in 11 s on. */
static void
add_tasks(void)
{
    for (int64_t s = 0; s < 20; s++)
        for (uint16_t i = 0; i < TOC_SHARDS; i++)
            fake_row(rig.store, i, TOC_PRIORITY_NORMAL,
                     rig_now() + 11000 + 1000 * s);
}

START_TEST(a_broken_shard_stops_no_other_and_fires_when_mended)
{
    int64_t low_ms;
    unsigned met;

    set_up();
    add_tasks();
    break_shard(7, 0, INT64_MAX);
    low_ms = rig.store->low_ms[7];
    rig.store->broken_met = 0;
    run_and_end(5);
    met = rig.store->broken_met;
    ck_assert_uint_le(met, 60);
    run_and_end(30);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        ck_assert_uint_eq(ended_of(i), i == 7 ? 0 : 20);
    ck_assert(sched_quarantine_holds(&rig.loader.held, 7));
    ck_assert(sched_quarantine_holds(&rig.sweep.held, 7));
    ck_assert_uint_eq(sched_quarantine_shards(&rig.loader.held), 1);
    ck_assert_uint_eq(sched_quarantine_shards(&rig.sweep.held), 1);
    /* Few statements meet it: 5 times within 31 s, each reader. */
    ck_assert_uint_le(rig.store->broken_met - met, 20);
    run_and_end(90);
    ck_assert_int_eq(rig.store->low_ms[7], low_ms);
    ck_assert_int_gt(rig.store->low_ms[8], low_ms);
    mend_all();
    run_and_end(75);
    ck_assert_uint_eq(ended_of(7), 20);
    ck_assert_uint_eq(sched_quarantine_shards(&rig.loader.held), 0);
    ck_assert_uint_eq(sched_quarantine_shards(&rig.sweep.held), 0);
    /* And goes on as before. */
    fake_row(rig.store, 7, TOC_PRIORITY_CORE, rig_now() + 15000);
    run_and_end(16);
    ck_assert_uint_eq(ended_of(7), 21);
    run_and_end(60);
    ck_assert_int_gt(rig.store->low_ms[7], low_ms);
    rig_tear_down();
}
END_TEST

START_TEST(a_mended_shard_is_read_ahead_again)
{
    struct toc_task *row;

    set_up();
    break_shard(7, 0, INT64_MAX);
    row = fake_row(rig.store, 7, TOC_PRIORITY_NORMAL, rig_now() + 9500);
    rig_run(2500);
    ck_assert(sched_quarantine_holds(&rig.loader.held, 7));
    mend_all();
    rig_run(3000);
    ck_assert(!sched_quarantine_holds(&rig.loader.held, 7));
    /* 4 s ahead: not the band's, and behind the cursor. */
    ck_assert(sched_memory_knows(&rig.memory, row->id, row->version));
    rig_tear_down();
}
END_TEST

START_TEST(each_mended_task_is_hinted_once)
{
    size_t hints;

    set_up();
    break_shard(7, 0, INT64_MAX);
    for (int i = 0; i < 20; i++)
        fake_row(rig.store, 7, TOC_PRIORITY_NORMAL, rig_now() + 3000 + i);
    rig_run(10000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 0);
    mend_all();
    for (int i = 0; i < 70 && fake_bus_hints(rig.bus, 0) == 0; i++)
        rig_run(1000);
    rig_run(2000);
    hints = fake_bus_hints(rig.bus, 0);
    ck_assert_uint_eq(hints, 20);
    end_hinted();
    rig_run(30000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 0);
    rig_tear_down();
}
END_TEST

START_TEST(a_page_of_the_past_is_the_sweeps_matter_alone)
{
    struct toc_task *row;
    int64_t low_ms;

    set_up();
    row = fake_row(rig.store, 7, TOC_PRIORITY_NORMAL, rig_now() + 500);
    rig_run(3000); /* hinted, and lost */
    break_shard(7, row->slot_ms, row->slot_ms + 1);
    low_ms = rig.store->low_ms[7];
    add_tasks();
    run_and_end(2);
    row->state = TOC_STATE_INIT;
    run_and_end(38);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        ck_assert_uint_eq(ended_of(i), 20);
    ck_assert(!sched_quarantine_holds(&rig.loader.held, 7));
    ck_assert(sched_quarantine_holds(&rig.sweep.held, 7));
    run_and_end(60);
    ck_assert_int_le(rig.store->low_ms[7], row->slot_ms);
    ck_assert_int_ge(rig.store->low_ms[7], low_ms);
    mend_all();
    run_and_end(80);
    ck_assert_uint_eq(ended_of(7), 21);
    rig_tear_down();
}
END_TEST

/* The day is broken from its beginning on: what lies before midnight fires, and
 * of the day itself only once it is mended. */
START_TEST(a_broken_day_begins_at_midnight)
{
    int64_t midnight_ms;

    set_up();
    midnight_ms = (FAKE_START_MS / DAY + 1) * DAY;
    rig_run(1); /* shards that are loaded up to now follow the clock */
    toc_clock_sim_advance_ns(&rig.sim,
                             (midnight_ms - rig_now() - 30000) * TOC_NS_PER_MS);
    rig_compare_clocks(0);
    run_and_end(5);
    for (uint16_t i = 0; i < TOC_SHARDS; i++) {
        fake_row(rig.store, i, TOC_PRIORITY_NORMAL, midnight_ms - 2000);
        fake_row(rig.store, i, TOC_PRIORITY_NORMAL, midnight_ms + 2000);
        break_shard(i, midnight_ms, midnight_ms + DAY);
    }
    run_and_end(20);
    /* Too late for reading ahead: found all the same. */
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        fake_row(rig.store, i, TOC_PRIORITY_NORMAL, midnight_ms - 3000);
    run_and_end(20);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        ck_assert_uint_eq(ended_of(i), 2);
    ck_assert_uint_eq(sched_quarantine_shards(&rig.loader.held), TOC_SHARDS);
    mend_all();
    run_and_end(80);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        ck_assert_uint_eq(ended_of(i), 3);
    ck_assert_uint_eq(sched_quarantine_shards(&rig.loader.held), 0);
    ck_assert_uint_eq(sched_quarantine_shards(&rig.sweep.held), 0);
    rig_tear_down();
}
END_TEST

START_TEST(far_rows_of_the_others_move)
{
    set_up();
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        rig.store->far[i] = 3;
    rig.store->far_broken[200] = true;
    run_and_end(65);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        ck_assert_uint_eq(rig.store->far[i], i == 200 ? 3 : 0);
    /* Its tasks in their days fire. */
    fake_row(rig.store, 200, TOC_PRIORITY_NORMAL, rig_now() + 3000);
    run_and_end(5);
    ck_assert_uint_eq(ended_of(200), 1);
    rig.store->far_broken[200] = false;
    run_and_end(65);
    ck_assert_uint_eq(rig.store->far[200], 0);
    rig_tear_down();
}
END_TEST

START_TEST(a_shard_newly_ours_may_be_broken)
{
    rig_set_up();
    break_shard(9, 0, INT64_MAX);
    rig_own(0, 20);
    for (uint16_t i = 0; i <= 20; i++)
        fake_row(rig.store, i, TOC_PRIORITY_NORMAL, rig_now() + 400);
    rig_run(1000);
    end_hinted();
    for (uint16_t i = 0; i <= 20; i++)
        ck_assert_uint_eq(ended_of(i), i == 9 ? 0 : 1);
    /* Given away: another's, and forgotten here. */
    sched_shards_drop(&rig.shards, 9);
    rig_run(20000);
    ck_assert_uint_eq(sched_quarantine_shards(&rig.loader.held), 0);
    ck_assert_uint_eq(sched_quarantine_shards(&rig.sweep.held), 0);
    rig_tear_down();
}
END_TEST

/* The statement fails, its parts do not: nothing is held, and it is no loop
 * without a pause. */
START_TEST(what_only_fails_now_and_then_holds_nobody)
{
    set_up();
    rig.store->fail_as = TOC_DATA_LOSS;
    rig.store->fail = 1;
    fake_row(rig.store, 1, TOC_PRIORITY_NORMAL, rig_now() + 15000);
    rig_run(100);
    rig.store->fail = 1;
    rig_run(16000);
    ck_assert_uint_eq(fake_bus_hints(rig.bus, 0), 1);
    ck_assert_uint_eq(sched_quarantine_shards(&rig.loader.held), 0);
    rig_tear_down();
}
END_TEST

START_TEST(keys_of_the_others_are_freed)
{
    static struct sched_housekeep house;

    set_up();
    sched_housekeep_init(
        &house, &(struct sched_housekeep_options){.clk = &rig.sim.clock,
                                                  .store = &rig.store->port,
                                                  .shards = &rig.shards,
                                                  .skew = &rig.skew,
                                                  .retention_ms = 30 * DAY,
                                                  .key_window_ms = DAY});
    break_shard(3, 0, INT64_MAX);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        rig.store->keys[i] = 5;
    for (int i = 0; i < 6 * 3600; i++) { /* six hours in steps of a second */
        rig.store->now_ms = rig_now();
        (void)sched_housekeep_step(&house);
        toc_clock_sim_advance_ns(&rig.sim, SECOND_NS);
    }
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        ck_assert_uint_eq(rig.store->keys[i], i == 3 ? 5 : 0);
    rig_tear_down();
}
END_TEST

TOC_CHECK_MAIN(
    "quarantine", one_shard_is_found_by_halves, a_day_is_found_among_many,
    what_is_held_is_tried_more_and_more_rarely,
    a_store_that_is_away_ends_the_search, the_table_is_bounded,
    many_shards_are_said_in_one_line, a_row_that_makes_no_sense_is_said_once,
    a_broken_shard_stops_no_other_and_fires_when_mended,
    a_mended_shard_is_read_ahead_again, each_mended_task_is_hinted_once,
    a_page_of_the_past_is_the_sweeps_matter_alone,
    a_broken_day_begins_at_midnight, far_rows_of_the_others_move,
    a_shard_newly_ours_may_be_broken, what_only_fails_now_and_then_holds_nobody,
    keys_of_the_others_are_freed)
