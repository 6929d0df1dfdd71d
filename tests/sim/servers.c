#include "tests/sim/servers.h"

#include "common/base/assert.h"

#include <string.h>

#define PUMP_NS (100 * SIM_MS)

const char *const sim_topics[TOC_PRIORITIES] = {
    "sim.due.core", "sim.due.normal", "sim.due.low"};

static struct toc_bus_mem_fate
fate_of(void *arg, const char *topic, int32_t partition, struct toc_str message)
{
    struct sim_servers *servers = arg;
    struct toc_bus_mem_fate fate = {0};

    (void)topic;
    (void)partition;
    (void)message;
    if (servers->lose > 0) {
        servers->lose--;
        fate.lose = true;
        if (sim_one_in(servers->world, 2))
            fate.report = TOC_UNAVAILABLE;
    } else if (servers->twice > 0) {
        servers->twice--;
        fate.copies_more = 1;
    } else if (servers->reorder > 0) {
        servers->reorder--;
        fate.delay_ms = sim_between(servers->world, 1, 3000);
    }
    return fate;
}

/* What time brings at the servers by itself; who waits there hears of it. */
static void
on_pump(struct sim_event *event)
{
    struct sim_servers *servers = event->arg;
    struct sim_world *world = servers->world;
    int64_t mono_ns = toc_clock_mono(&servers->database.clock).ns;
    struct sim_pool *before = sim_pool_use(&world->pool);

    if (mono_ns >= servers->coord_next_ns)
        sim_nudge(world, servers->coord, world->now_ns);
    if (mono_ns >= servers->bus_next_ns)
        sim_nudge(world, servers->bus, world->now_ns);
    servers->coord_next_ns = toc_coord_mem_pump(servers->coord);
    servers->bus_next_ns = toc_bus_mem_pump(servers->bus);
    (void)sim_pool_use(before);
    sim_place(world, event, world->now_ns + PUMP_NS);
}

void
sim_servers_init(struct sim_servers *servers, struct sim_world *world)
{
    struct toc_error err = {0};
    struct toc_clock *clock = &servers->database.clock;

    memset(servers, 0, sizeof *servers);
    servers->world = world;
    sim_proc_init(&servers->database, world, "database");
    servers->store = toc_store_mem_open(
        &(struct toc_store_mem_options){.clock = clock, .seed = world->seed});
    TOC_ASSERT(toc_store_make_days(toc_store_mem_port(servers->store),
                                   sim_wall_ms(world), &err) == TOC_OK);
    servers->coord = toc_coord_mem_world_new(
        &(struct toc_coord_mem_world_options){.clock = clock});
    servers->bus = toc_bus_mem_world_new(&(struct toc_bus_mem_world_options){
        .clock = clock, .fate = fate_of, .fate_arg = servers});
    sim_event_init(&servers->pump, on_pump);
    servers->pump.arg = servers;
    sim_place(world, &servers->pump, 0);
    for (size_t i = 0; i < SIM_HELD_MAX; i++)
        sim_event_init(&servers->held[i].event, NULL);
}

void
sim_servers_done(struct sim_servers *servers)
{
    (void)sim_pool_use(&servers->world->pool);
    toc_store_mem_close(servers->store);
    toc_coord_mem_world_free(servers->coord);
    toc_bus_mem_world_free(servers->bus);
}

/* ---- held transactions ----------------------------------------------- */

static void
on_release(struct sim_event *event)
{
    struct sim_held *held = toc_container_of(event, struct sim_held, event);
    struct sim_servers *servers = event->arg;
    struct sim_pool *before = sim_pool_use(&servers->world->pool);

    (void)toc_store_mem_release(servers->store, held->number, held->commits);
    held->number = 0;
    (void)sim_pool_use(before);
}

void
sim_servers_hold(struct sim_servers *servers, bool commits, int64_t span_ns)
{
    toc_store_mem_hold_next(servers->store, TOC_STORE_MEM_UNKNOWN);
    servers->hold_next = true;
    servers->hold_commits = commits;
    servers->hold_ns = span_ns;
}

static bool
is_known(const struct sim_servers *servers, uint64_t number)
{
    for (size_t i = 0; i < SIM_HELD_MAX; i++)
        if (servers->held[i].number == number)
            return true;
    return false;
}

static struct sim_held *
free_place(struct sim_servers *servers)
{
    for (size_t i = 0; i < SIM_HELD_MAX; i++)
        if (servers->held[i].number == 0)
            return &servers->held[i];
    TOC_ASSERT(!"too many held transactions");
    return NULL;
}

void
sim_servers_settle(struct sim_servers *servers)
{
    uint64_t last;
    struct sim_held *held;

    if (!servers->hold_next)
        return;
    servers->hold_next = false;
    toc_store_mem_hold_none(servers->store);
    if (toc_store_mem_n_held(servers->store) == 0)
        return;
    last = toc_store_mem_last_held(servers->store);
    if (is_known(servers, last))
        return; /* it wrote nothing */
    held = free_place(servers);
    held->number = last;
    held->commits = servers->hold_commits;
    sim_event_init(&held->event, on_release);
    held->event.arg = servers;
    sim_place(servers->world, &held->event,
              servers->world->now_ns + servers->hold_ns);
}

void
sim_servers_heal(struct sim_servers *servers)
{
    struct sim_pool *before = sim_pool_use(&servers->world->pool);

    for (size_t i = 0; i < SIM_HELD_MAX; i++) {
        struct sim_held *held = &servers->held[i];
        if (held->number == 0)
            continue;
        sim_remove(servers->world, &held->event);
        on_release(&held->event);
    }
    servers->hold_next = false;
    toc_store_mem_hold_none(servers->store);
    servers->lose = servers->twice = servers->reorder = 0;
    toc_coord_mem_lie(servers->coord, false);
    toc_coord_mem_stop(servers->coord, false);
    toc_bus_mem_stop(servers->bus, false);
    servers->database.wall_ahead_ns = 0;
    (void)sim_pool_use(before);
}
