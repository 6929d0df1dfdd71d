#include "executor/results.h"

#include "common/base/assert.h"
#include "common/base/log.h"
#include "common/base/status.h"

#define GATHER_MS_MAX 100
#define GATHER_N 128
#define GATHER_FROM_PER_SEC 200 /* below: each at once */
#define STEP_MS_MAX 1000
#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 1000
#define RENEW_MS 60000
/* A lock that ends sooner than this is prolonged before results are written. To
 * it is added what the next renewal and the write before it may take: as much
 * as the last call of the store, each; the longer one when it has just failed.
 */
#define RENEW_AHEAD_MS 1000
#define RENEW_AHEAD_FAILING_MS 4000

static struct exec_attempt *
held_of(const struct toc_heap_node *node)
{
    return toc_container_of(node, struct exec_attempt, held);
}

static bool
sooner(const struct toc_heap_node *a, const struct toc_heap_node *b)
{
    return held_of(a)->write_from_ns < held_of(b)->write_from_ns;
}

void
exec_results_init(struct exec_results *results)
{
    *results =
        (struct exec_results){.pace = {.from_per_sec = GATHER_FROM_PER_SEC,
                                       .batch_n = GATHER_N,
                                       .ms_max = GATHER_MS_MAX}};
    exec_inbox_init(&results->inbox);
    toc_heap_init(&results->held, sooner);
    toc_list_init(&results->waiting);
}

static struct exec_attempt *
attempt_of(struct toc_link *link)
{
    return toc_container_of(link, struct exec_attempt, link);
}

static void
free_slot(struct exec_results *results, struct exec_attempt *attempt)
{
    if (attempt->slot != NULL)
        exec_core_slot_free(results->options.core, attempt->slot);
    attempt->slot = NULL;
}

static void
gone(struct exec_results *results, struct exec_attempt *attempt)
{
    free_slot(results, attempt);
    exec_attempt_free(attempt);
    exec_core_attempt_gone(results->options.core);
}

/* ---- arrival --------------------------------------------------------- */

static void
admit(struct exec_results *results, struct exec_attempt *attempt,
      int64_t now_ns)
{
    if (results->n_waiting == 0)
        results->oldest_ns = now_ns;
    toc_list_push(&results->waiting, &attempt->link);
    if (results->n_waiting == 0 ||
        attempt->lock_until_ms < results->first_end_ms)
        results->first_end_ms = attempt->lock_until_ms;
    results->n_waiting++;
}

/* It may be for minutes: without what only the call needed. */
static void
hold(struct exec_results *results, struct exec_attempt *attempt)
{
    toc_arena_done(&attempt->arena);
    attempt->task.spec = attempt->task.payload = (struct toc_str){NULL, 0};
    attempt->spec = (struct toc_spec){.n_headers = 0};
    toc_heap_insert(&results->held, &attempt->held);
}

static void
admit_held(struct exec_results *results, int64_t now_ns, int64_t boot_ns)
{
    struct toc_heap_node *node;

    while ((node = toc_heap_min(&results->held)) != NULL &&
           held_of(node)->write_from_ns <= boot_ns) {
        (void)toc_heap_pop(&results->held);
        free_slot(results, held_of(node));
        admit(results, held_of(node), now_ns);
    }
}

static void
take(struct exec_results *results, int64_t now_ns, int64_t boot_ns)
{
    struct toc_link posted, *link;
    size_t n = 0;

    toc_list_init(&posted);
    exec_inbox_take(&results->inbox, &posted);
    while ((link = toc_list_pop(&posted)) != NULL) {
        struct exec_attempt *attempt = attempt_of(link);

        if (attempt->write_from_ns > boot_ns) {
            hold(results, attempt);
        } else {
            free_slot(results, attempt);
            admit(results, attempt, now_ns);
        }
        n++;
    }
    admit_held(results, now_ns, boot_ns);
    exec_pace_note(&results->pace, n, now_ns);
}

static int64_t
gather_until(const struct exec_results *results)
{
    return results->oldest_ns + exec_pace_gather_ns(&results->pace);
}

