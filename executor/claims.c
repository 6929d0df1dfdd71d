/*
 * The claim combiner: from due hints to won attempts.
 *
 * A batch shares one lock, as long as its longest call needs, so only hints
 * whose timeouts are alike go together: at most twice apart. Others are set
 * aside and keep their slots; the first of them begins the next batch, so that
 * each has to wait for a batch of each kind of timeout at most.
 *
 * A claim that failed is repeated as it was, token and all, because it may have
 * taken effect; only when its lock could not hold a call any more are its hints
 * put back, to be claimed anew. (Rows that the lost claim did take are then
 * somebody's until the lock expires, and the sweep frees them.)
 */
#include "executor/core.h"

#include "common/base/assert.h"
#include "common/base/log.h"
#include "common/base/status.h"

#include <stdlib.h>

/* What a claim may take without shortening the calls. */
#define CLAIM_MS 250
#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 1000
#define EARLY_MS_MAX 16

/* ---- gathering ------------------------------------------------------- */

/* The target is full: the hint waits there. */
static void
queue_up(struct exec_core *core, struct exec_item *item)
{
    size_t hints = atomic_load(&core->hints), max = core->options.hints_max;
    struct exec_item *gone =
        exec_targets_queue(&core->targets, item, hints < max ? max - hints : 0,
                           toc_clock_mono(core->options.clock).ns);

    if (gone != NULL)
        exec_core_crowded_out(core, gone);
}

/* From the heap; those of full targets go into their queues. */
static struct exec_item *
next_waiting(struct exec_core *core, enum toc_priority priority, int64_t now_ms)
{
    struct exec_item *item;

    while (!exec_targets_full(&core->targets)) {
        item = exec_waiting_pop(&core->waiting, priority, now_ms);
        if (item == NULL)
            return NULL;
        item->state = EXEC_ITEM_CLAIMING;
        if (exec_targets_admit(&core->targets, item))
            return item;
        queue_up(core, item);
    }
    return NULL;
}

/* Neither what waited for a target nor what falls due now stands before the
 * other. */
static struct exec_item *
next_due(struct exec_core *core, enum toc_priority priority, int64_t now_ms)
{
    bool queued_first = core->batch.n % 2 == 0;
    struct exec_item *item =
        queued_first ? exec_targets_pop(&core->targets, priority, now_ms)
                     : next_waiting(core, priority, now_ms);

    if (item != NULL)
        return item;
    return queued_first ? next_waiting(core, priority, now_ms)
                        : exec_targets_pop(&core->targets, priority, now_ms);
}

static bool
fits(const struct exec_batch *batch, const struct exec_item *item)
{
    const struct exec_item *first = batch->items[0];

    if (batch->n == 0)
        return true;
    return !first->alone && !item->alone &&
           item->call_timeout_ms <= first->call_timeout_ms &&
           item->call_timeout_ms * 2 > first->call_timeout_ms;
}

static void
put_back(struct exec_core *core, struct exec_item *item)
{
    exec_targets_leave(&core->targets, item);
    if (exec_item_is_orphan(item))
        exec_core_drop(core, item); /* its partition went meanwhile */
    else
        exec_waiting_again(&core->waiting, item);
}

/* What was set aside goes first. Hints whose partition went meanwhile, and what
 * has to be claimed alone, may be among it. */
static void
gather_aside(struct exec_core *core, size_t max)
{
    struct exec_batch *batch = &core->batch;
    struct exec_aside *aside = &core->aside;
    size_t n = 0;

    for (size_t i = 0; i < aside->n; i++) {
        struct exec_item *item = aside->items[i];

        if (exec_item_is_orphan(item))
            exec_core_drop(core, item);
        else if (batch->n < max && fits(batch, item))
            batch->items[batch->n++] = item;
        else
            aside->items[n++] = item;
    }
    aside->n = n;
}

static void
gather_priority(struct exec_core *core, enum toc_priority priority, size_t max,
                int64_t now_ms)
{
    struct exec_batch *batch = &core->batch;
    struct exec_aside *aside = &core->aside;

    while (batch->n < max && aside->n < EXEC_CLAIMS_MAX) {
        struct exec_item *item = next_due(core, priority, now_ms);

        if (item == NULL)
            return;
        if (fits(batch, item))
            batch->items[batch->n++] = item;
        else
            aside->items[aside->n++] = item;
    }
}

/* ---- the batch ------------------------------------------------------- */

static int
by_row(const void *a, const void *b)
{
    const struct exec_item *const *left = a;
    const struct exec_item *const *right = b;
    struct toc_task_ref l = toc_task_ref_of(&(*left)->task);
    struct toc_task_ref r = toc_task_ref_of(&(*right)->task);
    int order = toc_task_ref_cmp(&l, &r);

    if (order != 0)
        return order;
    return l.version < r.version ? -1 : l.version > r.version;
}

