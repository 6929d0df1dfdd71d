/*
 * What every backend of the coordination port keeps. The program that includes
 * this has, before it, now_ms() and time_goes_on() (see coord_view.h), and:
 *
 *   backend_begin()                 a server nobody has used
 *   backend_join(view, role, node)  a handle on it; role NULL: looks only
 *   backend_part(view)              closes the handle
 *   backend_revoke(node)            the server ends the lease of a scheduler
 *   backend_end()
 *
 * SEEDS_USUAL: how many random sequences there are (tests/support/seeds.h).
 */
#ifndef TOC_TESTS_COORD_SUITE_H
#define TOC_TESTS_COORD_SUITE_H

#include "common/base/rng.h"
#include "tests/contract/coord/coord_view.h"
#include "tests/support/seeds.h"

#include <stdio.h>

static void backend_begin(void);
static void backend_join(struct view *view, const char *role, const char *node);
static void backend_part(struct view *view);
static void backend_revoke(const char *node);
static void backend_end(void);

enum { ALL = VIEW_SHARDS };

static struct view va, vb;

static void
join(struct view *view, const char *node)
{
    backend_join(view, "scheduler", node);
    UNTIL_READY(view);
}

/* ---- sessions ----------------------------------------------------------- */

START_TEST(opens_in_order_and_tells_all_of_a_member)
{
    backend_begin();
    join(&va, "a");
    ck_assert_str_eq(va.kinds, "NRUS");
    ck_assert_str_eq(va.members[0], "scheduler/a=127.0.0.1:4711");
    ck_assert_uint_eq(va.last_member.node_id, 4000000000);
    ck_assert_int_eq(va.last_member.started_ms, INT64_C(9007199254740993));
    ck_assert_int_gt(toc_coord_deadline_boot_ns(va.coord), 0);
    backend_part(&va);
    backend_end();
}
END_TEST

START_TEST(stays_a_member_for_longer_than_a_lease)
{
    backend_begin();
    join(&va, "a");
    int64_t first = toc_coord_deadline_boot_ns(va.coord);
    POLL_UNTIL(&va, toc_coord_deadline_boot_ns(va.coord) >
                        first + INT64_C(4000000000));
    ck_assert_str_eq(va.kinds, "NRUS");
    backend_part(&va);
    backend_end();
}
END_TEST

START_TEST(members_see_each_other_come_and_leave)
{
    bool won = false;
    backend_begin();
    join(&va, "a");
    join(&vb, "b/with a slash");
    ck_assert_uint_eq(vb.n_members, 2);
    POLL_UNTIL(&va, va.n_members == 2);
    ck_assert_str_eq(va.members[1], "scheduler/b/with a slash=127.0.0.1:4711");

    ck_assert_int_eq(toc_coord_leave(vb.coord, NULL), TOC_OK);
    ck_assert_int_eq(toc_coord_deadline_boot_ns(vb.coord), 0);
    int64_t begun = now_ms();
    POLL_UNTIL(&va, va.n_members == 1);
    ck_assert_int_lt(now_ms() - begun, 1000); /* not by the lease's end */

    /* who has left stays away, but still sees */
    POLL_UNTIL(&vb, vb.n_members == 1);
    ck_assert_int_eq(toc_coord_acquire(vb.coord, &(uint16_t){1}, 1, &won, NULL),
                     TOC_UNAVAILABLE);
    ck_assert(!won);
    backend_part(&va);
    backend_part(&vb);
    backend_end();
}
END_TEST

START_TEST(looking_only_needs_no_session)
{
    backend_begin();
    backend_join(&vb, NULL, NULL);
    POLL_UNTIL(&vb, vb.synced);
    ck_assert_str_eq(vb.kinds, "RS");
    ck_assert_int_eq(toc_coord_deadline_boot_ns(vb.coord), 0);
    join(&va, "a");
    POLL_UNTIL(&vb, vb.n_members == 1);
    backend_part(&va);
    POLL_UNTIL(&vb, vb.n_members == 0);
    backend_part(&vb);
    backend_end();
}
END_TEST

