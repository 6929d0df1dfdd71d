/*
 * The shared Kafka to test with: clients on it, and freezing its broker.
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

static inline void
time_goes_on(void)
{
}

#include "tests/contract/bus/bus_clients.h"

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
    struct toc_bus_kafka *handle = NULL;
    ck_assert_int_eq(toc_bus_kafka_open(&options, &handle, NULL), TOC_OK);
    producer->handle = handle;
    producer->bus = toc_bus_kafka_port(handle);
}

static inline void
producer_close(struct producer *producer)
{
    toc_bus_kafka_close(producer->handle);
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
    struct toc_consumer_kafka *handle = NULL;
    ck_assert_int_eq(toc_consumer_kafka_open(&options, &handle, NULL), TOC_OK);
    consumer->handle = handle;
    consumer->bus = toc_consumer_kafka_port(handle);
}

static inline void
consumer_close(struct consumer *consumer)
{
    toc_consumer_kafka_close(consumer->handle);
    consumer->handle = NULL;
}

/* ---- Kafka itself ---------------------------------------------------------
 */

/* The pid of the broker, which belongs to the tests' home; 0: not known (not
 * asserted here: it is asked outside of tests, too). */
static inline pid_t
broker_pid(void)
{
    char path[300];
    int pid = 0;
    const char *home = toc_env("TOC_TEST_HOME");
    toc_format(path, sizeof path, "%s/run/kafka.pid", home == NULL ? "" : home);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%d", &pid) != 1 || pid < 2)
        pid = 0;
    fclose(file);
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
    ck_assert_msg(pid > 0, "no broker in TOC_TEST_HOME; use tests/run");
    kill(pid, SIGSTOP);
    ck_assert(toc_eventually(is_frozen, &pid));
}

/* Also before each test: one that failed may have left it frozen. */
static inline void
broker_thaw(void)
{
    pid_t pid = broker_pid();
    if (pid > 0)
        kill(pid, SIGCONT);
}

#endif
