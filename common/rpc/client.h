/*
 * A gRPC client: one channel per address, reused; unary calls, asynchronous or
 * waited for; deadlines on the monotonic clock; gRPC's own retries off;
 * keepalive that default servers accept.
 *
 * Threads: any may start calls. Done callbacks run on the client's completion
 * threads and must not block. Ownership: toc_rpc_client_free cancels what is
 * under way and returns when every callback has run.
 */
#ifndef TOC_RPC_CLIENT_H
#define TOC_RPC_CLIENT_H

#include "common/clock/clock.h"
#include "common/rpc/rpc.h"

#include <stdbool.h>

struct toc_rpc_client;
struct toc_rpc_pending;

struct toc_rpc_client_options {
    const struct toc_clock *clock;
    size_t threads;         /* completion threads; 0: 1 */
    size_t channels_max;    /* 0: 1,024; the idlest is closed beyond */
    size_t reply_bytes_max; /* 0: 8 MiB; larger: the call fails, EXHAUSTED */
};

/* What came back. All borrowed for the callback. */
struct toc_rpc_result {
    /* CANCELLED only when this side cancelled: a peer that says so stops, or
     * lost somebody behind it, and that is UNAVAILABLE. */
    enum toc_status status;
    struct toc_str message; /* of a failure */
    struct toc_str details; /* packed google.rpc.Status; may be empty */
    struct toc_str reply;   /* bytes of the response message */
    /* True: the request was surely never handed to the server's application
     * (no connection could be made). */
    bool not_sent;
    bool from_peer; /* a failure: the other side sent it, as the call's end */
};

typedef void toc_rpc_done_fn(void *arg, const struct toc_rpc_result *result);

struct toc_rpc_request {
    const char *address;  /* host:port */
    const char *method;   /* "/package.Service/Method" */
    struct toc_str bytes; /* the request message; copied */
    const struct toc_rpc_metadata *metadata;
    size_t n_metadata;
    struct toc_mono deadline;
    bool wait_for_ready; /* else fail at once while there is no connection */
};

struct toc_rpc_client *toc_rpc_client_new(
    const struct toc_rpc_client_options *options);
void toc_rpc_client_free(struct toc_rpc_client *client);

/* Starts a call; done is called exactly once, also when the address is bad. The
 * handle is good until done returns; for toc_rpc_cancel only. */
struct toc_rpc_pending *toc_rpc_start(struct toc_rpc_client *client,
                                      const struct toc_rpc_request *request,
                                      toc_rpc_done_fn *done, void *arg);
/* The call ends soon, as CANCELLED unless it has ended. Must not race with
 * done's return: for callers that serialise both. */
void toc_rpc_cancel(struct toc_rpc_pending *pending);
/* Cancels all that is under way. */
void toc_rpc_cancel_all(struct toc_rpc_client *client);

/*
 * Calls and waits. *ret_reply (in the arena) on TOC_OK. On failure *ret_details
 * (may be NULL) is the packed google.rpc.Status, in the arena, or empty.
 * Blocking: until the deadline at most.
 */
TOC_MUST_CHECK enum toc_status toc_rpc_call(
    struct toc_rpc_client *client, const char *address,
    const ProtobufCServiceDescriptor *service, const char *method,
    const ProtobufCMessage *request, int64_t timeout_ms,
    struct toc_arena *arena, ProtobufCMessage **ret_reply,
    struct toc_str *ret_details, struct toc_error *reterr);

#endif
