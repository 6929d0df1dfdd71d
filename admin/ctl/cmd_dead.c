#include "admin/ctl/commands.h"

#include "admin/ctl/ask.h"
#include "admin/ctl/conn.h"
#include "admin/ctl/dead.h"
#include "admin/ctl/show.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

#define PAGE_MAX 1000
#define LIMIT_DEFAULT 100
#define ERROR_COLUMNS 50

static enum ctl_exit
read_filter(struct ctl *ctl, Toc__V1__DeadFilter *filter)
{
    const char *type = ctl_flag(ctl, "biz-type");
    const char *id = ctl_flag(ctl, "biz-id");
    enum ctl_exit end;

    filter->biz_type = toc_arena_text(&ctl->keep, toc_str_of(type));
    filter->biz_id = toc_arena_text(&ctl->keep, toc_str_of(id));
    filter->reason =
        toc_arena_text(&ctl->keep, toc_str_of(ctl_flag(ctl, "dead-reason")));
    if (id != NULL && type == NULL)
        return ctl_fail(ctl, CTL_USAGE, NULL, "--biz-id needs --biz-type");
    end = ctl_ask_time(ctl, "from", &filter->dead_from);
    return end != CTL_OK ? end : ctl_ask_time(ctl, "to", &filter->dead_to);
}

enum ctl_exit
ctl_dead_each(struct ctl *ctl, size_t limit, ctl_dead_fn *fn, ctl_page_fn *page,
              void *arg, bool *ret_more)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf token = {0};
    Toc__V1__DeadFilter filter = TOC__V1__DEAD_FILTER__INIT;
    Toc__V1__ListDeadRequest request = TOC__V1__LIST_DEAD_REQUEST__INIT;
    enum ctl_exit end = read_filter(ctl, &filter);
    size_t n = 0;

    if (end != CTL_OK)
        return end;
    request.filter = &filter;
    do {
        const Toc__V1__ListDeadResponse *answer;
        ProtobufCMessage *reply;
        request.page_size =
            (uint32_t)(limit - n < PAGE_MAX ? limit - n : PAGE_MAX);
        end = ctl_call_admin(ctl, "ListDead", NULL, &request.base, &reply);
        if (end != CTL_OK)
            return end;
        answer = (const Toc__V1__ListDeadResponse *)reply;
        for (size_t i = 0; i < answer->n_dead && n < limit; i++, n++)
            fn(arg, answer->dead[i]);
        if (page != NULL)
            page(arg);
        toc_buf_reset(&token);
        toc_buf_text(&token, answer->next_page_token);
        request.page_token = token.data;
        toc_arena_reset(&ctl->arena);
    } while (token.len > 0 && n < limit);
    if (ret_more != NULL)
        *ret_more = token.len > 0;
    return CTL_OK;
}

struct listing {
    struct ctl *ctl;
    struct ctl_table table;
    struct ctl_list list;
    size_t n;
};

static void
list_row(struct listing *l, const Toc__V1__DeadLetter *dead)
{
    struct ctl *ctl = l->ctl;
    const Toc__V1__Task *task = dead->task;
    const Toc__V1__Attempt *last = task->last_attempt;
    bool wide = ctl->output == CTL_OUTPUT_WIDE;
    size_t columns = wide ? SIZE_MAX : ERROR_COLUMNS;
    const char *error = last != NULL ? last->error : "";
    const char *cells[] = {
        ctl_cell(ctl, task->task_id),
        ctl_task_key_text(ctl, task),
        wide ? ctl_time_text(ctl, dead->dead_time)
             : ctl_time_relative(ctl, dead->dead_time),
        ctl_cell(ctl, dead->reason),
        ctl_safe_cut(&ctl->arena, toc_str_of(error), columns),
    };

    ctl_table_row(&l->table, cells);
}

static void
list_one(void *arg, const Toc__V1__DeadLetter *dead)
{
    struct listing *l = arg;

    if (dead->task == NULL)
        return;
    l->n++;
    if (ctl_wants_data(l->ctl))
        ctl_list_item(l->ctl, &l->list, &dead->base);
    else if (l->ctl->output == CTL_OUTPUT_ID)
        fprintf(l->ctl->out, "%s\n", ctl_cell(l->ctl, dead->task->task_id));
    else
        list_row(l, dead);
}

static void
list_page(void *arg)
{
    struct listing *l = arg;

    if (!ctl_wants_data(l->ctl) && l->ctl->output != CTL_OUTPUT_ID && l->n > 0)
        ctl_table_print(&l->table, l->ctl->out);
}

enum ctl_exit
ctl_cmd_dead_list(struct ctl *ctl)
{
    static const char *const heads[] = {"TASK ID", "KEY", "DIED", "REASON",
                                        "LAST ERROR"};
    struct listing l = {.ctl = ctl};
    int64_t limit = LIMIT_DEFAULT;
    bool more = false;
    enum ctl_exit end = ctl_ask_number(ctl, "limit", 0, INT32_MAX, &limit);

    if (end != CTL_OK)
        return end;
    ctl_table_init(&l.table, &ctl->arena, heads,
                   sizeof heads / sizeof heads[0]);
    if (ctl_wants_data(ctl))
        ctl_list_begin(ctl, &l.list, "dead");
    end = ctl_dead_each(ctl, limit == 0 ? SIZE_MAX : (size_t)limit, list_one,
                        list_page, &l, &more);
    if (ctl_wants_data(ctl))
        ctl_list_end(ctl, &l.list);
    else if (end == CTL_OK && l.n == 0 && ctl->output != CTL_OUTPUT_ID)
        ctl_note(ctl, "no dead letters");
    if (more)
        ctl_note(ctl, "there may be more: --limit 0 shows all");
    return end;
}
