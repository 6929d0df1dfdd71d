/*
 * The wrappers of the store port: what every backend may rely on is asserted
 * here before the call, what every caller may rely on after it.
 */
#include "common/store/store.h"

#include "common/base/assert.h"
#include "common/model/limits.h"

static bool
ref_given(const struct toc_task_ref *ref)
{
    return ref->version > 0 && ref->slice < TOC_SHARDS * TOC_SLICES_PER_SHARD;
}

void
toc_store_bad_row(const struct toc_store *store, const struct toc_bad_row *row)
{
    if (store->bad_row != NULL)
        store->bad_row(store->bad_row_arg, row);
}

static void
check_submit(const struct toc_submit *item)
{
    const struct toc_task *task = item->task;

    TOC_ASSERT(task->slice / TOC_SLICES_PER_SHARD ==
               toc_key_shard(task->key_hash));
    TOC_ASSERT(task->slice % TOC_SLICES_PER_SHARD < TOC_PRIORITIES);
    TOC_ASSERT(task->version == 1 && task->fire >= 1);
    TOC_ASSERT(task->due_ms >= TOC_DUE_MS_MIN &&
               task->due_ms <= TOC_DUE_MS_MAX);
    TOC_ASSERT(task->biz_type.len <= TOC_BIZ_TYPE_MAX &&
               task->biz_id.len <= TOC_BIZ_ID_MAX &&
               task->name.len <= TOC_NAME_MAX);
    TOC_ASSERT(task->spec.len <= TOC_SPEC_MAX &&
               task->payload.len <= TOC_PAYLOAD_MAX);
    TOC_ASSERT(item->key_window_ms >= 0);
}

enum toc_status
toc_store_submit(struct toc_store *store, struct toc_submit **items, size_t n,
                 int64_t now_ms, struct toc_error *reterr)
{
    enum toc_status st;

    for (size_t i = 0; i < n; i++)
        check_submit(items[i]);
    if (n == 0)
        return TOC_OK;
    st = store->ops->submit(store->self, items, n, now_ms, reterr);
    for (size_t i = 0; st == TOC_OK && i < n; i++)
        TOC_ASSERT(items[i]->result != TOC_SUBMIT_CREATED ||
                   items[i]->task->slot_ms != 0);
    return st;
}

enum toc_status
toc_store_get(struct toc_store *store, const struct toc_find *find,
              struct toc_arena *arena, struct toc_task *ret_task,
              struct toc_error *reterr)
{
    return store->ops->get(store->self, find, arena, ret_task, reterr);
}

enum toc_status
toc_store_list_biz(struct toc_store *store, struct toc_str biz_type,
                   struct toc_str biz_id, struct toc_arena *arena,
                   struct toc_task **ret_tasks, size_t *ret_n,
                   struct toc_error *reterr)
{
    return store->ops->list_biz(store->self, biz_type, biz_id, arena, ret_tasks,
                                ret_n, reterr);
}

enum toc_status
toc_store_load(struct toc_store *store, const uint16_t *slices, size_t n,
               const struct toc_slot_span *spans, size_t n_spans,
               toc_store_task_fn *fn, void *arg, struct toc_error *reterr)
{
    TOC_ASSERT(n_spans == 1 || n_spans == 2);
    if (n == 0)
        return TOC_OK;
    return store->ops->load(store->self, slices, n, spans, n_spans, fn, arg,
                            reterr);
}

enum toc_status
toc_store_scan(struct toc_store *store, const uint16_t *slices, size_t n,
               int64_t from_ms, int64_t to_ms, toc_store_task_fn *fn, void *arg,
               struct toc_error *reterr)
{
    if (n == 0 || from_ms >= to_ms)
        return TOC_OK;
    return store->ops->scan(store->self, slices, n, from_ms, to_ms, fn, arg,
                            reterr);
}

enum toc_status
toc_store_move_far(struct toc_store *store, const uint16_t *slices, size_t n,
                   int64_t now_ms, size_t max, size_t *ret_moved,
                   struct toc_error *reterr)
{
    TOC_ASSERT(max > 0);
    if (n == 0) {
        *ret_moved = 0;
        return TOC_OK;
    }
    return store->ops->move_far(store->self, slices, n, now_ms, max, ret_moved,
                                reterr);
}

enum toc_status
toc_store_claim(struct toc_store *store, struct toc_claim *claims, size_t n,
                const struct toc_claim_lock *lock, struct toc_arena *arena,
                struct toc_error *reterr)
{
    enum toc_status st;

