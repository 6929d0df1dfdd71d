/*
 * What every backend of the bus port keeps: what is sent is stored once per
 * report and in order, every message is reported exactly once; committed
 * offsets never go back nor over what is not decided, whatever the group does;
 * nothing is left unconsumed; urgent topics come first.
 *
 * SEEDS_USUAL: how many random sequences there are (tests/support/seeds.h).
 */
#ifndef TOC_TESTS_BUS_SUITE_H
#define TOC_TESTS_BUS_SUITE_H

#include "common/base/buf.h"
#include "tests/contract/bus/bus_clients.h"
#include "tests/support/seeds.h"

static struct producer producer;
static struct consumer a, b, c;

/* ---- producing --------------------------------------------------------- */

START_TEST(reports_tell_offsets_in_order)
{
    enum { N = 200, PARTS = 4 };
    struct names names;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, PARTS);
    send_many(&producer, names.topics[0], PARTS, 0, N);
    ck_assert_uint_eq(producer.n_reports, N * PARTS);
    /* of one partition: message i has offset i, reported in that order */
    int next[N] = {0};
    int64_t last = -1;
    for (size_t i = 0; i < producer.n_reports; i++) {
        const struct report *report = &producer.reports[i];
        ck_assert_int_eq(report->offset, (int64_t)report->opaque);
        next[report->opaque]++;
        last = report->offset > last ? report->offset : last;
    }
    ck_assert_int_eq(last, N - 1);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(next[i], PARTS);
    for (int32_t p = 0; p < PARTS; p++) {
        int64_t end = -1;
        ck_assert_int_eq(toc_bus_end_offset(producer.bus, names.topics[0], p,
                                            ADMIN_MS, &end, NULL),
                         TOC_OK);
        ck_assert_int_eq(end, N);
    }
    producer_close(&producer);
}
END_TEST

START_TEST(reports_of_one_partition_come_in_the_order_of_sending)
{
    enum { N = 3000 };
    struct names names;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    for (uintptr_t i = 0; i < N; i++) {
        send_text(&producer, names.topics[0], 0, "x", i);
        if (i % 64 == 0)
            (void)toc_bus_poll(producer.bus, 0);
    }
    UNTIL(producer.n_reports == N, (void)toc_bus_poll(producer.bus, 100));
    for (size_t i = 0; i < N; i++) {
        ck_assert_uint_eq(producer.reports[i].opaque, i);
        ck_assert_int_eq(producer.reports[i].offset, (int64_t)i);
    }
    producer_close(&producer);
}
END_TEST

START_TEST(a_topic_that_is_there_stays_as_it_is)
{
    struct names names;
    int32_t n = 0;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 3);
    ck_assert_int_eq(toc_bus_ensure_topic(producer.bus, names.topics[0], 8,
                                          ADMIN_MS, &n, NULL),
                     TOC_OK);
    ck_assert_int_eq(n, 3);
    ck_assert_int_eq(toc_bus_ensure_topic(producer.bus, "no such name!", 1,
                                          ADMIN_MS, &n, NULL),
                     TOC_INVALID);
    producer_close(&producer);
}
END_TEST

START_TEST(offsets_of_a_group_that_has_committed_nothing_are_the_start)
{
    struct names names;
    int64_t offsets[3] = {-7, -7, -7};
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 3);
    send_many(&producer, names.topics[0], 3, 0, 5);
    committed_of(&producer, &names, 0, 3, offsets);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(offsets[i], 0);
    producer_close(&producer);
}
END_TEST

START_TEST(what_cannot_be_sent_is_an_error)
{
    struct names names;
    int64_t end = -7;
    struct toc_buf large = {0};
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    toc_buf_reserve(&large, 2000000);
    for (int i = 0; i < 2000000; i++)
        toc_buf_char(&large, 'x');
    ck_assert_int_eq(toc_bus_send(producer.bus, names.topics[0], 0,
                                  toc_buf_view(&large), NULL, NULL),
                     TOC_INVALID);
    toc_buf_done(&large);
    /* a partition that is not there: refused at once, or by a report */
    enum toc_status st = toc_bus_send(producer.bus, names.topics[0], 99,
                                      TOC_STR("x"), (void *)1, NULL);
    if (st == TOC_OK) {
        UNTIL(producer.n_reports == 1, (void)toc_bus_poll(producer.bus, 100));
        st = producer.reports[0].st;
    }
    ck_assert_int_eq(st, TOC_NOT_FOUND);
    ck_assert_int_ne(
        toc_bus_end_offset(producer.bus, names.topics[0], 99, 2000, &end, NULL),
        TOC_OK);
    ck_assert_int_ne(
        toc_bus_end_offset(producer.bus, "t.absent", 0, 2000, &end, NULL),
        TOC_OK);
    ck_assert_int_eq(end, -7);
    producer_close(&producer);
}
END_TEST

