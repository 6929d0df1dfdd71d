/*
 * A simulated executor: core, results, lane, probe and session of the real one,
 * stepped as its runner does.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_EXEC_H
#define TOC_SIM_EXEC_H

#include "common/store/fault/store_fault.h"
#include "tests/sim/business.h"
#include "tests/sim/servers.h"
#include "tests/sim/ways.h"

struct sim_life_of_exec;

struct sim_exec {
    struct sim_proc proc;
    struct sim_servers *servers;
    struct sim_door store_door;
    struct toc_store_fault store;
    struct sim_coord coord;
    struct sim_consumer consumer;
    struct sim_caller caller;
    /* Of a life. */
    struct toc_coord_mem *coord_client;
    struct toc_consumer_mem *consumer_client;
    struct sim_life_of_exec *life;
};

void sim_exec_init(struct sim_exec *exec, const char *name,
                   struct sim_servers *servers, struct sim_business *business,
                   struct sim_faults *faults);
void sim_exec_start(struct sim_exec *exec);
void sim_exec_kill(struct sim_exec *exec);
void sim_exec_freeze(struct sim_exec *exec, int64_t until_ns);
void sim_exec_cut(struct sim_exec *exec, enum sim_port port, bool cut);
/* Hints and attempts in its hands; 0 when it is not alive. */
size_t sim_exec_busy(const struct sim_exec *exec);

#endif
