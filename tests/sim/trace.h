/*
 * What happened, in order: a running hash of all of it, and the last entries
 * themselves for a person to read. Two runs of a seed must have equal hashes.
 *
 * Entries hold numbers and string literals, so that tracing costs little; text
 * is made only when it is printed.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_TRACE_H
#define TOC_SIM_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SIM_TRACE_MAX 16384 /* the last so many are kept */
#define SIM_NO_TASK (-1)

struct sim_entry {
    int64_t at_ns;
    const char *who;  /* literal, or as long-lived as the trace */
    const char *what; /* literal */
    int32_t task;     /* number in the ledger, or SIM_NO_TASK */
    int64_t a, b;
    const char *text; /* literal or NULL */
};

struct sim_trace {
    struct sim_entry *entries;
    size_t n; /* all that there ever were */
    uint64_t hash;
};

void sim_trace_init(struct sim_trace *trace);
void sim_trace_done(struct sim_trace *trace);
void sim_trace_add(struct sim_trace *trace, const struct sim_entry *entry);
/* The last `n` entries about the task and about none (faults, restarts); all
 * tasks' with SIM_NO_TASK. */
void sim_trace_print(const struct sim_trace *trace, int32_t task, size_t n,
                     FILE *out);

#endif
