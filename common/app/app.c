#include "common/app/app.h"

#include "common/app/deadline.h"
#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/log.h"
#include "common/base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

struct check {
    const char *name;
    int64_t until_ns; /* of the monotonic clock; INT64_MIN: does not hold */
};

struct toc_app {
    const struct toc_clock *clk;
    sigset_t signals;
    sigset_t mask_before;
    struct sigaction pipe_before;
    struct toc_thread watcher;
    _Atomic bool freed; /* the watcher's next signal is not a person's */
    struct toc_app_deadline deadline;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t stopped;
    bool stopping;
    toc_app_stop_fn *on_stop;
    void *on_stop_arg;
    struct check checks[TOC_APP_CHECKS_MAX];
    size_t n_checks;
};

/* Dies of the signal as if nobody had caught it. */
static void
die_of(int signal)
{
    struct sigaction usual;
    sigset_t one;

    TOC_LOG(WARN, "app.killed",
            F_MSG("second signal, ending at once without cleaning up"),
            F_INT("signal", signal));
    memset(&usual, 0, sizeof usual);
    usual.sa_handler = SIG_DFL; /* a shell may have had it ignored */
    TOC_ASSERT(sigaction(signal, &usual, NULL) == 0);
    sigemptyset(&one);
    sigaddset(&one, signal);
    (void)raise(signal);
    (void)pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

static void
watch_signals(void *arg)
{
    struct toc_app *app = arg;

    for (;;) {
        int signal;
        TOC_ASSERT(sigwait(&app->signals, &signal) == 0);
        if (atomic_load(&app->freed))
            return;
        if (toc_app_stopping(app))
            die_of(signal);
        toc_app_request_stop(app, signal == SIGINT ? "SIGINT" : "SIGTERM");
    }
}

static void
raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur >= limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        TOC_LOG(WARN, "app.file_limit",
                F_MSG("could not raise the limit of open files"),
                F_STR("error", toc_errno_text(errno)));
}

static void
take_over_signals(struct toc_app *app)
{
    struct sigaction ignore;

    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    TOC_ASSERT(sigaction(SIGPIPE, &ignore, &app->pipe_before) == 0);
    sigemptyset(&app->signals);
    sigaddset(&app->signals, SIGTERM);
    sigaddset(&app->signals, SIGINT);
    TOC_ASSERT(pthread_sigmask(SIG_BLOCK, &app->signals, &app->mask_before) ==
               0);
    toc_thread_start(&app->watcher, "signals", watch_signals, app);
}

struct toc_app *
toc_app_new(const struct toc_clock *clk)
{
    struct toc_app *app = TOC_NEW(struct toc_app);

    app->clk = clk;
    TOC_ASSERT(pthread_mutex_init(&app->lock, NULL) == 0);
    TOC_ASSERT(pthread_cond_init(&app->stopped, NULL) == 0);
    raise_file_limit();
    toc_app_deadline_init(&app->deadline);
    take_over_signals(app);
    return app;
}

void
toc_app_free(struct toc_app *app)
{
    if (app == NULL)
        return;
    atomic_store(&app->freed, true);
    TOC_ASSERT(pthread_kill(app->watcher.id, SIGTERM) == 0);
    toc_thread_join(&app->watcher);
    toc_app_deadline_done(&app->deadline);
    TOC_ASSERT(sigaction(SIGPIPE, &app->pipe_before, NULL) == 0);
    TOC_ASSERT(pthread_sigmask(SIG_SETMASK, &app->mask_before, NULL) == 0);
    pthread_cond_destroy(&app->stopped);
    pthread_mutex_destroy(&app->lock);
    toc_free(app);
}

void
toc_app_on_stop(struct toc_app *app, toc_app_stop_fn *fn, void *arg)
{
    bool late;

    pthread_mutex_lock(&app->lock);
    late = app->stopping;
    if (!late) {
        app->on_stop = fn;
        app->on_stop_arg = arg;
    }
    pthread_mutex_unlock(&app->lock);
    if (late)
        fn(arg);
}

