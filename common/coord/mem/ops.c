/* What a process asks of the server, and its life. */
#include "common/coord/mem/mem_internal.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#define BACKOFF_MS_MIN 50
#define TTL_S_DEFAULT 2

/* ---- owner keys ---------------------------------------------------------- */

/* Locks: held. */
static enum toc_status
may_ask(const struct toc_coord_mem *coord, struct toc_error *reterr)
{
    if (coord->interrupted)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                             "interrupted: the process is stopping");
    if (!toc_coord_mem_reaches(coord))
        return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                             "the coordination server is not reached");
    return TOC_OK;
}

/* Locks: held. */
static enum toc_status
need_session(struct toc_coord_mem *coord, const uint16_t *shards, size_t n,
             struct toc_error *reterr)
{
    for (size_t i = 0; i < n; i++)
        if (shards[i] >= MEM_SHARDS)
            return toc_error_set(reterr, TOC_INVALID, "mem", 0,
                                 "there is no shard %u", (unsigned)shards[i]);
    toc_coord_mem_check_deadline(coord);
    if (!toc_coord_mem_has_session(coord))
        return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                             "there is no session");
    enum toc_status st = may_ask(coord, reterr);
    if (st != TOC_OK)
        return st;
    if (toc_coord_mem_table_lease(&coord->world->table, coord->lease) != NULL)
        return TOC_OK;
    coord->lost = true; /* poll tells */
    return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                         "the session has ended");
}

static struct mem_key
shard_key(const struct toc_coord_mem *coord, enum mem_kind kind, uint16_t shard)
{
    return (struct mem_key){.kind = kind,
                            .shard = shard,
                            .node = coord->member->node,
                            .address = coord->member->address,
                            .lease = coord->lease};
}

/* The first change of a transaction begins a revision. */
static void
change(struct toc_coord_mem *coord, bool *changed)
{
    if (!*changed)
        toc_coord_mem_next_revision(coord->world);
    *changed = true;
}

/* True when the key is ours afterwards, or is said to be. */
static bool
claim(struct toc_coord_mem *coord, uint16_t shard, bool *changed)
{
    struct mem_key like = shard_key(coord, MEM_OWNER, shard);
    struct mem_key *there =
        toc_coord_mem_table_find(&coord->world->table, &like, NULL);

    if (there != NULL)
        return there->lease == coord->lease || coord->world->lies;
    change(coord, changed);
    toc_coord_mem_put(coord->world, toc_coord_mem_key_new(&like));
    return true;
}

static void
give_up(struct toc_coord_mem *coord, uint16_t shard, bool *changed)
{
    struct mem_key like = shard_key(coord, MEM_OWNER, shard);
    struct mem_key *there =
        toc_coord_mem_table_find(&coord->world->table, &like, NULL);

    if (there == NULL || there->lease != coord->lease)
        return;
    change(coord, changed);
    toc_coord_mem_delete(coord->world, &like);
}

static void
wish(struct toc_coord_mem *coord, uint16_t shard, bool *changed)
{
    struct mem_key like = shard_key(coord, MEM_WISH, shard);

    change(coord, changed);
    toc_coord_mem_put(coord->world, toc_coord_mem_key_new(&like));
}

static void
unwish(struct toc_coord_mem *coord, uint16_t shard, bool *changed)
{
    struct mem_key like = shard_key(coord, MEM_WISH, shard);

    if (toc_coord_mem_table_find(&coord->world->table, &like, NULL) == NULL)
        return;
    change(coord, changed);
    toc_coord_mem_delete(coord->world, &like);
}

typedef void mem_shard_fn(struct toc_coord_mem *coord, uint16_t shard,
                          bool *changed);

/* fn for each shard; MEM_TXN_MAX of them make a revision, as with etcd. */
static enum toc_status
for_shards(struct toc_coord_mem *coord, const uint16_t *shards, size_t n,
           mem_shard_fn *fn, struct toc_error *reterr)
{
    bool changed = false;
    enum toc_status st;

    toc_coord_mem_enter(coord->world);
    st = need_session(coord, shards, n, reterr);
    for (size_t i = 0; st == TOC_OK && i < n; i++) {
        if (i % MEM_TXN_MAX == 0)
            changed = false;
        fn(coord, shards[i], &changed);
    }
    toc_coord_mem_ring_all(coord->world);
    toc_coord_mem_leave(coord->world);
    return st;
}

