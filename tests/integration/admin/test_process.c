/*
 * Goal: the real toc-admin and tocctl, on a real database and etcd, do what an
 * operator needs: start and wait, list, describe, redrive, show the cluster,
 * stop.
 * Method: a database of the test's own with rows made through the store; the
 * programs run as processes, their output and exit codes are looked at.
 */
#define _DEFAULT_SOURCE /* strsep */
#include "tests/integration/store/fixture.h"

#include "common/model/spec.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 30000

extern char **environ;

static struct {
    char bin[512];
    char cluster[64];
    char log[128]; /* of the admin */
    char address[64];
    pid_t admin;
    char out[4 * 1024 * 1024]; /* of the last tocctl, both streams */
} px;

/* ---- processes ---- */

static bool
until(bool (*fn)(void))
{
    int64_t end =
        toc_clock_mono(toc_clock_os()).ns + PATIENCE_MS * TOC_NS_PER_MS;

    while (!fn()) {
        struct toc_mono now = toc_clock_mono(toc_clock_os());
        if (now.ns >= end)
            return false;
        toc_clock_os_sleep_until(toc_mono_add_ms(now, 10));
    }
    return true;
}

static void
find_programs(void)
{
    ssize_t n = readlink("/proc/self/exe", px.bin, sizeof px.bin - 16);
    char *slash;

    ck_assert_int_gt(n, 0);
    px.bin[n] = '\0';
    slash = strrchr(px.bin, '/');
    snprintf(slash, 12, "/../bin");
    snprintf(px.cluster, sizeof px.cluster, "adm-%08x",
             (unsigned)toc_rng_u64());
    snprintf(px.log, sizeof px.log, "/tmp/%s.log", px.cluster);
}

static pid_t
spawn(const char *program, char **argv, const char *output)
{
    posix_spawn_file_actions_t actions;
    char path[600];
    pid_t pid;
    int rc;

    snprintf(path, sizeof path, "%s/%s", px.bin, program);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, output,
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    rc = posix_spawn(&pid, path, &actions, NULL, argv, environ);
    ck_assert_msg(rc == 0, "%s: %s", path, strerror(rc));
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void
read_into(const char *path, char *text, size_t cap)
{
    FILE *file = fopen(path, "r");
    size_t n = 0;

    if (file != NULL) {
        n = fread(text, 1, cap - 1, file);
        fclose(file);
    }
    text[n] = '\0';
}

/* "tocctl <words>" with the admin's address; the exit code. */
static int
ctl(const char *words)
{
    char copy[1024], path[96];
    char *argv[32] = {"tocctl"};
    int argc = 1, status = 0;
    char *rest = copy, *word;
    pid_t pid;

    snprintf(copy, sizeof copy, "%s", words);
    while ((word = strsep(&rest, " ")) != NULL)
        argv[argc++] = word;
    snprintf(path, sizeof path, "/tmp/%s.out", px.cluster);
    pid = spawn("tocctl", argv, path);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    read_into(path, px.out, sizeof px.out);
    unlink(path);
    ck_assert_msg(WIFEXITED(status), "tocctl %s: signal", words);
    return WEXITSTATUS(status);
}

#define CTL(code, words)                                                  \
    do {                                                                  \
        int got_ = ctl(words);                                            \
        ck_assert_msg(got_ == (code), "tocctl %s: %d\n%s", (words), got_, \
                      px.out);                                            \
    } while (0)
#define SAYS(part)                                                            \
    ck_assert_msg(strstr(px.out, (part)) != NULL, "no \"%s\" in\n%s", (part), \
                  px.out)

static size_t
lines(void)
{
    size_t n = 0;

    for (const char *at = px.out; *at != '\0'; at++)
        n += *at == '\n';
    return n;
}

static char log_text[65536];

static bool
is_listening(void)
{
    const char *at;

    read_into(px.log, log_text, sizeof log_text);
    at = strstr(log_text, "event=rpc.listening");
    at = at != NULL ? strstr(at, " addr=") : NULL;
    return at != NULL && sscanf(at, " addr=%63s", px.address) == 1 &&
           strchr(at, '\n') != NULL;
}

static bool
is_waiting(void)
{
    read_into(px.log, log_text, sizeof log_text);
    return strstr(log_text, "event=admin.waiting") != NULL;
}

static bool
is_serving(void)
{
    char words[96];

    snprintf(words, sizeof words, "health %s", px.address);
    return ctl(words) == 0;
}

static bool
is_member(void)
{
    return ctl("nodes") == 0 && strstr(px.out, "admin-t") != NULL;
}

static void
start_admin(void)
{
    char *argv[] = {"toc-admin", "--node=admin-t", "--listen=127.0.0.1:0",
                    "--workers=2", NULL};

    find_programs();
    setenv("TOC_MYSQL", fx.url, 1);
    setenv("TOC_CLUSTER", px.cluster, 1);
    unsetenv("TOC_SCHEDULER");
    px.admin = spawn("toc-admin", argv, px.log);
}

static void
await_admin(void)
{
    ck_assert_msg(until(is_listening), "not listening: %s", log_text);
    setenv("TOC_ADMIN", px.address, 1);
    ck_assert_msg(until(is_serving), "not serving: %s%s", px.out, log_text);
}

static void
before(void)
{
    ck_assert_msg(toc_env("TOC_ETCD") != NULL, "TOC_ETCD is not set");
    setup();
    start_admin();
    await_admin();
}

static void
before_without_schema(void)
{
    setup_empty();
    start_admin();
}

/* Ends by SIGTERM, well inside the 10 s that deployments give. */
static void
stop_admin(void)
{
    int64_t end = toc_clock_mono(toc_clock_os()).ns + 10000 * TOC_NS_PER_MS;
    int status = 0;
    pid_t done = 0;

    kill(px.admin, SIGTERM);
    while (done == 0 && toc_clock_mono(toc_clock_os()).ns < end) {
        done = waitpid(px.admin, &status, WNOHANG);
        if (done == 0)
            toc_clock_os_sleep_until(
                toc_mono_add_ms(toc_clock_mono(toc_clock_os()), 10));
    }
    if (done == 0)
        kill(px.admin, SIGKILL);
    ck_assert_msg(done == px.admin, "did not stop in 10 s");
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "ended with status %x", (unsigned)status);
    px.admin = 0;
}

