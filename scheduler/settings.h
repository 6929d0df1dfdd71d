/*
 * The scheduler's settings. Threads: at start only.
 */
#ifndef TOC_SCHEDULER_SETTINGS_H
#define TOC_SCHEDULER_SETTINGS_H

#include "common/app/settings.h"

struct sched_settings {
    struct toc_common_settings common;
    int64_t lead_ms;
    int64_t memory_max_tasks;
    int64_t lag_max;
    int64_t sweep_ms;
    int64_t workers;
    int64_t rpc_threads;
    int64_t retention_days;
    int64_t key_window_hours;
    int64_t payload_max;
    bool move_by_load;
    int64_t move_skew_s;
    int64_t start_timeout_s;
};

extern const struct toc_setting sched_setting_table[];
extern const size_t sched_setting_count;

#endif
