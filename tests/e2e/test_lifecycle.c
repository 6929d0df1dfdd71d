/*
 * Goal: a task's way through failure: retries by its ladder, dead letters,
 * redrive; and a process's way out: SIGTERM ends each within 10 s, its shards
 * are owned again at once, nothing is lost.
 * Method: a real cluster and a business that answers what each test needs.
 */
#include "tests/support/e2e_main.h"
#include "tests/support/stub.h"

#include "common/api/api.h"
#include "common/base/str.h"

#include <signal.h>
#include <string.h>

static struct cluster cluster;

struct fixture {
    struct caller caller;
    struct stub *stub;
    const char *biz_type;
    size_t i;
    Toc__V1__State want;
    size_t calls;
};

static bool
reached(void *arg)
{
    struct fixture *f = arg;

    return caller_state(&f->caller, cluster.schedulers[0], f->biz_type, f->i) ==
           f->want;
}

static bool
called(void *arg)
{
    struct fixture *f = arg;

    return stub_total(f->stub) >= f->calls;
}

/* The first two calls fail. */
static void
fail_twice(void *arg, size_t i, unsigned seen, struct toc_timeout_answer *out)
{
    (void)arg;
    (void)i;
    if (seen < 2)
        out->verdict = TOC_TIMEOUT_RETRY;
}

static Toc__V1__SubmitRequest *
with_ladder(struct fixture *f, unsigned max_retries)
{
    struct toc_arena *arena = &f->caller.arena;
    Toc__V1__SubmitRequest *request = caller_request(
        arena, f->biz_type, f->i, wall_ms() + 300, stub_target(f->stub), 0);
    Toc__V1__RetryPolicy *retry = toc_arena_calloc(arena, 1, sizeof *retry);
    Google__Protobuf__UInt32Value *max =
        toc_arena_calloc(arena, 1, sizeof *max);

    toc__v1__retry_policy__init(retry);
    google__protobuf__uint32_value__init(max);
    max->value = max_retries;
    retry->max_retries = max;
    retry->n_ladder = 2;
    retry->ladder = toc_arena_calloc(arena, 2, sizeof *retry->ladder);
    retry->ladder[0] = toc_api_duration(arena, 500);
    retry->ladder[1] = toc_api_duration(arena, 800);
    request->retry_policy = retry;
    return request;
}

static void
submit_one(struct fixture *f, Toc__V1__SubmitRequest *request)
{
    Toc__V1__SubmitResponse *reply = NULL;

    ck_assert_msg(caller_call(&f->caller, cluster.schedulers[0], "Submit",
                              &request->base, &reply) == TOC_OK,
                  "Submit: %s", f->caller.error.msg);
}

START_TEST(retries_follow_the_ladder)
{
    struct fixture f = {.biz_type = "retry"};
    struct stub_call a, b, c;

    f.stub = stub_start(1, fail_twice, NULL);
    f.want = TOC__V1__STATE__STATE_SUCCESS;
    caller_init(&f.caller);
    submit_one(&f, with_ladder(&f, 5));
    ck_assert(eventually(reached, &f, 20000));
    ck_assert_uint_eq(stub_calls(f.stub, 0), 3);
    a = stub_call(f.stub, 0, 0);
    b = stub_call(f.stub, 0, 1);
    c = stub_call(f.stub, 0, 2);
    ck_assert_uint_eq(a.attempt, 1);
    ck_assert_uint_eq(b.attempt, 2);
    ck_assert_uint_eq(c.attempt, 3);
    ck_assert_str_eq(a.fire_id, b.fire_id);
    ck_assert_str_eq(a.fire_id, c.fire_id);
    ck_assert_int_ge(b.arrived_ms, a.arrived_ms + 500);
    ck_assert_int_ge(c.arrived_ms, b.arrived_ms + 800);
    ck_assert_uint_eq(stub_early(f.stub), 0);
    caller_done(&f.caller);
    stub_stop(f.stub);
}
END_TEST

static const Toc__V1__DeadLetter *
find_dead(struct fixture *f)
{
    Toc__V1__DeadFilter filter = TOC__V1__DEAD_FILTER__INIT;
    Toc__V1__ListDeadRequest request = TOC__V1__LIST_DEAD_REQUEST__INIT;
    Toc__V1__ListDeadResponse *reply = NULL;

    filter.biz_type = (char *)f->biz_type;
    request.filter = &filter;
    ck_assert_msg(caller_admin(&f->caller, cluster.admin, "ListDead",
                               &request.base, &reply) == TOC_OK,
                  "ListDead: %s", f->caller.error.msg);
    return reply->n_dead == 1 ? reply->dead[0] : NULL;
}

