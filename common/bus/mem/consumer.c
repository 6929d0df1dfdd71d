/* Consuming: the group's turns, fetching, marks. */
#include "common/bus/mem/mem_internal.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <string.h>

#define SESSION_TIMEOUT_MS 2000
#define COMMIT_NS (500 * TOC_NS_PER_MS)

bool
toc_bus_mem_consumer_reaches(const struct toc_consumer_mem *consumer)
{
    return !consumer->cut && !consumer->world->stopped;
}

/* ---- commits ---------------------------------------------------------------
 */

static enum toc_status
commit_marks(struct toc_consumer_mem *consumer, struct toc_error *reterr)
{
    if (!toc_bus_mem_consumer_reaches(consumer))
        return toc_error_set(reterr, TOC_DEADLINE, "mem", 0,
                             "the cluster is not reached");
    if (consumer->member == NULL && consumer->n_places > 0)
        return toc_error_set(reterr, TOC_CONFLICT, "mem", 0,
                             "not a member of the group any more");
    for (size_t i = 0; i < consumer->assigned.n; i++) {
        const struct toc_bus_part *part = &consumer->assigned.parts[i];
        const char *name = consumer->topics[part->topic].name;
        /* a topic that went takes its offsets along */
        if (part->marked >= 0 && toc_bus_mem_part_find(consumer->world, name,
                                                       part->partition) != NULL)
            toc_bus_mem_group_commit(consumer->group, name, part->partition,
                                     part->marked);
    }
    return TOC_OK;
}

void
toc_bus_mem_consumer_settle(struct toc_consumer_mem *consumer, int64_t now_ns)
{
    if (now_ns < consumer->commit_ns || !toc_bus_mem_consumer_reaches(consumer))
        return;
    consumer->commit_ns = now_ns + COMMIT_NS;
    (void)commit_marks(consumer, NULL);
}

/* ---- the group --------------------------------------------------------------
 */

/* Contact was lost, or is there again. */
void
toc_bus_mem_consumer_contact(struct toc_consumer_mem *consumer, bool reached)
{
    int64_t now_ns = toc_bus_mem_now(consumer->world);

    if (reached && !toc_bus_mem_consumer_reaches(consumer)) {
        consumer->lost_ns = now_ns;
        if (consumer->member != NULL)
            consumer->member->seen_ns = now_ns;
    }
}

/* The member's own clock says that its session has ended: it stops, whatever
 * the cluster may still believe. */
static void
check_session(struct toc_consumer_mem *consumer)
{
    if (consumer->member == NULL || toc_bus_mem_consumer_reaches(consumer) ||
        toc_bus_mem_now(consumer->world) <
            consumer->lost_ns + consumer->session_ns)
        return;
    consumer->member->consumer = NULL;
    consumer->member = NULL;
}

static void
tell(struct toc_consumer_mem *consumer, enum toc_bus_event_kind kind,
     const struct mem_place *place, bool lost)
{
    if (consumer->rebalance == NULL)
        return;
    toc_bus_mem_leave(consumer->world);
    consumer->rebalance(consumer->rebalance_arg, kind, place->topic,
                        place->partition, lost);
    toc_bus_mem_enter(consumer->world);
}

/* The callbacks run without the lock; the places are this thread's. */
static void
give_up(struct toc_consumer_mem *consumer, bool lost)
{
    for (size_t i = 0; i < consumer->n_places; i++)
        tell(consumer, TOC_BUS_REVOKED, &consumer->places[i], lost);
    if (!lost)
        (void)commit_marks(consumer, NULL);
    toc_bus_assigned_done(&consumer->assigned);
    toc_free(consumer->places);
    consumer->places = NULL;
    consumer->n_places = 0;
}

static void
take_places(struct toc_consumer_mem *consumer)
{
    const struct mem_member *member = consumer->member;
    struct mem_place *places =
        TOC_NEW_ARRAY(struct mem_place, member->n_places + 1);
    size_t n = member->n_places;

    consumer->generation = member->generation;
    for (size_t i = 0; i < n; i++) {
        struct mem_place *place = &places[i];
        *place = member->places[i];
        place->position = toc_bus_mem_group_committed(
            consumer->group, consumer->topics[place->topic].name,
            place->partition);
        toc_bus_assigned_add(&consumer->assigned, place->topic,
                             place->partition);
    }
    toc_free(consumer->places);
    consumer->places = places;
    consumer->n_places = n;
    for (size_t i = 0; i < n; i++)
        tell(consumer, TOC_BUS_ASSIGNED, &consumer->places[i], false);
}

