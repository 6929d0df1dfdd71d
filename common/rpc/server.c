/*
 * The server as a whole: its methods, its queues with a thread each, start and
 * stop.
 */
#include "common/rpc/server_internal.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#include <stdio.h>
#include <string.h>

#define THREADS 2
#define THREADS_MAX 64
#define ARMED 64
#define ARMED_STREAM 2
#define ARMED_UNKNOWN 4
#define REQUEST_BYTES ((size_t)8 * 1024 * 1024)
#define IN_FLIGHT 10000
#define METADATA_BYTES (16 * 1024)
/* Pings of clients that keep connections alive are welcome this often. */
#define PING_LEAST_MS 5000
/* Clients that vanished are noticed by pings of ours. */
#define KEEPALIVE_MS 60000
#define KEEPALIVE_TIMEOUT_MS 20000
/* Stop: no new call for so long is quiet; and how long to wait for that. */
#define QUIET_MS 10
#define QUIET_MAX_MS 200

static void
on_drained(void *object, bool ok)
{
    struct toc_rpc_server *server = object;

    (void)ok;
    atomic_store(&server->drained, true);
    toc_bell_ring(&server->bell);
}

static void
set_defaults(struct toc_rpc_server_options *options)
{
    if (options->threads == 0)
        options->threads = THREADS;
    if (options->calls_armed == 0)
        options->calls_armed = ARMED;
    if (options->request_bytes_max == 0)
        options->request_bytes_max = REQUEST_BYTES;
    if (options->calls_in_flight_max == 0)
        options->calls_in_flight_max = IN_FLIGHT;
    TOC_ASSERT(options->clock != NULL && options->threads <= THREADS_MAX &&
               options->request_bytes_max <= INT32_MAX);
}

enum toc_status
toc_rpc_server_new(const struct toc_rpc_server_options *options,
                   struct toc_rpc_server **ret_server, struct toc_error *reterr)
{
    struct toc_rpc_server *server;
    struct toc_str host;
    int port;

    if (!rpc_address_split(options->listen, true, &host, &port))
        return toc_error_set(reterr, TOC_INVALID, "grpc", 0,
                             "\"%s\" is not host:port to listen on",
                             options->listen != NULL ? options->listen : "");
    server = TOC_NEW(struct toc_rpc_server);
    server->options = *options;
    set_defaults(&server->options);
    server->address = toc_strdup(options->listen);
    server->options.listen = server->address;
    server->host = (struct toc_str){server->address, host.len};
    server->port = port;
    rpc_tag_init(&server->drain, on_drained, server);
    toc_bell_init(&server->bell);
    server->unknown.server = server;
    server->unknown.armed = ARMED_UNKNOWN;
    rpc_library_init();
    server->health = rpc_health_new(server);
    server->reflect = rpc_reflect_new(server);
    *ret_server = server;
    return TOC_OK;
}

/* ---- methods -------------------------------------------------------- */

static struct rpc_method *
add_method(struct toc_rpc_server *server,
           const ProtobufCServiceDescriptor *service, unsigned index)
{
    struct rpc_method *method;

    TOC_ASSERT(server->grpc == NULL);
    server->methods = toc_realloc(server->methods, (server->n_methods + 1) *
                                                       sizeof *server->methods);
    method = &server->methods[server->n_methods++];
    *method = (struct rpc_method){
        .server = server,
        .service = service,
        .index = index,
        .reads_request = true,
        .armed = server->options.calls_armed,
    };
    return method;
}

static bool
is_stream(const struct toc_rpc_server *server,
          const ProtobufCServiceDescriptor *service, unsigned index)
{
    for (size_t i = 0; i < server->n_methods; i++)
        if (server->methods[i].service == service &&
            server->methods[i].index == index)
            return server->methods[i].begin != NULL;
    return false;
}

void
toc_rpc_server_add(struct toc_rpc_server *server,
                   const ProtobufCServiceDescriptor *service,
                   toc_rpc_handler_fn *handler, void *self)
{
    for (unsigned i = 0; i < service->n_methods; i++) {
        struct rpc_method *method;
        if (is_stream(server, service, i))
            continue;
        method = add_method(server, service, i);
        method->handler = handler;
        method->self = self;
    }
}