START_TEST(dead_then_redriven)
{
    struct fixture f = {.biz_type = "dead"};
    const Toc__V1__DeadLetter *dead;
    Toc__V1__RedriveDeadRequest redrive = TOC__V1__REDRIVE_DEAD_REQUEST__INIT;
    Toc__V1__RedriveDeadResponse *reply = NULL;
    char *ids[1];

    f.stub = stub_start(1, fail_twice, NULL);
    f.want = TOC__V1__STATE__STATE_DEAD;
    caller_init(&f.caller);
    submit_one(&f, with_ladder(&f, 1));
    ck_assert(eventually(reached, &f, 20000));
    ck_assert_uint_eq(stub_calls(f.stub, 0), 2);
    dead = find_dead(&f);
    ck_assert_ptr_nonnull(dead);
    ck_assert_str_ne(dead->reason, "");
    ids[0] = dead->task->task_id;
    redrive.n_task_ids = 1;
    redrive.task_ids = ids;
    ck_assert_int_eq(caller_admin(&f.caller, cluster.admin, "RedriveDead",
                                  &redrive.base, &reply),
                     TOC_OK);
    ck_assert_uint_eq(reply->n_results, 1);
    ck_assert_ptr_null(reply->results[0]->error);
    f.want = TOC__V1__STATE__STATE_SUCCESS;
    ck_assert(eventually(reached, &f, 20000));
    ck_assert_uint_eq(stub_calls(f.stub, 0), 3);
    ck_assert_ptr_null(find_dead(&f));
    caller_done(&f.caller);
    stub_stop(f.stub);
}
END_TEST

/* Nobody listens: RETRY with a reason, then success once somebody does is what
 * the shop's demo shows; here: the attempt is told apart in the timeline. */
START_TEST(timeline_tells_each_attempt)
{
    struct fixture f = {.biz_type = "timeline"};
    Toc__V1__GetTimelineRequest request = TOC__V1__GET_TIMELINE_REQUEST__INIT;
    Toc__V1__Timeline *line = NULL;
    unsigned attempts = 0;

    f.stub = stub_start(1, fail_twice, NULL);
    f.want = TOC__V1__STATE__STATE_SUCCESS;
    caller_init(&f.caller);
    submit_one(&f, with_ladder(&f, 5));
    ck_assert(eventually(reached, &f, 20000));
    request.which_case = TOC__V1__GET_TIMELINE_REQUEST__WHICH_KEY;
    request.key = caller_request(&f.caller.arena, f.biz_type, 0, 0, "", 0)->key;
    ck_assert_int_eq(caller_admin(&f.caller, cluster.admin, "GetTimeline",
                                  &request.base, &line),
                     TOC_OK);
    for (size_t i = 0; i < line->n_entries; i++) {
        const Toc__V1__TimelineEntry *entry = line->entries[i];

        if (!entry->attempt)
            continue;
        attempts++;
        ck_assert_uint_eq(entry->attempt->number, attempts);
        ck_assert_int_eq(entry->attempt->result,
                         attempts < 3
                             ? TOC__V1__ATTEMPT_RESULT__ATTEMPT_RESULT_FAILED
                             : TOC__V1__ATTEMPT_RESULT__ATTEMPT_RESULT_DONE);
        ck_assert_str_ne(entry->attempt->executor_node, "");
    }
    ck_assert_uint_eq(attempts, 3);
    caller_done(&f.caller);
    stub_stop(f.stub);
}
END_TEST

/* ---- SIGTERM ------------------------------------------------------------ */

#define STOP_TASKS 6000
#define STOP_SPAN_MS 12000

static int64_t
spread(void *arg, size_t i)
{
    return *(const int64_t *)arg + (int64_t)(i * STOP_SPAN_MS / STOP_TASKS);
}

static bool
is_gone(void *arg)
{
    return cluster_is_gone(*(const int *)arg);
}

/* The process ends by itself on SIGTERM within 10 s; toc starts it again. */
static void
stop_and_start(const char *name)
{
    int pid = cluster_pid(&cluster, name);

    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(kill(pid, SIGTERM), 0);
    ck_assert_msg(eventually(is_gone, &pid, 10000),
                  "%s did not end within 10 s of SIGTERM", name);
    ck_assert_int_eq(cluster_toc(&cluster, "start %s", name), 0);
}

START_TEST(sigterm_loses_nothing)
{
    struct fixture f = {.biz_type = "stop", .calls = STOP_TASKS};
    int64_t start = wall_ms() + 3000;

    f.stub = stub_start(STOP_TASKS, NULL, NULL);
    caller_init(&f.caller);
    caller_submit_many(&f.caller, cluster.schedulers[0], f.biz_type, 0,
                       STOP_TASKS, spread, &start, stub_target(f.stub), 0);
    stop_and_start("scheduler-2");
    stop_and_start("executor-2");
    stop_and_start("scheduler-1");
    stop_and_start("executor-1");
    stop_and_start("admin-1");
    ck_assert_msg(eventually(called, &f, 60000), "%zu of %d were called",
                  stub_total(f.stub), STOP_TASKS);
    ck_assert_uint_eq(stub_distinct(f.stub), STOP_TASKS);
    ck_assert_uint_eq(stub_total(f.stub), STOP_TASKS);
    ck_assert_uint_eq(stub_early(f.stub), 0);
    caller_done(&f.caller);
    stub_stop(f.stub);
}
END_TEST

TOC_E2E_MAIN("lifecycle", 2, 2, retries_follow_the_ladder, dead_then_redriven,
             timeline_tells_each_attempt, sigterm_loses_nothing)
