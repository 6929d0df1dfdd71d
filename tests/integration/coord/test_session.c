/*
 * Goal: a process is a member while it lives, knows when it is not, and is
 * one again by itself; the others learn it in time.
 * Method: handles on a real etcd; leases are revoked behind their backs, etcd
 * is frozen, a process is killed.
 */
#define _GNU_SOURCE
#include "tests/integration/coord/etcd_fixture.h"

#include "common/base/thread.h"

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

TOC_CHECK_MAIN("coord session",
               the_local_deadline_ends_a_session_that_etcd_does_not_renew,
               the_deadline_passes_although_nobody_polls,
               opens_when_etcd_comes_later, a_killed_owner_is_replaced,
               an_interrupt_ends_what_hangs)
