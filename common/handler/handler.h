/*
 * For a business written in C: a gRPC server of toc.v1.TimeoutHandler.
 *
 *     static void on_timeout(void *self, const struct toc_timeout *t,
 *                            struct toc_timeout_answer *answer)
 *     {
 *         close_order(self, t->biz_id);            // answer is DONE already
 *     }
 *
 * It enforces toc-not-after: a call that arrives too late is refused before
 * on_timeout is called (that is what keeps two calls of one fire from
 * overlapping), and on_timeout can ask toc_timeout_expired() during long work
 * and stop. Handlers of one server run on `threads` worker threads and may
 * block. The fires of a batch are spread over idle workers; one that is too
 * late is answered RETRY, alone.
 *
 * Ownership: texts of a toc_timeout live until on_timeout returns.
 * Threads: on_timeout runs on several threads at once when threads > 1. Start
 * and stop block; from one thread. Errors: TOC_UNAVAILABLE when the address
 * cannot be had.
 */
#ifndef TOC_HANDLER_HANDLER_H
#define TOC_HANDLER_HANDLER_H

#include "common/base/status.h"
#include "common/base/str.h"
#include "common/clock/clock.h"
#include "common/rpc/server.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct toc_timeout {
    struct toc_str task_id, biz_type, biz_id, name;
    struct toc_str fire_id; /* the same for every attempt of one fire */
    uint32_t attempt;       /* from 1 */
    int64_t due_ms;         /* ms since 1970 UTC */
    int64_t not_after_ms;   /* do not begin, and stop, after it; 0: none */
    int64_t arrived_ms;     /* when this server received the call */
    struct toc_str payload, content_type;
};

enum toc_timeout_verdict {
    TOC_TIMEOUT_DONE,   /* the default */
    TOC_TIMEOUT_RETRY,  /* failed: try again, at retry_ms if not 0 */
    TOC_TIMEOUT_FAILED, /* failed for good: a dead letter */
    TOC_TIMEOUT_SNOOZE, /* not yet: again at retry_ms */
    TOC_TIMEOUT_STOP,   /* not needed any more */
};

struct toc_timeout_answer {
    enum toc_timeout_verdict verdict;
    int64_t retry_ms; /* ms since 1970 UTC */
    char message[256];
};

typedef void toc_on_timeout_fn(void *self, const struct toc_timeout *timeout,
                               struct toc_timeout_answer *answer);

/* A further service on the same server: a business usually has its own API
 * too. Its handlers run on workers of their own (as many), so they may block,
 * and timeouts that block do not keep them waiting. */
struct toc_handler_service {
    const ProtobufCServiceDescriptor *service;
    toc_rpc_handler_fn *handler;
    void *self;
};

struct toc_handler_options {
    const char *listen; /* host:port; port 0: any free one */
    toc_on_timeout_fn *on_timeout;
    void *self;
    size_t threads; /* workers; 0: 4 */
    /* Calls that wait for a worker; more are answered RESOURCE_EXHAUSTED.
     * 0: 1,000. */
    size_t queue_max;
    const struct toc_handler_service *services; /* NULL: none */
    size_t n_services;
    /* true: on_timeout runs right on the server's completion threads; for
     * handlers that never block. */
    bool inline_calls;
    const struct toc_clock *clock; /* NULL: the machine's */
};

struct toc_handler;
/* *ret_handler is set before the first call comes in, so that handlers may read
 * it from where it was put. */
TOC_MUST_CHECK enum toc_status toc_handler_start(
    const struct toc_handler_options *options, struct toc_handler **ret_handler,
    struct toc_error *reterr);
const char *toc_handler_address(const struct toc_handler *handler);
/* The server below, for its health; it is SERVING from the start on. */
struct toc_rpc_server *toc_handler_server(struct toc_handler *handler);
/* Takes no more calls and lets running handlers end; after grace_ms their
 * callers are told CANCELLED and toc_timeout_expired is true, but it is waited
 * for them still. Frees. NULL is fine. */
void toc_handler_stop(struct toc_handler *handler, int64_t grace_ms);

/* Must this handler stop now? */
bool toc_timeout_expired(const struct toc_handler *handler,
                         const struct toc_timeout *timeout);

#endif
