/*
 * Goal: exactly the edges of the life cycle are legal, every state has a way
 * out or has ended, numbers and names are those that are stored.
 * Method: all pairs of states against a matrix written by hand.
 */
#include "common/model/task.h"

#include "tests/support/toc_check.h"

#include <string.h>

/* Rows: from; columns: to, in the order of the numbers. */
static const char *const legal[TOC_STATES] = {
    /* to:           I S E P R S D C S D */
    /* INIT       */ "1.11...1..",
    /* SCHEDULING */ "..........",
    /* EXECUTING  */ "1...11111.",
    /* PAUSED     */ "1..11..1..",
    /* RETRY      */ "..111..1..",
    /* SUCCESS    */ "..........",
    /* DEAD       */ "....1....1",
    /* CANCELLED  */ "..........",
    /* SKIPPED    */ "..........",
    /* DISCARDED  */ "..........",
};

START_TEST(every_pair)
{
    for (int from = 0; from < TOC_STATES; from++)
        for (int to = 0; to < TOC_STATES; to++)
            ck_assert_msg(
                toc_edge_legal((enum toc_state)from, (enum toc_state)to) ==
                    (legal[from][to] == '1'),
                "%s to %s", toc_state_text((enum toc_state)from),
                toc_state_text((enum toc_state)to));
    ck_assert(!toc_edge_legal((enum toc_state)99, TOC_STATE_INIT));
    ck_assert(!toc_edge_legal(TOC_STATE_INIT, (enum toc_state) - 1));
}
END_TEST

START_TEST(only_ended_states_are_final)
{
    for (int from = 0; from < TOC_STATES; from++) {
        bool out = memchr(legal[from], '1', TOC_STATES) != NULL;
        if (from == TOC_STATE_SCHEDULING)
            continue;
        if (!toc_state_ended((enum toc_state)from))
            ck_assert(out);
        else
            ck_assert(out == (from == TOC_STATE_DEAD)); /* redrive, discard */
    }
}
END_TEST

START_TEST(numbers_and_names)
{
    static const char *const names[] = {
        "INIT",    "SCHEDULING", "EXECUTING", "PAUSED",  "RETRY",
        "SUCCESS", "DEAD",       "CANCELLED", "SKIPPED", "DISCARDED"};

    for (int i = 0; i < TOC_STATES; i++) {
        enum toc_state state;
        ck_assert_str_eq(toc_state_text((enum toc_state)i), names[i]);
        ck_assert(toc_state_parse(toc_str_of(names[i]), &state));
        ck_assert_int_eq((int)state, i);
        ck_assert(toc_state_valid(i) == (i != 1));
        ck_assert(toc_state_ended((enum toc_state)i) == (i >= 5));
    }
    ck_assert(!toc_state_valid(-1));
    ck_assert(!toc_state_valid(TOC_STATES));
    ck_assert(!toc_state_valid(INT64_MIN));
    ck_assert_str_eq(toc_state_text((enum toc_state)10), "UNKNOWN");
}
END_TEST

START_TEST(bad_names)
{
    enum toc_state state = TOC_STATE_DEAD;

    ck_assert(!toc_state_parse(TOC_STR(""), &state));
    ck_assert(!toc_state_parse(TOC_STR("init"), &state));
    ck_assert(!toc_state_parse(TOC_STR("INIT "), &state));
    ck_assert(!toc_state_parse(TOC_STR("INI"), &state));
    ck_assert_int_eq(state, TOC_STATE_DEAD);
}
END_TEST

START_TEST(results)
{
    int valid = 0;

    for (int i = -2; i < 20; i++)
        valid += toc_result_valid(i) ? 1 : 0;
    ck_assert_int_eq(valid, 11);
    ck_assert(toc_result_valid(0) && toc_result_valid(10));
    ck_assert_str_eq(toc_result_text(TOC_RESULT_NONE), "NONE");
    ck_assert_str_eq(toc_result_text(TOC_RESULT_BAD_TARGET), "BAD_TARGET");
    ck_assert_str_eq(toc_result_text((enum toc_result)11), "UNKNOWN");
}
END_TEST

START_TEST(what_a_person_is_shown)
{
    const int64_t now = INT64_C(1796119200000);
    const int64_t edge = now + TOC_LOOK_AHEAD_MS;

    for (int i = 0; i < TOC_STATES; i++) {
        enum toc_state state = (enum toc_state)i;
        bool waits = state == TOC_STATE_INIT || state == TOC_STATE_RETRY;
        enum toc_state inside = waits ? TOC_STATE_SCHEDULING : state;
        ck_assert_int_eq(toc_state_shown(state, edge, now), inside);
        ck_assert_int_eq(toc_state_shown(state, now - 99999, now), inside);
        ck_assert_int_eq(toc_state_shown(state, edge + 1, now), state);
        ck_assert_int_eq(
            toc_state_shown(state, toc_slot_parked(now, TOC_PARK_FAR_MS), now),
            state);
    }
}
END_TEST

START_TEST(targets)
{
    /* stored: computed by another implementation, must never change */
    ck_assert_uint_eq(toc_target_id(TOC_STR("grpc://127.0.0.1:1")),
                      2411975656u);
    ck_assert_uint_eq(toc_target_id(TOC_STR("")), 2941612277u);
}
END_TEST

static struct toc_task_ref
ref(uint16_t slice, int64_t slot_ms, uint8_t last, uint32_t version)
{
    struct toc_task task = {.slice = slice,
                            .slot_ms = slot_ms,
                            .version = version,
                            .id = {{[15] = last}}};

    return toc_task_ref_of(&task);
}

START_TEST(refs_are_in_the_order_of_the_primary_key)
{
    const struct toc_task_ref ordered[] = {
        ref(1, -5, 9, 9), ref(1, 7, 0, 1),   ref(1, 7, 200, 1),
        ref(1, 8, 0, 1),  ref(2, -99, 0, 1), ref(60000, 0, 0, 1)};
    struct toc_task_ref same = ref(1, 7, 0, 2);
    int n = sizeof ordered / sizeof ordered[0];

    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            int order = toc_task_ref_cmp(&ordered[a], &ordered[b]);
            ck_assert_int_eq((order > 0) - (order < 0), (a > b) - (a < b));
        }
    ck_assert_int_eq(toc_task_ref_cmp(&same, &ordered[1]), 0); /* one row */
    ck_assert_uint_eq(same.version, 2);
}
END_TEST

TOC_CHECK_MAIN("task", every_pair, only_ended_states_are_final,
               numbers_and_names, bad_names, results, what_a_person_is_shown,
               targets, refs_are_in_the_order_of_the_primary_key)
