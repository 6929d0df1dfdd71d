/*
 * Goal: hints survive the bus whole, and a message that is garbage, of another
 * format, or at odds with itself is refused with the right status.
 * Method: round trips at the maxima, one field broken at a time, every cut and
 * flipped bit of a message under the sanitizers.
 */
#include "common/model/hint.h"

#include "common/base/alloc.h"
#include "common/base/cleanup.h"
#include "common/model/limits.h"
#include "toc/v1/bus.pb-c.h"

#include "tests/support/toc_check.h"

#include <string.h>

static struct toc_hint
hint_of(const char *biz_id)
{
    struct toc_hint hint = {.has_payload = true};
    struct toc_task *task = &hint.task;

    task->biz_type = TOC_STR("order");
    task->biz_id = toc_str_of(biz_id);
    task->name = TOC_STR("pay");
    task->key_hash = toc_key_hash_of(task->biz_type, task->biz_id, task->name);
    task->slot_ms = INT64_C(1796119200123);
    task->due_ms = task->slot_ms - 7;
    task->id = toc_task_id_make(task->key_hash, task->slot_ms, 5);
    task->slice =
        toc_slice_of(toc_key_shard(task->key_hash), TOC_PRIORITY_NORMAL);
    task->state = TOC_STATE_RETRY;
    task->flags = TOC_FLAG_AT_MOST_ONCE;
    task->attempt = 3;
    task->claims = 2;
    task->fire = 4;
    task->version = 9;
    task->created_ms = task->slot_ms - 1000;
    task->line_id = 11;
    task->target_id = UINT32_MAX;
    task->spec = TOC_STR("spec\0bytes");
    task->payload = TOC_STR("pay\0load");
    return hint;
}

static enum toc_status
decode(const struct toc_buf *buf, struct toc_arena *arena,
       struct toc_hint **ret_hints, size_t *ret_n)
{
    struct toc_error err;
    enum toc_status st =
        toc_hint_decode(toc_buf_view(buf), arena, ret_hints, ret_n, &err);

    if (st != TOC_OK)
        ck_assert_int_eq(err.status, st);
    return st;
}

static void
same(const struct toc_task *a, const struct toc_task *b)
{
    ck_assert_uint_eq(a->slice, b->slice);
    ck_assert_int_eq(a->slot_ms, b->slot_ms);
    ck_assert_int_eq(toc_task_id_cmp(a->id, b->id), 0);
    ck_assert_uint_eq(a->flags, b->flags);
    ck_assert_uint_eq(a->attempt, b->attempt);
    ck_assert_uint_eq(a->claims, b->claims);
    ck_assert_uint_eq(a->fire, b->fire);
    ck_assert_uint_eq(a->version, b->version);
    ck_assert_int_eq(a->due_ms, b->due_ms);
    ck_assert_int_eq(a->created_ms, b->created_ms);
    ck_assert_uint_eq(a->line_id, b->line_id);
    ck_assert_uint_eq(a->target_id, b->target_id);
    ck_assert_mem_eq(a->key_hash.b, b->key_hash.b, 16);
    ck_assert(toc_str_eq(a->biz_type, b->biz_type));
    ck_assert(toc_str_eq(a->biz_id, b->biz_id));
    ck_assert(toc_str_eq(a->name, b->name));
    ck_assert(toc_str_eq(a->spec, b->spec));
}

START_TEST(a_full_message_round_trips)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    struct toc_hint *hints =
        TOC_NEW_ARRAY(struct toc_hint, TOC_HINTS_PER_MESSAGE_MAX);
    struct toc_hint *back;
    char ids[TOC_HINTS_PER_MESSAGE_MAX][8];
    size_t n;

    for (size_t i = 0; i < TOC_HINTS_PER_MESSAGE_MAX; i++) {
        toc_format(ids[i], sizeof ids[i], "%zu", i);
        hints[i] = hint_of(ids[i]);
        hints[i].has_payload = i % 2 == 0;
    }
    toc_hint_encode(hints, TOC_HINTS_PER_MESSAGE_MAX, 77, &buf);
    ck_assert_int_eq(decode(&buf, &arena, &back, &n), TOC_OK);
    ck_assert_uint_eq(n, TOC_HINTS_PER_MESSAGE_MAX);
    for (size_t i = 0; i < n; i++) {
        same(&back[i].task, &hints[i].task);
        ck_assert_uint_eq(back[i].sched_node, 77);
        ck_assert_int_eq(back[i].task.state, TOC_STATE_INIT);
        ck_assert(back[i].has_payload == (i % 2 == 0));
        ck_assert(toc_str_eq(back[i].task.payload,
                             i % 2 == 0 ? TOC_STR("pay\0load")
                                        : (struct toc_str){NULL, 0}));
    }
    toc_free(hints);
}
END_TEST

