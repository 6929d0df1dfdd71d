#include "tests/sim/faults.h"

#include "common/base/assert.h"

#include <string.h>

/* How long an operation is under way, each way, when nothing goes wrong. */
#define WAY_NS_MIN (SIM_MS / 20)
#define WAY_NS_MAX (SIM_MS / 2)

static const char *const kind_names[SIM_FAULT_KINDS] = {
    [SIM_FAIL] = "fail",
    [SIM_LOSE_ACK] = "lose-ack",
    [SIM_SLOW] = "slow",
    [SIM_SLOW_ANSWER] = "slow-answer",
    [SIM_KILL_BEFORE] = "kill-before",
    [SIM_KILL_AFTER] = "kill-after",
    [SIM_FREEZE_BEFORE] = "freeze-before",
    [SIM_FREEZE_AFTER] = "freeze-after",
    [SIM_HOLD] = "hold",
    [SIM_HOLD_LOST] = "hold-lost",
    [SIM_CUT] = "cut",
    [SIM_STOP_SERVER] = "stop-server",
    [SIM_SET_CLOCK] = "set-clock",
    [SIM_BUS_LOSE] = "bus-lose",
    [SIM_BUS_DOUBLE] = "bus-double",
    [SIM_BUS_REORDER] = "bus-reorder",
    [SIM_BUS_RECREATE] = "bus-recreate",
    [SIM_COORD_EXPIRE] = "coord-expire",
    [SIM_COORD_LIE] = "coord-lie",
    [SIM_COORD_WIPE] = "coord-wipe",
    [SIM_BUSINESS_DOWN] = "business-down",
};

static const char *const port_names[SIM_PORTS] = {"store", "bus", "coord",
                                                  "invoke"};

const char *
sim_fault_name(enum sim_fault_kind kind)
{
    return kind_names[kind];
}

bool
sim_fault_is_of_op(enum sim_fault_kind kind)
{
    return kind < SIM_OP_KINDS;
}

/* ---- coverage -------------------------------------------------------- */

static size_t
place_of(struct sim_coverage *coverage, const struct toc_fault_op *op)
{
    size_t i = 0;

    while (i < coverage->n && (strcmp(coverage->ops[i].port, op->port) != 0 ||
                               strcmp(coverage->ops[i].op, op->op) != 0))
        i++;
    if (i == coverage->n) {
        TOC_ASSERT(i < SIM_OPS_MAX);
        coverage->ops[coverage->n++] = *op;
    }
    return i;
}

/* Only a transaction that writes can be held. */
static bool
can_meet(const struct toc_fault_op *op, enum sim_fault_kind kind)
{
    static const char *const writes[] = {"submit", "claim", "finish", "command",
                                         "free_expired"};

    if (kind == SIM_LOSE_ACK)
        return strcmp(op->op, "send") != 0; /* it only hands over */
    if (kind != SIM_HOLD && kind != SIM_HOLD_LOST)
        return true;
    if (strcmp(op->port, "store") != 0)
        return false;
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++)
        if (strcmp(op->op, writes[i]) == 0)
            return true;
    return false;
}

size_t
sim_coverage_missing(const struct sim_coverage *coverage)
{
    size_t missing = 0;

    for (size_t i = 0; i < coverage->n; i++)
        for (int kind = 0; kind < SIM_OP_KINDS; kind++)
            missing += coverage->met[i][kind] == 0 &&
                       can_meet(&coverage->ops[i], (enum sim_fault_kind)kind);
    return missing;
}

void
sim_coverage_print(const struct sim_coverage *coverage, FILE *out)
{
    fprintf(out, "%-26s %12s", "operation", "plain");
    for (int kind = 0; kind < SIM_OP_KINDS; kind++)
        fprintf(out, " %13s", kind_names[kind]);
    for (size_t i = 0; i < coverage->n; i++) {
        fprintf(out, "\n%-8s %-17s %12llu", coverage->ops[i].port,
                coverage->ops[i].op, (unsigned long long)coverage->plain[i]);
        for (int kind = 0; kind < SIM_OP_KINDS; kind++)
            fprintf(out, " %13llu", (unsigned long long)coverage->met[i][kind]);
    }
    fputc('\n', out);
    for (int kind = SIM_OP_KINDS; kind < SIM_FAULT_KINDS; kind++)
        fprintf(out, "%-26s %12llu\n", kind_names[kind],
                (unsigned long long)coverage->other[kind]);
}

/* ---- the list -------------------------------------------------------- */

static void
note(struct sim_faults *faults, const struct sim_fault *fault, const char *op)
{
    struct sim_world *world = faults->world;

    sim_trace_add(&world->trace,
                  &(struct sim_entry){
                      .at_ns = world->now_ns,
                      .who = fault->proc != NULL ? fault->proc->name : "world",
                      .what = kind_names[fault->kind],
                      .task = SIM_NO_TASK,
                      .a = fault->span_ns / SIM_MS,
                      .b = fault->amount,
                      .text = op});
}

static void
on_time(struct sim_event *event)
{
    struct sim_fault *fault = toc_container_of(event, struct sim_fault, event);
    struct sim_faults *faults = event->arg;

    if (sim_fault_is_of_op(fault->kind)) {
        fault->armed = true;
        return;
    }
    fault->struck = true;
    faults->coverage->other[fault->kind]++;
    note(faults, fault, port_names[fault->port]);
    faults->strike(faults->arg, fault);
}

