/*
 * Goal: what Submit accepts is stored exactly; what it refuses leaves nothing;
 * a key is one task.
 * Method: a real cluster; times from 1969 to year 9999, bad input of every
 * kind, fifty callers with one key; what is stored is read back by Get.
 */
#include "tests/support/e2e_main.h"
#include "tests/support/stub.h"

#include "common/api/api.h"
#include "common/base/str.h"
#include "common/base/thread.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"

#include <math.h>
#include <string.h>

static struct cluster cluster;

static enum toc_status
submit(struct caller *caller, const Toc__V1__SubmitRequest *request,
       Toc__V1__SubmitResponse **ret_reply)
{
    return caller_call(caller, cluster.schedulers[0], "Submit", &request->base,
                       ret_reply);
}

static const Toc__V1__Task *
get(struct caller *caller, Toc__V1__TaskKey *key)
{
    Toc__V1__GetRequest request = TOC__V1__GET_REQUEST__INIT;
    Toc__V1__Task *task = NULL;

    request.which_case = TOC__V1__GET_REQUEST__WHICH_KEY;
    request.key = key;
    return caller_call(caller, cluster.schedulers[1], "Get", &request.base,
                       &task) == TOC_OK
               ? task
               : NULL;
}

/* ---- times ----------------------------------------------------------- */

#define DAY_MS INT64_C(86400000)
#define YEAR_9999_MS INT64_C(253402300799999)

struct when {
    int64_t due_ms;
    bool fires;
};

static bool
due_are_called(void *arg)
{
    return stub_distinct(arg) >= 3;
}

START_TEST(times_are_kept_exactly)
{
    int64_t now = wall_ms();
    const struct when whens[] = {
        {-INT64_C(31536000000), true}, /* 1969 */
        {now - DAY_MS, true},
        {now, true},
        {now + 41 * DAY_MS, false},
        {now + INT64_C(2147483648), false},
        {now + INT64_C(4294967296), false},
        {now + 36525 * DAY_MS, false},
        {INT64_C(2147483647000), false}, /* 2038-01-19T03:14:07Z */
        {YEAR_9999_MS, false},
    };
    size_t n = sizeof whens / sizeof whens[0];
    struct stub *stub = stub_start(n, NULL, NULL);
    struct caller caller;

    caller_init(&caller);
    for (size_t i = 0; i < n; i++) {
        Toc__V1__SubmitResponse *reply = NULL;
        Toc__V1__SubmitRequest *request = caller_request(
            &caller.arena, "times", i, whens[i].due_ms, stub_target(stub), 0);
        const Toc__V1__Task *task;
        int64_t due;

        ck_assert_msg(submit(&caller, request, &reply) == TOC_OK,
                      "time %zu: %s", i, caller.error.msg);
        task = get(&caller, request->key);
        ck_assert_ptr_nonnull(task);
        ck_assert(toc_api_time_ms(task->due_time, &due));
        ck_assert_int_eq(due, whens[i].due_ms);
    }
    ck_assert(eventually(due_are_called, stub, 15000));
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(stub_calls(stub, i), whens[i].fires);
    caller_done(&caller);
    stub_stop(stub);
}
END_TEST

/* ---- refused ---------------------------------------------------------- */

typedef void spoil_fn(struct toc_arena *arena, Toc__V1__SubmitRequest *request);

static char *
repeat(struct toc_arena *arena, char c, size_t n)
{
    char *text = toc_arena_alloc(arena, n + 1);

    memset(text, c, n);
    text[n] = '\0';
    return text;
}

#define SPOIL(name) \
    static void name(struct toc_arena *arena, Toc__V1__SubmitRequest *r)
#define USED (void)arena