START_TEST(a_revoked_lease_is_noticed_and_replaced)
{
    bool won[3];
    uint16_t shards[3] = {0, 7, 255};
    backend_begin();
    join(&va, "a");
    join(&vb, "b");
    ck_assert_int_eq(toc_coord_acquire(va.coord, shards, 3, won, NULL), TOC_OK);
    POLL_UNTIL(&vb, view_owned_by(&vb, "a") == 3);
    view_forget_kinds(&va);
    backend_revoke("a");
    POLL_UNTIL(&va, strchr(va.kinds, 'L') != NULL);
    POLL_UNTIL(&va, va.session && va.synced);
    ck_assert_uint_eq(view_owned_by(&va, ""), ALL);
    ck_assert_uint_eq(va.n_members, 2);
    POLL_UNTIL(&vb, view_owned_by(&vb, "") == ALL && vb.n_members == 2);
    ck_assert_ptr_null(strchr(vb.kinds, 'L'));
    backend_part(&va);
    backend_part(&vb);
    backend_end();
}
END_TEST

/* What an operation learns of the lease, poll tells at once. */
START_TEST(a_lease_that_acquire_finds_dead_is_told)
{
    bool won = false;
    backend_begin();
    join(&va, "a");
    backend_revoke("a");
    ck_assert_int_eq(toc_coord_acquire(va.coord, &(uint16_t){1}, 1, &won, NULL),
                     TOC_UNAVAILABLE);
    ck_assert(!won);
    ck_assert_int_eq(toc_coord_deadline_boot_ns(va.coord), 0);
    view_forget_kinds(&va);
    view_poll(&va, 0);
    ck_assert_int_eq(va.kinds[0], 'L');
    UNTIL_READY(&va);
    backend_part(&va);
    backend_end();
}
END_TEST

START_TEST(a_wake_is_remembered_until_the_next_poll)
{
    backend_begin();
    join(&va, "a");
    toc_coord_wake(va.coord);
    view_poll(&va, 60000); /* the test's time limit would end it */
    backend_part(&va);
    backend_end();
}
END_TEST

/* ---- shards ---------------------------------------------------------------
 */

START_TEST(what_is_ours_is_won_again_and_nobody_elses)
{
    uint16_t shards[100], every[ALL];
    bool won[100], all[ALL];
    backend_begin();
    join(&va, "a");
    join(&vb, "b");
    shards_from(shards, 100, 20);
    for (int again = 0; again < 2; again++) {
        memset(won, 0, sizeof won);
        ck_assert_int_eq(toc_coord_acquire(va.coord, shards, 100, won, NULL),
                         TOC_OK);
        for (size_t i = 0; i < 100; i++)
            ck_assert(won[i]);
    }
    shards_from(every, ALL, 0);
    ck_assert_int_eq(toc_coord_acquire(vb.coord, every, ALL, all, NULL),
                     TOC_OK);
    for (uint16_t s = 0; s < ALL; s++)
        ck_assert_int_eq(all[s], s < 20 || s >= 120);
    backend_part(&va);
    backend_part(&vb);
    backend_end();
}
END_TEST

START_TEST(only_the_owner_gives_up)
{
    uint16_t every[ALL];
    bool won[ALL];
    backend_begin();
    join(&va, "a");
    join(&vb, "b");
    shards_from(every, ALL, 0);
    ck_assert_int_eq(toc_coord_acquire(va.coord, every, 200, won, NULL),
                     TOC_OK);
    ck_assert_int_eq(toc_coord_release(vb.coord, every, ALL, NULL), TOC_OK);
    ck_assert_int_eq(toc_coord_release(va.coord, every, 3, NULL), TOC_OK);
    /* in order: when the three are free, a wrong release would be seen too */
    POLL_UNTIL(&vb, vb.owners[2][0] == '\0' && view_owned_by(&vb, "a") == 197);
    backend_part(&va);
    backend_part(&vb);
    backend_end();
}
END_TEST

START_TEST(a_shard_that_does_not_exist_is_refused)
{
    bool won[2] = {false, false};
    uint16_t shards[2] = {1, 256};
    backend_begin();
    join(&va, "a");
    ck_assert_int_eq(toc_coord_acquire(va.coord, shards, 2, won, NULL),
                     TOC_INVALID);
    ck_assert(!won[0]);
    ck_assert_int_eq(toc_coord_release(va.coord, shards, 2, NULL), TOC_INVALID);
    backend_part(&va);
    backend_end();
}
END_TEST

START_TEST(leaving_frees_shards_at_once)
{
    uint16_t every[ALL];
    bool won[ALL];
    backend_begin();
    join(&va, "a");
    join(&vb, "b");
    shards_from(every, ALL, 0);
    ck_assert_int_eq(toc_coord_acquire(va.coord, every, ALL, won, NULL),
                     TOC_OK);
    POLL_UNTIL(&vb, view_owned_by(&vb, "a") == ALL);
    ck_assert_int_eq(toc_coord_leave(va.coord, NULL), TOC_OK);
    int64_t begun = now_ms();
    POLL_UNTIL(&vb, view_owned_by(&vb, "") == ALL);
    ck_assert_int_lt(now_ms() - begun, 1000);
    backend_part(&va);
    backend_part(&vb);
    backend_end();
}
END_TEST

