/* Sending: messages under way, their reports, and the questions of a bus. */
#include "common/bus/mem/mem_internal.h"

#include "common/base/alloc.h"

#include <string.h>

#define QUEUE_MAX_MESSAGES 100000
#define MESSAGE_TIMEOUT_MS 5000
#define TOPIC_NAME_MAX 249 /* as Kafka */

static struct mem_send *
send_at(struct toc_link *link)
{
    return toc_container_of(link, struct mem_send, link);
}

void
toc_bus_mem_send_free(struct mem_send *send)
{
    toc_list_remove(&send->link);
    toc_bus_mem_bytes_unref(send->bytes);
    toc_free(send->topic);
    toc_free(send);
}

static bool
reaches(const struct toc_bus_mem *bus)
{
    return !bus->cut && !bus->world->stopped;
}

/* ---- under way ------------------------------------------------------------
 */

static void
report(struct mem_send *send, enum toc_status st, int64_t offset)
{
    struct toc_bus_mem *bus = send->bus;

    if (bus == NULL) {
        toc_bus_mem_send_free(send);
        return;
    }
    send->st = st;
    send->offset = st == TOC_OK ? offset : -1;
    toc_list_remove(&send->link);
    toc_list_push(&bus->reported, &send->link);
    if (bus->world->threads)
        toc_bell_ring(&bus->bell);
}

static void
arrive(struct toc_bus_mem_world *world, struct mem_send *send)
{
    struct mem_part *part =
        toc_bus_mem_part_find(world, send->topic, send->partition);
    int64_t offset;

    if (part == NULL) {
        report(send, TOC_NOT_FOUND, -1);
        return;
    }
    offset = toc_bus_mem_part_end(part);
    for (unsigned i = 0; !send->fate.lose && i <= send->fate.copies_more; i++) {
        send->bytes->refs++;
        offset = toc_bus_mem_part_append(world, part, send->bytes);
    }
    if (!send->fate.lose)
        toc_bus_mem_ring_consumers(world);
    report(send, send->fate.report, offset);
}

void
toc_bus_mem_flight_settle(struct toc_bus_mem_world *world, int64_t now_ns)
{
    struct toc_link *link, *at;

    while (!toc_list_empty(&world->flight) &&
           send_at(world->flight.next)->at_ns <= now_ns)
        arrive(world, send_at(world->flight.next));
    for (link = world->buses.next; link != &world->buses; link = link->next) {
        struct toc_bus_mem *bus =
            toc_container_of(link, struct toc_bus_mem, link);
        while ((at = bus->waiting.next) != &bus->waiting &&
               send_at(at)->at_ns <= now_ns)
            report(send_at(at), TOC_DEADLINE, -1);
    }
}

/* Behind those that arrive no later: what is not delayed keeps its order. */
static void
launch(struct toc_bus_mem_world *world, struct mem_send *send)
{
    struct toc_link *at = &world->flight;

    send->at_ns = toc_bus_mem_now(world) + send->fate.delay_ms * TOC_NS_PER_MS;
    while (at->prev != &world->flight && send_at(at->prev)->at_ns > send->at_ns)
        at = at->prev;
    toc_list_remove(&send->link);
    toc_list_insert_before(at, &send->link);
}

void
toc_bus_mem_bus_reached(struct toc_bus_mem *bus)
{
    if (!reaches(bus))
        return;
    while (!toc_list_empty(&bus->waiting))
        launch(bus->world, send_at(bus->waiting.next));
    toc_bus_mem_flight_settle(bus->world, toc_bus_mem_now(bus->world));
}

/* ---- operations ------------------------------------------------------------
 */

static enum toc_status
op_send(void *self, const char *topic, int32_t partition,
        struct toc_str message, void *opaque, struct toc_error *reterr)
{
    struct toc_bus_mem *bus = self;
    struct toc_bus_mem_world *world = bus->world;
    struct toc_bus_mem_fate fate = {0};
    struct mem_send *send;

    if (message.len > world->message_max)
        return toc_error_set(reterr, TOC_INVALID, "mem", 0,
                             "the message is too large");
    if (world->fate != NULL)
        fate = world->fate(world->fate_arg, topic, partition, message);
    toc_bus_mem_enter(world);
    if (bus->queued >= bus->queue_max) {
        toc_bus_mem_leave(world);
        return toc_error_set(reterr, TOC_EXHAUSTED, "mem", 0,
                             "the queue is full");
    }
    send = TOC_NEW(struct mem_send);
    toc_list_init(&send->link);
    send->bus = bus;
    send->topic = toc_strdup(topic);
    send->partition = partition;
    send->bytes = toc_bus_mem_bytes_new(message);
    send->opaque = opaque;
    send->fate = fate;
    send->at_ns = toc_bus_mem_now(world) + MESSAGE_TIMEOUT_MS * TOC_NS_PER_MS;
    bus->queued++;
    toc_list_push(&bus->waiting, &send->link);
    toc_bus_mem_bus_reached(bus);
    toc_bus_mem_leave(world);
    return TOC_OK;
}

