/*
 * A role's process from start to stop: signals, limits, readiness.
 *
 *     app = toc_app_new(clk);                 first thing in main
 *     ... settings, log, backends, threads ...
 *     toc_app_ready_set(app, "store", true);
 *     toc_app_wait_stop(app);                 main sleeps here
 *     ... stop in reverse order ...
 *     toc_app_free(app);
 *
 * toc_app_new blocks SIGTERM and SIGINT in the calling thread (so in all that
 * it starts later, the libraries' included) and one thread takes them: the
 * first asks for a stop, the second ends the process at once by its default
 * action (a shell shows 143 or 130). SIGPIPE is ignored, and the limit of open
 * files raised as far as the system allows.
 *
 * A stop ends within TOC_APP_STOP_MS whatever it waits for: what may wait for
 * long is interrupted by a function given to toc_app_on_late; if the process
 * lives at the end all the same, it says where it stands and exits with 1.
 *
 * Ready is who has at least one check, whose checks all hold, and who is not
 * stopping. A check set with toc_app_ready_for is a heartbeat: it fails by
 * itself when its loop no longer comes by.
 *
 * Threads: any, but new and free (main). Locks: its own, a leaf; it is not
 * held while on_stop runs. Only toc_app_wait_stop blocks.
 */
#ifndef TOC_APP_APP_H
#define TOC_APP_APP_H

#include "common/base/buf.h"
#include "common/clock/clock.h"

#include <stdbool.h>
#include <stdint.h>

#define TOC_APP_CHECKS_MAX 16
#define TOC_APP_LATE_MAX 4
#define TOC_APP_STOP_MS 9500 /* deployments give 10 s after SIGTERM */

struct toc_app;

typedef void toc_app_stop_fn(void *arg);

struct toc_app *toc_app_new(const struct toc_clock *clk);
/* Ends the signal thread and sets the signals back to what they were. NULL is
 * fine. */
void toc_app_free(struct toc_app *app);

/* Called once, when the stop is asked for, by the thread that asks; at once
 * when that has been. It must not block for long: the second signal waits. */
void toc_app_on_stop(struct toc_app *app, toc_app_stop_fn *fn, void *arg);
/* Asks for the stop from inside, as a signal would; why goes to the log. */
void toc_app_request_stop(struct toc_app *app, const char *why);
bool toc_app_stopping(struct toc_app *app);
void toc_app_wait_stop(struct toc_app *app);

/* Calls fn when the stop has lasted for ms and not ended (at once when it has
 * already), on a thread of the app's; fn must not block, nor call these three.
 */
void toc_app_on_late(struct toc_app *app, int64_t ms, toc_app_stop_fn *fn,
                     void *arg);
/* No such call runs after this; waits for one that does. Before what they
 * need is freed. */
void toc_app_forget_late(struct toc_app *app);
/* What the stop waits for next, for the log should it be the last thing that
 * is known. what: static text. */
void toc_app_stage(struct toc_app *app, const char *what);
/* Instead of TOC_APP_STOP_MS; for tests. */
void toc_app_stop_within(struct toc_app *app, int64_t ms);

/* check: static text. A check exists from its first mention. */
void toc_app_ready_set(struct toc_app *app, const char *check, bool ok);
/* Holds for the next ms milliseconds, unless said again. */
void toc_app_ready_for(struct toc_app *app, const char *check, int64_t ms);
bool toc_app_ready(struct toc_app *app);
/* Appends "store=ok loader=failed stopping=no", for health and status. */
void toc_app_ready_text(struct toc_app *app, struct toc_buf *out);

#endif
