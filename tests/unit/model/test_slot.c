/*
 * Goal: a row's place follows from its due time, and the parked kinds never
 * overlap.
 * Method: both sides of every edge, over the whole range of due times.
 */
#include "common/model/slot.h"

#include "tests/support/toc_check.h"

#include <signal.h>

#define NOW INT64_C(1796119200000)

START_TEST(slices)
{
    for (uint16_t shard = 0; shard < 256; shard++) {
        for (int p = 0; p < TOC_PRIORITIES; p++) {
            uint16_t slice = toc_slice_of(shard, (enum toc_priority)p);
            ck_assert_uint_eq(slice, shard * 4u + (unsigned)p);
            ck_assert_uint_eq(toc_slice_shard(slice), shard);
            ck_assert_int_eq((int)toc_slice_priority(slice), p);
        }
    }
    ck_assert_int_eq(toc_slice_priority(3), TOC_PRIORITY_LOW);
}
END_TEST

START_TEST(shard_out_of_range)
{
    (void)toc_slice_of(256, TOC_PRIORITY_CORE);
}
END_TEST

START_TEST(unknown_parking)
{
    (void)toc_slot_parked(NOW, 1);
}
END_TEST

START_TEST(slot_for_due)
{
    ck_assert_int_eq(toc_slot_for_due(NOW, NOW), NOW);
    ck_assert_int_eq(toc_slot_for_due(NOW - 1, NOW), NOW);
    ck_assert_int_eq(toc_slot_for_due(TOC_DUE_MS_MIN, NOW), NOW);
    ck_assert_int_eq(toc_slot_for_due(NOW + 1, NOW), NOW + 1);
    ck_assert_int_eq(toc_slot_for_due(NOW + TOC_FAR_AFTER_MS, NOW),
                     NOW + TOC_FAR_AFTER_MS);
    ck_assert_int_eq(toc_slot_for_due(NOW + TOC_FAR_AFTER_MS + 1, NOW),
                     NOW + TOC_FAR_AFTER_MS + 1 - TOC_PARK_FAR_MS);
    ck_assert_int_eq(toc_slot_for_due(TOC_DUE_MS_MAX, NOW),
                     TOC_DUE_MS_MAX - TOC_PARK_FAR_MS);
}
END_TEST

START_TEST(parked_slots)
{
    ck_assert_int_eq(toc_slot_parked(NOW, TOC_PARK_PAUSED_MS),
                     NOW - TOC_PARK_PAUSED_MS);
    ck_assert_int_eq(toc_slot_parked(-1, TOC_PARK_HELD_MS), -TOC_PARK_HELD_MS);
    ck_assert_int_eq(toc_slot_parked(TOC_DUE_MS_MIN, TOC_PARK_FAR_MS),
                     -TOC_PARK_FAR_MS);
    ck_assert_int_eq(toc_slot_parked(INT64_MAX, TOC_PARK_FAR_MS),
                     TOC_DUE_MS_MAX - TOC_PARK_FAR_MS);
}
END_TEST

START_TEST(kinds_do_not_overlap)
{
    static const int64_t dues[] = {0, 1, NOW, TOC_DUE_MS_MAX - 1,
                                   TOC_DUE_MS_MAX};

    for (size_t i = 0; i < sizeof dues / sizeof dues[0]; i++) {
        int64_t far = toc_slot_parked(dues[i], TOC_PARK_FAR_MS);
        int64_t paused = toc_slot_parked(dues[i], TOC_PARK_PAUSED_MS);
        int64_t held = toc_slot_parked(dues[i], TOC_PARK_HELD_MS);
        ck_assert(toc_slot_is_parked(far) && toc_slot_is_far(far));
        ck_assert(toc_slot_is_parked(paused) && !toc_slot_is_far(paused));
        ck_assert(toc_slot_is_parked(held) && !toc_slot_is_far(held));
        ck_assert(!toc_slot_is_parked(dues[i]) && !toc_slot_is_far(dues[i]));
    }
    /* the ranges as wholes: held, then paused, then far, then the days */
    ck_assert(TOC_DUE_MS_MAX - TOC_PARK_HELD_MS < -TOC_PARK_PAUSED_MS);
    ck_assert(TOC_DUE_MS_MAX - TOC_PARK_PAUSED_MS < -TOC_PARK_FAR_MS);
    ck_assert(TOC_DUE_MS_MAX - TOC_PARK_FAR_MS < 0);
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {slices, slot_for_due, parked_slots,
                                    kinds_do_not_overlap};
    const toc_check_test aborting[] = {shard_out_of_range, unknown_parking};
    int rc = toc_check_run("slot", tests, sizeof tests / sizeof tests[0]);
    int aborts = toc_check_run_signal(
        "slot_aborts", aborting, sizeof aborting / sizeof aborting[0], SIGABRT);

    return rc != EXIT_SUCCESS ? rc : aborts;
}
