/*
 * Goal: due tasks are called exactly once and never early, by two schedulers
 * and two executors; also when one of each is killed halfway.
 * Method: a real cluster and a recording business; tasks spread over a time,
 * submitted ahead. After a kill -9, a second call is allowed only for a task
 * whose first call was in the killed executor's hands: it arrived shortly
 * before the kill.
 */
#include "tests/support/e2e_main.h"
#include "tests/support/stub.h"

#include <stdio.h>

#define TASKS 20000
#define SPAN_MS 20000
#define AHEAD_MS 6000

static struct cluster cluster;

static int64_t
spread(void *arg, size_t i)
{
    const int64_t *start = arg;

    return *start + (int64_t)(i * SPAN_MS / TASKS);
}

static bool
all_called(void *arg)
{
    return stub_distinct(arg) == TASKS;
}

struct ended {
    struct caller *caller;
    const char *biz_type;
    size_t next;
};

/* Goes on where it stopped: finished tasks stay finished. */
static bool
all_succeeded(void *arg)
{
    struct ended *ended = arg;

    for (; ended->next < TASKS; ended->next += 97) {
        if (caller_state(ended->caller, cluster.schedulers[0], ended->biz_type,
                         ended->next) != TOC__V1__STATE__STATE_SUCCESS)
            return false;
    }
    return true;
}

static void
submit_all(struct caller *caller, struct stub *stub, const char *biz_type,
           int64_t *start)
{
    *start = wall_ms() + AHEAD_MS;
    for (size_t k = 0; k < 2; k++)
        caller_submit_many(caller, cluster.schedulers[k], biz_type,
                           k * TASKS / 2, TASKS / 2, spread, start,
                           stub_target(stub), 0);
}

START_TEST(each_once_none_early)
{
    struct caller caller;
    struct stub *stub = stub_start(TASKS, NULL, NULL);
    struct ended ended = {&caller, "firing", 0};
    int64_t start;

    caller_init(&caller);
    submit_all(&caller, stub, "firing", &start);
    ck_assert_msg(eventually(all_called, stub, SPAN_MS + 40000),
                  "%zu of %d tasks were called", stub_distinct(stub), TASKS);
    ck_assert(eventually(all_succeeded, &ended, 20000));
    ck_assert_uint_eq(stub_early(stub), 0);
    ck_assert_uint_eq(stub_total(stub), TASKS);
    ck_assert_uint_eq(stub_strange(stub), 0);
    caller_done(&caller);
    stub_stop(stub);
}
END_TEST

static bool
half_over(void *arg)
{
    const int64_t *start = arg;

    return wall_ms() >= *start + SPAN_MS / 2;
}

/* How many tasks were called twice; fails when one had no reason to be. */
static size_t
count_repeats(struct stub *stub, int64_t killed_ms)
{
    size_t repeats = 0;

    for (size_t i = 0; i < TASKS; i++) {
        struct stub_call first, second;

        if (stub_calls(stub, i) < 2)
            continue;
        ck_assert_uint_eq(stub_calls(stub, i), 2);
        first = stub_call(stub, i, 0);
        second = stub_call(stub, i, 1);
        ck_assert_str_eq(first.fire_id, second.fire_id);
        ck_assert_msg(first.arrived_ms >= killed_ms - 2000 &&
                          first.arrived_ms <= killed_ms + 500,
                      "task %zu was called twice, first %lld ms from the kill",
                      i, (long long)(first.arrived_ms - killed_ms));
        repeats++;
    }
    return repeats;
}

START_TEST(kill_9_loses_nothing)
{
    struct caller caller;
    struct stub *stub = stub_start(TASKS, NULL, NULL);
    struct ended ended = {&caller, "killing", 0};
    int64_t start, killed;

    caller_init(&caller);
    submit_all(&caller, stub, "killing", &start);
    ck_assert(eventually(half_over, &start, SPAN_MS));
    killed = wall_ms();
    ck_assert_int_eq(cluster_toc(&cluster, "kill scheduler-2"), 0);
    ck_assert_int_eq(cluster_toc(&cluster, "kill executor-2"), 0);
    ck_assert_msg(eventually(all_called, stub, SPAN_MS + 60000),
                  "%zu of %d tasks were called", stub_distinct(stub), TASKS);
    ck_assert(eventually(all_succeeded, &ended, 40000));
    ck_assert_uint_eq(stub_early(stub), 0);
    printf("called twice: %zu\n", count_repeats(stub, killed));
    ck_assert_int_eq(cluster_toc(&cluster, "start scheduler-2"), 0);
    ck_assert_int_eq(cluster_toc(&cluster, "start executor-2"), 0);
    caller_done(&caller);
    stub_stop(stub);
}
END_TEST

TOC_E2E_MAIN("firing", 2, 2, each_once_none_early, kill_9_loses_nothing)
