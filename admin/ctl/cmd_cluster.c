#include "admin/ctl/commands.h"

#include "admin/ctl/conn.h"
#include "admin/ctl/show.h"
#include "admin/ctl/text.h"
#include "common/base/buf.h"
#include "toc/v1/admin.pb-c.h"

#include <string.h>

#define RANGES_COLUMNS 60

static const char *
number(struct ctl *ctl, uint32_t value)
{
    return toc_arena_printf(&ctl->arena, "%lu", (unsigned long)value);
}

/* ---- shards ---- */

static bool
same_owner(const Toc__V1__Shard *a, const Toc__V1__Shard *b)
{
    return strcmp(a->owner, b->owner) == 0 &&
           strcmp(a->owner_address, b->owner_address) == 0 &&
           strcmp(a->state, b->state) == 0 && a->quarantined == b->quarantined;
}

/* What the owner says goes with what the database says. */
static const char *
state_text(struct ctl *ctl, const Toc__V1__Shard *shard)
{
    const char *state = ctl_cell(ctl, shard->state);

    return shard->quarantined
               ? toc_arena_printf(&ctl->arena, "%s, QUARANTINED", state)
               : state;
}

/* The shards with one owner and state: "0-3,7,9-12". */
struct group {
    const Toc__V1__Shard *first;
    size_t n;
    struct toc_buf ranges;
    const Google__Protobuf__Timestamp *low; /* the oldest mark */
};

static void
end_range(struct group *group, uint32_t from, uint32_t to)
{
    toc_buf_printf(&group->ranges, "%s%lu", group->ranges.len > 0 ? "," : "",
                   (unsigned long)from);
    if (to > from)
        toc_buf_printf(&group->ranges, "-%lu", (unsigned long)to);
}

static void
gather(const Toc__V1__ListShardsResponse *answer, size_t from,
       struct group *group)
{
    uint32_t begin = answer->shards[from]->shard, last = begin;
    int64_t low_ms = INT64_MAX, ms;

    group->first = answer->shards[from];
    for (size_t i = from; i < answer->n_shards; i++) {
        const Toc__V1__Shard *shard = answer->shards[i];
        if (!same_owner(shard, group->first))
            continue;
        if (shard->shard > last + 1) {
            end_range(group, begin, last);
            begin = shard->shard;
        }
        last = shard->shard;
        group->n++;
        if (ctl_time_ms(shard->low_water_mark, &ms) && ms < low_ms) {
            low_ms = ms;
            group->low = shard->low_water_mark;
        }
    }
    end_range(group, begin, last);
}

/* Is this the first shard with its owner and state? */
static bool
begins_group(const Toc__V1__ListShardsResponse *answer, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (same_owner(answer->shards[i], answer->shards[at]))
            return false;
    return true;
}

static void
owners_table(struct ctl *ctl, const Toc__V1__ListShardsResponse *answer)
{
    static const char *const heads[] = {"OWNER", "ADDRESS",        "COUNT",
                                        "STATE", "LOW-WATER MARK", "SHARDS"};
    struct ctl_table table;

    ctl_table_init(&table, &ctl->arena, heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < answer->n_shards; i++) {
        struct group group = {.n = 0};
        if (!begins_group(answer, i))
            continue;
        gather(answer, i, &group);
        const char *cells[] = {
            ctl_cell(ctl, group.first->owner),
            ctl_cell(ctl, group.first->owner_address),
            number(ctl, (uint32_t)group.n),
            state_text(ctl, group.first),
            ctl_time_relative(ctl, group.low),
            ctl_safe_cut(&ctl->arena, toc_buf_view(&group.ranges),
                         RANGES_COLUMNS),
        };
        ctl_table_row(&table, cells);
        toc_buf_done(&group.ranges);
    }
    ctl_table_print(&table, ctl->out);
}

