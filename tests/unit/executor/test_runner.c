/*
 * Goal: the threads of an executor together: every hint is called once,
 * everything is marked and written back, a stop ends in order; no races (this
 * program is what ThreadSanitizer looks at).
 * Method: the runner on ports in memory and real time; calls are answered by
 * threads of their own, in another order than they came.
 */
#include "tests/unit/executor/fakes.h"

#include "common/clock/os/clock_os.h"
#include "executor/executor_runner.h"

#include <stdatomic.h>

#define LANES 2
#define TASKS 3000
#define ANSWERERS 2
#define PER_MESSAGE 10
#define CALLS_MAX 200

/* The plain fakes, made safe by one lock. */
static struct {
    pthread_mutex_t lock;
    struct fake_store store;
    struct toc_store safe_store;
    struct toc_invoke invoke;
    struct toc_call *calls[CALLS_MAX]; /* under way */
    size_t n_calls;
    unsigned called[TASKS], early, calls_most;
    atomic_bool silent; /* calls are not answered */
    atomic_bool hangs;  /* writes do not end */
    atomic_bool stop;
    struct toc_thread answerers[ANSWERERS];
    struct fake_coord coord;
    struct toc_clock_sim unused;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct line {
    struct toc_bus_consumer port;
    struct toc_bell bell;
    struct fake_bus bus;
    bool told; /* its partitions */
    uint16_t lane;
    struct exec_runner *runner;
    _Atomic int64_t mark; /* of the normal topic's partition */
};
static struct line lines[LANES];

/* ---- store ----------------------------------------------------------- */

static enum toc_status
safe_claim(void *self, struct toc_claim *claims, size_t n,
           const struct toc_claim_lock *lock, struct toc_arena *arena,
           struct toc_error *reterr)
{
    enum toc_status st;

    pthread_mutex_lock(&world.lock);
    st = fake_claim(self, claims, n, lock, arena, reterr);
    pthread_mutex_unlock(&world.lock);
    return st;
}

static enum toc_status
safe_finish(void *self, struct toc_finish *items, size_t n, int64_t now_ms,
            struct toc_error *reterr)
{
    enum toc_status st;

    while (atomic_load(&world.hangs))
        toc_clock_os_sleep_until(
            toc_mono_add_ms(toc_clock_mono(toc_clock_os()), 5));
    pthread_mutex_lock(&world.lock);
    st = fake_finish(self, items, n, now_ms, reterr);
    pthread_mutex_unlock(&world.lock);
    return st;
}

static enum toc_status
safe_renew(void *self, const struct toc_task_ref *refs, const uint64_t *tokens,
           size_t n, int64_t lock_until_ms, size_t *ret_renewed,
           struct toc_error *reterr)
{
    enum toc_status st;

