/* Clients: they submit, and change their minds at the worst moments. */
#include "tests/sim/history.h"

#include "common/base/alloc.h"

#define TASKS_PER_CLIENT 44
#define PATIENCE_NS (2 * SIM_SEC)
#define REST_NS_MAX (7 * SIM_SEC)
#define FAR_NS (INT64_MAX / 4)

/* ---- asking ---------------------------------------------------------- */

static struct sim_request *
new_request(struct sim_history *history, const struct sim_request *like)
{
    struct sim_pool *before = sim_pool_use(&history->world.pool);
    struct sim_request *request = toc_alloc(sizeof *request);

    *request = *like;
    toc_list_init(&request->link);
    toc_list_init(&request->in_hand);
    (void)sim_pool_use(before);
    return request;
}

static void
rest(struct sim_history *history, int64_t most_ns)
{
    sim_loop_pause(history->world.now_ns +
                   sim_between(&history->world, SIM_MS, most_ns));
}

/* Asks one scheduler once. What was not answered in time may still take effect
 * until it is over; the client waits for that, because it could not say what
 * was promised meanwhile. */
static struct sim_request *
try_once(struct sim_history *history, const struct sim_request *like)
{
    struct sim_world *world = &history->world;
    struct sim_request *request = new_request(history, like);
    struct sim_sched *sched =
        &history->scheds[sim_between(world, 0, SIM_SCHEDS - 1)];

    request->until_ns = world->now_ns + PATIENCE_NS;
    sim_loop_pause(world->now_ns + sim_between(world, SIM_MS / 20, SIM_MS));
    if (!sim_sched_ask(sched, request)) {
        request->over = true;
        request->st = TOC_UNAVAILABLE;
        return request;
    }
    while (!request->over)
        sim_loop_await(request, world->now_ns + FAR_NS);
    return request;
}

/* Until there is an answer. */
static struct sim_request
ask(struct sim_history *history, struct sim_request like)
{
    struct sim_request answer;

    like.task->out++;
    for (;;) {
        struct sim_request *request = try_once(history, &like);
        answer = *request;
        toc_free(request);
        if (answer.st == TOC_OK)
            break;
        rest(history, 400 * SIM_MS);
    }
    like.task->out--;
    return answer;
}

/* ---- submitting ------------------------------------------------------ */

static int64_t
choose_due(struct sim_history *history)
{
    struct sim_world *world = &history->world;
    int64_t left_ns = SIM_HEAL_NS + 5 * SIM_SEC - world->now_ns;
    int64_t now_ms = sim_wall_ms(world);
    int64_t ns;

    if (sim_one_in(world, 12))
        return now_ms - sim_between(world, 0, 5000);
    if (sim_one_in(world, 40))
        return now_ms + 50 * TOC_MS_PER_DAY; /* not within this history */
    if (sim_one_in(world, 3))
        ns = sim_between(world, 0, 2 * SIM_SEC);
    else if (sim_one_in(world, 2))
        ns = sim_between(world, 0, 15 * SIM_SEC);
    else
        ns = sim_between(world, 0, 90 * SIM_SEC);
    return now_ms + (ns < left_ns ? ns : left_ns) / SIM_MS;
}

static void
submit(struct sim_history *history)
{
    struct sim_world *world = &history->world;
    struct sim_task *task = sim_ledger_add(&history->ledger);
    struct sim_request answer;

    task->manner =
        sim_one_in(world, 2)
            ? SIM_SUCCEEDS
            : (enum sim_manner)sim_between(world, 0, SIM_MANNERS - 1);
    task->at_most_once = sim_one_in(world, 8);
    task->priority =
        (enum toc_priority)sim_between(world, 0, TOC_PRIORITIES - 1);
    task->due_ms = choose_due(history);
    sim_note(&history->ledger, "client", "submits", task,
             task->due_ms - sim_wall_ms(world), task->manner);
    answer = ask(history, (struct sim_request){.task = task,
                                               .submits = true,
                                               .due_ms = task->due_ms});
    history->submits++;
    sim_note(&history->ledger, "client", "submitted", task, answer.submitted,
             0);
    if (answer.submitted != TOC_SUBMIT_CREATED &&
        answer.submitted != TOC_SUBMIT_SAME)
        sim_broken(&history->ledger, task, "a submit was answered with %d",
                   (int)answer.submitted);
    task->promise = SIM_LIVE;
}

/* ---- commands -------------------------------------------------------- */

static void
cancelled(struct sim_task *task, enum toc_command_result result)
{
    if (result == TOC_COMMAND_APPLIED || result == TOC_COMMAND_ALREADY)
        task->promise = SIM_CANCELLED;
    if (result == TOC_COMMAND_TOO_LATE && !task->noted) {
        task->noted = true;
        /* one that was claimed may be on its way */
        task->last = task->begun + (task->running == 0);
    }
}

