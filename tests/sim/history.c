#include "tests/sim/history.h"

#include "common/base/alloc.h"

#include <string.h>

#define WATCH_NS SIM_SEC

static const char *const sched_names[SIM_SCHEDS] = {"scheduler-1",
                                                    "scheduler-2"};
static const char *const exec_names[SIM_EXECS] = {"executor-1", "executor-2"};

/* ---- things that end by themselves ----------------------------------- */

static void
start_again(struct sim_history *history, struct sim_proc *proc)
{
    if (proc->alive)
        return;
    sim_note(&history->ledger, proc->name, "starts", NULL, 0, 0);
    for (size_t i = 0; i < SIM_SCHEDS; i++)
        if (&history->scheds[i].proc == proc)
            sim_sched_start(&history->scheds[i]);
    for (size_t i = 0; i < SIM_EXECS; i++)
        if (&history->execs[i].proc == proc)
            sim_exec_start(&history->execs[i]);
}

static void
thaw(struct sim_history *history, struct sim_proc *proc)
{
    if (proc->frozen_until_ns > history->world.now_ns)
        return; /* frozen again */
    for (size_t i = 0; i < SIM_SCHEDS; i++)
        if (&history->scheds[i].proc == proc)
            sim_sched_cut(&history->scheds[i], SIM_COORD, false);
    for (size_t i = 0; i < SIM_EXECS; i++)
        if (&history->execs[i].proc == proc) {
            sim_exec_cut(&history->execs[i], SIM_COORD, false);
            sim_exec_cut(&history->execs[i], SIM_BUS, false);
        }
}

static void
on_later(struct sim_event *event)
{
    struct sim_later *later = toc_container_of(event, struct sim_later, event);
    struct sim_history *history = later->history;
    struct sim_pool *before = sim_pool_use(&history->world.pool);

    if (later->fault != NULL)
        sim_end_fault(history, later->fault);
    if (later->restart != NULL)
        start_again(history, later->restart);
    if (later->thaw != NULL)
        thaw(history, later->thaw);
    toc_free(later);
    (void)sim_pool_use(before);
}

static void
do_later(struct sim_history *history, const struct sim_later *what,
         int64_t span_ns)
{
    struct sim_pool *before = sim_pool_use(&history->world.pool);
    struct sim_later *later = toc_alloc(sizeof *later);

    *later = *what;
    later->history = history;
    sim_event_init(&later->event, on_later);
    sim_place(&history->world, &later->event, history->world.now_ns + span_ns);
    (void)sim_pool_use(before);
}

/* ---- what faults ask for --------------------------------------------- */

static void
on_strike(void *arg, struct sim_fault *fault)
{
    struct sim_history *history = arg;

    sim_strike(history, fault);
    do_later(history, &(struct sim_later){.fault = fault}, fault->span_ns);
}

struct killing {
    struct sim_event event;
    struct sim_history *history;
    struct sim_proc *proc;
    unsigned life;
    int64_t back_ns;
};

static void
kill_proc(struct sim_history *history, struct sim_proc *proc)
{
    for (size_t i = 0; i < SIM_SCHEDS; i++)
        if (&history->scheds[i].proc == proc)
            sim_sched_kill(&history->scheds[i]);
    for (size_t i = 0; i < SIM_EXECS; i++)
        if (&history->execs[i].proc == proc)
            sim_exec_kill(&history->execs[i]);
}

static void
on_kill(struct sim_event *event)
{
    struct killing *killing = toc_container_of(event, struct killing, event);
    struct sim_history *history = killing->history;
    struct sim_pool *before = sim_pool_use(&history->world.pool);

    if (killing->proc->life == killing->life) {
        kill_proc(history, killing->proc);
        do_later(history, &(struct sim_later){.restart = killing->proc},
                 killing->back_ns);
    }
    toc_free(killing);
    (void)sim_pool_use(before);
}

/* It stands in one of its own loops: it goes when that has left the stage. */
static void
ask_to_kill(void *arg, struct sim_proc *proc, int64_t back_ns)
{
    struct sim_history *history = arg;
    struct sim_pool *before = sim_pool_use(&history->world.pool);
    struct killing *killing = TOC_NEW(struct killing);

    killing->history = history;
    killing->proc = proc;
    killing->life = proc->life;
    killing->back_ns = back_ns;
    sim_event_init(&killing->event, on_kill);
    sim_place(&history->world, &killing->event, history->world.now_ns);
    (void)sim_pool_use(before);
}

static void
freeze(void *arg, struct sim_proc *proc, int64_t span_ns)
{
    struct sim_history *history = arg;
    int64_t until_ns = history->world.now_ns + span_ns;
    struct sim_pool *before = sim_pool_use(&history->world.pool);

    for (size_t i = 0; i < SIM_SCHEDS; i++)
        if (&history->scheds[i].proc == proc)
            sim_sched_freeze(&history->scheds[i], until_ns);
    for (size_t i = 0; i < SIM_EXECS; i++)
        if (&history->execs[i].proc == proc)
            sim_exec_freeze(&history->execs[i], until_ns);
    do_later(history, &(struct sim_later){.thaw = proc}, span_ns);
    (void)sim_pool_use(before);
}

