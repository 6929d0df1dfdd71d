/*
 * Goal: whatever joins, dies, loses its session or is restored, every shard
 * soon has one owner, each node its share, with no more moves than needed; and
 * a node never thinks a shard its own that it has lost. Method: several state
 * machines on a table that plays etcd (keys under sessions, events told to all
 * in order), stepped through simulated time.
 */
#include "scheduler/owner.h"
#include "tests/support/toc_check.h"

#include <string.h>

#define NODES 6
#define MS INT64_C(1000000)

static const char *const names[NODES] = {"a", "b", "c", "d", "e", "f"};

static struct node {
    struct sched_owner owner;
    bool up;
    bool mine[TOC_SHARDS]; /* what it thinks its own */
    size_t taken, released;
} nodes[NODES];
static int keys[TOC_SHARDS];   /* the owner, -1: none */
static bool stale[TOC_SHARDS]; /* the key stands under an older session */
static enum { ANSWERED, LOST, HALF } answers; /* of claims */
static int64_t now_ns;

static void
tell(struct node *node, enum toc_coord_event_kind kind, int who, int shard)
{
    struct toc_coord_event event = {.kind = kind};

    if (kind == TOC_COORD_MEMBER_UP || kind == TOC_COORD_MEMBER_DOWN) {
        event.member.role = TOC_STR("scheduler");
        event.member.node = toc_str_of(names[who]);
    } else if (who >= 0) {
        event.owner.node = toc_str_of(names[who]);
    }
    event.owner.shard = (uint16_t)shard;
    sched_owner_event(&node->owner, &event, now_ns);
}

static void
tell_all(enum toc_coord_event_kind kind, int who, int shard)
{
    for (size_t i = 0; i < NODES; i++)
        if (nodes[i].up)
            tell(&nodes[i], kind, who, shard);
}

static void
tell_state(struct node *node)
{
    tell(node, TOC_COORD_RESET, -1, 0);
    for (int i = 0; i < NODES; i++)
        if (nodes[i].up)
            tell(node, TOC_COORD_MEMBER_UP, i, 0);
    for (int s = 0; s < TOC_SHARDS; s++)
        if (keys[s] >= 0)
            tell(node, TOC_COORD_OWNED, keys[s], s);
    tell(node, TOC_COORD_SYNCED, -1, 0);
}

static void
join(int who)
{
    struct node *node = &nodes[who];

    memset(node, 0, sizeof *node);
    sched_owner_init(&node->owner, toc_str_of(names[who]));
    node->up = true;
    tell(node, TOC_COORD_SESSION_NEW, -1, 0);
    tell_state(node);
    for (int i = 0; i < NODES; i++)
        if (nodes[i].up && i != who)
            tell(&nodes[i], TOC_COORD_MEMBER_UP, who, 0);
}

/* Its lease ends: keys and member vanish in one revision. */
static void
vanish(int who)
{
    nodes[who].up = false;
    tell_all(TOC_COORD_MEMBER_DOWN, who, 0);
    for (int s = 0; s < TOC_SHARDS; s++)
        if (keys[s] == who) {
            keys[s] = -1;
            tell_all(TOC_COORD_FREED, -1, s);
        }
}

static void
carry_out(int who, const struct sched_owner_action *action)
{
    struct node *node = &nodes[who];
    bool won[TOC_SHARDS] = {false}, created[TOC_SHARDS] = {false};

    for (size_t i = 0; i < action->n; i++) {
        uint16_t s = action->shards[i];
        if (action->kind == SCHED_OWNER_ACQUIRE) {
            if (answers == HALF && i >= action->n / 2)
                continue;
            won[i] = keys[s] < 0 || (keys[s] == who && !stale[s]);
            if (won[i] && keys[s] < 0)
                created[i] = true;
            if (won[i])
                keys[s] = who;
            if (answers != ANSWERED)
                won[i] = false;
            node->mine[s] = node->mine[s] || won[i];
            node->taken += won[i];
        } else if (action->kind == SCHED_OWNER_DROP) {
            node->mine[s] = false;
        } else if (action->kind == SCHED_OWNER_RELEASE) {
            node->mine[s] = false;
            node->released++;
            if (keys[s] == who) {
                keys[s] = -1;
                tell_all(TOC_COORD_FREED, -1, s);
            }
        }
    }
    if (action->kind == SCHED_OWNER_ACQUIRE)
        sched_owner_acquired(&node->owner, action->shards, won, action->n,
                             now_ns);
    if (action->kind == SCHED_OWNER_RELEASE)
        sched_owner_released(&node->owner, action->shards, action->n, now_ns);
    /* Events come with the next poll, after the answer. */
    for (size_t i = 0; i < action->n; i++)
        if (created[i])
            tell_all(TOC_COORD_OWNED, who, action->shards[i]);
}

