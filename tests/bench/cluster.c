#define _GNU_SOURCE /* environ */
#include "tests/bench/cluster_internal.h"

#include "common/app/settings.h"
#include "common/base/alloc.h"
#include "common/base/cleanup.h"
#include "common/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS_MAX 24

/* ---- programs ------------------------------------------------------- */

/* posix_spawn and not fork: gRPC may be running. out: its standard output, or
 * -1: ours (standard error, so that the figures stay alone on ours). */
static bool
spawn(const char *const *argv, int out, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    int rc;

    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none); /* we block the stop signals */
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                     O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out >= 0 ? out : STDERR_FILENO,
                                     STDOUT_FILENO);
    rc = posix_spawnp(ret_pid, argv[0], &actions, &attr, (char *const *)argv,
                      environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return rc == 0;
}

static bool
wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void
read_all(int fd, struct toc_buf *out)
{
    char block[4096];
    ssize_t n;

    while ((n = read(fd, block, sizeof block)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            toc_buf_add(out, block, (size_t)n);
}

bool
run_program(const char *const *argv, struct toc_buf *ret_output)
{
    int ends[2];
    pid_t pid;
    bool ok;

    if (ret_output == NULL)
        return spawn(argv, -1, &pid) && wait_for(pid);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    ok = spawn(argv, ends[1], &pid);
    close(ends[1]);
    if (ok)
        read_all(ends[0], ret_output);
    close(ends[0]);
    return ok && wait_for(pid);
}

bool
read_file(const char *path, struct toc_buf *ret_text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    read_all(fd, ret_text);
    close(fd);
    return true;
}

long
process_pid(const struct cluster *cluster, const char *name)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};
    struct toc_str rest, pid_text;
    char path[400];
    int64_t pid;

    toc_format(path, sizeof path, "%s/run/%s.pid", cluster->home, name);
    if (!read_file(path, &text))
        return 0;
    rest = toc_buf_view(&text);
    if (!toc_str_next(&rest, ' ', &pid_text) ||
        !toc_parse_i64(pid_text, 1, INT32_MAX, &pid) ||
        kill((pid_t)pid, 0) != 0)
        return 0;
    return (long)pid;
}

enum toc_status
cluster_toc(struct cluster *cluster, const char *arg, const char *const *names,
            size_t n, struct toc_error *reterr)
{
    pid_t pids[CLUSTER_PROCESSES_MAX];
    bool ok = true;

    for (size_t i = 0; i < n; i++) {
        const char *argv[] = {cluster->toc, arg,           names[i],
                              "--home",     cluster->home, NULL};
        if (!spawn(argv, -1, &pids[i])) {
            pids[i] = 0;
            ok = false;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (pids[i] != 0 && !wait_for(pids[i]))
            ok = false;
    if (!ok)
        return toc_error_set(reterr, TOC_INTERNAL, "toc", 0,
                             "toc %s has failed", arg);
    return TOC_OK;
}

/* ---- a cluster of our own ------------------------------------------- */

/* Where the programs of this build are: the cluster runs the same ones. */
static void
find_build_dir(char *ret_dir, size_t cap)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    path[n > 0 ? n : 0] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (slash != NULL)
            *slash = '\0';
    }
    toc_copy(ret_dir, cap, toc_str_of(path));
}

static enum toc_status
start_own(struct cluster *cluster, const struct cluster_options *options,
          struct toc_error *reterr)
{
    char schedulers[24], executors[24], build_dir[4096];

    toc_copy(cluster->home, sizeof cluster->home,
             TOC_STR("/var/tmp/toc-bench-XXXXXX"));
    if (mkdtemp(cluster->home) == NULL)
        return toc_error_set(reterr, TOC_INTERNAL, "os", errno,
                             "no folder for the cluster: %s",
                             toc_errno_text(errno));
    cluster->own = true;
    find_build_dir(build_dir, sizeof build_dir);
    toc_format(schedulers, sizeof schedulers, "%lld",
               (long long)options->schedulers);
    toc_format(executors, sizeof executors, "%lld",
               (long long)options->executors);
    const char *argv[ARGS_MAX] = {cluster->toc,  "up",           "--no-demo",
                                  "--home",      cluster->home,  "--build-dir",
                                  build_dir,     "--schedulers", schedulers,
                                  "--executors", executors,      NULL};
    if (!run_program(argv, NULL))
        return toc_error_set(reterr, TOC_UNAVAILABLE, "toc", 0,
                             "the cluster does not start");
    return TOC_OK;
}

/* Of a signal: the cluster goes too. */
static struct cluster *to_stop;

static void
stop_on_signal(void *arg)
{
    sigset_t *signals = arg;
    int number;

    sigwait(signals, &number);
    if (to_stop->own) {
        const char *argv[] = {to_stop->toc, "destroy",     "--yes",
                              "--home",     to_stop->home, NULL};
        (void)run_program(argv, NULL);
    }
    _exit(128 + number);
}

