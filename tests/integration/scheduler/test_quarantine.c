/*
 * Goal: a shard or a day that the database cannot read stops nobody else; its
 * tasks fire once it can be read, each once. A row that makes no sense is left
 * out of everything that reads many, and fires when it is mended.
 * Method: loader, sweep and publisher on a real database; the bus is a list,
 * and what is hinted is claimed and ended in the database. A store in front of
 * the real one refuses what touches rows of the shards and slots that are
 * broken, after it has told of the others, as the server does. What the server
 * itself says at a broken page is raised by a function behind a view.
 */
#include "common/clock/os/clock_os.h"
#include "scheduler/loader.h"
#include "scheduler/publisher.h"
#include "scheduler/sweep.h"

#include "tests/integration/store/fixture.h"
#include "tests/unit/scheduler/fakes.h"

#define TASKS 60
#define HINTS_MAX 4096
#define PATIENCE_MS 120000

static struct qx {
    struct toc_store store; /* the real one, with some operations refused */
    bool broken[TOC_SHARDS];
    int64_t from_ms, to_ms; /* [from, to) */
    struct toc_bell bell;
    struct fake_bus *bus;
    struct fake_coord coord;
    struct sched_shards shards;
    struct sched_memory memory;
    struct sched_marks marks;
    struct sched_publisher publisher;
    struct sched_loader loader;
    struct sched_sweep sweep;
    struct sched_skew skew;
    int64_t loader_ns, sweep_ns, publisher_ns;
    struct toc_task_ref hints[HINTS_MAX]; /* not decided yet */
    size_t n_hints;
    uint64_t token;
    struct toc_task tasks[TASKS];
    unsigned calls[TASKS];
    size_t n_tasks;
} qx;

/* ---- a store that cannot read everything --------------------------------- */

static struct toc_store_ops ops;

/* Has the shard rows of [from, to) that are broken? */
static bool
meets(uint16_t shard, int64_t from_ms, int64_t to_ms)
{
    if (!qx.broken[shard])
        return false;
    if (from_ms < qx.from_ms)
        from_ms = qx.from_ms;
    if (to_ms > qx.to_ms)
        to_ms = qx.to_ms;
    return raw("SELECT COUNT(*) FROM task_info WHERE slice BETWEEN %u AND %u "
               "AND slot_ms>=%lld AND slot_ms<%lld",
               shard * TOC_SLICES_PER_SHARD,
               shard * TOC_SLICES_PER_SHARD + TOC_PRIORITIES,
               (long long)from_ms, (long long)to_ms) > 0;
}

static enum toc_status
refuse(enum toc_status st, bool met, struct toc_error *reterr)
{
    return st == TOC_OK && met
               ? toc_error_set(reterr, TOC_DATA_LOSS, "mysql", 1034,
                               "Index for table 'task_info' is corrupt")
               : st;
}

/* Passes on what may be read. */
struct passing {
    toc_store_task_fn *fn;
    void *arg;
    bool met;
};

static void
pass_row(void *arg, const struct toc_task *task)
{
    struct passing *p = arg;

    if (qx.broken[toc_slice_shard(task->slice)] &&
        task->slot_ms >= qx.from_ms && task->slot_ms < qx.to_ms)
        p->met = true;
    else
        p->fn(p->arg, task);
}

static enum toc_status
load(void *self, const uint16_t *slices, size_t n,
     const struct toc_slot_span *spans, size_t n_spans, toc_store_task_fn *fn,
     void *arg, struct toc_error *reterr)
{
    struct passing p = {fn, arg, false};
    enum toc_status st = fx.store->ops->load(self, slices, n, spans, n_spans,
                                             pass_row, &p, reterr);

    return refuse(st, p.met, reterr);
}

static enum toc_status
scan(void *self, const uint16_t *slices, size_t n, int64_t from_ms,
     int64_t to_ms, toc_store_task_fn *fn, void *arg, struct toc_error *reterr)
{
    struct passing p = {fn, arg, false};
    enum toc_status st = fx.store->ops->scan(self, slices, n, from_ms, to_ms,
                                             pass_row, &p, reterr);

    return refuse(st, p.met, reterr);
}