static void
after(void)
{
    if (px.admin > 0) {
        kill(px.admin, SIGKILL);
        (void)waitpid(px.admin, NULL, 0);
    }
    unlink(px.log);
    teardown();
}

/* ---- rows ---- */

/* One transaction a hundred. */
static void
store_many(const char *biz_type, size_t n, int64_t due_ms)
{
    static struct toc_task tasks[100];
    static struct toc_submit items[100];
    struct toc_submit *refs[100];
    static char ids[100][24];
    struct toc_buf spec = {0};
    struct toc_spec value = {.n_headers = 5};
    char big[201];

    memset(big, 'v', 200);
    big[200] = '\0';
    value.target = TOC_STR("grpc://127.0.0.1:1");
    for (size_t i = 0; i < 5; i++)
        value.headers[i] = (struct toc_header){TOC_STR("h"), toc_str_of(big)};
    toc_spec_encode(&value, &spec);
    for (size_t i = 0; i < n; i++) {
        size_t at = i % 100;
        snprintf(ids[at], sizeof ids[at], "%zu", i);
        tasks[at] = make_task(biz_type, ids[at], "", due_ms);
        tasks[at].spec = toc_buf_view(&spec);
        items[at] = make_submit(&tasks[at], 1);
        refs[at] = &items[at];
        if (at == 99 || i == n - 1)
            OK(toc_store_submit(fx.store, refs, at + 1, now_ms(), err));
    }
    toc_buf_done(&spec);
}

static struct toc_task
dead_task(const char *biz_id, uint64_t token)
{
    struct toc_task task = claimed_task(biz_id, token, now_ms() + 60000);
    struct toc_finish finish = make_finish(&task, token, TOC_FINISH_DEAD);

    finish.error = TOC_STR("no such \x1b[31morder");
    finish.reason = TOC_STR("rejected by the business");
    OK(toc_store_finish(fx.store, &finish, 1, now_ms(), err));
    ck_assert_int_eq(finish.result, TOC_FINISH_OK);
    return task;
}

/* ---- tests ---- */

START_TEST(lists_go_through_everything)
{
    store_many("bulk", 2500, now_ms() + 3600000);
    store_many("soon", 3, now_ms() + 5000);
    CTL(0, "list --limit 0 -o id");
    ck_assert_uint_eq(lines(), 2503);
    CTL(0, "list --biz-type bulk --limit 0 -o id");
    ck_assert_uint_eq(lines(), 2500);
    CTL(0, "list --biz-type bulk --biz-id 77 -o id");
    ck_assert_uint_eq(lines(), 1);
    CTL(0, "list --state scheduling -o id --limit 0");
    ck_assert_uint_eq(lines(), 3);
    CTL(0, "list --biz-type soon --state init -o id");
    ck_assert_uint_eq(lines(), 0);
    CTL(0, "list --biz-type bulk --limit 5");
    SAYS("there may be more");
    ck_assert_uint_eq(lines(), 7);
    CTL(0, "list --biz-type bulk --limit 2 -o json");
    SAYS("\"taskId\"");
    SAYS("\"url\": \"grpc://127.0.0.1:1\"");
}
END_TEST

