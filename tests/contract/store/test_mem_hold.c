/*
 * Goal: the orders of two connections that lose or double tasks when a
 * transaction is written carelessly. Method: the first one is held between its
 * last statement and its commit, the second comes; then the first commits, or
 * rolls back, and the second comes again. Each test says which mistake it looks
 * for; on a real server the same is in tests/integration/store/test_races.c.
 */
#include "common/base/cleanup.h"
#include "common/base/rng.h"
#include "tests/contract/store/suite_mem.h"

static void
hold(void)
{
    toc_store_mem_hold_next(mem, TOC_STORE_MEM_FROZEN);
}

static void
release(bool commit)
{
    ck_assert(toc_store_mem_release(mem, toc_store_mem_last_held(mem), commit));
}

/* Waiting for a lock ends so. */
#define WAITS(call) ck_assert_int_eq((call), TOC_UNAVAILABLE)

static enum toc_status
try_advance(uint16_t slice)
{
    uint16_t shard = toc_slice_shard(slice);

    return toc_store_advance_low(su.store, &shard, 1, su.now, 0, NULL);
}

static enum toc_status
try_submit(struct toc_submit *item)
{
    return toc_store_submit(su.store, &item, 1, su.now, NULL);
}

static enum toc_status
try_finish(struct toc_finish *item)
{
    return toc_store_finish(su.store, item, 1, su.now, NULL);
}

static enum toc_status
try_claim(const struct toc_task *task, uint64_t token,
          enum toc_claim_result *ret_result)
{
    struct toc_claim claim = {.ref = toc_task_ref_of(task)};
    struct toc_claim_lock lock = {
        .token = token, .lock_until_ms = su.now + 1000, .now_ms = su.now};
    enum toc_status st =
        toc_store_claim(su.store, &claim, 1, &lock, &su.arena, NULL);

    *ret_result = claim.result;
    return st;
}

static enum toc_status
try_cancel(struct toc_task_id id, enum toc_command_result *ret_result)
{
    struct toc_command command = {
        .kind = TOC_COMMAND_CANCEL, .find = su_by_id(id), .now_ms = su.now};
    enum toc_status st = toc_store_command(su.store, &command, &su.arena, NULL);

    *ret_result = command.result;
    return st;
}

static void
check_stored(void)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf broken = {0};

    ck_assert_msg(toc_store_mem_check(mem, &broken), "%s", broken.data);
}

/* Mistake: a submit inserts, is frozen, commits later; the mark moved on
 * meanwhile, and nobody looks there again. */
START_TEST(mark_waits_for_an_open_submit)
{
    for (int commit = 0; commit < 2; commit++) {
        const char *biz = commit ? "yes" : "no";
        struct toc_task task = su_task(biz, "", su.now - 2000);
        struct toc_submit item = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);
        int64_t before_ms = su_shard(task.slice).low_ms;
        toc_clock_sim_advance_ns(&clock_sim, 5000 * TOC_NS_PER_MS);
        hold();
        ck_assert_int_eq(try_submit(&item), TOC_OK);
        su.now += 5000;
        WAITS(try_advance(task.slice));
        ck_assert_int_eq(su_shard(task.slice).low_ms, before_ms);
        release(commit);
        ck_assert_int_eq(try_advance(task.slice), TOC_OK);
        ck_assert_int_eq(su_shard(task.slice).low_ms,
                         commit ? task.slot_ms : su.now);
        check_stored();
    }
}
END_TEST

/* Mistake: a submit that met the mark's lock goes on with the mark as it was.
 */
START_TEST(submit_waits_for_the_mark)
{
    struct toc_task task = su_task("a", "", su.now - 10);
    struct toc_submit item = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);

    hold();
    ck_assert_int_eq(try_advance(task.slice), TOC_OK);
    WAITS(try_submit(&item));
    release(true);
    ck_assert_int_eq(try_submit(&item), TOC_OK);
    ck_assert_int_eq(item.result, TOC_SUBMIT_CREATED);
    ck_assert_int_eq(task.slot_ms, su.now + 1);
    su_check_key(&task);
}
END_TEST

/* Mistake: a retry's slot is its due time, computed before a slow write-back;
 * the mark has passed it meanwhile. */
