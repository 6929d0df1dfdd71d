/*
 * Goal: committed offsets never go back nor over what is not decided, whatever
 * the group does; nothing is left unconsumed; urgent topics come first.
 * Method: several consumers of one group on a real Kafka, polled in turn from
 * one thread, joining, leaving, dying and freezing with the broker.
 */
#define _GNU_SOURCE
#include "tests/integration/bus/kafka_fixture.h"

#include "common/base/thread.h"

#include <sys/prctl.h>
#include <sys/wait.h>

static struct producer producer;
static struct consumer a, b, c;

static void
poll_both(void)
{
    (void)consumer_poll(&a, 20);
    (void)consumer_poll(&b, 20);
}

START_TEST(takes_everything_from_the_start_and_commits_what_is_marked)
{
    enum { PARTS = 4, N = 50 };
    struct names names;
    int64_t offsets[PARTS];
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, PARTS);
    send_many(&producer, names.topics[0], PARTS, 0, N);
    consumer_open(&a, &names);
    a.mark = true;
    UNTIL(a.n_messages == PARTS * N, (void)consumer_poll(&a, 100));
    ck_assert_int_eq(toc_bus_consumer_commit(a.bus, true, NULL), TOC_OK);
    committed_of(&producer, &names, 0, PARTS, offsets);
    for (int p = 0; p < PARTS; p++)
        ck_assert_int_eq(offsets[p], N);
    /* nothing new to commit is no error */
    ck_assert_int_eq(toc_bus_consumer_commit(a.bus, true, NULL), TOC_OK);
    ck_assert_int_eq(toc_bus_consumer_commit(a.bus, false, NULL), TOC_OK);
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

