/*
 * Goal: shards move when a rule says so and not otherwise, as few as are
 * needed, to where there is room, one move at a time; and whatever the loads
 * are, a cluster that is left alone comes to rest.
 * Method: the pure plan on figures that are set; a simulated cluster whose
 * loads follow from who owns what, in which its moves are carried out.
 */
#include "scheduler/plan.h"

#include "common/clock/clock.h"
#include "tests/support/toc_check.h"

#include <math.h>
#include <string.h>

#define NODES_MAX 8
#define CAPACITY 1000000.0 /* rows in 10 min */
#define ROUND_NS (INT64_C(10000) * TOC_NS_PER_MS)

static struct sim {
    struct sched_plan plan;
    size_t n;
    bool up[NODES_MAX];
    bool silent[NODES_MAX];
    double other[NODES_MAX]; /* load that is no shard's */
    double capacity[NODES_MAX];
    size_t owner[TOC_SHARDS];
    double volume[TOC_SHARDS];
    int64_t now_ns;
    size_t moves, moved_shards;
    int64_t last_move_ns, least_gap_ns;
    struct sched_plan_move last;
    double wobble; /* share by which figures go up and down */
} sim;

static void
set_up(size_t n)
{
    memset(&sim, 0, sizeof sim);
    sched_plan_init(&sim.plan, 180000);
    sim.n = n;
    sim.now_ns = 1000 * TOC_NS_PER_MS;
    sim.least_gap_ns = INT64_MAX;
    for (size_t i = 0; i < NODES_MAX; i++) {
        sim.up[i] = i < n;
        sim.capacity[i] = CAPACITY;
    }
    for (size_t s = 0; s < TOC_SHARDS; s++)
        sim.owner[s] = s % n;
    sched_plan_restart(&sim.plan, sim.now_ns);
}

/* Shares in percent of a node's capacity for the first `n` shards of `who`. */
static void
heat(size_t who, size_t n, double percent_each)
{
    for (size_t s = 0; s < TOC_SHARDS && n > 0; s++)
        if (sim.owner[s] == who) {
            sim.volume[s] = percent_each / 100 * CAPACITY;
            n--;
        }
}

static double
load_of(size_t who)
{
    double volume = 0;

    for (size_t s = 0; s < TOC_SHARDS; s++)
        if (sim.owner[s] == who)
            volume += sim.volume[s];
    return volume / sim.capacity[who] + sim.other[who];
}

static size_t
look(struct sched_plan_node *nodes, size_t *ret_who)
{
    size_t n = 0;
    double phase = (double)(sim.now_ns / ROUND_NS);

    for (size_t who = 0; who < NODES_MAX; who++) {
        struct sched_plan_node *node = &nodes[n];
        double factor = 1 + sim.wobble * sin(phase + (double)who);
        if (!sim.up[who])
            continue;
        memset(node, 0, sizeof *node);
        node->known = !sim.silent[who];
        node->load = load_of(who) * factor;
        if (node->load > 1)
            node->load = 1;
        node->capacity = sim.capacity[who];
        for (size_t s = 0; s < TOC_SHARDS; s++)
            if (sim.owner[s] == who) {
                node->shards[node->n_shards] = (uint16_t)s;
                node->volumes[node->n_shards++] = sim.volume[s] * factor;
            }
        ret_who[n++] = who;
    }
    return n;
}

static void
carry_out(const struct sched_plan_move *move, const size_t *who)
{
    ck_assert_uint_gt(move->n, 0);
    ck_assert_uint_le(move->n, SCHED_PLAN_SHARDS_MAX);
    ck_assert_uint_ne(move->from, move->to);
    for (size_t i = 0; i < move->n; i++) {
        ck_assert_uint_eq(sim.owner[move->shards[i]], who[move->from]);
        sim.owner[move->shards[i]] = who[move->to];
    }
    if (sim.moves > 0 && sim.now_ns - sim.last_move_ns < sim.least_gap_ns)
        sim.least_gap_ns = sim.now_ns - sim.last_move_ns;
    sim.last_move_ns = sim.now_ns;
    sim.moves++;
    sim.moved_shards += move->n;
    sim.last = *move;
    sim.last.from = who[move->from];
    sim.last.to = who[move->to];
}

