/*
 * One step of a random sequence: an operation of the port with random
 * arguments, mostly sensible ones, made on both stores.
 */
#ifndef TOC_TESTS_CONTRACT_STORE_COMPARE_OPS_H
#define TOC_TESTS_CONTRACT_STORE_COMPARE_OPS_H

#include "tests/contract/store/compare_pair.h"

#define BATCH_MAX 6
#define SENT_MAX 64
#define EACH_SIDE(side) for (int side = 0; side < SIDES; side++)

/* Submits that were sent before, for sending them again. */
static struct sent {
    struct toc_task task;
    uint8_t content;
} sent[SENT_MAX];
static size_t n_sent;

/* ---- what is there
 * --------------------------------------------------------------- */

static inline struct toc_task *
all_tasks(size_t *ret_n)
{
    struct toc_task_filter filter = {.state_mask = 0};
    struct toc_cursor cursor = {.set = false};
    struct toc_task *tasks;

    OK(toc_store_list_tasks(p.store[1], &filter, 5000, &cursor, &p.arena,
                            &tasks, ret_n, err));
    return tasks;
}

/* One of the state, if there is any; the state 99: any. */
static inline const struct toc_task *
some_task(int state)
{
    size_t n, matching = 0;
    struct toc_task *tasks = all_tasks(&n);

    for (size_t i = 0; i < n; i++)
        if (state == 99 || (int)tasks[i].state == state)
            tasks[matching++] = tasks[i];
    return matching > 0 ? &tasks[below((int64_t)matching)] : NULL;
}

static inline struct toc_find
some_find(void)
{
    const struct toc_task *task = some_task(99);

    if (n_sent > 0 && (task == NULL || one_in(4)))
        task = &sent[below((int64_t)n_sent)].task;
    if (task == NULL)
        return find_biz("no", "such", "task");
    if (one_in(2))
        return find_id(task->id);
    return (struct toc_find){
        .biz_type = task->biz_type, .biz_id = task->biz_id, .name = task->name};
}

static inline int64_t
some_due(void)
{
    switch (below(10)) {
    case 8:
        return p.now_ms;
    case 9:
    case 0:
        return p.now_ms - below(HOUR);
    case 1:
        return p.now_ms + below(100);
    case 2:
        return p.now_ms + below(10 * DAY);
    case 3:
        return p.now_ms + TOC_FAR_AFTER_MS - HOUR + below(2 * HOUR);
    case 4:
        return p.now_ms + below(400 * DAY);
    default:
        return p.now_ms + below(MINUTE);
    }
}

/* ---- submit
 * ------------------------------------------------------------------- */

static const char payload_bytes[9000] = "payload";

/* Of characters of three bytes: whatever the limit, it cuts one in two. */
static inline struct toc_str
long_text(void)
{
    static char text[3000];

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "\xe2\x82\xac"[i % 3];
    return (struct toc_str){text, (size_t)(3 * below(1000))};
}

static inline struct toc_task
random_task(void)
{
    static const char *const types[] = {"order", "refund"};
    static const char *const ids[] = {"a", "b", "c", "d", "e"};
    static const char *const names[] = {"", "pay", "ship"};
    static const size_t lens[] = {0, 7, 7, 7, 1024, 1025, 9000};
    struct toc_task task =
        make_task(types[below(2)], ids[below(5)], names[below(3)], some_due());

    if (one_in(25)) /* two keys with one hash */
        task.key_hash =
            toc_key_hash_of(TOC_STR("order"), TOC_STR("a"), TOC_STR("pay"));
    task.slice =
        toc_slice_of(toc_key_shard(task.key_hash), (enum toc_priority)below(3));
    task.created_ms = p.now_ms;
    task.payload = (struct toc_str){payload_bytes, lens[below(7)]};
    if (one_in(5))
        task.flags = TOC_FLAG_AT_MOST_ONCE;
    if (one_in(9))
        task.claims = TOC_CLAIMS_MAX;
    return task;
}

static inline void
remember_sent(const struct toc_submit *item)
{
    struct sent *at =
        n_sent < SENT_MAX ? &sent[n_sent++] : &sent[below(SENT_MAX)];

    at->task = *item->task; /* its texts are constants */
    at->content = item->content[0];
}

