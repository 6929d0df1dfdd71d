/*
 * The world, its calls and requests. Everything here is under the world's lock
 * unless it says otherwise; functions expect it held.
 */
#ifndef TOC_INVOKE_MEM_INTERNAL_H
#define TOC_INVOKE_MEM_INTERNAL_H

#include "common/base/arena.h"
#include "common/base/heap.h"
#include "common/base/list.h"
#include "common/base/thread.h"
#include "common/invoke/mem/invoke_mem.h"

#include <pthread.h>

struct mem_server {
    struct toc_link link;
    char *address;
    toc_invoke_mem_handler_fn *fn;
    void *arg;
};

struct mem_request {
    struct toc_invoke_mem_request public;
    struct mem_op *op;         /* NULL: nobody waits */
    struct mem_server *server; /* for unserve only */
    struct toc_link link;
    struct toc_arena arena;
};

enum mem_state {
    MEM_TRAVELLING,
    MEM_SERVED,   /* the handler has it */
    MEM_LOST,     /* nothing will come */
    MEM_BROKEN,   /* the connection broke */
    MEM_ANSWERED, /* on its way back */
};

/* A call under way. */
struct mem_op {
    struct toc_heap_node node; /* by next_ns, seq */
    struct toc_link link;      /* of the client */
    struct toc_invoke_mem *invoke;
    struct toc_call *call;
    char *address, *method;
    struct toc_invoke_mem_fate fate;
    enum mem_state state;
    bool cancelled;
    int64_t at_ns, deadline_ns, next_ns; /* the world's monotonic clock */
    uint64_t seq;
    struct mem_request *request; /* SERVED */
    struct toc_answer *answers;  /* ANSWERED; one for each fire */
};

struct toc_invoke_mem_world {
    const struct toc_clock *clock;
    bool threads, stopping;
    toc_invoke_mem_fate_fn *fate;
    void *fate_arg;
    pthread_mutex_t lock;
    pthread_cond_t idle; /* a client's last callback has returned */
    struct toc_heap ops;
    uint64_t last_seq;
    struct toc_link servers, requests;
    struct toc_bell bell;
    struct toc_thread thread;
};

struct toc_invoke_mem {
    struct toc_invoke port;
    struct toc_invoke_mem_world *world;
    const struct toc_clock *clock;
    struct toc_link ops;
    size_t telling; /* done callbacks that run now */
    bool cut;
};

/* ---- client.c -------------------------------------------------------- */

void toc_invoke_mem_op_schedule(
    struct mem_op *op); /* after its state changed */
/* Takes the op out and ends its call; the lock is let go meanwhile. */
void toc_invoke_mem_op_end(struct mem_op *op);

/* ---- request.c ------------------------------------------------------- */

struct mem_request *toc_invoke_mem_request_new(struct mem_op *op,
                                               struct mem_server *server);
void toc_invoke_mem_request_free(struct mem_request *request);

#endif
