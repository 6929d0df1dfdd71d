#include "common/bus/kafka/kafka_admin.h"

#include "common/base/cleanup.h"
#include "common/base/os_time.h"
#include "common/bus/kafka/kafka_common.h"

#include <stdbool.h>
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

/*
 * Asks for the offsets that the list names as RD_KAFKA_OFFSET_BEGINNING or
 * _END; the answers replace them. (rd_kafka_query_watermark_offsets asks the
 * same, but does not keep its time limit when a broker hangs.)
 */
static enum toc_status
resolve(rd_kafka_t *kafka, rd_kafka_topic_partition_list_t *list,
        int64_t timeout_ms, struct toc_error *reterr)
{
    static const char what[] = "ask for a partition's offsets";
    rd_kafka_resp_err_t err =
        rd_kafka_offsets_for_times(kafka, list, toc_kafka_ms(timeout_ms));
    for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++) {
        err = list->elems[i].err;
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR && list->elems[i].offset < 0)
            err = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    }
    return toc_kafka_error(err, what, reterr);
}

enum toc_status
toc_kafka_end_offset(rd_kafka_t *kafka, const char *topic, int32_t partition,
                     int64_t timeout_ms, int64_t *ret_offset,
                     struct toc_error *reterr)
{
    TOC_CLEANUP(list_done)
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition)->offset =
        RD_KAFKA_OFFSET_END;
    enum toc_status st = resolve(kafka, list, timeout_ms, reterr);
    if (st == TOC_OK)
        *ret_offset = list->elems[0].offset;
    return st;
}

/* What the client's group has committed, or less than 0 where nothing is. */
static enum toc_status
read_committed(rd_kafka_t *member, const char *topic, int32_t partitions,
               int64_t timeout_ms, int64_t *offsets, struct toc_error *reterr)
{
    TOC_CLEANUP(list_done)
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(partitions);
    rd_kafka_topic_partition_list_add_range(list, topic, 0, partitions - 1);
    rd_kafka_resp_err_t err =
        rd_kafka_committed(member, list, toc_kafka_ms(timeout_ms));
    for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++) {
        err = list->elems[i].err;
        offsets[list->elems[i].partition] = list->elems[i].offset;
    }
    return toc_kafka_error(err, "ask for a group's offsets", reterr);
}

/* Puts the log's start where nothing is committed. */
static enum toc_status
fill_starts(rd_kafka_t *kafka, const char *topic, int32_t partitions,
            int64_t timeout_ms, int64_t *offsets, struct toc_error *reterr)
{
    TOC_CLEANUP(list_done)
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(partitions);
    for (int32_t i = 0; i < partitions; i++)
        if (offsets[i] < 0)
            rd_kafka_topic_partition_list_add(list, topic, i)->offset =
                RD_KAFKA_OFFSET_BEGINNING;
    if (list->cnt == 0)
        return TOC_OK;
    enum toc_status st = resolve(kafka, list, timeout_ms, reterr);
    for (int i = 0; st == TOC_OK && i < list->cnt; i++)
        offsets[list->elems[i].partition] = list->elems[i].offset;
    return st;
}

enum toc_status
toc_kafka_committed(rd_kafka_t *member, const char *topic, int32_t partitions,
                    int64_t timeout_ms, int64_t *ret_offsets,
                    struct toc_error *reterr)
{
    int64_t until = mono_ms() + timeout_ms;
    TOC_AUTO_FREE int64_t *offsets = TOC_NEW_ARRAY(int64_t, (size_t)partitions);
    /* its errors come by this queue; nobody else takes them out */
    (void)rd_kafka_poll(member, 0);
    enum toc_status st =
        read_committed(member, topic, partitions, timeout_ms, offsets, reterr);
    if (st == TOC_OK)
        st = fill_starts(member, topic, partitions, until - mono_ms(), offsets,
                         reterr);
    if (st == TOC_OK)
        memcpy(ret_offsets, offsets, (size_t)partitions * sizeof *offsets);
    return st;
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
    rd_kafka_CreateTopics(kafka, &topic, 1, NULL, queue);
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

/* Do the leaders know that they lead? Until then they refuse messages, and
 * what has to be repeated comes out of order. */
static bool
leaders_answer(rd_kafka_t *kafka, const char *topic, int32_t partitions,
               int64_t timeout_ms)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(partitions);
    for (int32_t i = 0; i < partitions; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset =
            RD_KAFKA_OFFSET_END;
    enum toc_status st = resolve(kafka, list, timeout_ms, NULL);
    rd_kafka_topic_partition_list_destroy(list);
    return st == TOC_OK;
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
        if (n > 0 && leaders_answer(kafka, topic, n, until - mono_ms())) {
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
