/*
 * Goal: a process stops once when asked, dies when asked twice, and is ready
 * only while all it needs holds.
 * Method: real signals to this process (each test has one of its own); the
 * simulated clock for heartbeats.
 */
#include "common/app/app.h"

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/thread.h"
#include "common/clock/sim/clock_sim.h"

#include "tests/support/toc_check.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct toc_clock_sim sim;
static _Atomic int stops;

static struct toc_app *
new_app(void)
{
    toc_clock_sim_init(&sim, (struct toc_wall){0});
    return toc_app_new(&sim.clock);
}

static void
count_stop(void *arg)
{
    (void)arg;
    atomic_fetch_add(&stops, 1);
}

START_TEST(a_signal_stops_once)
{
    struct toc_app *app = new_app();

    toc_app_on_stop(app, count_stop, NULL);
    ck_assert(!toc_app_stopping(app));
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    toc_app_wait_stop(app);
    ck_assert(toc_app_stopping(app));
    toc_app_request_stop(app, "again");
    toc_app_free(app); /* joins the signal thread, so the call is over */
    ck_assert_int_eq(atomic_load(&stops), 1);
}
END_TEST

START_TEST(a_stop_from_inside)
{
    struct toc_app *app = new_app();

    toc_app_on_stop(app, count_stop, NULL);
    toc_app_request_stop(app, "test");
    ck_assert_int_eq(atomic_load(&stops), 1);
    toc_app_wait_stop(app);
    toc_app_on_stop(app, count_stop, NULL); /* late: at once */
    ck_assert_int_eq(atomic_load(&stops), 2);
    toc_app_free(app);
    toc_app_free(NULL);
}
END_TEST

static void
stop_and_be_stuck(int signal)
{
    struct toc_app *app = new_app();

    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    toc_app_wait_stop(app);
    ck_assert_int_eq(kill(getpid(), signal), 0);
    for (;;) /* a stop that hangs; the second signal ends it */
        toc_os_sleep_until_mono(toc_os_mono_ns() + 1000000);
}

START_TEST(the_second_term_kills)
{
    stop_and_be_stuck(SIGTERM);
}
END_TEST

START_TEST(the_second_int_kills)
{
    (void)signal(SIGINT, SIG_IGN); /* as a shell does in the background */
    stop_and_be_stuck(SIGINT);
}
END_TEST

START_TEST(broken_pipes_are_errors)
{
    struct toc_app *app = new_app();
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(close(fds[0]), 0);
    ck_assert_int_eq(write(fds[1], "x", 1), -1);
    ck_assert_int_eq(errno, EPIPE);
    toc_app_free(app);
}
END_TEST

START_TEST(all_is_set_back)
{
    sigset_t before, after;
    struct sigaction pipe_action;

    pthread_sigmask(SIG_BLOCK, NULL, &before);
    toc_app_free(new_app());
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    ck_assert_int_eq(sigismember(&before, SIGTERM),
                     sigismember(&after, SIGTERM));
    ck_assert_int_eq(sigaction(SIGPIPE, NULL, &pipe_action), 0);
    ck_assert(pipe_action.sa_handler == SIG_DFL);
}
END_TEST

START_TEST(file_limit_is_raised)
{
    struct rlimit limit;
    struct toc_app *app;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    app = new_app();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert(limit.rlim_cur == limit.rlim_max);
    toc_app_free(app);
}
END_TEST

START_TEST(ready_when_all_hold)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};
    struct toc_app *app = new_app();

    ck_assert(!toc_app_ready(app)); /* nothing checked yet */
    toc_app_ready_set(app, "store", true);
    ck_assert(toc_app_ready(app));
    toc_app_ready_set(app, "coord", false);
    ck_assert(!toc_app_ready(app));
    toc_app_ready_text(app, &text);
    ck_assert_str_eq(text.data, "store=ok coord=failed stopping=no");
    toc_app_ready_set(app, "coord", true);
    ck_assert(toc_app_ready(app));
    toc_app_request_stop(app, "test");
    ck_assert(!toc_app_ready(app));
    toc_buf_reset(&text);
    toc_app_ready_text(app, &text);
    ck_assert_str_eq(text.data, "store=ok coord=ok stopping=yes");
    toc_app_free(app);
}
END_TEST

START_TEST(a_frozen_loop_is_not_ready)
{
    struct toc_app *app = new_app();

    toc_app_ready_for(app, "loader", 1000);
    toc_clock_sim_advance_ns(&sim, 999999999);
    ck_assert(toc_app_ready(app));
    toc_clock_sim_advance_ns(&sim, 1);
    ck_assert(!toc_app_ready(app));
    toc_app_ready_for(app, "loader", 1000);
    ck_assert(toc_app_ready(app));
    toc_app_free(app);
}
END_TEST

