/*
 * Goal: the scheduler with the least name, and no other, gathers figures and
 * asks the right node for the right shards; nonsense and silence of a peer move
 * nothing. Method: planners with their servers over loopback, a clock that the
 * test sets, figures noted by the test, a coord of which only the waking is
 * seen.
 */
#include "common/base/alloc.h"
#include "common/clock/os/clock_os.h"
#include "common/clock/sim/clock_sim.h"
#include "scheduler/planner.h"
#include "tests/support/toc_check.h"
#include "toc/v1/peer.pb-c.h"

#include <math.h>
#include <string.h>

#define NODES 3
#define S (INT64_C(1000) * TOC_NS_PER_MS)

static const char *const names[NODES] = {"a", "b", "c"};

static struct node {
    struct sched_roster roster;
    struct sched_load load;
    struct sched_load_counters counters;
    struct sched_planner planner;
    struct toc_rpc_server *server;
    struct toc_coord coord;
    struct sched_shards shards;
    int64_t deadline_ns;
    _Atomic bool unfit;
    _Atomic int woken;
} nodes[NODES];
static struct toc_rpc_client *client;
static struct toc_clock_sim clock_sim;
static struct toc_arena arena;

static void
wake(void *self)
{
    atomic_fetch_add(&((struct node *)self)->woken, 1);
}

static int64_t
deadline(void *self)
{
    return ((struct node *)self)->deadline_ns;
}

static const struct toc_coord_ops coord_ops = {
    .name = "fake", .wake = wake, .deadline_boot_ns = deadline};

static bool
is_fit(void *self)
{
    return !atomic_load(&((struct node *)self)->unfit);
}

static void
tell(struct node *to, enum toc_coord_event_kind kind, size_t who,
     const char *address)
{
    const struct toc_coord_event event = {
        .kind = kind,
        .member = {.role = TOC_STR("scheduler"),
                   .node = toc_str_of(names[who]),
                   .address = toc_str_of(address)}};

    sched_roster_event(&to->roster, &event);
}

static void
open_node(size_t who, bool moves)
{
    struct node *node = &nodes[who];
    struct toc_error err;

    sched_roster_init(&node->roster);
    node->coord = (struct toc_coord){&coord_ops, node};
    sched_roster_set_coord(&node->roster, &node->coord);
    node->deadline_ns = INT64_MAX;
    sched_shards_init(&node->shards, &clock_sim.clock);
    sched_shards_set_coord(&node->shards, &node->coord);
    sched_load_init(&node->load);
    sched_planner_init(&node->planner,
                       &(struct sched_planner_options){.clk = &clock_sim.clock,
                                                       .roster = &node->roster,
                                                       .load = &node->load,
                                                       .rpc = client,
                                                       .self = names[who],
                                                       .fit = is_fit,
                                                       .arg = node,
                                                       .shards = &node->shards,
                                                       .moves = moves,
                                                       .skew_ms = 20000});
    ck_assert_int_eq(toc_rpc_server_new(
                         &(struct toc_rpc_server_options){
                             .listen = "127.0.0.1:0", .clock = toc_clock_os()},
                         &node->server, &err),
                     TOC_OK);
    toc_rpc_server_add(node->server, &toc__v1__balance_service__descriptor,
                       sched_planner_handle, &node->planner);
    ck_assert_int_eq(toc_rpc_server_start(node->server, &err), TOC_OK);
}

static void
set_up(bool moves)
{
    memset(nodes, 0, sizeof nodes);
    toc_clock_sim_init(&clock_sim, (struct toc_wall){1800000000000});
    client = toc_rpc_client_new(
        &(struct toc_rpc_client_options){.clock = toc_clock_os()});
    for (size_t i = 0; i < NODES; i++)
        open_node(i, moves);
    for (size_t i = 0; i < NODES; i++)
        for (size_t k = 0; k < NODES; k++)
            tell(&nodes[i], TOC_COORD_MEMBER_UP, k,
                 toc_rpc_server_address(nodes[k].server));
}

