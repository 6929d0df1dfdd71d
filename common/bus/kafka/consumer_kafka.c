/*
 * The consumer. The partitions of a topic are led into one queue per topic,
 * so that urgent topics are taken first and a topic that is paused is simply
 * not taken from (what librdkafka fetched for it stays, bounded, and needs no
 * second fetch). All queues ring one pipe, which poll waits on; wake rings it
 * too.
 *
 * Assignment is eager and round robin. Round robin spreads the partitions of
 * every topic evenly over the members, of which a process has several; range
 * would leave members without work. The cooperative assignor would keep
 * fetching through a rebalance, but the one of librdkafka 2.0 can loop for
 * ever (librdkafka issue 4783), and a partition that stands still costs more
 * than a short pause: after it, fetching goes on at the committed offset.
 */
#include "common/bus/kafka/bus_kafka.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/os_time.h"
#include "common/base/str.h"
#include "common/bus/assigned.h"
#include "common/bus/kafka/kafka_common.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Of the broker: group.min.session.timeout.ms is not above it. */
#define SESSION_TIMEOUT_MS 2000
#define COMMIT_MS 2000
#define CLOSE_MS 3000
#define CLOSE_SLICE_MS 100

struct topic {
    char *name;
    rd_kafka_queue_t *queue;
    bool paused;
};

struct toc_consumer_kafka {
    struct toc_bus_consumer port;
    rd_kafka_t *kafka;
    struct topic *topics;
    int16_t n_topics;
    rd_kafka_queue_t *control; /* rebalances and errors */
    toc_bus_rebalance_fn *rebalance;
    void *rebalance_arg;
    struct toc_bus_assigned assigned;
    int bell[2]; /* a pipe: rung by librdkafka's threads and by wake */
    atomic_bool woken;
};

static const struct toc_kafka_setting settings[] = {
    {"partition.assignment.strategy", "roundrobin"},
    /* only what is marked is committed */
    {"enable.auto.commit", "true"},
    {"enable.auto.offset.store", "false"},
    {"auto.commit.interval.ms", "500"},
    {"auto.offset.reset", "earliest"},
    {"allow.auto.create.topics", "false"},
    {"enable.partition.eof", "false"},
    /* a member learns of a rebalance by its heartbeat, and all wait for it */
    {"heartbeat.interval.ms", "300"},
    {"max.poll.interval.ms", "300000"},
    {"fetch.wait.max.ms", "500"},
    {"fetch.error.backoff.ms", "100"},
    /* topics that come later or are made again are seen within this time */
    {"topic.metadata.refresh.interval.ms", "5000"},
    /* per topic queue. Above these fetching stops for up to a second, so they
     * hold more than is worked off in that time. */
    {"queued.min.messages", "10000"},
    {"queued.max.messages.kbytes", "32768"},
};

static int16_t
topic_index(const struct toc_consumer_kafka *consumer, const char *name)
{
    for (int16_t i = 0; i < consumer->n_topics; i++)
        if (strcmp(consumer->topics[i].name, name) == 0)
            return i;
    return -1;
}

/* ---- the bell -------------------------------------------------------- */

static enum toc_status
bell_open(struct toc_consumer_kafka *consumer, struct toc_error *reterr)
{
    bool good = pipe(consumer->bell) == 0;
    if (!good)
        consumer->bell[0] = consumer->bell[1] = -1;
    for (int i = 0; good && i < 2; i++)
        good = fcntl(consumer->bell[i], F_SETFL, O_NONBLOCK) == 0 &&
               fcntl(consumer->bell[i], F_SETFD, FD_CLOEXEC) == 0;
    if (good)
        return TOC_OK;
    int err = errno;
    return toc_error_set(reterr, TOC_EXHAUSTED, "kafka", err, "pipe: %s",
                         toc_errno_text(err));
}

static void
bell_close(struct toc_consumer_kafka *consumer)
{
    for (int i = 0; i < 2; i++)
        if (consumer->bell[i] >= 0)
            (void)close(consumer->bell[i]);
}

static void
bell_clear(const struct toc_consumer_kafka *consumer)
{
    char bytes[256];
    while (read(consumer->bell[0], bytes, sizeof bytes) > 0)
        continue;
}

