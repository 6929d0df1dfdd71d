/*
 * What goes wrong in a history: a list made from the seed, so that it can be
 * printed, repeated and cut down.
 *
 * A fault of an operation is armed at its time and strikes the next operation
 * of its process at its port; the others happen at their time. Each strike is
 * counted by kind and operation: a kind that never met an operation was never
 * tested with it.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_FAULTS_H
#define TOC_SIM_FAULTS_H

#include "common/base/fault.h"
#include "tests/sim/proc.h"

#include <stdio.h>

enum sim_fault_kind {
    /* of the next operation of a process at a port */
    SIM_FAIL,        /* no effect, told so */
    SIM_LOSE_ACK,    /* effect, told that it failed */
    SIM_SLOW,        /* before its effect, for span */
    SIM_SLOW_ANSWER, /* after it */
    SIM_KILL_BEFORE, /* the process, restarted after span */
    SIM_KILL_AFTER,
    SIM_FREEZE_BEFORE, /* the process, for span */
    SIM_FREEZE_AFTER,
    SIM_HOLD,      /* the transaction's commit comes after span, unknown */
    SIM_HOLD_LOST, /* and is rolled back */
    SIM_OP_KINDS,
    /* at their time */
    SIM_CUT = SIM_OP_KINDS, /* the process from the port's server, for span */
    SIM_STOP_SERVER,        /* the port's server, for span */
    SIM_SET_CLOCK,          /* the process's, by amount ms, back after span */
    SIM_BUS_LOSE,           /* the next `amount` messages */
    SIM_BUS_DOUBLE,
    SIM_BUS_REORDER,
    SIM_BUS_RECREATE, /* the topics, empty */
    SIM_COORD_EXPIRE, /* the process's session */
    SIM_COORD_LIE,    /* all claims are won, for span */
    SIM_COORD_WIPE,
    SIM_BUSINESS_DOWN, /* nobody answers calls, for span */
    SIM_FAULT_KINDS,
};

enum sim_port { SIM_STORE, SIM_BUS, SIM_COORD, SIM_INVOKE, SIM_PORTS };

#define SIM_FAULTS_MAX 64
#define SIM_OPS_MAX 64

struct sim_fault {
    struct sim_event event;
    enum sim_fault_kind kind;
    enum sim_port port;
    struct sim_proc *proc; /* NULL: none in particular */
    int64_t at_ns, span_ns, amount;
    bool off; /* cut out of the plan */
    bool armed, struck;
};

/* How often each kind met each operation; over many histories. */
struct sim_coverage {
    struct toc_fault_op ops[SIM_OPS_MAX];
    size_t n;
    uint64_t met[SIM_OPS_MAX][SIM_OP_KINDS];
    uint64_t plain[SIM_OPS_MAX]; /* without a fault */
    uint64_t other[SIM_FAULT_KINDS];
};

struct sim_faults {
    struct sim_world *world;
    struct sim_coverage *coverage;
    struct sim_fault list[SIM_FAULTS_MAX];
    size_t n;
    /* The rest of the world. */
    void *arg;
    void (*strike)(void *arg, struct sim_fault *fault); /* at its time */
    void (*kill)(void *arg, struct sim_proc *proc, int64_t back_ns);
    void (*freeze)(void *arg, struct sim_proc *proc, int64_t span_ns);
    void (*hold)(void *arg, bool commits, int64_t span_ns);
    void (*settle)(void *arg); /* an operation of the store had its effect */
};

/* A door: what a process's decorated port asks. */
struct sim_door {
    struct toc_fault_plan plan; /* pass &door.plan */
    struct sim_faults *faults;
    struct sim_proc *proc;
    enum sim_port port;
    bool
        at_once; /* the operation only hands something over: it takes no time */
    bool cut;    /* nothing gets through */
};

const char *sim_fault_name(enum sim_fault_kind kind);
bool sim_fault_is_of_op(enum sim_fault_kind kind);

/* Places all that are not off. */
void sim_faults_begin(struct sim_faults *faults);
void sim_faults_print(const struct sim_faults *faults, FILE *out);
void sim_coverage_print(const struct sim_coverage *coverage, FILE *out);
/* How many pairs of (operation, kind) that can meet never did. */
size_t sim_coverage_missing(const struct sim_coverage *coverage);

void sim_door_init(struct sim_door *door, struct sim_faults *faults,
                   struct sim_proc *proc, enum sim_port port);

#endif