/* The consumer's side of the group, until there is nothing more to do. */
static void
serve_group(struct toc_consumer_mem *consumer)
{
    struct mem_group *group = consumer->group;

    check_session(consumer);
    if (consumer->member == NULL && consumer->n_places > 0)
        give_up(consumer, true);
    if (!consumer->wants_in) {
        give_up(consumer, false);
        if (consumer->member != NULL && toc_bus_mem_consumer_reaches(consumer))
            toc_bus_mem_member_remove(consumer->world, group, consumer->member);
        return;
    }
    if (!toc_bus_mem_consumer_reaches(consumer))
        return;
    if (consumer->member == NULL)
        toc_bus_mem_member_join(consumer);
    if (group->rebalancing && !consumer->member->ready) {
        give_up(consumer, false);
        /* put out meanwhile? then the next poll joins again */
        if (consumer->member != NULL)
            consumer->member->ready = true;
    }
    toc_bus_mem_group_settle(consumer->world, group,
                             toc_bus_mem_now(consumer->world));
    if (consumer->member != NULL && !group->rebalancing &&
        consumer->generation != consumer->member->generation)
        take_places(consumer);
}

/* ---- poll
 * --------------------------------------------------------------------
 */

/* An offset that is not there (the topic was made again, or its log cut off)
 * means the log's start, as auto.offset.reset=earliest says. */
static void
put_right(struct mem_place *place, const struct mem_part *part)
{
    if (place->position < part->start ||
        place->position > toc_bus_mem_part_end(part))
        place->position = part->start;
}

static void
hand_out(struct toc_consumer_mem *consumer, struct mem_place *place,
         const struct mem_part *part, struct toc_bus_message *to)
{
    struct mem_bytes *bytes =
        part->log[(size_t)(place->position - part->start)];

    if (toc_bus_assigned_take(&consumer->assigned, place->topic,
                              place->partition,
                              place->position) == TOC_BUS_ANEW)
        toc_bus_mem_group_commit(consumer->group,
                                 consumer->topics[place->topic].name,
                                 place->partition, place->position);
    bytes->refs++;
    *to = (struct toc_bus_message){.topic = place->topic,
                                   .partition = place->partition,
                                   .offset = place->position,
                                   .bytes = {bytes->data, bytes->len},
                                   .handle = bytes};
    place->position++;
}

static size_t
take_place(struct toc_consumer_mem *consumer, struct mem_place *place,
           struct toc_bus_message *messages, size_t max)
{
    const struct mem_part *part = toc_bus_mem_part_find(
        consumer->world, consumer->topics[place->topic].name, place->partition);
    size_t n = 0;

    if (part == NULL)
        return 0;
    put_right(place, part);
    while (n < max && place->position < toc_bus_mem_part_end(part))
        hand_out(consumer, place, part, &messages[n++]);
    return n;
}

static size_t
take(struct toc_consumer_mem *consumer, struct toc_bus_message *messages,
     size_t max)
{
    size_t n = 0;

    if (!toc_bus_mem_consumer_reaches(consumer))
        return 0;
    for (int16_t t = 0; t < consumer->n_topics; t++) {
        for (size_t i = 0; i < consumer->n_places && n < max; i++) {
            struct mem_place *place =
                &consumer->places[(consumer->turn + i) % consumer->n_places];
            if (place->topic == t && !consumer->topics[t].paused)
                n += take_place(consumer, place, messages + n, max - n);
        }
    }
    consumer->turn++;
    return n;
}

static size_t
op_poll(void *self, struct toc_bus_message *messages, size_t max,
        int64_t timeout_ms)
{
    struct toc_consumer_mem *consumer = self;
    struct toc_bus_mem_world *world = consumer->world;
    int64_t until_ns = toc_bus_mem_now(world) + timeout_ms * TOC_NS_PER_MS;

    for (;;) {
        toc_bus_mem_enter(world);
        serve_group(consumer);
        size_t n = take(consumer, messages, max);
        bool woken = consumer->woken;
        int64_t next_ns = toc_bus_mem_next_ns(world);
        consumer->woken = false;
        toc_bus_mem_leave(world);
        if (n > 0 || woken || !world->threads || max == 0 ||
            toc_bus_mem_now(world) >= until_ns)
            return n;
        (void)toc_bell_wait(&consumer->bell,
                            next_ns < until_ns ? next_ns : until_ns);
    }
}

/* ---- the other operations ---------------------------------------------------
 */

static void
op_release(void *self, struct toc_bus_message *message)
{
    struct toc_consumer_mem *consumer = self;

    toc_bus_mem_enter(consumer->world);
    if (message->handle != NULL)
        toc_bus_mem_bytes_unref(message->handle);
    toc_bus_mem_leave(consumer->world);
    message->handle = NULL;
    message->bytes = (struct toc_str){0};
}

static void
op_mark(void *self, int16_t topic, int32_t partition, int64_t next_offset)
{
    struct toc_consumer_mem *consumer = self;

    toc_bus_mem_enter(consumer->world);
    (void)toc_bus_assigned_mark(&consumer->assigned, topic, partition,
                                next_offset);
    toc_bus_mem_leave(consumer->world);
}

