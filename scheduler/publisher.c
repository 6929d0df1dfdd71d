#include "scheduler/publisher.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/log.h"

#include <string.h>

#define GATHER_MS 100        /* sent together with what is due first */
#define DUE_AT_ONCE 1024     /* entries taken from memory per lock */
#define MESSAGES_MAX 64      /* under way per lane */
#define MESSAGE_BYTES 512000 /* brokers take a little over 1 MB */
#define LATE_AFTER_MS 2000   /* overdue by more: the backlog */
#define POLL_MS 20           /* while messages are under way */
#define IDLE_MS 1000         /* the bus wants to be polled now and then */
#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 2000
#define TICK_NS (INT64_C(1000) * TOC_NS_PER_MS)

/* Else the wheel took each step for a clock that was set back. */
_Static_assert(SCHED_LEAD_MS_MAX + GATHER_MS < SCHED_WHEEL_BACK / 2,
               "the lead fits the wheel");

struct message {
    struct toc_link link;
    struct sched_publisher *publisher;
    size_t lane;
    int64_t slot_ms; /* the least of its entries */
    size_t n;
    struct sched_entry *entries[TOC_HINTS_PER_MESSAGE_MAX];
};

void
sched_publisher_init(struct sched_publisher *publisher,
                     const struct sched_publisher_options *opt)
{
    size_t n = sched_marks_lanes(opt->marks);

    memset(publisher, 0, sizeof *publisher);
    publisher->opt = *opt;
    publisher->lanes = TOC_NEW_ARRAY(struct sched_lane, n);
    for (size_t i = 0; i < n; i++) {
        struct sched_lane *lane = &publisher->lanes[i];
        lane->partition = (int32_t)(i % (size_t)opt->marks->partitions);
        lane->topic = opt->topics[i / (size_t)opt->marks->partitions];
        toc_list_init(&lane->fresh);
        toc_list_init(&lane->late);
        toc_list_init(&lane->under_way);
        lane->queued_slot_ms = INT64_MAX;
    }
}

void
sched_publisher_done(struct sched_publisher *publisher)
{
    TOC_ASSERT(publisher->under_way == 0);
    toc_free(publisher->lanes);
    toc_buf_done(&publisher->buf);
}

static struct sched_entry *
entry_of(struct toc_link *link)
{
    return toc_container_of(link, struct sched_entry, wheel.link);
}

/* ---- from memory into lanes -------------------------------------------- */

static void
queue_entry(struct sched_publisher *publisher, struct sched_entry *entry,
            int64_t now_ms)
{
    struct sched_lane *lane =
        &publisher->lanes[sched_marks_lane(publisher->opt.marks, entry->slice)];
    bool late = entry->due_ms < now_ms - LATE_AFTER_MS;

    toc_list_push(late ? &lane->late : &lane->fresh, &entry->wheel.link);
    if (entry->slot_ms < lane->queued_slot_ms)
        lane->queued_slot_ms = entry->slot_ms;
    lane->queued++;
    publisher->queued++;
}

static void
take_due(struct sched_publisher *publisher, int64_t now_ms)
{
    struct sched_entry *entries[DUE_AT_ONCE];
    int64_t until = now_ms + publisher->opt.lead_ms;
    size_t n;

    if (sched_memory_next(publisher->opt.memory) <= until &&
        publisher->opt.lead_ms > 0)
        until += GATHER_MS;
    do {
        n = sched_memory_due(publisher->opt.memory, now_ms, until, entries,
                             DUE_AT_ONCE);
        for (size_t i = 0; i < n; i++)
            queue_entry(publisher, entries[i], now_ms);
    } while (n == DUE_AT_ONCE);
}

/* ---- from lanes to the bus ---------------------------------------------- */

static size_t
packed_bytes(const struct sched_entry *entry)
{
    return 128 + (size_t)entry->biz_type_len + entry->biz_id_len +
           entry->name_len + entry->spec_len + entry->payload_len;
}