    pthread_mutex_lock(&world.lock);
    st = fake_renew(self, refs, tokens, n, lock_until_ms, ret_renewed, reterr);
    pthread_mutex_unlock(&world.lock);
    return st;
}

/* ---- calls ----------------------------------------------------------- */

static void
safe_start(void *self, struct toc_call *call)
{
    const struct toc_task *task = call->fires[0].task;
    int64_t number = 0;

    (void)self;
    pthread_mutex_lock(&world.lock);
    ck_assert(toc_parse_i64(task->biz_id, 0, TASKS - 1, &number));
    world.called[number]++;
    if (toc_clock_wall(toc_clock_os()).ms < task->due_ms)
        world.early++;
    ck_assert_uint_lt(world.n_calls, CALLS_MAX);
    world.calls[world.n_calls++] = call;
    if (world.n_calls > world.calls_most)
        world.calls_most = (unsigned)world.n_calls;
    pthread_mutex_unlock(&world.lock);
}

/* Ends one call, the newest or the oldest by turns; false: there is none. */
static bool
end_one(bool oldest, enum toc_answer_kind kind)
{
    struct toc_call *call = NULL;

    pthread_mutex_lock(&world.lock);
    if (world.n_calls > 0) {
        size_t i = oldest ? 0 : world.n_calls - 1;
        call = world.calls[i];
        world.calls[i] = world.calls[--world.n_calls];
    }
    pthread_mutex_unlock(&world.lock);
    if (call == NULL)
        return false;
    call->fires[0].answer = (struct toc_answer){.kind = kind};
    call->done(call);
    return true;
}

static void
safe_cancel_all(void *self)
{
    (void)self;
    while (end_one(true, TOC_ANSWER_UNKNOWN))
        continue;
}

static void
answer_calls(void *arg)
{
    struct toc_mono next = toc_clock_mono(toc_clock_os());
    bool oldest = arg != NULL;

    while (!atomic_load(&world.stop)) {
        while (!atomic_load(&world.silent) && end_one(oldest, TOC_ANSWER_DONE))
            oldest = !oldest;
        next = toc_mono_add_ms(next, 2);
        toc_clock_os_sleep_until(next);
    }
}

/* ---- bus ------------------------------------------------------------- */

static size_t
line_poll(void *self, struct toc_bus_message *messages, size_t max,
          int64_t timeout_ms)
{
    struct line *line = self;
    struct toc_mono now = toc_clock_mono(toc_clock_os());
    size_t n;

    if (!line->told) {
        line->told = true;
        exec_lane_rebalance(exec_runner_lane(line->runner, line->lane),
                            TOC_BUS_ASSIGNED, TOC_PRIORITY_NORMAL, line->lane,
                            false);
    }
    n = fake_poll(&line->bus, messages, max < 3 ? max : 3, 0);
    if (n == 0)
        (void)toc_bell_wait(&line->bell, toc_mono_add_ms(now, timeout_ms).ns);
    return n;
}

static void
line_mark(void *self, int16_t topic, int32_t partition, int64_t next_offset)
{
    struct line *line = self;

    ck_assert_int_eq(topic, TOC_PRIORITY_NORMAL);
    ck_assert_int_eq(partition, line->lane);
    ck_assert_int_gt(next_offset, atomic_load(&line->mark));
    atomic_store(&line->mark, next_offset);
}

static void
line_pause(void *self, int16_t topic, bool paused)
{
    fake_pause(&((struct line *)self)->bus, topic, paused);
}

/* A bus that goes on delivering to who left: nothing here needs more. */
static enum toc_status
line_join(void *self, bool join, struct toc_error *reterr)
{
    (void)self;
    (void)join;
    (void)reterr;
    return TOC_OK;
}

static void
line_wake(void *self)
{
    toc_bell_ring(&((struct line *)self)->bell);
}

static const struct toc_bus_consumer_ops line_ops = {.name = "line",
                                                     .poll = line_poll,
                                                     .release = fake_release,
                                                     .mark = line_mark,
                                                     .pause = line_pause,
                                                     .join = line_join,
                                                     .wake = line_wake};

/* ---- session --------------------------------------------------------- */

static _Atomic int64_t session_ns = INT64_MAX;
static struct toc_bell coord_bell;

static int64_t
session_deadline(void *self)
{
    (void)self;
    return atomic_load(&session_ns);
}

static enum toc_status
session_poll(void *self, int64_t timeout_ms, toc_coord_event_fn *fn, void *arg,
             struct toc_error *reterr)
{
    struct toc_mono now = toc_clock_mono(toc_clock_os());

