/*
 * Goal: TimeoutService as a caller sees it, over gRPC and on a real database:
 * what is created, the same, other; what commands come to; what is refused, and
 * how; that many callers of one key agree.
 * Method: a server with the service, its combiner and workers, on a database of
 * its own; unary calls by the client.
 */
#include "common/rpc/client.h"
#include "google/rpc/status.pb-c.h"
#include "scheduler/access/service.h"
#include "toc/v1/timeout.pb-c.h"

#include "tests/integration/store/fixture.h"

#define CALL_MS 20000
#define TARGET "grpc://127.0.0.1:7000"

static struct {
    struct sched_shards shards;
    struct sched_memory memory;
    struct toc_bell bell;
    struct sched_combiner combiner;
    struct sched_access access;
    struct toc_rpc_server *server;
    struct toc_rpc_client *client;
    struct toc_thread combining, workers[4];
    _Atomic bool stop;
    struct toc_str details; /* of the last failure */
    struct sched_skew skew;
} sx;

static void
combine(void *arg)
{
    (void)arg;
    while (!atomic_load(&sx.stop))
        (void)toc_bell_wait(&sx.combiner.bell,
                            sched_combiner_step(&sx.combiner));
}

static void
work(void *arg)
{
    sched_workers_run(arg);
}

static void
start(void)
{
    const struct toc_clock *clk = toc_clock_os();
    const struct toc_rpc_server_options options = {.listen = "127.0.0.1:0",
                                                   .clock = clk};

    setup();
    memset(&sx, 0, sizeof sx);
    toc_bell_init(&sx.bell);
    sched_shards_init(&sx.shards, clk);
    sched_memory_init(&sx.memory, &(struct sched_memory_options){
                                      .shards = &sx.shards,
                                      .bell = &sx.bell,
                                      .entries_max = 10000,
                                      .now_ms = toc_clock_wall(clk).ms});
    sched_combiner_init(&sx.combiner, &(struct sched_combiner_options){
                                          .clk = clk, .store = fx.store});
    sx.access.clk = clk;
    sx.access.store = fx.store;
    sx.access.skew = &sx.skew;
    sx.skew.clk = clk;
    sx.access.combiner = &sx.combiner;
    sx.access.workers = sched_workers_new(100);
    sx.access.names = sched_names_new(fx.store, clk);
    sx.access.peers = sched_peers_new(&(struct sched_peers_options){
        .clk = clk, .shards = &sx.shards, .memory = &sx.memory});
    sx.access.payload_max = TOC_PAYLOAD_DEFAULT_MAX;
    sx.access.key_window_ms = TOC_KEY_WINDOW_MS_DEFAULT;
    toc_thread_start(&sx.combining, "combiner", combine, NULL);
    for (size_t i = 0; i < 4; i++)
        toc_thread_start(&sx.workers[i], "worker", work, sx.access.workers);
    OK(toc_rpc_server_new(&options, &sx.server, err));
    toc_rpc_server_add(sx.server, &toc__v1__timeout_service__descriptor,
                       sched_access_handle, &sx.access);
    OK(toc_rpc_server_start(sx.server, err));
    sx.client = toc_rpc_client_new(
        &(struct toc_rpc_client_options){.clock = clk, .threads = 2});
}

static void
stop(void)
{
    toc_rpc_client_free(sx.client);
    toc_rpc_server_stop(sx.server, 1000);
    sched_combiner_close(&sx.combiner);
    atomic_store(&sx.stop, true);
    toc_bell_ring(&sx.combiner.bell);
    toc_thread_join(&sx.combining);
    sched_workers_close(sx.access.workers);
    for (size_t i = 0; i < 4; i++)
        toc_thread_join(&sx.workers[i]);
    toc_rpc_server_free(sx.server);
    sched_combiner_done(&sx.combiner);
    sched_workers_free(sx.access.workers);
    sched_names_free(sx.access.names);
    sched_peers_free(sx.access.peers);
    sched_memory_done(&sx.memory);
    sched_shards_done(&sx.shards);
    toc_bell_done(&sx.bell);
    teardown();
}

