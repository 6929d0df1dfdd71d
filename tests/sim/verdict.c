/* What must hold: at any time, and when all has been well for long. */
#include "tests/sim/history.h"

static void
behind_the_mark(void *arg, const struct toc_task *row)
{
    struct sim_history *history = arg;

    sim_broken(&history->ledger, sim_ledger_find(&history->ledger, row->biz_id),
               "an unfinished row stands behind its shard's mark");
}

void
sim_check_now(struct sim_history *history)
{
    toc_store_mem_lost(history->servers.store, behind_the_mark, history);
}

/* Keys lead to their tasks, and the like. */
static void
check_store(struct sim_history *history)
{
    struct toc_buf said = {0};

    if (!toc_store_mem_check(history->servers.store, &said))
        sim_broken(&history->ledger, NULL, "the store: %.*s", (int)said.len,
                   said.data);
    toc_buf_done(&said);
}

/* ---- the end --------------------------------------------------------- */

static bool
may_wait(const struct sim_history *history, const struct sim_task *task)
{
    return task->due_ms > sim_wall_ms(&history->world);
}

static void
check_state(struct sim_history *history, const struct sim_task *task,
            const struct toc_task *row)
{
    struct sim_ledger *ledger = &history->ledger;
    enum toc_state state = row->state;

    if (task->promise == SIM_CANCELLED && state != TOC_STATE_CANCELLED)
        sim_broken(ledger, task, "was cancelled, and is %s",
                   toc_state_text(state));
    else if (task->promise != SIM_CANCELLED && !may_wait(history, task) &&
             !toc_state_ended(state))
        sim_broken(ledger, task, "is still %s at the end",
                   toc_state_text(state));
    else if (state == TOC_STATE_SUCCESS && task->done == 0)
        sim_broken(ledger, task, "is SUCCESS, and no call was done");
    else if (state == TOC_STATE_CANCELLED && task->promise != SIM_CANCELLED &&
             !task->noted)
        sim_broken(ledger, task, "is CANCELLED, and nobody asked for it");
    else if (state == TOC_STATE_SKIPPED && task->manner != SIM_STOPS)
        sim_broken(ledger, task, "is SKIPPED, and nobody stopped it");
}

static void
check_task(struct sim_history *history, const struct sim_task *task)
{
    struct toc_arena arena = {0};
    struct toc_error err = {0};
    struct toc_find find = {.biz_type = TOC_STR(SIM_BIZ_TYPE),
                            .biz_id = toc_str_of(task->biz_id),
                            .name = TOC_STR("close")};
    struct toc_task row;

    if (toc_store_get(toc_store_mem_port(history->servers.store), &find, &arena,
                      &row, &err) == TOC_OK)
        check_state(history, task, &row);
    else if (task->promise != SIM_UNSURE)
        sim_broken(&history->ledger, task,
                   "was acknowledged, and is not there");
    toc_arena_done(&arena);
}

void
sim_check_end(struct sim_history *history)
{
    struct sim_pool *before = sim_pool_use(&history->world.pool);

    sim_check_now(history);
    check_store(history);
    if (!sim_clients_quiet(history))
        sim_broken(&history->ledger, NULL, "a client waits at the end");
    for (int32_t i = 0; i < history->ledger.n; i++)
        check_task(history, &history->ledger.tasks[i]);
    for (size_t i = 0; i < SIM_EXECS; i++)
        if (sim_exec_busy(&history->execs[i]) > 0)
            sim_broken(&history->ledger, NULL, "%s has %zu tasks in hand",
                       history->execs[i].proc.name,
                       sim_exec_busy(&history->execs[i]));
    (void)sim_pool_use(before);
}
