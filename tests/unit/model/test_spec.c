/*
 * Goal: what the executor needs survives being stored, and bytes that are no
 * spec are refused, never believed.
 * Method: round trips at every maximum; every cut and every changed byte of a
 * stored spec decodes to something or to TOC_DATA_LOSS, under the sanitizers.
 */
#include "common/model/spec.h"

#include "common/base/cleanup.h"
#include "toc/v1/types.pb-c.h"

#include "tests/support/toc_check.h"

#include <string.h>

static struct toc_spec
round_trip(const struct toc_spec *spec, struct toc_arena *arena)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    struct toc_spec back;

    toc_spec_encode(spec, &buf);
    ck_assert_int_eq(toc_spec_decode(toc_buf_view(&buf), arena, &back, NULL),
                     TOC_OK);
    return back;
}

static void
same_retry(const struct toc_retry *a, const struct toc_retry *b)
{
    ck_assert_uint_eq(a->max_retries, b->max_retries);
    ck_assert_uint_eq(a->n_steps, b->n_steps);
    for (size_t i = 0; i < a->n_steps; i++)
        ck_assert_int_eq(a->step_ms[i], b->step_ms[i]);
    ck_assert_int_eq(a->first_ms, b->first_ms);
    ck_assert_int_eq(a->cap_ms, b->cap_ms);
    ck_assert_uint_eq(a->factor_permille, b->factor_permille);
    ck_assert_uint_eq(a->jitter_percent, b->jitter_percent);
}

START_TEST(nothing_is_the_defaults)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    struct toc_spec spec;

    ck_assert_int_eq(
        toc_spec_decode((struct toc_str){NULL, 0}, &arena, &spec, NULL),
        TOC_OK);
    TOC_ASSERT_STR(spec.target, "");
    ck_assert_int_eq(spec.call_timeout_ms, TOC_CALL_TIMEOUT_MS_DEFAULT);
    same_retry(&spec.retry, &toc_retry_default);
    ck_assert_uint_eq(spec.n_headers, 0);
    ck_assert(!spec.at_most_once);
}
END_TEST

START_TEST(defaults_take_no_room)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    struct toc_spec spec = {.target = TOC_STR("grpc://a:1"),
                            .retry = toc_retry_default};

    toc_spec_encode(&spec, &buf);
    ck_assert_uint_eq(buf.len, 2 + spec.target.len);
}
END_TEST

START_TEST(everything_at_its_maximum)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    struct toc_spec spec = {.target = TOC_STR("grpc://h:1/p.S/M"),
                            .call_timeout_ms = TOC_CALL_TIMEOUT_MS_MAX,
                            .batch_max = UINT32_MAX,
                            .at_most_once = true,
                            .content_type = TOC_STR("application/json"),
                            .n_headers = TOC_HEADERS_MAX,
                            .traceparent = TOC_STR("00-aa-bb-01")};
    struct toc_spec back;

    for (size_t i = 0; i < TOC_HEADERS_MAX; i++)
        spec.headers[i] = (struct toc_header){TOC_STR("x-name"),
                                              TOC_STR("gr\xc3\xbc\xc3\x9f")};
    spec.retry = (struct toc_retry){.max_retries = UINT16_MAX,
                                    .n_steps = TOC_LADDER_MAX,
                                    .jitter_percent = 100};
    for (size_t i = 0; i < TOC_LADDER_MAX; i++)
        spec.retry.step_ms[i] = TOC_RETRY_DELAY_MS_MAX - (int64_t)i;
    back = round_trip(&spec, &arena);
    ck_assert(toc_str_eq(back.target, spec.target));
    ck_assert_int_eq(back.call_timeout_ms, spec.call_timeout_ms);
    ck_assert_uint_eq(back.batch_max, UINT32_MAX);
    ck_assert(back.at_most_once);
    ck_assert(toc_str_eq(back.content_type, spec.content_type));
    ck_assert(toc_str_eq(back.traceparent, spec.traceparent));
    same_retry(&back.retry, &spec.retry);
    ck_assert_uint_eq(back.n_headers, TOC_HEADERS_MAX);
    TOC_ASSERT_STR(back.headers[15].name, "x-name");
    TOC_ASSERT_STR(back.headers[15].value, "gr\xc3\xbc\xc3\x9f");
}
END_TEST

START_TEST(exponential_round_trip)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    struct toc_spec spec = {.retry = {.max_retries = 3,
                                      .first_ms = 1,
                                      .cap_ms = TOC_RETRY_DELAY_MS_MAX,
                                      .factor_permille = UINT32_MAX}};
    struct toc_spec back = round_trip(&spec, &arena);

    same_retry(&back.retry, &spec.retry);
    spec.retry = (struct toc_retry){.max_retries = 0};
    back = round_trip(&spec, &arena);
    same_retry(&back.retry, &spec.retry);
    spec.retry = toc_retry_default;
    spec.retry.step_ms[3]++; /* nearly the default is not the default */
    back = round_trip(&spec, &arena);
    same_retry(&back.retry, &spec.retry);
}
END_TEST

