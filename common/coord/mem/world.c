/* The server: keys, history, leases, and what can go wrong with them. */
#include "common/coord/mem/mem_internal.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <string.h>

#define HISTORY_MAX 4096

/* ---- history ---------------------------------------------------------- */

static void
forget(struct toc_coord_mem_world *world, size_t n)
{
    if (n == 0)
        return;
    world->compacted = world->history[n - 1].revision;
    for (size_t i = 0; i < n; i++)
        toc_coord_mem_key_unref(world->history[i].key);
    world->n_history -= n;
    memmove(world->history, world->history + n,
            world->n_history * sizeof *world->history);
}

static void
record(struct toc_coord_mem_world *world, struct mem_key *key, bool deleted)
{
    if (world->n_history >= world->history_max)
        forget(world, world->history_max / 2);
    if (world->n_history == world->history_cap) {
        world->history_cap =
            world->history_cap == 0 ? 64 : world->history_cap * 2;
        world->history = toc_realloc(
            world->history, world->history_cap * sizeof *world->history);
    }
    world->history[world->n_history++] =
        (struct mem_change){.revision = world->table.revision,
                            .at_ns = toc_clock_mono(world->clock).ns,
                            .deleted = deleted,
                            .key = toc_coord_mem_key_ref(key)};
}

/* ---- keys ------------------------------------------------------------- */

void
toc_coord_mem_next_revision(struct toc_coord_mem_world *world)
{
    world->table.revision++;
}

void
toc_coord_mem_put(struct toc_coord_mem_world *world, struct mem_key *key)
{
    struct mem_table *table = &world->table;
    size_t at;

    record(world, key, false);
    if (toc_coord_mem_table_find(table, key, &at) != NULL) {
        toc_coord_mem_key_unref(table->keys[at]);
        table->keys[at] = key;
        return;
    }
    if (table->n_keys == table->keys_cap) {
        table->keys_cap = table->keys_cap == 0 ? 64 : table->keys_cap * 2;
        table->keys =
            toc_realloc(table->keys, table->keys_cap * sizeof *table->keys);
    }
    memmove(table->keys + at + 1, table->keys + at,
            (table->n_keys - at) * sizeof *table->keys);
    table->keys[at] = key;
    table->n_keys++;
}

void
toc_coord_mem_delete(struct toc_coord_mem_world *world,
                     const struct mem_key *like)
{
    struct mem_table *table = &world->table;
    size_t at;
    struct mem_key *key = toc_coord_mem_table_find(table, like, &at);

    if (key == NULL)
        return;
    record(world, key, true);
    toc_coord_mem_key_unref(key);
    table->n_keys--;
    memmove(table->keys + at, table->keys + at + 1,
            (table->n_keys - at) * sizeof *table->keys);
}

/* ---- leases ----------------------------------------------------------- */

int64_t
toc_coord_mem_grant(struct toc_coord_mem_world *world, int64_t ttl_ns)
{
    struct mem_table *table = &world->table;

    if (table->n_leases == table->leases_cap) {
        table->leases_cap = table->leases_cap == 0 ? 16 : table->leases_cap * 2;
        table->leases = toc_realloc(table->leases,
                                    table->leases_cap * sizeof *table->leases);
    }
    table->leases[table->n_leases++] =
        (struct mem_lease){.id = ++world->last_lease,
                           .renewed_ns = toc_clock_boot(world->clock).ns,
                           .ttl_ns = ttl_ns};
    return world->last_lease;
}

static void
delete_under(struct toc_coord_mem_world *world, int64_t lease)
{
    struct mem_table *table = &world->table;
    bool first = true;

    for (size_t i = 0; i < table->n_keys;) {
        if (table->keys[i]->lease != lease) {
            i++;
            continue;
        }
        if (first)
            toc_coord_mem_next_revision(world);
        first = false;
        toc_coord_mem_delete(world, table->keys[i]);
    }
    if (!first)
        toc_coord_mem_ring_all(world);
}

void
toc_coord_mem_revoke(struct toc_coord_mem_world *world, int64_t lease)
{
    struct mem_lease *at = toc_coord_mem_table_lease(&world->table, lease);

    if (at == NULL)
        return;
    *at = world->table.leases[--world->table.n_leases];
    delete_under(world, lease);
}

static int64_t
end_of(const struct mem_lease *lease)
{
    return lease->renewed_ns + lease->ttl_ns;
}

static void
end_leases(struct toc_coord_mem_world *world, int64_t now_ns)
{
    for (;;) {
        struct mem_lease *first = NULL;
        for (size_t i = 0; i < world->table.n_leases; i++) {
            struct mem_lease *at = &world->table.leases[i];
            if (end_of(at) <= now_ns &&
                (first == NULL || end_of(at) < end_of(first)))
                first = at;
        }
        if (first == NULL)
            return;
        toc_coord_mem_revoke(world, first->id);
    }
}

/* ---- entering, time ---------------------------------------------------- */

static void
settle(struct toc_coord_mem_world *world)
{
    int64_t now_ns = toc_clock_boot(world->clock).ns;
    struct toc_link *link;

    if (world->stopped)
        return;
    for (link = world->handles.next; link != &world->handles; link = link->next)
        toc_coord_mem_keep_alive(
            toc_container_of(link, struct toc_coord_mem, link), now_ns);
    end_leases(world, now_ns);
}

void
toc_coord_mem_enter(struct toc_coord_mem_world *world)
{
    pthread_mutex_lock(&world->lock);
    settle(world);
}

