#include "admin/ctl/commands.h"

#include "admin/ctl/ask.h"
#include "admin/ctl/conn.h"
#include "admin/ctl/show.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "toc/v1/admin.pb-c.h"

#define PAYLOAD_SHOWN_MAX 4096
#define DETAIL_COLUMNS 60

static void
line(struct ctl *ctl, const char *name, const char *text)
{
    fprintf(ctl->out, "%-14s%s\n", name, text);
}

static const char *
with_relative(struct ctl *ctl, const Google__Protobuf__Timestamp *time)
{
    if (time == NULL)
        return "-";
    return toc_arena_printf(&ctl->arena, "%s (%s)", ctl_time_text(ctl, time),
                            ctl_time_relative(ctl, time));
}

static void
show_retries(struct ctl *ctl, const Toc__V1__RetryPolicy *policy)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};

    if (policy->max_retries != NULL)
        toc_buf_printf(&text, "%lu", (unsigned long)policy->max_retries->value);
    for (size_t i = 0; i < policy->n_ladder; i++)
        toc_buf_printf(&text, "%s%s", i == 0 ? ", after " : ", ",
                       ctl_duration_of(ctl, policy->ladder[i]));
    if (policy->exponential != NULL)
        toc_buf_printf(&text, ", from %s times %g up to %s",
                       ctl_duration_of(ctl, policy->exponential->first),
                       policy->exponential->factor,
                       ctl_duration_of(ctl, policy->exponential->cap));
    if (policy->jitter_percent > 0)
        toc_buf_printf(&text, ", up to %lu%% shorter at random",
                       (unsigned long)policy->jitter_percent);
    if (text.len > 0)
        line(ctl, "Retries:", text.data);
}

static void
show_target(struct ctl *ctl, const Toc__V1__Task *task)
{
    if (task->target == NULL)
        return;
    line(ctl, "Target:",
         task->target->batch_max > 1
             ? toc_arena_printf(&ctl->arena, "%s, up to %lu in a call",
                                ctl_cell(ctl, task->target->url),
                                (unsigned long)task->target->batch_max)
             : ctl_cell(ctl, task->target->url));
    line(ctl, "Call timeout:", ctl_duration_of(ctl, task->call_timeout));
    if (task->retry_policy != NULL)
        show_retries(ctl, task->retry_policy);
    for (size_t i = 0; i < task->n_headers; i++)
        line(ctl, i == 0 ? "Headers:" : "",
             toc_arena_printf(&ctl->arena, "%s: %s",
                              ctl_cell(ctl, task->headers[i]->name),
                              ctl_cell(ctl, task->headers[i]->value)));
}

/* Text as text, anything else only by its size: bytes are for -o json. */
static void
show_payload(struct ctl *ctl, const Toc__V1__Task *task)
{
    struct toc_str payload = {(const char *)task->payload.data,
                              task->payload.len};
    struct toc_str rest = payload, part;
    bool cut = payload.len > PAYLOAD_SHOWN_MAX;

    line(ctl, "Payload:",
         toc_arena_printf(
             &ctl->arena, "%zu bytes%s%s%s", payload.len,
             task->content_type[0] != '\0' ? ", " : "",
             task->content_type[0] != '\0' ? ctl_cell(ctl, task->content_type)
                                           : "",
             payload.len > 0 && !ctl_is_text(payload) ? ", not text" : ""));
    if (payload.len == 0 || !ctl_is_text(payload))
        return;
    if (cut)
        rest.len = PAYLOAD_SHOWN_MAX;
    while (toc_str_next(&rest, '\n', &part))
        fprintf(ctl->out, "  %s\n", ctl_safe(&ctl->arena, part));
    if (cut)
        fprintf(ctl->out, "  (%zu bytes more)\n",
                payload.len - PAYLOAD_SHOWN_MAX);
}

static void
show_fields(struct ctl *ctl, const Toc__V1__Task *task)
{
    line(ctl, "Task:", ctl_cell(ctl, task->task_id));
    line(ctl, "Key:", ctl_task_key_text(ctl, task));
    line(ctl, "State:",
         task->cancel_noted
             ? toc_arena_printf(&ctl->arena, "%s, cancelled after the call",
                                ctl_state_text(task->state))
             : ctl_state_text(task->state));
    line(ctl, "Due:", with_relative(ctl, task->due_time));
    line(ctl, "Created:", with_relative(ctl, task->create_time));
    line(ctl, "Fire:",
         toc_arena_printf(&ctl->arena, "%lu, failed attempts %lu",
                          (unsigned long)task->fire,
                          (unsigned long)task->failed_attempts));
    line(ctl, "Priority:",
         ctl_enum_text(&toc__v1__priority__descriptor, (int)task->priority,
                       "PRIORITY_"));
    line(ctl, "Delivery:",
         ctl_enum_text(&toc__v1__delivery_guarantee__descriptor,
                       (int)task->delivery_guarantee, "DELIVERY_GUARANTEE_"));
    show_target(ctl, task);
    line(ctl, "Etag:", ctl_cell(ctl, task->etag));
    show_payload(ctl, task);
}

