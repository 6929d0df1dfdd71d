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

TOC_MUST_CHECK enum toc_status toc_kafka_end_offset(
    rd_kafka_t *kafka, const char *topic, int32_t partition, int64_t timeout_ms,
    int64_t *ret_offset, struct toc_error *reterr);
/*
 * What the group of `member`, a consumer that has not subscribed, has
 * committed; nothing gives the log's start, where a consumer would start. (The
 * admin request for it, of librdkafka 2.0, ends the process by an assertion
 * when the group's broker hangs.)
 */
TOC_MUST_CHECK enum toc_status toc_kafka_committed(
    rd_kafka_t *member, const char *topic, int32_t partitions,
    int64_t timeout_ms, int64_t *ret_offsets, struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status toc_kafka_ensure_topic(
    rd_kafka_t *kafka, const char *topic, int32_t partitions,
    int64_t timeout_ms, int32_t *ret_partitions, struct toc_error *reterr);

#endif