static void
bell_ring(const struct toc_consumer_kafka *consumer)
{
    /* a full pipe rings as well */
    ssize_t n = write(consumer->bell[1], "w", 1);
    (void)n;
}

static void
bell_wait(const struct toc_consumer_kafka *consumer, int64_t timeout_ms)
{
    struct pollfd fd = {.fd = consumer->bell[0], .events = POLLIN};
    (void)poll(&fd, 1, toc_kafka_ms(timeout_ms));
}

/* ---- commits --------------------------------------------------------- */

/* Commits the list, or all that is marked if it is NULL, and waits. */
static rd_kafka_resp_err_t
commit_wait(struct toc_consumer_kafka *consumer,
            const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(consumer->kafka);
    rd_kafka_resp_err_t err =
        rd_kafka_commit_queue(consumer->kafka, list, queue, NULL, NULL);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, COMMIT_MS);
        err = event == NULL ? RD_KAFKA_RESP_ERR__TIMED_OUT
                            : rd_kafka_event_error(event);
        if (event != NULL)
            rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    return err == RD_KAFKA_RESP_ERR__NO_OFFSET ? RD_KAFKA_RESP_ERR_NO_ERROR
                                               : err;
}

/* What is marked of the partitions that go. */
static void
commit_revoked(struct toc_consumer_kafka *consumer,
               const rd_kafka_topic_partition_list_t *revoked)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(revoked->cnt);
    for (int i = 0; i < revoked->cnt; i++) {
        const rd_kafka_topic_partition_t *at = &revoked->elems[i];
        const struct toc_bus_part *part = toc_bus_assigned_find(
            &consumer->assigned, topic_index(consumer, at->topic),
            at->partition);
        if (part != NULL && part->marked >= 0)
            rd_kafka_topic_partition_list_add(list, at->topic, at->partition)
                ->offset = part->marked;
    }
    if (list->cnt > 0) {
        rd_kafka_resp_err_t err = commit_wait(consumer, list);
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
            TOC_LOG(WARN, "kafka.commit_failed",
                    F_STR("error", rd_kafka_err2name(err)),
                    F_MSG("work before a rebalance may be seen again"));
    }
    rd_kafka_topic_partition_list_destroy(list);
}

/* ---- rebalance ------------------------------------------------------- */

static void
tell(struct toc_consumer_kafka *consumer, enum toc_bus_event_kind kind,
     int16_t topic, int32_t partition, bool lost)
{
    if (consumer->rebalance != NULL)
        consumer->rebalance(consumer->rebalance_arg, kind, topic, partition,
                            lost);
}

static void
lead_to_topic(struct toc_consumer_kafka *consumer, const char *name,
              int16_t topic, int32_t partition)
{
    rd_kafka_queue_t *queue =
        rd_kafka_queue_get_partition(consumer->kafka, name, partition);
    if (queue == NULL)
        return; /* then its messages come by the control queue */
    rd_kafka_queue_forward(queue, consumer->topics[topic].queue);
    rd_kafka_queue_destroy(queue);
}

static void
take_assigned(struct toc_consumer_kafka *consumer,
              const rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *at = &list->elems[i];
        int16_t topic = topic_index(consumer, at->topic);
        if (topic < 0)
            continue;
        lead_to_topic(consumer, at->topic, topic, at->partition);
        toc_bus_assigned_add(&consumer->assigned, topic, at->partition);
        tell(consumer, TOC_BUS_ASSIGNED, topic, at->partition, false);
    }
}

static void
give_revoked(struct toc_consumer_kafka *consumer,
             const rd_kafka_topic_partition_list_t *list, bool lost)
{
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *at = &list->elems[i];
        int16_t topic = topic_index(consumer, at->topic);
        if (toc_bus_assigned_find(&consumer->assigned, topic, at->partition))
            tell(consumer, TOC_BUS_REVOKED, topic, at->partition, lost);
    }
    if (!lost)
        commit_revoked(consumer, list);
    for (int i = 0; i < list->cnt; i++)
        toc_bus_assigned_remove(&consumer->assigned,
                                topic_index(consumer, list->elems[i].topic),
                                list->elems[i].partition);
}

