/*
 * Rows of task_log: superseded attempts and commands. A row lies beside its
 * task at the slot that the task had; log_id is the version that the change
 * made, so it is unique, and ascending in time.
 */
#ifndef TOC_STORE_MYSQL_LOG_H
#define TOC_STORE_MYSQL_LOG_H

#include "common/base/buf.h"
#include "common/model/task.h"
#include "common/store/store.h"

struct toc_log_row {
    struct toc_task_ref at; /* where the task was; version: the new one */
    enum toc_log_kind kind;
    enum toc_result result;
    uint32_t fire, sched_node, exec_node;
    uint16_t attempt;
    int64_t next_slot_ms; /* as for toc_sql_slot */
    bool moves;           /* next_slot_ms is written with toc_sql_slot */
    int64_t claimed_ms, called_ms, at_ms;
    struct toc_str who, detail;
    uint8_t trace[16];
};

#define TOC_LOG_COLUMNS                                               \
    "slice,slot_ms,task_id,log_id,kind,result,fire,attempt,"          \
    "version,next_slot_ms,sched_node,exec_node,claimed_ms,called_ms," \
    "at_ms,who,trace,detail"

/* INSERT INTO task_log ... VALUES, without rows. */
void toc_log_insert(struct toc_buf *sql);
void toc_log_values(struct toc_buf *sql, const struct toc_log_row *row);

#endif