static struct toc_link *
next_queue(struct sched_lane *lane, bool late_room)
{
    if (toc_list_empty(&lane->late) || !late_room)
        return &lane->fresh;
    if (toc_list_empty(&lane->fresh))
        return &lane->late;
    lane->late_turn = !lane->late_turn;
    return lane->late_turn ? &lane->late : &lane->fresh;
}

/* Fills the message from one queue; entries of lost shards are dropped. */
static void
fill_message(struct sched_publisher *publisher, struct sched_lane *lane,
             struct message *message)
{
    bool late_room =
        sched_marks_room(publisher->opt.marks, message->lane, true);
    struct toc_link *queue =
        lane->alone > 0 ? &lane->late : next_queue(lane, late_room);
    size_t max = lane->alone > 0 ? 1 : TOC_HINTS_PER_MESSAGE_MAX;
    size_t bytes = 0;

    if (lane->alone > 0 && (--lane->alone, toc_list_empty(queue)))
        queue = next_queue(lane, late_room);
    while (message->n < max && !toc_list_empty(queue)) {
        struct sched_entry *entry = entry_of(queue->next);
        bytes += packed_bytes(entry);
        if (message->n > 0 && bytes > MESSAGE_BYTES)
            break;
        toc_list_remove(&entry->wheel.link);
        lane->queued--;
        publisher->queued--;
        if (!sched_memory_current(publisher->opt.memory, entry)) {
            sched_memory_drop(publisher->opt.memory, entry);
            continue;
        }
        if (entry->slot_ms < message->slot_ms)
            message->slot_ms = entry->slot_ms;
        message->entries[message->n++] = entry;
    }
    if (lane->queued == 0)
        lane->queued_slot_ms = INT64_MAX;
}

static void
put_back(struct sched_publisher *publisher, struct message *message)
{
    struct sched_lane *lane = &publisher->lanes[message->lane];

    sched_memory_queued(publisher->opt.memory, message->entries, message->n);
    for (size_t i = message->n; i-- > 0;)
        toc_list_insert_before(lane->late.next,
                               &message->entries[i]->wheel.link);
    if (message->slot_ms < lane->queued_slot_ms)
        lane->queued_slot_ms = message->slot_ms;
    lane->queued += message->n;
    publisher->queued += message->n;
}

static void
encode(struct sched_publisher *publisher, const struct message *message)
{
    struct toc_hint hints[TOC_HINTS_PER_MESSAGE_MAX];

    for (size_t i = 0; i < message->n; i++)
        hints[i] = sched_entry_hint(message->entries[i]);
    toc_buf_reset(&publisher->buf);
    toc_hint_encode(hints, message->n, publisher->opt.node_id, &publisher->buf);
}

static void
say_refused(struct sched_publisher *publisher, const struct toc_error *err)
{
    if (publisher->failing)
        return;
    publisher->failing = true;
    publisher->failing_since_ns = toc_clock_mono(publisher->opt.clk).ns;
    TOC_LOG(WARN, "publisher.refused",
            F_MSG("the bus does not take hints, holding them and trying again"),
            F_ERR(err));
}

static void
back_off(struct sched_publisher *publisher, struct sched_lane *lane)
{
    lane->backoff_ms *= 2;
    if (lane->backoff_ms < BACKOFF_MIN_MS)
        lane->backoff_ms = BACKOFF_MIN_MS;
    if (lane->backoff_ms > BACKOFF_MAX_MS)
        lane->backoff_ms = BACKOFF_MAX_MS;
    lane->retry_at_ns =
        toc_mono_add_ms(toc_clock_mono(publisher->opt.clk), lane->backoff_ms)
            .ns;
}

/* A message that will never be taken: its hints go one by one, the bad one
 * without its payload, and if even so it is refused it is left to its fate (its
 * row stays due), and said. */
