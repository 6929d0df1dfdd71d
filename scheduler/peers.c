#include "scheduler/peers.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/model/limits.h"
#include "toc/v1/peer.pb-c.h"

#include <string.h>

#define PEERS_MAX 64
#define GATHERED_BYTES_MAX (4 * 1024 * 1024)
#define TIMEOUT_MS 1000
#define HINT_METHOD "/toc.v1.PeerService/Hint"

/* What is gathered for one peer. */
struct peer {
    struct sched_peers *peers;
    char address[SCHED_ADDRESS_MAX];
    bool under_way;
    size_t n;
    struct toc_arena arena; /* of the gathered tasks */
    struct toc_hint hints[TOC_HINTS_PER_MESSAGE_MAX];
};

struct sched_peers {
    struct sched_peers_options opt;
    pthread_mutex_t lock; /* guards what follows */
    struct peer *list[PEERS_MAX];
    size_t n;
};

struct sched_peers *
sched_peers_new(const struct sched_peers_options *opt)
{
    struct sched_peers *peers = TOC_NEW(struct sched_peers);

    peers->opt = *opt;
    TOC_ASSERT(pthread_mutex_init(&peers->lock, NULL) == 0);
    return peers;
}

void
sched_peers_free(struct sched_peers *peers)
{
    if (peers == NULL)
        return;
    for (size_t i = 0; i < peers->n; i++) {
        toc_arena_done(&peers->list[i]->arena);
        toc_free(peers->list[i]);
    }
    pthread_mutex_destroy(&peers->lock);
    toc_free(peers);
}

/* ---- to others
 * ---------------------------------------------------------------- */

/* An idle peer's place is given to a new one when all are taken. */
static struct peer *
peer_at(struct sched_peers *peers, const char *address)
{
    struct peer *idle = NULL;

    for (size_t i = 0; i < peers->n; i++) {
        struct peer *peer = peers->list[i];
        if (strcmp(peer->address, address) == 0)
            return peer;
        if (!peer->under_way && peer->n == 0)
            idle = peer;
    }
    if (peers->n < PEERS_MAX) {
        idle = TOC_NEW(struct peer);
        idle->peers = peers;
        peers->list[peers->n++] = idle;
    }
    if (idle != NULL)
        toc_copy(idle->address, sizeof idle->address, toc_str_of(address));
    return idle;
}

static struct toc_str
keep(struct toc_arena *arena, struct toc_str s)
{
    return s.len == 0 ? s : toc_arena_str(arena, s);
}

static void
gather(struct peer *peer, const struct toc_task *task)
{
    struct toc_hint *hint = &peer->hints[peer->n];
    struct toc_task *copy = &hint->task;

    if (peer->n == TOC_HINTS_PER_MESSAGE_MAX ||
        peer->arena.used > GATHERED_BYTES_MAX)
        return; /* the owner's loader will find it */
    hint->has_payload =
        task->payload.len == 0 || (task->payload.ptr != NULL &&
                                   task->payload.len <= TOC_HINT_PAYLOAD_MAX);
    *copy = *task;
    copy->biz_type = keep(&peer->arena, task->biz_type);
    copy->biz_id = keep(&peer->arena, task->biz_id);
    copy->name = keep(&peer->arena, task->name);
    copy->spec = keep(&peer->arena, task->spec);
    if (hint->has_payload)
        copy->payload = keep(&peer->arena, task->payload);
    else
        copy->payload = (struct toc_str){NULL, 0};
    peer->n++;
}

/* HintRequest{batch = 1}: the field's key and length, then the batch. */
static void
wrap(struct toc_str batch, struct toc_buf *out)
{
    uint64_t len = batch.len;

    toc_buf_char(out, 0x0a);
    do {
        uint8_t byte = (uint8_t)(len & 0x7f);
        len >>= 7;
        toc_buf_char(out, (char)(len > 0 ? byte | 0x80 : byte));
    } while (len > 0);
    toc_buf_str(out, batch);
}

/* Under the lock: what was gathered becomes a request. */
static bool
take_request(struct peer *peer, struct toc_buf *out,
             char ret_address[SCHED_ADDRESS_MAX])
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf batch = {0};

    if (peer->under_way || peer->n == 0)
        return false;
    toc_hint_encode(peer->hints, peer->n, 0, &batch);
    wrap(toc_buf_view(&batch), out);
    toc_copy(ret_address, SCHED_ADDRESS_MAX, toc_str_of(peer->address));
    peer->n = 0;
    toc_arena_reset(&peer->arena);
    peer->under_way = true;
    return true;
}

