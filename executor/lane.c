#include "executor/lane.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/log.h"

#define POLL_MAX 64
#define FIRST_CAP 16
/* How long a poll may wait: shorter while something is undecided, because marks
 * are made between polls. A message ends the wait at once. */
#define POLL_MS_IDLE 500
#define POLL_MS_BUSY 50

/* Percent of the room at which a topic is paused, and resumed. */
static const size_t pause_at[EXEC_TOPICS] = {95, 80, 60};
static const size_t resume_at[EXEC_TOPICS] = {85, 70, 50};

void
exec_lane_init(struct exec_lane *lane, uint16_t index, struct exec_core *core,
               struct exec_counters *counters, size_t hints_max,
               size_t messages_max)
{
    *lane = (struct exec_lane){.index = index,
                               .core = core,
                               .clock = core->options.clock,
                               .hints_max = hints_max,
                               .messages_max = messages_max,
                               .intake.counters = counters};
}

void
exec_lane_done(struct exec_lane *lane)
{
    exec_intake_done(&lane->intake);
    toc_free(lane->assignments);
    lane->assignments = NULL;
    lane->n = lane->cap = 0;
}

/* ---- partitions ------------------------------------------------------ */

static struct exec_assignment *
find(struct exec_lane *lane, int16_t topic, int32_t partition)
{
    for (size_t i = 0; i < lane->n; i++)
        if (lane->assignments[i].place.topic == topic &&
            lane->assignments[i].place.partition == partition)
            return &lane->assignments[i];
    return NULL;
}

static struct exec_assignment *
add(struct exec_lane *lane, int16_t topic, int32_t partition)
{
    if (lane->n == lane->cap) {
        lane->cap = lane->cap > 0 ? lane->cap * 2 : FIRST_CAP;
        lane->assignments = toc_realloc(lane->assignments,
                                        lane->cap * sizeof *lane->assignments);
    }
    lane->assignments[lane->n] = (struct exec_assignment){
        .place = {.lane = lane->index, .topic = topic, .partition = partition}};
    return &lane->assignments[lane->n++];
}

static void
post_rebalance(struct exec_lane *lane, enum exec_event_kind kind,
               const struct exec_place *place)
{
    struct exec_rebalance *rebalance = TOC_NEW(struct exec_rebalance);

    toc_list_init(&rebalance->event.link);
    rebalance->event.kind = kind;
    rebalance->place = *place;
    exec_inbox_post(&lane->core->inbox, &rebalance->event.link);
}

static void
assigned(struct exec_lane *lane, int16_t topic, int32_t partition)
{
    struct exec_assignment *assignment = find(lane, topic, partition);

    if (assignment == NULL)
        assignment = add(lane, topic, partition);
    if (assignment->ours)
        return;
    TOC_LOG(INFO, "lane.assigned", F_MSG("took a partition"),
            F_INT("topic", topic), F_INT("partition", partition));
    assignment->ours = true;
    assignment->place.generation++;
    post_rebalance(lane, EXEC_EVENT_ASSIGNED, &assignment->place);
}

static void
revoked(struct exec_lane *lane, int16_t topic, int32_t partition, bool lost)
{
    struct exec_assignment *assignment = find(lane, topic, partition);

    if (assignment == NULL || !assignment->ours)
        return;
    TOC_LOG(INFO, "lane.revoked", F_MSG("gave a partition away"),
            F_INT("topic", topic), F_INT("partition", partition),
            F_STR("lost", lost ? "yes" : "no"));
    exec_lane_apply_marks(lane); /* the last ones that will count */
    assignment->ours = false;
    post_rebalance(lane, EXEC_EVENT_REVOKED, &assignment->place);
}

void
exec_lane_rebalance(void *arg, enum toc_bus_event_kind kind, int16_t topic,
                    int32_t partition, bool lost)
{
    struct exec_lane *lane = arg;

    TOC_ASSERT(topic >= 0 && topic < EXEC_TOPICS);
    if (kind == TOC_BUS_ASSIGNED)
        assigned(lane, topic, partition);
    else
        revoked(lane, topic, partition, lost);
}

