/*
 * Goal: the memory backend keeps the port's contract, and fails as it is told.
 * Method: the suite by a simulated clock; then each fault, one at a time; then
 * threads that wait by the real clock.
 */
#include "common/base/thread.h"
#include "common/bus/mem/bus_mem.h"
#include "common/clock/os/clock_os.h"
#include "common/clock/sim/clock_sim.h"

#include <string.h>

static struct toc_clock_sim sim;
static struct toc_bus_mem_world *world;
static struct toc_bus_mem_fate fate; /* of the next message */

static int64_t
now_ms(void)
{
    return toc_clock_mono(&sim.clock).ns / TOC_NS_PER_MS;
}

static void
pass(int64_t ms)
{
    toc_clock_sim_advance_ns(&sim, ms * TOC_NS_PER_MS);
}

static void
time_goes_on(void)
{
    pass(10);
}

#define SEEDS_USUAL 20
#include "tests/contract/bus/bus_suite.h"

static struct toc_bus_mem_fate
take_fate(void *arg, const char *topic, int32_t partition,
          struct toc_str message)
{
    struct toc_bus_mem_fate taken = fate;
    (void)arg;
    (void)topic;
    (void)partition;
    (void)message;
    memset(&fate, 0, sizeof fate);
    return taken;
}

static void
world_open(void)
{
    memset(&fate, 0, sizeof fate);
    toc_clock_sim_init(&sim, (struct toc_wall){1800000000000});
    world = toc_bus_mem_world_new(&(struct toc_bus_mem_world_options){
        .clock = &sim.clock, .fate = take_fate});
}

static void
world_close(void)
{
    toc_bus_mem_world_free(world);
}

static void
producer_open(struct producer *p, size_t queue_max)
{
    memset(p, 0, sizeof *p);
    p->handle = toc_bus_mem_open(
        world, &(struct toc_bus_mem_options){.report = producer_report,
                                             .report_arg = p,
                                             .queue_max_messages = queue_max});
    p->bus = toc_bus_mem_port(p->handle);
}

static void
producer_close(struct producer *p)
{
    toc_bus_mem_close(p->handle);
}

static void
consumer_open_topics(struct consumer *consumer, const struct names *names,
                     int16_t n_topics)
{
    const char *topics[TOPICS_MAX];
    for (int16_t i = 0; i < n_topics; i++)
        topics[i] = names->topics[i];
    memset(consumer, 0, sizeof *consumer);
    consumer->handle = toc_consumer_mem_open(
        world,
        &(struct toc_consumer_mem_options){.group = names->group,
                                           .topics = topics,
                                           .n_topics = n_topics,
                                           .rebalance = consumer_rebalance,
                                           .rebalance_arg = consumer});
    consumer->bus = toc_consumer_mem_port(consumer->handle);
}

static void
consumer_close(struct consumer *consumer)
{
    toc_consumer_mem_close(consumer->handle);
    consumer->handle = NULL;
}

static void
broker_freeze(void)
{
    toc_bus_mem_stop(world, true);
}

static void
broker_thaw(void)
{
    toc_bus_mem_stop(world, false);
}

/* ---- faults -------------------------------------------------------------- */

static struct names names;

static void
begin(int32_t partitions)
{
    producer_open(&producer, 0);
    names_make(&names, &producer, 1, partitions);
    consumer_open(&a, &names);
    UNTIL(consumer_owns(&a) == (size_t)partitions, (void)consumer_poll(&a, 0));
}

static void
end(void)
{
    consumer_close(&a);
    producer_close(&producer);
}

static void
send_one(void)
{
    send_text(&producer, names.topics[0], 0, "x", 1);
    (void)toc_bus_poll(producer.bus, 0);
}

