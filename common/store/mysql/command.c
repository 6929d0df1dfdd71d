/*
 * Commands: read the row, decide, compare-and-set on its version. A
 * compare-and-set that finds nothing says nothing: read again and decide anew,
 * from the row.
 *
 * Each call bears a random trace, written into its log row. After a COMMIT
 * whose outcome is unknown, a log row with that trace at the place and version
 * where the command would have written it tells that it took effect.
 */
#include "common/store/mysql/find.h"

#include "common/base/rng.h"
#include "common/store/mysql/log.h"
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"

#include <string.h>

struct commanding {
    struct toc_command *cmd;
    struct toc_arena *arena;
    uint8_t trace[16];
    /* What was last sent, for recognising it. */
    bool sent;
    struct toc_task_ref sent_at; /* version: the new one */
    enum toc_command_result sent_result;
};

/* What to do with the row. */
struct change {
    enum toc_command_result result;
    bool write;
    bool moves;
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
    c->result = TOC_COMMAND_TOO_LATE;
    if (cmd->kind == TOC_COMMAND_RESUME) {
        c->result = TOC_COMMAND_ALREADY;
        return;
    }
    if (cmd->kind != TOC_COMMAND_CANCEL || (task->flags & TOC_FLAG_CANCEL) != 0)
        return;
    c->write = true;
    c->kind = TOC_LOG_KIND_CANCEL_NOTED;
    c->flags = task->flags | TOC_FLAG_CANCEL;
}

/* A row that ends while it is parked moves to now: parked rows are not looked
 * at by what clears ended ones away. */
static void
decide_cancel(const struct toc_command *cmd, const struct toc_task *task,
              struct change *c)
{
    apply(c, TOC_LOG_KIND_CANCEL, TOC_STATE_CANCELLED);
    c->ended_ms = cmd->now_ms;
    if (toc_slot_is_parked(task->slot_ms))
        move_to(c, cmd->now_ms);
}

static void
decide_resume(const struct toc_command *cmd, const struct toc_task *task,
              struct change *c)
{
    apply(c, TOC_LOG_KIND_RESUME, waiting_state(task));
    move_to(c, toc_slot_for_due(task->due_ms, cmd->now_ms));
}

static void
decide_reschedule(const struct toc_command *cmd, const struct toc_task *task,
                  struct change *c)
{
    if (cmd->due_ms == task->due_ms) {
        c->result = TOC_COMMAND_ALREADY;
        return;
    }
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
    if (task->state != TOC_STATE_PAUSED && task->due_ms <= cmd->now_ms &&
        !toc_slot_is_parked(task->slot_ms)) {
        c->result = TOC_COMMAND_ALREADY; /* nothing holds it back */
        return;
    }
    apply(c, TOC_LOG_KIND_RUN_NOW,
          task->state == TOC_STATE_PAUSED ? waiting_state(task) : task->state);
    c->due_ms = cmd->now_ms;
    move_to(c, cmd->now_ms);
}

static void
decide_waiting(const struct toc_command *cmd, const struct toc_task *task,
               struct change *c)
{
    bool paused = task->state == TOC_STATE_PAUSED;

