#include "common/base/queue.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/thread_wait.h"

/* A ring; all members but max are guarded by lock. */
struct toc_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    void **ring;
    size_t max, first, len;
    bool closed;
};

struct toc_queue *
toc_queue_new(size_t max)
{
    struct toc_queue *queue = TOC_NEW(struct toc_queue);

    TOC_ASSERT(max > 0);
    TOC_ASSERT(pthread_mutex_init(&queue->lock, NULL) == 0);
    toc_cond_init_mono(&queue->filled);
    queue->ring = TOC_NEW_ARRAY(void *, max);
    queue->max = max;
    return queue;
}

void
toc_queue_free(struct toc_queue *queue)
{
    if (queue == NULL)
        return;
    TOC_ASSERT(queue->len == 0);
    pthread_cond_destroy(&queue->filled);
    pthread_mutex_destroy(&queue->lock);
    toc_free(queue->ring);
    toc_free(queue);
}

bool
toc_queue_push(struct toc_queue *queue, void *item)
{
    bool taken;

    pthread_mutex_lock(&queue->lock);
    taken = !queue->closed && queue->len < queue->max;
    if (taken) {
        queue->ring[(queue->first + queue->len) % queue->max] = item;
        queue->len++;
        pthread_cond_signal(&queue->filled);
    }
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

static size_t
take(struct toc_queue *queue, void **items, size_t max)
{
    size_t n = queue->len < max ? queue->len : max;

    for (size_t i = 0; i < n; i++) {
        items[i] = queue->ring[queue->first];
        queue->first = (queue->first + 1) % queue->max;
    }
    queue->len -= n;
    return n;
}

size_t
toc_queue_pop(struct toc_queue *queue, void **items, size_t max,
              int64_t until_mono_ns)
{
    size_t n;

    pthread_mutex_lock(&queue->lock);
    while (queue->len == 0 && !queue->closed)
        if (!toc_cond_wait_until(&queue->filled, &queue->lock, until_mono_ns))
            break;
    n = take(queue, items, max);
    pthread_mutex_unlock(&queue->lock);
    return n;
}

size_t
toc_queue_len(struct toc_queue *queue)
{
    size_t len;

    pthread_mutex_lock(&queue->lock);
    len = queue->len;
    pthread_mutex_unlock(&queue->lock);
    return len;
}

void
toc_queue_close(struct toc_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

bool
toc_queue_closed(struct toc_queue *queue)
{
    bool closed;

    pthread_mutex_lock(&queue->lock);
    closed = queue->closed;
    pthread_mutex_unlock(&queue->lock);
    return closed;
}