/* The reply on TOC_OK, else NULL; the status as told. */
static void *
call(const char *method, const void *request, enum toc_status *ret_st)
{
    struct toc_error err = {0};
    ProtobufCMessage *reply = NULL;

    *ret_st =
        toc_rpc_call(sx.client, toc_rpc_server_address(sx.server),
                     &toc__v1__timeout_service__descriptor, method, request,
                     CALL_MS, &fx.arena, &reply, &sx.details, &err);
    return *ret_st == TOC_OK ? reply : NULL;
}

static void *
call_ok(const char *method, const void *request)
{
    enum toc_status st;
    void *reply = call(method, request, &st);

    ck_assert_msg(st == TOC_OK, "%s: %s", method, toc_status_text(st));
    return reply;
}

static enum toc_status
call_fails(const char *method, const void *request)
{
    enum toc_status st;

    (void)call(method, request, &st);
    ck_assert_msg(st != TOC_OK, "%s did not fail", method);
    return st;
}

/* Does the last failure carry a task? Its id. */
static const char *
task_in_details(void)
{
    Google__Rpc__Status *status =
        toc_rpc_unpack(&google__rpc__status__descriptor, sx.details, &fx.arena);

    for (size_t i = 0; status != NULL && i < status->n_details; i++)
        if (strcmp(status->details[i]->type_url,
                   "type.googleapis.com/toc.v1.Task") == 0) {
            Toc__V1__Task *task = toc_rpc_unpack(
                &toc__v1__task__descriptor,
                (struct toc_str){(const char *)status->details[i]->value.data,
                                 status->details[i]->value.len},
                &fx.arena);
            return task->task_id;
        }
    return "";
}

/* ---- requests ----------------------------------------------------------- */

static Toc__V1__TaskKey *
key_of(const char *id)
{
    Toc__V1__TaskKey *key = toc_arena_alloc(&fx.arena, sizeof *key);

    toc__v1__task_key__init(key);
    key->biz_type = toc_arena_printf(&fx.arena, "order");
    key->biz_id = toc_arena_printf(&fx.arena, "%s", id);
    key->name = toc_arena_printf(&fx.arena, "pay");
    return key;
}

static Google__Protobuf__Duration *
seconds(int64_t n)
{
    Google__Protobuf__Duration *duration =
        toc_arena_alloc(&fx.arena, sizeof *duration);

    google__protobuf__duration__init(duration);
    duration->seconds = n;
    return duration;
}

static Toc__V1__SubmitRequest *
request_of(const char *id, int64_t delay_s)
{
    Toc__V1__SubmitRequest *request =
        toc_arena_alloc(&fx.arena, sizeof *request);
    Toc__V1__Target *target = toc_arena_alloc(&fx.arena, sizeof *target);

    toc__v1__submit_request__init(request);
    toc__v1__target__init(target);
    target->url = toc_arena_printf(&fx.arena, TARGET);
    request->key = key_of(id);
    request->when_case = TOC__V1__SUBMIT_REQUEST__WHEN_DELAY;
    request->delay = seconds(delay_s);
    request->target = target;
    return request;
}

#define COMMAND(Type, TYPE, var, id)    \
    Type var;                           \
    var = (Type)TYPE##__INIT;           \
    var.which_case = TYPE##__WHICH_KEY; \
    var.key = key_of(id)

static Toc__V1__Task *
get(const char *id)
{
    COMMAND(Toc__V1__GetRequest, TOC__V1__GET_REQUEST, request, id);
    return call_ok("Get", &request);
}

/* Another executor has claimed it. */
static void
claim(const char *id)
{
    struct toc_find find = find_biz("order", id, "pay");
    struct toc_task task;

    OK(toc_store_get(fx.store, &find, &fx.arena, &task, err));
    raw("UPDATE task_info SET status=2, lock_token=5, lock_until_ms=%lld "
        "WHERE slice=%u AND slot_ms=%lld",
        (long long)(now_ms() + 60000), task.slice, (long long)task.slot_ms);
}

/* ---- tests ----------------------------------------------------------------
 */

START_TEST(the_same_answers_as_the_first)
{
    Toc__V1__SubmitResponse *first = call_ok("Submit", request_of("1", 600));
    Toc__V1__SubmitResponse *again = call_ok("Submit", request_of("1", 600));

    ck_assert(first->created && !again->created && !again->replaced);
    ck_assert_str_eq(first->task->task_id, again->task->task_id);
    ck_assert_int_eq(first->task->due_time->seconds,
                     again->task->due_time->seconds);
    ck_assert_str_eq(get("1")->task_id, first->task->task_id);
}
END_TEST

