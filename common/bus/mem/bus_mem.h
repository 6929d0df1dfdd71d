/*
 * The bus in memory: what bus/kafka does, without Kafka. A world is the
 * cluster (topics, groups); producers and consumers are its clients.
 *
 * Time is the given clock's alone, so a test or a simulation sets it. Nothing
 * runs by itself: messages under way arrive, marks are committed (500 ms) and
 * sessions end when somebody looks after their time (any operation does, and
 * pump). A client's heartbeats count as sent while it is neither cut off nor
 * killed. Rebalances are eager and round robin, as with bus/kafka: each member
 * gives its partitions up inside a poll, and all wait for the last.
 *
 * With `threads` a poll waits, by the real monotonic clock, which the world's
 * clock must then be; without it a poll gives what there is and returns.
 *
 * Ownership: clients are closed or killed, and messages released, before the
 * world is freed. Threads: the world's functions on any; clients as the port
 * says. Locks: one per world, a leaf; callbacks run without it.
 */
#ifndef TOC_BUS_MEM_H
#define TOC_BUS_MEM_H

#include "common/bus/bus.h"
#include "common/clock/clock.h"

/* What becomes of a message that was sent; all zero: it is stored at once. */
struct toc_bus_mem_fate {
    bool lose;              /* it is never stored */
    enum toc_status report; /* what its sender is told nevertheless */
    unsigned copies_more;   /* stored so often more */
    int64_t delay_ms;       /* under way; one sent later may overtake it */
};
/* Called on the sender's thread. */
typedef struct toc_bus_mem_fate toc_bus_mem_fate_fn(void *arg,
                                                    const char *topic,
                                                    int32_t partition,
                                                    struct toc_str message);

struct toc_bus_mem_world_options {
    const struct toc_clock *clock;
    bool threads;
    size_t log_max;            /* messages kept of a partition; 0: 100,000 */
    size_t message_max;        /* bytes of a message; 0: 1,000,000 */
    toc_bus_mem_fate_fn *fate; /* or NULL */
    void *fate_arg;
};

struct toc_bus_mem_world;
struct toc_bus_mem_world *toc_bus_mem_world_new(
    const struct toc_bus_mem_world_options *options);
void toc_bus_mem_world_free(struct toc_bus_mem_world *world);
/* Lets happen what time has brought. When something will happen next by itself
 * (monotonic clock, ns); INT64_MAX: nothing. */
int64_t toc_bus_mem_pump(struct toc_bus_mem_world *world);

/* ---- producers ------------------------------------------------------- */

struct toc_bus_mem_options {
    toc_bus_report_fn *report; /* may be NULL for a bus that never sends */
    void *report_arg;
    size_t queue_max_messages; /* 0: 100,000 */
};

struct toc_bus_mem;
struct toc_bus_mem *toc_bus_mem_open(struct toc_bus_mem_world *world,
                                     const struct toc_bus_mem_options *options);
/* Messages not yet reported are reported as TOC_CANCELLED. */
void toc_bus_mem_close(struct toc_bus_mem *bus);
/* As a crash: nothing is reported; what is under way still arrives. */
void toc_bus_mem_kill(struct toc_bus_mem *bus);
struct toc_bus *toc_bus_mem_port(struct toc_bus_mem *bus);

/* ---- consumers ------------------------------------------------------- */

struct toc_consumer_mem_options {
    const char *group;
    const char *const *topics; /* most urgent first: polled first */
    int16_t n_topics;
    int64_t session_timeout_ms; /* 0: 2,000 */
    toc_bus_rebalance_fn *rebalance;
    void *rebalance_arg;
};

struct toc_consumer_mem;
struct toc_consumer_mem *toc_consumer_mem_open(
    struct toc_bus_mem_world *world,
    const struct toc_consumer_mem_options *options);
/* Commits what is marked, leaves the group. */
void toc_consumer_mem_close(struct toc_consumer_mem *consumer);
/* As a crash: its partitions are free when its session ends. */
void toc_consumer_mem_kill(struct toc_consumer_mem *consumer);
struct toc_bus_consumer *toc_consumer_mem_port(
    struct toc_consumer_mem *consumer);

/* ---- what can go wrong ---------------------------------------------- */

/* The client and the cluster do not reach each other. What is sent meanwhile
 * waits for 5 s, then it is reported as TOC_DEADLINE. */
void toc_bus_mem_cut(struct toc_bus_mem *bus, bool cut);
void toc_consumer_mem_cut(struct toc_consumer_mem *consumer, bool cut);
/* The cluster stands still: nobody reaches it, no session ends. */
void toc_bus_mem_stop(struct toc_bus_mem_world *world, bool stopped);
/* With its messages and what groups have committed. */
void toc_bus_mem_delete_topic(struct toc_bus_mem_world *world,
                              const char *topic);
/* Empty, and offsets begin at 0 again. keep_offsets: what groups have committed
 * stays, which is then beyond the end. */
void toc_bus_mem_recreate_topic(struct toc_bus_mem_world *world,
                                const char *topic, bool keep_offsets);

#endif