static void
lose(struct exec_core *core, struct exec_item *item)
{
    EXEC_COUNT(core->options.counters, taken, 1);
    exec_core_decided(core, item);
    exec_item_free(item);
}

/* In the order of the primary key. Of one row in two versions only the newer
 * can win. */
static void
sort(struct exec_core *core)
{
    struct exec_batch *batch = &core->batch;
    size_t n = 0;

    qsort(batch->items, batch->n, sizeof batch->items[0], by_row);
    for (size_t i = 0; i < batch->n; i++) {
        struct exec_item *item = batch->items[i];

        if (n > 0) {
            struct toc_task_ref a = toc_task_ref_of(&batch->items[n - 1]->task);
            struct toc_task_ref b = toc_task_ref_of(&item->task);
            if (a.slice == b.slice && a.slot_ms == b.slot_ms &&
                toc_task_id_cmp(a.id, b.id) == 0)
                lose(core, batch->items[--n]);
        }
        batch->items[n++] = item;
    }
    batch->n = n;
}

static void
take_lock(struct exec_core *core, int64_t timeout_ms)
{
    struct exec_batch *batch = &core->batch;
    const struct exec_core_options *options = &core->options;
    int64_t now_ms;

    /* The boot-time clock first: the lock lasts at least as long as it says. */
    batch->begun = toc_clock_boot(options->clock);
    now_ms = toc_clock_wall(options->clock).ms;
    batch->call_ms = timeout_ms + CLAIM_MS;
    core->sequence = (core->sequence + 1) & 0xffffff;
    batch->lock = (struct toc_claim_lock){
        .token = (uint64_t)options->node_id << 24 | core->sequence,
        .now_ms = now_ms,
        .lock_until_ms = now_ms + batch->call_ms + options->margin_ms,
        .exec_node = options->node_id};
    if (batch->lock.token == 0)
        batch->lock.token = 1;
}

static void
prepare(struct exec_core *core)
{
    struct exec_batch *batch = &core->batch;

    take_lock(core, batch->items[0]->call_timeout_ms);
    sort(core);
    for (size_t i = 0; i < batch->n; i++) {
        struct exec_item *item = batch->items[i];

        batch->claims[i] = (struct toc_claim){
            .ref = toc_task_ref_of(&item->task),
            .sched_node = item->task.sched_node,
            .want_row = !item->has_payload || item->spec_bad};
    }
    batch->failures = 0;
    batch->retry_ns = 0;
}

static size_t
room(const struct exec_core *core)
{
    size_t open = atomic_load(&core->attempts);
    size_t max = core->options.attempts_max;

    if (open >= max)
        return 0;
    return max - open < EXEC_CLAIMS_MAX ? max - open : EXEC_CLAIMS_MAX;
}

void
exec_claims_gather(struct exec_core *core, int64_t now_ms)
{
    size_t max = room(core);

    if (max == 0 || !exec_session_holds(core))
        return;
    exec_targets_begin_round(&core->targets);
    gather_aside(core, max);
    for (int p = 0; p < TOC_PRIORITIES; p++)
        gather_priority(core, (enum toc_priority)p, max, now_ms);
    if (core->batch.n > 0)
        prepare(core);
}

void
exec_claims_put_back(struct exec_core *core)
{
    struct exec_batch *batch = &core->batch;

    for (size_t i = 0; i < batch->n; i++)
        put_back(core, batch->items[i]);
    batch->n = 0;
}

void
exec_claims_put_all_back(struct exec_core *core)
{
    exec_claims_put_back(core);
    for (size_t i = 0; i < core->aside.n; i++)
        put_back(core, core->aside.items[i]);
    core->aside.n = 0;
}

/* ---- trying ---------------------------------------------------------- */

/* The claim took effect, but there is nothing to call. */
static void
fail_unreadable(struct exec_core *core, struct exec_attempt *attempt)
{
    exec_targets_leave(&core->targets, attempt->item);
    exec_attempt_fail(attempt, "the task's spec cannot be read",
                      toc_clock_wall(core->options.clock).ms);
    exec_inbox_post(core->options.results, &attempt->link);
}

