/*
 * Ports for tests of the scheduler, in memory and on one thread: a store of
 * rows that a test fills and looks at, a bus that keeps messages and reports
 * them when told, a session with a deadline. Each can be made to fail.
 */
#ifndef TOC_TESTS_UNIT_SCHEDULER_FAKES_H
#define TOC_TESTS_UNIT_SCHEDULER_FAKES_H

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/bus/bus.h"
#include "common/clock/sim/clock_sim.h"
#include "common/coord/coord.h"
#include "common/model/hint.h"
#include "common/store/store.h"
#include "scheduler/shards.h"

#include "tests/support/toc_check.h"

#include <string.h>

#define FAKE_START_MS INT64_C(1800000000000)
#define FAKE_ROWS_MAX 70000
#define FAKE_MESSAGES_MAX 4000
#define FAKE_PARTITIONS 4

/* ---- store ------------------------------------------------------------- */

struct fake_store {
    struct toc_store port;
    struct toc_task rows[FAKE_ROWS_MAX];
    bool straggler[FAKE_ROWS_MAX];
    size_t n;
    int64_t low_ms[TOC_SHARDS];
    int64_t now_ms;          /* its clock */
    size_t keys[TOC_SHARDS]; /* that may be freed */
    unsigned fail;           /* the next so many operations fail, as fail_as */
    enum toc_status fail_as;
    struct toc_clock_sim *takes_of; /* a submit moves this clock ... */
    int64_t takes_ns;               /* ... by so much */
    bool applied;          /* a failing submit takes effect all the same */
    struct toc_str poison; /* a submit with this biz_id is refused for good */
    /* What cannot be read: these shards, at slots in [from, to). */
    bool broken[TOC_SHARDS], far_broken[TOC_SHARDS];
    int64_t broken_from_ms, broken_to_ms;
    size_t far[TOC_SHARDS]; /* far rows to be moved */
    /* What was seen. */
    unsigned broken_met, moves;
    unsigned loads, scans, frees, advances, submits, records, drops;
    size_t submit_rows_max, scan_rows_max;
    uint8_t contents[FAKE_ROWS_MAX][8];
};

static inline bool
fake_fails(struct fake_store *store, struct toc_error *reterr,
           enum toc_status *ret_st)
{
    if (store->fail == 0)
        return false;
    store->fail--;
    *ret_st = toc_error_set(reterr, store->fail_as, "fake", 1, "told to fail");
    return true;
}

/* Does a statement over [from, to) of the shard touch what is broken? */
static inline bool
fake_broken(struct fake_store *store, uint16_t shard, int64_t from_ms,
            int64_t to_ms)
{
    return store->broken[shard] && from_ms < store->broken_to_ms &&
           to_ms > store->broken_from_ms;
}

static inline enum toc_status
fake_met_broken(struct fake_store *store, struct toc_error *reterr)
{
    store->broken_met++;
    return toc_error_set(reterr, TOC_DATA_LOSS, "fake", 1034,
                         "the page is broken");
}

/* A business id whose key (order, id, pay) lies in the shard. */
static inline struct toc_str
fake_biz_id(uint16_t shard)
{
    static char ids[TOC_SHARDS][8];
    static bool made;

    for (unsigned i = 0; !made && i < 4000; i++) {
        char id[8];
        toc_format(id, sizeof id, "%u", i);
        toc_copy(ids[toc_key_shard(toc_key_hash_of(
                     TOC_STR("order"), toc_str_of(id), TOC_STR("pay")))],
                 sizeof id, toc_str_of(id));
    }
    if (!made) /* by the first caller, alone */
        made = true;
    ck_assert(ids[shard][0] != '\0');
    return toc_str_of(ids[shard]);
}

/* A row of shard (0 to 255). */
static inline struct toc_task *
fake_row(struct fake_store *store, uint16_t shard, enum toc_priority priority,
         int64_t due_ms)
{
    struct toc_task *task = &store->rows[store->n++];

    *task = (struct toc_task){
        .slice = toc_slice_of(shard, priority),
        .slot_ms = due_ms,
        .due_ms = due_ms,
        .created_ms = FAKE_START_MS,
        .state = TOC_STATE_INIT,
        .fire = 1,
        .version = 1,
        .biz_type = TOC_STR("order"),
        .biz_id = fake_biz_id(shard),
        .name = TOC_STR("pay"),
        .spec = TOC_STR("spec"),
        .payload = TOC_STR("{}"),
    };
    task->key_hash = toc_key_hash_of(task->biz_type, task->biz_id, task->name);
    task->id = toc_task_id_make(task->key_hash, due_ms, (uint32_t)store->n);
    return task;
}

