/*
 * Goal: every process ends within 10 s of SIGTERM whatever its servers do, and
 * nothing is lost by it.
 * Method: a real cluster; the database, etcd, Kafka and a business are frozen
 * in turn (SIGSTOP; a handler that does not return) and all at once, until
 * everything that asks them hangs; then all roles are told to stop, side by
 * side. Tasks that were submitted before fire once when all runs again.
 */
#include "tests/support/e2e_main.h"
#include "tests/support/stub.h"

#include "common/base/thread.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define TASKS 200
#define STUCK 8
/* Loops ask once a second, and each connection once more. */
#define HANG_MS 2500

static struct cluster cluster;

static const char *const roles[] = {"scheduler-1", "executor-1", "admin-1"};
#define ROLES (sizeof roles / sizeof roles[0])

struct scene {
    const char *name;
    const char *servers[4]; /* frozen ones, up to NULL */
    bool business;          /* calls are under way that do not end */
};

struct fixture {
    struct caller caller;
    struct stub *good, *stuck;
    int64_t until_ms;
    int pids[ROLES];
    size_t calls;
    int64_t began_ms;
    _Atomic bool released;
};

static bool
time_is_up(void *arg)
{
    return wall_ms() >= ((struct fixture *)arg)->until_ms;
}

static bool
is_released(void *arg)
{
    return atomic_load(&((struct fixture *)arg)->released);
}

/* Answers when the scene is over. */
static void
hang(void *arg, size_t i, unsigned seen, struct toc_timeout_answer *out)
{
    (void)i;
    (void)seen;
    (void)out;
    (void)eventually(is_released, arg, 60000);
}

static bool
are_gone(void *arg)
{
    struct fixture *f = arg;
    bool gone = true;

    for (size_t i = 0; i < ROLES; i++) {
        if (f->pids[i] == 0 || !cluster_is_gone(f->pids[i])) {
            gone = gone && f->pids[i] == 0;
            continue;
        }
        printf("%s ended after %lld ms\n", roles[i],
               (long long)(wall_ms() - f->began_ms));
        f->pids[i] = 0;
    }
    return gone;
}

static bool
all_called(void *arg)
{
    struct fixture *f = arg;

    return stub_total(f->good) >= f->calls;
}

static bool
one_is_stuck(void *arg)
{
    return stub_total(((struct fixture *)arg)->stuck) > 0;
}

static int64_t
due_at(void *arg, size_t i)
{
    return *(const int64_t *)arg + (int64_t)i;
}

/* Due when the roles are gone; and some that a business does not let go of. */
static void
submit(struct fixture *f, const struct scene *scene)
{
    char biz_type[32];
    int64_t due_ms = wall_ms() + 13000;

    caller_submit_many(&f->caller, cluster.schedulers[0], scene->name, 0, TASKS,
                       due_at, &due_ms, stub_target(f->good), 0);
    if (!scene->business)
        return;
    snprintf(biz_type, sizeof biz_type, "%s-stuck", scene->name);
    due_ms = wall_ms() + 100;
    caller_submit_many(&f->caller, cluster.schedulers[0], biz_type, 0, STUCK,
                       due_at, &due_ms, stub_target(f->stuck), 0);
    ck_assert(eventually(one_is_stuck, f, 20000));
}

static void
signal_servers(const struct scene *scene, int signal)
{
    for (size_t i = 0; scene->servers[i] != NULL; i++) {
        int pid = cluster_pid(&cluster, scene->servers[i]);

        ck_assert_int_gt(pid, 0);
        ck_assert_int_eq(kill(pid, signal), 0);
    }
}

/* Looking up, storing, and an operator's list are under way, too. */
static void
ask_scheduler(void *arg)
{
    struct caller caller;

    (void)arg;
    caller_init(&caller);
    (void)caller_state(&caller, cluster.schedulers[0], "nothing", 1);
    caller_done(&caller);
}

/* Whatever becomes of it: it is due long after the test. */
static void
ask_to_store(void *arg)
{
    Toc__V1__SubmitResponse *reply = NULL;
    struct caller caller;

    caller_init(&caller);
    (void)caller_call(&caller, cluster.schedulers[0], "Submit",
                      &caller_request(&caller.arena, arg, 0,
                                      wall_ms() + 3600000, "grpc://127.0.0.1:1",
                                      0)
                           ->base,
                      &reply);
    caller_done(&caller);
}