static enum toc_status
scan_stragglers(void *self, const uint16_t *slices, size_t n,
                toc_store_task_fn *fn, void *arg, struct toc_error *reterr)
{
    struct passing p = {fn, arg, false};
    enum toc_status st =
        fx.store->ops->scan_stragglers(self, slices, n, pass_row, &p, reterr);

    return refuse(st, p.met, reterr);
}

static int64_t
low_of(uint16_t shard)
{
    return raw("SELECT low_ms FROM shard_owner WHERE shard_id=%u", shard);
}

static enum toc_status
record(void *self, uint16_t shard, int64_t before_ms, size_t max,
       size_t *ret_waiting, struct toc_error *reterr)
{
    if (qx.broken[shard] && meets(shard, low_of(shard), before_ms))
        return refuse(TOC_OK, true, reterr);
    return fx.store->ops->record_stragglers(self, shard, before_ms, max,
                                            ret_waiting, reterr);
}

static enum toc_status
advance(void *self, const uint16_t *shards, size_t n, int64_t at_ms,
        int64_t behind_ms, struct toc_error *reterr)
{
    for (size_t i = 0; i < n; i++)
        if (qx.broken[shards[i]] &&
            meets(shards[i], low_of(shards[i]), at_ms - behind_ms))
            return refuse(TOC_OK, true, reterr);
    return fx.store->ops->advance_low(self, shards, n, at_ms, behind_ms,
                                      reterr);
}

static void
make_breakable(void)
{
    ops = *fx.store->ops;
    ops.load = load;
    ops.scan = scan;
    ops.scan_stragglers = scan_stragglers;
    ops.record_stragglers = record;
    ops.advance_low = advance;
    qx.store = (struct toc_store){.ops = &ops, .self = fx.store->self};
}

/* ---- the scheduler ------------------------------------------------------ */

static void
own_all(void)
{
    fake_coord_init(&qx.coord);
    qx.coord.deadline_ns = INT64_MAX;
    sched_shards_set_coord(&qx.shards, &qx.coord.port);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        sched_shards_take(&qx.shards, i);
}

static void
start_sweep(void)
{
    const struct toc_clock *clk = toc_clock_os();

    qx.skew.clk = clk;
    qx.skew.store = &qx.store;
    (void)sched_skew_step(&qx.skew);
    sched_sweep_init(&qx.sweep,
                     &(struct sched_sweep_options){.clk = clk,
                                                   .store = &qx.store,
                                                   .bus = &qx.bus->port,
                                                   .shards = &qx.shards,
                                                   .memory = &qx.memory,
                                                   .marks = &qx.marks,
                                                   .skew = &qx.skew,
                                                   .loader = &qx.loader,
                                                   .publisher = &qx.publisher,
                                                   .topics = fake_topics,
                                                   .group = "group",
                                                   .period_ms = 1000});
}

static void
start(void)
{
    const struct toc_clock *clk = toc_clock_os();

    setup();
    memset(&qx, 0, sizeof qx);
    make_breakable();
    toc_bell_init(&qx.bell);
    qx.bus = fake_bus_new(sched_publisher_reported);
    sched_shards_init(&qx.shards, clk);
    sched_memory_init(&qx.memory,
                      &(struct sched_memory_options){.shards = &qx.shards,
                                                     .bell = &qx.bell,
                                                     .entries_max = 10000,
                                                     .now_ms = now_ms()});
    sched_marks_init(&qx.marks, FAKE_PARTITIONS, 1000000);
    sched_publisher_init(
        &qx.publisher, &(struct sched_publisher_options){.clk = clk,
                                                         .bus = &qx.bus->port,
                                                         .shards = &qx.shards,
                                                         .memory = &qx.memory,
                                                         .marks = &qx.marks,
                                                         .topics = fake_topics,
                                                         .node_id = 7,
                                                         .lead_ms = 30});
    sched_loader_init(&qx.loader,
                      &(struct sched_loader_options){.clk = clk,
                                                     .store = &qx.store,
                                                     .shards = &qx.shards,
                                                     .memory = &qx.memory});
    fx.store->bad_row = qx.store.bad_row; /* the real one tells */
    fx.store->bad_row_arg = qx.store.bad_row_arg;
    own_all();
    start_sweep();
}

