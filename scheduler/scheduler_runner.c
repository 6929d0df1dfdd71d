#include "scheduler/scheduler_runner.h"

#include "common/base/alloc.h"
#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/base/os_time.h"
#include "common/base/thread.h"
#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "scheduler/access/service.h"
#include "scheduler/parts.h"
#include "scheduler/peers.h"
#include "scheduler/planner.h"
#include "toc/v1/peer.pb-c.h"
#include "toc/v1/timeout.pb-c.h"

#include <string.h>

#define TURN_MAX_MS 1000    /* no loop waits for longer at a time */
#define HEARTBEAT_MS 15000  /* a loop that does not come by is stuck */
#define SLOW_BEAT_MS 120000 /* one whose statements may take long */
#define WORKER_QUEUE 2000
#define WORKERS_MAX 128
#define GRACE_MS 3000
#define FLUSH_MS 2000
/* Of the 10 s that a stop may take, these have passed when what is still under
 * way is given up. */
#define GRACE_END_MS 5500
#define FLUSH_END_MS 7500
#define MONITOR_MS 500

typedef int64_t step_fn(void *self);

struct loop {
    struct sched_runner *runner;
    const char *check; /* heartbeat; NULL: none */
    int64_t beat_ms;   /* how long one holds */
    step_fn *step;
    void *self;
    struct toc_bell *bell;
    struct toc_bell own_bell;
    struct toc_thread thread;
    _Atomic bool stop;
    _Atomic int64_t busy_ns; /* inside steps */
};

enum {
    LOOP_COMBINER,
    LOOP_PUBLISHER,
    LOOP_LOADER,
    LOOP_SWEEP,
    LOOP_LAG,
    LOOP_HOUSEKEEP,
    LOOP_SKEW,
    LOOP_MONITOR,
    LOOP_COORD,
    LOOP_LOAD,
    LOOP_PLANNER,
    LOOPS,
};

struct sched_runner {
    struct sched_runner_options opt;
    char address[256];
    struct sched_parts parts;
    struct sched_load load;
    struct sched_planner planner;
    double cores;
    struct sched_combiner combiner;
    struct sched_access access;
    struct sched_peers *peers;
    struct toc_rpc_client *client;
    struct toc_rpc_server *server;
    struct loop loops[LOOPS];
    struct toc_thread workers[WORKERS_MAX];
    bool serving;
};

/* ---- loops
 * ------------------------------------------------------------------------ */

/* Waits until wake_ns or the bell, in pieces, so that the heart beats. */
static void
wait_for(struct loop *loop, int64_t wake_ns)
{
    const struct toc_clock *clk = loop->runner->opt.clk;
    int64_t until_ns;

    do {
        until_ns = toc_mono_add_ms(toc_clock_mono(clk), TURN_MAX_MS).ns;
        if (wake_ns < until_ns)
            until_ns = wake_ns;
        if (loop->check != NULL)
            toc_app_ready_for(loop->runner->opt.app, loop->check,
                              loop->beat_ms);
        if (toc_bell_wait(loop->bell, until_ns))
            return;
    } while (until_ns < wake_ns && !atomic_load(&loop->stop));
}

static void
run_loop(void *arg)
{
    struct loop *loop = arg;

    while (!atomic_load(&loop->stop)) {
        int64_t began_ns = toc_clock_mono(loop->runner->opt.clk).ns;
        int64_t wake_ns = loop->step(loop->self);
        atomic_fetch_add(&loop->busy_ns,
                         toc_clock_mono(loop->runner->opt.clk).ns - began_ns);
        wait_for(loop, wake_ns);
    }
}

static void
start_loop(struct sched_runner *runner, int which, const char *name,
           const char *check, step_fn *step, void *self, struct toc_bell *bell)
{
    struct loop *loop = &runner->loops[which];

    loop->runner = runner;
    loop->check = check;
    loop->beat_ms = which == LOOP_HOUSEKEEP || which == LOOP_SWEEP
                        ? SLOW_BEAT_MS
                        : HEARTBEAT_MS;
    loop->step = step;
    loop->self = self;
    loop->bell = bell != NULL ? bell : &loop->own_bell;
    toc_thread_start(&loop->thread, name, run_loop, loop);
}