START_TEST(another_content_by_on_conflict)
{
    Toc__V1__SubmitResponse *first = call_ok("Submit", request_of("1", 600));
    Toc__V1__SubmitRequest *other = request_of("1", 900);

    ck_assert_int_eq(call_fails("Submit", other), TOC_EXISTS);
    ck_assert_str_eq(task_in_details(), first->task->task_id);
    other->on_conflict = TOC__V1__ON_CONFLICT__ON_CONFLICT_KEEP;
    Toc__V1__SubmitResponse *kept = call_ok("Submit", other);
    ck_assert(!kept->created);
    ck_assert_str_eq(kept->task->task_id, first->task->task_id);
    other->on_conflict = TOC__V1__ON_CONFLICT__ON_CONFLICT_REPLACE;
    Toc__V1__SubmitResponse *replaced = call_ok("Submit", other);
    ck_assert(replaced->created && replaced->replaced);
    ck_assert_str_ne(replaced->task->task_id, first->task->task_id);
    ck_assert_str_eq(get("1")->task_id, replaced->task->task_id);
    claim("1");
    other = request_of("1", 1200);
    other->on_conflict = TOC__V1__ON_CONFLICT__ON_CONFLICT_REPLACE;
    ck_assert_int_eq(call_fails("Submit", other), TOC_PRECONDITION);
    ck_assert_str_eq(task_in_details(), replaced->task->task_id);
}
END_TEST

/* Details travel in a trailer of a few KiB. */
START_TEST(a_large_stored_task_is_in_the_details)
{
    Toc__V1__SubmitRequest *request = request_of("1", 600);
    Toc__V1__Header headers[6], *refs[6];

    request->payload.len = 60000;
    request->payload.data = toc_arena_calloc(&fx.arena, 60000, 1);
    for (size_t i = 0; i < 6; i++) {
        toc__v1__header__init(&headers[i]);
        headers[i].name = toc_arena_printf(&fx.arena, "x-header-%zu", i);
        headers[i].value = toc_arena_printf(&fx.arena, "%0240d", 7);
        refs[i] = &headers[i];
    }
    request->headers = refs;
    request->n_headers = 6;
    Toc__V1__SubmitResponse *first = call_ok("Submit", request);
    request->delay = seconds(900);
    ck_assert_int_eq(call_fails("Submit", request), TOC_EXISTS);
    ck_assert_str_eq(task_in_details(), first->task->task_id);
}
END_TEST

START_TEST(validate_only_writes_nothing)
{
    Toc__V1__SubmitRequest *request = request_of("1", 600);

    request->validate_only = true;
    Toc__V1__SubmitResponse *dry = call_ok("Submit", request);
    ck_assert(dry->created);
    ck_assert_str_eq(dry->task->task_id, "");
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 0);
    (void)call_ok("Submit", request_of("1", 600));
    dry = call_ok("Submit", request);
    ck_assert(!dry->created);
    request = request_of("1", 601);
    request->validate_only = true;
    ck_assert_int_eq(call_fails("Submit", request), TOC_EXISTS);

    COMMAND(Toc__V1__CancelRequest, TOC__V1__CANCEL_REQUEST, cancel, "1");
    cancel.validate_only = true;
    Toc__V1__CancelResponse *foreseen = call_ok("Cancel", &cancel);
    ck_assert_int_eq(foreseen->results[0]->outcome,
                     TOC__V1__OUTCOME__OUTCOME_APPLIED);
    ck_assert_int_eq(get("1")->state, TOC__V1__STATE__STATE_INIT);
}
END_TEST