/* While results gather they are left in the inbox, whose bell then rings once,
 * not for each. */
static bool
gathered(struct exec_results *results, int64_t now_ns)
{
    return results->n_waiting >= GATHER_N || results->alone ||
           atomic_load(&results->hurry) || now_ns >= gather_until(results);
}

static void
fill(struct exec_results *results, int64_t now_ns)
{
    size_t max = results->alone ? 1 : EXEC_RESULTS_MAX;
    struct toc_link *link;

    while (results->n < max &&
           (link = toc_list_pop(&results->waiting)) != NULL) {
        results->batch[results->n++] = attempt_of(link);
        results->n_waiting--;
    }
    results->oldest_ns = now_ns;
    results->failures = 0;
    results->retry_ns = 0;
    if (results->n_waiting == 0)
        results->alone = false;
}

/* ---- renewing locks -------------------------------------------------- */

static void
add_if_ending(struct exec_renewal *renewal, struct exec_attempt *attempt,
              int64_t before_ms)
{
    if (attempt->lock_until_ms >= before_ms || renewal->n == EXEC_RENEWALS_MAX)
        return;
    renewal->attempts[renewal->n] = attempt;
    renewal->refs[renewal->n] = attempt->finish.ref;
    renewal->tokens[renewal->n] = attempt->token;
    renewal->n++;
}

static int64_t
ahead_ms(const struct exec_results *results)
{
    int64_t ms = RENEW_AHEAD_MS;

    if (results->failures > 0)
        ms = RENEW_AHEAD_FAILING_MS;
    return ms + 2 * results->took_ms;
}

/* What waits is many thousands at worst: looked through only when there is
 * something to find. */
static void
find_ending_waiting(struct exec_results *results, int64_t before_ms,
                    struct exec_renewal *renewal)
{
    int64_t first_ms = INT64_MAX;
    struct toc_link *link;

    if (results->n_waiting == 0 || results->first_end_ms >= before_ms)
        return;
    for (link = results->waiting.next; link != &results->waiting;
         link = link->next) {
        size_t n = renewal->n;

        add_if_ending(renewal, attempt_of(link), before_ms);
        if (renewal->n == n && attempt_of(link)->lock_until_ms < first_ms)
            first_ms = attempt_of(link)->lock_until_ms;
    }
    results->first_end_ms = first_ms;
}

static void
find_ending(struct exec_results *results, int64_t now_ms,
            struct exec_renewal *renewal)
{
    int64_t before_ms = now_ms + ahead_ms(results);

    renewal->n = 0;
    for (size_t i = 0; i < results->n; i++)
        add_if_ending(renewal, results->batch[i], before_ms);
    for (size_t i = 0; i < results->held.len; i++)
        add_if_ending(renewal, held_of(results->held.nodes[i]), before_ms);
    find_ending_waiting(results, before_ms, renewal);
}

/* Nothing of the batch is lost: all of it waits. */
static int64_t
wait_after_failure(struct exec_results *results)
{
    int64_t wait_ms = BACKOFF_MS_MIN;
    struct toc_mono now = toc_clock_mono(results->options.clock);

    for (unsigned i = 0; i < results->failures && wait_ms < BACKOFF_MS_MAX; i++)
        wait_ms *= 2;
    if (wait_ms > BACKOFF_MS_MAX)
        wait_ms = BACKOFF_MS_MAX;
    results->failures++;
    results->retry_ns = toc_mono_add_ms(now, wait_ms).ns;
    return wait_ms;
}

static void
note_time(struct exec_results *results, struct toc_mono begun)
{
    results->took_ms =
        (toc_clock_mono(results->options.clock).ns - begun.ns) / TOC_NS_PER_MS;
}

