#include "tests/sim/exec.h"

#include "common/base/alloc.h"
#include "executor/lane.h"
#include "executor/probe.h"
#include "executor/results.h"
#include "executor/session.h"

#include <string.h>

#define FAR_NS (INT64_MAX / 4)
#define START_RETRY_MS 300
#define HINTS_MAX 10000
#define MARGIN_MS 2000

/* What an executor process holds; all of it goes with a kill. */
struct sim_life_of_exec {
    struct exec_counters counters;
    struct exec_core core;
    struct exec_results results;
    struct exec_probe probe;
    struct exec_session session;
    struct exec_lane lane;
    uint32_t node_id;
};

/* ---- steps as the runner makes them ---------------------------------- */

static int64_t
step_core(void *self)
{
    return exec_core_step(self);
}

static int64_t
step_results(void *self)
{
    return exec_results_step(self);
}

static int64_t
step_probe(void *self)
{
    return exec_probe_step(self);
}

static int64_t
step_lane(void *self)
{
    exec_lane_step(self);
    return 0;
}

static int64_t
step_session(void *self)
{
    exec_session_poll(self);
    return 0;
}

static int64_t
step_guard(void *self)
{
    return exec_session_guard(self);
}

/* ---- life ------------------------------------------------------------ */

static void
make_core(struct sim_exec *exec)
{
    struct sim_life_of_exec *life = exec->life;

    exec_results_init(&life->results);
    exec_core_init(&life->core,
                   &(struct exec_core_options){.clock = &exec->proc.clock,
                                               .store = &exec->store.port,
                                               .invoke = &exec->caller.port,
                                               .coord = &exec->coord.port,
                                               .results = &life->results.inbox,
                                               .counters = &life->counters,
                                               .node_id = life->node_id,
                                               .hints_max = HINTS_MAX,
                                               .calls_max = 32,
                                               .target_calls_max = 16,
                                               .target_queue_max = 100,
                                               .attempts_max = 256,
                                               .margin_ms = MARGIN_MS});
    life->results.options =
        (struct exec_results_options){.clock = &exec->proc.clock,
                                      .store = &exec->store.port,
                                      .counters = &life->counters,
                                      .core = &life->core};
    life->probe = (struct exec_probe){.clock = &exec->proc.clock,
                                      .store = &exec->store.port,
                                      .core = &life->core};
    exec_session_init(&life->session, &life->core);
    exec_lane_init(&life->lane, 0, &life->core, &life->counters, HINTS_MAX,
                   HINTS_MAX);
}

static void
open_clients(struct sim_exec *exec)
{
    struct sim_world *world = exec->proc.world;
    struct sim_pool *before = sim_pool_use(&world->pool);

    exec->coord_client = toc_coord_mem_open(
        exec->servers->coord,
        &(struct toc_coord_mem_options){.clock = &exec->proc.clock,
                                        .role = "executor",
                                        .node = exec->proc.name,
                                        .address = exec->proc.name,
                                        .node_id = exec->life->node_id});
    exec->consumer_client = toc_consumer_mem_open(
        exec->servers->bus,
        &(struct toc_consumer_mem_options){.group = SIM_GROUP,
                                           .topics = sim_topics,
                                           .n_topics = TOC_PRIORITIES,
                                           .rebalance = exec_lane_rebalance,
                                           .rebalance_arg = &exec->life->lane});
    (void)sim_pool_use(before);
    sim_coord_init(&exec->coord, toc_coord_mem_port(exec->coord_client),
                   exec->servers->coord);
    sim_consumer_init(&exec->consumer,
                      toc_consumer_mem_port(exec->consumer_client),
                      exec->servers->bus);
}

static void
begin_loops(struct sim_exec *exec)
{
    struct sim_proc *proc = &exec->proc;
    struct sim_life_of_exec *life = exec->life;

    sim_proc_loop(proc, "core", step_core, &life->core, &life->core.inbox.bell);
    sim_proc_loop(proc, "results", step_results, &life->results,
                  &life->results.inbox.bell);
    sim_proc_loop(proc, "probe", step_probe, &life->probe, NULL);
    sim_proc_loop(proc, "lane", step_lane, &life->lane, NULL);
    sim_proc_loop(proc, "session", step_session, &life->session, NULL);
    sim_proc_loop(proc, "guard", step_guard, &life->session,
                  &life->session.guard_bell);
}

