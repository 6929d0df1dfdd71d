#include "executor/executor_runner.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/log.h"
#include "common/base/thread.h"
#include "executor/core.h"
#include "executor/probe.h"
#include "executor/results.h"
#include "executor/session.h"

/* Decided messages that wait behind an undecided one cost little each. */
#define MESSAGES_MAX 65536
#define ALIVE_MS 10000
#define DRAIN_MS 2000
#define CANCEL_MS 300 /* a cancelled call ends here at once */
#define WATCH_MS 5    /* how often main looks while it waits for the end */

/* Loops that are not a lane's; each says when it last came by. */
enum loop { CORE, RESULTS, PROBE, COORD, GUARD, LOOPS };

struct lane_thread {
    struct exec_runner *runner;
    struct exec_lane lane;
    struct toc_thread thread;
    _Atomic int64_t stepped_ns;
};

struct exec_runner {
    struct exec_runner_options options;
    struct exec_counters counters;
    struct exec_core core;
    struct exec_results results;
    struct lane_thread *lanes;
    struct exec_probe probe;
    struct exec_session session;
    struct toc_thread threads[LOOPS];
    _Atomic int64_t came_by_ns[LOOPS];
    struct toc_bell probe_bell, main_bell;
    bool started;
    _Atomic bool stop_lanes, stop_core, stop_results, stop_probe, stop_coord;
};

static void
come_by(struct exec_runner *runner, enum loop loop)
{
    atomic_store(&runner->came_by_ns[loop],
                 toc_clock_mono(runner->options.clock).ns);
}

/* ---- loops ----------------------------------------------------------- */

static void
run_lane(void *arg)
{
    struct lane_thread *self = arg;
    struct exec_runner *runner = self->runner;

    while (!atomic_load(&runner->stop_lanes)) {
        exec_lane_step(&self->lane);
        atomic_store(&self->stepped_ns,
                     toc_clock_mono(runner->options.clock).ns);
    }
}

static void
run_core(void *arg)
{
    struct exec_runner *runner = arg;

    while (!atomic_load(&runner->stop_core)) {
        int64_t wake_ns = exec_core_step(&runner->core);
        come_by(runner, CORE);
        exec_inbox_wait(&runner->core.inbox, wake_ns);
    }
    (void)exec_core_step(&runner->core); /* takes what was posted last */
}

static void
run_results(void *arg)
{
    struct exec_runner *runner = arg;

    while (!atomic_load(&runner->stop_results)) {
        int64_t wake_ns = exec_results_step(&runner->results);
        come_by(runner, RESULTS);
        exec_inbox_wait(&runner->results.inbox, wake_ns);
    }
}

static void
run_probe(void *arg)
{
    struct exec_runner *runner = arg;

    while (!atomic_load(&runner->stop_probe)) {
        int64_t wake_ns = exec_probe_step(&runner->probe);
        come_by(runner, PROBE);
        (void)toc_bell_wait(&runner->probe_bell, wake_ns);
    }
}

static void
run_coord(void *arg)
{
    struct exec_runner *runner = arg;

    while (!atomic_load(&runner->stop_coord)) {
        come_by(runner, COORD);
        exec_session_poll(&runner->session);
    }
}

static void
run_guard(void *arg)
{
    struct exec_runner *runner = arg;

    while (!atomic_load(&runner->stop_coord)) {
        int64_t wake_ns = exec_session_guard(&runner->session);
        come_by(runner, GUARD);
        (void)toc_bell_wait(&runner->session.guard_bell, wake_ns);
    }
}

/* ---- life ------------------------------------------------------------ */

