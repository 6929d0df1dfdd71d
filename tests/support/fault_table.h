/*
 * A plan of faults as a table: the nth call of an operation meets a fault. It
 * counts what met what, so that a test can tell a fault that never struck.
 *
 *     struct fault_table table = {.rows = {{"acquire", 2, TOC_FAULT_FAIL}}};
 *     toc_coord_fault_init(&fault, inner, fault_table_plan(&table));
 *
 * Threads: one.
 */
#ifndef TOC_TESTS_SUPPORT_FAULT_TABLE_H
#define TOC_TESTS_SUPPORT_FAULT_TABLE_H

#include "common/base/fault.h"

#include <check.h>
#include <string.h>

enum { FAULT_ROWS_MAX = 8, FAULT_OPS_MAX = 48 };

struct fault_row {
    const char *op;
    size_t nth; /* from 1; 0: every call */
    enum toc_fault fault;
};

struct fault_count {
    const char *op;
    size_t calls, ended, met[TOC_FAULTS];
};

struct fault_table {
    struct fault_row rows[FAULT_ROWS_MAX];
    struct toc_fault_plan plan;
    struct fault_count counts[FAULT_OPS_MAX];
    size_t n_counts;
};

static inline struct fault_count *
fault_table_count(struct fault_table *table, const char *op)
{
    for (size_t i = 0; i < table->n_counts; i++)
        if (strcmp(table->counts[i].op, op) == 0)
            return &table->counts[i];
    ck_assert_uint_lt(table->n_counts, FAULT_OPS_MAX);
    table->counts[table->n_counts].op = op;
    return &table->counts[table->n_counts++];
}

static inline enum toc_fault
fault_table_before(void *arg, const struct toc_fault_op *op)
{
    struct fault_table *table = arg;
    struct fault_count *count = fault_table_count(table, op->op);
    enum toc_fault fault = TOC_FAULT_NONE;

    count->calls++;
    for (size_t i = 0; i < FAULT_ROWS_MAX; i++) {
        const struct fault_row *row = &table->rows[i];
        if (row->op != NULL && strcmp(row->op, op->op) == 0 &&
            (row->nth == 0 || row->nth == count->calls))
            fault = row->fault;
    }
    count->met[fault]++;
    return fault;
}

static inline void
fault_table_after(void *arg, const struct toc_fault_op *op, enum toc_status st)
{
    (void)st;
    fault_table_count(arg, op->op)->ended++;
}

static inline const struct toc_fault_plan *
fault_table_plan(struct fault_table *table)
{
    table->plan = (struct toc_fault_plan){
        .before = fault_table_before, .after = fault_table_after, .arg = table};
    return &table->plan;
}

#endif
