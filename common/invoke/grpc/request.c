#include "common/invoke/grpc/request.h"

#include "common/api/api.h"
#include "toc/v1/handler.pb-c.h"

/* ---- metadata -------------------------------------------------------- */

static void
add(struct toc_grpc_metadata *out, struct toc_str name, struct toc_str value)
{
    out->items[out->n++] = (struct toc_rpc_metadata){name, value};
}

static struct toc_str
number(struct toc_arena *arena, int64_t value)
{
    return toc_str_of(toc_arena_printf(arena, "%lld", (long long)value));
}

static char *
fire_id(const struct toc_task *task, struct toc_arena *arena)
{
    char text[TOC_FIRE_ID_TEXT_MAX];

    return toc_arena_text(
        arena, toc_str_of(toc_fire_id_format(task->id, task->fire, text)));
}

static char *
task_id(const struct toc_task *task, struct toc_arena *arena)
{
    char text[TOC_TASK_ID_TEXT_MAX];

    return toc_arena_text(arena,
                          toc_str_of(toc_task_id_format(task->id, text)));
}

static void
add_fire(const struct toc_fire *fire, struct toc_arena *arena,
         struct toc_grpc_metadata *out)
{
    const struct toc_spec *spec = fire->spec;

    add(out, TOC_STR("toc-fire-id"), toc_str_of(fire_id(fire->task, arena)));
    add(out, TOC_STR("toc-task-id"), toc_str_of(task_id(fire->task, arena)));
    add(out, TOC_STR("toc-attempt"), number(arena, fire->attempt));
    if (spec->traceparent.len > 0)
        add(out, TOC_STR("traceparent"), spec->traceparent);
    for (size_t i = 0; i < spec->n_headers; i++)
        add(out, spec->headers[i].name, spec->headers[i].value);
}

void
toc_grpc_request_metadata(const struct toc_call *call, struct toc_arena *arena,
                          struct toc_grpc_metadata *out)
{
    out->n = 0;
    add(out, TOC_STR("toc-not-after"), number(arena, call->not_after_ms));
    if (!call->batch)
        add_fire(&call->fires[0], arena, out);
}

/* ---- messages -------------------------------------------------------- */

static Toc__V1__TaskKey *
make_key(const struct toc_task *task, struct toc_arena *arena)
{
    Toc__V1__TaskKey *key = toc_arena_alloc(arena, sizeof *key);

    toc__v1__task_key__init(key);
    key->biz_type = toc_api_text(arena, task->biz_type);
    key->biz_id = toc_api_text(arena, task->biz_id);
    key->name = toc_api_text(arena, task->name);
    return key;
}

static void
add_headers(const struct toc_spec *spec, struct toc_arena *arena,
            Toc__V1__OnTimeoutRequest *request)
{
    Toc__V1__Header *headers =
        toc_arena_calloc(arena, spec->n_headers, sizeof *headers);

    request->headers =
        toc_arena_calloc(arena, spec->n_headers, sizeof request->headers[0]);
    request->n_headers = spec->n_headers;
    for (size_t i = 0; i < spec->n_headers; i++) {
        toc__v1__header__init(&headers[i]);
        headers[i].name = toc_api_text(arena, spec->headers[i].name);
        headers[i].value = toc_api_text(arena, spec->headers[i].value);
        request->headers[i] = &headers[i];
    }
}

static Toc__V1__OnTimeoutRequest *
make_request(const struct toc_call *call, const struct toc_fire *fire,
             struct toc_arena *arena)
{
    const struct toc_task *task = fire->task;
    Toc__V1__OnTimeoutRequest *request =
        toc_arena_alloc(arena, sizeof *request);
    /* Not const in protobuf-c; packing only reads it. */
    union {
        const char *in;
        uint8_t *out;
    } payload = {.in = task->payload.ptr};

    toc__v1__on_timeout_request__init(request);
    request->task_id = task_id(task, arena);
    request->key = make_key(task, arena);
    request->fire_id = fire_id(task, arena);
    request->attempt = fire->attempt;
    request->due_time = toc_api_time(arena, task->due_ms);
    request->not_after = toc_api_time(arena, call->not_after_ms);
    request->payload =
        (ProtobufCBinaryData){.len = task->payload.len, .data = payload.out};
    request->content_type = toc_api_text(arena, fire->spec->content_type);
    if (call->batch)
        add_headers(fire->spec, arena, request);
    return request;
}

void
toc_grpc_request_pack(const struct toc_call *call, struct toc_arena *arena,
                      struct toc_buf *out)
{
    Toc__V1__OnTimeoutBatchRequest batch =
        TOC__V1__ON_TIMEOUT_BATCH_REQUEST__INIT;

    if (!call->batch) {
        toc_rpc_pack(&make_request(call, &call->fires[0], arena)->base, out);
        return;
    }
    batch.n_fires = call->n;
    batch.fires = toc_arena_calloc(arena, call->n, sizeof batch.fires[0]);
    for (size_t i = 0; i < call->n; i++)
        batch.fires[i] = make_request(call, &call->fires[i], arena);
    toc_rpc_pack(&batch.base, out);
}
