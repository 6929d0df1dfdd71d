/*
 * Goal: on real servers, hints that come through Kafka become calls and the
 * calls results: once each, never early, with offsets behind the database; also
 * when executors come and go, and when one stops in the middle of a call.
 * Method: an executor (or two) in this process, on a database, topics and a
 * group of its own; the test writes rows and publishes hints as a scheduler
 * would; a handler server counts the fires.
 */
#include "tests/integration/store/fixture.h"

#include "common/bus/kafka/bus_kafka.h"
#include "common/handler/handler.h"
#include "common/invoke/grpc/invoke_grpc.h"
#include "common/model/hint.h"
#include "common/model/spec.h"
#include "executor/executor_runner.h"

#include <stdatomic.h>

#define PARTITIONS 4
#define TASKS_MAX 2000

/* ---- the business ---------------------------------------------------- */

static struct {
    struct toc_handler *handler;
    char target[96];
    struct toc_spec spec;
    atomic_uint fires[TASKS_MAX]; /* by task number */
    atomic_uint total, early;
    atomic_int late_us[TASKS_MAX];
    atomic_bool hold; /* calls wait until it is lifted */
    enum toc_timeout_verdict verdict;
} shop;

static bool
is_let_go(void *arg)
{
    (void)arg;
    return !atomic_load(&shop.hold);
}

static void
on_timeout(void *self, const struct toc_timeout *timeout,
           struct toc_timeout_answer *answer)
{
    int64_t number;

    (void)self;
    ck_assert(toc_parse_i64(timeout->biz_id, 0, TASKS_MAX - 1, &number));
    if (timeout->arrived_ms < timeout->due_ms)
        atomic_fetch_add(&shop.early, 1);
    atomic_store(&shop.late_us[number],
                 (int)(toc_os_wall_ns() / 1000 - timeout->due_ms * 1000));
    atomic_fetch_add(&shop.fires[number], 1);
    atomic_fetch_add(&shop.total, 1);
    (void)toc_eventually(is_let_go, NULL);
    answer->verdict = shop.verdict;
}

static void
shop_open(void)
{
    memset(&shop, 0, sizeof shop);
    OK(toc_handler_start(&(struct toc_handler_options){.listen = "127.0.0.1:0",
                                                       .on_timeout = on_timeout,
                                                       .threads = 8},
                         &shop.handler, err));
    toc_format(shop.target, sizeof shop.target, "grpc://%s",
               toc_handler_address(shop.handler));
    shop.spec = (struct toc_spec){.target = toc_str_of(shop.target),
                                  .retry = toc_retry_default};
}

/* ---- the bus --------------------------------------------------------- */

static struct {
    struct toc_bus_kafka *kafka;
    struct toc_bus *bus;
    char cluster[40], group[64];
    char topics[EXEC_TOPICS][64];
    int64_t sent[PARTITIONS]; /* messages of the normal topic */
} line;

static void
line_open(void)
{
    static const char *const names[EXEC_TOPICS] = {"core", "normal", "low"};
    const char *brokers = toc_env("TOC_KAFKA");

    ck_assert_msg(brokers != NULL, "TOC_KAFKA is not set");
    memset(&line, 0, sizeof line);
    toc_format(line.cluster, sizeof line.cluster, "t%016llx",
               (unsigned long long)toc_rng_u64());
    toc_format(line.group, sizeof line.group, "%s.executor", line.cluster);
    OK(toc_bus_kafka_open(&(struct toc_bus_kafka_options){.brokers = brokers,
                                                          .client_id = "test"},
                          &line.kafka, err));
    line.bus = toc_bus_kafka_port(line.kafka);
    for (size_t i = 0; i < EXEC_TOPICS; i++) {
        int32_t there;
        toc_format(line.topics[i], sizeof line.topics[i], "%s.due.%s",
                   line.cluster, names[i]);
        OK(toc_bus_ensure_topic(line.bus, line.topics[i], PARTITIONS, 10000,
                                &there, err));
    }
}

static void
publish(const struct toc_task *tasks, size_t n, int32_t partition)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf bytes = {0};
    struct toc_hint hints[TOC_HINTS_PER_MESSAGE_MAX];

    for (size_t i = 0; i < n; i++)
        hints[i] = (struct toc_hint){.task = tasks[i], .has_payload = true};
    toc_hint_encode(hints, n, 3, &bytes);
    OK(toc_bus_send(line.bus, line.topics[TOC_PRIORITY_NORMAL], partition,
                    toc_buf_view(&bytes), NULL, err));
    line.sent[partition]++;
    (void)toc_bus_poll(line.bus, 0);
}

