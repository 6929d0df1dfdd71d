#include "executor/inbox.h"

#include "common/base/assert.h"

void
exec_inbox_init(struct exec_inbox *inbox)
{
    TOC_ASSERT(pthread_mutex_init(&inbox->lock, NULL) == 0);
    toc_list_init(&inbox->items);
    inbox->rung = false;
    toc_bell_init(&inbox->bell);
}

void
exec_inbox_done(struct exec_inbox *inbox)
{
    TOC_ASSERT(toc_list_empty(&inbox->items));
    pthread_mutex_destroy(&inbox->lock);
    toc_bell_done(&inbox->bell);
}

void
exec_inbox_post(struct exec_inbox *inbox, struct toc_link *item)
{
    bool ring;

    pthread_mutex_lock(&inbox->lock);
    toc_list_push(&inbox->items, item);
    ring = !inbox->rung;
    inbox->rung = true;
    pthread_mutex_unlock(&inbox->lock);
    if (ring)
        toc_bell_ring(&inbox->bell);
}

void
exec_inbox_leave(struct exec_inbox *inbox, struct toc_link *item)
{
    pthread_mutex_lock(&inbox->lock);
    toc_list_push(&inbox->items, item);
    pthread_mutex_unlock(&inbox->lock);
}

bool
exec_inbox_empty(struct exec_inbox *inbox)
{
    bool empty;

    pthread_mutex_lock(&inbox->lock);
    empty = toc_list_empty(&inbox->items);
    pthread_mutex_unlock(&inbox->lock);
    return empty;
}

void
exec_inbox_ring(struct exec_inbox *inbox)
{
    toc_bell_ring(&inbox->bell);
}

void
exec_inbox_take(struct exec_inbox *inbox, struct toc_link *to)
{
    struct toc_link *link;

    pthread_mutex_lock(&inbox->lock);
    while ((link = toc_list_pop(&inbox->items)) != NULL)
        toc_list_push(to, link);
    inbox->rung = false;
    pthread_mutex_unlock(&inbox->lock);
}

void
exec_inbox_wait(struct exec_inbox *inbox, int64_t until_ns)
{
    (void)toc_bell_wait(&inbox->bell, until_ns);
}
