#include "scheduler/owner.h"

#include "common/base/assert.h"
#include "common/base/hash.h"
#include "common/base/str.h"

#include <string.h>

#define NS_PER_MS INT64_C(1000000)
#define SETTLE_NS (2000 * NS_PER_MS) /* a joining node must have been there */
#define RANK_NS (1000 * NS_PER_MS)   /* each further rank waits longer */
#define RETRY_NS (1000 * NS_PER_MS)  /* after a claim that was not won */
#define HAND_NS (500 * NS_PER_MS)    /* to send ahead, at most */
#define HAND_EVERY_NS (300 * NS_PER_MS)
#define PASSED_NS (30000 * NS_PER_MS) /* after a first left a shard lying */
#define IDLE_NS (60000 * NS_PER_MS)

void
sched_owner_init(struct sched_owner *owner, struct toc_str self)
{
    memset(owner, 0, sizeof *owner);
    toc_copy(owner->self, sizeof owner->self, self);
    owner->ranks_stale = true;
}

/* ---- ranks
 * ------------------------------------------------------------------- */

static size_t
find_member(const struct sched_owner *owner, struct toc_str name)
{
    for (size_t i = 0; i < owner->n_members; i++)
        if (toc_str_eq(toc_str_of(owner->members[i].name), name))
            return i;
    return SIZE_MAX;
}

/* Stable across versions and machines: all nodes must come to the same. */
static uint64_t
score(const char *node, uint16_t shard)
{
    char number[8];
    struct toc_str fields[2] = {toc_str_of(node), {number, 0}};
    uint8_t digest[32];
    uint64_t value = 0;

    fields[1].len = toc_format(number, sizeof number, "%u", (unsigned)shard);
    toc_sha256_fields(fields, 2, digest);
    for (size_t i = 0; i < 8; i++)
        value = value << 8 | digest[i];
    return value;
}

/* The member that wants the shard stands before all others. */
static void
rank_wish(struct sched_owner *owner, uint16_t shard)
{
    struct toc_str wish = toc_str_of(owner->wish[shard]);
    size_t at = wish.len == 0 ? SIZE_MAX : find_member(owner, wish);

    if (at == SIZE_MAX)
        return;
    owner->first[shard] = (uint16_t)at;
    if (toc_str_eq(wish, toc_str_of(owner->self)))
        owner->rank[shard] = 0;
    else if (score(owner->members[at].name, shard) < score(owner->self, shard))
        owner->rank[shard]++;
}

static void
rank_shard(struct sched_owner *owner, uint16_t shard)
{
    uint64_t ours = score(owner->self, shard), best = 0;

    owner->rank[shard] = 0;
    owner->first[shard] = 0;
    for (uint16_t i = 0; i < owner->n_members; i++) {
        uint64_t value = score(owner->members[i].name, shard);
        if (value > ours)
            owner->rank[shard]++;
        if (i == 0 || value > best) {
            best = value;
            owner->first[shard] = i;
        }
    }
    owner->natural[shard] = owner->rank[shard] == 0;
    rank_wish(owner, shard);
}

static void
rank_all(struct sched_owner *owner)
{
    if (!owner->ranks_stale)
        return;
    for (uint16_t shard = 0; shard < TOC_SHARDS; shard++)
        rank_shard(owner, shard);
    owner->ranks_stale = false;
}

/* ---- events
 * -------------------------------------------------------------------- */

static void
member_up(struct sched_owner *owner, const struct toc_member *member,
          int64_t now_ns)
{
    struct sched_owner_member *at = &owner->members[owner->n_members];

    if (!toc_str_eq(member->role, TOC_STR("scheduler")) ||
        owner->n_members == SCHED_MEMBERS_MAX || member->node.len == 0 ||
        member->node.len >= sizeof at->name ||
        find_member(owner, member->node) != SIZE_MAX)
        return;
    toc_copy(at->name, sizeof at->name, member->node);
    at->since_ns = now_ns;
    at->passed_ns = 0;
    owner->n_members++;
    owner->ranks_stale = true;
}

static void
member_down(struct sched_owner *owner, const struct toc_member *member)
{
    size_t at = find_member(owner, member->node);

    if (!toc_str_eq(member->role, TOC_STR("scheduler")) || at == SIZE_MAX)
        return;
    owner->members[at] = owner->members[--owner->n_members];
    owner->ranks_stale = true;
}

