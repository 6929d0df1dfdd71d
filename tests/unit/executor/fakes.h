/*
 * Ports for tests of the executor, in memory and on one thread: a store of
 * rows, calls that a test answers by hand, a bus of messages, a session. And a
 * rig that has a lane, the core and the results stand on them; rig_run makes
 * them step through simulated milliseconds.
 */
#ifndef TOC_TESTS_UNIT_EXECUTOR_FAKES_H
#define TOC_TESTS_UNIT_EXECUTOR_FAKES_H

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/clock/sim/clock_sim.h"
#include "common/model/hint.h"
#include "common/model/spec.h"
#include "executor/core.h"
#include "executor/lane.h"
#include "executor/results.h"

#include "tests/support/toc_check.h"

#include <string.h>

#define FAKE_START_MS INT64_C(1800000000000)
#define FAKE_ROWS_MAX 8192
#define FAKE_CALLS_MAX 8192
#define FAKE_MESSAGES_MAX 8192
#define FAKE_PARTITIONS 4
#define FAKE_NODE 7

/* ---- store ----------------------------------------------------------- */

struct fake_store {
    struct toc_store port;
    const struct toc_clock *clk;
    struct toc_task rows[FAKE_ROWS_MAX];
    struct toc_finish last[FAKE_ROWS_MAX]; /* by row */
    char *texts[FAKE_ROWS_MAX][2]; /* its id and its spec, ours to free */
    char errors[FAKE_ROWS_MAX][64];
    char reasons[FAKE_ROWS_MAX][64];
    size_t n;
    int64_t behind_ms; /* the database's clock is behind by */
    /* The next operations fail so, n times; applied: they took effect. */
    unsigned fail_claims, fail_finishes, fail_renewals, fail_nows;
    enum toc_status fail_as;
    bool applied;
    const struct toc_task *poison; /* an operation with this row is refused */
    int64_t claim_takes_ms, finish_takes_ms, renew_takes_ms;
    struct toc_clock_sim *sim;
    /* What was seen. */
    unsigned claims, finishes, renewals;
    size_t claims_n_max, finish_n_max;
    struct toc_claim_lock lock; /* of the last claim */
};

static inline struct toc_task *
fake_row(struct fake_store *store, struct toc_task_id id)
{
    for (size_t i = 0; i < store->n; i++)
        if (toc_task_id_cmp(store->rows[i].id, id) == 0)
            return &store->rows[i];
    return NULL;
}

static inline enum toc_status
fake_fails(struct fake_store *store, unsigned *left, struct toc_error *reterr)
{
    if (*left == 0)
        return TOC_OK;
    (*left)--;
    return toc_error_set(reterr, store->fail_as, "fake", 0, "as told");
}

static inline enum toc_claim_result
fake_claim_one(struct fake_store *store, struct toc_claim *claim,
               const struct toc_claim_lock *lock, bool apply)
{
    struct toc_task *row = fake_row(store, claim->ref.id);
    int64_t db_ms = toc_clock_wall(store->clk).ms - store->behind_ms;

    if (row == NULL)
        return TOC_CLAIM_TAKEN;
    if (row->state == TOC_STATE_EXECUTING)
        return row->lock_token == lock->token ? TOC_CLAIM_WON : TOC_CLAIM_TAKEN;
    if ((row->state != TOC_STATE_INIT && row->state != TOC_STATE_RETRY) ||
        row->version != claim->ref.version)
        return TOC_CLAIM_TAKEN;
    if (row->due_ms > lock->now_ms || row->due_ms > db_ms)
        return TOC_CLAIM_EARLY;
    if (apply) {
        row->state = TOC_STATE_EXECUTING;
        row->lock_token = lock->token;
        row->lock_until_ms = lock->lock_until_ms;
    }
    return TOC_CLAIM_WON;
}

static inline enum toc_status
fake_claim(void *self, struct toc_claim *claims, size_t n,
           const struct toc_claim_lock *lock, struct toc_arena *arena,
           struct toc_error *reterr)
{
    struct fake_store *store = self;
    bool fails = store->fail_claims > 0;

