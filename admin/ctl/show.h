/*
 * How answers are shown: tasks as rows, messages as JSON or YAML, lists of
 * them page by page.
 *
 * Threads: one.
 */
#ifndef TOC_ADMIN_CTL_SHOW_H
#define TOC_ADMIN_CTL_SHOW_H

#include "admin/ctl/ctl.h"
#include "admin/ctl/table.h"
#include "common/base/buf.h"

#include "toc/v1/types.pb-c.h"

struct json_t;

/* Is the answer wanted as JSON or YAML? */
bool ctl_wants_data(const struct ctl *ctl);
/* One message as JSON or YAML. */
void ctl_show_message(struct ctl *ctl, const ProtobufCMessage *message);

/*
 * A list as JSON or YAML, { "name": [ ... ] }, written as it comes:
 *     ctl_list_begin; ctl_list_item...; ctl_list_end
 */
struct ctl_list {
    const char *name;
    size_t n;
};
void ctl_list_begin(struct ctl *ctl, struct ctl_list *list, const char *name);
void ctl_list_item(struct ctl *ctl, struct ctl_list *list,
                   const ProtobufCMessage *message);
void ctl_list_end(struct ctl *ctl, struct ctl_list *list);

/* YAML of a tree, each line indented so far. */
void ctl_yaml(const struct json_t *tree, size_t indent, struct toc_buf *out);

/* ---- tasks ------------------------------------------------------------ */

void ctl_task_table(struct ctl *ctl, struct ctl_table *table);
void ctl_task_row(struct ctl *ctl, struct ctl_table *table,
                  const Toc__V1__Task *task);
char *ctl_task_key_text(struct ctl *ctl, const Toc__V1__Task *task);

/* ---- words and times; "-" for what is not set ---------------------------- */

/* "INIT" of STATE_INIT: the name without its prefix. */
const char *ctl_enum_text(const ProtobufCEnumDescriptor *type, int number,
                          const char *prefix);
const char *ctl_state_text(Toc__V1__State state);
const char *ctl_result_text(Toc__V1__AttemptResult result);
bool ctl_time_ms(const Google__Protobuf__Timestamp *time, int64_t *ret_ms);
const char *ctl_time_text(struct ctl *ctl,
                          const Google__Protobuf__Timestamp *time);
const char *ctl_time_relative(struct ctl *ctl,
                              const Google__Protobuf__Timestamp *time);
const char *ctl_duration_of(struct ctl *ctl,
                            const Google__Protobuf__Duration *duration);
/* ctl_safe of a text that may be NULL. */
const char *ctl_cell(struct ctl *ctl, const char *text);

#endif
