/*
 * Buckets: what the store counts, piece by piece, put together to a page.
 *
 * A page ends where a bucket begins, so that it holds whole buckets; only when
 * its time is up, or its bytes, it ends in the middle of one. The store's
 * pieces come in the order of time, so only the last bucket can grow.
 */
#include "admin/bucket_id.h"
#include "admin/request.h"
#include "admin/service_internal.h"

#include <string.h>

#define BUCKET_BYTES 64 /* id, times, tags and lengths: at most */
#define LINE_BYTES 80   /* a line's numbers, tags and lengths: at most */

struct page {
    struct admin_call *call;
    const struct admin_buckets_request *request;
    Toc__V1__Bucket **buckets;
    size_t n;
    int64_t last_start_ms; /* of the last bucket */
    size_t bytes;
    struct toc_cursor cursor; /* where the next page begins */
    struct toc_mono end;
    bool full;
};

static Toc__V1__Bucket *
new_bucket(const struct page *page, int64_t start_ms)
{
    struct toc_arena *arena = page->call->arena;
    Toc__V1__Bucket *bucket = toc_arena_alloc(arena, sizeof *bucket);
    char id[ADMIN_BUCKET_ID_MAX];

    toc__v1__bucket__init(bucket);
    admin_bucket_id(id, page->request->size, start_ms);
    bucket->id = toc_arena_text(arena, toc_str_of(id));
    bucket->start_time = toc_api_time(arena, start_ms);
    bucket->end_time =
        toc_api_time(arena, start_ms + page->request->query.width_ms);
    return bucket;
}

static void
add_count(Toc__V1__BucketLine *line, const struct toc_bucket_count *count)
{
    const uint64_t *n = count->n;

    line->waiting += n[TOC_STATE_INIT] + n[TOC_STATE_RETRY];
    line->executing += n[TOC_STATE_EXECUTING];
    line->succeeded += n[TOC_STATE_SUCCESS];
    line->dead += n[TOC_STATE_DEAD];
    line->cancelled += n[TOC_STATE_CANCELLED];
    line->skipped += n[TOC_STATE_SKIPPED];
    line->discarded += n[TOC_STATE_DISCARDED];
}

/* Both the lines that are there and the counts are in the order of their
 * biz_type. */
static void
merge_lines(const struct page *page, Toc__V1__Bucket *bucket,
            const struct toc_bucket_count *counts, size_t n)
{
    struct toc_arena *arena = page->call->arena;
    Toc__V1__BucketLine **out =
        toc_arena_calloc(arena, bucket->n_lines + n, sizeof *out);
    size_t old = 0, n_out = 0;

    for (size_t i = 0; i < n; i++) {
        int order = 1;
        while (old < bucket->n_lines &&
               (order = toc_str_cmp(toc_str_of(bucket->lines[old]->biz_type),
                                    counts[i].biz_type)) < 0)
            out[n_out++] = bucket->lines[old++];
        if (old < bucket->n_lines && order == 0) {
            out[n_out] = bucket->lines[old++];
        } else {
            out[n_out] = toc_arena_alloc(arena, sizeof **out);
            toc__v1__bucket_line__init(out[n_out]);
            out[n_out]->biz_type = toc_api_text(arena, counts[i].biz_type);
        }
        add_count(out[n_out++], &counts[i]);
    }
    while (old < bucket->n_lines)
        out[n_out++] = bucket->lines[old++];
    bucket->lines = out;
    bucket->n_lines = n_out;
}

/* How many of the counts are of the first one's bucket, and their bytes. */
static size_t
same_bucket(const struct toc_bucket_count *counts, size_t n, size_t *ret_bytes)
{
    size_t same = 0;

    *ret_bytes = BUCKET_BYTES;
    for (; same < n && counts[same].start_ms == counts[0].start_ms; same++)
        *ret_bytes += LINE_BYTES + counts[same].biz_type.len;
    return same;
}

/* Takes the counts of a piece that began at `from`; where the page has no room
 * left, the next one begins: with that bucket, or inside it where the piece
 * began. The first bucket is always taken: a page must get on. */
static void
take_piece(struct page *page, const struct toc_bucket_count *counts, size_t n,
           struct toc_cursor from)
{
    for (size_t i = 0; i < n && !page->full;) {
        int64_t start_ms = counts[i].start_ms;
        bool grows = page->n > 0 && page->last_start_ms == start_ms;
        size_t bytes, same = same_bucket(counts + i, n - i, &bytes);
        if ((!grows && page->n == page->request->page_size) ||
            (page->n > 0 && page->bytes + bytes > ADMIN_ANSWER_BYTES_MAX)) {
            page->full = true;
            page->cursor = from;
            if (!from.set || start_ms > from.slot_ms)
                page->cursor =
                    (struct toc_cursor){.set = true, .slot_ms = start_ms};
            return;
        }
        if (!grows)
            page->buckets[page->n++] = new_bucket(page, start_ms);
        page->last_start_ms = start_ms;
        page->bytes += bytes;
        merge_lines(page, page->buckets[page->n - 1], counts + i, same);
        i += same;
    }
}

static bool
goes_on(const struct page *page)
{
    struct admin_call *call = page->call;

    return !page->full && page->cursor.set &&
           !toc_rpc_call_cancelled(call->rpc) &&
           toc_clock_mono(admin_call_clock(call)).ns < page->end.ns;
}

static enum toc_status
fill(struct page *page, struct toc_error *reterr)
{
    do {
        struct toc_cursor from = page->cursor;
        struct toc_bucket_count *counts = NULL;
        size_t n = 0;
        enum toc_status st = toc_store_count_buckets(
            admin_call_store(page->call), &page->request->query, &page->cursor,
            page->call->arena, &counts, &n, reterr);
        if (st != TOC_OK)
            return st;
        take_piece(page, counts, n, from);
    } while (goes_on(page));
    return TOC_OK;
}

void
admin_list_buckets(struct admin_call *call)
{
    const Toc__V1__ListBucketsRequest *message =
        (const Toc__V1__ListBucketsRequest *)call->request;
    Toc__V1__ListBucketsResponse answer = TOC__V1__LIST_BUCKETS_RESPONSE__INIT;
    struct toc_error error = {.status = TOC_OK};
    struct admin_buckets_request request;
    struct page page = {.call = call, .request = &request};
    struct toc_rpc_failure failure;
    enum toc_status st;

    toc_rpc_failure_init(&failure, call->arena);
    admin_read_list_buckets(message, &request, &failure);
    if (failure.status != TOC_OK) {
        toc_rpc_fail(call->rpc, &failure);
        return;
    }
    page.cursor = request.cursor;
    page.end = toc_mono_add_ms(toc_clock_mono(admin_call_clock(call)),
                               admin_call_list_ms_max(call));
    page.buckets =
        toc_arena_calloc(call->arena, request.page_size, sizeof *page.buckets);
    st = fill(&page, &error);
    if (st != TOC_OK) {
        admin_fail_error(call, st, &error);
        return;
    }
    answer.n_buckets = page.n;
    answer.buckets = page.buckets;
    answer.next_page_token =
        admin_buckets_token(call->arena, message, &page.cursor);
    toc_rpc_reply(call->rpc, &answer.base);
}