    store->claims++;
    store->lock = *lock;
    if (n > store->claims_n_max)
        store->claims_n_max = n;
    for (size_t i = 0; i < n; i++) {
        /* What the real store asks of its caller. */
        for (size_t k = 0; k < i; k++)
            ck_assert_int_ne(toc_task_ref_cmp(&claims[i].ref, &claims[k].ref),
                             0);
        if (store->poison != NULL &&
            toc_task_id_cmp(store->poison->id, claims[i].ref.id) == 0)
            return toc_error_set(reterr, TOC_INTERNAL, "fake", 0, "poison");
    }
    for (size_t i = 0; i < n; i++) {
        struct toc_task *row = fake_row(store, claims[i].ref.id);

        claims[i].result =
            fake_claim_one(store, &claims[i], lock, !fails || store->applied);
        claims[i].row = NULL;
        if (claims[i].result == TOC_CLAIM_WON && claims[i].want_row) {
            claims[i].row = toc_arena_alloc(arena, sizeof *row);
            *claims[i].row = *row;
        }
    }
    toc_clock_sim_advance_ns(store->sim, store->claim_takes_ms * TOC_NS_PER_MS);
    return fake_fails(store, &store->fail_claims, reterr);
}

static inline enum toc_state
fake_state_after(const struct toc_finish *item)
{
    switch (item->kind) {
    case TOC_FINISH_DONE:
        return TOC_STATE_SUCCESS;
    case TOC_FINISH_SKIPPED:
        return TOC_STATE_SKIPPED;
    case TOC_FINISH_DEAD:
        return TOC_STATE_DEAD;
    case TOC_FINISH_GIVE_BACK:
        return TOC_STATE_INIT;
    case TOC_FINISH_RETRY:
    case TOC_FINISH_SNOOZE:
        break;
    }
    return TOC_STATE_RETRY;
}

static inline void
fake_finish_one(struct fake_store *store, struct toc_finish *item)
{
    struct toc_task *row = fake_row(store, item->ref.id);
    size_t i = row == NULL ? 0 : (size_t)(row - store->rows);

    item->result = TOC_FINISH_LOST;
    /* An expired lock is the sweep's. */
    if (row != NULL && row->lock_until_ms <= toc_clock_wall(store->clk).ms)
        return;
    if (row == NULL || row->state != TOC_STATE_EXECUTING ||
        row->lock_token != item->token || row->version != item->ref.version)
        return;
    item->result = TOC_FINISH_OK;
    row->state = fake_state_after(item);
    row->version++;
    row->lock_token = 0;
    row->called_ms = item->called_ms;
    if (item->kind == TOC_FINISH_RETRY || item->kind == TOC_FINISH_SNOOZE)
        row->due_ms = row->slot_ms = item->due_ms;
    if (item->kind == TOC_FINISH_RETRY)
        row->attempt = item->attempt;
    store->last[i] = *item;
    toc_copy(store->errors[i], sizeof store->errors[i], item->error);
    toc_copy(store->reasons[i], sizeof store->reasons[i], item->reason);
}

static inline enum toc_status
fake_finish(void *self, struct toc_finish *items, size_t n, int64_t now_ms,
            struct toc_error *reterr)
{
    struct fake_store *store = self;

    (void)now_ms;
    store->finishes++;
    if (n > store->finish_n_max)
        store->finish_n_max = n;
    for (size_t i = 0; i < n; i++)
        if (store->poison != NULL &&
            toc_task_id_cmp(store->poison->id, items[i].ref.id) == 0)
            return toc_error_set(reterr, TOC_INTERNAL, "fake", 0, "poison");
    toc_clock_sim_advance_ns(store->sim,
                             store->finish_takes_ms * TOC_NS_PER_MS);
    if (store->fail_finishes == 0)
        for (size_t i = 0; i < n; i++)
            fake_finish_one(store, &items[i]);
    return fake_fails(store, &store->fail_finishes, reterr);
}

