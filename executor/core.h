/*
 * The core of the executor: from hints to calls.
 *
 * It holds the hints until they are due, claims them in batches, starts the
 * calls of what it won, and follows which offsets are decided. It is a step
 * machine: exec_core_step does what is to be done and says when it wants to be
 * called again; its inbox wakes it earlier. A step makes at most one claim.
 *
 * The claim combiner is this loop: what falls due while one claim commits goes
 * into the next. The claim blocks the core, and needs nothing else meanwhile:
 * answers go from the calls to the results by themselves (exec_call_ended).
 *
 * Threads: core, unless a member says otherwise. Blocking: only the claim.
 */
#ifndef TOC_EXECUTOR_CORE_H
#define TOC_EXECUTOR_CORE_H

#include "common/clock/clock.h"
#include "common/coord/coord.h"
#include "common/invoke/invoke.h"
#include "common/store/store.h"
#include "executor/attempt.h"
#include "executor/counters.h"
#include "executor/inbox.h"
#include "executor/marks.h"
#include "executor/offsets.h"
#include "executor/pace.h"
#include "executor/targets.h"
#include "executor/waiting.h"

#include <stdatomic.h>

#define EXEC_CLAIMS_MAX 256 /* rows of one claim transaction */

/* ---- what is posted to the core's inbox ------------------------------ */

enum exec_event_kind {
    EXEC_EVENT_ASSIGNED,
    EXEC_EVENT_REVOKED,
    EXEC_EVENT_DELIVERY,
    EXEC_EVENT_CALL_ENDED,
    EXEC_EVENT_SLOT_FREE,
};

struct exec_event {
    struct toc_link link;
    enum exec_event_kind kind;
};

struct exec_rebalance {
    struct exec_event event; /* ASSIGNED, REVOKED */
    struct exec_place place;
};

/* A message, decoded. */
struct exec_delivery {
    struct exec_event event;
    struct exec_place place;
    int64_t offset;
    size_t n;
    struct exec_item *items[];
};

/* A call under way; passes through the core's inbox when it has ended. */
struct exec_call {
    struct exec_event event;
    struct toc_call call;
    struct exec_core *core;
    struct exec_target *target;
    size_t n, cap;
    size_t payload_bytes;
    int64_t timeout_ms;
    bool keeps_slot; /* an exec_slot gives it back */
    struct exec_attempt **attempts;
    struct toc_fire *fires;
};

/* A call has ended, but its handler may be at work: the target's slot stays
 * taken until the results give it back. */
struct exec_slot {
    struct exec_event event; /* SLOT_FREE */
    struct exec_target *target;
};

/* ---- the core -------------------------------------------------------- */

struct exec_core_options {
    const struct toc_clock *clock;
    struct toc_store *store;
    struct toc_invoke *invoke;
    struct toc_coord *coord; /* NULL: calls need no session */
    struct exec_inbox *results;
    struct exec_counters *counters;
    uint32_t node_id;
    size_t hints_max; /* kept by the lanes */
    size_t calls_max;
    size_t target_calls_max;
    size_t target_queue_max; /* of a slow target */
    size_t attempts_max;     /* claimed and not yet written back */
    int64_t margin_ms;       /* between a call's end and its lock's */
};

/* The claim under way. */
struct exec_batch {
    struct exec_item *items[EXEC_CLAIMS_MAX];
    struct toc_claim claims[EXEC_CLAIMS_MAX];
    size_t n;
    struct toc_claim_lock lock;
    struct toc_boot begun;
    int64_t call_ms; /* from begun: calls must have ended */
    unsigned failures;
    int64_t retry_ns;
    struct toc_arena rows;
};

/* Due hints with their slots that did not fit the batch: the first of them
 * begins the next one. */
struct exec_aside {
    struct exec_item *items[EXEC_CLAIMS_MAX];
    size_t n;
};

struct exec_core {
    struct exec_core_options options;
    struct exec_inbox inbox; /* any thread posts */
    struct exec_offsets offsets;
    struct exec_waiting waiting;
    struct exec_targets targets;
    struct exec_batch batch;
    struct exec_aside aside;
    struct exec_marks marks; /* the lanes take them */
    uint32_t sequence;       /* of claim tokens */
    struct exec_pace pace;   /* of claims */
    int64_t gather_ns;       /* the next claim gathers until then */

    /* Any thread reads. */
    _Atomic size_t hints;           /* the lanes add, the core takes away */
    _Atomic size_t messages;        /* undecided ones, and those behind them */
    _Atomic size_t calls;           /* under way */
    _Atomic size_t attempts;        /* won, not yet written back */
    _Atomic int64_t claim_since_ns; /* first try of a claim without an answer,
                                     * 0: none */
    _Atomic bool unsound;     /* no store, or clocks apart; the probe says so */
    _Atomic bool draining;    /* no more claims; any thread sets it and rings */
    _Atomic bool drained;     /* hints are dropped, no claim is under way */
    _Atomic bool wants_slots; /* a call that ends wakes the core */
};

void exec_core_init(struct exec_core *core,
                    const struct exec_core_options *options);
/* Drained, all calls ended, inbox taken by a last step. */
void exec_core_done(struct exec_core *core);

/* Returns when the monotonic clock must show to step again. */
int64_t exec_core_step(struct exec_core *core);

/* Could it claim now, as far as one knows? Any thread. */
bool exec_core_is_well(const struct exec_core *core, int64_t now_ns);
/* The results have written an attempt back (or given it up). Any thread. */
void exec_core_attempt_gone(struct exec_core *core);
/* An attempt's call cannot be at work any more. Any thread. */
void exec_core_slot_free(struct exec_core *core, struct exec_slot *slot);

/* ---- parts of it, in files of their own ------------------------------ */

/* The hint is decided: all its messages are told. It stays the caller's. */
void exec_core_decided(struct exec_core *core, struct exec_item *item);
/* There is no room for it in its target's queue: it is decided and gone. */
void exec_core_crowded_out(struct exec_core *core, struct exec_item *item);
/* The hint goes, undecided by whatever messages it still has. */
void exec_core_drop(struct exec_core *core, struct exec_item *item);

/* claims.c: fills the batch with what is due and may be called; tries the
 * batch; puts an untried or failed batch, or all that is gathered, back. */
void exec_claims_gather(struct exec_core *core, int64_t now_ms);
void exec_claims_try(struct exec_core *core);
void exec_claims_put_back(struct exec_core *core);
void exec_claims_put_all_back(struct exec_core *core);

/* launch.c: the batch's winners are called, or given back. */
void exec_launch(struct exec_core *core, struct exec_attempt **won, size_t n);
/* A call has ended, or was not made. Any thread. */
void exec_call_post(struct exec_core *core, struct exec_call *call);
bool exec_session_holds(const struct exec_core *core);

#endif
