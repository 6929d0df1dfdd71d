#include "executor/session.h"

#include "common/base/log.h"

#define COORD_POLL_MS 1000
#define GUARD_MS 100 /* without a session */
#define GUARD_NS_MAX INT64_C(3000000000)

void
exec_session_init(struct exec_session *session, struct exec_core *core)
{
    *session = (struct exec_session){.clock = core->options.clock,
                                     .coord = core->options.coord,
                                     .invoke = core->options.invoke,
                                     .core = core};
    toc_bell_init(&session->guard_bell);
}

void
exec_session_done(struct exec_session *session)
{
    toc_bell_done(&session->guard_bell);
}

static void
on_coord(void *arg, const struct toc_coord_event *event)
{
    struct exec_session *session = arg;

    if (event->kind == TOC_COORD_SESSION_LOST)
        TOC_LOG(WARN, "executor.session_lost",
                F_MSG("nothing is claimed until there is a new one"));
    if (event->kind != TOC_COORD_SESSION_NEW)
        return;
    TOC_LOG(INFO, "executor.session_new", F_MSG("claiming"));
    exec_inbox_ring(&session->core->inbox);
    toc_bell_ring(&session->guard_bell);
}

void
exec_session_poll(struct exec_session *session)
{
    struct toc_error err = {0};

    if (toc_coord_poll(session->coord, COORD_POLL_MS, on_coord, session,
                       &err) != TOC_OK)
        TOC_LOG(WARN, "executor.coord_failed", F_MSG("trying again"),
                F_ERR(&err));
}

/* It sleeps until the deadline that it last saw; a session that is kept alive
 * moves it on. */
int64_t
exec_session_guard(struct exec_session *session)
{
    int64_t now_ns = toc_clock_mono(session->clock).ns;
    int64_t left_ns = toc_coord_deadline_boot_ns(session->coord) -
                      toc_clock_boot(session->clock).ns;

    if (left_ns > 0) {
        session->held = true;
        return now_ns + (left_ns < GUARD_NS_MAX ? left_ns : GUARD_NS_MAX);
    }
    if (session->held && atomic_load(&session->core->calls) > 0) {
        TOC_LOG(WARN, "executor.session_over", F_MSG("ending all calls"),
                F_UINT("calls", atomic_load(&session->core->calls)));
        toc_invoke_cancel_all(session->invoke);
    }
    session->held = false;
    return now_ns + GUARD_MS * TOC_NS_PER_MS;
}
