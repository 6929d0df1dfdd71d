/*
 * The producer. Order within a partition is kept unless a request has to be
 * repeated: more than one is under way at a time, for librdkafka puts one
 * partition's messages in a request, and waiting for each would take a round
 * trip per partition out of the few milliseconds between sending and due.
 */
#include "common/bus/kafka/bus_kafka.h"

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/bus/kafka/kafka_admin.h"
#include "common/bus/kafka/kafka_common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define QUEUE_MAX_MESSAGES 100000
#define CLOSE_MS 1000

struct toc_bus_kafka {
    struct toc_bus port;
    rd_kafka_t *kafka;
    toc_bus_report_fn *report;
    void *report_arg;
    size_t reports; /* of the current poll */
    char *brokers, *client_id;
    _Atomic bool interrupted;

    /* A client that may ask for a group's offsets. Locks: lock, for the
     * question's whole time. */
    pthread_mutex_t lock;
    rd_kafka_t *member;
    char *group;
};

static const struct toc_kafka_setting settings[] = {
    {"acks", "all"},
    /* hints may double, and idempotence adds an error that ends the client */
    {"enable.idempotence", "false"},
    /* the publisher packs; waiting for more here would only be late */
    {"linger.ms", "0"},
    /* the publisher wants to know soon, and decides what to send again */
    {"message.timeout.ms", "5000"},
    {"request.timeout.ms", "4000"},
    {"queue.buffering.max.kbytes", "262144"},
};

/* Inside poll, flush and close. */
static void
on_report(rd_kafka_t *kafka, const rd_kafka_message_t *message, void *opaque)
{
    (void)kafka;
    struct toc_bus_kafka *bus = opaque;
    bus->reports++;
    if (bus->report != NULL)
        bus->report(
            bus->report_arg, message->_private, toc_kafka_status(message->err),
            message->err == RD_KAFKA_RESP_ERR_NO_ERROR ? message->offset : -1);
}

/* ---- a group's offsets ------------------------------------------------- */

static void
forget_member(struct toc_bus_kafka *bus)
{
    if (bus->member != NULL)
        rd_kafka_destroy(bus->member);
    toc_free(bus->group);
    bus->member = NULL;
    bus->group = NULL;
}

static enum toc_status
make_member(struct toc_bus_kafka *bus, const char *group,
            struct toc_error *reterr)
{
    const struct toc_kafka_setting given[] = {
        {"group.id", group},
        {"enable.auto.commit", "false"},
        {"allow.auto.create.topics", "false"},
    };
    rd_kafka_conf_t *conf;
    enum toc_status st =
        toc_kafka_conf_new(bus->brokers, bus->client_id, &conf, reterr);
    if (st != TOC_OK)
        return st;
    st = toc_kafka_set(conf, given, sizeof given / sizeof *given, reterr);
    if (st != TOC_OK) {
        rd_kafka_conf_destroy(conf);
        return st;
    }
    st = toc_kafka_new(RD_KAFKA_CONSUMER, conf, &bus->member, reterr);
    if (st == TOC_OK)
        bus->group = toc_strdup(group);
    return st;
}

/* One group is usual; another one takes its place. Locks: held. */
static enum toc_status
need_member(struct toc_bus_kafka *bus, const char *group,
            struct toc_error *reterr)
{
    if (bus->group != NULL && strcmp(bus->group, group) == 0)
        return TOC_OK;
    forget_member(bus);
    return make_member(bus, group, reterr);
}

/* ---- operations ------------------------------------------------------ */

static bool
refused(const struct toc_bus_kafka *bus, enum toc_status *ret_st,
        struct toc_error *reterr)
{
    if (!atomic_load(&bus->interrupted))
        return false;
    *ret_st = toc_error_set(reterr, TOC_UNAVAILABLE, "kafka", 0,
                            "interrupted: the process is stopping");
    return true;
}

static void
op_interrupt(void *self)
{
    struct toc_bus_kafka *bus = self;
    atomic_store(&bus->interrupted, true);
}

