/*
 * Buckets: all pages are gathered before any is shown, for a bucket may come in
 * parts; a range has at most 10,000 of them.
 */
#include "admin/ctl/commands.h"

#include "admin/ctl/ask.h"
#include "admin/ctl/conn.h"
#include "admin/ctl/show.h"
#include "common/api/api.h"
#include "common/base/alloc.h"
#include "toc/v1/admin.pb-c.h"

#include <string.h>

#define PAGE_MAX 1000
#define BUCKETS_DEFAULT 60

static int64_t
width_ms(Toc__V1__BucketSize size)
{
    switch ((int)size) {
    case TOC__V1__BUCKET_SIZE__BUCKET_SIZE_DAY:
        return TOC_MS_PER_DAY;
    case TOC__V1__BUCKET_SIZE__BUCKET_SIZE_HOUR:
        return 3600 * TOC_MS_PER_SEC;
    case TOC__V1__BUCKET_SIZE__BUCKET_SIZE_SECOND:
        return TOC_MS_PER_SEC;
    default:
        return 60 * TOC_MS_PER_SEC;
    }
}

static enum ctl_exit
read_request(struct ctl *ctl, Toc__V1__ListBucketsRequest *request)
{
    const char *by = ctl_flag(ctl, "by");
    int size = TOC__V1__BUCKET_SIZE__BUCKET_SIZE_MINUTE;
    enum ctl_exit end = CTL_OK;
    int64_t width, from_ms;

    if (by != NULL)
        end = ctl_ask_word(ctl, "by", toc_str_of(by),
                           &toc__v1__bucket_size__descriptor, "BUCKET_SIZE_",
                           &size);
    if (end == CTL_OK)
        end = ctl_ask_time(ctl, "from", &request->from);
    if (end == CTL_OK)
        end = ctl_ask_time(ctl, "to", &request->to);
    if (end != CTL_OK)
        return end;
    request->size = (Toc__V1__BucketSize)size;
    request->page_size = PAGE_MAX;
    request->biz_type =
        toc_arena_text(&ctl->keep, toc_str_of(ctl_flag(ctl, "biz-type")));
    width = width_ms(request->size);
    from_ms = ctl_now_ms(ctl);
    if (request->from == NULL)
        request->from = toc_api_time(&ctl->keep, from_ms - from_ms % width);
    if (request->to == NULL && ctl_time_ms(request->from, &from_ms))
        request->to =
            toc_api_time(&ctl->keep, from_ms + BUCKETS_DEFAULT * width);
    return CTL_OK;
}

/* ---- gathering; messages live in ctl->arena, which is not reset ---- */

struct gathered {
    Toc__V1__Bucket **buckets;
    size_t n, cap;
};

static Toc__V1__BucketLine *
line_of(struct ctl *ctl, Toc__V1__Bucket *bucket, const char *biz_type)
{
    Toc__V1__BucketLine **lines;

    for (size_t i = 0; i < bucket->n_lines; i++)
        if (strcmp(bucket->lines[i]->biz_type, biz_type) == 0)
            return bucket->lines[i];
    lines = toc_arena_calloc(&ctl->arena, bucket->n_lines + 1, sizeof *lines);
    for (size_t i = 0; i < bucket->n_lines; i++)
        lines[i] = bucket->lines[i];
    lines[bucket->n_lines] = toc_arena_alloc(&ctl->arena, sizeof **lines);
    toc__v1__bucket_line__init(lines[bucket->n_lines]);
    lines[bucket->n_lines]->biz_type =
        toc_arena_text(&ctl->arena, toc_str_of(biz_type));
    bucket->lines = lines;
    return lines[bucket->n_lines++];
}

/* The rest of a bucket, from the next page. */
static void
add_part(struct ctl *ctl, Toc__V1__Bucket *bucket, const Toc__V1__Bucket *part)
{
    for (size_t i = 0; i < part->n_lines; i++) {
        const Toc__V1__BucketLine *from = part->lines[i];
        Toc__V1__BucketLine *to = line_of(ctl, bucket, from->biz_type);
        to->waiting += from->waiting;
        to->executing += from->executing;
        to->succeeded += from->succeeded;
        to->dead += from->dead;
        to->cancelled += from->cancelled;
        to->skipped += from->skipped;
        to->discarded += from->discarded;
    }
}