START_TEST(a_message_can_be_lost_doubled_and_late)
{
    begin(1);
    fate.lose = true;
    send_one();
    ck_assert_int_eq(producer.reports[0].st, TOC_OK);
    ck_assert_uint_eq(consumer_poll(&a, 0), 0);
    fate.copies_more = 2;
    send_one();
    ck_assert_int_eq(producer.reports[1].offset, 2);
    ck_assert_uint_eq(consumer_poll(&a, 0), 3);
    fate.delay_ms = 100;
    send_one();
    ck_assert_uint_eq(producer.n_reports, 2);
    ck_assert_int_eq(toc_bus_mem_pump(world), (now_ms() + 100) * TOC_NS_PER_MS);
    send_one(); /* overtakes */
    ck_assert_uint_eq(consumer_poll(&a, 0), 1);
    pass(100);
    ck_assert_uint_eq(consumer_poll(&a, 0), 1);
    (void)toc_bus_poll(producer.bus, 0);
    ck_assert_int_eq(producer.reports[2].offset, 3);
    ck_assert_int_eq(producer.reports[3].offset, 4);
    end();
}
END_TEST

START_TEST(a_message_can_be_refused_or_stored_and_said_not_to_be)
{
    begin(1);
    fate = (struct toc_bus_mem_fate){.lose = true, .report = TOC_UNAVAILABLE};
    send_one();
    fate = (struct toc_bus_mem_fate){.report = TOC_DEADLINE};
    send_one();
    ck_assert_int_eq(producer.reports[0].st, TOC_UNAVAILABLE);
    ck_assert_int_eq(producer.reports[1].st, TOC_DEADLINE);
    ck_assert_int_eq(producer.reports[1].offset, -1);
    ck_assert_uint_eq(consumer_poll(&a, 0), 1);
    end();
}
END_TEST

START_TEST(a_killed_member_is_replaced_when_its_session_ends)
{
    begin(4);
    a.mark = true;
    send_many(&producer, names.topics[0], 4, 0, 10);
    UNTIL(a.n_messages == 40, (void)consumer_poll(&a, 0));
    consumer_open(&b, &names);
    UNTIL(consumer_owns(&a) == 2 && consumer_owns(&b) == 2, poll_both());
    toc_consumer_mem_kill(b.handle);
    pass(1900);
    (void)consumer_poll(&a, 0);
    ck_assert_uint_eq(consumer_owns(&a), 2);
    pass(200);
    for (int i = 0; i < 3; i++)
        (void)consumer_poll(&a, 0);
    ck_assert_uint_eq(consumer_owns(&a), 4);
    end();
}
END_TEST

START_TEST(marks_not_committed_before_a_crash_come_again)
{
    int64_t offset;
    begin(1);
    a.mark = true;
    send_many(&producer, names.topics[0], 1, 0, 10);
    pass(500);
    ck_assert_uint_eq(consumer_poll(&a, 0), 10); /* commits, then takes */
    toc_consumer_mem_kill(a.handle);
    committed_of(&producer, &names, 0, 1, &offset);
    ck_assert_int_eq(offset, 0);
    consumer_open(&a, &names);
    UNTIL(a.n_messages == 10, (void)consumer_poll(&a, 0));
    end();
}
END_TEST

START_TEST(a_member_cut_off_loses_its_partitions_and_gets_them_again)
{
    int64_t offset;
    begin(2);
    send_many(&producer, names.topics[0], 2, 0, 10);
    UNTIL(a.n_messages == 20, (void)consumer_poll(&a, 0));
    toc_consumer_mem_cut(a.handle, true);
    toc_bus_consumer_mark(a.bus, 0, 0, 5);
    ck_assert_int_eq(toc_bus_consumer_commit(a.bus, true, NULL), TOC_DEADLINE);
    pass(1999);
    (void)consumer_poll(&a, 0);
    ck_assert_uint_eq(consumer_owns(&a), 2);
    pass(1);
    (void)consumer_poll(&a, 0);
    ck_assert_uint_eq(consumer_owns(&a), 0);
    ck_assert_uint_eq(a.parts[0][0].lost, 1);
    committed_of(&producer, &names, 0, 1, &offset);
    ck_assert_int_eq(offset, 0);
    toc_consumer_mem_cut(a.handle, false);
    UNTIL(consumer_owns(&a) == 2, (void)consumer_poll(&a, 0));
    UNTIL(a.n_messages == 40, (void)consumer_poll(&a, 0));
    end();
}
END_TEST

