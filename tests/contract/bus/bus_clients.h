/*
 * A producer that records its reports, a consumer that records what it was
 * told and handed, topics and groups of one's own. Whoever includes this has,
 * before it, now_ms() and time_goes_on() (called between polls: sets a
 * simulated clock on), and gives:
 *
 *   producer_open, producer_close, consumer_open_topics, consumer_close
 *   broker_freeze, broker_thaw     all clients lose the brokers, and find them
 */
#ifndef TOC_TESTS_BUS_CLIENTS_H
#define TOC_TESTS_BUS_CLIENTS_H

#include "common/base/rng.h"
#include "common/base/str.h"
#include "common/bus/bus.h"
#include "tests/support/toc_check.h"

#include <stdio.h>
#include <string.h>

#define PATIENCE_MS 30000
#define ADMIN_MS 10000

enum { PARTS_MAX = 8, TOPICS_MAX = 3, OFFSETS_MAX = 4096, BATCH = 64 };

struct producer;
struct consumer;
struct names;

static inline void producer_open(struct producer *producer, size_t queue_max);
static inline void producer_close(struct producer *producer);
static inline void consumer_open_topics(struct consumer *consumer,
                                        const struct names *names,
                                        int16_t n_topics);
static inline void consumer_close(struct consumer *consumer);
static inline void broker_freeze(void);
static inline void broker_thaw(void);

#define UNTIL(condition, step)                                         \
    do {                                                               \
        int64_t until_ = now_ms() + PATIENCE_MS;                       \
        while (!(condition)) {                                         \
            ck_assert_msg(now_ms() < until_, "never: %s", #condition); \
            step;                                                      \
            time_goes_on();                                            \
        }                                                              \
    } while (0)

/* ---- producing --------------------------------------------------------- */

struct report {
    uintptr_t opaque;
    enum toc_status st;
    int64_t offset;
};

struct producer {
    void *handle; /* the backend's */
    struct toc_bus *bus;
    struct report reports[OFFSETS_MAX];
    size_t n_reports;
};

static inline void
producer_report(void *arg, void *opaque, enum toc_status st, int64_t offset)
{
    struct producer *producer = arg;
    ck_assert_uint_lt(producer->n_reports, OFFSETS_MAX);
    producer->reports[producer->n_reports++] =
        (struct report){(uintptr_t)opaque, st, offset};
}

static inline void
send_text(struct producer *producer, const char *topic, int32_t partition,
          const char *text, uintptr_t opaque)
{
    ck_assert_int_eq(toc_bus_send(producer->bus, topic, partition,
                                  toc_str_of(text), (void *)opaque, NULL),
                     TOC_OK);
}

/* n messages "<partition> <number>", numbers from first on, to each of the
 * partitions in turn; waits until they are stored. */
static inline void
send_many(struct producer *producer, const char *topic, int32_t partitions,
          int first, int n)
{
    char text[32];
    size_t before = producer->n_reports;
    for (int i = first; i < first + n; i++)
        for (int32_t p = 0; p < partitions; p++) {
            toc_format(text, sizeof text, "%d %d", p, i);
            send_text(producer, topic, p, text, (uintptr_t)i);
        }
    ck_assert_int_eq(toc_bus_flush(producer->bus, PATIENCE_MS, NULL), TOC_OK);
    for (size_t i = before; i < producer->n_reports; i++)
        ck_assert_int_eq(producer->reports[i].st, TOC_OK);
}

struct names {
    char topics[TOPICS_MAX][64];
    char group[64];
};

/* Makes names that nobody has used, and the topics. */
static inline void
names_make(struct names *names, struct producer *producer, int topics,
           int32_t partitions)
{
    unsigned long long random = toc_rng_u64();
    toc_format(names->group, sizeof names->group, "t%016llx.group", random);
    for (int i = 0; i < topics; i++) {
        int32_t n = 0;
        toc_format(names->topics[i], sizeof names->topics[i], "t%016llx.%d",
                   random, i);
        /* one that was frozen by the test before may need another try */
        UNTIL(toc_bus_ensure_topic(producer->bus, names->topics[i], partitions,
                                   ADMIN_MS, &n, NULL) == TOC_OK,
              (void)toc_bus_poll(producer->bus, 10));
        ck_assert_int_eq(n, partitions);
    }
}

/* ---- consuming ---------------------------------------------------------- */

struct part {
    bool ours;
    int64_t next;             /* offset expected next; -1: any */
    int64_t marked;           /* what we marked */
    size_t assigned, revoked; /* how often */
    size_t lost;
    unsigned char seen[OFFSETS_MAX];
};

struct consumer {
    void *handle; /* the backend's */
    struct toc_bus_consumer *bus;
    struct part parts[TOPICS_MAX][PARTS_MAX];
    size_t n_messages;
    int16_t order[OFFSETS_MAX]; /* the topics of the messages, as they came */
    bool mark;                  /* every message at once */
    bool mark_in_revoke;
};

static inline void
consumer_rebalance(void *arg, enum toc_bus_event_kind kind, int16_t topic,
                   int32_t partition, bool lost)
{
    struct consumer *consumer = arg;
    struct part *part = &consumer->parts[topic][partition];
    if (kind == TOC_BUS_ASSIGNED) {
        ck_assert(!part->ours);
        part->ours = true;
        part->next = -1;
        part->marked = -1;
        part->assigned++;
        return;
    }
    ck_assert(part->ours);
    if (consumer->mark_in_revoke && part->next > 0)
        toc_bus_consumer_mark(consumer->bus, topic, partition, part->next);
    part->ours = false;
    part->revoked++;
    part->lost += lost ? 1 : 0;
}

static inline void
consumer_open(struct consumer *consumer, const struct names *names)
{
    consumer_open_topics(consumer, names, 1);
}

static inline void
consumer_take(struct consumer *consumer, struct toc_bus_message *message)
{
    struct part *part = &consumer->parts[message->topic][message->partition];
    ck_assert_msg(part->ours, "a message of a partition that is not ours");
    if (part->next >= 0)
        ck_assert_int_eq(message->offset, part->next);
    part->next = message->offset + 1;
    if (message->offset < OFFSETS_MAX)
        part->seen[message->offset]++;
    if (consumer->n_messages < OFFSETS_MAX)
        consumer->order[consumer->n_messages] = message->topic;
    consumer->n_messages++;
    if (consumer->mark) {
        toc_bus_consumer_mark(consumer->bus, message->topic, message->partition,
                              part->next);
        part->marked = part->next;
    }
}

static inline size_t
consumer_poll(struct consumer *consumer, int64_t timeout_ms)
{
    struct toc_bus_message messages[BATCH];
    size_t n =
        toc_bus_consumer_poll(consumer->bus, messages, BATCH, timeout_ms);
    for (size_t i = 0; i < n; i++) {
        consumer_take(consumer, &messages[i]);
        toc_bus_consumer_release(consumer->bus, &messages[i]);
    }
    return n;
}

static inline size_t
consumer_owns(const struct consumer *consumer)
{
    size_t n = 0;
    for (int t = 0; t < TOPICS_MAX; t++)
        for (int p = 0; p < PARTS_MAX; p++)
            n += consumer->parts[t][p].ours;
    return n;
}

static inline void
committed_of(struct producer *producer, const struct names *names, int topic,
             int32_t partitions, int64_t *ret)
{
    ck_assert_int_eq(toc_bus_committed(producer->bus, names->group,
                                       names->topics[topic], partitions,
                                       ADMIN_MS, ret, NULL),
                     TOC_OK);
}

#endif
