#include "admin/ctl/commands.h"

#include "admin/ctl/ask.h"
#include "admin/ctl/conn.h"
#include "admin/ctl/list.h"
#include "common/base/buf.h"
#include "toc/v1/admin.pb-c.h"

#define PAGE_MAX 1000
#define LIMIT_DEFAULT 100
#define STATES_MAX 16

void
ctl_tasks_begin(struct ctl *ctl, struct ctl_tasks *tasks)
{
    tasks->n = 0;
    if (ctl_wants_data(ctl))
        ctl_list_begin(ctl, &tasks->list, "tasks");
    else
        ctl_task_table(ctl, &tasks->table);
}

void
ctl_tasks_add(struct ctl *ctl, struct ctl_tasks *tasks,
              const Toc__V1__Task *task)
{
    tasks->n++;
    if (ctl_wants_data(ctl))
        ctl_list_item(ctl, &tasks->list, &task->base);
    else if (ctl->output == CTL_OUTPUT_ID)
        fprintf(ctl->out, "%s\n", ctl_cell(ctl, task->task_id));
    else
        ctl_task_row(ctl, &tasks->table, task);
}

void
ctl_tasks_flush(struct ctl *ctl, struct ctl_tasks *tasks)
{
    bool table =
        ctl->output == CTL_OUTPUT_TABLE || ctl->output == CTL_OUTPUT_WIDE;

    if (table && tasks->n > 0)
        ctl_table_print(&tasks->table, ctl->out);
}

void
ctl_tasks_end(struct ctl *ctl, struct ctl_tasks *tasks)
{
    ctl_tasks_flush(ctl, tasks);
    if (ctl_wants_data(ctl))
        ctl_list_end(ctl, &tasks->list);
}

static enum ctl_exit
read_states(struct ctl *ctl, Toc__V1__TaskFilter *filter)
{
    const char *text = ctl_flag(ctl, "state");
    struct toc_str rest, word;
    int number = 0;

    if (text == NULL)
        return CTL_OK;
    filter->states =
        toc_arena_calloc(&ctl->keep, STATES_MAX, sizeof *filter->states);
    rest = toc_str_of(text);
    while (toc_str_next(&rest, ',', &word)) {
        enum ctl_exit end = ctl_ask_word(
            ctl, "state", word, &toc__v1__state__descriptor, "STATE_", &number);
        if (end != CTL_OK)
            return end;
        if (filter->n_states == STATES_MAX)
            return ctl_fail(ctl, CTL_USAGE, NULL, "--state: too many states");
        filter->states[filter->n_states++] = (Toc__V1__State)number;
    }
    return CTL_OK;
}

static enum ctl_exit
read_filter(struct ctl *ctl, Toc__V1__TaskFilter *filter)
{
    const char *type = ctl_flag(ctl, "biz-type");
    const char *id = ctl_flag(ctl, "biz-id");
    enum ctl_exit end;

    filter->biz_type = toc_arena_text(&ctl->keep, toc_str_of(type));
    filter->biz_id = toc_arena_text(&ctl->keep, toc_str_of(id));
    if (id != NULL && type == NULL)
        return ctl_fail(ctl, CTL_USAGE, NULL, "--biz-id needs --biz-type");
    end = read_states(ctl, filter);
    if (end == CTL_OK)
        end = ctl_ask_time(ctl, "due-from", &filter->due_from);
    if (end == CTL_OK)
        end = ctl_ask_time(ctl, "due-to", &filter->due_to);
    return end;
}

struct listing {
    struct ctl_tasks tasks;
    Toc__V1__ListTasksRequest request;
    struct toc_buf token; /* of the next page; empty: there is none */
    size_t limit;         /* SIZE_MAX: none */
};

static enum ctl_exit
one_page(struct ctl *ctl, struct listing *l)
{
    size_t left = l->limit - l->tasks.n;
    Toc__V1__ListTasksResponse *page;
    ProtobufCMessage *reply;
    enum ctl_exit end;

    l->request.page_size = (uint32_t)(left < PAGE_MAX ? left : PAGE_MAX);
    end = ctl_call_admin(ctl, "ListTasks", NULL, &l->request.base, &reply);
    if (end != CTL_OK)
        return end;
    page = (Toc__V1__ListTasksResponse *)reply;
    for (size_t i = 0; i < page->n_tasks && l->tasks.n < l->limit; i++)
        ctl_tasks_add(ctl, &l->tasks, page->tasks[i]);
    ctl_tasks_flush(ctl, &l->tasks);
    toc_buf_reset(&l->token);
    toc_buf_text(&l->token, page->next_page_token);
    l->request.page_token = l->token.data;
    return CTL_OK;
}

/* A page is shown and forgotten: a list of millions takes the memory of one. */
static enum ctl_exit
all_pages(struct ctl *ctl, struct listing *l)
{
    enum ctl_exit end;

    do {
        end = one_page(ctl, l);
        toc_arena_reset(&ctl->arena);
    } while (end == CTL_OK && l->token.len > 0 && l->tasks.n < l->limit);
    return end;
}

enum ctl_exit
ctl_cmd_list(struct ctl *ctl)
{
    Toc__V1__TaskFilter filter = TOC__V1__TASK_FILTER__INIT;
    struct listing l = {.request = TOC__V1__LIST_TASKS_REQUEST__INIT};
    int64_t limit = LIMIT_DEFAULT;
    enum ctl_exit end = read_filter(ctl, &filter);

    if (end == CTL_OK)
        end = ctl_ask_number(ctl, "limit", 0, INT32_MAX, &limit);
    if (end != CTL_OK)
        return end;
    l.limit = limit == 0 ? SIZE_MAX : (size_t)limit;
    l.request.filter = &filter;
    ctl_tasks_begin(ctl, &l.tasks);
    end = all_pages(ctl, &l);
    ctl_tasks_end(ctl, &l.tasks);
    if (end == CTL_OK && l.tasks.n == 0 && !ctl_wants_data(ctl) &&
        ctl->output != CTL_OUTPUT_ID)
        ctl_note(ctl, "no tasks");
    if (end == CTL_OK && l.token.len > 0)
        ctl_note(ctl, "there may be more: --limit 0 shows all");
    toc_buf_done(&l.token);
    return end;
}
