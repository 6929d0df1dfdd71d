/* What goes wrong: chosen by the seed, carried out, ended. */
#include "tests/sim/history.h"

#include "common/base/assert.h"

#define FAULTS_MIN 22
#define FAULTS_MAX 45

/* ---- choosing -------------------------------------------------------- */

static struct sim_proc *
choose_proc(struct sim_history *history)
{
    struct sim_world *world = &history->world;

    if (sim_one_in(world, 2))
        return &history->scheds[sim_between(world, 0, SIM_SCHEDS - 1)].proc;
    return &history->execs[sim_between(world, 0, SIM_EXECS - 1)].proc;
}

static struct sim_exec *
exec_of(struct sim_history *history, const struct sim_proc *proc)
{
    for (size_t i = 0; i < SIM_EXECS; i++)
        if (&history->execs[i].proc == proc)
            return &history->execs[i];
    return NULL;
}

static struct sim_sched *
sched_of(struct sim_history *history, const struct sim_proc *proc)
{
    for (size_t i = 0; i < SIM_SCHEDS; i++)
        if (&history->scheds[i].proc == proc)
            return &history->scheds[i];
    return NULL;
}

static enum sim_port
choose_port(struct sim_history *history, const struct sim_proc *proc)
{
    struct sim_world *world = &history->world;

    if (sim_one_in(world, 2))
        return SIM_STORE;
    if (exec_of(history, proc) != NULL)
        return sim_one_in(world, 2) ? SIM_INVOKE : SIM_COORD;
    return sim_one_in(world, 2) ? SIM_BUS : SIM_COORD;
}

static int64_t
choose_span(struct sim_world *world, enum sim_fault_kind kind)
{
    /* Short ones are as telling as long ones. */
    int64_t most_ns = sim_one_in(world, 3) ? 12 * SIM_SEC : SIM_SEC;

    if (kind == SIM_HOLD || kind == SIM_HOLD_LOST)
        most_ns = 3 * SIM_SEC;
    return sim_between(world, 5 * SIM_MS, most_ns);
}

static int64_t
choose_amount(struct sim_history *history, const struct sim_fault *fault)
{
    struct sim_world *world = &history->world;

    if (fault->kind != SIM_SET_CLOCK)
        return sim_between(world, 1, 20);
    /* Executors' clocks may be off by what the margin allows; beyond it they
     * stop claiming, but a step needs a second to be seen. */
    if (exec_of(history, fault->proc) != NULL)
        return sim_between(world, -900, 900);
    return sim_one_in(world, 4) ? sim_between(world, -3600000, 3600000)
                                : sim_between(world, -5000, 5000);
}

void
sim_plan(struct sim_history *history)
{
    struct sim_world *world = &history->world;
    struct sim_faults *faults = &history->faults;

    faults->n = (size_t)sim_between(world, FAULTS_MIN, FAULTS_MAX);
    for (size_t i = 0; i < faults->n; i++) {
        struct sim_fault *fault = &faults->list[i];
        bool of_op = !sim_one_in(world, 3);

        fault->kind = (enum sim_fault_kind)(
            of_op ? sim_between(world, 0, SIM_OP_KINDS - 1)
                  : sim_between(world, SIM_OP_KINDS, SIM_FAULT_KINDS - 1));
        fault->proc = choose_proc(history);
        fault->port = choose_port(history, fault->proc);
        if (fault->kind == SIM_HOLD || fault->kind == SIM_HOLD_LOST)
            fault->port = SIM_STORE;
        fault->at_ns = sim_between(world, SIM_SEC, SIM_HEAL_NS - 20 * SIM_SEC);
        fault->span_ns = choose_span(world, fault->kind);
        fault->amount = choose_amount(history, fault);
    }
}

/* ---- carrying out ---------------------------------------------------- */

static void
cut(struct sim_history *history, struct sim_proc *proc, enum sim_port port,
    bool on)
{
    struct sim_sched *sched = sched_of(history, proc);
    struct sim_exec *exec = exec_of(history, proc);

    if (sched != NULL)
        sim_sched_cut(sched, port, on);
    if (exec != NULL)
        sim_exec_cut(exec, port, on);
}