static enum toc_status
op_acquire(void *self, const uint16_t *shards, size_t n, bool *ret_won,
           struct toc_error *reterr)
{
    struct toc_coord_mem *coord = self;
    enum toc_status st;
    bool changed = false;

    toc_coord_mem_enter(coord->world);
    st = need_session(coord, shards, n, reterr);
    for (size_t i = 0; st == TOC_OK && i < n; i++) {
        if (i % MEM_TXN_MAX == 0)
            changed = false;
        ret_won[i] = claim(coord, shards[i], &changed);
    }
    toc_coord_mem_ring_all(coord->world);
    toc_coord_mem_leave(coord->world);
    return st;
}

static enum toc_status
op_release(void *self, const uint16_t *shards, size_t n,
           struct toc_error *reterr)
{
    return for_shards(self, shards, n, give_up, reterr);
}

static enum toc_status
op_want(void *self, const uint16_t *shards, size_t n, bool wanted,
        struct toc_error *reterr)
{
    return for_shards(self, shards, n, wanted ? wish : unwish, reterr);
}

/* ---- the rest ---------------------------------------------------------------
 */

static enum toc_status
op_leave(void *self, struct toc_error *reterr)
{
    struct toc_coord_mem *coord = self;
    enum toc_status st = TOC_OK;
    int64_t lease;

    toc_coord_mem_enter(coord->world);
    coord->left = true;
    lease = coord->lease != 0 ? coord->lease : coord->old_lease;
    coord->lease = coord->old_lease = 0;
    coord->lost = false;
    if (lease != 0 && toc_coord_mem_reaches(coord))
        toc_coord_mem_revoke(coord->world, lease);
    else if (lease != 0)
        st = toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                           "the coordination server is not reached");
    toc_coord_mem_leave(coord->world);
    return st;
}

static void
copy_key(const struct mem_key *key, struct toc_arena *arena,
         struct toc_member *members, size_t *n_members,
         struct toc_owner *owners, size_t *n_owners)
{
    if (key->kind == MEM_OWNER) {
        struct toc_owner *owner = &owners[(*n_owners)++];
        *owner = toc_coord_mem_owner_of(key);
        owner->node = toc_arena_str(arena, owner->node);
        owner->address = toc_arena_str(arena, owner->address);
    } else if (key->kind == MEM_MEMBER) {
        struct toc_member *member = &members[(*n_members)++];
        *member = toc_coord_mem_member_of(key);
        member->role = toc_arena_str(arena, member->role);
        member->node = toc_arena_str(arena, member->node);
        member->address = toc_arena_str(arena, member->address);
    }
}

static enum toc_status
op_snapshot(void *self, struct toc_arena *arena,
            struct toc_member **ret_members, size_t *ret_n_members,
            struct toc_owner **ret_owners, size_t *ret_n_owners,
            struct toc_error *reterr)
{
    struct toc_coord_mem *coord = self;
    const struct mem_table *table = &coord->world->table;

    toc_coord_mem_enter(coord->world);
    enum toc_status st = may_ask(coord, reterr);
    if (st != TOC_OK) {
        toc_coord_mem_leave(coord->world);
        return st;
    }
    *ret_n_members = *ret_n_owners = 0;
    *ret_members =
        toc_arena_calloc(arena, table->n_keys + 1, sizeof **ret_members);
    *ret_owners =
        toc_arena_calloc(arena, table->n_keys + 1, sizeof **ret_owners);
    for (size_t i = 0; i < table->n_keys; i++)
        copy_key(table->keys[i], arena, *ret_members, ret_n_members,
                 *ret_owners, ret_n_owners);
    toc_coord_mem_leave(coord->world);
    return TOC_OK;
}

static int64_t
op_deadline(void *self)
{
    struct toc_coord_mem *coord = self;
    int64_t deadline_ns;

    toc_coord_mem_enter(coord->world);
    toc_coord_mem_check_deadline(coord);
    deadline_ns = toc_coord_mem_has_session(coord) ? coord->deadline_ns : 0;
    toc_coord_mem_leave(coord->world);
    return deadline_ns;
}

static void
op_wake(void *self)
{
    struct toc_coord_mem *coord = self;

    pthread_mutex_lock(&coord->world->lock);
    coord->woken = true;
    pthread_mutex_unlock(&coord->world->lock);
    toc_bell_ring(&coord->bell);
}

