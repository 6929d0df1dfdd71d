/*
 * toc-executor: from start to stop. What it does is in README.md; here are only
 * the order of things and the backends.
 */
#include "common/app/app.h"
#include "common/app/settings.h"
#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/config.h"
#include "common/base/log.h"
#include "common/base/thread.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/clock/os/clock_os.h"
#include "common/coord/etcd/coord_etcd.h"
#include "common/invoke/grpc/invoke_grpc.h"
#include "common/rpc/server.h"
#include "common/store/mysql/store_mysql.h"
#include "executor/executor_runner.h"
#include "executor/probe.h"

#include <stdio.h>
#include <stdlib.h>

#define ROLE "executor"
#define LANES_MAX 16
#define POOL_CONNECTIONS 4 /* claims, results, probe, start */
#define START_MS INT64_C(60000)
#define START_RETRY_MS 500
#define TOPIC_MS 5000
#define WATCH_MS 1000
#define ALIVE_MS 5000
#define COUNTERS_MS 60000
/* Of the 10 s that a stop may take: calls have until this after its start,
 * what they say is written for so long; then, and in a start that hangs, the
 * store is interrupted. */
#define CALLS_END_MS 6000
#define RESULTS_END_MS 700
#define INTERRUPT_MS 7000
#define RPC_GRACE_MS 200

struct exec_settings {
    struct toc_common_settings common;
    int64_t lanes;
    int64_t calls_max;
    int64_t target_calls_max;
    int64_t target_queue_max;
    int64_t hints_max;
    int64_t attempts_max;
    int64_t margin_ms;
    int64_t call_threads;
};

#define ROW(name_, fallback_, min_, max_, unit_, doc_)         \
    {                                                          \
        .name = #name_, .kind = TOC_SETTING_INT,               \
        .offset = offsetof(struct exec_settings, name_),       \
        .fallback = (fallback_), .min = (min_), .max = (max_), \
        .unit = (unit_), .doc = (doc_)                         \
    }

static const struct toc_setting table[] = {
    TOC_COMMON_SETTINGS(struct exec_settings)
        ROW(lanes, "1", 1, LANES_MAX, "lanes",
            "Consumers, each with its thread and share of the partitions"),
    ROW(calls_max, "1024", 1, 100000, "calls",
        "Calls to businesses under way at a time"),
    ROW(target_calls_max, "256", 1, 100000, "calls", "The same for one target"),
    ROW(target_queue_max, "10000", 1, 1000000, "tasks",
        "Due tasks that wait for one slow target; more are hinted again later"),
    ROW(hints_max, "200000", 1000, 10000000, "tasks",
        "Hinted tasks kept in memory; near it, low priority is not fetched"),
    ROW(attempts_max, "16384", 1, 1000000, "tasks",
        "Tasks claimed and not yet written back"),
    ROW(margin_ms, "2000", 100, 60000, "ms",
        "Between the end of a call and the end of its lock; above the sum of "
        "clock skews"),
    ROW(call_threads, "1", 1, 16, "threads", "Threads that take answers"),
};
#define TABLE_LEN (sizeof table / sizeof table[0])

static const char *const topic_names[EXEC_TOPICS] = {"core", "normal", "low"};

struct process {
    struct exec_settings settings;
    const struct toc_clock *clk;
    struct toc_app *app;
    struct toc_bell bell;    /* rung by the stop */
    struct toc_mono give_up; /* when the start has taken too long */

    struct toc_rpc_server *server;
    struct toc_store_mysql *store;
    struct toc_coord_etcd *coord;
    struct toc_invoke_grpc *invoke;
    struct toc_consumer_kafka *consumers[LANES_MAX];
    struct toc_thread closers[LANES_MAX];
    struct exec_runner *runner;
    char topics[EXEC_TOPICS][64];
    char group[64];
    const char *advertise;
    uint32_t node_id;
};

/* ---- waiting for servers --------------------------------------------- */

static void
on_stop(void *arg)
{
    struct process *p = arg;

    toc_bell_ring(&p->bell);
}

/* A step of the start; TOC_UNAVAILABLE and the like are tried again. */
typedef enum toc_status start_fn(struct process *p, struct toc_error *reterr);