static void
ask_to_stop(struct sched_runner *runner, int which)
{
    struct loop *loop = &runner->loops[which];

    atomic_store(&loop->stop, true);
    if (loop->bell != NULL)
        toc_bell_ring(loop->bell);
}

static void
stop_loop(struct sched_runner *runner, int which)
{
    ask_to_stop(runner, which);
    toc_thread_join(&runner->loops[which].thread);
}

static int64_t
step_combiner(void *self)
{
    return sched_combiner_step(self);
}

static int64_t
step_publisher(void *self)
{
    return sched_publisher_step(self);
}

static int64_t
step_loader(void *self)
{
    return sched_loader_step(self);
}

static int64_t
step_sweep(void *self)
{
    return sched_sweep_step(self);
}

static int64_t
step_lag(void *self)
{
    return sched_lag_step(self);
}

static int64_t
step_housekeep(void *self)
{
    return sched_housekeep_step(self);
}

/* What stands for the store's health, too: it is asked every 10 s at least. */
static int64_t
step_skew(void *self)
{
    struct sched_runner *runner = self;
    int64_t wake_ns = sched_skew_step(&runner->parts.skew);

    if (runner->parts.skew.ok)
        toc_app_ready_for(runner->opt.app, "store", 15000);
    return wake_ns;
}

static int64_t
step_monitor(void *self)
{
    struct sched_runner *runner = self;
    bool ready = toc_app_ready(runner->opt.app);
    struct toc_buf text = {0};

    if (ready != runner->serving) {
        toc_app_ready_text(runner->opt.app, &text);
        TOC_LOG(INFO, "ready.changed", F_MSG(ready ? "serving" : "not serving"),
                F_SPAN("checks", toc_buf_view(&text)));
        toc_buf_done(&text);
        runner->serving = ready;
        toc_rpc_server_serving(runner->server, ready);
    }
    return toc_mono_add_ms(toc_clock_mono(runner->opt.clk), MONITOR_MS).ns;
}

/* Its wait is inside. */
static int64_t
step_coord(void *self)
{
    struct sched_runner *runner = self;

    sched_keeper_turn(&runner->parts.keeper, TURN_MAX_MS);
    if (atomic_load(&runner->parts.keeper.session))
        toc_app_ready_set(runner->opt.app, "session", true);
    return 0;
}

static int64_t
step_load(void *self)
{
    struct sched_runner *runner = self;
    struct toc_mono now = toc_clock_mono(runner->opt.clk);
    struct sched_load_counters counters = {
        .now_ns = now.ns,
        .cpu_ns = toc_os_cpu_ns(),
        .cores = runner->cores,
        .busy_ns = {atomic_load(&runner->loops[LOOP_PUBLISHER].busy_ns),
                    atomic_load(&runner->loops[LOOP_LOADER].busy_ns)},
        .sent = atomic_load(&runner->parts.publisher.sent),
        .memory = sched_memory_share(&runner->parts.memory),
    };

    sched_shards_snapshot(&runner->parts.shards, counters.gen);
    for (size_t i = 0; i < TOC_SHARDS; i++)
        counters.offered[i] = atomic_load(&runner->parts.memory.offered[i]);
    sched_load_note(&runner->load, &counters);
    return toc_mono_add_ms(now, SCHED_LOAD_EVERY_MS).ns;
}

static int64_t
step_planner(void *self)
{
    return sched_planner_step(self);
}

static void
run_worker(void *arg)
{
    sched_workers_run(arg);
}

/* ---- making
 * ---------------------------------------------------------------------------
 */