static void
lose_all(struct sched_owner *owner)
{
    for (size_t i = 0; i < TOC_SHARDS; i++)
        if (owner->hold[i] != SCHED_HOLD_NONE)
            owner->hold[i] = SCHED_HOLD_LOST;
}

static void
forget_all(struct sched_owner *owner, int64_t now_ns)
{
    owner->n_members = 0;
    owner->ranks_stale = true;
    owner->synced = false;
    for (size_t i = 0; i < TOC_SHARDS; i++) {
        owner->taken[i] = owner->left[i] = false;
        owner->free_ns[i] = now_ns;
        owner->wish[i][0] = '\0';
    }
}

/* A key that is ours though we do not hold the shard: its claim's answer was
 * lost, a release failed, or a late word of the key's past made us drop it.
 * To claim it again tells whether it stands under our session. */
static void
shard_owned(struct sched_owner *owner, const struct toc_owner *event,
            int64_t now_ns)
{
    uint16_t shard = event->shard;
    enum sched_hold *hold = &owner->hold[shard];
    bool ours = toc_str_eq(event->node, toc_str_of(owner->self));

    owner->taken[shard] = true;
    owner->left[shard] = false;
    if (!ours && *hold != SCHED_HOLD_NONE) {
        *hold = SCHED_HOLD_LOST;
    } else if (ours && (*hold == SCHED_HOLD_NONE || *hold == SCHED_HOLD_LOST)) {
        owner->taken[shard] = false;
        owner->left[shard] = true;
        owner->free_ns[shard] = now_ns;
    }
}

static void
shard_freed(struct sched_owner *owner, uint16_t shard, int64_t now_ns)
{
    owner->taken[shard] = owner->left[shard] = false;
    owner->free_ns[shard] = now_ns;
    if (owner->hold[shard] != SCHED_HOLD_NONE)
        owner->hold[shard] = SCHED_HOLD_LOST;
}

/* wish: empty when there is none any more. */
static void
shard_wanted(struct sched_owner *owner, uint16_t shard, struct toc_str wish)
{
    char *at = owner->wish[shard];

    if (wish.len >= SCHED_NODE_NAME_MAX)
        wish.len = 0; /* no scheduler of ours is called so */
    toc_copy(at, SCHED_NODE_NAME_MAX, wish);
    owner->ranks_stale = true;
}

void
sched_owner_event(struct sched_owner *owner,
                  const struct toc_coord_event *event, int64_t now_ns)
{
    switch (event->kind) {
    case TOC_COORD_MEMBER_UP:
        member_up(owner, &event->member, now_ns);
        break;
    case TOC_COORD_MEMBER_DOWN:
        member_down(owner, &event->member);
        break;
    case TOC_COORD_OWNED:
        if (event->owner.shard < TOC_SHARDS)
            shard_owned(owner, &event->owner, now_ns);
        break;
    case TOC_COORD_FREED:
        if (event->owner.shard < TOC_SHARDS)
            shard_freed(owner, event->owner.shard, now_ns);
        break;
    case TOC_COORD_WANTED:
    case TOC_COORD_UNWANTED:
        if (event->owner.shard < TOC_SHARDS)
            shard_wanted(owner, event->owner.shard, event->owner.node);
        break;
    case TOC_COORD_RESET:
        forget_all(owner, now_ns);
        break;
    case TOC_COORD_SYNCED:
        owner->synced = true;
        break;
    case TOC_COORD_SESSION_LOST:
        owner->session = false;
        memset(owner->asked, 0, sizeof owner->asked);
        lose_all(owner);
        break;
    case TOC_COORD_SESSION_NEW:
        owner->session = true;
        lose_all(owner);
        break;
    }
}

/* ---- what to do
 * ------------------------------------------------------------------ */

static void
add(struct sched_owner_action *action, uint16_t shard)
{
    action->shards[action->n++] = shard;
}

static bool
drop_lost(struct sched_owner *owner, struct sched_owner_action *action)
{
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        if (owner->hold[i] == SCHED_HOLD_LOST) {
            owner->hold[i] = SCHED_HOLD_NONE;
            add(action, i);
        }
    action->kind = SCHED_OWNER_DROP;
    return action->n > 0;
}

/* After a full reading that did not show our key, it is gone. */
static void
find_vanished(struct sched_owner *owner)
{
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        if (owner->hold[i] != SCHED_HOLD_NONE && !owner->taken[i])
            owner->hold[i] = SCHED_HOLD_LOST;
}

