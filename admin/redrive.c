#include "admin/request.h"
#include "admin/service_internal.h"

#include "google/rpc/status.pb-c.h"

/* An error of one item, as google.rpc.Status. */
static Google__Rpc__Status *
item_error(struct admin_call *call, enum toc_status st, const char *message)
{
    Google__Rpc__Status *status = toc_arena_alloc(call->arena, sizeof *status);

    google__rpc__status__init(status);
    status->code = (int32_t)st;
    status->message = toc_arena_text(call->arena, toc_str_of(message));
    return status;
}

struct redriving {
    struct admin_call *call;
    struct toc_str who, why;
    bool down; /* the store was unavailable: the rest is not tried */
};

static Google__Rpc__Status *
redrive_one(struct redriving *r, struct toc_task_id id)
{
    struct admin_call *call = r->call;
    struct toc_error error = {.status = TOC_OK};
    enum toc_redrive_result result = TOC_REDRIVE_NOT_FOUND;
    int64_t now_ms = toc_clock_wall(admin_call_clock(call)).ms;
    enum toc_status st = toc_store_redrive(admin_call_store(call), id, now_ms,
                                           r->who, r->why, &result, &error);

    if (st == TOC_UNAVAILABLE || st == TOC_DEADLINE) {
        r->down = true;
        return item_error(call, TOC_UNAVAILABLE,
                          "the database cannot be reached, try again");
    }
    if (st != TOC_OK)
        return item_error(call, st, "the database failed");
    switch (result) {
    case TOC_REDRIVE_APPLIED:
        return NULL;
    case TOC_REDRIVE_NOT_FOUND:
        return item_error(call, TOC_NOT_FOUND, "no such dead letter");
    case TOC_REDRIVE_KEY_TAKEN:
        return item_error(call, TOC_PRECONDITION, "its key holds a newer task");
    }
    return item_error(call, TOC_INTERNAL, "an unknown result");
}

/* A repeated redrive finds no dead letter: items that were not tried can
 * simply be asked for again. */
static Google__Rpc__Status *
redrive_item(struct redriving *r, const char *text)
{
    struct toc_task_id id;

    if (!toc_task_id_parse(toc_str_of(text), &id))
        return item_error(r->call, TOC_INVALID,
                          "must be 26 characters of Crockford's base32");
    if (r->down || toc_rpc_call_cancelled(r->call->rpc))
        return item_error(r->call, TOC_UNAVAILABLE, "not tried, try again");
    return redrive_one(r, id);
}

void
admin_redrive_dead(struct admin_call *call)
{
    const Toc__V1__RedriveDeadRequest *request =
        (const Toc__V1__RedriveDeadRequest *)call->request;
    Toc__V1__RedriveDeadResponse answer = TOC__V1__REDRIVE_DEAD_RESPONSE__INIT;
    struct toc_rpc_failure failure;
    struct redriving r = {
        .call = call,
        .who = toc_str_of(toc_rpc_call_peer(call->rpc)),
        .why = toc_str_of(request->reason),
    };

    toc_rpc_failure_init(&failure, call->arena);
    admin_check_redrive(request, &failure);
    if (failure.status != TOC_OK) {
        toc_rpc_fail(call->rpc, &failure);
        return;
    }
    answer.n_results = request->n_task_ids;
    answer.results =
        toc_arena_calloc(call->arena, answer.n_results, sizeof *answer.results);
    for (size_t i = 0; i < answer.n_results; i++) {
        Toc__V1__RedriveResult *result =
            toc_arena_alloc(call->arena, sizeof *result);
        toc__v1__redrive_result__init(result);
        result->task_id = request->task_ids[i];
        result->error = redrive_item(&r, result->task_id);
        answer.results[i] = result;
    }
    toc_rpc_reply(call->rpc, &answer.base);
}