static enum toc_status
persist(struct process *p, const char *what, start_fn *fn,
        struct toc_error *reterr)
{
    for (;;) {
        enum toc_status st = fn(p, reterr);
        struct toc_mono now = toc_clock_mono(p->clk);

        if (st == TOC_OK || !toc_status_retryable(st))
            return st;
        if (now.ns >= p->give_up.ns)
            return st;
        TOC_LOG(WARN, "executor.waiting", F_MSG("not there yet, trying again"),
                F_STR("what", what), F_ERR(reterr),
                F_INT("left_ms", (p->give_up.ns - now.ns) / TOC_NS_PER_MS));
        (void)toc_bell_wait(&p->bell, toc_mono_add_ms(now, START_RETRY_MS).ns);
        if (toc_app_stopping(p->app))
            return toc_error_set(reterr, TOC_CANCELLED, ROLE, 0,
                                 "stopped while starting");
    }
}

/* ---- the steps of the start ------------------------------------------ */

static enum toc_status
start_server(struct process *p, struct toc_error *reterr)
{
    const struct toc_common_settings *common = &p->settings.common;
    enum toc_status st = toc_rpc_server_new(
        &(struct toc_rpc_server_options){
            .listen = common->listen, .clock = p->clk, .threads = 1},
        &p->server, reterr);

    if (st == TOC_OK)
        st = toc_rpc_server_start(p->server, reterr);
    if (st != TOC_OK)
        return st;
    p->advertise = common->advertise[0] != '\0'
                       ? common->advertise
                       : toc_rpc_server_address(p->server);
    TOC_LOG(INFO, "rpc.listening", F_MSG("health only"),
            F_STR("addr", toc_rpc_server_address(p->server)));
    return TOC_OK;
}

static void
hasten(void *store)
{
    toc_store_hasten(store);
}

static void
interrupt(void *store)
{
    toc_store_interrupt(store);
}

static enum toc_status
open_store(struct process *p, struct toc_error *reterr)
{
    const struct toc_common_settings *common = &p->settings.common;
    enum toc_status st = toc_store_mysql_open(
        &(struct toc_store_mysql_options){.url = common->mysql,
                                          .password = common->mysql_password,
                                          .clock = p->clk,
                                          .pool_max = POOL_CONNECTIONS},
        &p->store, reterr);

    if (st != TOC_OK)
        return st;
    toc_app_on_late(p->app, 0, hasten, toc_store_mysql_port(p->store));
    toc_app_on_late(p->app, INTERRUPT_MS, interrupt,
                    toc_store_mysql_port(p->store));
    return TOC_OK;
}

static enum toc_status
migrate_store(struct process *p, struct toc_error *reterr)
{
    return toc_store_mysql_migrate(p->store, reterr);
}

static enum toc_status
check_clock(struct process *p, struct toc_error *reterr)
{
    int64_t skew_ms;
    enum toc_status st = exec_skew_measure(
        p->clk, toc_store_mysql_port(p->store), &skew_ms, reterr);

    if (st == TOC_OK && exec_skew_is_bad(skew_ms))
        return toc_error_set(reterr, TOC_PRECONDITION, ROLE, 0,
                             "the clock differs from the database's by %lld "
                             "ms, at most %d are served",
                             (long long)skew_ms, EXEC_SKEW_MS_MAX);
    return st;
}

static enum toc_status
register_node(struct process *p, struct toc_error *reterr)
{
    return toc_store_register_node(
        toc_store_mysql_port(p->store), TOC_STR(ROLE),
        toc_str_of(p->settings.common.node), toc_str_of(p->advertise),
        toc_clock_wall(p->clk).ms, &p->node_id, reterr);
}

static enum toc_status
make_topics(struct process *p, struct toc_error *reterr)
{
    struct toc_bus_kafka *bus;
    enum toc_status st = toc_bus_kafka_open(
        &(struct toc_bus_kafka_options){.brokers = p->settings.common.kafka,
                                        .client_id = p->settings.common.node},
        &bus, reterr);

    for (size_t i = 0; st == TOC_OK && i < EXEC_TOPICS; i++) {
        int32_t partitions;

        st = toc_bus_ensure_topic(toc_bus_kafka_port(bus), p->topics[i],
                                  (int32_t)p->settings.common.partitions,
                                  TOPIC_MS, &partitions, reterr);
        if (st != TOC_OK)
            toc_bus_kafka_close(bus);
    }
    if (st == TOC_OK)
        toc_bus_kafka_close(bus);
    return st;
}

static enum toc_status
open_coord(struct process *p, struct toc_error *reterr)
{
    char prefix[64];

    toc_format(prefix, sizeof prefix, "/toc/%s/", p->settings.common.cluster);
    return toc_coord_etcd_open(
        &(struct toc_coord_etcd_options){.endpoints = p->settings.common.etcd,
                                         .prefix = prefix,
                                         .clock = p->clk,
                                         .role = ROLE,
                                         .node = p->settings.common.node,
                                         .address = p->advertise,
                                         .node_id = p->node_id,
                                         .started_ms =
                                             toc_clock_wall(p->clk).ms},
        &p->coord, reterr);
}