static inline void
run_submit(int side, struct toc_submit *items, struct toc_task *tasks, size_t n)
{
    struct toc_submit *list[BATCH_MAX];
    struct toc_error err = {0};
    struct toc_buf *out = &p.out[side];
    enum toc_status st;

    for (size_t i = 0; i < n; i++) {
        items[i].task = &tasks[i];
        list[i] = &items[i];
    }
    st = toc_store_submit(p.store[side], list, n, p.now_ms, &err);
    add_status(out, st, &err);
    for (size_t i = 0; st == TOC_OK && i < n; i++) {
        bool made = items[i].result == TOC_SUBMIT_CREATED ||
                    items[i].result == TOC_SUBMIT_REPLACED;
        add_number(out, items[i].result);
        if (made)
            add_time(out, tasks[i].slot_ms);
        if (made)
            add_id(out, tasks[i].id);
        else
            add_ref(out, &items[i].stored);
        toc_buf_char(out, '\n');
    }
}

static inline void
op_submit(void)
{
    struct toc_task given[BATCH_MAX], tasks[BATCH_MAX];
    struct toc_submit items[SIDES][BATCH_MAX];
    static const int64_t windows[] = {0, HOUR, DAY};
    size_t n = (size_t)below(BATCH_MAX) + 1;

    for (size_t i = 0; i < n; i++) {
        uint8_t content = (uint8_t)below(3);
        given[i] = random_task();
        if (n_sent > 0 && one_in(6)) {
            const struct sent *again = &sent[below((int64_t)n_sent)];
            given[i] = again->task;
            content = again->content;
        }
        items[0][i] = make_submit(NULL, content);
        items[0][i].on_conflict = (enum toc_on_conflict)below(3);
        items[0][i].key_window_ms = windows[below(3)];
        items[1][i] = items[0][i];
    }
    memcpy(tasks, given, sizeof tasks);
    run_submit(0, items[0], tasks, n);
    for (size_t i = 0; i < n; i++) { /* the same ids */
        given[i].id = tasks[i].id;
        if (items[0][i].result == TOC_SUBMIT_CREATED)
            remember_sent(&items[0][i]);
    }
    run_submit(1, items[1], given, n);
}

/* ---- reading
 * -------------------------------------------------------------------- */

struct lines {
    char *text[512];
    size_t n;
};

static inline void
take_line(void *arg, const struct toc_task *task)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf line = {0};
    struct lines *lines = arg;

    add_task(&line, task);
    if (lines->n < 512)
        lines->text[lines->n++] = toc_strdup(line.data);
}

static inline int
cmp_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The order of load and scan is nobody's business. */
static inline void
add_sorted(struct toc_buf *out, struct lines *lines)
{
    qsort(lines->text, lines->n, sizeof *lines->text, cmp_text);
    for (size_t i = 0; i < lines->n; i++) {
        toc_buf_text(out, lines->text[i]);
        toc_free(lines->text[i]);
    }
}

/* Those of all tasks, or half of them. */
static inline size_t
some_slices(uint16_t slices[TOC_SHARDS])
{
    bool half = one_in(4);
    size_t n_tasks, n = 0;
    struct toc_task *tasks = all_tasks(&n_tasks);

    slices[n++] = 0;
    for (size_t i = 0; i < n_tasks && n < TOC_SHARDS; i++)
        if (!half || one_in(2))
            slices[n++] = tasks[i].slice;
    return n;
}

static inline void
op_load(void)
{
    uint16_t slices[TOC_SHARDS];
    size_t n = some_slices(slices);
    struct toc_slot_span spans[2] = {
        {p.now_ms - 1200, p.now_ms + 1200},
        {p.now_ms + below(5000) - 2000, p.now_ms + below(DAY)}};
    size_t n_spans = (size_t)below(2) + 1;

    EACH_SIDE(side)
    {
        struct lines lines = {.n = 0};
        struct toc_error err = {0};
        add_status(&p.out[side],
                   toc_store_load(p.store[side], slices, n, spans, n_spans,
                                  take_line, &lines, &err),
                   &err);
        add_sorted(&p.out[side], &lines);
    }
}

static inline void
op_scan(void)
{
    uint16_t slices[TOC_SHARDS];
    size_t n = some_slices(slices);
    int64_t from_ms = p.now_ms - below(2 * DAY), to_ms = p.now_ms + below(DAY);
    bool stragglers = one_in(3);

    EACH_SIDE(side)
    {
        struct lines lines = {.n = 0};
        struct toc_error err = {0};
        struct toc_store *store = p.store[side];
        add_status(&p.out[side],
                   stragglers ? toc_store_scan_stragglers(
                                    store, slices, n, take_line, &lines, &err)
                              : toc_store_scan(store, slices, n, from_ms, to_ms,
                                               take_line, &lines, &err),
                   &err);
        add_sorted(&p.out[side], &lines);
    }
}

