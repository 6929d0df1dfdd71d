/*
 * Which offsets are decided.
 *
 * A bus message is decided when all its hints are; a partition may be marked up
 * to the first message, in order of arrival, that is not. So a committed offset
 * never leads the database.
 *
 * A partition has a generation: it counts how often the partition came to its
 * lane. What belongs to an older generation is not ours any more.
 *
 * Ownership: everything here is freed by revoke or done; a hint refers to its
 * messages and must drop the reference before that. Threads: core.
 */
#ifndef TOC_EXECUTOR_OFFSETS_H
#define TOC_EXECUTOR_OFFSETS_H

#include "common/base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exec_place {
    uint16_t lane;
    int16_t topic;
    int32_t partition;
    uint32_t generation;
};

struct exec_partition {
    struct toc_link link;
    struct exec_place place;
    struct toc_link messages; /* in order of arrival, the first undecided */
    int64_t mark;             /* everything below is decided */
    bool marked;              /* mark moved since it was last taken */
};

struct exec_message {
    struct toc_link link;
    struct exec_partition *partition;
    int64_t offset;
    size_t undecided;
};

struct exec_offsets {
    struct toc_link partitions;
    size_t messages; /* undecided ones, and those that wait behind them */
};

void exec_offsets_init(struct exec_offsets *offsets);
void exec_offsets_done(struct exec_offsets *offsets);

/* The partition came to us. An older generation must have been revoked. */
void exec_offsets_assign(struct exec_offsets *offsets,
                         const struct exec_place *place);
/* NULL: not ours, or not any more. */
struct exec_partition *exec_offsets_find(struct exec_offsets *offsets,
                                         const struct exec_place *place);
/* Forgets the partition and its messages. */
void exec_offsets_revoke(struct exec_offsets *offsets,
                         struct exec_partition *partition);

/* A message with n hints arrived. With none it is decided already; then, and
 * only then, NULL is returned. */
struct exec_message *exec_offsets_arrive(struct exec_offsets *offsets,
                                         struct exec_partition *partition,
                                         int64_t offset, size_t n);
/* One more hint of the message is decided. The message may be gone then. */
void exec_offsets_decide(struct exec_offsets *offsets,
                         struct exec_message *message);

/* Hands out every mark that moved since the last time. */
typedef void exec_mark_fn(void *arg, const struct exec_place *place,
                          int64_t next_offset);
void exec_offsets_take_marks(struct exec_offsets *offsets, exec_mark_fn *fn,
                             void *arg);

#endif