static bool
all_committed(void *arg)
{
    int64_t offsets[PARTITIONS];

    (void)arg;
    OK(toc_bus_committed(line.bus, line.group, line.topics[TOC_PRIORITY_NORMAL],
                         PARTITIONS, 10000, offsets, err));
    for (size_t i = 0; i < PARTITIONS; i++)
        if (offsets[i] != line.sent[i])
            return false;
    return true;
}

/* ---- a session that the test ends and begins ------------------------- */

static atomic_bool session_held = true;

static int64_t
session_deadline(void *self)
{
    (void)self;
    return atomic_load(&session_held) ? INT64_MAX : 0;
}

static enum toc_status
session_poll(void *self, int64_t timeout_ms, toc_coord_event_fn *fn, void *arg,
             struct toc_error *reterr)
{
    struct toc_mono now = toc_clock_mono(toc_clock_os());

    (void)self;
    (void)fn;
    (void)arg;
    (void)reterr;
    toc_clock_os_sleep_until(
        toc_mono_add_ms(now, timeout_ms < 100 ? timeout_ms : 100));
    return TOC_OK;
}

static void
session_wake(void *self)
{
    (void)self;
}

static const struct toc_coord_ops session_ops = {.name = "test",
                                                 .poll = session_poll,
                                                 .deadline_boot_ns =
                                                     session_deadline,
                                                 .wake = session_wake};
static struct toc_coord session = {&session_ops, NULL};

/* ---- an executor ----------------------------------------------------- */

struct node {
    struct toc_store_mysql *store;
    struct toc_invoke_grpc *invoke;
    struct toc_consumer_kafka *consumer;
    struct exec_runner *runner;
};

static void
node_start_with(struct node *node, uint32_t id, struct toc_coord *coord)
{
    const char *topics[EXEC_TOPICS];
    struct toc_bus_consumer *port;

    for (size_t i = 0; i < EXEC_TOPICS; i++)
        topics[i] = line.topics[i];
    node->store = open_store(fx.url, 4);
    node->invoke = toc_invoke_grpc_new(
        &(struct toc_invoke_grpc_options){.clock = toc_clock_os()});
    node->runner = exec_runner_new(&(struct exec_runner_options){
        .clock = toc_clock_os(),
        .store = toc_store_mysql_port(node->store),
        .invoke = toc_invoke_grpc_port(node->invoke),
        .coord = coord,
        .node_id = id,
        .lanes = 1,
        .hints_max = 10000,
        .calls_max = 256,
        .target_calls_max = 256,
        .target_queue_max = 1000,
        .attempts_max = 4096,
        .margin_ms = 2000});
    OK(toc_consumer_kafka_open(
        &(struct toc_consumer_kafka_options){
            .brokers = toc_env("TOC_KAFKA"),
            .client_id = "test",
            .group = line.group,
            .topics = topics,
            .n_topics = EXEC_TOPICS,
            .rebalance = exec_lane_rebalance,
            .rebalance_arg = exec_runner_lane(node->runner, 0)},
        &node->consumer, err));
    port = toc_consumer_kafka_port(node->consumer);
    exec_runner_start(node->runner, &port);
}

static void
node_start(struct node *node, uint32_t id)
{
    node_start_with(node, id, NULL);
}

static void
node_stop(struct node *node, int64_t calls_ms)
{
    exec_runner_drain(node->runner);
    toc_consumer_kafka_close(node->consumer);
    exec_runner_finish(node->runner, calls_ms, 2000);
    toc_invoke_grpc_free(node->invoke);
    exec_runner_free(node->runner);
    toc_store_mysql_close(node->store);
}

static uint64_t
counted(struct node *node, size_t offset)
{
    const char *counters = (const void *)exec_runner_counters(node->runner);

    return atomic_load(
        (const _Atomic uint64_t *)(const void *)(counters + offset));
}
#define COUNTED(node, name) counted(node, offsetof(struct exec_counters, name))

/* ---- tasks ----------------------------------------------------------- */

static struct toc_task tasks[TASKS_MAX];
static char biz_ids[TASKS_MAX][16];

/* Tasks first..first+n-1, due from due_ms on, per_sec a second. */
static void
submit(size_t first, size_t n, int64_t due_ms, size_t per_sec)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf spec = {0};
    struct toc_submit items[100];
    struct toc_submit *refs[100];

    toc_spec_encode(&shop.spec, &spec);
    for (size_t at = 0; at < n; at += 100) {
        size_t some = n - at < 100 ? n - at : 100;
        for (size_t i = 0; i < some; i++) {
            size_t k = first + at + i;
            toc_format(biz_ids[k], sizeof biz_ids[k], "%zu", k);
            tasks[k] = make_task("order", biz_ids[k], "",
                                 due_ms + (int64_t)((at + i) * 1000 / per_sec));
            tasks[k].spec = toc_arena_str(&fx.arena, toc_buf_view(&spec));
            if (shop.spec.at_most_once)
                tasks[k].flags = TOC_FLAG_AT_MOST_ONCE;
            items[i] = make_submit(&tasks[k], 1);
            refs[i] = &items[i];
        }
        OK(toc_store_submit(fx.store, refs, some, now_ms(), err));
    }
}