static void
init_access(struct sched_runner *runner)
{
    const struct sched_runner_options *opt = &runner->opt;
    const struct sched_settings *settings = opt->settings;

    runner->client = toc_rpc_client_new(
        &(struct toc_rpc_client_options){.clock = opt->clk, .threads = 1});
    runner->peers = sched_peers_new(
        &(struct sched_peers_options){.clk = opt->clk,
                                      .shards = &runner->parts.shards,
                                      .memory = &runner->parts.memory,
                                      .rpc = runner->client});
    sched_combiner_init(
        &runner->combiner,
        &(struct sched_combiner_options){
            .clk = opt->clk, .store = opt->store, .skew = &runner->parts.skew});
    runner->access.clk = opt->clk;
    runner->access.store = opt->store;
    runner->access.skew = &runner->parts.skew;
    runner->access.combiner = &runner->combiner;
    runner->access.workers = sched_workers_new(WORKER_QUEUE);
    runner->access.peers = runner->peers;
    runner->access.names = sched_names_new(opt->store, opt->clk);
    runner->access.payload_max = (size_t)settings->payload_max;
    runner->access.key_window_ms =
        settings->key_window_hours * INT64_C(3600000);
}

/* For a share of the shards; any thread. */
static bool
is_fit(void *self)
{
    struct sched_runner *runner = self;

    return toc_app_ready(runner->opt.app) &&
           atomic_load(&runner->parts.skew.ok) &&
           sched_skew_right(&runner->parts.skew);
}

static void
init_balance(struct sched_runner *runner)
{
    const struct sched_runner_options *opt = &runner->opt;

    runner->cores = toc_os_cores();
    sched_load_init(&runner->load);
    sched_planner_init(
        &runner->planner,
        &(struct sched_planner_options){
            .clk = opt->clk,
            .roster = &runner->parts.roster,
            .load = &runner->load,
            .rpc = runner->client,
            .self = opt->settings->common.node,
            .fit = is_fit,
            .arg = runner,
            .shards = &runner->parts.shards,
            .moves = opt->settings->move_by_load,
            .skew_ms = opt->settings->move_skew_s * TOC_MS_PER_SEC,
            .held = {&runner->parts.loader.held, &runner->parts.sweep.held}});
}

/* Calls are answered from here on, so what answers them runs. */
static void
start_access(struct sched_runner *runner)
{
    start_loop(runner, LOOP_COMBINER, "combiner", "combiner", step_combiner,
               &runner->combiner, &runner->combiner.bell);
    for (int64_t i = 0; i < runner->opt.settings->workers; i++)
        toc_thread_start(&runner->workers[i], "worker", run_worker,
                         runner->access.workers);
}

static void
stop_access(struct sched_runner *runner)
{
    sched_combiner_close(&runner->combiner);
    stop_loop(runner, LOOP_COMBINER);
    while (!sched_combiner_idle(&runner->combiner)) /* bounded: it gives up */
        (void)sched_combiner_step(&runner->combiner);
    sched_workers_close(runner->access.workers);
    for (size_t i = 0; i < WORKERS_MAX; i++)
        toc_thread_join(&runner->workers[i]);
}

/* More than the cores can run at once take turns on the same calls: two on two
 * cores that do everything cost a twentieth of the submits. */
static size_t
rpc_threads(const struct sched_runner *runner)
{
    int64_t wanted = runner->opt.settings->rpc_threads;

    if (wanted == 0)
        wanted = (int64_t)(toc_os_cores() / 2);
    return wanted > 1 ? (size_t)wanted : 1;
}

static enum toc_status
serve(struct sched_runner *runner, struct toc_error *reterr)
{
    const struct sched_settings *settings = runner->opt.settings;
    const struct toc_rpc_server_options options = {
        .listen = settings->common.listen,
        .clock = runner->opt.clk,
        .threads = rpc_threads(runner),
    };
    enum toc_status st = toc_rpc_server_new(&options, &runner->server, reterr);

    if (st != TOC_OK)
        return st;
    toc_rpc_server_add(runner->server, &toc__v1__timeout_service__descriptor,
                       sched_access_handle, &runner->access);
    toc_rpc_server_add(runner->server, &toc__v1__peer_service__descriptor,
                       sched_peers_handle, runner->peers);
    toc_rpc_server_add(runner->server, &toc__v1__balance_service__descriptor,
                       sched_planner_handle, &runner->planner);
    return toc_rpc_server_start(runner->server, reterr);
}

