/*
 * Goal: submits go together, keep their own outcomes, and are never told a
 * wrong one: when the store's answer is lost they are stored again under the
 * same ids, when one is refused it fails alone, when nobody waits nothing is
 * written, and the queue is bounded. Method: the combiner is stepped by hand
 * against the fake store.
 */
#include "scheduler/access/combiner.h"
#include "tests/unit/scheduler/fakes.h"

#define N 1200

static struct toc_clock_sim sim;
static struct fake_store *store;
static struct sched_combiner combiner;
static struct sched_submit_item items[N];
static struct sched_submit_item *refs[N];
static char ids[N][16];
static size_t done;

static void
on_done(struct sched_submit_item *item)
{
    (void)item;
    done++;
}

static bool
is_gone(struct sched_submit_item *item)
{
    return item->arg != NULL;
}

static void
set_up(size_t rows_max)
{
    toc_clock_sim_init(&sim, (struct toc_wall){FAKE_START_MS});
    store = fake_store_new();
    sched_combiner_init(&combiner, &(struct sched_combiner_options){
                                       .clk = &sim.clock,
                                       .store = &store->port,
                                       .queue_rows_max = rows_max,
                                   });
    memset(items, 0, sizeof items);
    done = 0;
    for (size_t i = 0; i < N; i++) {
        struct toc_task *task = &items[i].task;
        toc_format(ids[i], sizeof ids[i], "%zu", i);
        *task = (struct toc_task){.version = 1,
                                  .fire = 1,
                                  .due_ms = FAKE_START_MS + 1000,
                                  .biz_type = TOC_STR("order"),
                                  .biz_id = toc_str_of(ids[i]),
                                  .spec = TOC_STR("spec")};
        task->key_hash =
            toc_key_hash_of(task->biz_type, task->biz_id, task->name);
        task->slice =
            toc_slice_of(toc_key_shard(task->key_hash), TOC_PRIORITY_NORMAL);
        items[i].submit.task = task;
        items[i].submit.content[0] = 1;
        items[i].done = on_done;
        items[i].gone = is_gone;
        refs[i] = &items[i];
    }
}

static void
run(int64_t ms)
{
    for (int64_t i = 0; i <= ms; i++) {
        for (int k = 0; k < 50; k++)
            if (sched_combiner_step(&combiner) > toc_clock_mono(&sim.clock).ns)
                break;
        toc_clock_sim_advance_ns(&sim, TOC_NS_PER_MS);
    }
}

static void
tear_down(void)
{
    sched_combiner_close(&combiner);
    ck_assert(sched_combiner_idle(&combiner));
    sched_combiner_done(&combiner);
    toc_free(store);
}

static size_t
count(enum toc_submit_result result, size_t n)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        found += items[i].st == TOC_OK && items[i].submit.result == result;
    return found;
}

START_TEST(go_together)
{
    set_up(0);
    ck_assert(sched_combiner_push(&combiner, refs, N));
    run(1);
    ck_assert_uint_eq(done, N);
    ck_assert_uint_eq(count(TOC_SUBMIT_CREATED, N), N);
    ck_assert_uint_eq(store->submits, 3); /* 500, 500, 200 */
    ck_assert_uint_eq(store->submit_rows_max, SCHED_COMBINE_MAX);
    tear_down();
}
END_TEST

START_TEST(one_alone_does_not_wait)
{
    set_up(0);
    ck_assert(sched_combiner_push(&combiner, refs, 1));
    (void)sched_combiner_step(&combiner);
    ck_assert_uint_eq(done, 1);
    tear_down();
}
END_TEST

