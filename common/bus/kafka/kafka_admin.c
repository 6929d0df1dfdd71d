#include "common/bus/kafka/kafka_admin.h"

#include "common/base/cleanup.h"
#include "common/base/os_time.h"
#include "common/bus/kafka/kafka_common.h"

#include <string.h>

#define METADATA_PAUSE_MS 50

static void
queue_done(rd_kafka_queue_t **queue)
{
    if (*queue != NULL)
        rd_kafka_queue_destroy(*queue);
}

static void
event_done(rd_kafka_event_t **event)
{
    if (*event != NULL)
        rd_kafka_event_destroy(*event);
}

static void
list_done(rd_kafka_topic_partition_list_t **list)
{
    if (*list != NULL)
        rd_kafka_topic_partition_list_destroy(*list);
}

static int64_t
mono_ms(void)
{
    return toc_os_mono_ns() / 1000000;
}

/* Options with a time limit for the brokers; ours is the wait's. */
static rd_kafka_AdminOptions_t *
options_new(rd_kafka_t *kafka, rd_kafka_admin_op_t op, int64_t timeout_ms)
{
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(kafka, op);
    char text[64];
    /* out of range (a very long time) leaves the default: 60 s */
    (void)rd_kafka_AdminOptions_set_request_timeout(
        options, toc_kafka_ms(timeout_ms), text, sizeof text);
    return options;
}

/* The answer to an admin request, or NULL and the reason. */
static rd_kafka_event_t *
wait_for(rd_kafka_queue_t *queue, int64_t timeout_ms, const char *what,
         enum toc_status *ret_st, struct toc_error *reterr)
{
    rd_kafka_event_t *event =
        rd_kafka_queue_poll(queue, toc_kafka_ms(timeout_ms));
    *ret_st = TOC_OK;
    if (event == NULL) {
        *ret_st = toc_kafka_error(RD_KAFKA_RESP_ERR__TIMED_OUT, what, reterr);
        return NULL;
    }
    rd_kafka_resp_err_t err = rd_kafka_event_error(event);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
        return event;
    *ret_st = toc_kafka_error(err, what, reterr);
    rd_kafka_event_destroy(event);
    return NULL;
}

/* ---- offsets --------------------------------------------------------- */

enum toc_status
toc_kafka_watermarks(rd_kafka_t *kafka, const char *topic, int32_t partition,
                     int64_t timeout_ms, int64_t *ret_low, int64_t *ret_high,
                     struct toc_error *reterr)
{
    int64_t low, high;
    rd_kafka_resp_err_t err = rd_kafka_query_watermark_offsets(
        kafka, topic, partition, &low, &high, toc_kafka_ms(timeout_ms));
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return toc_kafka_error(err, "ask for a partition's end", reterr);
    *ret_low = low;
    *ret_high = high;
    return TOC_OK;
}

static rd_kafka_event_t *
ask_committed(rd_kafka_t *kafka, rd_kafka_queue_t *queue, const char *group,
              const rd_kafka_topic_partition_list_t *list, int64_t timeout_ms,
              enum toc_status *ret_st, struct toc_error *reterr)
{
    rd_kafka_ListConsumerGroupOffsets_t *request =
        rd_kafka_ListConsumerGroupOffsets_new(group, list);
    rd_kafka_AdminOptions_t *options = options_new(
        kafka, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, timeout_ms);
    rd_kafka_ListConsumerGroupOffsets(kafka, &request, 1, options, queue);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_ListConsumerGroupOffsets_destroy(request);
    return wait_for(queue, timeout_ms, "ask for a group's offsets", ret_st,
                    reterr);
}

/* What the one group of the answer says. */
static const rd_kafka_topic_partition_list_t *
group_offsets(rd_kafka_event_t *event, rd_kafka_resp_err_t *ret_err)
{
    size_t n = 0;
    const rd_kafka_group_result_t **groups =
        rd_kafka_ListConsumerGroupOffsets_result_groups(
            rd_kafka_event_ListConsumerGroupOffsets_result(event), &n);
    if (n != 1) {
        *ret_err = RD_KAFKA_RESP_ERR__BAD_MSG;
        return NULL;
    }
    const rd_kafka_error_t *error = rd_kafka_group_result_error(groups[0]);
    *ret_err =
        error == NULL ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_error_code(error);
    return rd_kafka_group_result_partitions(groups[0]);
}

