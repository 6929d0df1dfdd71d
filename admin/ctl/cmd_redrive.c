#include "admin/ctl/commands.h"

#include "admin/ctl/ask.h"
#include "admin/ctl/conn.h"
#include "admin/ctl/dead.h"
#include "admin/ctl/show.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/model/key.h"
#include "google/rpc/status.pb-c.h"
#include "toc/v1/timeout.pb-c.h"

#include <string.h>
#include <unistd.h>

#define CHUNK 100
#define ID_SIZE TOC_TASK_ID_TEXT_MAX
#define RATE_DEFAULT 500
#define IDS_MAX 1000000 /* for one command; the rest is for the next */

struct redrive {
    struct ctl *ctl;
    struct toc_buf ids; /* of ID_SIZE bytes each, NUL at the end */
    size_t n;
    bool all;
    int64_t rate;
    struct ctl_list list; /* results, as JSON or YAML */
    size_t redriven, gone, failed;
    enum ctl_exit end;
};

static char *
id_at(const struct redrive *r, size_t i)
{
    return r->ids.data + i * ID_SIZE;
}

static void
add_id(struct redrive *r, const char *text)
{
    char id[ID_SIZE] = {0};

    toc_copy(id, sizeof id, toc_str_of(text));
    toc_buf_add(&r->ids, id, sizeof id);
    r->n++;
}

/* ---- which ---- */

static enum ctl_exit
add_named(struct redrive *r, const char *text)
{
    struct ctl *ctl = r->ctl;
    Toc__V1__GetRequest request = TOC__V1__GET_REQUEST__INIT;
    struct ctl_ref ref;
    ProtobufCMessage *reply;
    enum ctl_exit end = ctl_ask_ref(ctl, text, &ref);

    if (end != CTL_OK)
        return end;
    if (ref.by_id) {
        add_id(r, ref.task_id);
        return CTL_OK;
    }
    request.which_case = TOC__V1__GET_REQUEST__WHICH_KEY;
    request.key = ctl_ref_key(ctl, &ref);
    end =
        ctl_call_scheduler(ctl, "Get", ctl_safe(&ctl->arena, toc_str_of(text)),
                           &request.base, &reply);
    if (end == CTL_OK)
        add_id(r, ((const Toc__V1__Task *)reply)->task_id);
    return end;
}

static void
add_dead(void *arg, const Toc__V1__DeadLetter *dead)
{
    if (dead->task != NULL)
        add_id(arg, dead->task->task_id);
}

static void
progress(const struct redrive *r, const char *format, size_t n, size_t of)
{
    if (isatty(fileno(r->ctl->err)) == 0)
        return;
    fputc('\r', r->ctl->err);
    if (strcmp(format, "counting") == 0)
        fprintf(r->ctl->err, "%zu dead letters so far", n);
    else
        fprintf(r->ctl->err, "%zu of %zu redriven", n, of);
    fflush(r->ctl->err);
}

static void
count_page(void *arg)
{
    const struct redrive *r = arg;

    progress(r, "counting", r->n, 0);
}

static enum ctl_exit
collect(struct redrive *r)
{
    struct ctl *ctl = r->ctl;
    enum ctl_exit end = CTL_OK;
    bool more = false;

    if (r->all) {
        end = ctl_dead_each(ctl, IDS_MAX, add_dead, count_page, r, &more);
        if (isatty(fileno(ctl->err)) != 0 && r->n > 0)
            fputc('\n', ctl->err);
        if (more)
            ctl_note(ctl, "only the newest %d are taken at once", IDS_MAX);
        return end;
    }
    for (size_t i = 0; end == CTL_OK && i < ctl->n_args; i++)
        end = add_named(r, ctl->args[i]);
    return end;
}

/* ---- doing it ---- */

static void
take_result(struct redrive *r, const Toc__V1__RedriveResult *result)
{
    struct ctl *ctl = r->ctl;
    enum ctl_exit end;

    if (ctl_wants_data(ctl))
        ctl_list_item(ctl, &r->list, &result->base);
    if (result->error == NULL) {
        r->redriven++;
        if (!r->all && !ctl_wants_data(ctl))
            fprintf(ctl->out, "%s%s\n", ctl_cell(ctl, result->task_id),
                    ctl->output == CTL_OUTPUT_ID ? "" : ": redriven");
        return;
    }
    if (r->all && result->error->code == TOC_NOT_FOUND) {
        r->gone++; /* somebody else did it meanwhile */
        return;
    }
    r->failed++;
    end = ctl_item_error(ctl, ctl_cell(ctl, result->task_id), result->error);
    r->end = ctl_worse(r->end, end);
}