START_TEST(a_batch_item_fails_alone)
{
    Toc__V1__BatchSubmitRequest batch = TOC__V1__BATCH_SUBMIT_REQUEST__INIT;
    Toc__V1__SubmitRequest *items[5];

    for (size_t i = 0; i < 5; i++) {
        char id[8];
        toc_format(id, sizeof id, "%zu", i);
        items[i] = request_of(id, 600);
    }
    items[1]->key->biz_id = toc_arena_printf(&fx.arena, "a\x01");
    items[3]->delay->seconds = -1;
    items[4]->key = key_of("0"); /* the same as the first, here and now */
    batch.items = items;
    batch.n_items = 5;
    Toc__V1__BatchSubmitResponse *reply = call_ok("BatchSubmit", &batch);
    ck_assert_uint_eq(reply->n_results, 5);
    ck_assert(reply->results[0]->response->created);
    ck_assert_int_eq(reply->results[1]->error->code, TOC_INVALID);
    ck_assert(strncmp(reply->results[1]->error->message,
                      "items[1].key.biz_id: ", 21) == 0);
    ck_assert(reply->results[2]->response->created);
    ck_assert(strncmp(reply->results[3]->error->message,
                      "items[3].delay: ", 16) == 0);
    ck_assert(!reply->results[4]->response->created);
    ck_assert_str_eq(reply->results[4]->response->task->task_id,
                     reply->results[0]->response->task->task_id);
}
END_TEST

START_TEST(commands_and_their_outcomes)
{
    COMMAND(Toc__V1__PauseRequest, TOC__V1__PAUSE_REQUEST, pause, "1");
    COMMAND(Toc__V1__ResumeRequest, TOC__V1__RESUME_REQUEST, resume, "1");
    COMMAND(Toc__V1__RescheduleRequest, TOC__V1__RESCHEDULE_REQUEST, later,
            "1");
    COMMAND(Toc__V1__RunNowRequest, TOC__V1__RUN_NOW_REQUEST, run, "1");
    COMMAND(Toc__V1__CancelRequest, TOC__V1__CANCEL_REQUEST, cancel, "1");
    Toc__V1__CommandResult *result;

    ck_assert_int_eq(call_fails("Pause", &pause), TOC_NOT_FOUND);
    (void)call_ok("Submit", request_of("1", 600));
    result = call_ok("Pause", &pause);
    ck_assert_int_eq(result->outcome, TOC__V1__OUTCOME__OUTCOME_APPLIED);
    ck_assert_int_eq(result->task->state, TOC__V1__STATE__STATE_PAUSED);
    result = call_ok("Pause", &pause);
    ck_assert_int_eq(result->outcome, TOC__V1__OUTCOME__OUTCOME_ALREADY);
    result = call_ok("Resume", &resume);
    ck_assert_int_eq(result->outcome, TOC__V1__OUTCOME__OUTCOME_APPLIED);
    later.when_case = TOC__V1__RESCHEDULE_REQUEST__WHEN_DELAY;
    later.delay = seconds(7200);
    later.etag = toc_arena_printf(&fx.arena, "1");
    ck_assert_int_eq(call_fails("Reschedule", &later), TOC_CONFLICT);
    later.etag = result->task->etag;
    result = call_ok("Reschedule", &later);
    ck_assert_int_eq(result->outcome, TOC__V1__OUTCOME__OUTCOME_APPLIED);
    ck_assert_int_gt(result->task->due_time->seconds, now_ms() / 1000 + 7000);
    result = call_ok("RunNow", &run);
    ck_assert_int_eq(result->outcome, TOC__V1__OUTCOME__OUTCOME_APPLIED);
    ck_assert_int_eq(result->task->state, TOC__V1__STATE__STATE_SCHEDULING);
    claim("1");
    Toc__V1__CancelResponse *cancelled = call_ok("Cancel", &cancel);
    ck_assert_int_eq(cancelled->results[0]->outcome,
                     TOC__V1__OUTCOME__OUTCOME_TOO_LATE);
    ck_assert(cancelled->results[0]->task->cancel_noted);
}
END_TEST