static inline enum toc_status
fake_renew(void *self, const struct toc_task_ref *refs, const uint64_t *tokens,
           size_t n, int64_t lock_until_ms, size_t *ret_renewed,
           struct toc_error *reterr)
{
    struct fake_store *store = self;
    enum toc_status st = fake_fails(store, &store->fail_renewals, reterr);
    size_t renewed = 0;

    store->renewals++;
    if (st != TOC_OK)
        return st;
    for (size_t i = 0; i < n; i++) {
        struct toc_task *row = fake_row(store, refs[i].id);

        if (row == NULL || row->lock_token != tokens[i] ||
            row->lock_until_ms <= toc_clock_wall(store->clk).ms)
            continue;
        row->lock_until_ms = lock_until_ms;
        renewed++;
    }
    toc_clock_sim_advance_ns(store->sim, store->renew_takes_ms * TOC_NS_PER_MS);
    *ret_renewed = renewed;
    return TOC_OK;
}

static inline enum toc_status
fake_now(void *self, int64_t *ret_ms, struct toc_error *reterr)
{
    struct fake_store *store = self;

    *ret_ms = toc_clock_wall(store->clk).ms - store->behind_ms;
    return fake_fails(store, &store->fail_nows, reterr);
}

static inline void
fake_store_init(struct fake_store *store, struct toc_clock_sim *sim)
{
    static const struct toc_store_ops ops = {.name = "fake",
                                             .claim = fake_claim,
                                             .finish = fake_finish,
                                             .now = fake_now,
                                             .renew = fake_renew};

    store->port = (struct toc_store){.ops = &ops, .self = store};
    store->clk = &sim->clock;
    store->sim = sim;
}

/* ---- tasks and hints ------------------------------------------------- */

struct fake_task {
    int64_t due_ms;
    enum toc_priority priority;
    const char *target; /* NULL: grpc://shop:1 */
    int64_t timeout_ms; /* 0: the default */
    uint32_t batch_max;
    bool at_most_once;
    uint16_t max_retries; /* 0: the default */
    const char *payload;
};

/* Stores a row; its payload is borrowed. */
static inline struct toc_task *
fake_task(struct fake_store *store, const struct fake_task *like)
{
    struct toc_task *row = &store->rows[store->n];
    struct toc_spec spec = {.retry = toc_retry_default};
    struct toc_buf bytes = {0};
    char biz_id[32];

    ck_assert_uint_lt(store->n, FAKE_ROWS_MAX);
    toc_format(biz_id, sizeof biz_id, "%zu", store->n++);
    spec.target =
        toc_str_of(like->target != NULL ? like->target : "grpc://shop:1");
    spec.call_timeout_ms = like->timeout_ms;
    spec.batch_max = like->batch_max;
    spec.at_most_once = like->at_most_once;
    if (like->max_retries > 0)
        spec.retry.max_retries = like->max_retries;
    toc_spec_encode(&spec, &bytes);
    row->biz_type = TOC_STR("order");
    store->texts[store->n - 1][0] = toc_strdup(biz_id);
    store->texts[store->n - 1][1] = bytes.data;
    row->biz_id = toc_str_of(store->texts[store->n - 1][0]);
    row->name = TOC_STR("pay");
    row->key_hash = toc_key_hash_of(row->biz_type, row->biz_id, row->name);
    row->due_ms = row->slot_ms = like->due_ms;
    row->id = toc_task_id_make(row->key_hash, row->slot_ms, 1);
    row->slice = toc_slice_of(toc_key_shard(row->key_hash), like->priority);
    row->fire = row->version = 1;
    row->flags = like->at_most_once ? TOC_FLAG_AT_MOST_ONCE : 0;
    row->spec = toc_buf_view(&bytes);
    row->payload = toc_str_of(like->payload);
    return row;
}

/* ---- calls ----------------------------------------------------------- */