SPOIL(no_key)
{
    USED;
    r->key = NULL;
}
SPOIL(empty_type)
{
    USED;
    r->key->biz_type = (char *)"";
}
SPOIL(long_type)
{
    r->key->biz_type = repeat(arena, 't', 65);
}
SPOIL(huge_id)
{
    r->key->biz_id = repeat(arena, 'i', 10240);
}
SPOIL(long_name)
{
    r->key->name = repeat(arena, 'n', 65);
}
SPOIL(control_in_id)
{
    USED;
    r->key->biz_id = (char *)"a\nb";
}
SPOIL(escape_in_name)
{
    USED;
    r->key->name = (char *)"\x1b[31m";
}
SPOIL(bad_utf8)
{
    USED;
    r->key->biz_id = (char *)"\xc3\x28";
}
SPOIL(overlong_utf8)
{
    USED;
    r->key->biz_id = (char *)"\xc0\xaf";
}
SPOIL(no_when)
{
    USED;
    r->when_case = TOC__V1__SUBMIT_REQUEST__WHEN__NOT_SET;
}
SPOIL(huge_time)
{
    USED;
    r->due_time->seconds = INT64_MAX;
}
SPOIL(year_10000)
{
    USED;
    r->due_time->seconds = INT64_C(253402300800);
}
SPOIL(year_0)
{
    USED;
    r->due_time->seconds = -INT64_C(62135596801);
}
SPOIL(negative_nanos)
{
    USED;
    r->due_time->nanos = -1;
}
SPOIL(large_nanos)
{
    USED;
    r->due_time->nanos = 1000000000;
}
SPOIL(no_target)
{
    USED;
    r->target = NULL;
}
SPOIL(empty_target)
{
    USED;
    r->target->url = (char *)"";
}
SPOIL(odd_target)
{
    USED;
    r->target->url = (char *)"ftp://x:1";
}
SPOIL(no_port)
{
    USED;
    r->target->url = (char *)"grpc://host";
}
SPOIL(big_port)
{
    USED;
    r->target->url = (char *)"grpc://host:65536";
}
SPOIL(long_target)
{
    r->target->url = repeat(arena, 'x', 513);
}
SPOIL(big_batch)
{
    USED;
    r->target->batch_max = 257;
}
SPOIL(odd_priority)
{
    USED;
    r->priority = (Toc__V1__Priority)99;
}
SPOIL(odd_delivery)
{
    USED;
    r->delivery_guarantee = (Toc__V1__DeliveryGuarantee)7;
}
SPOIL(odd_conflict)
{
    USED;
    r->on_conflict = (Toc__V1__OnConflict)12;
}

SPOIL(big_payload)
{
    r->payload.len = 64 * 1024 + 1;
    r->payload.data = (uint8_t *)repeat(arena, 'p', r->payload.len);
}

SPOIL(negative_delay)
{
    Google__Protobuf__Duration *delay = toc_api_duration(arena, 1000);

    delay->seconds = -1;
    r->when_case = TOC__V1__SUBMIT_REQUEST__WHEN_DELAY;
    r->delay = delay;
}

SPOIL(endless_delay)
{
    Google__Protobuf__Duration *delay = toc_api_duration(arena, 1000);

    delay->seconds = INT64_MAX;
    r->when_case = TOC__V1__SUBMIT_REQUEST__WHEN_DELAY;
    r->delay = delay;
}

SPOIL(zero_timeout)
{
    r->call_timeout = toc_api_duration(arena, 0);
}
SPOIL(long_timeout)
{
    r->call_timeout = toc_api_duration(arena, 600001);
}

static Toc__V1__RetryPolicy *
new_retry(struct toc_arena *arena, Toc__V1__SubmitRequest *r)
{
    r->retry_policy = toc_arena_calloc(arena, 1, sizeof *r->retry_policy);
    toc__v1__retry_policy__init(r->retry_policy);
    return r->retry_policy;
}

SPOIL(long_ladder)
{
    Toc__V1__RetryPolicy *retry = new_retry(arena, r);

    retry->n_ladder = 33;
    retry->ladder = toc_arena_calloc(arena, 33, sizeof *retry->ladder);
    for (size_t i = 0; i < 33; i++)
        retry->ladder[i] = toc_api_duration(arena, 1000);
}

SPOIL(jitter_over_100)
{
    new_retry(arena, r)->jitter_percent = 101;
}

SPOIL(factor_nan)
{
    Toc__V1__RetryPolicy *retry = new_retry(arena, r);

    retry->exponential = toc_arena_calloc(arena, 1, sizeof *retry->exponential);
    toc__v1__exponential_backoff__init(retry->exponential);
    retry->exponential->first = toc_api_duration(arena, 1000);
    retry->exponential->cap = toc_api_duration(arena, 60000);
    retry->exponential->factor = NAN;
}

