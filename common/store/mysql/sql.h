/*
 * Building statements. A value enters a statement as a number or as a hex
 * literal (x'00ff'), never as text: nothing to escape, nothing to inject.
 *
 * Rows are named by their whole primary key. A list of rows is written
 * (slice,slot_ms,task_id) IN (...), sorted, so that two transactions lock in
 * the same order; a single row with plain ANDs, because MariaDB searches all
 * partitions for a row constructor with one element.
 */
#ifndef TOC_STORE_MYSQL_SQL_H
#define TOC_STORE_MYSQL_SQL_H

#include "common/base/buf.h"
#include "common/model/task.h"

#include <stdbool.h>

/* A row to be changed; item is its place in the caller's list. */
struct toc_sql_row {
    struct toc_task_ref ref;
    uint64_t token;
    size_t item;
};

/* What a row must have besides its key. */
#define TOC_SQL_VERSION 1u
#define TOC_SQL_TOKEN 2u

void toc_sql_bytes(struct toc_buf *sql, struct toc_str bytes);
void toc_sql_id(struct toc_buf *sql, struct toc_task_id id);
void toc_sql_hash(struct toc_buf *sql, struct toc_key_hash hash);
/* Numbers with commas between. */
void toc_sql_slices(struct toc_buf *sql, const uint16_t *slices, size_t n);

void toc_sql_sort_rows(struct toc_sql_row *rows, size_t n);
/* The condition that picks the rows; prefix: "t." or "". */
void toc_sql_where_rows(struct toc_buf *sql, const char *prefix,
                        const struct toc_sql_row *rows, size_t n,
                        unsigned with);
void toc_sql_where_ref(struct toc_buf *sql, const char *prefix,
                       const struct toc_task_ref *ref, unsigned with);

/* A value for each row, by its task_id; values[rows[i].item] belongs to row i.
 * One value for all is written as such. */
void toc_sql_case_i64(struct toc_buf *sql, const struct toc_sql_row *rows,
                      const int64_t *values, size_t n);
void toc_sql_case_bytes(struct toc_buf *sql, const struct toc_sql_row *rows,
                        const struct toc_str *values, size_t n);
/* The same with slots: see toc_sql_slot. */
void toc_sql_case_slot(struct toc_buf *sql, const struct toc_sql_row *rows,
                       const int64_t *slots, size_t n);

/* A slot that is written under the shared lock of toc_sql_lock_shards: above
 * the low-water mark @low, unless it is parked. */
void toc_sql_slot(struct toc_buf *sql, int64_t slot_ms);
/* What the server made of it. */
int64_t toc_sql_slot_value(int64_t slot_ms, int64_t low_ms);
/* SELECT ... INTO @low: the shared lock on the shards of these rows, and the
 * highest of their marks. */
void toc_sql_lock_shards(struct toc_buf *sql, const struct toc_sql_row *rows,
                         size_t n);
/* BETWEEN: all keys of the business id that the hash or task id begins with. */
void toc_sql_between_biz(struct toc_buf *sql, const uint8_t *first_bytes);

#endif
