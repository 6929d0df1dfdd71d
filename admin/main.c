/*
 * toc-admin: what operators speak to, over gRPC.
 *
 * Start: settings, database (waited for, with its schema, which a scheduler
 * makes), gRPC, number and membership, serving. Stop in reverse order, within
 * 10 s.
 */
#include "admin/coord_runner.h"
#include "admin/probe_runner.h"
#include "admin/service.h"
#include "common/app/app.h"
#include "common/app/settings.h"
#include "common/base/log.h"
#include "common/base/thread.h"
#include "common/clock/os/clock_os.h"
#include "common/coord/etcd/coord_etcd.h"
#include "common/store/mysql/store_mysql.h"

#include <stdio.h>
#include <stdlib.h>

#define START_MS_MAX 60000
#define RETRY_MS 500
#define SAY_EVERY_MS 5000
/* Of the 10 s that a stop may take, these have passed when calls to the store
 * are interrupted, and when gRPC calls that are left are cancelled. */
#define INTERRUPT_MS 5000
#define STOP_GRACE_END_MS 7000
#define WATCH_MS 500
#define PREFIX_MAX (TOC_CLUSTER_MAX + 16)

struct admin_settings {
    struct toc_common_settings common;
    int64_t workers, queue;
};

static const struct toc_setting table[] = {
    TOC_COMMON_SETTINGS(struct admin_settings){
        .name = "workers",
        .kind = TOC_SETTING_INT,
        .offset = offsetof(struct admin_settings, workers),
        .fallback = "8",
        .min = 1,
        .max = 128,
        .unit = "calls",
        .doc = "Calls worked on at once, each with a database connection"},
    {.name = "queue",
     .kind = TOC_SETTING_INT,
     .offset = offsetof(struct admin_settings, queue),
     .fallback = "256",
     .min = 1,
     .max = 10000,
     .unit = "calls",
     .doc = "Calls that may wait for a worker; more are refused"},
};

struct process {
    struct admin_settings settings;
    const struct toc_clock *clk;
    struct toc_app *app;
    struct toc_store_mysql *mysql;
    struct toc_coord_etcd *look, *member;
    struct admin_service *service;
    struct toc_rpc_server *server;
    struct admin_coord_runner *runner;
    struct admin_probe *probe;
    struct toc_bell bell; /* rung by the stop; outlives who rings */
    bool listening;
    char prefix[PREFIX_MAX];
    uint32_t node_id;
    int64_t started_ms;
};

/* ---- waiting at the start ---- */

typedef enum toc_status try_fn(struct process *p, struct toc_error *reterr);

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
try_open(struct process *p, struct toc_error *reterr)
{
    const struct toc_common_settings *common = &p->settings.common;
    const struct toc_store_mysql_options options = {
        .url = common->mysql,
        .password = common->mysql_password,
        .clock = p->clk,
        .pool_max = (size_t)p->settings.workers + 2,
    };
    enum toc_status st;

    st = toc_store_mysql_open(&options, &p->mysql, reterr);
    if (st != TOC_OK)
        return st;
    toc_app_on_late(p->app, 0, hasten, toc_store_mysql_port(p->mysql));
    toc_app_on_late(p->app, INTERRUPT_MS, interrupt,
                    toc_store_mysql_port(p->mysql));
    return TOC_OK;
}

/* All 256 shards are there once the schema is. */
static enum toc_status
try_schema(struct process *p, struct toc_error *reterr)
{
    struct toc_arena arena = {0};
    struct toc_shard_row *shards = NULL;
    size_t n = 0;
    enum toc_status st = toc_store_list_shards(toc_store_mysql_port(p->mysql),
                                               &arena, &shards, &n, reterr);

    toc_arena_done(&arena);
    if (st == TOC_OK && n < TOC_SHARDS)
        st = toc_error_set(reterr, TOC_PRECONDITION, "mysql", 0,
                           "the schema is not complete yet (%zu shards)", n);
    return st;
}

static enum toc_status
try_register(struct process *p, struct toc_error *reterr)
{
    const struct toc_common_settings *common = &p->settings.common;

    return toc_store_register_node(toc_store_mysql_port(p->mysql),
                                   TOC_STR("admin"), toc_str_of(common->node),
                                   toc_str_of(common->advertise), p->started_ms,
                                   &p->node_id, reterr);
}

