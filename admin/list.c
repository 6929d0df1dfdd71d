#include "admin/page_token.h"
#include "admin/request.h"
#include "admin/service_internal.h"

/* Of one store call. Rows come without payloads: a few KiB each at most. With a
 * filter each call looks at thousands of rows, so few calls are good. */
#define STORE_BATCH_MAX ADMIN_PAGE_MAX

/* ---- what both lists share ---- */

struct page {
    struct admin_call *call;
    size_t n, max;
    size_t bytes;
    struct toc_cursor cursor; /* where the next page begins */
    struct toc_cursor seen;   /* the last row that was looked at */
    struct toc_mono end;      /* no further look at the store after it */
    bool full;
};

static void
page_begin(struct page *page, struct admin_call *call, size_t max,
           struct toc_cursor cursor)
{
    *page = (struct page){.call = call, .max = max, .cursor = cursor};
    page->end = toc_mono_add_ms(toc_clock_mono(admin_call_clock(call)),
                                admin_call_list_ms_max(call));
}

static bool
page_goes_on(const struct page *page)
{
    return !page->full && page->n < page->max && page->cursor.set &&
           !toc_rpc_call_cancelled(page->call->rpc) &&
           toc_clock_mono(admin_call_clock(page->call)).ns < page->end.ns;
}

static size_t
page_batch(const struct page *page)
{
    size_t left = page->max - page->n;

    return left < STORE_BATCH_MAX ? left : STORE_BATCH_MAX;
}

/* May this message still go into the answer? The first one always may: a page
 * must get on. 8 bytes: tag and length around it. */
static bool
page_takes(struct page *page, const ProtobufCMessage *message)
{
    size_t bytes = protobuf_c_message_get_packed_size(message) + 8;

    if (page->n > 0 && page->bytes + bytes > ADMIN_ANSWER_BYTES_MAX) {
        page->full = true;
        return false;
    }
    page->bytes += bytes;
    return true;
}

/* ---- tasks ---- */

static bool
is_wanted(const struct admin_tasks_request *request,
          const struct toc_task *task, int64_t now_ms)
{
    enum toc_state shown = toc_state_shown(task->state, task->slot_ms, now_ms);

    return request->shown_mask == 0 ||
           (request->shown_mask & (1u << (unsigned)shown)) != 0;
}

/* Goes through one batch of the store; false: the page is full before the end,
 * and the next one begins behind what was looked at. */
static bool
take_tasks(struct page *page, const struct admin_tasks_request *request,
           const struct toc_task *tasks, size_t n, Toc__V1__Task **out)
{
    struct admin_call *call = page->call;
    const struct toc_api_view view = {.now_ms = call->now_ms,
                                      .names = admin_names_of(&call->names)};

    for (size_t i = 0; i < n; i++) {
        const struct toc_task *task = &tasks[i];
        if (is_wanted(request, task, call->now_ms)) {
            Toc__V1__Task *shown = toc_api_task(call->arena, task, &view);
            if (!page_takes(page, &shown->base))
                return false;
            out[page->n++] = shown;
        }
        page->seen =
            (struct toc_cursor){true, task->slice, task->slot_ms, task->id};
    }
    return true;
}

static enum toc_status
fill_tasks(struct page *page, const struct admin_tasks_request *request,
           Toc__V1__Task **out, struct toc_error *reterr)
{
    struct admin_call *call = page->call;

    do {
        struct toc_task *tasks = NULL;
        size_t n = 0;
        enum toc_status st;
        page->seen = page->cursor;
        st = toc_store_list_tasks(admin_call_store(call), &request->filter,
                                  page_batch(page), &page->cursor, call->arena,
                                  &tasks, &n, reterr);
        if (st != TOC_OK)
            return st;
        if (!take_tasks(page, request, tasks, n, out))
            page->cursor = page->seen;
    } while (page_goes_on(page));
    return TOC_OK;
}

