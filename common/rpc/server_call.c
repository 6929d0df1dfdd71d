/*
 * One call on the server: armed, arrived, handled, answered, released.
 */
#include "common/rpc/server_internal.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Free objects kept per queue beyond those armed. */
#define FREE_MAX 1024
#define BUSY_RETRY_MS 500
#define TEXT_MAX 512
#define REQUEST_ID "x-request-id"
#define REQUEST_ID_MAX 200

/*
 * Clients refuse more than 8 KiB of trailers (gRPC's default), base64 included;
 * the message and a request id need room too. Details that do not fit are left
 * out: a status without them is worth more than none.
 */
#define DETAILS_MAX 4500

static void on_arrived(void *object, bool ok);
static void on_closed(void *object, bool ok);
static void on_answered(void *object, bool ok);

/* ---- life ----------------------------------------------------------- */

static struct toc_rpc_call *
call_new(struct rpc_queue *queue)
{
    struct toc_rpc_call *call = TOC_NEW(struct toc_rpc_call);

    call->queue = queue;
    grpc_metadata_array_init(&call->metadata);
    grpc_call_details_init(&call->details);
    rpc_tag_init(&call->arrived, on_arrived, call);
    rpc_tag_init(&call->closed, on_closed, call);
    rpc_tag_init(&call->answered, on_answered, call);
    atomic_init(&call->state, RPC_FREE);
    atomic_init(&call->cancelled, false);
    return call;
}

static void
call_free(struct toc_rpc_call *call)
{
    grpc_metadata_array_destroy(&call->metadata);
    toc_arena_done(&call->arena);
    toc_free(call);
}

static void
call_reset(struct toc_rpc_call *call)
{
    for (size_t i = 0; i < call->n_trailers; i++) {
        grpc_slice_unref(call->trailers[i].key);
        grpc_slice_unref(call->trailers[i].value);
    }
    call->n_trailers = 0;
    if (call->reply != NULL)
        grpc_byte_buffer_destroy(call->reply);
    if (call->payload != NULL)
        grpc_byte_buffer_destroy(call->payload);
    call->reply = call->payload = NULL;
    grpc_call_details_destroy(&call->details);
    grpc_call_details_init(&call->details);
    gpr_free(call->peer);
    call->peer = NULL;
    if (call->grpc != NULL)
        grpc_call_unref(call->grpc);
    call->grpc = NULL;
    call->metadata.count = 0; /* its elements were the grpc_call's */
    call->bytes = (struct toc_str){0};
    call->initial_sent = false;
    call->on_closed = NULL;
    call->stream = NULL;
    atomic_store(&call->cancelled, false);
    toc_arena_reset(&call->arena);
}

/* Thread: the queue's. */
static void
call_release(struct toc_rpc_call *call)
{
    struct rpc_queue *queue = call->queue;

    call_reset(call);
    atomic_store(&call->state, RPC_FREE);
    if (queue->n_free >= FREE_MAX) {
        call_free(call);
        return;
    }
    call->next_free = queue->free;
    queue->free = call;
    queue->n_free++;
}

void
rpc_calls_free(struct rpc_queue *queue)
{
    while (queue->free != NULL) {
        struct toc_rpc_call *call = queue->free;
        queue->free = call->next_free;
        call_free(call);
    }
    queue->n_free = 0;
}

static grpc_call_error
request(struct toc_rpc_call *call)
{
    const struct rpc_method *method = call->method;
    grpc_completion_queue *queue = call->queue->grpc;

    if (method->service == NULL)
        return grpc_server_request_call(method->server->grpc, &call->grpc,
                                        &call->details, &call->metadata, queue,
                                        queue, &call->arrived);
    return grpc_server_request_registered_call(
        method->server->grpc, method->registered, &call->grpc,
        &call->grpc_deadline, &call->metadata,
        method->reads_request ? &call->payload : NULL, queue, queue,
        &call->arrived);
}

void
rpc_call_arm(struct rpc_queue *queue, const struct rpc_method *method)
{
    struct toc_rpc_call *call = queue->free;

    if (call != NULL) {
        queue->free = call->next_free;
        queue->n_free--;
    } else {
        call = call_new(queue);
    }
    call->method = method;
    atomic_store(&call->state, RPC_ARMED);
    rpc_tag_start(&call->arrived);
    /* It fails only when the queue is shut down: at the server's end. */
    if (request(call) != GRPC_CALL_OK)
        call_release(call);
}

/* Both events are in: the call is over. */
static void
event_done(struct toc_rpc_call *call)
{
    struct toc_rpc_server *server = call->queue->server;

    if (--call->awaited > 0)
        return;
    call_release(call);
    if (atomic_fetch_sub(&server->active, 1) == 1 &&
        atomic_load(&server->stopping))
        toc_bell_ring(&server->bell);
}

/* ---- arrival -------------------------------------------------------- */