static inline bool
fake_in(const uint16_t *slices, size_t n, uint16_t slice)
{
    for (size_t i = 0; i < n; i++)
        if (slices[i] == slice)
            return true;
    return false;
}

static inline bool
fake_waits(const struct toc_task *task)
{
    return task->state == TOC_STATE_INIT || task->state == TOC_STATE_RETRY;
}

static inline enum toc_status
fake_load(void *self, const uint16_t *slices, size_t n,
          const struct toc_slot_span *spans, size_t n_spans,
          toc_store_task_fn *fn, void *arg, struct toc_error *reterr)
{
    struct fake_store *store = self;
    enum toc_status st;

    store->loads++;
    if (fake_fails(store, reterr, &st))
        return st;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_spans; k++)
            if (fake_broken(store, toc_slice_shard(slices[i]),
                            spans[k].after_ms + 1, spans[k].to_ms + 1))
                return fake_met_broken(store, reterr);
    for (size_t i = 0; i < store->n; i++) {
        const struct toc_task *task = &store->rows[i];
        bool inside = false;
        for (size_t k = 0; k < n_spans; k++)
            inside = inside || (task->slot_ms > spans[k].after_ms &&
                                task->slot_ms <= spans[k].to_ms);
        if (inside && fake_waits(task) && fake_in(slices, n, task->slice))
            fn(arg, task);
    }
    return TOC_OK;
}

static inline enum toc_status
fake_scan(void *self, const uint16_t *slices, size_t n, int64_t from_ms,
          int64_t to_ms, toc_store_task_fn *fn, void *arg,
          struct toc_error *reterr)
{
    struct fake_store *store = self;
    enum toc_status st;
    size_t rows = 0;

    store->scans++;
    if (fake_fails(store, reterr, &st))
        return st;
    for (size_t i = 0; i < n; i++) {
        uint16_t shard = toc_slice_shard(slices[i]);
        int64_t low_ms = store->low_ms[shard];
        if (fake_broken(store, shard, low_ms > from_ms ? low_ms : from_ms,
                        to_ms))
            return fake_met_broken(store, reterr);
    }
    for (size_t i = 0; i < store->n; i++) {
        const struct toc_task *task = &store->rows[i];
        if (task->slot_ms >= from_ms && task->slot_ms < to_ms &&
            task->slot_ms >= store->low_ms[toc_slice_shard(task->slice)] &&
            !toc_state_ended(task->state) && fake_in(slices, n, task->slice)) {
            rows++;
            fn(arg, task);
        }
    }
    if (rows > store->scan_rows_max)
        store->scan_rows_max = rows;
    return TOC_OK;
}

static inline enum toc_status
fake_free_expired(void *self, const struct toc_task *tasks, size_t n,
                  int64_t now_ms, size_t *ret_freed, struct toc_error *reterr)
{
    struct fake_store *store = self;
    enum toc_status st;
    size_t freed = 0;

    store->frees++;
    if (fake_fails(store, reterr, &st))
        return st;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < store->n; k++) {
            struct toc_task *row = &store->rows[k];
            if (toc_task_id_cmp(row->id, tasks[i].id) != 0 ||
                row->version != tasks[i].version ||
                row->state != TOC_STATE_EXECUTING ||
                row->lock_until_ms >= now_ms)
                continue;
            row->state = TOC_STATE_RETRY;
            row->version++;
            freed++;
        }
    *ret_freed = freed;
    return TOC_OK;
}

static inline enum toc_status
fake_record_stragglers(void *self, uint16_t shard, int64_t before_ms,
                       size_t max, size_t *ret_waiting,
                       struct toc_error *reterr)
{
    struct fake_store *store = self;
    size_t waiting = 0;
    enum toc_status st;

    (void)max;
    store->records++;
    if (fake_fails(store, reterr, &st))
        return st;
    if (fake_broken(store, shard, store->low_ms[shard], before_ms))
        return fake_met_broken(store, reterr);
    for (size_t i = 0; i < store->n; i++) {
        const struct toc_task *task = &store->rows[i];
        if (toc_slice_shard(task->slice) != shard)
            continue;
        store->straggler[i] =
            !toc_state_ended(task->state) && task->slot_ms < before_ms;
        waiting += store->straggler[i];
    }
    *ret_waiting = waiting;
    return TOC_OK;
}

