#include "common/invoke/grpc/answer.h"

#include "common/api/api.h"
#include "common/base/cleanup.h"
#include "common/model/limits.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "toc/v1/handler.pb-c.h"

#include <string.h>

/* How gRPC's implementations say that a message broke a size limit. It would
 * again, so trying again helps nobody. */
#define TOO_LARGE "message larger than max"

static void
set(struct toc_answer *answer, enum toc_answer_kind kind, const char *error)
{
    answer->kind = kind;
    toc_copy(answer->error, sizeof answer->error, toc_str_of(error));
}

/* ---- failures -------------------------------------------------------- */

static bool
contains(struct toc_str text, struct toc_str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++)
        if (memcmp(text.ptr + i, part.ptr, part.len) == 0)
            return true;
    return false;
}

static enum toc_answer_kind
kind_not_sent(enum toc_status status)
{
    /* The client itself found it impossible to send. */
    return status == TOC_INVALID ? TOC_ANSWER_BAD_TARGET
                                 : TOC_ANSWER_UNREACHABLE;
}

static enum toc_answer_kind
kind_of(enum toc_status status)
{
    switch (status) {
    case TOC_INVALID:
    case TOC_EXISTS:
        return TOC_ANSWER_REJECTED;
    case TOC_CONFLICT:
        return TOC_ANSWER_REFUSED;
    case TOC_NOT_FOUND:
    case TOC_DENIED:
    case TOC_UNAUTHENTICATED:
    case TOC_PRECONDITION:
    case TOC_RANGE:
    case TOC_UNIMPLEMENTED:
    case TOC_EXHAUSTED:
        return TOC_ANSWER_FAILED;
    case TOC_CANCELLED:
    case TOC_UNKNOWN:
    case TOC_DEADLINE:
    case TOC_INTERNAL:
    case TOC_UNAVAILABLE:
    case TOC_DATA_LOSS:
    case TOC_OK:
        break;
    }
    return TOC_ANSWER_UNKNOWN;
}

static enum toc_answer_kind
kind_of_failure(const struct toc_rpc_result *result)
{
    if (result->not_sent)
        return kind_not_sent(result->status);
    if (result->status == TOC_EXHAUSTED &&
        contains(result->message, TOC_STR(TOO_LARGE)))
        return TOC_ANSWER_REJECTED;
    return kind_of(result->status);
}

/* google.rpc.RetryInfo: when to try again; 0: it does not say. */
static int64_t
retry_at(struct toc_str details, int64_t now_ms)
{
    static const struct toc_str name = {"google.rpc.RetryInfo", 20};
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    Google__Rpc__Status *status;
    int64_t delay_ms;

    if (details.len == 0)
        return 0;
    status = toc_rpc_unpack(&google__rpc__status__descriptor, details, &arena);
    for (size_t i = 0; status != NULL && i < status->n_details; i++) {
        const Google__Protobuf__Any *any = status->details[i];
        const char *type = strrchr(any->type_url, '/');
        Google__Rpc__RetryInfo *info;

        if (type == NULL || !toc_str_eq(toc_str_of(type + 1), name))
            continue;
        info = toc_rpc_unpack(
            &google__rpc__retry_info__descriptor,
            (struct toc_str){(const char *)any->value.data, any->value.len},
            &arena);
        if (info != NULL && info->retry_delay != NULL &&
            toc_api_duration_ms(info->retry_delay, &delay_ms) &&
            delay_ms >= 0 && delay_ms <= TOC_RETRY_DELAY_MS_MAX)
            return now_ms + delay_ms;
    }
    return 0;
}

/*
 * A handler that sends its own failure has ended. A deadline, a cancel or
 * UNAVAILABLE may be a proxy's word, which knows nothing of the handler.
 */
static bool
has_ended(const struct toc_rpc_result *result)
{
    return result->from_peer &&
           (result->status == TOC_UNKNOWN || result->status == TOC_INTERNAL ||
            result->status == TOC_DATA_LOSS);
}

