/*
 * The coordination port: who is there and who owns which shard.
 *
 * A process holds one session (a lease that the backend keeps alive on a thread
 * of its own). Under it stand the process's member key, its owner keys and its
 * wishes (shards that are to be its, whoever owns them now); all vanish when
 * the session ends. Nothing rests on this being true: two owners of a shard, or
 * none, cost time only.
 *
 * Threads: one thread calls the operations of a handle; toc_coord_deadline and
 * toc_coord_wake may be called from any. Blocking: up to the backend's request
 * timeout (2 s); poll up to its timeout.
 */
#ifndef TOC_COORD_COORD_H
#define TOC_COORD_COORD_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct toc_member {
    struct toc_str role, node, address;
    uint32_t node_id; /* the store's number of the process */
    int64_t started_ms;
};

struct toc_owner {
    uint16_t shard;
    struct toc_str node;    /* name of the owner */
    struct toc_str address; /* its gRPC address */
};

enum toc_coord_event_kind {
    TOC_COORD_MEMBER_UP,    /* member: also when it changed */
    TOC_COORD_MEMBER_DOWN,  /* member.role and .node only */
    TOC_COORD_OWNED,        /* owner */
    TOC_COORD_FREED,        /* owner.shard only */
    TOC_COORD_RESET,        /* forget all that is known: everything follows */
    TOC_COORD_SYNCED,       /* all that stood there has been told */
    TOC_COORD_SESSION_LOST, /* our session ended: our keys are gone */
    TOC_COORD_SESSION_NEW,  /* we have a session (again); nothing owned yet */
    TOC_COORD_WANTED,       /* owner.shard is to be owner.node's */
    TOC_COORD_UNWANTED,     /* owner.shard only: nobody's wish any more */
};

struct toc_coord_event {
    enum toc_coord_event_kind kind;
    struct toc_member member;
    struct toc_owner owner;
};

typedef void toc_coord_event_fn(void *arg, const struct toc_coord_event *event);

struct toc_coord_ops {
    const char *name;
    enum toc_status (*poll)(void *self, int64_t timeout_ms,
                            toc_coord_event_fn *fn, void *arg,
                            struct toc_error *reterr);
    enum toc_status (*acquire)(void *self, const uint16_t *shards, size_t n,
                               bool *ret_won, struct toc_error *reterr);
    enum toc_status (*release)(void *self, const uint16_t *shards, size_t n,
                               struct toc_error *reterr);
    enum toc_status (*want)(void *self, const uint16_t *shards, size_t n,
                            bool wanted, struct toc_error *reterr);
    enum toc_status (*leave)(void *self, struct toc_error *reterr);
    enum toc_status (*snapshot)(void *self, struct toc_arena *arena,
                                struct toc_member **ret_members,
                                size_t *ret_n_members,
                                struct toc_owner **ret_owners,
                                size_t *ret_n_owners, struct toc_error *reterr);
    int64_t (*deadline_boot_ns)(void *self);
    void (*wake)(void *self);
    void (*interrupt)(void *self); /* NULL: nothing to interrupt */
};

struct toc_coord {
    const struct toc_coord_ops *ops;
    void *self;
};

/* Waits up to timeout_ms for events and tells them in order. Opens, and after a
 * loss opens again, the session and the watch. Errors are for the log: poll
 * again (it backs off by itself). */
TOC_MUST_CHECK enum toc_status toc_coord_poll(struct toc_coord *coord,
                                              int64_t timeout_ms,
                                              toc_coord_event_fn *fn, void *arg,
                                              struct toc_error *reterr);
/* Creates the owner keys that are absent, under our session; ret_won[i] tells.
 * A key that is ours already counts as won. Any n; split as the server wants.
 */
TOC_MUST_CHECK enum toc_status toc_coord_acquire(struct toc_coord *coord,
                                                 const uint16_t *shards,
                                                 size_t n, bool *ret_won,
                                                 struct toc_error *reterr);
/* Removes owner keys that are ours. */
TOC_MUST_CHECK enum toc_status toc_coord_release(struct toc_coord *coord,
                                                 const uint16_t *shards,
                                                 size_t n,
                                                 struct toc_error *reterr);
/* While our session lasts the shards are to be ours; a wish that stands for one
 * is replaced. Not wanted: wishes for them are removed, whosesoever. It changes
 * no owner. */
TOC_MUST_CHECK enum toc_status toc_coord_want(struct toc_coord *coord,
                                              const uint16_t *shards, size_t n,
                                              bool wanted,
                                              struct toc_error *reterr);
/* Ends the session: member and owner keys, and wishes, vanish at once. */
TOC_MUST_CHECK enum toc_status toc_coord_leave(struct toc_coord *coord,
                                               struct toc_error *reterr);
/* What stands there now; for lists. Any thread. */
TOC_MUST_CHECK enum toc_status toc_coord_snapshot(
    struct toc_coord *coord, struct toc_arena *arena,
    struct toc_member **ret_members, size_t *ret_n_members,
    struct toc_owner **ret_owners, size_t *ret_n_owners,
    struct toc_error *reterr);
/* Boot-time clock (ns) before which our session cannot have ended; 0: none. A
 * node stops acting as owner, and an executor cancels its calls, then. */
int64_t toc_coord_deadline_boot_ns(struct toc_coord *coord);
void toc_coord_wake(struct toc_coord *coord);
/* The process ends: what is asked of the backend at this moment has a little
 * time left (a second or two), every further operation fails at once; leave
 * alone is carried out. Any thread; does not block. */
void toc_coord_interrupt(struct toc_coord *coord);

#endif
