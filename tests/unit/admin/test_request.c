/*
 * Goal: what is wrong with a request is named, field by field, before the store
 * is asked; what is right becomes what the store takes.
 * Method: one request per rule, and the failure's packed details read back.
 */
#include "admin/request.h"

#include "common/api/api.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/model/limits.h"
#include "tests/support/toc_check.h"

#include <string.h>

#define NOW_MS INT64_C(1800000000000)

static struct toc_arena arena;
static struct toc_rpc_failure failure;

static void
begin(void)
{
    toc_rpc_failure_init(&failure, &arena);
}

/* The failure names the field, and nothing else is wrong. */
static void
names(const char *field)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf packed = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};
    char line[128];

    ck_assert_int_eq(failure.status, TOC_INVALID);
    ck_assert_uint_eq(failure.n_violations, 1);
    toc_rpc_failure_pack(&failure, &packed);
    toc_rpc_failure_text(toc_buf_view(&packed), &text);
    toc_format(line, sizeof line, "  %s: ", field);
    ck_assert_msg(strstr(text.data, line) != NULL, "no %s in %s", field,
                  text.data);
}

static char *
repeat(char c, size_t n)
{
    char *text = toc_arena_alloc(&arena, n + 1);

    memset(text, c, n);
    text[n] = '\0';
    return text;
}

static struct admin_tasks_request
read_tasks(Toc__V1__TaskFilter *filter, uint32_t page_size, char *token)
{
    Toc__V1__ListTasksRequest request = TOC__V1__LIST_TASKS_REQUEST__INIT;
    struct admin_tasks_request out;

    request.filter = filter;
    request.page_size = page_size;
    request.page_token = token;
    begin();
    admin_read_list_tasks(&request, NOW_MS, &out, &failure);
    return out;
}

START_TEST(page_sizes_and_tokens)
{
    ck_assert_uint_eq(read_tasks(NULL, 0, "").page_size, ADMIN_PAGE_DEFAULT);
    ck_assert_uint_eq(read_tasks(NULL, 1000, "").page_size, 1000);
    ck_assert_int_eq(failure.status, TOC_OK);
    (void)read_tasks(NULL, 1001, "");
    names("page_size");
    (void)read_tasks(NULL, 0, "junk");
    names("page_token");
}
END_TEST

START_TEST(texts_of_filters)
{
    Toc__V1__TaskFilter filter = TOC__V1__TASK_FILTER__INIT;
    struct admin_tasks_request out;

    filter.biz_type = repeat('a', TOC_BIZ_TYPE_MAX);
    filter.biz_id = repeat('b', TOC_BIZ_ID_MAX);
    out = read_tasks(&filter, 0, "");
    ck_assert_int_eq(failure.status, TOC_OK);
    ck_assert_uint_eq(out.filter.biz_id.len, TOC_BIZ_ID_MAX);
    filter.biz_type = repeat('a', TOC_BIZ_TYPE_MAX + 1);
    (void)read_tasks(&filter, 0, "");
    names("filter.biz_type");
    filter.biz_type = "order";
    filter.biz_id = repeat('b', 10000);
    (void)read_tasks(&filter, 0, "");
    names("filter.biz_id");
    filter.biz_id = "4\n2";
    (void)read_tasks(&filter, 0, "");
    names("filter.biz_id");
    filter.biz_id = "\xff";
    (void)read_tasks(&filter, 0, "");
    names("filter.biz_id");
    filter.biz_id = "42";
    filter.biz_type = "";
    (void)read_tasks(&filter, 0, "");
    names("filter.biz_id");
    filter.biz_type = "' OR 1=1 -- %s%n";
    out = read_tasks(&filter, 0, "");
    ck_assert_int_eq(failure.status, TOC_OK);
}
END_TEST

START_TEST(spans)
{
    Toc__V1__TaskFilter filter = TOC__V1__TASK_FILTER__INIT;
    Google__Protobuf__Timestamp bad = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    struct admin_tasks_request out = read_tasks(&filter, 0, "");

    ck_assert(out.filter.due_from_ms == 0 && out.filter.due_to_ms == 0);
    filter.due_from = toc_api_time(&arena, 5000);
    out = read_tasks(&filter, 0, "");
    ck_assert_int_eq(out.filter.due_from_ms, 5000);
    ck_assert_int_eq(out.filter.due_to_ms, TOC_DUE_MS_MAX + 1);
    filter.due_to = toc_api_time(&arena, 5001);
    out = read_tasks(&filter, 0, "");
    ck_assert_int_eq(out.filter.due_to_ms, 5001);
    ck_assert_int_eq(failure.status, TOC_OK);
    filter.due_to = toc_api_time(&arena, 5000);
    (void)read_tasks(&filter, 0, "");
    names("filter.due_to");
    bad.nanos = -1;
    filter.due_to = &bad;
    (void)read_tasks(&filter, 0, "");
    names("filter.due_to");
}
END_TEST