SPOIL(grpc_header)
{
    r->n_headers = 1;
    r->headers = toc_arena_calloc(arena, 1, sizeof *r->headers);
    r->headers[0] = toc_arena_calloc(arena, 1, sizeof **r->headers);
    toc__v1__header__init(r->headers[0]);
    r->headers[0]->name = (char *)"grpc-timeout";
    r->headers[0]->value = (char *)"1S";
}

struct bad {
    const char *what, *field;
    spoil_fn *spoil;
};

static const struct bad bads[] = {
    {"no key", "key", no_key},
    {"empty biz_type", "key.biz_type", empty_type},
    {"biz_type of 65 bytes", "key.biz_type", long_type},
    {"biz_id of 10 kB", "key.biz_id", huge_id},
    {"name of 65 bytes", "key.name", long_name},
    {"line feed in biz_id", "key.biz_id", control_in_id},
    {"escape in name", "key.name", escape_in_name},
    {"bad UTF-8", "key.biz_id", bad_utf8},
    {"overlong UTF-8", "key.biz_id", overlong_utf8},
    {"no time", "when", no_when},
    {"time of INT64_MAX", "due_time", huge_time},
    {"year 10000", "due_time", year_10000},
    {"year 0", "due_time", year_0},
    {"negative nanos", "due_time", negative_nanos},
    {"a second of nanos", "due_time", large_nanos},
    {"negative delay", "delay", negative_delay},
    {"endless delay", "delay", endless_delay},
    {"no target", "target", no_target},
    {"empty target", "target.url", empty_target},
    {"unknown scheme", "target.url", odd_target},
    {"no port", "target.url", no_port},
    {"port 65536", "target.url", big_port},
    {"target of 513 bytes", "target.url", long_target},
    {"batch_max of 257", "target.batch_max", big_batch},
    {"unknown priority", "priority", odd_priority},
    {"unknown delivery", "delivery_guarantee", odd_delivery},
    {"unknown on_conflict", "on_conflict", odd_conflict},
    {"payload over 64 KiB", "payload", big_payload},
    {"timeout 0", "call_timeout", zero_timeout},
    {"timeout over 10 min", "call_timeout", long_timeout},
    {"ladder of 33", "retry_policy.ladder", long_ladder},
    {"jitter of 101 %", "retry_policy.jitter_percent", jitter_over_100},
    {"factor NaN", "retry_policy.exponential.factor", factor_nan},
    {"reserved header", "headers[0].name", grpc_header},
};

/* Does the packed google.rpc.Status name the field (or a part of it)? */
static bool
names_field(struct toc_str details, const char *field)
{
    struct toc_arena arena = {0};
    Google__Rpc__Status *status =
        toc_rpc_unpack(&google__rpc__status__descriptor, details, &arena);
    bool named = false;

    for (size_t i = 0; status && i < status->n_details; i++) {
        const Google__Protobuf__Any *any = status->details[i];
        Google__Rpc__BadRequest *bad;

        if (!strstr(any->type_url, "google.rpc.BadRequest"))
            continue;
        bad = toc_rpc_unpack(
            &google__rpc__bad_request__descriptor,
            (struct toc_str){(const char *)any->value.data, any->value.len},
            &arena);
        ck_assert_ptr_nonnull(bad);
        for (size_t k = 0; k < bad->n_field_violations; k++) {
            ck_assert_str_ne(bad->field_violations[k]->description, "");
            named |= strncmp(bad->field_violations[k]->field, field,
                             strlen(field)) == 0;
        }
    }
    toc_arena_done(&arena);
    return named;
}

static size_t
stored_tasks(struct caller *caller, const char *biz_type)
{
    Toc__V1__TaskFilter filter = TOC__V1__TASK_FILTER__INIT;
    Toc__V1__ListTasksRequest request = TOC__V1__LIST_TASKS_REQUEST__INIT;
    size_t found = 0;

    filter.biz_type = (char *)biz_type;
    request.filter = &filter;
    request.page_size = 1000;
    for (;;) {
        Toc__V1__ListTasksResponse *reply = NULL;

        ck_assert_msg(caller_admin(caller, cluster.admin, "ListTasks",
                                   &request.base, &reply) == TOC_OK,
                      "ListTasks: %s", caller->error.msg);
        found += reply->n_tasks;
        if (!reply->next_page_token[0])
            return found;
        request.page_token = reply->next_page_token;
    }
}