static inline enum toc_status
fake_scan_stragglers(void *self, const uint16_t *slices, size_t n,
                     toc_store_task_fn *fn, void *arg, struct toc_error *reterr)
{
    struct fake_store *store = self;
    enum toc_status st;

    if (fake_fails(store, reterr, &st))
        return st;
    for (size_t i = 0; i < store->n; i++)
        if (store->straggler[i] && fake_in(slices, n, store->rows[i].slice) &&
            fake_broken(store, toc_slice_shard(store->rows[i].slice),
                        store->rows[i].slot_ms, store->rows[i].slot_ms + 1))
            return fake_met_broken(store, reterr);
    for (size_t i = 0; i < store->n; i++)
        if (store->straggler[i] && !toc_state_ended(store->rows[i].state) &&
            fake_in(slices, n, store->rows[i].slice))
            fn(arg, &store->rows[i]);
    return TOC_OK;
}

static inline enum toc_status
fake_advance_low(void *self, const uint16_t *shards, size_t n, int64_t now_ms,
                 int64_t behind_ms, struct toc_error *reterr)
{
    struct fake_store *store = self;
    enum toc_status st;

    store->advances++;
    if (fake_fails(store, reterr, &st))
        return st;
    for (size_t i = 0; i < n; i++)
        if (fake_broken(store, shards[i], store->low_ms[shards[i]],
                        now_ms - behind_ms))
            return fake_met_broken(store, reterr);
    for (size_t i = 0; i < n; i++) {
        int64_t low = now_ms - behind_ms;
        for (size_t k = 0; k < store->n; k++)
            if (toc_slice_shard(store->rows[k].slice) == shards[i] &&
                !toc_state_ended(store->rows[k].state) &&
                !store->straggler[k] && store->rows[k].slot_ms < low &&
                store->rows[k].slot_ms >= store->low_ms[shards[i]])
                low = store->rows[k].slot_ms;
        if (low > store->low_ms[shards[i]])
            store->low_ms[shards[i]] = low;
    }
    return TOC_OK;
}

static inline enum toc_status
fake_list_shards(void *self, struct toc_arena *arena,
                 struct toc_shard_row **ret_shards, size_t *ret_n,
                 struct toc_error *reterr)
{
    struct fake_store *store = self;
    enum toc_status st;

    if (fake_fails(store, reterr, &st))
        return st;
    *ret_shards = toc_arena_calloc(arena, TOC_SHARDS, sizeof **ret_shards);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        (*ret_shards)[i] =
            (struct toc_shard_row){.shard = i, .low_ms = store->low_ms[i]};
    *ret_n = TOC_SHARDS;
    return TOC_OK;
}

static inline enum toc_status
fake_move_far(void *self, const uint16_t *slices, size_t n, int64_t now_ms,
              size_t max, size_t *ret_moved, struct toc_error *reterr)
{
    struct fake_store *store = self;
    enum toc_status st;
    size_t moved = 0;

    (void)now_ms;
    store->moves++;
    if (fake_fails(store, reterr, &st))
        return st;
    for (size_t i = 0; i < n; i++)
        if (store->far_broken[toc_slice_shard(slices[i])])
            return fake_met_broken(store, reterr);
    for (size_t i = 0; i < n && moved < max; i++) {
        size_t *far = &store->far[toc_slice_shard(slices[i])];
        size_t some = *far < max - moved ? *far : max - moved;
        *far -= some;
        moved += some;
    }
    *ret_moved = moved;
    return TOC_OK;
}

static inline void
fake_store_one(struct fake_store *store, struct toc_submit *item)
{
    struct toc_task *task = item->task;

    for (size_t i = 0; i < store->n; i++) {
        const struct toc_task *row = &store->rows[i];
        if (memcmp(&row->key_hash, &task->key_hash, sizeof row->key_hash) != 0)
            continue;
        item->stored = toc_task_ref_of(row);
        if (toc_task_id_cmp(row->id, task->id) == 0)
            item->result = TOC_SUBMIT_CREATED; /* our own, of the try before */
        else if (memcmp(store->contents[i], item->content, 8) == 0)
            item->result = TOC_SUBMIT_SAME;
        else
            item->result = TOC_SUBMIT_OTHER;
        return;
    }
    task->slot_ms = task->due_ms;
    task->id =
        toc_task_id_make(task->key_hash, task->slot_ms, (uint32_t)store->n + 1);
    memcpy(store->contents[store->n], item->content, 8);
    store->rows[store->n++] = *task;
    item->result = TOC_SUBMIT_CREATED;
}

