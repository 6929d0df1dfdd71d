/*
 * What a handle has been told, and polling until something holds. Whoever
 * includes this has now_ms() (the clock that the backend goes by) and
 * time_goes_on() (called between polls: sets a simulated clock on).
 */
#ifndef TOC_TESTS_COORD_VIEW_H
#define TOC_TESTS_COORD_VIEW_H

#include "common/coord/coord.h"
#include "tests/support/toc_check.h"

#include <string.h>

#define PATIENCE_MS 20000
#define VIEW_SHARDS 256

struct view {
    void *handle; /* the backend's */
    struct toc_coord *coord;
    char kinds[4096]; /* one letter per event: U D O F R S L N W X */
    size_t n_kinds;
    char owners[VIEW_SHARDS][32]; /* "" free, "?" unreadable */
    char wishes[VIEW_SHARDS][32];
    char members[16][64]; /* "role/node=address" */
    size_t n_members;
    struct toc_member last_member;
    char last_address[64];
    bool session, synced;
    size_t errors;
};

static inline size_t
view_find_member(const struct view *view, const struct toc_member *member)
{
    char front[64];
    size_t i;
    size_t len =
        toc_format(front, sizeof front, "%.*s/%.*s=", (int)member->role.len,
                   member->role.ptr, (int)member->node.len, member->node.ptr);
    for (i = 0; i < view->n_members; i++)
        if (strncmp(view->members[i], front, len) == 0)
            break;
    return i;
}

static inline void
view_member(struct view *view, const struct toc_coord_event *event)
{
    const struct toc_member *member = &event->member;
    size_t i = view_find_member(view, member);
    if (event->kind == TOC_COORD_MEMBER_DOWN) {
        if (i < view->n_members)
            memmove(view->members[i], view->members[--view->n_members],
                    sizeof view->members[i]);
        return;
    }
    ck_assert_uint_lt(i, 16);
    if (i == view->n_members)
        view->n_members++;
    toc_format(view->members[i], sizeof view->members[i], "%.*s/%.*s=%.*s",
               (int)member->role.len, member->role.ptr, (int)member->node.len,
               member->node.ptr, (int)member->address.len,
               member->address.len == 0 ? "" : member->address.ptr);
    view->last_member = *member;
    toc_copy(view->last_address, sizeof view->last_address, member->address);
}

static inline void
view_event(void *arg, const struct toc_coord_event *event)
{
    struct view *view = arg;
    ck_assert_uint_lt(view->n_kinds + 1, sizeof view->kinds);
    view->kinds[view->n_kinds++] = "UDOFRSLNWX"[event->kind];
    switch (event->kind) {
    case TOC_COORD_MEMBER_UP:
    case TOC_COORD_MEMBER_DOWN:
        view_member(view, event);
        break;
    case TOC_COORD_OWNED:
        if (event->owner.node.len == 0)
            toc_format(view->owners[event->owner.shard], 32, "?");
        else
            toc_copy(view->owners[event->owner.shard], 32, event->owner.node);
        break;
    case TOC_COORD_FREED:
        view->owners[event->owner.shard][0] = '\0';
        break;
    case TOC_COORD_WANTED:
        toc_copy(view->wishes[event->owner.shard], 32, event->owner.node);
        break;
    case TOC_COORD_UNWANTED:
        view->wishes[event->owner.shard][0] = '\0';
        break;
    case TOC_COORD_RESET:
        memset(view->owners, 0, sizeof view->owners);
        memset(view->wishes, 0, sizeof view->wishes);
        view->n_members = 0;
        view->synced = false;
        break;
    case TOC_COORD_SYNCED:
        view->synced = true;
        break;
    case TOC_COORD_SESSION_LOST:
        view->session = false;
        break;
    case TOC_COORD_SESSION_NEW:
        view->session = true;
        break;
    }
}

static inline void
view_forget_kinds(struct view *view)
{
    view->n_kinds = 0;
    memset(view->kinds, 0, sizeof view->kinds);
}

static inline void
view_poll(struct view *view, int64_t timeout_ms)
{
    if (toc_coord_poll(view->coord, timeout_ms, view_event, view, NULL) !=
        TOC_OK)
        view->errors++;
}

/* Polls until the condition holds; a macro, for any condition on the view. */
#define POLL_UNTIL(view, condition)                                   \
    do {                                                              \
        int64_t until_ = now_ms() + PATIENCE_MS;                      \
        while (!(condition)) {                                        \
            ck_assert_msg(now_ms() < until_, "never: %s (events %s)", \
                          #condition, (view)->kinds);                 \
            view_poll((view), 100);                                   \
            time_goes_on();                                           \
        }                                                             \
    } while (0)

#define UNTIL_READY(view) POLL_UNTIL(view, (view)->session && (view)->synced)

static inline void
shards_from(uint16_t *shards, size_t n, uint16_t first)
{
    for (size_t i = 0; i < n; i++)
        shards[i] = (uint16_t)(first + i);
}

static inline size_t
view_owned_by(const struct view *view, const char *node)
{
    size_t n = 0;
    for (size_t i = 0; i < VIEW_SHARDS; i++)
        n += strcmp(view->owners[i], node) == 0;
    return n;
}

#endif