void
toc_coord_mem_leave(struct toc_coord_mem_world *world)
{
    pthread_mutex_unlock(&world->lock);
}

void
toc_coord_mem_ring_all(struct toc_coord_mem_world *world)
{
    struct toc_link *link;

    if (!world->threads)
        return;
    for (link = world->handles.next; link != &world->handles; link = link->next)
        toc_bell_ring(
            &toc_container_of(link, struct toc_coord_mem, link)->bell);
}

int64_t
toc_coord_mem_next_ns(struct toc_coord_mem_world *world)
{
    int64_t next_ns = INT64_MAX;
    int64_t left_ns;

    if (world->stopped)
        return INT64_MAX;
    for (size_t i = 0; i < world->table.n_leases; i++)
        if (end_of(&world->table.leases[i]) < next_ns)
            next_ns = end_of(&world->table.leases[i]);
    if (next_ns == INT64_MAX)
        return next_ns;
    left_ns = next_ns - toc_clock_boot(world->clock).ns;
    return toc_clock_mono(world->clock).ns + left_ns;
}

int64_t
toc_coord_mem_pump(struct toc_coord_mem_world *world)
{
    int64_t next_ns;

    toc_coord_mem_enter(world);
    next_ns = toc_coord_mem_next_ns(world);
    toc_coord_mem_leave(world);
    return next_ns;
}

/* ---- what can go wrong -------------------------------------------------- */

void
toc_coord_mem_stop(struct toc_coord_mem_world *world, bool stopped)
{
    struct toc_link *link;
    int64_t now_ns = toc_clock_boot(world->clock).ns;

    toc_coord_mem_enter(world);
    if (world->stopped && !stopped) {
        /* a server that starts gives every lease its whole time again */
        for (size_t i = 0; i < world->table.n_leases; i++)
            world->table.leases[i].renewed_ns = now_ns;
        for (link = world->handles.next; link != &world->handles;
             link = link->next)
            toc_coord_mem_check_deadline(
                toc_container_of(link, struct toc_coord_mem, link));
    }
    world->stopped = stopped;
    settle(world);
    toc_coord_mem_ring_all(world);
    toc_coord_mem_leave(world);
}

void
toc_coord_mem_lie(struct toc_coord_mem_world *world, bool lies)
{
    toc_coord_mem_enter(world);
    world->lies = lies;
    toc_coord_mem_leave(world);
}

void
toc_coord_mem_compact(struct toc_coord_mem_world *world)
{
    toc_coord_mem_enter(world);
    forget(world, world->n_history);
    world->compacted = world->table.revision;
    toc_coord_mem_leave(world);
}

/* Takes the table over. */
static void
replace(struct toc_coord_mem_world *world, struct mem_table *table)
{
    toc_coord_mem_enter(world);
    forget(world, world->n_history);
    toc_coord_mem_table_done(&world->table);
    world->table = *table;
    world->compacted = table->revision;
    world->epoch++;
    for (size_t i = 0; i < world->table.n_leases; i++)
        world->table.leases[i].renewed_ns = toc_clock_boot(world->clock).ns;
    toc_coord_mem_ring_all(world);
    toc_coord_mem_leave(world);
}

void
toc_coord_mem_wipe(struct toc_coord_mem_world *world)
{
    struct mem_table empty = {.revision = 1};

    replace(world, &empty);
}

struct toc_coord_mem_backup {
    struct mem_table table;
};

struct toc_coord_mem_backup *
toc_coord_mem_backup_new(struct toc_coord_mem_world *world)
{
    struct toc_coord_mem_backup *backup = TOC_NEW(struct toc_coord_mem_backup);

    toc_coord_mem_enter(world);
    toc_coord_mem_table_copy(&world->table, &backup->table);
    toc_coord_mem_leave(world);
    return backup;
}

void
toc_coord_mem_restore(struct toc_coord_mem_world *world,
                      const struct toc_coord_mem_backup *backup)
{
    struct mem_table table;

    toc_coord_mem_enter(world);
    toc_coord_mem_table_copy(&backup->table, &table);
    toc_coord_mem_leave(world);
    replace(world, &table);
}

void
toc_coord_mem_backup_free(struct toc_coord_mem_world *world,
                          struct toc_coord_mem_backup *backup)
{
    if (backup == NULL)
        return;
    toc_coord_mem_enter(world);
    toc_coord_mem_table_done(&backup->table);
    toc_coord_mem_leave(world);
    toc_free(backup);
}

/* ---- life --------------------------------------------------------------- */

struct toc_coord_mem_world *
toc_coord_mem_world_new(const struct toc_coord_mem_world_options *options)
{
    struct toc_coord_mem_world *world = TOC_NEW(struct toc_coord_mem_world);

    world->clock = options->clock;
    world->threads = options->threads;
    world->history_max =
        options->history_max > 0 ? options->history_max : HISTORY_MAX;
    if (world->history_max < 2)
        world->history_max = 2;
    world->table.revision = 1;
    toc_list_init(&world->handles);
    TOC_ASSERT(pthread_mutex_init(&world->lock, NULL) == 0);
    return world;
}

void
toc_coord_mem_world_free(struct toc_coord_mem_world *world)
{
    if (world == NULL)
        return;
    TOC_ASSERT(toc_list_empty(&world->handles));
    forget(world, world->n_history);
    toc_free(world->history);
    toc_coord_mem_table_done(&world->table);
    pthread_mutex_destroy(&world->lock);
    toc_free(world);
}