void
admin_list_tasks(struct admin_call *call)
{
    const Toc__V1__ListTasksRequest *message =
        (const Toc__V1__ListTasksRequest *)call->request;
    Toc__V1__ListTasksResponse answer = TOC__V1__LIST_TASKS_RESPONSE__INIT;
    struct toc_error error = {.status = TOC_OK};
    struct admin_tasks_request request;
    struct toc_rpc_failure failure;
    struct page page;
    enum toc_status st;

    toc_rpc_failure_init(&failure, call->arena);
    admin_read_list_tasks(message, call->now_ms, &request, &failure);
    if (failure.status != TOC_OK) {
        toc_rpc_fail(call->rpc, &failure);
        return;
    }
    page_begin(&page, call, request.page_size, request.cursor);
    answer.tasks =
        toc_arena_calloc(call->arena, page.max, sizeof *answer.tasks);
    st = fill_tasks(&page, &request, answer.tasks, &error);
    if (st != TOC_OK) {
        admin_fail_error(call, st, &error);
        return;
    }
    answer.n_tasks = page.n;
    answer.next_page_token = admin_page_token(
        call->arena, "tasks",
        message->filter != NULL ? &message->filter->base : NULL, &page.cursor);
    toc_rpc_reply(call->rpc, &answer.base);
}

/* ---- dead letters ---- */

static Toc__V1__DeadLetter *
dead_letter(struct admin_call *call, const struct toc_dead *dead)
{
    const struct toc_api_view view = {.now_ms = call->now_ms,
                                      .names = admin_names_of(&call->names)};
    Toc__V1__DeadLetter *letter = toc_arena_alloc(call->arena, sizeof *letter);

    toc__v1__dead_letter__init(letter);
    letter->task = toc_api_task(call->arena, &dead->task, &view);
    letter->dead_time = toc_api_time(call->arena, dead->dead_ms);
    letter->reason = toc_api_text(call->arena, dead->reason);
    return letter;
}

static bool
take_dead(struct page *page, const struct toc_dead *dead, size_t n,
          Toc__V1__DeadLetter **out)
{
    for (size_t i = 0; i < n; i++) {
        Toc__V1__DeadLetter *letter = dead_letter(page->call, &dead[i]);
        if (!page_takes(page, &letter->base))
            return false;
        out[page->n++] = letter;
        page->seen = (struct toc_cursor){true, dead[i].task.slice,
                                         dead[i].dead_ms, dead[i].task.id};
    }
    return true;
}

static enum toc_status
fill_dead(struct page *page, const struct admin_dead_request *request,
          Toc__V1__DeadLetter **out, struct toc_error *reterr)
{
    struct admin_call *call = page->call;

    do {
        struct toc_dead *dead = NULL;
        size_t n = 0;
        enum toc_status st;
        page->seen = page->cursor;
        st = toc_store_list_dead(admin_call_store(call), &request->filter,
                                 page_batch(page), &page->cursor, call->arena,
                                 &dead, &n, reterr);
        if (st != TOC_OK)
            return st;
        if (!take_dead(page, dead, n, out))
            page->cursor = page->seen;
    } while (page_goes_on(page));
    return TOC_OK;
}

void
admin_list_dead(struct admin_call *call)
{
    const Toc__V1__ListDeadRequest *message =
        (const Toc__V1__ListDeadRequest *)call->request;
    Toc__V1__ListDeadResponse answer = TOC__V1__LIST_DEAD_RESPONSE__INIT;
    struct toc_error error = {.status = TOC_OK};
    struct admin_dead_request request;
    struct toc_rpc_failure failure;
    struct page page;
    enum toc_status st;

    toc_rpc_failure_init(&failure, call->arena);
    admin_read_list_dead(message, &request, &failure);
    if (failure.status != TOC_OK) {
        toc_rpc_fail(call->rpc, &failure);
        return;
    }
    page_begin(&page, call, request.page_size, request.cursor);
    answer.dead = toc_arena_calloc(call->arena, page.max, sizeof *answer.dead);
    st = fill_dead(&page, &request, answer.dead, &error);
    if (st != TOC_OK) {
        admin_fail_error(call, st, &error);
        return;
    }
    answer.n_dead = page.n;
    answer.next_page_token = admin_page_token(
        call->arena, "dead",
        message->filter != NULL ? &message->filter->base : NULL, &page.cursor);
    toc_rpc_reply(call->rpc, &answer.base);
}
