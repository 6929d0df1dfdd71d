#include "common/store/fault/store_fault.h"

/* What every operation does around the inner one's call. */
#define WITH_FAULTS(name, call)                              \
    static const struct toc_fault_op op = {"store", name};   \
    const struct toc_store_fault *fault = self;              \
    struct toc_store *inner = fault->inner;                  \
    enum toc_fault how = toc_fault_before(fault->plan, &op); \
                                                             \
    if (how == TOC_FAULT_FAIL)                               \
        return toc_fault_failed(&op, reterr);                \
    return toc_fault_after(fault->plan, &op, how, call, reterr)

static enum toc_status
fault_submit(void *self, struct toc_submit **items, size_t n, int64_t now_ms,
             struct toc_error *reterr)
{
    WITH_FAULTS("submit", toc_store_submit(inner, items, n, now_ms, reterr));
}

static enum toc_status
fault_get(void *self, const struct toc_find *find, struct toc_arena *arena,
          struct toc_task *ret_task, struct toc_error *reterr)
{
    WITH_FAULTS("get", toc_store_get(inner, find, arena, ret_task, reterr));
}

static enum toc_status
fault_list_biz(void *self, struct toc_str biz_type, struct toc_str biz_id,
               struct toc_arena *arena, struct toc_task **ret_tasks,
               size_t *ret_n, struct toc_error *reterr)
{
    WITH_FAULTS("list_biz", toc_store_list_biz(inner, biz_type, biz_id, arena,
                                               ret_tasks, ret_n, reterr));
}

static enum toc_status
fault_load(void *self, const uint16_t *slices, size_t n,
           const struct toc_slot_span *spans, size_t n_spans,
           toc_store_task_fn *fn, void *arg, struct toc_error *reterr)
{
    WITH_FAULTS("load", toc_store_load(inner, slices, n, spans, n_spans, fn,
                                       arg, reterr));
}

static enum toc_status
fault_scan(void *self, const uint16_t *slices, size_t n, int64_t from_ms,
           int64_t to_ms, toc_store_task_fn *fn, void *arg,
           struct toc_error *reterr)
{
    WITH_FAULTS("scan", toc_store_scan(inner, slices, n, from_ms, to_ms, fn,
                                       arg, reterr));
}

static enum toc_status
fault_move_far(void *self, const uint16_t *slices, size_t n, int64_t now_ms,
               size_t max, size_t *ret_moved, struct toc_error *reterr)
{
    WITH_FAULTS("move_far", toc_store_move_far(inner, slices, n, now_ms, max,
                                               ret_moved, reterr));
}

static enum toc_status
fault_claim(void *self, struct toc_claim *claims, size_t n,
            const struct toc_claim_lock *lock, struct toc_arena *arena,
            struct toc_error *reterr)
{
    WITH_FAULTS("claim",
                toc_store_claim(inner, claims, n, lock, arena, reterr));
}

static enum toc_status
fault_renew(void *self, const struct toc_task_ref *refs, const uint64_t *tokens,
            size_t n, int64_t lock_until_ms, size_t *ret_renewed,
            struct toc_error *reterr)
{
    WITH_FAULTS("renew", toc_store_renew(inner, refs, tokens, n, lock_until_ms,
                                         ret_renewed, reterr));
}

static enum toc_status
fault_finish(void *self, struct toc_finish *items, size_t n, int64_t now_ms,
             struct toc_error *reterr)
{
    WITH_FAULTS("finish", toc_store_finish(inner, items, n, now_ms, reterr));
}

static enum toc_status
fault_free_expired(void *self, const struct toc_task *tasks, size_t n,
                   int64_t now_ms, size_t *ret_freed, struct toc_error *reterr)
{
    WITH_FAULTS("free_expired", toc_store_free_expired(inner, tasks, n, now_ms,
                                                       ret_freed, reterr));
}

static enum toc_status
fault_record_stragglers(void *self, uint16_t shard, int64_t before_ms,
                        size_t max, size_t *ret_waiting,
                        struct toc_error *reterr)
{
    WITH_FAULTS("record_stragglers",
                toc_store_record_stragglers(inner, shard, before_ms, max,
                                            ret_waiting, reterr));
}

static enum toc_status
fault_scan_stragglers(void *self, const uint16_t *slices, size_t n,
                      toc_store_task_fn *fn, void *arg,
                      struct toc_error *reterr)
{
    WITH_FAULTS("scan_stragglers",
                toc_store_scan_stragglers(inner, slices, n, fn, arg, reterr));
}

static enum toc_status
fault_advance_low(void *self, const uint16_t *shards, size_t n, int64_t now_ms,
                  int64_t behind_ms, struct toc_error *reterr)
{
    WITH_FAULTS("advance_low", toc_store_advance_low(inner, shards, n, now_ms,
                                                     behind_ms, reterr));
}

static enum toc_status
fault_command(void *self, struct toc_command *command, struct toc_arena *arena,
              struct toc_error *reterr)
{
    WITH_FAULTS("command", toc_store_command(inner, command, arena, reterr));
}

static enum toc_status
fault_timeline(void *self, const struct toc_find *find, struct toc_arena *arena,
               struct toc_task *ret_task, struct toc_log_entry **ret_entries,
               size_t *ret_n, struct toc_error *reterr)
{
    WITH_FAULTS("timeline", toc_store_timeline(inner, find, arena, ret_task,
                                               ret_entries, ret_n, reterr));
}