static void
make_runner(struct process *p)
{
    const struct exec_settings *settings = &p->settings;

    p->invoke = toc_invoke_grpc_new(&(struct toc_invoke_grpc_options){
        .clock = p->clk, .threads = (size_t)settings->call_threads});
    p->runner = exec_runner_new(&(struct exec_runner_options){
        .clock = p->clk,
        .store = toc_store_mysql_port(p->store),
        .invoke = toc_invoke_grpc_port(p->invoke),
        .coord = toc_coord_etcd_port(p->coord),
        .node_id = p->node_id,
        .lanes = (size_t)settings->lanes,
        .hints_max = (size_t)settings->hints_max,
        .calls_max = (size_t)settings->calls_max,
        .target_calls_max = (size_t)settings->target_calls_max,
        .target_queue_max = (size_t)settings->target_queue_max,
        .attempts_max = (size_t)settings->attempts_max,
        .margin_ms = settings->margin_ms});
}

static enum toc_status
open_consumers(struct process *p, struct toc_error *reterr)
{
    const char *topics[EXEC_TOPICS];
    size_t lanes = (size_t)p->settings.lanes;
    enum toc_status st = TOC_OK;

    for (size_t i = 0; i < EXEC_TOPICS; i++)
        topics[i] = p->topics[i];
    for (size_t i = 0; st == TOC_OK && i < lanes; i++) {
        if (p->consumers[i] != NULL)
            continue;
        st = toc_consumer_kafka_open(
            &(struct toc_consumer_kafka_options){
                .brokers = p->settings.common.kafka,
                .client_id = p->settings.common.node,
                .group = p->group,
                .topics = topics,
                .n_topics = EXEC_TOPICS,
                .rebalance = exec_lane_rebalance,
                .rebalance_arg = exec_runner_lane(p->runner, i)},
            &p->consumers[i], reterr);
    }
    return st;
}

static void
start_runner(struct process *p)
{
    struct toc_bus_consumer *ports[LANES_MAX];

    for (size_t i = 0; i < (size_t)p->settings.lanes; i++)
        ports[i] = toc_consumer_kafka_port(p->consumers[i]);
    exec_runner_start(p->runner, ports);
}

static enum toc_status
start(struct process *p, struct toc_error *reterr)
{
    static const struct {
        const char *what;
        start_fn *fn;
    } steps[] = {
        {"server", start_server},    {"mysql", open_store},
        {"schema", migrate_store},   {"clock", check_clock},
        {"register", register_node}, {"kafka", make_topics},
        {"etcd", open_coord},
    };
    enum toc_status st = TOC_OK;

    for (size_t i = 0; st == TOC_OK && i < sizeof steps / sizeof steps[0]; i++)
        st = persist(p, steps[i].what, steps[i].fn, reterr);
    if (st != TOC_OK)
        return st;
    make_runner(p);
    st = persist(p, "consumer", open_consumers, reterr);
    if (st == TOC_OK)
        start_runner(p);
    return st;
}

/* ---- running --------------------------------------------------------- */

/* Readiness is looked at once a second; the rest once a minute. */
static void
watch(struct process *p)
{
    struct toc_mono now = toc_clock_mono(p->clk), minute = now;

    while (!toc_app_stopping(p->app)) {
        if (now.ns >= minute.ns) {
            exec_counters_log(exec_runner_counters(p->runner));
            minute = toc_mono_add_ms(now, COUNTERS_MS);
        }
        if (exec_runner_lives(p->runner))
            toc_app_ready_for(p->app, "loops", ALIVE_MS);
        toc_app_ready_set(p->app, "group", exec_runner_is_fit(p->runner));
        toc_rpc_server_serving(p->server, toc_app_ready(p->app));
        (void)toc_bell_wait(&p->bell, toc_mono_add_ms(now, WATCH_MS).ns);
        now = toc_clock_mono(p->clk);
    }
}

/* ---- the end --------------------------------------------------------- */

static void
close_consumer(void *arg)
{
    toc_consumer_kafka_close(arg);
}

/* All at once, and beside the calls that still run: each takes up to several
 * seconds while the brokers do not answer. */
static void
begin_close_consumers(struct process *p)
{
    for (size_t i = 0; i < LANES_MAX; i++)
        if (p->consumers[i] != NULL)
            toc_thread_start(&p->closers[i], "closer", close_consumer,
                             p->consumers[i]);
}

