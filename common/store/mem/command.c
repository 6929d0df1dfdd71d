/*
 * Commands: find the row, decide, write.
 */
#include "common/store/mem/store_mem_internal.h"

/* What to do with the row. */
struct change {
    enum toc_command_result result;
    bool write, moves;
    enum toc_log_kind kind;
    enum toc_state state;
    uint8_t flags;
    int64_t due_ms, slot_ms, ended_ms;
};

static enum toc_state
waiting_state(const struct toc_task *task)
{
    return task->attempt == 0 && task->claims == 0 ? TOC_STATE_INIT
                                                   : TOC_STATE_RETRY;
}

static void
apply(struct change *c, enum toc_log_kind kind, enum toc_state state)
{
    c->result = TOC_COMMAND_APPLIED;
    c->write = true;
    c->kind = kind;
    c->state = state;
}

static void
move_to(struct change *c, int64_t slot_ms)
{
    c->slot_ms = slot_ms;
    c->moves = true;
}

static void
decide_executing(const struct toc_command *cmd, const struct toc_task *task,
                 struct change *c)
{
    c->result = cmd->kind == TOC_COMMAND_RESUME ? TOC_COMMAND_ALREADY
                                                : TOC_COMMAND_TOO_LATE;
    if (cmd->kind != TOC_COMMAND_CANCEL || (task->flags & TOC_FLAG_CANCEL) != 0)
        return;
    c->write = true;
    c->kind = TOC_LOG_KIND_CANCEL_NOTED;
    c->flags = task->flags | TOC_FLAG_CANCEL;
}

static void
decide_cancel(const struct toc_command *cmd, const struct toc_task *task,
              struct change *c)
{
    apply(c, TOC_LOG_KIND_CANCEL, TOC_STATE_CANCELLED);
    c->ended_ms = cmd->now_ms;
    if (toc_slot_is_parked(task->slot_ms))
        move_to(c, cmd->now_ms); /* ended rows are not parked */
}

static void
decide_pause(const struct toc_task *task, struct change *c)
{
    c->result = TOC_COMMAND_ALREADY;
    if (task->state == TOC_STATE_PAUSED)
        return;
    apply(c, TOC_LOG_KIND_PAUSE, TOC_STATE_PAUSED);
    move_to(c, toc_slot_parked(task->due_ms, TOC_PARK_PAUSED_MS));
}

static void
decide_resume(const struct toc_command *cmd, const struct toc_task *task,
              struct change *c)
{
    c->result = TOC_COMMAND_ALREADY;
    if (task->state != TOC_STATE_PAUSED)
        return;
    apply(c, TOC_LOG_KIND_RESUME, waiting_state(task));
    move_to(c, toc_slot_for_due(task->due_ms, cmd->now_ms));
}

static void
decide_reschedule(const struct toc_command *cmd, const struct toc_task *task,
                  struct change *c)
{
    c->result = TOC_COMMAND_ALREADY;
    if (cmd->due_ms == task->due_ms)
        return;
    apply(c, TOC_LOG_KIND_RESCHEDULE, task->state);
    c->due_ms = cmd->due_ms;
    if (task->state == TOC_STATE_PAUSED)
        move_to(c, toc_slot_parked(cmd->due_ms, TOC_PARK_PAUSED_MS));
    else
        move_to(c, toc_slot_for_due(cmd->due_ms, cmd->now_ms));
}

static void
decide_run_now(const struct toc_command *cmd, const struct toc_task *task,
               struct change *c)
{
    bool paused = task->state == TOC_STATE_PAUSED;

    c->result = TOC_COMMAND_ALREADY;
    if (!paused && task->due_ms <= cmd->now_ms &&
        !toc_slot_is_parked(task->slot_ms))
        return; /* nothing holds it back */
    apply(c, TOC_LOG_KIND_RUN_NOW, paused ? waiting_state(task) : task->state);
    c->due_ms = cmd->now_ms;
    move_to(c, cmd->now_ms);
}

static void
decide_waiting(const struct toc_command *cmd, const struct toc_task *task,
               struct change *c)
{
    switch (cmd->kind) {
    case TOC_COMMAND_CANCEL:
        decide_cancel(cmd, task, c);
        break;
    case TOC_COMMAND_PAUSE:
        decide_pause(task, c);
        break;
    case TOC_COMMAND_RESUME:
        decide_resume(cmd, task, c);
        break;
    case TOC_COMMAND_RESCHEDULE:
        decide_reschedule(cmd, task, c);
        break;
    case TOC_COMMAND_RUN_NOW:
        decide_run_now(cmd, task, c);
        break;
    }
}

static struct change
decide(const struct toc_command *cmd, const struct toc_task *task)
{
    struct change c = {.state = task->state,
                       .flags = task->flags,
                       .due_ms = task->due_ms,
                       .slot_ms = task->slot_ms,
                       .ended_ms = task->ended_ms};

    if (cmd->etag != 0 && cmd->etag != task->version)
        c.result = TOC_COMMAND_MISMATCH;
    else if (task->state == TOC_STATE_EXECUTING)
        decide_executing(cmd, task, &c);
    else if (!toc_state_ended(task->state))
        decide_waiting(cmd, task, &c);
    else if (cmd->kind == TOC_COMMAND_CANCEL &&
             task->state == TOC_STATE_CANCELLED)
        c.result = TOC_COMMAND_ALREADY;
    else
        c.result = TOC_COMMAND_ENDED;
    return c;
}

static const struct toc_mem_row *
write_change(struct toc_mem_txn *txn, const struct toc_command *cmd,
             const struct toc_task_ref *at, const struct change *c)
{
    struct toc_mem_row *row = toc_mem_task_change(txn, at), *log;
    struct toc_task_ref was = *at;

    row->task.version++;
    row->task.state = c->state;
    row->task.flags = c->flags;
    row->task.due_ms = c->due_ms;
    row->task.ended_ms = c->ended_ms;
    if (c->moves) {
        int64_t low_ms = toc_mem_share_low(txn, toc_slice_shard(at->slice));
        row =
            toc_mem_task_move(txn, row, toc_mem_slot_above(c->slot_ms, low_ms));
    }
    was.version = row->task.version;
    log = toc_mem_log_new(&was, c->kind);
    log->next_slot_ms = row->task.slot_ms;
    log->entry.fire = row->task.fire;
    log->entry.at_ms = cmd->now_ms;
    toc_mem_log_texts(log, cmd->who, cmd->why);
    toc_mem_insert(txn, log);
    return row;
}

enum toc_status
toc_mem_command(void *self, struct toc_command *command,
                struct toc_arena *arena, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_mem_leave)
    struct toc_store_mem *store = toc_mem_enter(self);
    TOC_CLEANUP(toc_mem_txn_done) struct toc_mem_txn txn = {.store = store};
    const struct toc_mem_row *row = toc_mem_find(store, &command->find);
    struct toc_task *task;
    struct toc_task_ref at;
    struct change c;

    command->task = NULL;
    command->result = TOC_COMMAND_NOT_FOUND;
    if (row == NULL)
        return TOC_OK;
    at = toc_task_ref_of(&row->task);
    c = decide(command, &row->task);
    if (c.write)
        row = write_change(&txn, command, &at, &c);
    task = toc_arena_alloc(arena, sizeof *task);
    toc_mem_task_out(row, false, arena, task);
    command->result = c.result;
    command->task = task;
    return toc_mem_commit(&txn, command->now_ms, reterr);
}
