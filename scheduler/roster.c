#include "scheduler/roster.h"

#include "common/base/assert.h"

#include <stdlib.h>
#include <string.h>

void
sched_roster_init(struct sched_roster *roster)
{
    memset(roster, 0, sizeof *roster);
    TOC_ASSERT(pthread_mutex_init(&roster->lock, NULL) == 0);
}

void
sched_roster_done(struct sched_roster *roster)
{
    pthread_mutex_destroy(&roster->lock);
}

void
sched_roster_set_coord(struct sched_roster *roster, struct toc_coord *coord)
{
    pthread_mutex_lock(&roster->lock);
    roster->coord = coord;
    pthread_mutex_unlock(&roster->lock);
}

/* ---- from coordination -------------------------------------------------- */

static struct sched_roster_member *
find(struct sched_roster *roster, struct toc_str name)
{
    for (size_t i = 0; i < roster->n; i++)
        if (toc_str_eq(toc_str_of(roster->members[i].name), name))
            return &roster->members[i];
    return NULL;
}

static void
member_up(struct sched_roster *roster, const struct toc_member *member)
{
    struct sched_roster_member *at = find(roster, member->node);

    if (member->node.len == 0 || member->node.len >= sizeof at->name ||
        (at == NULL && roster->n == SCHED_MEMBERS_MAX))
        return;
    if (at == NULL) {
        at = &roster->members[roster->n++];
        roster->changes++;
    }
    toc_copy(at->name, sizeof at->name, member->node);
    toc_copy(at->address, sizeof at->address, member->address);
}

static void
member_down(struct sched_roster *roster, const struct toc_member *member)
{
    struct sched_roster_member *at = find(roster, member->node);

    if (at == NULL)
        return;
    *at = roster->members[--roster->n];
    roster->changes++;
}

static void
take_event(struct sched_roster *roster, const struct toc_coord_event *event)
{
    bool of_ours = toc_str_eq(event->member.role, TOC_STR("scheduler"));

    if (event->kind == TOC_COORD_MEMBER_UP && of_ours) {
        member_up(roster, &event->member);
    } else if (event->kind == TOC_COORD_MEMBER_DOWN && of_ours) {
        member_down(roster, &event->member);
    } else if (event->kind == TOC_COORD_RESET) {
        roster->n = 0;
        roster->changes++;
    }
}

void
sched_roster_event(struct sched_roster *roster,
                   const struct toc_coord_event *event)
{
    pthread_mutex_lock(&roster->lock);
    take_event(roster, event);
    pthread_mutex_unlock(&roster->lock);
}

size_t
sched_roster_take_asked(struct sched_roster *roster,
                        uint16_t ret_shards[TOC_SHARDS])
{
    size_t n = 0;

    pthread_mutex_lock(&roster->lock);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        if (roster->asked[i]) {
            ret_shards[n++] = i;
            roster->asked[i] = false;
        }
    pthread_mutex_unlock(&roster->lock);
    return n;
}

/* ---- from others
 * ---------------------------------------------------------------------------
 */

bool
sched_roster_ask(struct sched_roster *roster, const uint16_t *shards, size_t n)
{
    struct toc_coord *coord;

    pthread_mutex_lock(&roster->lock);
    coord = roster->coord;
    for (size_t i = 0; i < n && coord != NULL; i++)
        roster->asked[shards[i]] = true;
    pthread_mutex_unlock(&roster->lock);
    if (coord != NULL)
        toc_coord_wake(coord);
    return coord != NULL;
}

static int
by_name(const void *a, const void *b)
{
    const struct sched_roster_member *x = a, *y = b;

    return strcmp(x->name, y->name);
}

size_t
sched_roster_list(struct sched_roster *roster,
                  struct sched_roster_member ret_members[SCHED_MEMBERS_MAX],
                  uint64_t *ret_changes)
{
    size_t n;

    pthread_mutex_lock(&roster->lock);
    n = roster->n;
    memcpy(ret_members, roster->members, n * sizeof *ret_members);
    *ret_changes = roster->changes;
    pthread_mutex_unlock(&roster->lock);
    qsort(ret_members, n, sizeof *ret_members, by_name);
    return n;
}