    (void)self;
    (void)reterr;
    if (toc_bell_wait(&coord_bell, toc_mono_add_ms(now, timeout_ms).ns))
        fn(arg, &(struct toc_coord_event){.kind = TOC_COORD_SESSION_NEW});
    return TOC_OK;
}

static void
session_wake(void *self)
{
    (void)self;
    toc_bell_ring(&coord_bell);
}

/* ---- the world ------------------------------------------------------- */

static void
make_hints(int64_t first_due_ms)
{
    struct toc_task *rows[PER_MESSAGE];

    for (size_t k = 0; k < TASKS; k += PER_MESSAGE) {
        for (size_t i = 0; i < PER_MESSAGE; i++)
            rows[i] = fake_task(
                &world.store,
                &(struct fake_task){.due_ms = first_due_ms +
                                              (int64_t)((k + i) * 7919 % 500),
                                    .timeout_ms = 1000,
                                    .priority = TOC_PRIORITY_NORMAL});
        for (int32_t p = 0; p < LANES; p++) /* each twice: in both lanes */
            fake_hint(&lines[p].bus, TOC_PRIORITY_NORMAL, p, rows, PER_MESSAGE,
                      true);
    }
}

static void
make_world(void)
{
    static const struct toc_store_ops store_ops = {.name = "safe",
                                                   .now = fake_now,
                                                   .claim = safe_claim,
                                                   .finish = safe_finish,
                                                   .renew = safe_renew};
    static const struct toc_invoke_ops invoke_ops = {
        .name = "safe", .start = safe_start, .cancel_all = safe_cancel_all};
    static const struct toc_coord_ops coord_ops = {.name = "safe",
                                                   .poll = session_poll,
                                                   .deadline_boot_ns =
                                                       session_deadline,
                                                   .wake = session_wake};

    toc_bell_init(&coord_bell);
    toc_clock_sim_init(&world.unused, (struct toc_wall){0});
    fake_store_init(&world.store, &world.unused);
    world.store.clk = toc_clock_os();
    world.safe_store =
        (struct toc_store){.ops = &store_ops, .self = &world.store};
    world.invoke = (struct toc_invoke){&invoke_ops, NULL};
    world.coord.port = (struct toc_coord){&coord_ops, NULL};
    for (uint16_t i = 0; i < LANES; i++) {
        fake_bus_init(&lines[i].bus);
        lines[i].port = (struct toc_bus_consumer){&line_ops, &lines[i]};
        lines[i].lane = i;
        toc_bell_init(&lines[i].bell);
    }
    for (size_t i = 0; i < ANSWERERS; i++)
        toc_thread_start(&world.answerers[i], "answers", answer_calls,
                         i == 0 ? NULL : &world);
}

static struct exec_runner *
start(void)
{
    struct toc_bus_consumer *ports[LANES];
    struct exec_runner *runner = exec_runner_new(
        &(struct exec_runner_options){.clock = toc_clock_os(),
                                      .store = &world.safe_store,
                                      .invoke = &world.invoke,
                                      .coord = &world.coord.port,
                                      .node_id = FAKE_NODE,
                                      .lanes = LANES,
                                      .hints_max = 20000,
                                      .calls_max = 100,
                                      .target_calls_max = 40,
                                      .target_queue_max = 10000,
                                      .attempts_max = 500,
                                      .margin_ms = 400,
                                      .alive_ms = 4000});

    for (size_t i = 0; i < LANES; i++) {
        lines[i].runner = runner;
        ports[i] = &lines[i].port;
    }
    exec_runner_start(runner, ports);
    return runner;
}

static void
free_world(void)
{
    atomic_store(&world.stop, true);
    for (size_t i = 0; i < ANSWERERS; i++)
        toc_thread_join(&world.answerers[i]);
    for (size_t i = 0; i < LANES; i++) {
        for (size_t k = 0; k < lines[i].bus.n; k++)
            toc_buf_done(&lines[i].bus.messages[k].bytes);
        toc_bell_done(&lines[i].bell);
    }
    for (size_t i = 0; i < world.store.n; i++)
        for (size_t k = 0; k < 2; k++)
            toc_free(world.store.texts[i][k]);
    toc_bell_done(&coord_bell);
}

static size_t
in_state(enum toc_state state)
{
    size_t n = 0;

    pthread_mutex_lock(&world.lock);
    for (size_t i = 0; i < world.store.n; i++)
        n += world.store.rows[i].state == state;
    pthread_mutex_unlock(&world.lock);
    return n;
}

static bool
all_done(void *arg)
{
    (void)arg;
    return in_state(TOC_STATE_SUCCESS) == TASKS;
}

static bool
all_marked(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < LANES; i++)
        if (atomic_load(&lines[i].mark) != TASKS / PER_MESSAGE)
            return false;
    return true;
}

static bool
all_but_forty_done(void *arg)
{
    (void)arg;
    return in_state(TOC_STATE_SUCCESS) == TASKS - 40;
}