static void
note_answer(struct sim_history *history, const struct sim_request *answer)
{
    struct sim_task *task = answer->task;
    enum toc_command_result result = answer->commanded;
    bool holds = result == TOC_COMMAND_APPLIED || result == TOC_COMMAND_ALREADY;

    if (result == TOC_COMMAND_NOT_FOUND || result == TOC_COMMAND_MISMATCH)
        sim_broken(&history->ledger, task, "a command was answered with %d",
                   (int)result);
    if (answer->kind == TOC_COMMAND_CANCEL)
        cancelled(task, result);
    else if (answer->kind == TOC_COMMAND_PAUSE && holds)
        task->promise = SIM_PAUSED;
    else if (answer->kind == TOC_COMMAND_RESUME && holds)
        task->promise = SIM_LIVE;
    else if (answer->kind == TOC_COMMAND_RESCHEDULE && holds)
        task->due_ms = answer->due_ms;
    else if (answer->kind == TOC_COMMAND_RUN_NOW && holds) {
        task->due_ms = 0;
        task->promise = SIM_LIVE;
    }
}

static void
command(struct sim_history *history, struct sim_task *task,
        enum toc_command_kind kind)
{
    struct sim_request like = {.task = task, .kind = kind};
    struct sim_request answer;

    if (kind == TOC_COMMAND_RESCHEDULE)
        like.due_ms = choose_due(history);
    sim_note(&history->ledger, "client", "commands", task, kind, like.due_ms);
    answer = ask(history, like);
    history->commands++;
    sim_note(&history->ledger, "client", "commanded", task, kind,
             answer.commanded);
    note_answer(history, &answer);
}

/* A task that is live or paused and that nobody else is asking about; more
 * often one that is due about now. */
static struct sim_task *
choose_task(struct sim_history *history)
{
    struct sim_world *world = &history->world;
    struct sim_ledger *ledger = &history->ledger;
    struct sim_task *chosen = NULL;

    for (int i = 0; i < 12 && ledger->n > 0; i++) {
        struct sim_task *task =
            &ledger->tasks[sim_between(world, 0, ledger->n - 1)];
        int64_t due_in_ms = task->due_ms - sim_wall_ms(world);

        if (task->out > 0 ||
            (task->promise != SIM_LIVE && task->promise != SIM_PAUSED))
            continue;
        chosen = task;
        if (due_in_ms > -2000 && due_in_ms < 3000)
            break;
    }
    return chosen;
}

/* Right at the due time, if that is near. */
static void
wait_for_the_worst_moment(struct sim_history *history,
                          const struct sim_task *task)
{
    struct sim_world *world = &history->world;
    int64_t due_in_ms = task->due_ms - sim_wall_ms(world);

    if (due_in_ms > 0 && due_in_ms < 3000)
        sim_loop_pause(world->now_ns + due_in_ms * SIM_MS +
                       sim_between(world, -20 * SIM_MS, 20 * SIM_MS));
}

static void
change_a_mind(struct sim_history *history)
{
    static const enum toc_command_kind kinds[] = {
        TOC_COMMAND_CANCEL, TOC_COMMAND_PAUSE, TOC_COMMAND_RESUME,
        TOC_COMMAND_RESCHEDULE, TOC_COMMAND_RUN_NOW};
    struct sim_task *task = choose_task(history);

    if (task == NULL)
        return;
    wait_for_the_worst_moment(history, task);
    if (task->out > 0)
        return;
    if (task->promise == SIM_PAUSED)
        command(history, task, TOC_COMMAND_RESUME);
    else
        command(history, task, kinds[sim_between(&history->world, 0, 4)]);
}

/* ---- the loop -------------------------------------------------------- */

static void
resume_what_is_paused(struct sim_history *history)
{
    for (int32_t i = 0; i < history->ledger.n; i++) {
        struct sim_task *task = &history->ledger.tasks[i];
        if (task->promise == SIM_PAUSED && task->out == 0)
            command(history, task, TOC_COMMAND_RESUME);
    }
}

static int64_t
step_client(void *self)
{
    struct sim_client *client = self;
    struct sim_history *history = client->history;
    struct sim_world *world = &history->world;

    if (history->healed) {
        resume_what_is_paused(history);
        return FAR_NS;
    }
    if (client->tasks > 0 && sim_one_in(world, 2)) {
        client->tasks--;
        submit(history);
    } else {
        change_a_mind(history);
    }
    return toc_clock_mono(&history->clients_proc.clock).ns +
           sim_between(world, 0, REST_NS_MAX);
}

void
sim_clients_begin(struct sim_history *history)
{
    for (size_t i = 0; i < SIM_CLIENTS; i++) {
        struct sim_client *client = &history->clients[i];

        *client = (struct sim_client){history, TASKS_PER_CLIENT};
        sim_proc_loop(&history->clients_proc, "client", step_client, client,
                      NULL);
    }
}

bool
sim_clients_quiet(const struct sim_history *history)
{
    for (int32_t i = 0; i < history->ledger.n; i++)
        if (history->ledger.tasks[i].out > 0)
            return false;
    return true;
}