void
sim_faults_begin(struct sim_faults *faults)
{
    for (size_t i = 0; i < faults->n; i++) {
        struct sim_fault *fault = &faults->list[i];

        fault->armed = fault->struck = false;
        sim_event_init(&fault->event, on_time);
        fault->event.arg = faults;
        if (!fault->off)
            sim_place(faults->world, &fault->event, fault->at_ns);
    }
}

void
sim_faults_print(const struct sim_faults *faults, FILE *out)
{
    for (size_t i = 0; i < faults->n; i++) {
        const struct sim_fault *fault = &faults->list[i];

        if (fault->off)
            continue;
        fprintf(out, "  #%-3zu %10.3f s  %-14s %-12s %-7s span %lld ms, %lld\n",
                i, (double)fault->at_ns / 1e9, kind_names[fault->kind],
                fault->proc != NULL ? fault->proc->name : "-",
                port_names[fault->port], (long long)(fault->span_ns / SIM_MS),
                (long long)fault->amount);
    }
}

/* ---- doors ----------------------------------------------------------- */

static struct sim_fault *
armed_for(struct sim_door *door, const struct toc_fault_op *op)
{
    struct sim_faults *faults = door->faults;

    for (size_t i = 0; i < faults->n; i++) {
        struct sim_fault *fault = &faults->list[i];
        if (fault->armed && !fault->struck && fault->proc == door->proc &&
            fault->port == door->port && can_meet(op, fault->kind))
            return fault;
    }
    return NULL;
}

static void
pause_for(struct sim_door *door, int64_t ns)
{
    sim_loop_pause(door->proc->world->now_ns + ns);
}

static void
on_the_way(struct sim_door *door)
{
    if (!door->at_once)
        pause_for(door, sim_between(door->proc->world, WAY_NS_MIN, WAY_NS_MAX));
}

/* Its loops never go on: the kill is an event of its own. */
static void
die(struct sim_door *door, const struct sim_fault *fault)
{
    door->faults->kill(door->faults->arg, door->proc, fault->span_ns);
    pause_for(door, INT64_MAX / 2);
}

static void
freeze(struct sim_door *door, const struct sim_fault *fault)
{
    door->faults->freeze(door->faults->arg, door->proc, fault->span_ns);
    pause_for(door, 0); /* goes on when it thaws */
}

/* Those after the effect are after's. */
static enum toc_fault
strike_before(struct sim_door *door, const struct sim_fault *fault)
{
    struct sim_faults *faults = door->faults;
    enum sim_fault_kind kind = fault->kind;

    if (kind == SIM_FAIL)
        return TOC_FAULT_FAIL;
    if (kind == SIM_LOSE_ACK)
        return TOC_FAULT_LOSE_ACK;
    if (kind == SIM_SLOW)
        pause_for(door, fault->span_ns);
    else if (kind == SIM_KILL_BEFORE)
        die(door, fault);
    else if (kind == SIM_FREEZE_BEFORE)
        freeze(door, fault);
    else if (kind == SIM_HOLD || kind == SIM_HOLD_LOST)
        faults->hold(faults->arg, kind == SIM_HOLD, fault->span_ns);
    return TOC_FAULT_NONE;
}

static struct sim_fault *
draw(struct sim_door *door, const struct toc_fault_op *op)
{
    struct sim_coverage *coverage = door->faults->coverage;
    struct sim_fault *fault = armed_for(door, op);
    size_t place = place_of(coverage, op);

    if (fault == NULL) {
        coverage->plain[place]++;
        return NULL;
    }
    fault->struck = true;
    coverage->met[place][fault->kind]++;
    note(door->faults, fault, op->op);
    return fault;
}

static enum toc_fault
before(void *arg, const struct toc_fault_op *op)
{
    struct sim_door *door = arg;
    enum toc_fault how = TOC_FAULT_NONE;
    struct sim_fault *fault = NULL;

    if (sim_loop_running() != NULL) {
        fault = draw(door, op);
        on_the_way(door);
        if (fault != NULL)
            how = strike_before(door, fault);
        sim_loop_running()->fault = fault;
    }
    if (door->cut)
        how = TOC_FAULT_FAIL;
    if (how != TOC_FAULT_FAIL) /* the server's memory */
        (void)sim_pool_use(&door->proc->world->pool);
    return how;
}

static void
after(void *arg, const struct toc_fault_op *op, enum toc_status st)
{
    struct sim_door *door = arg;
    const struct sim_fault *fault;

    (void)op;
    (void)st;
    if (door->port == SIM_STORE)
        door->faults->settle(door->faults->arg);
    (void)sim_pool_use(&door->proc->pool);
    if (sim_loop_running() == NULL)
        return;
    fault = sim_loop_running()->fault;
    on_the_way(door);
    if (fault == NULL)
        return;
    if (fault->kind == SIM_SLOW_ANSWER)
        pause_for(door, fault->span_ns);
    else if (fault->kind == SIM_KILL_AFTER)
        die(door, fault);
    else if (fault->kind == SIM_FREEZE_AFTER)
        freeze(door, fault);
}

void
sim_door_init(struct sim_door *door, struct sim_faults *faults,
              struct sim_proc *proc, enum sim_port port)
{
    *door = (struct sim_door){.plan = {before, after, door},
                              .faults = faults,
                              .proc = proc,
                              .port = port};
}
