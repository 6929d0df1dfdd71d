#include "scheduler/access/service_internal.h"

#include "common/api/api.h"
#include "common/base/cleanup.h"
#include "google/rpc/status.pb-c.h"
#include "scheduler/access/wire.h"

/* Details travel in a trailer; what does not fit there is left out whole. */
#define DETAIL_BYTES_MAX 3500

static Toc__V1__Task *
show(struct sched_access *access, struct toc_arena *arena,
     const struct toc_task *task, bool payload)
{
    const struct toc_api_view view = {
        .now_ms = toc_clock_wall(access->clk).ms,
        .with_payload = payload,
        .names = sched_names_view(access->names),
    };

    return toc_api_task(arena, task, &view);
}

Toc__V1__Task *
sched_answer_task(struct sched_access *access, struct toc_arena *arena,
                  const struct toc_task *task, bool learn)
{
    if (learn)
        sched_names_learn(access->names, task);
    return show(access, arena, task, true);
}

void
sched_answer_detail(struct sched_access *access,
                    struct toc_rpc_failure *failure,
                    const struct toc_task *task)
{
    Toc__V1__Task *shown;

    sched_names_learn(access->names, task);
    shown = show(access, failure->arena, task, false);
    if (toc__v1__task__get_packed_size(shown) > DETAIL_BYTES_MAX)
        shown->n_headers = 0;
    failure->details[failure->n_details++] = &shown->base;
}

Google__Rpc__Status *
sched_answer_status(const struct toc_rpc_failure *failure)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf packed = {0};

    toc_rpc_failure_pack(failure, &packed);
    return toc_rpc_unpack(&google__rpc__status__descriptor,
                          toc_arena_str(failure->arena, toc_buf_view(&packed)),
                          failure->arena);
}

void
sched_answer_store_error(struct toc_rpc_failure *failure, enum toc_status st,
                         const struct toc_error *err)
{
    if (st == TOC_CANCELLED) {
        toc_rpc_failure_set(failure, TOC_CANCELLED,
                            "the caller had gone; nothing was written");
        return;
    }
    if (toc_status_retryable(st)) {
        toc_rpc_failure_set(failure, TOC_UNAVAILABLE,
                            "the database does not answer, try again");
        failure->retry_after_ms = SCHED_RETRY_AFTER_MS;
        return;
    }
    toc_rpc_failure_set(failure, st, "the database refuses: %s", err->msg);
}

void
sched_answer_full(struct toc_rpc_failure *failure, const char *what)
{
    toc_rpc_failure_set(failure, TOC_EXHAUSTED,
                        "too many %s at once, try again", what);
    failure->retry_after_ms = SCHED_RETRY_AFTER_MS;
}

void
sched_answer_fail_full(struct toc_rpc_call *call, const char *what)
{
    struct toc_rpc_failure failure;

    toc_rpc_failure_init(&failure, toc_rpc_call_arena(call));
    sched_answer_full(&failure, what);
    toc_rpc_fail(call, &failure);
}

bool
sched_answer_useless(struct sched_access *access, struct toc_rpc_call *call)
{
    return toc_rpc_call_cancelled(call) ||
           toc_clock_mono(access->clk).ns >= toc_rpc_call_deadline(call).ns;
}

struct toc_str
sched_answer_item_bytes(struct toc_str *rest)
{
    struct sched_wire_field field;

    while (sched_wire_next(rest, &field))
        if (field.number == 1 && field.wire_type == 2)
            return field.bytes;
    return (struct toc_str){NULL, 0};
}
