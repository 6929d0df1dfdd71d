/*
 * What every backend of the invoke port keeps: a call carries what the business
 * is promised, ends exactly once whatever happens, and says what it knows about
 * whether the business has run.
 *
 * The program that includes this has, before it, time_goes_on() (called between
 * looks: sets a simulated clock on, or waits a moment), and gives:
 *
 *   backend_clock()              what deadlines are told by
 *   backend_begin()              opens fx.invoke, serves fx.target as fx.plan
 *                                says and fills fx.seen; sets fx.nobody, a
 *                                target where nobody is
 *   backend_release()            lets go of the request that was held
 *   backend_stop_server()        breaks off the calls there
 *   backend_end()
 *
 * SEEDS_USUAL: how many random sequences there are (tests/support/seeds.h).
 */
#ifndef TOC_TESTS_INVOKE_SUITE_H
#define TOC_TESTS_INVOKE_SUITE_H

#include "common/base/rng.h"
#include "common/clock/clock.h"
#include "common/invoke/invoke.h"
#include "tests/support/seeds.h"
#include "tests/support/toc_check.h"

#include <stdatomic.h>
#include <string.h>

#define FIRES 3
#define NOT_AFTER INT64_C(4000000000000)
#define RETRY_AT INT64_C(1900000000000)

static struct {
    struct toc_invoke *invoke;
    char target[96], nobody[96];
    struct { /* what the business does */
        enum toc_answer_kind kind;
        const char *said;
        int64_t retry_at_ms;
        size_t answers; /* of a batch */
        atomic_bool hold;
    } plan;
    struct { /* what it saw; of a batch, of the second fire */
        char payload[64], biz_id[64], fire_id[TOC_FIRE_ID_TEXT_MAX];
        uint32_t attempt;
        int64_t due_ms, not_after_ms;
        size_t fires;
        bool batch;
    } seen;
    atomic_int served;
    struct toc_task task[FIRES];
    struct toc_spec spec;
    struct toc_fire fire[FIRES];
    struct toc_call call;
    atomic_int done;
    /* Says to a race detector, which sees no sockets, what comes after what:
     * test, server, test. */
    atomic_int order;
} fx;

static const struct toc_clock *backend_clock(void);
static void backend_begin(void);
static void backend_release(void);
static void backend_stop_server(void);
static void backend_end(void);

