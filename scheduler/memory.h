/*
 * The hints in memory: those that wait for their time, those on their way to
 * the bus, and, for a while, those that the bus has taken (so that the loader's
 * band and the sweep do not send them again).
 *
 * A hint is known by (task id, version). Anybody offers; the publisher alone
 * takes entries out and moves them on:
 *
 *     offer -> WAITING (wheel) -> due -> QUEUED (publisher's lanes)
 *           -> sent -> SENT -> acked -> TAKEN -> forgotten
 *
 * Bounds: entries and their bytes; the loader's fresh part stops at 80 % of
 * both, so that what is nearly due finds room. Entries taken by the bus count
 * apart, up to the same number; beyond, the oldest is forgotten early.
 *
 * Threads: offer, knows and hasten: any; the rest: publisher. Locks: its own,
 * a leaf. Nothing blocks.
 */
#ifndef TOC_SCHEDULER_MEMORY_H
#define TOC_SCHEDULER_MEMORY_H

#include "common/base/hmap.h"
#include "common/base/thread.h"
#include "common/model/hint.h"
#include "scheduler/shards.h"
#include "scheduler/wheel.h"

#include <pthread.h>

enum sched_entry_state {
    SCHED_ENTRY_WAITING,
    SCHED_ENTRY_QUEUED,
    SCHED_ENTRY_SENT,
    SCHED_ENTRY_TAKEN,
};

struct sched_entry {
    struct toc_hnode node;
    struct sched_wheel_node wheel; /* the link serves the other states too */
    struct toc_task_id id;
    uint32_t version;
    uint32_t gen; /* of the shard when it was offered */
    int64_t slot_ms, due_ms;
    int64_t created_ms; /* TAKEN: when it may be forgotten */
    uint32_t fire, target_id, line_id;
    uint16_t slice, attempt, claims;
    uint8_t flags, state;
    bool has_payload;
    uint8_t biz_type_len, biz_id_len, name_len;
    uint16_t spec_len;
    uint32_t payload_len;
    char *bytes; /* biz_type, biz_id, name, spec, payload; NULL when TAKEN */
};

enum sched_offer {
    SCHED_OFFER_TAKEN,
    SCHED_OFFER_KNOWN,
    SCHED_OFFER_FULL,
    SCHED_OFFER_NOT_OURS,
};

enum sched_road {
    SCHED_ROAD_FRESH, /* the loader's read-ahead: leaves room for the others */
    SCHED_ROAD_NEAR,  /* band, takeover, sweep, a submit due soon, a peer */
};

struct sched_memory_options {
    struct sched_shards *shards;
    struct toc_bell *bell; /* the publisher's */
    size_t entries_max;
    int64_t now_ms;
};

struct sched_memory {
    struct sched_memory_options opt;
    pthread_mutex_t lock; /* guards what follows */
    struct toc_hmap map;
    struct sched_wheel wheel;
    size_t waiting; /* all but TAKEN */
    size_t taken;
    size_t bytes;
    int64_t wake_ms;            /* an earlier entry must ring the bell */
    struct toc_link taken_list; /* oldest first */
    _Atomic uint32_t offered[TOC_SHARDS]; /* hints taken, ever; no lock */
};

void sched_memory_init(struct sched_memory *memory,
                       const struct sched_memory_options *opt);
void sched_memory_done(struct sched_memory *memory); /* drops all */

/* Copies the task. A payload over TOC_HINT_PAYLOAD_MAX is left out. */
enum sched_offer sched_memory_offer(struct sched_memory *memory,
                                    const struct toc_task *task,
                                    enum sched_road road);
bool sched_memory_knows(struct sched_memory *memory, struct toc_task_id id,
                        uint32_t version);
/* What waits of shards that are being handed over and is due by until_ms is to
 * be sent at once. */
void sched_memory_hasten(struct sched_memory *memory, int64_t until_ms);
/* Is there one of such shards that the bus has not taken yet, due by until_ms?
 */
bool sched_memory_unsent(struct sched_memory *memory, int64_t until_ms);
size_t sched_memory_len(struct sched_memory *memory); /* all but TAKEN */
/* How full it is, between 0 and 1: of what the loader's fresh part may fill. */
double sched_memory_share(struct sched_memory *memory);

/* ---- the publisher's ------------------------------------------------- */

/* Takes up to max entries due by until_ms; they are QUEUED. Those whose shard
 * is not ours any more are dropped. now_ms: see sched_wheel_rewind. */
size_t sched_memory_due(struct sched_memory *memory, int64_t now_ms,
                        int64_t until_ms, struct sched_entry **ret, size_t max);
/* When the earliest waiting entry is due; INT64_MAX: none. */
int64_t sched_memory_next(struct sched_memory *memory);
/* The bell is to ring when an entry due before wake_ms is offered. */
void sched_memory_sleep(struct sched_memory *memory, int64_t wake_ms);
/* Is its shard still ours, as when it was loaded? */
bool sched_memory_current(struct sched_memory *memory,
                          const struct sched_entry *entry);
void sched_memory_sent(struct sched_memory *memory,
                       struct sched_entry **entries, size_t n);
void sched_memory_queued(struct sched_memory *memory,
                         struct sched_entry **entries, size_t n);
/* The bus has them: they are remembered until their slot is 2 s past, 5 s at
 * least. */
void sched_memory_taken(struct sched_memory *memory,
                        struct sched_entry **entries, size_t n, int64_t now_ms);
void sched_memory_drop(struct sched_memory *memory, struct sched_entry *entry);
void sched_memory_forget(struct sched_memory *memory, int64_t now_ms);
/* Borrows from the entry. */
struct toc_hint sched_entry_hint(const struct sched_entry *entry);

#endif