static bool
has_stopped(void *arg)
{
    return atomic_load(&stops) == *(const int *)arg;
}

START_TEST(late_calls_come_once)
{
    struct toc_app *app = new_app();
    int one = 1, two = 2;

    toc_app_on_late(app, 1, count_stop, NULL);
    toc_app_on_late(app, 3600000, count_stop, NULL);
    ck_assert_int_eq(atomic_load(&stops), 0); /* no stop, so not late */
    toc_app_request_stop(app, "test");
    ck_assert(toc_eventually(has_stopped, &one));
    toc_app_on_late(app, 0, count_stop, NULL); /* is so already */
    ck_assert(toc_eventually(has_stopped, &two));
    toc_app_forget_late(app);
    toc_app_free(app);
    ck_assert_int_eq(atomic_load(&stops), 2);
}
END_TEST

START_TEST(forgotten_calls_do_not_come)
{
    struct toc_app *app = new_app();

    toc_app_on_late(app, 0, count_stop, NULL);
    toc_app_forget_late(app);
    toc_app_request_stop(app, "test");
    toc_app_free(app);
    ck_assert_int_eq(atomic_load(&stops), 0);
}
END_TEST

/* ---- a stop that hangs -------------------------------------------------- */

/* Runs fn in a child whose log goes to a pipe; the child's exit status. */
static int
in_a_child(void (*fn)(void), char *log, size_t cap)
{
    int fds[2], status;
    size_t len = 0;
    ssize_t n;
    pid_t pid;

    ck_assert_int_eq(pipe(fds), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)dup2(fds[1], STDOUT_FILENO);
        (void)dup2(fds[1], STDERR_FILENO);
        (void)close(fds[0]);
        (void)close(fds[1]);
        fn();
        _exit(EXIT_SUCCESS);
    }
    (void)close(fds[1]);
    while ((n = read(fds[0], log + len, cap - 1 - len)) > 0)
        len += (size_t)n;
    log[len] = '\0';
    (void)close(fds[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void
wait_forever(void *arg)
{
    (void)toc_bell_wait(arg, TOC_BELL_FOREVER);
}

static void
hang(void)
{
    struct toc_app *app = new_app();
    struct toc_thread thread = {.started = false};
    struct toc_bell bell;

    toc_log_init("test", "node", TOC_LOG_INFO);
    toc_bell_init(&bell);
    toc_thread_start(&thread, "lazybones", wait_forever, &bell);
    toc_app_stop_within(app, 20);
    toc_app_request_stop(app, "test");
    toc_app_stage(app, "somebody lazy");
    toc_thread_join(&thread);
}

START_TEST(a_stop_that_hangs_is_ended)
{
    static char log[8192];

    ck_assert_int_eq(in_a_child(hang, log, sizeof log), 1);
    ck_assert_msg(strstr(log, "event=app.stop_forced") != NULL, "%s", log);
    ck_assert_msg(strstr(log, "waiting_for=\"somebody lazy\"") != NULL, "%s",
                  log);
    ck_assert_msg(strstr(log, "lazybones") != NULL, "%s", log);
}
END_TEST

static void
end_in_time(void)
{
    struct toc_app *app = new_app();

    toc_app_request_stop(app, "test");
    toc_app_free(app);
}

START_TEST(a_stop_in_time_is_not)
{
    static char log[8192];

    ck_assert_int_eq(in_a_child(end_in_time, log, sizeof log), EXIT_SUCCESS);
    ck_assert_msg(strstr(log, "stop_forced") == NULL, "%s", log);
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {
        a_signal_stops_once,         a_stop_from_inside,
        broken_pipes_are_errors,     all_is_set_back,
        file_limit_is_raised,        ready_when_all_hold,
        a_frozen_loop_is_not_ready,  late_calls_come_once,
        forgotten_calls_do_not_come, a_stop_that_hangs_is_ended,
        a_stop_in_time_is_not};
    const toc_check_test by_term[] = {the_second_term_kills};
    const toc_check_test by_int[] = {the_second_int_kills};
    int rc = toc_check_run("app", tests, sizeof tests / sizeof tests[0]);

    if (rc == EXIT_SUCCESS)
        rc = toc_check_run_signal("app_term", by_term, 1, SIGTERM);
    if (rc == EXIT_SUCCESS)
        rc = toc_check_run_signal("app_int", by_int, 1, SIGINT);
    return rc;
}
