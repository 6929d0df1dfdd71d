#include "common/clock/sim/clock_sim.h"

#include "common/base/assert.h"

/* Not zero, so that a forgotten "not set" shows. */
#define MONO_START_NS (INT64_C(1000) * TOC_NS_PER_MS)

static struct toc_wall
sim_wall(void *self)
{
    struct toc_clock_sim *sim = self;
    int64_t ns = atomic_load(&sim->wall_ns);
    int64_t ms = ns / TOC_NS_PER_MS;

    if (ns % TOC_NS_PER_MS < 0)
        ms--;
    return (struct toc_wall){ms};
}

static struct toc_mono
sim_mono(void *self)
{
    struct toc_clock_sim *sim = self;

    return (struct toc_mono){atomic_load(&sim->mono_ns)};
}

static struct toc_boot
sim_boot(void *self)
{
    struct toc_clock_sim *sim = self;

    return (struct toc_boot){atomic_load(&sim->mono_ns)};
}

void
toc_clock_sim_init(struct toc_clock_sim *sim, struct toc_wall start)
{
    static const struct toc_clock_ops ops = {
        .name = "sim", .wall = sim_wall, .mono = sim_mono, .boot = sim_boot};

    sim->clock.ops = &ops;
    sim->clock.self = sim;
    atomic_init(&sim->wall_ns, start.ms * TOC_NS_PER_MS);
    atomic_init(&sim->mono_ns, MONO_START_NS);
}

void
toc_clock_sim_advance_ns(struct toc_clock_sim *sim, int64_t ns)
{
    TOC_ASSERT(ns >= 0);
    atomic_fetch_add(&sim->mono_ns, ns);
    atomic_fetch_add(&sim->wall_ns, ns);
}

void
toc_clock_sim_step_wall(struct toc_clock_sim *sim, int64_t by_ms)
{
    atomic_fetch_add(&sim->wall_ns, by_ms * TOC_NS_PER_MS);
}
