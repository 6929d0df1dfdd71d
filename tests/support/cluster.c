#include "tests/support/cluster.h"

#include "common/api/api.h"
#include "common/base/alloc.h"
#include "common/base/config.h"
#include "common/base/os_time.h"
#include "common/base/str.h"
#include "common/clock/os/clock_os.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char *
need_env(const char *name)
{
    const char *value = toc_env(name);

    if (!value) {
        fprintf(stderr, "%s is not set: run this by tests/run\n", name);
        exit(EXIT_FAILURE);
    }
    return value;
}

static int
shell(const char *command)
{
    int rc = system(command);

    return rc >= 0 && WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
}

int
cluster_toc(const struct cluster *cluster, const char *format, ...)
{
    char args[512];
    char command[2048];
    va_list ap;

    va_start(ap, format);
    vsnprintf(args, sizeof args, format, ap);
    va_end(ap);
    toc_format(command, sizeof command,
               "'%s/deploy/local/toc' %s --home '%s' >>'%s.log' 2>&1",
               need_env("TOC_TEST_ROOT"), args, cluster->home, cluster->home);
    return shell(command);
}

int
cluster_run(const struct cluster *cluster, const char *output,
            const char *format, ...)
{
    char args[2048];
    char command[4096];
    va_list ap;

    va_start(ap, format);
    vsnprintf(args, sizeof args, format, ap);
    va_end(ap);
    toc_format(command, sizeof command,
               "eval \"$('%s/deploy/local/toc' env --home '%s')\" && "
               "PATH='%s':$PATH && { %s; } >'%s' 2>&1",
               need_env("TOC_TEST_ROOT"), cluster->home,
               need_env("TOC_TEST_BIN"), args, output ? output : "/dev/null");
    return shell(command);
}

int
cluster_pid(const struct cluster *cluster, const char *name)
{
    char path[512];
    FILE *file;
    int pid = 0;

    toc_format(path, sizeof path, "%s/run/%s.pid", cluster->home, name);
    file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%d", &pid) != 1)
        pid = 0;
    fclose(file);
    return pid;
}

bool
cluster_is_gone(int pid)
{
    char path[64], state = 'Z';
    FILE *file;

    toc_format(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (!file)
        return true;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z'; /* ended between opening and reading */
    fclose(file);
    return state == 'Z' || state == 'X';
}

static void
read_endpoints(struct cluster *cluster)
{
    char path[512];
    char line[512];
    FILE *file;

    toc_format(path, sizeof path, "%s.endpoints", cluster->home);
    ck_assert_int_eq(cluster_run(cluster, path,
                                 "printf '%%s\\n' \"$TOC_ADMIN\" "
                                 "\"$TOC_SHOP\" && "
                                 "printf '%%s\\n' \"$TOC_SCHEDULER\" | "
                                 "tr ',' '\\n'"),
                     0);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; fgets(line, sizeof line, file); i++) {
        line[strcspn(line, "\n")] = '\0';
        if (i == 0)
            toc_copy(cluster->admin, 64, toc_str_of(line));
        else if (i == 1)
            toc_copy(cluster->shop, 64, toc_str_of(line));
        else if (cluster->n_schedulers < 8 && line[0])
            toc_copy(cluster->schedulers[cluster->n_schedulers++], 64,
                     toc_str_of(line));
    }
    fclose(file);
}

void
cluster_up(struct cluster *cluster, const char *name, int schedulers,
           int executors)
{
    char command[512];

    memset(cluster, 0, sizeof *cluster);
    toc_format(cluster->home, sizeof cluster->home, "%s/e2e-%s",
               need_env("TOC_TEST_TMP"), name);
    if (cluster_toc(cluster,
                    "up --no-demo --no-install --no-build --build-dir '%s/..' "
                    "--schedulers %d --executors %d",
                    need_env("TOC_TEST_BIN"), schedulers, executors) != 0) {
        toc_format(command, sizeof command,
                   "tail -n 60 '%s.log'; tail -n 20 '%s'/log/*.log",
                   cluster->home, cluster->home);
        shell(command);
        cluster_destroy(cluster);
        ck_abort_msg("the cluster did not come up");
    }
    read_endpoints(cluster);
    ck_assert_uint_eq(cluster->n_schedulers, (unsigned)schedulers);
}

void
cluster_destroy(struct cluster *cluster)
{
    cluster_toc(cluster, "destroy --yes");
}

/* ---- calling --------------------------------------------------------- */

void
caller_init(struct caller *caller)
{
    struct toc_rpc_client_options options = {.clock = toc_clock_os()};

    memset(caller, 0, sizeof *caller);
    caller->client = toc_rpc_client_new(&options);
}

void
caller_done(struct caller *caller)
{
    toc_rpc_client_free(caller->client);
    toc_arena_done(&caller->arena);
}

