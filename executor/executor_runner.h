/*
 * The executor's threads: one for each lane, one for the core (with its
 * claims), one for the results, one for the probe, two for the session.
 *
 *     runner = exec_runner_new(&options);
 *     ... open a consumer for each lane with exec_lane_rebalance and
 *         exec_runner_lane(runner, i) ...
 *     exec_runner_start(runner, consumers);
 *     ...
 *     exec_runner_drain(runner);        no new claims; hints are dropped
 *     ... close the consumers, which may go on beside the next ...
 *     exec_runner_finish(runner, ms);   calls end, results are written
 *     ... all consumers are closed ...
 *     exec_runner_free(runner);
 *
 * Ownership: ports are borrowed and must outlive it. Threads: main.
 */
#ifndef TOC_EXECUTOR_EXECUTOR_RUNNER_H
#define TOC_EXECUTOR_EXECUTOR_RUNNER_H

#include "common/bus/bus.h"
#include "common/clock/clock.h"
#include "common/coord/coord.h"
#include "common/invoke/invoke.h"
#include "common/store/store.h"
#include "executor/counters.h"
#include "executor/lane.h"

#include <stdbool.h>

struct exec_runner_options {
    const struct toc_clock *clock;
    struct toc_store *store;
    struct toc_invoke *invoke;
    struct toc_coord *coord; /* NULL: calls need no session */
    uint32_t node_id;
    size_t lanes;
    size_t hints_max;
    size_t calls_max;
    size_t target_calls_max;
    size_t target_queue_max;
    size_t attempts_max;
    int64_t margin_ms;
    int64_t alive_ms; /* a loop that comes by less often hangs; 0: 10,000 */
};

struct exec_runner;

struct exec_runner *exec_runner_new(const struct exec_runner_options *options);
struct exec_lane *exec_runner_lane(struct exec_runner *runner, size_t i);
void exec_runner_start(struct exec_runner *runner,
                       struct toc_bus_consumer *const *consumers);
/* Is every loop (lanes, core, results, probe, session) coming by? Any thread.
 */
bool exec_runner_lives(struct exec_runner *runner);
/* Can it claim: is every lane in the group? Any thread. */
bool exec_runner_is_fit(struct exec_runner *runner);
const struct exec_counters *exec_runner_counters(struct exec_runner *runner);

/* Stops the lanes and the claims. Returns when no claim is under way (bounded
 * by the store's timeouts, and by 2 s). */
void exec_runner_drain(struct exec_runner *runner);
/* Waits for running calls, up to calls_ms; cancels the rest; writes what came
 * back, for up to results_ms more; then interrupts the store and the
 * coordination, for good, and joins all threads. */
void exec_runner_finish(struct exec_runner *runner, int64_t calls_ms,
                        int64_t results_ms);
void exec_runner_free(struct exec_runner *runner); /* finished, or unstarted */

#endif