/* Until it succeeds, a stop is asked for, or a minute has passed since the
 * start. A wrong setting does not get better by waiting. */
static bool
wait_for(struct process *p, struct toc_mono end, const char *what, try_fn *fn)
{
    struct toc_mono say = toc_clock_mono(p->clk);

    for (;;) {
        struct toc_error error = {.status = TOC_OK};
        enum toc_status st = fn(p, &error);
        struct toc_mono now = toc_clock_mono(p->clk);
        if (st == TOC_OK)
            return true;
        if (toc_app_stopping(p->app))
            return false;
        if (st == TOC_INVALID || now.ns >= end.ns) {
            TOC_LOG(ERROR, "admin.start_failed", F_MSG("giving up"),
                    F_STR("waited_for", what), F_ERR(&error));
            return false;
        }
        if (now.ns >= say.ns) {
            TOC_LOG(INFO, "admin.waiting", F_MSG("not there yet, waiting"),
                    F_STR("for", what), F_ERR(&error),
                    F_INT("left_ms", (end.ns - now.ns) / TOC_NS_PER_MS));
            say = toc_mono_add_ms(now, SAY_EVERY_MS);
        }
        toc_clock_os_sleep_until(toc_mono_add_ms(now, RETRY_MS));
    }
}

/* ---- start and stop ---- */

static bool
failed(const char *what, const struct toc_error *error)
{
    TOC_LOG(ERROR, "admin.start_failed", F_MSG("cannot start"),
            F_STR("what", what), F_ERR(error));
    return false;
}

/* Handle to etcd: as a member, or only to look. */
static bool
open_coord(struct process *p, bool member, struct toc_coord_etcd **ret_etcd)
{
    const struct toc_common_settings *common = &p->settings.common;
    struct toc_error error = {.status = TOC_OK};
    const struct toc_coord_etcd_options options = {
        .endpoints = common->etcd,
        .prefix = p->prefix,
        .clock = p->clk,
        .role = member ? "admin" : NULL,
        .node = common->node,
        .address = common->advertise,
        .node_id = p->node_id,
        .started_ms = p->started_ms,
    };

    if (toc_coord_etcd_open(&options, ret_etcd, &error) != TOC_OK)
        return failed("etcd", &error);
    return true;
}

/* The bound address is what others are told, unless another was given. */
static bool
serve(struct process *p)
{
    struct toc_common_settings *common = &p->settings.common;
    struct toc_error error = {.status = TOC_OK};
    const struct toc_rpc_server_options options = {.listen = common->listen,
                                                   .clock = p->clk};

    if (toc_rpc_server_new(&options, &p->server, &error) != TOC_OK)
        return failed("gRPC", &error);
    p->service = admin_service_new(&(struct admin_service_options){
        .store = toc_store_mysql_port(p->mysql),
        .coord = toc_coord_etcd_port(p->look),
        .clk = p->clk,
        .workers = (size_t)p->settings.workers,
        .queue_max = (size_t)p->settings.queue,
    });
    admin_service_add(p->service, p->server);
    if (toc_rpc_server_start(p->server, &error) != TOC_OK)
        return failed("gRPC", &error);
    p->listening = true;
    if (common->advertise[0] == '\0')
        common->advertise = toc_rpc_server_address(p->server);
    TOC_LOG(INFO, "rpc.listening", F_MSG("gRPC is up"),
            F_STR("addr", toc_rpc_server_address(p->server)),
            F_STR("advertise", common->advertise));
    return true;
}

static bool
start(struct process *p)
{
    struct toc_mono end = toc_mono_add_ms(toc_clock_mono(p->clk), START_MS_MAX);

    toc_format(p->prefix, sizeof p->prefix, "/toc/%s/",
               p->settings.common.cluster);
    if (!wait_for(p, end, "the database", try_open) ||
        !wait_for(p, end, "the schema, which a scheduler makes", try_schema) ||
        !open_coord(p, false, &p->look) || !serve(p) ||
        !wait_for(p, end, "a number for this process", try_register) ||
        !open_coord(p, true, &p->member))
        return false;
    p->runner = admin_coord_runner_start(toc_coord_etcd_port(p->member));
    p->probe =
        admin_probe_start(toc_store_mysql_port(p->mysql), p->app, p->clk);
    return true;
}

