#include "scheduler/settings.h"

#include "common/model/limits.h"
#include "scheduler/publisher.h"

#define INT_ROW(name_, fallback_, min_, max_, unit_, doc_)     \
    {                                                          \
        .name = #name_, .kind = TOC_SETTING_INT,               \
        .offset = offsetof(struct sched_settings, name_),      \
        .fallback = (fallback_), .min = (min_), .max = (max_), \
        .unit = (unit_), .doc = (doc_)                         \
    }

const struct toc_setting sched_setting_table[] = {
    TOC_COMMON_SETTINGS(struct sched_settings)
        INT_ROW(lead_ms, "30", 0, SCHED_LEAD_MS_MAX, "ms",
                "How long before its due time a hint is published"),
    INT_ROW(memory_max_tasks, "200000", 1000, 10000000, "tasks",
            "Hints held in memory; what is due later waits in the database"),
    INT_ROW(lag_max, "5000", 100, 100000000, "hints",
            "Undecided hints per Kafka partition from which publishing holds"),
    INT_ROW(sweep_ms, "5000", 1000, 60000, "ms",
            "Time between sweeps for what was missed"),
    INT_ROW(workers, "8", 1, 128, "threads",
            "Threads for everything but Submit; each may hold a connection"),
    INT_ROW(rpc_threads, "0", 0, 64, "threads",
            "Threads that take gRPC calls; 0: half as many as there are cores"),
    INT_ROW(retention_days, "30", 1, 3650, "days",
            "How long ended tasks and dead letters are kept"),
    INT_ROW(key_window_hours, "24", 0, 8760, "hours",
            "How long an ended task holds its key (idempotency window)"),
    INT_ROW(payload_max, "65536", 0, TOC_PAYLOAD_MAX, "bytes",
            "Largest payload that Submit takes"),
    {
        .name = "move_by_load",
        .kind = TOC_SETTING_BOOL,
        .offset = offsetof(struct sched_settings, move_by_load),
        .fallback = "true",
        .unit = "",
        .doc = "Whether this node, when it plans, moves shards off nodes with "
               "too much to do",
    },
    INT_ROW(move_skew_s, "180", 1, 3600, "s",
            "How long nodes must be unevenly loaded before shards move for it; "
            "also the time between moves, at most 30 s"),
    INT_ROW(start_timeout_s, "60", 0, 3600, "s",
            "How long to wait at start for database and Kafka"),
};
const size_t sched_setting_count =
    sizeof sched_setting_table / sizeof sched_setting_table[0];