START_TEST(states)
{
    Toc__V1__State asked[2] = {TOC__V1__STATE__STATE_SCHEDULING};
    Toc__V1__TaskFilter filter = TOC__V1__TASK_FILTER__INIT;
    struct admin_tasks_request out;

    filter.states = asked;
    filter.n_states = 1;
    out = read_tasks(&filter, 0, "");
    ck_assert_uint_eq(out.filter.state_mask,
                      1u << TOC_STATE_INIT | 1u << TOC_STATE_RETRY);
    ck_assert_uint_eq(out.shown_mask, 1u << TOC_STATE_SCHEDULING);
    /* All that can be shown so is due by then. */
    ck_assert_int_eq(out.filter.due_to_ms, NOW_MS + TOC_LOOK_AHEAD_MS + 1);
    ck_assert_int_eq(out.filter.due_from_ms, TOC_DUE_MS_MIN);
    filter.due_from = toc_api_time(&arena, NOW_MS + 3600000);
    out = read_tasks(&filter, 0, "");
    ck_assert_int_eq(out.filter.due_from_ms, NOW_MS + 3600000);
    ck_assert_int_gt(out.filter.due_to_ms, out.filter.due_from_ms);
    filter.due_from = NULL;
    asked[1] = TOC__V1__STATE__STATE_DEAD;
    filter.n_states = 2;
    out = read_tasks(&filter, 0, "");
    ck_assert_int_eq(out.filter.due_to_ms, 0);
    ck_assert_uint_eq(out.filter.state_mask, 1u << TOC_STATE_INIT |
                                                 1u << TOC_STATE_RETRY |
                                                 1u << TOC_STATE_DEAD);
    asked[1] = (Toc__V1__State)77;
    (void)read_tasks(&filter, 0, "");
    names("filter.states");
    asked[1] = TOC__V1__STATE__STATE_UNSPECIFIED;
    (void)read_tasks(&filter, 0, "");
    names("filter.states");
}
END_TEST

START_TEST(which_task)
{
    Toc__V1__GetTimelineRequest request = TOC__V1__GET_TIMELINE_REQUEST__INIT;
    Toc__V1__TaskKey key = TOC__V1__TASK_KEY__INIT;
    struct toc_find find;

    begin();
    (void)admin_read_which(&request, &failure);
    names("which");
    request.which_case = TOC__V1__GET_TIMELINE_REQUEST__WHICH_TASK_ID;
    request.task_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    begin();
    find = admin_read_which(&request, &failure);
    ck_assert(find.by_id && failure.status == TOC_OK);
    request.task_id = "01ARZ3NDEKTSV4RRFFQ69G5FA";
    begin();
    (void)admin_read_which(&request, &failure);
    names("task_id");
    request.which_case = TOC__V1__GET_TIMELINE_REQUEST__WHICH_KEY;
    request.key = &key;
    key.biz_type = "order";
    begin();
    (void)admin_read_which(&request, &failure);
    names("key.biz_id");
    key.biz_id = "42";
    key.name = repeat('n', TOC_NAME_MAX + 1);
    begin();
    (void)admin_read_which(&request, &failure);
    names("key.name");
    key.name = "";
    begin();
    find = admin_read_which(&request, &failure);
    ck_assert(!find.by_id && failure.status == TOC_OK);
    TOC_ASSERT_STR(find.biz_id, "42");
}
END_TEST

START_TEST(dead_letters)
{
    Toc__V1__ListDeadRequest list = TOC__V1__LIST_DEAD_REQUEST__INIT;
    Toc__V1__DeadFilter filter = TOC__V1__DEAD_FILTER__INIT;
    Toc__V1__RedriveDeadRequest redrive = TOC__V1__REDRIVE_DEAD_REQUEST__INIT;
    struct admin_dead_request out;
    char *ids[1] = {"anything"};

    list.filter = &filter;
    filter.reason = "bad target";
    filter.dead_to = toc_api_time(&arena, 5000);
    begin();
    admin_read_list_dead(&list, &out, &failure);
    ck_assert_int_eq(failure.status, TOC_OK);
    TOC_ASSERT_STR(out.filter.reason, "bad target");
    ck_assert_int_eq(out.filter.dead_from_ms, TOC_DUE_MS_MIN);
    filter.reason = repeat('r', TOC_REASON_MAX + 1);
    begin();
    admin_read_list_dead(&list, &out, &failure);
    names("filter.reason");

    begin();
    admin_check_redrive(&redrive, &failure);
    names("task_ids");
    redrive.task_ids = ids;
    redrive.n_task_ids = 1; /* its item fails, not the call */
    begin();
    admin_check_redrive(&redrive, &failure);
    ck_assert_int_eq(failure.status, TOC_OK);
    redrive.n_task_ids = TOC_BATCH_MAX + 1;
    begin();
    admin_check_redrive(&redrive, &failure);
    names("task_ids");
    redrive.n_task_ids = 1;
    redrive.reason = "a\x1b";
    begin();
    admin_check_redrive(&redrive, &failure);
    names("reason");
}
END_TEST

