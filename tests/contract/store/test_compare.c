/*
 * Goal: the store in memory does what the real one does. Method: random
 * sequences of operations are made on both, with the same arguments and ids;
 * their answers must be equal, and everything stored.
 *
 * TOC_CONTRACT_SEEDS: how many sequences (default 30). TOC_CONTRACT_SEED: this
 * one alone, with a look at everything stored after each step, not each eighth.
 */
#include "tests/contract/store/compare_sweep.h"

#define STEPS 60
#define SEEDS_DEFAULT 30
#define DAYS_EACH 20 /* so many sequences make and drop days: it takes long */

typedef void op_fn(void);

static const struct {
    const char *name;
    op_fn *fn;
    unsigned weight;
} ops[] = {
    {"submit", op_submit, 18},
    {"load", op_load, 3},
    {"scan", op_scan, 4},
    {"get", op_get, 6},
    {"list", op_list, 3},
    {"list_biz", op_list_biz, 2},
    {"list_dead", op_list_dead, 2},
    {"claim", op_claim, 20},
    {"renew", op_renew, 3},
    {"finish", op_finish, 20},
    {"command", op_command, 16},
    {"redrive", op_redrive, 4},
    {"free", op_free, 6},
    {"record", op_record, 4},
    {"advance", op_advance, 5},
    {"move_far", op_move_far, 4},
    {"gc", op_gc, 4},
    {"moving", op_moving, 1},
};
#define N_OPS (sizeof ops / sizeof ops[0])

static size_t
pick_op(void)
{
    unsigned total = 0, at;
    size_t op = 0;

    for (size_t i = 0; i < N_OPS; i++)
        total += ops[i].weight;
    at = (unsigned)below(total);
    while (at >= ops[op].weight)
        at -= ops[op++].weight;
    return op;
}

static void
pass_time(void)
{
    switch (below(10)) {
    case 0:
        p.now_ms += below(2 * HOUR);
        break;
    case 1:
        p.now_ms += one_in(3) ? below(2 * DAY) : 0;
        break;
    case 2:
    case 3:
        p.now_ms += below(2 * MINUTE);
        break;
    case 4:
        p.now_ms += below(10 * MINUTE);
        break;
    default:
        p.now_ms += below(200);
        break;
    }
    if (one_in(40))
        p.now_ms += below(34 * DAY); /* far rows come near */
    if (p.now_ms > p.base_ms + 50 * DAY)
        p.now_ms = p.base_ms + 50 * DAY;
}

/* Now and then by a clock that is slow: what it takes for now may lie behind
 * the marks. */
static void
step(const char *name, op_fn *fn)
{
    int64_t slow_ms = one_in(5) ? below(3 * MINUTE) : 0;

    p.now_ms -= slow_ms;
    toc_buf_printf(&p.story, "  %u %s at +%lld\n", p.step, name,
                   (long long)(p.now_ms - p.base_ms));
    toc_buf_reset(&p.out[0]);
    toc_buf_reset(&p.out[1]);
    fn();
    compare_answers();
    if (p.step % p.look_each == p.look_each - 1)
        compare_stored();
    toc_arena_reset(&p.arena);
    p.now_ms += slow_ms;
    p.step++;
}

static void
sequence(uint64_t seed, bool with_days)
{
    begin_sequence(seed, with_days);
    n_sent = n_last_finish = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        size_t op = pick_op();
        pass_time();
        step(ops[op].name, ops[op].fn);
        if (with_days && i % 12 == 11)
            step("days", op_days);
    }
    compare_stored();
}

static uint64_t
number_from(const char *name, uint64_t otherwise)
{
    const char *text = toc_env(name);
    int64_t value;

    if (text == NULL)
        return otherwise;
    ck_assert(toc_parse_i64(toc_str_of(text), 0, INT64_MAX, &value));
    return (uint64_t)value;
}

START_TEST(random_sequences)
{
    uint64_t n = number_from("TOC_CONTRACT_SEEDS", SEEDS_DEFAULT);
    uint64_t one = number_from("TOC_CONTRACT_SEED", 0);

    p.look_each = one != 0 ? 1 : 8;
    if (one != 0) {
        sequence(one, one % DAYS_EACH == 0);
        return;
    }
    for (uint64_t seed = 1; seed <= n; seed++) {
        sequence(seed, seed % DAYS_EACH == 0);
        if (seed % 100 == 0)
            fprintf(stderr, "%llu sequences\n", (unsigned long long)seed);
    }
}
END_TEST

/* ---- many at once
 * --------------------------------------------------------------- */

#define MANY 1200 /* more than the real one writes in a transaction, twice */