START_TEST(bad_input_is_named_and_leaves_nothing)
{
    struct caller caller;

    caller_init(&caller);
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        Toc__V1__SubmitResponse *reply = NULL;
        Toc__V1__SubmitRequest *request =
            caller_request(&caller.arena, "bad", i, wall_ms() + 3600000,
                           "grpc://127.0.0.1:1", 0);

        bads[i].spoil(&caller.arena, request);
        ck_assert_msg(submit(&caller, request, &reply) == TOC_INVALID,
                      "%s: status %d, %s", bads[i].what,
                      (int)caller.error.status, caller.error.msg);
        ck_assert_msg(names_field(caller.details, bads[i].field),
                      "%s: no violation names %s", bads[i].what, bads[i].field);
    }
    ck_assert_uint_eq(stored_tasks(&caller, "bad"), 0);
    caller_done(&caller);
}
END_TEST

/* A bad item of a batch fails alone, and by its place. */
START_TEST(bad_item_fails_alone)
{
    struct caller caller;
    Toc__V1__SubmitRequest *items[3];
    Toc__V1__BatchSubmitRequest request = TOC__V1__BATCH_SUBMIT_REQUEST__INIT;
    Toc__V1__BatchSubmitResponse *reply = NULL;

    caller_init(&caller);
    for (size_t i = 0; i < 3; i++)
        items[i] = caller_request(&caller.arena, "alone", i,
                                  wall_ms() + 3600000, "grpc://127.0.0.1:1", 0);
    items[1]->target->url = (char *)"nonsense";
    request.n_items = 3;
    request.items = items;
    ck_assert_int_eq(caller_call(&caller, cluster.schedulers[0], "BatchSubmit",
                                 &request.base, &reply),
                     TOC_OK);
    ck_assert_uint_eq(reply->n_results, 3);
    ck_assert(reply->results[0]->response && reply->results[2]->response);
    ck_assert_ptr_nonnull(reply->results[1]->error);
    ck_assert_int_eq(reply->results[1]->error->code, TOC_INVALID);
    ck_assert_uint_eq(stored_tasks(&caller, "alone"), 2);
    caller_done(&caller);
}
END_TEST

START_TEST(not_served_yet_is_said_by_name)
{
    struct caller caller;
    Toc__V1__SubmitResponse *reply = NULL;
    Toc__V1__SubmitRequest *request;

    caller_init(&caller);
    request = caller_request(&caller.arena, "later", 1, wall_ms() + 60000,
                             "grpc://127.0.0.1:1", 0);
    request->scene = (char *)"presale";
    ck_assert_int_eq(submit(&caller, request, &reply), TOC_UNIMPLEMENTED);
    ck_assert_ptr_nonnull(strstr(caller.error.msg, "scene"));
    ck_assert_uint_eq(stored_tasks(&caller, "later"), 0);
    caller_done(&caller);
}
END_TEST

/* ---- keys -------------------------------------------------------------- */

#define CALLERS 50

struct racer {
    struct toc_thread thread;
    int64_t due_ms;
    enum toc_status st;
    bool created;
    char id[32];
};

static void
race(void *arg)
{
    struct racer *racer = arg;
    struct caller caller;
    Toc__V1__SubmitResponse *reply = NULL;

    caller_init(&caller);
    racer->st = submit(&caller,
                       caller_request(&caller.arena, "race", 1, racer->due_ms,
                                      "grpc://127.0.0.1:1", 0),
                       &reply);
    if (racer->st == TOC_OK) {
        racer->created = reply->created;
        toc_copy(racer->id, sizeof racer->id, toc_str_of(reply->task->task_id));
    }
    caller_done(&caller);
}

START_TEST(same_key_same_content_is_one_task)
{
    static struct racer racers[CALLERS];
    int64_t due = wall_ms() + 3600000;
    unsigned created = 0;
    struct caller caller;

    for (size_t i = 0; i < CALLERS; i++) {
        racers[i].due_ms = due;
        toc_thread_start(&racers[i].thread, "racer", race, &racers[i]);
    }
    for (size_t i = 0; i < CALLERS; i++)
        toc_thread_join(&racers[i].thread);
    for (size_t i = 0; i < CALLERS; i++) {
        ck_assert_int_eq(racers[i].st, TOC_OK);
        ck_assert_str_eq(racers[i].id, racers[0].id);
        created += racers[i].created;
    }
    ck_assert_uint_eq(created, 1);
    caller_init(&caller);
    ck_assert_uint_eq(stored_tasks(&caller, "race"), 1);
    caller_done(&caller);
}
END_TEST