static void
stop_server(struct sim_history *history, enum sim_port port, bool on)
{
    struct sim_servers *servers = &history->servers;

    if (port == SIM_COORD)
        toc_coord_mem_stop(servers->coord, on);
    else if (port == SIM_BUS)
        toc_bus_mem_stop(servers->bus, on);
    else if (port == SIM_STORE) {
        for (size_t i = 0; i < SIM_SCHEDS; i++)
            cut(history, &history->scheds[i].proc, port, on);
        for (size_t i = 0; i < SIM_EXECS; i++)
            cut(history, &history->execs[i].proc, port, on);
    } else {
        history->business.down = on;
    }
}

static void
expire(struct sim_history *history, struct sim_proc *proc)
{
    struct sim_sched *sched = sched_of(history, proc);
    struct sim_exec *exec = exec_of(history, proc);

    if (sched != NULL && sched->coord_client != NULL)
        toc_coord_mem_expire(sched->coord_client);
    if (exec != NULL && exec->coord_client != NULL)
        toc_coord_mem_expire(exec->coord_client);
}

static void
recreate_topics(struct sim_history *history)
{
    bool keep = sim_one_in(&history->world, 2);

    for (size_t i = 0; i < TOC_PRIORITIES; i++)
        toc_bus_mem_recreate_topic(history->servers.bus, sim_topics[i], keep);
}

static void
strike(struct sim_history *history, struct sim_fault *fault)
{
    struct sim_servers *servers = &history->servers;

    switch (fault->kind) {
    case SIM_CUT:
        cut(history, fault->proc, fault->port, true);
        break;
    case SIM_STOP_SERVER:
        stop_server(history, fault->port, true);
        break;
    case SIM_SET_CLOCK:
        fault->proc->wall_ahead_ns = fault->amount * SIM_MS;
        break;
    case SIM_BUS_LOSE:
        servers->lose += fault->amount;
        break;
    case SIM_BUS_DOUBLE:
        servers->twice += fault->amount;
        break;
    case SIM_BUS_REORDER:
        servers->reorder += fault->amount;
        break;
    case SIM_BUS_RECREATE:
        recreate_topics(history);
        break;
    case SIM_COORD_EXPIRE:
        expire(history, fault->proc);
        break;
    case SIM_COORD_LIE:
        toc_coord_mem_lie(servers->coord, true);
        break;
    case SIM_COORD_WIPE:
        toc_coord_mem_wipe(servers->coord);
        break;
    case SIM_BUSINESS_DOWN:
        history->business.down = true;
        break;
    case SIM_FAIL:
    case SIM_LOSE_ACK:
    case SIM_SLOW:
    case SIM_SLOW_ANSWER:
    case SIM_KILL_BEFORE:
    case SIM_KILL_AFTER:
    case SIM_FREEZE_BEFORE:
    case SIM_FREEZE_AFTER:
    case SIM_HOLD:
    case SIM_HOLD_LOST:
    case SIM_FAULT_KINDS:
        TOC_ASSERT(!"a fault of an operation");
    }
}

void
sim_strike(struct sim_history *history, struct sim_fault *fault)
{
    struct sim_pool *before = sim_pool_use(&history->world.pool);

    strike(history, fault);
    (void)sim_pool_use(before);
}

void
sim_end_fault(struct sim_history *history, struct sim_fault *fault)
{
    struct sim_pool *before = sim_pool_use(&history->world.pool);

    if (fault->kind == SIM_CUT)
        cut(history, fault->proc, fault->port, false);
    else if (fault->kind == SIM_STOP_SERVER)
        stop_server(history, fault->port, false);
    else if (fault->kind == SIM_SET_CLOCK)
        fault->proc->wall_ahead_ns = 0;
    else if (fault->kind == SIM_COORD_LIE)
        toc_coord_mem_lie(history->servers.coord, false);
    else if (fault->kind == SIM_BUSINESS_DOWN)
        history->business.down = false;
    (void)sim_pool_use(before);
}