static void
begin_unary(struct toc_rpc_call *call)
{
    const struct rpc_method *method = call->method;
    const ProtobufCMessageDescriptor *type =
        method->service->methods[method->index].input;
    const ProtobufCMessage *message;

    if (call->payload == NULL) {
        toc_rpc_fail_text(call, TOC_INVALID, "the request has no message");
        return;
    }
    call->bytes = rpc_buffer_view(call->payload, &call->arena);
    message = toc_rpc_unpack(type, call->bytes, &call->arena);
    if (message == NULL) {
        toc_rpc_fail_text(call, TOC_INVALID, "the request is not a valid %s",
                          type->name);
        return;
    }
    method->handler(method->self, method->index, message, call);
}

static void
refuse_unknown(struct toc_rpc_call *call)
{
    struct toc_str method = rpc_slice_view(&call->details.method);

    toc_rpc_fail_text(call, TOC_UNIMPLEMENTED, "this server has no method %.*s",
                      (int)(method.len < 200 ? method.len : 200), method.ptr);
}

static void
refuse_for_now(struct toc_rpc_call *call, enum toc_status st, const char *why)
{
    struct toc_rpc_failure failure;

    toc_rpc_failure_init(&failure, &call->arena);
    toc_rpc_failure_set(&failure, st, "%s", why);
    failure.retry_after_ms = BUSY_RETRY_MS;
    toc_rpc_fail(call, &failure);
}

/* Told by a batch of its own, so that it is known while a handler works. */
static void
expect_close(struct toc_rpc_call *call)
{
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};

    op.data.recv_close_on_server.cancelled = &call->close_cancelled;
    rpc_start_batch(call->grpc, &op, 1, &call->closed);
}

static void
on_arrived(void *object, bool ok)
{
    struct toc_rpc_call *call = object;
    const struct rpc_method *method = call->method;
    struct toc_rpc_server *server = method->server;

    if (!ok) { /* the server shuts down */
        call_release(call);
        return;
    }
    rpc_call_arm(call->queue, method);
    atomic_fetch_add(&server->active, 1);
    atomic_fetch_add(&server->arrived, 1);
    call->awaited = 2;
    call->deadline = rpc_deadline_from_grpc(
        server->options.clock,
        method->service != NULL ? call->grpc_deadline : call->details.deadline);
    atomic_store(&call->state, RPC_HANDLED);
    expect_close(call);
    if (atomic_fetch_add(&server->in_flight, 1) >=
        server->options.calls_in_flight_max)
        refuse_for_now(call, TOC_EXHAUSTED,
                       "too many calls at once on this server");
    else if (atomic_load(&server->stopping))
        refuse_for_now(call, TOC_UNAVAILABLE, "the server stops");
    else if (method->service == NULL)
        refuse_unknown(call);
    else if (method->begin != NULL)
        method->begin(call);
    else
        begin_unary(call);
}

static void
on_closed(void *object, bool ok)
{
    struct toc_rpc_call *call = object;

    (void)ok; /* this batch always succeeds */
    if (call->close_cancelled)
        atomic_store(&call->cancelled, true);
    if (call->on_closed != NULL)
        call->on_closed(call);
    event_done(call);
}

/* Whether it reached the client is for the client to find out. */
static void
on_answered(void *object, bool ok)
{
    (void)ok;
    event_done(object);
}

/* ---- the answer ----------------------------------------------------- */

static void
add_trailer(struct toc_rpc_call *call, struct toc_str name,
            struct toc_str value)
{
    grpc_metadata *trailer = &call->trailers[call->n_trailers++];

    trailer->key = rpc_slice_copy(name);
    trailer->value = rpc_slice_copy(value);
}

static void
echo_request_id(struct toc_rpc_call *call)
{
    struct toc_str id;

    if (rpc_metadata_find(&call->metadata, REQUEST_ID, &id) &&
        id.len <= REQUEST_ID_MAX && rpc_metadata_legal(TOC_STR(REQUEST_ID), id))
        add_trailer(call, TOC_STR(REQUEST_ID), id);
}

static grpc_op
op_initial_metadata(struct toc_rpc_call *call)
{
    call->initial_sent = true;
    return (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
}

static grpc_op
op_message(grpc_byte_buffer *buffer)
{
    grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};

    op.data.send_message.send_message = buffer;
    return op;
}

static grpc_op
op_status(struct toc_rpc_call *call, enum toc_status st, grpc_slice *text)
{
    grpc_op op = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER};

    op.data.send_status_from_server.status = (grpc_status_code)st;
    op.data.send_status_from_server.status_details = text;
    op.data.send_status_from_server.trailing_metadata = call->trailers;
    op.data.send_status_from_server.trailing_metadata_count = call->n_trailers;
    return op;
}

/* The caller has set RPC_ANSWERED. The call may be gone when this returns. */
static void
send_answer(struct toc_rpc_call *call, enum toc_status st, const char *message)
{
    grpc_op ops[3];
    size_t n = 0;
    grpc_slice text;
    grpc_slice *with_text = NULL;

    if (message != NULL) {
        text = grpc_slice_from_copied_string(message);
        with_text = &text;
    }
    echo_request_id(call);
    if (!call->initial_sent)
        ops[n++] = op_initial_metadata(call);
    if (call->reply != NULL)
        ops[n++] = op_message(call->reply);
    ops[n++] = op_status(call, st, with_text);
    atomic_fetch_sub(&call->queue->server->in_flight, 1);
    rpc_start_batch(call->grpc, ops, n, &call->answered);
    if (with_text != NULL)
        grpc_slice_unref(text);
}