struct fake_invoke {
    struct toc_invoke port;
    struct toc_call *calls[FAKE_CALLS_MAX]; /* NULL: ended */
    size_t n;
    struct toc_clock_sim *sim;
    int64_t called_ms[FAKE_CALLS_MAX];
    char targets[FAKE_CALLS_MAX][48];
    size_t fires[FAKE_CALLS_MAX];
    bool answer_at_once;
    struct toc_answer answer; /* of those */
};

static inline void
fake_answer(struct fake_invoke *invoke, size_t i, struct toc_answer answer)
{
    struct toc_call *call = invoke->calls[i];

    ck_assert_ptr_nonnull(call);
    invoke->calls[i] = NULL;
    for (size_t k = 0; k < call->n; k++)
        call->fires[k].answer = answer;
    call->done(call);
}

static inline void
fake_start(void *self, struct toc_call *call)
{
    struct fake_invoke *invoke = self;
    size_t i = invoke->n++;

    ck_assert_uint_lt(i, FAKE_CALLS_MAX);
    invoke->calls[i] = call;
    invoke->called_ms[i] = toc_clock_wall(&invoke->sim->clock).ms;
    invoke->fires[i] = call->n;
    toc_copy(invoke->targets[i], sizeof invoke->targets[i], call->target);
    if (invoke->answer_at_once)
        fake_answer(invoke, i, invoke->answer);
}

static inline void
fake_cancel(void *self, struct toc_call *call)
{
    struct fake_invoke *invoke = self;

    for (size_t i = 0; i < invoke->n; i++)
        if (invoke->calls[i] == call)
            fake_answer(invoke, i,
                        (struct toc_answer){.kind = TOC_ANSWER_UNKNOWN});
}

static inline void
fake_cancel_all(void *self)
{
    struct fake_invoke *invoke = self;

    for (size_t i = 0; i < invoke->n; i++)
        if (invoke->calls[i] != NULL)
            fake_answer(invoke, i,
                        (struct toc_answer){.kind = TOC_ANSWER_UNKNOWN});
}

static inline void
fake_invoke_init(struct fake_invoke *invoke, struct toc_clock_sim *sim)
{
    static const struct toc_invoke_ops ops = {.name = "fake",
                                              .start = fake_start,
                                              .cancel = fake_cancel,
                                              .cancel_all = fake_cancel_all};

    invoke->port = (struct toc_invoke){&ops, invoke};
    invoke->sim = sim;
}

/* ---- bus ------------------------------------------------------------- */

struct fake_message {
    int16_t topic;
    int32_t partition;
    int64_t offset;
    struct toc_buf bytes;
};

struct fake_bus {
    struct toc_bus_consumer port;
    struct fake_message messages[FAKE_MESSAGES_MAX];
    size_t n, first;
    int64_t next[EXEC_TOPICS][FAKE_PARTITIONS]; /* offsets to be */
    int64_t marks[EXEC_TOPICS][FAKE_PARTITIONS];
    bool paused[EXEC_TOPICS];
    bool left;
    bool tell; /* a change of left, with the next poll */
    struct exec_lane *lane;
};

/* All partitions come or go, as the bus tells it inside a poll. */
static inline void
fake_rebalance(struct fake_bus *bus)
{
    enum toc_bus_event_kind kind =
        bus->left ? TOC_BUS_REVOKED : TOC_BUS_ASSIGNED;

    for (int16_t topic = 0; bus->tell && topic < EXEC_TOPICS; topic++)
        for (int32_t p = 0; p < FAKE_PARTITIONS; p++)
            exec_lane_rebalance(bus->lane, kind, topic, p, false);
    if (bus->tell && !bus->left)
        bus->first = 0; /* from the marks on */
    bus->tell = false;
}

static inline enum toc_status
fake_join(void *self, bool join, struct toc_error *reterr)
{
    struct fake_bus *bus = self;

    (void)reterr;
    ck_assert(bus->left == join);
    bus->left = !join;
    bus->tell = true;
    return TOC_OK;
}