/* ---- the group ------------------------------------------------------- */

static void
join_or_leave(struct exec_lane *lane)
{
    int64_t now_ns = toc_clock_mono(lane->clock).ns;
    bool join = exec_fitness_look(
        &lane->fitness, exec_core_is_well(lane->core, now_ns), now_ns);
    struct toc_error err = {0};

    if (join != atomic_load(&lane->away))
        return;
    if (toc_bus_consumer_join(lane->consumer, join, &err) != TOC_OK) {
        TOC_LOG(WARN, "lane.join_failed", F_MSG("trying again"), F_ERR(&err));
        return;
    }
    atomic_store(&lane->away, !join);
    if (join)
        TOC_LOG(INFO, "lane.joined", F_MSG("claims are possible again"));
    else
        TOC_LOG(WARN, "lane.left",
                F_MSG("nothing can be claimed, others take the partitions"));
}

/* ---- the step -------------------------------------------------------- */

void
exec_lane_apply_marks(struct exec_lane *lane)
{
    struct exec_mark mark;

    while (exec_marks_take(&lane->core->marks, lane->index, &mark)) {
        const struct exec_assignment *assignment =
            find(lane, mark.place.topic, mark.place.partition);

        /* One of an earlier time that the partition was ours says nothing. */
        if (assignment == NULL || !assignment->ours ||
            assignment->place.generation != mark.place.generation)
            continue;
        toc_bus_consumer_mark(lane->consumer, mark.place.topic,
                              mark.place.partition, mark.next_offset);
    }
}

static size_t
pressure(const struct exec_lane *lane)
{
    size_t hints = atomic_load(&lane->core->hints) * 100 / lane->hints_max;
    size_t messages =
        atomic_load(&lane->core->messages) * 100 / lane->messages_max;

    return hints > messages ? hints : messages;
}

static void
pause_or_resume(struct exec_lane *lane)
{
    size_t percent = pressure(lane);

    for (int16_t topic = 0; topic < EXEC_TOPICS; topic++) {
        bool now = lane->paused[topic] ? percent > resume_at[topic]
                                       : percent >= pause_at[topic];

        if (now == lane->paused[topic])
            continue;
        lane->paused[topic] = now;
        toc_bus_consumer_pause(lane->consumer, topic, now);
        if (now)
            TOC_LOG(WARN, "lane.paused",
                    F_MSG("too much waits, not fetching the topic"),
                    F_INT("topic", topic), F_UINT("percent", percent));
        else
            TOC_LOG(INFO, "lane.resumed", F_MSG("fetching the topic again"),
                    F_INT("topic", topic), F_UINT("percent", percent));
    }
}

static void
hand_over(struct exec_lane *lane, const struct toc_bus_message *message)
{
    const struct exec_assignment *assignment =
        find(lane, message->topic, message->partition);
    struct exec_delivery *delivery;

    if (assignment == NULL || !assignment->ours)
        return; /* a straggler of a partition that went */
    delivery = exec_intake_decode(&lane->intake, message, &assignment->place,
                                  toc_clock_wall(lane->clock).ms);
    atomic_fetch_add(&lane->core->hints, delivery->n);
    exec_inbox_post(&lane->core->inbox, &delivery->event.link);
}

static int64_t
poll_ms(const struct exec_lane *lane)
{
    bool busy = atomic_load(&lane->core->hints) > 0 ||
                atomic_load(&lane->core->messages) > 0;

    return busy ? POLL_MS_BUSY : POLL_MS_IDLE;
}

void
exec_lane_step(struct exec_lane *lane)
{
    struct toc_bus_message messages[POLL_MAX];
    size_t n;

    exec_lane_apply_marks(lane);
    join_or_leave(lane);
    pause_or_resume(lane);
    n = toc_bus_consumer_poll(lane->consumer, messages, POLL_MAX,
                              poll_ms(lane));
    for (size_t i = 0; i < n; i++) {
        hand_over(lane, &messages[i]);
        toc_bus_consumer_release(lane->consumer, &messages[i]);
    }
}
