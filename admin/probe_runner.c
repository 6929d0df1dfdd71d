#include "admin/probe_runner.h"

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/thread.h"

#include <stdatomic.h>

#define EVERY_MS 1000
#define GOOD_FOR_MS 4000

struct admin_probe {
    struct toc_store *store;
    struct toc_app *app;
    const struct toc_clock *clk;
    struct toc_thread thread;
    struct toc_bell bell;
    atomic_bool stopping;
};

static void
ask(struct admin_probe *probe, bool *up)
{
    struct toc_error error = {.status = TOC_OK};
    int64_t now_ms;
    bool ok = toc_store_now(probe->store, &now_ms, &error) == TOC_OK;

    if (ok)
        toc_app_ready_for(probe->app, "store", GOOD_FOR_MS);
    else
        toc_app_ready_set(probe->app, "store", false);
    if (!ok && *up)
        TOC_LOG(WARN, "admin.store_away", F_MSG("the database is away"),
                F_ERR(&error));
    *up = ok;
}

static void
probe_on(void *arg)
{
    struct admin_probe *probe = arg;
    bool up = true;

    while (!atomic_load(&probe->stopping)) {
        ask(probe, &up);
        (void)toc_bell_wait(
            &probe->bell,
            toc_mono_add_ms(toc_clock_mono(probe->clk), EVERY_MS).ns);
    }
}

struct admin_probe *
admin_probe_start(struct toc_store *store, struct toc_app *app,
                  const struct toc_clock *clk)
{
    struct admin_probe *probe = TOC_NEW(struct admin_probe);

    probe->store = store;
    probe->app = app;
    probe->clk = clk;
    atomic_init(&probe->stopping, false);
    toc_bell_init(&probe->bell);
    toc_app_ready_for(app, "store", GOOD_FOR_MS); /* it has just answered */
    toc_thread_start(&probe->thread, "admin-probe", probe_on, probe);
    return probe;
}

void
admin_probe_stop(struct admin_probe *probe)
{
    if (probe == NULL)
        return;
    atomic_store(&probe->stopping, true);
    toc_bell_ring(&probe->bell);
    toc_thread_join(&probe->thread);
    toc_bell_done(&probe->bell);
    toc_free(probe);
}