static void
answer_failure(struct toc_call *call, const struct toc_rpc_result *result,
               int64_t now_ms)
{
    enum toc_answer_kind kind = kind_of_failure(result);
    int64_t again_ms =
        kind == TOC_ANSWER_FAILED ? retry_at(result->details, now_ms) : 0;
    char error[sizeof call->fires[0].answer.error];
    char message[sizeof error];

    toc_copy(message, sizeof message, result->message);
    toc_format(error, sizeof error, "%s: %s", toc_status_text(result->status),
               message);
    for (size_t i = 0; i < call->n; i++) {
        set(&call->fires[i].answer, kind, error);
        call->fires[i].answer.ended = has_ended(result);
        call->fires[i].answer.retry_at_ms = again_ms;
    }
}

/* ---- answers --------------------------------------------------------- */

/* The business ran, and what it said is not known: nobody may simply repeat
 * what is to happen at most once. */
static void
answer_unreadable(struct toc_fire *fire, const char *why)
{
    bool once = fire->spec->at_most_once ||
                (fire->task->flags & TOC_FLAG_AT_MOST_ONCE) != 0;

    set(&fire->answer, once ? TOC_ANSWER_UNKNOWN : TOC_ANSWER_FAILED, why);
    fire->answer.ended = true;
}

static int64_t
time_named(const Toc__V1__OnTimeoutResponse *response)
{
    int64_t at_ms;

    if (response->retry_time == NULL ||
        !toc_api_time_ms(response->retry_time, &at_ms))
        return 0;
    return at_ms;
}

static void
answer_fire(struct toc_fire *fire, const Toc__V1__OnTimeoutResponse *response)
{
    struct toc_answer *answer = &fire->answer;

    answer->retry_at_ms = time_named(response);
    switch (response->answer) {
    case TOC__V1__ANSWER__ANSWER_UNSPECIFIED:
    case TOC__V1__ANSWER__ANSWER_DONE:
        set(answer, TOC_ANSWER_DONE, "");
        return;
    case TOC__V1__ANSWER__ANSWER_RETRY:
        set(answer, TOC_ANSWER_FAILED, response->message);
        return;
    case TOC__V1__ANSWER__ANSWER_FAILED:
        set(answer, TOC_ANSWER_REJECTED, response->message);
        return;
    case TOC__V1__ANSWER__ANSWER_SNOOZE:
        set(answer, TOC_ANSWER_SNOOZE, response->message);
        return;
    case TOC__V1__ANSWER__ANSWER_STOP:
        set(answer, TOC_ANSWER_STOP, response->message);
        return;
    case _TOC__V1__ANSWER_IS_INT_SIZE:
        break;
    }
    answer_unreadable(fire, "the answer is of an unknown kind");
}

static void
answer_all_unreadable(struct toc_call *call)
{
    for (size_t i = 0; i < call->n; i++)
        answer_unreadable(&call->fires[i], "the reply cannot be decoded");
}

static void
answer_one(struct toc_call *call, struct toc_str reply, struct toc_arena *arena)
{
    const Toc__V1__OnTimeoutResponse *response =
        toc_rpc_unpack(&toc__v1__on_timeout_response__descriptor, reply, arena);

    if (response == NULL)
        answer_all_unreadable(call);
    else
        answer_fire(&call->fires[0], response);
}

static void
answer_batch(struct toc_call *call, struct toc_str reply,
             struct toc_arena *arena)
{
    const Toc__V1__OnTimeoutBatchResponse *response = toc_rpc_unpack(
        &toc__v1__on_timeout_batch_response__descriptor, reply, arena);

    if (response == NULL) {
        answer_all_unreadable(call);
        return;
    }
    for (size_t i = 0; i < call->n; i++) {
        if (i < response->n_answers)
            answer_fire(&call->fires[i], response->answers[i]);
        else
            answer_unreadable(&call->fires[i],
                              "the reply has no answer for this fire");
    }
}

void
toc_grpc_answer(struct toc_call *call, const struct toc_rpc_result *result,
                bool raw, int64_t now_ms)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};

    if (result->status != TOC_OK) {
        answer_failure(call, result, now_ms);
    } else if (raw) {
        for (size_t i = 0; i < call->n; i++)
            set(&call->fires[i].answer, TOC_ANSWER_DONE, "");
    } else if (call->batch) {
        answer_batch(call, result->reply, &arena);
    } else {
        answer_one(call, result->reply, &arena);
    }
}
