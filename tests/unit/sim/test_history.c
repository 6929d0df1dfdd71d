/*
 * Goal: whole clusters keep every promise, whatever strikes between any two
 * effects; and a seed tells all of it.
 * Method: histories of fixed seeds. Those named have shown a fault once: 8, a
 * second call of a fire while the first one's handler was still at work; 15, a
 * submit by a clock that had just been set, put where nobody looks. toc-sim
 * runs as many others as one likes.
 */
#include "tests/sim/history.h"

#include "tests/support/toc_check.h"

static struct sim_history history;
static struct sim_coverage coverage;

static uint64_t
run_seed(uint64_t seed)
{
    uint64_t hash;
    bool good;

    sim_history_init(&history, seed, &coverage);
    good = sim_history_run(&history);
    if (!good)
        sim_history_explain(&history, 60, stdout);
    ck_assert_msg(good, "seed %llu: %s", (unsigned long long)seed,
                  history.ledger.broken);
    ck_assert_int_ge(history.ledger.n, 200);
    ck_assert_uint_ge(history.commands, 60);
    hash = history.world.trace.hash;
    sim_history_done(&history);
    return hash;
}

static void
quiet(void *arg, enum toc_log_level level, const char *event,
      const struct toc_field *fields, size_t n)
{
    (void)arg;
    (void)level;
    (void)event;
    (void)fields;
    (void)n;
}

static void
set_up(void)
{
    sim_pool_begin();
    toc_log_use(quiet, NULL);
}

START_TEST(kept_seeds_hold)
{
    static const uint64_t seeds[] = {8, 15, 5, 14, 18};

    set_up();
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        (void)run_seed(seeds[i]);
    sim_fiber_trim();
}
END_TEST

START_TEST(a_seed_tells_all)
{
    uint64_t first;

    set_up();
    first = run_seed(1);
    ck_assert_uint_eq(run_seed(1), first);
    ck_assert_uint_ne(run_seed(2), first);
    sim_fiber_trim();
}
END_TEST

TOC_CHECK_MAIN("sim_history", kept_seeds_hold, a_seed_tells_all)