static void
stop(void)
{
    (void)toc_bus_poll(&qx.bus->port, 0);
    sched_sweep_done(&qx.sweep);
    sched_publisher_done(&qx.publisher);
    sched_marks_done(&qx.marks);
    sched_memory_done(&qx.memory);
    sched_shards_done(&qx.shards);
    fake_bus_free(qx.bus);
    toc_bell_done(&qx.bell);
    teardown();
}

/* ---- who takes the hints --------------------------------------------------
 */

static void
take_hints(void)
{
    struct toc_arena arena = {0};

    (void)toc_bus_poll(&qx.bus->port, 0);
    for (size_t k = 0; k < qx.bus->n; k++) {
        struct toc_str bytes = {qx.bus->messages[k].bytes,
                                qx.bus->messages[k].len};
        struct toc_hint *hints;
        size_t n = 0;
        OK(toc_hint_decode(bytes, &arena, &hints, &n, err));
        for (size_t i = 0; i < n; i++) {
            ck_assert_uint_lt(qx.n_hints, HINTS_MAX);
            qx.hints[qx.n_hints++] = toc_task_ref_of(&hints[i].task);
        }
        toc_free(qx.bus->messages[k].bytes);
    }
    qx.bus->n = 0;
    toc_arena_done(&arena);
}

static void
call(struct toc_task_id id, uint64_t token)
{
    for (size_t i = 0; i < qx.n_tasks; i++)
        if (toc_task_id_cmp(qx.tasks[i].id, id) == 0) {
            struct toc_task task = get_id(id);
            struct toc_finish item = make_finish(&task, token, TOC_FINISH_DONE);
            qx.calls[i]++;
            OK(toc_store_finish(fx.store, &item, 1, now_ms(), err));
        }
}

/* Each hint is decided as an executor does it; what is early stays. */
static void
decide_hints(void)
{
    size_t kept = 0;

    take_hints();
    for (size_t i = 0; i < qx.n_hints; i++) {
        struct toc_claim claim = {.ref = qx.hints[i]};
        struct toc_claim_lock lock = lock_of(++qx.token, now_ms() + 60000);
        OK(toc_store_claim(fx.store, &claim, 1, &lock, &fx.arena, err));
        if (claim.result == TOC_CLAIM_EARLY)
            qx.hints[kept++] = qx.hints[i];
        else if (claim.result == TOC_CLAIM_WON)
            call(claim.ref.id, qx.token);
    }
    qx.n_hints = kept;
    if (kept == 0)
        fake_bus_decide_all(qx.bus);
    toc_arena_reset(&fx.arena);
}

static void
turn(void)
{
    int64_t now_ns = toc_clock_mono(toc_clock_os()).ns;

    if (now_ns >= qx.loader_ns)
        qx.loader_ns = sched_loader_step(&qx.loader);
    if (now_ns >= qx.sweep_ns)
        qx.sweep_ns = sched_sweep_step(&qx.sweep);
    decide_hints();
    if (now_ns >= qx.publisher_ns)
        qx.publisher_ns = sched_publisher_step(&qx.publisher);
    if (qx.loader_ns > now_ns && qx.sweep_ns > now_ns)
        if (toc_bell_wait(&qx.bell, now_ns + 5 * TOC_NS_PER_MS))
            qx.publisher_ns = 0;
}

/* ---- tasks and what is broken ---------------------------------------------
 */

