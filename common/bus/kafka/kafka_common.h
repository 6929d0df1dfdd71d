/*
 * What producer and consumer share: settings, the log, errors.
 *
 * Threads: any.
 */
#ifndef TOC_BUS_KAFKA_COMMON_H
#define TOC_BUS_KAFKA_COMMON_H

#include "common/base/status.h"

#include <librdkafka/rdkafka.h>
#include <stddef.h>
#include <stdint.h>

struct toc_kafka_setting {
    const char *name, *value;
};

/* Sets all of them; the first that is refused is the error. */
TOC_MUST_CHECK enum toc_status toc_kafka_set(
    rd_kafka_conf_t *conf, const struct toc_kafka_setting *settings, size_t n,
    struct toc_error *reterr);
/* A new configuration with brokers, client id, reconnection, log and errors. */
TOC_MUST_CHECK enum toc_status toc_kafka_conf_new(const char *brokers,
                                                  const char *client_id,
                                                  rd_kafka_conf_t **ret_conf,
                                                  struct toc_error *reterr);
/* Takes conf, also on failure. */
TOC_MUST_CHECK enum toc_status toc_kafka_new(rd_kafka_type_t type,
                                             rd_kafka_conf_t *conf,
                                             rd_kafka_t **ret_kafka,
                                             struct toc_error *reterr);

enum toc_status toc_kafka_status(rd_kafka_resp_err_t err);
/* `what`: "kafka: <what>: <librdkafka's text>". */
enum toc_status toc_kafka_error(rd_kafka_resp_err_t err, const char *what,
                                struct toc_error *reterr);

/* librdkafka takes int milliseconds, and -1 as "for ever". */
int toc_kafka_ms(int64_t ms);

#endif
