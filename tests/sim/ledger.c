#include "tests/sim/ledger.h"

#include "common/base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
sim_ledger_init(struct sim_ledger *ledger, struct sim_world *world)
{
    memset(ledger, 0, sizeof *ledger);
    ledger->world = world;
    ledger->broken_task = SIM_NO_TASK;
}

struct sim_task *
sim_ledger_add(struct sim_ledger *ledger)
{
    struct sim_task *task;

    TOC_ASSERT(ledger->n < SIM_TASKS_MAX);
    task = &ledger->tasks[ledger->n];
    *task = (struct sim_task){.n = ledger->n++};
    toc_format(task->biz_id, sizeof task->biz_id, "t%d", (int)task->n);
    return task;
}

struct sim_task *
sim_ledger_find(struct sim_ledger *ledger, struct toc_str biz_id)
{
    int32_t n = 0;

    if (biz_id.len < 2 || biz_id.len > 10 || biz_id.ptr[0] != 't')
        return NULL;
    for (size_t i = 1; i < biz_id.len; i++)
        n = n * 10 + (biz_id.ptr[i] - '0');
    return n >= 0 && n < ledger->n ? &ledger->tasks[n] : NULL;
}

void
sim_note(struct sim_ledger *ledger, const char *who, const char *what,
         const struct sim_task *task, int64_t a, int64_t b)
{
    sim_trace_add(
        &ledger->world->trace,
        &(struct sim_entry){.at_ns = ledger->world->now_ns,
                            .who = who,
                            .what = what,
                            .task = task != NULL ? task->n : SIM_NO_TASK,
                            .a = a,
                            .b = b});
}

void
sim_broken(struct sim_ledger *ledger, const struct sim_task *task,
           const char *format, ...)
{
    va_list args;

    if (ledger->broken[0] != '\0')
        return;
    va_start(args, format);
    (void)vsnprintf(ledger->broken, sizeof ledger->broken, format, args);
    va_end(args);
    ledger->broken_task = task != NULL ? task->n : SIM_NO_TASK;
    sim_note(ledger, "check", "broken", task, 0, 0);
    ledger->world->over = true;
}

static void
check_time(struct sim_ledger *ledger, const struct sim_task *task,
           int64_t row_due_ms)
{
    int64_t now_ms = sim_wall_ms(ledger->world);

    if (now_ms < row_due_ms)
        sim_broken(ledger, task, "called %lld ms before the row's due time",
                   (long long)(row_due_ms - now_ms));
    if (task->out == 0 && now_ms < task->due_ms)
        sim_broken(ledger, task,
                   "called %lld ms before the due time that was acknowledged",
                   (long long)(task->due_ms - now_ms));
}

static void
check_promise(struct sim_ledger *ledger, const struct sim_task *task)
{
    if (task->out > 0)
        return;
    if (task->promise == SIM_CANCELLED)
        sim_broken(ledger, task, "called after \"cancelled\" was answered");
    if (task->promise == SIM_PAUSED)
        sim_broken(ledger, task, "called while paused");
    if (task->noted && task->begun >= task->last)
        sim_broken(ledger, task,
                   "called again after a cancel of the running call was noted");
}

void
sim_ledger_begins(struct sim_ledger *ledger, struct sim_task *task,
                  int64_t row_due_ms, uint32_t attempt)
{
    sim_note(ledger, "business", "begins", task, attempt, task->running);
    check_time(ledger, task, row_due_ms);
    check_promise(ledger, task);
    if (task->running > 0)
        sim_broken(ledger, task, "two calls of one fire at the same time");
    if (task->at_most_once && task->begun > task->told)
        sim_broken(ledger, task,
                   "called again, at most once, after an unknown outcome");
    ledger->calls++;
    ledger->repeats += task->done > 0;
    task->begun++;
    task->running++;
}

void
sim_ledger_ends(struct sim_ledger *ledger, struct sim_task *task, bool done)
{
    TOC_ASSERT(task->running > 0);
    task->running--;
    task->done += done;
    sim_note(ledger, "business", done ? "done" : "ends", task, task->done, 0);
}