static bool
is_ours(const struct sched_owner *owner, const char *wish)
{
    return toc_str_eq(toc_str_of(wish), toc_str_of(owner->self));
}

/* What we were asked to want. Where we are first without a wish, one of another
 * node must go; that is unwant's. */
static bool
want_asked(struct sched_owner *owner, struct sched_owner_action *action)
{
    for (uint16_t i = 0; i < TOC_SHARDS; i++) {
        if (!owner->asked[i] || owner->natural[i])
            continue;
        owner->asked[i] = false;
        if (!is_ours(owner, owner->wish[i]))
            add(action, i);
    }
    action->kind = SCHED_OWNER_WANT;
    return action->n > 0;
}

/* Wishes that say no more than the ranks do, so that none outlives its use. */
static bool
unwant_needless(struct sched_owner *owner, int64_t now_ns,
                struct sched_owner_action *action, int64_t *wake_ns)
{
    for (uint16_t i = 0; i < TOC_SHARDS; i++) {
        const char *wish = owner->wish[i];
        if (owner->natural[i] &&
            (is_ours(owner, wish) || (owner->asked[i] && wish[0] != '\0')))
            add(action, i);
        else if (owner->natural[i])
            owner->asked[i] = false;
    }
    action->kind = SCHED_OWNER_UNWANT;
    if (action->n == 0)
        return false;
    if (now_ns < owner->next_unwant_ns) {
        if (owner->next_unwant_ns < *wake_ns)
            *wake_ns = owner->next_unwant_ns;
        action->n = 0;
        return false;
    }
    for (size_t i = 0; i < action->n; i++)
        owner->asked[action->shards[i]] = false;
    owner->next_unwant_ns = now_ns + RETRY_NS;
    return true;
}

static bool
acquire_free(struct sched_owner *owner, int64_t now_ns,
             struct sched_owner_action *action, int64_t *wake_ns)
{
    for (uint16_t i = 0; i < TOC_SHARDS; i++) {
        int64_t at = owner->free_ns[i] + owner->rank[i] * RANK_NS;
        if (owner->taken[i] || owner->hold[i] != SCHED_HOLD_NONE)
            continue;
        if (at <= now_ns)
            add(action, i);
        else if (at < *wake_ns)
            *wake_ns = at;
    }
    action->kind = SCHED_OWNER_ACQUIRE;
    return action->n > 0;
}

static bool
collect(struct sched_owner *owner, enum sched_hold hold,
        struct sched_owner_action *action)
{
    action->n = 0;
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        if (owner->hold[i] == hold)
            add(action, i);
    return action->n > 0;
}

/* Since when may it have what it is first for? */
static int64_t
settled_ns(const struct sched_owner_member *first)
{
    int64_t since_ns = first->since_ns + SETTLE_NS;
    int64_t passed_ns = first->passed_ns + PASSED_NS;

    return first->passed_ns != 0 && passed_ns > since_ns ? passed_ns : since_ns;
}

static bool
begin_hand_over(struct sched_owner *owner, int64_t now_ns,
                struct sched_owner_action *action, int64_t *wake_ns)
{
    for (uint16_t i = 0; i < TOC_SHARDS; i++) {
        int64_t settled = settled_ns(&owner->members[owner->first[i]]);
        if (owner->hold[i] != SCHED_HOLD_OURS || owner->rank[i] == 0)
            continue;
        if (settled < owner->next_hand_ns)
            settled = owner->next_hand_ns;
        if (settled > now_ns) {
            if (settled < *wake_ns)
                *wake_ns = settled;
        } else if (action->n < SCHED_GIVE_AT_ONCE) {
            owner->hold[i] = SCHED_HOLD_HANDING;
            add(action, i);
        }
    }
    action->kind = SCHED_OWNER_HAND_OVER;
    if (action->n > 0)
        owner->hand_until_ns = now_ns + HAND_NS;
    return action->n > 0;
}

static bool
release_handed(struct sched_owner *owner, int64_t now_ns,
               struct sched_owner_action *action, int64_t *wake_ns)
{
    if (!collect(owner, SCHED_HOLD_HANDING, action))
        return false;
    action->kind = SCHED_OWNER_RELEASE;
    if (now_ns >= owner->hand_until_ns)
        return true;
    *wake_ns = owner->hand_until_ns;
    action->n = 0;
    return false;
}

