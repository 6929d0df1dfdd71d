#include "executor/item.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/model/limits.h"
#include "common/model/spec.h"

#include <stdint.h>
#include <string.h>

/* Moves the text to the end of the block, which has room for it. */
static void
keep(struct toc_str *text, char **end)
{
    if (text->len == 0) {
        *text = (struct toc_str){NULL, 0};
        return;
    }
    memcpy(*end, text->ptr, text->len);
    text->ptr = *end;
    *end += text->len;
}

static void
read_spec(struct exec_item *item, struct toc_arena *scratch)
{
    struct toc_spec spec;

    item->call_timeout_ms = TOC_CALL_TIMEOUT_MS_DEFAULT;
    item->batch_max = 1;
    if (toc_spec_decode(item->task.spec, scratch, &spec, NULL) != TOC_OK) {
        item->spec_bad = true;
        return;
    }
    item->target = spec.target;
    if (spec.call_timeout_ms > 0)
        item->call_timeout_ms = spec.call_timeout_ms;
    if (item->call_timeout_ms > TOC_CALL_TIMEOUT_MS_MAX)
        item->call_timeout_ms = TOC_CALL_TIMEOUT_MS_MAX;
    if (spec.batch_max > 1)
        item->batch_max = spec.batch_max;
}

struct exec_item *
exec_item_new(const struct toc_hint *hint, struct toc_arena *scratch)
{
    struct exec_item head = {.node.index = SIZE_MAX,
                             .state = EXEC_ITEM_NEW,
                             .task = hint->task,
                             .has_payload = hint->has_payload,
                             .wake_ms = hint->task.due_ms};
    struct exec_item *item;
    size_t texts;
    char *end;

    head.task.error = (struct toc_str){NULL, 0};
    if (!hint->has_payload)
        head.task.payload = (struct toc_str){NULL, 0};
    read_spec(&head, scratch);
    texts = head.task.biz_type.len + head.task.biz_id.len + head.task.name.len +
            head.task.spec.len + head.task.payload.len + head.target.len;
    item = toc_alloc(sizeof *item + texts);
    *item = head;
    end = (char *)(item + 1);
    keep(&item->task.biz_type, &end);
    keep(&item->task.biz_id, &end);
    keep(&item->task.name, &end);
    keep(&item->task.spec, &end);
    keep(&item->task.payload, &end);
    keep(&item->target, &end);
    toc_list_init(&item->link);
    toc_list_init(&item->overdue);
    return item;
}

void
exec_item_free(struct exec_item *item)
{
    if (item == NULL)
        return;
    TOC_ASSERT(item->refs == NULL);
    TOC_ASSERT(item->node.index == SIZE_MAX);
    toc_free(item);
}

bool
exec_item_ages(struct exec_item *item, int64_t now_ms)
{
    if (item->age == EXEC_LATE || now_ms - item->task.due_ms <= EXEC_LATE_MS)
        return false;
    item->age = EXEC_LATE;
    return true;
}

enum toc_priority
exec_item_priority(const struct exec_item *item)
{
    return toc_slice_priority(item->task.slice);
}

void
exec_item_add_ref(struct exec_item *item, struct exec_message *message)
{
    struct exec_ref *ref = TOC_NEW(struct exec_ref);

    TOC_ASSERT(!item->kept);
    ref->message = message;
    ref->next = item->refs;
    item->refs = ref;
}

void
exec_item_decide(struct exec_item *item, struct exec_offsets *offsets)
{
    while (item->refs != NULL) {
        struct exec_ref *ref = item->refs;

        item->refs = ref->next;
        exec_offsets_decide(offsets, ref->message);
        toc_free(ref);
    }
}

bool
exec_item_is_orphan(const struct exec_item *item)
{
    return item->refs == NULL && !item->kept;
}

void
exec_item_drop_refs(struct exec_item *item,
                    const struct exec_partition *partition)
{
    struct exec_ref **at = &item->refs;

    while (*at != NULL) {
        struct exec_ref *ref = *at;

        if (ref->message->partition != partition) {
            at = &ref->next;
            continue;
        }
        *at = ref->next;
        toc_free(ref);
    }
}
