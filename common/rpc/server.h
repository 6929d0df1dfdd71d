/*
 * A gRPC server that serves any protobuf-c service from its descriptor.
 *
 * It also serves grpc.health.v1 and server reflection (v1, v1alpha), and
 * answers UNIMPLEMENTED, naming the method, to everything else.
 *
 * Threads: handlers run on the server's completion threads and must not block:
 * they answer at once, or keep the call and answer later from any thread,
 * exactly once. Everything of a call (request, metadata) lives in its arena
 * until it is answered.
 */
#ifndef TOC_RPC_SERVER_H
#define TOC_RPC_SERVER_H

#include "common/clock/clock.h"
#include "common/rpc/rpc.h"

#include <stdbool.h>

struct toc_rpc_server;
struct toc_rpc_call;

/* method: index in the service's descriptor. request: unpacked, in the call's
 * arena; not NULL. */
typedef void toc_rpc_handler_fn(void *self, unsigned method,
                                const ProtobufCMessage *request,
                                struct toc_rpc_call *call);

struct toc_rpc_server_options {
    const char *listen; /* host:port; port 0: any free one */
    const struct toc_clock *clock;
    size_t threads;             /* completion threads; 0: 2 */
    size_t calls_armed;         /* per thread and method; 0: 64 */
    size_t request_bytes_max;   /* 0: 8 MiB; larger: RESOURCE_EXHAUSTED */
    size_t calls_in_flight_max; /* 0: 10,000; more: RESOURCE_EXHAUSTED */
};

TOC_MUST_CHECK enum toc_status toc_rpc_server_new(
    const struct toc_rpc_server_options *options,
    struct toc_rpc_server **ret_server, struct toc_error *reterr);
/* Before start. */
void toc_rpc_server_add(struct toc_rpc_server *server,
                        const ProtobufCServiceDescriptor *service,
                        toc_rpc_handler_fn *handler, void *self);
/* Binds and serves; health stays NOT_SERVING until set. TOC_UNAVAILABLE: the
 * address cannot be had. */
TOC_MUST_CHECK enum toc_status toc_rpc_server_start(
    struct toc_rpc_server *server, struct toc_error *reterr);
/* "host:port" with the port that was bound. */
const char *toc_rpc_server_address(const struct toc_rpc_server *server);
/* Overall health ("" and each service). Any thread. */
void toc_rpc_server_serving(struct toc_rpc_server *server, bool serving);
/* Stops accepting, lets calls under way end, cancels what is left after
 * grace_ms, joins the threads. Kept calls must still be answered (their answer
 * goes nowhere); stop returns when all have been. */
void toc_rpc_server_stop(struct toc_rpc_server *server, int64_t grace_ms);
void toc_rpc_server_free(struct toc_rpc_server *server); /* stopped before */

/* ---- a call, from its handler's side -------------------------------- */

struct toc_arena *toc_rpc_call_arena(struct toc_rpc_call *call);
/* Answers; the reply is packed before this returns. The call is gone then. */
void toc_rpc_reply(struct toc_rpc_call *call, const ProtobufCMessage *reply);
void toc_rpc_fail(struct toc_rpc_call *call,
                  const struct toc_rpc_failure *failure);
/* Short form: a status and a text. */
__attribute__((format(printf, 3, 4))) void toc_rpc_fail_text(
    struct toc_rpc_call *call, enum toc_status st, const char *format, ...);
/* Request metadata by lower case name; false when absent. */
bool toc_rpc_call_metadata(const struct toc_rpc_call *call, const char *name,
                           struct toc_str *ret_value);
/* Adds trailing metadata; before answering. */
void toc_rpc_call_trailer(struct toc_rpc_call *call, const char *name,
                          const char *value);
/* When the client stops waiting; INT64_MAX ns without a deadline. */
struct toc_mono toc_rpc_call_deadline(const struct toc_rpc_call *call);
/* Has the client gone, or its deadline passed? Any thread. */
bool toc_rpc_call_cancelled(const struct toc_rpc_call *call);
const char *toc_rpc_call_peer(const struct toc_rpc_call *call);
/* The request's bytes as received. */
struct toc_str toc_rpc_call_bytes(const struct toc_rpc_call *call);

#endif
