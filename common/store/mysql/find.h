/*
 * Finding a task by its key or its id, on a connection that the caller holds.
 *
 * The key row and the task's row are read in one statement, so they belong
 * together. When the key is not there: the history of keys; for an id, then
 * the places where a task of this id may first have been stored, and from there
 * the log's chain of next_slot_ms.
 */
#ifndef TOC_STORE_MYSQL_FIND_H
#define TOC_STORE_MYSQL_FIND_H

#include "common/store/mysql/sql.h"
#include "common/store/mysql/store_mysql_internal.h"

struct toc_found {
    bool there;
    bool has_key; /* its key row is still in task_key */
    struct toc_task task;
};

TOC_MUST_CHECK enum toc_status toc_my_find(struct toc_my_conn *conn,
                                           const struct toc_find *find,
                                           struct toc_arena *arena,
                                           struct toc_found *ret_found,
                                           struct toc_error *reterr);

/* The places where a task of this id may first have been stored: 3 priorities,
 * and as it is, far, paused, held. Versions are 0. */
#define TOC_FIRST_PLACES 12
void toc_my_first_places(struct toc_task_id id,
                         struct toc_sql_row rows[TOC_FIRST_PLACES]);

/* A far row moves into its day, to its due time, without a log row. For a far
 * place: makes it the place where the task is then. */
bool toc_my_far_place(struct toc_sql_row *row);

/* The join of a table that names places (as k) with task_info (as t). */
#define TOC_MY_JOIN_ROW                                                 \
    " JOIN task_info t ON t.slice=k.slice AND t.slot_ms=k.slot_ms AND " \
    "t.task_id=k.task_id WHERE "

#endif