static void
run(int64_t seconds)
{
    static struct sched_plan_node nodes[NODES_MAX];
    size_t who[NODES_MAX];

    for (int64_t end = sim.now_ns + seconds * 1000 * TOC_NS_PER_MS;
         sim.now_ns < end; sim.now_ns += ROUND_NS) {
        struct sched_plan_move move;
        size_t n = look(nodes, who);
        if (sched_plan_step(&sim.plan, nodes, n, sim.now_ns, &move))
            carry_out(&move, who);
    }
}

/* For an hour nothing more moves. */
static void
check_rest(void)
{
    size_t moves = sim.moves;

    run(3600);
    ck_assert_uint_eq(sim.moves, moves);
}

START_TEST(an_idle_cluster_moves_nothing)
{
    set_up(3);
    run(3600);
    ck_assert_uint_eq(sim.moves, 0);
    /* All of the little there is on one node, and that node hot of itself. */
    heat(0, 1, 100 * 0.9 * SCHED_PLAN_VOLUME_MIN / CAPACITY);
    sim.other[0] = 0.95;
    run(3600);
    ck_assert_uint_eq(sim.moves, 0);
}
END_TEST

START_TEST(an_even_cluster_moves_nothing)
{
    set_up(4);
    for (size_t i = 0; i < 4; i++)
        heat(i, 64, 1.1);
    sim.wobble = 0.1;
    run(3600);
    ck_assert_uint_eq(sim.moves, 0);
}
END_TEST

START_TEST(a_node_above_80_percent_goes_10_below)
{
    set_up(2);
    heat(0, 40, 2); /* 80 %: not above */
    heat(1, 40, 1);
    run(600);
    ck_assert_uint_eq(sim.moves, 0);
    heat(0, 41, 2); /* 82 %, and what is over 70 is 6 shards of 2 % */
    run(60);
    ck_assert_uint_eq(sim.moves, 1);
    ck_assert_int_eq(sim.last.why, SCHED_PLAN_LOAD);
    ck_assert_uint_eq(sim.last.n, 6);
    ck_assert_uint_eq(sim.last.from, 0);
    ck_assert(load_of(0) <= 0.70 + 1e-9 && load_of(0) > 0.68);
    check_rest();
}
END_TEST

START_TEST(the_fewest_shards_move)
{
    set_up(2);
    heat(0, 36, 1.5);                  /* 54 % of small ones ... */
    sim.volume[252] = 0.13 * CAPACITY; /* ... and others: 84 % in all */
    sim.volume[254] = 0.11 * CAPACITY;
    sim.volume[200] = 0.06 * CAPACITY;
    ck_assert_uint_eq(sim.owner[252] + sim.owner[254] + sim.owner[200], 0);
    heat(1, 10, 1);
    run(60);
    ck_assert_uint_eq(sim.moves, 1);
    ck_assert_uint_eq(sim.last.n, 2); /* 14 % too much: 13, and a small one */
    ck_assert_uint_eq(sim.last.shards[0], 252);
    ck_assert(sim.last.volume < 0.15 * CAPACITY);
    ck_assert(load_of(0) <= 0.70 + 1e-9);
    check_rest();
}
END_TEST

START_TEST(the_taker_stays_below_the_bounds)
{
    set_up(2);
    heat(0, 48, 2); /* 96 % */
    heat(1, 33, 2); /* 66 %: room for 4 points */
    run(60);
    ck_assert_uint_eq(sim.moves, 1);
    ck_assert_uint_eq(sim.last.n, 2);
    ck_assert(load_of(1) <= 0.70 + 1e-9);
    check_rest();
}
END_TEST

START_TEST(the_takers_level_counts_too)
{
    set_up(2);
    heat(0, 48, 2);
    heat(1, 36, 2);
    sim.other[1] = -0.50; /* it looks idle, but 72 % is due there */
    run(60);
    ck_assert_uint_eq(sim.moves, 1);
    ck_assert_uint_eq(sim.last.n, 1);
}
END_TEST