static void
run(int64_t ms)
{
    for (int64_t end = now_ns + ms * MS; now_ns < end; now_ns += 50 * MS)
        for (int who = 0; who < NODES; who++) {
            struct sched_owner_action action;
            for (int i = 0; nodes[who].up && i < 4; i++) {
                (void)sched_owner_step(&nodes[who].owner, now_ns, &action);
                carry_out(who, &action);
            }
        }
}

static size_t
count(int who)
{
    size_t n = 0;

    for (int s = 0; s < TOC_SHARDS; s++) {
        n += keys[s] == who;
        if (who >= 0 && nodes[who].up)
            ck_assert(nodes[who].mine[s] == (keys[s] == who));
    }
    return n;
}

static void
set_up(void)
{
    memset(nodes, 0, sizeof nodes);
    for (int s = 0; s < TOC_SHARDS; s++)
        keys[s] = -1;
    memset(stale, 0, sizeof stale);
    answers = ANSWERED;
    now_ns = 1000 * MS;
}

START_TEST(the_first_takes_all_at_once)
{
    set_up();
    join(0);
    run(100);
    ck_assert_uint_eq(count(0), TOC_SHARDS);
}
END_TEST

START_TEST(a_second_gets_its_share_and_no_more_moves)
{
    set_up();
    join(0);
    run(100);
    join(1);
    run(1500); /* not before it has been there for a while */
    ck_assert_uint_eq(count(1), 0);
    run(10000);
    ck_assert_uint_gt(count(1), 90);
    ck_assert_uint_lt(count(1), 166);
    ck_assert_uint_eq(count(0) + count(1), TOC_SHARDS);
    ck_assert_uint_eq(nodes[0].released, count(1));
    ck_assert_uint_eq(nodes[1].released, 0);
    size_t before = count(1);
    run(60000); /* idle: nothing moves */
    ck_assert_uint_eq(count(1), before);
    ck_assert_uint_eq(nodes[0].released, before);
}
END_TEST

START_TEST(survivors_take_over_at_once)
{
    set_up();
    for (int i = 0; i < 4; i++)
        join(i);
    run(20000);
    vanish(2);
    run(100);
    ck_assert_uint_eq(count(2), 0);
    ck_assert_uint_eq(count(-1), 0);
    for (int i = 0; i < 4; i++)
        if (i != 2)
            ck_assert_uint_gt(count(i), 40);
}
END_TEST

START_TEST(what_the_first_in_rank_leaves_another_takes)
{
    set_up();
    join(0);
    join(1);
    nodes[1].owner.session = false; /* there, but ill */
    run(500);
    size_t mine = count(0);
    ck_assert_uint_lt(mine, TOC_SHARDS);
    run(1000);
    ck_assert_uint_eq(count(0), TOC_SHARDS);
}
END_TEST

START_TEST(a_lost_session_drops_all_and_comes_back)
{
    set_up();
    join(0);
    run(100);
    tell(&nodes[0], TOC_COORD_SESSION_LOST, -1, 0);
    struct sched_owner_action action;
    (void)sched_owner_step(&nodes[0].owner, now_ns, &action);
    ck_assert_int_eq(action.kind, SCHED_OWNER_DROP);
    ck_assert_uint_eq(action.n, TOC_SHARDS);
    carry_out(0, &action);
    for (int s = 0; s < TOC_SHARDS; s++)
        keys[s] = -1;
    run(1000);
    for (int s = 0; s < TOC_SHARDS; s++)
        ck_assert(!nodes[0].mine[s]);
    tell(&nodes[0], TOC_COORD_SESSION_NEW, -1, 0);
    tell_state(&nodes[0]);
    run(200);
    ck_assert_uint_eq(count(0), TOC_SHARDS);
}
END_TEST

