/*
 * toc-scheduler: takes tasks in, owns a share of the shards, publishes hints of
 * what is due. The only file of the role that names backends.
 */
#include "common/base/log.h"
#include "common/base/thread.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/clock/os/clock_os.h"
#include "common/coord/etcd/coord_etcd.h"
#include "common/store/mysql/store_mysql.h"
#include "scheduler/scheduler_runner.h"

#include <stdio.h>
#include <stdlib.h>

#define TRY_AGAIN_MS 1000
#define TOPIC_TIMEOUT_MS 5000
#define NAME_MAX_BYTES 96
#define CONNECTIONS_MORE 8 /* besides the workers': the loops' */
#define INTERRUPT_MS 5000  /* of the 10 s that a stop may take */

struct process {
    const struct toc_clock *clk;
    struct toc_app *app;
    struct sched_settings settings;
    struct toc_bell stopped; /* rung when a stop is asked for */
    int64_t give_up_ns;
    struct toc_store_mysql *store;
    struct toc_bus_kafka *bus;
    struct toc_coord_etcd *coord;
    struct sched_runner *runner;
    char topics[TOC_PRIORITIES][NAME_MAX_BYTES];
    const char *topic_names[TOC_PRIORITIES];
    char group[NAME_MAX_BYTES];
    char prefix[NAME_MAX_BYTES];
    int32_t partitions;
    uint32_t node_id;
};

static void
ring(void *bell)
{
    toc_bell_ring(bell);
}

