#include "executor/targets.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/hash.h"
#include "common/clock/clock.h"

#include <string.h>

#define NS_PER_S INT64_C(1000000000)
#define SLOW_S 60
#define CROWDED_NS_MIN (2 * NS_PER_S) /* before that nobody is called slow */
/* A target's part of the room that is left: k busy targets together fill at
 * most k / (k + 2) of the memory. */
#define BUSY_SHARE 2
#define SLOW_SHARE 8
#define KEEP_MS 1000
#define HOLD_MS 5000

void
exec_targets_init(struct exec_targets *targets, size_t calls_max,
                  size_t target_max, size_t queue_max)
{
    *targets = (struct exec_targets){.calls_max = calls_max,
                                     .target_max = target_max,
                                     .queue_max = queue_max};
    toc_list_init(&targets->crowded);
    toc_list_init(&targets->undecided);
}

void
exec_targets_done(struct exec_targets *targets)
{
    TOC_ASSERT(targets->known.len == 0);
    toc_hmap_done(&targets->known);
}

void
exec_targets_begin_round(struct exec_targets *targets)
{
    targets->round++;
}

bool
exec_targets_full(const struct exec_targets *targets)
{
    return targets->in_flight >= targets->calls_max;
}

static bool
is_text(const struct toc_hnode *node, const void *key)
{
    const struct exec_target *target =
        (const struct exec_target *)(const void *)((const char *)node -
                                                   offsetof(struct exec_target,
                                                            hnode));

    return toc_str_eq(target->text, *(const struct toc_str *)key);
}

static struct exec_target *
make(struct exec_targets *targets, struct toc_str text, uint64_t hash)
{
    struct exec_target *target = toc_calloc(1, sizeof *target + text.len);
    char *copy = (char *)(target + 1);

    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    target->text = (struct toc_str){copy, text.len};
    toc_list_init(&target->link);
    for (size_t i = 0; i < TOC_PRIORITIES; i++)
        for (size_t age = 0; age < EXEC_AGES; age++)
            toc_list_init(&target->queue[i][age]);
    toc_hmap_insert(&targets->known, &target->hnode, hash);
    return target;
}

static struct exec_target *
get(struct exec_targets *targets, struct toc_str text)
{
    uint64_t hash = toc_hash64(text.ptr, text.len);
    struct toc_hnode *node =
        toc_hmap_find(&targets->known, hash, is_text, &text);

    if (node != NULL)
        return toc_container_of(node, struct exec_target, hnode);
    return make(targets, text, hash);
}

static void
unref(struct exec_targets *targets, struct exec_target *target)
{
    TOC_ASSERT(target->users > 0);
    if (--target->users > 0)
        return;
    TOC_ASSERT(target->in_flight == 0 && target->queued == 0);
    toc_hmap_remove(&targets->known, &target->hnode);
    toc_free(target);
}

static void
take_slot(struct exec_targets *targets, struct exec_target *target)
{
    target->in_flight++;
    targets->in_flight++;
}

static void
give_slot(struct exec_targets *targets, struct exec_target *target)
{
    TOC_ASSERT(target->in_flight > 0 && targets->in_flight > 0);
    target->in_flight--;
    targets->in_flight--;
}

static bool
has_slot(const struct exec_targets *targets, const struct exec_target *target)
{
    size_t left;

    if (exec_targets_full(targets))
        return false;
    left = targets->calls_max - targets->in_flight;
    return target->in_flight < targets->target_max && target->in_flight < left;
}

/* Joins the batch call for which an earlier hint of the round keeps a slot. */
static bool
ride(const struct exec_targets *targets, struct exec_target *target,
     const struct exec_item *item)
{
    if (target->ride_round != targets->round || target->ride_left == 0 ||
        target->ride_timeout_ms != item->call_timeout_ms || item->batch_max < 2)
        return false;
    target->ride_left--;
    return true;
}

