/*
 * The server's insides: method table, queues and calls, for the server_*.c
 * files.
 *
 * A struct toc_rpc_call is armed (handed to gRPC to be filled by the next
 * request of a method), then handled, then answered, then reused. It is
 * released when its answer has gone out AND gRPC has said that the call is
 * closed; both come to its queue's thread, which alone touches the free list.
 */
#ifndef TOC_RPC_SERVER_INTERNAL_H
#define TOC_RPC_SERVER_INTERNAL_H

#include "common/rpc/rpc_internal.h"
#include "common/rpc/server.h"

#include "common/base/thread.h"

#define RPC_TRAILERS_MAX 8

struct rpc_health;
struct rpc_reflect;
struct rpc_method;

typedef void rpc_stream_fn(struct toc_rpc_call *call);

/* Unary when begin is NULL. A stream's begin runs once per call, on the queue's
 * thread, and sees to it that the call is answered some time. */
struct rpc_method {
    struct toc_rpc_server *server;
    const ProtobufCServiceDescriptor *service; /* NULL: the catch-all */
    unsigned index;
    toc_rpc_handler_fn *handler;
    void *self;
    rpc_stream_fn *begin;
    bool reads_request; /* gRPC reads the first message before the call */
    size_t armed;
    void *registered;
};

struct rpc_queue {
    struct toc_rpc_server *server;
    grpc_completion_queue *grpc;
    struct toc_thread thread;
    /* Thread: the queue's own. */
    struct toc_rpc_call *free;
    size_t n_free;
};

enum rpc_call_state { RPC_FREE, RPC_ARMED, RPC_HANDLED, RPC_ANSWERED };

struct toc_rpc_call {
    struct toc_rpc_call *next_free;
    struct rpc_queue *queue;
    const struct rpc_method *method;
    struct toc_arena arena;

    /* From gRPC. */
    grpc_call *grpc;
    grpc_metadata_array metadata;
    grpc_byte_buffer *payload;
    grpc_call_details details; /* of the catch-all */
    gpr_timespec grpc_deadline;
    int close_cancelled;

    struct toc_str bytes; /* the request, in payload or arena */
    struct toc_mono deadline;
    char *peer;       /* asked for when first wanted */
    atomic_int state; /* enum rpc_call_state */
    atomic_bool cancelled;
    unsigned awaited; /* of the events closed and answered */
    struct rpc_tag arrived, closed, answered;

    /* Of a stream. */
    bool initial_sent;
    rpc_stream_fn *on_closed;
    void *stream;

    /* The answer. */
    grpc_metadata trailers[RPC_TRAILERS_MAX + 2]; /* details, request id */
    size_t n_trailers;
    grpc_byte_buffer *reply;
};

struct toc_rpc_server {
    struct toc_rpc_server_options options;
    struct toc_str host; /* of options.listen */
    int port;
    char *address;
    grpc_server *grpc; /* NULL: not started, or stopped */
    struct rpc_method *methods;
    size_t n_methods;
    struct rpc_method unknown;
    struct rpc_queue *queues;
    size_t n_queues;
    struct rpc_health *health;
    struct rpc_reflect *reflect;

    atomic_size_t in_flight; /* calls that wait for their answer */
    atomic_size_t active;    /* calls not yet released */
    atomic_size_t arrived;   /* calls ever */
    atomic_bool stopping, drained;
    struct rpc_tag drain;
    struct toc_bell bell; /* for stop: drained, or no call active */
};

/* Does the server have this service? */
bool rpc_server_has(const struct toc_rpc_server *server, struct toc_str name);
/* A stream of a service, before start. */
void rpc_server_add_stream(struct toc_rpc_server *server,
                           const ProtobufCServiceDescriptor *service,
                           unsigned method, bool reads_request,
                           rpc_stream_fn *begin);

/* ---- server_call.c ------------------------------------------------- */

/* Hands a call object to gRPC for the method's next request. Thread: the
 * queue's, or before it runs. */
void rpc_call_arm(struct rpc_queue *queue, const struct rpc_method *method);
/* Frees the queue's unused objects; its thread has ended. */
void rpc_calls_free(struct rpc_queue *queue);

/* One message to the client; one at a time. */
void rpc_stream_send(struct toc_rpc_call *call, const ProtobufCMessage *message,
                     struct rpc_tag *tag);
/* The next message into call->payload, NULL at the client's end of stream. */
void rpc_stream_recv(struct toc_rpc_call *call, struct rpc_tag *tag);
/* Ends a stream well. */
void rpc_stream_end(struct toc_rpc_call *call);

/* ---- server_health.c ------------------------------------------------ */

struct rpc_health *rpc_health_new(struct toc_rpc_server *server);
void rpc_health_free(struct rpc_health *health);
void rpc_health_set(struct rpc_health *health, bool serving);
/* Not serving, and watches end. */
void rpc_health_stop(struct rpc_health *health);

/* ---- server_reflect.c ----------------------------------------------- */

struct rpc_reflect *rpc_reflect_new(struct toc_rpc_server *server);
void rpc_reflect_free(struct rpc_reflect *reflect);
void rpc_reflect_stop(struct rpc_reflect *reflect);

#endif