static size_t
detail_columns(const struct ctl *ctl)
{
    return ctl->output == CTL_OUTPUT_WIDE ? SIZE_MAX : DETAIL_COLUMNS;
}

static const char *
attempt_detail(struct ctl *ctl, const Toc__V1__TimelineEntry *entry)
{
    const Toc__V1__Attempt *attempt = entry->attempt;
    const char *error =
        attempt->error[0] != '\0' ? attempt->error : entry->detail;
    int64_t called, ended;

    if (error[0] != '\0')
        return ctl_safe_cut(&ctl->arena, toc_str_of(error),
                            detail_columns(ctl));
    if (ctl_time_ms(attempt->call_time, &called) &&
        ctl_time_ms(attempt->end_time, &ended) && ended >= called)
        return toc_arena_printf(&ctl->arena, "answered in %s",
                                ctl_duration_text(&ctl->arena, ended - called));
    return "";
}

static void
timeline_row(struct ctl *ctl, struct ctl_table *table,
             const Toc__V1__TimelineEntry *entry)
{
    const Toc__V1__Attempt *attempt = entry->attempt;
    const char *what = ctl_cell(ctl, entry->event);
    const char *detail = ctl_safe_cut(&ctl->arena, toc_str_of(entry->detail),
                                      detail_columns(ctl));

    if (attempt != NULL) {
        what = toc_arena_printf(&ctl->arena, "%s %lu", what,
                                (unsigned long)attempt->number);
        detail = attempt_detail(ctl, entry);
    }
    const char *cells[] = {
        ctl_time_text(ctl, entry->time),
        ctl_time_relative(ctl, entry->time),
        what,
        attempt != NULL ? ctl_result_text(attempt->result) : "",
        attempt != NULL ? ctl_cell(ctl, attempt->executor_node)
                        : ctl_safe(&ctl->arena, toc_str_of(entry->who)),
        detail,
    };
    ctl_table_row(table, cells);
}

static void
show_timeline(struct ctl *ctl, const Toc__V1__Timeline *timeline)
{
    static const char *const heads[] = {"TIME",   "",   "EVENT",
                                        "RESULT", "BY", "DETAIL"};
    struct ctl_table table;

    ctl_table_init(&table, &ctl->arena, heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < timeline->n_entries; i++)
        timeline_row(ctl, &table, timeline->entries[i]);
    fputc('\n', ctl->out);
    ctl_table_print(&table, ctl->out);
}

static enum ctl_exit
get_timeline(struct ctl *ctl, const char *text, Toc__V1__Timeline **ret)
{
    Toc__V1__GetTimelineRequest request = TOC__V1__GET_TIMELINE_REQUEST__INIT;
    struct ctl_ref ref;
    ProtobufCMessage *reply;
    enum ctl_exit end = ctl_ask_ref(ctl, text, &ref);

    if (end != CTL_OK)
        return end;
    if (ref.by_id) {
        request.which_case = TOC__V1__GET_TIMELINE_REQUEST__WHICH_TASK_ID;
        request.task_id = ref.task_id;
    } else {
        request.which_case = TOC__V1__GET_TIMELINE_REQUEST__WHICH_KEY;
        request.key = ctl_ref_key(ctl, &ref);
    }
    end = ctl_call_admin(ctl, "GetTimeline",
                         ctl_safe(&ctl->arena, toc_str_of(text)), &request.base,
                         &reply);
    if (end == CTL_OK)
        *ret = (Toc__V1__Timeline *)reply;
    return end;
}

static void
show(struct ctl *ctl, const Toc__V1__Timeline *timeline)
{
    if (timeline->task == NULL)
        return;
    if (ctl->output == CTL_OUTPUT_ID) {
        fprintf(ctl->out, "%s\n", ctl_cell(ctl, timeline->task->task_id));
        return;
    }
    show_fields(ctl, timeline->task);
    show_timeline(ctl, timeline);
}

static enum ctl_exit
describe_as_data(struct ctl *ctl)
{
    struct ctl_list list;
    Toc__V1__Timeline *timeline;
    enum ctl_exit end = CTL_OK, one;

    if (ctl->n_args == 1) {
        end = get_timeline(ctl, ctl->args[0], &timeline);
        if (end == CTL_OK)
            ctl_show_message(ctl, &timeline->base);
        return end;
    }
    ctl_list_begin(ctl, &list, "timelines");
    for (size_t i = 0; i < ctl->n_args; i++) {
        one = get_timeline(ctl, ctl->args[i], &timeline);
        if (one == CTL_OK)
            ctl_list_item(ctl, &list, &timeline->base);
        end = ctl_worse(end, one);
    }
    ctl_list_end(ctl, &list);
    return end;
}

enum ctl_exit
ctl_cmd_describe(struct ctl *ctl)
{
    Toc__V1__Timeline *timeline;
    enum ctl_exit end = CTL_OK, one;

    if (ctl_wants_data(ctl))
        return describe_as_data(ctl);
    for (size_t i = 0; i < ctl->n_args; i++) {
        one = get_timeline(ctl, ctl->args[i], &timeline);
        if (one == CTL_OK) {
            if (i > 0)
                fputc('\n', ctl->out);
            show(ctl, timeline);
        }
        end = ctl_worse(end, one);
    }
    return end;
}
