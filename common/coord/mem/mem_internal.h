/*
 * The world and its handles. Everything here is under the world's lock unless
 * it says otherwise; functions expect it held.
 */
#ifndef TOC_COORD_MEM_INTERNAL_H
#define TOC_COORD_MEM_INTERNAL_H

#include "common/base/list.h"
#include "common/base/thread.h"
#include "common/coord/mem/coord_mem.h"

#include <pthread.h>

#define MEM_SHARDS 256
#define MEM_TXN_MAX 64 /* claims that take effect together, as with etcd */

/* In the order of their names. */
enum mem_kind {
    MEM_MEMBER, /* members/<role>/<node> */
    MEM_OWNER,  /* own/<shard> */
    MEM_WISH,   /* want/<shard> */
};

/* A key with its value. Never changes; shared by table, history, backups. */
struct mem_key {
    size_t refs;
    enum mem_kind kind;
    uint16_t shard; /* owner, wish */
    char *role;     /* member; else "" */
    char *node, *address;
    uint32_t node_id;
    int64_t started_ms;
    int64_t lease;
};

struct mem_key *toc_coord_mem_key_new(
    const struct mem_key *from); /* one reference */
struct mem_key *toc_coord_mem_key_ref(struct mem_key *key);
void toc_coord_mem_key_unref(struct mem_key *key);
/* Order of the names. */
int toc_coord_mem_key_cmp(const struct mem_key *a, const struct mem_key *b);

struct mem_lease {
    int64_t id;
    int64_t renewed_ns, ttl_ns; /* boot clock of the world */
};

/* What a backup keeps. */
struct mem_table {
    int64_t revision;
    struct mem_key **keys; /* sorted */
    size_t n_keys, keys_cap;
    struct mem_lease *leases;
    size_t n_leases, leases_cap;
};

void toc_coord_mem_table_done(struct mem_table *table);
void toc_coord_mem_table_copy(const struct mem_table *from,
                              struct mem_table *ret);
struct mem_key *toc_coord_mem_table_find(const struct mem_table *table,
                                         const struct mem_key *like,
                                         size_t *ret_at);
struct mem_lease *toc_coord_mem_table_lease(const struct mem_table *table,
                                            int64_t id);

struct mem_change {
    int64_t revision, at_ns; /* monotonic clock */
    bool deleted;
    struct mem_key *key;
};

struct toc_coord_mem_world {
    const struct toc_clock *clock;
    bool threads, stopped, lies;
    pthread_mutex_t lock;
    struct mem_table table;
    struct mem_change *history; /* oldest first */
    size_t n_history, history_cap, history_max;
    int64_t compacted; /* changes up to this revision are forgotten */
    uint64_t epoch;    /* raised when another server stands here */
    int64_t last_lease;
    struct toc_link handles;
};

/* Something to be told once the lock is free. */
struct mem_telling {
    enum toc_coord_event_kind kind;
    struct mem_key *key; /* or NULL */
};

struct toc_coord_mem {
    struct toc_coord port;
    struct toc_coord_mem_world *world;
    struct toc_link link;
    const struct toc_clock *clock;
    struct mem_key *member; /* NULL: looks only */
    bool watch_owners;
    int64_t ttl_ns;
    struct toc_bell bell;
    bool woken, left, cut, interrupted;

    int64_t lease, old_lease; /* 0: none */
    bool lost;
    int64_t renewed_ns;  /* boot clock of the world */
    int64_t deadline_ns; /* boot clock of the process */

    bool in_sync;
    int64_t revision; /* all up to it has been told */
    uint64_t epoch;
    size_t lose;
    int64_t delay_ns;
    int64_t backoff_ms, retry_at_ns;

    struct mem_telling *out; /* Thread: the one that polls */
    size_t n_out, out_cap;
};

/* ---- world.c --------------------------------------------------------- */

/* Locks, and lets happen what time has brought. */
void toc_coord_mem_enter(struct toc_coord_mem_world *world);
void toc_coord_mem_leave(struct toc_coord_mem_world *world);
/* Takes the key in (at the next revision) in place of one of its name. */
void toc_coord_mem_put(struct toc_coord_mem_world *world, struct mem_key *key);
void toc_coord_mem_delete(struct toc_coord_mem_world *world,
                          const struct mem_key *like);
/* Changes from here on belong together under the next revision. */
void toc_coord_mem_next_revision(struct toc_coord_mem_world *world);
int64_t toc_coord_mem_grant(struct toc_coord_mem_world *world, int64_t ttl_ns);
void toc_coord_mem_revoke(struct toc_coord_mem_world *world, int64_t lease);
void toc_coord_mem_ring_all(struct toc_coord_mem_world *world);
int64_t toc_coord_mem_next_ns(struct toc_coord_mem_world *world);

/* ---- handle.c -------------------------------------------------------- */

bool toc_coord_mem_reaches(const struct toc_coord_mem *coord);
bool toc_coord_mem_has_session(const struct toc_coord_mem *coord);
/* Renewed at at_ns (the world's boot clock), which may be a while ago. */
void toc_coord_mem_renewed(struct toc_coord_mem *coord, struct mem_lease *lease,
                           int64_t at_ns, int64_t now_ns);
/* Renewals that a live process has made meanwhile. */
void toc_coord_mem_keep_alive(struct toc_coord_mem *coord, int64_t now_ns);
/* Marks the session lost when its own deadline has passed. */
void toc_coord_mem_check_deadline(struct toc_coord_mem *coord);
struct toc_member toc_coord_mem_member_of(const struct mem_key *key);
struct toc_owner toc_coord_mem_owner_of(const struct mem_key *key);
/* Takes the lock itself, as do the other operations of the port. */
enum toc_status toc_coord_mem_poll(void *self, int64_t timeout_ms,
                                   toc_coord_event_fn *fn, void *arg,
                                   struct toc_error *reterr);

/* ---- ops.c ----------------------------------------------------------- */

extern const struct toc_coord_ops toc_coord_mem_ops;

#endif
