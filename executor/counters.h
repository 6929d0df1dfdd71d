/*
 * What the executor counts, for its log and for tests. Threads: any.
 */
#ifndef TOC_EXECUTOR_COUNTERS_H
#define TOC_EXECUTOR_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#define EXEC_COUNTER_MAP(X)                                    \
    X(messages, "messages received")                           \
    X(garbage, "messages that could not be decoded")           \
    X(hints, "hints received")                                 \
    X(far, "hints dropped, due too far ahead")                 \
    X(merged, "hints equal to one that waited")                \
    X(kept, "hints decided while their target was full")       \
    X(crowded, "hints dropped, their target's queue was full") \
    X(dropped, "hints dropped, the database refuses them")     \
    X(claims, "claim transactions")                            \
    X(won, "claims won")                                       \
    X(taken, "claims lost: done, moved, changed, or taken")    \
    X(early, "claims put off by the database's clock")         \
    X(calls, "calls begun")                                    \
    X(fires, "fires called")                                   \
    X(given_back, "claimed but not called: given back")        \
    X(writes, "result transactions")                           \
    X(done, "fires written back as success")                   \
    X(skipped, "fires written back as skipped")                \
    X(retried, "fires written back as retry or snooze")        \
    X(dead, "fires written back as dead letters")              \
    X(cancelled, "fires that ended as cancelled")              \
    X(lost, "results that came after their lock")              \
    X(renewed, "locks of waiting results prolonged")           \
    X(unwritten, "results that could not be written")

struct exec_counters {
#define X(name, text) _Atomic uint64_t name;
    EXEC_COUNTER_MAP(X)
#undef X
};

#define EXEC_COUNT(counters, name, by)                        \
    ((void)atomic_fetch_add_explicit(&(counters)->name, (by), \
                                     memory_order_relaxed))

#define EXEC_COUNTED(counters, name) \
    (atomic_load_explicit(&(counters)->name, memory_order_relaxed))

/* One line with all of them. */
void exec_counters_log(const struct exec_counters *counters);

#endif
