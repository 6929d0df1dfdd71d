/*
 * From bus messages to hints in memory. What cannot be decoded is logged,
 * counted and passed: it is a delivery without hints.
 *
 * Threads: its lane's.
 */
#ifndef TOC_EXECUTOR_INTAKE_H
#define TOC_EXECUTOR_INTAKE_H

#include "common/base/arena.h"
#include "common/bus/bus.h"
#include "executor/core.h"

/* A hint comes some tens of ms before its time; one that is due later than this
 * is no honest hint, and would hold its partition's offset. Dropped: its task
 * is hinted again. */
#define EXEC_HINT_AHEAD_MS_MAX INT64_C(60000)

struct exec_intake {
    struct exec_counters *counters;
    struct toc_arena scratch;
    int64_t told_ms; /* garbage is logged once a second at most */
    uint64_t untold;
};

void exec_intake_done(struct exec_intake *intake);
/* The caller's. */
struct exec_delivery *exec_intake_decode(struct exec_intake *intake,
                                         const struct toc_bus_message *message,
                                         const struct exec_place *place,
                                         int64_t now_ms);

#endif
