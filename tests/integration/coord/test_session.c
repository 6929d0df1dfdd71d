/*
 * Goal: a process is a member while it lives, knows when it is not, and is
 * one again by itself; the others learn it in time.
 * Method: handles on a real etcd; leases are revoked behind their backs, etcd
 * is frozen, a process is killed.
 */
#define _GNU_SOURCE
#include "tests/integration/coord/etcd_fixture.h"

#include "common/base/thread.h"

START_TEST(opens_in_order_and_tells_all_of_a_member)
{
    struct etcd etcd;
    struct view a;
    etcd_shared(&etcd);
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    ck_assert_str_eq(a.kinds, "NRUS");
    ck_assert_str_eq(a.members[0], "scheduler/a=127.0.0.1:4711");
    ck_assert_uint_eq(a.last_member.node_id, 4000000000);
    ck_assert_int_eq(a.last_member.started_ms, INT64_C(9007199254740993));
    int64_t deadline = toc_coord_deadline_boot_ns(a.coord);
    int64_t left = deadline - toc_clock_boot(toc_clock_os()).ns;
    ck_assert_int_gt(left, 0);
    ck_assert_int_le(left, 1700 * TOC_NS_PER_MS);
    view_close(&a);
}
END_TEST

START_TEST(stays_a_member_for_longer_than_a_lease)
{
    struct etcd etcd;
    struct view a;
    etcd_shared(&etcd);
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    int64_t first = toc_coord_deadline_boot_ns(a.coord);
    POLL_UNTIL(&a, toc_coord_deadline_boot_ns(a.coord) >
                       first + 4000 * TOC_NS_PER_MS);
    ck_assert_str_eq(a.kinds, "NRUS");
    view_close(&a);
}
END_TEST

START_TEST(members_see_each_other_come_and_leave)
{
    struct etcd etcd;
    struct view a, b;
    etcd_shared(&etcd);
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    view_open(&b, &etcd, "b/with a slash");
    UNTIL_READY(&b);
    ck_assert_uint_eq(b.n_members, 2);
    POLL_UNTIL(&a, a.n_members == 2);
    ck_assert_str_eq(a.members[1], "scheduler/b/with a slash=127.0.0.1:4711");

    ck_assert_int_eq(toc_coord_leave(b.coord, NULL), TOC_OK);
    ck_assert_int_eq(toc_coord_deadline_boot_ns(b.coord), 0);
    int64_t begun = now_ms();
    POLL_UNTIL(&a, a.n_members == 1);
    ck_assert_int_lt(now_ms() - begun, 1000); /* not by the lease's end */

    /* who has left stays away, but still sees */
    POLL_UNTIL(&b, b.n_members == 1);
    ck_assert_int_eq(etcd_lease_of(&etcd, "members/scheduler/b/with a slash"),
                     0);
    bool won;
    ck_assert_int_eq(toc_coord_acquire(b.coord, &(uint16_t){1}, 1, &won, NULL),
                     TOC_UNAVAILABLE);
    view_close(&a);
    view_close(&b);
}
END_TEST

START_TEST(looking_only_needs_no_session)
{
    struct etcd etcd;
    struct view a, look;
    etcd_shared(&etcd);
    view_open(&look, &etcd, NULL);
    POLL_UNTIL(&look, look.synced);
    ck_assert_str_eq(look.kinds, "RS");
    ck_assert_int_eq(toc_coord_deadline_boot_ns(look.coord), 0);
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    POLL_UNTIL(&look, look.n_members == 1);
    view_close(&a);
    POLL_UNTIL(&look, look.n_members == 0);
    view_close(&look);
}
END_TEST

START_TEST(a_revoked_lease_is_noticed_and_replaced)
{
    struct etcd etcd;
    struct view a, b;
    bool won[3];
    uint16_t shards[3] = {0, 7, 255};
    etcd_shared(&etcd);
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    view_open(&b, &etcd, "b");
    UNTIL_READY(&b);
    ck_assert_int_eq(toc_coord_acquire(a.coord, shards, 3, won, NULL), TOC_OK);
    POLL_UNTIL(&b, view_owned_by(&b, "a") == 3);

    int64_t lease = etcd_lease_of(&etcd, "members/scheduler/a");
    ck_assert_int_ne(lease, 0);
    a.n_kinds = 0;
    memset(a.kinds, 0, sizeof a.kinds);
    etcd_revoke(&etcd, lease);
    POLL_UNTIL(&b, view_owned_by(&b, "a") == 0);
    POLL_UNTIL(&a, strchr(a.kinds, 'L') != NULL);
    UNTIL_READY(&a);
    /* lost before new, and everything told anew behind it */
    const char *lost = strchr(a.kinds, 'L'), *new = strchr(a.kinds, 'N');
    ck_assert(lost < new &&new < strchr(a.kinds, 'R'));
    ck_assert_int_eq(a.kinds[a.n_kinds - 1], 'S');
    ck_assert_uint_eq(view_owned_by(&a, "a"), 0);
    ck_assert_uint_eq(a.n_members, 2);
    int64_t renewed = etcd_lease_of(&etcd, "members/scheduler/a");
    ck_assert_int_ne(renewed, 0);
    ck_assert_int_ne(renewed, lease);
    POLL_UNTIL(&b, b.n_members == 2);
    /* and it can own again */
    ck_assert_int_eq(toc_coord_acquire(a.coord, shards, 3, won, NULL), TOC_OK);
    ck_assert(won[0] && won[1] && won[2]);
    view_close(&a);
    view_close(&b);
}
END_TEST

