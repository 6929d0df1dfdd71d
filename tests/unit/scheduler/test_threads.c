/*
 * Goal: what several threads share (memory, marks, shards, combiner, load,
 * roster) keeps count when they really run at once; run under ThreadSanitizer
 * it shows races. Method: threads offer hints and take and drop shards while
 * one publishes, and threads push submits while one combines; then everything
 * must have come out once.
 */
#include "common/clock/os/clock_os.h"
#include "scheduler/access/combiner.h"
#include "scheduler/load.h"
#include "scheduler/publisher.h"
#include "scheduler/roster.h"

#include "tests/unit/scheduler/fakes.h"

#define THREADS 4
#define PER_THREAD 2000

static struct sched_shards shards;
static struct sched_memory memory;
static struct sched_marks marks;
static struct sched_publisher publisher;
static struct fake_bus *bus;
static struct toc_bell bell;
static _Atomic bool stop;
static _Atomic size_t taken;

static void
publish(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop))
        (void)toc_bell_wait(&bell, sched_publisher_step(&publisher));
    while (publisher.under_way > 0)
        (void)toc_bus_poll(&bus->port, 0);
}

static void
offer(void *arg)
{
    struct fake_store *rows = arg; /* of this thread */
    int64_t now_ms = toc_clock_wall(toc_clock_os()).ms;

    for (int i = 0; i < PER_THREAD; i++) {
        struct toc_task *task = fake_row(rows, (uint16_t)(i % 200),
                                         TOC_PRIORITY_NORMAL, now_ms + i % 50);
        if (sched_memory_offer(&memory, task, SCHED_ROAD_NEAR) ==
            SCHED_OFFER_TAKEN)
            atomic_fetch_add(&taken, 1);
        (void)sched_memory_knows(&memory, task->id, 1);
        (void)sched_marks_passed(&marks, task->slice, now_ms, 1, 1);
        if (i % 64 == 0)
            (void)sched_memory_unsent(&memory, now_ms);
    }
}

static void
change(void *arg)
{
    uint32_t gen[TOC_SHARDS];

    (void)arg;
    while (!atomic_load(&stop)) /* shards that nobody offers for */
        for (uint16_t i = 200; i < TOC_SHARDS; i++) {
            sched_shards_take(&shards, i);
            sched_shards_set_owner(&shards, i, TOC_STR("here:1"));
            sched_shards_snapshot(&shards, gen);
            sched_shards_drop(&shards, i);
        }
}

static bool
all_sent(void *arg)
{
    (void)arg;
    return sched_memory_len(&memory) == 0;
}

START_TEST(offers_while_publishing)
{
    const struct toc_clock *clk = toc_clock_os();
    struct toc_thread offerers[THREADS] = {0}, other = {0}, sender = {0};
    struct fake_store *rows[THREADS];
    struct fake_coord coord;

    fake_coord_init(&coord);
    (void)fake_biz_id(0); /* its table is made by one thread */
    toc_bell_init(&bell);
    bus = fake_bus_new(sched_publisher_reported);
    sched_shards_init(&shards, clk);
    sched_shards_set_coord(&shards, &coord.port);
    sched_memory_init(&memory, &(struct sched_memory_options){
                                   .shards = &shards,
                                   .bell = &bell,
                                   .entries_max = 100000,
                                   .now_ms = toc_clock_wall(clk).ms});
    sched_marks_init(&marks, FAKE_PARTITIONS, 1000000);
    sched_publisher_init(
        &publisher, &(struct sched_publisher_options){.clk = clk,
                                                      .bus = &bus->port,
                                                      .shards = &shards,
                                                      .memory = &memory,
                                                      .marks = &marks,
                                                      .topics = fake_topics,
                                                      .lead_ms = 30});
    for (uint16_t i = 0; i < 200; i++)
        sched_shards_take(&shards, i);
    toc_thread_start(&sender, "publisher", publish, NULL);
    toc_thread_start(&other, "changer", change, NULL);
    for (size_t i = 0; i < THREADS; i++) {
        rows[i] = fake_store_new();
        rows[i]->n = i * PER_THREAD; /* ids of its own */
        toc_thread_start(&offerers[i], "offerer", offer, rows[i]);
    }
    for (size_t i = 0; i < THREADS; i++)
        toc_thread_join(&offerers[i]);
    ck_assert(toc_eventually(all_sent, NULL));
    atomic_store(&stop, true);
    toc_bell_ring(&bell);
    toc_thread_join(&sender);
    toc_thread_join(&other);
    ck_assert_uint_eq(atomic_load(&taken), THREADS * PER_THREAD);
    ck_assert_uint_eq(fake_bus_hints(bus, 0), THREADS * PER_THREAD);
    sched_publisher_done(&publisher);
    sched_marks_done(&marks);
    sched_memory_done(&memory);
    sched_shards_done(&shards);
    for (size_t i = 0; i < THREADS; i++)
        toc_free(rows[i]);
    fake_bus_free(bus);
    toc_bell_done(&bell);
}
END_TEST

/* ---- combiner -------------------------------------------------------------
 */