/* What a request of the stop may still take, until end_ms after it began. */
static int64_t
left_ms(const struct process *p, struct toc_mono begun, int64_t end_ms)
{
    int64_t passed_ms = (toc_clock_mono(p->clk).ns - begun.ns) / TOC_NS_PER_MS;

    return passed_ms < end_ms ? end_ms - passed_ms : 0;
}

static void
stop_serving(struct process *p, struct toc_mono begun)
{
    toc_app_stage(p->app, "operators' calls to the database or etcd");
    if (p->service != NULL)
        admin_service_stop(p->service);
    toc_app_stage(p->app, "gRPC calls under way");
    if (p->listening)
        toc_rpc_server_stop(p->server, left_ms(p, begun, STOP_GRACE_END_MS));
    if (p->server != NULL)
        toc_rpc_server_free(p->server);
    admin_service_free(p->service);
}

/* Calls to a database that hangs are interrupted after INTERRUPT_MS: what a
 * redrive does is one transaction, and needs no end. */
static void
stop(struct process *p)
{
    struct toc_mono begun = toc_clock_mono(p->clk);

    /* so that the stop has an end also when it is the start that failed */
    toc_app_request_stop(p->app, "the start failed");
    if (p->server != NULL)
        toc_rpc_server_serving(p->server, false);
    toc_app_stage(p->app, "leaving etcd");
    if (p->look != NULL)
        toc_coord_interrupt(toc_coord_etcd_port(p->look));
    admin_coord_runner_stop(p->runner);
    toc_coord_etcd_close(p->member);
    stop_serving(p, begun);
    toc_app_stage(p->app, "the database's clock");
    admin_probe_stop(p->probe);
    toc_app_stage(p->app, "closing the connection to etcd");
    toc_coord_etcd_close(p->look);
    toc_app_stage(p->app, "closing the store");
    toc_app_forget_late(p->app);
    toc_store_mysql_close(p->mysql);
}

static void
ring(void *arg)
{
    toc_bell_ring(arg);
}

/* Health is readiness: without the database nothing here answers. */
static void
show_health(struct process *p, bool *serving)
{
    bool ready = toc_app_ready(p->app);

    if (ready && !*serving)
        TOC_LOG(INFO, "admin.serving", F_MSG("the database answers"));
    else if (!ready && *serving && !toc_app_stopping(p->app))
        TOC_LOG(WARN, "admin.not_serving",
                F_MSG("the database does not answer"));
    *serving = ready;
    toc_rpc_server_serving(p->server, ready);
}

static void
run(struct process *p)
{
    bool serving = false;

    toc_bell_init(&p->bell);
    toc_app_on_stop(p->app, ring, &p->bell);
    while (!toc_app_stopping(p->app)) {
        show_health(p, &serving);
        (void)toc_bell_wait(
            &p->bell, toc_mono_add_ms(toc_clock_mono(p->clk), WATCH_MS).ns);
    }
}

int
main(int argc, char **argv)
{
    static struct process p; /* settings must not move */
    struct toc_error error = {.status = TOC_OK};
    bool done = false, started;

    if (toc_config_parse(table, sizeof table / sizeof table[0], &p.settings,
                         argc, argv, "toc-admin: serves operators", &done,
                         &error) != TOC_OK ||
        (!done && toc_common_settings_finish(&p.settings.common, "admin",
                                             &error) != TOC_OK)) {
        fprintf(stderr, "toc-admin: %s\n", error.msg);
        return 2;
    }
    if (done)
        return EXIT_SUCCESS;
    p.clk = toc_clock_os();
    p.app = toc_app_new(p.clk);
    p.started_ms = toc_clock_wall(p.clk).ms;
    started = start(&p);
    if (started)
        run(&p);
    started = started || toc_app_stopping(p.app);
    stop(&p);
    TOC_LOG(INFO, "admin.stopped", F_MSG("stopped"));
    toc_app_free(p.app);
    return started ? EXIT_SUCCESS : EXIT_FAILURE;
}
