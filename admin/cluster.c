#include "admin/service_internal.h"

#include "toc/v1/peer.pb-c.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ASK_EACH_MS 300 /* for the answer of one scheduler */
#define ASK_ALL_MS 1000 /* of all; the others' is then left out */

struct snapshot {
    struct toc_member *members;
    size_t n_members;
    struct toc_owner *owners;
    size_t n_owners;
};

static bool
take_snapshot(struct admin_call *call, struct snapshot *out)
{
    struct toc_error error = {.status = TOC_OK};
    enum toc_status st = toc_coord_snapshot(
        admin_call_coord(call), call->arena, &out->members, &out->n_members,
        &out->owners, &out->n_owners, &error);

    if (st != TOC_OK)
        admin_fail_error(call, st, &error);
    return st == TOC_OK;
}

/* ---- asking schedulers ---- */

/* NULL: it did not answer. */
static const Toc__V1__GetLoadResponse *
ask_scheduler(struct admin_call *call, const char *address)
{
    Toc__V1__GetLoadRequest request = TOC__V1__GET_LOAD_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;

    return toc_rpc_call(admin_call_client(call), address,
                        &toc__v1__balance_service__descriptor, "GetLoad",
                        &request.base, ASK_EACH_MS, call->arena, &reply, NULL,
                        NULL) == TOC_OK
               ? (const Toc__V1__GetLoadResponse *)reply
               : NULL;
}

/* ---- shards ---- */

static char *
shard_state(enum toc_shard_state state)
{
    switch (state) {
    case TOC_SHARD_OPEN:
        return "OPEN";
    case TOC_SHARD_MOVING:
        return "MOVING";
    case TOC_SHARD_HELD:
        return "HELD";
    }
    return "UNKNOWN";
}

static Toc__V1__Shard *
shard_message(struct admin_call *call, const struct toc_shard_row *row,
              const struct toc_owner *owner)
{
    Toc__V1__Shard *shard = toc_arena_alloc(call->arena, sizeof *shard);

    toc__v1__shard__init(shard);
    shard->shard = row->shard;
    shard->state = shard_state(row->state);
    shard->low_water_mark = toc_api_time_or_unset(call->arena, row->low_ms);
    if (owner != NULL) {
        shard->owner = toc_api_text(call->arena, owner->node);
        shard->owner_address = toc_api_text(call->arena, owner->address);
    }
    return shard;
}

/* Only the owner's word counts: a node that gave a shard away may not know yet.
 */
static void
mark_quarantined(const Toc__V1__GetLoadResponse *told, struct toc_str node,
                 Toc__V1__ListShardsResponse *answer)
{
    for (size_t i = 0; i < told->n_quarantined; i++)
        for (size_t k = 0; k < answer->n_shards; k++)
            if (answer->shards[k]->shard == told->quarantined[i] &&
                toc_str_eq(toc_str_of(answer->shards[k]->owner), node))
                answer->shards[k]->quarantined = true;
}

static void
ask_quarantined(struct admin_call *call, const struct snapshot *seen,
                Toc__V1__ListShardsResponse *answer)
{
    const struct toc_clock *clk = admin_call_clock(call);
    struct toc_mono until = toc_mono_add_ms(toc_clock_mono(clk), ASK_ALL_MS);

    for (size_t i = 0; i < seen->n_members; i++) {
        const struct toc_member *member = &seen->members[i];
        const Toc__V1__GetLoadResponse *told;
        if (!toc_str_eq(member->role, TOC_STR("scheduler")) ||
            toc_clock_mono(clk).ns >= until.ns)
            continue;
        told = ask_scheduler(call, toc_api_text(call->arena, member->address));
        if (told != NULL)
            mark_quarantined(told, member->node, answer);
    }
}

