/*
 * Goal: AdminService.ListBuckets over gRPC gives whole buckets, in order, on
 * pages bounded in number and time that together count everything once; only
 * where a page's time ends it tells a bucket in parts.
 * Method: the real server and client over loopback; a store of the test's own,
 * whose pieces end where the test decides.
 */
#include "admin/service.h"

#include "common/api/api.h"
#include "common/clock/os/clock_os.h"
#include "common/rpc/client.h"
#include "tests/support/toc_check.h"
#include "toc/v1/admin.pb-c.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 20000

static struct {
    size_t per_call;     /* rows counted in one store call; 0: all */
    int64_t list_ms_max; /* 0: the service's own */
    struct toc_store store;
    struct toc_coord coord;
    struct admin_service *service;
    struct toc_rpc_server *server;
    struct toc_rpc_client *client;
    struct toc_arena arena;
    struct toc_str details;
    struct toc_error error;
} fx;

/* A piece is fx.per_call rows, which lie a second apart; every other one is of
 * another type. */
static enum toc_status
fake_count_buckets(void *self, const struct toc_bucket_query *query,
                   struct toc_cursor *cursor, struct toc_arena *arena,
                   struct toc_bucket_count **ret_counts, size_t *ret_n,
                   struct toc_error *reterr)
{
    int64_t at_ms = cursor->set ? cursor->slot_ms : query->from_ms;
    int64_t end_ms =
        fx.per_call > 0 ? at_ms + 1000 * (int64_t)fx.per_call : query->to_ms;
    struct toc_bucket_count *last = NULL;

    (void)self, (void)reterr;
    if (end_ms > query->to_ms)
        end_ms = query->to_ms;
    *ret_counts =
        toc_arena_calloc(arena, fx.per_call > 0 ? 2 * fx.per_call + 2 : 20002,
                         sizeof **ret_counts);
    *ret_n = 0;
    for (at_ms += (1000 - at_ms % 1000) % 1000; at_ms < end_ms; at_ms += 1000) {
        int64_t start_ms = at_ms - at_ms % query->width_ms;
        ck_assert_uint_lt(*ret_n, 20000);
        if (last == NULL || last->start_ms != start_ms) {
            last = &(*ret_counts)[*ret_n];
            last[0] = (struct toc_bucket_count){start_ms, TOC_STR("a"), {0}};
            last[1] = (struct toc_bucket_count){start_ms, TOC_STR("b"), {0}};
            *ret_n += 2;
        }
        last[at_ms / 1000 % 2].n[at_ms / 1000 % 3]++;
    }
    *cursor =
        (struct toc_cursor){.set = end_ms < query->to_ms, .slot_ms = end_ms};
    return TOC_OK;
}

static const struct toc_store_ops store_ops = {
    .name = "fake", .count_buckets = fake_count_buckets};
static const struct toc_coord_ops coord_ops = {.name = "fake"};

static void
serve(void)
{
    struct admin_service_options options = {.list_ms_max = fx.list_ms_max,
                                            .clk = toc_clock_os()};
    const struct toc_rpc_server_options listen = {.listen = "127.0.0.1:0",
                                                  .clock = toc_clock_os()};

    fx.store = (struct toc_store){.ops = &store_ops};
    fx.coord = (struct toc_coord){&coord_ops, NULL};
    options.store = &fx.store;
    options.coord = &fx.coord;
    fx.service = admin_service_new(&options);
    ck_assert_int_eq(toc_rpc_server_new(&listen, &fx.server, &fx.error),
                     TOC_OK);
    admin_service_add(fx.service, fx.server);
    ck_assert_int_eq(toc_rpc_server_start(fx.server, &fx.error), TOC_OK);
    fx.client = toc_rpc_client_new(&(struct toc_rpc_client_options){
        .clock = toc_clock_os(), .reply_bytes_max = 4 << 20});
}

static void
stop(void)
{
    admin_service_stop(fx.service);
    toc_rpc_server_stop(fx.server, 1000);
    toc_rpc_server_free(fx.server);
    admin_service_free(fx.service);
    toc_rpc_client_free(fx.client);
    toc_arena_done(&fx.arena);
}

static enum toc_status
call(const char *method, const ProtobufCMessage *request, void *ret_reply)
{
    ProtobufCMessage *reply = NULL;
    enum toc_status st =
        toc_rpc_call(fx.client, toc_rpc_server_address(fx.server),
                     &toc__v1__admin_service__descriptor, method, request,
                     TIMEOUT_MS, &fx.arena, &reply, &fx.details, &fx.error);

    *(ProtobufCMessage **)ret_reply = reply;
    return st;
}

struct bucket_walk {
    uint64_t waiting, executing, buckets, parts;
    size_t pages;
};

