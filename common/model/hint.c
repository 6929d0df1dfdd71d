#include "common/model/hint.h"

#include "common/base/assert.h"
#include "common/model/limits.h"
#include "common/model/unpack.h"
#include "toc/v1/bus.pb-c.h"

#include <string.h>

/* protobuf-c's binary fields are not const; packing only reads them. */
static ProtobufCBinaryData
binary_of(struct toc_str s)
{
    union {
        const char *in;
        uint8_t *out;
    } view = {.in = s.ptr};

    return (ProtobufCBinaryData){.len = s.len, .data = view.out};
}

static struct toc_str
str_of(const ProtobufCBinaryData *data)
{
    return (struct toc_str){(const char *)data->data, data->len};
}

static void
fill_hint(const struct toc_hint *hint, Toc__V1__Hint *out)
{
    const struct toc_task *task = &hint->task;

    toc__v1__hint__init(out);
    out->slice = task->slice;
    out->slot_ms = task->slot_ms;
    out->task_id = binary_of(
        (struct toc_str){(const char *)task->id.b, sizeof task->id.b});
    out->version = task->version;
    out->due_ms = task->due_ms;
    out->fire = task->fire;
    out->attempt = task->attempt;
    out->flags = task->flags;
    out->target_id = task->target_id;
    out->line_id = task->line_id;
    out->claims = task->claims;
    out->created_ms = task->created_ms;
    out->biz_type = binary_of(task->biz_type);
    out->biz_id = binary_of(task->biz_id);
    out->name = binary_of(task->name);
    out->spec = binary_of(task->spec);
    if (hint->has_payload)
        out->payload = binary_of(task->payload);
    out->payload_omitted = !hint->has_payload;
}

void
toc_hint_encode(const struct toc_hint *hints, size_t n, uint32_t sched_node,
                struct toc_buf *out)
{
    Toc__V1__HintBatch msg = TOC__V1__HINT_BATCH__INIT;
    Toc__V1__Hint items[TOC_HINTS_PER_MESSAGE_MAX];
    Toc__V1__Hint *refs[TOC_HINTS_PER_MESSAGE_MAX];

    TOC_ASSERT(n <= TOC_HINTS_PER_MESSAGE_MAX);
    for (size_t i = 0; i < n; i++) {
        fill_hint(&hints[i], &items[i]);
        refs[i] = &items[i];
    }
    msg.format = TOC_HINT_FORMAT;
    msg.sched_node = sched_node;
    msg.n_hints = n;
    msg.hints = refs;
    toc_pack_message(&msg.base, out);
}

static bool
numbers_fit(const Toc__V1__Hint *msg)
{
    return msg->slice < TOC_SHARDS * TOC_SLICES_PER_SHARD &&
           msg->slice % TOC_SLICES_PER_SHARD < TOC_PRIORITIES &&
           msg->version > 0 && msg->fire > 0 && msg->attempt <= UINT16_MAX &&
           msg->claims <= UINT16_MAX && msg->flags <= UINT8_MAX &&
           msg->due_ms >= TOC_DUE_MS_MIN && msg->due_ms <= TOC_DUE_MS_MAX;
}

static bool
texts_fit(const Toc__V1__Hint *msg)
{
    return msg->task_id.len == sizeof(struct toc_task_id) &&
           msg->biz_type.len > 0 && msg->biz_type.len <= TOC_BIZ_TYPE_MAX &&
           msg->biz_id.len <= TOC_BIZ_ID_MAX && msg->name.len <= TOC_NAME_MAX &&
           msg->spec.len <= TOC_SPEC_MAX && msg->payload.len <= TOC_PAYLOAD_MAX;
}

/* An id begins as its key's hash does, and the shard with them. */
static bool
names_agree(const struct toc_task *task)
{
    return memcmp(task->id.b, task->key_hash.b, 6) == 0 &&
           toc_slice_shard(task->slice) == toc_key_shard(task->key_hash);
}

static bool
read_hint(const Toc__V1__Hint *msg, uint32_t sched_node, struct toc_hint *out)
{
    struct toc_task *task = &out->task;

    if (!numbers_fit(msg) || !texts_fit(msg))
        return false;
    *out = (struct toc_hint){.has_payload = !msg->payload_omitted,
                             .sched_node = sched_node};
    *task = (struct toc_task){
        .slice = (uint16_t)msg->slice,
        .slot_ms = msg->slot_ms,
        .state = TOC_STATE_INIT,
        .flags = (uint8_t)msg->flags,
        .attempt = (uint16_t)msg->attempt,
        .claims = (uint16_t)msg->claims,
        .fire = msg->fire,
        .version = msg->version,
        .due_ms = msg->due_ms,
        .created_ms = msg->created_ms,
        .sched_node = sched_node,
        .line_id = msg->line_id,
        .target_id = msg->target_id,
        .biz_type = str_of(&msg->biz_type),
        .biz_id = str_of(&msg->biz_id),
        .name = str_of(&msg->name),
        .spec = str_of(&msg->spec),
        .payload = str_of(&msg->payload),
    };
    memcpy(task->id.b, msg->task_id.data, sizeof task->id.b);
    task->key_hash = toc_key_hash_of(task->biz_type, task->biz_id, task->name);
    return names_agree(task);
}

enum toc_status
toc_hint_decode(struct toc_str bytes, struct toc_arena *arena,
                struct toc_hint **ret_hints, size_t *ret_n,
                struct toc_error *reterr)
{
    ProtobufCAllocator allocator = toc_unpack_allocator(arena);
    Toc__V1__HintBatch *msg = toc__v1__hint_batch__unpack(
        &allocator, bytes.len, (const uint8_t *)bytes.ptr);
    struct toc_hint *hints;

    if (msg == NULL)
        return toc_error_set(reterr, TOC_DATA_LOSS, "hint", 0,
                             "not a hint batch (%zu bytes)", bytes.len);
    if (msg->format != TOC_HINT_FORMAT)
        return toc_error_set(reterr, TOC_UNIMPLEMENTED, "hint", 0,
                             "unknown format %u of hints", msg->format);
    if (msg->n_hints > TOC_HINTS_PER_MESSAGE_MAX)
        return toc_error_set(reterr, TOC_DATA_LOSS, "hint", 0,
                             "%zu hints in a message, at most %d", msg->n_hints,
                             TOC_HINTS_PER_MESSAGE_MAX);
    hints = toc_arena_calloc(arena, msg->n_hints, sizeof *hints);
    for (size_t i = 0; i < msg->n_hints; i++)
        if (!read_hint(msg->hints[i], msg->sched_node, &hints[i]))
            return toc_error_set(reterr, TOC_DATA_LOSS, "hint", 0,
                                 "hint %zu of %zu breaks a rule", i,
                                 msg->n_hints);
    *ret_hints = hints;
    *ret_n = msg->n_hints;
    return TOC_OK;
}
