/*
 * The world and its clients. Everything here is under the world's lock unless
 * it says otherwise; functions expect it held.
 */
#ifndef TOC_BUS_MEM_INTERNAL_H
#define TOC_BUS_MEM_INTERNAL_H

#include "common/base/list.h"
#include "common/base/thread.h"
#include "common/bus/assigned.h"
#include "common/bus/mem/bus_mem.h"

#include <pthread.h>

/* The bytes of a message, shared by the log and who was handed it. */
struct mem_bytes {
    size_t refs;
    size_t len;
    char data[];
};

struct mem_bytes *toc_bus_mem_bytes_new(
    struct toc_str from); /* one reference */
void toc_bus_mem_bytes_unref(struct mem_bytes *bytes);

struct mem_part {
    int64_t start; /* offset of the oldest message kept */
    struct mem_bytes **log;
    size_t n, cap;
};

struct mem_topic {
    struct toc_link link;
    char *name;
    int32_t n;
    struct mem_part *parts;
};

/* A message that was sent and not yet reported. */
struct mem_send {
    struct toc_link link;    /* in flight, waiting, or reported */
    struct toc_bus_mem *bus; /* NULL: gone meanwhile */
    char *topic;
    int32_t partition;
    struct mem_bytes *bytes;
    void *opaque;
    struct toc_bus_mem_fate fate;
    int64_t at_ns; /* in flight: arrives; waiting: gives up */
    enum toc_status st;
    int64_t offset;
};

struct mem_committed {
    char *topic;
    int32_t partition;
    int64_t offset;
};

struct mem_place {
    int16_t topic; /* index among the member's topics */
    int32_t partition;
    int64_t position; /* offset to be fetched next */
};

struct mem_member {
    struct toc_link link;
    struct toc_consumer_mem *consumer; /* NULL: it crashed */
    char **topics;
    int16_t n_topics;
    int64_t session_ns;
    int64_t seen_ns; /* last heartbeat, of one that sends no more */
    bool ready;      /* owns nothing, waits for the others */
    uint64_t generation;
    struct mem_place *places; /* of the generation */
    size_t n_places, places_cap;
};

struct mem_group {
    struct toc_link link;
    char *name;
    struct toc_link members; /* oldest first */
    struct mem_committed *committed;
    size_t n_committed, committed_cap;
    uint64_t generation;
    bool rebalancing;
    int64_t rebalance_until_ns;
};

struct toc_bus_mem_world {
    const struct toc_clock *clock;
    bool threads, stopped;
    size_t log_max, message_max;
    toc_bus_mem_fate_fn *fate;
    void *fate_arg;
    pthread_mutex_t lock;
    struct toc_link topics, groups, buses, consumers;
    struct toc_link flight; /* by arrival */
};

struct toc_bus_mem {
    struct toc_bus port;
    struct toc_bus_mem_world *world;
    struct toc_link link;
    toc_bus_report_fn *report;
    void *report_arg;
    size_t queue_max, queued; /* sent and not told */
    bool cut, interrupted;
    struct toc_link waiting, reported;
    struct toc_bell bell;
};

struct mem_sub {
    char *name;
    bool paused;
};

struct toc_consumer_mem {
    struct toc_bus_consumer port;
    struct toc_bus_mem_world *world;
    struct toc_link link;
    struct mem_group *group;
    struct mem_member *member; /* NULL: not in the group */
    bool wants_in, cut, woken;
    int64_t lost_ns; /* since when the cluster is not reached */
    int64_t session_ns;
    int64_t commit_ns; /* next commit by itself */
    struct mem_sub *topics;
    int16_t n_topics;
    toc_bus_rebalance_fn *rebalance;
    void *rebalance_arg;
    uint64_t generation; /* whose places we have taken */
    struct mem_place *places;
    size_t n_places;
    size_t turn; /* which of them is asked first */
    struct toc_bus_assigned assigned;
    struct toc_bell bell;
};

/* ---- world.c --------------------------------------------------------- */

void toc_bus_mem_enter(struct toc_bus_mem_world *world);
void toc_bus_mem_leave(struct toc_bus_mem_world *world);
int64_t toc_bus_mem_now(const struct toc_bus_mem_world *world);
int64_t toc_bus_mem_next_ns(struct toc_bus_mem_world *world);
void toc_bus_mem_ring_consumers(struct toc_bus_mem_world *world);

/* ---- topic.c --------------------------------------------------------- */

struct mem_topic *toc_bus_mem_topic_find(struct toc_bus_mem_world *world,
                                         const char *name);
struct mem_part *toc_bus_mem_part_find(struct toc_bus_mem_world *world,
                                       const char *topic, int32_t partition);
struct mem_topic *toc_bus_mem_topic_make(struct toc_bus_mem_world *world,
                                         const char *name, int32_t partitions);
void toc_bus_mem_topic_drop(struct mem_topic *topic);
int64_t toc_bus_mem_part_end(const struct mem_part *part);
/* Takes the reference; returns the offset. */
int64_t toc_bus_mem_part_append(struct toc_bus_mem_world *world,
                                struct mem_part *part, struct mem_bytes *bytes);
void toc_bus_mem_part_clear(struct mem_part *part);

/* ---- producer.c ------------------------------------------------------ */

/* Arrivals and timeouts whose time has come. */
void toc_bus_mem_flight_settle(struct toc_bus_mem_world *world, int64_t now_ns);
void toc_bus_mem_bus_reached(
    struct toc_bus_mem *bus); /* maybe: what waits may go */
void toc_bus_mem_send_free(struct mem_send *send);

/* ---- group.c --------------------------------------------------------- */

struct mem_group *toc_bus_mem_group_need(struct toc_bus_mem_world *world,
                                         const char *name);
void toc_bus_mem_group_free(struct mem_group *group);
int64_t toc_bus_mem_group_committed(const struct mem_group *group,
                                    const char *topic,
                                    int32_t partition); /* -1: nothing */
void toc_bus_mem_group_commit(struct mem_group *group, const char *topic,
                              int32_t partition, int64_t offset);
void toc_bus_mem_group_forget(struct mem_group *group, const char *topic);
/* Members must give up what they have, and get anew. */
void toc_bus_mem_group_rebalance(struct toc_bus_mem_world *world,
                                 struct mem_group *group);
/* Assigns when all are ready. */
void toc_bus_mem_group_settle(struct toc_bus_mem_world *world,
                              struct mem_group *group, int64_t now_ns);
void toc_bus_mem_member_join(struct toc_consumer_mem *consumer);
void toc_bus_mem_member_remove(struct toc_bus_mem_world *world,
                               struct mem_group *group,
                               struct mem_member *member);
/* All groups that have a member with the topic. */
void toc_bus_mem_topic_changed(struct toc_bus_mem_world *world,
                               const char *topic);
int64_t toc_bus_mem_group_next_ns(const struct toc_bus_mem_world *world,
                                  const struct mem_group *group);

/* ---- consumer.c ------------------------------------------------------ */

bool toc_bus_mem_consumer_reaches(const struct toc_consumer_mem *consumer);
/* Commits what is marked, if it is time. */
void toc_bus_mem_consumer_settle(struct toc_consumer_mem *consumer,
                                 int64_t now_ns);
void toc_bus_mem_consumer_contact(struct toc_consumer_mem *consumer,
                                  bool reaches);

#endif
