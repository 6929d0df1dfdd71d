/*
 * Goal: everything at once on the same few shards, for a few seconds, keeps the
 * invariants: each claim of a version has one winner, keys point to rows, no
 * unfinished row lies behind its mark unrecorded, nothing is lost or doubled,
 * and no caller sees an error. Method: threads that submit, claim and write
 * back, command, sweep and free keys; then the books are checked.
 */
#include "tests/integration/store/fixture.h"

#define RUN_NS INT64_C(6000000000)
#define SUBMITTERS 3
#define EXECUTORS 4
#define COMMANDERS 2
#define TASKS_MAX 60000
#define BIZ_IDS 20

struct worker {
    struct toc_thread thread;
    unsigned number;
    struct toc_rng rng;
    struct toc_arena arena;
    size_t made, won, wrong, failed;
    struct toc_error error;
};

static int64_t until_ns;

/* Which (task, version) was won, so that no second one is. */
static struct {
    pthread_mutex_t lock;
    struct {
        struct toc_task_id id;
        uint32_t version;
    } won[TASKS_MAX];
    size_t n;
    struct toc_task_id made[TASKS_MAX];
    size_t n_made;
} book = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool
running(void)
{
    return toc_os_mono_ns() < until_ns;
}

/* The time as a process sees it that was frozen for a while. */
static int64_t
perhaps_stale(struct worker *w)
{
    return now_ms() - (toc_rng_below(&w->rng, 3) == 0 ? 2000 : 0);
}

static bool
went_well(struct worker *w, enum toc_status st)
{
    if (st == TOC_OK)
        return true;
    w->failed++;
    return false;
}

static void
note_made(const struct toc_task *task)
{
    pthread_mutex_lock(&book.lock);
    if (book.n_made < TASKS_MAX)
        book.made[book.n_made++] = task->id;
    pthread_mutex_unlock(&book.lock);
}

static bool
some_made(struct worker *w, struct toc_task_id *ret_id)
{
    bool any;

    pthread_mutex_lock(&book.lock);
    any = book.n_made > 0;
    if (any)
        *ret_id = book.made[toc_rng_below(&w->rng, book.n_made)];
    pthread_mutex_unlock(&book.lock);
    return any;
}

/* Few business ids, so that keys collide. */
static void
submit_loop(void *arg)
{
    struct worker *w = arg;

    while (running()) {
        struct toc_task tasks[40];
        struct toc_submit items[40], *list[40];
        int64_t now = perhaps_stale(w);
        for (size_t i = 0; i < 40; i++) {
            unsigned key = (unsigned)toc_rng_below(&w->rng, 3000);
            tasks[i] = make_task(
                "order", toc_arena_printf(&w->arena, "b%u", key % BIZ_IDS),
                toc_arena_printf(&w->arena, "n%u", key),
                now + (int64_t)toc_rng_below(&w->rng, 2000) - 500);
            items[i] =
                make_submit(&tasks[i], (uint8_t)toc_rng_below(&w->rng, 3));
            items[i].on_conflict =
                (enum toc_on_conflict)toc_rng_below(&w->rng, 3);
            items[i].key_window_ms = 300;
            list[i] = &items[i];
        }
        if (!went_well(w, toc_store_submit(fx.store, list, 40, now, &w->error)))
            continue;
        for (size_t i = 0; i < 40; i++)
            if (items[i].result == TOC_SUBMIT_CREATED ||
                items[i].result == TOC_SUBMIT_REPLACED) {
                w->made++;
                note_made(&tasks[i]);
            }
        toc_arena_reset(&w->arena);
    }
}

struct heap {
    struct toc_claim claims[64];
    size_t n;
    struct toc_rng *rng;
};

static void
collect(void *arg, const struct toc_task *task)
{
    struct heap *h = arg;

    /* not all, so that executors meet on some */
    if (h->n < 64 && task->due_ms <= now_ms() && toc_rng_below(h->rng, 3) > 0)
        h->claims[h->n++] = (struct toc_claim){.ref = toc_task_ref_of(task)};
}

