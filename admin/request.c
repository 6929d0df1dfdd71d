#include "admin/request.h"

#include "admin/page_token.h"
#include "common/api/api.h"
#include "common/clock/clock.h"
#include "common/model/limits.h"

#include <string.h>

/* ---- texts and times ---- */

static void
check_text(struct toc_rpc_failure *failure, const char *field, const char *text,
           size_t max, bool needed)
{
    struct toc_str s = toc_str_of(text);

    if (needed && s.len == 0)
        toc_rpc_violate(failure, field, "must not be empty");
    else if (s.len > max)
        toc_rpc_violate(failure, field,
                        "must be at most %zu bytes long (it has %zu)", max,
                        s.len);
    else if (!toc_utf8_valid(s))
        toc_rpc_violate(failure, field, "must be UTF-8");
    else if (toc_str_has_control(s))
        toc_rpc_violate(failure, field, "must not hold control characters");
}

static bool
read_time(struct toc_rpc_failure *failure, const char *field,
          const Google__Protobuf__Timestamp *time, int64_t *ret_ms)
{
    if (time == NULL)
        return false;
    if (toc_api_time_ms(time, ret_ms))
        return true;
    toc_rpc_violate(failure, field,
                    "must lie within the years 0001 to 9999, with nanos from "
                    "0 to 999999999");
    return false;
}

struct span_fields {
    const char *from, *to;
};

/* [from, to) as the store takes it: both 0 for "any". */
static void
read_span(struct toc_rpc_failure *failure, struct span_fields fields,
          const Google__Protobuf__Timestamp *from,
          const Google__Protobuf__Timestamp *to, int64_t *ret_from_ms,
          int64_t *ret_to_ms)
{
    int64_t from_ms = TOC_DUE_MS_MIN, to_ms = TOC_DUE_MS_MAX + 1;
    bool has_from = read_time(failure, fields.from, from, &from_ms);
    bool has_to = read_time(failure, fields.to, to, &to_ms);

    if (!has_from && !has_to)
        return;
    if (from_ms >= to_ms)
        toc_rpc_violate(failure, fields.to, "must be after %s", fields.from);
    *ret_from_ms = from_ms;
    *ret_to_ms = to_ms;
}

static void
read_biz(struct toc_rpc_failure *failure, const char *biz_type,
         const char *biz_id, struct toc_str *ret_type, struct toc_str *ret_id)
{
    check_text(failure, "filter.biz_type", biz_type, TOC_BIZ_TYPE_MAX, false);
    check_text(failure, "filter.biz_id", biz_id, TOC_BIZ_ID_MAX, false);
    if (biz_id[0] != '\0' && biz_type[0] == '\0')
        toc_rpc_violate(failure, "filter.biz_id", "needs filter.biz_type");
    *ret_type = toc_str_of(biz_type);
    *ret_id = toc_str_of(biz_id);
}

static size_t
read_page_size(struct toc_rpc_failure *failure, uint32_t page_size)
{
    if (page_size > ADMIN_PAGE_MAX)
        toc_rpc_violate(failure, "page_size",
                        "must be from 1 to %d (it is %lu)", ADMIN_PAGE_MAX,
                        (unsigned long)page_size);
    return page_size == 0 ? ADMIN_PAGE_DEFAULT : page_size;
}

static void
read_token(struct toc_rpc_failure *failure, const char *token, const char *list,
           const ProtobufCMessage *filter, struct toc_cursor *ret_cursor)
{
    if (!admin_page_token_parse(token, list, filter, ret_cursor))
        toc_rpc_violate(failure, "page_token",
                        "must be the next_page_token of an answer to the same "
                        "filter");
}

/* ---- requests ---- */

struct toc_find
admin_read_which(const Toc__V1__GetTimelineRequest *request,
                 struct toc_rpc_failure *failure)
{
    struct toc_find find = {.by_id = false};
    const Toc__V1__TaskKey *key = request->key;

