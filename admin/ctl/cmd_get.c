#include "admin/ctl/commands.h"

#include "admin/ctl/ask.h"
#include "admin/ctl/conn.h"
#include "admin/ctl/list.h"
#include "admin/ctl/show.h"
#include "toc/v1/timeout.pb-c.h"

static enum ctl_exit
get_one(struct ctl *ctl, const char *text, Toc__V1__Task **ret_task)
{
    Toc__V1__GetRequest request = TOC__V1__GET_REQUEST__INIT;
    struct ctl_ref ref;
    ProtobufCMessage *reply;
    enum ctl_exit end = ctl_ask_ref(ctl, text, &ref);

    if (end != CTL_OK)
        return end;
    if (ref.by_id) {
        request.which_case = TOC__V1__GET_REQUEST__WHICH_TASK_ID;
        request.task_id = ref.task_id;
    } else {
        request.which_case = TOC__V1__GET_REQUEST__WHICH_KEY;
        request.key = ctl_ref_key(ctl, &ref);
    }
    end =
        ctl_call_scheduler(ctl, "Get", ctl_safe(&ctl->arena, toc_str_of(text)),
                           &request.base, &reply);
    if (end == CTL_OK)
        *ret_task = (Toc__V1__Task *)reply;
    return end;
}

/* All that can be had are shown; what is missing is an error of its own. */
enum ctl_exit
ctl_cmd_get(struct ctl *ctl)
{
    Toc__V1__Task *task;
    struct ctl_tasks tasks;
    enum ctl_exit end = CTL_OK, one;

    if (ctl->n_args == 1 && ctl_wants_data(ctl)) {
        end = get_one(ctl, ctl->args[0], &task);
        if (end == CTL_OK)
            ctl_show_message(ctl, &task->base);
        return end;
    }
    ctl_tasks_begin(ctl, &tasks);
    for (size_t i = 0; i < ctl->n_args; i++) {
        one = get_one(ctl, ctl->args[i], &task);
        if (one == CTL_OK)
            ctl_tasks_add(ctl, &tasks, task);
        end = ctl_worse(end, one);
    }
    ctl_tasks_end(ctl, &tasks);
    return end;
}