START_TEST(marks_are_committed_by_themselves)
{
    struct names names;
    int64_t offset = 0;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    send_many(&producer, names.topics[0], 1, 0, 5);
    consumer_open(&a, &names);
    a.mark = true;
    UNTIL(offset == 5, {
        (void)consumer_poll(&a, 100);
        committed_of(&producer, &names, 0, 1, &offset);
    });
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

START_TEST(a_successor_goes_on_behind_the_mark)
{
    struct names names;
    int64_t offset;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    send_many(&producer, names.topics[0], 1, 0, 20);
    consumer_open(&a, &names);
    UNTIL(a.n_messages == 20, (void)consumer_poll(&a, 100));
    toc_bus_consumer_mark(a.bus, 0, 0, 7);
    consumer_close(&a); /* commits what is marked, and no more */
    committed_of(&producer, &names, 0, 1, &offset);
    ck_assert_int_eq(offset, 7);
    consumer_open(&b, &names);
    UNTIL(b.n_messages == 13, (void)consumer_poll(&b, 100));
    ck_assert_int_eq(b.parts[0][0].seen[6], 0);
    ck_assert_int_eq(b.parts[0][0].seen[7], 1);
    consumer_close(&b);
    committed_of(&producer, &names, 0, 1, &offset);
    ck_assert_int_eq(offset, 7);
    producer_close(&producer);
}
END_TEST

START_TEST(marks_that_make_no_sense_are_ignored)
{
    struct names names;
    int64_t offsets[2];
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 2);
    send_many(&producer, names.topics[0], 2, 0, 10);
    consumer_open(&a, &names);
    toc_bus_consumer_mark(a.bus, 0, 0, 5); /* before it is ours */
    UNTIL(a.n_messages == 20, (void)consumer_poll(&a, 100));
    toc_bus_consumer_mark(a.bus, 0, 0, 8);
    toc_bus_consumer_mark(a.bus, 0, 0, 3);  /* back */
    toc_bus_consumer_mark(a.bus, 0, 0, 11); /* over what was handed out */
    toc_bus_consumer_mark(a.bus, 0, 0, INT64_MAX);
    toc_bus_consumer_mark(a.bus, 0, 1, -5);
    toc_bus_consumer_mark(a.bus, 0, 7, 1); /* no such partition */
    toc_bus_consumer_mark(a.bus, 9, 0, 1); /* no such topic */
    toc_bus_consumer_mark(a.bus, -1, 0, 1);
    ck_assert_int_eq(toc_bus_consumer_commit(a.bus, true, NULL), TOC_OK);
    committed_of(&producer, &names, 0, 2, offsets);
    ck_assert_int_eq(offsets[0], 8);
    ck_assert_int_eq(offsets[1], 0);
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

START_TEST(urgent_topics_come_first_and_a_paused_one_does_not_come)
{
    enum { N = 300 };
    struct names names;
    producer_open(&producer, 0);
    names_make(&names, &producer, 3, 2);
    consumer_open_topics(&a, &names, 3);
    UNTIL(consumer_owns(&a) == 6, (void)consumer_poll(&a, 100));
    toc_bus_consumer_pause(a.bus, 0, true);
    toc_bus_consumer_pause(a.bus, 1, true);
    toc_bus_consumer_pause(a.bus, 2, true);
    for (int t = 2; t >= 0; t--)
        send_many(&producer, names.topics[t], 2, 0, N / 2);
    /* until all that was sent has had time to come: the last topic did */
    toc_bus_consumer_pause(a.bus, 0, false);
    UNTIL(a.n_messages == N, (void)consumer_poll(&a, 100));
    ck_assert_uint_eq(consumer_poll(&a, 50), 0);
    toc_bus_consumer_pause(a.bus, 0, true);
    send_many(&producer, names.topics[0], 2, N, N / 2);
    /* what came for a paused topic is there at once; both queues are full */
    toc_bus_consumer_pause(a.bus, 1, false);
    toc_bus_consumer_pause(a.bus, 2, false);
    UNTIL(a.n_messages == 3 * N, (void)consumer_poll(&a, 100));
    for (size_t i = N; i < 2 * N; i++)
        ck_assert_int_eq(a.order[i], 1);
    for (size_t i = 2 * N; i < 3 * N; i++)
        ck_assert_int_eq(a.order[i], 2);
    toc_bus_consumer_pause(a.bus, 0, false);
    UNTIL(a.n_messages == 4 * N, (void)consumer_poll(&a, 100));
    for (int t = 0; t < 3; t++)
        for (int p = 0; p < 2; p++)
            ck_assert_uint_eq(a.parts[t][p].assigned, 1);
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

/* Pausing for longer than the session must not cost the membership. */
START_TEST(a_paused_consumer_stays_a_member)
{
    struct names names;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 2);
    consumer_open(&a, &names);
    UNTIL(consumer_owns(&a) == 2, (void)consumer_poll(&a, 100));
    toc_bus_consumer_pause(a.bus, 0, true);
    send_many(&producer, names.topics[0], 2, 0, 10);
    int64_t until = now_ms() + 5000;
    while (now_ms() < until)
        ck_assert_uint_eq(consumer_poll(&a, until - now_ms()), 0);
    ck_assert_uint_eq(a.parts[0][0].revoked, 0);
    toc_bus_consumer_pause(a.bus, 0, false);
    UNTIL(a.n_messages == 20, (void)consumer_poll(&a, 100));
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

START_TEST(a_second_member_gets_its_share)
{
    enum { PARTS = 8 };
    struct names names;
    int64_t offsets[PARTS];
    producer_open(&producer, 0);
    names_make(&names, &producer, 3, PARTS);
    consumer_open_topics(&a, &names, 3);
    UNTIL(consumer_owns(&a) == 3 * PARTS, (void)consumer_poll(&a, 100));
    for (int t = 0; t < 3; t++)
        send_many(&producer, names.topics[t], PARTS, 0, 10);
    a.mark_in_revoke = true;
    b.mark_in_revoke = true;
    UNTIL(a.n_messages == 3 * PARTS * 10, (void)consumer_poll(&a, 100));
    consumer_open_topics(&b, &names, 3);
    b.mark_in_revoke = true;
    UNTIL(consumer_owns(&a) == 12 && consumer_owns(&b) == 12, poll_both());
    /* evenly within every topic */
    for (int t = 0; t < 3; t++) {
        int ours = 0;
        for (int p = 0; p < PARTS; p++)
            ours += a.parts[t][p].ours;
        ck_assert_int_eq(ours, PARTS / 2);
    }
    /* what was marked inside the revocation was committed before it ended:
     * nothing comes twice */
    committed_of(&producer, &names, 0, PARTS, offsets);
    for (int p = 0; p < PARTS; p++) {
        ck_assert_uint_eq(a.parts[0][p].lost, 0);
        ck_assert_int_eq(offsets[p], 10);
    }
    for (int t = 0; t < 3; t++)
        send_many(&producer, names.topics[t], PARTS, 10, 10);
    UNTIL(a.n_messages + b.n_messages == 3 * PARTS * 20, poll_both());
    for (int t = 0; t < 3; t++)
        for (int p = 0; p < PARTS; p++)
            for (int o = 0; o < 20; o++)
                ck_assert_int_eq(a.parts[t][p].seen[o] + b.parts[t][p].seen[o],
                                 1);
    /* and when one leaves, the other takes all, soon */
    int64_t begun = now_ms();
    consumer_close(&b);
    UNTIL(consumer_owns(&a) == 3 * PARTS, (void)consumer_poll(&a, 20));
    printf("member leaves -> its partitions are ours: %lld ms\n",
           (long long)(now_ms() - begun));
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

/* The committed offsets may only rise, and never over what is not decided. */
struct decided {
    int64_t committed[PARTS_MAX]; /* seen last */
    int64_t decided[PARTS_MAX];   /* everything below, by whomever */
};

static void
check_committed(const struct names *names, int32_t partitions,
                struct decided *decided)
{
    int64_t offsets[PARTS_MAX];
    committed_of(&producer, names, 0, partitions, offsets);
    for (int p = 0; p < partitions; p++) {
        ck_assert_int_ge(offsets[p], decided->committed[p]);
        ck_assert_int_le(offsets[p], decided->decided[p]);
        decided->committed[p] = offsets[p];
    }
}

/* Decides all but the newest three messages of each partition, late. */
static void
decide(struct consumer *consumer, int32_t partitions, struct decided *decided)
{
    for (int32_t p = 0; p < partitions; p++) {
        struct part *part = &consumer->parts[0][p];
        int64_t upto = part->next - 3;
        if (!part->ours || upto <= 0)
            continue;
        if (upto > decided->decided[p])
            decided->decided[p] = upto;
        toc_bus_consumer_mark(consumer->bus, 0, p, upto);
    }
}

START_TEST(offsets_never_go_back_nor_over_through_many_rebalances)
{
    enum { PARTS = 6, ROUNDS = 8, EACH = 20 };
    struct names names;
    struct decided decided = {0};
    int sent = 0;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, PARTS);
    consumer_open(&a, &names);
    for (int round = 0; round < ROUNDS; round++) {
        send_many(&producer, names.topics[0], PARTS, sent, EACH);
        sent += EACH;
        struct consumer *other = round % 2 == 0 ? &b : &c;
        consumer_open(other, &names);
        UNTIL(consumer_owns(other) > 0 && consumer_owns(&a) > 0, {
            (void)consumer_poll(&a, 10);
            (void)consumer_poll(other, 10);
            decide(&a, PARTS, &decided);
            decide(other, PARTS, &decided);
        });
        check_committed(&names, PARTS, &decided);
        /* a mark that comes too late, of what was ours before */
        for (int32_t p = 0; p < PARTS; p++)
            if (!a.parts[0][p].ours)
                toc_bus_consumer_mark(a.bus, 0, p, sent);
        ck_assert_int_eq(toc_bus_consumer_commit(a.bus, true, NULL), TOC_OK);
        check_committed(&names, PARTS, &decided);
        consumer_close(other);
        check_committed(&names, PARTS, &decided);
        UNTIL(consumer_owns(&a) == PARTS, (void)consumer_poll(&a, 10));
    }
    /* then all of it gets done: no partition stands still */
    a.mark = true;
    UNTIL(decided.committed[0] == sent && decided.committed[PARTS - 1] == sent,
          {
              (void)consumer_poll(&a, 100);
              for (int32_t p = 0; p < PARTS; p++) {
                  struct part *part = &a.parts[0][p];
                  if (part->next > decided.decided[p]) {
                      decided.decided[p] = part->next;
                      toc_bus_consumer_mark(a.bus, 0, p, part->next);
                  }
              }
              check_committed(&names, PARTS, &decided);
          });
    for (int p = 0; p < PARTS; p++)
        UNTIL(decided.committed[p] == sent, {
            (void)consumer_poll(&a, 100);
            check_committed(&names, PARTS, &decided);
        });
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

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

START_TEST(a_broker_that_hangs_costs_the_partitions_and_then_gives_them_back)
{
    struct names names;
    int64_t offset;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    send_many(&producer, names.topics[0], 1, 0, 10);
    consumer_open(&a, &names);
    UNTIL(a.n_messages == 10, (void)consumer_poll(&a, 100));
    toc_bus_consumer_mark(a.bus, 0, 0, 4);
    ck_assert_int_eq(toc_bus_consumer_commit(a.bus, true, NULL), TOC_OK);
    broker_freeze();
    toc_bus_consumer_mark(a.bus, 0, 0, 6);
    /* its session runs out although nobody can tell it so */
    UNTIL(a.parts[0][0].lost == 1, (void)consumer_poll(&a, 100));
    toc_bus_consumer_mark(a.bus, 0, 0, 10); /* not ours: ignored */
    ck_assert_int_ne(toc_bus_consumer_commit(a.bus, true, NULL),
                     TOC_INTERNAL); /* whatever it says, in time */
    broker_thaw();
    UNTIL(a.parts[0][0].ours, (void)consumer_poll(&a, 100));
    UNTIL(a.n_messages >= 14, (void)consumer_poll(&a, 100));
    committed_of(&producer, &names, 0, 1, &offset);
    ck_assert_int_ge(offset, 4);
    ck_assert_int_le(offset, 6);
    toc_bus_consumer_mark(a.bus, 0, 0, 10);
    ck_assert_int_eq(toc_bus_consumer_commit(a.bus, true, NULL), TOC_OK);
    committed_of(&producer, &names, 0, 1, &offset);
    ck_assert_int_eq(offset, 10);
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

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

START_TEST(a_topic_that_comes_later_is_taken)
{
    struct names names;
    int32_t n;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    toc_format(names.topics[1], sizeof names.topics[1], "%s.later",
               names.topics[0]);
    consumer_open_topics(&a, &names, 2);
    UNTIL(consumer_owns(&a) == 1, (void)consumer_poll(&a, 100));
    ck_assert_int_eq(toc_bus_ensure_topic(producer.bus, names.topics[1], 2,
                                          ADMIN_MS, &n, NULL),
                     TOC_OK);
    UNTIL(consumer_owns(&a) == 3, (void)consumer_poll(&a, 100));
    send_many(&producer, names.topics[1], 2, 0, 3);
    UNTIL(a.n_messages == 6, (void)consumer_poll(&a, 100));
    consumer_close(&a);
    producer_close(&producer);
}
END_TEST

START_TEST(closing_at_once_works)
{
    struct names names;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    consumer_open(&a, &names); /* before it has joined */
    consumer_close(&a);
    consumer_open(&a, &names);
    (void)consumer_poll(&a, 0);
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
    tcase_add_test(tcase,
                   takes_everything_from_the_start_and_commits_what_is_marked);
    tcase_add_test(tcase, marks_are_committed_by_themselves);
    tcase_add_test(tcase, a_successor_goes_on_behind_the_mark);
    tcase_add_test(tcase, marks_that_make_no_sense_are_ignored);
    tcase_add_test(tcase,
                   urgent_topics_come_first_and_a_paused_one_does_not_come);
    tcase_add_test(tcase, a_paused_consumer_stays_a_member);
    tcase_add_test(tcase, a_second_member_gets_its_share);
    tcase_add_test(tcase,
                   offsets_never_go_back_nor_over_through_many_rebalances);
    tcase_add_test(tcase, a_killed_member_is_replaced);
    tcase_add_test(tcase, wake_ends_a_poll);
    tcase_add_test(tcase, a_message_comes_at_once);
    tcase_add_test(
        tcase,
        a_broker_that_hangs_costs_the_partitions_and_then_gives_them_back);
    tcase_add_test(tcase, closing_does_not_wait_for_a_broker_that_hangs);
    tcase_add_test(tcase, a_broker_that_is_killed_and_started_again_is_found);
    tcase_add_test(tcase, a_topic_that_comes_later_is_taken);
    tcase_add_test(tcase, closing_at_once_works);
    tcase_set_timeout(tcase, 100);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
