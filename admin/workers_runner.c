#include "admin/workers_runner.h"

#include "common/base/alloc.h"
#include "common/base/queue.h"
#include "common/base/thread.h"

struct admin_workers {
    struct toc_queue *queue;
    admin_job_fn *fn;
    struct toc_thread *threads;
    size_t n;
};

static void
work(void *arg)
{
    struct admin_workers *workers = arg;
    void *job;

    while (toc_queue_pop(workers->queue, &job, 1, TOC_BELL_FOREVER) > 0)
        workers->fn(job);
}

struct admin_workers *
admin_workers_new(size_t threads, size_t queue_max, admin_job_fn *fn)
{
    struct admin_workers *workers = TOC_NEW(struct admin_workers);

    workers->queue = toc_queue_new(queue_max);
    workers->fn = fn;
    workers->threads = TOC_NEW_ARRAY(struct toc_thread, threads);
    workers->n = threads;
    for (size_t i = 0; i < threads; i++)
        toc_thread_start(&workers->threads[i], "admin-worker", work, workers);
    return workers;
}

bool
admin_workers_push(struct admin_workers *workers, void *job)
{
    return toc_queue_push(workers->queue, job);
}

void
admin_workers_stop(struct admin_workers *workers)
{
    toc_queue_close(workers->queue);
    for (size_t i = 0; i < workers->n; i++)
        toc_thread_join(&workers->threads[i]);
}

void
admin_workers_free(struct admin_workers *workers)
{
    if (workers == NULL)
        return;
    toc_queue_free(workers->queue);
    toc_free(workers->threads);
    toc_free(workers);
}
