#include "scheduler/wheel.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#define MASK (SCHED_WHEEL_SLOTS - 1)
#define WORDS (SCHED_WHEEL_SLOTS / 64)

static size_t
slot_of(int64_t at_ms)
{
    return (size_t)((uint64_t)at_ms & MASK);
}

void
sched_wheel_init(struct sched_wheel *wheel, int64_t now_ms)
{
    wheel->base_ms = wheel->top_ms = now_ms;
    wheel->len = 0;
    wheel->slots = TOC_NEW_ARRAY(struct toc_link, SCHED_WHEEL_SLOTS);
    wheel->bits = TOC_NEW_ARRAY(uint64_t, WORDS);
    for (size_t i = 0; i < SCHED_WHEEL_SLOTS; i++)
        toc_list_init(&wheel->slots[i]);
    toc_list_init(&wheel->late);
    wheel->late_min_ms = INT64_MAX;
}

void
sched_wheel_done(struct sched_wheel *wheel)
{
    TOC_ASSERT(wheel->len == 0);
    toc_free(wheel->slots);
    toc_free(wheel->bits);
    wheel->slots = NULL;
    wheel->bits = NULL;
}

static int64_t
horizon(const struct sched_wheel *wheel)
{
    const int64_t reach = SCHED_WHEEL_SLOTS - SCHED_WHEEL_BACK;

    return wheel->top_ms > INT64_MAX - reach ? INT64_MAX
                                             : wheel->top_ms + reach;
}

/* Where an entry stands; the base goes back for an earlier one. */
static int64_t
place_of(struct sched_wheel *wheel, int64_t at_ms)
{
    int64_t first = wheel->top_ms - SCHED_WHEEL_BACK;

    if (at_ms < first)
        at_ms = first;
    if (at_ms < wheel->base_ms)
        wheel->base_ms = at_ms;
    return at_ms;
}

static void
place(struct sched_wheel *wheel, struct sched_wheel_node *node)
{
    int64_t at = place_of(wheel, node->at_ms);
    size_t slot = slot_of(at);

    if (at >= horizon(wheel)) {
        toc_list_push(&wheel->late, &node->link);
        if (at < wheel->late_min_ms)
            wheel->late_min_ms = at;
        return;
    }
    toc_list_push(&wheel->slots[slot], &node->link);
    wheel->bits[slot / 64] |= UINT64_C(1) << slot % 64;
}

void
sched_wheel_insert(struct sched_wheel *wheel, struct sched_wheel_node *node,
                   int64_t at_ms)
{
    node->at_ms = at_ms;
    place(wheel, node);
    wheel->len++;
}

/* The slot's bit is left to be cleared by the search that finds it empty. */
void
sched_wheel_remove(struct sched_wheel *wheel, struct sched_wheel_node *node)
{
    TOC_ASSERT(wheel->len > 0);
    toc_list_remove(&node->link);
    wheel->len--;
}

/* The time of the first slot with its bit set, from the base on; INT64_MAX:
 * none. */
static int64_t
first_marked(const struct sched_wheel *wheel)
{
    size_t start = slot_of(wheel->base_ms);

    for (size_t i = 0; i <= WORDS; i++) {
        size_t word = (start / 64 + i) % WORDS;
        uint64_t bits = wheel->bits[word];
        if (i == 0)
            bits &= ~UINT64_C(0) << start % 64;
        else if (i == WORDS)
            bits &= ~(~UINT64_C(0) << start % 64);
        if (bits != 0) {
            size_t slot = word * 64 + (size_t)__builtin_ctzll(bits);
            return wheel->base_ms + (int64_t)((slot - start) & (size_t)MASK);
        }
    }
    return INT64_MAX;
}

/* Takes entries that have come within one turn out of the late list. */
static void
take_late(struct sched_wheel *wheel)
{
    struct toc_link old = wheel->late;

    if (wheel->late_min_ms >= horizon(wheel))
        return;
    wheel->late_min_ms = INT64_MAX;
    if (toc_list_empty(&wheel->late))
        return;
    old.next->prev = &old;
    old.prev->next = &old;
    toc_list_init(&wheel->late);
    for (struct toc_link *link; (link = toc_list_pop(&old)) != NULL;)
        place(wheel, toc_container_of(link, struct sched_wheel_node, link));
}

static void
advance(struct sched_wheel *wheel, int64_t to_ms)
{
    if (to_ms <= wheel->base_ms)
        return;
    wheel->base_ms = to_ms;
    if (to_ms <= wheel->top_ms)
        return;
    wheel->top_ms = to_ms;
    take_late(wheel);
}

struct sched_wheel_node *
sched_wheel_pop(struct sched_wheel *wheel, int64_t until_ms)
{
    while (wheel->len > 0) {
        int64_t at = first_marked(wheel);
        size_t slot = slot_of(at);
        struct toc_link *link;
        if (at > wheel->late_min_ms) /* nothing but late ones */
            at = wheel->late_min_ms;
        if (at > until_ms)
            break;
        advance(wheel, at);
        slot = slot_of(at);
        link = toc_list_pop(&wheel->slots[slot]);
        if (toc_list_empty(&wheel->slots[slot]))
            wheel->bits[slot / 64] &= ~(UINT64_C(1) << slot % 64);
        if (link == NULL)
            continue;
        wheel->len--;
        return toc_container_of(link, struct sched_wheel_node, link);
    }
    if (until_ms < INT64_MAX)
        advance(wheel, until_ms);
    return NULL;
}

int64_t
sched_wheel_next(const struct sched_wheel *wheel)
{
    int64_t at = first_marked(wheel);

    if (wheel->len == 0)
        return INT64_MAX;
    return at < wheel->late_min_ms ? at : wheel->late_min_ms;
}

void
sched_wheel_rewind(struct sched_wheel *wheel, int64_t now_ms)
{
    struct toc_link all;

    /* Half of what the base may go back: the rest is for what comes now. */
    if (now_ms >= wheel->top_ms - SCHED_WHEEL_BACK / 2)
        return;
    toc_list_init(&all);
    for (size_t i = 0; i < SCHED_WHEEL_SLOTS; i++)
        for (struct toc_link *link;
             (link = toc_list_pop(&wheel->slots[i])) != NULL;)
            toc_list_push(&all, link);
    for (size_t i = 0; i < WORDS; i++)
        wheel->bits[i] = 0;
    for (struct toc_link *link; (link = toc_list_pop(&wheel->late)) != NULL;)
        toc_list_push(&all, link);
    wheel->late_min_ms = INT64_MAX;
    wheel->base_ms = wheel->top_ms = now_ms;
    for (struct toc_link *link; (link = toc_list_pop(&all)) != NULL;)
        place(wheel, toc_container_of(link, struct sched_wheel_node, link));
}