static void
hold(void *arg, bool commits, int64_t span_ns)
{
    struct sim_history *history = arg;

    sim_servers_hold(&history->servers, commits, span_ns);
}

static void
settle(void *arg)
{
    struct sim_history *history = arg;

    sim_servers_settle(&history->servers);
}

/* ---- life ------------------------------------------------------------ */

static void
on_watch(struct sim_event *event)
{
    struct sim_history *history = event->arg;

    sim_check_now(history);
    sim_place(&history->world, event, history->world.now_ns + WATCH_NS);
}

/* From here on all is well. */
static void
on_heal(struct sim_event *event)
{
    struct sim_history *history = event->arg;
    struct sim_faults *faults = &history->faults;

    sim_note(&history->ledger, "world", "heals", NULL, 0, 0);
    history->healed = true;
    sim_servers_heal(&history->servers);
    for (size_t i = 0; i < faults->n; i++) {
        struct sim_fault *fault = &faults->list[i];
        fault->struck = true; /* one that is still armed strikes no more */
        if (!sim_fault_is_of_op(fault->kind))
            sim_end_fault(history, fault);
    }
    for (size_t i = 0; i < SIM_SCHEDS; i++)
        start_again(history, &history->scheds[i].proc);
    for (size_t i = 0; i < SIM_EXECS; i++)
        start_again(history, &history->execs[i].proc);
}

static void
place(struct sim_history *history, struct sim_event *event, sim_event_fn *fn,
      int64_t at_ns)
{
    sim_event_init(event, fn);
    event->arg = history;
    sim_place(&history->world, event, at_ns);
}

void
sim_history_init(struct sim_history *history, uint64_t seed,
                 struct sim_coverage *coverage)
{
    memset(history, 0, sizeof *history);
    sim_world_init(&history->world, seed);
    sim_servers_init(&history->servers, &history->world);
    sim_ledger_init(&history->ledger, &history->world);
    sim_business_init(&history->business, &history->ledger);
    history->faults = (struct sim_faults){.world = &history->world,
                                          .coverage = coverage,
                                          .arg = history,
                                          .strike = on_strike,
                                          .kill = ask_to_kill,
                                          .freeze = freeze,
                                          .hold = hold,
                                          .settle = settle};
    for (size_t i = 0; i < SIM_SCHEDS; i++)
        sim_sched_init(&history->scheds[i], sched_names[i], &history->servers,
                       &history->ledger, &history->faults);
    for (size_t i = 0; i < SIM_EXECS; i++)
        sim_exec_init(&history->execs[i], exec_names[i], &history->servers,
                      &history->business, &history->faults);
    sim_proc_init(&history->clients_proc, &history->world, "clients");
    sim_plan(history);
}

static void
make_topics(struct sim_history *history)
{
    struct toc_bus_mem *client = toc_bus_mem_open(
        history->servers.bus, &(struct toc_bus_mem_options){0});

    for (size_t i = 0; i < TOC_PRIORITIES; i++) {
        struct toc_error err = {0};
        int32_t partitions;
        if (toc_bus_ensure_topic(toc_bus_mem_port(client), sim_topics[i],
                                 SIM_PARTITIONS, 0, &partitions,
                                 &err) != TOC_OK)
            sim_broken(&history->ledger, NULL, "no topic: %s", err.msg);
    }
    toc_bus_mem_close(client);
}

bool
sim_history_run(struct sim_history *history)
{
    make_topics(history);
    for (size_t i = 0; i < SIM_SCHEDS; i++)
        sim_sched_start(&history->scheds[i]);
    for (size_t i = 0; i < SIM_EXECS; i++)
        sim_exec_start(&history->execs[i]);
    sim_proc_begin(&history->clients_proc);
    sim_clients_begin(history);
    sim_faults_begin(&history->faults);
    place(history, &history->watch, on_watch, WATCH_NS);
    place(history, &history->heal, on_heal, SIM_HEAL_NS);
    sim_run_until(&history->world, SIM_END_NS);
    if (!history->world.over)
        sim_check_end(history);
    return history->ledger.broken[0] == '\0';
}

void
sim_history_done(struct sim_history *history)
{
    for (size_t i = 0; i < SIM_SCHEDS; i++)
        sim_sched_kill(&history->scheds[i]);
    for (size_t i = 0; i < SIM_EXECS; i++)
        sim_exec_kill(&history->execs[i]);
    sim_proc_kill(&history->clients_proc);
    sim_servers_done(&history->servers);
    sim_world_done(&history->world);
}

void
sim_history_explain(const struct sim_history *history, size_t entries,
                    FILE *out)
{
    const struct sim_ledger *ledger = &history->ledger;

    fprintf(out, "seed %llu: task %d %s\n",
            (unsigned long long)history->world.seed, (int)ledger->broken_task,
            ledger->broken);
    sim_trace_print(&history->world.trace, ledger->broken_task, entries, out);
    fprintf(out, "faults:\n");
    sim_faults_print(&history->faults, out);
}
