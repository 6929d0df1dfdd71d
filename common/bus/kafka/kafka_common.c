#include "common/bus/kafka/kafka_common.h"

#include "common/base/log.h"

#include <limits.h>

static const struct toc_kafka_setting common_settings[] = {
    /* a broker that is back is found within a second (the default is 10 s) */
    {"reconnect.backoff.ms", "50"},
    {"reconnect.backoff.max.ms", "1000"},
    {"socket.keepalive.enable", "true"},
    /* a broker that hangs is given up after this time, not after a minute */
    {"socket.timeout.ms", "5000"},
    {"socket.nagle.disable", "true"},
    {"broker.address.ttl", "5000"},
    /* closing an idle connection is no event */
    {"log.connection.close", "false"},
    {"statistics.interval.ms", "0"},
};

enum toc_status
toc_kafka_set(rd_kafka_conf_t *conf, const struct toc_kafka_setting *settings,
              size_t n, struct toc_error *reterr)
{
    char text[160];
    for (size_t i = 0; i < n; i++)
        if (rd_kafka_conf_set(conf, settings[i].name, settings[i].value, text,
                              sizeof text) != RD_KAFKA_CONF_OK)
            return toc_error_set(reterr, TOC_INVALID, "kafka", 0, "kafka: %s",
                                 text);
    return TOC_OK;
}

/* Thread: any of librdkafka's. Its levels are those of syslog. */
static void
on_log(const rd_kafka_t *kafka, int level, const char *fac, const char *text)
{
    const char *name = kafka == NULL ? "" : rd_kafka_name(kafka);
    if (level <= 4)
        TOC_LOG(WARN, "kafka.log", F_STR("client", name), F_STR("fac", fac),
                F_MSG(text));
    else
        TOC_LOG(DEBUG, "kafka.log", F_STR("client", name), F_STR("fac", fac),
                F_MSG(text));
}

/* Most of these heal by themselves; librdkafka goes on trying. */
static void
on_error(rd_kafka_t *kafka, int err, const char *reason, void *opaque)
{
    (void)opaque;
    char text[240];
    if (err != RD_KAFKA_RESP_ERR__FATAL) {
        TOC_LOG(WARN, "kafka.error", F_STR("client", rd_kafka_name(kafka)),
                F_STR("error", rd_kafka_err2name((rd_kafka_resp_err_t)err)),
                F_MSG(reason));
        return;
    }
    rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(kafka, text, sizeof text);
    TOC_LOG(ERROR, "kafka.fatal", F_STR("client", rd_kafka_name(kafka)),
            F_STR("error", rd_kafka_err2name(fatal)), F_MSG(text),
            F_STR("hint", "this client does no more work: restart"));
}

enum toc_status
toc_kafka_conf_new(const char *brokers, const char *client_id,
                   rd_kafka_conf_t **ret_conf, struct toc_error *reterr)
{
    const struct toc_kafka_setting given[] = {
        {"bootstrap.servers", brokers},
        {"client.id", client_id == NULL ? "toc" : client_id},
    };
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    enum toc_status st =
        toc_kafka_set(conf, given, sizeof given / sizeof *given, reterr);
    if (st == TOC_OK)
        st = toc_kafka_set(conf, common_settings,
                           sizeof common_settings / sizeof *common_settings,
                           reterr);
    if (st != TOC_OK) {
        rd_kafka_conf_destroy(conf);
        return st;
    }
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_error_cb(conf, on_error);
    *ret_conf = conf;
    return TOC_OK;
}

enum toc_status
toc_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf,
              rd_kafka_t **ret_kafka, struct toc_error *reterr)
{
    char text[200];
    rd_kafka_t *kafka = rd_kafka_new(type, conf, text, sizeof text);
    if (kafka == NULL) {
        rd_kafka_conf_destroy(conf);
        return toc_error_set(reterr, TOC_INVALID, "kafka",
                             (int)rd_kafka_last_error(), "kafka: %s", text);
    }
    *ret_kafka = kafka;
    return TOC_OK;
}

/* What is not named here is taken for something that passes. */
enum toc_status
toc_kafka_status(rd_kafka_resp_err_t err)
{
    static const struct {
        rd_kafka_resp_err_t err;
        enum toc_status st;
    } known[] = {
        {RD_KAFKA_RESP_ERR_NO_ERROR, TOC_OK},
        {RD_KAFKA_RESP_ERR__QUEUE_FULL, TOC_EXHAUSTED},
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, TOC_INVALID},
        {RD_KAFKA_RESP_ERR__INVALID_ARG, TOC_INVALID},
        {RD_KAFKA_RESP_ERR_INVALID_PARTITIONS, TOC_INVALID},
        {RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR, TOC_INVALID},
        {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, TOC_INVALID},
        {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, TOC_NOT_FOUND},
        {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, TOC_NOT_FOUND},
        {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, TOC_NOT_FOUND},
        {RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS, TOC_EXISTS},
        {RD_KAFKA_RESP_ERR__PURGE_QUEUE, TOC_CANCELLED},
        {RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, TOC_CANCELLED},
        {RD_KAFKA_RESP_ERR__TIMED_OUT, TOC_DEADLINE},
        {RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, TOC_DEADLINE},
        {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, TOC_DEADLINE},
        {RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, TOC_DEADLINE},
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, TOC_DENIED},
        {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, TOC_DENIED},
        {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, TOC_DENIED},
        {RD_KAFKA_RESP_ERR__AUTHENTICATION, TOC_UNAUTHENTICATED},
        {RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, TOC_CONFLICT},
        {RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, TOC_CONFLICT},
        {RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, TOC_CONFLICT},
        {RD_KAFKA_RESP_ERR__FATAL, TOC_INTERNAL},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].err == err)
            return known[i].st;
    return TOC_UNAVAILABLE;
}

enum toc_status
toc_kafka_error(rd_kafka_resp_err_t err, const char *what,
                struct toc_error *reterr)
{
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
        return TOC_OK;
    return toc_error_set(reterr, toc_kafka_status(err), "kafka", (int)err,
                         "kafka: %s: %s", what, rd_kafka_err2str(err));
}

int
toc_kafka_ms(int64_t ms)
{
    if (ms < 0)
        return 0;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}
