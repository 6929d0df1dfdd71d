/*
 * Doubly linked list whose links live in the elements. An initialised link
 * that is in no list points to itself.
 *
 * Threads: one at a time.
 */
#ifndef TOC_BASE_LIST_H
#define TOC_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct toc_link {
    struct toc_link *prev, *next;
};

#define toc_container_of(ptr, type, member) \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void
toc_list_init(struct toc_link *head)
{
    head->prev = head->next = head;
}

static inline bool
toc_list_empty(const struct toc_link *head)
{
    return head->next == head;
}

static inline void
toc_list_insert_before(struct toc_link *at, struct toc_link *link)
{
    link->prev = at->prev;
    link->next = at;
    at->prev->next = link;
    at->prev = link;
}

static inline void
toc_list_push(struct toc_link *head, struct toc_link *link) /* at the end */
{
    toc_list_insert_before(head, link);
}

static inline void
toc_list_remove(struct toc_link *link) /* harmless when in no list */
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    toc_list_init(link);
}

static inline struct toc_link *
toc_list_pop(struct toc_link *head) /* the first, or NULL */
{
    struct toc_link *link = head->next;
    if (link == head)
        return NULL;
    toc_list_remove(link);
    return link;
}

#endif