static void
tear_down(void)
{
    for (size_t i = 0; i < NODES; i++) {
        toc_rpc_server_stop(nodes[i].server, 1000);
        toc_rpc_server_free(nodes[i].server);
    }
    toc_rpc_client_free(client);
    for (size_t i = 0; i < NODES; i++) {
        sched_planner_done(&nodes[i].planner);
        sched_load_done(&nodes[i].load);
        sched_shards_done(&nodes[i].shards);
        sched_roster_done(&nodes[i].roster);
    }
    toc_arena_done(&arena);
}

static void
second(void)
{
    toc_clock_sim_advance_ns(&clock_sim, S);
    for (size_t i = 0; i < NODES; i++) {
        struct sched_load_counters *counters = &nodes[i].counters;
        counters->now_ns = toc_clock_mono(&clock_sim.clock).ns;
        counters->cores = 1;
        sched_load_note(&nodes[i].load, counters);
    }
}

static void
own(size_t who, uint16_t from, uint16_t to)
{
    for (uint16_t s = from; s <= to; s++)
        nodes[who].counters.gen[s] = 1;
}

static void
step_all(void)
{
    for (size_t i = 0; i < NODES; i++)
        for (int k = 0; k < 20; k++)
            (void)sched_planner_step(&nodes[i].planner);
}

/* Shards 0 to 9 are busy: 20 hints a second each. */
static void
run(int seconds)
{
    for (int i = 0; i < seconds; i++) {
        for (size_t who = 0; who < NODES; who++)
            for (size_t s = 0; s < 10; s++)
                nodes[who].counters.offered[s] +=
                    nodes[who].counters.gen[s] != 0 ? 20 : 0;
        second();
        step_all();
    }
}

static size_t
asked(size_t who, uint16_t *shards)
{
    return sched_roster_take_asked(&nodes[who].roster, shards);
}

START_TEST(the_emptiest_is_asked_for_shards_of_the_fullest)
{
    uint16_t shards[TOC_SHARDS];

    set_up(true);
    own(0, 100, 149); /* the node that plans: it asks itself, without a call */
    own(1, 0, 49);
    own(2, 50, 99);
    run(120);
    size_t n = asked(0, shards);
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_lt(n, 10);
    ck_assert_uint_eq(asked(1, shards), 0);
    ck_assert_uint_eq(asked(2, shards), 0);
    ck_assert_int_gt(atomic_load(&nodes[0].woken), 0);
    ck_assert(nodes[0].planner.leading && !nodes[1].planner.leading &&
              !nodes[2].planner.leading);
    tear_down();
}
END_TEST

START_TEST(only_busy_shards_are_asked_for_through_the_wire)
{
    uint16_t shards[TOC_SHARDS];

    set_up(true);
    own(0, 0, 49);
    own(1, 50, 99);
    own(2, 100, 149);
    for (int i = 0; i < 120; i++) { /* b is less empty than c */
        nodes[1].counters.offered[50] += 2;
        run(1);
    }
    ck_assert_uint_eq(asked(1, shards), 0);
    size_t n = asked(2, shards);
    ck_assert_uint_gt(n, 0);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_lt(shards[i], 10);
    tear_down();
}
END_TEST

START_TEST(switched_off_nothing_moves)
{
    uint16_t shards[TOC_SHARDS];

    set_up(false);
    own(0, 0, 99);
    own(1, 100, 199);
    run(120);
    for (size_t i = 0; i < NODES; i++)
        ck_assert_uint_eq(asked(i, shards), 0);
    tear_down();
}
END_TEST

START_TEST(a_silent_node_moves_nothing_and_the_next_one_plans)
{
    uint16_t shards[TOC_SHARDS];

    set_up(true);
    own(0, 100, 199);
    own(1, 0, 49);
    tell(&nodes[0], TOC_COORD_MEMBER_UP, 2, "127.0.0.1:1"); /* nobody there */
    run(120);
    for (size_t i = 0; i < NODES; i++)
        ck_assert_uint_eq(asked(i, shards), 0); /* no skew without all */
    for (size_t i = 0; i < NODES; i++)
        tell(&nodes[i], TOC_COORD_MEMBER_DOWN, 0, "");
    run(120);
    ck_assert(nodes[1].planner.leading);
    ck_assert_uint_gt(asked(2, shards), 0);
    ck_assert_uint_eq(asked(0, shards), 0);
    tear_down();
}
END_TEST