/* Runs the callbacks of what is reported, without the lock. */
static size_t
tell(struct toc_bus_mem *bus)
{
    struct toc_link *link;
    size_t n = 0;

    for (;;) {
        toc_bus_mem_enter(bus->world);
        link = toc_list_pop(&bus->reported);
        bus->queued -= link != NULL ? 1 : 0;
        toc_bus_mem_leave(bus->world);
        if (link == NULL)
            return n;
        struct mem_send *send = send_at(link);
        if (bus->report != NULL)
            bus->report(bus->report_arg, send->opaque, send->st, send->offset);
        n++;
        toc_bus_mem_enter(bus->world);
        toc_bus_mem_send_free(send);
        toc_bus_mem_leave(bus->world);
    }
}

static void
wait_for(struct toc_bus_mem *bus, int64_t until_ns)
{
    int64_t next_ns = toc_bus_mem_pump(bus->world);

    (void)toc_bell_wait(&bus->bell, next_ns < until_ns ? next_ns : until_ns);
}

static size_t
op_poll(void *self, int64_t timeout_ms)
{
    struct toc_bus_mem *bus = self;
    int64_t until_ns = toc_bus_mem_now(bus->world) + timeout_ms * TOC_NS_PER_MS;

    for (;;) {
        size_t n = tell(bus);
        if (n > 0 || !bus->world->threads ||
            toc_bus_mem_now(bus->world) >= until_ns)
            return n;
        wait_for(bus, until_ns);
    }
}

static enum toc_status
op_flush(void *self, int64_t timeout_ms, struct toc_error *reterr)
{
    struct toc_bus_mem *bus = self;
    int64_t until_ns = toc_bus_mem_now(bus->world) + timeout_ms * TOC_NS_PER_MS;

    for (;;) {
        (void)tell(bus);
        toc_bus_mem_enter(bus->world);
        size_t queued = bus->queued;
        toc_bus_mem_leave(bus->world);
        if (queued == 0)
            return TOC_OK;
        if (!bus->world->threads || toc_bus_mem_now(bus->world) >= until_ns)
            return toc_error_set(reterr, TOC_DEADLINE, "mem", 0,
                                 "messages are still under way");
        wait_for(bus, until_ns);
    }
}

/* Locks: held. */
static enum toc_status
may_ask(const struct toc_bus_mem *bus, struct toc_error *reterr)
{
    if (bus->interrupted)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "mem", 0,
                             "interrupted: the process is stopping");
    if (!reaches(bus))
        return toc_error_set(reterr, TOC_DEADLINE, "mem", 0,
                             "the cluster is not reached");
    return TOC_OK;
}

static enum toc_status
no_partition(const char *topic, struct toc_error *reterr)
{
    return toc_error_set(reterr, TOC_NOT_FOUND, "mem", 0,
                         "no such topic or partition: %s", topic);
}

static enum toc_status
op_end_offset(void *self, const char *topic, int32_t partition,
              int64_t timeout_ms, int64_t *ret_offset, struct toc_error *reterr)
{
    struct toc_bus_mem *bus = self;
    struct mem_part *part;
    enum toc_status st;

    (void)timeout_ms;
    toc_bus_mem_enter(bus->world);
    st = may_ask(bus, reterr);
    part = toc_bus_mem_part_find(bus->world, topic, partition);
    if (st == TOC_OK && part == NULL)
        st = no_partition(topic, reterr);
    if (st == TOC_OK)
        *ret_offset = toc_bus_mem_part_end(part);
    toc_bus_mem_leave(bus->world);
    return st;
}

static enum toc_status
op_committed(void *self, const char *group, const char *topic,
             int32_t partitions, int64_t timeout_ms, int64_t *ret_offsets,
             struct toc_error *reterr)
{
    struct toc_bus_mem *bus = self;
    struct toc_bus_mem_world *world = bus->world;
    enum toc_status st;

    (void)timeout_ms;
    toc_bus_mem_enter(world);
    st = may_ask(bus, reterr);
    if (st == TOC_OK &&
        toc_bus_mem_part_find(world, topic, partitions - 1) == NULL)
        st = no_partition(topic, reterr);
    for (int32_t i = 0; st == TOC_OK && i < partitions; i++) {
        int64_t offset = toc_bus_mem_group_committed(
            toc_bus_mem_group_need(world, group), topic, i);
        ret_offsets[i] = offset >= 0
                             ? offset
                             : toc_bus_mem_part_find(world, topic, i)->start;
    }
    toc_bus_mem_leave(world);
    return st;
}

