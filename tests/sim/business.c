#include "tests/sim/business.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <string.h>

#define WAY_NS_MIN (SIM_MS / 20)
#define WAY_NS_MAX (SIM_MS / 2)
#define WORK_NS_MAX (30 * SIM_MS)
#define SNOOZE_MS 700

/* What happened to the caller's side and to the business's side of a call. */
struct call {
    struct toc_link link;
    struct sim_caller *caller;
    unsigned life;        /* the executor's, when it called */
    struct toc_call *ask; /* NULL: it has been told how it ended */
    struct sim_task *task;
    int64_t row_due_ms;
    uint32_t attempt;
    int64_t not_after_ms;
    struct toc_answer answer;
    bool starting; /* its executor's loop stands in start */
    bool was_begun, answer_lost;
    struct sim_event arrives, ends, stops, answered, expires;
};

/* ---- the caller's side ----------------------------------------------- */

static void
drop_if_over(struct call *call)
{
    bool starts = call->starting && call->caller->door.proc->life == call->life;

    if (call->ask != NULL || starts || sim_placed(&call->arrives) ||
        sim_placed(&call->ends) || sim_placed(&call->stops) ||
        sim_placed(&call->answered))
        return;
    toc_list_remove(&call->link);
    toc_free(call);
}

static void
tell(void *arg)
{
    struct call *call = arg;
    struct toc_call *ask = call->ask;

    for (size_t i = 0; i < ask->n; i++)
        ask->fires[i].answer = call->answer;
    ask->done(ask);
}

/* Its executor may be another life by now, which knows nothing of it. */
static void
end_ask(struct call *call, const struct toc_answer *answer)
{
    struct sim_caller *caller = call->caller;
    struct sim_proc *proc = caller->door.proc;

    if (call->ask == NULL)
        return;
    sim_remove(proc->world, &call->expires);
    call->answer = *answer;
    if (proc->alive && proc->life == call->life) {
        call->ask->backend = NULL;
        sim_proc_call(proc, tell, call);
    }
    call->ask = NULL;
}

static struct toc_answer
answer_of(enum toc_answer_kind kind, const char *error)
{
    struct toc_answer answer = {.kind = kind};

    toc_copy(answer.error, sizeof answer.error, toc_str_of(error));
    return answer;
}

static void
on_expires(struct sim_event *event)
{
    struct call *call = toc_container_of(event, struct call, expires);
    struct toc_answer unknown = answer_of(TOC_ANSWER_UNKNOWN, "deadline");

    if (call->caller->door.proc->frozen_until_ns >
        call->caller->door.proc->world->now_ns) {
        sim_place(call->caller->door.proc->world, event,
                  call->caller->door.proc->frozen_until_ns);
        return;
    }
    end_ask(call, &unknown);
    drop_if_over(call);
}

static void
on_answered(struct sim_event *event)
{
    struct call *call = toc_container_of(event, struct call, answered);
    struct sim_proc *proc = call->caller->door.proc;
    struct toc_answer answer = call->answer;

    if (proc->frozen_until_ns > proc->world->now_ns) {
        sim_place(proc->world, event, proc->frozen_until_ns);
        return;
    }
    if (!call->answer_lost) {
        call->task->told += call->was_begun && call->ask != NULL;
        end_ask(call, &answer);
    }
    drop_if_over(call);
}

/* ---- the business's side --------------------------------------------- */

static int64_t
way(struct sim_world *world)
{
    return world->now_ns + sim_between(world, WAY_NS_MIN, WAY_NS_MAX);
}

static void
send_answer(struct call *call, enum toc_answer_kind kind, const char *error)
{
    struct sim_world *world = call->caller->business->world;

    call->answer = answer_of(kind, error);
    if (kind == TOC_ANSWER_SNOOZE)
        call->answer.retry_at_ms = sim_wall_ms(world) + SNOOZE_MS;
    sim_place(world, &call->answered, way(world));
}

/* What it says at the end of its work; false: it says nothing yet. */
static bool
works(struct call *call, enum toc_answer_kind *ret_kind)
{
    const struct sim_task *task = call->task;
    bool first = task->begun <= 1;

    switch (task->manner) {
    case SIM_FAILS:
        *ret_kind = TOC_ANSWER_FAILED;
        return true;
    case SIM_REJECTS:
        *ret_kind = TOC_ANSWER_REJECTED;
        return true;
    case SIM_STOPS:
        *ret_kind = TOC_ANSWER_STOP;
        return true;
    case SIM_FAILS_ONCE:
        *ret_kind = first ? TOC_ANSWER_FAILED : TOC_ANSWER_DONE;
        return true;
    case SIM_SNOOZES_ONCE:
        *ret_kind = first ? TOC_ANSWER_SNOOZE : TOC_ANSWER_DONE;
        return true;
    case SIM_HANGS_ONCE:
    case SIM_LATE_ONCE:
        *ret_kind = TOC_ANSWER_DONE;
        return !first;
    case SIM_SUCCEEDS:
    case SIM_MANNERS:
        break;
    }
    *ret_kind = TOC_ANSWER_DONE;
    return true;
}

static void
handler_ends(struct call *call, bool done)
{
    struct sim_business *business = call->caller->business;

    sim_remove(business->world, &call->stops);
    sim_remove(business->world, &call->ends);
    sim_ledger_ends(business->ledger, call->task, done);
}