static enum toc_status
op_commit(void *self, bool wait, struct toc_error *reterr)
{
    struct toc_consumer_mem *consumer = self;
    enum toc_status st;

    toc_bus_mem_enter(consumer->world);
    st = commit_marks(consumer, reterr);
    toc_bus_mem_leave(consumer->world);
    return wait ? st : TOC_OK;
}

static void
op_pause(void *self, int16_t topic, bool paused)
{
    struct toc_consumer_mem *consumer = self;

    TOC_ASSERT(topic >= 0 && topic < consumer->n_topics);
    toc_bus_mem_enter(consumer->world);
    consumer->topics[topic].paused = paused;
    toc_bus_mem_leave(consumer->world);
}

static enum toc_status
op_join(void *self, bool join, struct toc_error *reterr)
{
    struct toc_consumer_mem *consumer = self;

    (void)reterr;
    toc_bus_mem_enter(consumer->world);
    consumer->wants_in = join;
    toc_bus_mem_leave(consumer->world);
    return TOC_OK;
}

static void
op_wake(void *self)
{
    struct toc_consumer_mem *consumer = self;

    toc_bus_mem_enter(consumer->world);
    consumer->woken = true;
    toc_bus_mem_leave(consumer->world);
    toc_bell_ring(&consumer->bell);
}

static const struct toc_bus_consumer_ops ops = {
    .name = "mem",
    .poll = op_poll,
    .release = op_release,
    .mark = op_mark,
    .commit = op_commit,
    .pause = op_pause,
    .join = op_join,
    .wake = op_wake,
};

/* ---- life
 * ----------------------------------------------------------------------
 */

struct toc_consumer_mem *
toc_consumer_mem_open(struct toc_bus_mem_world *world,
                      const struct toc_consumer_mem_options *options)
{
    struct toc_consumer_mem *consumer = TOC_NEW(struct toc_consumer_mem);
    int64_t session_ms = options->session_timeout_ms > 0
                             ? options->session_timeout_ms
                             : SESSION_TIMEOUT_MS;

    TOC_ASSERT(options->n_topics > 0);
    consumer->port = (struct toc_bus_consumer){&ops, consumer};
    consumer->world = world;
    consumer->wants_in = true;
    consumer->session_ns = session_ms * TOC_NS_PER_MS;
    consumer->rebalance = options->rebalance;
    consumer->rebalance_arg = options->rebalance_arg;
    consumer->n_topics = options->n_topics;
    consumer->topics = TOC_NEW_ARRAY(struct mem_sub, (size_t)options->n_topics);
    for (int16_t i = 0; i < options->n_topics; i++)
        consumer->topics[i].name = toc_strdup(options->topics[i]);
    toc_bell_init(&consumer->bell);
    toc_bus_mem_enter(world);
    consumer->group = toc_bus_mem_group_need(world, options->group);
    consumer->commit_ns = toc_bus_mem_now(world) + COMMIT_NS;
    consumer->lost_ns = toc_bus_mem_now(world);
    toc_list_push(&world->consumers, &consumer->link);
    toc_bus_mem_leave(world);
    return consumer;
}

void
toc_consumer_mem_kill(struct toc_consumer_mem *consumer)
{
    struct toc_bus_mem_world *world;

    if (consumer == NULL)
        return;
    world = consumer->world;
    toc_bus_mem_enter(world);
    if (consumer->member != NULL) {
        if (toc_bus_mem_consumer_reaches(consumer))
            consumer->member->seen_ns = toc_bus_mem_now(world);
        consumer->member->consumer = NULL;
    }
    toc_list_remove(&consumer->link);
    toc_bus_mem_leave(world);
    for (int16_t i = 0; i < consumer->n_topics; i++)
        toc_free(consumer->topics[i].name);
    toc_free(consumer->topics);
    toc_free(consumer->places);
    toc_bus_assigned_done(&consumer->assigned);
    toc_bell_done(&consumer->bell);
    toc_free(consumer);
}

void
toc_consumer_mem_close(struct toc_consumer_mem *consumer)
{
    if (consumer == NULL)
        return;
    toc_bus_mem_enter(consumer->world);
    consumer->wants_in = false;
    serve_group(consumer);
    toc_bus_mem_leave(consumer->world);
    toc_consumer_mem_kill(consumer);
}

void
toc_consumer_mem_cut(struct toc_consumer_mem *consumer, bool cut)
{
    bool reached;

    toc_bus_mem_enter(consumer->world);
    check_session(consumer);
    reached = toc_bus_mem_consumer_reaches(consumer);
    consumer->cut = cut;
    toc_bus_mem_consumer_contact(consumer, reached);
    toc_bus_mem_ring_consumers(consumer->world);
    toc_bus_mem_leave(consumer->world);
}

struct toc_bus_consumer *
toc_consumer_mem_port(struct toc_consumer_mem *consumer)
{
    return &consumer->port;
}
