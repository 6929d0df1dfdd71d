/*
 * Goal: each operation can fail without effect, or take effect and lose its
 * answer; results are then untouched; every message is reported once.
 * Method: the decorators on the memory backend, a table of faults.
 */
#include "common/bus/fault/bus_fault.h"
#include "common/bus/mem/bus_mem.h"
#include "common/clock/sim/clock_sim.h"
#include "tests/support/fault_table.h"
#include "tests/support/toc_check.h"

#include <string.h>

enum { WAIT_MS = 10, BATCH = 8 };

static struct toc_clock_sim sim;
static struct toc_bus_mem_world *world;
static struct toc_bus_mem *mem;
static struct toc_consumer_mem *mem_consumer;
static struct toc_bus_fault fault;
static struct toc_consumer_fault consumer;
static struct fault_table table;

static struct {
    size_t n;
    void *opaque;
    enum toc_status st;
    int64_t offset;
} told;

static void
note_report(void *arg, void *opaque, enum toc_status st, int64_t offset)
{
    ck_assert_ptr_eq(arg, &told);
    told.n++;
    told.opaque = opaque;
    told.st = st;
    told.offset = offset;
}

static void
setup(void)
{
    const char *const topics[] = {"t"};
    int32_t n = 0;

    memset(&table, 0, sizeof table);
    memset(&told, 0, sizeof told);
    toc_clock_sim_init(&sim, (struct toc_wall){1800000000000});
    world = toc_bus_mem_world_new(
        &(struct toc_bus_mem_world_options){.clock = &sim.clock});
    toc_bus_fault_init(&fault, fault_table_plan(&table), note_report, &told);
    mem = toc_bus_mem_open(
        world, &(struct toc_bus_mem_options){.report = toc_bus_fault_report,
                                             .report_arg = &fault});
    fault.inner = toc_bus_mem_port(mem);
    ck_assert_int_eq(toc_bus_ensure_topic(fault.inner, "t", 1, 0, &n, NULL),
                     TOC_OK);
    mem_consumer = toc_consumer_mem_open(
        world, &(struct toc_consumer_mem_options){
                   .group = "g", .topics = topics, .n_topics = 1});
    toc_consumer_fault_init(&consumer, toc_consumer_mem_port(mem_consumer),
                            &table.plan);
}

static void
teardown(void)
{
    toc_consumer_mem_close(mem_consumer);
    toc_bus_mem_close(mem);
    toc_bus_fault_done(&fault);
    toc_bus_mem_world_free(world);
}

static enum toc_status
send(void)
{
    enum toc_status st =
        toc_bus_send(&fault.port, "t", 0, TOC_STR("x"), (void *)7, NULL);

    (void)toc_bus_poll(&fault.port, 0);
    return st;
}

static size_t
take(void)
{
    struct toc_bus_message messages[BATCH];
    size_t n = toc_bus_consumer_poll(&consumer.port, messages, BATCH, 0);

    for (size_t i = 0; i < n; i++)
        toc_bus_consumer_release(&consumer.port, &messages[i]);
    return n;
}

static int64_t
end_offset(void)
{
    int64_t end = -1;

    ck_assert_int_eq(toc_bus_end_offset(fault.inner, "t", 0, 0, &end, NULL),
                     TOC_OK);
    return end;
}

START_TEST(a_message_can_be_refused_or_stored_without_its_sender_knowing)
{
    table.rows[0] = (struct fault_row){"send", 1, TOC_FAULT_FAIL};
    table.rows[1] = (struct fault_row){"send", 2, TOC_FAULT_LOSE_ACK};
    ck_assert_int_eq(send(), TOC_UNAVAILABLE);
    ck_assert_uint_eq(told.n, 0);
    ck_assert_int_eq(end_offset(), 0);
    ck_assert_int_eq(send(), TOC_OK);
    ck_assert_uint_eq(told.n, 1);
    ck_assert_int_eq(told.st, TOC_UNAVAILABLE);
    ck_assert_int_eq(told.offset, -1);
    ck_assert_int_eq(end_offset(), 1);
    ck_assert_int_eq(send(), TOC_OK);
    ck_assert_int_eq(told.st, TOC_OK);
    ck_assert_int_eq(told.offset, 1);
    ck_assert_ptr_eq(told.opaque, (void *)7);
    ck_assert_uint_eq(fault_table_count(&table, "send")->ended, 2);
}
END_TEST

/* A crash between sending and its report leaks nothing. */
START_TEST(what_is_never_reported_is_freed)
{
    toc_bus_mem_cut(mem, true);
    ck_assert_int_eq(send(), TOC_OK);
    ck_assert_uint_eq(told.n, 0);
    toc_bus_mem_kill(mem);
    mem = NULL;
}
END_TEST

