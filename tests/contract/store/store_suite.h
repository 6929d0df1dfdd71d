/*
 * The store port's contract: what every backend does, checked through the port
 * alone. A backend's program opens su.store, empty, before each test:
 *
 *     STORE_SUITE_MAIN("store_mem", setup, teardown)
 *
 * Times are the database's own at the beginning of the test.
 */
#ifndef TOC_TESTS_CONTRACT_STORE_STORE_SUITE_H
#define TOC_TESTS_CONTRACT_STORE_STORE_SUITE_H

#include "common/base/arena.h"
#include "common/clock/clock.h"
#include "common/model/limits.h"
#include "common/store/store.h"
#include "tests/support/toc_check.h"

#include <string.h>

#define SU_DAY TOC_MS_PER_DAY

static struct {
    struct toc_store *store;
    struct toc_arena arena;
    int64_t now; /* the database's clock when the test began */
} su;

#define SU_OK(call)                                       \
    do {                                                  \
        struct toc_error err_ = {0};                      \
        struct toc_error *reterr = &err_;                 \
        enum toc_status st_ = (call);                     \
        (void)reterr;                                     \
        ck_assert_msg(st_ == TOC_OK, "%s: %s: %s", #call, \
                      toc_status_text(st_), err_.msg);    \
    } while (0)

static inline void
su_begin(struct toc_store *store)
{
    memset(&su, 0, sizeof su);
    su.store = store;
    SU_OK(toc_store_now(store, &su.now, reterr));
}

static inline void
su_end(void)
{
    toc_arena_done(&su.arena);
}

/* ---- tasks ----------------------------------------------------------------
 */

static inline struct toc_task
su_task(const char *biz_id, const char *name, int64_t due_ms)
{
    struct toc_task task = {.fire = 1,
                            .version = 1,
                            .due_ms = due_ms,
                            .created_ms = su.now,
                            .biz_type = TOC_STR("order"),
                            .biz_id = toc_str_of(biz_id),
                            .name = toc_str_of(name),
                            .spec = TOC_STR("spec"),
                            .payload = TOC_STR("payload"),
                            .target_id = 77};

    task.key_hash = toc_key_hash_of(task.biz_type, task.biz_id, task.name);
    task.slice =
        toc_slice_of(toc_key_shard(task.key_hash), TOC_PRIORITY_NORMAL);
    return task;
}

static inline struct toc_submit
su_submit(struct toc_task *task, uint8_t content,
          enum toc_on_conflict on_conflict)
{
    return (struct toc_submit){.task = task,
                               .content = {content},
                               .on_conflict = on_conflict,
                               .key_window_ms = TOC_KEY_WINDOW_MS_DEFAULT};
}

static inline enum toc_submit_result
su_send(struct toc_submit *item)
{
    SU_OK(toc_store_submit(su.store, &item, 1, su.now, reterr));
    return item->result;
}

/* A task that was stored. */
static inline struct toc_task
su_stored(const char *biz_id, int64_t due_ms)
{
    struct toc_task task = su_task(biz_id, "", due_ms);
    struct toc_submit item = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);

    ck_assert_int_eq(su_send(&item), TOC_SUBMIT_CREATED);
    return task;
}

static inline struct toc_find
su_by_id(struct toc_task_id id)
{
    return (struct toc_find){.by_id = true, .id = id};
}

static inline struct toc_find
su_by_key(const struct toc_task *task)
{
    return (struct toc_find){
        .biz_type = task->biz_type, .biz_id = task->biz_id, .name = task->name};
}

static inline struct toc_task
su_get(struct toc_task_id id)
{
    struct toc_find find = su_by_id(id);
    struct toc_task task;

    SU_OK(toc_store_get(su.store, &find, &su.arena, &task, reterr));
    return task;
}

static inline enum toc_status
su_looks(struct toc_find find, struct toc_task *ret_task)
{
    return toc_store_get(su.store, &find, &su.arena, ret_task, NULL);
}

static inline bool
su_is(const struct toc_task *task, struct toc_task_id id)
{
    return toc_task_id_cmp(task->id, id) == 0;
}

/* The key leads to the row. */
static inline void
su_check_key(const struct toc_task *task)
{
    struct toc_task found;

    ck_assert_int_eq(su_looks(su_by_key(task), &found), TOC_OK);
    ck_assert(su_is(&found, task->id));
}

/* ---- claims, results
 * ------------------------------------------------------------ */