static void
ask_admin(void *arg)
{
    Toc__V1__ListShardsRequest request = TOC__V1__LIST_SHARDS_REQUEST__INIT;
    Toc__V1__ListShardsResponse *reply = NULL;
    struct caller caller;

    (void)arg;
    caller_init(&caller);
    (void)caller_admin(&caller, cluster.admin, "ListShards", &request.base,
                       &reply);
    caller_done(&caller);
}

static void
stop_roles(struct fixture *f, const struct scene *scene)
{
    struct toc_thread asks[3] = {{.started = false}};
    char biz_type[32];

    f->until_ms = wall_ms() + HANG_MS;
    toc_thread_start(&asks[0], "ask", ask_scheduler, NULL);
    toc_thread_start(&asks[1], "ask", ask_admin, NULL);
    snprintf(biz_type, sizeof biz_type, "%s-asked", scene->name);
    toc_thread_start(&asks[2], "ask", ask_to_store, biz_type);
    ck_assert(eventually(time_is_up, f, 60000));
    for (size_t i = 0; i < ROLES; i++)
        f->pids[i] = cluster_pid(&cluster, roles[i]);
    f->began_ms = wall_ms();
    for (size_t i = 0; i < ROLES; i++)
        ck_assert_int_eq(kill(f->pids[i], SIGTERM), 0);
    ck_assert_msg(eventually(are_gone, f, 10000),
                  "%s: not all ended within 10 s of SIGTERM", scene->name);
    toc_thread_join(&asks[0]);
    toc_thread_join(&asks[1]);
    toc_thread_join(&asks[2]);
}

/* In an orderly way, and in time: nobody was shown the door. */
static void
check_logs(const struct scene *scene)
{
    ck_assert_msg(cluster_run(&cluster, NULL,
                              "! grep -q stop_forced '%s'/log/*",
                              cluster.home) == 0,
                  "%s: a process had to be ended", scene->name);
}

static void
start_roles(void)
{
    for (size_t i = 0; i < ROLES; i++)
        ck_assert_int_eq(cluster_toc(&cluster, "start %s", roles[i]), 0);
}

static void
play(const struct scene *scene)
{
    struct fixture f = {.calls = TASKS};

    f.good = stub_start(TASKS, NULL, NULL);
    f.stuck = stub_start(STUCK, hang, &f);
    caller_init(&f.caller);
    submit(&f, scene);
    printf("%s\n", scene->name);
    signal_servers(scene, SIGSTOP);
    stop_roles(&f, scene);
    signal_servers(scene, SIGCONT);
    atomic_store(&f.released, true);
    check_logs(scene);
    start_roles();
    ck_assert_msg(eventually(all_called, &f, 60000),
                  "%s: %zu of %d were called", scene->name, stub_total(f.good),
                  TASKS);
    ck_assert_uint_eq(stub_distinct(f.good), TASKS);
    ck_assert_uint_eq(stub_total(f.good), TASKS);
    ck_assert_uint_eq(stub_early(f.good), 0);
    caller_done(&f.caller);
    stub_stop(f.stuck);
    stub_stop(f.good);
}

/* A test that fails must not leave a frozen server behind. */
static void
thaw(void)
{
    static const struct scene all = {.servers = {"mariadb", "etcd", "kafka"}};

    signal_servers(&all, SIGCONT);
}

#define SCENE(name_, business_, ...)                                 \
    START_TEST(frozen_##name_)                                       \
    {                                                                \
        static const struct scene scene = {.name = "frozen_" #name_, \
                                           .servers = {__VA_ARGS__}, \
                                           .business = (business_)}; \
        play(&scene);                                                \
    }                                                                \
    END_TEST

SCENE(mariadb, false, "mariadb")
SCENE(etcd, false, "etcd")
SCENE(kafka, false, "kafka")
SCENE(business, true, NULL)
SCENE(everything, true, "mariadb", "etcd", "kafka")

static void
cluster_setup(void)
{
    cluster_up(&cluster, "frozen", 1, 1);
}

static void
cluster_teardown(void)
{
    thaw();
    cluster_destroy(&cluster);
}

int
main(void)
{
    const toc_check_test tests[] = {frozen_mariadb, frozen_etcd, frozen_kafka,
                                    frozen_business, frozen_everything};

    return toc_e2e_run("frozen", tests, sizeof tests / sizeof tests[0],
                       cluster_setup, cluster_teardown);
}
