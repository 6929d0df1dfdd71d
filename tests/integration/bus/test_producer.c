/*
 * Goal: a broker that is frozen or not there costs a bounded time, and what
 * was sent is reported all the same. (What every backend keeps is in
 * tests/contract/bus.)
 * Method: a real Kafka, which is frozen; an address where none is.
 */
#define _GNU_SOURCE
#include "tests/integration/bus/kafka_fixture.h"

static struct producer producer;

/* ---- a broker that does not answer ------------------------------------- */

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

/* What was sent still goes out, as a flush at the end needs. */
START_TEST(an_interrupted_bus_asks_nothing_and_sends)
{
    struct names names;
    struct toc_error err = {0};
    int64_t offset = -7;
    int32_t n = -7;
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, 1);
    toc_bus_interrupt(producer.bus);
    ck_assert_int_eq(toc_bus_committed(producer.bus, names.group,
                                       names.topics[0], 1, 5000, &offset, &err),
                     TOC_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err.msg, "the process is stopping"));
    ck_assert_int_eq(toc_bus_end_offset(producer.bus, names.topics[0], 0, 5000,
                                        &offset, NULL),
                     TOC_UNAVAILABLE);
    ck_assert_int_eq(
        toc_bus_ensure_topic(producer.bus, names.topics[0], 1, 5000, &n, NULL),
        TOC_UNAVAILABLE);
    send_text(&producer, names.topics[0], 0, "x", 1);
    ck_assert_int_eq(toc_bus_flush(producer.bus, 10000, NULL), TOC_OK);
    ck_assert_uint_eq(producer.n_reports, 1);
    ck_assert_int_eq(producer.reports[0].st, TOC_OK);
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
    tcase_add_test(tcase, closing_reports_what_is_not_stored_and_does_not_hang);
    tcase_add_test(tcase, a_frozen_broker_makes_questions_fail_in_time);
    tcase_add_test(tcase, an_interrupted_bus_asks_nothing_and_sends);
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
