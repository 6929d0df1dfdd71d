/*
 * A history: a cluster, its clients, what goes wrong, and what must hold in the
 * end, all from one seed.
 *
 * First everything happens at once: clients submit, cancel, pause, reschedule,
 * faults strike. Then all is healed, and within a stated time every task must
 * have come to its end.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_HISTORY_H
#define TOC_SIM_HISTORY_H

#include "tests/sim/exec.h"
#include "tests/sim/sched.h"

#define SIM_SCHEDS 2
#define SIM_EXECS 2
#define SIM_CLIENTS 5
#define SIM_HEAL_NS (420 * SIM_SEC)
#define SIM_END_NS (600 * SIM_SEC)

struct sim_history;

struct sim_client {
    struct sim_history *history;
    int tasks; /* still to be submitted */
};

/* Something that ends by itself: a fault's span, a restart. */
struct sim_later {
    struct sim_event event;
    struct sim_history *history;
    struct sim_fault *fault; /* or: */
    struct sim_proc *restart, *thaw;
};

struct sim_history {
    struct sim_world world;
    struct sim_servers servers;
    struct sim_ledger ledger;
    struct sim_business business;
    struct sim_faults faults;
    struct sim_sched scheds[SIM_SCHEDS];
    struct sim_exec execs[SIM_EXECS];
    struct sim_proc clients_proc;
    struct sim_client clients[SIM_CLIENTS];
    struct sim_event watch, heal;
    bool healed;
    uint64_t commands, submits;
};

/* Makes the world and its plan; nothing has happened yet. */
void sim_history_init(struct sim_history *history, uint64_t seed,
                      struct sim_coverage *coverage);
/* Runs it to its end; false: something is broken (see the ledger). */
bool sim_history_run(struct sim_history *history);
void sim_history_done(struct sim_history *history);
/* What a person needs to see of a broken one. */
void sim_history_explain(const struct sim_history *history, size_t entries,
                         FILE *out);

/* ---- clients.c ------------------------------------------------------- */

void sim_clients_begin(struct sim_history *history);
/* No command is out, and every submit was answered. */
bool sim_clients_quiet(const struct sim_history *history);

/* ---- plan.c ---------------------------------------------------------- */

/* Fills the list of faults by the seed. */
void sim_plan(struct sim_history *history);
/* Carries one out that is not an operation's, and ends it after its span. */
void sim_strike(struct sim_history *history, struct sim_fault *fault);
void sim_end_fault(struct sim_history *history, struct sim_fault *fault);

/* ---- verdict.c ------------------------------------------------------- */

/* Whatever must hold at any time. */
void sim_check_now(struct sim_history *history);
/* Whatever must hold when all has been well for long. */
void sim_check_end(struct sim_history *history);

#endif