/* False: a renewal was tried, and the step is over. */
static bool
locks_are_long(struct exec_results *results, int64_t now_ms)
{
    struct exec_renewal *renewal = &results->renewal;
    struct toc_error err = {0};
    int64_t until_ms = now_ms + RENEW_MS;
    size_t renewed = 0;
    struct toc_mono begun;
    enum toc_status st;

    if (results->renewed) {
        results->renewed = false;
        return true;
    }
    find_ending(results, now_ms, renewal);
    if (renewal->n == 0)
        return true;
    begun = toc_clock_mono(results->options.clock);
    st = toc_store_renew(results->options.store, renewal->refs, renewal->tokens,
                         renewal->n, until_ms, &renewed, &err);
    note_time(results, begun);
    if (st != TOC_OK) {
        int64_t wait_ms = wait_after_failure(results);

        results->first_end_ms = 0; /* look again */
        TOC_LOG(WARN, "lock.renew_failed", F_MSG("trying again"), F_ERR(&err),
                F_UINT("locks", renewal->n), F_INT("wait_ms", wait_ms));
        return false;
    }
    EXEC_COUNT(results->options.counters, renewed, renewed);
    for (size_t i = 0; i < renewal->n; i++)
        renewal->attempts[i]->lock_until_ms = until_ms;
    results->renewed = true;
    return false;
}

/* ---- writing --------------------------------------------------------- */

static void
count_kind(struct exec_counters *counters, enum toc_finish_kind kind)
{
    switch (kind) {
    case TOC_FINISH_DONE:
        EXEC_COUNT(counters, done, 1);
        break;
    case TOC_FINISH_SKIPPED:
        EXEC_COUNT(counters, skipped, 1);
        break;
    case TOC_FINISH_RETRY:
    case TOC_FINISH_SNOOZE:
        EXEC_COUNT(counters, retried, 1);
        break;
    case TOC_FINISH_DEAD:
        EXEC_COUNT(counters, dead, 1);
        break;
    case TOC_FINISH_GIVE_BACK:
        break;
    }
}

static void
log_dead(const struct exec_attempt *attempt)
{
    char id[TOC_TASK_ID_TEXT_MAX];

    TOC_LOG(WARN, "task.dead", F_MSG("became a dead letter"),
            F_STR("task", toc_task_id_format(attempt->task.id, id)),
            F_SPAN("biz_type", attempt->task.biz_type),
            F_SPAN("reason", attempt->finish.reason),
            F_SPAN("error", attempt->finish.error));
}

/* A late answer is history: it is told, and changes nothing. */
static void
log_lost(const struct exec_attempt *attempt)
{
    char id[TOC_TASK_ID_TEXT_MAX];

    TOC_LOG(WARN, "result.late",
            F_MSG("the lock was not ours any more, nothing changed"),
            F_STR("task", toc_task_id_format(attempt->task.id, id)),
            F_UINT("attempt", attempt->task.attempt + 1),
            F_STR("result", toc_result_text(attempt->finish.outcome)));
}

static void
account(struct exec_results *results, struct exec_attempt *attempt,
        enum toc_finish_result result)
{
    struct exec_counters *counters = results->options.counters;

    switch (result) {
    case TOC_FINISH_OK:
        count_kind(counters, attempt->finish.kind);
        if (attempt->finish.kind == TOC_FINISH_DEAD)
            log_dead(attempt);
        break;
    case TOC_FINISH_CANCELLED:
        EXEC_COUNT(counters, cancelled, 1);
        break;
    case TOC_FINISH_LOST:
        EXEC_COUNT(counters, lost, 1);
        log_lost(attempt);
        break;
    }
}

/* The store refuses the batch, and would again: one by one, so that only the
 * culprit is given up. Its lock expires and the sweep looks after the row. */
static void
refused(struct exec_results *results, const struct toc_error *err)
{
    char id[TOC_TASK_ID_TEXT_MAX];

    if (results->n == 1) {
        TOC_LOG(
            ERROR, "result.refused",
            F_MSG("gave the result up, its lock will expire"), F_ERR(err),
            F_STR("task", toc_task_id_format(results->batch[0]->task.id, id)));
        EXEC_COUNT(results->options.counters, unwritten, 1);
        gone(results, results->batch[0]);
    } else {
        for (size_t i = results->n; i-- > 0;) {
            toc_list_insert_before(results->waiting.next,
                                   &results->batch[i]->link);
            results->n_waiting++;
        }
        results->alone = true;
        results->first_end_ms = 0; /* theirs are not counted in */
    }
    results->n = 0;
}