static bool
name_valid(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return len > 0 && len <= TOPIC_NAME_MAX && name[len] == '\0';
}

static enum toc_status
op_ensure_topic(void *self, const char *topic, int32_t partitions,
                int64_t timeout_ms, int32_t *ret_partitions,
                struct toc_error *reterr)
{
    struct toc_bus_mem *bus = self;
    struct mem_topic *found;
    enum toc_status st;

    (void)timeout_ms;
    if (!name_valid(topic))
        return toc_error_set(reterr, TOC_INVALID, "mem", 0,
                             "not a topic's name: %s", topic);
    toc_bus_mem_enter(bus->world);
    st = may_ask(bus, reterr);
    found = toc_bus_mem_topic_find(bus->world, topic);
    if (st == TOC_OK && found == NULL) {
        found = toc_bus_mem_topic_make(bus->world, topic, partitions);
        toc_bus_mem_topic_changed(bus->world, topic);
    }
    if (st == TOC_OK)
        *ret_partitions = found->n;
    toc_bus_mem_leave(bus->world);
    return st;
}

static void
op_interrupt(void *self)
{
    struct toc_bus_mem *bus = self;

    toc_bus_mem_enter(bus->world);
    bus->interrupted = true;
    toc_bus_mem_leave(bus->world);
}

static const struct toc_bus_ops ops = {
    .name = "mem",
    .send = op_send,
    .poll = op_poll,
    .flush = op_flush,
    .end_offset = op_end_offset,
    .committed = op_committed,
    .ensure_topic = op_ensure_topic,
    .interrupt = op_interrupt,
};

/* ---- life ------------------------------------------------------------------
 */

struct toc_bus_mem *
toc_bus_mem_open(struct toc_bus_mem_world *world,
                 const struct toc_bus_mem_options *options)
{
    struct toc_bus_mem *bus = TOC_NEW(struct toc_bus_mem);

    bus->port = (struct toc_bus){&ops, bus};
    bus->world = world;
    bus->report = options->report;
    bus->report_arg = options->report_arg;
    bus->queue_max = options->queue_max_messages > 0
                         ? options->queue_max_messages
                         : QUEUE_MAX_MESSAGES;
    toc_list_init(&bus->waiting);
    toc_list_init(&bus->reported);
    toc_bell_init(&bus->bell);
    toc_bus_mem_enter(world);
    toc_list_push(&world->buses, &bus->link);
    toc_bus_mem_leave(world);
    return bus;
}

void
toc_bus_mem_kill(struct toc_bus_mem *bus)
{
    struct toc_bus_mem_world *world;
    struct toc_link *link;

    if (bus == NULL)
        return;
    world = bus->world;
    toc_bus_mem_enter(world);
    for (link = world->flight.next; link != &world->flight; link = link->next)
        if (send_at(link)->bus == bus)
            send_at(link)->bus = NULL;
    while (!toc_list_empty(&bus->waiting))
        toc_bus_mem_send_free(send_at(bus->waiting.next));
    while (!toc_list_empty(&bus->reported))
        toc_bus_mem_send_free(send_at(bus->reported.next));
    toc_list_remove(&bus->link);
    toc_bus_mem_leave(world);
    toc_bell_done(&bus->bell);
    toc_free(bus);
}

/* What is under way arrives all the same, as a copy that nobody waits for. */
static void
cancel(struct toc_bus_mem *bus)
{
    struct toc_bus_mem_world *world = bus->world;
    struct toc_link *link = world->flight.next;

    while (link != &world->flight) {
        struct mem_send *send = send_at(link), *copy;
        link = link->next;
        if (send->bus != bus)
            continue;
        copy = TOC_NEW(struct mem_send);
        *copy = *send;
        copy->topic = toc_strdup(send->topic);
        copy->bytes->refs++;
        copy->bus = NULL;
        toc_list_init(&copy->link);
        toc_list_insert_before(&send->link, &copy->link);
        report(send, TOC_CANCELLED, -1);
    }
    while (!toc_list_empty(&bus->waiting))
        report(send_at(bus->waiting.next), TOC_CANCELLED, -1);
}

void
toc_bus_mem_close(struct toc_bus_mem *bus)
{
    if (bus == NULL)
        return;
    toc_bus_mem_enter(bus->world);
    cancel(bus);
    toc_bus_mem_leave(bus->world);
    (void)tell(bus);
    toc_bus_mem_kill(bus);
}

void
toc_bus_mem_cut(struct toc_bus_mem *bus, bool cut)
{
    toc_bus_mem_enter(bus->world);
    bus->cut = cut;
    toc_bus_mem_bus_reached(bus);
    toc_bus_mem_leave(bus->world);
}

struct toc_bus *
toc_bus_mem_port(struct toc_bus_mem *bus)
{
    return &bus->port;
}
