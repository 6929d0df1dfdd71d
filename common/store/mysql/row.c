#include "common/store/mysql/row.h"

#include "common/base/assert.h"
#include "common/base/log.h"
#include "common/model/limits.h"
#include "common/store/mysql/sql.h"

#include <string.h>

/* The order of task_info's columns; payload_long is always the last. */
static const char *const names[TOC_ROW_COLUMNS] = {
    "slice",         "slot_ms",      "task_id",       "status",
    "flags",         "attempt",      "claims",        "fire",
    "version",       "lock_token",   "lock_until_ms", "due_ms",
    "created_ms",    "claimed_ms",   "called_ms",     "ended_ms",
    "sched_node",    "exec_node",    "result",        "error",
    "line_id",       "target_id",    "key_hash",      "biz_type",
    "biz_id",        "name",         "spec",          "payload_len",
    "payload_short", "payload_long",
};

void
toc_row_select(struct toc_buf *sql, const char *prefix, enum toc_row_part part)
{
    for (size_t i = 0; i < TOC_ROW_COLUMNS; i++) {
        if (i > 0)
            toc_buf_char(sql, ',');
        if (i == TOC_ROW_COLUMNS - 1 && part == TOC_ROW_HINT) {
            toc_buf_text(sql, "NULL");
            continue;
        }
        toc_buf_text(sql, prefix);
        toc_buf_text(sql, names[i]);
    }
}

void
toc_row_names(struct toc_buf *sql)
{
    toc_row_select(sql, "", TOC_ROW_FULL);
}

size_t
toc_row_size(const struct toc_task *task)
{
    return 700 + 2 * (task->biz_type.len + task->biz_id.len + task->name.len +
                      task->spec.len + task->payload.len + task->error.len);
}

static void
add_numbers(struct toc_buf *sql, const int64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        toc_buf_i64(sql, numbers[i]);
        toc_buf_char(sql, ',');
    }
}

static void
add_payload(struct toc_buf *sql, struct toc_str payload)
{
    toc_buf_u64(sql, payload.len);
    toc_buf_char(sql, ',');
    if (payload.len > TOC_HINT_PAYLOAD_MAX) {
        toc_buf_text(sql, "'',");
        toc_sql_bytes(sql, payload);
    } else {
        toc_sql_bytes(sql, payload);
        toc_buf_text(sql, ",NULL");
    }
}

void
toc_row_values(struct toc_buf *sql, const struct toc_task *task)
{
    const int64_t state[] = {(int64_t)task->state, task->flags, task->attempt,
                             task->claims,         task->fire,  task->version};
    const int64_t times[] = {
        task->lock_until_ms, task->due_ms,    task->created_ms,
        task->claimed_ms,    task->called_ms, task->ended_ms,
        task->sched_node,    task->exec_node, (int64_t)task->result};
    const struct toc_str texts[] = {task->biz_type, task->biz_id, task->name,
                                    task->spec};

    toc_buf_printf(sql, "(%u,%lld,", task->slice, (long long)task->slot_ms);
    toc_sql_id(sql, task->id);
    toc_buf_char(sql, ',');
    add_numbers(sql, state, sizeof state / sizeof state[0]);
    toc_buf_u64(sql, task->lock_token);
    toc_buf_char(sql, ',');
    add_numbers(sql, times, sizeof times / sizeof times[0]);
    toc_sql_bytes(sql, task->error);
    toc_buf_printf(sql, ",%lu,%lu,", (unsigned long)task->line_id,
                   (unsigned long)task->target_id);
    toc_sql_hash(sql, task->key_hash);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        toc_buf_char(sql, ',');
        toc_sql_bytes(sql, texts[i]);
    }
    toc_buf_char(sql, ',');
    add_payload(sql, task->payload);
    toc_buf_char(sql, ')');
}

struct toc_str
toc_row_cut(struct toc_str s, size_t max)
{
    if (s.len <= max)
        return s;
    /* 10xxxxxx goes on with a character that began before */
    while (max > 0 && ((unsigned char)s.ptr[max] & 0xc0) == 0x80)
        max--;
    s.len = max;
    return s;
}

/* ---- reading ------------------------------------------------------------- */

uint64_t
toc_field_u64(MYSQL_ROW row, const unsigned long *lens, size_t i)
{
    uint64_t value = 0;

    for (size_t at = 0; row[i] != NULL && at < lens[i]; at++) {
        if (row[i][at] < '0' || row[i][at] > '9')
            return 0;
        value = value * 10 + (uint64_t)(row[i][at] - '0');
    }
    return value;
}