static void
on_ends(struct sim_event *event)
{
    struct call *call = toc_container_of(event, struct call, ends);
    enum toc_answer_kind kind;

    if (!works(call, &kind))
        return; /* until it is stopped */
    handler_ends(call, kind == TOC_ANSWER_DONE);
    send_answer(call, kind, kind == TOC_ANSWER_DONE ? "" : "as it is meant");
}

/* toc-not-after: whatever it was doing. */
static void
on_stops(struct sim_event *event)
{
    struct call *call = toc_container_of(event, struct call, stops);

    bool late = call->task->manner == SIM_LATE_ONCE;

    handler_ends(call, late);
    if (late)
        send_answer(call, TOC_ANSWER_DONE, "");
    drop_if_over(call);
}

static void
on_arrives(struct sim_event *event)
{
    struct call *call = toc_container_of(event, struct call, arrives);
    struct sim_business *business = call->caller->business;
    struct sim_world *world = business->world;
    int64_t now_ms = sim_wall_ms(world);

    if (business->down) {
        send_answer(call, TOC_ANSWER_UNREACHABLE, "connection refused");
        return;
    }
    if (now_ms > call->not_after_ms) {
        business->ledger->refused++;
        sim_note(business->ledger, "business", "refuses", call->task,
                 now_ms - call->not_after_ms, call->attempt);
        send_answer(call, TOC_ANSWER_REFUSED, "past toc-not-after");
        return;
    }
    call->was_begun = true;
    sim_ledger_begins(business->ledger, call->task, call->row_due_ms,
                      call->attempt);
    sim_place(world, &call->ends,
              world->now_ns + sim_between(world, 0, WORK_NS_MAX));
    sim_place(world, &call->stops,
              world->now_ns + (call->not_after_ms - now_ms) * SIM_MS);
}

/* ---- the port -------------------------------------------------------- */

static struct call *
make_call(struct sim_caller *caller, struct toc_call *ask,
          struct sim_task *task)
{
    struct sim_proc *proc = caller->door.proc;
    struct sim_pool *before = sim_pool_use(&proc->world->pool);
    struct call *call = TOC_NEW(struct call);

    (void)sim_pool_use(before);
    call->caller = caller;
    call->life = proc->life;
    call->starting = true;
    call->ask = ask;
    call->task = task;
    call->row_due_ms = ask->fires[0].task->due_ms;
    call->attempt = ask->fires[0].attempt;
    call->not_after_ms = ask->not_after_ms;
    sim_event_init(&call->arrives, on_arrives);
    sim_event_init(&call->ends, on_ends);
    sim_event_init(&call->stops, on_stops);
    sim_event_init(&call->answered, on_answered);
    sim_event_init(&call->expires, on_expires);
    toc_list_push(&caller->business->calls, &call->link);
    ask->backend = call;
    return call;
}

/* Between the executor's last look at its lock and the sending. */
static void
start(void *self, struct toc_call *ask)
{
    static const struct toc_fault_op op = {"invoke", "start"};
    struct sim_caller *caller = self;
    struct sim_proc *proc = caller->door.proc;
    struct sim_task *task =
        sim_ledger_find(caller->business->ledger, ask->fires[0].task->biz_id);
    struct call *call;
    int64_t sent_ns;

    TOC_ASSERT(ask->n == 1 && task != NULL);
    call = make_call(caller, ask, task);
    sim_place(proc->world, &call->expires, ask->deadline_ns - SIM_SEC);
    enum toc_fault how = toc_fault_before(&caller->door.plan, &op);
    sent_ns = how == TOC_FAULT_FAIL ? 0 : way(proc->world);
    if (how != TOC_FAULT_FAIL)
        toc_fault_after(&caller->door.plan, &op, how, TOC_OK,
                        &(struct toc_error){0});
    call->answer_lost = how == TOC_FAULT_LOSE_ACK;
    if (how == TOC_FAULT_FAIL)
        send_answer(call, TOC_ANSWER_UNREACHABLE, "injected");
    else
        sim_place(proc->world, &call->arrives, sent_ns);
    call->starting = false;
}

static void
cancel(void *self, struct toc_call *ask)
{
    struct call *call = ask->backend;
    struct toc_answer unknown = answer_of(TOC_ANSWER_UNKNOWN, "cancelled");

    (void)self;
    if (call == NULL)
        return;
    end_ask(call, &unknown);
    drop_if_over(call);
}

static void
cancel_all(void *self)
{
    struct sim_caller *caller = self;
    struct toc_link *link = caller->business->calls.next, *next;

    for (; link != &caller->business->calls; link = next) {
        struct call *call = toc_container_of(link, struct call, link);
        next = link->next;
        if (call->caller == caller && call->ask != NULL &&
            call->life == caller->door.proc->life)
            cancel(caller, call->ask);
    }
}

static const struct toc_invoke_ops ops = {
    .name = "sim", .start = start, .cancel = cancel, .cancel_all = cancel_all};

void
sim_business_init(struct sim_business *business, struct sim_ledger *ledger)
{
    *business = (struct sim_business){.world = ledger->world, .ledger = ledger};
    toc_list_init(&business->calls);
}

void
sim_caller_init(struct sim_caller *caller, struct sim_business *business,
                struct sim_faults *faults, struct sim_proc *proc)
{
    *caller = (struct sim_caller){.port = {&ops, caller}, .business = business};
    sim_door_init(&caller->door, faults, proc, SIM_INVOKE);
}
