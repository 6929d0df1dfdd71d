/*
 * The client: calls, from start to their callback. Channels are in
 * client_channel.c.
 *
 * A struct toc_rpc_pending owns all of one call. It is in its lane's list until
 * its batch has completed, and freed when its callback has returned.
 */
#include "common/rpc/client.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/list.h"
#include "common/base/thread.h"
#include "common/rpc/client_channel.h"
#include "common/rpc/rpc_internal.h"

#include <string.h>

#define THREADS 1
#define THREADS_MAX 64
#define CHANNELS_MAX 1024
#define REPLY_BYTES ((size_t)8 * 1024 * 1024)
#define METADATA_MAX 64

/* A completion queue with its thread. */
struct lane {
    struct toc_rpc_client *client;
    grpc_completion_queue *queue;
    struct toc_thread thread;
    pthread_mutex_t lock; /* over the list; a leaf */
    struct toc_link pending;
};

struct toc_rpc_client {
    const struct toc_clock *clock;
    struct rpc_channels *channels;
    struct lane *lanes;
    size_t n_lanes;
    atomic_size_t next_lane;
    atomic_size_t active; /* calls whose callback has not returned */
    atomic_bool closing;
    struct toc_bell idle; /* rung while closing, when active falls to 0 */
};

struct toc_rpc_pending {
    struct toc_link link;
    struct lane *lane;
    toc_rpc_done_fn *done;
    void *arg;
    struct rpc_tag tag;
    grpc_call *call;
    grpc_byte_buffer *request, *reply;
    grpc_metadata_array initial, trailing;
    grpc_status_code code;
    grpc_slice text;
    const char *why; /* gRPC's own description of a failure */
    bool refused;    /* by us, before anything was done */
    atomic_bool cancelled;
    size_t n_metadata;
    grpc_metadata metadata[];
};

/* ---- completion ----------------------------------------------------- */

/*
 * Was the request surely never given to a connection? gRPC has no field for
 * that, but describes each failure for debugging, and what it made up itself
 * never looks like what a peer sent ("Error received from peer"). These two are
 * made where a call fails to get a connection at all. All else may have arrived
 * (after a failed write too); should a later gRPC word them differently, the
 * answer is the careful one, and a test fails.
 */
static bool
never_sent(const struct toc_rpc_pending *pending)
{
    static const char *const texts[] = {
        "UNKNOWN:failed to connect to all addresses",
        "UNKNOWN:DNS resolution failed for ",
    };
    struct toc_str why = toc_str_of(pending->why);

    if (pending->refused)
        return true;
    if (pending->code != GRPC_STATUS_UNAVAILABLE)
        return false;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (toc_str_starts(why, toc_str_of(texts[i])))
            return true;
    return false;
}

/* See above; what this side makes up never has these words. */
static bool
sent_by_peer(const struct toc_rpc_pending *pending)
{
    return !pending->refused &&
           strstr(pending->why, "Error received from peer") != NULL;
}

static void
pending_free(struct toc_rpc_pending *pending)
{
    for (size_t i = 0; i < pending->n_metadata; i++) {
        grpc_slice_unref(pending->metadata[i].key);
        grpc_slice_unref(pending->metadata[i].value);
    }
    grpc_byte_buffer_destroy(pending->request);
    if (pending->reply != NULL)
        grpc_byte_buffer_destroy(pending->reply);
    grpc_metadata_array_destroy(&pending->initial);
    grpc_metadata_array_destroy(&pending->trailing);
    grpc_slice_unref(pending->text);
    gpr_free((void *)pending->why);
    grpc_call_unref(pending->call);
    toc_free(pending);
}

/*
 * A C core server that stops answers CANCELLED to calls that reach it in that
 * moment, and proxies do so to calls they drop. To a caller who has cancelled
 * nothing that is what every lost connection is.
 */
static enum toc_status
status_of(struct toc_rpc_pending *pending)
{
    enum toc_status st = rpc_status_from_grpc(pending->code);

    if (st == TOC_CANCELLED && !pending->refused &&
        !atomic_load(&pending->cancelled))
        return TOC_UNAVAILABLE;
    return st;
}