static struct sched_combiner combiner;
static struct sched_submit_item items[THREADS][PER_THREAD / 4];
static char ids[THREADS][PER_THREAD / 4][16];
static _Atomic size_t done;

static void
combine(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop))
        (void)toc_bell_wait(&combiner.bell, sched_combiner_step(&combiner));
}

static void
on_done(struct sched_submit_item *item)
{
    if (item->st == TOC_OK && item->submit.result == TOC_SUBMIT_CREATED)
        atomic_fetch_add(&done, 1);
}

static void
push(void *arg)
{
    size_t t = (size_t)(uintptr_t)arg;

    for (size_t i = 0; i < PER_THREAD / 4; i++) {
        struct sched_submit_item *item = &items[t][i];
        struct toc_task *task = &item->task;
        toc_format(ids[t][i], 16, "%zu-%zu", t, i);
        *task = (struct toc_task){.version = 1,
                                  .fire = 1,
                                  .due_ms = FAKE_START_MS,
                                  .biz_type = TOC_STR("order"),
                                  .biz_id = toc_str_of(ids[t][i])};
        task->key_hash =
            toc_key_hash_of(task->biz_type, task->biz_id, task->name);
        task->slice =
            toc_slice_of(toc_key_shard(task->key_hash), TOC_PRIORITY_NORMAL);
        item->submit.task = task;
        item->done = on_done;
        ck_assert(sched_combiner_push(&combiner, &item, 1));
    }
}

static bool
all_done(void *arg)
{
    (void)arg;
    return atomic_load(&done) == THREADS * (PER_THREAD / 4);
}

START_TEST(pushes_while_combining)
{
    struct fake_store *store = fake_store_new();
    struct toc_thread pushers[THREADS] = {0}, worker = {0};

    sched_combiner_init(
        &combiner, &(struct sched_combiner_options){.clk = toc_clock_os(),
                                                    .store = &store->port});
    toc_thread_start(&worker, "combiner", combine, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        toc_thread_start(&pushers[i], "pusher", push, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        toc_thread_join(&pushers[i]);
    ck_assert(toc_eventually(all_done, NULL));
    sched_combiner_close(&combiner);
    atomic_store(&stop, true);
    toc_bell_ring(&combiner.bell);
    toc_thread_join(&worker);
    ck_assert_uint_eq(store->n, THREADS * (PER_THREAD / 4));
    sched_combiner_done(&combiner);
    toc_free(store);
}
END_TEST

static struct sched_load load;
static struct sched_roster roster;

static void
no_wake(void *self)
{
    (void)self;
}

/* As an RPC thread and the planner do. */
static void
ask(void *arg)
{
    const uint16_t *shard = arg;
    struct sched_roster_member *members =
        TOC_NEW_ARRAY(struct sched_roster_member, SCHED_MEMBERS_MAX);
    struct sched_figures figures;
    uint64_t changes;

    for (int i = 0; i < PER_THREAD; i++) {
        sched_load_figures(&load, &figures);
        ck_assert_uint_le(sched_roster_list(&roster, members, &changes), 1);
        ck_assert(sched_roster_ask(&roster, shard, 1));
    }
    toc_free(members);
}

START_TEST(shards_are_asked_for_while_figures_are_noted)
{
    static const struct toc_coord_ops ops = {.name = "fake", .wake = no_wake};
    static const uint16_t wanted[THREADS] = {0, 1, 100, 255};
    static struct sched_load_counters counters = {.cores = 1};
    struct toc_thread askers[THREADS] = {0};
    struct toc_coord coord = {&ops, NULL};
    bool seen[TOC_SHARDS] = {false};
    uint16_t got[TOC_SHARDS];

    sched_load_init(&load);
    sched_roster_init(&roster);
    sched_roster_set_coord(&roster, &coord);
    for (size_t i = 0; i < THREADS; i++)
        toc_thread_start(&askers[i], "asker", ask,
                         (void *)(uintptr_t)&wanted[i]);
    for (int i = 0; i < PER_THREAD + 1; i++) {
        const struct toc_coord_event event = {
            .kind = i % 2 == 0 ? TOC_COORD_MEMBER_UP : TOC_COORD_MEMBER_DOWN,
            .member = {.role = TOC_STR("scheduler"), .node = TOC_STR("a")}};
        counters.now_ns += 1000 * TOC_NS_PER_MS;
        sched_load_note(&load, &counters);
        sched_roster_event(&roster, &event);
        for (size_t n = sched_roster_take_asked(&roster, got); n > 0; n--)
            seen[got[n - 1]] = true;
        if (i == PER_THREAD - 1)
            for (size_t k = 0; k < THREADS; k++)
                toc_thread_join(&askers[k]);
    }
    for (size_t i = 0; i < THREADS; i++)
        ck_assert(seen[wanted[i]]);
    ck_assert_uint_eq(roster.n, 1);
    ck_assert_uint_eq(roster.changes, PER_THREAD + 1);
    sched_roster_done(&roster);
    sched_load_done(&load);
}
END_TEST

TOC_CHECK_MAIN("threads", offers_while_publishing, pushes_while_combining,
               shards_are_asked_for_while_figures_are_noted)