static enum toc_status
fault_list_tasks(void *self, const struct toc_task_filter *filter, size_t max,
                 struct toc_cursor *cursor, struct toc_arena *arena,
                 struct toc_task **ret_tasks, size_t *ret_n,
                 struct toc_error *reterr)
{
    WITH_FAULTS("list_tasks",
                toc_store_list_tasks(inner, filter, max, cursor, arena,
                                     ret_tasks, ret_n, reterr));
}

static enum toc_status
fault_count_buckets(void *self, const struct toc_bucket_query *query,
                    struct toc_cursor *cursor, struct toc_arena *arena,
                    struct toc_bucket_count **ret_counts, size_t *ret_n,
                    struct toc_error *reterr)
{
    WITH_FAULTS("count_buckets",
                toc_store_count_buckets(inner, query, cursor, arena, ret_counts,
                                        ret_n, reterr));
}

static enum toc_status
fault_list_dead(void *self, const struct toc_dead_filter *filter, size_t max,
                struct toc_cursor *cursor, struct toc_arena *arena,
                struct toc_dead **ret_dead, size_t *ret_n,
                struct toc_error *reterr)
{
    WITH_FAULTS("list_dead",
                toc_store_list_dead(inner, filter, max, cursor, arena, ret_dead,
                                    ret_n, reterr));
}

static enum toc_status
fault_redrive(void *self, struct toc_task_id id, int64_t now_ms,
              struct toc_str who, struct toc_str why,
              enum toc_redrive_result *ret_result, struct toc_error *reterr)
{
    WITH_FAULTS("redrive", toc_store_redrive(inner, id, now_ms, who, why,
                                             ret_result, reterr));
}

static enum toc_status
fault_list_shards(void *self, struct toc_arena *arena,
                  struct toc_shard_row **ret_shards, size_t *ret_n,
                  struct toc_error *reterr)
{
    WITH_FAULTS("list_shards",
                toc_store_list_shards(inner, arena, ret_shards, ret_n, reterr));
}

static enum toc_status
fault_register_node(void *self, struct toc_str role, struct toc_str name,
                    struct toc_str address, int64_t now_ms, uint32_t *ret_id,
                    struct toc_error *reterr)
{
    WITH_FAULTS("register_node",
                toc_store_register_node(inner, role, name, address, now_ms,
                                        ret_id, reterr));
}

static enum toc_status
fault_list_nodes(void *self, struct toc_arena *arena,
                 struct toc_node_row **ret_nodes, size_t *ret_n,
                 struct toc_error *reterr)
{
    WITH_FAULTS("list_nodes",
                toc_store_list_nodes(inner, arena, ret_nodes, ret_n, reterr));
}

static enum toc_status
fault_gc_keys(void *self, uint16_t shard, int64_t now_ms, int64_t window_ms,
              size_t max, size_t *ret_freed, struct toc_error *reterr)
{
    WITH_FAULTS("gc_keys", toc_store_gc_keys(inner, shard, now_ms, window_ms,
                                             max, ret_freed, reterr));
}

static enum toc_status
fault_make_days(void *self, int64_t now_ms, struct toc_error *reterr)
{
    WITH_FAULTS("make_days", toc_store_make_days(inner, now_ms, reterr));
}

static enum toc_status
fault_drop_days(void *self, int64_t now_ms, int64_t retention_ms,
                size_t *ret_dropped, struct toc_error *reterr)
{
    WITH_FAULTS("drop_days", toc_store_drop_days(inner, now_ms, retention_ms,
                                                 ret_dropped, reterr));
}

static enum toc_status
fault_now(void *self, int64_t *ret_now_ms, struct toc_error *reterr)
{
    WITH_FAULTS("now", toc_store_now(inner, ret_now_ms, reterr));
}

static void
fault_hasten(void *self)
{
    toc_store_hasten(((struct toc_store_fault *)self)->inner);
}

static void
fault_interrupt(void *self)
{
    toc_store_interrupt(((struct toc_store_fault *)self)->inner);
}

static const struct toc_store_ops fault_ops = {
    .name = "fault",
    .submit = fault_submit,
    .get = fault_get,
    .list_biz = fault_list_biz,
    .load = fault_load,
    .scan = fault_scan,
    .move_far = fault_move_far,
    .claim = fault_claim,
    .renew = fault_renew,
    .finish = fault_finish,
    .free_expired = fault_free_expired,
    .record_stragglers = fault_record_stragglers,
    .scan_stragglers = fault_scan_stragglers,
    .advance_low = fault_advance_low,
    .command = fault_command,
    .timeline = fault_timeline,
    .list_tasks = fault_list_tasks,
    .count_buckets = fault_count_buckets,
    .list_dead = fault_list_dead,
    .redrive = fault_redrive,
    .list_shards = fault_list_shards,
    .register_node = fault_register_node,
    .list_nodes = fault_list_nodes,
    .gc_keys = fault_gc_keys,
    .make_days = fault_make_days,
    .drop_days = fault_drop_days,
    .now = fault_now,
    .hasten = fault_hasten,
    .interrupt = fault_interrupt,
};

void
toc_store_fault_init(struct toc_store_fault *fault, struct toc_store *inner,
                     const struct toc_fault_plan *plan)
{
    *fault =
        (struct toc_store_fault){.port = {.ops = &fault_ops, .self = fault},
                                 .inner = inner,
                                 .plan = plan};
}