START_TEST(a_short_cut_costs_nothing)
{
    begin(2);
    toc_consumer_mem_cut(a.handle, true);
    toc_bus_mem_cut(producer.handle, true);
    send_one();
    pass(1500);
    (void)consumer_poll(&a, 0);
    ck_assert_uint_eq(producer.n_reports, 0);
    toc_consumer_mem_cut(a.handle, false);
    toc_bus_mem_cut(producer.handle, false);
    pass(1500);
    ck_assert_uint_eq(consumer_poll(&a, 0), 1);
    ck_assert_uint_eq(a.parts[0][0].revoked, 0);
    end();
}
END_TEST

/* Eager: all wait for the one that does not poll, for five minutes. */
START_TEST(a_member_that_does_not_poll_holds_all_up)
{
    begin(4);
    consumer_open(&b, &names);
    UNTIL(consumer_owns(&a) == 2 && consumer_owns(&b) == 2, poll_both());
    consumer_open(&c, &names);
    for (int i = 0; i < 100; i++) {
        (void)consumer_poll(&a, 0);
        (void)consumer_poll(&c, 0);
        pass(1000);
    }
    ck_assert_uint_eq(consumer_owns(&a) + consumer_owns(&c), 0);
    pass(200000);
    UNTIL(consumer_owns(&a) == 2 && consumer_owns(&c) == 2, {
        (void)consumer_poll(&a, 0);
        (void)consumer_poll(&c, 0);
    });
    ck_assert_uint_eq(consumer_owns(&b), 2); /* it has not heard yet */
    UNTIL(consumer_owns(&a) + consumer_owns(&b) + consumer_owns(&c) == 4, {
        poll_both();
        (void)consumer_poll(&c, 0);
    });
    ck_assert_uint_eq(b.parts[0][0].lost + b.parts[0][1].lost +
                          b.parts[0][2].lost + b.parts[0][3].lost,
                      2);
    consumer_close(&b);
    consumer_close(&c);
    end();
}
END_TEST

START_TEST(a_topic_made_again_begins_at_its_start)
{
    int64_t offset;
    begin(1);
    a.mark = true;
    send_many(&producer, names.topics[0], 1, 0, 10);
    UNTIL(a.n_messages == 10, (void)consumer_poll(&a, 0));
    ck_assert_int_eq(toc_bus_consumer_commit(a.bus, true, NULL), TOC_OK);
    toc_bus_mem_recreate_topic(world, names.topics[0], true);
    committed_of(&producer, &names, 0, 1, &offset);
    ck_assert_int_eq(offset, 10); /* beyond the end */
    send_text(&producer, names.topics[0], 0, "new", 1);
    a.parts[0][0].next = -1;
    ck_assert_uint_eq(consumer_poll(&a, 0), 1);
    committed_of(&producer, &names, 0, 1, &offset);
    ck_assert_int_eq(offset, 0);
    ck_assert_int_eq(toc_bus_consumer_commit(a.bus, true, NULL), TOC_OK);
    committed_of(&producer, &names, 0, 1, &offset);
    ck_assert_int_eq(offset, 1);
    end();
}
END_TEST

START_TEST(a_deleted_topic_is_taken_away)
{
    int64_t offset = -7;
    int32_t n = 0;
    begin(2);
    toc_bus_mem_delete_topic(world, names.topics[0]);
    (void)consumer_poll(&a, 0);
    (void)consumer_poll(&a, 0);
    ck_assert_uint_eq(consumer_owns(&a), 0);
    ck_assert_int_eq(toc_bus_committed(producer.bus, names.group,
                                       names.topics[0], 1, 0, &offset, NULL),
                     TOC_NOT_FOUND);
    ck_assert_int_eq(offset, -7);
    send_one();
    ck_assert_int_eq(producer.reports[0].st, TOC_NOT_FOUND);
    ck_assert_int_eq(
        toc_bus_ensure_topic(producer.bus, names.topics[0], 3, 0, &n, NULL),
        TOC_OK);
    UNTIL(consumer_owns(&a) == 3, (void)consumer_poll(&a, 0));
    end();
}
END_TEST