static enum toc_status
take(size_t who, uint32_t *shards, size_t n)
{
    Toc__V1__TakeShardsRequest request = TOC__V1__TAKE_SHARDS_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct toc_error err;

    request.shards = shards;
    request.n_shards = n;
    return toc_rpc_call(client, toc_rpc_server_address(nodes[who].server),
                        &toc__v1__balance_service__descriptor, "TakeShards",
                        &request.base, 5000, &arena, &reply, NULL, &err);
}

START_TEST(shards_are_checked)
{
    uint32_t good[] = {0, 255, 7, 7}, bad[] = {1, 256};
    uint32_t many[TOC_SHARDS + 1] = {0};
    uint16_t shards[TOC_SHARDS];

    set_up(true);
    ck_assert_int_eq(take(0, bad, 2), TOC_INVALID);
    ck_assert_int_eq(take(0, many, TOC_SHARDS + 1), TOC_INVALID);
    ck_assert_uint_eq(asked(0, shards), 0);
    ck_assert_int_eq(take(0, good, 4), TOC_OK);
    ck_assert_uint_eq(asked(0, shards), 3);
    ck_assert_uint_eq(shards[0], 0);
    ck_assert_uint_eq(shards[2], 255);
    ck_assert_uint_eq(asked(0, shards), 0); /* once */
    sched_roster_set_coord(&nodes[0].roster, NULL);
    ck_assert_int_eq(take(0, good, 4), TOC_PRECONDITION);
    ck_assert_uint_eq(asked(0, shards), 0);
    tear_down();
}
END_TEST

static enum toc_status
get_load(size_t who)
{
    Toc__V1__GetLoadRequest request = TOC__V1__GET_LOAD_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct toc_error err;

    return toc_rpc_call(client, toc_rpc_server_address(nodes[who].server),
                        &toc__v1__balance_service__descriptor, "GetLoad",
                        &request.base, 5000, &arena, &reply, NULL, &err);
}

/* One that is sick has nothing to do and would seem the emptiest. */
START_TEST(one_that_is_not_fit_is_given_nothing)
{
    uint16_t shards[TOC_SHARDS];
    uint32_t some[] = {1, 2};

    set_up(true);
    own(0, 0, 49); /* the fullest, as if the others had nothing to do */
    for (size_t who = 1; who < NODES; who++)
        atomic_store(&nodes[who].unfit, true);
    ck_assert_int_eq(get_load(0), TOC_OK);
    ck_assert_int_eq(get_load(1), TOC_UNAVAILABLE);
    ck_assert_int_eq(take(1, some, 2), TOC_UNAVAILABLE);
    run(120);
    for (size_t i = 0; i < NODES; i++)
        ck_assert_uint_eq(asked(i, shards), 0);
    for (size_t who = 1; who < NODES; who++)
        atomic_store(&nodes[who].unfit, false);
    run(120);
    ck_assert_uint_gt(asked(1, shards) + asked(2, shards), 0);
    tear_down();
}
END_TEST

START_TEST(the_planner_itself_may_not_be_fit)
{
    uint16_t shards[TOC_SHARDS];

    set_up(true);
    own(1, 0, 49);
    own(2, 50, 99);
    atomic_store(&nodes[0].unfit, true); /* it would be the emptiest */
    run(120);
    ck_assert(nodes[0].planner.leading);
    ck_assert_uint_eq(asked(0, shards), 0);
    atomic_store(&nodes[0].unfit, false);
    run(120);
    ck_assert_uint_gt(asked(0, shards), 0);
    tear_down();
}
END_TEST