void
rpc_server_add_stream(struct toc_rpc_server *server,
                      const ProtobufCServiceDescriptor *service, unsigned index,
                      bool reads_request, rpc_stream_fn *begin)
{
    struct rpc_method *method = add_method(server, service, index);

    method->begin = begin;
    method->reads_request = reads_request;
    method->armed = ARMED_STREAM;
}

bool
rpc_server_has(const struct toc_rpc_server *server, struct toc_str name)
{
    for (size_t i = 0; i < server->n_methods; i++)
        if (toc_str_eq(toc_str_of(server->methods[i].service->name), name))
            return true;
    return false;
}

/* ---- start ---------------------------------------------------------- */

static grpc_server *
create(const struct toc_rpc_server_options *options)
{
    grpc_arg args[] = {
        rpc_arg(GRPC_ARG_ALLOW_REUSEPORT, 0), /* a port taken is an error */
        rpc_arg(GRPC_ARG_ENABLE_CHANNELZ, 0),
        rpc_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
                (int)options->request_bytes_max),
        rpc_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1),
        rpc_arg(GRPC_ARG_MAX_METADATA_SIZE, METADATA_BYTES),
        rpc_arg(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                PING_LEAST_MS),
        rpc_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
        rpc_arg(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS),
        rpc_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS),
        rpc_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
    };
    grpc_channel_args all = {sizeof args / sizeof args[0], args};

    return grpc_server_create(&all, NULL);
}

static void
register_methods(struct toc_rpc_server *server)
{
    for (size_t i = 0; i < server->n_methods; i++) {
        struct rpc_method *method = &server->methods[i];
        const ProtobufCServiceDescriptor *service = method->service;
        struct toc_buf path = {0};

        toc_buf_printf(&path, "/%s/%s", service->name,
                       service->methods[method->index].name);
        method->registered = grpc_server_register_method(
            server->grpc, path.data, NULL,
            method->reads_request ? GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER
                                  : GRPC_SRM_PAYLOAD_NONE,
            0);
        TOC_ASSERT(method->registered != NULL && "a service was added twice");
        toc_buf_done(&path);
    }
}

static bool
bind_port(struct toc_rpc_server *server)
{
    grpc_server_credentials *open = grpc_insecure_server_credentials_create();
    int port =
        grpc_server_add_http2_port(server->grpc, server->options.listen, open);
    struct toc_buf address = {0};

    grpc_server_credentials_release(open);
    if (port <= 0)
        return false;
    toc_buf_str(&address, server->host);
    toc_buf_printf(&address, ":%d", port);
    server->host.ptr = address.data;
    server->port = port;
    toc_free(server->address);
    server->address = address.data;
    server->options.listen = address.data;
    return true;
}

static void
make_queues(struct toc_rpc_server *server)
{
    server->n_queues = server->options.threads;
    server->queues = TOC_NEW_ARRAY(struct rpc_queue, server->n_queues);
    for (size_t i = 0; i < server->n_queues; i++) {
        server->queues[i].server = server;
        server->queues[i].grpc = rpc_queue_new();
        grpc_server_register_completion_queue(server->grpc,
                                              server->queues[i].grpc, NULL);
    }
}

static void
run_queue(void *arg)
{
    struct rpc_queue *queue = arg;

    rpc_queue_run(queue->grpc);
}

static void
run_queues(struct toc_rpc_server *server)
{
    for (size_t i = 0; i < server->n_queues; i++) {
        struct rpc_queue *queue = &server->queues[i];
        char name[16];

        for (size_t m = 0; m < server->n_methods; m++)
            for (size_t k = 0; k < server->methods[m].armed; k++)
                rpc_call_arm(queue, &server->methods[m]);
        for (size_t k = 0; k < server->unknown.armed; k++)
            rpc_call_arm(queue, &server->unknown);
        toc_format(name, sizeof name, "rpc-%zu", i);
        toc_thread_start(&queue->thread, name, run_queue, queue);
    }
}