START_TEST(wishes_are_replaced_removed_and_go_with_the_session)
{
    uint16_t shards[100];
    backend_begin();
    join(&va, "a");
    join(&vb, "b");
    shards_from(shards, 100, 10);
    ck_assert_int_eq(toc_coord_want(va.coord, shards, 100, true, NULL), TOC_OK);
    POLL_UNTIL(&vb, strcmp(vb.wishes[109], "a") == 0);
    ck_assert_str_eq(vb.wishes[10], "a");
    ck_assert_str_eq(vb.wishes[110], "");
    /* the last one counts */
    ck_assert_int_eq(toc_coord_want(vb.coord, shards, 3, true, NULL), TOC_OK);
    POLL_UNTIL(&va, strcmp(va.wishes[12], "b") == 0);
    /* removed, whosesoever it is */
    ck_assert_int_eq(toc_coord_want(va.coord, shards, 1, false, NULL), TOC_OK);
    POLL_UNTIL(&vb, vb.wishes[10][0] == '\0');
    ck_assert_str_eq(vb.wishes[11], "b");
    ck_assert_uint_eq(view_owned_by(&vb, ""), ALL);
    ck_assert_int_eq(toc_coord_leave(vb.coord, NULL), TOC_OK);
    POLL_UNTIL(&va, va.wishes[11][0] == '\0' && va.wishes[12][0] == '\0');
    ck_assert_str_eq(va.wishes[13], "a");
    ck_assert_int_eq(toc_coord_want(vb.coord, shards, 1, true, NULL),
                     TOC_UNAVAILABLE);
    backend_part(&va);
    POLL_UNTIL(&vb, vb.wishes[13][0] == '\0' && vb.wishes[109][0] == '\0');
    backend_part(&vb);
    backend_end();
}
END_TEST

START_TEST(a_list_shows_what_stands_there)
{
    struct toc_arena arena = {0};
    struct toc_member *members;
    struct toc_owner *owners;
    size_t n_members, n_owners;
    uint16_t shards[10];
    bool won[10];
    backend_begin();
    join(&va, "a");
    shards_from(shards, 10, 0);
    ck_assert_int_eq(toc_coord_acquire(va.coord, shards, 10, won, NULL),
                     TOC_OK);
    ck_assert_int_eq(toc_coord_snapshot(va.coord, &arena, &members, &n_members,
                                        &owners, &n_owners, NULL),
                     TOC_OK);
    ck_assert_uint_eq(n_members, 1);
    ck_assert_uint_eq(n_owners, 10);
    TOC_ASSERT_STR(members[0].role, "scheduler");
    TOC_ASSERT_STR(members[0].node, "a");
    TOC_ASSERT_STR(members[0].address, "127.0.0.1:4711");
    ck_assert_uint_eq(owners[9].shard, 9);
    TOC_ASSERT_STR(owners[9].node, "a");
    TOC_ASSERT_STR(owners[9].address, "127.0.0.1:4711");
    toc_arena_done(&arena);
    backend_part(&va);
    backend_end();
}
END_TEST

/* ---- at random ------------------------------------------------------------
 */

/* What should stand there; -1: nobody. */
struct model {
    int owner[ALL], wish[ALL];
};

enum { NODES = 3, SHARDS_USED = 80, STEPS = 300 };

static const char *const node_names[NODES] = {"n0", "n1", "n2"};
static struct view nodes[NODES];

static size_t
draw_shards(struct toc_rng *rng, uint16_t *shards)
{
    size_t n = 0;
    for (uint16_t s = 0; s < SHARDS_USED; s++)
        if (toc_rng_below(rng, 4) == 0)
            shards[n++] = (uint16_t)(s * 3);
    return n;
}

static void
check_view(struct view *view, const struct model *model)
{
    for (size_t s = 0; s < ALL; s++) {
        int owner = model->owner[s], wish = model->wish[s];
        POLL_UNTIL(view, strcmp(view->owners[s],
                                owner < 0 ? "" : node_names[owner]) == 0);
        POLL_UNTIL(view, strcmp(view->wishes[s],
                                wish < 0 ? "" : node_names[wish]) == 0);
    }
    view_forget_kinds(view);
}