START_TEST(mark_waits_for_an_open_retry)
{
    struct toc_task task = su_executing("a", 3, 0, su.now + 30000), got;
    struct toc_finish item = su_finish(&task, 3, TOC_FINISH_RETRY);

    ck_assert_uint_eq(su_record(task.slice, su.now + 1, 10), 0);
    item.due_ms = su.now + 10;
    hold();
    ck_assert_int_eq(try_finish(&item), TOC_OK);
    toc_clock_sim_advance_ns(&clock_sim, 60000 * TOC_NS_PER_MS);
    su.now += 60000;
    WAITS(try_advance(task.slice));
    release(true);
    ck_assert_int_eq(try_advance(task.slice), TOC_OK);
    got = su_get(task.id);
    ck_assert_int_eq(su_shard(task.slice).low_ms, got.slot_ms);
    check_stored();
}
END_TEST

/* Mistake: a key that another transaction has inserted and not committed is
 * taken for free, or for taken. */
START_TEST(key_in_the_balance)
{
    for (int commit = 0; commit < 2; commit++) {
        const char *biz = commit ? "yes" : "no";
        struct toc_task first = su_task(biz, "", su.now + 60000);
        struct toc_task second = su_task(biz, "", su.now + 90000), got;
        struct toc_submit item = su_submit(&first, 1, TOC_ON_CONFLICT_REJECT);
        struct toc_submit other = su_submit(&second, 2, TOC_ON_CONFLICT_REJECT);
        hold();
        ck_assert_int_eq(try_submit(&item), TOC_OK);
        ck_assert_int_eq(su_looks(su_by_key(&first), &got), TOC_NOT_FOUND);
        WAITS(try_submit(&other));
        release(commit);
        ck_assert_int_eq(try_submit(&other), TOC_OK);
        ck_assert_int_eq(other.result,
                         commit ? TOC_SUBMIT_OTHER : TOC_SUBMIT_CREATED);
        su_check_key(commit ? &first : &second);
    }
}
END_TEST

/* Mistake: COMMIT sent, connection lost, a plain read says absent: it commits
 * afterwards. The submit with the same id finds its own work. */
START_TEST(unknown_commit_of_a_submit)
{
    for (int commit = 0; commit < 2; commit++) {
        const char *biz = commit ? "yes" : "no";
        struct toc_task task = su_task(biz, "", su.now + 60000), got;
        struct toc_submit item = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);
        struct toc_task_id id;
        toc_store_mem_hold_next(mem, TOC_STORE_MEM_UNKNOWN);
        ck_assert_int_eq(try_submit(&item), TOC_UNAVAILABLE);
        id = task.id;
        ck_assert_int_eq(su_looks(su_by_id(id), &got), TOC_NOT_FOUND);
        WAITS(try_submit(&item));
        release(commit);
        ck_assert_int_eq(try_submit(&item), TOC_OK);
        ck_assert_int_eq(item.result, TOC_SUBMIT_CREATED);
        ck_assert_int_eq(toc_task_id_cmp(task.id, id), 0);
        ck_assert_uint_eq(su_get(id).version, 1);
    }
}
END_TEST

START_TEST(unknown_commit_of_a_result)
{
    for (int commit = 0; commit < 2; commit++) {
        struct toc_task task =
            su_executing(commit ? "yes" : "no", 3, 0, su.now + 30000);
        struct toc_finish item = su_finish(&task, 3, TOC_FINISH_RETRY);
        struct toc_log_entry *log;
        toc_store_mem_hold_next(mem, TOC_STORE_MEM_UNKNOWN);
        ck_assert_int_eq(try_finish(&item), TOC_UNAVAILABLE);
        WAITS(try_finish(&item));
        release(commit);
        ck_assert_int_eq(try_finish(&item), TOC_OK);
        ck_assert_int_eq(item.result, TOC_FINISH_OK);
        ck_assert_uint_eq(item.moved.version, 2);
        ck_assert_uint_eq(su_timeline(task.id, &log), 1);
    }
}
END_TEST

/* Mistake: two claims both win. */
START_TEST(claim_waits_for_a_claim)
{
    for (int commit = 0; commit < 2; commit++) {
        struct toc_task task = su_stored(commit ? "yes" : "no", su.now - 10);
        enum toc_claim_result result;
        hold();
        ck_assert_int_eq(try_claim(&task, 1, &result), TOC_OK);
        ck_assert_int_eq(su_get(task.id).state, TOC_STATE_INIT);
        WAITS(try_claim(&task, 2, &result));
        release(commit);
        ck_assert_int_eq(try_claim(&task, 2, &result), TOC_OK);
        ck_assert_int_eq(result, commit ? TOC_CLAIM_TAKEN : TOC_CLAIM_WON);
    }
}
END_TEST

/* Mistake: a command finds the place, a retry moves the row, the command's
 * update hits nothing, and that is taken for "too late". */
