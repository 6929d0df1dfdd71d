/*
 * Coordination in memory: what coord/etcd does, without etcd. A world is the
 * server (keys under leases, revisions, a history for watches); handles are
 * the processes.
 *
 * Time is the given clocks' alone, so a test or a simulation sets it. Nothing
 * runs by itself: a handle's lease counts as renewed at each third of its TTL
 * as long as the handle is neither cut off nor killed, and leases end when
 * somebody looks after their time (any operation does, and pump).
 *
 * With `threads` a poll waits, by the real monotonic clock, which the world's
 * clock must then be; without it a poll tells what there is and returns, so
 * that one thread can drive many processes in an order it chooses.
 *
 * Ownership: handles are closed or killed before their world is freed.
 * Threads: the world's functions on any; a handle as the port says. Locks: one
 * per world, a leaf; events are told without it.
 */
#ifndef TOC_COORD_MEM_H
#define TOC_COORD_MEM_H

#include "common/clock/clock.h"
#include "common/coord/coord.h"

struct toc_coord_mem_world_options {
    const struct toc_clock *clock;
    bool threads;
    size_t history_max; /* changes kept for watches; 0: 4,096 */
};

struct toc_coord_mem_options {
    const struct toc_clock *clock; /* the process's; NULL: the world's */
    const char *role, *node,
        *address; /* our member key; role NULL: look only */
    uint32_t node_id;
    int64_t started_ms;
    int64_t ttl_s;     /* 0: 2 */
    bool watch_owners; /* executors need members only */
};

struct toc_coord_mem_world;
struct toc_coord_mem;

struct toc_coord_mem_world *toc_coord_mem_world_new(
    const struct toc_coord_mem_world_options *options);
void toc_coord_mem_world_free(struct toc_coord_mem_world *world);
/* Ends the leases whose time has come. When something will happen by itself
 * (monotonic clock, ns); INT64_MAX: nothing. */
int64_t toc_coord_mem_pump(struct toc_coord_mem_world *world);

struct toc_coord_mem *toc_coord_mem_open(
    struct toc_coord_mem_world *world,
    const struct toc_coord_mem_options *options);
/* Leaves and frees. */
void toc_coord_mem_close(struct toc_coord_mem *coord);
/* Frees as a crash does: the lease runs out by itself. */
void toc_coord_mem_kill(struct toc_coord_mem *coord);
struct toc_coord *toc_coord_mem_port(struct toc_coord_mem *coord);

/* ---- what can go wrong ---------------------------------------------- */

/* The process and the server do not reach each other. */
void toc_coord_mem_cut(struct toc_coord_mem *coord, bool cut);
/* The server ends the session's lease now. */
void toc_coord_mem_expire(struct toc_coord_mem *coord);
/* The next n changes are never told to the handle. */
void toc_coord_mem_lose_events(struct toc_coord_mem *coord, size_t n);
/* Changes are told only when they are that old. */
void toc_coord_mem_delay_events(struct toc_coord_mem *coord, int64_t ms);

/* The server stands still: nobody reaches it, no lease ends. */
void toc_coord_mem_stop(struct toc_coord_mem_world *world, bool stopped);
/* While it lies, every claim is said to be won, whoever holds the key. */
void toc_coord_mem_lie(struct toc_coord_mem_world *world, bool lies);
/* History up to now is forgotten: who has not seen it reads all anew. */
void toc_coord_mem_compact(struct toc_coord_mem_world *world);
/* Another, empty server stands at the address. */
void toc_coord_mem_wipe(struct toc_coord_mem_world *world);

/* The keys and leases of a moment, to go back to. */
struct toc_coord_mem_backup;
struct toc_coord_mem_backup *toc_coord_mem_backup_new(
    struct toc_coord_mem_world *world);
void toc_coord_mem_restore(struct toc_coord_mem_world *world,
                           const struct toc_coord_mem_backup *backup);
/* Before its world is freed. */
void toc_coord_mem_backup_free(struct toc_coord_mem_world *world,
                               struct toc_coord_mem_backup *backup);

#endif