/* A claim that was won twice for one version is the end of the world. */
static void
enter_win(struct worker *w, const struct toc_task_ref *ref)
{
    pthread_mutex_lock(&book.lock);
    for (size_t i = 0; i < book.n; i++)
        if (book.won[i].version == ref->version &&
            toc_task_id_cmp(book.won[i].id, ref->id) == 0)
            w->wrong++;
    if (book.n < TASKS_MAX) {
        book.won[book.n].id = ref->id;
        book.won[book.n++].version = ref->version;
    }
    pthread_mutex_unlock(&book.lock);
}

static struct toc_finish
some_result(struct worker *w, const struct toc_task_ref *ref, uint64_t token)
{
    static const enum toc_finish_kind kinds[] = {
        TOC_FINISH_DONE,   TOC_FINISH_DONE, TOC_FINISH_RETRY,
        TOC_FINISH_SNOOZE, TOC_FINISH_DEAD, TOC_FINISH_GIVE_BACK,
        TOC_FINISH_SKIPPED};
    int64_t now = now_ms();

    return (struct toc_finish){
        .ref = *ref,
        .token = token,
        .kind = kinds[toc_rng_below(&w->rng, 7)],
        .outcome = TOC_RESULT_FAILED,
        .attempt = 1,
        .due_ms = now + (int64_t)toc_rng_below(&w->rng, 1000) - 200,
        .called_ms = now - 1,
        .ended_ms = now};
}

static void
execute_loop(void *arg)
{
    struct worker *w = arg;
    uint16_t slices[TOC_SHARDS];
    uint64_t sequence = 1;

    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        slices[i] = toc_slice_of(i, TOC_PRIORITY_NORMAL);
    while (running()) {
        int64_t now = now_ms();
        struct toc_slot_span span = {now - 8000, now};
        struct toc_claim_lock lock = {
            .token = (uint64_t)(w->number + 1) << 32 | sequence++,
            /* some locks expire at once, and are freed by the sweeper */
            .lock_until_ms =
                now + (toc_rng_below(&w->rng, 10) == 0 ? -1 : 5000),
            .now_ms = now,
            .exec_node = w->number};
        struct heap h = {.n = 0, .rng = &w->rng};
        struct toc_finish ends[64];
        size_t n = 0;
        if (!went_well(w, toc_store_load(fx.store, slices, TOC_SHARDS, &span, 1,
                                         collect, &h, &w->error)) ||
            !went_well(w, toc_store_claim(fx.store, h.claims, h.n, &lock,
                                          &w->arena, &w->error)))
            continue;
        for (size_t i = 0; i < h.n; i++) {
            if (h.claims[i].result != TOC_CLAIM_WON)
                continue;
            w->won++;
            enter_win(w, &h.claims[i].ref);
            if (toc_rng_below(&w->rng, 20) > 0) /* else: "died" */
                ends[n++] = some_result(w, &h.claims[i].ref, lock.token);
        }
        went_well(w, toc_store_finish(fx.store, ends, n, perhaps_stale(w),
                                      &w->error));
        toc_arena_reset(&w->arena);
    }
}

static void
command_loop(void *arg)
{
    struct worker *w = arg;

    while (running()) {
        struct toc_task_id id;
        struct toc_command command;
        enum toc_redrive_result redriven;
        if (!some_made(w, &id))
            continue;
        command =
            command_of((enum toc_command_kind)toc_rng_below(&w->rng, 5), id);
        command.now_ms = perhaps_stale(w);
        command.due_ms = now_ms() + (int64_t)toc_rng_below(&w->rng, 3000) - 900;
        if (went_well(w, toc_store_command(fx.store, &command, &w->arena,
                                           &w->error)) &&
            command.result == TOC_COMMAND_NOT_FOUND)
            w->wrong++; /* nothing was dropped: each is found */
        went_well(w, toc_store_redrive(fx.store, id, perhaps_stale(w),
                                       TOC_STR("x"), TOC_STR(""), &redriven,
                                       &w->error));
        toc_arena_reset(&w->arena);
    }
}

struct expired {
    struct toc_task tasks[500];
    size_t n;
};

static void
collect_expired(void *arg, const struct toc_task *task)
{
    struct expired *e = arg;

    if (task->state == TOC_STATE_EXECUTING && task->lock_until_ms < now_ms() &&
        e->n < 500)
        e->tasks[e->n++] = *task;
}