static inline size_t
fake_poll(void *self, struct toc_bus_message *messages, size_t max,
          int64_t timeout_ms)
{
    struct fake_bus *bus = self;
    size_t n = 0;

    (void)timeout_ms;
    if (bus->lane != NULL)
        fake_rebalance(bus);
    for (size_t i = bus->first; !bus->left && i < bus->n && n < max; i++) {
        struct fake_message *from = &bus->messages[i];

        if (bus->paused[from->topic])
            break; /* simple: nothing overtakes */
        bus->first++;
        if (from->offset < bus->marks[from->topic][from->partition])
            continue;
        messages[n++] =
            (struct toc_bus_message){.topic = from->topic,
                                     .partition = from->partition,
                                     .offset = from->offset,
                                     .bytes = toc_buf_view(&from->bytes)};
    }
    return n;
}

static inline void
fake_release(void *self, struct toc_bus_message *message)
{
    (void)self;
    (void)message;
}

static inline void
fake_mark(void *self, int16_t topic, int32_t partition, int64_t next_offset)
{
    struct fake_bus *bus = self;

    ck_assert_int_ge(next_offset, bus->marks[topic][partition]);
    bus->marks[topic][partition] = next_offset;
}

static inline void
fake_pause(void *self, int16_t topic, bool paused)
{
    struct fake_bus *bus = self;

    bus->paused[topic] = paused;
}

static inline void
fake_bus_init(struct fake_bus *bus)
{
    static const struct toc_bus_consumer_ops ops = {.name = "fake",
                                                    .poll = fake_poll,
                                                    .release = fake_release,
                                                    .mark = fake_mark,
                                                    .pause = fake_pause,
                                                    .join = fake_join};

    bus->port = (struct toc_bus_consumer){&ops, bus};
}

static inline struct toc_buf *
fake_send(struct fake_bus *bus, int16_t topic, int32_t partition)
{
    struct fake_message *message = &bus->messages[bus->n++];

    ck_assert_uint_le(bus->n, FAKE_MESSAGES_MAX);
    message->topic = topic;
    message->partition = partition;
    message->offset = bus->next[topic][partition]++;
    return &message->bytes;
}

/* A message of n hints for the rows. */
static inline void
fake_hint(struct fake_bus *bus, int16_t topic, int32_t partition,
          struct toc_task *const *rows, size_t n, bool with_payload)
{
    struct toc_hint hints[TOC_HINTS_PER_MESSAGE_MAX];

    for (size_t i = 0; i < n; i++) {
        hints[i] =
            (struct toc_hint){.task = *rows[i], .has_payload = with_payload};
        if (!with_payload)
            hints[i].task.payload.ptr = NULL;
    }
    toc_hint_encode(hints, n, 3, fake_send(bus, topic, partition));
}

/* ---- session --------------------------------------------------------- */

struct fake_coord {
    struct toc_coord port;
    int64_t deadline_ns;
};

static inline int64_t
fake_deadline(void *self)
{
    return ((struct fake_coord *)self)->deadline_ns;
}

static inline void
fake_coord_init(struct fake_coord *coord)
{
    static const struct toc_coord_ops ops = {.name = "fake",
                                             .deadline_boot_ns = fake_deadline};

    coord->port = (struct toc_coord){&ops, coord};
    coord->deadline_ns = INT64_MAX;
}

/* ---- the rig --------------------------------------------------------- */

struct rig {
    struct toc_clock_sim sim;
    struct fake_store store;
    struct fake_invoke invoke;
    struct fake_bus bus;
    struct fake_coord coord;
    struct exec_counters counters;
    struct exec_core core;
    struct exec_results results;
    struct exec_lane lane;
};

static inline struct exec_core_options
rig_options(void)
{
    return (struct exec_core_options){.node_id = FAKE_NODE,
                                      .hints_max = 1000,
                                      .calls_max = 64,
                                      .target_calls_max = 16,
                                      .target_queue_max = 100,
                                      .attempts_max = 1000,
                                      .margin_ms = 2000};
}

