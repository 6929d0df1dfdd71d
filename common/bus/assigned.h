/*
 * Which partitions are ours, what was handed out of each, and what of that is
 * decided. It is what keeps a committed offset from going back, or over
 * something undecided: a mark counts only for a partition that is assigned,
 * only within what was handed out since then, and only upwards.
 *
 * Pure: no I/O. Ownership: the consumer. Threads: one at a time.
 */
#ifndef TOC_BUS_ASSIGNED_H
#define TOC_BUS_ASSIGNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct toc_bus_part {
    int16_t topic;
    int32_t partition;
    int64_t first;  /* offset handed out first; -1: none yet */
    int64_t next;   /* behind what was handed out last */
    int64_t marked; /* everything below is decided; -1: nothing yet */
};

struct toc_bus_assigned {
    struct toc_bus_part *parts; /* sorted by topic, partition */
    size_t n, cap;
};

void toc_bus_assigned_done(struct toc_bus_assigned *assigned);
/* Anew also when it is there: what was before counts no more. */
void toc_bus_assigned_add(struct toc_bus_assigned *assigned, int16_t topic,
                          int32_t partition);
void toc_bus_assigned_remove(struct toc_bus_assigned *assigned, int16_t topic,
                             int32_t partition);
struct toc_bus_part *toc_bus_assigned_find(
    const struct toc_bus_assigned *assigned, int16_t topic, int32_t partition);
enum toc_bus_take {
    TOC_BUS_NOT_OURS,
    TOC_BUS_OURS,
    TOC_BUS_ANEW, /* ours, and the log begins anew with this offset */
};
/* A message is about to be handed out. */
enum toc_bus_take toc_bus_assigned_take(struct toc_bus_assigned *assigned,
                                        int16_t topic, int32_t partition,
                                        int64_t offset);
/* False: the mark does not count. */
bool toc_bus_assigned_mark(struct toc_bus_assigned *assigned, int16_t topic,
                           int32_t partition, int64_t next_offset);

#endif
