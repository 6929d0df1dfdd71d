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
static int wishes[TOC_SHARDS]; /* who wants it, -1: nobody */
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
    for (int s = 0; s < TOC_SHARDS; s++)
        if (wishes[s] >= 0)
            tell(node, TOC_COORD_WANTED, wishes[s], s);
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
    for (int s = 0; s < TOC_SHARDS; s++)
        if (wishes[s] == who) {
            wishes[s] = -1;
            tell_all(TOC_COORD_UNWANTED, -1, s);
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
        } else if (action->kind == SCHED_OWNER_WANT) {
            wishes[s] = who;
            tell_all(TOC_COORD_WANTED, who, s);
        } else if (action->kind == SCHED_OWNER_UNWANT) {
            wishes[s] = -1;
            tell_all(TOC_COORD_UNWANTED, -1, s);
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
        keys[s] = wishes[s] = -1;
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

static int
some_shard_of(int who)
{
    for (int s = 0; s < TOC_SHARDS; s++)
        if (keys[s] == who)
            return s;
    ck_abort_msg("%s owns nothing", names[who]);
}

static size_t
count_wishes(void)
{
    size_t n = 0;

    for (int s = 0; s < TOC_SHARDS; s++)
        n += wishes[s] >= 0;
    return n;
}

START_TEST(a_wanted_shard_moves_alone_and_stays)
{
    set_up();
    join(0);
    join(1);
    run(20000);
    size_t before = count(0), released = nodes[0].released;
    int s = some_shard_of(0);
    sched_owner_ask(&nodes[1].owner, (uint16_t)s);
    run(1000);
    ck_assert_int_eq(keys[s], 1);
    ck_assert_uint_eq(count(0), before - 1);
    run(60000);
    join(2); /* takes its share, but not that one */
    run(20000);
    ck_assert_int_eq(keys[s], 1);
    ck_assert_uint_gt(count(2), 40);
    ck_assert_uint_lt(nodes[0].released, released + 1 + count(2));
    ck_assert_uint_eq(count_wishes(), 1);
}
END_TEST

START_TEST(a_wish_ends_with_its_node)
{
    set_up();
    for (int i = 0; i < 3; i++)
        join(i);
    run(20000);
    int s = some_shard_of(0);
    sched_owner_ask(&nodes[1].owner, (uint16_t)s);
    run(1000);
    ck_assert_int_eq(keys[s], 1);
    vanish(1);
    run(100);
    ck_assert_int_eq(keys[s], 0); /* as if it had never been wanted */
    ck_assert_uint_eq(count(-1), 0);
    join(1);
    run(20000);
    ck_assert_int_eq(keys[s], 0);
    ck_assert_uint_eq(count_wishes(), 0);
}
END_TEST

START_TEST(back_at_its_first_no_wish_is_left)
{
    set_up();
    for (int i = 0; i < 3; i++)
        join(i);
    run(20000);
    int s = some_shard_of(0);
    sched_owner_ask(&nodes[1].owner, (uint16_t)s);
    run(1000);
    sched_owner_ask(&nodes[2].owner, (uint16_t)s);
    run(1000);
    ck_assert_int_eq(keys[s], 2);
    ck_assert_int_eq(wishes[s], 2);
    sched_owner_ask(&nodes[0].owner, (uint16_t)s);
    run(2000);
    ck_assert_int_eq(keys[s], 0);
    ck_assert_uint_eq(count_wishes(), 0);
    sched_owner_ask(&nodes[0].owner, (uint16_t)s); /* it is its already */
    run(2000);
    ck_assert_uint_eq(count_wishes(), 0);
    /* What the ranks come to say by themselves needs no wish any more. */
    sched_owner_ask(&nodes[1].owner, (uint16_t)s);
    run(1000);
    ck_assert_uint_eq(count_wishes(), 1);
    vanish(0);
    vanish(2);
    run(3000);
    ck_assert_uint_eq(count(1), TOC_SHARDS);
    ck_assert_uint_eq(count_wishes(), 0);
}
END_TEST

START_TEST(a_wiped_etcd_forgets_wishes)
{
    set_up();
    join(0);
    join(1);
    run(20000);
    int s = some_shard_of(0);
    sched_owner_ask(&nodes[1].owner, (uint16_t)s);
    run(1000);
    for (int i = 0; i < TOC_SHARDS; i++)
        keys[i] = wishes[i] = -1;
    for (int i = 0; i < 2; i++)
        tell_state(&nodes[i]);
    run(3000);
    ck_assert_int_eq(keys[s], 0);
    ck_assert_uint_eq(count(0) + count(1), TOC_SHARDS);
}
END_TEST

START_TEST(a_wish_of_one_who_is_ill_leaves_no_shard_free)
{
    set_up();
    join(0);
    join(1);
    run(20000);
    int s = some_shard_of(0);
    wishes[s] = 1; /* it stands, but node b claims nothing */
    nodes[1].owner.session = false;
    tell_all(TOC_COORD_WANTED, 1, s);
    size_t free_for = 0;
    for (int i = 0; i < 200; i++) {
        run(50);
        free_for += keys[s] < 0;
        ck_assert_uint_lt(free_for, 200);
    }
    ck_assert_uint_lt(free_for, 170); /* the owner takes it back after 1 s */
}
END_TEST

/* It stays a member and so first for its shards: whoever has them keeps them
 * for a good while each time, instead of handing them over again and again. */
START_TEST(one_that_is_not_fit_owns_nothing_and_is_passed_over)
{
    set_up();
    for (int i = 0; i < 3; i++)
        join(i);
    run(20000);
    size_t before = count(1);
    int theirs = some_shard_of(0);
    ck_assert_uint_gt(before, 40);
    sched_owner_set_fit(&nodes[1].owner, false);
    run(50);
    ck_assert_uint_eq(count(1), 0); /* at once */
    for (int s = 0; s < TOC_SHARDS; s++)
        ck_assert(!nodes[1].mine[s]);
    sched_owner_ask(&nodes[1].owner, (uint16_t)theirs);
    run(2500); /* the second in rank waits a second, the third two */
    ck_assert_uint_eq(count(-1), 0);
    int64_t free_for_ms = 0;
    for (int i = 0; i < 20 * 60; i++) {
        run(50);
        free_for_ms += count(-1) > 0 ? 50 : 0;
    }
    ck_assert_int_lt(free_for_ms, 6000); /* of a minute */
    ck_assert_uint_eq(count(1), 0);
    ck_assert_uint_eq(count_wishes(), 0);
    sched_owner_set_fit(&nodes[1].owner, true);
    run(60000);
    ck_assert_uint_eq(count(1), before);
    ck_assert_uint_eq(count_wishes(), 0); /* nor was one remembered */
    ck_assert_uint_eq(count(0) + count(1) + count(2), TOC_SHARDS);
}
END_TEST

START_TEST(not_fit_while_handing_over)
{
    struct sched_owner_action action;

    set_up();
    join(0);
    run(100);
    join(1);
    run(2050); /* it has begun to hand over */
    ck_assert(sched_owner_handing(&nodes[0].owner));
    sched_owner_set_fit(&nodes[0].owner, false);
    (void)sched_owner_step(&nodes[0].owner, now_ns, &action);
    ck_assert_int_eq(action.kind, SCHED_OWNER_RELEASE);
    ck_assert_uint_eq(action.n, TOC_SHARDS);
    carry_out(0, &action);
    run(2000);
    ck_assert_uint_eq(count(1), TOC_SHARDS);
    ck_assert(!sched_owner_handing(&nodes[0].owner));
}
END_TEST

START_TEST(what_is_asked_without_a_session_is_not_heard)
{
    set_up();
    join(0);
    join(1);
    run(20000);
    int s = some_shard_of(0);
    vanish(1);
    tell(&nodes[1], TOC_COORD_SESSION_LOST, -1, 0);
    sched_owner_ask(&nodes[1].owner, (uint16_t)s);
    nodes[1].up = true;
    tell(&nodes[1], TOC_COORD_SESSION_NEW, -1, 0);
    tell_state(&nodes[1]);
    tell(&nodes[0], TOC_COORD_MEMBER_UP, 1, 0);
    run(20000);
    ck_assert_int_eq(keys[s], 0);
    ck_assert_uint_eq(count_wishes(), 0);
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
               coming_and_going_ends_with_one_owner_each,
               a_wanted_shard_moves_alone_and_stays, a_wish_ends_with_its_node,
               back_at_its_first_no_wish_is_left, a_wiped_etcd_forgets_wishes,
               a_wish_of_one_who_is_ill_leaves_no_shard_free,
               one_that_is_not_fit_owns_nothing_and_is_passed_over,
               not_fit_while_handing_over,
               what_is_asked_without_a_session_is_not_heard)