static inline void
add_tasks(struct toc_buf *out, const struct toc_task *tasks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_task(out, &tasks[i]);
}

/* The real one does not find its way along the log of a task that was far and
 * came near only when it was due already. */
static inline bool
was_far(const struct toc_find *find)
{
    struct toc_task task;

    return toc_store_get(p.store[1], find, &p.arena, &task, NULL) == TOC_OK &&
           toc_task_id_first_slot(task.id) >
               task.created_ms + TOC_FAR_AFTER_MS - HOUR;
}

static inline void
op_get(void)
{
    struct toc_find find = some_find();
    bool tell = one_in(2) && !was_far(&find);

    EACH_SIDE(side)
    {
        struct toc_buf *out = &p.out[side];
        struct toc_log_entry *log = NULL;
        struct toc_error err = {0};
        struct toc_task task;
        size_t n = 0;
        enum toc_status st =
            tell ? toc_store_timeline(p.store[side], &find, &p.arena, &task,
                                      &log, &n, &err)
                 : toc_store_get(p.store[side], &find, &p.arena, &task, &err);
        add_status(out, st, &err);
        if (st == TOC_OK)
            add_task(out, &task);
        for (size_t i = 0; i < n; i++) {
            toc_buf_printf(out, "%d %d %u %u %u %u %u ", (int)log[i].kind,
                           (int)log[i].result, (unsigned)log[i].fire,
                           (unsigned)log[i].version, log[i].attempt,
                           (unsigned)log[i].sched_node,
                           (unsigned)log[i].exec_node);
            add_time(out, log[i].claimed_ms);
            add_time(out, log[i].called_ms);
            add_time(out, log[i].at_ms);
            add_str(out, log[i].who);
            add_str(out, log[i].detail);
            toc_buf_char(out, '\n');
        }
    }
}

/* By the minute around now; the parts that a store tells are put together. */
static inline void
compare_buckets(void)
{
    struct toc_bucket_query query = {
        .from_ms = p.now_ms - DAY, .to_ms = p.now_ms + DAY, .width_ms = 60000};

    EACH_SIDE(side)
    {
        struct toc_cursor cursor = {.set = false};
        struct toc_buf *out = &p.out[side];
        do {
            struct toc_bucket_count *counts;
            size_t n;
            OK(toc_store_count_buckets(p.store[side], &query, &cursor, &p.arena,
                                       &counts, &n, err));
            for (size_t i = 0; i < n; i++) {
                add_time(out, counts[i].start_ms);
                add_str(out, counts[i].biz_type);
                for (size_t k = 0; k < TOC_STATES; k++)
                    toc_buf_printf(out, " %llu",
                                   (unsigned long long)counts[i].n[k]);
                toc_buf_char(out, '\n');
            }
        } while (cursor.set);
    }
}

static inline void
op_list(void)
{
    struct toc_find find = some_find();
    struct toc_task_filter filter = {.biz_type = {NULL, 0}};
    size_t max = (size_t)below(20) + 1;

    if (one_in(3))
        filter.biz_type = find.biz_type;
    if (one_in(3))
        filter.biz_id = find.biz_id;
    if (one_in(3))
        filter.state_mask = (uint16_t)below(1024);
    if (one_in(4)) {
        filter.due_from_ms = p.now_ms - below(DAY);
        filter.due_to_ms = p.now_ms + below(DAY);
    }
    EACH_SIDE(side)
    {
        struct toc_cursor cursor = {.set = false};
        struct toc_buf *out = &p.out[side];
        for (int page = 0; page < 100; page++) {
            struct toc_task *tasks;
            size_t n;
            OK(toc_store_list_tasks(p.store[side], &filter, max, &cursor,
                                    &p.arena, &tasks, &n, err));
            add_tasks(out, tasks, n);
            toc_buf_printf(out, "page of %zu, %s\n", n,
                           cursor.set ? "more" : "end");
            if (!cursor.set)
                break;
            add_time(out, cursor.slot_ms);
        }
    }
    compare_buckets();
}

static inline void
op_list_biz(void)
{
    struct toc_find find = some_find();

    EACH_SIDE(side)
    {
        struct toc_task *tasks;
        size_t n;
        OK(toc_store_list_biz(p.store[side], find.biz_type, find.biz_id,
                              &p.arena, &tasks, &n, err));
        add_tasks(&p.out[side], tasks, n);
    }
}