struct exec_runner *
exec_runner_new(const struct exec_runner_options *options)
{
    struct exec_runner *runner = TOC_NEW(struct exec_runner);

    runner->options = *options;
    toc_bell_init(&runner->probe_bell);
    toc_bell_init(&runner->main_bell);
    exec_results_init(&runner->results);
    exec_core_init(&runner->core,
                   &(struct exec_core_options){
                       .clock = options->clock,
                       .store = options->store,
                       .invoke = options->invoke,
                       .coord = options->coord,
                       .results = &runner->results.inbox,
                       .counters = &runner->counters,
                       .node_id = options->node_id,
                       .hints_max = options->hints_max,
                       .calls_max = options->calls_max,
                       .target_calls_max = options->target_calls_max,
                       .target_queue_max = options->target_queue_max,
                       .attempts_max = options->attempts_max,
                       .margin_ms = options->margin_ms});
    exec_session_init(&runner->session, &runner->core);
    runner->results.options =
        (struct exec_results_options){.clock = options->clock,
                                      .store = options->store,
                                      .counters = &runner->counters,
                                      .core = &runner->core};
    runner->probe = (struct exec_probe){.clock = options->clock,
                                        .store = options->store,
                                        .core = &runner->core};
    runner->lanes = TOC_NEW_ARRAY(struct lane_thread, options->lanes);
    for (size_t i = 0; i < options->lanes; i++) {
        runner->lanes[i].runner = runner;
        exec_lane_init(&runner->lanes[i].lane, (uint16_t)i, &runner->core,
                       &runner->counters, options->hints_max, MESSAGES_MAX);
    }
    return runner;
}

struct exec_lane *
exec_runner_lane(struct exec_runner *runner, size_t i)
{
    TOC_ASSERT(i < runner->options.lanes);
    return &runner->lanes[i].lane;
}

static void
start_lane(struct exec_runner *runner, size_t i,
           struct toc_bus_consumer *consumer, int64_t now_ns)
{
    struct lane_thread *self = &runner->lanes[i];
    char name[16];

    self->lane.consumer = consumer;
    atomic_store(&self->stepped_ns, now_ns);
    toc_format(name, sizeof name, "lane-%zu", i);
    toc_thread_start(&self->thread, name, run_lane, self);
}

void
exec_runner_start(struct exec_runner *runner,
                  struct toc_bus_consumer *const *consumers)
{
    int64_t now_ns = toc_clock_mono(runner->options.clock).ns;

    for (size_t i = 0; i < LOOPS; i++)
        atomic_store(&runner->came_by_ns[i], now_ns);
    runner->started = true;
    toc_thread_start(&runner->threads[CORE], "core", run_core, runner);
    toc_thread_start(&runner->threads[RESULTS], "results", run_results, runner);
    toc_thread_start(&runner->threads[PROBE], "probe", run_probe, runner);
    if (runner->options.coord != NULL) {
        toc_thread_start(&runner->threads[COORD], "coord", run_coord, runner);
        toc_thread_start(&runner->threads[GUARD], "guard", run_guard, runner);
    }
    for (size_t i = 0; i < runner->options.lanes; i++)
        start_lane(runner, i, consumers[i], now_ns);
}

bool
exec_runner_lives(struct exec_runner *runner)
{
    int64_t now_ns = toc_clock_mono(runner->options.clock).ns;
    int64_t alive_ms = runner->options.alive_ms;
    int64_t since_ns =
        now_ns - (alive_ms > 0 ? alive_ms : ALIVE_MS) * TOC_NS_PER_MS;
    bool lives = true;

    for (size_t i = 0; i < LOOPS; i++)
        lives = lives && (!runner->threads[i].started ||
                          atomic_load(&runner->came_by_ns[i]) > since_ns);
    for (size_t i = 0; i < runner->options.lanes; i++)
        lives = lives && atomic_load(&runner->lanes[i].stepped_ns) > since_ns;
    return lives;
}

bool
exec_runner_is_fit(struct exec_runner *runner)
{
    for (size_t i = 0; i < runner->options.lanes; i++)
        if (atomic_load(&runner->lanes[i].lane.away))
            return false;
    return true;
}

const struct exec_counters *
exec_runner_counters(struct exec_runner *runner)
{
    return &runner->counters;
}

/* ---- the end --------------------------------------------------------- */

typedef bool until_fn(struct exec_runner *runner);

static bool
is_drained(struct exec_runner *runner)
{
    return atomic_load(&runner->core.drained);
}

static bool
no_calls(struct exec_runner *runner)
{
    return atomic_load(&runner->core.calls) == 0;
}

static bool
no_attempts(struct exec_runner *runner)
{
    return atomic_load(&runner->core.attempts) == 0;
}