/* Thread: the consumer's, inside poll and close. */
static void
on_rebalance(rd_kafka_t *kafka, rd_kafka_resp_err_t err,
             rd_kafka_topic_partition_list_t *list, void *opaque)
{
    struct toc_consumer_kafka *consumer = opaque;
    bool assign = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    TOC_LOG(DEBUG, "kafka.rebalance",
            F_STR("what", assign ? "assigned" : "revoked"),
            F_INT("partitions", list->cnt));
    if (assign)
        take_assigned(consumer, list);
    else
        give_revoked(consumer, list, rd_kafka_assignment_lost(kafka) != 0);
    rd_kafka_resp_err_t rc = rd_kafka_assign(kafka, assign ? list : NULL);
    if (rc != RD_KAFKA_RESP_ERR_NO_ERROR)
        TOC_LOG(WARN, "kafka.assign_failed",
                F_STR("error", rd_kafka_err2name(rc)));
}

/* ---- poll ------------------------------------------------------------ */

/* The committed offset follows a log that begins anew: librdkafka commits a
 * mark only above what it knows as committed. Nothing undecided is below. */
static void
begin_anew(struct toc_consumer_kafka *consumer, int16_t topic,
           int32_t partition, int64_t offset)
{
    const char *name = consumer->topics[topic].name;
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, name, partition)->offset = offset;
    rd_kafka_resp_err_t err = rd_kafka_commit(consumer->kafka, list, 1);
    rd_kafka_topic_partition_list_destroy(list);
    TOC_LOG(WARN, "kafka.log_anew", F_STR("topic", name),
            F_INT("partition", partition), F_INT("offset", offset),
            F_STR("commit", rd_kafka_err2name(err)),
            F_MSG("offsets go back: the topic was made again"));
}

/* True when the message is for the caller, who releases it. */
static bool
hand_out(struct toc_consumer_kafka *consumer, rd_kafka_message_t *from,
         struct toc_bus_message *to)
{
    if (from->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        TOC_LOG(WARN, "kafka.consumer_error",
                F_STR("error", rd_kafka_err2name(from->err)),
                F_MSG(rd_kafka_message_errstr(from)));
        return false;
    }
    int16_t topic = topic_index(consumer, rd_kafka_topic_name(from->rkt));
    enum toc_bus_take taken = toc_bus_assigned_take(
        &consumer->assigned, topic, from->partition, from->offset);
    if (taken == TOC_BUS_NOT_OURS)
        return false;
    if (taken == TOC_BUS_ANEW)
        begin_anew(consumer, topic, from->partition, from->offset);
    *to = (struct toc_bus_message){
        .topic = topic,
        .partition = from->partition,
        .offset = from->offset,
        .bytes = {from->payload, from->len},
        .handle = from,
    };
    return true;
}

/* Takes what is there of one queue, without waiting. */
static size_t
take_from(struct toc_consumer_kafka *consumer, rd_kafka_queue_t *queue,
          struct toc_bus_message *messages, size_t max)
{
    size_t n = 0;
    while (n < max) {
        rd_kafka_message_t *message =
            queue == NULL ? rd_kafka_consumer_poll(consumer->kafka, 0)
                          : rd_kafka_consume_queue(queue, 0);
        if (message == NULL)
            break;
        if (hand_out(consumer, message, &messages[n]))
            n++;
        else
            rd_kafka_message_destroy(message);
    }
    return n;
}

static size_t
take(struct toc_consumer_kafka *consumer, struct toc_bus_message *messages,
     size_t max)
{
    /* rebalances first, so that what is handed out is ours */
    size_t n = take_from(consumer, NULL, messages, max);
    for (int16_t i = 0; i < consumer->n_topics && n < max; i++)
        if (!consumer->topics[i].paused)
            n += take_from(consumer, consumer->topics[i].queue, messages + n,
                           max - n);
    return n;
}

static size_t
op_poll(void *self, struct toc_bus_message *messages, size_t max,
        int64_t timeout_ms)
{
    struct toc_consumer_kafka *consumer = self;
    int64_t until_ns = toc_os_mono_ns() + timeout_ms * 1000000;
    for (;;) {
        /* before looking: what comes while we look rings again */
        bell_clear(consumer);
        size_t n = take(consumer, messages, max);
        bool woken = atomic_exchange(&consumer->woken, false);
        int64_t left_ns = until_ns - toc_os_mono_ns();
        if (n > 0 || woken || left_ns <= 0 || max == 0)
            return n;
        bell_wait(consumer, left_ns / 1000000 + 1);
    }
}