static bool
admit(struct exec_targets *targets, struct exec_target *target,
      struct exec_item *item)
{
    if (ride(targets, target, item))
        return true;
    if (!has_slot(targets, target))
        return false;
    take_slot(targets, target);
    item->slot_held = true;
    target->ride_round = targets->round;
    target->ride_left = item->batch_max - 1;
    target->ride_timeout_ms = item->call_timeout_ms;
    return true;
}

static struct toc_link *
queue_of(struct exec_target *target, const struct exec_item *item)
{
    return &target->queue[exec_item_priority(item)][item->age];
}

bool
exec_targets_admit(struct exec_targets *targets, struct exec_item *item)
{
    struct exec_target *target = get(targets, item->target);

    TOC_ASSERT(item->to == NULL);
    item->to = target;
    target->users++;
    /* Those of its age that wait already go first. */
    if (!toc_list_empty(queue_of(target, item)))
        return false;
    return admit(targets, target, item);
}

static void
unqueue(struct exec_targets *targets, struct exec_item *item)
{
    struct exec_target *target = item->to;

    toc_list_remove(&item->link);
    toc_list_remove(&item->overdue);
    if (item->kept)
        target->kept--;
    TOC_ASSERT(target->queued > 0 && targets->queued > 0);
    target->queued--;
    targets->queued--;
    if (target->queued == 0)
        toc_list_remove(&target->link);
}

/* The newest hint of the least urgent queue; a fresh one last. */
static struct exec_item *
least(const struct exec_target *target)
{
    for (size_t i = TOC_PRIORITIES; i-- > 0;)
        for (size_t age = EXEC_AGES; age-- > 0;) {
            const struct toc_link *queue = &target->queue[i][age];

            if (!toc_list_empty(queue))
                return toc_container_of(queue->prev, struct exec_item, link);
        }
    return NULL;
}

/* Fires a second; also when none has ended for a while. */
static uint64_t
rate(const struct exec_target *target, int64_t now_ns)
{
    int64_t passed_ns = now_ns - target->slice_ns;

    if (passed_ns < 2 * NS_PER_S)
        return target->per_sec;
    return target->slice_n / (uint64_t)(passed_ns / NS_PER_S);
}

static bool
is_slow(const struct exec_target *target, int64_t now_ns)
{
    return now_ns - target->crowded_ns > CROWDED_NS_MIN &&
           target->queued / SLOW_S > rate(target, now_ns);
}

static bool
is_too_long(const struct exec_targets *targets,
            const struct exec_target *target, size_t room, int64_t now_ns)
{
    size_t max = room / SLOW_SHARE;

    if (target->queued > room / BUSY_SHARE)
        return true;
    if (max > targets->queue_max)
        max = targets->queue_max;
    return target->queued > max && is_slow(target, now_ns);
}

static void
look_later(struct exec_targets *targets, struct exec_item *item, int64_t now_ns)
{
    item->look_ns = now_ns + KEEP_MS * TOC_NS_PER_MS;
    toc_list_push(&targets->undecided, &item->overdue);
}

struct exec_item *
exec_targets_queue(struct exec_targets *targets, struct exec_item *item,
                   size_t room, int64_t now_ns)
{
    struct exec_target *target = item->to;
    struct exec_item *gone = NULL;

    if (target->queued == 0) {
        target->crowded_ns = now_ns;
        toc_list_push(&targets->crowded, &target->link);
    }
    toc_list_push(queue_of(target, item), &item->link);
    item->state = EXEC_ITEM_QUEUED;
    item->queued_ns = now_ns;
    if (item->kept)
        target->kept++;
    else
        look_later(targets, item, now_ns);
    target->queued++;
    targets->queued++;
    if (is_too_long(targets, target, room, now_ns)) {
        gone = least(target);
        exec_targets_leave(targets, gone);
    }
    return gone;
}

static bool
holds_too_long(const struct exec_item *item, int64_t now_ns)
{
    return now_ns - item->queued_ns >= HOLD_MS * TOC_NS_PER_MS;
}