/* The runner must not go before: they tell it of their partitions. */
static void
end_close_consumers(struct process *p)
{
    for (size_t i = 0; i < LANES_MAX; i++) {
        toc_thread_join(&p->closers[i]);
        p->consumers[i] = NULL;
    }
}

static void
finish_runner(struct process *p, struct toc_mono begun)
{
    int64_t passed_ms = (toc_clock_mono(p->clk).ns - begun.ns) / TOC_NS_PER_MS;
    int64_t left_ms = passed_ms < CALLS_END_MS ? CALLS_END_MS - passed_ms : 0;

    exec_runner_finish(p->runner, left_ms, RESULTS_END_MS);
}

static void
stop(struct process *p)
{
    struct toc_mono begun = toc_clock_mono(p->clk);

    /* so that the stop has an end also when it is the start that failed */
    toc_app_request_stop(p->app, "the start failed");
    if (p->server != NULL)
        toc_rpc_server_serving(p->server, false);
    toc_app_stage(p->app, "a claim, the lanes");
    if (p->runner != NULL)
        exec_runner_drain(p->runner);
    begin_close_consumers(p);
    toc_app_stage(p->app, "calls to businesses and their results");
    if (p->runner != NULL)
        finish_runner(p, begun);
    toc_app_stage(p->app, "leaving the consumer group");
    end_close_consumers(p);
    toc_app_stage(p->app, "the ends of calls");
    toc_invoke_grpc_free(p->invoke);
    if (p->runner != NULL)
        exec_counters_log(exec_runner_counters(p->runner));
    exec_runner_free(p->runner);
    toc_app_stage(p->app, "closing the connection to etcd");
    toc_coord_etcd_close(p->coord);
    toc_app_stage(p->app, "closing the store");
    toc_app_forget_late(p->app);
    toc_store_mysql_close(p->store);
    toc_app_stage(p->app, "gRPC calls under way");
    if (p->server != NULL) {
        toc_rpc_server_stop(p->server, RPC_GRACE_MS);
        toc_rpc_server_free(p->server);
    }
}

static void
name_topics(struct process *p)
{
    const char *cluster = p->settings.common.cluster;

    for (size_t i = 0; i < EXEC_TOPICS; i++)
        toc_format(p->topics[i], sizeof p->topics[i], "%s.due.%s", cluster,
                   topic_names[i]);
    toc_format(p->group, sizeof p->group, "%s.executor", cluster);
}

static int
run(struct process *p)
{
    struct toc_error err = {0};
    enum toc_status st;
    bool stopped;

    name_topics(p);
    p->give_up = toc_mono_add_ms(toc_clock_mono(p->clk), START_MS);
    st = start(p, &err);
    if (st == TOC_OK) {
        TOC_LOG(INFO, "executor.started", F_MSG("executing"),
                F_STR("cluster", p->settings.common.cluster),
                F_UINT("node_id", p->node_id));
        watch(p);
    }
    stopped = toc_app_stopping(p->app);
    stop(p);
    if (st == TOC_OK || stopped) {
        TOC_LOG(INFO, "executor.stopped", F_MSG("stopped"));
        return EXIT_SUCCESS;
    }
    TOC_LOG(ERROR, "executor.start_failed", F_MSG("cannot start"), F_ERR(&err));
    return EXIT_FAILURE;
}

static enum toc_status
read_settings(struct process *p, int argc, char **argv, bool *ret_done,
              struct toc_error *reterr)
{
    enum toc_status st = toc_config_parse(
        table, TABLE_LEN, &p->settings, argc, argv,
        "calls businesses when their tasks are due", ret_done, reterr);

    if (st != TOC_OK || *ret_done)
        return st;
    return toc_common_settings_finish(&p->settings.common, ROLE, reterr);
}

int
main(int argc, char **argv)
{
    struct process *p = TOC_NEW(struct process);
    struct toc_error err = {0};
    bool done = false;
    int code = EXIT_SUCCESS;

    p->clk = toc_clock_os();
    p->app = toc_app_new(p->clk);
    toc_bell_init(&p->bell);
    toc_app_on_stop(p->app, on_stop, p);
    if (read_settings(p, argc, argv, &done, &err) != TOC_OK) {
        fprintf(stderr, "toc-executor: %s\n", err.msg);
        code = EXIT_FAILURE;
    } else if (!done) {
        code = run(p);
    }
    toc_app_free(p->app);
    toc_bell_done(&p->bell);
    toc_free(p);
    return code;
}
