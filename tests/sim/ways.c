#include "tests/sim/waits.h"

/* How long it takes until others hear of a change. */
#define NEWS_NS (SIM_MS / 2)

static int64_t
end_of(const struct sim_proc *proc, int64_t timeout_ms)
{
    return proc->world->now_ns + timeout_ms * SIM_MS;
}

static void
tell_others(const struct sim_proc *proc, const void *server)
{
    sim_nudge(proc->world, server, proc->world->now_ns + NEWS_NS);
}

/* ---- coordination ---------------------------------------------------- */

struct told {
    toc_coord_event_fn *fn;
    void *arg;
    size_t n;
};

static void
tell(void *arg, const struct toc_coord_event *event)
{
    struct told *told = arg;

    told->n++;
    told->fn(told->arg, event);
}

static enum toc_status
coord_poll(void *self, int64_t timeout_ms, toc_coord_event_fn *fn, void *arg,
           struct toc_error *reterr)
{
    struct sim_coord *coord = self;
    int64_t end_ns = end_of(coord->proc, timeout_ms);
    struct told told = {fn, arg, 0};
    enum toc_status st;

    for (;;) {
        st = toc_coord_poll(coord->inner, 0, tell, &told, reterr);
        if (st == TOC_OK && told.n == 0 && coord->proc->world->now_ns < end_ns)
            sim_loop_await(coord->server, end_ns);
        else
            break;
    }
    if (st != TOC_OK && coord->proc->world->now_ns < end_ns)
        sim_loop_pause(end_ns); /* a server that is away: no busy loop */
    return st;
}

static enum toc_status
coord_acquire(void *self, const uint16_t *shards, size_t n, bool *ret_won,
              struct toc_error *reterr)
{
    struct sim_coord *coord = self;
    enum toc_status st =
        toc_coord_acquire(coord->inner, shards, n, ret_won, reterr);

    tell_others(coord->proc, coord->server);
    return st;
}

static enum toc_status
coord_release(void *self, const uint16_t *shards, size_t n,
              struct toc_error *reterr)
{
    struct sim_coord *coord = self;
    enum toc_status st = toc_coord_release(coord->inner, shards, n, reterr);

    tell_others(coord->proc, coord->server);
    return st;
}

static enum toc_status
coord_want(void *self, const uint16_t *shards, size_t n, bool wanted,
           struct toc_error *reterr)
{
    struct sim_coord *coord = self;
    enum toc_status st =
        toc_coord_want(coord->inner, shards, n, wanted, reterr);

    tell_others(coord->proc, coord->server);
    return st;
}

static enum toc_status
coord_leave(void *self, struct toc_error *reterr)
{
    struct sim_coord *coord = self;
    enum toc_status st = toc_coord_leave(coord->inner, reterr);

    tell_others(coord->proc, coord->server);
    return st;
}

static enum toc_status
coord_snapshot(void *self, struct toc_arena *arena,
               struct toc_member **ret_members, size_t *ret_n_members,
               struct toc_owner **ret_owners, size_t *ret_n_owners,
               struct toc_error *reterr)
{
    struct sim_coord *coord = self;

    return toc_coord_snapshot(coord->inner, arena, ret_members, ret_n_members,
                              ret_owners, ret_n_owners, reterr);
}

static int64_t
coord_deadline_boot_ns(void *self)
{
    struct sim_coord *coord = self;

    return toc_coord_deadline_boot_ns(coord->inner);
}

static void
coord_wake(void *self)
{
    struct sim_coord *coord = self;

    toc_coord_wake(coord->inner);
    tell_others(coord->proc, coord->server);
}

static const struct toc_coord_ops coord_ops = {
    .name = "sim",
    .poll = coord_poll,
    .acquire = coord_acquire,
    .release = coord_release,
    .want = coord_want,
    .leave = coord_leave,
    .snapshot = coord_snapshot,
    .deadline_boot_ns = coord_deadline_boot_ns,
    .wake = coord_wake,
};

void
sim_coord_init(struct sim_coord *coord, struct toc_coord *inner,
               struct sim_proc *proc, const void *server)
{
    *coord = (struct sim_coord){.port = {&coord_ops, coord},
                                .inner = inner,
                                .proc = proc,
                                .server = server};
}

/* ---- consuming ------------------------------------------------------- */

static size_t
consumer_poll(void *self, struct toc_bus_message *messages, size_t max,
              int64_t timeout_ms)
{
    struct sim_consumer *consumer = self;
    int64_t end_ns = end_of(consumer->proc, timeout_ms);
    size_t n;

    for (;;) {
        n = toc_bus_consumer_poll(consumer->inner, messages, max, 0);
        if (n > 0 || consumer->proc->world->now_ns >= end_ns)
            return n;
        sim_loop_await(consumer->server, end_ns);
    }
}

static void
consumer_release(void *self, struct toc_bus_message *message)
{
    struct sim_consumer *consumer = self;

    toc_bus_consumer_release(consumer->inner, message);
}

static void
consumer_mark(void *self, int16_t topic, int32_t partition, int64_t next_offset)
{
    struct sim_consumer *consumer = self;

    toc_bus_consumer_mark(consumer->inner, topic, partition, next_offset);
}

static enum toc_status
consumer_commit(void *self, bool wait, struct toc_error *reterr)
{
    struct sim_consumer *consumer = self;

    return toc_bus_consumer_commit(consumer->inner, wait, reterr);
}

static void
consumer_pause(void *self, int16_t topic, bool paused)
{
    struct sim_consumer *consumer = self;

    toc_bus_consumer_pause(consumer->inner, topic, paused);
}

static enum toc_status
consumer_join(void *self, bool join, struct toc_error *reterr)
{
    struct sim_consumer *consumer = self;
    enum toc_status st = toc_bus_consumer_join(consumer->inner, join, reterr);

    tell_others(consumer->proc, consumer->server);
    return st;
}

static void
consumer_wake(void *self)
{
    struct sim_consumer *consumer = self;

    toc_bus_consumer_wake(consumer->inner);
    tell_others(consumer->proc, consumer->server);
}

static const struct toc_bus_consumer_ops consumer_ops = {
    .name = "sim",
    .poll = consumer_poll,
    .release = consumer_release,
    .mark = consumer_mark,
    .commit = consumer_commit,
    .pause = consumer_pause,
    .join = consumer_join,
    .wake = consumer_wake,
};

void
sim_consumer_init(struct sim_consumer *consumer, struct toc_bus_consumer *inner,
                  struct sim_proc *proc, const void *server)
{
    *consumer = (struct sim_consumer){.port = {&consumer_ops, consumer},
                                      .inner = inner,
                                      .proc = proc,
                                      .server = server};
}
