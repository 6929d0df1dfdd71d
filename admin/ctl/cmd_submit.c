#include "admin/ctl/commands.h"

#include "admin/ctl/ask.h"
#include "admin/ctl/conn.h"
#include "admin/ctl/show.h"
#include "admin/ctl/submit.h"
#include "common/base/cleanup.h"
#include "common/base/rng.h"
#include "common/model/limits.h"
#include "common/rpc/pb_json.h"

#include <jansson.h>
#include <string.h>

#define FILE_MAX (64u * 1024 * 1024)
/* A request's payloads stay well below what a server takes (8 MiB). */
#define CHUNK_BYTES (4u * 1024 * 1024)

/* A made-up id, so that a submit which is tried at the next scheduler is the
 * same submit. */
static void
fill_biz_id(struct ctl *ctl, Toc__V1__SubmitRequest *request)
{
    Toc__V1__TaskKey *key = request->key;

    if (key == NULL || key->biz_id[0] != '\0')
        return;
    key->biz_id = toc_arena_printf(&ctl->keep, "%016llx%016llx",
                                   (unsigned long long)toc_rng_u64(),
                                   (unsigned long long)toc_rng_u64());
}

static const char *
request_name(struct ctl *ctl, const Toc__V1__SubmitRequest *request)
{
    if (request->key == NULL)
        return "a task without a key";
    return ctl_key_text(&ctl->arena, request->key->biz_type,
                        request->key->biz_id, request->key->name);
}

static void
show_line(struct ctl *ctl, const Toc__V1__SubmitResponse *response)
{
    const Toc__V1__Task *task = response->task;
    const char *word = "there before";

    if (task == NULL)
        return;
    if (ctl->output == CTL_OUTPUT_ID) {
        fprintf(ctl->out, "%s\n", ctl_cell(ctl, task->task_id));
        return;
    }
    if (ctl_has(ctl, "validate-only"))
        word = response->created ? "valid, not stored" : "valid, there before";
    else if (response->replaced)
        word = "created in place of another";
    else if (response->created)
        word = "created";
    fprintf(ctl->out, "%s: %s, task %s, due %s (%s)\n",
            ctl_task_key_text(ctl, task), word, ctl_cell(ctl, task->task_id),
            ctl_time_text(ctl, task->due_time),
            ctl_time_relative(ctl, task->due_time));
}

static enum ctl_exit
submit_one(struct ctl *ctl, Toc__V1__SubmitRequest *request)
{
    ProtobufCMessage *reply;
    enum ctl_exit end;

    fill_biz_id(ctl, request);
    end = ctl_call_scheduler(ctl, "Submit", request_name(ctl, request),
                             &request->base, &reply);
    if (end != CTL_OK)
        return end;
    if (ctl_wants_data(ctl))
        ctl_show_message(ctl, reply);
    else
        show_line(ctl, (const Toc__V1__SubmitResponse *)reply);
    return CTL_OK;
}

/* ---- many, from a file ---- */

struct batch {
    struct ctl *ctl;
    Toc__V1__SubmitRequest **items;
    size_t n;
    struct ctl_list list;
    size_t stored, failed;
    enum ctl_exit end;
};

static void
take_result(struct batch *b, const Toc__V1__SubmitRequest *request,
            const Toc__V1__BatchSubmitResult *result)
{
    struct ctl *ctl = b->ctl;

    if (ctl_wants_data(ctl))
        ctl_list_item(ctl, &b->list, &result->base);
    if (result->error != NULL) {
        enum ctl_exit end =
            ctl_item_error(ctl, request_name(ctl, request), result->error);
        b->failed++;
        b->end = ctl_worse(b->end, end);
        return;
    }
    b->stored++;
    if (!ctl_wants_data(ctl) && result->response != NULL)
        show_line(ctl, result->response);
}

/* As many as fit one call, by number and bytes. */
static size_t
chunk_size(const struct batch *b, size_t from)
{
    size_t bytes = 0, n = 0;

    while (from + n < b->n && n < TOC_BATCH_MAX) {
        bytes += toc__v1__submit_request__get_packed_size(b->items[from + n]);
        if (n > 0 && bytes > CHUNK_BYTES)
            break;
        n++;
    }
    return n;
}

