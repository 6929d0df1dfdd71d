/*
 * Goal: a task, its times and words look on the wire as the .proto says.
 * Method: rows built by hand, converted, field by field; times at their edges.
 */
#include "common/api/api.h"

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/model/spec.h"
#include "tests/support/toc_check.h"

#include <string.h>

static struct toc_arena arena;

START_TEST(times)
{
    static const int64_t all[] = {0,
                                  1,
                                  -1,
                                  999,
                                  1000,
                                  -999,
                                  -1000,
                                  -1001,
                                  TOC_DUE_MS_MIN,
                                  TOC_DUE_MS_MAX};
    Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    int64_t ms;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        Google__Protobuf__Timestamp *made = toc_api_time(&arena, all[i]);
        ck_assert_int_ge(made->nanos, 0);
        ck_assert(toc_api_time_ms(made, &ms));
        ck_assert_int_eq(ms, all[i]);
    }
    time.nanos = 1; /* finer than a ms: up, never early */
    ck_assert(toc_api_time_ms(&time, &ms));
    ck_assert_int_eq(ms, 1);
    time.nanos = -1;
    ck_assert(!toc_api_time_ms(&time, &ms));
    time.nanos = 1000000000;
    ck_assert(!toc_api_time_ms(&time, &ms));
    time.nanos = 0;
    time.seconds = TOC_DUE_MS_MAX / 1000 + 1;
    ck_assert(!toc_api_time_ms(&time, &ms));
    time.seconds = INT64_MIN;
    ck_assert(!toc_api_time_ms(&time, &ms));
    time.seconds = TOC_DUE_MS_MAX / 1000;
    time.nanos = 999000001; /* would be rounded into year 10000 */
    ck_assert(!toc_api_time_ms(&time, &ms));
    ck_assert_ptr_null(toc_api_time_or_unset(&arena, 0));
}
END_TEST

START_TEST(durations)
{
    Google__Protobuf__Duration span = GOOGLE__PROTOBUF__DURATION__INIT;
    int64_t ms;

    for (int64_t want = -2001; want <= 2001; want += 667) {
        ck_assert(toc_api_duration_ms(toc_api_duration(&arena, want), &ms));
        ck_assert_int_eq(ms, want);
    }
    span.nanos = 1;
    ck_assert(toc_api_duration_ms(&span, &ms));
    ck_assert_int_eq(ms, 1);
    span.nanos = -1;
    ck_assert(toc_api_duration_ms(&span, &ms));
    ck_assert_int_eq(ms, 0);
    span.seconds = 1; /* signs differ */
    ck_assert(!toc_api_duration_ms(&span, &ms));
    span.nanos = 0;
    span.seconds = INT64_MAX;
    ck_assert(!toc_api_duration_ms(&span, &ms));
    span.seconds = INT64_MIN;
    ck_assert(!toc_api_duration_ms(&span, &ms));
}
END_TEST

START_TEST(words)
{
    enum toc_state state;
    enum toc_priority priority;
    uint32_t version;

    for (int i = 0; i < TOC_STATES; i++) {
        ck_assert(toc_api_state_of(toc_api_state((enum toc_state)i), &state));
        ck_assert_int_eq((int)state, i);
    }
    ck_assert(!toc_api_state_of(TOC__V1__STATE__STATE_UNSPECIFIED, &state));
    ck_assert(!toc_api_state_of((Toc__V1__State)99, &state));
    for (int i = 0; i < TOC_PRIORITIES; i++) {
        ck_assert(toc_api_priority_of(toc_api_priority((enum toc_priority)i),
                                      &priority));
        ck_assert_int_eq((int)priority, i);
    }
    ck_assert(toc_api_priority_of(TOC__V1__PRIORITY__PRIORITY_UNSPECIFIED,
                                  &priority));
    ck_assert_int_eq(priority, TOC_PRIORITY_NORMAL);
    ck_assert(!toc_api_priority_of((Toc__V1__Priority)9, &priority));
    ck_assert_int_eq(toc_api_result(TOC_RESULT_BAD_TARGET),
                     TOC__V1__ATTEMPT_RESULT__ATTEMPT_RESULT_BAD_TARGET);
    ck_assert_int_eq(toc_api_result(TOC_RESULT_SNOOZED),
                     TOC__V1__ATTEMPT_RESULT__ATTEMPT_RESULT_SNOOZED);

    ck_assert(toc_api_etag_parse(toc_api_etag(&arena, UINT32_MAX), &version));
    ck_assert_uint_eq(version, UINT32_MAX);
    ck_assert(toc_api_etag_parse("", &version));
    ck_assert_uint_eq(version, 0);
    ck_assert(!toc_api_etag_parse("0", &version));
    ck_assert(!toc_api_etag_parse("07", &version));
    ck_assert(!toc_api_etag_parse("4294967296", &version));
    ck_assert(!toc_api_etag_parse("-1", &version));
    ck_assert(!toc_api_etag_parse("W/7", &version));

    ck_assert_str_eq(toc_api_text(&arena, TOC_STR("a\xff\0b\xc3")),
                     "a\xef\xbf\xbd\xef\xbf\xbd"
                     "b\xef\xbf\xbd");
}
END_TEST