static void
shrink_refused(struct sched_publisher *publisher, struct message *message,
               const struct toc_error *err)
{
    struct sched_entry *entry = message->entries[0];
    char id[TOC_TASK_ID_TEXT_MAX];

    if (message->n > 1) {
        publisher->lanes[message->lane].alone = message->n;
        put_back(publisher, message);
    } else if (entry->has_payload && entry->payload_len > 0) {
        entry->has_payload = false; /* its bytes stay counted: soon over */
        publisher->lanes[message->lane].alone++;
        put_back(publisher, message);
    } else {
        TOC_LOG(ERROR, "publisher.dropped",
                F_MSG("a hint is refused for good; its task stays due"),
                F_STR("task_id", toc_task_id_format(entry->id, id)),
                F_ERR(err));
        sched_memory_taken(publisher->opt.memory, &entry, 1,
                           toc_clock_wall(publisher->opt.clk).ms);
    }
}

static void
refused(struct sched_publisher *publisher, struct message *message,
        enum toc_status st, const struct toc_error *err)
{
    struct sched_lane *lane = &publisher->lanes[message->lane];

    if (st == TOC_INVALID) {
        shrink_refused(publisher, message, err);
    } else {
        put_back(publisher, message);
        say_refused(publisher, err);
        back_off(publisher, lane);
    }
    toc_free(message);
}

/* False: the lane is done for now. */
static bool
send_one(struct sched_publisher *publisher, size_t at)
{
    struct sched_lane *lane = &publisher->lanes[at];
    struct message *message = TOC_NEW(struct message);
    struct toc_error err = {0};
    enum toc_status st;

    message->publisher = publisher;
    message->lane = at;
    message->slot_ms = INT64_MAX;
    fill_message(publisher, lane, message);
    if (message->n == 0) {
        toc_free(message);
        return lane->queued > 0; /* of lost shards: dropped */
    }
    encode(publisher, message);
    st = toc_bus_send(publisher->opt.bus, lane->topic, lane->partition,
                      toc_buf_view(&publisher->buf), message, &err);
    if (st != TOC_OK) {
        refused(publisher, message, st, &err);
        return st == TOC_INVALID;
    }
    sched_memory_sent(publisher->opt.memory, message->entries, message->n);
    sched_marks_sent(publisher->opt.marks, at, message->n);
    toc_list_push(&lane->under_way, &message->link);
    lane->n_under_way++;
    publisher->under_way++;
    return true;
}

static bool
may_send(struct sched_publisher *publisher, size_t at, int64_t now_ns)
{
    const struct sched_lane *lane = &publisher->lanes[at];

    return lane->queued > 0 && lane->n_under_way < MESSAGES_MAX &&
           lane->retry_at_ns <= now_ns &&
           sched_marks_room(publisher->opt.marks, at,
                            toc_list_empty(&lane->fresh));
}

/* Core lanes come first; each lane sends one message a turn. */
static void
send_queued(struct sched_publisher *publisher, int64_t now_ns)
{
    size_t n = sched_marks_lanes(publisher->opt.marks);
    bool more = publisher->queued > 0;

    while (more) {
        more = false;
        for (size_t at = 0; at < n; at++)
            if (may_send(publisher, at, now_ns))
                more = send_one(publisher, at) || more;
    }
}

/* ---- reports --------------------------------------------------------------
 */

static void
stored(struct sched_publisher *publisher, struct message *message,
       int64_t offset)
{
    struct sched_lane *lane = &publisher->lanes[message->lane];

    lane->backoff_ms = 0;
    if (publisher->failing) {
        publisher->failing = false;
        TOC_LOG(INFO, "publisher.accepted", F_MSG("the bus takes hints again"),
                F_INT("after_ms", (toc_clock_mono(publisher->opt.clk).ns -
                                   publisher->failing_since_ns) /
                                      TOC_NS_PER_MS));
    }
    sched_marks_stored(publisher->opt.marks, message->lane, message->slot_ms,
                       message->n, offset);
    for (size_t i = 0; i < message->n; i++)
        atomic_store(
            &publisher->dirty[toc_slice_shard(message->entries[i]->slice)],
            true);
    sched_memory_taken(publisher->opt.memory, message->entries, message->n,
                       toc_clock_wall(publisher->opt.clk).ms);
    atomic_fetch_add(&publisher->sent, message->n);
    toc_free(message);
}