START_TEST(a_little_is_not_worth_a_move)
{
    set_up(2);
    heat(0, 128, 0.7); /* 89.6 % */
    heat(1, 98, 0.7);  /* 68.6 %: room for two */
    run(3600);
    ck_assert_uint_eq(sim.moves, 0);
}
END_TEST

START_TEST(a_level_above_85_percent_goes_10_below)
{
    set_up(2);
    /* What is due is more than it can send, though it has little to do yet. */
    heat(0, 45, 2);
    sim.other[0] = -0.80;
    run(60);
    ck_assert_uint_eq(sim.moves, 1);
    ck_assert_int_eq(sim.last.why, SCHED_PLAN_LEVEL);
    ck_assert_uint_eq(sim.last.n, 8); /* 90 to 75 % by 2 % each */
}
END_TEST

START_TEST(a_skew_moves_after_3_minutes)
{
    set_up(2);
    heat(0, 20, 2);
    heat(1, 2, 2); /* 40 and 4 %: 36/44 = 0.82 */
    run(180);
    ck_assert_uint_eq(sim.moves, 0);
    run(20);
    ck_assert_uint_eq(sim.moves, 1);
    ck_assert_int_eq(sim.last.why, SCHED_PLAN_SKEW);
    /* (40 - v - (4 + v)) / 44 <= 0.55 from v = 5.9: 3 shards. */
    ck_assert_uint_eq(sim.last.n, 3);
    check_rest();
}
END_TEST

START_TEST(a_skew_that_ends_begins_anew)
{
    set_up(2);
    heat(0, 20, 2);
    for (int i = 0; i < 10; i++) {
        heat(1, 2, 2);
        run(170);
        heat(1, 10, 2); /* 20/60: even enough, for a round */
        run(10);
        heat(1, 10, 0);
    }
    ck_assert_uint_eq(sim.moves, 0);
}
END_TEST

START_TEST(a_skew_of_little_moves_nothing)
{
    set_up(2);
    heat(0, 10, 0.29); /* 29,000 rows in 10 min */
    run(3600);
    ck_assert_uint_eq(sim.moves, 0);
    heat(0, 10, 0.31);
    run(300);
    ck_assert_uint_eq(sim.moves, 1);
}
END_TEST

START_TEST(one_move_in_30_seconds)
{
    set_up(8);
    heat(0, 32, 9); /* all on one: 288 % */
    run(900);
    ck_assert_uint_ge(sim.moves, 3);
    ck_assert_int_ge(sim.least_gap_ns, INT64_C(30000) * TOC_NS_PER_MS);
    for (size_t i = 0; i < 8; i++)
        ck_assert(load_of(i) <= 0.80 + 1e-9);
    check_rest();
}
END_TEST

START_TEST(one_shard_hotter_than_all_stays)
{
    set_up(3);
    heat(0, 1, 95);
    run(3600);
    ck_assert_uint_eq(sim.moves, 0); /* it would only be as hot elsewhere */
    sim.volume[3] = sim.volume[6] = 0.10 * CAPACITY; /* beside it, on node 0 */
    ck_assert_uint_eq(sim.owner[3] + sim.owner[6], 0);
    run(600);
    ck_assert_uint_eq(sim.owner[0], 0);
    ck_assert_uint_ne(sim.owner[3], 0); /* these leave, once */
    ck_assert_uint_ne(sim.owner[6], 0);
    check_rest();
}
END_TEST

START_TEST(a_node_without_figures_gives_and_takes_nothing)
{
    set_up(3);
    heat(0, 45, 2);
    sim.silent[1] = true;
    sim.other[2] = 0.3;
    run(60);
    ck_assert_uint_eq(sim.moves, 1);
    ck_assert_uint_eq(sim.last.to, 2); /* though 1 has less to do */
    set_up(3);
    heat(0, 20, 2); /* a skew, by what is known */
    sim.silent[1] = true;
    run(3600);
    ck_assert_uint_eq(sim.moves, 0);
    sim.silent[1] = false;
    run(300);
    ck_assert_uint_ge(sim.moves, 1);
}
END_TEST

