#include "admin/ctl/commands.h"

#include "admin/ctl/conn.h"
#include "admin/ctl/show.h"
#include "admin/ctl/text.h"
#include "toc/v1/admin.pb-c.h"

#include <string.h>

static const char *
number(struct ctl *ctl, uint32_t value)
{
    return toc_arena_printf(&ctl->arena, "%lu", (unsigned long)value);
}

/* ---- shards ---- */

static bool
same_run(const Toc__V1__Shard *a, const Toc__V1__Shard *b)
{
    return b->shard == a->shard + 1 && strcmp(a->owner, b->owner) == 0 &&
           strcmp(a->owner_address, b->owner_address) == 0 &&
           strcmp(a->state, b->state) == 0;
}

/* The oldest mark of a run: nothing of it is unfinished before. */
static const Google__Protobuf__Timestamp *
lowest(Toc__V1__Shard *const *shards, size_t n)
{
    const Google__Protobuf__Timestamp *low = shards[0]->low_water_mark;
    int64_t low_ms = INT64_MAX, ms;

    for (size_t i = 0; i < n; i++) {
        if (ctl_time_ms(shards[i]->low_water_mark, &ms) && ms < low_ms) {
            low_ms = ms;
            low = shards[i]->low_water_mark;
        }
    }
    return low;
}

static void
shard_row(struct ctl *ctl, struct ctl_table *table,
          Toc__V1__Shard *const *shards, size_t n)
{
    const Toc__V1__Shard *first = shards[0], *last = shards[n - 1];
    const char *cells[] = {
        n > 1 ? toc_arena_printf(&ctl->arena, "%lu-%lu",
                                 (unsigned long)first->shard,
                                 (unsigned long)last->shard)
              : number(ctl, first->shard),
        number(ctl, (uint32_t)n),
        ctl_cell(ctl, first->owner),
        ctl_cell(ctl, first->owner_address),
        ctl_cell(ctl, first->state),
        ctl_time_relative(ctl, lowest(shards, n)),
    };

    ctl_table_row(table, cells);
}

static void
shards_table(struct ctl *ctl, const Toc__V1__ListShardsResponse *answer)
{
    static const char *const heads[] = {"SHARDS",  "COUNT", "OWNER",
                                        "ADDRESS", "STATE", "LOW-WATER MARK"};
    bool wide = ctl->output == CTL_OUTPUT_WIDE;
    struct ctl_table table;
    size_t n;

    ctl_table_init(&table, &ctl->arena, heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < answer->n_shards; i += n) {
        for (n = 1; !wide && i + n < answer->n_shards &&
                    same_run(answer->shards[i + n - 1], answer->shards[i + n]);
             n++)
            ;
        shard_row(ctl, &table, answer->shards + i, n);
    }
    ctl_table_print(&table, ctl->out);
}

enum ctl_exit
ctl_cmd_shards(struct ctl *ctl)
{
    Toc__V1__ListShardsRequest request = TOC__V1__LIST_SHARDS_REQUEST__INIT;
    const Toc__V1__ListShardsResponse *answer;
    ProtobufCMessage *reply;
    enum ctl_exit end =
        ctl_call_admin(ctl, "ListShards", NULL, &request.base, &reply);

    if (end != CTL_OK)
        return end;
    answer = (const Toc__V1__ListShardsResponse *)reply;
    if (ctl_wants_data(ctl)) {
        ctl_show_message(ctl, reply);
    } else if (ctl->output == CTL_OUTPUT_ID) {
        for (size_t i = 0; i < answer->n_shards; i++)
            fprintf(ctl->out, "%lu\n", (unsigned long)answer->shards[i]->shard);
    } else {
        shards_table(ctl, answer);
    }
    return CTL_OK;
}

/* ---- nodes -----------------------------------------------------------------
 */

static void
nodes_table(struct ctl *ctl, const Toc__V1__ListNodesResponse *answer)
{
    static const char *const heads[] = {"ROLE",   "NAME",    "ADDRESS",
                                        "SHARDS", "STARTED", "NODE ID"};
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
    enum ctl_exit end =
        ctl_call_admin(ctl, "ListNodes", NULL, &request.base, &reply);

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
