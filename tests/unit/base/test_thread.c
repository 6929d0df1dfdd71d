/*
 * Goal: threads start and end as told; a ring of the bell is never lost, and a
 * wait ends at its time, not before.
 * Method: many rings between real threads; deadlines in the past; signal masks
 * and names read inside the thread.
 */
#define _GNU_SOURCE /* pthread_getname_np */
#include "common/base/thread.h"

#include "common/base/os_time.h"

#include "tests/support/toc_check.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

struct seen {
    char name[32];
    bool term_blocked, segv_blocked;
};

static void
look(void *arg)
{
    struct seen *seen = arg;
    sigset_t set;

    pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    seen->term_blocked = sigismember(&set, SIGTERM) == 1;
    seen->segv_blocked = sigismember(&set, SIGSEGV) == 1;
}

START_TEST(names_and_masks)
{
    struct toc_thread thread = {.started = false};
    struct seen seen;
    sigset_t before, after;

    pthread_sigmask(SIG_BLOCK, NULL, &before);
    toc_thread_join(&thread); /* never started: harmless */
    toc_thread_start(&thread, "a-name-that-is-far-too-long", look, &seen);
    toc_thread_join(&thread);
    ck_assert(!thread.started);
    toc_thread_join(&thread); /* twice: harmless */
    ck_assert_str_eq(seen.name, "a-name-that-is-");
    ck_assert(seen.term_blocked);
    ck_assert(!seen.segv_blocked);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    ck_assert_int_eq(sigismember(&before, SIGTERM),
                     sigismember(&after, SIGTERM));
}
END_TEST

START_TEST(a_ring_is_remembered_once)
{
    struct toc_bell bell;

    toc_bell_init(&bell);
    toc_bell_ring(&bell);
    toc_bell_ring(&bell);
    ck_assert(toc_bell_wait(&bell, TOC_BELL_FOREVER));
    ck_assert(!toc_bell_wait(&bell, 0));
    toc_bell_ring(&bell);
    ck_assert(toc_bell_wait(&bell, 0)); /* rung counts before the time does */
    toc_bell_done(&bell);
}
END_TEST

START_TEST(a_wait_ends_at_its_time)
{
    int64_t until = toc_os_mono_ns() + 3000000;
    struct toc_bell bell;

    toc_bell_init(&bell);
    ck_assert(!toc_bell_wait(&bell, until));
    ck_assert_int_ge(toc_os_mono_ns(), until);
    ck_assert(!toc_bell_wait(&bell, until)); /* past */
    ck_assert(!toc_bell_wait(&bell, -5));
    toc_bell_done(&bell);
}
END_TEST

#define ROUNDS 2000

struct ping_pong {
    struct toc_bell ping, pong;
    _Atomic int served;
};

static void
serve(void *arg)
{
    struct ping_pong *pp = arg;

    for (int i = 0; i < ROUNDS; i++) {
        toc_bell_wait(&pp->ping, TOC_BELL_FOREVER);
        atomic_fetch_add(&pp->served, 1);
        toc_bell_ring(&pp->pong);
    }
}

START_TEST(no_ring_is_lost)
{
    struct ping_pong pp = {.served = 0};
    struct toc_thread thread;

    toc_bell_init(&pp.ping);
    toc_bell_init(&pp.pong);
    toc_thread_start(&thread, "serve", serve, &pp);
    for (int i = 0; i < ROUNDS; i++) {
        toc_bell_ring(&pp.ping);
        ck_assert(toc_bell_wait(&pp.pong, TOC_BELL_FOREVER));
        ck_assert_int_eq(atomic_load(&pp.served), i + 1);
    }
    toc_thread_join(&thread);
    toc_bell_done(&pp.ping);
    toc_bell_done(&pp.pong);
}
END_TEST

START_TEST(clocks_go_on)
{
    int64_t mono = toc_os_mono_ns(), boot = toc_os_boot_ns();

    toc_os_sleep_until_mono(0);
    toc_os_sleep_until_mono(mono - 1);
    toc_os_sleep_until_mono(mono + 2000000);
    ck_assert_int_ge(toc_os_mono_ns(), mono + 2000000);
    ck_assert_int_ge(toc_os_boot_ns(), boot + 1000000);
    ck_assert(toc_os_wall_ns() > INT64_C(1700000000000000000));
}
END_TEST

TOC_CHECK_MAIN("thread", names_and_masks, a_ring_is_remembered_once,
               a_wait_ends_at_its_time, no_ring_is_lost, clocks_go_on)
