/*
 * A hint in memory, from its arrival until its claim is decided (and, when the
 * claim was won, until the attempt is written back).
 *
 * Ownership: one block of memory holds the struct and all its texts. Threads:
 * made by a lane, then core's; a won one belongs to its attempt.
 */
#ifndef TOC_EXECUTOR_ITEM_H
#define TOC_EXECUTOR_ITEM_H

#include "common/base/arena.h"
#include "common/base/heap.h"
#include "common/base/hmap.h"
#include "common/base/list.h"
#include "common/model/hint.h"
#include "executor/offsets.h"

#include <stdbool.h>
#include <stdint.h>

/* Hints that are due for longer stand in lines of their own, beside those of
 * fresh ones, and the lines take turns: a backlog is worked off, oldest first,
 * while new tasks stay near their time. */
#define EXEC_LATE_MS 2000

enum exec_age { EXEC_FRESH, EXEC_LATE, EXEC_AGES };

/* One of the messages that carried the hint. */
struct exec_ref {
    struct exec_message *message;
    struct exec_ref *next;
};

struct exec_target;

enum exec_item_state {
    EXEC_ITEM_NEW,      /* not yet the core's */
    EXEC_ITEM_WAITING,  /* in the heap, until wake_ms */
    EXEC_ITEM_QUEUED,   /* due; its target is full */
    EXEC_ITEM_CLAIMING, /* in the claim batch */
    EXEC_ITEM_WON,      /* an attempt's */
};

struct exec_item {
    struct toc_heap_node node;
    struct toc_hnode hnode;
    struct toc_link link;    /* in its target's queue */
    struct toc_link overdue; /* among the undecided of all queues */
    enum exec_item_state state;
    enum exec_age age; /* looked at whenever it is first in a line */
    struct exec_ref *refs;
    bool kept; /* decided while it waited for its target: needs no message */

    /* What the hint says. */
    struct toc_task task;
    bool has_payload;

    /* What of its spec must be known before the claim. A spec that cannot be
     * read is read again from the row. */
    bool spec_bad;
    struct toc_str target;
    int64_t call_timeout_ms;
    uint32_t batch_max;

    int64_t wake_ms;        /* wall: not to be claimed before */
    unsigned early;         /* times the database's clock refused it */
    bool alone;             /* a claim with others failed: claim it alone */
    struct exec_target *to; /* while queued or claiming */
    int64_t queued_ns;      /* while queued: since when */
    int64_t look_ns;        /* while queued: when to decide on it */
    bool slot_held;         /* while claiming: a call slot is kept for it */
};

/* Copies the hint. The arena is for scratch. */
struct exec_item *exec_item_new(const struct toc_hint *hint,
                                struct toc_arena *scratch);
void exec_item_free(struct exec_item *item); /* refs must be gone */

/* Whether it has become late since it was looked at; then it is from now on. */
bool exec_item_ages(struct exec_item *item, int64_t now_ms);

enum toc_priority exec_item_priority(const struct exec_item *item);

/* The message carries the hint (too). Not for one that is kept: its messages
 * are decided as they come. */
void exec_item_add_ref(struct exec_item *item, struct exec_message *message);
/* The hint is decided: tells all its messages. */
void exec_item_decide(struct exec_item *item, struct exec_offsets *offsets);
/* No message carries it any more, and it was not kept: its tasks' next hints
 * are somebody else's. */
bool exec_item_is_orphan(const struct exec_item *item);
/* Forgets messages of the partition, undecided. */
void exec_item_drop_refs(struct exec_item *item,
                         const struct exec_partition *partition);

#endif
