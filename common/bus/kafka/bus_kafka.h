/*
 * The bus on Apache Kafka (librdkafka).
 *
 * Producer: acks=all, no idempotence (hints may double, and it would add a
 * fatal state), no linger, message timeout 5 s. Order within a partition is
 * kept unless a request has to be repeated. Consumer: stored offsets only,
 * auto.offset.reset=earliest, eager assignment, round robin. librdkafka's own
 * log goes to the log of the process.
 *
 * Messages must be released before their consumer is closed. Closing takes up
 * to 1 s (bus) or 5 s (consumer) while the brokers do not answer.
 */
#ifndef TOC_BUS_KAFKA_H
#define TOC_BUS_KAFKA_H

#include "common/bus/bus.h"

struct toc_bus_kafka_options {
    const char *brokers;
    const char *client_id;
    toc_bus_report_fn *report; /* may be NULL for a bus that never sends */
    void *report_arg;
    size_t queue_max_messages; /* 0: 100,000 */
};

struct toc_bus_kafka;
TOC_MUST_CHECK enum toc_status toc_bus_kafka_open(
    const struct toc_bus_kafka_options *options, struct toc_bus_kafka **ret_bus,
    struct toc_error *reterr);
/* Messages not yet reported are reported as TOC_CANCELLED. */
void toc_bus_kafka_close(struct toc_bus_kafka *bus);
struct toc_bus *toc_bus_kafka_port(struct toc_bus_kafka *bus);

struct toc_consumer_kafka_options {
    const char *brokers;
    const char *client_id;
    const char *group;
    const char *const *topics; /* most urgent first: polled first */
    int16_t n_topics;
    int64_t session_timeout_ms; /* 0: 2,000 */
    toc_bus_rebalance_fn *rebalance;
    void *rebalance_arg;
};

struct toc_consumer_kafka;
TOC_MUST_CHECK enum toc_status toc_consumer_kafka_open(
    const struct toc_consumer_kafka_options *options,
    struct toc_consumer_kafka **ret_consumer, struct toc_error *reterr);
/* Commits what is marked, leaves the group. */
void toc_consumer_kafka_close(struct toc_consumer_kafka *consumer);
struct toc_bus_consumer *toc_consumer_kafka_port(
    struct toc_consumer_kafka *consumer);

#endif
