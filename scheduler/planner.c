#include "scheduler/planner.h"

#include "common/base/alloc.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "toc/v1/peer.pb-c.h"

#include <math.h>
#include <string.h>

#define ROUND_MS 10000
#define TIMEOUT_MS 500

void
sched_planner_init(struct sched_planner *planner,
                   const struct sched_planner_options *opt)
{
    memset(planner, 0, sizeof *planner);
    planner->opt = *opt;
    planner->members =
        TOC_NEW_ARRAY(struct sched_roster_member, SCHED_MEMBERS_MAX);
    sched_plan_init(&planner->plan, opt->skew_ms);
}

void
sched_planner_done(struct sched_planner *planner)
{
    toc_free(planner->members);
    toc_free(planner->nodes);
    toc_arena_done(&planner->arena);
}

static int64_t
mono_ns(const struct sched_planner *planner)
{
    return toc_clock_mono(planner->opt.clk).ns;
}

/* ---- figures ------------------------------------------------------------ */

static bool
is_self(const struct sched_planner *planner, size_t at)
{
    return strcmp(planner->members[at].name, planner->opt.self) == 0;
}

static bool
is_fit(const struct sched_planner *planner)
{
    return planner->opt.fit == NULL || planner->opt.fit(planner->opt.arg);
}

static void
look_at_self(struct sched_planner *planner, struct sched_plan_node *node)
{
    struct sched_figures figures;

    node->known = is_fit(planner);
    if (!node->known)
        return;
    sched_load_figures(planner->opt.load, &figures);
    node->load = figures.load;
    node->capacity = figures.capacity * SCHED_VOLUME_S;
    node->n_shards = figures.n_shards;
    memcpy(node->shards, figures.shards, sizeof node->shards);
    memcpy(node->volumes, figures.volumes, sizeof node->volumes);
}

static bool
is_amount(double value)
{
    return isfinite(value) && value >= 0;
}

/* False: the answer makes no sense. */
static bool
read_answer(const Toc__V1__GetLoadResponse *answer,
            struct sched_plan_node *node)
{
    bool seen[TOC_SHARDS] = {false};

    if (!is_amount(answer->load) || !is_amount(answer->capacity) ||
        answer->capacity <= 0)
        return false;
    for (size_t i = 0; i < answer->n_shards; i++) {
        const Toc__V1__ShardVolume *one = answer->shards[i];
        if (one->shard >= TOC_SHARDS || seen[one->shard] ||
            !is_amount(one->volume))
            return false;
        seen[one->shard] = true;
        node->shards[i] = (uint16_t)one->shard;
        node->volumes[i] = one->volume;
    }
    node->n_shards = answer->n_shards;
    node->load = answer->load;
    node->capacity = answer->capacity * SCHED_VOLUME_S;
    return true;
}

static void
ask_peer(struct sched_planner *planner, size_t at)
{
    const struct sched_roster_member *member = &planner->members[at];
    struct sched_plan_node *node = &planner->nodes[at];
    Toc__V1__GetLoadRequest request = TOC__V1__GET_LOAD_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    struct toc_error err = {0};
    enum toc_status st;

    toc_arena_reset(&planner->arena);
    st = toc_rpc_call(planner->opt.rpc, member->address,
                      &toc__v1__balance_service__descriptor, "GetLoad",
                      &request.base, TIMEOUT_MS, &planner->arena, &answer, NULL,
                      &err);
    if (st == TOC_OK)
        node->known =
            read_answer((const Toc__V1__GetLoadResponse *)answer, node);
    if (!node->known)
        TOC_LOG(DEBUG, "plan.unheard",
                F_MSG("no figures of a node; it gives and takes nothing"),
                F_STR("peer", member->name),
                F_STR("error",
                      st == TOC_OK ? "the answer makes no sense" : err.msg));
}

/* ---- moving
 * ----------------------------------------------------------------- */

static void
list_shards(const struct sched_plan_move *move, struct toc_buf *out)
{
    for (size_t i = 0; i < move->n; i++)
        toc_buf_printf(out, "%s%u", i > 0 ? "," : "",
                       (unsigned)move->shards[i]);
}

static enum toc_status
tell_peer(struct sched_planner *planner, const struct sched_plan_move *move,
          struct toc_error *reterr)
{
    Toc__V1__TakeShardsRequest request = TOC__V1__TAKE_SHARDS_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    uint32_t shards[SCHED_PLAN_SHARDS_MAX];

    for (size_t i = 0; i < move->n; i++)
        shards[i] = move->shards[i];
    request.n_shards = move->n;
    request.shards = shards;
    toc_arena_reset(&planner->arena);
    return toc_rpc_call(planner->opt.rpc, planner->members[move->to].address,
                        &toc__v1__balance_service__descriptor, "TakeShards",
                        &request.base, TIMEOUT_MS, &planner->arena, &answer,
                        NULL, reterr);
}

static void
carry_out(struct sched_planner *planner, const struct sched_plan_move *move)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf list = {0};
    struct toc_error err = {0};
    enum toc_status st = TOC_OK;
    char value[32];

    if (!is_self(planner, move->to))
        st = tell_peer(planner, move, &err);
    else if (!sched_roster_ask(planner->opt.roster, move->shards, move->n))
        return;
    list_shards(move, &list);
    toc_format(value, sizeof value, "%.2f", move->value);
    if (st == TOC_OK)
        TOC_LOG(
            INFO, "plan.moved", F_MSG("shards move to spread load"),
            F_STR("why", sched_plan_why_text(move->why)), F_STR("value", value),
            F_STR("from", planner->members[move->from].name),
            F_STR("to", planner->members[move->to].name),
            F_UINT("shards", move->n), F_INT("volume", (int64_t)move->volume),
            F_SPAN("list", toc_buf_view(&list)));
    else
        TOC_LOG(WARN, "plan.move_failed",
                F_MSG("a node did not take shards; planned anew"),
                F_STR("to", planner->members[move->to].name),
                F_UINT("shards", move->n), F_ERR(&err));
}