void
toc_app_request_stop(struct toc_app *app, const char *why)
{
    toc_app_stop_fn *fn = NULL;
    void *arg = NULL;
    bool first;

    pthread_mutex_lock(&app->lock);
    first = !app->stopping;
    app->stopping = true;
    if (first) {
        fn = app->on_stop;
        arg = app->on_stop_arg;
    }
    pthread_cond_broadcast(&app->stopped);
    pthread_mutex_unlock(&app->lock);
    if (!first)
        return;
    toc_app_deadline_begin(&app->deadline);
    TOC_LOG(INFO, "app.stopping", F_MSG("stopping"), F_STR("why", why));
    if (fn != NULL)
        fn(arg);
}

bool
toc_app_stopping(struct toc_app *app)
{
    bool stopping;

    pthread_mutex_lock(&app->lock);
    stopping = app->stopping;
    pthread_mutex_unlock(&app->lock);
    return stopping;
}

void
toc_app_wait_stop(struct toc_app *app)
{
    pthread_mutex_lock(&app->lock);
    while (!app->stopping)
        pthread_cond_wait(&app->stopped, &app->lock);
    pthread_mutex_unlock(&app->lock);
}

void
toc_app_on_late(struct toc_app *app, int64_t ms, toc_app_stop_fn *fn, void *arg)
{
    struct toc_app_deadline *deadline = &app->deadline;

    pthread_mutex_lock(&deadline->lock);
    TOC_ASSERT(deadline->n_late < TOC_APP_LATE_MAX);
    deadline->late[deadline->n_late++] = (struct toc_app_late){ms, fn, arg};
    pthread_mutex_unlock(&deadline->lock);
    toc_bell_ring(&deadline->bell);
}

void
toc_app_forget_late(struct toc_app *app)
{
    pthread_mutex_lock(&app->deadline.lock);
    app->deadline.n_late = 0;
    pthread_mutex_unlock(&app->deadline.lock);
}

void
toc_app_stage(struct toc_app *app, const char *what)
{
    atomic_store(&app->deadline.stage, what);
}

void
toc_app_stop_within(struct toc_app *app, int64_t ms)
{
    atomic_store(&app->deadline.last_ms, ms);
    toc_bell_ring(&app->deadline.bell);
}

static void
set_check(struct toc_app *app, const char *name, int64_t until_ns)
{
    size_t i = 0;

    pthread_mutex_lock(&app->lock);
    while (i < app->n_checks && strcmp(app->checks[i].name, name) != 0)
        i++;
    TOC_ASSERT(i < TOC_APP_CHECKS_MAX);
    if (i == app->n_checks)
        app->n_checks++;
    app->checks[i] = (struct check){name, until_ns};
    pthread_mutex_unlock(&app->lock);
}

void
toc_app_ready_set(struct toc_app *app, const char *check, bool ok)
{
    set_check(app, check, ok ? INT64_MAX : INT64_MIN);
}

void
toc_app_ready_for(struct toc_app *app, const char *check, int64_t ms)
{
    set_check(app, check, toc_mono_add_ms(toc_clock_mono(app->clk), ms).ns);
}

bool
toc_app_ready(struct toc_app *app)
{
    int64_t now_ns = toc_clock_mono(app->clk).ns;
    bool ready;

    pthread_mutex_lock(&app->lock);
    ready = app->n_checks > 0 && !app->stopping;
    for (size_t i = 0; i < app->n_checks; i++)
        ready = ready && now_ns < app->checks[i].until_ns;
    pthread_mutex_unlock(&app->lock);
    return ready;
}

void
toc_app_ready_text(struct toc_app *app, struct toc_buf *out)
{
    int64_t now_ns = toc_clock_mono(app->clk).ns;

    pthread_mutex_lock(&app->lock);
    for (size_t i = 0; i < app->n_checks; i++)
        toc_buf_printf(out, "%s=%s ", app->checks[i].name,
                       now_ns < app->checks[i].until_ns ? "ok" : "failed");
    toc_buf_printf(out, "stopping=%s", app->stopping ? "yes" : "no");
    pthread_mutex_unlock(&app->lock);
}
