/*
 * Goal: failures become google.rpc.Status as clients expect them, and unpacking
 * what a peer sent is bounded.
 * Method: build failures, pack them, read them back with the generated code.
 */
#include "common/rpc/rpc.h"
#include "google/protobuf/any.pb-c.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "tests/support/toc_check.h"
#include "toc/v1/timeout.pb-c.h"

#include <string.h>

struct packed {
    struct toc_arena arena;
    struct toc_buf bytes;
    Google__Rpc__Status *status;
};

static void
pack(struct packed *packed, const struct toc_rpc_failure *failure)
{
    toc_rpc_failure_pack(failure, &packed->bytes);
    packed->status =
        toc_rpc_unpack(&google__rpc__status__descriptor,
                       toc_buf_view(&packed->bytes), &packed->arena);
    ck_assert_ptr_nonnull(packed->status);
}

static void
packed_done(struct packed *packed)
{
    toc_buf_done(&packed->bytes);
    toc_arena_done(&packed->arena);
}

static void *
detail(struct packed *packed, size_t i, const ProtobufCMessageDescriptor *type)
{
    const Google__Protobuf__Any *any;
    struct toc_str value;
    char url[128];

    ck_assert_uint_lt(i, packed->status->n_details);
    any = packed->status->details[i];
    toc_format(url, sizeof url, "type.googleapis.com/%s", type->name);
    ck_assert_str_eq(any->type_url, url);
    value = (struct toc_str){(const char *)any->value.data, any->value.len};
    return toc_rpc_unpack(type, value, &packed->arena);
}

START_TEST(first_violation_gives_status_and_message)
{
    struct packed packed = {0};
    struct toc_rpc_failure failure;
    Google__Rpc__BadRequest *bad;

    toc_rpc_failure_init(&failure, &packed.arena);
    toc_rpc_violate(&failure, "key.biz_type", "must have 1 to %d bytes", 64);
    toc_rpc_violate(&failure, "delay", "must not be negative");
    pack(&packed, &failure);
    ck_assert_int_eq(packed.status->code, TOC_INVALID);
    ck_assert_str_eq(packed.status->message,
                     "key.biz_type: must have 1 to 64 bytes");
    ck_assert_uint_eq(packed.status->n_details, 1);
    bad = detail(&packed, 0, &google__rpc__bad_request__descriptor);
    ck_assert_uint_eq(bad->n_field_violations, 2);
    ck_assert_str_eq(bad->field_violations[1]->field, "delay");
    ck_assert_str_eq(bad->field_violations[1]->description,
                     "must not be negative");
    packed_done(&packed);
}
END_TEST

START_TEST(status_set_before_stays)
{
    struct packed packed = {0};
    struct toc_rpc_failure failure;

    toc_rpc_failure_init(&failure, &packed.arena);
    toc_rpc_failure_set(&failure, TOC_PRECONDITION, "not like %s", "this");
    toc_rpc_violate(&failure, "a", "b");
    pack(&packed, &failure);
    ck_assert_int_eq(packed.status->code, TOC_PRECONDITION);
    ck_assert_str_eq(packed.status->message, "not like this");
    packed_done(&packed);
}
END_TEST

START_TEST(violations_are_bounded)
{
    struct packed packed = {0};
    struct toc_rpc_failure failure;
    Google__Rpc__BadRequest *bad;

    toc_rpc_failure_init(&failure, &packed.arena);
    for (int i = 0; i < 1000; i++)
        toc_rpc_violate(&failure, "items", "bad item %d", i);
    pack(&packed, &failure);
    bad = detail(&packed, 0, &google__rpc__bad_request__descriptor);
    ck_assert_uint_eq(bad->n_field_violations, 100);
    ck_assert_str_eq(bad->field_violations[99]->description, "bad item 99");
    packed_done(&packed);
}
END_TEST

START_TEST(carries_retry_and_other_details)
{
    struct packed packed = {0};
    struct toc_rpc_failure failure;
    Toc__V1__Task task = TOC__V1__TASK__INIT, *stored;
    Google__Rpc__RetryInfo *retry;

    task.task_id = "an id";
    toc_rpc_failure_init(&failure, &packed.arena);
    toc_rpc_failure_set(&failure, TOC_EXISTS, "the key holds another task");
    failure.retry_after_ms = 1250;
    failure.details[failure.n_details++] = &task.base;
    pack(&packed, &failure);
    ck_assert_uint_eq(packed.status->n_details, 2);
    retry = detail(&packed, 0, &google__rpc__retry_info__descriptor);
    ck_assert_int_eq(retry->retry_delay->seconds, 1);
    ck_assert_int_eq(retry->retry_delay->nanos, 250000000);
    stored = detail(&packed, 1, &toc__v1__task__descriptor);
    ck_assert_str_eq(stored->task_id, "an id");
    packed_done(&packed);
}
END_TEST

