/*
 * Questions to the brokers that are no messages: topics, offsets, groups.
 *
 * Threads: any, also several on one client: each call has its own queue.
 * Blocking: up to the timeout.
 */
#ifndef TOC_BUS_KAFKA_ADMIN_H
#define TOC_BUS_KAFKA_ADMIN_H

#include "common/base/status.h"

#include <librdkafka/rdkafka.h>
#include <stdint.h>

TOC_MUST_CHECK enum toc_status toc_kafka_watermarks(
    rd_kafka_t *kafka, const char *topic, int32_t partition, int64_t timeout_ms,
    int64_t *ret_low, int64_t *ret_high, struct toc_error *reterr);
/* No committed offset gives the log's start, as a consumer would start. */
TOC_MUST_CHECK enum toc_status toc_kafka_committed(
    rd_kafka_t *kafka, const char *group, const char *topic, int32_t partitions,
    int64_t timeout_ms, int64_t *ret_offsets, struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status toc_kafka_ensure_topic(
    rd_kafka_t *kafka, const char *topic, int32_t partitions,
    int64_t timeout_ms, int32_t *ret_partitions, struct toc_error *reterr);

#endif