int64_t
toc_field_i64(MYSQL_ROW row, const unsigned long *lens, size_t i)
{
    int64_t value;

    if (row[i] == NULL || !toc_parse_i64((struct toc_str){row[i], lens[i]},
                                         INT64_MIN, INT64_MAX, &value))
        return 0;
    return value;
}

struct toc_str
toc_field_str(MYSQL_ROW row, const unsigned long *lens, size_t i)
{
    return (struct toc_str){row[i], row[i] != NULL ? lens[i] : 0};
}

bool
toc_field_bytes(MYSQL_ROW row, const unsigned long *lens, size_t i, void *out,
                size_t len)
{
    if (row[i] == NULL || lens[i] != len)
        return false;
    memcpy(out, row[i], len);
    return true;
}

static struct toc_str
text(MYSQL_ROW row, const unsigned long *lens, size_t i,
     struct toc_arena *arena)
{
    struct toc_str s = toc_field_str(row, lens, i);

    return arena != NULL && s.ptr != NULL ? toc_arena_str(arena, s) : s;
}

static struct toc_str
payload_of(MYSQL_ROW row, const unsigned long *lens, struct toc_arena *arena)
{
    uint64_t len = toc_field_u64(row, lens, 27);

    if (len <= TOC_HINT_PAYLOAD_MAX)
        return text(row, lens, 28, arena);
    if (row[29] == NULL)
        return (struct toc_str){NULL, (size_t)len};
    return text(row, lens, 29, arena);
}

enum toc_status
toc_row_decode(MYSQL_ROW row, const unsigned long *lens,
               struct toc_arena *arena, struct toc_task *ret_task,
               struct toc_error *reterr)
{
    struct toc_task task;
    int64_t state = toc_field_i64(row, lens, 3);
    int64_t result = toc_field_i64(row, lens, 18);

    if (!toc_field_bytes(row, lens, 2, task.id.b, sizeof task.id.b) ||
        !toc_field_bytes(row, lens, 22, task.key_hash.b,
                         sizeof task.key_hash.b) ||
        !toc_state_valid(state) || !toc_result_valid(result))
        return toc_error_set(reterr, TOC_DATA_LOSS, "mysql", 0,
                             "a row of task_info makes no sense: slice %lld, "
                             "slot %lld, status %lld, result %lld",
                             (long long)toc_field_i64(row, lens, 0),
                             (long long)toc_field_i64(row, lens, 1),
                             (long long)state, (long long)result);
    task.slice = (uint16_t)toc_field_u64(row, lens, 0);
    task.slot_ms = toc_field_i64(row, lens, 1);
    task.state = (enum toc_state)state;
    task.flags = (uint8_t)toc_field_u64(row, lens, 4);
    task.attempt = (uint16_t)toc_field_u64(row, lens, 5);
    task.claims = (uint16_t)toc_field_u64(row, lens, 6);
    task.fire = (uint32_t)toc_field_u64(row, lens, 7);
    task.version = (uint32_t)toc_field_u64(row, lens, 8);
    task.lock_token = toc_field_u64(row, lens, 9);
    task.lock_until_ms = toc_field_i64(row, lens, 10);
    task.due_ms = toc_field_i64(row, lens, 11);
    task.created_ms = toc_field_i64(row, lens, 12);
    task.claimed_ms = toc_field_i64(row, lens, 13);
    task.called_ms = toc_field_i64(row, lens, 14);
    task.ended_ms = toc_field_i64(row, lens, 15);
    task.sched_node = (uint32_t)toc_field_u64(row, lens, 16);
    task.exec_node = (uint32_t)toc_field_u64(row, lens, 17);
    task.result = (enum toc_result)result;
    task.error = text(row, lens, 19, arena);
    task.line_id = (uint32_t)toc_field_u64(row, lens, 20);
    task.target_id = (uint32_t)toc_field_u64(row, lens, 21);
    task.biz_type = text(row, lens, 23, arena);
    task.biz_id = text(row, lens, 24, arena);
    task.name = text(row, lens, 25, arena);
    task.spec = text(row, lens, 26, arena);
    task.payload = payload_of(row, lens, arena);
    *ret_task = task;
    return TOC_OK;
}

void
toc_row_bad(const struct toc_store *port, MYSQL_ROW row,
            const unsigned long *lens, const struct toc_error *err)
{
    struct toc_bad_row bad = {
        .slice = (uint16_t)toc_field_u64(row, lens, 0),
        .slot_ms = toc_field_i64(row, lens, 1),
        .why = err->msg,
    };

    if (!toc_field_bytes(row, lens, 2, bad.id.b, sizeof bad.id.b))
        bad.id = (struct toc_task_id){{0}};
    TOC_LOG(DEBUG, "store.bad_row", F_MSG("skipped a row"), F_ERR(err));
    toc_store_bad_row(port, &bad);
}