    TOC_ASSERT(lock->token != 0);
    for (size_t i = 0; i < n; i++)
        TOC_ASSERT(ref_given(&claims[i].ref));
    if (n == 0)
        return TOC_OK;
    st = store->ops->claim(store->self, claims, n, lock, arena, reterr);
    for (size_t i = 0; st == TOC_OK && i < n; i++)
        TOC_ASSERT(!claims[i].want_row || (claims[i].result == TOC_CLAIM_WON) ==
                                              (claims[i].row != NULL));
    return st;
}

enum toc_status
toc_store_renew(struct toc_store *store, const struct toc_task_ref *refs,
                const uint64_t *tokens, size_t n, int64_t lock_until_ms,
                size_t *ret_renewed, struct toc_error *reterr)
{
    if (n == 0) {
        *ret_renewed = 0;
        return TOC_OK;
    }
    return store->ops->renew(store->self, refs, tokens, n, lock_until_ms,
                             ret_renewed, reterr);
}

static void
check_finish(const struct toc_finish *item)
{
    TOC_ASSERT(ref_given(&item->ref) && item->token != 0);
    TOC_ASSERT(
        (item->kind != TOC_FINISH_RETRY && item->kind != TOC_FINISH_SNOOZE) ||
        (item->due_ms >= TOC_DUE_MS_MIN && item->due_ms <= TOC_DUE_MS_MAX));
}

enum toc_status
toc_store_finish(struct toc_store *store, struct toc_finish *items, size_t n,
                 int64_t now_ms, struct toc_error *reterr)
{
    for (size_t i = 0; i < n; i++)
        check_finish(&items[i]);
    if (n == 0)
        return TOC_OK;
    return store->ops->finish(store->self, items, n, now_ms, reterr);
}

enum toc_status
toc_store_free_expired(struct toc_store *store, const struct toc_task *tasks,
                       size_t n, int64_t now_ms, size_t *ret_freed,
                       struct toc_error *reterr)
{
    if (n == 0) {
        *ret_freed = 0;
        return TOC_OK;
    }
    return store->ops->free_expired(store->self, tasks, n, now_ms, ret_freed,
                                    reterr);
}

enum toc_status
toc_store_record_stragglers(struct toc_store *store, uint16_t shard,
                            int64_t before_ms, size_t max, size_t *ret_waiting,
                            struct toc_error *reterr)
{
    TOC_ASSERT(shard < TOC_SHARDS);
    return store->ops->record_stragglers(store->self, shard, before_ms, max,
                                         ret_waiting, reterr);
}

enum toc_status
toc_store_scan_stragglers(struct toc_store *store, const uint16_t *slices,
                          size_t n, toc_store_task_fn *fn, void *arg,
                          struct toc_error *reterr)
{
    if (n == 0)
        return TOC_OK;
    return store->ops->scan_stragglers(store->self, slices, n, fn, arg, reterr);
}

enum toc_status
toc_store_advance_low(struct toc_store *store, const uint16_t *shards, size_t n,
                      int64_t now_ms, int64_t behind_ms,
                      struct toc_error *reterr)
{
    TOC_ASSERT(behind_ms >= 0);
    if (n == 0)
        return TOC_OK;
    return store->ops->advance_low(store->self, shards, n, now_ms, behind_ms,
                                   reterr);
}

enum toc_status
toc_store_command(struct toc_store *store, struct toc_command *command,
                  struct toc_arena *arena, struct toc_error *reterr)
{
    enum toc_status st;

    TOC_ASSERT(command->kind != TOC_COMMAND_RESCHEDULE ||
               (command->due_ms >= TOC_DUE_MS_MIN &&
                command->due_ms <= TOC_DUE_MS_MAX));
    st = store->ops->command(store->self, command, arena, reterr);
    TOC_ASSERT(st != TOC_OK || (command->result == TOC_COMMAND_NOT_FOUND) ==
                                   (command->task == NULL));
    return st;
}

enum toc_status
toc_store_timeline(struct toc_store *store, const struct toc_find *find,
                   struct toc_arena *arena, struct toc_task *ret_task,
                   struct toc_log_entry **ret_entries, size_t *ret_n,
                   struct toc_error *reterr)
{
    return store->ops->timeline(store->self, find, arena, ret_task, ret_entries,
                                ret_n, reterr);
}

