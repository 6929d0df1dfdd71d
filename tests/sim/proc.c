#include "tests/sim/proc.h"

#include "common/base/assert.h"

#include <string.h>

static struct sim_loop *running;

/* ---- its clock ------------------------------------------------------- */

static struct toc_wall
proc_wall(void *self)
{
    const struct sim_proc *proc = self;
    int64_t ns = proc->world->now_ns + proc->wall_ahead_ns;
    int64_t ms = ns >= 0 ? ns / SIM_MS : -((-ns + SIM_MS - 1) / SIM_MS);

    return (struct toc_wall){SIM_BEGIN_MS + ms};
}

/* Begins at a second, so that 0 is never a time. */
static struct toc_mono
proc_mono(void *self)
{
    const struct sim_proc *proc = self;

    return (struct toc_mono){proc->world->now_ns + SIM_SEC};
}

static struct toc_boot
proc_boot(void *self)
{
    const struct sim_proc *proc = self;

    return (struct toc_boot){proc->world->now_ns + SIM_SEC};
}

static int64_t
world_ns_of(int64_t mono_ns)
{
    return mono_ns - SIM_SEC;
}

static const struct toc_clock_ops proc_clock_ops = {.name = "sim proc",
                                                    .wall = proc_wall,
                                                    .mono = proc_mono,
                                                    .boot = proc_boot};

/* ---- loops ----------------------------------------------------------- */

static void
wake_rung(struct sim_proc *proc)
{
    for (size_t i = 0; i < SIM_LOOPS_MAX; i++) {
        struct sim_loop *loop = &proc->loops[i];
        if (loop->fiber != NULL && loop->by_bell && loop->bell != NULL &&
            loop->bell->rung)
            sim_place(proc->world, &loop->wake, proc->world->now_ns);
    }
}

static void
on_wake(struct sim_event *event)
{
    struct sim_loop *loop = toc_container_of(event, struct sim_loop, wake);
    struct sim_proc *proc = loop->proc;
    struct sim_pool *before;

    if (proc->frozen_until_ns > proc->world->now_ns) {
        sim_place(proc->world, event, proc->frozen_until_ns);
        return;
    }
    before = sim_pool_use(&proc->pool);
    running = loop;
    sim_fiber_resume(loop->fiber);
    running = NULL;
    (void)sim_pool_use(before);
    wake_rung(proc);
}

static void
run_loop(void *arg)
{
    struct sim_loop *loop = arg;

    for (;;) {
        int64_t wake_ns = world_ns_of(loop->step(loop->self));

        loop->by_bell = true;
        if (loop->bell == NULL || !loop->bell->rung)
            sim_loop_pause(wake_ns);
        loop->by_bell = false;
        if (loop->bell != NULL)
            (void)toc_bell_wait(loop->bell, 0); /* takes the ring */
    }
}

void
sim_proc_loop(struct sim_proc *proc, const char *name, sim_step_fn *step,
              void *self, struct toc_bell *bell)
{
    size_t i = 0;

    while (i < SIM_LOOPS_MAX && proc->loops[i].fiber != NULL)
        i++;
    TOC_ASSERT(i < SIM_LOOPS_MAX);
    proc->loops[i] = (struct sim_loop){
        .proc = proc, .name = name, .step = step, .self = self, .bell = bell};
    sim_event_init(&proc->loops[i].wake, on_wake);
    proc->loops[i].fiber = sim_fiber_new(run_loop, &proc->loops[i]);
    sim_place(proc->world, &proc->loops[i].wake, proc->world->now_ns);
}

/* ---- life ------------------------------------------------------------ */

void
sim_proc_init(struct sim_proc *proc, struct sim_world *world, const char *name)
{
    memset(proc, 0, sizeof *proc);
    proc->world = world;
    proc->name = name;
    proc->clock = (struct toc_clock){&proc_clock_ops, proc};
    sim_pool_init(&proc->pool);
    toc_list_push(&world->procs, &proc->link);
}

void
sim_proc_begin(struct sim_proc *proc)
{
    TOC_ASSERT(!proc->alive);
    proc->alive = true;
    proc->frozen_until_ns = 0;
}

void
sim_proc_kill(struct sim_proc *proc)
{
    TOC_ASSERT(running == NULL || running->proc != proc);
    for (size_t i = 0; i < SIM_LOOPS_MAX; i++) {
        struct sim_loop *loop = &proc->loops[i];
        if (loop->fiber == NULL)
            continue;
        sim_remove(proc->world, &loop->wake);
        sim_fiber_drop(loop->fiber);
        loop->fiber = NULL;
    }
    sim_pool_drop(&proc->pool);
    proc->alive = false;
    proc->life++;
}

void
sim_proc_freeze(struct sim_proc *proc, int64_t until_ns)
{
    proc->frozen_until_ns = until_ns;
}

void
sim_proc_call(struct sim_proc *proc, void (*fn)(void *arg), void *arg)
{
    struct sim_pool *before;

    if (!proc->alive)
        return;
    before = sim_pool_use(&proc->pool);
    fn(arg);
    (void)sim_pool_use(before);
    wake_rung(proc);
}

/* ---- from inside a loop ---------------------------------------------- */

struct sim_loop *
sim_loop_running(void)
{
    return running;
}

void
sim_loop_pause(int64_t until_ns)
{
    struct sim_loop *loop = running;

    TOC_ASSERT(loop != NULL);
    sim_place(loop->proc->world, &loop->wake, until_ns);
    sim_fiber_yield();
}

void
sim_loop_await(const void *what, int64_t until_ns)
{
    running->awaits = what;
    sim_loop_pause(until_ns);
    running->awaits = NULL;
}

void
sim_nudge(struct sim_world *world, const void *what, int64_t at_ns)
{
    for (struct toc_link *link = world->procs.next; link != &world->procs;
         link = link->next) {
        struct sim_proc *proc = toc_container_of(link, struct sim_proc, link);
        for (size_t i = 0; i < SIM_LOOPS_MAX; i++) {
            struct sim_loop *loop = &proc->loops[i];
            if (loop->fiber != NULL && loop->awaits == what &&
                loop->wake.at_ns > at_ns)
                sim_place(world, &loop->wake, at_ns);
        }
    }
}