static void
set_address(struct sched_runner *runner)
{
    const char *bound = toc_rpc_server_address(runner->server);
    const char *told = runner->opt.settings->common.advertise;

    toc_copy(runner->address, sizeof runner->address,
             toc_str_of(told[0] != '\0' ? told : bound));
    TOC_LOG(INFO, "rpc.listening", F_MSG("takes gRPC calls"),
            F_STR("addr", bound), F_STR("advertised", runner->address));
}

enum toc_status
sched_runner_new(const struct sched_runner_options *opt,
                 struct sched_runner **ret_runner, struct toc_error *reterr)
{
    struct sched_runner *runner = TOC_NEW(struct sched_runner);
    enum toc_status st;

    runner->opt = *opt;
    for (size_t i = 0; i < LOOPS; i++)
        toc_bell_init(&runner->loops[i].own_bell);
    sched_parts_init(&runner->parts, &(struct sched_parts_options){
                                         .settings = opt->settings,
                                         .clk = opt->clk,
                                         .store = opt->store,
                                         .bus = opt->bus,
                                         .partitions = opt->partitions,
                                         .topics = opt->topics,
                                         .group = opt->group});
    init_access(runner);
    init_balance(runner);
    start_access(runner);
    st = serve(runner, reterr);
    if (st != TOC_OK) {
        stop_access(runner);
        sched_runner_free(runner);
        return st;
    }
    set_address(runner);
    *ret_runner = runner;
    return TOC_OK;
}

const char *
sched_runner_address(const struct sched_runner *runner)
{
    return runner->address;
}

void
sched_runner_reported(void *arg, void *opaque, enum toc_status st,
                      int64_t offset)
{
    sched_publisher_reported(arg, opaque, st, offset);
}

/* ---- start and stop
 * ------------------------------------------------------------------------ */

void
sched_runner_start(struct sched_runner *runner, struct toc_coord *coord,
                   uint32_t node_id)
{
    struct toc_app *app = runner->opt.app;

    sched_parts_join(&runner->parts, coord, node_id);
    toc_app_ready_set(app, "bus", true); /* its topics are there */
    toc_app_ready_set(app, "session", false);
    toc_app_ready_set(app, "store", false);
    start_loop(runner, LOOP_PUBLISHER, "publisher", "publisher", step_publisher,
               &runner->parts.publisher, &runner->parts.publisher_bell);
    start_loop(runner, LOOP_LOADER, "loader", "loader", step_loader,
               &runner->parts.loader, &runner->parts.loader_bell);
    start_loop(runner, LOOP_SWEEP, "sweep", "sweep", step_sweep,
               &runner->parts.sweep, &runner->parts.sweep_bell);
    start_loop(runner, LOOP_LAG, "lag", "lag", step_lag, &runner->parts.lag,
               NULL);
    start_loop(runner, LOOP_HOUSEKEEP, "housekeep", "housekeep", step_housekeep,
               &runner->parts.house, NULL);
    start_loop(runner, LOOP_SKEW, "skew", NULL, step_skew, runner, NULL);
    start_loop(runner, LOOP_COORD, "coord", "coord", step_coord, runner, NULL);
    start_loop(runner, LOOP_MONITOR, "monitor", NULL, step_monitor, runner,
               NULL);
    start_loop(runner, LOOP_LOAD, "load", NULL, step_load, runner, NULL);
    start_loop(runner, LOOP_PLANNER, "planner", NULL, step_planner,
               &runner->planner, NULL);
}

/* Up to max_ms, until end_ms after the stop began. */
static int64_t
left_ms(const struct sched_runner *runner, struct toc_mono begun,
        int64_t end_ms, int64_t max_ms)
{
    int64_t now_ns = toc_clock_mono(runner->opt.clk).ns;
    int64_t left = (toc_mono_add_ms(begun, end_ms).ns - now_ns) / TOC_NS_PER_MS;

    if (left > max_ms)
        left = max_ms;
    return left > 0 ? left : 0;
}

