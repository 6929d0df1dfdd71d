#include "admin/ctl/show.h"

#include "admin/ctl/text.h"
#include "common/api/api.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/rpc/pb_json.h"
#include "google/rpc/error_details.pb-c.h"

#include <jansson.h>
#include <string.h>

static const ProtobufCMessageDescriptor *const detail_types[] = {
    &google__rpc__bad_request__descriptor,
    &google__rpc__retry_info__descriptor,
    &toc__v1__task__descriptor,
};
static const struct toc_pb_json_types types = {
    detail_types, sizeof detail_types / sizeof detail_types[0]};

bool
ctl_wants_data(const struct ctl *ctl)
{
    return ctl->output == CTL_OUTPUT_JSON || ctl->output == CTL_OUTPUT_YAML;
}

void
ctl_show_message(struct ctl *ctl, const ProtobufCMessage *message)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};
    json_t *tree = toc_pb_json_tree(message, &types);

    if (ctl->output == CTL_OUTPUT_YAML) {
        ctl_yaml(tree, 0, &out);
    } else {
        toc_pb_json_text(tree, 2, &out);
        toc_buf_char(&out, '\n');
    }
    json_decref(tree);
    fwrite(out.data, 1, out.len, ctl->out);
}

void
ctl_list_begin(struct ctl *ctl, struct ctl_list *list, const char *name)
{
    *list = (struct ctl_list){.name = name};
    if (ctl->output == CTL_OUTPUT_JSON)
        fprintf(ctl->out, "{\n  \"%s\": [", name);
    else
        fprintf(ctl->out, "%s:", name);
}

static void
add_indented(struct toc_buf *out, struct toc_str text, const char *indent)
{
    struct toc_str line;

    while (toc_str_next(&text, '\n', &line)) {
        toc_buf_printf(out, "\n%s", indent);
        toc_buf_str(out, line);
    }
}

void
ctl_list_item(struct ctl *ctl, struct ctl_list *list,
              const ProtobufCMessage *message)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};
    json_t *tree = toc_pb_json_tree(message, &types);

    if (ctl->output == CTL_OUTPUT_YAML) {
        json_t *items = json_array();
        json_array_append(items, tree);
        if (list->n == 0)
            toc_buf_char(&out, '\n');
        ctl_yaml(items, 0, &out);
        json_decref(items);
    } else {
        if (list->n > 0)
            toc_buf_char(&out, ',');
        toc_pb_json_text(tree, 2, &text);
        add_indented(&out, toc_buf_view(&text), "    ");
    }
    json_decref(tree);
    list->n++;
    fwrite(out.data, 1, out.len, ctl->out);
}

void
ctl_list_end(struct ctl *ctl, struct ctl_list *list)
{
    if (ctl->output == CTL_OUTPUT_JSON)
        fputs(list->n > 0 ? "\n  ]\n}\n" : "]\n}\n", ctl->out);
    else if (list->n == 0)
        fputs(" []\n", ctl->out);
}

/* ---- words and times ---- */

const char *
ctl_enum_text(const ProtobufCEnumDescriptor *type, int number,
              const char *prefix)
{
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(type, number);

    if (value == NULL || number == 0)
        return "-";
    if (strncmp(value->name, prefix, strlen(prefix)) == 0)
        return value->name + strlen(prefix);
    return value->name;
}

const char *
ctl_state_text(Toc__V1__State state)
{
    return ctl_enum_text(&toc__v1__state__descriptor, (int)state, "STATE_");
}

const char *
ctl_result_text(Toc__V1__AttemptResult result)
{
    return ctl_enum_text(&toc__v1__attempt_result__descriptor, (int)result,
                         "ATTEMPT_RESULT_");
}

bool
ctl_time_ms(const Google__Protobuf__Timestamp *time, int64_t *ret_ms)
{
    return time != NULL && toc_api_time_ms(time, ret_ms);
}

const char *
ctl_time_text(struct ctl *ctl, const Google__Protobuf__Timestamp *time)
{
    char text[TOC_TIME_TEXT_MAX];
    int64_t ms;

    if (!ctl_time_ms(time, &ms))
        return "-";
    return toc_arena_text(&ctl->arena, toc_str_of(toc_time_format(text, ms)));
}

const char *
ctl_time_relative(struct ctl *ctl, const Google__Protobuf__Timestamp *time)
{
    int64_t ms;

    if (!ctl_time_ms(time, &ms))
        return "-";
    return ctl_relative(&ctl->arena, ms, ctl_now_ms(ctl));
}

const char *
ctl_duration_of(struct ctl *ctl, const Google__Protobuf__Duration *duration)
{
    int64_t ms;

    if (duration == NULL || !toc_api_duration_ms(duration, &ms) || ms < 0)
        return "-";
    return ctl_duration_text(&ctl->arena, ms);
}

const char *
ctl_cell(struct ctl *ctl, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return "-";
    return ctl_safe(&ctl->arena, toc_str_of(text));
}

/* ---- tasks ---- */

char *
ctl_task_key_text(struct ctl *ctl, const Toc__V1__Task *task)
{
    if (task->key == NULL)
        return toc_arena_text(&ctl->arena, TOC_STR("-"));
    return ctl_key_text(&ctl->arena, task->key->biz_type, task->key->biz_id,
                        task->key->name);
}

void
ctl_task_table(struct ctl *ctl, struct ctl_table *table)
{
    static const char *const heads[] = {"KEY", "STATE",  "DUE",
                                        "",    "FAILED", "LAST RESULT"};
    static const char *const wide[] = {
        "TASK ID", "KEY",         "STATE", "DUE",      "",      "FIRE",
        "FAILED",  "LAST RESULT", "ETAG",  "PRIORITY", "TARGET"};

    if (ctl->output == CTL_OUTPUT_WIDE)
        ctl_table_init(table, &ctl->arena, wide, sizeof wide / sizeof wide[0]);
    else
        ctl_table_init(table, &ctl->arena, heads,
                       sizeof heads / sizeof heads[0]);
}

static const char *
number(struct ctl *ctl, uint32_t value)
{
    return toc_arena_printf(&ctl->arena, "%lu", (unsigned long)value);
}

static const char *
last_result(const Toc__V1__Task *task)
{
    return task->last_attempt != NULL
               ? ctl_result_text(task->last_attempt->result)
               : "-";
}

void
ctl_task_row(struct ctl *ctl, struct ctl_table *table,
             const Toc__V1__Task *task)
{
    const char *key = ctl_task_key_text(ctl, task);
    const char *due = ctl_time_text(ctl, task->due_time);
    const char *away = ctl_time_relative(ctl, task->due_time);
    const char *failed = number(ctl, task->failed_attempts);

    if (ctl->output == CTL_OUTPUT_WIDE) {
        const char *cells[] = {
            ctl_cell(ctl, task->task_id),
            key,
            ctl_state_text(task->state),
            due,
            away,
            number(ctl, task->fire),
            failed,
            last_result(task),
            ctl_cell(ctl, task->etag),
            ctl_enum_text(&toc__v1__priority__descriptor, (int)task->priority,
                          "PRIORITY_"),
            ctl_cell(ctl, task->target != NULL ? task->target->url : NULL)};
        ctl_table_row(table, cells);
    } else {
        const char *cells[] = {key,    ctl_state_text(task->state),
                               due,    away,
                               failed, last_result(task)};
        ctl_table_row(table, cells);
    }
}