/* A string that is not UTF-8 would make the whole status unreadable in most
 * languages, and texts quote what peers sent. */
START_TEST(texts_are_made_utf8)
{
    struct packed packed = {0};
    struct toc_rpc_failure failure;

    toc_rpc_failure_init(&failure, &packed.arena);
    toc_rpc_failure_set(&failure, TOC_INVALID, "%s", "a\xff\xc3\xa9\xc3");
    pack(&packed, &failure);
    ck_assert_str_eq(packed.status->message, "a?\xc3\xa9?");
    packed_done(&packed);
}
END_TEST

START_TEST(text_for_a_person)
{
    struct packed packed = {0};
    struct toc_rpc_failure failure;
    struct toc_buf text = {0};

    toc_rpc_failure_init(&failure, &packed.arena);
    toc_rpc_failure_set(&failure, TOC_INVALID, "2 fields are wrong");
    toc_rpc_violate(&failure, "key", "is required");
    toc_rpc_violate(&failure, "delay", "is too long");
    failure.retry_after_ms = 5;
    pack(&packed, &failure);
    toc_rpc_failure_text(toc_buf_view(&packed.bytes), &text);
    ck_assert_str_eq(text.data, "2 fields are wrong\n"
                                "  key: is required\n"
                                "  delay: is too long\n");
    toc_buf_reset(&text);
    toc_rpc_failure_text(TOC_STR("\xff\xff not a status"), &text);
    ck_assert_uint_eq(text.len, 0);
    toc_buf_done(&text);
    packed_done(&packed);
}
END_TEST

/* Two bytes an item, hundreds in memory: 4 MiB of them must be refused, and
 * long before they have taken a gigabyte. */
START_TEST(unpacking_does_not_blow_up)
{
    struct toc_arena arena = {0};
    struct toc_buf bytes = {0};
    const size_t items = 2 * 1024 * 1024;

    for (size_t i = 0; i < items; i++)
        toc_buf_add(&bytes, "\x0a\x00", 2);
    ck_assert_ptr_null(
        toc_rpc_unpack(&toc__v1__batch_submit_request__descriptor,
                       toc_buf_view(&bytes), &arena));
    ck_assert_uint_le(arena.used, bytes.len * 20);
    toc_buf_done(&bytes);
    toc_arena_done(&arena);
}
END_TEST

/* The leanest real batch there can be fits into the same bound. */
START_TEST(unpacking_takes_real_batches)
{
    struct toc_arena arena = {0};
    struct toc_buf bytes = {0};
    Toc__V1__CancelRequest item = TOC__V1__CANCEL_REQUEST__INIT;
    Toc__V1__CancelRequest *items[1000];
    Toc__V1__BatchCancelRequest batch = TOC__V1__BATCH_CANCEL_REQUEST__INIT;
    const Toc__V1__BatchCancelRequest *back;

    item.which_case = TOC__V1__CANCEL_REQUEST__WHICH_TASK_ID;
    item.task_id = "0123456789abcdefghjkmnpqrs";
    for (size_t i = 0; i < 1000; i++)
        items[i] = &item;
    batch.n_items = 1000;
    batch.items = items;
    toc_rpc_pack(&batch.base, &bytes);
    back = toc_rpc_unpack(&toc__v1__batch_cancel_request__descriptor,
                          toc_buf_view(&bytes), &arena);
    ck_assert_ptr_nonnull(back);
    ck_assert_uint_eq(back->n_items, 1000);
    ck_assert_str_eq(back->items[999]->task_id, item.task_id);
    toc_buf_done(&bytes);
    toc_arena_done(&arena);
}
END_TEST

START_TEST(unpacking_refuses_garbage)
{
    struct toc_arena arena = {0};

    ck_assert_ptr_null(toc_rpc_unpack(&toc__v1__submit_request__descriptor,
                                      TOC_STR("\x0a\x7f short"), &arena));
    ck_assert_ptr_nonnull(toc_rpc_unpack(&toc__v1__submit_request__descriptor,
                                         (struct toc_str){0}, &arena));
    toc_arena_done(&arena);
}
END_TEST

TOC_CHECK_MAIN("rpc_failure", first_violation_gives_status_and_message,
               status_set_before_stays, violations_are_bounded,
               carries_retry_and_other_details, texts_are_made_utf8,
               text_for_a_person, unpacking_does_not_blow_up,
               unpacking_takes_real_batches, unpacking_refuses_garbage)
