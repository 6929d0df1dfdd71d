#include "tests/sim/world.h"

#include "common/base/assert.h"

#include <string.h>

static struct sim_event *
event_of(const struct toc_heap_node *node)
{
    return (struct sim_event *)((const char *)node -
                                offsetof(struct sim_event, node));
}

static bool
sooner(const struct toc_heap_node *a, const struct toc_heap_node *b)
{
    const struct sim_event *x = event_of(a), *y = event_of(b);

    return x->at_ns != y->at_ns ? x->at_ns < y->at_ns : x->order < y->order;
}

void
sim_world_init(struct sim_world *world, uint64_t seed)
{
    memset(world, 0, sizeof *world);
    world->seed = seed;
    toc_rng_seed(&world->chance, seed);
    toc_rng_seed(&world->ids, ~seed);
    toc_rng_use(&world->ids);
    toc_list_init(&world->procs);
    sim_pool_init(&world->pool);
    (void)sim_pool_use(&world->pool);
    toc_heap_init(&world->events, sooner);
    sim_trace_init(&world->trace);
}

void
sim_world_done(struct sim_world *world)
{
    (void)sim_pool_use(&world->pool);
    sim_trace_done(&world->trace);
    toc_heap_done(&world->events);
    sim_pool_drop(&world->pool);
    toc_rng_use(NULL);
}

void
sim_event_init(struct sim_event *event, sim_event_fn *fn)
{
    *event = (struct sim_event){.node = {SIZE_MAX}, .fn = fn};
}

bool
sim_placed(const struct sim_event *event)
{
    return event->node.index != SIZE_MAX;
}

void
sim_place(struct sim_world *world, struct sim_event *event, int64_t at_ns)
{
    struct sim_pool *pool = sim_pool_use(&world->pool);

    sim_remove(world, event);
    event->at_ns = at_ns > world->now_ns ? at_ns : world->now_ns;
    event->order = world->placed++;
    toc_heap_insert(&world->events, &event->node);
    (void)sim_pool_use(pool);
}

void
sim_remove(struct sim_world *world, struct sim_event *event)
{
    if (sim_placed(event))
        toc_heap_remove(&world->events, &event->node);
}

void
sim_run_until(struct sim_world *world, int64_t until_ns)
{
    struct toc_heap_node *node;

    while (!world->over && (node = toc_heap_min(&world->events)) != NULL) {
        struct sim_event *event = event_of(node);

        if (event->at_ns > until_ns)
            break;
        (void)toc_heap_pop(&world->events);
        world->now_ns = event->at_ns;
        world->happened++;
        event->fn(event);
    }
    if (!world->over && world->now_ns < until_ns)
        world->now_ns = until_ns;
}

int64_t
sim_wall_ms(const struct sim_world *world)
{
    return SIM_BEGIN_MS + world->now_ns / SIM_MS;
}

int64_t
sim_between(struct sim_world *world, int64_t least, int64_t most)
{
    uint64_t span;

    TOC_ASSERT(least <= most);
    span = (uint64_t)most - (uint64_t)least + 1;
    return least + (int64_t)toc_rng_below(&world->chance, span);
}

bool
sim_one_in(struct sim_world *world, uint64_t n)
{
    return toc_rng_below(&world->chance, n) == 0;
}