void
sched_publisher_reported(void *arg, void *opaque, enum toc_status st,
                         int64_t offset)
{
    struct message *message = opaque;
    struct sched_publisher *publisher = message->publisher;
    struct toc_error err = {.status = st};

    (void)arg;
    toc_list_remove(&message->link);
    publisher->lanes[message->lane].n_under_way--;
    publisher->under_way--;
    if (st == TOC_OK) {
        stored(publisher, message, offset);
        return;
    }
    sched_marks_refused(publisher->opt.marks, message->lane, message->n);
    toc_format(err.msg, sizeof err.msg, "message not stored: %s",
               toc_status_text(st));
    refused(publisher, message, st, &err);
}

/* ---- the step ---------------------------------------------------------------
 */

static int64_t
least_under_way(const struct sched_lane *lane)
{
    int64_t least = INT64_MAX;

    for (const struct toc_link *link = lane->under_way.next;
         link != &lane->under_way; link = link->next) {
        const struct message *message =
            (const void *)((const char *)link - offsetof(struct message, link));
        if (message->slot_ms < least)
            least = message->slot_ms;
    }
    return least;
}

/* Up to where nothing is unsent or under way, lane by lane. */
static void
set_marks(struct sched_publisher *publisher, int64_t now_ms)
{
    size_t n = sched_marks_lanes(publisher->opt.marks);
    int64_t next = sched_memory_next(publisher->opt.memory);

    if (next > now_ms)
        next = now_ms;
    for (size_t at = 0; at < n; at++) {
        const struct sched_lane *lane = &publisher->lanes[at];
        int64_t least = least_under_way(lane);
        if (lane->queued_slot_ms < least)
            least = lane->queued_slot_ms;
        if (next < least)
            least = next;
        sched_marks_reach(publisher->opt.marks, at, least - 1);
    }
}

static int64_t
next_wake(struct sched_publisher *publisher, int64_t now_ns, bool live)
{
    int64_t next = sched_memory_next(publisher->opt.memory);
    struct toc_wall at = {next - publisher->opt.lead_ms};
    int64_t wake = now_ns + IDLE_MS * TOC_NS_PER_MS;
    int64_t send_ns;

    if (publisher->under_way > 0 || publisher->queued > 0)
        wake = now_ns + POLL_MS * TOC_NS_PER_MS;
    if (next == INT64_MAX || !live)
        return wake;
    send_ns = toc_clock_mono_at(publisher->opt.clk, at).ns;
    return send_ns < wake ? send_ns : wake;
}

int64_t
sched_publisher_step(struct sched_publisher *publisher)
{
    int64_t now_ns = toc_clock_mono(publisher->opt.clk).ns;
    int64_t now_ms = toc_clock_wall(publisher->opt.clk).ms;
    bool live = sched_shards_live(publisher->opt.shards);
    int64_t wake;

    (void)toc_bus_poll(publisher->opt.bus, 0);
    if (live) {
        take_due(publisher, now_ms);
        send_queued(publisher, now_ns);
    }
    if (now_ns - publisher->marked_ns >= TICK_NS) {
        publisher->marked_ns = now_ns;
        sched_marks_rewind(publisher->opt.marks, now_ms);
        set_marks(publisher, now_ms);
        sched_memory_forget(publisher->opt.memory, now_ms);
    }
    wake = next_wake(publisher, now_ns, live);
    sched_memory_sleep(publisher->opt.memory,
                       live ? now_ms + (wake - now_ns) / TOC_NS_PER_MS +
                                  publisher->opt.lead_ms
                            : INT64_MIN);
    return wake;
}
