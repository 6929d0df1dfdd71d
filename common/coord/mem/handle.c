/*
 * A process's side: the state machine of coord/etcd over a server that answers
 * at once.
 */
#include "common/coord/mem/mem_internal.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <string.h>

#define MARGIN_NS (300 * TOC_NS_PER_MS) /* as coord/etcd */
#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 1000

/* ---- session ------------------------------------------------------------ */

bool
toc_coord_mem_reaches(const struct toc_coord_mem *coord)
{
    return !coord->cut && !coord->world->stopped;
}

bool
toc_coord_mem_has_session(const struct toc_coord_mem *coord)
{
    return coord->lease != 0 && !coord->lost;
}

void
toc_coord_mem_check_deadline(struct toc_coord_mem *coord)
{
    if (toc_coord_mem_has_session(coord) &&
        toc_clock_boot(coord->clock).ns >= coord->deadline_ns)
        coord->lost = true;
}

/* Renewed at that moment of the world's clock, which may be a while ago. */
void
toc_coord_mem_renewed(struct toc_coord_mem *coord, struct mem_lease *lease,
                      int64_t at_ns, int64_t now_ns)
{
    lease->renewed_ns = at_ns;
    coord->renewed_ns = at_ns;
    coord->deadline_ns = toc_clock_boot(coord->clock).ns - (now_ns - at_ns) +
                         coord->ttl_ns - MARGIN_NS;
}

void
toc_coord_mem_keep_alive(struct toc_coord_mem *coord, int64_t now_ns)
{
    int64_t step_ns = coord->ttl_ns / 3;
    int64_t steps = (now_ns - coord->renewed_ns) / step_ns;
    struct mem_lease *lease;

    if (!toc_coord_mem_has_session(coord) || !toc_coord_mem_reaches(coord) ||
        steps < 1)
        return;
    lease = toc_coord_mem_table_lease(&coord->world->table, coord->lease);
    if (lease == NULL)
        coord->lost = true;
    else
        toc_coord_mem_renewed(coord, lease, coord->renewed_ns + steps * step_ns,
                              now_ns);
}

static void
open_session(struct toc_coord_mem *coord)
{
    struct toc_coord_mem_world *world = coord->world;
    int64_t now_ns = toc_clock_boot(world->clock).ns;
    struct mem_key like = *coord->member;

    if (coord->old_lease != 0)
        toc_coord_mem_revoke(world, coord->old_lease);
    coord->old_lease = 0;
    coord->lease = toc_coord_mem_grant(world, coord->ttl_ns);
    coord->lost = false;
    toc_coord_mem_renewed(
        coord, toc_coord_mem_table_lease(&world->table, coord->lease), now_ns,
        now_ns);
    like.lease = coord->lease;
    toc_coord_mem_next_revision(world);
    toc_coord_mem_put(world, toc_coord_mem_key_new(&like));
    toc_coord_mem_ring_all(world);
}

/* ---- telling ------------------------------------------------------------- */

static void
add(struct toc_coord_mem *coord, enum toc_coord_event_kind kind,
    struct mem_key *key)
{
    if (coord->n_out == coord->out_cap) {
        coord->out_cap = coord->out_cap == 0 ? 64 : coord->out_cap * 2;
        coord->out =
            toc_realloc(coord->out, coord->out_cap * sizeof *coord->out);
    }
    coord->out[coord->n_out++] = (struct mem_telling){
        .kind = kind, .key = key == NULL ? NULL : toc_coord_mem_key_ref(key)};
}

static void
add_key(struct toc_coord_mem *coord, struct mem_key *key, bool deleted)
{
    static const enum toc_coord_event_kind kinds[][2] = {
        [MEM_MEMBER] = {TOC_COORD_MEMBER_UP, TOC_COORD_MEMBER_DOWN},
        [MEM_OWNER] = {TOC_COORD_OWNED, TOC_COORD_FREED},
        [MEM_WISH] = {TOC_COORD_WANTED, TOC_COORD_UNWANTED},
    };

    if (key->kind == MEM_MEMBER || coord->watch_owners)
        add(coord, kinds[key->kind][deleted ? 1 : 0], key);
}

struct toc_member
toc_coord_mem_member_of(const struct mem_key *key)
{
    return (struct toc_member){.role = toc_str_of(key->role),
                               .node = toc_str_of(key->node),
                               .address = toc_str_of(key->address),
                               .node_id = key->node_id,
                               .started_ms = key->started_ms};
}

struct toc_owner
toc_coord_mem_owner_of(const struct mem_key *key)
{
    return (struct toc_owner){.shard = key->shard,
                              .node = toc_str_of(key->node),
                              .address = toc_str_of(key->address)};
}

static struct toc_coord_event
event_of(const struct mem_telling *telling)
{
    struct toc_coord_event event = {.kind = telling->kind};
    const struct mem_key *key = telling->key;

    if (telling->kind == TOC_COORD_MEMBER_UP) {
        event.member = toc_coord_mem_member_of(key);
    } else if (telling->kind == TOC_COORD_MEMBER_DOWN) {
        event.member.role = toc_str_of(key->role);
        event.member.node = toc_str_of(key->node);
    } else if (telling->kind == TOC_COORD_OWNED ||
               telling->kind == TOC_COORD_WANTED) {
        event.owner = toc_coord_mem_owner_of(key);
    } else if (telling->kind == TOC_COORD_FREED ||
               telling->kind == TOC_COORD_UNWANTED) {
        event.owner.shard = key->shard;
    }
    return event;
}

