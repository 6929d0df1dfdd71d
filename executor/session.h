/*
 * The executor's session with the coordination service: while it may have
 * ended, nothing is claimed (exec_session_holds), and calls under way are
 * ended, because somebody else may soon take over what they hold.
 *
 * Threads: poll: coordination; guard: its own, which never waits for a server,
 * so that calls end in time whatever the coordination service does. Blocking:
 * poll only.
 */
#ifndef TOC_EXECUTOR_SESSION_H
#define TOC_EXECUTOR_SESSION_H

#include "common/base/thread.h"
#include "executor/core.h"

struct exec_session {
    const struct toc_clock *clock;
    struct toc_coord *coord;
    struct toc_invoke *invoke;
    struct exec_core *core;
    struct toc_bell guard_bell; /* rung by poll: there is a new session */
    bool held;                  /* guard: it stood when last looked at */
};

void exec_session_init(struct exec_session *session, struct exec_core *core);
void exec_session_done(struct exec_session *session);
/* Waits for news for up to a second. */
void exec_session_poll(struct exec_session *session);
/* Ends the calls when the session may have ended. Returns when to look again
 * (monotonic ns) unless the bell rings before. */
int64_t exec_session_guard(struct exec_session *session);

#endif
