#include "scheduler/access/workers.h"

#include "common/base/alloc.h"
#include "common/base/queue.h"

struct sched_workers {
    struct toc_queue *queue;
};

struct sched_workers *
sched_workers_new(size_t queue_max)
{
    struct sched_workers *workers = TOC_NEW(struct sched_workers);

    workers->queue = toc_queue_new(queue_max);
    return workers;
}

void
sched_workers_free(struct sched_workers *workers)
{
    if (workers == NULL)
        return;
    toc_queue_free(workers->queue);
    toc_free(workers);
}

bool
sched_workers_push(struct sched_workers *workers, struct sched_job *job)
{
    return toc_queue_push(workers->queue, job);
}

void
sched_workers_close(struct sched_workers *workers)
{
    toc_queue_close(workers->queue);
}

void
sched_workers_run(struct sched_workers *workers)
{
    void *item;

    while (toc_queue_pop(workers->queue, &item, 1, INT64_MAX) == 1) {
        struct sched_job *job = item;
        job->fn(job);
    }
}