static inline void
op_list_dead(void)
{
    struct toc_dead_filter filter = {.biz_type = {NULL, 0}};
    size_t max = (size_t)below(4) + 1;

    if (one_in(3))
        filter.biz_type = TOC_STR("order");
    if (one_in(3))
        filter.biz_id = TOC_STR("a");
    if (one_in(4))
        filter.reason = TOC_STR("reason");
    if (one_in(4)) {
        filter.dead_from_ms = p.now_ms - below(DAY);
        filter.dead_to_ms = p.now_ms;
    }
    EACH_SIDE(side)
    {
        struct toc_cursor cursor = {.set = false};
        struct toc_buf *out = &p.out[side];
        for (int page = 0; page < 100; page++) {
            struct toc_dead *dead;
            size_t n;
            OK(toc_store_list_dead(p.store[side], &filter, max, &cursor,
                                   &p.arena, &dead, &n, err));
            for (size_t i = 0; i < n; i++) {
                add_time(out, dead[i].dead_ms);
                add_str(out, dead[i].reason);
                add_task(out, &dead[i].task);
            }
            toc_buf_printf(out, "page of %zu, %s\n", n,
                           cursor.set ? "more" : "end");
            if (!cursor.set)
                break;
        }
    }
}

/* ---- claim, write-back
 * ---------------------------------------------------------------- */

static inline bool
has_ref(const struct toc_task_ref *refs, size_t n,
        const struct toc_task_ref *ref)
{
    for (size_t i = 0; i < n; i++)
        if (toc_task_ref_cmp(&refs[i], ref) == 0)
            return true;
    return false;
}

/* Distinct ones; now and then a wrong version or slot. */
static inline size_t
some_refs(int state, struct toc_task_ref refs[BATCH_MAX],
          uint64_t tokens[BATCH_MAX])
{
    size_t n = 0, want = (size_t)below(BATCH_MAX) + 1;

    for (int i = 0; i < 12 && n < want; i++) {
        const struct toc_task *task = some_task(one_in(5) ? 99 : state);
        struct toc_task_ref ref;
        /* Nobody hints a parked row: the mover comes first. */
        if (task == NULL || toc_slot_is_parked(task->slot_ms))
            continue;
        ref = toc_task_ref_of(task);
        if (one_in(12))
            ref.version++;
        if (one_in(20))
            ref.slot_ms++;
        if (has_ref(refs, n, &ref))
            continue;
        tokens[n] = task->lock_token != 0 && !one_in(12)
                        ? task->lock_token
                        : 1 + (uint64_t)below(5);
        refs[n++] = ref;
    }
    return n;
}

static inline void
op_claim(void)
{
    struct toc_task_ref refs[BATCH_MAX];
    uint64_t tokens[BATCH_MAX];
    int state = one_in(3) ? TOC_STATE_RETRY : TOC_STATE_INIT;
    size_t n = some_refs(state, refs, tokens);
    bool rows = one_in(2), ahead = one_in(8);
    struct toc_claim_lock lock = {.token = 1000 + (uint64_t)below(20),
                                  .lock_until_ms = p.now_ms + below(MINUTE),
                                  .now_ms = p.now_ms,
                                  .exec_node = 1 + (uint32_t)below(3)};

    if (ahead) /* of the database, even */
        lock.now_ms = p.real_ms + 300 * DAY;
    EACH_SIDE(side)
    {
        struct toc_claim claims[BATCH_MAX];
        struct toc_error err = {0};
        enum toc_status st;
        for (size_t i = 0; i < n; i++)
            claims[i] = (struct toc_claim){.ref = refs[i],
                                           .sched_node = (uint32_t)i,
                                           .want_row = rows && i % 2 == 0};
        st = toc_store_claim(p.store[side], claims, n, &lock, &p.arena, &err);
        add_status(&p.out[side], st, &err);
        for (size_t i = 0; st == TOC_OK && i < n; i++) {
            add_number(&p.out[side], claims[i].result);
            if (claims[i].row != NULL)
                add_task(&p.out[side], claims[i].row);
        }
    }
}

static inline void
op_renew(void)
{
    struct toc_task_ref refs[BATCH_MAX];
    uint64_t tokens[BATCH_MAX];
    size_t n = some_refs(TOC_STATE_EXECUTING, refs, tokens);
    int64_t until_ms = p.now_ms + below(2 * MINUTE);

    EACH_SIDE(side)
    {
        struct toc_error err = {0};
        size_t renewed = 0;
        add_status(&p.out[side],
                   toc_store_renew(p.store[side], refs, tokens, n, until_ms,
                                   &renewed, &err),
                   &err);
        add_number(&p.out[side], renewed);
    }
}