/* All at once: nothing is sent ahead by a clock that is off. And a key that was
 * left standing would keep the others out. */
static bool
release_all(struct sched_owner *owner, int64_t now_ns,
            struct sched_owner_action *action, int64_t *wake_ns)
{
    bool again = now_ns >= owner->next_release_ns;

    action->n = 0;
    for (uint16_t i = 0; i < TOC_SHARDS; i++) {
        if (owner->hold[i] != SCHED_HOLD_NONE || (owner->left[i] && again))
            add(action, i);
        else if (owner->left[i])
            *wake_ns = owner->next_release_ns;
    }
    action->kind = SCHED_OWNER_RELEASE;
    return action->n > 0;
}

int64_t
sched_owner_step(struct sched_owner *owner, int64_t now_ns,
                 struct sched_owner_action *ret_action)
{
    int64_t wake_ns = now_ns + IDLE_NS;

    ret_action->n = 0;
    if (owner->synced)
        find_vanished(owner);
    if (drop_lost(owner, ret_action))
        return now_ns;
    if (owner->session && owner->unfit) {
        if (release_all(owner, now_ns, ret_action, &wake_ns))
            return now_ns;
    } else if (owner->session && owner->synced) {
        rank_all(owner);
        if (acquire_free(owner, now_ns, ret_action, &wake_ns) ||
            want_asked(owner, ret_action) ||
            unwant_needless(owner, now_ns, ret_action, &wake_ns))
            return now_ns;
        if (sched_owner_handing(owner)) {
            if (release_handed(owner, now_ns, ret_action, &wake_ns))
                return now_ns;
        } else if (owner->n_members > 0 &&
                   begin_hand_over(owner, now_ns, ret_action, &wake_ns)) {
            return now_ns;
        }
    }
    ret_action->kind = SCHED_OWNER_NOTHING;
    ret_action->n = 0;
    return wake_ns;
}

/* It was free for as long as our rank waits, and the first did not claim it.
 * One that joined a moment ago may not have got there yet. */
static void
note_passed(struct sched_owner *owner, uint16_t shard, int64_t now_ns)
{
    struct sched_owner_member *first = &owner->members[owner->first[shard]];

    if (owner->n_members > 0 && owner->rank[shard] > 0 &&
        now_ns - first->since_ns >= SETTLE_NS)
        first->passed_ns = now_ns;
}

void
sched_owner_acquired(struct sched_owner *owner, const uint16_t *shards,
                     const bool *won, size_t n, int64_t now_ns)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t shard = shards[i];
        if (won[i]) {
            owner->hold[shard] = SCHED_HOLD_OURS;
            owner->taken[shard] = true;
            owner->left[shard] = false;
            note_passed(owner, shard, now_ns);
        } else if (!owner->taken[shard]) {
            /* Whose it is will be told; if not, it is tried again. */
            owner->free_ns[shard] = now_ns + RETRY_NS;
        }
    }
}

void
sched_owner_released(struct sched_owner *owner, const uint16_t *shards,
                     size_t n, int64_t now_ns)
{
    for (size_t i = 0; i < n; i++) {
        owner->hold[shards[i]] = SCHED_HOLD_NONE;
        owner->taken[shards[i]] = owner->left[shards[i]] = false;
        owner->free_ns[shards[i]] = now_ns;
    }
    owner->next_hand_ns = now_ns + HAND_EVERY_NS;
}

void
sched_owner_not_released(struct sched_owner *owner, const uint16_t *shards,
                         size_t n, int64_t now_ns)
{
    for (size_t i = 0; i < n; i++)
        owner->left[shards[i]] = true;
    owner->next_release_ns = now_ns + RETRY_NS;
}

void
sched_owner_set_fit(struct sched_owner *owner, bool fit)
{
    owner->unfit = !fit;
    if (!fit)
        memset(owner->asked, 0, sizeof owner->asked);
}

void
sched_owner_ask(struct sched_owner *owner, uint16_t shard)
{
    if (owner->session && !owner->unfit)
        owner->asked[shard] = true;
}

void
sched_owner_flushed(struct sched_owner *owner)
{
    owner->hand_until_ns = INT64_MIN;
}

bool
sched_owner_handing(const struct sched_owner *owner)
{
    for (size_t i = 0; i < TOC_SHARDS; i++)
        if (owner->hold[i] == SCHED_HOLD_HANDING)
            return true;
    return false;
}