    switch (cmd->kind) {
    case TOC_COMMAND_CANCEL:
        decide_cancel(cmd, task, c);
        break;
    case TOC_COMMAND_PAUSE:
        c->result = TOC_COMMAND_ALREADY;
        if (paused)
            break;
        apply(c, TOC_LOG_KIND_PAUSE, TOC_STATE_PAUSED);
        move_to(c, toc_slot_parked(task->due_ms, TOC_PARK_PAUSED_MS));
        break;
    case TOC_COMMAND_RESUME:
        c->result = TOC_COMMAND_ALREADY;
        if (paused)
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

/* ---- writing
 * ------------------------------------------------------------------ */

static void
write_row(struct toc_my_conn *conn, const struct toc_task *task,
          const struct change *c)
{
    struct toc_task_ref ref = toc_task_ref_of(task);
    struct toc_buf *sql = toc_my_next(conn);

    toc_buf_printf(sql,
                   "UPDATE task_info SET version=version+1,status=%d,flags=%u,"
                   "due_ms=%lld,ended_ms=%lld",
                   (int)c->state, c->flags, (long long)c->due_ms,
                   (long long)c->ended_ms);
    if (c->moves) {
        toc_buf_text(sql, ",slot_ms=");
        toc_sql_slot(sql, c->slot_ms);
    }
    toc_buf_text(sql, " WHERE ");
    toc_sql_where_ref(sql, "", &ref, TOC_SQL_VERSION);
    toc_buf_printf(sql, " AND status=%d", (int)task->state);
    toc_my_guard_rows(conn, 1);
}

static void
write_key(struct toc_buf *sql, const struct toc_task *task, int64_t slot_ms)
{
    toc_buf_text(sql, "UPDATE task_key SET slot_ms=");
    toc_sql_slot(sql, slot_ms);
    toc_buf_text(sql, " WHERE key_hash=");
    toc_sql_hash(sql, task->key_hash);
    toc_buf_text(sql, " AND task_id=");
    toc_sql_id(sql, task->id);
}

static void
write_log(struct toc_buf *sql, const struct commanding *cm,
          const struct toc_task *task, const struct change *c)
{
    struct toc_log_row row = {.at = toc_task_ref_of(task),
                              .kind = c->kind,
                              .fire = task->fire,
                              .next_slot_ms = c->slot_ms,
                              .moves = c->moves,
                              .at_ms = cm->cmd->now_ms,
                              .who = cm->cmd->who,
                              .detail = cm->cmd->why};

    row.at.version = task->version + 1;
    memcpy(row.trace, cm->trace, sizeof row.trace);
    toc_log_insert(sql);
    toc_log_values(sql, &row);
}

static void
fill_result(struct commanding *cm, struct toc_task *task,
            const struct change *c)
{
    struct toc_task *out = toc_arena_alloc(cm->arena, sizeof *out);

    *out = *task;
    if (c->write) {
        out->version++;
        out->state = c->state;
        out->flags = c->flags;
        out->due_ms = c->due_ms;
        out->slot_ms = c->slot_ms;
        out->ended_ms = c->ended_ms;
    }
    cm->cmd->task = out;
    cm->cmd->result = c->result;
}

static enum toc_status
write_change(struct toc_my_conn *conn, struct commanding *cm,
             struct toc_task *task, struct change *c, struct toc_error *reterr)
{
    struct toc_sql_row row = {.ref = toc_task_ref_of(task)};
    enum toc_status st;

    toc_my_begin(conn);
    toc_my_add(conn, "START TRANSACTION");
    if (c->moves)
        toc_sql_lock_shards(toc_my_next(conn), &row, 1);
    write_row(conn, task, c);
    if (c->moves)
        write_key(toc_my_next(conn), task, c->slot_ms);
    write_log(toc_my_next(conn), cm, task, c);
    if (c->moves)
        toc_my_add(conn, "SELECT @low");
    toc_my_commit(conn);
    cm->sent = true;
    cm->sent_at = row.ref;
    cm->sent_at.version = task->version + 1;
    cm->sent_result = c->result;
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK && c->moves)
        c->slot_ms = toc_sql_slot_value(
            c->slot_ms, toc_my_number(conn, conn->n_replies - 2, 0));
    return st;
}

/* Did the change take effect whose outcome is unknown? */
static enum toc_status
was_ours(struct toc_my_conn *conn, const struct commanding *cm, bool *ret_ours,
         struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    enum toc_status st;

    toc_buf_text(sql, "SELECT COUNT(*) FROM task_log WHERE ");
    toc_sql_where_ref(sql, "", &cm->sent_at, 0);
    toc_buf_printf(
        sql, " AND log_id=%lu AND trace=", (unsigned long)cm->sent_at.version);
    toc_sql_bytes(sql,
                  (struct toc_str){(const char *)cm->trace, sizeof cm->trace});
    st = toc_my_run(conn, reterr);
    if (st == TOC_OK)
        *ret_ours = toc_my_number(conn, 0, 0) == 1;
    return st;
}

static enum toc_status
command_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct commanding *cm = arg;
    struct toc_found found;
    struct change c;
    bool ours = false;
    enum toc_status st =
        toc_my_find(conn, &cm->cmd->find, cm->arena, &found, reterr);

    if (st == TOC_OK && cm->sent && conn->again->unknown && found.there &&
        found.task.version >= cm->sent_at.version)
        st = was_ours(conn, cm, &ours, reterr);
    if (st != TOC_OK)
        return st;
    if (!found.there) {
        cm->cmd->result = TOC_COMMAND_NOT_FOUND;
        cm->cmd->task = NULL;
        return TOC_OK;
    }
    if (ours) {
        c = (struct change){.result = cm->sent_result};
        fill_result(cm, &found.task, &c);
        return TOC_OK;
    }
    c = decide(cm->cmd, &found.task);
    if (c.write)
        st = write_change(conn, cm, &found.task, &c, reterr);
    if (st == TOC_OK)
        fill_result(cm, &found.task, &c);
    return st;
}

enum toc_status
toc_my_command(void *self, struct toc_command *command, struct toc_arena *arena,
               struct toc_error *reterr)
{
    struct commanding cm = {.cmd = command, .arena = arena};

    command->task = NULL;
    toc_rng_bytes(cm.trace, sizeof cm.trace);
    return toc_my_transact(self, command_body, &cm, command->now_ms, reterr);
}
