#include "common/model/task.h"

#include "common/base/hash.h"

#include <stddef.h>

const char *
toc_state_text(enum toc_state state)
{
    switch (state) {
#define X(name, number, text) \
    case TOC_STATE_##name:    \
        return #name;
        TOC_STATE_MAP(X)
#undef X
    }
    return "UNKNOWN";
}

bool
toc_state_parse(struct toc_str text, enum toc_state *ret_state)
{
#define X(name, number, meaning)            \
    if (toc_str_eq(text, TOC_STR(#name))) { \
        *ret_state = TOC_STATE_##name;      \
        return true;                        \
    }
    TOC_STATE_MAP(X)
#undef X
    return false;
}

bool
toc_state_valid(int64_t number)
{
    return number >= 0 && number < TOC_STATES && number != TOC_STATE_SCHEDULING;
}

bool
toc_state_ended(enum toc_state state)
{
    return state >= TOC_STATE_ENDED;
}

bool
toc_edge_legal(enum toc_state from, enum toc_state to)
{
    static const struct {
        enum toc_state from, to;
    } edges[] = {
#define X(from, to, who, why) {TOC_STATE_##from, TOC_STATE_##to},
        TOC_EDGE_MAP(X)
#undef X
    };

    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        if (edges[i].from == from && edges[i].to == to)
            return true;
    return false;
}

enum toc_state
toc_state_shown(enum toc_state state, int64_t slot_ms, int64_t now_ms)
{
    if (state != TOC_STATE_INIT && state != TOC_STATE_RETRY)
        return state;
    if (toc_slot_is_parked(slot_ms) || slot_ms - TOC_LOOK_AHEAD_MS > now_ms)
        return state;
    return TOC_STATE_SCHEDULING;
}

const char *
toc_result_text(enum toc_result result)
{
    switch (result) {
#define X(name, number, text) \
    case TOC_RESULT_##name:   \
        return #name;
        TOC_RESULT_MAP(X)
#undef X
    }
    return "UNKNOWN";
}

bool
toc_result_valid(int64_t number)
{
    switch (number) {
#define X(name, value, text) case value:
        TOC_RESULT_MAP(X)
#undef X
        return true;
    default:
        return false;
    }
}

/* Stored, so it must stay what it is: the first 4 bytes of the SHA-256. */
uint32_t
toc_target_id(struct toc_str target)
{
    uint8_t digest[32];
    uint32_t id = 0;

    toc_sha256_fields(&target, 1, digest);
    for (size_t i = 0; i < 4; i++)
        id = id << 8 | digest[i];
    return id;
}

struct toc_task_ref
toc_task_ref_of(const struct toc_task *task)
{
    return (struct toc_task_ref){.slice = task->slice,
                                 .slot_ms = task->slot_ms,
                                 .id = task->id,
                                 .version = task->version};
}

int
toc_task_ref_cmp(const struct toc_task_ref *a, const struct toc_task_ref *b)
{
    if (a->slice != b->slice)
        return a->slice < b->slice ? -1 : 1;
    if (a->slot_ms != b->slot_ms)
        return a->slot_ms < b->slot_ms ? -1 : 1;
    return toc_task_id_cmp(a->id, b->id);
}
