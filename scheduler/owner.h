/*
 * Which shards this node should own, and what is to be done about it.
 *
 * Every live scheduler ranks all live schedulers for each shard by rendezvous
 * hashing, behind the one that wants it (the planner asked it to, to spread
 * load), if that lives; the first in rank should own it. A free shard is
 * claimed at once by the first, by the others after a while each (so that none
 * stays free because the first is ill). An owner that is not first any more,
 * because another node joined or wants it, gives the shard up: a bounded number
 * at a time, and only once the better node has been there for some seconds, and
 * has not just left one lying.
 *
 * A node that is not fit (its clock is off: its hints would come at a wrong
 * time) gives everything up at once and claims nothing until it is fit again.
 * It stays a member, first for its shards, and so is passed over.
 *
 * Pure state machine: the runner feeds events and carries out the one action
 * of a step. Threads: coordination. Nothing blocks.
 */
#ifndef TOC_SCHEDULER_OWNER_H
#define TOC_SCHEDULER_OWNER_H

#include "common/coord/coord.h"
#include "common/model/key.h"

#include <stdbool.h>
#include <stdint.h>

#define SCHED_MEMBERS_MAX 256
#define SCHED_NODE_NAME_MAX 64
#define SCHED_GIVE_AT_ONCE 32

enum sched_owner_action_kind {
    SCHED_OWNER_NOTHING,
    SCHED_OWNER_ACQUIRE,   /* then tell sched_owner_acquired */
    SCHED_OWNER_HAND_OVER, /* begin: send ahead what is due soon */
    SCHED_OWNER_RELEASE, /* stop hinting, give the keys up, sched_owner_released
                          */
    SCHED_OWNER_DROP,    /* stop hinting: they are not ours any more */
    SCHED_OWNER_WANT,    /* tell all: they are to be ours */
    SCHED_OWNER_UNWANT,  /* nobody's wish is needed for them to be ours */
};

struct sched_owner_action {
    enum sched_owner_action_kind kind;
    uint16_t shards[TOC_SHARDS];
    size_t n;
};

enum sched_hold { /* what we are to a shard */
                  SCHED_HOLD_NONE,
                  SCHED_HOLD_OURS,
                  SCHED_HOLD_HANDING,
                  SCHED_HOLD_LOST, /* to be dropped in the next step */
};

struct sched_owner_member {
    char name[SCHED_NODE_NAME_MAX];
    int64_t since_ns;
    int64_t passed_ns; /* when a shard that it is first for was left to us; 0:
                          never */
};

struct sched_owner {
    char self[SCHED_NODE_NAME_MAX];
    bool session, synced;
    bool unfit; /* nothing is to be ours */
    struct sched_owner_member members[SCHED_MEMBERS_MAX];
    size_t n_members;
    bool ranks_stale;
    uint16_t rank[TOC_SHARDS];  /* ours for the shard; 0: first */
    uint16_t first[TOC_SHARDS]; /* index of the member that is first */
    bool natural[TOC_SHARDS];   /* without wishes we are first */
    bool asked[TOC_SHARDS];     /* we are to want it */
    char wish[TOC_SHARDS][SCHED_NODE_NAME_MAX]; /* who wants it; "": nobody */
    int64_t next_unwant_ns;
    enum sched_hold hold[TOC_SHARDS];
    bool taken[TOC_SHARDS];      /* a key stands there, ours or another's */
    int64_t free_ns[TOC_SHARDS]; /* since when not; not before this try again */
    int64_t hand_until_ns, next_hand_ns;
    bool left[TOC_SHARDS]; /* not held, but our key may stand there */
    int64_t next_release_ns;
};

void sched_owner_init(struct sched_owner *owner, struct toc_str self);
void sched_owner_event(struct sched_owner *owner,
                       const struct toc_coord_event *event, int64_t now_ns);
/* One action at most; returns when to step again. */
int64_t sched_owner_step(struct sched_owner *owner, int64_t now_ns,
                         struct sched_owner_action *ret_action);
void sched_owner_acquired(struct sched_owner *owner, const uint16_t *shards,
                          const bool *won, size_t n, int64_t now_ns);
void sched_owner_released(struct sched_owner *owner, const uint16_t *shards,
                          size_t n, int64_t now_ns);
/* After released: the keys may still stand. */
void sched_owner_not_released(struct sched_owner *owner, const uint16_t *shards,
                              size_t n, int64_t now_ns);
/* What a node that is not fit was asked to want is forgotten. */
void sched_owner_set_fit(struct sched_owner *owner, bool fit);
/* The shard is to be ours, the planner says. Not heard without a session, nor
 * by a node that is not fit. */
void sched_owner_ask(struct sched_owner *owner, uint16_t shard);
/* Everything that was to be sent ahead for the shards being handed over has
 * been: they may go at once. */
void sched_owner_flushed(struct sched_owner *owner);
bool sched_owner_handing(const struct sched_owner *owner);

#endif