START_TEST(fifty_of_one_key)
{
    set_up(0);
    for (size_t i = 0; i < 50; i++) {
        items[i].task.key_hash = items[0].task.key_hash;
        items[i].task.slice = items[0].task.slice;
        items[i].submit.content[0] = i < 30 ? 1 : 2;
    }
    ck_assert(sched_combiner_push(&combiner, refs, 50));
    run(1);
    ck_assert_uint_eq(store->n, 1);
    ck_assert_uint_eq(count(TOC_SUBMIT_CREATED, 50), 1);
    ck_assert_uint_eq(count(TOC_SUBMIT_SAME, 50), 29);
    ck_assert_uint_eq(count(TOC_SUBMIT_OTHER, 50), 20);
    for (size_t i = 1; i < 50; i++)
        ck_assert_mem_eq(&items[i].submit.stored.id, &store->rows[0].id, 16);
    tear_down();
}
END_TEST

START_TEST(bytes_are_bounded_too)
{
    static char payload[1024 * 1024];

    set_up(0);
    for (size_t i = 0; i < 10; i++)
        items[i].task.payload = (struct toc_str){payload, sizeof payload};
    ck_assert(sched_combiner_push(&combiner, refs, 10));
    run(1);
    ck_assert_uint_eq(done, 10);
    ck_assert_uint_eq(store->submit_rows_max, 3);
    tear_down();
}
END_TEST

START_TEST(a_lost_commit_is_recognised)
{
    set_up(0);
    store->fail = 2;
    store->applied = true;
    ck_assert(sched_combiner_push(&combiner, refs, 10));
    run(1000);
    ck_assert_uint_eq(count(TOC_SUBMIT_CREATED, 10), 10);
    ck_assert_uint_eq(store->n, 10);
    tear_down();
}
END_TEST

START_TEST(a_store_that_is_away_ends_as_unavailable)
{
    set_up(0);
    store->fail = 1000;
    ck_assert(sched_combiner_push(&combiner, refs, 10));
    run(3000);
    ck_assert_uint_eq(done, 10);
    for (size_t i = 0; i < 10; i++)
        ck_assert_int_eq(items[i].st, TOC_UNAVAILABLE);
    ck_assert_uint_eq(store->submits, 4);
    store->fail = 0;
    ck_assert(sched_combiner_push(&combiner, refs + 10, 10));
    run(1);
    ck_assert_int_eq(items[19].st, TOC_OK);
    tear_down();
}
END_TEST

/* The process stops: who waits may ask another scheduler at once. */
START_TEST(in_a_hurry_there_is_no_second_try)
{
    set_up(0);
    store->fail = 1000;
    atomic_store(&combiner.hurry, true);
    ck_assert(sched_combiner_push(&combiner, refs, 10));
    run(1);
    ck_assert_uint_eq(done, 10);
    ck_assert_int_eq(items[9].st, TOC_UNAVAILABLE);
    ck_assert_uint_eq(store->submits, 1);
    tear_down();
}
END_TEST

START_TEST(a_bad_one_fails_alone)
{
    set_up(0);
    store->poison = TOC_STR("7");
    ck_assert(sched_combiner_push(&combiner, refs, 20));
    run(1);
    ck_assert_uint_eq(done, 20);
    for (size_t i = 0; i < 20; i++)
        ck_assert_int_eq(items[i].st, i == 7 ? TOC_INVALID : TOC_OK);
    tear_down();
}
END_TEST

START_TEST(nothing_is_written_for_who_has_gone)
{
    set_up(0);
    items[1].arg = items;
    ck_assert(sched_combiner_push(&combiner, refs, 3));
    run(1);
    ck_assert_int_eq(items[1].st, TOC_CANCELLED);
    ck_assert_uint_eq(store->n, 2);
    ck_assert_uint_eq(done, 3);
    tear_down();
}
END_TEST

START_TEST(those_gone_hold_up_nobody)
{
    size_t n = 2 * SCHED_COMBINE_MAX;

    set_up(0);
    for (size_t i = 0; i < n; i++)
        items[i].arg = items;
    ck_assert(sched_combiner_push(&combiner, refs, n + 1));
    while (sched_combiner_step(&combiner) <= toc_clock_mono(&sim.clock).ns)
        continue; /* no time passes */
    ck_assert_uint_eq(done, n + 1);
    ck_assert_int_eq(items[n].st, TOC_OK);
    ck_assert_uint_eq(store->n, 1);
    tear_down();
}
END_TEST