static void
watch_signals(struct cluster *cluster)
{
    static sigset_t signals;
    struct toc_thread thread = {0};

    to_stop = cluster;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    toc_thread_start(&thread, "signals", stop_on_signal, &signals);
}

/* ---- where things are ----------------------------------------------- */

static size_t
split(const char *text, char **ret_items)
{
    struct toc_str items[CLUSTER_ADDRESSES_MAX];
    size_t n;

    if (!toc_list_split(toc_str_of(text), items, CLUSTER_ADDRESSES_MAX, &n))
        return 0;
    for (size_t i = 0; i < n && ret_items != NULL; i++)
        ret_items[i] = toc_strndup(items[i].ptr, items[i].len);
    return n;
}

/* "export NAME='value'", without quotes inside. */
static void
take_line(struct cluster *cluster, struct toc_str line)
{
    TOC_AUTO_FREE char *value = NULL;
    struct toc_str name;
    size_t n = 0;

    if (!toc_str_starts(line, TOC_STR("export ")))
        return;
    line.ptr += strlen("export ");
    line.len -= strlen("export ");
    if (!toc_str_next(&line, '=', &name))
        return;
    value = toc_strndup(line.ptr, line.len);
    for (size_t i = 0; value[i] != '\0'; i++)
        if (strchr("'\"\\", value[i]) == NULL)
            value[n++] = value[i];
    value[n] = '\0';
    if (toc_str_eq(name, TOC_STR("TOC_MYSQL")))
        cluster->mysql_url = toc_steal(&value);
    else if (toc_str_eq(name, TOC_STR("TOC_MYSQL_PASSWORD_FILE")))
        cluster->password_file = toc_steal(&value);
    else if (toc_str_eq(name, TOC_STR("TOC_ADMIN")))
        cluster->admin = toc_steal(&value);
    else if (toc_str_eq(name, TOC_STR("TOC_SCHEDULER")))
        cluster->n_schedulers = split(value, cluster->schedulers);
    else if (toc_str_eq(name, TOC_STR("TOC_EXECUTOR")))
        cluster->n_executors = split(value, NULL);
}

static enum toc_status
find_addresses(struct cluster *cluster, struct toc_error *reterr)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};
    const char *argv[] = {cluster->toc, "env", "--home", cluster->home, NULL};
    struct toc_str rest, line;

    if (!run_program(argv, &out))
        return toc_error_set(reterr, TOC_UNAVAILABLE, "toc", 0,
                             "no cluster runs in %s", cluster->home);
    rest = toc_buf_view(&out);
    while (toc_str_next(&rest, '\n', &line))
        take_line(cluster, line);
    if (cluster->mysql_url == NULL || cluster->admin == NULL ||
        cluster->n_schedulers == 0)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "toc", 0,
                             "TOC's own processes do not run in %s",
                             cluster->home);
    return TOC_OK;
}

enum toc_status
cluster_open(const struct cluster_options *options,
             struct cluster **ret_cluster, struct toc_error *reterr)
{
    struct cluster *cluster = TOC_NEW(struct cluster);
    enum toc_status st = TOC_OK;

    cluster->toc = toc_strdup(options->toc);
    if (options->home != NULL)
        toc_copy(cluster->home, sizeof cluster->home,
                 toc_str_of(options->home));
    watch_signals(cluster);
    if (options->home == NULL)
        st = start_own(cluster, options, reterr);
    if (st == TOC_OK)
        st = find_addresses(cluster, reterr);
    if (st == TOC_OK)
        st = sql_connect(cluster, reterr);
    if (st != TOC_OK) {
        cluster_close(cluster);
        return st;
    }
    *ret_cluster = cluster;
    return TOC_OK;
}

void
cluster_close(struct cluster *cluster)
{
    if (cluster == NULL)
        return;
    if (cluster->sql != NULL)
        mysql_close(cluster->sql);
    if (cluster->own) {
        const char *argv[] = {cluster->toc, "destroy",     "--yes",
                              "--home",     cluster->home, NULL};
        (void)run_program(argv, NULL);
        cluster->own = false;
    }
    toc_free(cluster->mysql_url);
    toc_free(cluster->password_file);
    toc_free(cluster->admin);
    for (size_t i = 0; i < cluster->n_schedulers; i++)
        toc_free(cluster->schedulers[i]);
    /* The struct itself stays: the signal thread may look at it. */
}

const char *
cluster_home(const struct cluster *cluster)
{
    return cluster->home;
}

bool
cluster_fresh(const struct cluster *cluster)
{
    return cluster->own;
}

size_t
cluster_schedulers(const struct cluster *cluster,
                   const char *const **ret_addresses)
{
    *ret_addresses = (const char *const *)cluster->schedulers;
    return cluster->n_schedulers;
}

const char *
cluster_admin(const struct cluster *cluster)
{
    return cluster->admin;
}

size_t
cluster_executors(const struct cluster *cluster)
{
    return cluster->n_executors;
}