START_TEST(wiped_keys_are_claimed_anew)
{
    set_up();
    join(0);
    join(1);
    run(20000);
    for (int s = 0; s < TOC_SHARDS; s++)
        keys[s] = -1;
    for (int i = 0; i < 2; i++)
        tell_state(&nodes[i]); /* reset, and nothing is owned */
    run(3000);
    ck_assert_uint_eq(count(0) + count(1), TOC_SHARDS);
    ck_assert_uint_gt(count(0), 90);
}
END_TEST

START_TEST(a_shard_that_another_owns_is_given_up)
{
    set_up();
    join(0);
    run(100);
    keys[7] = 1;
    tell(&nodes[0], TOC_COORD_OWNED, 1, 7);
    run(100);
    ck_assert(!nodes[0].mine[7]);
    ck_assert_uint_eq(count(0), TOC_SHARDS - 1);
}
END_TEST

START_TEST(keys_of_a_process_before_under_our_name_are_not_ours)
{
    set_up();
    for (int s = 0; s < TOC_SHARDS; s++)
        keys[s] = 0, stale[s] = true; /* under a lease that still lives */
    join(0);
    run(1500);
    for (int s = 0; s < TOC_SHARDS; s++)
        ck_assert(!nodes[0].mine[s]);
    for (int s = 0; s < TOC_SHARDS; s++) {
        keys[s] = -1;
        stale[s] = false;
        tell_all(TOC_COORD_FREED, -1, s);
    }
    run(100);
    ck_assert_uint_eq(count(0), TOC_SHARDS);
}
END_TEST

START_TEST(a_claim_whose_answer_was_lost_is_made_again)
{
    set_up();
    answers = LOST;
    join(0);
    run(50); /* once; the events come after it */
    ck_assert(keys[0] == 0 && keys[TOC_SHARDS - 1] == 0);
    answers = ANSWERED;
    run(2000);
    ck_assert_uint_eq(count(0), TOC_SHARDS);
}
END_TEST

START_TEST(a_claim_that_half_took_effect_is_made_again)
{
    set_up();
    answers = HALF;
    join(0);
    run(50);
    ck_assert(keys[0] == 0);
    answers = ANSWERED;
    run(2000);
    ck_assert_uint_eq(count(0), TOC_SHARDS);
}
END_TEST

START_TEST(late_words_of_a_keys_past_lose_nothing)
{
    set_up();
    join(0);
    run(100);
    /* The claim was won before the watch told who had owned it until then. */
    tell(&nodes[0], TOC_COORD_OWNED, 1, 7);
    tell(&nodes[0], TOC_COORD_FREED, -1, 7);
    tell(&nodes[0], TOC_COORD_OWNED, 0, 7);
    run(2000);
    ck_assert_uint_eq(count(0), TOC_SHARDS);
    tell(&nodes[0], TOC_COORD_FREED, -1, 9);
    tell(&nodes[0], TOC_COORD_OWNED, 0, 9);
    run(2000);
    ck_assert_uint_eq(count(0), TOC_SHARDS);
}
END_TEST

START_TEST(coming_and_going_ends_with_one_owner_each)
{
    set_up();
    join(0);
    for (int round = 0; round < 20; round++) {
        for (int i = 1; i < NODES; i++)
            if (!nodes[i].up)
                join(i);
        run(1700 + 350 * round);
        vanish(1 + round % (NODES - 1));
        vanish(1 + (round + 2) % (NODES - 1));
        run(200);
        ck_assert_uint_eq(count(-1), 0);
    }
    run(20000);
    size_t all = 0;
    for (int i = 0; i < NODES; i++)
        if (nodes[i].up)
            all += count(i);
    ck_assert_uint_eq(all, TOC_SHARDS);
}
END_TEST

TOC_CHECK_MAIN("owner", the_first_takes_all_at_once,
               a_second_gets_its_share_and_no_more_moves,
               survivors_take_over_at_once,
               what_the_first_in_rank_leaves_another_takes,
               a_lost_session_drops_all_and_comes_back,
               wiped_keys_are_claimed_anew,
               a_shard_that_another_owns_is_given_up,
               keys_of_a_process_before_under_our_name_are_not_ours,
               a_claim_whose_answer_was_lost_is_made_again,
               a_claim_that_half_took_effect_is_made_again,
               late_words_of_a_keys_past_lose_nothing,
               coming_and_going_ends_with_one_owner_each)