START_TEST(nothing_is_stored_by_a_clock_that_is_off)
{
    struct sched_skew skew;

    set_up(0);
    skew = (struct sched_skew){.clk = &sim.clock, .store = &store->port};
    combiner.opt.skew = &skew;
    store->now_ms = FAKE_START_MS;
    (void)sched_skew_step(&skew);
    toc_clock_sim_step_wall(&sim, 5000);
    ck_assert(sched_combiner_push(&combiner, refs, 10));
    run(1);
    ck_assert_uint_eq(done, 10);
    for (size_t i = 0; i < 10; i++) {
        ck_assert_int_eq(items[i].st, TOC_UNAVAILABLE);
        ck_assert_str_ne(items[i].err.msg, "");
    }
    ck_assert_uint_eq(store->submits, 0);
    ck_assert_uint_eq(store->n, 0);
    toc_clock_sim_step_wall(&sim, -5000);
    ck_assert(sched_combiner_push(&combiner, refs + 10, 10));
    run(1);
    ck_assert_int_eq(items[19].st, TOC_OK);
    ck_assert_uint_eq(store->n, 10);
    tear_down();
}
END_TEST

START_TEST(the_queue_is_bounded)
{
    set_up(100);
    ck_assert(sched_combiner_push(&combiner, refs, 99));
    ck_assert(!sched_combiner_push(&combiner, refs + 99, 2)); /* none of it */
    ck_assert(sched_combiner_push(&combiner, refs + 101, 1));
    ck_assert(!sched_combiner_push(&combiner, refs + 102, 1));
    run(1);
    ck_assert_uint_eq(done, 100);
    sched_combiner_close(&combiner);
    ck_assert(!sched_combiner_push(&combiner, refs + 102, 1));
    tear_down();
}
END_TEST

/* A crowd that comes back stays one crowd: the next transaction waits a moment
 * for those that were just answered, but not for ever, and a lone caller never
 * waits. */
START_TEST(gathers_those_that_come_back)
{
    int64_t wake;

    set_up(0);
    store->takes_of = &sim;
    store->takes_ns = 4 * TOC_NS_PER_MS;
    ck_assert(sched_combiner_push(&combiner, refs, 10));
    sched_combiner_step(&combiner);
    ck_assert_uint_eq(done, 10);
    ck_assert(sched_combiner_push(&combiner, refs + 10, 4));
    wake = sched_combiner_step(&combiner);
    ck_assert_uint_eq(done, 10); /* six more may come, for a quarter of 4 ms */
    ck_assert_int_eq(wake, toc_clock_mono(&sim.clock).ns + TOC_NS_PER_MS);
    ck_assert(sched_combiner_push(&combiner, refs + 14, 6));
    sched_combiner_step(&combiner);
    ck_assert_uint_eq(done, 20); /* all are back: at once */
    ck_assert_uint_eq(store->submits, 2);

    ck_assert(sched_combiner_push(&combiner, refs + 20, 1));
    sched_combiner_step(&combiner);
    toc_clock_sim_advance_ns(&sim, TOC_NS_PER_MS);
    sched_combiner_step(&combiner);
    ck_assert_uint_eq(done, 21); /* nobody else came */
    ck_assert(sched_combiner_push(&combiner, refs + 21, 1));
    sched_combiner_step(&combiner);
    ck_assert_uint_eq(done, 22); /* a lone caller */
    tear_down();
}
END_TEST

TOC_CHECK_MAIN("combiner", go_together, one_alone_does_not_wait,
               fifty_of_one_key, bytes_are_bounded_too,
               a_lost_commit_is_recognised,
               a_store_that_is_away_ends_as_unavailable,
               in_a_hurry_there_is_no_second_try, a_bad_one_fails_alone,
               nothing_is_written_for_who_has_gone, those_gone_hold_up_nobody,
               nothing_is_stored_by_a_clock_that_is_off, the_queue_is_bounded,
               gathers_those_that_come_back)