START_TEST(everything_of_a_business_id)
{
    Toc__V1__BizRef biz = TOC__V1__BIZ_REF__INIT;
    Toc__V1__ListRequest list = TOC__V1__LIST_REQUEST__INIT;
    Toc__V1__CancelRequest cancel = TOC__V1__CANCEL_REQUEST__INIT;
    const char *names[] = {"a", "b", "c"};

    biz.biz_type = toc_arena_printf(&fx.arena, "order");
    biz.biz_id = toc_arena_printf(&fx.arena, "42");
    for (size_t i = 0; i < 3; i++) {
        Toc__V1__SubmitRequest *request = request_of("42", 600);
        request->key->name = toc_arena_printf(&fx.arena, "%s", names[i]);
        (void)call_ok("Submit", request);
    }
    (void)call_ok("Submit", request_of("43", 600));
    cancel.which_case = TOC__V1__CANCEL_REQUEST__WHICH_BIZ;
    cancel.biz = &biz;
    ck_assert_uint_eq(
        ((Toc__V1__CancelResponse *)call_ok("Cancel", &cancel))->n_results, 3);
    ck_assert_uint_eq(
        ((Toc__V1__CancelResponse *)call_ok("Cancel", &cancel))->n_results, 0);
    list.biz = &biz;
    Toc__V1__ListResponse *listed = call_ok("List", &list);
    ck_assert_uint_eq(listed->n_tasks, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(listed->tasks[i]->state,
                         TOC__V1__STATE__STATE_CANCELLED);
    ck_assert_int_eq(get("43")->state, TOC__V1__STATE__STATE_INIT);
}
END_TEST

/* More tasks than one list gives, some ended, one being called. */
START_TEST(a_cancel_of_a_business_id_leaves_none)
{
    Toc__V1__BizRef biz = TOC__V1__BIZ_REF__INIT;
    Toc__V1__CancelRequest cancel = TOC__V1__CANCEL_REQUEST__INIT;
    enum { N = 800, ROUNDS = 3 };
    Toc__V1__SubmitRequest *items[N];

    for (int round = 0; round < ROUNDS; round++) {
        Toc__V1__BatchSubmitRequest batch = TOC__V1__BATCH_SUBMIT_REQUEST__INIT;
        for (int i = 0; i < N; i++) {
            items[i] = request_of("42", 600 + round);
            items[i]->key->name =
                toc_arena_printf(&fx.arena, "n%d", round * N + i);
        }
        batch.items = items;
        batch.n_items = N;
        (void)call_ok("BatchSubmit", &batch);
    }
    raw("UPDATE task_info SET status=2,lock_token=5,lock_until_ms=%lld "
        "WHERE name='n7'",
        (long long)(now_ms() + 60000));
    biz.biz_type = toc_arena_printf(&fx.arena, "order");
    biz.biz_id = toc_arena_printf(&fx.arena, "42");
    cancel.which_case = TOC__V1__CANCEL_REQUEST__WHICH_BIZ;
    cancel.biz = &biz;
    Toc__V1__CancelResponse *reply = call_ok("Cancel", &cancel);
    ck_assert_uint_eq(reply->n_results, N * ROUNDS);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info WHERE status<5"), 1);
}
END_TEST

START_TEST(a_batch_of_cancels)
{
    Toc__V1__BatchCancelRequest batch = TOC__V1__BATCH_CANCEL_REQUEST__INIT;
    Toc__V1__CancelRequest items[3];
    Toc__V1__CancelRequest *refs[3];
    const char *ids[] = {"1", "absent", "\xff"};

    (void)call_ok("Submit", request_of("1", 600));
    for (size_t i = 0; i < 3; i++) {
        toc__v1__cancel_request__init(&items[i]);
        items[i].which_case = TOC__V1__CANCEL_REQUEST__WHICH_KEY;
        items[i].key = key_of(ids[i]);
        refs[i] = &items[i];
    }
    batch.items = refs;
    batch.n_items = 3;
    Toc__V1__BatchCancelResponse *reply = call_ok("BatchCancel", &batch);
    ck_assert_int_eq(reply->results[0]->response->results[0]->outcome,
                     TOC__V1__OUTCOME__OUTCOME_APPLIED);
    ck_assert_int_eq(reply->results[1]->error->code, TOC_NOT_FOUND);
    ck_assert_int_eq(reply->results[2]->error->code, TOC_INVALID);
    batch.n_items = 0;
    ck_assert_int_eq(call_fails("BatchCancel", &batch), TOC_INVALID);
}
END_TEST

START_TEST(refused_by_name)
{
    Toc__V1__UpdateAttributesRequest update =
        TOC__V1__UPDATE_ATTRIBUTES_REQUEST__INIT;
    Toc__V1__SubmitRequest *request = request_of("1", 600);

    ck_assert_int_eq(call_fails("UpdateAttributes", &update),
                     TOC_UNIMPLEMENTED);
    request->scene = toc_arena_printf(&fx.arena, "food");
    ck_assert_int_eq(call_fails("Submit", request), TOC_UNIMPLEMENTED);
    atomic_store(&sx.skew.base_ms,
                 1500 - toc_clock_wall(sx.access.clk).ms +
                     toc_clock_boot(sx.access.clk).ns / TOC_NS_PER_MS);
    atomic_store(&sx.skew.measured, true);
    ck_assert_int_eq(call_fails("Submit", request_of("1", 600)),
                     TOC_UNAVAILABLE);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 0);
}
END_TEST

