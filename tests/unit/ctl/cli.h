/*
 * tocctl run inside the test: a command line in, both streams and the exit
 * code out, with services that the test writes answers for.
 *
 *     answer(TOC_OK, &task.base)      queued, in order of calls
 *     run(0, "get", "order/42")       the expected exit code first
 *     out, err                        what was printed
 *     sent[i]                         address, method, request of each call
 */
#ifndef TOC_TESTS_UNIT_CTL_CLI_H
#define TOC_TESTS_UNIT_CTL_CLI_H

#include "admin/ctl/ctl.h"

#include "common/api/api.h"
#include "common/base/alloc.h"
#include "common/clock/sim/clock_sim.h"
#include "common/rpc/rpc.h"
#include "tests/support/toc_check.h"
#include "toc/v1/admin.pb-c.h"
#include "toc/v1/timeout.pb-c.h"

#include <stdio.h>
#include <string.h>

#define ANSWERS_MAX 64
#define ID "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define NOW_MS INT64_C(1893456000000) /* 2030-01-01T00:00:00Z */

struct sent {
    char address[64];
    char method[64];
    void *request; /* unpacked again: proof that it could be sent */
};

static struct {
    struct toc_arena arena;
    struct toc_clock_sim clock;
    struct {
        enum toc_status st;
        const ProtobufCMessage *reply;
        struct toc_str details;
        const char *message;
    } answers[ANSWERS_MAX];
    size_t n_answers;
    struct sent sent[ANSWERS_MAX];
    size_t n_sent;
    char *out, *err;
    const char *in;
    struct toc_mono slept_until;
} cli;

static inline void
answer(enum toc_status st, const ProtobufCMessage *reply)
{
    cli.answers[cli.n_answers].st = st;
    cli.answers[cli.n_answers++].reply = reply;
}

static inline void
answer_failure(const struct toc_rpc_failure *failure)
{
    struct toc_buf packed = {0};

    toc_rpc_failure_pack(failure, &packed);
    cli.answers[cli.n_answers].details =
        toc_arena_str(&cli.arena, toc_buf_view(&packed));
    toc_buf_done(&packed);
    cli.answers[cli.n_answers].message = failure->message;
    cli.answers[cli.n_answers++].st = failure->status;
}

static inline const ProtobufCMessageDescriptor *
input_of(const ProtobufCServiceDescriptor *service, const char *method)
{
    const ProtobufCMethodDescriptor *found =
        protobuf_c_service_descriptor_get_method_by_name(service, method);

    ck_assert_msg(found != NULL, "no method %s", method);
    return found->input;
}

static inline enum toc_status
cli_transport(void *arg, const char *address,
              const ProtobufCServiceDescriptor *service, const char *method,
              const ProtobufCMessage *request, int64_t timeout_ms,
              struct toc_arena *arena, ProtobufCMessage **ret_reply,
              struct toc_str *ret_details, struct toc_error *reterr)
{
    struct sent *sent = &cli.sent[cli.n_sent];
    struct toc_buf packed = {0};
    size_t i = cli.n_sent++;

    (void)arg;
    ck_assert_int_gt(timeout_ms, 0);
    ck_assert_msg(i < cli.n_answers, "an unexpected call of %s", method);
    snprintf(sent->address, sizeof sent->address, "%s", address);
    snprintf(sent->method, sizeof sent->method, "%s", method);
    toc_rpc_pack(request, &packed);
    sent->request = toc_rpc_unpack(input_of(service, method),
                                   toc_buf_view(&packed), &cli.arena);
    ck_assert_ptr_nonnull(sent->request);
    toc_buf_reset(&packed);
    if (cli.answers[i].st != TOC_OK) {
        *ret_details = cli.answers[i].details;
        toc_buf_done(&packed);
        return toc_error_set(reterr, cli.answers[i].st, "grpc", 0, "%s",
                             cli.answers[i].message != NULL
                                 ? cli.answers[i].message
                                 : "no luck");
    }
    /* A copy in the caller's arena, as the real one makes. */
    toc_rpc_pack(cli.answers[i].reply, &packed);
    *ret_reply = toc_rpc_unpack(cli.answers[i].reply->descriptor,
                                toc_buf_view(&packed), arena);
    toc_buf_done(&packed);
    ck_assert_ptr_nonnull(*ret_reply);
    return TOC_OK;
}

static Toc__V1__Task task;
static Toc__V1__TaskKey key;

/* What a test begins with: two schedulers, an admin, and a task to answer with,
 * due in 252 s. */
static inline void
start(void)
{
    toc_arena_done(&cli.arena);
    toc_free(cli.out);
    toc_free(cli.err);
    memset(&cli, 0, sizeof cli);
    toc_clock_sim_init(&cli.clock, (struct toc_wall){NOW_MS});
    setenv("TOC_SCHEDULER", "s1:1,s2:2", 1);
    setenv("TOC_ADMIN", "a1:1", 1);
    toc__v1__task__init(&task);
    toc__v1__task_key__init(&key);
    key.biz_type = "order";
    key.biz_id = "42";
    key.name = "pay";
    task.key = &key;
    task.task_id = ID;
    task.state = TOC__V1__STATE__STATE_INIT;
    task.due_time = toc_api_time(&cli.arena, NOW_MS + 252000);
    task.create_time = toc_api_time(&cli.arena, NOW_MS - 60000);
    task.etag = "7";
    task.fire = 1;
}

static inline void
cli_sleep(struct toc_mono until)
{
    cli.slept_until = until;
}

static inline FILE *
cli_input(void)
{
    size_t len = cli.in != NULL ? strlen(cli.in) : 0;

    return len > 0 ? fmemopen((char *)(uintptr_t)cli.in, len, "r")
                   : fopen("/dev/null", "r");
}

static inline void
run_args(int code, int argc, char **argv)
{
    struct ctl ctl = {.transport = cli_transport, .sleep_until = cli_sleep};
    size_t out_len, err_len;
    enum ctl_exit end;

    toc_free(cli.out); /* open_memstream's, from malloc as ours */
    toc_free(cli.err);
    ctl.clk = &cli.clock.clock;
    ctl.in = cli_input();
    ctl.out = open_memstream(&cli.out, &out_len);
    ctl.err = open_memstream(&cli.err, &err_len);
    end = ctl_run(&ctl, argc, argv);
    ctl_done(&ctl);
    fclose(ctl.in);
    fclose(ctl.out);
    fclose(ctl.err);
    ck_assert_msg((int)end == code, "ended with %d, not %d\n%s%s", (int)end,
                  code, cli.out, cli.err);
    cli.in = NULL;
}

#define run(code, ...)                                          \
    do {                                                        \
        const char *argv_[] = {"tocctl", __VA_ARGS__};          \
        run_args((code), (int)(sizeof argv_ / sizeof argv_[0]), \
                 (char **)(uintptr_t)argv_);                    \
    } while (0)

#define has(text, part)                                                        \
    ck_assert_msg(strstr((text), (part)) != NULL, "no \"%s\" in:\n%s", (part), \
                  (text))
#define lacks(text, part)                                                   \
    ck_assert_msg(strstr((text), (part)) == NULL, "\"%s\" in:\n%s", (part), \
                  (text))

#endif