/* ---- rounds
 * ---------------------------------------------------------------------------
 */

/* Without a session we know neither who lives nor who owns what. */
static bool
may_plan(const struct sched_planner *planner)
{
    return planner->opt.moves && (planner->opt.shards == NULL ||
                                  sched_shards_live(planner->opt.shards));
}

/* False: it is not for us to plan. */
static bool
begin_round(struct sched_planner *planner, int64_t now_ns)
{
    uint64_t changes;

    planner->next_round_ns = now_ns + ROUND_MS * TOC_NS_PER_MS;
    planner->at = 0;
    planner->n =
        sched_roster_list(planner->opt.roster, planner->members, &changes);
    if (!may_plan(planner) || planner->n < 2 || !is_self(planner, 0)) {
        planner->n = 0;
        planner->leading = false;
        return false;
    }
    if (!planner->leading || planner->changes != changes)
        sched_plan_restart(&planner->plan, now_ns);
    planner->leading = true;
    planner->changes = changes;
    toc_free(planner->nodes);
    planner->nodes = TOC_NEW_ARRAY(struct sched_plan_node, planner->n);
    for (size_t i = 0; i < planner->n; i++)
        planner->nodes[i].capacity = 1;
    return true;
}

static void
end_round(struct sched_planner *planner, int64_t now_ns)
{
    struct sched_plan_move move;

    if (may_plan(planner) && sched_plan_step(&planner->plan, planner->nodes,
                                             planner->n, now_ns, &move))
        carry_out(planner, &move);
    planner->n = planner->at = 0;
}

int64_t
sched_planner_step(struct sched_planner *planner)
{
    int64_t now_ns = mono_ns(planner);

    if (planner->n == 0) {
        if (now_ns < planner->next_round_ns || !begin_round(planner, now_ns))
            return planner->next_round_ns;
    } else if (planner->at < planner->n) {
        size_t at = planner->at++;
        if (is_self(planner, at))
            look_at_self(planner, &planner->nodes[at]);
        else
            ask_peer(planner, at);
    } else {
        end_round(planner, now_ns);
        return planner->next_round_ns;
    }
    return now_ns;
}

/* ---- for others
 * ----------------------------------------------------------------------- */

static bool
is_held(const struct sched_planner *planner, uint16_t shard)
{
    for (size_t i = 0; i < 2; i++)
        if (planner->opt.held[i] != NULL &&
            sched_quarantine_holds(planner->opt.held[i], shard))
            return true;
    return false;
}

static void
tell_quarantined(const struct sched_planner *planner, struct toc_arena *arena,
                 Toc__V1__GetLoadResponse *answer)
{
    answer->quarantined =
        toc_arena_calloc(arena, TOC_SHARDS, sizeof *answer->quarantined);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        if (is_held(planner, i))
            answer->quarantined[answer->n_quarantined++] = i;
}

static void
answer_load(struct sched_planner *planner, struct toc_rpc_call *call)
{
    struct toc_arena *arena = toc_rpc_call_arena(call);
    Toc__V1__GetLoadResponse answer = TOC__V1__GET_LOAD_RESPONSE__INIT;
    Toc__V1__ShardVolume *volumes;
    struct sched_figures figures;

    sched_load_figures(planner->opt.load, &figures);
    answer.load = figures.load;
    answer.cpu = figures.cpu;
    answer.busy = figures.busy;
    answer.rate = figures.rate;
    answer.memory = figures.memory;
    answer.rows = figures.rows;
    answer.capacity = figures.capacity;
    answer.n_shards = figures.n_shards;
    answer.shards =
        toc_arena_calloc(arena, TOC_SHARDS, sizeof(Toc__V1__ShardVolume *));
    volumes = toc_arena_calloc(arena, TOC_SHARDS, sizeof *volumes);
    for (size_t i = 0; i < figures.n_shards; i++) {
        toc__v1__shard_volume__init(&volumes[i]);
        volumes[i].shard = figures.shards[i];
        volumes[i].volume = figures.volumes[i];
        answer.shards[i] = &volumes[i];
    }
    tell_quarantined(planner, arena, &answer);
    toc_rpc_reply(call, &answer.base);
}

static void
take_shards(struct sched_planner *planner,
            const Toc__V1__TakeShardsRequest *request,
            struct toc_rpc_call *call)
{
    Toc__V1__TakeShardsResponse answer = TOC__V1__TAKE_SHARDS_RESPONSE__INIT;
    uint16_t shards[TOC_SHARDS];

    for (size_t i = 0; i < request->n_shards; i++) {
        if (i >= TOC_SHARDS || request->shards[i] >= TOC_SHARDS) {
            toc_rpc_fail_text(call, TOC_INVALID,
                              "shards: at most 256, from 0 to 255");
            return;
        }
        shards[i] = (uint16_t)request->shards[i];
    }
    if (sched_roster_ask(planner->opt.roster, shards, request->n_shards))
        toc_rpc_reply(call, &answer.base);
    else
        toc_rpc_fail_text(call, TOC_PRECONDITION, "this node has no session");
}

void
sched_planner_handle(void *self, unsigned method,
                     const ProtobufCMessage *request, struct toc_rpc_call *call)
{
    if (!is_fit(self))
        toc_rpc_fail_text(call, TOC_UNAVAILABLE, "this node is not fit now");
    else if (method == 0) /* as in the service's description */
        answer_load(self, call);
    else
        take_shards(self, (const Toc__V1__TakeShardsRequest *)request, call);
}
