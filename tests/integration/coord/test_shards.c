/*
 * Goal: a shard has one owner at most; only its owner gives it up; what a
 * handle has been told equals what stands in etcd.
 * Method: handles race from threads on a real etcd; keys are written by hand.
 */
#define _GNU_SOURCE
#include "tests/integration/coord/etcd_fixture.h"

#include "common/base/thread.h"

enum { ALL = TOC_ETCD_SHARDS };

struct racer {
    struct view view;
    struct toc_thread thread;
    pthread_barrier_t *start;
    uint16_t shards[ALL];
    bool won[ALL];
    enum toc_status st;
};

static void
race_main(void *arg)
{
    struct racer *racer = arg;
    pthread_barrier_wait(racer->start);
    racer->st = toc_coord_acquire(racer->view.coord, racer->shards, ALL,
                                  racer->won, NULL);
}

static void
race(struct racer *racers, size_t n)
{
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)n);
    for (size_t i = 0; i < n; i++) {
        racers[i].start = &start;
        racers[i].thread = (struct toc_thread){0};
        toc_thread_start(&racers[i].thread, "racer", race_main, &racers[i]);
    }
    for (size_t i = 0; i < n; i++) {
        toc_thread_join(&racers[i].thread);
        ck_assert_int_eq(racers[i].st, TOC_OK);
    }
    pthread_barrier_destroy(&start);
}

static const char *const names[] = {"a", "b", "c"};

/* Each shard was won once, and everybody is told by whom. */
static void
check_race(struct racer *racers, size_t n)
{
    for (size_t s = 0; s < ALL; s++) {
        size_t winners = 0, winner = 0;
        for (size_t i = 0; i < n; i++)
            if (racers[i].won[s]) {
                winners++;
                winner = i;
            }
        ck_assert_uint_eq(winners, 1);
        for (size_t i = 0; i < n; i++)
            POLL_UNTIL(&racers[i].view,
                       strcmp(racers[i].view.owners[s], names[winner]) == 0);
    }
}

static void
give_up_all(struct racer *racers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t mine = 0;
        uint16_t shards[ALL];
        for (uint16_t s = 0; s < ALL; s++)
            if (racers[i].won[s])
                shards[mine++] = s;
        ck_assert_int_eq(
            toc_coord_release(racers[i].view.coord, shards, mine, NULL),
            TOC_OK);
    }
    for (size_t i = 0; i < n; i++)
        POLL_UNTIL(&racers[i].view, view_owned_by(&racers[i].view, "") == ALL);
}

START_TEST(one_winner_for_each_shard)
{
    enum { N = 3, ROUNDS = 10 };
    struct etcd etcd;
    static struct racer racers[N];
    etcd_shared(&etcd);
    for (size_t i = 0; i < N; i++) {
        view_open(&racers[i].view, &etcd, names[i]);
        UNTIL_READY(&racers[i].view);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < N; i++) {
            shards_from(racers[i].shards, ALL, 0);
            racers[i].view.n_kinds = 0; /* there will be many */
            memset(racers[i].won, 0, sizeof racers[i].won);
        }
        race(racers, N);
        check_race(racers, N);
        give_up_all(racers, N);
    }
    for (size_t i = 0; i < N; i++)
        view_close(&racers[i].view);
}
END_TEST

START_TEST(leaving_frees_shards_at_once)
{
    struct etcd etcd;
    struct view a, b;
    uint16_t every[ALL];
    bool won[ALL];
    etcd_shared(&etcd);
    view_open(&a, &etcd, "a");
    view_open(&b, &etcd, "b");
    UNTIL_READY(&a);
    UNTIL_READY(&b);
    shards_from(every, ALL, 0);
    int64_t begun = now_ms();
    ck_assert_int_eq(toc_coord_acquire(a.coord, every, ALL, won, NULL), TOC_OK);
    printf("256 shards acquired in %lld ms\n", (long long)(now_ms() - begun));
    POLL_UNTIL(&b, view_owned_by(&b, "a") == ALL);
    begun = now_ms();
    ck_assert_int_eq(toc_coord_leave(a.coord, NULL), TOC_OK);
    POLL_UNTIL(&b, view_owned_by(&b, "") == ALL);
    printf("256 shards seen free %lld ms after leaving\n",
           (long long)(now_ms() - begun));
    view_close(&a);
    view_close(&b);
}
END_TEST