static inline enum toc_status
fake_submit(void *self, struct toc_submit **items, size_t n, int64_t now_ms,
            struct toc_error *reterr)
{
    struct fake_store *store = self;
    enum toc_status st;
    bool fails = fake_fails(store, reterr, &st);

    (void)now_ms;
    store->submits++;
    if (store->takes_of != NULL)
        toc_clock_sim_advance_ns(store->takes_of, store->takes_ns);
    if (n > store->submit_rows_max)
        store->submit_rows_max = n;
    for (size_t i = 0; i < n && store->poison.len > 0; i++)
        if (toc_str_eq(items[i]->task->biz_id, store->poison))
            return toc_error_set(reterr, TOC_INVALID, "fake", 2, "poison");
    for (size_t i = 0; i < n && (!fails || store->applied); i++)
        fake_store_one(store, items[i]);
    return fails ? st : TOC_OK;
}

static inline enum toc_status
fake_gc_keys(void *self, uint16_t shard, int64_t now_ms, int64_t window_ms,
             size_t max, size_t *ret_freed, struct toc_error *reterr)
{
    struct fake_store *store = self;
    enum toc_status st;

    (void)now_ms;
    (void)window_ms;
    if (fake_fails(store, reterr, &st))
        return st;
    if (store->broken[shard])
        return fake_met_broken(store, reterr);
    *ret_freed = store->keys[shard] < max ? store->keys[shard] : max;
    store->keys[shard] -= *ret_freed;
    return TOC_OK;
}

static inline enum toc_status
fake_make_days(void *self, int64_t now_ms, struct toc_error *reterr)
{
    (void)self;
    (void)now_ms;
    (void)reterr;
    return TOC_OK;
}

static inline enum toc_status
fake_drop_days(void *self, int64_t now_ms, int64_t retention_ms,
               size_t *ret_dropped, struct toc_error *reterr)
{
    struct fake_store *store = self;

    (void)now_ms;
    (void)retention_ms;
    (void)reterr;
    store->drops++;
    *ret_dropped = 0;
    return TOC_OK;
}

static inline enum toc_status
fake_now(void *self, int64_t *ret_now_ms, struct toc_error *reterr)
{
    struct fake_store *store = self;
    enum toc_status st;

    if (fake_fails(store, reterr, &st))
        return st;
    *ret_now_ms = store->now_ms;
    return TOC_OK;
}

static inline struct fake_store *
fake_store_new(void)
{
    static const struct toc_store_ops ops = {
        .name = "fake",
        .submit = fake_submit,
        .load = fake_load,
        .scan = fake_scan,
        .move_far = fake_move_far,
        .free_expired = fake_free_expired,
        .record_stragglers = fake_record_stragglers,
        .scan_stragglers = fake_scan_stragglers,
        .advance_low = fake_advance_low,
        .list_shards = fake_list_shards,
        .gc_keys = fake_gc_keys,
        .make_days = fake_make_days,
        .drop_days = fake_drop_days,
        .now = fake_now,
    };
    struct fake_store *store = TOC_NEW(struct fake_store);

    store->port = (struct toc_store){.ops = &ops, .self = store};
    store->fail_as = TOC_UNAVAILABLE;
    return store;
}

/* ---- bus ------------------------------------------------------------------
 */

struct fake_message {
    char topic[32];
    int32_t partition;
    char *bytes;
    size_t len;
    void *opaque;
    bool reported;
    int64_t offset;
};

struct fake_bus {
    struct toc_bus port;
    toc_bus_report_fn *report;
    struct fake_message messages[FAKE_MESSAGES_MAX];
    size_t n;
    bool held;                                /* reports do not come */
    enum toc_status send_fails, report_fails; /* OK: they do not */
    size_t bytes_max; /* larger messages are refused for good; 0: none */
    int64_t ends[3][FAKE_PARTITIONS];
    int64_t committed[3][FAKE_PARTITIONS];
    bool committed_fails, ends_fail;
    unsigned committed_asked, ends_asked;
};

static inline size_t
fake_topic(const char *topic)
{
    return strcmp(topic, "core") == 0     ? 0
           : strcmp(topic, "normal") == 0 ? 1
                                          : 2;
}