static struct toc_task
row(void)
{
    struct toc_task task = {.slice = 5 * TOC_SLICES_PER_SHARD,
                            .state = TOC_STATE_INIT,
                            .fire = 1,
                            .version = 3,
                            .due_ms = 100000,
                            .slot_ms = 100000,
                            .created_ms = 50000};

    task.biz_type = TOC_STR("order");
    task.biz_id = TOC_STR("42");
    return task;
}

START_TEST(a_whole_task)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf bytes = {0};
    struct toc_spec spec = {.call_timeout_ms = 1500,
                            .batch_max = 8,
                            .retry = {.max_retries = 4,
                                      .first_ms = 1000,
                                      .cap_ms = 60000,
                                      .factor_permille = 1500,
                                      .jitter_percent = 10},
                            .n_headers = 1};
    struct toc_task task = row();
    struct toc_api_view view = {.now_ms = 80000, .with_payload = true};
    Toc__V1__Task *out;

    spec.target = TOC_STR("grpc://a:1");
    spec.content_type = TOC_STR("text/plain");
    spec.headers[0] = (struct toc_header){TOC_STR("k"), TOC_STR("v")};
    toc_spec_encode(&spec, &bytes);
    task.spec = toc_buf_view(&bytes);
    task.payload = TOC_STR("body");
    task.flags = TOC_FLAG_AT_MOST_ONCE | TOC_FLAG_CANCEL;
    out = toc_api_task(&arena, &task, &view);
    ck_assert_uint_eq(strlen(out->task_id), 26);
    ck_assert_str_eq(out->key->biz_type, "order");
    ck_assert_int_eq(out->state, TOC__V1__STATE__STATE_INIT);
    ck_assert_str_eq(out->etag, "3");
    ck_assert_int_eq(out->priority, TOC__V1__PRIORITY__PRIORITY_CORE);
    ck_assert(out->cancel_noted);
    ck_assert_int_eq(
        out->delivery_guarantee,
        TOC__V1__DELIVERY_GUARANTEE__DELIVERY_GUARANTEE_AT_MOST_ONCE);
    ck_assert_str_eq(out->target->url, "grpc://a:1");
    ck_assert_uint_eq(out->target->batch_max, 8);
    ck_assert_int_eq(out->call_timeout->nanos, 500000000);
    ck_assert_uint_eq(out->retry_policy->max_retries->value, 4);
    ck_assert_uint_eq(out->retry_policy->n_ladder, 0);
    ck_assert_int_eq(out->retry_policy->exponential->cap->seconds, 60);
    ck_assert_str_eq(out->headers[0]->value, "v");
    ck_assert_uint_eq(out->payload.len, 4);
    ck_assert_ptr_null(out->last_attempt);
    /* It can be sent. */
    ck_assert_uint_gt(toc__v1__task__get_packed_size(out), 50);

    view.with_payload = false;
    view.now_ms = 90000; /* the look-ahead begins */
    out = toc_api_task(&arena, &task, &view);
    ck_assert_int_eq(out->state, TOC__V1__STATE__STATE_SCHEDULING);
    ck_assert_uint_eq(out->payload.len, 0);

    task.spec = TOC_STR("\xff\xff\xff");
    out = toc_api_task(&arena, &task, &view);
    ck_assert_ptr_null(out->target);
    ck_assert_str_eq(out->key->biz_id, "42");
}
END_TEST