static inline enum toc_claim_result
su_claim_at(const struct toc_task *task, uint64_t token, int64_t until_ms,
            int64_t now_ms)
{
    struct toc_claim claim = {.ref = toc_task_ref_of(task), .sched_node = 5};
    struct toc_claim_lock lock = {.token = token,
                                  .lock_until_ms = until_ms,
                                  .now_ms = now_ms,
                                  .exec_node = 9};

    SU_OK(toc_store_claim(su.store, &claim, 1, &lock, &su.arena, reterr));
    return claim.result;
}

static inline enum toc_claim_result
su_claim(const struct toc_task *task, uint64_t token)
{
    return su_claim_at(task, token, su.now + 30000, su.now);
}

/* A task that is being executed under the token. */
static inline struct toc_task
su_executing(const char *biz_id, uint64_t token, uint8_t flags,
             int64_t until_ms)
{
    struct toc_task task = su_task(biz_id, "", su.now - 10);
    struct toc_submit item = su_submit(&task, 1, TOC_ON_CONFLICT_REJECT);

    task.flags = flags;
    ck_assert_int_eq(su_send(&item), TOC_SUBMIT_CREATED);
    ck_assert_int_eq(su_claim_at(&task, token, until_ms, su.now),
                     TOC_CLAIM_WON);
    return su_get(task.id);
}

static inline struct toc_finish
su_finish(const struct toc_task *task, uint64_t token,
          enum toc_finish_kind kind)
{
    return (struct toc_finish){.ref = toc_task_ref_of(task),
                               .token = token,
                               .kind = kind,
                               .outcome = kind == TOC_FINISH_DONE
                                              ? TOC_RESULT_DONE
                                              : TOC_RESULT_FAILED,
                               .attempt = 1,
                               .due_ms = su.now + 60000,
                               .called_ms = su.now - 5,
                               .ended_ms = su.now - 1,
                               .error = TOC_STR("it failed"),
                               .reason = TOC_STR("no more")};
}

static inline enum toc_finish_result
su_write(struct toc_finish *item)
{
    SU_OK(toc_store_finish(su.store, item, 1, su.now, reterr));
    return item->result;
}

static inline void
su_end_task(const struct toc_task *task, enum toc_finish_kind kind)
{
    struct toc_finish item;

    ck_assert_int_eq(su_claim(task, 77), TOC_CLAIM_WON);
    item = su_finish(task, 77, kind);
    ck_assert_int_eq(su_write(&item), TOC_FINISH_OK);
}

/* ---- commands, marks
 * ------------------------------------------------------------ */

static inline struct toc_command
su_command(enum toc_command_kind kind, struct toc_task_id id, int64_t due_ms)
{
    struct toc_command command = {.kind = kind,
                                  .find = su_by_id(id),
                                  .due_ms = due_ms,
                                  .now_ms = su.now,
                                  .who = TOC_STR("tester"),
                                  .why = TOC_STR("because")};

    SU_OK(toc_store_command(su.store, &command, &su.arena, reterr));
    return command;
}

static inline enum toc_command_result
su_do(enum toc_command_kind kind, struct toc_task_id id)
{
    return su_command(kind, id, su.now + 120000).result;
}

static inline struct toc_shard_row
su_shard(uint16_t slice)
{
    struct toc_shard_row *shards;
    size_t n;

    SU_OK(toc_store_list_shards(su.store, &su.arena, &shards, &n, reterr));
    ck_assert_uint_eq(n, TOC_SHARDS);
    return shards[toc_slice_shard(slice)];
}

static inline int64_t
su_advance(uint16_t slice, int64_t to_ms)
{
    uint16_t shard = toc_slice_shard(slice);

    SU_OK(toc_store_advance_low(su.store, &shard, 1, su.now, su.now - to_ms,
                                reterr));
    return su_shard(slice).low_ms;
}

static inline size_t
su_record(uint16_t slice, int64_t before_ms, size_t max)
{
    size_t waiting;

    SU_OK(toc_store_record_stragglers(su.store, toc_slice_shard(slice),
                                      before_ms, max, &waiting, reterr));
    return waiting;
}

/* What load and scan show. */
struct su_seen {
    struct toc_task tasks[64];
    size_t n;
};

static inline void
su_see(void *arg, const struct toc_task *task)
{
    struct su_seen *seen = arg;

    ck_assert_uint_lt(seen->n, 64);
    seen->tasks[seen->n++] = *task; /* its texts are not looked at */
}

static inline size_t
su_timeline(struct toc_task_id id, struct toc_log_entry **ret_log)
{
    struct toc_find find = su_by_id(id);
    struct toc_task task;
    size_t n;

    SU_OK(toc_store_timeline(su.store, &find, &su.arena, &task, ret_log, &n,
                             reterr));
    ck_assert(su_is(&task, id));
    return n;
}

#endif