START_TEST(command_on_a_row_that_moves)
{
    struct toc_task task = su_executing("a", 3, 0, su.now + 30000), got;
    struct toc_finish item = su_finish(&task, 3, TOC_FINISH_RETRY);
    enum toc_command_result result;

    hold();
    ck_assert_int_eq(try_finish(&item), TOC_OK);
    WAITS(try_cancel(task.id, &result));
    release(true);
    ck_assert_int_eq(try_cancel(task.id, &result), TOC_OK);
    ck_assert_int_eq(result, TOC_COMMAND_APPLIED);
    got = su_get(task.id);
    ck_assert_int_eq(got.state, TOC_STATE_CANCELLED);
    ck_assert_int_eq(got.slot_ms, item.moved.slot_ms);
    su_check_key(&got);
}
END_TEST

/* Mistake: a result is written over a cancel that was noted in between. */
START_TEST(result_waits_for_a_cancel)
{
    struct toc_task task = su_executing("a", 3, 0, su.now + 30000);
    struct toc_finish item = su_finish(&task, 3, TOC_FINISH_RETRY);
    enum toc_command_result result;

    hold();
    ck_assert_int_eq(try_cancel(task.id, &result), TOC_OK);
    ck_assert_int_eq(result, TOC_COMMAND_TOO_LATE);
    WAITS(try_finish(&item));
    release(true);
    ck_assert_int_eq(try_finish(&item), TOC_OK);
    ck_assert_int_eq(item.result, TOC_FINISH_CANCELLED);
}
END_TEST

/* Mistake: a lock that is being renewed is taken away. */
START_TEST(freeing_waits_for_a_renewal)
{
    for (int commit = 0; commit < 2; commit++) {
        struct toc_task task =
            su_executing(commit ? "yes" : "no", 3, 0, su.now - 5);
        struct toc_task_ref ref = toc_task_ref_of(&task);
        uint64_t token = 3;
        size_t n;
        hold();
        SU_OK(toc_store_renew(su.store, &ref, &token, 1, su.now + 30000, &n,
                              reterr));
        WAITS(toc_store_free_expired(su.store, &task, 1, su.now, &n, NULL));
        release(commit);
        SU_OK(toc_store_free_expired(su.store, &task, 1, su.now, &n, reterr));
        ck_assert_uint_eq(n, commit ? 0 : 1);
    }
}
END_TEST

/* Mistake: the mark reads rows with locks, so that it waits for every claim. */
START_TEST(mark_does_not_wait_for_row_locks)
{
    struct toc_task task = su_stored("a", su.now - 10);
    enum toc_claim_result result;

    hold();
    ck_assert_int_eq(try_claim(&task, 1, &result), TOC_OK);
    ck_assert_int_eq(try_advance(task.slice), TOC_OK);
    release(false);
}
END_TEST

/* Whoever has written and not committed keeps the tables from being changed. */
START_TEST(days_wait_for_everybody)
{
    struct toc_task task = su_stored("a", su.now + 1000);
    enum toc_command_result result;

    hold();
    ck_assert_int_eq(try_cancel(task.id, &result), TOC_OK);
    SU_OK(toc_store_make_days(su.store, su.now, reterr)); /* there they are */
    WAITS(toc_store_make_days(su.store, su.now + SU_DAY, NULL));
    release(true);
    SU_OK(toc_store_make_days(su.store, su.now + SU_DAY, reterr));
    ck_assert(!toc_store_mem_release(mem, toc_store_mem_last_held(mem), true));
}
END_TEST

/* ---- at random
 * ------------------------------------------------------------------ */

#define BIZ 6
#define HELD_MAX 4

static struct toc_rng rng;
static struct toc_task known[BIZ]; /* as last seen */

static int64_t
below(int64_t bound)
{
    return (int64_t)toc_rng_below(&rng, (uint64_t)bound);
}

static void
random_submit(int i)
{
    char biz[] = {(char)('a' + i), '\0'};
    struct toc_task task = su_task(biz, "", su.now - 500 + below(2000));
    struct toc_submit item =
        su_submit(&task, (uint8_t)below(3), (enum toc_on_conflict)below(3));

    item.key_window_ms = below(2) * 1000;
    (void)!try_submit(&item);
}

static void
random_finish(int i)
{
    struct toc_finish item =
        su_finish(&known[i], known[i].lock_token + (below(8) == 0 ? 1u : 0u),
                  (enum toc_finish_kind)below(6));

    item.due_ms = su.now + below(500) - 100;
    if (item.token != 0)
        (void)!try_finish(&item);
}