static enum ctl_exit
submit_chunk(struct batch *b, size_t from, size_t n)
{
    Toc__V1__BatchSubmitRequest request = TOC__V1__BATCH_SUBMIT_REQUEST__INIT;
    const Toc__V1__BatchSubmitResponse *answer;
    ProtobufCMessage *reply;
    enum ctl_exit end;

    request.n_items = n;
    request.items = b->items + from;
    end =
        ctl_call_scheduler(b->ctl, "BatchSubmit", NULL, &request.base, &reply);
    if (end != CTL_OK)
        return end;
    answer = (const Toc__V1__BatchSubmitResponse *)reply;
    if (answer->n_results != n)
        return ctl_fail(b->ctl, CTL_FAILED, NULL, "%zu results for %zu tasks",
                        answer->n_results, n);
    for (size_t i = 0; i < n; i++)
        take_result(b, b->items[from + i], answer->results[i]);
    return CTL_OK;
}

static enum ctl_exit
submit_batch(struct batch *b)
{
    struct ctl *ctl = b->ctl;
    enum ctl_exit end = CTL_OK;
    size_t n;

    if (ctl_wants_data(ctl))
        ctl_list_begin(ctl, &b->list, "results");
    for (size_t at = 0; end == CTL_OK && at < b->n; at += n) {
        n = chunk_size(b, at);
        end = submit_chunk(b, at, n);
    }
    if (ctl_wants_data(ctl))
        ctl_list_end(ctl, &b->list);
    if (b->n > 1)
        ctl_note(ctl, "%zu of %zu %s, %zu failed", b->stored, b->n,
                 ctl_has(ctl, "validate-only") ? "valid" : "stored", b->failed);
    return ctl_worse(b->end, end);
}

static enum ctl_exit
read_item(struct ctl *ctl, const json_t *tree, const char *where,
          Toc__V1__SubmitRequest **ret_item)
{
    struct toc_error error = {.status = TOC_OK};
    ProtobufCMessage *message;
    Toc__V1__SubmitRequest *item;

    if (toc_pb_json_from_tree(&toc__v1__submit_request__descriptor, tree, NULL,
                              &ctl->keep, &message, &error) != TOC_OK)
        return ctl_fail(ctl, CTL_USAGE, NULL, "%s: %s", where,
                        ctl_safe(&ctl->arena, toc_str_of(error.msg)));
    item = (Toc__V1__SubmitRequest *)message;
    if (ctl_has(ctl, "validate-only"))
        item->validate_only = 1;
    fill_biz_id(ctl, item);
    *ret_item = item;
    return CTL_OK;
}

static enum ctl_exit
read_items(struct batch *b, const json_t *tree, const char *name)
{
    struct ctl *ctl = b->ctl;
    enum ctl_exit end = CTL_OK;

    b->n = json_array_size(tree);
    if (b->n == 0)
        return ctl_fail(ctl, CTL_USAGE, NULL, "%s: no tasks", name);
    b->items = toc_arena_calloc(&ctl->keep, b->n, sizeof *b->items);
    for (size_t i = 0; i < b->n && end == CTL_OK; i++)
        end = read_item(ctl, json_array_get(tree, i),
                        toc_arena_printf(&ctl->arena, "%s: [%zu]", name, i),
                        &b->items[i]);
    return end;
}

static enum ctl_exit
submit_tree(struct ctl *ctl, const json_t *tree, const char *name)
{
    struct batch batch = {.ctl = ctl};
    Toc__V1__SubmitRequest *item;
    enum ctl_exit end;

    if (json_is_array(tree)) {
        end = read_items(&batch, tree, name);
        return end != CTL_OK ? end : submit_batch(&batch);
    }
    end = read_item(ctl, tree, name, &item);
    return end != CTL_OK ? end : submit_one(ctl, item);
}

static enum ctl_exit
submit_file(struct ctl *ctl)
{
    const char *path = ctl_flag(ctl, "file");
    const char *name = strcmp(path, "-") == 0
                           ? "standard input"
                           : ctl_safe(&ctl->arena, toc_str_of(path));
    struct toc_error error = {.status = TOC_OK};
    struct toc_str bytes;
    json_t *tree;
    enum ctl_exit end = ctl_ask_file(ctl, path, FILE_MAX, &bytes);

    if (end != CTL_OK)
        return end;
    if (toc_pb_json_parse(bytes, &tree, &error) != TOC_OK)
        return ctl_fail(ctl, CTL_USAGE, NULL, "%s: %s", name,
                        ctl_safe(&ctl->arena, toc_str_of(error.msg)));
    end = submit_tree(ctl, tree, name);
    json_decref(tree);
    return end;
}

enum ctl_exit
ctl_cmd_submit(struct ctl *ctl)
{
    Toc__V1__SubmitRequest *request;
    enum ctl_exit end;

    if (ctl_has(ctl, "file")) {
        end = ctl_submit_only_file(ctl);
        return end != CTL_OK ? end : submit_file(ctl);
    }
    end = ctl_submit_read(ctl, &request);
    return end != CTL_OK ? end : submit_one(ctl, request);
}
