/*
 * A simulated scheduler: the parts of the real one, stepped as its runner does,
 * and what its RPC front does for the clients of the simulation.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_SCHED_H
#define TOC_SIM_SCHED_H

#include "common/store/fault/store_fault.h"
#include "scheduler/access/combiner.h"
#include "scheduler/parts.h"
#include "scheduler/peers.h"
#include "tests/sim/ledger.h"
#include "tests/sim/servers.h"
#include "tests/sim/ways.h"

/* What a client asks; in the world's memory, it outlives both ends. */
struct sim_request {
    struct toc_link link;    /* in the scheduler's queue of commands */
    struct toc_link in_hand; /* among all that a scheduler has */
    struct sim_task *task;
    bool submits;
    enum toc_command_kind kind;
    int64_t due_ms;   /* submit, reschedule */
    int64_t until_ns; /* the client waits so long; later it is not begun */
    /* Out. */
    bool over; /* it will have no effect any more */
    enum toc_status st;
    enum toc_submit_result submitted;
    enum toc_command_result commanded;
};

struct sim_life_of_sched;

struct sim_sched {
    struct sim_proc proc;
    struct sim_servers *servers;
    struct sim_ledger *ledger;
    struct sim_door store_door;
    struct toc_store_fault store;
    struct sim_coord coord;
    struct sim_bus bus;
    struct toc_link commands; /* requests that no worker has yet */
    struct toc_link in_hand;  /* all requests */
    /* Of a life. */
    struct toc_coord_mem *coord_client;
    struct toc_bus_mem *bus_client;
    struct sched_settings settings;
    struct sim_life_of_sched *life;
    bool serves;
};

void sim_sched_init(struct sim_sched *sched, const char *name,
                    struct sim_servers *servers, struct sim_ledger *ledger,
                    struct sim_faults *faults);
void sim_sched_start(struct sim_sched *sched);
void sim_sched_kill(struct sim_sched *sched);
/* Its heartbeats stop with it. */
void sim_sched_freeze(struct sim_sched *sched, int64_t until_ns);
void sim_sched_cut(struct sim_sched *sched, enum sim_port port, bool cut);
/* Hands a request over; false: nobody listens. request->over tells its end, of
 * which those who await the request are nudged. */
bool sim_sched_ask(struct sim_sched *sched, struct sim_request *request);

#endif
