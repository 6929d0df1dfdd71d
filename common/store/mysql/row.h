/*
 * Columns of task_info, and a row of them as a struct toc_task.
 *
 * Every reader selects the same list, from task_info under a given name; what
 * it does not need is left out of the statement's work by what it asks for:
 * HINT leaves out payloads over TOC_HINT_PAYLOAD_MAX (they are stored in a
 * column of their own, which is then not read at all).
 *
 * Threads: any.
 */
#ifndef TOC_STORE_MYSQL_ROW_H
#define TOC_STORE_MYSQL_ROW_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/model/task.h"
#include "common/store/store.h"

#include <mysql.h>

enum toc_row_part {
    TOC_ROW_HINT, /* payload.ptr NULL when it is long */
    TOC_ROW_FULL,
};

#define TOC_ROW_COLUMNS 30

/* The list, for SELECT; prefix is "t." or "". */
void toc_row_select(struct toc_buf *sql, const char *prefix,
                    enum toc_row_part part);
/* The names, in the order of toc_row_values: for INSERT. */
void toc_row_names(struct toc_buf *sql);
void toc_row_values(struct toc_buf *sql, const struct toc_task *task);
/* About how long toc_row_values will be. */
size_t toc_row_size(const struct toc_task *task);

/* Reads the row's first TOC_ROW_COLUMNS fields. Texts are the reply's own
 * (arena NULL) or copied. TOC_DATA_LOSS when the row makes no sense. */
TOC_MUST_CHECK enum toc_status toc_row_decode(MYSQL_ROW row,
                                              const unsigned long *lens,
                                              struct toc_arena *arena,
                                              struct toc_task *ret_task,
                                              struct toc_error *reterr);

/* Tells of a row that makes no sense and is left out, as err says. */
void toc_row_bad(const struct toc_store *port, MYSQL_ROW row,
                 const unsigned long *lens, const struct toc_error *err);

/* At most max bytes, not cutting a character in two. */
struct toc_str toc_row_cut(struct toc_str s, size_t max);

/* Fields of any row; NULL and what is no number is 0. */
int64_t toc_field_i64(MYSQL_ROW row, const unsigned long *lens, size_t i);
uint64_t toc_field_u64(MYSQL_ROW row, const unsigned long *lens, size_t i);
struct toc_str toc_field_str(MYSQL_ROW row, const unsigned long *lens,
                             size_t i);
/* False when the field has another length. */
bool toc_field_bytes(MYSQL_ROW row, const unsigned long *lens, size_t i,
                     void *out, size_t len);

#endif