static void
add_tasks(const char *name, size_t n, int64_t due_ms, int64_t submitted_ms)
{
    for (size_t i = 0; i < n; i++) {
        char id[32];
        struct toc_task *task = &qx.tasks[qx.n_tasks];
        struct toc_submit item;
        struct toc_submit *items[] = {&item};
        toc_format(id, sizeof id, "%s-%zu", name, i);
        *task = make_task("order", "x", "", due_ms);
        task->biz_id = toc_arena_str(&fx.arena, toc_str_of(id));
        task->key_hash =
            toc_key_hash_of(task->biz_type, task->biz_id, task->name);
        task->slice =
            toc_slice_of(toc_key_shard(task->key_hash), TOC_PRIORITY_NORMAL);
        item = make_submit(task, 1);
        OK(toc_store_submit(fx.store, items, 1, submitted_ms, err));
        ck_assert_int_eq(item.result, TOC_SUBMIT_CREATED);
        qx.n_tasks++;
    }
}

static void
break_slots(uint16_t shard, int64_t from_ms, int64_t to_ms)
{
    qx.broken[shard] = true;
    qx.from_ms = from_ms;
    qx.to_ms = to_ms;
}

static void
mend_all(void)
{
    memset(qx.broken, 0, sizeof qx.broken);
}

static uint16_t
shard_of(size_t i)
{
    return toc_slice_shard(qx.tasks[i].slice);
}

static bool
all_called(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (qx.calls[i] == 0)
            return false;
    return true;
}