START_TEST(questions_leave_results_alone)
{
    int64_t offset = -7;
    int32_t n = -7;

    table.rows[0] = (struct fault_row){"end_offset", 0, TOC_FAULT_LOSE_ACK};
    table.rows[1] = (struct fault_row){"committed", 1, TOC_FAULT_LOSE_ACK};
    table.rows[2] = (struct fault_row){"committed", 2, TOC_FAULT_FAIL};
    table.rows[3] = (struct fault_row){"ensure_topic", 1, TOC_FAULT_LOSE_ACK};
    table.rows[4] = (struct fault_row){"flush", 1, TOC_FAULT_LOSE_ACK};
    ck_assert_int_eq(toc_bus_end_offset(&fault.port, "t", 0, 0, &offset, NULL),
                     TOC_UNAVAILABLE);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            toc_bus_committed(&fault.port, "g", "t", 1, WAIT_MS, &offset, NULL),
            TOC_UNAVAILABLE);
    ck_assert_int_eq(
        toc_bus_ensure_topic(&fault.port, "u", 3, WAIT_MS, &n, NULL),
        TOC_UNAVAILABLE);
    ck_assert_int_eq(n, -7);
    ck_assert_int_eq(toc_bus_ensure_topic(&fault.port, "u", 5, 0, &n, NULL),
                     TOC_OK);
    ck_assert_int_eq(n, 3); /* it was made all the same */
    ck_assert_int_eq(toc_bus_flush(&fault.port, 0, NULL), TOC_UNAVAILABLE);
    ck_assert_int_eq(offset, -7);
    ck_assert_int_eq(
        toc_bus_committed(&fault.port, "g", "t", 1, 0, &offset, NULL), TOC_OK);
    ck_assert_int_eq(offset, 0);
}
END_TEST

START_TEST(messages_can_stay_away_or_be_lost_on_the_way)
{
    table.rows[0] = (struct fault_row){"consumer_poll", 1, TOC_FAULT_FAIL};
    table.rows[1] = (struct fault_row){"consumer_poll", 2, TOC_FAULT_LOSE_ACK};
    ck_assert_int_eq(send(), TOC_OK);
    ck_assert_uint_eq(take(), 0);
    ck_assert_uint_eq(take(), 0);
    ck_assert_int_eq(send(), TOC_OK);
    ck_assert_uint_eq(take(), 1);
}
END_TEST

START_TEST(marks_and_commits_can_go_wrong)
{
    int64_t offset = -7;

    table.rows[0] = (struct fault_row){"mark", 1, TOC_FAULT_FAIL};
    table.rows[1] = (struct fault_row){"commit", 2, TOC_FAULT_FAIL};
    table.rows[2] = (struct fault_row){"commit", 3, TOC_FAULT_LOSE_ACK};
    table.rows[3] = (struct fault_row){"join", 1, TOC_FAULT_FAIL};
    ck_assert_int_eq(send(), TOC_OK);
    ck_assert_uint_eq(take(), 1);
    toc_bus_consumer_mark(&consumer.port, 0, 0, 1);
    ck_assert_int_eq(toc_bus_consumer_commit(&consumer.port, true, NULL),
                     TOC_OK);
    ck_assert_int_eq(
        toc_bus_committed(fault.inner, "g", "t", 1, 0, &offset, NULL), TOC_OK);
    ck_assert_int_eq(offset, 0);
    toc_bus_consumer_mark(&consumer.port, 0, 0, 1);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(toc_bus_consumer_commit(&consumer.port, true, NULL),
                         TOC_UNAVAILABLE);
        ck_assert_int_eq(
            toc_bus_committed(fault.inner, "g", "t", 1, 0, &offset, NULL),
            TOC_OK);
        ck_assert_int_eq(offset, i);
    }
    ck_assert_int_eq(toc_bus_consumer_join(&consumer.port, false, NULL),
                     TOC_UNAVAILABLE);
    ck_assert_int_eq(toc_bus_consumer_join(&consumer.port, true, NULL), TOC_OK);
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {
        a_message_can_be_refused_or_stored_without_its_sender_knowing,
        what_is_never_reported_is_freed,
        questions_leave_results_alone,
        messages_can_stay_away_or_be_lost_on_the_way,
        marks_and_commits_can_go_wrong,
    };

    return toc_check_run_with("bus faults", tests,
                              sizeof tests / sizeof tests[0], setup, teardown);
}