static void
end_queues(struct toc_rpc_server *server)
{
    for (size_t i = 0; i < server->n_queues; i++)
        grpc_completion_queue_shutdown(server->queues[i].grpc);
    for (size_t i = 0; i < server->n_queues; i++) {
        struct rpc_queue *queue = &server->queues[i];

        if (queue->thread.started)
            toc_thread_join(&queue->thread);
        else
            rpc_queue_run(queue->grpc); /* only sees the shutdown */
        rpc_calls_free(queue);
        grpc_completion_queue_destroy(queue->grpc);
    }
    toc_free(server->queues);
    server->queues = NULL;
    server->n_queues = 0;
}

enum toc_status
toc_rpc_server_start(struct toc_rpc_server *server, struct toc_error *reterr)
{
    TOC_ASSERT(server->grpc == NULL && !atomic_load(&server->stopping));
    server->grpc = create(&server->options);
    make_queues(server);
    register_methods(server);
    if (!bind_port(server)) {
        grpc_server_destroy(server->grpc);
        server->grpc = NULL;
        end_queues(server);
        return toc_error_set(reterr, TOC_UNAVAILABLE, "grpc", 0,
                             "cannot listen on %s: the port is taken, or the "
                             "address is not of this machine",
                             server->address);
    }
    grpc_server_start(server->grpc);
    run_queues(server);
    return TOC_OK;
}

const char *
toc_rpc_server_address(const struct toc_rpc_server *server)
{
    return server->address;
}

void
toc_rpc_server_serving(struct toc_rpc_server *server, bool serving)
{
    rpc_health_set(server->health, serving);
}

/* ---- stop ----------------------------------------------------------- */

static int64_t
now_ns(const struct toc_rpc_server *server)
{
    return toc_clock_mono(server->options.clock).ns;
}

/*
 * gRPC resets calls that arrive once shutdown has begun, so clients would see
 * CANCELLED. While they are refused by us they see UNAVAILABLE, as documented;
 * so let those come in that are on their way.
 */
static void
wait_quiet(struct toc_rpc_server *server, int64_t until_ns)
{
    size_t seen;

    do {
        int64_t pause_ns = now_ns(server) + QUIET_MS * TOC_NS_PER_MS;
        seen = atomic_load(&server->arrived);
        while (toc_bell_wait(&server->bell, pause_ns))
            continue;
    } while (seen != atomic_load(&server->arrived) &&
             now_ns(server) < until_ns);
}

static bool
ended(struct toc_rpc_server *server)
{
    return atomic_load(&server->drained) && atomic_load(&server->active) == 0;
}

static void
wait_ended(struct toc_rpc_server *server, int64_t until_ns)
{
    while (!ended(server))
        if (!toc_bell_wait(&server->bell, until_ns) && !ended(server))
            return;
}

void
toc_rpc_server_stop(struct toc_rpc_server *server, int64_t grace_ms)
{
    int64_t until_ns = now_ns(server) + grace_ms * TOC_NS_PER_MS;
    int64_t quiet_ms = grace_ms < QUIET_MAX_MS ? grace_ms : QUIET_MAX_MS;

    if (server->grpc == NULL)
        return;
    atomic_store(&server->stopping, true);
    rpc_health_stop(server->health);
    rpc_reflect_stop(server->reflect);
    if (quiet_ms > 0)
        wait_quiet(server, now_ns(server) + quiet_ms * TOC_NS_PER_MS);
    rpc_tag_start(&server->drain);
    grpc_server_shutdown_and_notify(server->grpc, server->queues[0].grpc,
                                    &server->drain);
    wait_ended(server, until_ns);
    if (!ended(server))
        grpc_server_cancel_all_calls(server->grpc);
    wait_ended(server, TOC_BELL_FOREVER);
    grpc_server_destroy(server->grpc);
    server->grpc = NULL;
    end_queues(server);
}

void
toc_rpc_server_free(struct toc_rpc_server *server)
{
    if (server == NULL)
        return;
    TOC_ASSERT(server->grpc == NULL && "stopped before");
    rpc_reflect_free(server->reflect);
    rpc_health_free(server->health);
    toc_bell_done(&server->bell);
    toc_free(server->methods);
    toc_free(server->address);
    toc_free(server);
    rpc_library_done();
}