START_TEST(empty_and_binary_messages_are_carried)
{
    static struct consumer consumer;
    struct names names;
    const char bytes[] = {'\0', '\xff', 'a', '\0'};
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    ck_assert_int_eq(toc_bus_send(producer.bus, names.topics[0], 0,
                                  (struct toc_str){0}, NULL, NULL),
                     TOC_OK);
    ck_assert_int_eq(toc_bus_send(producer.bus, names.topics[0], 0,
                                  (struct toc_str){bytes, sizeof bytes}, NULL,
                                  NULL),
                     TOC_OK);
    ck_assert_int_eq(toc_bus_flush(producer.bus, PATIENCE_MS, NULL), TOC_OK);
    consumer_open(&consumer, &names);
    struct toc_bus_message got[2];
    size_t n = 0;
    UNTIL(n == 2,
          n += toc_bus_consumer_poll(consumer.bus, got + n, 2 - n, 100));
    ck_assert_uint_eq(got[0].bytes.len, 0);
    ck_assert(toc_str_eq(got[1].bytes, (struct toc_str){bytes, sizeof bytes}));
    for (size_t i = 0; i < 2; i++)
        toc_bus_consumer_release(consumer.bus, &got[i]);
    consumer_close(&consumer);
    producer_close(&producer);
}
END_TEST

START_TEST(a_full_queue_is_told_and_every_message_reported)
{
    enum { MAX = 50 };
    struct names names;
    size_t sent = 0;
    producer_open(&producer, MAX);
    names_make(&names, &producer, 1, 1);
    send_many(&producer, names.topics[0], 1, 0, 1);
    broker_freeze();
    enum toc_status st = TOC_OK;
    while (st == TOC_OK && sent < 10 * MAX) {
        st = toc_bus_send(producer.bus, names.topics[0], 0, TOC_STR("x"),
                          (void *)(1000 + sent), NULL);
        sent += st == TOC_OK;
    }
    ck_assert_int_eq(st, TOC_EXHAUSTED);
    ck_assert_uint_eq(sent, MAX);
    ck_assert_int_eq(toc_bus_flush(producer.bus, 100, NULL), TOC_DEADLINE);
    /* none is kept for ever: refused within the message's time limit */
    UNTIL(producer.n_reports == 1 + MAX, (void)toc_bus_poll(producer.bus, 100));
    for (size_t i = 1; i < producer.n_reports; i++) {
        ck_assert_int_eq(producer.reports[i].st, TOC_DEADLINE);
        ck_assert_uint_eq(producer.reports[i].opaque, 999 + i);
    }
    broker_thaw();
    /* and it goes on */
    send_many(&producer, names.topics[0], 1, 1, 20);
    producer_close(&producer);
}
END_TEST

START_TEST(a_short_standstill_loses_nothing)
{
    enum { N = 100 };
    struct names names;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 2);
    send_many(&producer, names.topics[0], 2, 0, 1);
    broker_freeze();
    for (uintptr_t i = 0; i < N; i++)
        send_text(&producer, names.topics[0], 0, "x", i);
    ck_assert_int_eq(toc_bus_flush(producer.bus, 1000, NULL), TOC_DEADLINE);
    broker_thaw();
    UNTIL(producer.n_reports == 2 + N, (void)toc_bus_poll(producer.bus, 100));
    for (size_t i = 2; i < producer.n_reports; i++) {
        ck_assert_int_eq(producer.reports[i].st, TOC_OK);
        ck_assert_int_eq(producer.reports[i].offset, (int64_t)i - 1);
    }
    producer_close(&producer);
}
END_TEST

/* ---- consuming --------------------------------------------------------- */

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
    while (now_ms() < until) {
        ck_assert_uint_eq(consumer_poll(&a, until - now_ms()), 0);
        time_goes_on();
    }
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

/* ---- at random --------------------------------------------------------- */

enum { RANDOM_PARTS = 4, RANDOM_STEPS = 120 };

struct bus_model {
    int64_t end[RANDOM_PARTS];
    int64_t marked[RANDOM_PARTS];    /* by the consumer there is now; or 0 */
    int64_t committed[RANDOM_PARTS]; /* at least */
};

static void
random_send(struct toc_rng *rng, const struct names *names,
            struct bus_model *model)
{
    int32_t p = (int32_t)toc_rng_below(rng, RANDOM_PARTS);
    int n = 1 + (int)toc_rng_below(rng, 8);
    producer.n_reports = 0;
    for (int i = 0; i < n; i++)
        send_text(&producer, names->topics[0], p, "x", (uintptr_t)i);
    ck_assert_int_eq(toc_bus_flush(producer.bus, PATIENCE_MS, NULL), TOC_OK);
    ck_assert_uint_eq(producer.n_reports, (size_t)n);
    for (size_t i = 0; i < producer.n_reports; i++)
        ck_assert_int_eq(producer.reports[i].offset, model->end[p]++);
}

