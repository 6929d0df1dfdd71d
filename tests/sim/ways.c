#include "tests/sim/ways.h"

/* How long it takes until others hear of a change. */
#define NEWS_NS (SIM_MS / 2)

/* What every operation that may go wrong does around the inner one's call. */
#define THROUGH(door_, port_, name_, call)                     \
    static const struct toc_fault_op op = {port_, name_};      \
    enum toc_fault how = toc_fault_before(&(door_).plan, &op); \
                                                               \
    if (how == TOC_FAULT_FAIL)                                 \
        return toc_fault_failed(&op, reterr);                  \
    st = toc_fault_after(&(door_).plan, &op, how, call, reterr)

static int64_t
now_of(const struct sim_door *door)
{
    return door->proc->world->now_ns;
}

static void
tell_others(const struct sim_door *door, const void *server)
{
    sim_nudge(door->proc->world, server, now_of(door) + NEWS_NS);
}

static struct sim_pool *
in_servers_memory(const struct sim_door *door)
{
    return sim_pool_use(&door->proc->world->pool);
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
look(struct sim_coord *coord, struct told *told, struct toc_error *reterr)
{
    enum toc_status st;

    THROUGH(coord->door, "coord", "poll",
            toc_coord_poll(coord->inner, 0, tell, told, reterr));
    return st;
}

static enum toc_status
coord_poll(void *self, int64_t timeout_ms, toc_coord_event_fn *fn, void *arg,
           struct toc_error *reterr)
{
    struct sim_coord *coord = self;
    int64_t end_ns = now_of(&coord->door) + timeout_ms * SIM_MS;
    struct told told = {fn, arg, 0};
    enum toc_status st = look(coord, &told, reterr);

    while (st == TOC_OK && told.n == 0 && now_of(&coord->door) < end_ns) {
        sim_loop_await(coord->server, end_ns);
        st = look(coord, &told, reterr);
    }
    if (st != TOC_OK && now_of(&coord->door) < end_ns)
        sim_loop_pause(end_ns); /* a server that is away */
    return st;
}

static enum toc_status
coord_acquire(void *self, const uint16_t *shards, size_t n, bool *ret_won,
              struct toc_error *reterr)
{
    struct sim_coord *coord = self;
    enum toc_status st;

    THROUGH(coord->door, "coord", "acquire",
            toc_coord_acquire(coord->inner, shards, n, ret_won, reterr));
    tell_others(&coord->door, coord->server);
    return st;
}

static enum toc_status
coord_release(void *self, const uint16_t *shards, size_t n,
              struct toc_error *reterr)
{
    struct sim_coord *coord = self;
    enum toc_status st;

    THROUGH(coord->door, "coord", "release",
            toc_coord_release(coord->inner, shards, n, reterr));
    tell_others(&coord->door, coord->server);
    return st;
}

static enum toc_status
coord_want(void *self, const uint16_t *shards, size_t n, bool wanted,
           struct toc_error *reterr)
{
    struct sim_coord *coord = self;
    enum toc_status st;

    THROUGH(coord->door, "coord", "want",
            toc_coord_want(coord->inner, shards, n, wanted, reterr));
    tell_others(&coord->door, coord->server);
    return st;
}

static enum toc_status
coord_leave(void *self, struct toc_error *reterr)
{
    struct sim_coord *coord = self;
    enum toc_status st;

    THROUGH(coord->door, "coord", "leave",
            toc_coord_leave(coord->inner, reterr));
    tell_others(&coord->door, coord->server);
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
    struct sim_pool *before = in_servers_memory(&coord->door);
    int64_t ns = toc_coord_deadline_boot_ns(coord->inner);

    (void)sim_pool_use(before);
    return ns;
}

static void
coord_wake(void *self)
{
    struct sim_coord *coord = self;

    toc_coord_wake(coord->inner);
    tell_others(&coord->door, coord->server);
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
               const void *server)
{
    coord->port = (struct toc_coord){&coord_ops, coord};
    coord->inner = inner;
    coord->server = server;
}

/* ---- producing ------------------------------------------------------- */

/* Whether it is stored is told by the report: what it returns cannot be lost.
 */
static enum toc_status
bus_send(void *self, const char *topic, int32_t partition,
         struct toc_str message, void *opaque, struct toc_error *reterr)
{
    static const struct toc_fault_op op = {"bus", "send"};
    struct sim_bus *bus = self;
    enum toc_status st;

    if (toc_fault_before(&bus->door.plan, &op) == TOC_FAULT_FAIL)
        return toc_fault_failed(&op, reterr);
    st = toc_bus_send(bus->inner, topic, partition, message, opaque, reterr);
    st = toc_fault_after(&bus->door.plan, &op, TOC_FAULT_NONE, st, reterr);
    tell_others(&bus->door, bus->server);
    return st;
}

static size_t
bus_poll(void *self, int64_t timeout_ms)
{
    struct sim_bus *bus = self;
    struct sim_pool *before = in_servers_memory(&bus->door);
    size_t n = toc_bus_poll(bus->inner, 0);

    (void)timeout_ms;
    (void)sim_pool_use(before);
    return n;
}

static enum toc_status
flush_once(struct sim_bus *bus, struct toc_error *reterr)
{
    struct sim_pool *before = in_servers_memory(&bus->door);
    enum toc_status st = toc_bus_flush(bus->inner, 0, reterr);

    (void)sim_pool_use(before);
    return st;
}

static enum toc_status
bus_flush(void *self, int64_t timeout_ms, struct toc_error *reterr)
{
    struct sim_bus *bus = self;
    int64_t end_ns = now_of(&bus->door) + timeout_ms * SIM_MS;
    enum toc_status st;

    while ((st = flush_once(bus, reterr)) == TOC_DEADLINE &&
           now_of(&bus->door) < end_ns)
        sim_loop_pause(now_of(&bus->door) + SIM_MS);
    return st;
}

static enum toc_status
bus_end_offset(void *self, const char *topic, int32_t partition,
               int64_t timeout_ms, int64_t *ret_offset,
               struct toc_error *reterr)
{
    struct sim_bus *bus = self;
    enum toc_status st;

    (void)timeout_ms;
    THROUGH(bus->door, "bus", "end_offset",
            toc_bus_end_offset(bus->inner, topic, partition, 0, ret_offset,
                               reterr));
    return st;
}

static enum toc_status
bus_committed(void *self, const char *group, const char *topic,
              int32_t partitions, int64_t timeout_ms, int64_t *ret_offsets,
              struct toc_error *reterr)
{
    struct sim_bus *bus = self;
    enum toc_status st;

    (void)timeout_ms;
    THROUGH(bus->door, "bus", "committed",
            toc_bus_committed(bus->inner, group, topic, partitions, 0,
                              ret_offsets, reterr));
    return st;
}

static enum toc_status
bus_ensure_topic(void *self, const char *topic, int32_t partitions,
                 int64_t timeout_ms, int32_t *ret_partitions,
                 struct toc_error *reterr)
{
    struct sim_bus *bus = self;

    return toc_bus_ensure_topic(bus->inner, topic, partitions, timeout_ms,
                                ret_partitions, reterr);
}

static const struct toc_bus_ops bus_ops = {
    .name = "sim",
    .send = bus_send,
    .poll = bus_poll,
    .flush = bus_flush,
    .end_offset = bus_end_offset,
    .committed = bus_committed,
    .ensure_topic = bus_ensure_topic,
};

void
sim_bus_init(struct sim_bus *bus, struct toc_bus *inner, const void *server)
{
    bus->port = (struct toc_bus){.ops = &bus_ops, .self = bus};
    bus->inner = inner;
    bus->server = server;
}

/* ---- consuming ------------------------------------------------------- */

static size_t
take(struct sim_consumer *consumer, struct toc_bus_message *messages,
     size_t max)
{
    struct sim_pool *before = in_servers_memory(&consumer->door);
    size_t n = toc_bus_consumer_poll(consumer->inner, messages, max, 0);

    (void)sim_pool_use(before);
    return n;
}

static size_t
consumer_poll(void *self, struct toc_bus_message *messages, size_t max,
              int64_t timeout_ms)
{
    struct sim_consumer *consumer = self;
    int64_t end_ns = now_of(&consumer->door) + timeout_ms * SIM_MS;
    size_t n = take(consumer, messages, max);

    while (n == 0 && now_of(&consumer->door) < end_ns) {
        sim_loop_await(consumer->server, end_ns);
        n = take(consumer, messages, max);
    }
    return n;
}

static void
consumer_release(void *self, struct toc_bus_message *message)
{
    struct sim_consumer *consumer = self;
    struct sim_pool *before = in_servers_memory(&consumer->door);

    toc_bus_consumer_release(consumer->inner, message);
    (void)sim_pool_use(before);
}

static void
consumer_mark(void *self, int16_t topic, int32_t partition, int64_t next_offset)
{
    struct sim_consumer *consumer = self;
    struct sim_pool *before = in_servers_memory(&consumer->door);

    toc_bus_consumer_mark(consumer->inner, topic, partition, next_offset);
    (void)sim_pool_use(before);
}

static enum toc_status
consumer_commit(void *self, bool wait, struct toc_error *reterr)
{
    struct sim_consumer *consumer = self;
    struct sim_pool *before = in_servers_memory(&consumer->door);
    enum toc_status st = toc_bus_consumer_commit(consumer->inner, wait, reterr);

    (void)sim_pool_use(before);
    return st;
}

static void
consumer_pause(void *self, int16_t topic, bool paused)
{
    struct sim_consumer *consumer = self;
    struct sim_pool *before = in_servers_memory(&consumer->door);

    toc_bus_consumer_pause(consumer->inner, topic, paused);
    (void)sim_pool_use(before);
}

static enum toc_status
consumer_join(void *self, bool join, struct toc_error *reterr)
{
    struct sim_consumer *consumer = self;
    struct sim_pool *before = in_servers_memory(&consumer->door);
    enum toc_status st = toc_bus_consumer_join(consumer->inner, join, reterr);

    (void)sim_pool_use(before);
    tell_others(&consumer->door, consumer->server);
    return st;
}

static void
consumer_wake(void *self)
{
    struct sim_consumer *consumer = self;

    toc_bus_consumer_wake(consumer->inner);
    tell_others(&consumer->door, consumer->server);
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
                  const void *server)
{
    consumer->port = (struct toc_bus_consumer){&consumer_ops, consumer};
    consumer->inner = inner;
    consumer->server = server;
}