enum toc_status
toc_store_list_tasks(struct toc_store *store,
                     const struct toc_task_filter *filter, size_t max,
                     struct toc_cursor *cursor, struct toc_arena *arena,
                     struct toc_task **ret_tasks, size_t *ret_n,
                     struct toc_error *reterr)
{
    enum toc_status st;

    TOC_ASSERT(max > 0);
    st = store->ops->list_tasks(store->self, filter, max, cursor, arena,
                                ret_tasks, ret_n, reterr);
    TOC_ASSERT(st != TOC_OK || *ret_n <= max);
    return st;
}

enum toc_status
toc_store_count_buckets(struct toc_store *store,
                        const struct toc_bucket_query *query,
                        struct toc_cursor *cursor, struct toc_arena *arena,
                        struct toc_bucket_count **ret_counts, size_t *ret_n,
                        struct toc_error *reterr)
{
    TOC_ASSERT(query->width_ms > 0 && query->from_ms >= 0 &&
               query->from_ms < query->to_ms);
    return store->ops->count_buckets(store->self, query, cursor, arena,
                                     ret_counts, ret_n, reterr);
}

enum toc_status
toc_store_list_dead(struct toc_store *store,
                    const struct toc_dead_filter *filter, size_t max,
                    struct toc_cursor *cursor, struct toc_arena *arena,
                    struct toc_dead **ret_dead, size_t *ret_n,
                    struct toc_error *reterr)
{
    enum toc_status st;

    TOC_ASSERT(max > 0);
    st = store->ops->list_dead(store->self, filter, max, cursor, arena,
                               ret_dead, ret_n, reterr);
    TOC_ASSERT(st != TOC_OK || *ret_n <= max);
    return st;
}

enum toc_status
toc_store_redrive(struct toc_store *store, struct toc_task_id id,
                  int64_t now_ms, struct toc_str who, struct toc_str why,
                  enum toc_redrive_result *ret_result, struct toc_error *reterr)
{
    return store->ops->redrive(store->self, id, now_ms, who, why, ret_result,
                               reterr);
}

enum toc_status
toc_store_list_shards(struct toc_store *store, struct toc_arena *arena,
                      struct toc_shard_row **ret_shards, size_t *ret_n,
                      struct toc_error *reterr)
{
    return store->ops->list_shards(store->self, arena, ret_shards, ret_n,
                                   reterr);
}

enum toc_status
toc_store_register_node(struct toc_store *store, struct toc_str role,
                        struct toc_str name, struct toc_str address,
                        int64_t now_ms, uint32_t *ret_id,
                        struct toc_error *reterr)
{
    enum toc_status st = store->ops->register_node(
        store->self, role, name, address, now_ms, ret_id, reterr);

    TOC_ASSERT(st != TOC_OK || *ret_id != 0);
    return st;
}

enum toc_status
toc_store_list_nodes(struct toc_store *store, struct toc_arena *arena,
                     struct toc_node_row **ret_nodes, size_t *ret_n,
                     struct toc_error *reterr)
{
    return store->ops->list_nodes(store->self, arena, ret_nodes, ret_n, reterr);
}

enum toc_status
toc_store_gc_keys(struct toc_store *store, uint16_t shard, int64_t now_ms,
                  int64_t window_ms, size_t max, size_t *ret_freed,
                  struct toc_error *reterr)
{
    TOC_ASSERT(shard < TOC_SHARDS && max > 0 && window_ms >= 0);
    return store->ops->gc_keys(store->self, shard, now_ms, window_ms, max,
                               ret_freed, reterr);
}

enum toc_status
toc_store_make_days(struct toc_store *store, int64_t now_ms,
                    struct toc_error *reterr)
{
    return store->ops->make_days(store->self, now_ms, reterr);
}

enum toc_status
toc_store_drop_days(struct toc_store *store, int64_t now_ms,
                    int64_t retention_ms, size_t *ret_dropped,
                    struct toc_error *reterr)
{
    TOC_ASSERT(retention_ms >= 0);
    return store->ops->drop_days(store->self, now_ms, retention_ms, ret_dropped,
                                 reterr);
}

enum toc_status
toc_store_now(struct toc_store *store, int64_t *ret_now_ms,
              struct toc_error *reterr)
{
    return store->ops->now(store->self, ret_now_ms, reterr);
}

void
toc_store_hasten(struct toc_store *store)
{
    if (store->ops->hasten != NULL)
        store->ops->hasten(store->self);
}

void
toc_store_interrupt(struct toc_store *store)
{
    if (store->ops->interrupt != NULL)
        store->ops->interrupt(store->self);
}