static enum toc_status
call(struct caller *caller, const char *address,
     const ProtobufCServiceDescriptor *service, const char *method,
     const ProtobufCMessage *request, void *ret_reply)
{
    ProtobufCMessage *reply = NULL;
    enum toc_status st;

    caller->details = (struct toc_str){NULL, 0};
    memset(&caller->error, 0, sizeof caller->error);
    st = toc_rpc_call(caller->client, address, service, method, request, 30000,
                      &caller->arena, &reply, &caller->details, &caller->error);
    if (st == TOC_OK)
        memcpy(ret_reply, &reply, sizeof reply);
    return st;
}

enum toc_status
caller_call(struct caller *caller, const char *address, const char *method,
            const ProtobufCMessage *request, void *ret_reply)
{
    return call(caller, address, &toc__v1__timeout_service__descriptor, method,
                request, ret_reply);
}

enum toc_status
caller_admin(struct caller *caller, const char *address, const char *method,
             const ProtobufCMessage *request, void *ret_reply)
{
    return call(caller, address, &toc__v1__admin_service__descriptor, method,
                request, ret_reply);
}

static Toc__V1__TaskKey *
new_key(struct toc_arena *arena, const char *biz_type, size_t i)
{
    Toc__V1__TaskKey *key = toc_arena_calloc(arena, 1, sizeof *key);

    toc__v1__task_key__init(key);
    key->biz_type = toc_arena_text(arena, toc_str_of(biz_type));
    key->biz_id = toc_arena_printf(arena, "%zu", i);
    return key;
}

Toc__V1__SubmitRequest *
caller_request(struct toc_arena *arena, const char *biz_type, size_t i,
               int64_t due_ms, const char *target, unsigned batch_max)
{
    Toc__V1__SubmitRequest *request =
        toc_arena_calloc(arena, 1, sizeof *request);
    Toc__V1__Target *to = toc_arena_calloc(arena, 1, sizeof *to);

    toc__v1__submit_request__init(request);
    toc__v1__target__init(to);
    to->url = toc_arena_text(arena, toc_str_of(target));
    to->batch_max = batch_max;
    request->key = new_key(arena, biz_type, i);
    request->when_case = TOC__V1__SUBMIT_REQUEST__WHEN_DUE_TIME;
    request->due_time = toc_api_time(arena, due_ms);
    request->target = to;
    return request;
}

static void
submit_batch(struct caller *caller, const char *address, const char *biz_type,
             size_t first, size_t n, int64_t (*due_ms)(void *, size_t),
             void *arg, const char *target, unsigned batch_max)
{
    struct toc_arena arena = {0};
    Toc__V1__BatchSubmitRequest batch = TOC__V1__BATCH_SUBMIT_REQUEST__INIT;
    Toc__V1__BatchSubmitResponse *reply = NULL;

    batch.n_items = n;
    batch.items = toc_arena_calloc(&arena, n, sizeof *batch.items);
    for (size_t i = 0; i < n; i++)
        batch.items[i] =
            caller_request(&arena, biz_type, first + i, due_ms(arg, first + i),
                           target, batch_max);
    ck_assert_msg(caller_call(caller, address, "BatchSubmit", &batch.base,
                              &reply) == TOC_OK,
                  "BatchSubmit: %s", caller->error.msg);
    ck_assert_uint_eq(reply->n_results, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(
            reply->results[i]->response && reply->results[i]->response->created,
            "task %zu was not created: %s", first + i,
            reply->results[i]->error ? reply->results[i]->error->message
                                     : "it was there");
    toc_arena_reset(&caller->arena);
    toc_arena_done(&arena);
}

void
caller_submit_many(struct caller *caller, const char *address,
                   const char *biz_type, size_t first, size_t n,
                   int64_t (*due_ms)(void *, size_t), void *arg,
                   const char *target, unsigned batch_max)
{
    for (size_t done = 0; done < n; done += 500)
        submit_batch(caller, address, biz_type, first + done,
                     n - done < 500 ? n - done : 500, due_ms, arg, target,
                     batch_max);
}

Toc__V1__State
caller_state(struct caller *caller, const char *address, const char *biz_type,
             size_t i)
{
    Toc__V1__GetRequest request = TOC__V1__GET_REQUEST__INIT;
    Toc__V1__Task *task = NULL;
    Toc__V1__State state;

    request.which_case = TOC__V1__GET_REQUEST__WHICH_KEY;
    request.key = new_key(&caller->arena, biz_type, i);
    if (caller_call(caller, address, "Get", &request.base, &task) != TOC_OK)
        return TOC__V1__STATE__STATE_UNSPECIFIED;
    state = task->state;
    toc_arena_reset(&caller->arena);
    return state;
}

int64_t
wall_ms(void)
{
    return toc_clock_wall(toc_clock_os()).ms;
}

bool
eventually(bool (*fn)(void *arg), void *arg, int64_t timeout_ms)
{
    int64_t now = toc_os_mono_ns();
    int64_t deadline = now + timeout_ms * TOC_NS_PER_MS;

    while (!fn(arg)) {
        if (now >= deadline)
            return false;
        toc_os_sleep_until_mono(now + 5 * TOC_NS_PER_MS);
        now = toc_os_mono_ns();
    }
    return true;
}