/* Unfinished rows that nobody would find any more. One statement, one view. */
static int64_t
behind_the_mark(MYSQL *mysql)
{
    return raw_on(mysql,
                  "SELECT COUNT(*) FROM task_info t JOIN shard_owner o ON "
                  "o.shard_id=t.slice DIV 4 LEFT JOIN straggler g ON "
                  "g.slice=t.slice AND g.slot_ms=t.slot_ms AND "
                  "g.task_id=t.task_id WHERE t.status<5 AND t.slot_ms>=0 AND "
                  "t.slot_ms<o.low_ms AND g.task_id IS NULL");
}

/* The shards that are in use; sorted or not does not matter. */
static void
used_shards(uint16_t shards[BIZ_IDS])
{
    for (unsigned i = 0; i < BIZ_IDS; i++) {
        char id[16];
        snprintf(id, sizeof id, "b%u", i);
        shards[i] =
            toc_key_shard(toc_key_hash_biz(TOC_STR("order"), toc_str_of(id)));
    }
}

static void
sweep_once(struct worker *w, struct expired *e)
{
    uint16_t slices[TOC_SHARDS], shards[BIZ_IDS];
    int64_t now = now_ms();
    size_t n;

    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        slices[i] = toc_slice_of(i, TOC_PRIORITY_NORMAL);
    used_shards(shards);
    e->n = 0;
    went_well(w, toc_store_scan(fx.store, slices, TOC_SHARDS, 0, now,
                                collect_expired, e, &w->error));
    went_well(w, toc_store_scan_stragglers(fx.store, slices, TOC_SHARDS,
                                           collect_expired, e, &w->error));
    went_well(w, toc_store_free_expired(fx.store, e->tasks, e->n, now, &n,
                                        &w->error));
    for (unsigned i = 0; i < BIZ_IDS; i++)
        went_well(w, toc_store_gc_keys(fx.store, shards[i], now, 300, 500, &n,
                                       &w->error));
}

static void
sweep_loop(void *arg)
{
    struct worker *w = arg;
    struct expired *e = TOC_NEW(struct expired);

    while (running())
        sweep_once(w, e);
    toc_free(e);
}

/* A shard at a time, and not behind at all (60 s in real life), so that submits
 * and moves meet the mark. */
static void
mark_loop(void *arg)
{
    struct worker *w = arg;
    MYSQL *mysql = raw_connect(fx.db);
    uint16_t shards[BIZ_IDS];
    size_t n;

    used_shards(shards);
    while (running()) {
        uint16_t shard = shards[toc_rng_below(&w->rng, BIZ_IDS)];
        went_well(w, toc_store_record_stragglers(fx.store, shard, now_ms(),
                                                 1000, &n, &w->error));
        went_well(w, toc_store_advance_low(fx.store, &shard, 1, now_ms(), 0,
                                           &w->error));
        w->wrong += behind_the_mark(mysql) != 0;
    }
    mysql_close(mysql);
}

static enum toc_status
make_next(int64_t now, struct toc_error *error)
{
    return toc_store_make_days(fx.store, now, error);
}

static enum toc_status
drop_old(int64_t now, struct toc_error *error)
{
    size_t dropped = 0;

    return toc_store_drop_days(fx.store, now, 60000, &dropped, error);
}

/* As housekeeping does it: a table too busy to be changed is tried again. */
static void
until_done(enum toc_status (*change)(int64_t, struct toc_error *), int64_t now)
{
    struct toc_error error = {0};
    enum toc_status st = TOC_UNAVAILABLE;

    for (int i = 0; i < 20 && st == TOC_UNAVAILABLE; i++)
        st = change(now, &error);
    ck_assert_msg(st == TOC_OK, "%s", error.msg);
}

/* Tables are changed in the middle of it: nobody sees an error, and it is
 * possible at all, though there is hardly a moment without a statement. */