static size_t
unread(const struct bus_model *model)
{
    size_t n = 0;
    for (int p = 0; p < RANDOM_PARTS; p++) {
        const struct part *part = &a.parts[0][p];
        int64_t next = part->next >= 0 ? part->next : model->committed[p];
        n += (size_t)(model->end[p] - next);
    }
    return n;
}

static void
random_mark(struct toc_rng *rng, struct bus_model *model)
{
    int32_t p = (int32_t)toc_rng_below(rng, RANDOM_PARTS);
    struct part *part = &a.parts[0][p];
    int64_t back = (int64_t)toc_rng_below(rng, 5);
    if (part->next < 0)
        return;
    toc_bus_consumer_mark(a.bus, 0, p, part->next - back);
    /* counts only upwards, and above where this consumer began */
    if (part->next - back > model->committed[p] &&
        part->next - back > model->marked[p])
        model->marked[p] = part->next - back;
}

static void
note_committed(struct bus_model *model)
{
    for (int p = 0; p < RANDOM_PARTS; p++)
        if (model->marked[p] > model->committed[p])
            model->committed[p] = model->marked[p];
}

static void
check_offsets(const struct names *names, const struct bus_model *model)
{
    int64_t offsets[RANDOM_PARTS], end = -1;
    committed_of(&producer, names, 0, RANDOM_PARTS, offsets);
    for (int32_t p = 0; p < RANDOM_PARTS; p++) {
        ck_assert_int_eq(offsets[p], model->committed[p]);
        ck_assert_int_eq(toc_bus_end_offset(producer.bus, names->topics[0], p,
                                            ADMIN_MS, &end, NULL),
                         TOC_OK);
        ck_assert_int_eq(end, model->end[p]);
    }
}

/* consumer_take has looked at the order of what came. */
static void
random_step(struct toc_rng *rng, const struct names *names,
            struct bus_model *model)
{
    uint64_t what = toc_rng_below(rng, 20);
    if (what < 7) {
        random_send(rng, names, model);
    } else if (what < 11) {
        UNTIL(unread(model) == 0, (void)consumer_poll(&a, 100));
    } else if (what < 16) {
        random_mark(rng, model);
    } else if (what < 19) {
        ck_assert_int_eq(toc_bus_consumer_commit(a.bus, true, NULL), TOC_OK);
        note_committed(model);
        check_offsets(names, model);
    } else {
        consumer_close(&a);
        note_committed(model);
        check_offsets(names, model);
        memset(model->marked, 0, sizeof model->marked);
        consumer_open(&a, names);
    }
}

static void
random_sequence(uint64_t seed)
{
    struct toc_rng rng;
    struct names names;
    struct bus_model model = {.end = {0}};
    toc_rng_seed(&rng, seed);
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, RANDOM_PARTS);
    consumer_open(&a, &names);
    for (int step = 0; step < RANDOM_STEPS; step++)
        random_step(&rng, &names, &model);
    UNTIL(unread(&model) == 0, (void)consumer_poll(&a, 100));
    consumer_close(&a);
    producer_close(&producer);
}

START_TEST(random_operations_do_what_the_model_says)
{
    for (uint64_t seed = 1; seed <= seeds_wanted(SEEDS_USUAL); seed++) {
        seed_begins(seed);
        random_sequence(seed);
    }
}
END_TEST

#define BUS_SUITE                                                          \
    reports_tell_offsets_in_order,                                         \
        reports_of_one_partition_come_in_the_order_of_sending,             \
        a_topic_that_is_there_stays_as_it_is,                              \
        offsets_of_a_group_that_has_committed_nothing_are_the_start,       \
        what_cannot_be_sent_is_an_error,                                   \
        empty_and_binary_messages_are_carried,                             \
        a_full_queue_is_told_and_every_message_reported,                   \
        a_short_standstill_loses_nothing,                                  \
        takes_everything_from_the_start_and_commits_what_is_marked,        \
        marks_are_committed_by_themselves,                                 \
        a_successor_goes_on_behind_the_mark,                               \
        marks_that_make_no_sense_are_ignored,                              \
        urgent_topics_come_first_and_a_paused_one_does_not_come,           \
        a_paused_consumer_stays_a_member, a_second_member_gets_its_share,  \
        offsets_never_go_back_nor_over_through_many_rebalances,            \
        a_broker_that_hangs_costs_the_partitions_and_then_gives_them_back, \
        a_topic_that_comes_later_is_taken, closing_at_once_works,          \
        random_operations_do_what_the_model_says

#endif
