/*
 * Groups: who is in them, what they have committed, who gets what.
 *
 * A rebalance is eager. It begins when somebody joins, leaves or is missed, or
 * a topic comes or goes; each member gives its partitions up inside a poll and
 * is then ready; when all are, the partitions are dealt out. One that does not
 * poll for five minutes is put out.
 */
#include "common/bus/mem/mem_internal.h"

#include "common/base/alloc.h"

#include <string.h>

#define MAX_POLL_NS (INT64_C(300000) * TOC_NS_PER_MS)

/* ---- offsets ------------------------------------------------------------ */

static struct mem_committed *
find_committed(const struct mem_group *group, const char *topic,
               int32_t partition)
{
    for (size_t i = 0; i < group->n_committed; i++)
        if (group->committed[i].partition == partition &&
            strcmp(group->committed[i].topic, topic) == 0)
            return &group->committed[i];
    return NULL;
}

int64_t
toc_bus_mem_group_committed(const struct mem_group *group, const char *topic,
                            int32_t partition)
{
    const struct mem_committed *at = find_committed(group, topic, partition);

    return at == NULL ? -1 : at->offset;
}

void
toc_bus_mem_group_commit(struct mem_group *group, const char *topic,
                         int32_t partition, int64_t offset)
{
    struct mem_committed *at = find_committed(group, topic, partition);

    if (at != NULL) {
        at->offset = offset;
        return;
    }
    if (group->n_committed == group->committed_cap) {
        group->committed_cap =
            group->committed_cap == 0 ? 32 : group->committed_cap * 2;
        group->committed = toc_realloc(
            group->committed, group->committed_cap * sizeof *group->committed);
    }
    group->committed[group->n_committed++] =
        (struct mem_committed){toc_strdup(topic), partition, offset};
}

void
toc_bus_mem_group_forget(struct mem_group *group, const char *topic)
{
    for (size_t i = 0; i < group->n_committed;) {
        if (strcmp(group->committed[i].topic, topic) != 0) {
            i++;
            continue;
        }
        toc_free(group->committed[i].topic);
        group->committed[i] = group->committed[--group->n_committed];
    }
}

/* ---- members ------------------------------------------------------------ */

static struct mem_member *
member_at(struct toc_link *link)
{
    return toc_container_of(link, struct mem_member, link);
}

static void
free_member(struct mem_member *member)
{
    toc_list_remove(&member->link);
    for (int16_t i = 0; i < member->n_topics; i++)
        toc_free(member->topics[i]);
    toc_free(member->topics);
    toc_free(member->places);
    toc_free(member);
}

void
toc_bus_mem_member_join(struct toc_consumer_mem *consumer)
{
    struct mem_member *member = TOC_NEW(struct mem_member);

    member->consumer = consumer;
    member->session_ns = consumer->session_ns;
    member->ready = true;
    member->n_topics = consumer->n_topics;
    member->topics = TOC_NEW_ARRAY(char *, (size_t)consumer->n_topics);
    for (int16_t i = 0; i < consumer->n_topics; i++)
        member->topics[i] = toc_strdup(consumer->topics[i].name);
    toc_list_push(&consumer->group->members, &member->link);
    consumer->member = member;
    consumer->generation = 0;
    toc_bus_mem_group_rebalance(consumer->world, consumer->group);
}

void
toc_bus_mem_member_remove(struct toc_bus_mem_world *world,
                          struct mem_group *group, struct mem_member *member)
{
    if (member->consumer != NULL)
        member->consumer->member = NULL;
    free_member(member);
    toc_bus_mem_group_rebalance(world, group);
}

static int16_t
index_of(const struct mem_member *member, const char *topic)
{
    for (int16_t i = 0; i < member->n_topics; i++)
        if (strcmp(member->topics[i], topic) == 0)
            return i;
    return -1;
}

/* ---- rebalance ------------------------------------------------------------
 */

void
toc_bus_mem_group_rebalance(struct toc_bus_mem_world *world,
                            struct mem_group *group)
{
    if (!group->rebalancing)
        group->rebalance_until_ns = toc_bus_mem_now(world) + MAX_POLL_NS;
    group->rebalancing = !toc_list_empty(&group->members);
    toc_bus_mem_ring_consumers(world);
}

void
toc_bus_mem_topic_changed(struct toc_bus_mem_world *world, const char *topic)
{
    struct toc_link *link, *at;

    for (link = world->groups.next; link != &world->groups; link = link->next) {
        struct mem_group *group =
            toc_container_of(link, struct mem_group, link);
        for (at = group->members.next; at != &group->members; at = at->next)
            if (index_of(member_at(at), topic) >= 0)
                break;
        if (at != &group->members)
            toc_bus_mem_group_rebalance(world, group);
    }
}

