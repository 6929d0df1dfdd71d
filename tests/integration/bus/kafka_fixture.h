/*
 * Topics and groups of one's own on the shared Kafka, a producer that records
 * its reports, a consumer that records what it was told and handed.
 */
#ifndef TOC_TESTS_KAFKA_FIXTURE_H
#define TOC_TESTS_KAFKA_FIXTURE_H

#include "common/base/alloc.h"
#include "common/base/config.h"
#include "common/base/rng.h"
#include "common/base/str.h"
#include "common/bus/kafka/bus_kafka.h"
#include "tests/support/toc_check.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define ADMIN_MS 10000

enum { PARTS_MAX = 8, TOPICS_MAX = 3, OFFSETS_MAX = 4096, BATCH = 64 };

/* librdkafka's threads are C11 threads, which the ThreadSanitizer of gcc 12
 * does not know: it crashes. */
static inline bool
kafka_cannot_run(void)
{
#ifdef __SANITIZE_THREAD__
    printf("skipped: no librdkafka under ThreadSanitizer\n");
    return true;
#else
    return false;
#endif
}

static inline int64_t
now_ms(void)
{
    return toc_os_mono_ns() / 1000000;
}

static inline const char *
brokers(void)
{
    const char *text = toc_env("TOC_KAFKA");
    ck_assert_msg(text != NULL, "TOC_KAFKA is not set; use tests/run");
    return text;
}

#define UNTIL(condition, step)                                         \
    do {                                                               \
        int64_t until_ = now_ms() + PATIENCE_MS;                       \
        while (!(condition)) {                                         \
            ck_assert_msg(now_ms() < until_, "never: %s", #condition); \
            step;                                                      \
        }                                                              \
    } while (0)

/* ---- producing --------------------------------------------------------- */

struct report {
    uintptr_t opaque;
    enum toc_status st;
    int64_t offset;
};

struct producer {
    struct toc_bus_kafka *handle;
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
producer_open(struct producer *producer, size_t queue_max)
{
    const struct toc_bus_kafka_options options = {
        .brokers = brokers(),
        .client_id = "test",
        .report = producer_report,
        .report_arg = producer,
        .queue_max_messages = queue_max,
    };
    memset(producer, 0, sizeof *producer);
    ck_assert_int_eq(toc_bus_kafka_open(&options, &producer->handle, NULL),
                     TOC_OK);
    producer->bus = toc_bus_kafka_port(producer->handle);
}

static inline void
producer_close(struct producer *producer)
{
    toc_bus_kafka_close(producer->handle);
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
    struct toc_consumer_kafka *handle;
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
consumer_open_topics(struct consumer *consumer, const struct names *names,
                     int16_t n_topics)
{
    const char *topics[TOPICS_MAX];
    for (int16_t i = 0; i < n_topics; i++)
        topics[i] = names->topics[i];
    const struct toc_consumer_kafka_options options = {
        .brokers = brokers(),
        .client_id = "test",
        .group = names->group,
        .topics = topics,
        .n_topics = n_topics,
        .rebalance = consumer_rebalance,
        .rebalance_arg = consumer,
    };
    memset(consumer, 0, sizeof *consumer);
    ck_assert_int_eq(toc_consumer_kafka_open(&options, &consumer->handle, NULL),
                     TOC_OK);
    consumer->bus = toc_consumer_kafka_port(consumer->handle);
}

static inline void
consumer_open(struct consumer *consumer, const struct names *names)
{
    consumer_open_topics(consumer, names, 1);
}

static inline void
consumer_close(struct consumer *consumer)
{
    toc_consumer_kafka_close(consumer->handle);
    consumer->handle = NULL;
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

/* ---- Kafka itself ---------------------------------------------------------
 */

static inline void
committed_of(struct producer *producer, const struct names *names, int topic,
             int32_t partitions, int64_t *ret)
{
    ck_assert_int_eq(toc_bus_committed(producer->bus, names->group,
                                       names->topics[topic], partitions,
                                       ADMIN_MS, ret, NULL),
                     TOC_OK);
}

/* The pid of the broker, which belongs to the tests' home. */
static inline pid_t
broker_pid(void)
{
    char path[300];
    int pid = 0;
    const char *home = toc_env("TOC_TEST_HOME");
    ck_assert_msg(home != NULL, "TOC_TEST_HOME is not set; use tests/run");
    toc_format(path, sizeof path, "%s/run/kafka.pid", home);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    ck_assert_int_gt(pid, 1);
    return pid;
}

/* The state letters of all threads of the process; "T" when all stand still. */
static inline bool
is_frozen(void *arg)
{
    char path[300], line[512];
    const pid_t *pid = arg;
    bool frozen = true;
    toc_format(path, sizeof path, "/proc/%d/task", (int)*pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        toc_format(path, sizeof path, "/proc/%d/task/%s/stat", (int)*pid,
                   entry->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        const char *name_end =
            fgets(line, sizeof line, file) == NULL ? NULL : strrchr(line, ')');
        frozen = frozen && name_end != NULL && name_end[2] == 'T';
        fclose(file);
    }
    closedir(dir);
    return frozen;
}

/* A signal stops the threads one by one: waits for the last. */
static inline void
broker_freeze(void)
{
    pid_t pid = broker_pid();
    kill(pid, SIGSTOP);
    ck_assert(toc_eventually(is_frozen, &pid));
}

/* Also before each test: one that failed may have left it frozen. */
static inline void
broker_thaw(void)
{
    kill(broker_pid(), SIGCONT);
}

#endif