static inline enum toc_status
fake_send(void *self, const char *topic, int32_t partition,
          struct toc_str message, void *opaque, struct toc_error *reterr)
{
    struct fake_bus *bus = self;
    struct fake_message *at = &bus->messages[bus->n];

    if (bus->send_fails != TOC_OK)
        return toc_error_set(reterr, bus->send_fails, "fake", 1, "refused");
    if (bus->bytes_max > 0 && message.len > bus->bytes_max)
        return toc_error_set(reterr, TOC_INVALID, "fake", 2, "too large");
    ck_assert_uint_lt(bus->n, FAKE_MESSAGES_MAX);
    toc_copy(at->topic, sizeof at->topic, toc_str_of(topic));
    at->partition = partition;
    at->bytes = toc_alloc(message.len + 1);
    memcpy(at->bytes, message.ptr, message.len);
    at->len = message.len;
    at->opaque = opaque;
    at->reported = false;
    bus->n++;
    return TOC_OK;
}

static inline size_t
fake_poll(void *self, int64_t timeout_ms)
{
    struct fake_bus *bus = self;
    size_t n = 0, until = bus->n;

    (void)timeout_ms;
    for (size_t i = 0; i < until && !bus->held; i++) {
        struct fake_message *at = &bus->messages[i];
        if (at->reported)
            continue;
        at->reported = true;
        at->offset = -1;
        if (bus->report_fails == TOC_OK)
            at->offset = bus->ends[fake_topic(at->topic)][at->partition]++;
        bus->report(NULL, at->opaque, bus->report_fails, at->offset);
        n++;
    }
    return n;
}

static inline enum toc_status
fake_end_offset(void *self, const char *topic, int32_t partition,
                int64_t timeout_ms, int64_t *ret_offset,
                struct toc_error *reterr)
{
    struct fake_bus *bus = self;

    (void)timeout_ms;
    bus->ends_asked++;
    if (bus->ends_fail)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "fake", 1, "no");
    *ret_offset = bus->ends[fake_topic(topic)][partition];
    return TOC_OK;
}

static inline enum toc_status
fake_committed(void *self, const char *group, const char *topic,
               int32_t partitions, int64_t timeout_ms, int64_t *ret_offsets,
               struct toc_error *reterr)
{
    struct fake_bus *bus = self;

    (void)timeout_ms;
    ck_assert_str_eq(group, "group");
    bus->committed_asked++;
    if (bus->committed_fails)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "fake", 1, "no");
    memcpy(ret_offsets, bus->committed[fake_topic(topic)],
           (size_t)partitions * sizeof *ret_offsets);
    return TOC_OK;
}

static const char *const fake_topics[] = {"core", "normal", "low"};

static inline struct fake_bus *
fake_bus_new(toc_bus_report_fn *report)
{
    static const struct toc_bus_ops ops = {
        .name = "fake",
        .send = fake_send,
        .poll = fake_poll,
        .end_offset = fake_end_offset,
        .committed = fake_committed,
    };
    struct fake_bus *bus = TOC_NEW(struct fake_bus);

    bus->port = (struct toc_bus){.ops = &ops, .self = bus};
    bus->report = report;
    return bus;
}

/* Executors have decided everything that is stored. */
static inline void
fake_bus_decide_all(struct fake_bus *bus)
{
    memcpy(bus->committed, bus->ends, sizeof bus->ends);
}

static inline size_t
fake_bus_hints(struct fake_bus *bus, size_t first)
{
    struct toc_arena arena = {0};
    struct toc_error err;
    struct toc_hint *hints;
    size_t n, all = 0;

    for (size_t i = first; i < bus->n; i++) {
        struct toc_str bytes = {bus->messages[i].bytes, bus->messages[i].len};
        all +=
            toc_hint_decode(bytes, &arena, &hints, &n, &err) == TOC_OK ? n : 0;
    }
    toc_arena_done(&arena);
    return all;
}

static inline void
fake_bus_free(struct fake_bus *bus)
{
    for (size_t i = 0; i < bus->n; i++)
        toc_free(bus->messages[i].bytes);
    toc_free(bus);
}

/* ---- coord: only a deadline -------------------------------------------------
 */

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

    coord->port = (struct toc_coord){.ops = &ops, .self = coord};
    coord->deadline_ns = INT64_MAX;
}

#endif
