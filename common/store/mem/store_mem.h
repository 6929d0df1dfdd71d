/*
 * The store in memory: the reference model of the port. It says in a few
 * hundred lines what the transactions of the real store do; the contract suite
 * and random sequences compare the two. Simulations and the embedded center run
 * on it.
 *
 * Deterministic: no randomness and no clock but those given. Threads: any, one
 * lock; a callback of load or scan must not call the store. Blocking: never; an
 * operation that would wait for a lock fails with TOC_UNAVAILABLE at once, as
 * the real one does after its timeout. Ownership: toc_store_mem_close frees it;
 * what an operation gave out lives in the caller's arena.
 *
 * Held transactions. A transaction can be kept between its last statement and
 * its commit: its writes are made, nobody sees them, and its locks stand (rows
 * and keys it wrote, the shared or exclusive lock on its shards). Readers read
 * the old rows; a writer that needs one of the locks fails as above. So the
 * orders of two connections can be walked through step by step.
 */
#ifndef TOC_STORE_MEM_H
#define TOC_STORE_MEM_H

#include "common/base/buf.h"
#include "common/clock/clock.h"
#include "common/store/store.h"

struct toc_store_mem;

struct toc_store_mem_options {
    /* The database's clock, which may differ from everybody else's. Borrowed.
     */
    const struct toc_clock *clock;
    uint64_t seed; /* of the random part of task ids */
};

/* With all shards open, marks a minute behind, days up to 35 ahead. */
struct toc_store_mem *toc_store_mem_open(
    const struct toc_store_mem_options *options);
void toc_store_mem_close(struct toc_store_mem *store);
struct toc_store *toc_store_mem_port(struct toc_store_mem *store);

/* What the caller of a held transaction is told. */
enum toc_store_mem_answer {
    /* TOC_UNAVAILABLE, as after a connection that was lost at COMMIT: whether
     * it took effect comes out later. */
    TOC_STORE_MEM_UNKNOWN,
    /* What it would be told after the commit. For a caller that is itself
     * frozen until then: it must not act on it before the release. */
    TOC_STORE_MEM_FROZEN,
};

/* The next transaction that writes anything is held. */
void toc_store_mem_hold_next(struct toc_store_mem *store,
                             enum toc_store_mem_answer answer);
/* Not so, if none came. */
void toc_store_mem_hold_none(struct toc_store_mem *store);
/* The number of the transaction that was held last, 0 before any; from 1. */
uint64_t toc_store_mem_last_held(struct toc_store_mem *store);
size_t toc_store_mem_n_held(struct toc_store_mem *store);
/* Commits it, or rolls it back; false: no such transaction is held. */
bool toc_store_mem_release(struct toc_store_mem *store, uint64_t held,
                           bool commit);

/* Sets all marks of a shard, for tests. */
void toc_store_mem_set_shard(struct toc_store_mem *store,
                             const struct toc_shard_row *shard);
/* Is everything as it must be, whatever was done: no unfinished row behind its
 * mark that is not recorded, keys that lead to their tasks, and the like? Adds
 * a line for each thing that is not. */
bool toc_store_mem_check(struct toc_store_mem *store, struct toc_buf *out);
/* Calls fn for each unfinished row behind its mark that is not recorded. */
void toc_store_mem_lost(struct toc_store_mem *store, toc_store_task_fn *fn,
                        void *arg);

/* Everything that is committed, as lines of text, sorted: equal stores give
 * equal texts. */
void toc_store_mem_dump(struct toc_store_mem *store, struct toc_buf *out);

#endif
