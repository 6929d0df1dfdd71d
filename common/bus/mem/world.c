/* The cluster: its time, and what can go wrong with it. */
#include "common/bus/mem/mem_internal.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#define LOG_MAX 100000
#define MESSAGE_MAX 1000000

static struct mem_group *
group_at(struct toc_link *link)
{
    return toc_container_of(link, struct mem_group, link);
}

static struct toc_consumer_mem *
consumer_at(struct toc_link *link)
{
    return toc_container_of(link, struct toc_consumer_mem, link);
}

int64_t
toc_bus_mem_now(const struct toc_bus_mem_world *world)
{
    return toc_clock_mono(world->clock).ns;
}

void
toc_bus_mem_ring_consumers(struct toc_bus_mem_world *world)
{
    struct toc_link *link;

    if (!world->threads)
        return;
    for (link = world->consumers.next; link != &world->consumers;
         link = link->next)
        toc_bell_ring(&consumer_at(link)->bell);
}

/* What was due first does not come first when much time has passed at once,
 * but it all comes. */
void
toc_bus_mem_enter(struct toc_bus_mem_world *world)
{
    struct toc_link *link;
    int64_t now_ns;

    pthread_mutex_lock(&world->lock);
    now_ns = toc_bus_mem_now(world);
    toc_bus_mem_flight_settle(world, now_ns);
    if (world->stopped)
        return;
    for (link = world->consumers.next; link != &world->consumers;
         link = link->next)
        toc_bus_mem_consumer_settle(consumer_at(link), now_ns);
    for (link = world->groups.next; link != &world->groups; link = link->next)
        toc_bus_mem_group_settle(world, group_at(link), now_ns);
}

void
toc_bus_mem_leave(struct toc_bus_mem_world *world)
{
    pthread_mutex_unlock(&world->lock);
}

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t
toc_bus_mem_next_ns(struct toc_bus_mem_world *world)
{
    int64_t next_ns = INT64_MAX;
    struct toc_link *link;

    if (!toc_list_empty(&world->flight))
        next_ns =
            toc_container_of(world->flight.next, struct mem_send, link)->at_ns;
    for (link = world->buses.next; link != &world->buses; link = link->next) {
        struct toc_link *waiting =
            &toc_container_of(link, struct toc_bus_mem, link)->waiting;
        if (!toc_list_empty(waiting))
            next_ns = earlier(
                next_ns,
                toc_container_of(waiting->next, struct mem_send, link)->at_ns);
    }
    for (link = world->groups.next; !world->stopped && link != &world->groups;
         link = link->next)
        next_ns =
            earlier(next_ns, toc_bus_mem_group_next_ns(world, group_at(link)));
    return next_ns;
}

int64_t
toc_bus_mem_pump(struct toc_bus_mem_world *world)
{
    int64_t next_ns;

    toc_bus_mem_enter(world);
    next_ns = toc_bus_mem_next_ns(world);
    toc_bus_mem_leave(world);
    return next_ns;
}

/* ---- what can go wrong --------------------------------------------------- */

/* Sessions go on from where the cluster starts again. */
static void
renew_sessions(struct toc_bus_mem_world *world)
{
    struct toc_link *link, *at;

    for (link = world->groups.next; link != &world->groups; link = link->next)
        for (at = group_at(link)->members.next; at != &group_at(link)->members;
             at = at->next)
            toc_container_of(at, struct mem_member, link)->seen_ns =
                toc_bus_mem_now(world);
}

void
toc_bus_mem_stop(struct toc_bus_mem_world *world, bool stopped)
{
    struct toc_link *link;
    bool was;

    toc_bus_mem_enter(world);
    was = world->stopped;
    for (link = world->consumers.next; link != &world->consumers;
         link = link->next) {
        bool reached = toc_bus_mem_consumer_reaches(consumer_at(link));
        world->stopped = stopped;
        toc_bus_mem_consumer_contact(consumer_at(link), reached);
        world->stopped = was;
    }
    world->stopped = stopped;
    if (was && !stopped)
        renew_sessions(world);
    for (link = world->buses.next; link != &world->buses; link = link->next)
        toc_bus_mem_bus_reached(
            toc_container_of(link, struct toc_bus_mem, link));
    toc_bus_mem_ring_consumers(world);
    toc_bus_mem_leave(world);
}

static void
forget_offsets(struct toc_bus_mem_world *world, const char *topic)
{
    struct toc_link *link;

    for (link = world->groups.next; link != &world->groups; link = link->next)
        toc_bus_mem_group_forget(group_at(link), topic);
}

void
toc_bus_mem_delete_topic(struct toc_bus_mem_world *world, const char *topic)
{
    struct mem_topic *found;

    toc_bus_mem_enter(world);
    found = toc_bus_mem_topic_find(world, topic);
    if (found != NULL) {
        toc_bus_mem_topic_drop(found);
        forget_offsets(world, topic);
        toc_bus_mem_topic_changed(world, topic);
    }
    toc_bus_mem_leave(world);
}

/* As quickly as this, nobody notices but by the offsets. */
void
toc_bus_mem_recreate_topic(struct toc_bus_mem_world *world, const char *topic,
                           bool keep_offsets)
{
    struct mem_topic *found;

    toc_bus_mem_enter(world);
    found = toc_bus_mem_topic_find(world, topic);
    for (int32_t i = 0; found != NULL && i < found->n; i++)
        toc_bus_mem_part_clear(&found->parts[i]);
    if (found != NULL && !keep_offsets)
        forget_offsets(world, topic);
    toc_bus_mem_leave(world);
}

/* ---- life -----------------------------------------------------------------
 */

struct toc_bus_mem_world *
toc_bus_mem_world_new(const struct toc_bus_mem_world_options *options)
{
    struct toc_bus_mem_world *world = TOC_NEW(struct toc_bus_mem_world);

    world->clock = options->clock;
    world->threads = options->threads;
    world->log_max = options->log_max > 0 ? options->log_max : LOG_MAX;
    world->message_max =
        options->message_max > 0 ? options->message_max : MESSAGE_MAX;
    world->fate = options->fate;
    world->fate_arg = options->fate_arg;
    toc_list_init(&world->topics);
    toc_list_init(&world->groups);
    toc_list_init(&world->buses);
    toc_list_init(&world->consumers);
    toc_list_init(&world->flight);
    TOC_ASSERT(pthread_mutex_init(&world->lock, NULL) == 0);
    return world;
}

void
toc_bus_mem_world_free(struct toc_bus_mem_world *world)
{
    if (world == NULL)
        return;
    TOC_ASSERT(toc_list_empty(&world->buses) &&
               toc_list_empty(&world->consumers));
    while (!toc_list_empty(&world->flight))
        toc_bus_mem_send_free(
            toc_container_of(world->flight.next, struct mem_send, link));
    while (!toc_list_empty(&world->groups))
        toc_bus_mem_group_free(group_at(world->groups.next));
    while (!toc_list_empty(&world->topics))
        toc_bus_mem_topic_drop(
            toc_container_of(world->topics.next, struct mem_topic, link));
    pthread_mutex_destroy(&world->lock);
    toc_free(world);
}
