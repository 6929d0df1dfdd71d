#include "admin/ctl/commands.h"

#include "admin/ctl/ask.h"
#include "admin/ctl/conn.h"
#include "admin/ctl/show.h"
#include "toc/v1/timeout.pb-c.h"

/* One of the commands that change a task: its words, and how its request is
 * made of a task's name. */
struct verb {
    const char *method;
    const char *applied, *already;
    ProtobufCMessage *(*request)(struct ctl *ctl, const struct ctl_ref *ref);
    bool results; /* the answer is a CancelResponse, not a CommandResult */
    bool due;     /* when it is due now is worth telling */
};

static char *
flag_text(struct ctl *ctl, const char *flag)
{
    return toc_arena_text(&ctl->arena, toc_str_of(ctl_flag(ctl, flag)));
}

/* What all these requests have in common, under the same names. */
#define FILL_REQUEST(ctl, ref, message, TYPE)                         \
    do {                                                              \
        if ((ref)->by_id) {                                           \
            (message)->which_case = TOC__V1__##TYPE##__WHICH_TASK_ID; \
            (message)->task_id = (ref)->task_id;                      \
        } else {                                                      \
            (message)->which_case = TOC__V1__##TYPE##__WHICH_KEY;     \
            (message)->key = ctl_ref_key(ctl, ref);                   \
        }                                                             \
        (message)->etag = flag_text(ctl, "etag");                     \
        (message)->reason = flag_text(ctl, "reason");                 \
        (message)->validate_only = ctl_has(ctl, "validate-only");     \
    } while (0)

static ProtobufCMessage *
cancel_request(struct ctl *ctl, const struct ctl_ref *ref)
{
    Toc__V1__CancelRequest *request =
        toc_arena_alloc(&ctl->arena, sizeof *request);
    Toc__V1__BizRef *biz;

    toc__v1__cancel_request__init(request);
    FILL_REQUEST(ctl, ref, request, CANCEL_REQUEST);
    if (ctl_has(ctl, "all")) {
        biz = toc_arena_alloc(&ctl->arena, sizeof *biz);
        toc__v1__biz_ref__init(biz);
        biz->biz_type = ref->biz_type;
        biz->biz_id = ref->biz_id;
        request->which_case = TOC__V1__CANCEL_REQUEST__WHICH_BIZ;
        request->biz = biz;
    }
    return &request->base;
}

/* The time was checked before: ask again for the value alone. */
static ProtobufCMessage *
reschedule_request(struct ctl *ctl, const struct ctl_ref *ref)
{
    Toc__V1__RescheduleRequest *request =
        toc_arena_alloc(&ctl->arena, sizeof *request);
    struct ctl_when when;

    toc__v1__reschedule_request__init(request);
    FILL_REQUEST(ctl, ref, request, RESCHEDULE_REQUEST);
    if (ctl_ask_when(ctl, true, &when) != CTL_OK)
        return NULL;
    if (when.at != NULL) {
        request->when_case = TOC__V1__RESCHEDULE_REQUEST__WHEN_DUE_TIME;
        request->due_time = when.at;
    } else {
        request->when_case = TOC__V1__RESCHEDULE_REQUEST__WHEN_DELAY;
        request->delay = when.in;
    }
    return &request->base;
}

static ProtobufCMessage *
pause_request(struct ctl *ctl, const struct ctl_ref *ref)
{
    Toc__V1__PauseRequest *request =
        toc_arena_alloc(&ctl->arena, sizeof *request);

    toc__v1__pause_request__init(request);
    FILL_REQUEST(ctl, ref, request, PAUSE_REQUEST);
    return &request->base;
}

static ProtobufCMessage *
resume_request(struct ctl *ctl, const struct ctl_ref *ref)
{
    Toc__V1__ResumeRequest *request =
        toc_arena_alloc(&ctl->arena, sizeof *request);

    toc__v1__resume_request__init(request);
    FILL_REQUEST(ctl, ref, request, RESUME_REQUEST);
    return &request->base;
}