static void
shards_table(struct ctl *ctl, const Toc__V1__ListShardsResponse *answer)
{
    static const char *const heads[] = {"SHARD", "OWNER",          "ADDRESS",
                                        "STATE", "LOW-WATER MARK", ""};
    struct ctl_table table;

    ctl_table_init(&table, &ctl->arena, heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < answer->n_shards; i++) {
        const Toc__V1__Shard *shard = answer->shards[i];
        const char *cells[] = {
            number(ctl, shard->shard),
            ctl_cell(ctl, shard->owner),
            ctl_cell(ctl, shard->owner_address),
            state_text(ctl, shard),
            ctl_time_text(ctl, shard->low_water_mark),
            ctl_time_relative(ctl, shard->low_water_mark),
        };
        ctl_table_row(&table, cells);
    }
    ctl_table_print(&table, ctl->out);
}

enum ctl_exit
ctl_cmd_shards(struct ctl *ctl)
{
    Toc__V1__ListShardsRequest request = TOC__V1__LIST_SHARDS_REQUEST__INIT;
    const Toc__V1__ListShardsResponse *answer;
    ProtobufCMessage *reply;
    enum ctl_exit end;

    request.with_quarantine = true;
    end = ctl_call_admin(ctl, "ListShards", NULL, &request.base, &reply);
    if (end != CTL_OK)
        return end;
    answer = (const Toc__V1__ListShardsResponse *)reply;
    if (ctl_wants_data(ctl)) {
        ctl_show_message(ctl, reply);
    } else if (ctl->output == CTL_OUTPUT_ID) {
        for (size_t i = 0; i < answer->n_shards; i++)
            fprintf(ctl->out, "%lu\n", (unsigned long)answer->shards[i]->shard);
    } else if (ctl->output == CTL_OUTPUT_WIDE) {
        shards_table(ctl, answer);
    } else {
        owners_table(ctl, answer);
    }
    return CTL_OK;
}

/* ---- nodes ---- */

static const char *
load_text(struct ctl *ctl, const Toc__V1__Node *node)
{
    if (node->load_percent == NULL)
        return "-";
    return toc_arena_printf(&ctl->arena, "%lu %%",
                            (unsigned long)node->load_percent->value);
}

static void
nodes_table(struct ctl *ctl, const Toc__V1__ListNodesResponse *answer)
{
    static const char *const heads[] = {"ROLE", "NAME",    "ADDRESS", "SHARDS",
                                        "LOAD", "STARTED", "NODE ID"};
    struct ctl_table table;

    ctl_table_init(&table, &ctl->arena, heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < answer->n_nodes; i++) {
        const Toc__V1__Node *node = answer->nodes[i];
        const char *cells[] = {
            ctl_cell(ctl, node->role),
            ctl_cell(ctl, node->name),
            ctl_cell(ctl, node->address),
            strcmp(node->role, "scheduler") == 0 ? number(ctl, node->shards)
                                                 : "-",
            load_text(ctl, node),
            ctl_time_relative(ctl, node->start_time),
            number(ctl, node->node_id),
        };
        ctl_table_row(&table, cells);
    }
    ctl_table_print(&table, ctl->out);
}

enum ctl_exit
ctl_cmd_nodes(struct ctl *ctl)
{
    Toc__V1__ListNodesRequest request = TOC__V1__LIST_NODES_REQUEST__INIT;
    const Toc__V1__ListNodesResponse *answer;
    ProtobufCMessage *reply;
    enum ctl_exit end;

    request.with_load = true;
    end = ctl_call_admin(ctl, "ListNodes", NULL, &request.base, &reply);
    if (end != CTL_OK)
        return end;
    answer = (const Toc__V1__ListNodesResponse *)reply;
    if (ctl_wants_data(ctl)) {
        ctl_show_message(ctl, reply);
    } else if (ctl->output == CTL_OUTPUT_ID) {
        for (size_t i = 0; i < answer->n_nodes; i++)
            fprintf(ctl->out, "%s\n", ctl_cell(ctl, answer->nodes[i]->name));
    } else {
        nodes_table(ctl, answer);
    }
    return CTL_OK;
}