START_TEST(dead_letters_shown_and_redriven)
{
    struct toc_task task;

    for (uint64_t i = 0; i < 120; i++) {
        char biz_id[16];
        snprintf(biz_id, sizeof biz_id, "d%llu", (unsigned long long)i);
        task = dead_task(biz_id, 1000 + i);
    }
    CTL(0, "dead list --limit 0 -o id");
    ck_assert_uint_eq(lines(), 120);
    CTL(0, "dead list --limit 1");
    SAYS("rejected by the business");
    SAYS("no such \\x1b[31morder");
    ck_assert_ptr_null(strchr(px.out, '\x1b'));
    CTL(0, "dead list --dead-reason other -o id");
    ck_assert_uint_eq(lines(), 0);
    CTL(1, "dead redrive --all"); /* nobody says yes */
    SAYS("Make 120 dead letters due now?");
    ck_assert_int_eq(get_id(task.id).state, TOC_STATE_DEAD);
    CTL(0, "dead redrive --all --yes --rate 100000 --reason repaired");
    SAYS("120 redriven, 0 gone before, 0 failed");
    task = get_id(task.id);
    ck_assert_int_eq(task.state, TOC_STATE_RETRY);
    ck_assert_int_eq(task.attempt, 0);
    CTL(0, "dead redrive --all --yes");
    SAYS("no dead letters");
    CTL(0, "describe order/d119");
    SAYS("attempt 1  FAILED");
    SAYS("redrive");
    SAYS("repaired");
    CTL(3, "dead redrive 01ARZ3NDEKTSV4RRFFQ69G5FAV");
    SAYS("no such dead letter");
}
END_TEST

START_TEST(timelines_name_nodes)
{
    struct toc_task task = stored_task("named", now_ms() - 10);
    struct toc_claim claim = {.ref = toc_task_ref_of(&task)};
    struct toc_claim_lock lock = lock_of(42, now_ms() + 60000);
    char words[64], id[TOC_TASK_ID_TEXT_MAX];
    uint32_t sched, exec;

    OK(toc_store_register_node(fx.store, TOC_STR("scheduler"),
                               TOC_STR("sched-x"), TOC_STR("h:1"), now_ms(),
                               &sched, err));
    OK(toc_store_register_node(fx.store, TOC_STR("executor"), TOC_STR("exec-y"),
                               TOC_STR("h:2"), now_ms(), &exec, err));
    claim.sched_node = sched;
    lock.exec_node = exec;
    OK(toc_store_claim(fx.store, &claim, 1, &lock, &fx.arena, err));
    ck_assert_int_eq(claim.result, TOC_CLAIM_WON);
    snprintf(words, sizeof words, "describe %s -o json",
             toc_task_id_format(task.id, id));
    CTL(0, words);
    SAYS("\"schedulerNode\": \"sched-x\"");
    SAYS("\"executorNode\": \"exec-y\"");
    SAYS("\"state\": \"STATE_EXECUTING\"");
    CTL(0, "describe order/named");
    SAYS("exec-y");
    SAYS("Payload:      7 bytes\n  payload\n");
    CTL(3, "describe order/nobody");
    SAYS("error: order/nobody: no such task");
}
END_TEST

START_TEST(the_cluster_is_shown)
{
    CTL(0, "shards");
    SAYS("-      -        256    OPEN");
    SAYS("0-255\n");
    CTL(0, "shards -o wide");
    ck_assert_uint_eq(lines(), 257);
    ck_assert_msg(until(is_member), "no member: %s", px.out);
    SAYS(px.address);
    CTL(5, "get order/1"); /* no scheduler to ask */
    SAYS("the admin knows of no scheduler that is up");
}
END_TEST

START_TEST(stops_when_asked)
{
    char words[96];

    stop_admin();
    snprintf(words, sizeof words, "health %s", px.address);
    CTL(5, words);
    CTL(5, "nodes --timeout 1s");
    SAYS("error: ");
    SAYS("hint: ");
}
END_TEST

START_TEST(waits_for_the_schema)
{
    ck_assert_msg(until(is_waiting), "%s", log_text);
    OK(toc_store_mysql_migrate(fx.mysql, err));
    await_admin();
    CTL(0, "shards");
}
END_TEST

START_TEST(a_stop_ends_the_waiting)
{
    ck_assert_msg(until(is_waiting), "%s", log_text);
    stop_admin();
}
END_TEST

static void
add(Suite *suite, const char *name, void (*setup_)(void),
    const toc_check_test *tests, size_t n)
{
    TCase *tcase = tcase_create(name);

    tcase_add_checked_fixture(tcase, setup_, after);
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
}

int
main(void)
{
    const toc_check_test served[] = {
        lists_go_through_everything, dead_letters_shown_and_redriven,
        timelines_name_nodes, the_cluster_is_shown, stops_when_asked};
    const toc_check_test bare[] = {waits_for_the_schema,
                                   a_stop_ends_the_waiting};
    Suite *suite = suite_create("admin_process");
    SRunner *runner;
    int failed;

    add(suite, "served", before, served, sizeof served / sizeof served[0]);
    add(suite, "bare", before_without_schema, bare,
        sizeof bare / sizeof bare[0]);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