/* Waits before another try; false: no more. */
static bool
try_again(struct process *process, const char *what,
          const struct toc_error *err)
{
    int64_t now_ns = toc_clock_mono(process->clk).ns;

    if (toc_app_stopping(process->app))
        return false;
    if (!toc_status_retryable(err->status) || now_ns >= process->give_up_ns) {
        TOC_LOG(ERROR, "start.failed", F_MSG("giving up"), F_STR("doing", what),
                F_ERR(err));
        return false;
    }
    TOC_LOG(WARN, "start.waiting", F_MSG("not there yet, trying again in 1 s"),
            F_STR("doing", what), F_ERR(err));
    (void)toc_bell_wait(&process->stopped,
                        now_ns + TRY_AGAIN_MS * TOC_NS_PER_MS);
    return !toc_app_stopping(process->app);
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

static bool
open_store(struct process *process)
{
    const struct sched_settings *settings = &process->settings;
    const struct toc_store_mysql_options options = {
        .url = settings->common.mysql,
        .password = settings->common.mysql_password,
        .clock = process->clk,
        .pool_max = (size_t)settings->workers + CONNECTIONS_MORE,
    };
    struct toc_error err = {0};

    while (toc_store_mysql_open(&options, &process->store, &err) != TOC_OK)
        if (!try_again(process, "connecting to the database", &err))
            return false;
    toc_app_on_late(process->app, 0, hasten,
                    toc_store_mysql_port(process->store));
    toc_app_on_late(process->app, INTERRUPT_MS, interrupt,
                    toc_store_mysql_port(process->store));
    while (toc_store_mysql_migrate(process->store, &err) != TOC_OK)
        if (!try_again(process, "bringing the schema up to date", &err))
            return false;
    return true;
}

static void
report(void *arg, void *opaque, enum toc_status st, int64_t offset)
{
    struct process *process = arg;

    sched_runner_reported(process->runner, opaque, st, offset);
}

static void
name_things(struct process *process)
{
    static const char *const priorities[] = {"core", "normal", "low"};
    const char *cluster = process->settings.common.cluster;

    for (size_t i = 0; i < TOC_PRIORITIES; i++) {
        toc_format(process->topics[i], NAME_MAX_BYTES, "%s.due.%s", cluster,
                   priorities[i]);
        process->topic_names[i] = process->topics[i];
    }
    toc_format(process->group, NAME_MAX_BYTES, "%s.executor", cluster);
    toc_format(process->prefix, NAME_MAX_BYTES, "/toc/%s/", cluster);
}

static bool
ensure_topics(struct process *process)
{
    struct toc_bus *bus = toc_bus_kafka_port(process->bus);
    struct toc_error err = {0};
    int32_t partitions;

    process->partitions = INT32_MAX;
    for (size_t i = 0; i < TOC_PRIORITIES; i++) {
        while (
            toc_bus_ensure_topic(bus, process->topics[i],
                                 (int32_t)process->settings.common.partitions,
                                 TOPIC_TIMEOUT_MS, &partitions, &err) != TOC_OK)
            if (!try_again(process, "making the topics", &err))
                return false;
        if (partitions < process->partitions)
            process->partitions = partitions;
    }
    return true;
}

static bool
open_bus(struct process *process)
{
    const struct toc_bus_kafka_options options = {
        .brokers = process->settings.common.kafka,
        .client_id = process->settings.common.node,
        .report = report,
        .report_arg = process,
    };
    struct toc_error err = {0};

    while (toc_bus_kafka_open(&options, &process->bus, &err) != TOC_OK)
        if (!try_again(process, "opening the producer", &err))
            return false;
    return ensure_topics(process);
}

static bool
open_runner(struct process *process)
{
    const struct sched_runner_options options = {
        .settings = &process->settings,
        .clk = process->clk,
        .app = process->app,
        .store = toc_store_mysql_port(process->store),
        .bus = toc_bus_kafka_port(process->bus),
        .partitions = process->partitions,
        .topics = process->topic_names,
        .group = process->group,
    };
    struct toc_error err = {0};

    if (sched_runner_new(&options, &process->runner, &err) == TOC_OK)
        return true;
    TOC_LOG(ERROR, "start.failed", F_MSG("giving up"),
            F_STR("doing", "binding the gRPC address"), F_ERR(&err));
    return false;
}

static bool
join_cluster(struct process *process)
{
    const char *address = sched_runner_address(process->runner);
    const char *node = process->settings.common.node;
    int64_t now_ms = toc_clock_wall(process->clk).ms;
    struct toc_error err = {0};
    struct toc_coord_etcd_options options = {
        .endpoints = process->settings.common.etcd,
        .prefix = process->prefix,
        .clock = process->clk,
        .role = "scheduler",
        .node = node,
        .address = address,
        .started_ms = now_ms,
        .watch_owners = true,
    };

    while (toc_store_register_node(toc_store_mysql_port(process->store),
                                   TOC_STR("scheduler"), toc_str_of(node),
                                   toc_str_of(address), now_ms,
                                   &process->node_id, &err) != TOC_OK)
        if (!try_again(process, "registering the process", &err))
            return false;
    options.node_id = process->node_id;
    while (toc_coord_etcd_open(&options, &process->coord, &err) != TOC_OK)
        if (!try_again(process, "reaching etcd", &err))
            return false;
    sched_runner_start(process->runner, toc_coord_etcd_port(process->coord),
                       process->node_id);
    return true;
}

static bool
start(struct process *process)
{
    process->give_up_ns =
        toc_mono_add_ms(toc_clock_mono(process->clk),
                        process->settings.start_timeout_s * TOC_MS_PER_SEC)
            .ns;
    name_things(process);
    return open_store(process) && open_bus(process) && open_runner(process) &&
           join_cluster(process);
}

static void
stop(struct process *process)
{
    /* so that the stop has an end also when it is the start that failed */
    toc_app_request_stop(process->app, "the start failed");
    if (process->runner != NULL)
        sched_runner_stop(process->runner);
    toc_app_stage(process->app, "closing the connection to etcd");
    toc_coord_etcd_close(process->coord);
    toc_app_stage(process->app, "closing the producer");
    toc_bus_kafka_close(process->bus);
    toc_app_stage(process->app, "calls to other schedulers");
    sched_runner_free(process->runner);
    toc_app_stage(process->app, "closing the store");
    toc_app_forget_late(process->app);
    toc_store_mysql_close(process->store);
}

static int
run(struct process *process)
{
    bool started, good;

    toc_bell_init(&process->stopped);
    toc_app_on_stop(process->app, ring, &process->stopped);
    started = start(process);
    if (started) {
        TOC_LOG(INFO, "start.done", F_MSG("scheduler runs"),
                F_UINT("node_id", process->node_id),
                F_INT("partitions", process->partitions));
        toc_app_wait_stop(process->app);
    }
    good = started || toc_app_stopping(process->app);
    stop(process);
    TOC_LOG(INFO, "stop.done", F_MSG("scheduler has ended"));
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
    static struct process process;
    struct toc_error err = {0};
    bool done = false;
    int code;

    process.clk = toc_clock_os();
    if (toc_config_parse(sched_setting_table, sched_setting_count,
                         &process.settings, argc, argv,
                         "toc-scheduler: takes tasks in and publishes what is "
                         "due",
                         &done, &err) != TOC_OK) {
        fprintf(stderr, "toc-scheduler: %s\n", err.msg);
        return 2;
    }
    if (done)
        return EXIT_SUCCESS;
    process.app = toc_app_new(process.clk);
    if (toc_common_settings_finish(&process.settings.common, "scheduler",
                                   &err) != TOC_OK) {
        fprintf(stderr, "toc-scheduler: %s\n", err.msg);
        code = 2;
    } else {
        code = run(&process);
    }
    toc_app_free(process.app);
    return code;
}