    if (request->which_case == TOC__V1__GET_TIMELINE_REQUEST__WHICH_TASK_ID) {
        find.by_id = true;
        if (!toc_task_id_parse(toc_str_of(request->task_id), &find.id))
            toc_rpc_violate(failure, "task_id",
                            "must be 26 characters of Crockford's base32");
        return find;
    }
    if (request->which_case != TOC__V1__GET_TIMELINE_REQUEST__WHICH_KEY ||
        key == NULL) {
        toc_rpc_violate(failure, "which", "task_id or key must be set");
        return find;
    }
    check_text(failure, "key.biz_type", key->biz_type, TOC_BIZ_TYPE_MAX, true);
    check_text(failure, "key.biz_id", key->biz_id, TOC_BIZ_ID_MAX, true);
    check_text(failure, "key.name", key->name, TOC_NAME_MAX, false);
    find.biz_type = toc_str_of(key->biz_type);
    find.biz_id = toc_str_of(key->biz_id);
    find.name = toc_str_of(key->name);
    return find;
}

#define BIT(state) ((uint16_t)(1u << (unsigned)(state)))

static void
read_states(const Toc__V1__TaskFilter *filter, struct admin_tasks_request *out,
            struct toc_rpc_failure *failure)
{
    enum toc_state state;

    for (size_t i = 0; i < filter->n_states; i++) {
        if (!toc_api_state_of(filter->states[i], &state)) {
            toc_rpc_violate(failure, "filter.states",
                            "%d is not the number of a state",
                            (int)filter->states[i]);
            continue;
        }
        out->shown_mask |= BIT(state);
        if (state == TOC_STATE_SCHEDULING)
            out->filter.state_mask |=
                (uint16_t)(BIT(TOC_STATE_INIT) | BIT(TOC_STATE_RETRY));
        else
            out->filter.state_mask |= BIT(state);
    }
}

/* What is shown as SCHEDULING is due by the end of the look-ahead: the store
 * need not look further. */
static void
narrow_scheduling(struct admin_tasks_request *out, int64_t now_ms)
{
    int64_t end_ms = now_ms + TOC_LOOK_AHEAD_MS + 1;
    struct toc_task_filter *filter = &out->filter;

    if (out->shown_mask != BIT(TOC_STATE_SCHEDULING))
        return;
    if (filter->due_from_ms == 0 && filter->due_to_ms == 0)
        filter->due_from_ms = TOC_DUE_MS_MIN;
    else if (filter->due_to_ms <= end_ms)
        return;
    filter->due_to_ms =
        end_ms > filter->due_from_ms ? end_ms : filter->due_from_ms + 1;
}

void
admin_read_list_tasks(const Toc__V1__ListTasksRequest *request, int64_t now_ms,
                      struct admin_tasks_request *out,
                      struct toc_rpc_failure *failure)
{
    const Toc__V1__TaskFilter *filter = request->filter;

    *out = (struct admin_tasks_request){.shown_mask = 0};
    out->page_size = read_page_size(failure, request->page_size);
    read_token(failure, request->page_token, "tasks",
               filter != NULL ? &filter->base : NULL, &out->cursor);
    if (filter == NULL)
        return;
    read_biz(failure, filter->biz_type, filter->biz_id, &out->filter.biz_type,
             &out->filter.biz_id);
    read_states(filter, out, failure);
    read_span(failure, (struct span_fields){"filter.due_from", "filter.due_to"},
              filter->due_from, filter->due_to, &out->filter.due_from_ms,
              &out->filter.due_to_ms);
    narrow_scheduling(out, now_ms);
}

void
admin_read_list_dead(const Toc__V1__ListDeadRequest *request,
                     struct admin_dead_request *out,
                     struct toc_rpc_failure *failure)
{
    const Toc__V1__DeadFilter *filter = request->filter;

    *out = (struct admin_dead_request){.page_size = 0};
    out->page_size = read_page_size(failure, request->page_size);
    read_token(failure, request->page_token, "dead",
               filter != NULL ? &filter->base : NULL, &out->cursor);
    if (filter == NULL)
        return;
    read_biz(failure, filter->biz_type, filter->biz_id, &out->filter.biz_type,
             &out->filter.biz_id);
    check_text(failure, "filter.reason", filter->reason, TOC_REASON_MAX, false);
    out->filter.reason = toc_str_of(filter->reason);
    read_span(failure,
              (struct span_fields){"filter.dead_from", "filter.dead_to"},
              filter->dead_from, filter->dead_to, &out->filter.dead_from_ms,
              &out->filter.dead_to_ms);
}

