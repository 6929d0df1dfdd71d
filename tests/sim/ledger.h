/*
 * What was promised, and whether it is kept: the tasks of a history, what their
 * clients were told, and the calls that came.
 *
 * Checked when a call begins at the business, by the true time:
 *   - not before the due time that was last acknowledged (nor the row's own);
 *   - not after a command answered "cancelled", nor while "paused" stands;
 *   - no other call of the same fire is in progress (handlers honour
 *     toc-not-after: they refuse later calls, and stop at it);
 *   - a task that is at most once begins again only when it is known how each
 *     call before ended.
 * A command whose answer is out leaves both outcomes open.
 *
 * The first thing that is broken ends the world.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_LEDGER_H
#define TOC_SIM_LEDGER_H

#include "common/model/task.h"
#include "tests/sim/world.h"

#define SIM_TASKS_MAX 512
#define SIM_BIZ_TYPE "sim.order"

enum sim_promise {
    SIM_UNSURE, /* a submit is out, or was never answered with success */
    SIM_LIVE,   /* will be called */
    SIM_PAUSED,
    SIM_CANCELLED,
};

/* How the business answers a task's calls. */
enum sim_manner {
    SIM_SUCCEEDS,
    SIM_FAILS_ONCE, /* then succeeds */
    SIM_FAILS,      /* always: it becomes a dead letter */
    SIM_REJECTS,
    SIM_SNOOZES_ONCE,
    SIM_HANGS_ONCE, /* until its deadline */
    SIM_LATE_ONCE,  /* done, and answers after the deadline */
    SIM_STOPS,
    SIM_MANNERS,
};

struct sim_task {
    int32_t n; /* its number */
    char biz_id[12];
    int64_t due_ms; /* as last acknowledged */
    enum sim_manner manner;
    enum toc_priority priority;
    bool at_most_once;
    enum sim_promise promise;
    int out;     /* commands whose answers are out */
    bool noted;  /* a cancel was answered "too late": no retry follows */
    int last;    /* noted: no call begins beyond this number of them */
    int begun;   /* calls that began */
    int told;    /* answers to such calls that reached who had asked */
    int running; /* in progress, within toc-not-after */
    int done;    /* that the business did */
};

struct sim_ledger {
    struct sim_world *world;
    struct sim_task tasks[SIM_TASKS_MAX];
    int32_t n;
    char broken[256]; /* "": nothing */
    int32_t broken_task;
    uint64_t calls, repeats, refused;
};

void sim_ledger_init(struct sim_ledger *ledger, struct sim_world *world);
struct sim_task *sim_ledger_add(struct sim_ledger *ledger);
/* By its business id; NULL: not ours. */
struct sim_task *sim_ledger_find(struct sim_ledger *ledger,
                                 struct toc_str biz_id);

/* A call begins. */
void sim_ledger_begins(struct sim_ledger *ledger, struct sim_task *task,
                       int64_t row_due_ms, uint32_t attempt);
void sim_ledger_ends(struct sim_ledger *ledger, struct sim_task *task,
                     bool done);

/* Ends the world. task: NULL for none. */
__attribute__((format(printf, 3, 4))) void sim_broken(struct sim_ledger *ledger,
                                                      const struct sim_task *t,
                                                      const char *format, ...);
void sim_note(struct sim_ledger *ledger, const char *who, const char *what,
              const struct sim_task *task, int64_t a, int64_t b);

#endif