static void
flush(struct sched_runner *runner, int64_t flush_ms)
{
    struct toc_error err = {0};

    stop_loop(runner, LOOP_PUBLISHER);
    if (toc_bus_flush(runner->opt.bus, flush_ms, &err) != TOC_OK)
        TOC_LOG(WARN, "publisher.unflushed",
                F_MSG("hints were not taken by the bus; their tasks stay due"),
                F_ERR(&err));
}

/* What they wait for may be a store that hangs: the shards do not wait for
 * them. */
static void
begin_stop(struct sched_runner *runner)
{
    static const int loops[] = {LOOP_LOADER, LOOP_SWEEP,   LOOP_HOUSEKEEP,
                                LOOP_SKEW,   LOOP_PLANNER, LOOP_LOAD};

    atomic_store(&runner->combiner.hurry, true);
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
        ask_to_stop(runner, loops[i]);
    stop_loop(runner, LOOP_MONITOR);
    toc_rpc_server_serving(runner->server, false);
}

static void
give_up_shards(struct sched_runner *runner)
{
    if (runner->parts.keeper.coord == NULL)
        return;
    toc_app_stage(runner->opt.app, "etcd: a request under way");
    atomic_store(&runner->loops[LOOP_COORD].stop, true);
    toc_coord_interrupt(runner->parts.keeper.coord);
    stop_loop(runner, LOOP_COORD);
    toc_app_stage(runner->opt.app, "giving up the shards");
    sched_keeper_leave(&runner->parts.keeper);
}

static void
join_loops(struct sched_runner *runner)
{
    toc_app_stage(runner->opt.app, "the planner");
    stop_loop(runner, LOOP_PLANNER);
    stop_loop(runner, LOOP_LOAD);
    toc_app_stage(runner->opt.app, "the loader");
    stop_loop(runner, LOOP_LOADER);
    toc_app_stage(runner->opt.app, "the sweep");
    stop_loop(runner, LOOP_SWEEP);
    toc_app_stage(runner->opt.app, "the lag of the executors");
    stop_loop(runner, LOOP_LAG);
    toc_app_stage(runner->opt.app, "housekeeping");
    stop_loop(runner, LOOP_HOUSEKEEP);
    toc_app_stage(runner->opt.app, "the database's clock");
    stop_loop(runner, LOOP_SKEW);
}

void
sched_runner_stop(struct sched_runner *runner)
{
    struct toc_mono begun = toc_clock_mono(runner->opt.clk);

    begin_stop(runner);
    give_up_shards(runner);
    ask_to_stop(runner, LOOP_LAG); /* the publisher needed it until now */
    toc_bus_interrupt(runner->opt.bus);
    toc_app_stage(runner->opt.app, "gRPC calls under way");
    toc_rpc_server_stop(runner->server,
                        left_ms(runner, begun, GRACE_END_MS, GRACE_MS));
    toc_app_stage(runner->opt.app, "submits and commands under way");
    stop_access(runner);
    toc_app_stage(runner->opt.app, "hints that Kafka has not taken");
    flush(runner, left_ms(runner, begun, FLUSH_END_MS, FLUSH_MS));
    join_loops(runner);
}

void
sched_runner_free(struct sched_runner *runner)
{
    if (runner == NULL)
        return;
    toc_rpc_server_free(runner->server);
    toc_rpc_client_free(runner->client);
    sched_peers_free(runner->peers);
    sched_planner_done(&runner->planner);
    sched_load_done(&runner->load);
    sched_combiner_done(&runner->combiner);
    sched_workers_free(runner->access.workers);
    sched_names_free(runner->access.names);
    sched_parts_done(&runner->parts);
    for (size_t i = 0; i < LOOPS; i++)
        toc_bell_done(&runner->loops[i].own_bell);
    toc_free(runner);
}
