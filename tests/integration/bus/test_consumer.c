/*
 * Goal: members that die are replaced, waiting ends soon, a broker that hangs,
 * dies and comes again costs time only. (What every backend keeps is in
 * tests/contract/bus.)
 * Method: consumers on a real Kafka, one of them killed; the broker too.
 */
#define _GNU_SOURCE
#include "tests/integration/bus/kafka_fixture.h"

#include "common/base/thread.h"

#include <sys/prctl.h>
#include <sys/wait.h>

static struct producer producer;
static struct consumer a, c;

/* In a process of its own: takes messages and marks them until killed. */
static void
be_a_member(const struct names *names, int ready)
{
    bool told = false;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    consumer_open(&c, names);
    c.mark = true;
    for (;;) {
        (void)consumer_poll(&c, 100);
        if (!told && consumer_owns(&c) > 0)
            told = write(ready, "r", 1) == 1;
    }
}

START_TEST(a_killed_member_is_replaced)
{
    enum { PARTS = 4 };
    struct names names;
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    /* librdkafka's threads do not live through a fork: the child comes first,
     * and learns the names by a pipe */
    int tell[2];
    ck_assert_int_eq(pipe(tell), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        ck_assert_int_eq(read(tell[0], &names, sizeof names), sizeof names);
        be_a_member(&names, ready[1]);
    }
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, PARTS);
    consumer_open(&a, &names);
    a.mark = true;
    UNTIL(consumer_owns(&a) == PARTS, (void)consumer_poll(&a, 100));
    ck_assert_int_eq(write(tell[1], &names, sizeof names), sizeof names);
    UNTIL(consumer_owns(&a) == PARTS / 2, (void)consumer_poll(&a, 10));
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    int64_t begun = now_ms();
    UNTIL(consumer_owns(&a) == PARTS, (void)consumer_poll(&a, 10));
    printf("member killed -> its partitions are ours: %lld ms\n",
           (long long)(now_ms() - begun));
    send_many(&producer, names.topics[0], PARTS, 0, 5);
    UNTIL(a.n_messages == PARTS * 5, (void)consumer_poll(&a, 100));
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

/* Ring a bell from another thread while a poll waits. */
struct waker {
    struct toc_bus_consumer *bus;
    struct toc_thread thread;
};

static void
wake_main(void *arg)
{
    struct waker *waker = arg;
    toc_bus_consumer_wake(waker->bus);
}

START_TEST(wake_ends_a_poll)
{
    struct names names;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    consumer_open(&a, &names);
    UNTIL(consumer_owns(&a) == 1, (void)consumer_poll(&a, 100));
    for (int i = 0; i < 20; i++) {
        struct waker waker = {.bus = a.bus};
        toc_thread_start(&waker.thread, "waker", wake_main, &waker);
        ck_assert_uint_eq(consumer_poll(&a, 60000), 0);
        toc_thread_join(&waker.thread);
    }
    toc_bus_consumer_wake(a.bus); /* remembered */
    ck_assert_uint_eq(consumer_poll(&a, 60000), 0);
    int64_t begun = now_ms();
    ck_assert_uint_eq(consumer_poll(&a, 50), 0); /* once */
    ck_assert_int_ge(now_ms() - begun, 49);
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

static int
compare_i64(const void *x, const void *y)
{
    int64_t p = *(const int64_t *)x, q = *(const int64_t *)y;
    return (p > q) - (p < q);
}

START_TEST(a_message_comes_at_once)
{
    enum { N = 300 };
    struct names names;
    static int64_t took[N];
    producer_open(&producer, 0);
    names_make(&names, &producer, 3, 8);
    consumer_open_topics(&a, &names, 3);
    UNTIL(consumer_owns(&a) == 24, (void)consumer_poll(&a, 100));
    send_many(&producer, names.topics[0], 8, 0, 1);
    UNTIL(a.n_messages == 8, (void)consumer_poll(&a, 100));
    for (int i = 0; i < N; i++) {
        size_t before = a.n_messages;
        int64_t begun = toc_os_mono_ns();
        send_text(&producer, names.topics[i % 3], i % 8, "x", 0);
        UNTIL(a.n_messages == before + 1, (void)consumer_poll(&a, 1000));
        took[i] = toc_os_mono_ns() - begun;
        (void)toc_bus_poll(producer.bus, 0);
    }
    qsort(took, N, sizeof *took, compare_i64);
    printf("send -> taken: p50 %lld us, p99 %lld us\n",
           (long long)(took[N / 2] / 1000),
           (long long)(took[N * 99 / 100] / 1000));
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

/* ---- a broker that does not answer, topics that are not there ----------- */

START_TEST(closing_does_not_wait_for_a_broker_that_hangs)
{
    struct names names;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 2);
    consumer_open(&a, &names);
    UNTIL(consumer_owns(&a) == 2, (void)consumer_poll(&a, 100));
    broker_freeze();
    int64_t begun = now_ms();
    consumer_close(&a);
    ck_assert_int_lt(now_ms() - begun, 15000);
    broker_thaw();
    ck_assert_uint_eq(a.parts[0][0].revoked, 1);
    producer_close(&producer);
}
END_TEST

/* `deploy/local/toc <args>` on the tests' home. */
static void
toc_local(const char *args)
{
    char command[600];
    const char *root = toc_env("TOC_TEST_ROOT"),
               *home = toc_env("TOC_TEST_HOME");
    ck_assert_msg(root != NULL && home != NULL, "use tests/run");
    toc_format(command, sizeof command,
               "'%s/deploy/local/toc' %s --home '%s' >/dev/null", root, args,
               home);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(a_broker_that_is_killed_and_started_again_is_found)
{
    enum { PARTS = 2 };
    struct names names;
    int64_t offsets[PARTS];
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, PARTS);
    consumer_open(&a, &names);
    a.mark = true;
    send_many(&producer, names.topics[0], PARTS, 0, 10);
    UNTIL(a.n_messages == PARTS * 10, (void)consumer_poll(&a, 100));
    ck_assert_int_eq(toc_bus_consumer_commit(a.bus, true, NULL), TOC_OK);
    toc_local("kill kafka");
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(consumer_poll(&a, 100), 0);
    toc_local("start kafka");
    UNTIL(producer.reports[producer.n_reports - 1].offset == 10, {
        send_text(&producer, names.topics[0], 0, "x", 0);
        (void)!toc_bus_flush(producer.bus, 6000, NULL);
    });
    UNTIL(a.parts[0][0].seen[10] == 1, (void)consumer_poll(&a, 100));
    UNTIL(toc_bus_committed(producer.bus, names.group, names.topics[0], PARTS,
                            1000, offsets, NULL) == TOC_OK &&
              offsets[0] == 11 && offsets[1] == 10,
          (void)consumer_poll(&a, 100));
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

int
main(void)
{
    if (kafka_cannot_run())
        return EXIT_SUCCESS;
    Suite *suite = suite_create("bus consumer");
    TCase *tcase = tcase_create("bus consumer");
    tcase_add_unchecked_fixture(tcase, NULL, broker_thaw);
    tcase_add_checked_fixture(tcase, broker_thaw, NULL);
    tcase_add_test(tcase, a_killed_member_is_replaced);
    tcase_add_test(tcase, wake_ends_a_poll);
    tcase_add_test(tcase, a_message_comes_at_once);
    tcase_add_test(tcase, closing_does_not_wait_for_a_broker_that_hangs);
    tcase_add_test(tcase, a_broker_that_is_killed_and_started_again_is_found);
    tcase_set_timeout(tcase, 100);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