START_TEST(encoding_appends)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    struct toc_hint hint = hint_of("42");

    toc_buf_text(&buf, "head");
    toc_hint_encode(&hint, 1, 1, &buf);
    ck_assert_mem_eq(buf.data, "head", 4);
    ck_assert_uint_gt(buf.len, 20);
}
END_TEST

START_TEST(an_empty_message)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    struct toc_hint *hints;
    size_t n = 5;

    ck_assert_int_eq(decode(&buf, &arena, &hints, &n), TOC_UNIMPLEMENTED);
    ck_assert_uint_eq(n, 5);
    toc_hint_encode(NULL, 0, 1, &buf);
    ck_assert_int_eq(decode(&buf, &arena, &hints, &n), TOC_OK);
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(extremes_of_the_numbers)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    struct toc_hint hint = hint_of("42"), *back;
    size_t n;

    hint.task.attempt = hint.task.claims = UINT16_MAX;
    hint.task.flags = UINT8_MAX;
    hint.task.version = hint.task.fire = UINT32_MAX;
    hint.task.due_ms = TOC_DUE_MS_MIN;
    hint.task.slot_ms = INT64_MIN;
    hint.task.created_ms = INT64_MAX;
    toc_hint_encode(&hint, 1, UINT32_MAX, &buf);
    ck_assert_int_eq(decode(&buf, &arena, &back, &n), TOC_OK);
    same(&back[0].task, &hint.task);
}
END_TEST

START_TEST(other_formats)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    Toc__V1__HintBatch msg = TOC__V1__HINT_BATCH__INIT;
    struct toc_hint *hints;
    size_t n;

    msg.format = 2;
    toc_buf_reserve(&buf, 100);
    buf.len = toc__v1__hint_batch__pack(&msg, (uint8_t *)buf.data);
    ck_assert_int_eq(decode(&buf, &arena, &hints, &n), TOC_UNIMPLEMENTED);
    toc_buf_reset(&buf);
    toc_buf_text(&buf, "not protobuf at all");
    ck_assert_int_eq(decode(&buf, &arena, &hints, &n), TOC_DATA_LOSS);
}
END_TEST

static Toc__V1__HintBatch *
good_message(struct toc_buf *buf)
{
    struct toc_hint hint = hint_of("42");

    toc_buf_reset(buf);
    toc_hint_encode(&hint, 1, 1, buf);
    return toc__v1__hint_batch__unpack(NULL, buf->len,
                                       (const uint8_t *)buf->data);
}

static void
break_rule(Toc__V1__Hint *hint, int rule)
{
    switch (rule) {
    case 0:
        hint->slice = TOC_SHARDS * TOC_SLICES_PER_SHARD;
        break;
    case 1:
        hint->slice |= 3;
        break;
    case 2:
        hint->slice ^= 4;
        break; /* another shard than the key's */
    case 3:
        hint->version = 0;
        break;
    case 4:
        hint->fire = 0;
        break;
    case 5:
        hint->attempt = UINT16_MAX + 1;
        break;
    case 6:
        hint->claims = UINT16_MAX + 1;
        break;
    case 7:
        hint->flags = UINT8_MAX + 1;
        break;
    case 8:
        hint->due_ms = TOC_DUE_MS_MAX + 1;
        break;
    case 9:
        hint->due_ms = TOC_DUE_MS_MIN - 1;
        break;
    case 10:
        hint->task_id.len = 15;
        break;
    case 11:
        hint->task_id.data[0] ^= 1;
        break; /* another key's id */
    case 12:
        hint->biz_type.len = 0;
        break;
    case 13:
        hint->biz_id.len = 1;
        break; /* another key */
    default:
        ck_abort();
    }
}