/* As the publisher does, some 30 ms before they are due; one in three twice. */
static void
publish_in_time(size_t first, size_t n)
{
    for (size_t k = first; k < first + n;) {
        size_t some = 1;
        while (some < 20 && k + some < first + n &&
               tasks[k + some].due_ms - tasks[k].due_ms < 5)
            some++;
        toc_clock_os_sleep_until(toc_clock_mono_at(
            toc_clock_os(), (struct toc_wall){tasks[k].due_ms - 30}));
        publish(&tasks[k], some, (int32_t)(k % PARTITIONS));
        if (k % 3 == 0)
            publish(&tasks[k], some, (int32_t)((k + 1) % PARTITIONS));
        k += some;
    }
}

static int64_t
in_state(enum toc_state state)
{
    return raw("SELECT COUNT(*) FROM task_info WHERE status=%d", (int)state);
}

struct wanted {
    enum toc_state state;
    int64_t n;
};

static bool
so_many(void *arg)
{
    struct wanted *wanted = arg;

    return in_state(wanted->state) == wanted->n;
}

static void
wait_state(enum toc_state state, size_t n)
{
    struct wanted wanted = {state, (int64_t)n};

    ck_assert_msg(toc_eventually(so_many, &wanted), "%lld of %zu in state %d",
                  (long long)in_state(state), n, (int)state);
}

static void
check_once_each(size_t n)
{
    ck_assert_uint_eq(atomic_load(&shop.early), 0);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(atomic_load(&shop.fires[i]) == 1, "task %zu: %u fires", i,
                      atomic_load(&shop.fires[i]));
}

static int
by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* For the reader of the log; nothing depends on it. */
static void
show_lateness(size_t n)
{
    static int us[TASKS_MAX];

    for (size_t i = 0; i < n; i++)
        us[i] = atomic_load(&shop.late_us[i]);
    qsort(us, n, sizeof us[0], by_number);
    printf("lateness us: p50 %d p99 %d max %d\n", us[n / 2], us[n * 99 / 100],
           us[n - 1]);
}

static void
begin(void)
{
    setup();
    shop_open();
    line_open();
}

static void
end(void)
{
    toc_bus_kafka_close(line.kafka);
    toc_handler_stop(shop.handler, 1000);
}

/* The group has its partitions once a first task went through. */
static void
warm_up(void)
{
    submit(0, 1, now_ms(), 1);
    publish(&tasks[0], 1, 0);
    wait_state(TOC_STATE_SUCCESS, 1);
}

START_TEST(tasks_are_called_once_and_in_time)
{
    struct node node;

    node_start(&node, 11);
    warm_up();
    submit(1, 1999, now_ms() + 1500, 1000);
    publish_in_time(1, 1999);
    wait_state(TOC_STATE_SUCCESS, 2000);
    check_once_each(2000);
    ck_assert(toc_eventually(all_committed, NULL));
    show_lateness(2000);
    exec_counters_log(exec_runner_counters(node.runner));
    node_stop(&node, 5000);
    end();
}
END_TEST

START_TEST(executors_come_and_go)
{
    struct node first, second, third;

    node_start(&first, 11);
    warm_up();
    submit(1, 1500, now_ms() + 1500, 300);
    node_start(&second, 12); /* rebalances while tasks fall due */
    publish_in_time(1, 500);
    node_start(&third, 13);
    publish_in_time(501, 500);
    node_stop(&first, 5000);
    publish_in_time(1001, 500);
    node_stop(&second, 5000);
    wait_state(TOC_STATE_SUCCESS, 1501);
    check_once_each(1501);
    ck_assert(toc_eventually(all_committed, NULL));
    node_stop(&third, 5000);
    end();
}
END_TEST