static void
give_result(struct toc_rpc_pending *pending)
{
    struct toc_arena arena = {0};
    struct toc_rpc_result result = {.status = status_of(pending)};

    if (result.status != TOC_OK) {
        result.message = rpc_slice_view(&pending->text);
        (void)rpc_metadata_find(&pending->trailing, RPC_DETAILS_KEY,
                                &result.details);
        result.not_sent = never_sent(pending);
        result.from_peer = sent_by_peer(pending);
    } else if (pending->reply == NULL) {
        result.status = TOC_INTERNAL;
        result.message = TOC_STR("the server answered OK without a message");
    } else {
        result.reply = rpc_buffer_view(pending->reply, &arena);
    }
    pending->done(pending->arg, &result);
    toc_arena_done(&arena);
}

static void
on_done(void *object, bool ok)
{
    struct toc_rpc_pending *pending = object;
    struct lane *lane = pending->lane;
    struct toc_rpc_client *client = lane->client;

    (void)ok; /* a batch that receives the status always succeeds */
    pthread_mutex_lock(&lane->lock);
    toc_list_remove(&pending->link);
    pthread_mutex_unlock(&lane->lock);
    give_result(pending);
    pending_free(pending);
    if (atomic_fetch_sub(&client->active, 1) == 1 &&
        atomic_load(&client->closing))
        toc_bell_ring(&client->idle);
}

/* ---- start ---------------------------------------------------------- */

/* Why the request cannot be made at all; NULL when it can. */
static const char *
refusal(const struct toc_rpc_client *client,
        const struct toc_rpc_request *request)
{
    struct toc_str host;
    int port;

    if (atomic_load(&client->closing))
        return "the client is closing";
    if (!rpc_address_split(request->address, false, &host, &port))
        return "the address is not host:port";
    if (request->method == NULL || request->method[0] != '/')
        return "the method is not /package.Service/Method";
    if (!rpc_metadata_legal(TOC_STR("x"), toc_str_of(request->method)))
        return "the method has characters that cannot be sent";
    if (request->n_metadata > METADATA_MAX)
        return "there is too much metadata";
    for (size_t i = 0; i < request->n_metadata; i++)
        if (!rpc_metadata_legal(request->metadata[i].name,
                                request->metadata[i].value))
            return "the metadata cannot be sent";
    return NULL;
}

static struct toc_rpc_pending *
pending_new(struct toc_rpc_client *client,
            const struct toc_rpc_request *request, size_t n_metadata)
{
    struct toc_rpc_pending *pending = toc_calloc(
        1, sizeof *pending + n_metadata * sizeof pending->metadata[0]);

    pending->lane =
        &client
             ->lanes[atomic_fetch_add(&client->next_lane, 1) % client->n_lanes];
    rpc_tag_init(&pending->tag, on_done, pending);
    grpc_metadata_array_init(&pending->initial);
    grpc_metadata_array_init(&pending->trailing);
    pending->request = rpc_buffer_of_bytes(request->bytes);
    pending->text = grpc_slice_from_static_string("");
    pending->n_metadata = n_metadata;
    for (size_t i = 0; i < n_metadata; i++) {
        pending->metadata[i].key = rpc_slice_copy(request->metadata[i].name);
        pending->metadata[i].value = rpc_slice_copy(request->metadata[i].value);
    }
    return pending;
}

static void
create_call(struct toc_rpc_client *client, struct toc_rpc_pending *pending,
            const struct toc_rpc_request *request, const char *refused)
{
    grpc_completion_queue *queue = pending->lane->queue;
    gpr_timespec deadline;

    if (refused != NULL) {
        pending->refused = true;
        pending->call = rpc_channels_lame_call(queue, refused,
                                               atomic_load(&client->closing));
        return;
    }
    deadline = rpc_deadline_to_grpc(client->clock, request->deadline);
    pending->call = rpc_channels_call(client->channels, queue, request->address,
                                      request->method, deadline);
}

