/*
 * Goal: commands bind. What a command answers is what then happens, however
 * close to the due time it came.
 * Method: a real cluster and a recording business; commands through both
 * schedulers; afterwards the record of calls is held against the answers.
 */
#include "tests/support/e2e_main.h"
#include "tests/support/stub.h"

#include "common/api/api.h"
#include "common/base/str.h"

#include <string.h>

static struct cluster cluster;

#define RACE_TASKS 5000
#define RACE_CANCELS 500

static int64_t
within_a_second(void *arg, size_t i)
{
    const int64_t *start = arg;

    return *start + (int64_t)(i * 1000 / RACE_TASKS);
}

static int64_t
at(void *arg, size_t i)
{
    (void)i;
    return *(const int64_t *)arg;
}

static Toc__V1__TaskKey *
key_of(struct toc_arena *arena, const char *biz_type, size_t i)
{
    return caller_request(arena, biz_type, i, 0, "", 0)->key;
}

static Toc__V1__Outcome
cancel(struct caller *caller, size_t via, const char *biz_type, size_t i)
{
    Toc__V1__CancelRequest request = TOC__V1__CANCEL_REQUEST__INIT;
    Toc__V1__CancelResponse *reply = NULL;
    Toc__V1__Outcome outcome;

    request.which_case = TOC__V1__CANCEL_REQUEST__WHICH_KEY;
    request.key = key_of(&caller->arena, biz_type, i);
    ck_assert_msg(caller_call(caller, cluster.schedulers[via], "Cancel",
                              &request.base, &reply) == TOC_OK,
                  "Cancel: %s", caller->error.msg);
    ck_assert_uint_eq(reply->n_results, 1);
    outcome = reply->results[0]->outcome;
    toc_arena_reset(&caller->arena);
    return outcome;
}

static bool
time_has_come(void *arg)
{
    return wall_ms() >= *(const int64_t *)arg;
}

struct expected {
    struct stub *stub;
    size_t calls;
};

static bool
called_as_expected(void *arg)
{
    const struct expected *expected = arg;

    return stub_distinct(expected->stub) >= expected->calls;
}

static bool
cancel_at(struct caller *caller, size_t k, size_t i, int64_t when)
{
    Toc__V1__Outcome outcome;

    eventually(time_has_come, &when, 60000);
    outcome = cancel(caller, k % 2, "race", i);
    ck_assert_msg(outcome == TOC__V1__OUTCOME__OUTCOME_APPLIED ||
                      outcome == TOC__V1__OUTCOME__OUTCOME_TOO_LATE ||
                      outcome == TOC__V1__OUTCOME__OUTCOME_ENDED,
                  "task %zu: outcome %d", i, (int)outcome);
    return outcome == TOC__V1__OUTCOME__OUTCOME_APPLIED;
}

/* Cancels every tenth task, four of five within 50 ms of the due time, before
 * and after, the fifth a second later (on a slow machine all of the others may
 * come in time), and notes the answers; true: it was cancelled. */
static void
race(struct caller *caller, int64_t start, bool *cancelled)
{
    for (size_t late = 0; late < 2; late++) {
        for (size_t k = 0; k < RACE_CANCELS; k++) {
            size_t i = k * (RACE_TASKS / RACE_CANCELS);
            int64_t due = within_a_second(&start, i);

            if ((k % 5 == 4) == (late == 1))
                cancelled[i] = cancel_at(caller, k, i,
                                         late ? due + 1000
                                              : due - 50 + (int64_t)(k % 101));
        }
    }
}