static void
op_interrupt(void *self)
{
    struct toc_coord_mem *coord = self;

    pthread_mutex_lock(&coord->world->lock);
    coord->interrupted = true;
    pthread_mutex_unlock(&coord->world->lock);
    op_wake(self);
}

const struct toc_coord_ops toc_coord_mem_ops = {
    .name = "mem",
    .poll = toc_coord_mem_poll,
    .acquire = op_acquire,
    .release = op_release,
    .want = op_want,
    .leave = op_leave,
    .snapshot = op_snapshot,
    .deadline_boot_ns = op_deadline,
    .wake = op_wake,
    .interrupt = op_interrupt,
};

/* ---- what can go wrong ------------------------------------------------------
 */

void
toc_coord_mem_cut(struct toc_coord_mem *coord, bool cut)
{
    struct toc_coord_mem_world *world = coord->world;
    struct mem_lease *lease;
    int64_t now_ns = toc_clock_boot(world->clock).ns;

    toc_coord_mem_enter(world);
    toc_coord_mem_check_deadline(coord);
    if (coord->cut && !cut && toc_coord_mem_has_session(coord)) {
        /* what it tried all the time succeeds */
        lease = toc_coord_mem_table_lease(&world->table, coord->lease);
        if (lease == NULL)
            coord->lost = true;
        else
            toc_coord_mem_renewed(coord, lease, now_ns, now_ns);
    }
    coord->cut = cut;
    toc_coord_mem_ring_all(world);
    toc_coord_mem_leave(world);
}

void
toc_coord_mem_expire(struct toc_coord_mem *coord)
{
    toc_coord_mem_enter(coord->world);
    toc_coord_mem_revoke(coord->world, coord->lease);
    toc_coord_mem_leave(coord->world);
}

void
toc_coord_mem_lose_events(struct toc_coord_mem *coord, size_t n)
{
    toc_coord_mem_enter(coord->world);
    coord->lose += n;
    toc_coord_mem_leave(coord->world);
}

void
toc_coord_mem_delay_events(struct toc_coord_mem *coord, int64_t ms)
{
    toc_coord_mem_enter(coord->world);
    coord->delay_ns = ms * TOC_NS_PER_MS;
    toc_coord_mem_leave(coord->world);
}

/* ---- life ------------------------------------------------------------------
 */

struct toc_coord_mem *
toc_coord_mem_open(struct toc_coord_mem_world *world,
                   const struct toc_coord_mem_options *options)
{
    struct toc_coord_mem *coord = TOC_NEW(struct toc_coord_mem);
    char *role = NULL, *node = NULL, *address = NULL;

    coord->port = (struct toc_coord){&toc_coord_mem_ops, coord};
    coord->world = world;
    coord->clock = options->clock != NULL ? options->clock : world->clock;
    coord->watch_owners = options->watch_owners;
    coord->ttl_ns = (options->ttl_s > 0 ? options->ttl_s : TTL_S_DEFAULT) *
                    TOC_MS_PER_SEC * TOC_NS_PER_MS;
    coord->backoff_ms = BACKOFF_MS_MIN;
    toc_bell_init(&coord->bell);
    if (options->role != NULL) {
        role = toc_strdup(options->role);
        node = toc_strdup(options->node);
        address = toc_strdup(options->address);
        coord->member = toc_coord_mem_key_new(
            &(struct mem_key){.role = role,
                              .node = node,
                              .address = address,
                              .node_id = options->node_id,
                              .started_ms = options->started_ms});
        toc_free(role);
        toc_free(node);
        toc_free(address);
    }
    toc_coord_mem_enter(world);
    toc_list_push(&world->handles, &coord->link);
    toc_coord_mem_leave(world);
    return coord;
}

void
toc_coord_mem_kill(struct toc_coord_mem *coord)
{
    if (coord == NULL)
        return;
    TOC_ASSERT(coord->n_out == 0);
    toc_coord_mem_enter(coord->world);
    toc_list_remove(&coord->link);
    toc_coord_mem_key_unref(coord->member);
    toc_coord_mem_leave(coord->world);
    toc_bell_done(&coord->bell);
    toc_free(coord->out);
    toc_free(coord);
}

void
toc_coord_mem_close(struct toc_coord_mem *coord)
{
    if (coord == NULL)
        return;
    (void)toc_coord_mem_ops.leave(coord, NULL);
    toc_coord_mem_kill(coord);
}

struct toc_coord *
toc_coord_mem_port(struct toc_coord_mem *coord)
{
    return &coord->port;
}