static void
start_batch(struct toc_rpc_pending *pending, bool wait_for_ready)
{
    grpc_op ops[6] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_SEND_MESSAGE},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
        {.op = GRPC_OP_RECV_INITIAL_METADATA},
        {.op = GRPC_OP_RECV_MESSAGE},
        {.op = GRPC_OP_RECV_STATUS_ON_CLIENT},
    };

    ops[0].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET;
    if (wait_for_ready)
        ops[0].flags |= GRPC_INITIAL_METADATA_WAIT_FOR_READY;
    ops[0].data.send_initial_metadata.count = pending->n_metadata;
    ops[0].data.send_initial_metadata.metadata = pending->metadata;
    ops[1].data.send_message.send_message = pending->request;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &pending->initial;
    ops[4].data.recv_message.recv_message = &pending->reply;
    ops[5].data.recv_status_on_client.trailing_metadata = &pending->trailing;
    ops[5].data.recv_status_on_client.status = &pending->code;
    ops[5].data.recv_status_on_client.status_details = &pending->text;
    ops[5].data.recv_status_on_client.error_string = &pending->why;
    rpc_start_batch(pending->call, ops, 6, &pending->tag);
}

struct toc_rpc_pending *
toc_rpc_start(struct toc_rpc_client *client,
              const struct toc_rpc_request *request, toc_rpc_done_fn *done,
              void *arg)
{
    const char *refused = refusal(client, request);
    struct toc_rpc_pending *pending =
        pending_new(client, request, refused == NULL ? request->n_metadata : 0);
    struct lane *lane = pending->lane;

    pending->done = done;
    pending->arg = arg;
    atomic_fetch_add(&client->active, 1);
    create_call(client, pending, request, refused);
    pthread_mutex_lock(&lane->lock);
    toc_list_push(&lane->pending, &pending->link);
    pthread_mutex_unlock(&lane->lock);
    /* A callback may start this while the client begins to close, too late for
     * toc_rpc_client_free to find it in the list. */
    if (refused == NULL && atomic_load(&client->closing))
        toc_rpc_cancel(pending);
    start_batch(pending, request->wait_for_ready);
    return pending;
}

/* ---- cancel --------------------------------------------------------- */

void
toc_rpc_cancel(struct toc_rpc_pending *pending)
{
    atomic_store(&pending->cancelled, true);
    (void)grpc_call_cancel(pending->call, NULL);
}

void
toc_rpc_cancel_all(struct toc_rpc_client *client)
{
    for (size_t i = 0; i < client->n_lanes; i++) {
        struct lane *lane = &client->lanes[i];

        pthread_mutex_lock(&lane->lock);
        for (struct toc_link *at = lane->pending.next; at != &lane->pending;
             at = at->next)
            toc_rpc_cancel(toc_container_of(at, struct toc_rpc_pending, link));
        pthread_mutex_unlock(&lane->lock);
    }
}

/* ---- new and free --------------------------------------------------- */

static void
run_lane(void *arg)
{
    struct lane *lane = arg;

    rpc_queue_run(lane->queue);
}

static void
open_lane(struct toc_rpc_client *client, size_t i)
{
    struct lane *lane = &client->lanes[i];
    char name[16];

    lane->client = client;
    lane->queue = rpc_queue_new();
    pthread_mutex_init(&lane->lock, NULL);
    toc_list_init(&lane->pending);
    toc_format(name, sizeof name, "rpc-client-%zu", i);
    toc_thread_start(&lane->thread, name, run_lane, lane);
}

static void
close_lane(struct lane *lane)
{
    toc_thread_join(&lane->thread);
    grpc_completion_queue_destroy(lane->queue);
    pthread_mutex_destroy(&lane->lock);
}

struct toc_rpc_client *
toc_rpc_client_new(const struct toc_rpc_client_options *options)
{
    struct toc_rpc_client *client = TOC_NEW(struct toc_rpc_client);
    size_t reply_bytes =
        options->reply_bytes_max > 0 ? options->reply_bytes_max : REPLY_BYTES;

    TOC_ASSERT(options->clock != NULL && options->threads <= THREADS_MAX &&
               reply_bytes <= INT32_MAX);
    rpc_library_init();
    client->clock = options->clock;
    client->channels = rpc_channels_new(
        options->channels_max > 0 ? options->channels_max : CHANNELS_MAX,
        (int)reply_bytes);
    toc_bell_init(&client->idle);
    client->n_lanes = options->threads > 0 ? options->threads : THREADS;
    client->lanes = TOC_NEW_ARRAY(struct lane, client->n_lanes);
    for (size_t i = 0; i < client->n_lanes; i++)
        open_lane(client, i);
    return client;
}