static enum toc_status
op_send(void *self, const char *topic, int32_t partition,
        struct toc_str message, void *opaque, struct toc_error *reterr)
{
    struct toc_bus_kafka *bus = self;
    rd_kafka_resp_err_t err = rd_kafka_producev(
        bus->kafka, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        /* librdkafka wants void *, and copies */
        RD_KAFKA_V_VALUE((void *)(uintptr_t)message.ptr, message.len),
        RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
    return toc_kafka_error(err, "send", reterr);
}

static size_t
op_poll(void *self, int64_t timeout_ms)
{
    struct toc_bus_kafka *bus = self;
    bus->reports = 0;
    (void)rd_kafka_poll(bus->kafka, toc_kafka_ms(timeout_ms));
    return bus->reports;
}

static enum toc_status
op_flush(void *self, int64_t timeout_ms, struct toc_error *reterr)
{
    struct toc_bus_kafka *bus = self;
    return toc_kafka_error(rd_kafka_flush(bus->kafka, toc_kafka_ms(timeout_ms)),
                           "flush", reterr);
}

static enum toc_status
op_end_offset(void *self, const char *topic, int32_t partition,
              int64_t timeout_ms, int64_t *ret_offset, struct toc_error *reterr)
{
    struct toc_bus_kafka *bus = self;
    enum toc_status st;
    if (refused(bus, &st, reterr))
        return st;
    return toc_kafka_end_offset(bus->kafka, topic, partition, timeout_ms,
                                ret_offset, reterr);
}

static enum toc_status
op_committed(void *self, const char *group, const char *topic,
             int32_t partitions, int64_t timeout_ms, int64_t *ret_offsets,
             struct toc_error *reterr)
{
    struct toc_bus_kafka *bus = self;
    pthread_mutex_lock(&bus->lock);
    enum toc_status st;
    if (!refused(bus, &st, reterr))
        st = need_member(bus, group, reterr);
    if (st == TOC_OK)
        st = toc_kafka_committed(bus->member, topic, partitions, timeout_ms,
                                 ret_offsets, reterr);
    pthread_mutex_unlock(&bus->lock);
    return st;
}

static enum toc_status
op_ensure_topic(void *self, const char *topic, int32_t partitions,
                int64_t timeout_ms, int32_t *ret_partitions,
                struct toc_error *reterr)
{
    struct toc_bus_kafka *bus = self;
    enum toc_status st;
    if (refused(bus, &st, reterr))
        return st;
    return toc_kafka_ensure_topic(bus->kafka, topic, partitions, timeout_ms,
                                  ret_partitions, reterr);
}

static const struct toc_bus_ops ops = {
    .name = "kafka",
    .send = op_send,
    .poll = op_poll,
    .flush = op_flush,
    .end_offset = op_end_offset,
    .committed = op_committed,
    .ensure_topic = op_ensure_topic,
    .interrupt = op_interrupt,
};

/* ---- opening and closing --------------------------------------------- */

static enum toc_status
make_conf(const struct toc_bus_kafka_options *options,
          struct toc_bus_kafka *bus, rd_kafka_conf_t **ret_conf,
          struct toc_error *reterr)
{
    char queue_max[24];
    size_t max = options->queue_max_messages;
    toc_format(queue_max, sizeof queue_max, "%zu",
               max == 0 ? QUEUE_MAX_MESSAGES : max);
    const struct toc_kafka_setting given = {"queue.buffering.max.messages",
                                            queue_max};
    rd_kafka_conf_t *conf;
    enum toc_status st =
        toc_kafka_conf_new(options->brokers, options->client_id, &conf, reterr);
    if (st != TOC_OK)
        return st;
    st = toc_kafka_set(conf, settings, sizeof settings / sizeof *settings,
                       reterr);
    if (st == TOC_OK)
        st = toc_kafka_set(conf, &given, 1, reterr);
    if (st != TOC_OK) {
        rd_kafka_conf_destroy(conf);
        return st;
    }
    rd_kafka_conf_set_opaque(conf, bus);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    *ret_conf = conf;
    return TOC_OK;
}

static void
free_bus(struct toc_bus_kafka *bus)
{
    forget_member(bus);
    if (bus->kafka != NULL)
        rd_kafka_destroy(bus->kafka);
    pthread_mutex_destroy(&bus->lock);
    toc_free(bus->brokers);
    toc_free(bus->client_id);
    toc_free(bus);
}

enum toc_status
toc_bus_kafka_open(const struct toc_bus_kafka_options *options,
                   struct toc_bus_kafka **ret_bus, struct toc_error *reterr)
{
    struct toc_bus_kafka *bus = TOC_NEW(struct toc_bus_kafka);
    bus->port = (struct toc_bus){&ops, bus};
    bus->report = options->report;
    bus->report_arg = options->report_arg;
    bus->brokers = toc_strdup(options->brokers);
    if (options->client_id != NULL)
        bus->client_id = toc_strdup(options->client_id);
    pthread_mutex_init(&bus->lock, NULL);
    rd_kafka_conf_t *conf;
    enum toc_status st = make_conf(options, bus, &conf, reterr);
    if (st == TOC_OK)
        st = toc_kafka_new(RD_KAFKA_PRODUCER, conf, &bus->kafka, reterr);
    if (st == TOC_OK)
        *ret_bus = bus;
    else
        free_bus(bus);
    return st;
}

void
toc_bus_kafka_close(struct toc_bus_kafka *bus)
{
    if (bus == NULL)
        return;
    (void)rd_kafka_purge(bus->kafka,
                         RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    (void)rd_kafka_flush(bus->kafka, CLOSE_MS);
    free_bus(bus);
}

struct toc_bus *
toc_bus_kafka_port(struct toc_bus_kafka *bus)
{
    return &bus->port;
}