START_TEST(every_rule)
{
    for (int rule = 0; rule < 14; rule++) {
        TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
        TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
        Toc__V1__HintBatch *msg = good_message(&buf);
        struct toc_hint *hints;
        size_t n;

        ck_assert_int_eq(decode(&buf, &arena, &hints, &n), TOC_OK);
        break_rule(msg->hints[0], rule);
        toc_buf_reset(&buf);
        toc_buf_reserve(&buf, 1000);
        buf.len = toc__v1__hint_batch__pack(msg, (uint8_t *)buf.data);
        ck_assert_msg(decode(&buf, &arena, &hints, &n) == TOC_DATA_LOSS,
                      "rule %d", rule);
        toc__v1__hint_batch__free_unpacked(msg, NULL);
    }
}
END_TEST

START_TEST(texts_over_their_maximum)
{
    static char big[TOC_SPEC_MAX + 1];

    for (int field = 0; field < 4; field++) {
        TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
        TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
        struct toc_hint hint = hint_of("42"), *hints;
        struct toc_task *task = &hint.task;
        const struct {
            struct toc_str *text;
            size_t max;
        } fields[] = {{&task->biz_type, TOC_BIZ_TYPE_MAX},
                      {&task->biz_id, TOC_BIZ_ID_MAX},
                      {&task->name, TOC_NAME_MAX},
                      {&task->spec, TOC_SPEC_MAX}};
        for (size_t over = 0; over < 2; over++) {
            size_t n;
            *fields[field].text =
                (struct toc_str){big, fields[field].max + over};
            task->key_hash =
                toc_key_hash_of(task->biz_type, task->biz_id, task->name);
            task->id = toc_task_id_make(task->key_hash, task->slot_ms, 5);
            task->slice =
                toc_slice_of(toc_key_shard(task->key_hash), TOC_PRIORITY_LOW);
            toc_buf_reset(&buf);
            toc_hint_encode(&hint, 1, 1, &buf);
            ck_assert_int_eq(decode(&buf, &arena, &hints, &n),
                             over > 0 ? TOC_DATA_LOSS : TOC_OK);
        }
    }
}
END_TEST

START_TEST(too_many_hints)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    struct toc_hint *hints;
    size_t n;

    toc_buf_text(&buf, "\x08\x01"); /* format 1, then empty hints */
    for (int i = 0; i < TOC_HINTS_PER_MESSAGE_MAX + 1; i++)
        toc_buf_add(&buf, "\x1a\x00", 2);
    ck_assert_int_eq(decode(&buf, &arena, &hints, &n), TOC_DATA_LOSS);
}
END_TEST

START_TEST(damaged_bytes)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf buf = {0};
    struct toc_hint hint = hint_of("42"), *hints;
    struct toc_buf cut;
    size_t n;

    toc_hint_encode(&hint, 1, 1, &buf);
    cut = buf;
    for (cut.len = 5; cut.len < buf.len; cut.len++)
        ck_assert_int_ne(decode(&cut, &arena, &hints, &n), TOC_OK);
    for (size_t bit = 0; bit < 8 * buf.len; bit++) {
        char keep = buf.data[bit / 8];
        enum toc_status st;
        buf.data[bit / 8] =
            (char)((unsigned char)keep ^ (unsigned char)(1u << bit % 8));
        st = decode(&buf, &arena, &hints, &n);
        ck_assert(st == TOC_OK || st == TOC_DATA_LOSS ||
                  st == TOC_UNIMPLEMENTED);
        buf.data[bit / 8] = keep;
        toc_arena_reset(&arena);
    }
}
END_TEST

TOC_CHECK_MAIN("hint", a_full_message_round_trips, encoding_appends,
               an_empty_message, extremes_of_the_numbers, other_formats,
               every_rule, texts_over_their_maximum, too_many_hints,
               damaged_bytes)