/* ---- the other operations -------------------------------------------- */

static void
op_release(void *self, struct toc_bus_message *message)
{
    (void)self;
    if (message->handle != NULL)
        rd_kafka_message_destroy(message->handle);
    message->handle = NULL;
    message->bytes = (struct toc_str){0};
}

static void
op_mark(void *self, int16_t topic, int32_t partition, int64_t next_offset)
{
    struct toc_consumer_kafka *consumer = self;
    if (!toc_bus_assigned_mark(&consumer->assigned, topic, partition,
                               next_offset))
        return;
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, consumer->topics[topic].name,
                                      partition)
        ->offset = next_offset;
    /* refused when it is not ours any more, which is right */
    (void)rd_kafka_offsets_store(consumer->kafka, list);
    rd_kafka_topic_partition_list_destroy(list);
}

static enum toc_status
op_commit(void *self, bool wait, struct toc_error *reterr)
{
    struct toc_consumer_kafka *consumer = self;
    rd_kafka_resp_err_t err = wait ? commit_wait(consumer, NULL)
                                   : rd_kafka_commit(consumer->kafka, NULL, 1);
    if (err == RD_KAFKA_RESP_ERR__NO_OFFSET)
        err = RD_KAFKA_RESP_ERR_NO_ERROR;
    return toc_kafka_error(err, "commit", reterr);
}

static void
op_pause(void *self, int16_t topic, bool paused)
{
    struct toc_consumer_kafka *consumer = self;
    TOC_ASSERT(topic >= 0 && topic < consumer->n_topics);
    consumer->topics[topic].paused = paused;
}

static enum toc_status
subscribe(struct toc_consumer_kafka *consumer, struct toc_error *reterr)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(consumer->n_topics);
    for (int16_t i = 0; i < consumer->n_topics; i++)
        rd_kafka_topic_partition_list_add(list, consumer->topics[i].name,
                                          RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t err = rd_kafka_subscribe(consumer->kafka, list);
    rd_kafka_topic_partition_list_destroy(list);
    return toc_kafka_error(err, "subscribe", reterr);
}

static enum toc_status
op_join(void *self, bool join, struct toc_error *reterr)
{
    struct toc_consumer_kafka *consumer = self;
    if (join)
        return subscribe(consumer, reterr);
    return toc_kafka_error(rd_kafka_unsubscribe(consumer->kafka), "unsubscribe",
                           reterr);
}

static void
op_wake(void *self)
{
    struct toc_consumer_kafka *consumer = self;
    atomic_store(&consumer->woken, true);
    bell_ring(consumer);
}

static const struct toc_bus_consumer_ops ops = {
    .name = "kafka",
    .poll = op_poll,
    .release = op_release,
    .mark = op_mark,
    .commit = op_commit,
    .pause = op_pause,
    .join = op_join,
    .wake = op_wake,
};

/* ---- opening and closing --------------------------------------------- */

static enum toc_status
make_conf(const struct toc_consumer_kafka_options *options,
          struct toc_consumer_kafka *consumer, rd_kafka_conf_t **ret_conf,
          struct toc_error *reterr)
{
    char session[24];
    int64_t ms = options->session_timeout_ms;
    toc_format(session, sizeof session, "%d",
               toc_kafka_ms(ms > 0 ? ms : SESSION_TIMEOUT_MS));
    const struct toc_kafka_setting given[] = {
        {"group.id", options->group},
        {"session.timeout.ms", session},
    };
    rd_kafka_conf_t *conf;
    enum toc_status st =
        toc_kafka_conf_new(options->brokers, options->client_id, &conf, reterr);
    if (st != TOC_OK)
        return st;
    st = toc_kafka_set(conf, settings, sizeof settings / sizeof *settings,
                       reterr);
    if (st == TOC_OK)
        st = toc_kafka_set(conf, given, sizeof given / sizeof *given, reterr);
    if (st != TOC_OK) {
        rd_kafka_conf_destroy(conf);
        return st;
    }
    rd_kafka_conf_set_opaque(conf, consumer);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    *ret_conf = conf;
    return TOC_OK;
}