enum toc_status
toc_kafka_committed(rd_kafka_t *kafka, const char *group, const char *topic,
                    int32_t partitions, int64_t timeout_ms,
                    int64_t *ret_offsets, struct toc_error *reterr)
{
    int64_t until = mono_ms() + timeout_ms;
    TOC_CLEANUP(queue_done)
    rd_kafka_queue_t *queue = rd_kafka_queue_new(kafka);
    TOC_CLEANUP(list_done)
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(partitions);
    rd_kafka_topic_partition_list_add_range(list, topic, 0, partitions - 1);
    enum toc_status st;
    TOC_CLEANUP(event_done)
    rd_kafka_event_t *event =
        ask_committed(kafka, queue, group, list, timeout_ms, &st, reterr);
    if (event == NULL)
        return st;
    rd_kafka_resp_err_t err;
    const rd_kafka_topic_partition_list_t *found = group_offsets(event, &err);
    TOC_AUTO_FREE int64_t *offsets = TOC_NEW_ARRAY(int64_t, (size_t)partitions);
    for (int32_t i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && i < partitions;
         i++) {
        const rd_kafka_topic_partition_t *at =
            rd_kafka_topic_partition_list_find(
                (rd_kafka_topic_partition_list_t *)(uintptr_t)found, topic, i);
        if (at != NULL && (err = at->err) != RD_KAFKA_RESP_ERR_NO_ERROR)
            break;
        int64_t high;
        if (at != NULL && at->offset >= 0)
            offsets[i] = at->offset;
        else if ((st = toc_kafka_watermarks(kafka, topic, i, until - mono_ms(),
                                            &offsets[i], &high, reterr)) !=
                 TOC_OK)
            return st;
    }
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return toc_kafka_error(err, "ask for a group's offsets", reterr);
    memcpy(ret_offsets, offsets, (size_t)partitions * sizeof *offsets);
    return TOC_OK;
}

/* ---- topics ---------------------------------------------------------- */

/* TOC_EXISTS is as good as done. */
static enum toc_status
create_topic(rd_kafka_t *kafka, rd_kafka_queue_t *queue, const char *name,
             int32_t partitions, int64_t timeout_ms, struct toc_error *reterr)
{
    char text[160];
    /* -1: as many replicas as the brokers are set to */
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(name, partitions, -1, text, sizeof text);
    if (topic == NULL)
        return toc_error_set(reterr, TOC_INVALID, "kafka", 0, "kafka: %s",
                             text);
    rd_kafka_AdminOptions_t *options =
        options_new(kafka, RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout_ms);
    rd_kafka_CreateTopics(kafka, &topic, 1, options, queue);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_NewTopic_destroy(topic);
    enum toc_status st;
    TOC_CLEANUP(event_done)
    rd_kafka_event_t *event =
        wait_for(queue, timeout_ms, "create a topic", &st, reterr);
    if (event == NULL)
        return st;
    size_t n = 0;
    const rd_kafka_topic_result_t **results =
        rd_kafka_CreateTopics_result_topics(
            rd_kafka_event_CreateTopics_result(event), &n);
    if (n != 1)
        return toc_kafka_error(RD_KAFKA_RESP_ERR__BAD_MSG, "create a topic",
                               reterr);
    return toc_kafka_error(rd_kafka_topic_result_error(results[0]),
                           "create a topic", reterr);
}

/* The topic's partitions once all of them have a leader; 0: not yet. */
static int32_t
ready_partitions(const rd_kafka_metadata_topic_t *topic)
{
    for (int i = 0; i < topic->partition_cnt; i++)
        if (topic->partitions[i].leader < 0)
            return 0;
    return topic->err == RD_KAFKA_RESP_ERR_NO_ERROR ? topic->partition_cnt : 0;
}

static int32_t
count_partitions(rd_kafka_t *kafka, const char *name, int64_t timeout_ms,
                 rd_kafka_resp_err_t *ret_err)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(kafka, name, NULL);
    if (topic == NULL) {
        *ret_err = rd_kafka_last_error();
        return 0;
    }
    int32_t n = 0;
    *ret_err =
        rd_kafka_metadata(kafka, 0, topic, &metadata, toc_kafka_ms(timeout_ms));
    rd_kafka_topic_destroy(topic);
    if (*ret_err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return 0;
    if (metadata->topic_cnt == 1) {
        n = ready_partitions(&metadata->topics[0]);
        *ret_err = metadata->topics[0].err;
    }
    rd_kafka_metadata_destroy(metadata);
    return n;
}

enum toc_status
toc_kafka_ensure_topic(rd_kafka_t *kafka, const char *topic, int32_t partitions,
                       int64_t timeout_ms, int32_t *ret_partitions,
                       struct toc_error *reterr)
{
    int64_t until = mono_ms() + timeout_ms;
    TOC_CLEANUP(queue_done)
    rd_kafka_queue_t *queue = rd_kafka_queue_new(kafka);
    enum toc_status st =
        create_topic(kafka, queue, topic, partitions, timeout_ms, reterr);
    if (st != TOC_OK && st != TOC_EXISTS)
        return st;
    /* the brokers learn of a new topic one by one */
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__TIMED_OUT;
    int64_t left;
    while ((left = until - mono_ms()) > 0) {
        int32_t n = count_partitions(kafka, topic, left, &err);
        if (n > 0) {
            *ret_partitions = n;
            return TOC_OK;
        }
        /* nothing comes on this queue: a pause */
        rd_kafka_event_t *none = rd_kafka_queue_poll(queue, METADATA_PAUSE_MS);
        if (none != NULL)
            rd_kafka_event_destroy(none);
    }
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
        err = RD_KAFKA_RESP_ERR__TIMED_OUT;
    return toc_kafka_error(err, "wait for a topic's leaders", reterr);
}