START_TEST(without_a_session_nobody_plans)
{
    uint16_t shards[TOC_SHARDS];

    set_up(true);
    own(1, 0, 49);
    own(2, 50, 99);
    nodes[0].deadline_ns = 0;
    run(120);
    ck_assert(!nodes[0].planner.leading);
    for (size_t i = 0; i < NODES; i++)
        ck_assert_uint_eq(asked(i, shards), 0);
    nodes[0].deadline_ns = INT64_MAX;
    run(120);
    ck_assert_uint_gt(asked(0, shards), 0);
    tear_down();
}
END_TEST

/* A peer of another make: figures that make no sense. */
static Toc__V1__GetLoadResponse odd;
static pthread_mutex_t odd_lock = PTHREAD_MUTEX_INITIALIZER;

static void
answer_oddly(void *self, unsigned method, const ProtobufCMessage *request,
             struct toc_rpc_call *call)
{
    (void)self, (void)method, (void)request;
    pthread_mutex_lock(&odd_lock);
    toc_rpc_reply(call, &odd.base);
    pthread_mutex_unlock(&odd_lock);
}

static bool
knows_after(double load, double capacity, uint32_t a, uint32_t b, double volume)
{
    Toc__V1__ShardVolume one = TOC__V1__SHARD_VOLUME__INIT, two = one;
    Toc__V1__ShardVolume *list[] = {&one, &two};
    bool known = false;

    pthread_mutex_lock(&odd_lock);
    odd = (Toc__V1__GetLoadResponse)TOC__V1__GET_LOAD_RESPONSE__INIT;
    odd.load = load;
    odd.capacity = capacity;
    one.shard = a;
    two.shard = b;
    one.volume = two.volume = volume;
    odd.n_shards = 2;
    odd.shards = list;
    pthread_mutex_unlock(&odd_lock);
    toc_clock_sim_advance_ns(&clock_sim, 11 * S);
    for (int k = 0; k < 20 && nodes[0].planner.at < NODES; k++)
        (void)sched_planner_step(&nodes[0].planner);
    known = nodes[0].planner.nodes[1].known;
    (void)sched_planner_step(&nodes[0].planner); /* ends the round */
    return known;
}

START_TEST(figures_are_checked)
{
    struct toc_rpc_server *server;
    struct toc_error err;

    set_up(true);
    ck_assert_int_eq(toc_rpc_server_new(
                         &(struct toc_rpc_server_options){
                             .listen = "127.0.0.1:0", .clock = toc_clock_os()},
                         &server, &err),
                     TOC_OK);
    toc_rpc_server_add(server, &toc__v1__balance_service__descriptor,
                       answer_oddly, NULL);
    ck_assert_int_eq(toc_rpc_server_start(server, &err), TOC_OK);
    tell(&nodes[0], TOC_COORD_MEMBER_UP, 1, toc_rpc_server_address(server));
    ck_assert(knows_after(0.5, 100, 1, 2, 10));
    ck_assert(!knows_after((double)NAN, 100, 1, 2, 10));
    ck_assert(!knows_after(-1, 100, 1, 2, 10));
    ck_assert(!knows_after(0.5, 0, 1, 2, 10));
    ck_assert(!knows_after(0.5, (double)INFINITY, 1, 2, 10));
    ck_assert(!knows_after(0.5, 100, 1, 256, 10));
    ck_assert(!knows_after(0.5, 100, 1, 1, 10));
    ck_assert(!knows_after(0.5, 100, 1, 2, -5));
    ck_assert(knows_after(0.5, 100, 0, 255, 0));
    toc_rpc_server_stop(server, 1000);
    toc_rpc_server_free(server);
    tear_down();
}
END_TEST

TOC_CHECK_MAIN("planner", the_emptiest_is_asked_for_shards_of_the_fullest,
               only_busy_shards_are_asked_for_through_the_wire,
               switched_off_nothing_moves,
               a_silent_node_moves_nothing_and_the_next_one_plans,
               shards_are_checked, one_that_is_not_fit_is_given_nothing,
               the_planner_itself_may_not_be_fit,
               without_a_session_nobody_plans, figures_are_checked)