START_TEST(cancelled_is_never_called_too_late_always)
{
    struct caller caller;
    struct stub *stub = stub_start(RACE_TASKS, NULL, NULL);
    static bool cancelled[RACE_TASKS];
    struct expected expected = {stub, RACE_TASKS};
    int64_t start;
    size_t n = 0;

    caller_init(&caller);
    start = wall_ms() + 5000;
    caller_submit_many(&caller, cluster.schedulers[0], "race", 0, RACE_TASKS,
                       within_a_second, &start, stub_target(stub), 0);
    race(&caller, start, cancelled);
    for (size_t i = 0; i < RACE_TASKS; i++)
        n += cancelled[i];
    expected.calls -= n;
    ck_assert(eventually(called_as_expected, &expected, 30000));
    for (size_t i = 0; i < RACE_TASKS; i++)
        ck_assert_msg(stub_calls(stub, i) == !cancelled[i],
                      "task %zu %s, but was called %u times", i,
                      cancelled[i] ? "was cancelled" : "was not cancelled",
                      stub_calls(stub, i));
    ck_assert_msg(n > 0 && n < RACE_CANCELS,
                  "%zu of %d cancels came in time: this was no race", n,
                  RACE_CANCELS);
    ck_assert_uint_eq(stub_early(stub), 0);
    caller_done(&caller);
    stub_stop(stub);
}
END_TEST

/* Everything of one order goes in one call. */
START_TEST(cancel_by_business_id)
{
    struct caller caller;
    Toc__V1__BizRef biz = TOC__V1__BIZ_REF__INIT;
    Toc__V1__CancelRequest request = TOC__V1__CANCEL_REQUEST__INIT;
    Toc__V1__CancelResponse *reply = NULL;
    static char *const names[] = {"pay", "remind", "escalate"};

    caller_init(&caller);
    for (size_t k = 0; k < 3; k++) {
        Toc__V1__SubmitResponse *created = NULL;
        Toc__V1__SubmitRequest *submit =
            caller_request(&caller.arena, "order", 77, wall_ms() + 3600000,
                           "grpc://127.0.0.1:1", 0);
        submit->key->name = names[k];
        ck_assert_int_eq(caller_call(&caller, cluster.schedulers[k % 2],
                                     "Submit", &submit->base, &created),
                         TOC_OK);
    }
    biz.biz_type = (char *)"order";
    biz.biz_id = (char *)"77";
    request.which_case = TOC__V1__CANCEL_REQUEST__WHICH_BIZ;
    request.biz = &biz;
    ck_assert_int_eq(caller_call(&caller, cluster.schedulers[1], "Cancel",
                                 &request.base, &reply),
                     TOC_OK);
    ck_assert_uint_eq(reply->n_results, 3);
    for (size_t k = 0; k < 3; k++)
        ck_assert_int_eq(reply->results[k]->outcome,
                         TOC__V1__OUTCOME__OUTCOME_APPLIED);
    caller_done(&caller);
}
END_TEST

static Toc__V1__Outcome
command(struct caller *caller, const char *method,
        const ProtobufCMessage *request)
{
    Toc__V1__CommandResult *reply = NULL;
    Toc__V1__Outcome outcome;

    ck_assert_msg(caller_call(caller, cluster.schedulers[0], method, request,
                              &reply) == TOC_OK,
                  "%s: %s", method, caller->error.msg);
    outcome = reply->outcome;
    return outcome;
}

/* A paused task is not called at its due time; resumed, it is called at once.
 */
START_TEST(pause_holds_resume_fires)
{
    struct caller caller;
    struct stub *stub = stub_start(2, NULL, NULL);
    struct expected both = {stub, 2}, one = {stub, 1};
    int64_t due = wall_ms() + 1500;
    Toc__V1__PauseRequest pause = TOC__V1__PAUSE_REQUEST__INIT;
    Toc__V1__ResumeRequest resume = TOC__V1__RESUME_REQUEST__INIT;

    caller_init(&caller);
    caller_submit_many(&caller, cluster.schedulers[0], "hold", 0, 2, at, &due,
                       stub_target(stub), 0);
    pause.which_case = TOC__V1__PAUSE_REQUEST__WHICH_KEY;
    pause.key = key_of(&caller.arena, "hold", 0);
    ck_assert_int_eq(command(&caller, "Pause", &pause.base),
                     TOC__V1__OUTCOME__OUTCOME_APPLIED);
    ck_assert_int_eq(command(&caller, "Pause", &pause.base),
                     TOC__V1__OUTCOME__OUTCOME_ALREADY);
    ck_assert(eventually(called_as_expected, &one, 10000));
    ck_assert_uint_eq(stub_calls(stub, 0), 0);
    ck_assert_int_eq(caller_state(&caller, cluster.schedulers[1], "hold", 0),
                     TOC__V1__STATE__STATE_PAUSED);
    resume.which_case = TOC__V1__RESUME_REQUEST__WHICH_KEY;
    resume.key = key_of(&caller.arena, "hold", 0);
    ck_assert_int_eq(command(&caller, "Resume", &resume.base),
                     TOC__V1__OUTCOME__OUTCOME_APPLIED);
    ck_assert(eventually(called_as_expected, &both, 10000));
    ck_assert_uint_eq(stub_total(stub), 2);
    caller_done(&caller);
    stub_stop(stub);
}
END_TEST