START_TEST(a_log_is_bounded)
{
    world_close();
    world = toc_bus_mem_world_new(&(struct toc_bus_mem_world_options){
        .clock = &sim.clock, .log_max = 10, .message_max = 5});
    begin(1);
    send_many(&producer, names.topics[0], 1, 0, 11);
    ck_assert_uint_eq(consumer_poll(&a, 0), 6);
    ck_assert_uint_eq(a.parts[0][0].seen[4], 0);
    ck_assert_uint_eq(a.parts[0][0].seen[5], 1);
    ck_assert_int_eq(toc_bus_send(producer.bus, names.topics[0], 0,
                                  TOC_STR("123456"), NULL, NULL),
                     TOC_INVALID);
    end();
}
END_TEST

START_TEST(what_a_killed_producer_sent_still_arrives)
{
    begin(1);
    fate.delay_ms = 50;
    send_one();
    toc_bus_mem_kill(producer.handle);
    pass(50);
    ck_assert_uint_eq(consumer_poll(&a, 0), 1);
    ck_assert_uint_eq(producer.n_reports, 0);
    producer_open(&producer, 0);
    fate.delay_ms = 50;
    send_one();
    producer_close(&producer);
    ck_assert_uint_eq(producer.n_reports, 1);
    ck_assert_int_eq(producer.reports[0].st, TOC_CANCELLED);
    pass(50);
    ck_assert_uint_eq(consumer_poll(&a, 0), 1);
    consumer_close(&a);
}
END_TEST

START_TEST(an_interrupted_bus_answers_no_questions)
{
    int64_t offset = -7;
    begin(1);
    toc_bus_interrupt(producer.bus);
    ck_assert_int_eq(toc_bus_end_offset(producer.bus, names.topics[0], 0, 1000,
                                        &offset, NULL),
                     TOC_UNAVAILABLE);
    ck_assert_int_eq(offset, -7);
    end();
}
END_TEST

/* ---- threads --------------------------------------------------------------
 */

struct sender {
    struct toc_bus *bus;
    struct toc_thread thread;
    enum toc_status st;
};

static void
send_main(void *arg)
{
    struct sender *sender = arg;
    for (int i = 0; i < 1000 && sender->st == TOC_OK; i++)
        sender->st = toc_bus_send(sender->bus, names.topics[0], i % 4,
                                  TOC_STR("x"), NULL, NULL);
    if (sender->st == TOC_OK)
        sender->st = toc_bus_flush(sender->bus, 10000, NULL);
}

static void
wake_main(void *arg)
{
    toc_bus_consumer_wake(arg);
}

START_TEST(threads_wait_for_messages_and_wakes)
{
    struct sender sender = {.st = TOC_OK};
    struct toc_thread waker = {0};
    world_close();
    world = toc_bus_mem_world_new(&(struct toc_bus_mem_world_options){
        .clock = toc_clock_os(), .threads = true});
    begin(4);
    sender.bus = producer.bus;
    toc_thread_start(&sender.thread, "sender", send_main, &sender);
    while (a.n_messages < 1000)
        (void)consumer_poll(&a, 60000); /* the test's time limit ends it */
    toc_thread_join(&sender.thread);
    ck_assert_int_eq(sender.st, TOC_OK);
    toc_thread_start(&waker, "waker", wake_main, a.bus);
    ck_assert_uint_eq(consumer_poll(&a, 60000), 0);
    toc_thread_join(&waker);
    end();
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {
        BUS_SUITE,
        a_message_can_be_lost_doubled_and_late,
        a_message_can_be_refused_or_stored_and_said_not_to_be,
        a_killed_member_is_replaced_when_its_session_ends,
        marks_not_committed_before_a_crash_come_again,
        a_member_cut_off_loses_its_partitions_and_gets_them_again,
        a_short_cut_costs_nothing,
        a_member_that_does_not_poll_holds_all_up,
        a_topic_made_again_begins_at_its_start,
        a_deleted_topic_is_taken_away,
        a_log_is_bounded,
        what_a_killed_producer_sent_still_arrives,
        an_interrupted_bus_answers_no_questions,
        threads_wait_for_messages_and_wakes,
    };
    return toc_check_run_with("bus contract: memory", tests,
                              sizeof tests / sizeof tests[0], world_open,
                              world_close);
}