static void
pack(const Toc__V1__TaskSpec *msg, struct toc_buf *out)
{
    toc_buf_reset(out);
    toc_buf_reserve(out, toc__v1__task_spec__get_packed_size(msg));
    out->len = toc__v1__task_spec__pack(msg, (uint8_t *)out->data);
}

static void
refused(const Toc__V1__TaskSpec *msg)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    struct toc_spec spec;
    struct toc_error err;

    pack(msg, &buf);
    ck_assert_int_eq(toc_spec_decode(toc_buf_view(&buf), &arena, &spec, &err),
                     TOC_DATA_LOSS);
    ck_assert_int_eq(err.status, TOC_DATA_LOSS);
}

START_TEST(what_breaks_a_maximum)
{
    Toc__V1__TaskSpec msg = TOC__V1__TASK_SPEC__INIT;
    Toc__V1__StoredRetry retry = TOC__V1__STORED_RETRY__INIT;
    Toc__V1__Header header = TOC__V1__HEADER__INIT;
    Toc__V1__Header *headers[TOC_HEADERS_MAX + 1];
    uint64_t steps[TOC_LADDER_MAX + 1] = {0};

    msg.call_timeout_ms = TOC_CALL_TIMEOUT_MS_MAX + 1;
    refused(&msg);
    msg.call_timeout_ms = 0;
    for (size_t i = 0; i <= TOC_HEADERS_MAX; i++)
        headers[i] = &header;
    msg.n_headers = TOC_HEADERS_MAX + 1;
    msg.headers = headers;
    refused(&msg);
    msg.n_headers = 0;
    msg.retry = &retry;
    retry.step_ms = steps;
    retry.n_step_ms = TOC_LADDER_MAX + 1;
    refused(&msg);
    retry.n_step_ms = 0;
    retry.max_retries = UINT16_MAX + 1;
    refused(&msg);
    retry.max_retries = 0;
    retry.jitter_percent = 101;
    refused(&msg);
}
END_TEST

START_TEST(huge_delays_are_bounded)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    Toc__V1__TaskSpec msg = TOC__V1__TASK_SPEC__INIT;
    Toc__V1__StoredRetry retry = TOC__V1__STORED_RETRY__INIT;
    uint64_t step = UINT64_MAX;
    struct toc_spec spec;

    msg.retry = &retry;
    retry.step_ms = &step;
    retry.n_step_ms = 1;
    retry.first_ms = retry.cap_ms = UINT64_MAX;
    pack(&msg, &buf);
    ck_assert_int_eq(toc_spec_decode(toc_buf_view(&buf), &arena, &spec, NULL),
                     TOC_OK);
    ck_assert_int_eq(spec.retry.step_ms[0], TOC_RETRY_DELAY_MS_MAX);
    ck_assert_int_eq(spec.retry.first_ms, TOC_RETRY_DELAY_MS_MAX);
    ck_assert_int_eq(spec.retry.cap_ms, TOC_RETRY_DELAY_MS_MAX);
}
END_TEST

START_TEST(damaged_bytes)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    struct toc_spec spec = {.target = TOC_STR("grpc://a:1"),
                            .n_headers = 1,
                            .retry = {.max_retries = 2, .n_steps = 3}};
    struct toc_str cut;
    int refusals = 0;

    spec.headers[0] = (struct toc_header){TOC_STR("a"), TOC_STR("b")};
    toc_spec_encode(&spec, &buf);
    cut = toc_buf_view(&buf);
    for (cut.len = 0; cut.len < buf.len; cut.len++) {
        struct toc_spec back;
        enum toc_status st = toc_spec_decode(cut, &arena, &back, NULL);
        ck_assert(st == TOC_OK || st == TOC_DATA_LOSS);
        refusals += st == TOC_DATA_LOSS ? 1 : 0;
    }
    for (size_t i = 0; i < buf.len; i++) {
        for (unsigned flip = 1; flip < 256; flip++) {
            struct toc_spec back;
            enum toc_status st;
            buf.data[i] = (char)((unsigned char)buf.data[i] ^ flip);
            st = toc_spec_decode(toc_buf_view(&buf), &arena, &back, NULL);
            ck_assert(st == TOC_OK || st == TOC_DATA_LOSS);
            refusals += st == TOC_DATA_LOSS ? 1 : 0;
            buf.data[i] = (char)((unsigned char)buf.data[i] ^ flip);
            toc_arena_reset(&arena);
        }
    }
    ck_assert_int_gt(refusals, 100);
}
END_TEST

TOC_CHECK_MAIN("spec", nothing_is_the_defaults, defaults_take_no_room,
               everything_at_its_maximum, exponential_round_trip,
               what_breaks_a_maximum, huge_delays_are_bounded, damaged_bytes)