static const char *
name_of(void *arg, uint32_t id)
{
    (void)arg;
    return id == 7 ? "executor-1" : NULL;
}

START_TEST(the_latest_attempt)
{
    static const struct {
        enum toc_state state;
        enum toc_result result;
        uint8_t flags;
        uint16_t failed;
        uint32_t number;
    } all[] = {
        /* A failure that led to a retry is counted already. */
        {TOC_STATE_RETRY, TOC_RESULT_FAILED, 0, 2, 2},
        {TOC_STATE_PAUSED, TOC_RESULT_TIMEOUT, 0, 2, 2},
        {TOC_STATE_CANCELLED, TOC_RESULT_FAILED, 0, 2, 2},
        /* What ended the task, or was no failure, is not. */
        {TOC_STATE_DEAD, TOC_RESULT_FAILED, 0, 2, 3},
        {TOC_STATE_CANCELLED, TOC_RESULT_FAILED, TOC_FLAG_CANCEL, 2, 3},
        {TOC_STATE_SUCCESS, TOC_RESULT_DONE, 0, 2, 3},
        {TOC_STATE_RETRY, TOC_RESULT_SNOOZED, 0, 2, 3},
        {TOC_STATE_RETRY, TOC_RESULT_LOST, 0, 2, 3},
        {TOC_STATE_SKIPPED, TOC_RESULT_STOPPED, 0, 0, 1},
    };
    struct toc_api_names names = {name_of, NULL};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct toc_task task = row();
        Toc__V1__Attempt *attempt;
        task.state = all[i].state;
        task.result = all[i].result;
        task.flags = all[i].flags;
        task.attempt = all[i].failed;
        task.claimed_ms = 1000;
        task.called_ms = 1001;
        task.ended_ms = 1002;
        task.exec_node = 7;
        task.sched_node = 8;
        attempt = toc_api_last_attempt(&arena, &task, &names);
        ck_assert_msg(attempt->number == all[i].number, "row %zu: %u", i,
                      attempt->number);
        ck_assert_str_eq(attempt->executor_node, "executor-1");
        ck_assert_str_eq(attempt->scheduler_node, "#8");
        ck_assert_ptr_nonnull(attempt->end_time);
    }
}
END_TEST

START_TEST(an_attempt_under_way_or_given_back)
{
    struct toc_api_names names = {NULL, NULL};
    struct toc_task task = row();
    Toc__V1__Attempt *attempt;

    task.state = TOC_STATE_EXECUTING;
    task.claimed_ms = 2000;
    task.called_ms = 1001; /* of the attempt before */
    task.ended_ms = 1002;
    task.result = TOC_RESULT_FAILED;
    task.attempt = 1;
    task.error = TOC_STR("old");
    attempt = toc_api_last_attempt(&arena, &task, &names);
    ck_assert_uint_eq(attempt->number, 2);
    ck_assert_ptr_null(attempt->call_time);
    ck_assert_ptr_null(attempt->end_time);
    ck_assert_str_eq(attempt->error, "");
    ck_assert_int_eq(attempt->result,
                     TOC__V1__ATTEMPT_RESULT__ATTEMPT_RESULT_UNSPECIFIED);
    /* Given back uncalled: the attempt before is the latest. */
    task.state = TOC_STATE_RETRY;
    attempt = toc_api_last_attempt(&arena, &task, &names);
    ck_assert_uint_eq(attempt->number, 1);
    ck_assert_str_eq(attempt->error, "old");
    ck_assert_ptr_null(attempt->claim_time);
    task.ended_ms = 0; /* and there was none */
    ck_assert_ptr_null(toc_api_last_attempt(&arena, &task, &names));
}
END_TEST

TOC_CHECK_MAIN("api", times, durations, words, a_whole_task, the_latest_attempt,
               an_attempt_under_way_or_given_back)