static struct admin_buckets_request
read_buckets(const Toc__V1__ListBucketsRequest *request)
{
    struct admin_buckets_request out;

    begin();
    admin_read_list_buckets(request, &out, &failure);
    return out;
}

START_TEST(buckets)
{
    const int64_t day_ms = 86400000;
    Toc__V1__ListBucketsRequest r = TOC__V1__LIST_BUCKETS_REQUEST__INIT;
    struct toc_cursor cursor = {.set = true, .slice = 3, .slot_ms = 77};
    struct admin_buckets_request out;

    r.from = toc_api_time(&arena, 0);
    r.to = toc_api_time(&arena, 10000 * day_ms);
    r.size = TOC__V1__BUCKET_SIZE__BUCKET_SIZE_DAY;
    r.biz_type = "order";
    out = read_buckets(&r);
    ck_assert_int_eq(failure.status, TOC_OK);
    ck_assert_int_eq(out.query.from_ms, 0);
    ck_assert_int_eq(out.query.to_ms, 10000 * day_ms);
    ck_assert_int_eq(out.query.width_ms, day_ms);
    ck_assert_uint_eq(out.page_size, ADMIN_PAGE_DEFAULT);
    ck_assert(!out.cursor.set);
    TOC_ASSERT_STR(out.query.biz_type, "order");

    r.to = toc_api_time(&arena, 10000 * day_ms + 1); /* one bucket more */
    (void)read_buckets(&r);
    names("to");
    r.from = toc_api_time(&arena, day_ms - 1); /* not by the length alone */
    (void)read_buckets(&r);
    names("to");
    r.from = toc_api_time(&arena, day_ms);
    (void)read_buckets(&r);
    ck_assert_int_eq(failure.status, TOC_OK);
    r.size = TOC__V1__BUCKET_SIZE__BUCKET_SIZE_SECOND;
    (void)read_buckets(&r);
    names("to");
    r.to = toc_api_time(&arena, day_ms); /* empty */
    (void)read_buckets(&r);
    names("to");
    r.to = NULL;
    (void)read_buckets(&r);
    names("to");
    r.to = toc_api_time(&arena, day_ms + 10);
    r.from = toc_api_time(&arena, -1);
    (void)read_buckets(&r);
    names("from");
    r.from = NULL;
    (void)read_buckets(&r);
    names("from");
    r.from = toc_api_time(&arena, day_ms);
    r.size = TOC__V1__BUCKET_SIZE__BUCKET_SIZE_UNSPECIFIED;
    (void)read_buckets(&r);
    names("size");
    r.size = (Toc__V1__BucketSize)99;
    (void)read_buckets(&r);
    names("size");
    r.size = TOC__V1__BUCKET_SIZE__BUCKET_SIZE_SECOND;
    r.biz_type = "a\nb";
    (void)read_buckets(&r);
    names("biz_type");
    r.biz_type = "";
    r.page_size = 1001;
    (void)read_buckets(&r);
    names("page_size");

    /* A token is for the same question, whatever the size of the page. */
    r.page_size = 5;
    r.page_token = admin_buckets_token(&arena, &r, &cursor);
    r.page_size = 7;
    out = read_buckets(&r);
    ck_assert_int_eq(failure.status, TOC_OK);
    ck_assert(out.cursor.set && out.cursor.slice == 3);
    ck_assert_int_eq(out.cursor.slot_ms, 77);
    r.biz_type = "other";
    (void)read_buckets(&r);
    names("page_token");
    r.biz_type = "";
    r.to = toc_api_time(&arena, day_ms + 11);
    (void)read_buckets(&r);
    names("page_token");
}
END_TEST

TOC_CHECK_MAIN("request", page_sizes_and_tokens, texts_of_filters, spans,
               states, which_task, dead_letters, buckets)