START_TEST(unreachable_business_is_tried_again_later)
{
    struct node node;
    struct toc_task row;

    node_start(&node, 11);
    warm_up();
    shop.spec.target = TOC_STR("grpc://127.0.0.1:1");
    submit(1, 1, now_ms() + 100, 1);
    publish(&tasks[1], 1, 2);
    wait_state(TOC_STATE_RETRY, 1);
    row = get_id(tasks[1].id);
    ck_assert_uint_eq(row.attempt, 1);
    ck_assert_int_eq(row.result, TOC_RESULT_UNREACHABLE);
    ck_assert_int_eq(row.due_ms - row.ended_ms, 60000);
    shop.spec.target = TOC_STR("grpcs://127.0.0.1:1");
    submit(2, 1, now_ms() + 100, 1);
    publish(&tasks[2], 1, 2);
    wait_state(TOC_STATE_DEAD, 1);
    row = get_id(tasks[2].id);
    ck_assert_int_eq(row.result, TOC_RESULT_BAD_TARGET);
    node_stop(&node, 5000);
    end();
}
END_TEST

START_TEST(stop_waits_for_a_call)
{
    struct node node;

    node_start(&node, 11);
    warm_up();
    atomic_store(&shop.hold, true);
    submit(1, 1, now_ms() + 50, 1);
    publish(&tasks[1], 1, 0);
    wait_state(TOC_STATE_EXECUTING, 1);
    exec_runner_drain(node.runner);
    toc_consumer_kafka_close(node.consumer);
    node.consumer = NULL;
    ck_assert_int_eq(in_state(TOC_STATE_EXECUTING), 1);
    atomic_store(&shop.hold, false);
    node_stop(&node, 5000);
    ck_assert_int_eq(in_state(TOC_STATE_SUCCESS), 2);
    end();
}
END_TEST

/* A call that does not end is cut off. Its handler may still be at work: the
 * rows stay claimed, and the sweep looks after them when their locks end. */
START_TEST(stop_ends_what_hangs)
{
    struct node node;
    struct toc_task row;

    node_start(&node, 11);
    warm_up();
    atomic_store(&shop.hold, true);
    submit(1, 1, now_ms() + 50, 1);
    publish(&tasks[1], 1, 0);
    shop.spec.at_most_once = true;
    submit(2, 1, now_ms() + 50, 1);
    publish(&tasks[2], 1, 0);
    wait_state(TOC_STATE_EXECUTING, 2);
    node_stop(&node, 300);
    for (int i = 1; i <= 2; i++) {
        row = get_id(tasks[i].id);
        ck_assert_int_eq(row.state, TOC_STATE_EXECUTING);
        ck_assert_int_gt(row.lock_until_ms, now_ms());
    }
    atomic_store(&shop.hold, false);
    end();
}
END_TEST

static bool
is_fit(void *arg)
{
    return exec_runner_is_fit(arg);
}

static bool
is_unfit(void *arg)
{
    return !is_fit(arg);
}

/* One without a session gives its partitions to the other, and takes them again
 * when it has one. */
START_TEST(who_cannot_claim_is_replaced)
{
    struct node first, second;

    atomic_store(&session_held, true);
    node_start_with(&first, 11, &session);
    warm_up();
    node_start(&second, 12);
    atomic_store(&session_held, false);
    ck_assert(toc_eventually(is_unfit, first.runner));
    submit(1, 100, now_ms() + 50, 100);
    publish_in_time(1, 100);
    wait_state(TOC_STATE_SUCCESS, 101);
    ck_assert_uint_ge(COUNTED(&second, won), 100);
    atomic_store(&session_held, true);
    ck_assert(toc_eventually(is_fit, first.runner));
    node_stop(&second, 5000);
    submit(101, 100, now_ms() + 50, 100);
    publish_in_time(101, 100);
    wait_state(TOC_STATE_SUCCESS, 201);
    check_once_each(201);
    ck_assert(toc_eventually(all_committed, NULL));
    node_stop(&first, 5000);
    end();
}
END_TEST

/* A payload beyond what a hint carries, and garbage before it. */
START_TEST(garbage_is_passed)
{
    struct node node;

    node_start(&node, 11);
    warm_up();
    OK(toc_bus_send(line.bus, line.topics[TOC_PRIORITY_NORMAL], 1,
                    TOC_STR("\xff\xff garbage"), NULL, err));
    line.sent[1]++;
    submit(1, 1, now_ms() + 50, 1);
    publish(&tasks[1], 1, 1);
    wait_state(TOC_STATE_SUCCESS, 2);
    ck_assert(toc_eventually(all_committed, NULL));
    ck_assert_uint_eq(COUNTED(&node, garbage), 1);
    node_stop(&node, 5000);
    end();
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {tasks_are_called_once_and_in_time,
                                    executors_come_and_go,
                                    unreachable_business_is_tried_again_later,
                                    stop_waits_for_a_call,
                                    stop_ends_what_hangs,
                                    who_cannot_claim_is_replaced,
                                    garbage_is_passed};

    return run_tests("executor", tests, sizeof tests / sizeof tests[0], 120,
                     begin);
}