/* The stored task comes in the details of ALREADY_EXISTS. */
static bool
details_hold_task(struct toc_str details, const char *task_id)
{
    struct toc_arena arena = {0};
    Google__Rpc__Status *status =
        toc_rpc_unpack(&google__rpc__status__descriptor, details, &arena);
    bool found = false;

    for (size_t i = 0; status && i < status->n_details; i++) {
        const Google__Protobuf__Any *any = status->details[i];
        Toc__V1__Task *task;

        if (!strstr(any->type_url, "toc.v1.Task"))
            continue;
        task = toc_rpc_unpack(
            &toc__v1__task__descriptor,
            (struct toc_str){(const char *)any->value.data, any->value.len},
            &arena);
        found |= task && strcmp(task->task_id, task_id) == 0;
    }
    toc_arena_done(&arena);
    return found;
}

START_TEST(same_key_other_content)
{
    struct caller caller;
    int64_t due = wall_ms() + 3600000, stored;
    Toc__V1__SubmitResponse *first = NULL, *reply = NULL;
    Toc__V1__SubmitRequest *request;

    caller_init(&caller);
    request =
        caller_request(&caller.arena, "other", 1, due, "grpc://127.0.0.1:1", 0);
    ck_assert_int_eq(submit(&caller, request, &first), TOC_OK);
    request->due_time = toc_api_time(&caller.arena, due + 1000);
    ck_assert_int_eq(submit(&caller, request, &reply), TOC_EXISTS);
    ck_assert(details_hold_task(caller.details, first->task->task_id));

    request->on_conflict = TOC__V1__ON_CONFLICT__ON_CONFLICT_KEEP;
    ck_assert_int_eq(submit(&caller, request, &reply), TOC_OK);
    ck_assert(!reply->created);
    ck_assert_str_eq(reply->task->task_id, first->task->task_id);

    request->on_conflict = TOC__V1__ON_CONFLICT__ON_CONFLICT_REPLACE;
    ck_assert_int_eq(submit(&caller, request, &reply), TOC_OK);
    ck_assert(reply->replaced);
    ck_assert(toc_api_time_ms(get(&caller, request->key)->due_time, &stored));
    ck_assert_int_eq(stored, due + 1000);
    caller_done(&caller);
}
END_TEST

/* Keys are bytes: no folding of case, accents, forms or spaces. */
START_TEST(keys_are_bytes)
{
    static char *const ids[] = {"order-a",      "Order-A",  "ord\xc3\xa9",
                                "orde\xcc\x81", "order-a ", "ord\x65",
                                "\xef\xbd\x8f", "o",        "\xf0\x9f\x98\x80",
                                "' OR 1=1",     "%s%n",     "\\"};
    size_t n = sizeof ids / sizeof ids[0];
    struct caller caller;

    caller_init(&caller);
    for (size_t i = 0; i < n; i++) {
        Toc__V1__SubmitResponse *reply = NULL;
        Toc__V1__SubmitRequest *request =
            caller_request(&caller.arena, "bytes", i, wall_ms() + 3600000,
                           "grpc://127.0.0.1:1", 0);

        request->key->biz_id = ids[i];
        ck_assert_int_eq(submit(&caller, request, &reply), TOC_OK);
        ck_assert_msg(reply->created, "\"%s\" was there before", ids[i]);
        ck_assert_str_eq(get(&caller, request->key)->key->biz_id, ids[i]);
    }
    ck_assert_uint_eq(stored_tasks(&caller, "bytes"), n);
    caller_done(&caller);
}
END_TEST

TOC_E2E_MAIN("submit", 2, 1, times_are_kept_exactly,
             bad_input_is_named_and_leaves_nothing, bad_item_fails_alone,
             not_served_yet_is_said_by_name, same_key_same_content_is_one_task,
             same_key_other_content, keys_are_bytes)
