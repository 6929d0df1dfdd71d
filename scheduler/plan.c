#include "scheduler/plan.h"

#include "common/clock/clock.h"

#include <math.h>
#include <string.h>

void
sched_plan_init(struct sched_plan *plan, int64_t skew_ms)
{
    int64_t pause_ms =
        skew_ms < SCHED_PLAN_PAUSE_MS ? skew_ms : SCHED_PLAN_PAUSE_MS;

    memset(plan, 0, sizeof *plan);
    plan->skew_ns = skew_ms * TOC_NS_PER_MS;
    plan->pause_ns = pause_ms * TOC_NS_PER_MS;
}

void
sched_plan_restart(struct sched_plan *plan, int64_t now_ns)
{
    plan->quiet_until_ns = now_ns + plan->pause_ns;
    plan->skewed = false;
}

const char *
sched_plan_why_text(enum sched_plan_why why)
{
    switch (why) {
    case SCHED_PLAN_LOAD:
        return "load";
    case SCHED_PLAN_LEVEL:
        return "level";
    case SCHED_PLAN_SKEW:
        return "skew";
    }
    return "";
}

/* ---- figures
 * --------------------------------------------------------------------------
 */

static double
lesser(double a, double b)
{
    return a < b ? a : b;
}

/* Returns the volume of all. */
static double
sum_up(struct sched_plan_node *nodes, size_t n)
{
    double all = 0;

    for (size_t i = 0; i < n; i++) {
        struct sched_plan_node *node = &nodes[i];
        node->volume = 0;
        for (size_t k = 0; k < node->n_shards && node->known; k++)
            node->volume += node->volumes[k];
        node->level = node->volume / node->capacity;
        all += node->volume;
    }
    return all;
}

/* Of the levels, if `volume` moved. */
static double
skew_after(const struct sched_plan_node *nodes, size_t n, size_t from,
           size_t to, double volume)
{
    double sum = 0, squares = 0, mean;

    for (size_t i = 0; i < n; i++) {
        double level = nodes[i].level;
        if (i == from)
            level -= volume / nodes[i].capacity;
        if (i == to)
            level += volume / nodes[i].capacity;
        sum += level;
        squares += level * level;
    }
    mean = sum / (double)n;
    if (mean <= 0)
        return 0;
    return sqrt(fmax(squares / (double)n - mean * mean, 0)) / mean;
}

/* What a row of the giver's adds to the taker's load. */
static double
load_per_volume(const struct sched_plan_node *from,
                const struct sched_plan_node *to)
{
    return from->load / from->volume * from->capacity / to->capacity;
}

/* The volume that `to` may take from `from`: it stays below the bounds, and
 * below what is left there of what is too high. */
static double
room_at(const struct sched_plan_node *from, const struct sched_plan_node *to,
        enum sched_plan_why why)
{
    double there = load_per_volume(from, to);
    double here = from->load / from->volume;
    double level_room =
        (SCHED_PLAN_LEVEL_MAX - SCHED_PLAN_BACK - to->level) * to->capacity;
    double load_room = level_room, even;

    if (there > 0)
        load_room = (SCHED_PLAN_LOAD_MAX - SCHED_PLAN_BACK - to->load) / there;
    if (why == SCHED_PLAN_LOAD)
        even = (from->load - to->load) / (here + there);
    else
        even =
            (from->level - to->level) / (1 / from->capacity + 1 / to->capacity);
    return lesser(lesser(level_room, load_room), even);
}

/* ---- which shards
 * --------------------------------------------------------------------- */

/* The least that is enough, else the largest that fits; SIZE_MAX: none. */
static size_t
pick(const struct sched_plan_node *node, const bool *used, double need,
     double room)
{
    size_t enough = SIZE_MAX, largest = SIZE_MAX;

    for (size_t i = 0; i < node->n_shards; i++) {
        double volume = node->volumes[i];
        if (used[i] || volume <= 0 || volume > room)
            continue;
        if (volume >= need &&
            (enough == SIZE_MAX || volume < node->volumes[enough]))
            enough = i;
        if (largest == SIZE_MAX || volume > node->volumes[largest])
            largest = i;
    }
    return enough != SIZE_MAX ? enough : largest;
}

static void
pick_shards(const struct sched_plan_node *node, double need, double room,
            struct sched_plan_move *move)
{
    bool used[TOC_SHARDS] = {false};
    size_t at;

    move->n = 0;
    move->volume = 0;
    while (move->volume < need && move->n < SCHED_PLAN_SHARDS_MAX &&
           (at = pick(node, used, need - move->volume, room - move->volume)) !=
               SIZE_MAX) {
        used[at] = true;
        move->shards[move->n++] = node->shards[at];
        move->volume += node->volumes[at];
    }
}

/* ---- the rules
 * ------------------------------------------------------------------------ */

static bool
above(double value, double bound)
{
    return value > bound + 1e-9;
}

/* The node that is highest by load or level and above the bound, if any. */
static size_t
highest(const struct sched_plan_node *nodes, size_t n, bool by_load,
        double bound)
{
    size_t at = SIZE_MAX;

    for (size_t i = 0; i < n; i++) {
        double value = by_load ? nodes[i].load : nodes[i].level;
        if (nodes[i].known && nodes[i].volume > 0 && above(value, bound)) {
            at = i;
            bound = value;
        }
    }
    return at;
}

/* To the node that can take most of what is needed; of those that can take it
 * all, to the one with most room. */