static enum ctl_exit
redrive_chunk(struct redrive *r, size_t from, size_t n)
{
    struct ctl *ctl = r->ctl;
    Toc__V1__RedriveDeadRequest request = TOC__V1__REDRIVE_DEAD_REQUEST__INIT;
    const Toc__V1__RedriveDeadResponse *answer;
    char *ids[CHUNK];
    ProtobufCMessage *reply;
    enum ctl_exit end;

    for (size_t i = 0; i < n; i++)
        ids[i] = id_at(r, from + i);
    request.n_task_ids = n;
    request.task_ids = ids;
    request.reason =
        toc_arena_text(&ctl->arena, toc_str_of(ctl_flag(ctl, "reason")));
    end = ctl_call_admin(ctl, "RedriveDead", NULL, &request.base, &reply);
    if (end != CTL_OK)
        return end;
    answer = (const Toc__V1__RedriveDeadResponse *)reply;
    for (size_t i = 0; i < answer->n_results; i++)
        take_result(r, answer->results[i]);
    toc_arena_reset(&ctl->arena);
    return CTL_OK;
}

/* No more than `rate` a second from the start: waits before a chunk that would
 * be more. */
static enum ctl_exit
redrive_all(struct redrive *r)
{
    struct ctl *ctl = r->ctl;
    struct toc_mono start = toc_clock_mono(ctl->clk);
    enum ctl_exit end = CTL_OK;
    size_t n;

    for (size_t at = 0; end == CTL_OK && at < r->n; at += n) {
        int64_t at_ms = (int64_t)at * 1000 / r->rate;
        n = r->n - at < CHUNK ? r->n - at : CHUNK;
        if (at > 0)
            ctl->sleep_until(toc_mono_add_ms(start, at_ms));
        end = redrive_chunk(r, at, n);
        if (r->all)
            progress(r, "redriven", at + n, r->n);
    }
    if (r->all && isatty(fileno(ctl->err)) != 0)
        fputc('\n', ctl->err);
    return end;
}

static enum ctl_exit
confirm(struct redrive *r)
{
    struct ctl *ctl = r->ctl;
    const char *question;

    if (!r->all)
        return CTL_OK;
    if (r->n == 0) {
        ctl_note(ctl, "no dead letters");
        return CTL_OK;
    }
    question =
        toc_arena_printf(&ctl->arena, "Make %zu dead letters due now?", r->n);
    if (ctl_ask_yes(ctl, question))
        return CTL_OK;
    return ctl_fail(ctl, CTL_FAILED, "--yes does not ask",
                    "not confirmed, nothing was changed");
}

static enum ctl_exit
run(struct redrive *r)
{
    struct ctl *ctl = r->ctl;
    enum ctl_exit end = collect(r);

    if (end == CTL_OK)
        end = confirm(r);
    if (end != CTL_OK || r->n == 0)
        return end;
    if (ctl_wants_data(ctl))
        ctl_list_begin(ctl, &r->list, "results");
    end = redrive_all(r);
    if (ctl_wants_data(ctl))
        ctl_list_end(ctl, &r->list);
    if (r->all)
        ctl_note(ctl, "%zu redriven, %zu gone before, %zu failed", r->redriven,
                 r->gone, r->failed);
    return ctl_worse(end, r->end);
}

enum ctl_exit
ctl_cmd_dead_redrive(struct ctl *ctl)
{
    struct redrive r = {
        .ctl = ctl, .all = ctl_has(ctl, "all"), .rate = RATE_DEFAULT};
    enum ctl_exit end;

    if (r.all == (ctl->n_args > 0))
        return ctl_fail(ctl, CTL_USAGE, "tocctl help dead redrive",
                        "give either tasks or --all");
    end = ctl_ask_number(ctl, "rate", 1, 1000000, &r.rate);
    if (end == CTL_OK)
        end = run(&r);
    toc_buf_done(&r.ids);
    return end;
}
