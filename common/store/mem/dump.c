/*
 * All that is committed, as text: a line a row, its table first.
 */
#include "common/store/mem/store_mem_internal.h"

static void
add_text(struct toc_buf *out, struct toc_str s)
{
    toc_buf_char(out, '|');
    toc_buf_hex(out, s.ptr, s.len);
}

static void
add_i64(struct toc_buf *out, int64_t value)
{
    toc_buf_char(out, '|');
    toc_buf_i64(out, value);
}

static void
add_bytes(struct toc_buf *out, const uint8_t *bytes, size_t len)
{
    toc_buf_char(out, '|');
    toc_buf_hex(out, bytes, len);
}

static void
add_place(struct toc_buf *out, const struct toc_task_ref *at)
{
    add_i64(out, at->slice);
    add_i64(out, at->slot_ms);
    add_bytes(out, at->id.b, sizeof at->id.b);
}

static void
add_task(struct toc_buf *out, const struct toc_task *task)
{
    const int64_t numbers[] = {(int64_t)task->state, task->flags,
                               task->attempt,        task->claims,
                               task->fire,           task->version};
    const int64_t times[] = {
        task->lock_until_ms, task->due_ms,    task->created_ms,
        task->claimed_ms,    task->called_ms, task->ended_ms,
        task->sched_node,    task->exec_node, (int64_t)task->result,
        task->line_id,       task->target_id};
    struct toc_task_ref at = toc_task_ref_of(task);

    add_place(out, &at);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_i64(out, numbers[i]);
    toc_buf_char(out, '|');
    toc_buf_u64(out, task->lock_token);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        add_i64(out, times[i]);
    add_bytes(out, task->key_hash.b, sizeof task->key_hash.b);
    add_text(out, task->error);
    add_text(out, task->biz_type);
    add_text(out, task->biz_id);
    add_text(out, task->name);
    add_text(out, task->spec);
    add_text(out, task->payload);
}

static void
add_log(struct toc_buf *out, const struct toc_mem_row *row)
{
    const struct toc_log_entry *log = &row->entry;
    const int64_t numbers[] = {
        log->version,    (int64_t)log->kind, (int64_t)log->result,
        log->fire,       log->attempt,       row->next_slot_ms,
        log->sched_node, log->exec_node,     log->claimed_ms,
        log->called_ms,  log->at_ms};

    add_place(out, &row->at);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_i64(out, numbers[i]);
    add_text(out, log->who);
    add_text(out, log->detail);
}

static void
add_row(struct toc_buf *out, const struct toc_mem_row *row)
{
    switch (row->table) {
    case TOC_MEM_TASK:
        toc_buf_text(out, "task");
        add_task(out, &row->task);
        break;
    case TOC_MEM_KEY:
        toc_buf_text(out, "key");
        add_bytes(out, row->hash.b, sizeof row->hash.b);
        add_place(out, &row->at);
        add_bytes(out, row->content, sizeof row->content);
        break;
    case TOC_MEM_HISTORY:
        toc_buf_text(out, "history");
        add_bytes(out, row->hash.b, sizeof row->hash.b);
        add_place(out, &row->at);
        break;
    case TOC_MEM_LOG:
        toc_buf_text(out, "log");
        add_log(out, row);
        break;
    case TOC_MEM_DEAD:
        toc_buf_text(out, "dead");
        add_task(out, &row->task);
        add_i64(out, row->dead_ms);
        add_text(out, row->reason);
        break;
    case TOC_MEM_STRAGGLER:
        toc_buf_text(out, "straggler");
        add_place(out, &row->at);
        break;
    case TOC_MEM_SHARD:
        toc_buf_text(out, "shard");
        add_i64(out, row->shard.shard);
        add_i64(out, (int64_t)row->shard.state);
        add_i64(out, row->shard.low_ms);
        add_i64(out, row->shard.keygc_ms);
        break;
    case TOC_MEM_NODE:
        toc_buf_text(out, "node");
        add_i64(out, row->node.id);
        add_text(out, row->node.role);
        add_text(out, row->node.name);
        add_text(out, row->node.address);
        add_i64(out, row->node.started_ms);
        break;
    }
    toc_buf_char(out, '\n');
}

void
toc_store_mem_dump(struct toc_store_mem *self, struct toc_buf *out)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);

    for (size_t i = 0; i < TOC_MEM_TABLES; i++) {
        struct toc_mem_place place = {0, 0};
        const struct toc_mem_row *row;
        while (TOC_MEM_EACH(store, i, row, place))
            add_row(out, row);
    }
    if (store->n_days > 0)
        toc_buf_printf(out, "days|%lld|%zu\n", (long long)store->day_ends[0],
                       store->n_days);
}