#define UNTIL(condition)                                               \
    do {                                                               \
        int64_t until_ =                                               \
            toc_clock_mono(backend_clock()).ns + INT64_C(10000000000); \
        while (!(condition)) {                                         \
            ck_assert_msg(toc_clock_mono(backend_clock()).ns < until_, \
                          "never: %s", #condition);                    \
            time_goes_on();                                            \
        }                                                              \
        (void)atomic_load(&fx.order);                                  \
    } while (0)

static void
call_done(struct toc_call *call)
{
    ck_assert_ptr_eq(call->arg, &fx);
    atomic_fetch_add(&fx.done, 1);
}

static void
make_fire(size_t i)
{
    static const char *const ids[FIRES] = {"1", "2", "3"};
    struct toc_task *task = &fx.task[i];

    *task = (struct toc_task){.fire = 1,
                              .version = 1,
                              .due_ms = 1800000000000,
                              .biz_type = TOC_STR("order"),
                              .biz_id = toc_str_of(ids[i]),
                              .payload = TOC_STR("the payload")};
    task->key_hash = toc_key_hash_of(task->biz_type, task->biz_id, task->name);
    task->id = toc_task_id_make(task->key_hash, task->due_ms, 1);
    fx.fire[i] =
        (struct toc_fire){.task = task, .spec = &fx.spec, .attempt = 2};
}

static void
suite_begin(void)
{
    memset(&fx, 0, sizeof fx);
    fx.plan.kind = TOC_ANSWER_DONE;
    fx.plan.said = "";
    fx.plan.answers = FIRES;
    for (size_t i = 0; i < FIRES; i++)
        make_fire(i);
    backend_begin();
}

static void
start(const char *target, size_t n, bool batch, int64_t timeout_ms)
{
    int64_t now_ns = toc_clock_mono(backend_clock()).ns;

    fx.call =
        (struct toc_call){.target = toc_str_of(target),
                          .fires = fx.fire,
                          .n = n,
                          .batch = batch,
                          .not_after_ms = NOT_AFTER,
                          .deadline_ns = now_ns + timeout_ms * TOC_NS_PER_MS,
                          .done = call_done,
                          .arg = &fx};
    atomic_store(&fx.done, 0);
    atomic_store(&fx.served, 0);
    atomic_fetch_add(&fx.order, 1);
    toc_invoke_start(fx.invoke, &fx.call);
}

static const struct toc_answer *
call(const char *target, size_t n, bool batch)
{
    start(target, n, batch, 5000);
    UNTIL(atomic_load(&fx.done) > 0);
    ck_assert_int_eq(atomic_load(&fx.done), 1);
    return &fx.fire[0].answer;
}

static const struct toc_answer *
call_one(void)
{
    return call(fx.target, 1, false);
}

START_TEST(the_business_gets_what_it_is_promised)
{
    char fire[TOC_FIRE_ID_TEXT_MAX];

    ck_assert_int_eq(call_one()->kind, TOC_ANSWER_DONE);
    ck_assert_str_eq(fx.seen.fire_id,
                     toc_fire_id_format(fx.task[0].id, 1, fire));
    ck_assert_uint_eq(fx.seen.attempt, 2);
    ck_assert_int_eq(fx.seen.not_after_ms, NOT_AFTER);
    ck_assert_int_eq(fx.seen.due_ms, 1800000000000);
    ck_assert_str_eq(fx.seen.payload, "the payload");
    ck_assert_str_eq(fx.seen.biz_id, "1");
    ck_assert(!fx.seen.batch);
    ck_assert_ptr_null(fx.call.backend);
}
END_TEST

static const enum toc_answer_kind said[] = {TOC_ANSWER_DONE, TOC_ANSWER_FAILED,
                                            TOC_ANSWER_REJECTED,
                                            TOC_ANSWER_SNOOZE, TOC_ANSWER_STOP};
enum { SAID = sizeof said / sizeof said[0] };

START_TEST(what_the_business_says_is_the_answer)
{
    fx.plan.said = "because";
    fx.plan.retry_at_ms = RETRY_AT;
    for (size_t i = 0; i < SAID; i++) {
        fx.plan.kind = said[i];
        const struct toc_answer *answer = call_one();
        ck_assert_int_eq(answer->kind, said[i]);
        if (said[i] == TOC_ANSWER_DONE)
            continue;
        ck_assert_str_eq(answer->error, "because");
        ck_assert_int_eq(answer->retry_at_ms, RETRY_AT);
    }
}
END_TEST

START_TEST(nobody_there_is_unreachable)
{
    ck_assert_int_eq(call(fx.nobody, 1, false)->kind, TOC_ANSWER_UNREACHABLE);
    ck_assert_str_ne(fx.fire[0].answer.error, "");
    (void)call(fx.nobody, FIRES, true);
    for (size_t i = 0; i < FIRES; i++)
        ck_assert_int_eq(fx.fire[i].answer.kind, TOC_ANSWER_UNREACHABLE);
}
END_TEST

START_TEST(silence_ends_at_the_deadline_as_unknown)
{
    atomic_store(&fx.plan.hold, true);
    start(fx.target, 1, false, 200);
    UNTIL(atomic_load(&fx.done) > 0);
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_UNKNOWN);
    /* The other side counts in whole ms, and may be the first to say so. */
    ck_assert_int_ge(toc_clock_mono(backend_clock()).ns,
                     fx.call.deadline_ns - 5 * TOC_NS_PER_MS);
    backend_release(); /* what comes now goes nowhere */
    time_goes_on();
    ck_assert_int_eq(atomic_load(&fx.done), 1);
}
END_TEST

START_TEST(a_call_can_be_cancelled)
{
    for (int all = 0; all < 2; all++) {
        atomic_store(&fx.plan.hold, true);
        start(fx.target, 1, false, 60000);
        UNTIL(atomic_load(&fx.served) > 0);
        if (all)
            toc_invoke_cancel_all(fx.invoke);
        else
            toc_invoke_cancel(fx.invoke, &fx.call);
        UNTIL(atomic_load(&fx.done) > 0);
        ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_UNKNOWN);
        backend_release();
        time_goes_on();
        ck_assert_int_eq(atomic_load(&fx.done), 1);
    }
}
END_TEST

START_TEST(cancelling_what_has_ended_does_nothing)
{
    (void)call_one();
    toc_invoke_cancel(fx.invoke, &fx.call);
    toc_invoke_cancel_all(fx.invoke);
    time_goes_on();
    ck_assert_int_eq(atomic_load(&fx.done), 1);
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_DONE);
    ck_assert_int_eq(call_one()->kind, TOC_ANSWER_DONE);
}
END_TEST

START_TEST(a_server_that_goes_in_the_middle_is_unknown)
{
    atomic_store(&fx.plan.hold, true);
    start(fx.target, 1, false, 60000);
    UNTIL(atomic_load(&fx.served) > 0);
    backend_stop_server();
    UNTIL(atomic_load(&fx.done) > 0);
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_UNKNOWN);
}
END_TEST