/* The first loop: what main does, until it has a number and can begin. */
static int64_t
step_main(void *self)
{
    struct sim_exec *exec = self;
    struct sim_life_of_exec *life = exec->life;
    struct toc_str name = toc_str_of(exec->proc.name);
    struct toc_error err = {0};

    if (toc_store_register_node(&exec->store.port, TOC_STR("executor"), name,
                                name, toc_clock_wall(&exec->proc.clock).ms,
                                &life->node_id, &err) != TOC_OK)
        return toc_mono_add_ms(toc_clock_mono(&exec->proc.clock),
                               START_RETRY_MS)
            .ns;
    open_clients(exec);
    make_core(exec);
    life->lane.consumer = &exec->consumer.port;
    begin_loops(exec);
    return FAR_NS;
}

static void
make_life(void *arg)
{
    struct sim_exec *exec = arg;

    exec->life = TOC_NEW(struct sim_life_of_exec);
}

void
sim_exec_start(struct sim_exec *exec)
{
    sim_proc_begin(&exec->proc);
    sim_proc_call(&exec->proc, make_life, exec);
    sim_proc_loop(&exec->proc, "main", step_main, exec, NULL);
}

void
sim_exec_kill(struct sim_exec *exec)
{
    struct sim_pool *before;

    if (!exec->proc.alive)
        return;
    before = sim_pool_use(&exec->proc.world->pool);
    if (exec->coord_client != NULL)
        toc_coord_mem_kill(exec->coord_client);
    if (exec->consumer_client != NULL)
        toc_consumer_mem_kill(exec->consumer_client);
    (void)sim_pool_use(before);
    exec->coord_client = NULL;
    exec->consumer_client = NULL;
    sim_proc_kill(&exec->proc);
    exec->life = NULL;
}

void
sim_exec_cut(struct sim_exec *exec, enum sim_port port, bool cut)
{
    if (port == SIM_STORE)
        exec->store_door.cut = cut;
    if (port == SIM_INVOKE)
        exec->caller.door.cut = cut;
    if (port == SIM_COORD && exec->coord_client != NULL)
        toc_coord_mem_cut(exec->coord_client, cut);
    if (port == SIM_BUS && exec->consumer_client != NULL)
        toc_consumer_mem_cut(exec->consumer_client, cut);
}

/* Its heartbeats stop with it. */
void
sim_exec_freeze(struct sim_exec *exec, int64_t until_ns)
{
    sim_proc_freeze(&exec->proc, until_ns);
    sim_exec_cut(exec, SIM_COORD, true);
    sim_exec_cut(exec, SIM_BUS, true);
}

size_t
sim_exec_busy(const struct sim_exec *exec)
{
    if (!exec->proc.alive || exec->life == NULL)
        return 0;
    return atomic_load(&exec->life->core.hints) +
           atomic_load(&exec->life->core.attempts);
}

void
sim_exec_init(struct sim_exec *exec, const char *name,
              struct sim_servers *servers, struct sim_business *business,
              struct sim_faults *faults)
{
    memset(exec, 0, sizeof *exec);
    sim_proc_init(&exec->proc, servers->world, name);
    exec->servers = servers;
    sim_door_init(&exec->store_door, faults, &exec->proc, SIM_STORE);
    sim_door_init(&exec->coord.door, faults, &exec->proc, SIM_COORD);
    sim_door_init(&exec->consumer.door, faults, &exec->proc, SIM_BUS);
    toc_store_fault_init(&exec->store, toc_store_mem_port(servers->store),
                         &exec->store_door.plan);
    sim_caller_init(&exec->caller, business, faults, &exec->proc);
    exec->caller.door.at_once = true;
}
