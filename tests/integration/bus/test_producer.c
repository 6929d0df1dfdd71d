/*
 * Goal: what is sent is stored once per report, in order; every message is
 * reported exactly once, whatever the broker does; offsets are told rightly.
 * Method: a real Kafka, which is also frozen.
 */
#define _GNU_SOURCE
#include "tests/integration/bus/kafka_fixture.h"

static struct producer producer;

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
    struct toc_error error;
    ck_assert_int_eq(toc_bus_ensure_topic(producer.bus, "no such name!", 1,
                                          ADMIN_MS, &n, &error),
                     TOC_INVALID);
    ck_assert_str_eq(error.source, "kafka");
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

/* ---- a broker that does not answer ------------------------------------- */

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

START_TEST(closing_reports_what_is_not_stored_and_does_not_hang)
{
    struct names names;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    send_many(&producer, names.topics[0], 1, 0, 1);
    broker_freeze();
    for (uintptr_t i = 0; i < 10; i++)
        send_text(&producer, names.topics[0], 0, "x", i);
    (void)toc_bus_poll(producer.bus, 50);
    int64_t begun = now_ms();
    producer_close(&producer);
    ck_assert_int_lt(now_ms() - begun, 10000);
    broker_thaw();
    ck_assert_uint_eq(producer.n_reports, 11);
    for (size_t i = 1; i < 11; i++)
        ck_assert_int_eq(producer.reports[i].st, TOC_CANCELLED);
}
END_TEST

/* Questions have time limits too. */
START_TEST(a_frozen_broker_makes_questions_fail_in_time)
{
    struct names names;
    int64_t offset = -7;
    int32_t n = -7;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    broker_freeze();
    int64_t begun = now_ms();
    ck_assert_int_ne(toc_bus_committed(producer.bus, names.group,
                                       names.topics[0], 1, 500, &offset, NULL),
                     TOC_OK);
    ck_assert_int_ne(toc_bus_end_offset(producer.bus, names.topics[0], 0, 500,
                                        &offset, NULL),
                     TOC_OK);
    ck_assert_int_ne(
        toc_bus_ensure_topic(producer.bus, names.topics[0], 1, 500, &n, NULL),
        TOC_OK);
    ck_assert_int_lt(now_ms() - begun, 6000);
    broker_thaw();
    ck_assert_int_eq(offset, -7);
    ck_assert_int_eq(n, -7);
    UNTIL(toc_bus_end_offset(producer.bus, names.topics[0], 0, 1000, &offset,
                             NULL) == TOC_OK,
          (void)toc_bus_poll(producer.bus, 10));
    ck_assert_int_eq(offset, 0);
    producer_close(&producer);
}
END_TEST

START_TEST(a_broker_that_is_not_there_is_an_error_in_time)
{
    struct toc_bus_kafka *handle;
    int64_t offset = -7, begun = now_ms();
    int32_t n = -7;
    memset(&producer, 0, sizeof producer);
    const struct toc_bus_kafka_options options = {
        .brokers = "127.0.0.1:1",
        .report = producer_report,
        .report_arg = &producer,
    };
    ck_assert_int_eq(toc_bus_kafka_open(&options, &handle, NULL), TOC_OK);
    struct toc_bus *bus = toc_bus_kafka_port(handle);
    ck_assert_int_ne(toc_bus_ensure_topic(bus, "t", 1, 500, &n, NULL), TOC_OK);
    ck_assert_int_ne(toc_bus_committed(bus, "g", "t", 1, 500, &offset, NULL),
                     TOC_OK);
    ck_assert_int_ne(toc_bus_end_offset(bus, "t", 0, 500, &offset, NULL),
                     TOC_OK);
    ck_assert_int_lt(now_ms() - begun, 6000);
    ck_assert_int_eq(toc_bus_send(bus, "t", 0, TOC_STR("x"), (void *)5, NULL),
                     TOC_OK);
    UNTIL(producer.n_reports == 1, (void)toc_bus_poll(bus, 100));
    ck_assert_int_eq(producer.reports[0].st, TOC_DEADLINE);
    ck_assert_uint_eq(producer.reports[0].opaque, 5);
    ck_assert_int_eq(toc_bus_send(bus, "t", 0, TOC_STR("x"), (void *)6, NULL),
                     TOC_OK);
    toc_bus_kafka_close(handle);
    ck_assert_uint_eq(producer.n_reports, 2);
    ck_assert_int_eq(producer.reports[1].st, TOC_CANCELLED);
    ck_assert_int_eq(offset, -7);
    ck_assert_int_eq(n, -7);
}
END_TEST

START_TEST(bad_settings_are_refused)
{
    struct toc_bus_kafka *bus;
    struct toc_consumer_kafka *consumer;
    struct toc_error error;
    const struct toc_bus_kafka_options options = {
        .brokers = brokers(), .queue_max_messages = SIZE_MAX};
    ck_assert_int_eq(toc_bus_kafka_open(&options, &bus, &error), TOC_INVALID);
    const struct toc_consumer_kafka_options consume = {
        .brokers = brokers(),
        .group = "g",
        .topics = &(const char *){"t"},
        .n_topics = 1,
        .session_timeout_ms = INT64_MAX,
    };
    ck_assert_int_eq(toc_consumer_kafka_open(&consume, &consumer, &error),
                     TOC_INVALID);
}
END_TEST

int
main(void)
{
    if (kafka_cannot_run())
        return EXIT_SUCCESS;
    Suite *suite = suite_create("bus producer");
    TCase *tcase = tcase_create("bus producer");
    tcase_add_unchecked_fixture(tcase, NULL, broker_thaw);
    tcase_add_checked_fixture(tcase, broker_thaw, NULL);
    tcase_add_test(tcase, reports_tell_offsets_in_order);
    tcase_add_test(tcase,
                   reports_of_one_partition_come_in_the_order_of_sending);
    tcase_add_test(tcase, a_topic_that_is_there_stays_as_it_is);
    tcase_add_test(tcase,
                   offsets_of_a_group_that_has_committed_nothing_are_the_start);
    tcase_add_test(tcase, what_cannot_be_sent_is_an_error);
    tcase_add_test(tcase, empty_and_binary_messages_are_carried);
    tcase_add_test(tcase, a_full_queue_is_told_and_every_message_reported);
    tcase_add_test(tcase, a_short_standstill_loses_nothing);
    tcase_add_test(tcase, closing_reports_what_is_not_stored_and_does_not_hang);
    tcase_add_test(tcase, a_frozen_broker_makes_questions_fail_in_time);
    tcase_add_test(tcase, a_broker_that_is_not_there_is_an_error_in_time);
    tcase_add_test(tcase, bad_settings_are_refused);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