static struct toc_finish last_finish[BATCH_MAX];
static size_t n_last_finish;

static inline size_t
make_finishes(struct toc_finish items[BATCH_MAX])
{
    struct toc_task_ref refs[BATCH_MAX];
    uint64_t tokens[BATCH_MAX];
    size_t n = some_refs(TOC_STATE_EXECUTING, refs, tokens);

    for (size_t i = 0; i < n; i++) {
        items[i] = (struct toc_finish){
            .ref = refs[i],
            .token = tokens[i],
            .kind = (enum toc_finish_kind)below(6),
            .outcome = (enum toc_result)below(9),
            .attempt = (uint16_t)(1 + below(4)),
            .due_ms = some_due(),
            .called_ms = one_in(4) ? 0 : p.now_ms - below(SECOND),
            .ended_ms = one_in(6) ? 0 : p.now_ms};
        if (one_in(2))
            items[i].error = TOC_STR("it failed");
        if (one_in(2))
            items[i].reason = TOC_STR("reason");
        if (one_in(8))
            items[i].error = items[i].reason = long_text();
    }
    memcpy(last_finish, items, n * sizeof *items);
    n_last_finish = n;
    return n;
}

static inline void
op_finish(void)
{
    struct toc_finish given[BATCH_MAX] = {{.token = 0}};
    size_t n;

    if (n_last_finish > 0 && one_in(5)) { /* the same call again */
        n = n_last_finish;
        memcpy(given, last_finish, sizeof given);
    } else {
        n = make_finishes(given);
    }
    EACH_SIDE(side)
    {
        struct toc_finish items[BATCH_MAX];
        struct toc_error err = {0};
        enum toc_status st;
        memcpy(items, given, sizeof items);
        st = toc_store_finish(p.store[side], items, n, p.now_ms, &err);
        add_status(&p.out[side], st, &err);
        for (size_t i = 0; st == TOC_OK && i < n; i++) {
            toc_buf_printf(&p.out[side], "%d -> %d ", (int)items[i].kind,
                           (int)items[i].result);
            add_ref(&p.out[side], &items[i].moved);
            toc_buf_char(&p.out[side], '\n');
        }
    }
}

/* ---- commands
 * ------------------------------------------------------------------- */

static inline void
op_command(void)
{
    const struct toc_task *task;
    struct toc_command given = {.kind = (enum toc_command_kind)below(5),
                                .find = some_find(),
                                .due_ms = some_due(),
                                .now_ms = p.now_ms,
                                .who = TOC_STR("tester"),
                                .why = TOC_STR("because")};

    task = some_task(99);
    if (one_in(8))
        given.who = given.why = long_text();
    if (one_in(6))
        given.etag = 1 + (uint32_t)below(4);
    if (task != NULL && one_in(6))
        given.due_ms = task->due_ms;
    toc_buf_printf(&p.story, "    kind %d\n", (int)given.kind);
    EACH_SIDE(side)
    {
        struct toc_command command = given;
        struct toc_error err = {0};
        enum toc_status st =
            toc_store_command(p.store[side], &command, &p.arena, &err);
        add_status(&p.out[side], st, &err);
        if (st != TOC_OK)
            continue;
        add_number(&p.out[side], command.result);
        if (command.task != NULL)
            add_task(&p.out[side], command.task);
    }
}

static inline void
op_redrive(void)
{
    struct toc_dead_filter filter = {.biz_type = {NULL, 0}};
    struct toc_cursor cursor = {.set = false};
    struct toc_task_id id = {{1}};
    struct toc_dead *dead;
    size_t n;

    OK(toc_store_list_dead(p.store[1], &filter, 100, &cursor, &p.arena, &dead,
                           &n, err));
    if (n > 0)
        id = dead[below((int64_t)n)].task.id;
    EACH_SIDE(side)
    {
        enum toc_redrive_result result = TOC_REDRIVE_NOT_FOUND;
        struct toc_error err = {0};
        add_status(&p.out[side],
                   toc_store_redrive(p.store[side], id, p.now_ms,
                                     TOC_STR("tester"), TOC_STR("again"),
                                     &result, &err),
                   &err);
        add_number(&p.out[side], result);
    }
}

#endif
