/*
 * Goal: a scheduler whose clock is off keeps no shard for long, and has them
 * again when it is right; a hiccup of a second moves nothing. Method: the
 * keeper turns against a coordination double that grants every claim, with a
 * store that knows the time.
 */
#include "scheduler/keeper.h"
#include "tests/unit/scheduler/fakes.h"

static struct toc_clock_sim sim;
static struct fake_store *store;
static struct sched_skew skew;
static struct sched_shards shards;
static struct sched_memory memory;
static struct sched_roster roster;
static struct sched_keeper keeper;
static struct toc_bell bell;
static unsigned told; /* how much of what a new session brings */
static size_t releases, wants;
static unsigned fail_releases;

static enum toc_status
poll_events(void *self, int64_t timeout_ms, toc_coord_event_fn *fn, void *arg,
            struct toc_error *reterr)
{
    const struct toc_coord_event events[] = {
        {.kind = TOC_COORD_SESSION_NEW},
        {.kind = TOC_COORD_RESET},
        {.kind = TOC_COORD_MEMBER_UP,
         .member = {.role = TOC_STR("scheduler"), .node = TOC_STR("a")}},
        {.kind = TOC_COORD_SYNCED}};

    (void)self, (void)timeout_ms, (void)reterr;
    for (; told < sizeof events / sizeof events[0]; told++)
        fn(arg, &events[told]);
    return TOC_OK;
}

static enum toc_status
acquire(void *self, const uint16_t *list, size_t n, bool *ret_won,
        struct toc_error *reterr)
{
    (void)self, (void)list, (void)reterr;
    for (size_t i = 0; i < n; i++)
        ret_won[i] = true;
    return TOC_OK;
}

static enum toc_status
release(void *self, const uint16_t *list, size_t n, struct toc_error *reterr)
{
    (void)self, (void)list;
    if (fail_releases > 0) {
        fail_releases--;
        return toc_error_set(reterr, TOC_UNAVAILABLE, "double", 0, "away");
    }
    releases += n;
    return TOC_OK;
}

static enum toc_status
want(void *self, const uint16_t *list, size_t n, bool wanted,
     struct toc_error *reterr)
{
    (void)self, (void)list, (void)reterr;
    wants += wanted ? n : 0;
    return TOC_OK;
}

static void
wake(void *self)
{
    (void)self;
}

static int64_t
deadline(void *self)
{
    (void)self;
    return INT64_MAX;
}

static const struct toc_coord_ops ops = {.name = "double",
                                         .poll = poll_events,
                                         .acquire = acquire,
                                         .release = release,
                                         .want = want,
                                         .wake = wake,
                                         .deadline_boot_ns = deadline};
static struct toc_coord coord = {.ops = &ops};

static void
nothing(void *arg)
{
    (void)arg;
}

static void
turn(int64_t ms)
{
    for (int64_t i = 0; i < ms; i += 100) {
        sched_keeper_turn(&keeper, 1000);
        toc_clock_sim_advance_ns(&sim, 100 * TOC_NS_PER_MS);
    }
    sched_keeper_turn(&keeper, 1000);
}

static void
set_up(void)
{
    told = 0;
    releases = wants = 0;
    toc_clock_sim_init(&sim, (struct toc_wall){FAKE_START_MS});
    toc_bell_init(&bell);
    store = fake_store_new();
    store->now_ms = FAKE_START_MS;
    skew = (struct sched_skew){.clk = &sim.clock, .store = &store->port};
    (void)sched_skew_step(&skew);
    sched_shards_init(&shards, &sim.clock);
    sched_shards_set_coord(&shards, &coord);
    sched_memory_init(&memory,
                      &(struct sched_memory_options){.shards = &shards,
                                                     .bell = &bell,
                                                     .entries_max = 100,
                                                     .now_ms = FAKE_START_MS});
    sched_roster_init(&roster);
    sched_roster_set_coord(&roster, &coord);
    keeper = (struct sched_keeper){.clk = &sim.clock,
                                   .coord = &coord,
                                   .shards = &shards,
                                   .memory = &memory,
                                   .roster = &roster,
                                   .skew = &skew,
                                   .changed = nothing};
    sched_keeper_init(&keeper, TOC_STR("a"));
    turn(100);
    ck_assert_uint_eq(sched_shards_owned(&shards), TOC_SHARDS);
}

static void
tear_down(void)
{
    sched_roster_done(&roster);
    sched_memory_done(&memory);
    sched_shards_done(&shards);
    toc_bell_done(&bell);
    toc_free(store);
}

START_TEST(off_for_long_it_owns_nothing)
{
    static const uint16_t asked[] = {3, 4};

    set_up();
    toc_clock_sim_step_wall(&sim, 60000);
    turn(1500);
    ck_assert_uint_eq(sched_shards_owned(&shards), TOC_SHARDS);
    turn(1000);
    ck_assert_uint_eq(sched_shards_owned(&shards), 0);
    ck_assert_uint_eq(releases, TOC_SHARDS);
    ck_assert(sched_roster_ask(&roster, asked, 2));
    turn(60000);
    ck_assert_uint_eq(sched_shards_owned(&shards), 0);
    toc_clock_sim_step_wall(&sim, -60000);
    turn(200);
    ck_assert_uint_eq(sched_shards_owned(&shards), TOC_SHARDS);
    ck_assert_uint_eq(releases, TOC_SHARDS);
    ck_assert_uint_eq(wants, 0);
    tear_down();
}
END_TEST

START_TEST(a_hiccup_moves_nothing)
{
    set_up();
    for (int i = 0; i < 10; i++) { /* in all much longer than one may last */
        toc_clock_sim_step_wall(&sim, 1500);
        turn(1500);
        toc_clock_sim_step_wall(&sim, -1500);
        turn(200);
    }
    ck_assert_uint_eq(sched_shards_owned(&shards), TOC_SHARDS);
    ck_assert_uint_eq(releases, 0);
    tear_down();
}
END_TEST

/* Its keys would keep the others out for as long as its session lasts. */
START_TEST(a_release_that_failed_is_made_again)
{
    set_up();
    toc_clock_sim_step_wall(&sim, 60000);
    fail_releases = 2;
    turn(2500);
    ck_assert_uint_eq(sched_shards_owned(&shards), 0);
    ck_assert_uint_eq(releases, 0);
    turn(2500);
    ck_assert_uint_eq(releases, TOC_SHARDS);
    turn(10000);
    ck_assert_uint_eq(releases, TOC_SHARDS); /* once is enough */
    tear_down();
}
END_TEST

TOC_CHECK_MAIN("keeper", off_for_long_it_owns_nothing, a_hiccup_moves_nothing,
               a_release_that_failed_is_made_again)