static bool
relieve(const struct sched_plan_node *nodes, size_t n, double need,
        struct sched_plan_move *move)
{
    const struct sched_plan_node *from = &nodes[move->from];
    struct sched_plan_move best = {.n = 0};
    double best_room = 0;

    for (size_t i = 0; i < n; i++) {
        struct sched_plan_move one = *move;
        double room;
        if (i == move->from || !nodes[i].known)
            continue;
        room = room_at(from, &nodes[i], move->why);
        one.to = i;
        pick_shards(from, need, room, &one);
        if (one.n == 0)
            continue;
        if (best.n == 0 ||
            lesser(one.volume, need) > lesser(best.volume, need) ||
            (one.volume >= need && room > best_room)) {
            best = one;
            best_room = room;
        }
    }
    *move = best;
    return best.n > 0;
}

static bool
rule_load(const struct sched_plan_node *nodes, size_t n,
          struct sched_plan_move *move)
{
    const struct sched_plan_node *from;
    double per_volume;
    size_t at = highest(nodes, n, true, SCHED_PLAN_LOAD_MAX);

    if (at == SIZE_MAX)
        return false;
    from = &nodes[at];
    per_volume = from->load / from->volume;
    *move = (struct sched_plan_move){
        .why = SCHED_PLAN_LOAD, .value = from->load, .from = at};
    return relieve(nodes, n,
                   (from->load - SCHED_PLAN_LOAD_MAX + SCHED_PLAN_BACK) /
                       per_volume,
                   move) &&
           move->volume * per_volume >= SCHED_PLAN_WORTH;
}

static bool
rule_level(const struct sched_plan_node *nodes, size_t n,
           struct sched_plan_move *move)
{
    const struct sched_plan_node *from;
    size_t at = highest(nodes, n, false, SCHED_PLAN_LEVEL_MAX);

    if (at == SIZE_MAX)
        return false;
    from = &nodes[at];
    *move = (struct sched_plan_move){
        .why = SCHED_PLAN_LEVEL, .value = from->level, .from = at};
    return relieve(nodes, n,
                   (from->level - SCHED_PLAN_LEVEL_MAX + SCHED_PLAN_BACK) *
                       from->capacity,
                   move) &&
           move->volume / from->capacity >= SCHED_PLAN_WORTH;
}

static size_t
lowest(const struct sched_plan_node *nodes, size_t n)
{
    size_t at = 0;

    for (size_t i = 1; i < n; i++)
        if (nodes[i].level < nodes[at].level)
            at = i;
    return at;
}

/* The least volume that, moved, brings the skew below; at most `room`. It falls
 * with the volume as long as the fullest stays the fuller of the two. */
static double
volume_for_skew(const struct sched_plan_node *nodes, size_t n,
                const struct sched_plan_move *move, double room)
{
    double least = 0, most = room;

    if (skew_after(nodes, n, move->from, move->to, room) >
        SCHED_PLAN_SKEW_MAX - SCHED_PLAN_BACK)
        return room;
    for (int i = 0; i < 50; i++) {
        double middle = (least + most) / 2;
        if (skew_after(nodes, n, move->from, move->to, middle) >
            SCHED_PLAN_SKEW_MAX - SCHED_PLAN_BACK)
            least = middle;
        else
            most = middle;
    }
    return most;
}

/* Only over nodes of which all is known. */
static bool
rule_skew(struct sched_plan *plan, const struct sched_plan_node *nodes,
          size_t n, int64_t now_ns, struct sched_plan_move *move)
{
    double skew = skew_after(nodes, n, 0, 0, 0), room;
    size_t from = highest(nodes, n, false, 0);

    if (!above(skew, SCHED_PLAN_SKEW_MAX) || from == SIZE_MAX) {
        plan->skewed = false;
        return false;
    }
    if (!plan->skewed)
        plan->skewed_since_ns = now_ns;
    plan->skewed = true;
    if (now_ns - plan->skewed_since_ns < plan->skew_ns)
        return false;
    *move = (struct sched_plan_move){.why = SCHED_PLAN_SKEW,
                                     .value = skew,
                                     .from = from,
                                     .to = lowest(nodes, n)};
    room = room_at(&nodes[from], &nodes[move->to], SCHED_PLAN_SKEW);
    if (room <= 0)
        return false;
    pick_shards(&nodes[from], volume_for_skew(nodes, n, move, room), room,
                move);
    return move->n > 0 &&
           skew - skew_after(nodes, n, from, move->to, move->volume) >=
               SCHED_PLAN_WORTH;
}

bool
sched_plan_step(struct sched_plan *plan, struct sched_plan_node *nodes,
                size_t n, int64_t now_ns, struct sched_plan_move *ret_move)
{
    struct sched_plan_move skew, other;
    bool all_known = true, skewed;

    for (size_t i = 0; i < n; i++)
        all_known = all_known && nodes[i].known;
    if (n < 2 || sum_up(nodes, n) < SCHED_PLAN_VOLUME_MIN) {
        plan->skewed = false;
        return false;
    }
    /* The skew is looked at in any case: its time goes on. */
    skewed = all_known && rule_skew(plan, nodes, n, now_ns, &skew);
    if (now_ns < plan->quiet_until_ns)
        return false;
    if (rule_load(nodes, n, &other) || rule_level(nodes, n, &other))
        *ret_move = other;
    else if (skewed)
        *ret_move = skew;
    else
        return false;
    sched_plan_restart(plan, now_ns);
    return true;
}