static void send_gathered(struct sched_peers *peers, struct peer *peer);

static void
answered(void *arg, const struct toc_rpc_result *result)
{
    struct peer *peer = arg;
    struct sched_peers *peers = peer->peers;

    if (result->status != TOC_OK)
        TOC_LOG(DEBUG, "peer.hint_lost",
                F_MSG("a peer did not take hints; its loader will find them"),
                F_STR("peer", peer->address),
                F_STR("status", toc_status_text(result->status)));
    pthread_mutex_lock(&peers->lock);
    peer->under_way = false;
    pthread_mutex_unlock(&peers->lock);
    if (result->status != TOC_CANCELLED)
        send_gathered(peers, peer);
}

static void
send_gathered(struct sched_peers *peers, struct peer *peer)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    char address[SCHED_ADDRESS_MAX];
    struct toc_rpc_request request = {.method = HINT_METHOD,
                                      .address = address};
    bool any;

    pthread_mutex_lock(&peers->lock);
    any = take_request(peer, &buf, address);
    pthread_mutex_unlock(&peers->lock);
    if (!any)
        return;
    request.bytes = toc_buf_view(&buf);
    request.deadline =
        toc_mono_add_ms(toc_clock_mono(peers->opt.clk), TIMEOUT_MS);
    (void)toc_rpc_start(peers->opt.rpc, &request, answered, peer);
}

static void
send_to_owner(struct sched_peers *peers, const struct toc_task *task)
{
    char address[SCHED_ADDRESS_MAX];
    struct peer *peer;

    if (peers->opt.rpc == NULL ||
        !sched_shards_owner(peers->opt.shards, toc_slice_shard(task->slice),
                            address))
        return;
    pthread_mutex_lock(&peers->lock);
    peer = peer_at(peers, address);
    if (peer != NULL)
        gather(peer, task);
    pthread_mutex_unlock(&peers->lock);
    if (peer != NULL)
        send_gathered(peers, peer);
}

void
sched_peers_offer(struct sched_peers *peers, const struct toc_task *task)
{
    int64_t now_ms = toc_clock_wall(peers->opt.clk).ms;

    if ((task->state != TOC_STATE_INIT && task->state != TOC_STATE_RETRY) ||
        toc_slot_is_parked(task->slot_ms) ||
        task->slot_ms > now_ms + TOC_LOOK_AHEAD_MS)
        return;
    if (sched_memory_offer(peers->opt.memory, task, SCHED_ROAD_NEAR) ==
        SCHED_OFFER_NOT_OURS)
        send_to_owner(peers, task);
}

/* ---- from others
 * ---------------------------------------------------------------- */

static uint32_t
take_hints(struct sched_peers *peers, const struct toc_hint *hints, size_t n)
{
    int64_t now_ms = toc_clock_wall(peers->opt.clk).ms;
    uint32_t taken = 0;

    for (size_t i = 0; i < n; i++) {
        struct toc_task task = hints[i].task;
        if (!hints[i].has_payload)
            task.payload = (struct toc_str){NULL, TOC_HINT_PAYLOAD_MAX + 1};
        if (toc_slot_is_parked(task.slot_ms) ||
            task.slot_ms > now_ms + 2 * TOC_LOOK_AHEAD_MS)
            continue;
        taken += sched_memory_offer(peers->opt.memory, &task,
                                    SCHED_ROAD_NEAR) == SCHED_OFFER_TAKEN;
    }
    return taken;
}

void
sched_peers_handle(void *self, unsigned method, const ProtobufCMessage *request,
                   struct toc_rpc_call *call)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf packed = {0};
    const Toc__V1__HintRequest *hint_request = (const void *)request;
    Toc__V1__HintResponse response = TOC__V1__HINT_RESPONSE__INIT;
    struct toc_error err = {0};
    struct toc_hint *hints;
    size_t n;

    (void)method; /* there is one */
    if (hint_request->batch == NULL) {
        toc_rpc_fail_text(call, TOC_INVALID, "batch: must be set");
        return;
    }
    toc_rpc_pack(&hint_request->batch->base, &packed);
    if (toc_hint_decode(toc_buf_view(&packed), toc_rpc_call_arena(call), &hints,
                        &n, &err) != TOC_OK) {
        toc_rpc_fail_text(call, TOC_INVALID, "%s", err.msg);
        return;
    }
    response.taken = take_hints(self, hints, n);
    toc_rpc_reply(call, &response.base);
}
