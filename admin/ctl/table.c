#include "admin/ctl/table.h"

#include "admin/ctl/text.h"
#include "common/base/assert.h"

#include <string.h>

void
ctl_table_init(struct ctl_table *table, struct toc_arena *arena,
               const char *const *heads, size_t columns)
{
    TOC_ASSERT(columns > 0 && columns <= CTL_COLUMNS_MAX);
    *table =
        (struct ctl_table){.arena = arena, .heads = heads, .columns = columns};
    for (size_t i = 0; i < columns; i++)
        table->widths[i] = strlen(heads[i]);
}

void
ctl_table_row(struct ctl_table *table, const char *const *cells)
{
    size_t bytes = table->columns * sizeof *cells;

    if (table->rows == table->cap) {
        size_t cap = table->cap > 0 ? 2 * table->cap : 64;
        const char **more =
            toc_arena_alloc(table->arena, cap * table->columns * sizeof *more);
        if (table->rows > 0)
            memcpy(more, table->cells, table->rows * bytes);
        table->cells = more;
        table->cap = cap;
    }
    memcpy(table->cells + table->rows * table->columns, cells, bytes);
    for (size_t i = 0; i < table->columns; i++) {
        size_t width = ctl_columns(cells[i]);
        if (width > table->widths[i])
            table->widths[i] = width;
    }
    table->rows++;
}

/* The last filled cell is not padded: no blanks at the end of a line. */
static void
print_row(const struct ctl_table *table, const char *const *cells, FILE *out)
{
    size_t last = table->columns - 1, pad = 0;

    while (last > 0 && cells[last][0] == '\0')
        last--;
    for (size_t i = 0; i <= last; i++) {
        fprintf(out, "%*s%s", (int)pad, "", cells[i]);
        pad = table->widths[i] - ctl_columns(cells[i]) + 2;
    }
    fputc('\n', out);
}

void
ctl_table_print(struct ctl_table *table, FILE *out)
{
    if (!table->headed)
        print_row(table, table->heads, out);
    table->headed = true;
    for (size_t i = 0; i < table->rows; i++)
        print_row(table, table->cells + i * table->columns, out);
    table->rows = 0;
    table->cap = 0; /* the arena may be reset before the next page */
    table->cells = NULL;
}