static void
written(struct exec_results *results, const struct toc_finish *items)
{
    for (size_t i = 0; i < results->n; i++) {
        account(results, results->batch[i], items[i].result);
        gone(results, results->batch[i]);
    }
    results->n = 0;
}

static void
keep(struct exec_results *results, const struct toc_error *err)
{
    int64_t wait_ms = wait_after_failure(results);

    TOC_LOG(WARN, "result.write_failed", F_MSG("kept, trying again"),
            F_ERR(err), F_UINT("results", results->n + results->n_waiting),
            F_INT("wait_ms", wait_ms));
}

static void
write_back(struct exec_results *results, int64_t now_ms)
{
    struct toc_finish items[EXEC_RESULTS_MAX];
    struct toc_mono begun = toc_clock_mono(results->options.clock);
    struct toc_error err = {0};
    enum toc_status st;

    for (size_t i = 0; i < results->n; i++)
        items[i] = results->batch[i]->finish;
    EXEC_COUNT(results->options.counters, writes, 1);
    st = toc_store_finish(results->options.store, items, results->n, now_ms,
                          &err);
    note_time(results, begun);
    if (st == TOC_OK)
        written(results, items);
    else if (toc_status_retryable(st))
        keep(results, &err);
    else
        refused(results, &err);
}

/* When there is something to do though nothing is posted. */
static int64_t
look_again_ns(const struct exec_results *results, int64_t now_ns,
              int64_t boot_ns)
{
    const struct toc_heap_node *first = toc_heap_min(&results->held);
    int64_t wait_ns = STEP_MS_MAX * TOC_NS_PER_MS;

    if (first != NULL && held_of(first)->write_from_ns - boot_ns < wait_ns)
        wait_ns = held_of(first)->write_from_ns - boot_ns;
    return now_ns + wait_ns;
}

int64_t
exec_results_step(struct exec_results *results)
{
    const struct toc_clock *clk = results->options.clock;
    int64_t now_ns = toc_clock_mono(clk).ns;
    int64_t boot_ns = toc_clock_boot(clk).ns;
    int64_t now_ms = toc_clock_wall(clk).ms;

    if (results->n_waiting == 0 || results->failures > 0)
        take(results, now_ns, boot_ns);
    if (results->n == 0) {
        if (results->n_waiting == 0)
            return look_again_ns(results, now_ns, boot_ns);
        if (!gathered(results, now_ns))
            return gather_until(results);
        take(results, now_ns, boot_ns);
        fill(results, now_ns);
    }
    if (results->retry_ns > now_ns)
        return results->retry_ns;
    if (locks_are_long(results, now_ms))
        write_back(results, now_ms);
    return results->retry_ns > now_ns ? results->retry_ns : now_ns;
}

void
exec_results_done(struct exec_results *results)
{
    size_t left;
    struct toc_link *link;
    struct toc_heap_node *node;

    take(results, results->pace.slice_ns, 0);
    if (results->held.len > 0)
        TOC_LOG(INFO, "result.left",
                F_MSG("calls may still run, their locks will expire"),
                F_UINT("left", results->held.len));
    while ((node = toc_heap_pop(&results->held)) != NULL)
        gone(results, held_of(node));
    left = results->n + results->n_waiting;
    if (left > 0)
        TOC_LOG(ERROR, "result.unwritten",
                F_MSG("stopped with results not written, their locks expire"),
                F_UINT("results", left));
    for (size_t i = 0; i < results->n; i++)
        gone(results, results->batch[i]);
    results->n = 0;
    while ((link = toc_list_pop(&results->waiting)) != NULL)
        gone(results, attempt_of(link));
    toc_heap_done(&results->held);
    exec_inbox_done(&results->inbox);
}
