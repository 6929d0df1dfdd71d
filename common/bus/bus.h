/*
 * The bus port: topics with partitions, at-least-once, in order within a
 * partition. Messages are hints: the bus may lose, double or delay them.
 *
 * Threads: a producer belongs to one thread (its callback runs inside
 * toc_bus_poll on that thread); a consumer to one thread. Blocking: only where
 * a timeout is given.
 */
#ifndef TOC_BUS_BUS_H
#define TOC_BUS_BUS_H

#include "common/base/status.h"
#include "common/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- producing ------------------------------------------------------ */

/* A message was stored at `offset`, or refused (st != TOC_OK). */
typedef void toc_bus_report_fn(void *arg, void *opaque, enum toc_status st,
                               int64_t offset);

struct toc_bus_ops {
    const char *name;
    enum toc_status (*send)(void *self, const char *topic, int32_t partition,
                            struct toc_str message, void *opaque,
                            struct toc_error *reterr);
    size_t (*poll)(void *self, int64_t timeout_ms);
    enum toc_status (*flush)(void *self, int64_t timeout_ms,
                             struct toc_error *reterr);
    enum toc_status (*end_offset)(void *self, const char *topic,
                                  int32_t partition, int64_t timeout_ms,
                                  int64_t *ret_offset,
                                  struct toc_error *reterr);
    enum toc_status (*committed)(void *self, const char *group,
                                 const char *topic, int32_t partitions,
                                 int64_t timeout_ms, int64_t *ret_offsets,
                                 struct toc_error *reterr);
    enum toc_status (*ensure_topic)(void *self, const char *topic,
                                    int32_t partitions, int64_t timeout_ms,
                                    int32_t *ret_partitions,
                                    struct toc_error *reterr);
    void (*interrupt)(void *self); /* NULL: nothing to interrupt */
};

struct toc_bus {
    const struct toc_bus_ops *ops;
    void *self;
};

/* The process ends: every further question (committed, end_offset,
 * ensure_topic) fails at once; one that is asked ends by its timeout. Any
 * thread; does not block. */
void toc_bus_interrupt(struct toc_bus *bus);
/* Copies the message and queues it. TOC_EXHAUSTED: the queue is full, poll and
 * try again. The report comes by the backend's report callback. */
TOC_MUST_CHECK enum toc_status toc_bus_send(
    struct toc_bus *bus, const char *topic, int32_t partition,
    struct toc_str message, void *opaque, struct toc_error *reterr);
/* Runs report callbacks; returns how many. */
size_t toc_bus_poll(struct toc_bus *bus, int64_t timeout_ms);
/* Waits until every message has been reported; TOC_DEADLINE otherwise. */
TOC_MUST_CHECK enum toc_status toc_bus_flush(struct toc_bus *bus,
                                             int64_t timeout_ms,
                                             struct toc_error *reterr);
/* The offset that the next message of the partition will get. Any thread. */
TOC_MUST_CHECK enum toc_status toc_bus_end_offset(
    struct toc_bus *bus, const char *topic, int32_t partition,
    int64_t timeout_ms, int64_t *ret_offset, struct toc_error *reterr);
/* What the group has committed, for partitions 0..partitions-1; a partition
 * without a committed offset gives the log's start. Any thread. */
TOC_MUST_CHECK enum toc_status toc_bus_committed(
    struct toc_bus *bus, const char *group, const char *topic,
    int32_t partitions, int64_t timeout_ms, int64_t *ret_offsets,
    struct toc_error *reterr);
/* Creates the topic unless it is there; tells how many partitions it has. */
TOC_MUST_CHECK enum toc_status toc_bus_ensure_topic(
    struct toc_bus *bus, const char *topic, int32_t partitions,
    int64_t timeout_ms, int32_t *ret_partitions, struct toc_error *reterr);

/* ---- consuming ------------------------------------------------------- */

struct toc_bus_message {
    int16_t topic; /* index among the consumer's topics */
    int32_t partition;
    int64_t offset;
    struct toc_str bytes; /* until released */
    void *handle;         /* the backend's */
};

enum toc_bus_event_kind { TOC_BUS_ASSIGNED, TOC_BUS_REVOKED };

/* Called inside toc_bus_consumer_poll. After REVOKED returns, marks of that
 * partition are ignored. `lost`: it may be somebody else's already. */
typedef void toc_bus_rebalance_fn(void *arg, enum toc_bus_event_kind kind,
                                  int16_t topic, int32_t partition, bool lost);

struct toc_bus_consumer_ops {
    const char *name;
    size_t (*poll)(void *self, struct toc_bus_message *messages, size_t max,
                   int64_t timeout_ms);
    void (*release)(void *self, struct toc_bus_message *message);
    void (*mark)(void *self, int16_t topic, int32_t partition,
                 int64_t next_offset);
    enum toc_status (*commit)(void *self, bool wait, struct toc_error *reterr);
    void (*pause)(void *self, int16_t topic, bool paused);
    enum toc_status (*join)(void *self, bool join, struct toc_error *reterr);
    void (*wake)(void *self);
};

struct toc_bus_consumer {
    const struct toc_bus_consumer_ops *ops;
    void *self;
};

/* Takes up to max messages; waits up to timeout_ms for the first one, never
 * for more. Must be called at least every few seconds (group membership). */
size_t toc_bus_consumer_poll(struct toc_bus_consumer *consumer,
                             struct toc_bus_message *messages, size_t max,
                             int64_t timeout_ms);
void toc_bus_consumer_release(struct toc_bus_consumer *consumer,
                              struct toc_bus_message *message);
/* Everything of the partition below next_offset is decided. Committed soon. */
void toc_bus_consumer_mark(struct toc_bus_consumer *consumer, int16_t topic,
                           int32_t partition, int64_t next_offset);
TOC_MUST_CHECK enum toc_status toc_bus_consumer_commit(
    struct toc_bus_consumer *consumer, bool wait, struct toc_error *reterr);
/* Stops or resumes fetching of all partitions of a topic; membership stays. */
void toc_bus_consumer_pause(struct toc_bus_consumer *consumer, int16_t topic,
                            bool paused);
/* Leaves the group and so gives all partitions up (REVOKED is told inside the
 * next polls), or joins it again. A consumer that was opened has joined. */
TOC_MUST_CHECK enum toc_status toc_bus_consumer_join(
    struct toc_bus_consumer *consumer, bool join, struct toc_error *reterr);
/* Ends a poll that is waiting. Any thread. */
void toc_bus_consumer_wake(struct toc_bus_consumer *consumer);

#endif
