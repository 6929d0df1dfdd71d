#include "common/store/mem/row.h"

#include "common/base/alloc.h"
#include "common/base/list.h"
#include "common/model/limits.h"

#include <string.h>

#define TEXTS_MAX 7

/* ---- texts ----------------------------------------------------------------
 */

struct text {
    size_t refs;
    char bytes[];
};

static struct text *
text_of(struct toc_str s)
{
    return toc_container_of(s.ptr, struct text, bytes);
}

static struct toc_str
cut(struct toc_str s, size_t max)
{
    if (s.len <= max)
        return s;
    /* 10xxxxxx goes on with a character that began before */
    while (max > 0 && ((unsigned char)s.ptr[max] & 0xc0) == 0x80)
        max--;
    s.len = max;
    return s;
}

struct toc_str
toc_mem_text(struct toc_str s, size_t max)
{
    struct text *text;

    s = cut(s, max);
    if (s.len == 0)
        return (struct toc_str){NULL, 0};
    text = toc_alloc(sizeof *text + s.len);
    text->refs = 1;
    memcpy(text->bytes, s.ptr, s.len);
    return (struct toc_str){text->bytes, s.len};
}

static void
drop_text(struct toc_str s)
{
    if (s.ptr != NULL && --text_of(s)->refs == 0)
        toc_free(text_of(s));
}

void
toc_mem_text_set(struct toc_str *at, struct toc_str s, size_t max)
{
    struct toc_str old = *at;

    *at = toc_mem_text(s, max);
    drop_text(old);
}

/* ---- rows
 * --------------------------------------------------------------------- */

static size_t
texts_of(struct toc_mem_row *row, struct toc_str *texts[TEXTS_MAX])
{
    size_t n = 0;

    switch (row->table) {
    case TOC_MEM_DEAD:
        texts[n++] = &row->reason; /* fall through */
    case TOC_MEM_TASK:
        texts[n++] = &row->task.error;
        texts[n++] = &row->task.biz_type;
        texts[n++] = &row->task.biz_id;
        texts[n++] = &row->task.name;
        texts[n++] = &row->task.spec;
        texts[n++] = &row->task.payload;
        break;
    case TOC_MEM_LOG:
        texts[n++] = &row->entry.who;
        texts[n++] = &row->entry.detail;
        break;
    case TOC_MEM_NODE:
        texts[n++] = &row->node.role;
        texts[n++] = &row->node.name;
        texts[n++] = &row->node.address;
        break;
    case TOC_MEM_KEY:
    case TOC_MEM_HISTORY:
    case TOC_MEM_STRAGGLER:
    case TOC_MEM_SHARD:
        break;
    }
    return n;
}

struct toc_mem_row *
toc_mem_row_new(enum toc_mem_table table)
{
    struct toc_mem_row *row = TOC_NEW(struct toc_mem_row);

    row->table = table;
    return row;
}

struct toc_mem_row *
toc_mem_row_copy(const struct toc_mem_row *row)
{
    struct toc_mem_row *copy = toc_alloc(sizeof *copy);
    struct toc_str *texts[TEXTS_MAX];
    size_t n;

    *copy = *row;
    n = texts_of(copy, texts);
    for (size_t i = 0; i < n; i++)
        if (texts[i]->ptr != NULL)
            text_of(*texts[i])->refs++;
    return copy;
}

void
toc_mem_row_free(struct toc_mem_row *row)
{
    struct toc_str *texts[TEXTS_MAX];
    size_t n;

    if (row == NULL)
        return;
    n = texts_of(row, texts);
    for (size_t i = 0; i < n; i++)
        drop_text(*texts[i]);
    toc_free(row);
}

struct toc_task
toc_mem_task_hint(const struct toc_mem_row *row)
{
    struct toc_task task = row->task;

    if (task.payload.len > TOC_HINT_PAYLOAD_MAX)
        task.payload.ptr = NULL;
    return task;
}

static void
keep(struct toc_arena *arena, struct toc_str *s)
{
    if (s->ptr != NULL)
        *s = toc_arena_str(arena, *s);
}

void
toc_mem_task_out(const struct toc_mem_row *row, bool hint,
                 struct toc_arena *arena, struct toc_task *ret_task)
{
    struct toc_task task = hint ? toc_mem_task_hint(row) : row->task;

    keep(arena, &task.error);
    keep(arena, &task.biz_type);
    keep(arena, &task.biz_id);
    keep(arena, &task.name);
    keep(arena, &task.spec);
    keep(arena, &task.payload);
    *ret_task = task;
}

/* ---- keys
 * --------------------------------------------------------------------- */

static uint8_t *
put(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = bytes; i > 0; i--) {
        at[i - 1] = (uint8_t)(value & 0xff);
        value >>= 8;
    }
    return at + bytes;
}

/* Negative slots before the others. */
static uint8_t *
put_slot(uint8_t *at, int64_t slot_ms)
{
    return put(at, (uint64_t)slot_ms ^ UINT64_C(1) << 63, 8);
}

struct toc_mem_key
toc_mem_key_place(uint16_t slice, int64_t slot_ms, struct toc_task_id id)
{
    struct toc_mem_key key = {{0}};
    uint8_t *at = put_slot(put(key.b, slice, 2), slot_ms);

    memcpy(at, id.b, sizeof id.b);
    return key;
}

struct toc_mem_key
toc_mem_key_ref(const struct toc_task_ref *ref)
{
    return toc_mem_key_place(ref->slice, ref->slot_ms, ref->id);
}

struct toc_mem_key
toc_mem_key_hash(struct toc_key_hash hash)
{
    struct toc_mem_key key = {{0}};

    memcpy(key.b, hash.b, sizeof hash.b);
    return key;
}

struct toc_mem_key
toc_mem_key_history(struct toc_key_hash hash, int64_t slot_ms,
                    struct toc_task_id id)
{
    struct toc_mem_key key = toc_mem_key_hash(hash);
    uint8_t *at = put_slot(key.b + sizeof hash.b, slot_ms);

    memcpy(at, id.b, sizeof id.b);
    return key;
}

struct toc_mem_key
toc_mem_key_id(struct toc_task_id id)
{
    struct toc_mem_key key = {{0}};

    memcpy(key.b, id.b, sizeof id.b);
    return key;
}

struct toc_mem_key
toc_mem_key_log(struct toc_task_id id, uint64_t log_id)
{
    struct toc_mem_key key = toc_mem_key_id(id);

    put(key.b + sizeof id.b, log_id, 8);
    return key;
}

struct toc_mem_key
toc_mem_key_number(uint32_t number)
{
    struct toc_mem_key key = {{0}};

    put(key.b, number, 4);
    return key;
}

struct toc_mem_key
toc_mem_key_of(const struct toc_mem_row *row)
{
    switch (row->table) {
    case TOC_MEM_TASK:
        return toc_mem_key_place(row->task.slice, row->task.slot_ms,
                                 row->task.id);
    case TOC_MEM_KEY:
        return toc_mem_key_hash(row->hash);
    case TOC_MEM_HISTORY:
        return toc_mem_key_history(row->hash, row->at.slot_ms, row->at.id);
    case TOC_MEM_LOG:
        return toc_mem_key_log(row->at.id, row->at.version);
    case TOC_MEM_DEAD:
        return toc_mem_key_id(row->task.id);
    case TOC_MEM_STRAGGLER:
        return toc_mem_key_ref(&row->at);
    case TOC_MEM_SHARD:
        return toc_mem_key_number(row->shard.shard);
    case TOC_MEM_NODE:
        break;
    }
    return toc_mem_key_number(row->node.id);
}