static void
claim_some(struct toc_rng *rng, struct model *model, int node)
{
    uint16_t shards[ALL];
    bool won[ALL];
    size_t n = draw_shards(rng, shards);
    ck_assert_int_eq(toc_coord_acquire(nodes[node].coord, shards, n, won, NULL),
                     TOC_OK);
    for (size_t i = 0; i < n; i++) {
        int *owner = &model->owner[shards[i]];
        if (*owner < 0)
            *owner = node;
        ck_assert_int_eq(won[i], *owner == node);
    }
}

static void
release_some(struct toc_rng *rng, struct model *model, int node)
{
    uint16_t shards[ALL];
    size_t n = draw_shards(rng, shards);
    ck_assert_int_eq(toc_coord_release(nodes[node].coord, shards, n, NULL),
                     TOC_OK);
    for (size_t i = 0; i < n; i++)
        if (model->owner[shards[i]] == node)
            model->owner[shards[i]] = -1;
}

static void
wish_some(struct toc_rng *rng, struct model *model, int node)
{
    uint16_t shards[ALL];
    bool wanted = toc_rng_below(rng, 3) > 0;
    size_t n = draw_shards(rng, shards);
    ck_assert_int_eq(toc_coord_want(nodes[node].coord, shards, n, wanted, NULL),
                     TOC_OK);
    for (size_t i = 0; i < n; i++)
        model->wish[shards[i]] = wanted ? node : -1;
}

static void
end_session(struct toc_rng *rng, struct model *model, int node)
{
    if (toc_rng_below(rng, 2) == 0) {
        backend_part(&nodes[node]);
        join(&nodes[node], node_names[node]);
    } else {
        backend_revoke(node_names[node]);
        POLL_UNTIL(&nodes[node], strchr(nodes[node].kinds, 'L') != NULL);
        UNTIL_READY(&nodes[node]);
    }
    for (size_t s = 0; s < ALL; s++) {
        model->owner[s] = model->owner[s] == node ? -1 : model->owner[s];
        model->wish[s] = model->wish[s] == node ? -1 : model->wish[s];
    }
}

static void
random_step(struct toc_rng *rng, struct model *model)
{
    int node = (int)toc_rng_below(rng, NODES);
    switch (toc_rng_below(rng, 12)) {
    case 0:
        end_session(rng, model, node);
        break;
    case 1:
    case 2:
    case 3:
        release_some(rng, model, node);
        break;
    case 4:
    case 5:
        wish_some(rng, model, node);
        break;
    case 6:
        check_view(&nodes[node], model);
        break;
    default:
        claim_some(rng, model, node);
        break;
    }
}

/* Every answer equals a model's; every view comes to it. */
static void
random_sequence(uint64_t seed)
{
    struct toc_rng rng;
    struct model model;
    memset(&model, -1, sizeof model);
    toc_rng_seed(&rng, seed);
    backend_begin();
    for (int i = 0; i < NODES; i++)
        join(&nodes[i], node_names[i]);
    for (int step = 0; step < STEPS; step++) {
        random_step(&rng, &model);
        /* nobody may fall asleep for longer than a lease */
        for (int i = 0; i < NODES; i++) {
            view_poll(&nodes[i], 0);
            view_forget_kinds(&nodes[i]);
        }
    }
    for (int i = 0; i < NODES; i++)
        check_view(&nodes[i], &model);
    for (int i = 0; i < NODES; i++)
        backend_part(&nodes[i]);
    backend_end();
}

START_TEST(random_operations_do_what_the_model_says)
{
    for (uint64_t seed = 1; seed <= seeds_wanted(SEEDS_USUAL); seed++) {
        seed_begins(seed);
        random_sequence(seed);
    }
}
END_TEST

#define COORD_SUITE                                                           \
    opens_in_order_and_tells_all_of_a_member,                                 \
        stays_a_member_for_longer_than_a_lease,                               \
        members_see_each_other_come_and_leave, looking_only_needs_no_session, \
        a_revoked_lease_is_noticed_and_replaced,                              \
        a_lease_that_acquire_finds_dead_is_told,                              \
        a_wake_is_remembered_until_the_next_poll,                             \
        what_is_ours_is_won_again_and_nobody_elses, only_the_owner_gives_up,  \
        a_shard_that_does_not_exist_is_refused, leaving_frees_shards_at_once, \
        wishes_are_replaced_removed_and_go_with_the_session,                  \
        a_list_shows_what_stands_there,                                       \
        random_operations_do_what_the_model_says

#endif