/* A second answer would be written over another call's. */
static void
claim_answer(struct toc_rpc_call *call)
{
    int expected = RPC_HANDLED;

    TOC_ASSERT(
        atomic_compare_exchange_strong(&call->state, &expected, RPC_ANSWERED));
}

void
toc_rpc_reply(struct toc_rpc_call *call, const ProtobufCMessage *reply)
{
    const struct rpc_method *method = call->method;

    TOC_ASSERT(reply->descriptor ==
               method->service->methods[method->index].output);
    claim_answer(call);
    call->reply = rpc_buffer_of_message(reply);
    send_answer(call, TOC_OK, NULL);
}

static void
pack_details(const struct toc_rpc_failure *failure, struct toc_buf *out)
{
    struct toc_rpc_failure cut = *failure;

    toc_rpc_failure_pack(&cut, out);
    while (out->len > DETAILS_MAX && (cut.n_violations > 0 || cut.n_details)) {
        if (cut.n_violations > 1 || cut.n_details == 0)
            cut.n_violations /= 2;
        else
            cut.n_details--;
        toc_buf_reset(out);
        toc_rpc_failure_pack(&cut, out);
    }
}

void
toc_rpc_fail(struct toc_rpc_call *call, const struct toc_rpc_failure *failure)
{
    struct toc_buf details = {0};

    TOC_ASSERT(failure->status != TOC_OK);
    claim_answer(call);
    if (failure->n_violations + failure->n_details > 0 ||
        failure->retry_after_ms > 0) {
        pack_details(failure, &details);
        add_trailer(call, TOC_STR(RPC_DETAILS_KEY), toc_buf_view(&details));
        toc_buf_done(&details);
    }
    send_answer(call, failure->status,
                failure->message != NULL ? failure->message
                                         : toc_status_text(failure->status));
}

void
toc_rpc_fail_text(struct toc_rpc_call *call, enum toc_status st,
                  const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;

    TOC_ASSERT(st != TOC_OK);
    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) < 0)
        text[0] = '\0';
    va_end(args);
    claim_answer(call);
    send_answer(call, st, text);
}

/* ---- streams -------------------------------------------------------- */

void
rpc_stream_send(struct toc_rpc_call *call, const ProtobufCMessage *message,
                struct rpc_tag *tag)
{
    grpc_op ops[2];
    size_t n = 0;
    grpc_byte_buffer *buffer = rpc_buffer_of_message(message);

    if (!call->initial_sent)
        ops[n++] = op_initial_metadata(call);
    ops[n++] = op_message(buffer);
    rpc_start_batch(call->grpc, ops, n, tag);
    /* gRPC has taken the slices. */
    grpc_byte_buffer_destroy(buffer);
}

void
rpc_stream_recv(struct toc_rpc_call *call, struct rpc_tag *tag)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};

    if (call->payload != NULL)
        grpc_byte_buffer_destroy(call->payload);
    call->payload = NULL;
    op.data.recv_message.recv_message = &call->payload;
    rpc_start_batch(call->grpc, &op, 1, tag);
}

void
rpc_stream_end(struct toc_rpc_call *call)
{
    claim_answer(call);
    send_answer(call, TOC_OK, NULL);
}

/* ---- what handlers ask ---------------------------------------------- */

struct toc_arena *
toc_rpc_call_arena(struct toc_rpc_call *call)
{
    return &call->arena;
}

bool
toc_rpc_call_metadata(const struct toc_rpc_call *call, const char *name,
                      struct toc_str *ret_value)
{
    return rpc_metadata_find(&call->metadata, name, ret_value);
}

void
toc_rpc_call_trailer(struct toc_rpc_call *call, const char *name,
                     const char *value)
{
    struct toc_str key = toc_str_of(name), text = toc_str_of(value);

    TOC_ASSERT(call->n_trailers < RPC_TRAILERS_MAX);
    /* A value that HTTP/2 cannot carry would cost the whole answer. */
    if (rpc_metadata_legal(key, text))
        add_trailer(call, key, text);
}

struct toc_mono
toc_rpc_call_deadline(const struct toc_rpc_call *call)
{
    return call->deadline;
}

bool
toc_rpc_call_cancelled(const struct toc_rpc_call *call)
{
    const struct toc_clock *clk = call->queue->server->options.clock;

    return atomic_load(&call->cancelled) ||
           toc_clock_mono(clk).ns >= call->deadline.ns;
}

const char *
toc_rpc_call_peer(const struct toc_rpc_call *call)
{
    struct toc_rpc_call *self = (struct toc_rpc_call *)call;

    if (self->peer == NULL)
        self->peer = grpc_call_get_peer(self->grpc);
    return self->peer;
}

struct toc_str
toc_rpc_call_bytes(const struct toc_rpc_call *call)
{
    return call->bytes;
}
