#include "common/store/mysql/sql.h"

#include "common/base/assert.h"
#include "common/store/mysql/dialect.h"

#include <stdlib.h>
#include <string.h>

#define BIZ_BYTES 6

void
toc_sql_bytes(struct toc_buf *sql, struct toc_str bytes)
{
    if (bytes.len == 0) {
        toc_buf_text(sql, "''");
        return;
    }
    toc_buf_text(sql, "x'");
    toc_buf_hex(sql, bytes.ptr, bytes.len);
    toc_buf_char(sql, '\'');
}

void
toc_sql_id(struct toc_buf *sql, struct toc_task_id id)
{
    toc_sql_bytes(sql, (struct toc_str){(const char *)id.b, sizeof id.b});
}

void
toc_sql_hash(struct toc_buf *sql, struct toc_key_hash hash)
{
    toc_sql_bytes(sql, (struct toc_str){(const char *)hash.b, sizeof hash.b});
}

void
toc_sql_slices(struct toc_buf *sql, const uint16_t *slices, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            toc_buf_char(sql, ',');
        toc_buf_u64(sql, slices[i]);
    }
}

static int
cmp_rows(const void *a, const void *b)
{
    const struct toc_sql_row *x = a, *y = b;

    return toc_task_ref_cmp(&x->ref, &y->ref);
}

void
toc_sql_sort_rows(struct toc_sql_row *rows, size_t n)
{
    qsort(rows, n, sizeof *rows, cmp_rows);
}

/* ---- which rows ------------------------------------------------------------
 */

static void
where_one(struct toc_buf *sql, const char *p, const struct toc_sql_row *row,
          unsigned with)
{
    toc_buf_printf(sql, "%sslice=%u AND %sslot_ms=%lld AND %stask_id=", p,
                   row->ref.slice, p, (long long)row->ref.slot_ms, p);
    toc_sql_id(sql, row->ref.id);
    if ((with & TOC_SQL_VERSION) != 0)
        toc_buf_printf(sql, " AND %sversion=%lu", p,
                       (unsigned long)row->ref.version);
    if ((with & TOC_SQL_TOKEN) != 0)
        toc_buf_printf(sql, " AND %slock_token=%llu", p,
                       (unsigned long long)row->token);
}

static void
add_tuple(struct toc_buf *sql, const struct toc_sql_row *row, unsigned with)
{
    toc_buf_char(sql, '(');
    toc_buf_u64(sql, row->ref.slice);
    toc_buf_char(sql, ',');
    toc_buf_i64(sql, row->ref.slot_ms);
    toc_buf_char(sql, ',');
    toc_sql_id(sql, row->ref.id);
    if ((with & TOC_SQL_VERSION) != 0) {
        toc_buf_char(sql, ',');
        toc_buf_u64(sql, row->ref.version);
    }
    if ((with & TOC_SQL_TOKEN) != 0) {
        toc_buf_char(sql, ',');
        toc_buf_u64(sql, row->token);
    }
    toc_buf_char(sql, ')');
}

void
toc_sql_where_rows(struct toc_buf *sql, const char *prefix,
                   const struct toc_sql_row *rows, size_t n, unsigned with)
{
    TOC_ASSERT(n > 0);
    if (n == 1) {
        where_one(sql, prefix, rows, with);
        return;
    }
    toc_buf_printf(sql, "(%sslice,%sslot_ms,%stask_id", prefix, prefix, prefix);
    if ((with & TOC_SQL_VERSION) != 0)
        toc_buf_printf(sql, ",%sversion", prefix);
    if ((with & TOC_SQL_TOKEN) != 0)
        toc_buf_printf(sql, ",%slock_token", prefix);
    toc_buf_text(sql, ") IN (");
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            toc_buf_char(sql, ',');
        add_tuple(sql, &rows[i], with);
    }
    toc_buf_char(sql, ')');
}

void
toc_sql_where_ref(struct toc_buf *sql, const char *prefix,
                  const struct toc_task_ref *ref, unsigned with)
{
    struct toc_sql_row row = {.ref = *ref};

    where_one(sql, prefix, &row, with);
}

/* ---- a value for each -------------------------------------------------------
 */