START_TEST(reschedule_and_run_now)
{
    struct caller caller;
    struct stub *stub = stub_start(2, NULL, NULL);
    struct expected one = {stub, 1}, both = {stub, 2};
    int64_t far = wall_ms() + 3600000, soon;
    Toc__V1__RescheduleRequest later = TOC__V1__RESCHEDULE_REQUEST__INIT;
    Toc__V1__RunNowRequest now = TOC__V1__RUN_NOW_REQUEST__INIT;

    caller_init(&caller);
    caller_submit_many(&caller, cluster.schedulers[0], "move", 0, 2, at, &far,
                       stub_target(stub), 0);
    soon = wall_ms() + 700;
    later.which_case = TOC__V1__RESCHEDULE_REQUEST__WHICH_KEY;
    later.key = key_of(&caller.arena, "move", 0);
    later.when_case = TOC__V1__RESCHEDULE_REQUEST__WHEN_DUE_TIME;
    later.due_time = toc_api_time(&caller.arena, soon);
    ck_assert_int_eq(command(&caller, "Reschedule", &later.base),
                     TOC__V1__OUTCOME__OUTCOME_APPLIED);
    ck_assert(eventually(called_as_expected, &one, 10000));
    ck_assert_int_eq(stub_call(stub, 0, 0).due_ms, soon);
    now.which_case = TOC__V1__RUN_NOW_REQUEST__WHICH_KEY;
    now.key = key_of(&caller.arena, "move", 1);
    ck_assert_int_eq(command(&caller, "RunNow", &now.base),
                     TOC__V1__OUTCOME__OUTCOME_APPLIED);
    ck_assert(eventually(called_as_expected, &both, 10000));
    ck_assert_uint_eq(stub_early(stub), 0);
    caller_done(&caller);
    stub_stop(stub);
}
END_TEST

/* An etag of another version stops a command; the right one lets it pass. */
START_TEST(etag_guards)
{
    struct caller caller;
    int64_t far = wall_ms() + 3600000;
    Toc__V1__GetRequest get = TOC__V1__GET_REQUEST__INIT;
    Toc__V1__PauseRequest pause = TOC__V1__PAUSE_REQUEST__INIT;
    Toc__V1__Task *task = NULL;
    Toc__V1__CommandResult *reply = NULL;

    caller_init(&caller);
    caller_submit_many(&caller, cluster.schedulers[0], "etag", 0, 1, at, &far,
                       "grpc://127.0.0.1:1", 0);
    get.which_case = TOC__V1__GET_REQUEST__WHICH_KEY;
    get.key = key_of(&caller.arena, "etag", 0);
    ck_assert_int_eq(
        caller_call(&caller, cluster.schedulers[0], "Get", &get.base, &task),
        TOC_OK);
    pause.which_case = TOC__V1__PAUSE_REQUEST__WHICH_KEY;
    pause.key = get.key;
    pause.etag = task->etag;
    ck_assert_int_eq(command(&caller, "Pause", &pause.base),
                     TOC__V1__OUTCOME__OUTCOME_APPLIED);
    ck_assert_int_eq(caller_call(&caller, cluster.schedulers[0], "Pause",
                                 &pause.base, &reply),
                     TOC_CONFLICT);
    caller_done(&caller);
}
END_TEST

TOC_E2E_MAIN("commands", 2, 2, cancelled_is_never_called_too_late_always,
             cancel_by_business_id, pause_holds_resume_fires,
             reschedule_and_run_now, etag_guards)