/* Half of them of one business id, a third far away. */
static void
submit_many(struct toc_task tasks[MANY], char names[MANY][16])
{
    EACH_SIDE(side)
    {
        TOC_AUTO_FREE struct toc_submit *items =
            TOC_NEW_ARRAY(struct toc_submit, MANY);
        TOC_AUTO_FREE struct toc_submit **list =
            TOC_NEW_ARRAY(struct toc_submit *, MANY);
        for (int i = 0; i < MANY; i++) {
            struct toc_task_id id = tasks[i].id;
            toc_format(names[i], 16, "%d", i);
            tasks[i] = make_task("order", i % 2 == 0 ? "a" : names[i], names[i],
                                 p.base_ms + i);
            if (i % 3 == 0)
                tasks[i].due_ms += 40 * DAY;
            if (side == 1)
                tasks[i].id = id;
            tasks[i].created_ms = p.now_ms;
            items[i] = make_submit(&tasks[i], 1);
            list[i] = &items[i];
        }
        OK(toc_store_submit(p.store[side], list, MANY, p.now_ms, err));
    }
}

static void
claim_many(const struct toc_task tasks[MANY])
{
    struct toc_claim_lock lock = {
        .token = 7, .lock_until_ms = p.now_ms + SECOND, .now_ms = p.now_ms};

    EACH_SIDE(side)
    {
        TOC_AUTO_FREE struct toc_claim *claims =
            TOC_NEW_ARRAY(struct toc_claim, MANY);
        for (size_t i = 0; i < MANY; i++)
            claims[i].ref = toc_task_ref_of(&tasks[i]);
        OK(toc_store_claim(p.store[side], claims, MANY, &lock, &p.arena, err));
        for (size_t i = 0; i < MANY; i++)
            add_number(&p.out[side], claims[i].result);
    }
}

static void
finish_many(const struct toc_task tasks[MANY])
{
    EACH_SIDE(side)
    {
        TOC_AUTO_FREE struct toc_finish *items =
            TOC_NEW_ARRAY(struct toc_finish, MANY);
        for (size_t i = 0; i < MANY; i++)
            items[i] =
                (struct toc_finish){.ref = toc_task_ref_of(&tasks[i]),
                                    .token = 7,
                                    .kind = (enum toc_finish_kind)(i % 5),
                                    .attempt = 1,
                                    .due_ms = p.now_ms + (int64_t)i,
                                    .ended_ms = p.now_ms};
        OK(toc_store_finish(p.store[side], items, MANY, p.now_ms, err));
        for (size_t i = 0; i < MANY; i++) {
            add_number(&p.out[side], items[i].result);
            add_ref(&p.out[side], &items[i].moved);
        }
    }
}

static void
tidy_many(void)
{
    struct toc_str biz_type = TOC_STR("order"), biz_id = TOC_STR("a");
    uint16_t shard = toc_slice_shard(make_task("order", "a", "", 0).slice);
    uint16_t slice = toc_slice_of(shard, TOC_PRIORITY_NORMAL);

    EACH_SIDE(side)
    {
        struct toc_store *store = p.store[side];
        struct toc_task *tasks;
        size_t n, freed, moved;
        OK(toc_store_move_far(store, &slice, 1, p.base_ms + 39 * DAY + 1000,
                              120, &moved, err));
        OK(toc_store_move_far(store, &slice, 1, p.base_ms + 39 * DAY + 1000,
                              150, &n, err));
        add_number(&p.out[side], moved);
        add_number(&p.out[side], n);
        OK(toc_store_record_stragglers(store, shard, p.now_ms, 2000, &n, err));
        add_number(&p.out[side], n);
        OK(toc_store_advance_low(store, &shard, 1, p.now_ms, 0, err));
        OK(toc_store_gc_keys(store, shard, p.now_ms + 2, 0, 700, &freed, err));
        add_number(&p.out[side], freed);
        OK(toc_store_list_biz(store, biz_type, biz_id, &p.arena, &tasks, &n,
                              err));
        add_tasks(&p.out[side], tasks, n);
    }
}

/* Work for several transactions is done in the same portions. */
START_TEST(many_at_once)
{
    static struct toc_task tasks[MANY];
    static char names[MANY][16];

    begin_sequence(1, false);
    submit_many(tasks, names);
    compare_stored();
    p.now_ms += MINUTE;
    claim_many(tasks);
    compare_answers();
    compare_stored();
    finish_many(tasks);
    compare_answers();
    compare_stored();
    p.now_ms += MINUTE;
    tidy_many();
    compare_answers();
    compare_stored();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("store_compare");
    TCase *tcase = tcase_create("store_compare");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, pair_setup, pair_teardown);
    tcase_set_timeout(tcase, 3600);
    tcase_add_test(tcase, random_sequences);
    tcase_add_test(tcase, many_at_once);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