START_TEST(the_local_deadline_ends_a_session_that_etcd_does_not_renew)
{
    struct etcd etcd;
    struct view a;
    etcd_private(&etcd);
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    int64_t deadline = toc_coord_deadline_boot_ns(a.coord);
    kill(etcd.pid, SIGSTOP);
    POLL_UNTIL(&a, !a.session);
    ck_assert_int_ge(toc_clock_boot(toc_clock_os()).ns, deadline);
    ck_assert_int_eq(toc_coord_deadline_boot_ns(a.coord), 0);
    /* asking for shards meanwhile is an error, not a hang */
    bool won;
    ck_assert_int_ne(toc_coord_acquire(a.coord, &(uint16_t){1}, 1, &won, NULL),
                     TOC_OK);
    view_poll(&a, 100);
    kill(etcd.pid, SIGCONT);
    UNTIL_READY(&a);
    ck_assert_uint_gt(a.errors, 0);
    ck_assert_int_gt(toc_coord_deadline_boot_ns(a.coord),
                     toc_clock_boot(toc_clock_os()).ns);
    view_close(&a);
    etcd_remove(&etcd);
}
END_TEST

/* The deadline is seen by a thread that does not poll, without any help. */
START_TEST(the_deadline_passes_although_nobody_polls)
{
    struct etcd etcd;
    struct view a;
    etcd_private(&etcd);
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    kill(etcd.pid, SIGSTOP);
    int64_t until = now_ms() + PATIENCE_MS;
    for (;;) {
        int64_t deadline = toc_coord_deadline_boot_ns(a.coord);
        if (deadline < toc_clock_boot(toc_clock_os()).ns)
            break; /* passed, or 0 already */
        ck_assert_int_lt(now_ms(), until);
    }
    kill(etcd.pid, SIGCONT);
    /* etcd may have kept the lease: it counts as lost all the same */
    POLL_UNTIL(&a, strchr(a.kinds, 'L') != NULL);
    UNTIL_READY(&a);
    view_close(&a);
    etcd_remove(&etcd);
}
END_TEST

START_TEST(opens_when_etcd_comes_later)
{
    struct etcd etcd;
    struct view a;
    etcd_private(&etcd);
    etcd_kill(&etcd);
    view_open(&a, &etcd, "a");
    for (int i = 0; i < 20; i++)
        view_poll(&a, 20);
    ck_assert_uint_gt(a.errors, 0);
    ck_assert_uint_lt(a.errors, 20); /* it backs off */
    ck_assert_str_eq(a.kinds, "");
    etcd_start(&etcd);
    UNTIL_READY(&a);
    view_close(&a);
    etcd_remove(&etcd);
}
END_TEST

struct owner {
    pid_t pid;
    int go[2], ready[2]; /* pipes */
};

/* In a process of its own: told to, owns 16 shards until it is killed. */
static void
be_an_owner(const struct etcd *etcd, const struct owner *owner)
{
    struct view a;
    uint16_t shards[16];
    bool won[16];
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ck_assert_int_eq(read(owner->go[0], &byte, 1), 1);
    shards_from(shards, 16, 32);
    view_open(&a, etcd, "a");
    UNTIL_READY(&a);
    ck_assert_int_eq(toc_coord_acquire(a.coord, shards, 16, won, NULL), TOC_OK);
    ck_assert_int_eq(write(owner->ready[1], "r", 1), 1);
    for (;;)
        view_poll(&a, 1000);
}

static void
owner_fork(struct owner *owner, const struct etcd *etcd)
{
    ck_assert_int_eq(pipe(owner->go), 0);
    ck_assert_int_eq(pipe(owner->ready), 0);
    owner->pid = fork();
    ck_assert_int_ge(owner->pid, 0);
    if (owner->pid == 0)
        be_an_owner(etcd, owner);
}