/* Without the lock; takes it at the end, to give the keys back. */
static size_t
tell(struct toc_coord_mem *coord, toc_coord_event_fn *fn, void *arg)
{
    size_t n = coord->n_out;

    for (size_t i = 0; i < n; i++) {
        struct toc_coord_event event = event_of(&coord->out[i]);
        fn(arg, &event);
    }
    pthread_mutex_lock(&coord->world->lock);
    for (size_t i = 0; i < n; i++)
        toc_coord_mem_key_unref(coord->out[i].key);
    pthread_mutex_unlock(&coord->world->lock);
    coord->n_out = 0;
    return n;
}

/* ---- poll ------------------------------------------------------------------
 */

static enum toc_status
back_off(struct toc_coord_mem *coord, struct toc_error *reterr)
{
    coord->retry_at_ns = toc_clock_mono(coord->world->clock).ns +
                         coord->backoff_ms * TOC_NS_PER_MS;
    coord->backoff_ms *= 2;
    if (coord->backoff_ms > BACKOFF_MS_MAX)
        coord->backoff_ms = BACKOFF_MS_MAX;
    return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                         "the coordination server is not reached");
}

static void
step_session(struct toc_coord_mem *coord)
{
    if (coord->member == NULL || coord->left)
        return;
    toc_coord_mem_check_deadline(coord);
    if (coord->lost) {
        coord->old_lease = coord->lease;
        coord->lease = 0;
        coord->lost = false;
        coord->in_sync = false;
        add(coord, TOC_COORD_SESSION_LOST, NULL);
    }
    if (coord->lease != 0 || !toc_coord_mem_reaches(coord) ||
        coord->interrupted)
        return;
    open_session(coord);
    add(coord, TOC_COORD_SESSION_NEW, NULL);
}

static void
read_all(struct toc_coord_mem *coord)
{
    const struct mem_table *table = &coord->world->table;

    add(coord, TOC_COORD_RESET, NULL);
    for (size_t i = 0; i < table->n_keys; i++)
        add_key(coord, table->keys[i], false);
    add(coord, TOC_COORD_SYNCED, NULL);
    coord->revision = table->revision;
    coord->epoch = coord->world->epoch;
    coord->in_sync = true;
}

/* Is what we have not seen yet still to be had? A server that was wiped or
 * restored shows only by knowing less than we do, as with etcd. */
static bool
must_read_all(struct toc_coord_mem *coord)
{
    const struct toc_coord_mem_world *world = coord->world;

    if (!coord->in_sync || coord->revision < world->compacted)
        return true;
    if (coord->epoch == world->epoch)
        return false;
    coord->epoch = world->epoch;
    return world->table.revision < coord->revision;
}

static void
watch(struct toc_coord_mem *coord)
{
    const struct toc_coord_mem_world *world = coord->world;
    int64_t seen_ns = toc_clock_mono(world->clock).ns - coord->delay_ns;

    for (size_t i = 0; i < world->n_history; i++) {
        const struct mem_change *change = &world->history[i];
        if (change->revision <= coord->revision)
            continue;
        if (change->at_ns > seen_ns)
            return;
        if (coord->lose > 0)
            coord->lose--;
        else
            add_key(coord, change->key, change->deleted);
        if (i + 1 == world->n_history ||
            world->history[i + 1].revision > change->revision)
            coord->revision = change->revision;
    }
}

static enum toc_status
step(struct toc_coord_mem *coord, struct toc_error *reterr)
{
    int64_t now_ns = toc_clock_mono(coord->world->clock).ns;

    step_session(coord);
    if (now_ns < coord->retry_at_ns)
        return TOC_OK;
    if (!toc_coord_mem_reaches(coord) || coord->interrupted)
        return back_off(coord, reterr);
    coord->backoff_ms = BACKOFF_MS_MIN;
    if (must_read_all(coord))
        read_all(coord);
    else
        watch(coord);
    return TOC_OK;
}

/* With threads: when to look again although nobody rings. */
static int64_t
next_look(struct toc_coord_mem *coord, int64_t until_ns)
{
    int64_t now_ns = toc_clock_mono(coord->world->clock).ns;
    int64_t next_ns = toc_coord_mem_next_ns(coord->world);

    if (next_ns > until_ns)
        next_ns = until_ns;
    if (coord->retry_at_ns > now_ns && coord->retry_at_ns < next_ns)
        next_ns = coord->retry_at_ns;
    if (toc_coord_mem_has_session(coord)) {
        int64_t left_ns = coord->deadline_ns - toc_clock_boot(coord->clock).ns;
        if (now_ns + left_ns < next_ns)
            next_ns = now_ns + left_ns;
    }
    if (coord->delay_ns > 0 && now_ns + TOC_NS_PER_MS < next_ns)
        next_ns = now_ns + TOC_NS_PER_MS;
    return next_ns;
}

enum toc_status
toc_coord_mem_poll(void *self, int64_t timeout_ms, toc_coord_event_fn *fn,
                   void *arg, struct toc_error *reterr)
{
    struct toc_coord_mem *coord = self;
    struct toc_coord_mem_world *world = coord->world;
    int64_t until_ns =
        toc_mono_add_ms(toc_clock_mono(world->clock), timeout_ms).ns;

    for (;;) {
        toc_coord_mem_enter(world);
        enum toc_status st = step(coord, reterr);
        bool woken = coord->woken;
        int64_t next_ns = next_look(coord, until_ns);
        coord->woken = false;
        toc_coord_mem_leave(world);
        if (tell(coord, fn, arg) > 0 || st != TOC_OK || woken ||
            !world->threads || toc_clock_mono(world->clock).ns >= until_ns)
            return st;
        (void)toc_bell_wait(&coord->bell, next_ns);
    }
}
