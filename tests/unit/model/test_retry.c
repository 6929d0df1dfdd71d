/*
 * Goal: delays follow the policy, jitter only shortens, nothing overflows, and
 * a broken policy does no harm.
 * Method: whole sequences written down, then extremes of every number.
 */
#include "common/model/retry.h"

#include "common/base/rng.h"

#include "tests/support/toc_check.h"

#define MINUTE INT64_C(60000)

static int64_t
delay(const struct toc_retry *retry, uint32_t failed)
{
    int64_t due = -1;

    ck_assert(toc_retry_next(retry, failed, 1000, 0, &due));
    return due - 1000;
}

START_TEST(default_ladder)
{
    static const int64_t want[] = {1, 5, 10, 30, 30, 30, 30, 30, 30, 30};
    int64_t due = 77;

    for (uint32_t i = 0; i < 10; i++)
        ck_assert_int_eq(delay(&toc_retry_default, i + 1), want[i] * MINUTE);
    ck_assert(!toc_retry_next(&toc_retry_default, 11, 0, 0, &due));
    ck_assert(!toc_retry_next(&toc_retry_default, UINT32_MAX, 0, 0, &due));
    ck_assert_int_eq(due, 77);
}
END_TEST

START_TEST(no_retries)
{
    struct toc_retry retry = {.max_retries = 0, .n_steps = 1, .step_ms = {5}};
    int64_t due = 77;

    ck_assert(!toc_retry_next(&retry, 1, 0, 0, &due));
    ck_assert_int_eq(due, 77);
}
END_TEST

START_TEST(a_full_ladder)
{
    struct toc_retry retry = {.max_retries = 1000, .n_steps = TOC_LADDER_MAX};

    for (int64_t i = 0; i < TOC_LADDER_MAX; i++)
        retry.step_ms[i] = i * 10;
    for (uint32_t failed = 1; failed <= TOC_LADDER_MAX; failed++)
        ck_assert_int_eq(delay(&retry, failed), (failed - 1) * 10);
    ck_assert_int_eq(delay(&retry, TOC_LADDER_MAX + 1),
                     (TOC_LADDER_MAX - 1) * 10);
    ck_assert_int_eq(delay(&retry, 1000), (TOC_LADDER_MAX - 1) * 10);
}
END_TEST

START_TEST(exponential)
{
    struct toc_retry retry = {.max_retries = 1000,
                              .first_ms = 1000,
                              .cap_ms = 10000,
                              .factor_permille = 2000};

    ck_assert_int_eq(delay(&retry, 1), 1000);
    ck_assert_int_eq(delay(&retry, 2), 2000);
    ck_assert_int_eq(delay(&retry, 3), 4000);
    ck_assert_int_eq(delay(&retry, 4), 8000);
    ck_assert_int_eq(delay(&retry, 5), 10000);
    ck_assert_int_eq(delay(&retry, 1000), 10000);
    retry.factor_permille = 1000;
    ck_assert_int_eq(delay(&retry, 1000), 1000);
    retry.factor_permille = 0; /* below 1: as 1 */
    ck_assert_int_eq(delay(&retry, 1000), 1000);
    retry.cap_ms = 500; /* a cap below the first */
    ck_assert_int_eq(delay(&retry, 1), 500);
}
END_TEST

START_TEST(small_delays_grow)
{
    struct toc_retry retry = {.max_retries = 1000,
                              .first_ms = 1,
                              .cap_ms = 100,
                              .factor_permille = 1100};
    int64_t before = 0;

    for (uint32_t failed = 1; failed < 40; failed++) {
        int64_t now = delay(&retry, failed);
        ck_assert(now > before || now == 100);
        before = now;
    }
    ck_assert_int_eq(before, 100);
}
END_TEST

START_TEST(extremes_do_not_overflow)
{
    struct toc_retry retry = {.max_retries = UINT16_MAX,
                              .first_ms = INT64_MAX,
                              .cap_ms = INT64_MAX,
                              .factor_permille = UINT32_MAX,
                              .jitter_percent = UINT16_MAX};
    int64_t due;

    ck_assert(toc_retry_next(&retry, UINT16_MAX, INT64_MAX, 0, &due));
    ck_assert(due == INT64_MAX);
    ck_assert(toc_retry_next(&retry, UINT16_MAX, INT64_MIN, UINT64_MAX, &due));
    ck_assert_int_eq(delay(&retry, UINT16_MAX), TOC_RETRY_DELAY_MS_MAX);
    retry.first_ms = 1;
    ck_assert_int_eq(delay(&retry, UINT16_MAX), TOC_RETRY_DELAY_MS_MAX);
    retry.first_ms = TOC_RETRY_DELAY_MS_MAX - 1;
    ck_assert_int_eq(delay(&retry, 2), TOC_RETRY_DELAY_MS_MAX);
    retry.first_ms = -5;
    ck_assert_int_eq(delay(&retry, 3), 0);
    retry.first_ms = 7;
    retry.cap_ms = 0; /* none of its own */
    ck_assert_int_eq(delay(&retry, 1), 7);
    retry = (struct toc_retry){.max_retries = 5,
                               .n_steps = UINT16_MAX,
                               .step_ms = {INT64_MAX, INT64_MIN}};
    ck_assert_int_eq(delay(&retry, 1), TOC_RETRY_DELAY_MS_MAX);
    ck_assert_int_eq(delay(&retry, 2), 0);
    ck_assert_int_eq(delay(&retry, 0), TOC_RETRY_DELAY_MS_MAX);
}
END_TEST

START_TEST(jitter_only_shortens)
{
    struct toc_retry retry = {.max_retries = 5,
                              .n_steps = 1,
                              .step_ms = {1000},
                              .jitter_percent = 20};
    bool seen[201] = {false};
    struct toc_rng rng;
    int64_t due;

    toc_rng_seed(&rng, 5);
    for (int i = 0; i < 20000; i++) {
        ck_assert(toc_retry_next(&retry, 1, 0, toc_rng_next(&rng), &due));
        ck_assert_int_ge(due, 800);
        ck_assert_int_le(due, 1000);
        seen[due - 800] = true;
    }
    for (int i = 0; i <= 200; i++)
        ck_assert_msg(seen[i], "%d never came up", 800 + i);
    retry.jitter_percent = 100;
    ck_assert(toc_retry_next(&retry, 1, 0, 1000, &due));
    ck_assert_int_eq(due, 0);
    retry.jitter_percent = 0;
    ck_assert(toc_retry_next(&retry, 1, 0, UINT64_MAX, &due));
    ck_assert_int_eq(due, 1000);
}
END_TEST

START_TEST(counted_from_the_failure)
{
    int64_t due;

    ck_assert(toc_retry_next(&toc_retry_default, 1, -5 * MINUTE, 0, &due));
    ck_assert_int_eq(due, -4 * MINUTE);
}
END_TEST

TOC_CHECK_MAIN("retry", default_ladder, no_retries, a_full_ladder, exponential,
               small_delays_grow, extremes_do_not_overflow,
               jitter_only_shortens, counted_from_the_failure)
