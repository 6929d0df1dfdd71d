#include "scheduler/access/combiner.h"

#include "common/base/assert.h"
#include "common/base/log.h"

#include <string.h>

#define BATCH_BYTES_MAX (4 * 1024 * 1024)
#define QUEUE_ROWS_MAX 20000
#define QUEUE_BYTES_MAX (64 * 1024 * 1024)
#define TRIES_MAX 4
#define RETRY_MS                                                 \
    50 /* before the second try; four times as long each further \
        */
#define IDLE_MS 1000
#define GATHER_NS_MAX (2 * TOC_NS_PER_MS)

void
sched_combiner_init(struct sched_combiner *combiner,
                    const struct sched_combiner_options *opt)
{
    memset(combiner, 0, sizeof *combiner);
    combiner->opt = *opt;
    if (combiner->opt.queue_rows_max == 0)
        combiner->opt.queue_rows_max = QUEUE_ROWS_MAX;
    if (combiner->opt.queue_bytes_max == 0)
        combiner->opt.queue_bytes_max = QUEUE_BYTES_MAX;
    toc_bell_init(&combiner->bell);
    TOC_ASSERT(pthread_mutex_init(&combiner->lock, NULL) == 0);
    toc_list_init(&combiner->queue);
}

void
sched_combiner_done(struct sched_combiner *combiner)
{
    TOC_ASSERT(combiner->n == 0 && combiner->queued == 0);
    pthread_mutex_destroy(&combiner->lock);
    toc_bell_done(&combiner->bell);
}

/* About what the row takes in a statement. */
static size_t
bytes_of(const struct toc_task *task)
{
    return 256 + task->biz_type.len + task->biz_id.len + task->name.len +
           task->spec.len + task->payload.len;
}

bool
sched_combiner_push(struct sched_combiner *combiner,
                    struct sched_submit_item **items, size_t n)
{
    size_t bytes = 0;
    bool fits, ring = false;

    for (size_t i = 0; i < n; i++) {
        items[i]->bytes = bytes_of(&items[i]->task);
        bytes += items[i]->bytes;
    }
    pthread_mutex_lock(&combiner->lock);
    fits = !combiner->closed &&
           combiner->queued + n <= combiner->opt.queue_rows_max &&
           combiner->queued_bytes + bytes <= combiner->opt.queue_bytes_max;
    if (fits) {
        for (size_t i = 0; i < n; i++)
            toc_list_push(&combiner->queue, &items[i]->link);
        ring =
            combiner->queued == 0 || (combiner->queued < combiner->wanted &&
                                      combiner->queued + n >= combiner->wanted);
        combiner->queued += n;
        combiner->queued_bytes += bytes;
    }
    pthread_mutex_unlock(&combiner->lock);
    if (ring)
        toc_bell_ring(&combiner->bell);
    return fits;
}

void
sched_combiner_close(struct sched_combiner *combiner)
{
    pthread_mutex_lock(&combiner->lock);
    combiner->closed = true;
    pthread_mutex_unlock(&combiner->lock);
    toc_bell_ring(&combiner->bell);
}

bool
sched_combiner_idle(struct sched_combiner *combiner)
{
    bool idle;

    pthread_mutex_lock(&combiner->lock);
    idle = combiner->queued == 0 && combiner->n == 0;
    pthread_mutex_unlock(&combiner->lock);
    return idle;
}

/* ---- gathering
 * --------------------------------------------------------------- */

static void
take_batch(struct sched_combiner *combiner)
{
    size_t bytes = 0;

    combiner->n = combiner->at = 0;
    combiner->tries = 0;
    combiner->one_by_one = false;
    pthread_mutex_lock(&combiner->lock);
    while (combiner->n < SCHED_COMBINE_MAX &&
           !toc_list_empty(&combiner->queue)) {
        struct sched_submit_item *item = toc_container_of(
            combiner->queue.next, struct sched_submit_item, link);
        bytes += item->bytes;
        if (combiner->n > 0 && bytes > BATCH_BYTES_MAX)
            break;
        toc_list_remove(&item->link);
        combiner->queued--;
        combiner->queued_bytes -= item->bytes;
        combiner->batch[combiner->n++] = item;
    }
    pthread_mutex_unlock(&combiner->lock);
}

static void
finish(struct sched_submit_item *item, enum toc_status st,
       const struct toc_error *err)
{
    item->st = st;
    if (err != NULL)
        item->err = *err;
    item->done(item);
}

/* Nobody waits for their answer: nothing is written for them. */
static void
drop_gone(struct sched_combiner *combiner)
{
    size_t kept = 0;

    for (size_t i = 0; i < combiner->n; i++) {
        struct sched_submit_item *item = combiner->batch[i];
        if (item->gone != NULL && item->gone(item))
            finish(item, TOC_CANCELLED, NULL);
        else
            combiner->batch[kept++] = item;
    }
    combiner->n = kept;
}

/* ---- storing
 * -------------------------------------------------------------------- */

/* So many are expected for the next one: those just answered and those that
 * came meanwhile. */
static void
end_batch(struct sched_combiner *combiner, int64_t began_ns)
{
    int64_t now_ns = toc_clock_mono(combiner->opt.clk).ns;
    int64_t gather_ns = (now_ns - began_ns) / 4;

    if (gather_ns > GATHER_NS_MAX)
        gather_ns = GATHER_NS_MAX;
    combiner->gather_until_ns = now_ns + gather_ns;
    pthread_mutex_lock(&combiner->lock);
    combiner->n = 0;
    pthread_mutex_unlock(&combiner->lock);
}