static void
change_days(void)
{
    int64_t today = now_ms() - now_ms() % DAY;

    for (int i = 1; i <= 3; i++)
        until_done(make_next, now_ms() + i * DAY);
    raw("UPDATE shard_owner SET keygc_ms=GREATEST(keygc_ms,%lld)",
        (long long)today);
    until_done(drop_old, now_ms());
    ck_assert_int_eq(
        raw("SELECT COUNT(*) FROM information_schema.partitions WHERE "
            "table_schema=DATABASE() AND table_name='task_info' AND "
            "CAST(partition_description AS SIGNED) BETWEEN 1 AND %lld",
            (long long)today),
        0);
}

static void
check_books(size_t made)
{
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), (int64_t)made);
    ck_assert_int_eq(raw("SELECT COUNT(DISTINCT task_id) FROM task_info"),
                     (int64_t)made);
    /* every unfinished row is behind its key */
    ck_assert_int_eq(
        raw("SELECT COUNT(*) FROM task_info t LEFT JOIN task_key k ON "
            "k.key_hash=t.key_hash AND k.task_id=t.task_id AND "
            "k.slice=t.slice AND k.slot_ms=t.slot_ms WHERE t.status<5 AND "
            "k.task_id IS NULL"),
        0);
    /* every key has its row */
    ck_assert_int_eq(
        raw("SELECT COUNT(*) FROM task_key k LEFT JOIN task_info t ON "
            "t.slice=k.slice AND t.slot_ms=k.slot_ms AND t.task_id=k.task_id "
            "WHERE t.task_id IS NULL"),
        0);
    /* every ended task is in the keys or their history */
    ck_assert_int_eq(
        raw("SELECT COUNT(*) FROM task_info t LEFT JOIN task_key k ON "
            "k.key_hash=t.key_hash AND k.task_id=t.task_id LEFT JOIN "
            "key_history h ON h.key_hash=t.key_hash AND h.slot_ms=t.slot_ms "
            "AND h.task_id=t.task_id WHERE k.task_id IS NULL AND h.task_id IS "
            "NULL"),
        0);
    ck_assert_int_eq(behind_the_mark(fx.raw), 0);
    /* dead letters are the dead tasks */
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info t LEFT JOIN dead_task "
                         "d ON d.task_id=t.task_id AND d.version=t.version "
                         "WHERE t.status=6 AND d.task_id IS NULL"),
                     0);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM dead_task d LEFT JOIN task_info "
                         "t ON d.task_id=t.task_id AND t.status=6 WHERE "
                         "t.task_id IS NULL"),
                     0);
}

START_TEST(everything_at_once)
{
    static void (*const loops[])(void *) = {
        submit_loop, execute_loop, command_loop, sweep_loop, mark_loop};
    static const unsigned counts[] = {SUBMITTERS, EXECUTORS, COMMANDERS, 2, 2};
    struct worker workers[SUBMITTERS + EXECUTORS + COMMANDERS + 4];
    size_t n = 0, made = 0, won = 0;

    memset(workers, 0, sizeof workers);
    until_ns = toc_os_mono_ns() + RUN_NS;
    for (size_t kind = 0; kind < 5; kind++)
        for (unsigned i = 0; i < counts[kind]; i++, n++) {
            workers[n].number = (unsigned)n;
            toc_rng_seed(&workers[n].rng, 1000 + n);
            toc_thread_start(&workers[n].thread, "stress", loops[kind],
                             &workers[n]);
        }
    change_days();
    for (size_t i = 0; i < n; i++) {
        toc_thread_join(&workers[i].thread);
        toc_arena_done(&workers[i].arena);
        made += workers[i].made;
        won += workers[i].won;
        ck_assert_msg(workers[i].failed == 0, "worker %zu: %zu failed: %s", i,
                      workers[i].failed, workers[i].error.msg);
        ck_assert_msg(workers[i].wrong == 0, "worker %zu: %zu wrong", i,
                      workers[i].wrong);
    }
    printf("%zu tasks made, %zu claims won, %llu statements\n", made, won,
           (unsigned long long)toc_store_mysql_statements(fx.mysql));
    ck_assert_uint_gt(made, 100);
    ck_assert_uint_gt(won, 100);
    check_books(made);
}
END_TEST

STORE_TESTS("store_stress", 300, everything_at_once)