static void
give(struct mem_member *member, int16_t topic, int32_t partition)
{
    if (member->n_places == member->places_cap) {
        member->places_cap =
            member->places_cap == 0 ? 16 : member->places_cap * 2;
        member->places = toc_realloc(
            member->places, member->places_cap * sizeof *member->places);
    }
    member->places[member->n_places++] =
        (struct mem_place){.topic = topic, .partition = partition};
}

/* The next one after `at`, in turn, that wants the topic. */
static struct toc_link *
next_taker(struct mem_group *group, struct toc_link *at, const char *topic)
{
    struct toc_link *first = at;

    do {
        at = at->next;
        if (at == &group->members)
            at = at->next;
        if (index_of(member_at(at), topic) >= 0)
            return at;
    } while (at != first);
    return NULL;
}

static void
deal_out(struct toc_bus_mem_world *world, struct mem_group *group)
{
    struct toc_link *link, *turn = group->members.prev, *taker;

    for (link = world->topics.next; link != &world->topics; link = link->next) {
        struct mem_topic *topic =
            toc_container_of(link, struct mem_topic, link);
        for (int32_t i = 0; i < topic->n; i++) {
            taker = next_taker(group, turn, topic->name);
            if (taker == NULL)
                break;
            turn = taker;
            give(member_at(taker), index_of(member_at(taker), topic->name), i);
        }
    }
}

static bool
all_ready(const struct mem_group *group)
{
    struct toc_link *at;

    for (at = group->members.next; at != &group->members; at = at->next)
        if (!member_at(at)->ready)
            return false;
    return true;
}

static void
complete(struct toc_bus_mem_world *world, struct mem_group *group)
{
    struct toc_link *at;

    group->generation++;
    group->rebalancing = false;
    for (at = group->members.next; at != &group->members; at = at->next) {
        member_at(at)->n_places = 0;
        member_at(at)->ready = false;
        member_at(at)->generation = group->generation;
    }
    deal_out(world, group);
    toc_bus_mem_ring_consumers(world);
}

/* When its session ends; INT64_MAX: it is alive. */
static int64_t
member_end(const struct mem_member *member)
{
    if (member->consumer != NULL &&
        toc_bus_mem_consumer_reaches(member->consumer))
        return INT64_MAX;
    return member->seen_ns + member->session_ns;
}

static void
put_out(struct toc_bus_mem_world *world, struct mem_group *group,
        int64_t now_ns)
{
    bool slow = group->rebalancing && now_ns >= group->rebalance_until_ns;
    struct toc_link *at = group->members.next;

    while (at != &group->members) {
        struct mem_member *member = member_at(at);
        at = at->next;
        if (now_ns >= member_end(member) || (slow && !member->ready))
            toc_bus_mem_member_remove(world, group, member);
    }
}

void
toc_bus_mem_group_settle(struct toc_bus_mem_world *world,
                         struct mem_group *group, int64_t now_ns)
{
    put_out(world, group, now_ns);
    if (group->rebalancing && all_ready(group))
        complete(world, group);
}

int64_t
toc_bus_mem_group_next_ns(const struct toc_bus_mem_world *world,
                          const struct mem_group *group)
{
    int64_t next_ns = INT64_MAX;
    struct toc_link *at;

    (void)world;
    for (at = group->members.next; at != &group->members; at = at->next)
        if (member_end(member_at(at)) < next_ns)
            next_ns = member_end(member_at(at));
    if (group->rebalancing && group->rebalance_until_ns < next_ns)
        next_ns = group->rebalance_until_ns;
    return next_ns;
}

/* ---- life -----------------------------------------------------------------
 */

struct mem_group *
toc_bus_mem_group_need(struct toc_bus_mem_world *world, const char *name)
{
    struct mem_group *group;
    struct toc_link *link;

    for (link = world->groups.next; link != &world->groups; link = link->next) {
        group = toc_container_of(link, struct mem_group, link);
        if (strcmp(group->name, name) == 0)
            return group;
    }
    group = TOC_NEW(struct mem_group);
    group->name = toc_strdup(name);
    toc_list_init(&group->members);
    toc_list_push(&world->groups, &group->link);
    return group;
}

void
toc_bus_mem_group_free(struct mem_group *group)
{
    while (!toc_list_empty(&group->members))
        free_member(member_at(group->members.next));
    while (group->n_committed > 0)
        toc_free(group->committed[--group->n_committed].topic);
    toc_list_remove(&group->link);
    toc_free(group->committed);
    toc_free(group->name);
    toc_free(group);
}
