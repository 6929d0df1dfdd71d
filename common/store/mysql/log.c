#include "common/store/mysql/log.h"

#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

#define WHO_MAX 128
#define DETAIL_MAX 1024

void
toc_log_insert(struct toc_buf *sql)
{
    toc_buf_text(sql, "INSERT INTO task_log (" TOC_LOG_COLUMNS ") VALUES ");
}

void
toc_log_values(struct toc_buf *sql, const struct toc_log_row *row)
{
    toc_buf_printf(sql, "(%u,%lld,", row->at.slice, (long long)row->at.slot_ms);
    toc_sql_id(sql, row->at.id);
    toc_buf_printf(sql, ",%lu,%d,%d,%lu,%u,%lu,",
                   (unsigned long)row->at.version, (int)row->kind,
                   (int)row->result, (unsigned long)row->fire, row->attempt,
                   (unsigned long)row->at.version);
    if (row->moves)
        toc_sql_slot(sql, row->next_slot_ms);
    else
        toc_buf_i64(sql, row->next_slot_ms);
    toc_buf_printf(sql, ",%lu,%lu,%lld,%lld,%lld,",
                   (unsigned long)row->sched_node,
                   (unsigned long)row->exec_node, (long long)row->claimed_ms,
                   (long long)row->called_ms, (long long)row->at_ms);
    toc_sql_bytes(sql, toc_row_cut(row->who, WHO_MAX));
    toc_buf_char(sql, ',');
    toc_sql_bytes(
        sql, (struct toc_str){(const char *)row->trace, sizeof row->trace});
    toc_buf_char(sql, ',');
    toc_sql_bytes(sql, toc_row_cut(row->detail, DETAIL_MAX));
    toc_buf_char(sql, ')');
}