/* NULL: there is nothing to call. */
static struct exec_attempt *
win(struct exec_core *core, struct exec_item *item, const struct toc_task *row)
{
    struct exec_attempt *attempt;
    bool spec_ok;

    EXEC_COUNT(core->options.counters, won, 1);
    item->state = EXEC_ITEM_WON;
    exec_core_decided(core, item);
    atomic_fetch_add(&core->attempts, 1);
    attempt = exec_attempt_new(item, row, &core->batch.lock, &spec_ok);
    attempt->lock_until_boot_ns =
        core->batch.begun.ns +
        (core->batch.lock.lock_until_ms - core->batch.lock.now_ms) *
            TOC_NS_PER_MS;
    if (spec_ok)
        return attempt;
    fail_unreadable(core, attempt);
    return NULL;
}

/* The database's clock is behind ours. */
static void
put_off(struct exec_core *core, struct exec_item *item)
{
    int64_t now_ms = toc_clock_wall(core->options.clock).ms;
    int64_t delay_ms = 1;

    EXEC_COUNT(core->options.counters, early, 1);
    for (unsigned i = 1; i < item->early && delay_ms < EARLY_MS_MAX; i++)
        delay_ms *= 2;
    item->early++;
    item->wake_ms = now_ms + delay_ms;
    put_back(core, item);
}

static void
settle(struct exec_core *core)
{
    struct exec_batch *batch = &core->batch;
    struct exec_attempt *won[EXEC_CLAIMS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < batch->n; i++) {
        struct exec_item *item = batch->items[i];

        switch (batch->claims[i].result) {
        case TOC_CLAIM_WON:
            won[n] = win(core, item, batch->claims[i].row);
            if (won[n] != NULL)
                n++;
            break;
        case TOC_CLAIM_TAKEN:
            lose(core, item);
            break;
        case TOC_CLAIM_EARLY:
            put_off(core, item);
            break;
        }
    }
    batch->n = 0;
    exec_launch(core, won, n);
}

static void
claim_apart(struct exec_core *core)
{
    for (size_t i = 0; i < core->batch.n; i++)
        core->batch.items[i]->alone = true;
    exec_claims_put_back(core);
}

/* The database refuses this one claim, and would again. The row is as it was:
 * the sweep looks after it. */
static void
give_up(struct exec_core *core, const struct toc_error *err)
{
    struct exec_item *item = core->batch.items[0];
    char id[TOC_TASK_ID_TEXT_MAX];

    TOC_LOG(ERROR, "claim.refused", F_MSG("dropped the hint"), F_ERR(err),
            F_STR("task", toc_task_id_format(item->task.id, id)));
    EXEC_COUNT(core->options.counters, dropped, 1);
    exec_core_decided(core, item);
    exec_item_free(item);
    core->batch.n = 0;
}

static void
try_later(struct exec_core *core, const struct toc_error *err)
{
    struct exec_batch *batch = &core->batch;
    int64_t wait_ms = BACKOFF_MS_MIN;
    struct toc_mono now = toc_clock_mono(core->options.clock);

    for (unsigned i = 0; i < batch->failures && wait_ms < BACKOFF_MS_MAX; i++)
        wait_ms *= 2;
    if (wait_ms > BACKOFF_MS_MAX)
        wait_ms = BACKOFF_MS_MAX;
    batch->failures++;
    batch->retry_ns = toc_mono_add_ms(now, wait_ms).ns;
    TOC_LOG(WARN, "claim.failed", F_MSG("trying again"), F_ERR(err),
            F_UINT("claims", batch->n), F_INT("wait_ms", wait_ms));
}

static bool
lock_is_used_up(const struct exec_core *core)
{
    int64_t passed_ns =
        toc_clock_boot(core->options.clock).ns - core->batch.begun.ns;

    return passed_ns >= core->batch.call_ms * TOC_NS_PER_MS;
}

static void
failed(struct exec_core *core, enum toc_status st, const struct toc_error *err)
{
    if (toc_status_retryable(st)) {
        try_later(core, err);
        if (!lock_is_used_up(core))
            return;
        exec_claims_put_back(core);
    } else if (core->batch.n > 1) {
        claim_apart(core);
    } else {
        give_up(core, err);
    }
}

void
exec_claims_try(struct exec_core *core)
{
    struct exec_batch *batch = &core->batch;
    struct toc_error err = {0};
    enum toc_status st;

    toc_arena_reset(&batch->rows);
    EXEC_COUNT(core->options.counters, claims, 1);
    if (atomic_load(&core->claim_since_ns) == 0)
        atomic_store(&core->claim_since_ns,
                     toc_clock_mono(core->options.clock).ns);
    st = toc_store_claim(core->options.store, batch->claims, batch->n,
                         &batch->lock, &batch->rows, &err);
    if (!toc_status_retryable(st))
        atomic_store(&core->claim_since_ns, 0);
    if (st == TOC_OK)
        settle(core);
    else
        failed(core, st, &err);
}