START_TEST(without_a_key_one_is_made_up)
{
    Toc__V1__SubmitResponse *one = call_ok("Submit", request_of("", 600));
    Toc__V1__SubmitResponse *two = call_ok("Submit", request_of("", 600));
    Toc__V1__GetRequest by_id = TOC__V1__GET_REQUEST__INIT;

    ck_assert(one->created && two->created);
    ck_assert_str_ne(one->task->key->biz_id, two->task->key->biz_id);
    by_id.which_case = TOC__V1__GET_REQUEST__WHICH_TASK_ID;
    by_id.task_id = one->task->task_id;
    ck_assert_str_eq(((Toc__V1__Task *)call_ok("Get", &by_id))->key->biz_id,
                     one->task->key->biz_id);
}
END_TEST

/* ---- fifty at once ---------------------------------------------------------
 */

static struct {
    _Atomic unsigned left, created, same, other;
} race;

static void
raced(void *arg, const struct toc_rpc_result *result)
{
    struct toc_arena arena = {0};

    (void)arg;
    if (result->status == TOC_OK) {
        Toc__V1__SubmitResponse *reply = toc_rpc_unpack(
            &toc__v1__submit_response__descriptor, result->reply, &arena);
        atomic_fetch_add(reply->created ? &race.created : &race.same, 1);
    } else if (result->status == TOC_EXISTS) {
        atomic_fetch_add(&race.other, 1);
    }
    toc_arena_done(&arena);
    atomic_fetch_sub(&race.left, 1);
}

static bool
race_over(void *arg)
{
    (void)arg;
    return atomic_load(&race.left) == 0;
}

START_TEST(fifty_callers_of_one_key_agree)
{
    atomic_store(&race.left, 50);
    for (unsigned i = 0; i < 50; i++) {
        TOC_CLEANUP(toc_buf_done) struct toc_buf packed = {0};
        toc_rpc_pack(&request_of("1", i % 5 == 0 ? 900 : 600)->base, &packed);
        (void)toc_rpc_start(sx.client,
                            &(struct toc_rpc_request){
                                .address = toc_rpc_server_address(sx.server),
                                .method = "/toc.v1.TimeoutService/Submit",
                                .bytes = toc_buf_view(&packed),
                                .deadline = toc_mono_add_ms(
                                    toc_clock_mono(toc_clock_os()), CALL_MS)},
                            raced, NULL);
    }
    ck_assert(toc_eventually(race_over, NULL));
    ck_assert_uint_eq(atomic_load(&race.created), 1);
    ck_assert_uint_eq(atomic_load(&race.created) + atomic_load(&race.same) +
                          atomic_load(&race.other),
                      50);
    ck_assert(atomic_load(&race.other) == 10 || atomic_load(&race.other) == 40);
    ck_assert_int_eq(raw("SELECT COUNT(*) FROM task_info"), 1);
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {the_same_answers_as_the_first,
                                    another_content_by_on_conflict,
                                    a_large_stored_task_is_in_the_details,
                                    validate_only_writes_nothing,
                                    a_batch_item_fails_alone,
                                    commands_and_their_outcomes,
                                    everything_of_a_business_id,
                                    a_cancel_of_a_business_id_leaves_none,
                                    a_batch_of_cancels,
                                    refused_by_name,
                                    without_a_key_one_is_made_up,
                                    fifty_callers_of_one_key_agree};
    Suite *suite = suite_create("access");
    TCase *tcase = tcase_create("access");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, start, stop);
    tcase_set_timeout(tcase, 60);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