#define EVENTUALLY(condition)                                             \
    do {                                                                  \
        int64_t until_ms_ = now_ms() + PATIENCE_MS;                       \
        while (!(condition)) {                                            \
            ck_assert_msg(now_ms() < until_ms_, "never: %s", #condition); \
            turn();                                                       \
        }                                                                 \
    } while (0)

static bool
others_called(uint16_t shard)
{
    for (size_t i = 0; i < qx.n_tasks; i++)
        if (shard_of(i) != shard && qx.calls[i] == 0)
            return false;
    return true;
}

START_TEST(a_broken_shard_waits_alone)
{
    uint16_t shard;
    int64_t low_ms;

    add_tasks("o", TASKS, now_ms() + 4000, now_ms());
    shard = shard_of(0);
    break_slots(shard, 0, INT64_MAX);
    low_ms = low_of(shard);
    EVENTUALLY(others_called(shard));
    for (size_t i = 0; i < TASKS; i++)
        ck_assert_uint_eq(qx.calls[i], shard_of(i) != shard);
    EVENTUALLY(sched_quarantine_holds(&qx.sweep.held, shard));
    ck_assert(sched_quarantine_holds(&qx.loader.held, shard) ||
              now_ms() > qx.tasks[0].due_ms + 1200);
    ck_assert_uint_eq(sched_quarantine_shards(&qx.sweep.held), 1);
    /* The marks of others rise, its own does not. */
    EVENTUALLY(raw("SELECT COUNT(*) FROM shard_owner WHERE low_ms>%lld",
                   (long long)low_ms) > 0);
    ck_assert_int_eq(low_of(shard), low_ms);
    mend_all();
    EVENTUALLY(all_called(0, TASKS));
    for (size_t i = 0; i < TASKS; i++)
        ck_assert_uint_eq(qx.calls[i], 1);
    EVENTUALLY(sched_quarantine_shards(&qx.sweep.held) == 0 &&
               sched_quarantine_shards(&qx.loader.held) == 0);
}
END_TEST

START_TEST(a_broken_day_waits_alone)
{
    int64_t today_ms = now_ms() / DAY * DAY;
    int64_t past_ms = today_ms - DAY / 2;

    set_low(past_ms - 1000);
    OK(toc_store_make_days(fx.store, past_ms, err));
    add_tasks("old", TASKS / 2, past_ms, past_ms);
    add_tasks("new", TASKS / 2, now_ms() + 4000, now_ms());
    ck_assert_int_eq(qx.tasks[0].slot_ms, past_ms);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        break_slots(i, today_ms - DAY, today_ms);
    EVENTUALLY(all_called(TASKS / 2, TASKS));
    EVENTUALLY(sched_quarantine_shards(&qx.sweep.held) > 0);
    for (size_t i = 0; i < TASKS; i++)
        ck_assert_uint_eq(qx.calls[i], i >= TASKS / 2);
    ck_assert_uint_eq(sched_quarantine_shards(&qx.loader.held), 0);
    mend_all();
    EVENTUALLY(all_called(0, TASKS));
    for (size_t i = 0; i < TASKS; i++)
        ck_assert_uint_eq(qx.calls[i], 1);
    EVENTUALLY(sched_quarantine_shards(&qx.sweep.held) == 0);
}
END_TEST

/* ---- what the server says -------------------------------------------------
 */

static enum toc_status
status_for(unsigned code)
{
    struct toc_find find = find_id(qx.tasks[0].id);
    struct toc_error error = {0};
    struct toc_task task;

    raw("DROP FUNCTION readable");
    raw("CREATE FUNCTION readable(slice INT) RETURNS INT "
        "DETERMINISTIC BEGIN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO=%u,"
        "MESSAGE_TEXT='told to'; RETURN 1; END",
        code);
    return toc_store_get(fx.store, &find, &fx.arena, &task, &error);
}

START_TEST(what_is_broken_is_told_from_what_is_away)
{
    const unsigned broken[] = {1016, 1017, 1024, 1030, 1033, 1034, 1035, 1194,
                               1195, 1296, 1712, 1812, 1814, 1877, 1932};

    add_tasks("o", 1, now_ms() + 60000, now_ms());
    raw("RENAME TABLE task_info TO task_info_all");
    raw("CREATE FUNCTION readable(slice INT) RETURNS INT DETERMINISTIC RETURN "
        "1");
    raw("CREATE ALGORITHM=MERGE VIEW task_info AS SELECT * FROM task_info_all "
        "WHERE readable(slice)");
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        ck_assert_int_eq(status_for(broken[i]), TOC_DATA_LOSS);
    ck_assert_int_eq(status_for(1317), TOC_UNAVAILABLE); /* interrupted */
    ck_assert_int_eq(status_for(1021), TOC_UNAVAILABLE); /* disk full */
}
END_TEST

/* ---- rows that make no sense -----------------------------------------------
 */

static void
set_column(size_t i, const char *column, int value)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf hex = {0};

    toc_buf_hex(&hex, qx.tasks[i].id.b, 16);
    raw("UPDATE task_info SET %s=%d WHERE task_id=x'%s'", column, value,
        hex.data);
}

static size_t
listed(size_t max)
{
    struct toc_task_filter filter = {.biz_type = TOC_STR("order")};
    struct toc_cursor cursor = {0};
    struct toc_task *tasks;
    size_t n, all = 0;

    do {
        OK(toc_store_list_tasks(fx.store, &filter, max, &cursor, &fx.arena,
                                &tasks, &n, err));
        all += n;
    } while (cursor.set);
    return all;
}

START_TEST(a_row_that_makes_no_sense_waits_alone)
{
    struct toc_task *tasks;
    size_t n;

    add_tasks("o", TASKS, now_ms() + 3000, now_ms());
    set_column(7, "result", 99);
    EVENTUALLY(sched_bad_rows_count(&qx.loader.bad_rows) == 1);
    for (size_t max = 1; max <= TASKS; max *= 3)
        ck_assert_uint_eq(listed(max), TASKS - 1);
    OK(toc_store_list_biz(fx.store, qx.tasks[7].biz_type, qx.tasks[7].biz_id,
                          &fx.arena, &tasks, &n, err));
    ck_assert_uint_eq(n, 0);
    EVENTUALLY(all_called(0, 7) && all_called(8, TASKS));
    ck_assert_uint_eq(qx.calls[7], 0);
    ck_assert_uint_eq(sched_bad_rows_count(&qx.loader.bad_rows), 1);
    ck_assert_uint_eq(sched_quarantine_shards(&qx.loader.held), 0);
    set_column(7, "result", 0);
    EVENTUALLY(all_called(0, TASKS));
    for (size_t i = 0; i < TASKS; i++)
        ck_assert_uint_eq(qx.calls[i], 1);
}
END_TEST