static bool
forty_called(void *arg)
{
    (void)arg;
    return in_state(TOC_STATE_EXECUTING) == 40;
}

static bool
forty_failed(void *arg)
{
    (void)arg;
    return in_state(TOC_STATE_RETRY) == 40;
}

/* ---- tests ----------------------------------------------------------- */

START_TEST(every_hint_is_called_once)
{
    struct exec_runner *runner;

    make_world();
    make_hints(toc_clock_wall(toc_clock_os()).ms + 50);
    runner = start();
    ck_assert(toc_eventually(all_done, NULL));
    ck_assert(toc_eventually(all_marked, NULL));
    ck_assert(exec_runner_lives(runner));
    exec_runner_drain(runner);
    exec_runner_finish(runner, 1000, 1000);
    for (size_t i = 0; i < TASKS; i++)
        ck_assert_uint_eq(world.called[i], 1);
    ck_assert_uint_eq(world.early, 0);
    ck_assert_uint_le(world.calls_most, 40);
    exec_runner_free(runner);
    free_world();
}
END_TEST

/* Stopped while calls run: they are waited for, then cut off. Their handlers
 * may still be at work: the rows stay claimed, and their locks expire. What was
 * not called is untouched. */
START_TEST(stop_in_the_middle)
{
    struct exec_runner *runner;

    make_world();
    atomic_store(&world.silent, true);
    make_hints(toc_clock_wall(toc_clock_os()).ms);
    runner = start();
    ck_assert(toc_eventually(forty_called, NULL));
    exec_runner_drain(runner);
    exec_runner_finish(runner, 50, 1000);
    exec_runner_free(runner);
    ck_assert_uint_eq(in_state(TOC_STATE_EXECUTING), 40);
    ck_assert_uint_eq(in_state(TOC_STATE_INIT), TASKS - 40);
    ck_assert_int_lt(atomic_load(&lines[0].mark), TASKS / PER_MESSAGE);
    free_world();
}
END_TEST

/* The session ends: calls are cancelled, nothing is claimed; a new one: it goes
 * on. */
START_TEST(session_ends_and_comes_back)
{
    struct exec_runner *runner;

    make_world();
    atomic_store(&world.silent, true);
    make_hints(toc_clock_wall(toc_clock_os()).ms);
    atomic_store(&session_ns,
                 toc_clock_boot(toc_clock_os()).ns + 300 * TOC_NS_PER_MS);
    runner = start();
    ck_assert(toc_eventually(forty_failed, NULL));
    ck_assert_uint_eq(in_state(TOC_STATE_EXECUTING), 0);
    atomic_store(&world.silent, false);
    atomic_store(&session_ns, INT64_MAX);
    session_wake(NULL);
    ck_assert(toc_eventually(all_but_forty_done, NULL));
    ck_assert(toc_eventually(all_marked, NULL));
    exec_runner_drain(runner);
    exec_runner_finish(runner, 1000, 1000);
    exec_runner_free(runner);
    free_world();
}
END_TEST

static bool
lives(void *arg)
{
    return exec_runner_lives(arg);
}

static bool
does_not_live(void *arg)
{
    return !lives(arg);
}

/* A loop that hangs is seen, whichever it is: here that of the results. */
START_TEST(a_loop_that_hangs_is_seen)
{
    struct exec_runner *runner;

    make_world();
    atomic_store(&world.hangs, true);
    make_hints(toc_clock_wall(toc_clock_os()).ms);
    runner = start();
    ck_assert(exec_runner_lives(runner));
    ck_assert(toc_eventually(does_not_live, runner));
    atomic_store(&world.hangs, false);
    ck_assert(toc_eventually(lives, runner));
    exec_runner_drain(runner);
    exec_runner_finish(runner, 1000, 1000);
    exec_runner_free(runner);
    free_world();
}
END_TEST

TOC_CHECK_MAIN("exec_runner", every_hint_is_called_once, stop_in_the_middle,
               session_ends_and_comes_back, a_loop_that_hangs_is_seen)