/* ---- buckets ---- */

static int64_t
bucket_width_ms(Toc__V1__BucketSize size)
{
    switch ((int)size) {
    case TOC__V1__BUCKET_SIZE__BUCKET_SIZE_DAY:
        return TOC_MS_PER_DAY;
    case TOC__V1__BUCKET_SIZE__BUCKET_SIZE_HOUR:
        return 3600 * TOC_MS_PER_SEC;
    case TOC__V1__BUCKET_SIZE__BUCKET_SIZE_MINUTE:
        return 60 * TOC_MS_PER_SEC;
    case TOC__V1__BUCKET_SIZE__BUCKET_SIZE_SECOND:
        return TOC_MS_PER_SEC;
    default:
        return 0;
    }
}

static void
check_range(struct toc_rpc_failure *failure, const struct toc_bucket_query *q)
{
    if (q->from_ms < 0) {
        toc_rpc_violate(failure, "from", "must not be before 1970");
        return;
    }
    if (q->from_ms >= q->to_ms) {
        toc_rpc_violate(failure, "to", "must be after from");
        return;
    }
    if (q->width_ms > 0 &&
        (q->to_ms - 1) / q->width_ms - q->from_ms / q->width_ms + 1 >
            ADMIN_BUCKETS_MAX)
        toc_rpc_violate(failure, "to",
                        "must not be more than %d buckets after from; take a "
                        "larger size",
                        ADMIN_BUCKETS_MAX);
}

/* What a token is good for: all of the request but the page. */
static Toc__V1__ListBucketsRequest
without_page(const Toc__V1__ListBucketsRequest *request)
{
    Toc__V1__ListBucketsRequest what = *request;

    what.page_size = 0;
    what.page_token = (char *)protobuf_c_empty_string;
    return what;
}

char *
admin_buckets_token(struct toc_arena *arena,
                    const Toc__V1__ListBucketsRequest *request,
                    const struct toc_cursor *cursor)
{
    Toc__V1__ListBucketsRequest what = without_page(request);

    return admin_page_token(arena, "buckets", &what.base, cursor);
}

void
admin_read_list_buckets(const Toc__V1__ListBucketsRequest *request,
                        struct admin_buckets_request *out,
                        struct toc_rpc_failure *failure)
{
    Toc__V1__ListBucketsRequest what = without_page(request);
    struct toc_bucket_query *q = &out->query;
    bool has_from, has_to;

    *out = (struct admin_buckets_request){.size = request->size};
    out->page_size = read_page_size(failure, request->page_size);
    check_text(failure, "biz_type", request->biz_type, TOC_BIZ_TYPE_MAX, false);
    q->biz_type = toc_str_of(request->biz_type);
    q->width_ms = bucket_width_ms(request->size);
    if (q->width_ms == 0)
        toc_rpc_violate(failure, "size",
                        "must be a day, hour, minute or "
                        "second");
    if (request->from == NULL)
        toc_rpc_violate(failure, "from", "must be set");
    if (request->to == NULL)
        toc_rpc_violate(failure, "to", "must be set");
    has_from = read_time(failure, "from", request->from, &q->from_ms);
    has_to = read_time(failure, "to", request->to, &q->to_ms);
    if (has_from && has_to)
        check_range(failure, q);
    read_token(failure, request->page_token, "buckets", &what.base,
               &out->cursor);
}

/* An id that is none fails alone, as an item of the answer. */
void
admin_check_redrive(const Toc__V1__RedriveDeadRequest *request,
                    struct toc_rpc_failure *failure)
{
    if (request->n_task_ids == 0 || request->n_task_ids > TOC_BATCH_MAX)
        toc_rpc_violate(failure, "task_ids", "must be 1 to %d (they are %zu)",
                        TOC_BATCH_MAX, request->n_task_ids);
    check_text(failure, "reason", request->reason, TOC_REASON_MAX, false);
}