typedef void add_value(struct toc_buf *sql, const void *values, size_t item);

static void
add_case(struct toc_buf *sql, const struct toc_sql_row *rows, size_t n,
         bool all_equal, add_value *add, const void *values)
{
    if (all_equal) {
        add(sql, values, rows[0].item);
        return;
    }
    toc_buf_text(sql, "CASE task_id");
    for (size_t i = 0; i < n; i++) {
        toc_buf_text(sql, " WHEN ");
        toc_sql_id(sql, rows[i].ref.id);
        toc_buf_text(sql, " THEN ");
        add(sql, values, rows[i].item);
    }
    toc_buf_text(sql, " END");
}

static bool
i64_equal(const struct toc_sql_row *rows, const int64_t *values, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (values[rows[i].item] != values[rows[0].item])
            return false;
    return true;
}

static void
add_i64(struct toc_buf *sql, const void *values, size_t item)
{
    toc_buf_i64(sql, ((const int64_t *)values)[item]);
}

static void
add_slot(struct toc_buf *sql, const void *values, size_t item)
{
    toc_sql_slot(sql, ((const int64_t *)values)[item]);
}

static void
add_bytes(struct toc_buf *sql, const void *values, size_t item)
{
    toc_sql_bytes(sql, ((const struct toc_str *)values)[item]);
}

void
toc_sql_case_i64(struct toc_buf *sql, const struct toc_sql_row *rows,
                 const int64_t *values, size_t n)
{
    add_case(sql, rows, n, i64_equal(rows, values, n), add_i64, values);
}

void
toc_sql_case_slot(struct toc_buf *sql, const struct toc_sql_row *rows,
                  const int64_t *slots, size_t n)
{
    add_case(sql, rows, n, i64_equal(rows, slots, n), add_slot, slots);
}

void
toc_sql_case_bytes(struct toc_buf *sql, const struct toc_sql_row *rows,
                   const struct toc_str *values, size_t n)
{
    bool equal = true;

    for (size_t i = 1; i < n && equal; i++)
        equal = toc_str_eq(values[rows[i].item], values[rows[0].item]);
    add_case(sql, rows, n, equal, add_bytes, values);
}

/* ---- slots and shards
 * ---------------------------------------------------------- */

void
toc_sql_slot(struct toc_buf *sql, int64_t slot_ms)
{
    if (toc_slot_is_parked(slot_ms)) {
        toc_buf_i64(sql, slot_ms);
        return;
    }
    toc_buf_text(sql, "GREATEST(");
    toc_buf_i64(sql, slot_ms);
    toc_buf_text(sql, ",@low+1)");
}

int64_t
toc_sql_slot_value(int64_t slot_ms, int64_t low_ms)
{
    if (toc_slot_is_parked(slot_ms) || slot_ms > low_ms)
        return slot_ms;
    return low_ms + 1;
}

void
toc_sql_lock_shards(struct toc_buf *sql, const struct toc_sql_row *rows,
                    size_t n)
{
    bool seen[TOC_SHARDS] = {false};
    const char *comma = "";

    toc_buf_text(sql, "SELECT MAX(low_ms) INTO @low FROM shard_owner WHERE "
                      "shard_id IN (");
    for (size_t i = 0; i < n; i++) {
        uint16_t shard = toc_slice_shard(rows[i].ref.slice);
        if (seen[shard])
            continue;
        seen[shard] = true;
        toc_buf_printf(sql, "%s%u", comma, shard);
        comma = ",";
    }
    toc_buf_text(sql, ")" TOC_MY_SHARED);
}

void
toc_sql_between_biz(struct toc_buf *sql, const uint8_t *first_bytes)
{
    uint8_t bound[16];

    memcpy(bound, first_bytes, BIZ_BYTES);
    memset(bound + BIZ_BYTES, 0, sizeof bound - BIZ_BYTES);
    toc_buf_text(sql, " BETWEEN ");
    toc_sql_bytes(sql, (struct toc_str){(char *)bound, sizeof bound});
    memset(bound + BIZ_BYTES, 0xff, sizeof bound - BIZ_BYTES);
    toc_buf_text(sql, " AND ");
    toc_sql_bytes(sql, (struct toc_str){(char *)bound, sizeof bound});
}