static ProtobufCMessage *
run_now_request(struct ctl *ctl, const struct ctl_ref *ref)
{
    Toc__V1__RunNowRequest *request =
        toc_arena_alloc(&ctl->arena, sizeof *request);

    toc__v1__run_now_request__init(request);
    FILL_REQUEST(ctl, ref, request, RUN_NOW_REQUEST);
    return &request->base;
}

/* ---- answers ---- */

static enum ctl_exit
exit_of_outcome(Toc__V1__Outcome outcome)
{
    return outcome == TOC__V1__OUTCOME__OUTCOME_APPLIED ||
                   outcome == TOC__V1__OUTCOME__OUTCOME_ALREADY
               ? CTL_OK
               : CTL_CONFLICT;
}

static const char *
outcome_text(struct ctl *ctl, const struct verb *verb,
             const Toc__V1__CommandResult *result)
{
    bool would = ctl_has(ctl, "validate-only");

    if (result->outcome == TOC__V1__OUTCOME__OUTCOME_APPLIED)
        return would
                   ? toc_arena_printf(&ctl->arena, "would be %s", verb->applied)
                   : verb->applied;
    if (result->outcome == TOC__V1__OUTCOME__OUTCOME_ALREADY)
        return verb->already;
    if (result->outcome == TOC__V1__OUTCOME__OUTCOME_TOO_LATE)
        return verb->results && !would
                   ? "too late: the call has begun; no further attempt follows"
                   : "too late: the call has begun";
    if (result->outcome == TOC__V1__OUTCOME__OUTCOME_ENDED)
        return toc_arena_printf(
            &ctl->arena, "ended before: %s",
            result->task != NULL ? ctl_state_text(result->task->state) : "-");
    return "an outcome that this tocctl does not know";
}

static enum ctl_exit
show_result(struct ctl *ctl, const struct verb *verb, const char *name,
            const Toc__V1__CommandResult *result)
{
    const Toc__V1__Task *task = result->task;
    bool live = exit_of_outcome(result->outcome) == CTL_OK && task != NULL &&
                task->due_time != NULL && verb->due;

    if (task != NULL && task->key != NULL)
        name = ctl_task_key_text(ctl, task);
    if (ctl->output == CTL_OUTPUT_ID)
        fprintf(ctl->out, "%s\n", ctl_cell(ctl, task ? task->task_id : NULL));
    else if (live)
        fprintf(ctl->out, "%s: %s, due %s (%s)\n", name,
                outcome_text(ctl, verb, result),
                ctl_time_text(ctl, task->due_time),
                ctl_time_relative(ctl, task->due_time));
    else
        fprintf(ctl->out, "%s: %s\n", name, outcome_text(ctl, verb, result));
    return exit_of_outcome(result->outcome);
}

static enum ctl_exit
show_results(struct ctl *ctl, const struct verb *verb, const char *name,
             const Toc__V1__CancelResponse *answer)
{
    enum ctl_exit end = CTL_OK;

    for (size_t i = 0; i < answer->n_results; i++)
        end = ctl_worse(end, show_result(ctl, verb, name, answer->results[i]));
    if (answer->n_results == 0)
        ctl_note(ctl, "%s: no live tasks", name);
    return end;
}

static enum ctl_exit
worst_outcome(const struct verb *verb, const ProtobufCMessage *reply)
{
    const Toc__V1__CancelResponse *answer;
    enum ctl_exit end = CTL_OK;

    if (!verb->results)
        return exit_of_outcome(
            ((const Toc__V1__CommandResult *)reply)->outcome);
    answer = (const Toc__V1__CancelResponse *)reply;
    for (size_t i = 0; i < answer->n_results; i++)
        end = ctl_worse(end, exit_of_outcome(answer->results[i]->outcome));
    return end;
}

static enum ctl_exit
show_reply(struct ctl *ctl, const struct verb *verb, const char *name,
           struct ctl_list *list, const ProtobufCMessage *reply)
{
    if (ctl_wants_data(ctl)) {
        if (list != NULL)
            ctl_list_item(ctl, list, reply);
        else
            ctl_show_message(ctl, reply);
        return worst_outcome(verb, reply);
    }
    if (verb->results)
        return show_results(ctl, verb, name,
                            (const Toc__V1__CancelResponse *)reply);
    return show_result(ctl, verb, name, (const Toc__V1__CommandResult *)reply);
}