/* Queues that ring the bell when something comes into them. */
static void
make_queues(struct toc_consumer_kafka *consumer,
            const struct toc_consumer_kafka_options *options)
{
    (void)rd_kafka_poll_set_consumer(consumer->kafka);
    consumer->control = rd_kafka_queue_get_consumer(consumer->kafka);
    rd_kafka_queue_io_event_enable(consumer->control, consumer->bell[1], "e",
                                   1);
    consumer->topics = TOC_NEW_ARRAY(struct topic, (size_t)options->n_topics);
    consumer->n_topics = options->n_topics;
    for (int16_t i = 0; i < options->n_topics; i++) {
        struct topic *topic = &consumer->topics[i];
        topic->name = toc_strdup(options->topics[i]);
        topic->queue = rd_kafka_queue_new(consumer->kafka);
        rd_kafka_queue_io_event_enable(topic->queue, consumer->bell[1], "m", 1);
    }
}

enum toc_status
toc_consumer_kafka_open(const struct toc_consumer_kafka_options *options,
                        struct toc_consumer_kafka **ret_consumer,
                        struct toc_error *reterr)
{
    TOC_ASSERT(options->n_topics > 0);
    struct toc_consumer_kafka *consumer = TOC_NEW(struct toc_consumer_kafka);
    consumer->port = (struct toc_bus_consumer){&ops, consumer};
    consumer->rebalance = options->rebalance;
    consumer->rebalance_arg = options->rebalance_arg;
    atomic_init(&consumer->woken, false);
    rd_kafka_conf_t *conf;
    enum toc_status st = bell_open(consumer, reterr);
    if (st == TOC_OK)
        st = make_conf(options, consumer, &conf, reterr);
    if (st == TOC_OK)
        st = toc_kafka_new(RD_KAFKA_CONSUMER, conf, &consumer->kafka, reterr);
    if (st == TOC_OK) {
        make_queues(consumer, options);
        st = subscribe(consumer, reterr);
    }
    if (st != TOC_OK) {
        toc_consumer_kafka_close(consumer);
        return st;
    }
    *ret_consumer = consumer;
    return TOC_OK;
}

/* Leaves the group within a bounded time, whatever the brokers do. */
static void
leave_group(struct toc_consumer_kafka *consumer)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(consumer->kafka);
    int64_t until_ns = toc_os_mono_ns() + (int64_t)CLOSE_MS * 1000000;
    rd_kafka_error_t *error =
        rd_kafka_consumer_close_queue(consumer->kafka, queue);
    while (error == NULL && !rd_kafka_consumer_closed(consumer->kafka) &&
           toc_os_mono_ns() < until_ns) {
        /* serves the rebalance callback */
        rd_kafka_message_t *message =
            rd_kafka_consume_queue(queue, CLOSE_SLICE_MS);
        if (message != NULL)
            rd_kafka_message_destroy(message);
    }
    if (error != NULL)
        rd_kafka_error_destroy(error);
    rd_kafka_queue_destroy(queue);
}

static void
free_queues(struct toc_consumer_kafka *consumer)
{
    for (int16_t i = 0; i < consumer->n_topics; i++) {
        rd_kafka_queue_io_event_enable(consumer->topics[i].queue, -1, NULL, 0);
        rd_kafka_queue_destroy(consumer->topics[i].queue);
        toc_free(consumer->topics[i].name);
    }
    toc_free(consumer->topics);
}

void
toc_consumer_kafka_close(struct toc_consumer_kafka *consumer)
{
    if (consumer == NULL)
        return;
    if (consumer->kafka != NULL) {
        /* librdkafka wants this reference back before it closes */
        rd_kafka_queue_io_event_enable(consumer->control, -1, NULL, 0);
        rd_kafka_queue_destroy(consumer->control);
        leave_group(consumer);
        free_queues(consumer);
        rd_kafka_destroy_flags(consumer->kafka,
                               RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    }
    toc_bus_assigned_done(&consumer->assigned);
    bell_close(consumer);
    toc_free(consumer);
}

struct toc_bus_consumer *
toc_consumer_kafka_port(struct toc_consumer_kafka *consumer)
{
    return &consumer->port;
}