static void
random_command(int i)
{
    struct toc_command command = {.kind = (enum toc_command_kind)below(5),
                                  .find = su_by_id(known[i].id),
                                  .due_ms = su.now + below(3000) - 500,
                                  .now_ms = su.now};

    (void)!toc_store_command(su.store, &command, &su.arena, NULL);
}

static void
random_sweep(int i)
{
    uint16_t shard = toc_slice_shard(known[i].slice);
    enum toc_redrive_result redriven;
    size_t n;

    switch (below(5)) {
    case 0:
        (void)!toc_store_free_expired(su.store, &known[i], 1, su.now, &n, NULL);
        break;
    case 1:
        (void)!toc_store_record_stragglers(su.store, shard, su.now - 500, 10,
                                           &n, NULL);
        break;
    case 2:
        (void)!toc_store_redrive(su.store, known[i].id, su.now,
                                 TOC_STR("tester"), TOC_STR("again"), &redriven,
                                 NULL);
        break;
    case 3:
        (void)!toc_store_gc_keys(su.store, shard, su.now, 100, 5, &n, NULL);
        break;
    default:
        (void)!toc_store_advance_low(su.store, &shard, 1, su.now, below(500),
                                     NULL);
        break;
    }
}

static void
random_step(void)
{
    int i = (int)below(BIZ);
    enum toc_claim_result result;

    if (toc_store_mem_n_held(mem) < HELD_MAX && below(3) == 0)
        toc_store_mem_hold_next(mem, below(2) ? TOC_STORE_MEM_UNKNOWN
                                              : TOC_STORE_MEM_FROZEN);
    switch (known[i].version == 0 ? 0 : below(6)) {
    case 0:
        random_submit(i);
        break;
    case 1:
        (void)!try_claim(&known[i], (uint64_t)below(4) + 1, &result);
        break;
    case 2:
        random_finish(i);
        break;
    case 3:
        random_command(i);
        break;
    default:
        random_sweep(i);
        break;
    }
    toc_store_mem_hold_none(mem);
    if (below(4) == 0)
        (void)toc_store_mem_release(
            mem, toc_store_mem_last_held(mem) - (uint64_t)below(HELD_MAX),
            below(4) != 0);
}

/* Whatever is found by key is the row that has the id, and unfinished rows are
 * in front of the mark or recorded. */
static void
check_all(void)
{
    check_stored();
    for (int i = 0; i < BIZ; i++) {
        char biz[] = {(char)('a' + i), '\0'};
        struct toc_task task = su_task(biz, "", su.now), same;
        if (su_looks(su_by_key(&task), &known[i]) != TOC_OK)
            continue;
        same = su_get(known[i].id);
        ck_assert_int_eq(same.slot_ms, known[i].slot_ms);
        ck_assert_uint_eq(same.version, known[i].version);
    }
    toc_arena_reset(&su.arena);
}

static void
random_run(uint64_t seed)
{
    toc_rng_seed(&rng, seed);
    memset(known, 0, sizeof known);
    for (int step = 0; step < 200; step++) {
        int64_t ms = below(300);
        toc_clock_sim_advance_ns(&clock_sim, ms * TOC_NS_PER_MS);
        su.now += ms;
        random_step();
        check_all();
    }
    while (toc_store_mem_n_held(mem) > 0)
        for (uint64_t n = toc_store_mem_last_held(mem); n > 0; n--)
            (void)toc_store_mem_release(mem, n, n % 2 == 0);
    check_all();
}

/* Goal: no order of held and released transactions loses a row. Each run twice:
 * the same calls leave the same bytes. */
START_TEST(random_schedules)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        TOC_CLEANUP(toc_buf_done) struct toc_buf first = {0};
        TOC_CLEANUP(toc_buf_done) struct toc_buf again = {0};
        random_run(seed);
        toc_store_mem_dump(mem, &first);
        close_mem();
        open_mem(1);
        random_run(seed);
        toc_store_mem_dump(mem, &again);
        ck_assert_str_eq(first.data, again.data);
        close_mem();
        open_mem(1);
    }
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {mark_waits_for_an_open_submit,
                                    submit_waits_for_the_mark,
                                    mark_waits_for_an_open_retry,
                                    key_in_the_balance,
                                    unknown_commit_of_a_submit,
                                    unknown_commit_of_a_result,
                                    claim_waits_for_a_claim,
                                    command_on_a_row_that_moves,
                                    result_waits_for_a_cancel,
                                    freeing_waits_for_a_renewal,
                                    mark_does_not_wait_for_row_locks,
                                    days_wait_for_everybody,
                                    random_schedules};

    return run_mem("store_mem_hold", tests, sizeof tests / sizeof tests[0]);
}