/* Only at the end of the process: looking now and then is simple and enough. */
static bool
wait_for(struct exec_runner *runner, until_fn *until, int64_t wait_ms)
{
    struct toc_mono now = toc_clock_mono(runner->options.clock);
    int64_t end_ns = toc_mono_add_ms(now, wait_ms).ns;

    while (!until(runner) && now.ns < end_ns) {
        (void)toc_bell_wait(&runner->main_bell,
                            toc_mono_add_ms(now, WATCH_MS).ns);
        now = toc_clock_mono(runner->options.clock);
    }
    return until(runner);
}

void
exec_runner_drain(struct exec_runner *runner)
{
    if (!runner->started || atomic_load(&runner->stop_lanes))
        return;
    atomic_store(&runner->core.draining, true);
    exec_inbox_ring(&runner->core.inbox);
    if (!wait_for(runner, is_drained, DRAIN_MS))
        TOC_LOG(WARN, "drain.slow",
                F_MSG("a claim is still under way, its lock will expire"));
    atomic_store(&runner->stop_lanes, true);
    for (size_t i = 0; i < runner->options.lanes; i++)
        toc_bus_consumer_wake(runner->lanes[i].lane.consumer);
    for (size_t i = 0; i < runner->options.lanes; i++) {
        toc_thread_join(&runner->lanes[i].thread);
        exec_lane_apply_marks(&runner->lanes[i].lane);
    }
}

static void
end_calls(struct exec_runner *runner, int64_t calls_ms)
{
    if (wait_for(runner, no_calls, calls_ms))
        return;
    TOC_LOG(WARN, "drain.cancelled", F_MSG("ending calls that still run"),
            F_UINT("calls", atomic_load(&runner->core.calls)));
    toc_invoke_cancel_all(runner->options.invoke);
    (void)wait_for(runner, no_calls, CANCEL_MS);
}

static void
ask_coord_to_stop(struct exec_runner *runner)
{
    atomic_store(&runner->stop_coord, true);
    if (runner->options.coord != NULL)
        toc_coord_interrupt(runner->options.coord);
    toc_bell_ring(&runner->session.guard_bell);
}

static void
join_coord(struct exec_runner *runner)
{
    toc_thread_join(&runner->threads[COORD]);
    toc_thread_join(&runner->threads[GUARD]);
}

void
exec_runner_finish(struct exec_runner *runner, int64_t calls_ms,
                   int64_t results_ms)
{
    if (!runner->started)
        return;
    atomic_store(&runner->results.hurry, true);
    exec_inbox_ring(&runner->results.inbox);
    end_calls(runner, calls_ms);
    ask_coord_to_stop(runner);
    (void)wait_for(runner, no_attempts, results_ms);
    /* A claim, a write or a question that still hangs: nothing is lost by it,
     * and nothing that matters is to come. */
    toc_store_interrupt(runner->options.store);
    join_coord(runner);
    atomic_store(&runner->stop_probe, true);
    toc_bell_ring(&runner->probe_bell);
    toc_thread_join(&runner->threads[PROBE]);
    atomic_store(&runner->stop_core, true);
    exec_inbox_ring(&runner->core.inbox);
    toc_thread_join(&runner->threads[CORE]);
    atomic_store(&runner->stop_results, true);
    exec_inbox_ring(&runner->results.inbox);
    toc_thread_join(&runner->threads[RESULTS]);
    runner->started = false;
}

void
exec_runner_free(struct exec_runner *runner)
{
    if (runner == NULL)
        return;
    TOC_ASSERT(!runner->started);
    /* Takes the calls and partitions that ended after the core's last step. */
    atomic_store(&runner->core.draining, true);
    exec_results_done(&runner->results); /* gives slots back */
    (void)exec_core_step(&runner->core);
    exec_core_done(&runner->core);
    for (size_t i = 0; i < runner->options.lanes; i++)
        exec_lane_done(&runner->lanes[i].lane);
    toc_free(runner->lanes);
    toc_bell_done(&runner->probe_bell);
    exec_session_done(&runner->session);
    toc_bell_done(&runner->main_bell);
    toc_free(runner);
}