START_TEST(far_rows_move_past_one)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf hex = {0};
    int64_t due_ms = now_ms() + 40 * DAY;
    size_t moved = 0;

    add_tasks("far", 3, due_ms, now_ms());
    toc_buf_hex(&hex, qx.tasks[1].id.b, 16);
    raw("UPDATE task_info SET due_ms=due_ms+%lld WHERE task_id=x'%s'",
        (long long)(900 * DAY), hex.data);
    for (uint16_t i = 0; i < 3; i++) {
        uint16_t slices[TOC_PRIORITIES];
        size_t n = sched_quarantine_slices(shard_of(i), slices);
        OK(toc_store_move_far(fx.store, slices, n, due_ms - 1000, 500, &moved,
                              err));
        ck_assert_uint_eq(moved, i == 1 ? 0 : 1);
    }
    ck_assert_int_eq(get_id(qx.tasks[0].id).slot_ms, due_ms);
    ck_assert_int_eq(get_id(qx.tasks[1].id).version, 1);
    ck_assert_int_eq(get_id(qx.tasks[2].id).slot_ms, due_ms);
    ck_assert_uint_eq(sched_bad_rows_count(&qx.loader.bad_rows), 1);
}
END_TEST

START_TEST(a_claim_with_one_takes_the_others)
{
    struct toc_claim claims[TASKS] = {{.sched_node = 0}};
    struct toc_claim_lock lock;

    add_tasks("o", TASKS, now_ms() - 1, now_ms());
    set_column(7, "status", 99);
    lock = lock_of(5, now_ms() + 60000);
    for (size_t i = 0; i < TASKS; i++)
        claims[i] = (struct toc_claim){.ref = toc_task_ref_of(&qx.tasks[i]),
                                       .want_row = i % 2 == 1};
    EVENTUALLY(now_ms() > qx.tasks[TASKS - 1].slot_ms);
    OK(toc_store_claim(fx.store, claims, TASKS, &lock, &fx.arena, err));
    for (size_t i = 0; i < TASKS; i++)
        ck_assert_int_eq(claims[i].result,
                         i == 7 ? TOC_CLAIM_TAKEN : TOC_CLAIM_WON);
}
END_TEST

static size_t
dead_listed(size_t max)
{
    struct toc_dead_filter filter = {0};
    struct toc_cursor cursor = {0};
    struct toc_dead *dead;
    size_t n, all = 0;

    do {
        OK(toc_store_list_dead(fx.store, &filter, max, &cursor, &fx.arena,
                               &dead, &n, err));
        all += n;
    } while (cursor.set);
    return all;
}

START_TEST(dead_letters_are_listed_without_it)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf hex = {0};

    add_tasks("o", 10, now_ms() + 60000, now_ms());
    raw("INSERT INTO dead_task SELECT *,%lld+slice,'why' FROM task_info",
        (long long)now_ms());
    toc_buf_hex(&hex, qx.tasks[4].id.b, 16);
    raw("UPDATE dead_task SET status=99 WHERE task_id=x'%s'", hex.data);
    for (size_t max = 1; max <= 10; max++)
        ck_assert_uint_eq(dead_listed(max), 9);
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {a_broken_shard_waits_alone,
                                    a_broken_day_waits_alone,
                                    what_is_broken_is_told_from_what_is_away,
                                    a_row_that_makes_no_sense_waits_alone,
                                    far_rows_move_past_one,
                                    a_claim_with_one_takes_the_others,
                                    dead_letters_are_listed_without_it};
    Suite *suite = suite_create("quarantine");
    TCase *tcase = tcase_create("quarantine");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, start, stop);
    tcase_set_timeout(tcase, 280);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