/* How long until b is told that its shards are free. */
static int64_t
owner_kill(const struct owner *owner, struct view *b)
{
    char byte;
    ck_assert_int_eq(write(owner->go[1], "g", 1), 1);
    ck_assert_int_eq(read(owner->ready[0], &byte, 1), 1);
    POLL_UNTIL(b, view_owned_by(b, "a") == 16);
    /* at some moment between two renewals */
    int64_t until = now_ms() + (int64_t)(toc_rng_u64() % 700);
    while (now_ms() < until)
        view_poll(b, until - now_ms());
    kill(owner->pid, SIGKILL);
    ck_assert_int_eq(waitpid(owner->pid, NULL, 0), owner->pid);
    int64_t begun = now_ms();
    POLL_UNTIL(b, view_owned_by(b, "a") == 0);
    return now_ms() - begun;
}

START_TEST(a_killed_owner_is_replaced)
{
    enum { ROUNDS = 5 };
    struct etcd etcd;
    struct view b;
    struct owner owners[ROUNDS];
    int64_t sum = 0, worst = 0;
    etcd_shared(&etcd);
    for (int i = 0; i < ROUNDS; i++) /* before there are threads here */
        owner_fork(&owners[i], &etcd);
    view_open(&b, &etcd, "b");
    UNTIL_READY(&b);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t took = owner_kill(&owners[i], &b);
        sum += took;
        worst = took > worst ? took : worst;
    }
    printf("owner killed -> its shards are free: mean %lld ms, worst %lld ms\n",
           (long long)(sum / ROUNDS), (long long)worst);
    ck_assert_int_lt(worst, PATIENCE_MS);
    view_close(&b);
}
END_TEST

/* What an operation learns of the lease, poll tells at once. */
START_TEST(a_lease_that_acquire_finds_dead_is_told)
{
    struct etcd etcd;
    struct view a;
    bool won;
    etcd_shared(&etcd);
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    etcd_revoke(&etcd, etcd_lease_of(&etcd, "members/scheduler/a"));
    ck_assert_int_eq(toc_coord_acquire(a.coord, &(uint16_t){1}, 1, &won, NULL),
                     TOC_UNAVAILABLE);
    ck_assert_int_eq(toc_coord_deadline_boot_ns(a.coord), 0);
    a.n_kinds = 0;
    memset(a.kinds, 0, sizeof a.kinds);
    view_poll(&a, 0);
    ck_assert_int_eq(a.kinds[0], 'L');
    UNTIL_READY(&a);
    view_close(&a);
}
END_TEST

struct interrupter {
    struct toc_thread thread;
    struct view *view;
};

static void
interrupt_soon(void *arg)
{
    struct interrupter *interrupter = arg;

    toc_os_sleep_until_mono(toc_os_mono_ns() + 200 * TOC_NS_PER_MS);
    toc_coord_interrupt(interrupter->view->coord);
}

/* With etcd frozen a request waits for 2 s, a poll sends several, and others
 * follow; interrupted, they fail, and say why. Leaving is tried all the same.
 */
START_TEST(an_interrupt_ends_what_hangs)
{
    struct interrupter interrupter;
    struct toc_error err = {0};
    struct toc_arena arena = {0};
    struct etcd etcd;
    struct view a;
    struct toc_member *members;
    struct toc_owner *owners;
    size_t n;

    etcd_private(&etcd);
    view_open(&a, &etcd, "a");
    UNTIL_READY(&a);
    kill(etcd.pid, SIGSTOP);
    interrupter.view = &a;
    toc_thread_start(&interrupter.thread, "interrupter", interrupt_soon,
                     &interrupter);
    ck_assert_int_eq(
        toc_coord_snapshot(a.coord, &arena, &members, &n, &owners, &n, &err),
        TOC_UNAVAILABLE);
    toc_thread_join(&interrupter.thread);
    ck_assert_int_eq(
        toc_coord_snapshot(a.coord, &arena, &members, &n, &owners, &n, &err),
        TOC_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err.msg, "the process is stopping"));
    view_poll(&a, 60000); /* returns */
    kill(etcd.pid, SIGCONT);
    ck_assert_int_eq(toc_coord_leave(a.coord, &err), TOC_OK);
    ck_assert_int_eq(etcd_lease_of(&etcd, "members/scheduler/a"), 0);
    toc_arena_done(&arena);
    view_close(&a);
    etcd_remove(&etcd);
}
END_TEST

TOC_CHECK_MAIN("coord session", opens_in_order_and_tells_all_of_a_member,
               stays_a_member_for_longer_than_a_lease,
               members_see_each_other_come_and_leave,
               looking_only_needs_no_session,
               a_revoked_lease_is_noticed_and_replaced,
               the_local_deadline_ends_a_session_that_etcd_does_not_renew,
               the_deadline_passes_although_nobody_polls,
               opens_when_etcd_comes_later, a_killed_owner_is_replaced,
               a_lease_that_acquire_finds_dead_is_told,
               an_interrupt_ends_what_hangs)