/* A less urgent one goes, and the item's turn comes right after; or itself. */
static struct exec_item *
make_way(struct exec_targets *targets, struct exec_item *item)
{
    struct exec_item *gone = least(item->to);

    if (exec_item_priority(gone) > exec_item_priority(item))
        toc_list_insert_before(targets->undecided.next, &item->overdue);
    else
        gone = item;
    exec_targets_leave(targets, gone);
    return gone;
}

struct exec_item *
exec_targets_overdue(struct exec_targets *targets, int64_t now_ns)
{
    while (exec_targets_overdue_ns(targets) <= now_ns) {
        struct exec_item *item = toc_container_of(
            toc_list_pop(&targets->undecided), struct exec_item, overdue);

        if (item->to->kept < targets->queue_max) {
            item->kept = true;
            item->to->kept++;
            return item;
        }
        if (holds_too_long(item, now_ns) || is_slow(item->to, now_ns))
            return make_way(targets, item);
        look_later(targets, item, now_ns);
    }
    return NULL;
}

int64_t
exec_targets_overdue_ns(const struct exec_targets *targets)
{
    if (toc_list_empty(&targets->undecided))
        return INT64_MAX;
    return toc_container_of(targets->undecided.next, struct exec_item, overdue)
        ->look_ns;
}

/* The first in line, fresh and late by turns; NULL: none. */
static struct exec_item *
first_of(struct exec_target *target, enum toc_priority priority, int64_t now_ms)
{
    struct toc_link *fresh = &target->queue[priority][EXEC_FRESH];
    struct toc_link *late = &target->queue[priority][EXEC_LATE];
    struct toc_link *line;

    while (!toc_list_empty(fresh)) {
        struct exec_item *item =
            toc_container_of(fresh->next, struct exec_item, link);

        if (!exec_item_ages(item, now_ms))
            break;
        toc_list_remove(&item->link);
        toc_list_push(late, &item->link);
    }
    line = target->turn == EXEC_LATE ? late : fresh;
    if (toc_list_empty(line))
        line = line == late ? fresh : late;
    if (toc_list_empty(line))
        return NULL;
    return toc_container_of(line->next, struct exec_item, link);
}

struct exec_item *
exec_targets_pop(struct exec_targets *targets, enum toc_priority priority,
                 int64_t now_ms)
{
    struct toc_link *link = targets->crowded.next;

    for (; link != &targets->crowded; link = link->next) {
        struct exec_target *target =
            toc_container_of(link, struct exec_target, link);
        struct exec_item *item;

        item = first_of(target, priority, now_ms);
        if (item == NULL || !admit(targets, target, item))
            continue;
        target->turn = item->age == EXEC_LATE ? EXEC_FRESH : EXEC_LATE;
        unqueue(targets, item);
        item->state = EXEC_ITEM_CLAIMING;
        if (target->queued > 0) {
            toc_list_remove(&target->link);
            toc_list_push(&targets->crowded, &target->link);
        }
        return item;
    }
    return NULL;
}

void
exec_targets_leave(struct exec_targets *targets, struct exec_item *item)
{
    struct exec_target *target = item->to;

    if (target == NULL)
        return;
    if (item->state == EXEC_ITEM_QUEUED)
        unqueue(targets, item);
    if (item->slot_held)
        give_slot(targets, target);
    item->slot_held = false;
    item->to = NULL;
    unref(targets, target);
}

void
exec_targets_call_begun(struct exec_targets *targets,
                        struct exec_target *target)
{
    target->users++;
    take_slot(targets, target);
}

void
exec_targets_measure(struct exec_target *target, size_t fires, int64_t now_ns)
{
    int64_t passed_ns = now_ns - target->slice_ns;

    target->slice_n += fires;
    if (passed_ns < NS_PER_S)
        return;
    target->per_sec = target->slice_n * 1000 / (uint64_t)(passed_ns / 1000000);
    target->slice_ns = now_ns;
    target->slice_n = 0;
}

void
exec_targets_slot_free(struct exec_targets *targets, struct exec_target *target)
{
    give_slot(targets, target);
    unref(targets, target);
}