START_TEST(a_batch_is_answered_fire_by_fire)
{
    fx.plan.kind = TOC_ANSWER_STOP;
    fx.plan.answers = 2;
    (void)call(fx.target, FIRES, true);
    ck_assert(fx.seen.batch);
    ck_assert_uint_eq(fx.seen.fires, FIRES);
    ck_assert_str_eq(fx.seen.biz_id, "2");
    ck_assert_int_eq(fx.fire[0].answer.kind, TOC_ANSWER_STOP);
    ck_assert_int_eq(fx.fire[1].answer.kind, TOC_ANSWER_STOP);
    ck_assert_int_eq(fx.fire[2].answer.kind, TOC_ANSWER_FAILED);
    fx.plan.answers = 50; /* too many are no harm */
    (void)call(fx.target, FIRES, true);
    ck_assert_int_eq(fx.fire[2].answer.kind, TOC_ANSWER_STOP);
    /* what is not understood may have run */
    fx.spec.at_most_once = true;
    fx.plan.answers = 2;
    (void)call(fx.target, FIRES, true);
    ck_assert_int_eq(fx.fire[2].answer.kind, TOC_ANSWER_UNKNOWN);
}
END_TEST

START_TEST(what_is_no_target_is_told)
{
    static const char *const bad[] = {"",
                                      "shop:1",
                                      "grpc://",
                                      "grpc://shop",
                                      "grpc://shop:0",
                                      "grpc://shop:1/Service",
                                      "http://shop:1",
                                      "grpc://sh op:1"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(call(bad[i], 1, false)->kind, TOC_ANSWER_BAD_TARGET);
        ck_assert_str_ne(fx.fire[0].answer.error, "");
    }
    ck_assert_int_eq(call("grpc://shop:1/a.B/Do", FIRES, true)->kind,
                     TOC_ANSWER_BAD_TARGET);
}
END_TEST

/* Ending the backend ends the calls. */
START_TEST(no_call_outlives_the_backend)
{
    atomic_store(&fx.plan.hold, true);
    start(fx.target, 1, false, 60000);
    UNTIL(atomic_load(&fx.served) > 0);
    /* the fixture's end checks that done was called */
}
END_TEST

static void
random_call(struct toc_rng *rng)
{
    bool batch = toc_rng_below(rng, 2) == 0;
    size_t n = batch ? 1 + (size_t)toc_rng_below(rng, FIRES) : 1;

    fx.plan.kind = said[toc_rng_below(rng, SAID)];
    fx.plan.answers = n;
    if (toc_rng_below(rng, 4) == 0) { /* somebody loses patience */
        atomic_store(&fx.plan.hold, true);
        start(fx.target, n, batch, 60000);
        UNTIL(atomic_load(&fx.served) > 0);
        toc_invoke_cancel(fx.invoke, &fx.call);
        UNTIL(atomic_load(&fx.done) > 0);
        for (size_t i = 0; i < n; i++)
            ck_assert_int_eq(fx.fire[i].answer.kind, TOC_ANSWER_UNKNOWN);
        backend_release();
    } else {
        (void)call(fx.target, n, batch);
        ck_assert_int_eq(fx.seen.batch, batch);
        for (size_t i = 0; i < n; i++)
            ck_assert_int_eq(fx.fire[i].answer.kind, fx.plan.kind);
    }
    ck_assert_int_eq(atomic_load(&fx.done), 1);
}

START_TEST(random_calls_end_once_and_as_they_should)
{
    struct toc_rng rng;

    for (uint64_t seed = 1; seed <= seeds_wanted(SEEDS_USUAL); seed++) {
        seed_begins(seed);
        toc_rng_seed(&rng, seed);
        for (int i = 0; i < 50; i++)
            random_call(&rng);
    }
}
END_TEST

static void
suite_end(void)
{
    backend_end();
    ck_assert(fx.call.done == NULL || atomic_load(&fx.done) == 1);
}

#define INVOKE_SUITE                                                       \
    the_business_gets_what_it_is_promised,                                 \
        what_the_business_says_is_the_answer, nobody_there_is_unreachable, \
        silence_ends_at_the_deadline_as_unknown, a_call_can_be_cancelled,  \
        cancelling_what_has_ended_does_nothing,                            \
        a_server_that_goes_in_the_middle_is_unknown,                       \
        a_batch_is_answered_fire_by_fire, what_is_no_target_is_told,       \
        no_call_outlives_the_backend, random_calls_end_once_and_as_they_should

/* What has threads must begin in the forked process: setup is checked. */
static inline int
invoke_suite_run(const char *name, const toc_check_test *tests, size_t n)
{
    return toc_check_run_with(name, tests, n, suite_begin, suite_end);
}

#endif