static enum ctl_exit
read_ref(struct ctl *ctl, const char *text, struct ctl_ref *ret_ref)
{
    enum ctl_exit end = ctl_ask_ref(ctl, text, ret_ref);

    if (end == CTL_OK && ctl_has(ctl, "all") &&
        (ret_ref->by_id || ret_ref->parts != 2))
        return ctl_fail(ctl, CTL_USAGE, NULL,
                        "%s: with --all it must be biz_type/biz_id",
                        ctl_safe(&ctl->arena, toc_str_of(text)));
    return end;
}

static enum ctl_exit
run_one(struct ctl *ctl, const struct verb *verb, const char *text,
        struct ctl_list *list)
{
    const char *name = ctl_safe(&ctl->arena, toc_str_of(text));
    const ProtobufCMessage *request;
    ProtobufCMessage *reply;
    struct ctl_ref ref;
    enum ctl_exit end = read_ref(ctl, text, &ref);

    if (end != CTL_OK)
        return end;
    request = verb->request(ctl, &ref);
    if (request == NULL)
        return CTL_USAGE;
    end = ctl_call_scheduler(ctl, verb->method, name, request, &reply);
    return end != CTL_OK ? end : show_reply(ctl, verb, name, list, reply);
}

/* A mistake in one name must not be found after the others were changed. */
static enum ctl_exit
run(struct ctl *ctl, const struct verb *verb)
{
    bool listed = ctl_wants_data(ctl) && ctl->n_args > 1;
    struct ctl_list list;
    struct ctl_ref ref;
    enum ctl_exit end = CTL_OK;

    for (size_t i = 0; i < ctl->n_args; i++) {
        end = read_ref(ctl, ctl->args[i], &ref);
        if (end != CTL_OK)
            return end;
    }
    if (listed)
        ctl_list_begin(ctl, &list, "results");
    for (size_t i = 0; i < ctl->n_args; i++)
        end = ctl_worse(
            end, run_one(ctl, verb, ctl->args[i], listed ? &list : NULL));
    if (listed)
        ctl_list_end(ctl, &list);
    return end;
}

enum ctl_exit
ctl_cmd_cancel(struct ctl *ctl)
{
    static const struct verb verb = {
        .method = "Cancel",
        .applied = "cancelled",
        .already = "was cancelled before",
        .request = cancel_request,
        .results = true,
    };

    if (ctl_has(ctl, "all") && ctl_has(ctl, "etag"))
        return ctl_fail(ctl, CTL_USAGE, NULL,
                        "--all and --etag exclude each other");
    return run(ctl, &verb);
}

enum ctl_exit
ctl_cmd_reschedule(struct ctl *ctl)
{
    static const struct verb verb = {
        .method = "Reschedule",
        .applied = "rescheduled",
        .already = "was due then before",
        .request = reschedule_request,
        .due = true,
    };
    struct ctl_when when;
    enum ctl_exit end = ctl_ask_when(ctl, true, &when);

    return end != CTL_OK ? end : run(ctl, &verb);
}

enum ctl_exit
ctl_cmd_pause(struct ctl *ctl)
{
    static const struct verb verb = {
        .method = "Pause",
        .applied = "paused",
        .already = "was paused before",
        .request = pause_request,
        .due = true,
    };

    return run(ctl, &verb);
}

enum ctl_exit
ctl_cmd_resume(struct ctl *ctl)
{
    static const struct verb verb = {
        .method = "Resume",
        .applied = "resumed",
        .already = "was not paused",
        .request = resume_request,
        .due = true,
    };

    return run(ctl, &verb);
}

enum ctl_exit
ctl_cmd_run_now(struct ctl *ctl)
{
    static const struct verb verb = {
        .method = "RunNow",
        .applied = "due now",
        .already = "was due before",
        .request = run_now_request,
    };

    return run(ctl, &verb);
}
