/*
 * Requests checked and turned into what the store takes. What is wrong goes
 * into the failure, field by field.
 *
 * Ownership: texts are borrowed from the request. Threads: any. Pure.
 */
#ifndef TOC_ADMIN_REQUEST_H
#define TOC_ADMIN_REQUEST_H

#include "common/rpc/rpc.h"
#include "common/store/store.h"
#include "toc/v1/admin.pb-c.h"

#define ADMIN_PAGE_DEFAULT 100
#define ADMIN_PAGE_MAX 1000

/* Which task: by id or key. */
struct toc_find admin_read_which(const Toc__V1__GetTimelineRequest *request,
                                 struct toc_rpc_failure *failure);

struct admin_tasks_request {
    struct toc_task_filter filter;
    /* 1 << state, as shown; 0: any. The filter's mask holds stored states, of
     * which some may be shown as another one. */
    uint16_t shown_mask;
    size_t page_size;
    struct toc_cursor cursor;
};
void admin_read_list_tasks(const Toc__V1__ListTasksRequest *request,
                           int64_t now_ms, struct admin_tasks_request *out,
                           struct toc_rpc_failure *failure);

struct admin_dead_request {
    struct toc_dead_filter filter;
    size_t page_size;
    struct toc_cursor cursor;
};
void admin_read_list_dead(const Toc__V1__ListDeadRequest *request,
                          struct admin_dead_request *out,
                          struct toc_rpc_failure *failure);

#define ADMIN_BUCKETS_MAX 10000 /* of a range */

struct admin_buckets_request {
    struct toc_bucket_query query;
    Toc__V1__BucketSize size;
    size_t page_size;
    struct toc_cursor cursor;
};
void admin_read_list_buckets(const Toc__V1__ListBucketsRequest *request,
                             struct admin_buckets_request *out,
                             struct toc_rpc_failure *failure);
/* The next page's token: for the same range, size and biz_type. */
char *admin_buckets_token(struct toc_arena *arena,
                          const Toc__V1__ListBucketsRequest *request,
                          const struct toc_cursor *cursor);

void admin_check_redrive(const Toc__V1__RedriveDeadRequest *request,
                         struct toc_rpc_failure *failure);

#endif