static inline struct rig *
rig_new(struct exec_core_options options)
{
    struct rig *rig = TOC_NEW(struct rig);

    toc_clock_sim_init(&rig->sim, (struct toc_wall){FAKE_START_MS});
    fake_store_init(&rig->store, &rig->sim);
    fake_invoke_init(&rig->invoke, &rig->sim);
    fake_bus_init(&rig->bus);
    fake_coord_init(&rig->coord);
    exec_results_init(&rig->results);
    options.clock = &rig->sim.clock;
    options.store = &rig->store.port;
    options.invoke = &rig->invoke.port;
    options.coord = &rig->coord.port;
    options.results = &rig->results.inbox;
    options.counters = &rig->counters;
    exec_core_init(&rig->core, &options);
    rig->results.options =
        (struct exec_results_options){.clock = &rig->sim.clock,
                                      .store = &rig->store.port,
                                      .counters = &rig->counters,
                                      .core = &rig->core};
    exec_lane_init(&rig->lane, 0, &rig->core, &rig->counters, 1000, 1000);
    rig->lane.consumer = &rig->bus.port;
    rig->bus.lane = &rig->lane;
    rig->bus.tell = true;
    fake_rebalance(&rig->bus);
    return rig;
}

static inline int64_t
rig_now(const struct rig *rig)
{
    return toc_clock_wall(&rig->sim.clock).ms;
}

/* Steps the core and the results until both want to sleep. */
static inline void
rig_settle(struct rig *rig)
{
    int64_t now_ns, core_ns, results_ns;

    exec_lane_step(&rig->lane);
    do {
        core_ns = exec_core_step(&rig->core);
        results_ns = exec_results_step(&rig->results);
        now_ns = toc_clock_mono(&rig->sim.clock).ns;
    } while (core_ns <= now_ns || results_ns <= now_ns);
    exec_lane_apply_marks(&rig->lane);
}

/* ms simulated milliseconds pass, each with its steps. */
static inline void
rig_run(struct rig *rig, int64_t ms)
{
    rig_settle(rig);
    for (int64_t i = 0; i < ms; i++) {
        toc_clock_sim_advance_ns(&rig->sim, TOC_NS_PER_MS);
        rig_settle(rig);
    }
}

/* A message for it alone. */
static inline void
hint_one(struct rig *rig, struct toc_task *row, int32_t partition)
{
    fake_hint(&rig->bus, (int16_t)toc_slice_priority(row->slice), partition,
              &row, 1, true);
}

static inline struct toc_task *
task_in(struct rig *rig, int64_t ms)
{
    return fake_task(&rig->store,
                     &(struct fake_task){.due_ms = rig_now(rig) + ms,
                                         .priority = TOC_PRIORITY_NORMAL});
}

static inline uint64_t
rig_count(const _Atomic uint64_t *counter)
{
    return atomic_load(counter);
}

/* Ends everything as a stop does; whatever is left over shows in the sanitizer.
 */
static inline void
rig_free(struct rig *rig)
{
    atomic_store(&rig->core.draining, true);
    atomic_store(&rig->results.hurry, true);
    fake_cancel_all(&rig->invoke);
    rig_settle(rig);
    ck_assert(atomic_load(&rig->core.drained));
    ck_assert_uint_eq(atomic_load(&rig->core.calls), 0);
    exec_results_done(&rig->results);
    (void)exec_core_step(&rig->core); /* slots that the results gave back */
    ck_assert_uint_eq(atomic_load(&rig->core.attempts), 0);
    exec_core_done(&rig->core);
    exec_lane_done(&rig->lane);
    for (size_t i = 0; i < rig->bus.n; i++)
        toc_buf_done(&rig->bus.messages[i].bytes);
    for (size_t i = 0; i < rig->store.n; i++)
        for (size_t k = 0; k < 2; k++)
            toc_free(rig->store.texts[i][k]);
    toc_free(rig);
}

#endif