void
admin_list_shards(struct admin_call *call)
{
    Toc__V1__ListShardsResponse answer = TOC__V1__LIST_SHARDS_RESPONSE__INIT;
    const struct toc_owner *owners[TOC_SHARDS] = {NULL};
    struct toc_error error = {.status = TOC_OK};
    struct toc_shard_row *rows = NULL;
    struct snapshot seen;
    size_t n = 0;
    enum toc_status st;

    st = toc_store_list_shards(admin_call_store(call), call->arena, &rows, &n,
                               &error);
    if (st != TOC_OK) {
        admin_fail_error(call, st, &error);
        return;
    }
    if (!take_snapshot(call, &seen))
        return;
    for (size_t i = 0; i < seen.n_owners; i++)
        if (seen.owners[i].shard < TOC_SHARDS)
            owners[seen.owners[i].shard] = &seen.owners[i];
    answer.shards = toc_arena_calloc(call->arena, n, sizeof *answer.shards);
    for (size_t i = 0; i < n; i++)
        answer.shards[i] = shard_message(
            call, &rows[i],
            rows[i].shard < TOC_SHARDS ? owners[rows[i].shard] : NULL);
    answer.n_shards = n;
    if (((const Toc__V1__ListShardsRequest *)call->request)->with_quarantine)
        ask_quarantined(call, &seen, &answer);
    toc_rpc_reply(call->rpc, &answer.base);
}

/* ---- nodes ---- */

static uint32_t
count_shards(const struct snapshot *seen, const struct toc_member *member)
{
    uint32_t n = 0;

    if (!toc_str_eq(member->role, TOC_STR("scheduler")))
        return 0;
    for (size_t i = 0; i < seen->n_owners; i++)
        if (toc_str_eq(seen->owners[i].node, member->node))
            n++;
    return n;
}

static Toc__V1__Node *
node_message(struct admin_call *call, const struct snapshot *seen,
             const struct toc_member *member)
{
    Toc__V1__Node *node = toc_arena_alloc(call->arena, sizeof *node);

    toc__v1__node__init(node);
    node->role = toc_api_text(call->arena, member->role);
    node->name = toc_api_text(call->arena, member->node);
    node->address = toc_api_text(call->arena, member->address);
    node->node_id = member->node_id;
    node->start_time = toc_api_time_or_unset(call->arena, member->started_ms);
    node->shards = count_shards(seen, member);
    return node;
}

static bool
is_scheduler(const Toc__V1__Node *node)
{
    return strcmp(node->role, "scheduler") == 0;
}

static void
ask_load(struct admin_call *call, Toc__V1__Node *node)
{
    const Toc__V1__GetLoadResponse *told = ask_scheduler(call, node->address);
    Google__Protobuf__UInt32Value *percent;

    if (told == NULL || !(told->load >= 0 && told->load <= 1000))
        return;
    percent = toc_arena_alloc(call->arena, sizeof *percent);
    google__protobuf__uint32_value__init(percent);
    percent->value = (uint32_t)lround(told->load * 100);
    node->load_percent = percent;
}

static void
ask_loads(struct admin_call *call, Toc__V1__ListNodesResponse *answer)
{
    const struct toc_clock *clk = admin_call_clock(call);
    struct toc_mono until = toc_mono_add_ms(toc_clock_mono(clk), ASK_ALL_MS);

    for (size_t i = 0; i < answer->n_nodes; i++)
        if (is_scheduler(answer->nodes[i]) && toc_clock_mono(clk).ns < until.ns)
            ask_load(call, answer->nodes[i]);
}

static int
cmp_member(const void *a, const void *b)
{
    const struct toc_member *x = a, *y = b;
    int order = toc_str_cmp(x->role, y->role);

    return order != 0 ? order : toc_str_cmp(x->node, y->node);
}

void
admin_list_nodes(struct admin_call *call)
{
    Toc__V1__ListNodesResponse answer = TOC__V1__LIST_NODES_RESPONSE__INIT;
    struct snapshot seen;

    if (!take_snapshot(call, &seen))
        return;
    if (seen.n_members > 0)
        qsort(seen.members, seen.n_members, sizeof *seen.members, cmp_member);
    answer.nodes =
        toc_arena_calloc(call->arena, seen.n_members, sizeof *answer.nodes);
    for (size_t i = 0; i < seen.n_members; i++)
        answer.nodes[i] = node_message(call, &seen, &seen.members[i]);
    answer.n_nodes = seen.n_members;
    if (((const Toc__V1__ListNodesRequest *)call->request)->with_load)
        ask_loads(call, &answer);
    toc_rpc_reply(call->rpc, &answer.base);
}