START_TEST(a_slower_node_takes_less)
{
    set_up(2);
    heat(0, 45, 2); /* 90 % */
    sim.capacity[1] = CAPACITY / 10;
    run(3600);
    ck_assert(load_of(1) <= 0.70 + 1e-9);
    ck_assert_uint_gt(sim.moves, 0);
    check_rest();
}
END_TEST

START_TEST(load_of_another_kind_comes_to_rest)
{
    set_up(2);
    heat(0, 30, 1);
    heat(1, 30, 1);
    sim.other[0] = 0.60; /* submits: 90 % in all */
    run(1800);
    ck_assert_uint_gt(sim.moves, 0);
    ck_assert(load_of(1) <= 0.80);
    check_rest();
}
END_TEST

START_TEST(a_node_that_joins_takes_over_and_then_all_is_still)
{
    set_up(2);
    heat(0, 50, 2); /* 100 % */
    heat(1, 39, 2); /* 78 %: no room */
    run(600);
    ck_assert_uint_eq(sim.moves, 0);
    sim.up[2] = true;
    sched_plan_restart(&sim.plan, sim.now_ns);
    run(30); /* left to rendezvous hashing for so long */
    ck_assert_uint_eq(sim.moves, 0);
    run(10);
    ck_assert_uint_eq(sim.moves, 1);
    ck_assert_uint_eq(sim.last.to, 2);
    ck_assert_uint_eq(sim.last.n, 15); /* 100 to 70 % */
    check_rest();
}
END_TEST

START_TEST(a_node_that_goes_is_made_up_for)
{
    set_up(4);
    for (size_t i = 0; i < 4; i++)
        heat(i, 20, 2.4); /* 48 % each */
    run(600);
    ck_assert_uint_eq(sim.moves, 0);
    sim.up[3] = false; /* all of it comes to one by bad luck */
    for (size_t s = 0; s < TOC_SHARDS; s++)
        if (sim.owner[s] == 3)
            sim.owner[s] = 0;
    sched_plan_restart(&sim.plan, sim.now_ns);
    run(600);
    ck_assert_uint_ge(sim.moves, 1);
    for (size_t i = 0; i < 3; i++)
        ck_assert(load_of(i) <= 0.80 + 1e-9);
    check_rest();
}
END_TEST

/* Many clusters, at random: each comes to rest, also while figures wobble. */
START_TEST(every_cluster_comes_to_rest)
{
    uint32_t random = 12345;

    for (int round = 0; round < 300; round++) {
        set_up(2 + (size_t)(round % 6));
        sim.wobble = round % 3 == 0 ? 0.03 : 0;
        for (size_t s = 0; s < TOC_SHARDS; s++) {
            random = random * 1664525 + 1013904223;
            double x = (double)(random >> 8) / (double)(1 << 24);
            sim.volume[s] = pow(x, 12) * 0.4 * CAPACITY;
        }
        run(3600);
        ck_assert_uint_le(sim.moved_shards, TOC_SHARDS);
        check_rest();
    }
}
END_TEST

TOC_CHECK_MAIN("plan", an_idle_cluster_moves_nothing,
               an_even_cluster_moves_nothing,
               a_node_above_80_percent_goes_10_below, the_fewest_shards_move,
               the_taker_stays_below_the_bounds, the_takers_level_counts_too,
               a_little_is_not_worth_a_move,
               a_level_above_85_percent_goes_10_below,
               a_skew_moves_after_3_minutes, a_skew_that_ends_begins_anew,
               a_skew_of_little_moves_nothing, one_move_in_30_seconds,
               one_shard_hotter_than_all_stays,
               a_node_without_figures_gives_and_takes_nothing,
               a_slower_node_takes_less, load_of_another_kind_comes_to_rest,
               a_node_that_joins_takes_over_and_then_all_is_still,
               a_node_that_goes_is_made_up_for, every_cluster_comes_to_rest)
