/*
 * Calls in memory: what invoke/grpc does, without a network. A world holds the
 * handlers by address (the businesses); clients are the executors.
 *
 * Time is the given clocks' alone. Calls travel, are handled and end inside
 * toc_invoke_mem_pump, which one thread of a simulation calls when it likes;
 * with `threads` the world has a thread of its own for that, and its clock must
 * be the real one.
 *
 * Ownership: clients are freed or killed, and requests answered or dropped,
 * before the world is freed. Threads: any; handlers and done callbacks run on
 * the one that pumps (or frees the client) and must not block. Locks: one per
 * world, a leaf; callbacks run without it.
 */
#ifndef TOC_INVOKE_MEM_H
#define TOC_INVOKE_MEM_H

#include "common/clock/clock.h"
#include "common/invoke/invoke.h"

/* What becomes of a call; all zero: it arrives at once, and so does its
 * answer. */
struct toc_invoke_mem_fate {
    bool unreachable; /* refused: it has surely not begun */
    bool lose;        /* never arrives; the caller hears nothing */
    int64_t delay_ms; /* before it arrives */
    bool lose_answer; /* handled; the caller hears nothing */
    bool break_off;   /* handled; the caller hears that the connection broke */
    int64_t answer_delay_ms;
};
/* Called on the thread that starts the call. */
typedef struct toc_invoke_mem_fate toc_invoke_mem_fate_fn(
    void *arg, const struct toc_call *call);

struct toc_invoke_mem_options {
    const struct toc_clock *clock;
    bool threads;
    toc_invoke_mem_fate_fn *fate; /* or NULL */
    void *fate_arg;
};

struct toc_invoke_mem_world;
struct toc_invoke_mem_world *toc_invoke_mem_world_new(
    const struct toc_invoke_mem_options *options);
void toc_invoke_mem_world_free(struct toc_invoke_mem_world *world);
/* Lets happen what time has brought. When something will happen next by itself
 * (monotonic clock, ns); INT64_MAX: nothing. */
int64_t toc_invoke_mem_pump(struct toc_invoke_mem_world *world);

/* ---- handlers -------------------------------------------------------- */

struct toc_invoke_mem_fire {
    struct toc_task_id task;
    uint32_t fire;
    uint32_t attempt;
    int64_t due_ms;
    bool at_most_once;
    struct toc_str biz_type, biz_id, name, payload;
};

/* Copies of what the call said: it stands by itself until it is answered or
 * dropped, also when its caller has given up or died. */
struct toc_invoke_mem_request {
    struct toc_str method; /* "/package.Service/Method"; empty: TOC's own */
    bool batch;
    const struct toc_invoke_mem_fire *fires;
    size_t n;
    int64_t not_after_ms;
};

/* The request is the handler's until it answers or drops it, then or later. */
typedef void toc_invoke_mem_handler_fn(void *arg,
                                       struct toc_invoke_mem_request *request);

/* address: "host:port". Replaces a handler that is there. */
void toc_invoke_mem_serve(struct toc_invoke_mem_world *world,
                          const char *address, toc_invoke_mem_handler_fn *fn,
                          void *arg);
/* Calls under way there break off; later answers to them go nowhere. With
 * threads the handler may still be running when this returns. */
void toc_invoke_mem_unserve(struct toc_invoke_mem_world *world,
                            const char *address);

/* An answer for each fire; for those that have none, the reply counts as
 * unreadable. Frees the request. Any thread. */
void toc_invoke_mem_answer(struct toc_invoke_mem_world *world,
                           struct toc_invoke_mem_request *request,
                           const struct toc_answer *answers, size_t n);
/* Never answers; frees the request. */
void toc_invoke_mem_drop(struct toc_invoke_mem_world *world,
                         struct toc_invoke_mem_request *request);
/* Has the caller stopped waiting (deadline, cancel, death)? */
bool toc_invoke_mem_gone(struct toc_invoke_mem_world *world,
                         struct toc_invoke_mem_request *request);

/* ---- clients --------------------------------------------------------- */

struct toc_invoke_mem;
/* clock: of the client's process; NULL: the world's. */
struct toc_invoke_mem *toc_invoke_mem_new(struct toc_invoke_mem_world *world,
                                          const struct toc_clock *clock);
/* Ends what is under way (done is called), frees. */
void toc_invoke_mem_free(struct toc_invoke_mem *invoke);
/* As a crash: no done is called; handlers work on. Not inside done. */
void toc_invoke_mem_kill(struct toc_invoke_mem *invoke);
struct toc_invoke *toc_invoke_mem_port(struct toc_invoke_mem *invoke);

/* The client reaches no handler: new calls are refused, answers to those under
 * way wait until it is over, or the deadline. */
void toc_invoke_mem_cut(struct toc_invoke_mem *invoke, bool cut);

#endif
