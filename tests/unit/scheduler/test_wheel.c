/*
 * Goal: the timing wheel hands out every entry once, in the order of time,
 * never before its time and never stuck, whatever the times are. Method: random
 * operations against a list that is searched through; then the edges one by one
 * (a whole turn and its neighbours, the far future, the past, a clock that was
 * set back).
 */
#include "common/base/rng.h"
#include "scheduler/wheel.h"
#include "tests/support/toc_check.h"

#define N 400
#define START INT64_C(1800000000000)

struct thing {
    struct sched_wheel_node node;
    bool in;
    int64_t at;
};

static int64_t
least(const struct thing *things)
{
    int64_t min = INT64_MAX;

    for (size_t i = 0; i < N; i++)
        if (things[i].in && things[i].at < min)
            min = things[i].at;
    return min;
}

static int64_t
some_time(struct toc_rng *rng, int64_t now)
{
    switch (toc_rng_below(rng, 6)) {
    case 0:
        return now - (int64_t)toc_rng_below(rng, 5000);
    case 1:
        return now + (int64_t)toc_rng_below(rng, 20);
    case 2: /* around whole turns */
        return now + SCHED_WHEEL_SLOTS * (int64_t)(1 + toc_rng_below(rng, 4)) +
               (int64_t)toc_rng_below(rng, 3) - 1;
    case 3:
        return now + (int64_t)toc_rng_below(rng, 100000);
    default:
        return now + (int64_t)toc_rng_below(rng, 12000);
    }
}

/* Everything up to now comes out. What was due when it came in may come in any
 * order; the rest comes in the order of time. */
static void
pop_due(struct sched_wheel *wheel, struct thing *things, int64_t before,
        int64_t now)
{
    struct sched_wheel_node *node;
    int64_t last = INT64_MIN;

    while ((node = sched_wheel_pop(wheel, now)) != NULL) {
        struct thing *thing = toc_container_of(node, struct thing, node);
        ck_assert(thing->in);
        ck_assert(thing->at <= now);
        if (thing->at > before) {
            ck_assert(thing->at >= last);
            last = thing->at;
        }
        thing->in = false;
    }
    ck_assert(least(things) > now);
}

START_TEST(behaves_as_a_list)
{
    static struct thing things[N];
    struct sched_wheel wheel;
    struct toc_rng rng;
    int64_t now = START;

    toc_rng_seed(&rng, 42);
    sched_wheel_init(&wheel, now);
    for (size_t round = 0; round < 20000; round++) {
        struct thing *thing = &things[toc_rng_below(&rng, N)];
        if (thing->in) {
            sched_wheel_remove(&wheel, &thing->node);
            thing->in = false;
        } else {
            thing->at = some_time(&rng, now);
            sched_wheel_insert(&wheel, &thing->node, thing->at);
            thing->in = true;
        }
        if (least(things) != INT64_MAX) /* a past one stands at the base */
            ck_assert(sched_wheel_next(&wheel) <=
                      (least(things) > now ? least(things) : now + 1));
        else
            ck_assert_int_eq(sched_wheel_next(&wheel), INT64_MAX);
        if (toc_rng_below(&rng, 3) == 0) {
            int64_t before = now;
            now += (int64_t)toc_rng_below(&rng, 400);
            pop_due(&wheel, things, before, now);
        }
    }
    pop_due(&wheel, things, now, now + 200000);
    ck_assert_uint_eq(wheel.len, 0);
    sched_wheel_done(&wheel);
}
END_TEST

START_TEST(whole_turns_are_not_mixed_up)
{
    struct sched_wheel wheel;
    struct sched_wheel_node node;

    for (int64_t turns = 1; turns <= 5; turns++)
        for (int64_t off = -1; off <= 1; off++) {
            int64_t at = START + turns * SCHED_WHEEL_SLOTS + off;
            sched_wheel_init(&wheel, START);
            sched_wheel_insert(&wheel, &node, at);
            ck_assert_int_eq(sched_wheel_next(&wheel), at);
            for (int64_t now = START; now < at; now += 977)
                ck_assert_ptr_null(sched_wheel_pop(&wheel, now));
            ck_assert_ptr_null(sched_wheel_pop(&wheel, at - 1));
            ck_assert_ptr_eq(sched_wheel_pop(&wheel, at), &node);
            sched_wheel_done(&wheel);
        }
}
END_TEST

START_TEST(extremes)
{
    struct sched_wheel wheel;
    struct sched_wheel_node never, always;

    sched_wheel_init(&wheel, START);
    sched_wheel_insert(&wheel, &never, INT64_MAX);
    sched_wheel_insert(&wheel, &always, INT64_MIN);
    ck_assert_ptr_eq(sched_wheel_pop(&wheel, START), &always);
    ck_assert_ptr_null(sched_wheel_pop(&wheel, START + (INT64_C(1) << 20)));
    sched_wheel_remove(&wheel, &never);
    ck_assert_int_eq(sched_wheel_next(&wheel), INT64_MAX);
    sched_wheel_done(&wheel);
}
END_TEST

START_TEST(a_clock_set_back_delays_nothing)
{
    struct sched_wheel wheel;
    struct sched_wheel_node soon, later;

    sched_wheel_init(&wheel, START);
    sched_wheel_insert(&wheel, &later, START + 9000);
    ck_assert_ptr_null(sched_wheel_pop(&wheel, START + 5000));
    /* Two hours back; an entry that is due by the new time comes now. */
    sched_wheel_insert(&wheel, &soon, START - 7200000 + 10);
    sched_wheel_rewind(&wheel, START - 7200000);
    ck_assert_int_eq(sched_wheel_next(&wheel), START - 7200000 + 10);
    ck_assert_ptr_null(sched_wheel_pop(&wheel, START - 7200000 + 9));
    ck_assert_ptr_eq(sched_wheel_pop(&wheel, START - 7200000 + 10), &soon);
    ck_assert_ptr_null(sched_wheel_pop(&wheel, START + 8999));
    ck_assert_ptr_eq(sched_wheel_pop(&wheel, START + 9000), &later);
    sched_wheel_done(&wheel);
}
END_TEST

START_TEST(equal_times_keep_their_order)
{
    struct sched_wheel wheel;
    struct sched_wheel_node nodes[5];

    sched_wheel_init(&wheel, START);
    for (size_t i = 0; i < 5; i++)
        sched_wheel_insert(&wheel, &nodes[i], START + 7);
    for (size_t i = 0; i < 5; i++)
        ck_assert_ptr_eq(sched_wheel_pop(&wheel, START + 7), &nodes[i]);
    sched_wheel_done(&wheel);
}
END_TEST

TOC_CHECK_MAIN("wheel", behaves_as_a_list, whole_turns_are_not_mixed_up,
               extremes, a_clock_set_back_delays_nothing,
               equal_times_keep_their_order)