static void
take_page(struct ctl *ctl, struct gathered *all,
          const Toc__V1__ListBucketsResponse *page)
{
    for (size_t i = 0; i < page->n_buckets; i++) {
        Toc__V1__Bucket *bucket = page->buckets[i];
        if (all->n > 0 &&
            strcmp(all->buckets[all->n - 1]->id, bucket->id) == 0) {
            add_part(ctl, all->buckets[all->n - 1], bucket);
            continue;
        }
        if (all->n == all->cap) {
            all->cap = all->cap > 0 ? 2 * all->cap : 64;
            all->buckets =
                toc_realloc(all->buckets, all->cap * sizeof *all->buckets);
        }
        all->buckets[all->n++] = bucket;
    }
}

static enum ctl_exit
gather(struct ctl *ctl, Toc__V1__ListBucketsRequest *request,
       struct gathered *all)
{
    do {
        ProtobufCMessage *reply;
        const Toc__V1__ListBucketsResponse *page;
        enum ctl_exit end =
            ctl_call_admin(ctl, "ListBuckets", NULL, &request->base, &reply);
        if (end != CTL_OK)
            return end;
        page = (const Toc__V1__ListBucketsResponse *)reply;
        take_page(ctl, all, page);
        request->page_token = page->next_page_token;
    } while (request->page_token[0] != '\0');
    return CTL_OK;
}

/* ---- showing ---- */

static const char *
number(struct ctl *ctl, uint64_t value)
{
    return toc_arena_printf(&ctl->arena, "%llu", (unsigned long long)value);
}

static void
add_row(struct ctl *ctl, struct ctl_table *table, const Toc__V1__Bucket *bucket,
        const Toc__V1__BucketLine *line)
{
    const char *cells[] = {
        ctl_cell(ctl, bucket->id),
        ctl_cell(ctl, line->biz_type),
        number(ctl, line->waiting),
        number(ctl, line->executing),
        number(ctl, line->succeeded),
        number(ctl, line->dead),
        number(ctl, line->cancelled),
        number(ctl, line->skipped),
        number(ctl, line->discarded),
        ctl_time_text(ctl, bucket->start_time),
        ctl_time_text(ctl, bucket->end_time),
    };

    ctl_table_row(table, cells);
}

static void
show_table(struct ctl *ctl, const struct gathered *all)
{
    static const char *const heads[] = {
        "BUCKET",    "BIZ TYPE", "WAITING",   "EXECUTING", "SUCCEEDED", "DEAD",
        "CANCELLED", "SKIPPED",  "DISCARDED", "START",     "END"};
    size_t columns = sizeof heads / sizeof heads[0];
    struct ctl_table table;

    if (ctl->output != CTL_OUTPUT_WIDE)
        columns -= 2;
    ctl_table_init(&table, &ctl->arena, heads, columns);
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->buckets[i]->n_lines; k++)
            add_row(ctl, &table, all->buckets[i], all->buckets[i]->lines[k]);
    if (all->n > 0)
        ctl_table_print(&table, ctl->out);
    else
        ctl_note(ctl, "no tasks in that time");
}

static void
show_data(struct ctl *ctl, const struct gathered *all)
{
    struct ctl_list list;

    ctl_list_begin(ctl, &list, "buckets");
    for (size_t i = 0; i < all->n; i++)
        ctl_list_item(ctl, &list, &all->buckets[i]->base);
    ctl_list_end(ctl, &list);
}

enum ctl_exit
ctl_cmd_buckets(struct ctl *ctl)
{
    Toc__V1__ListBucketsRequest request = TOC__V1__LIST_BUCKETS_REQUEST__INIT;
    struct gathered all = {.n = 0};
    enum ctl_exit end = read_request(ctl, &request);

    if (end == CTL_OK)
        end = gather(ctl, &request, &all);
    if (end == CTL_OK && ctl_wants_data(ctl))
        show_data(ctl, &all);
    else if (end == CTL_OK && ctl->output == CTL_OUTPUT_ID)
        for (size_t i = 0; i < all.n; i++)
            fprintf(ctl->out, "%s\n", ctl_cell(ctl, all.buckets[i]->id));
    else if (end == CTL_OK)
        show_table(ctl, &all);
    toc_free(all.buckets);
    return end;
}
