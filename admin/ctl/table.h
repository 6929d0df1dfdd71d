/*
 * Tables of text: columns as wide as their widest cell, two spaces apart.
 *
 * Ownership: cells are borrowed until ctl_table_print. Threads: one.
 */
#ifndef TOC_ADMIN_CTL_TABLE_H
#define TOC_ADMIN_CTL_TABLE_H

#include "common/base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define CTL_COLUMNS_MAX 12

struct ctl_table {
    struct toc_arena *arena;
    const char *const *heads;
    size_t columns;
    const char **cells; /* rows * columns */
    size_t rows, cap;
    size_t widths[CTL_COLUMNS_MAX]; /* kept: the next page lines up */
    bool headed;                    /* the heading was printed */
};

/* heads: static. */
void ctl_table_init(struct ctl_table *table, struct toc_arena *arena,
                    const char *const *heads, size_t columns);
/* cells: as many as columns, safe to show (ctl_safe). */
void ctl_table_row(struct ctl_table *table, const char *const *cells);
/* Prints what was added since the last print; the heading first, once, also
 * when there is no row. */
void ctl_table_print(struct ctl_table *table, FILE *out);

#endif
