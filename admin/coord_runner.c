#include "admin/coord_runner.h"

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/thread.h"

#include <stdatomic.h>

#define POLL_MS 5000

struct admin_coord_runner {
    struct toc_coord *coord;
    struct toc_thread thread;
    atomic_bool stopping;
    bool failing; /* Thread: its own */
};

static void
take_event(void *arg, const struct toc_coord_event *event)
{
    (void)arg;
    if (event->kind == TOC_COORD_SESSION_LOST)
        TOC_LOG(WARN, "admin.session_lost",
                F_MSG("not listed as a member until there is a new session"));
    else if (event->kind == TOC_COORD_SESSION_NEW)
        TOC_LOG(INFO, "admin.session_new", F_MSG("listed as a member"));
}

static void
keep(void *arg)
{
    struct admin_coord_runner *runner = arg;

    while (!atomic_load(&runner->stopping)) {
        struct toc_error error = {.status = TOC_OK};
        enum toc_status st =
            toc_coord_poll(runner->coord, POLL_MS, take_event, runner, &error);
        bool failing = st != TOC_OK;
        if (failing && !runner->failing) /* the first of a row */
            TOC_LOG(WARN, "admin.coord_failed",
                    F_MSG("etcd cannot be reached; trying on"), F_ERR(&error));
        runner->failing = failing;
    }
}

struct admin_coord_runner *
admin_coord_runner_start(struct toc_coord *coord)
{
    struct admin_coord_runner *runner = TOC_NEW(struct admin_coord_runner);

    runner->coord = coord;
    atomic_init(&runner->stopping, false);
    toc_thread_start(&runner->thread, "admin-coord", keep, runner);
    return runner;
}

void
admin_coord_runner_stop(struct admin_coord_runner *runner)
{
    if (runner == NULL)
        return;
    atomic_store(&runner->stopping, true);
    toc_coord_interrupt(runner->coord);
    toc_thread_join(&runner->thread);
    toc_free(runner);
}