/* Numbers of rows over all pages; buckets come in order. */
static struct bucket_walk
walk_buckets(Toc__V1__ListBucketsRequest request)
{
    struct bucket_walk walk = {.pages = 0};
    char last[32] = "";

    do {
        Toc__V1__ListBucketsResponse *page;
        ck_assert_msg(call("ListBuckets", &request.base, &page) == TOC_OK, "%s",
                      fx.error.msg);
        ck_assert_uint_le(page->n_buckets, request.page_size);
        ck_assert_uint_lt(toc__v1__list_buckets_response__get_packed_size(page),
                          3 << 20);
        for (size_t i = 0; i < page->n_buckets; i++) {
            const Toc__V1__Bucket *bucket = page->buckets[i];
            int order = strcmp(last, bucket->id);
            ck_assert_int_le(order, 0);
            ck_assert(order < 0 || i == 0);
            walk.buckets += order < 0;
            walk.parts += order == 0;
            snprintf(last, sizeof last, "%s", bucket->id);
            ck_assert_uint_eq(bucket->n_lines, 2);
            ck_assert_str_eq(bucket->lines[0]->biz_type, "a");
            ck_assert_str_eq(bucket->lines[1]->biz_type, "b");
            for (size_t k = 0; k < 2; k++) {
                walk.waiting += bucket->lines[k]->waiting;
                walk.executing += bucket->lines[k]->executing;
            }
        }
        request.page_token = page->next_page_token;
        ck_assert_uint_le(++walk.pages, 10000);
    } while (request.page_token[0] != '\0');
    return walk;
}

/* 10,000 rows, a second apart; a third of them is executing, and a third in a
 * state that is not stored (and so not told). */
START_TEST(buckets_are_paged_and_lose_nothing)
{
    Toc__V1__ListBucketsRequest request = TOC__V1__LIST_BUCKETS_REQUEST__INIT;
    Toc__V1__ListBucketsResponse *page;
    struct bucket_walk walk;

    serve();
    request.size = TOC__V1__BUCKET_SIZE__BUCKET_SIZE_MINUTE;
    request.from = toc_api_time(&fx.arena, 1765000000000);
    request.to = toc_api_time(&fx.arena, 1765000000000 + 9999 * 1000 + 1);
    static const size_t pieces[] = {0, 7, 60, 1000};
    static const uint32_t sizes[] = {1, 10, 1000};
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 3; k++) {
            fx.per_call = pieces[i];
            request.page_size = sizes[k];
            walk = walk_buckets(request);
            ck_assert_uint_eq(walk.waiting + walk.executing, 6666);
            ck_assert_uint_ge(walk.executing, 3333);
            ck_assert_uint_eq(walk.buckets, 168);
            ck_assert_uint_eq(walk.parts, 0); /* there was time */
            ck_assert_uint_eq(walk.pages, (168 + sizes[k] - 1) / sizes[k]);
        }
    }
    request.page_size = 10;
    ck_assert_int_eq(call("ListBuckets", &request.base, &page), TOC_OK);
    ck_assert_str_eq(page->buckets[0]->id, "202512060546");
    ck_assert_int_eq(page->buckets[0]->start_time->seconds, 1764999960);
    ck_assert_int_eq(page->buckets[0]->end_time->seconds, 1765000020);
    request.page_token = page->next_page_token;
    request.size = TOC__V1__BUCKET_SIZE__BUCKET_SIZE_HOUR;
    ck_assert_int_eq(call("ListBuckets", &request.base, &page), TOC_INVALID);
    ck_assert_ptr_nonnull(strstr(fx.error.msg, "page_token"));
    stop();
}
END_TEST

START_TEST(buckets_end_with_their_time)
{
    Toc__V1__ListBucketsRequest request = TOC__V1__LIST_BUCKETS_REQUEST__INIT;
    struct bucket_walk walk;

    fx.list_ms_max = 1;
    fx.per_call = 1; /* far too slow for 10,000 */
    serve();
    request.size = TOC__V1__BUCKET_SIZE__BUCKET_SIZE_DAY;
    request.from = toc_api_time(&fx.arena, 1765000000000);
    request.to = toc_api_time(&fx.arena, 1765000000000 + 9999 * 1000 + 1);
    request.page_size = 1000;
    walk = walk_buckets(request);
    ck_assert_uint_eq(walk.waiting + walk.executing, 6666);
    ck_assert_uint_eq(walk.buckets, 1);
    ck_assert_uint_eq(walk.parts, walk.pages - 1);
    ck_assert_uint_gt(walk.parts, 0);
    stop();
}
END_TEST

TOC_CHECK_MAIN("admin_buckets", buckets_are_paged_and_lose_nothing,
               buckets_end_with_their_time)