static void
expect_again(struct sched_combiner *combiner)
{
    pthread_mutex_lock(&combiner->lock);
    combiner->wanted = combiner->queued + combiner->n;
    if (combiner->wanted > SCHED_COMBINE_MAX)
        combiner->wanted = SCHED_COMBINE_MAX;
    pthread_mutex_unlock(&combiner->lock);
}

static bool
gathering(struct sched_combiner *combiner, int64_t now_ns)
{
    bool more;

    if (now_ns >= combiner->gather_until_ns)
        return false;
    pthread_mutex_lock(&combiner->lock);
    more = combiner->queued < combiner->wanted && !combiner->closed;
    pthread_mutex_unlock(&combiner->lock);
    return more;
}

/* Nobody of a batch waits any more. Those behind it do not wait for a bell that
 * only a queue that was short rings. */
static int64_t
next_batch_ns(struct sched_combiner *combiner, int64_t now_ns)
{
    bool more;

    pthread_mutex_lock(&combiner->lock);
    more = combiner->queued > 0;
    pthread_mutex_unlock(&combiner->lock);
    return more ? now_ns : now_ns + IDLE_MS * TOC_NS_PER_MS;
}

static void
finish_part(struct sched_combiner *combiner, size_t n, int64_t began_ns,
            enum toc_status st, const struct toc_error *err)
{
    if (combiner->at == 0)
        expect_again(combiner);
    for (size_t i = 0; i < n; i++)
        finish(combiner->batch[combiner->at + i], st, err);
    combiner->at += n;
    combiner->tries = 0;
    if (combiner->at == combiner->n)
        end_batch(combiner, began_ns);
}

static void
say(struct sched_combiner *combiner, enum toc_status st,
    const struct toc_error *err)
{
    if (st == TOC_OK && combiner->failing)
        TOC_LOG(INFO, "submit.recovered", F_MSG("submits are stored again"));
    if (st != TOC_OK && !combiner->failing)
        TOC_LOG(WARN, "submit.failed",
                F_MSG("cannot store submits, trying again"), F_ERR(err));
    combiner->failing = st != TOC_OK;
}

/* A clock that was set a moment ago would put tasks where nobody looks for
 * them. */
static bool
clock_is_off(struct sched_combiner *combiner, struct toc_error *reterr)
{
    int64_t off_ms = 0;

    if (combiner->opt.skew != NULL)
        off_ms = sched_skew_off_ms(combiner->opt.skew);
    if (off_ms != 0)
        (void)toc_error_set(reterr, TOC_UNAVAILABLE, "clock", 0,
                            "this node's clock is %lld ms off the database's",
                            (long long)off_ms);
    return off_ms != 0;
}

static int64_t
store_part(struct sched_combiner *combiner)
{
    struct toc_submit *submits[SCHED_COMBINE_MAX];
    size_t n = combiner->one_by_one ? 1 : combiner->n - combiner->at;
    struct toc_mono now = toc_clock_mono(combiner->opt.clk);
    struct toc_error err = {0};
    enum toc_status st;

    if (clock_is_off(combiner, &err)) {
        finish_part(combiner, n, now.ns, TOC_UNAVAILABLE, &err);
        return now.ns;
    }
    for (size_t i = 0; i < n; i++)
        submits[i] = &combiner->batch[combiner->at + i]->submit;
    st = toc_store_submit(combiner->opt.store, submits, n,
                          toc_clock_wall(combiner->opt.clk).ms, &err);
    atomic_fetch_add(&combiner->transactions, 1);
    if (st == TOC_OK) {
        say(combiner, st, &err);
        atomic_fetch_add(&combiner->rows, n);
        finish_part(combiner, n, now.ns, TOC_OK, NULL);
    } else if (toc_status_retryable(st)) {
        say(combiner, st, &err);
        if (++combiner->tries < TRIES_MAX && !atomic_load(&combiner->hurry)) {
            int64_t wait_ms = RETRY_MS << 2 * (combiner->tries - 1);
            combiner->retry_at_ns = toc_mono_add_ms(now, wait_ms).ns;
            return combiner->retry_at_ns;
        }
        finish_part(combiner, n, now.ns, TOC_UNAVAILABLE, &err);
    } else if (n > 1) {
        combiner->one_by_one = true;
    } else {
        TOC_LOG(ERROR, "submit.refused", F_MSG("the store refuses a submit"),
                F_ERR(&err));
        finish_part(combiner, 1, now.ns, st, &err);
    }
    return now.ns;
}

int64_t
sched_combiner_step(struct sched_combiner *combiner)
{
    int64_t now_ns = toc_clock_mono(combiner->opt.clk).ns;

    if (combiner->n == 0) {
        if (gathering(combiner, now_ns))
            return combiner->gather_until_ns;
        take_batch(combiner);
        drop_gone(combiner);
        if (combiner->n == 0)
            return next_batch_ns(combiner, now_ns);
        return store_part(combiner);
    }
    if (combiner->tries > 0 && now_ns < combiner->retry_at_ns)
        return combiner->retry_at_ns;
    return store_part(combiner);
}