void
toc_rpc_client_free(struct toc_rpc_client *client)
{
    if (client == NULL)
        return;
    atomic_store(&client->closing, true);
    toc_rpc_cancel_all(client);
    while (atomic_load(&client->active) > 0)
        (void)toc_bell_wait(&client->idle, TOC_BELL_FOREVER);
    rpc_channels_free(client->channels);
    for (size_t i = 0; i < client->n_lanes; i++)
        grpc_completion_queue_shutdown(client->lanes[i].queue);
    for (size_t i = 0; i < client->n_lanes; i++)
        close_lane(&client->lanes[i]);
    toc_free(client->lanes);
    toc_bell_done(&client->idle);
    toc_free(client);
    rpc_library_done();
}

/* ---- waiting for the answer ----------------------------------------- */

struct waiting {
    struct toc_bell bell;
    struct toc_arena *arena; /* the waiter's, who sleeps meanwhile */
    const ProtobufCMethodDescriptor *method;
    ProtobufCMessage *reply;
    struct toc_str details;
    struct toc_error error;
    enum toc_status status;
};

static void
on_answer(void *arg, const struct toc_rpc_result *result)
{
    struct waiting *waiting = arg;
    struct toc_str text = result->message;

    waiting->status = result->status;
    if (result->status == TOC_OK) {
        waiting->reply = toc_rpc_unpack(waiting->method->output, result->reply,
                                        waiting->arena);
        if (waiting->reply == NULL) {
            waiting->status = TOC_INTERNAL;
            text = TOC_STR("the reply is malformed");
        }
    }
    waiting->details = toc_arena_str(waiting->arena, result->details);
    if (waiting->status != TOC_OK)
        (void)toc_error_set(&waiting->error, waiting->status, "grpc",
                            (int)waiting->status, "%.*s",
                            (int)(text.len < 240 ? text.len : 240), text.ptr);
    toc_bell_ring(&waiting->bell);
}

static const ProtobufCMethodDescriptor *
find_method(const ProtobufCServiceDescriptor *service, const char *name)
{
    for (unsigned i = 0; i < service->n_methods; i++)
        if (strcmp(service->methods[i].name, name) == 0)
            return &service->methods[i];
    return NULL;
}

static void
call_and_wait(struct toc_rpc_client *client, struct toc_rpc_request *call,
              struct waiting *waiting)
{
    toc_bell_init(&waiting->bell);
    (void)toc_rpc_start(client, call, on_answer, waiting);
    while (!toc_bell_wait(&waiting->bell, TOC_BELL_FOREVER))
        continue;
    toc_bell_done(&waiting->bell);
}

enum toc_status
toc_rpc_call(struct toc_rpc_client *client, const char *address,
             const ProtobufCServiceDescriptor *service, const char *method,
             const ProtobufCMessage *request, int64_t timeout_ms,
             struct toc_arena *arena, ProtobufCMessage **ret_reply,
             struct toc_str *ret_details, struct toc_error *reterr)
{
    struct waiting waiting = {.arena = arena,
                              .method = find_method(service, method)};
    struct toc_buf bytes = {0};
    struct toc_rpc_request call = {
        .address = address,
        .deadline = toc_mono_add_ms(toc_clock_mono(client->clock), timeout_ms),
    };

    TOC_ASSERT(waiting.method != NULL &&
               request->descriptor == waiting.method->input);
    call.method = toc_arena_printf(arena, "/%s/%s", service->name, method);
    toc_rpc_pack(request, &bytes);
    call.bytes = toc_buf_view(&bytes);
    call_and_wait(client, &call, &waiting);
    toc_buf_done(&bytes);
    if (waiting.status == TOC_OK) {
        *ret_reply = waiting.reply;
        return TOC_OK;
    }
    if (ret_details != NULL)
        *ret_details = waiting.details;
    if (reterr != NULL)
        *reterr = waiting.error;
    return waiting.status;
}