START_TEST(garbage_is_survived)
{
    struct etcd etcd;
    struct view a;
    etcd_shared(&etcd);
    etcd_put_text(&etcd, "own/003", "not JSON");
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    etcd_put_text(&etcd, "own/004", "[]");
    etcd_put_text(&etcd, "own/256", "{\"node\":\"x\"}");
    etcd_put_text(&etcd, "own/-00", "{\"node\":\"x\"}");
    etcd_put_text(&etcd, "own/5", "{\"node\":\"x\"}");
    etcd_put_text(&etcd, "own/0005", "{\"node\":\"x\"}");
    etcd_put_text(&etcd, "members/scheduler", "{}");
    etcd_put_text(&etcd, "members//x", "{}");
    etcd_put_text(&etcd, "members/scheduler/y", "{\"node_id\":-1}");
    etcd_put_text(&etcd, "members/scheduler/z", "\xff\xfe");
    etcd_put_text(&etcd, "own/\xff\xfe", "{\"node\":\"x\"}");
    etcd_put_text(&etcd, "rules/revision", "17");
    etcd_put_text(&etcd, "own/009", "{\"node\":\"last\",\"address\":\"h:1\"}");
    POLL_UNTIL(&a, a.owners[9][0] != '\0');
    ck_assert_str_eq(a.owners[9], "last");
    ck_assert_str_eq(a.owners[3], "?");
    ck_assert_str_eq(a.owners[4], "?");
    ck_assert_uint_eq(view_owned_by(&a, ""), ALL - 3);
    ck_assert_uint_eq(a.n_members, 1);
    /* somebody holds it, whoever that is */
    bool won = true;
    ck_assert_int_eq(toc_coord_acquire(a.coord, &(uint16_t){3}, 1, &won, NULL),
                     TOC_OK);
    ck_assert(!won);
    view_close(&a);
}
END_TEST

struct lister {
    struct toc_coord *coord;
    struct toc_thread thread;
    size_t members, owners;
    enum toc_status st;
};

static void
list_main(void *arg)
{
    struct lister *lister = arg;
    for (int i = 0; i < 50; i++) {
        struct toc_arena arena = {0};
        struct toc_member *members;
        struct toc_owner *owners;
        lister->st = toc_coord_snapshot(lister->coord, &arena, &members,
                                        &lister->members, &owners,
                                        &lister->owners, NULL);
        toc_arena_done(&arena);
        if (lister->st != TOC_OK)
            return;
    }
}

START_TEST(lists_from_other_threads)
{
    enum { N = 2 };
    struct etcd etcd;
    struct view a;
    uint16_t shards[10];
    bool won[10];
    struct lister listers[N] = {0};
    etcd_shared(&etcd);
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    shards_from(shards, 10, 0);
    ck_assert_int_eq(toc_coord_acquire(a.coord, shards, 10, won, NULL), TOC_OK);
    for (size_t i = 0; i < N; i++) {
        listers[i].coord = a.coord;
        toc_thread_start(&listers[i].thread, "lister", list_main, &listers[i]);
    }
    for (int i = 0; i < 20; i++)
        view_poll(&a, 5);
    for (size_t i = 0; i < N; i++) {
        toc_thread_join(&listers[i].thread);
        ck_assert_int_eq(listers[i].st, TOC_OK);
        ck_assert_uint_eq(listers[i].members, 1);
        ck_assert_uint_eq(listers[i].owners, 10);
    }
    struct toc_arena arena = {0};
    struct toc_member *members;
    struct toc_owner *owners;
    size_t n_members, n_owners;
    ck_assert_int_eq(toc_coord_snapshot(a.coord, &arena, &members, &n_members,
                                        &owners, &n_owners, NULL),
                     TOC_OK);
    TOC_ASSERT_STR(members[0].role, "scheduler");
    TOC_ASSERT_STR(members[0].node, "a");
    TOC_ASSERT_STR(members[0].address, "127.0.0.1:4711");
    ck_assert_uint_eq(owners[9].shard, 9);
    TOC_ASSERT_STR(owners[9].node, "a");
    TOC_ASSERT_STR(owners[9].address, "127.0.0.1:4711");
    toc_arena_done(&arena);
    view_close(&a);
}
END_TEST

TOC_CHECK_MAIN("coord shards", one_winner_for_each_shard,
               leaving_frees_shards_at_once, garbage_is_survived,
               lists_from_other_threads)
