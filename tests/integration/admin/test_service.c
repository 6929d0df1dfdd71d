/*
 * Goal: AdminService over gRPC keeps its promises whatever the store gives:
 * pages bounded in bytes, number and time that together hold everything once,
 * SCHEDULING found by what is shown, items of a redrive each with its result,
 * and calls refused, not piled up, when the workers are all busy.
 * Method: the real server and client over loopback; a store and a coord of the
 * test's own, whose rows and pace the test decides.
 */
#include "admin/service.h"

#include "common/base/alloc.h"
#include "common/base/thread.h"
#include "common/clock/os/clock_os.h"
#include "common/model/spec.h"
#include "common/rpc/client.h"
#include "tests/support/toc_check.h"
#include "toc/v1/admin.pb-c.h"
#include "toc/v1/peer.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define ROWS_MAX 4000
#define TIMEOUT_MS 20000

static struct {
    struct toc_task rows[ROWS_MAX];
    size_t n_rows;
    _Atomic size_t per_call; /* rows looked at in one store call; 0: all */
    int64_t now_ms;
    _Atomic int fails; /* a status */
    atomic_int calls, waiting;
    pthread_mutex_t gate; /* held by the test: store calls wait */
    double load;          /* of the scheduler s2; 0: it is not there */
    struct toc_store store;
    struct toc_coord coord;
    struct admin_service *service;
    struct toc_rpc_server *server;
    struct toc_rpc_client *client;
    struct toc_arena arena;
    struct toc_str details;
    struct toc_error error;
} fx;

/* ---- a store in the test's hands ---- */

static enum toc_status
fake_list_tasks(void *self, const struct toc_task_filter *filter, size_t max,
                struct toc_cursor *cursor, struct toc_arena *arena,
                struct toc_task **ret_tasks, size_t *ret_n,
                struct toc_error *reterr)
{
    size_t at = cursor->set ? (size_t)cursor->slot_ms + 1 : 0;
    size_t end = fx.per_call > 0 && at + fx.per_call < fx.n_rows
                     ? at + fx.per_call
                     : fx.n_rows;
    size_t n = 0;

    (void)self;
    atomic_fetch_add(&fx.calls, 1);
    if (fx.fails != TOC_OK)
        return toc_error_set(reterr, (enum toc_status)fx.fails, "mysql", 1,
                             "secret words of the backend");
    *ret_tasks = toc_arena_calloc(arena, max + 1, sizeof **ret_tasks);
    for (; at < end && n < max; at++) {
        const struct toc_task *task = &fx.rows[at];
        if (filter->state_mask != 0 &&
            (filter->state_mask & 1u << task->state) == 0)
            continue;
        (*ret_tasks)[n++] = *task;
    }
    *cursor =
        (struct toc_cursor){.set = at < fx.n_rows, .slot_ms = (int64_t)at - 1};
    *ret_n = n;
    return TOC_OK;
}

static enum toc_status
fake_list_dead(void *self, const struct toc_dead_filter *filter, size_t max,
               struct toc_cursor *cursor, struct toc_arena *arena,
               struct toc_dead **ret_dead, size_t *ret_n,
               struct toc_error *reterr)
{
    struct toc_task_filter none = {.state_mask = 0};
    struct toc_task *tasks;
    enum toc_status st =
        fake_list_tasks(self, &none, max, cursor, arena, &tasks, ret_n, reterr);

    (void)filter;
    *ret_dead = toc_arena_calloc(arena, *ret_n + 1, sizeof **ret_dead);
    for (size_t i = 0; st == TOC_OK && i < *ret_n; i++) {
        (*ret_dead)[i].task = tasks[i];
        (*ret_dead)[i].dead_ms = tasks[i].slot_ms; /* the place */
        (*ret_dead)[i].reason = TOC_STR("out of attempts");
    }
    return st;
}

static enum toc_status
fake_redrive(void *self, struct toc_task_id id, int64_t now_ms,
             struct toc_str who, struct toc_str why,
             enum toc_redrive_result *ret_result, struct toc_error *reterr)
{
    (void)self, (void)now_ms, (void)why;
    atomic_fetch_add(&fx.calls, 1);
    ck_assert_uint_gt(who.len, 0);
    if (id.b[15] == 9)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "mysql", 2002, "away");
    *ret_result = (enum toc_redrive_result)(id.b[15] % 3);
    return TOC_OK;
}

static enum toc_status
fake_list_shards(void *self, struct toc_arena *arena,
                 struct toc_shard_row **ret_shards, size_t *ret_n,
                 struct toc_error *reterr)
{
    (void)self, (void)reterr;
    atomic_fetch_add(&fx.waiting, 1);
    pthread_mutex_lock(&fx.gate);
    pthread_mutex_unlock(&fx.gate);
    *ret_shards = toc_arena_calloc(arena, TOC_SHARDS, sizeof **ret_shards);
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        (*ret_shards)[i] =
            (struct toc_shard_row){i, TOC_SHARD_OPEN, 1000 + i, 0};
    *ret_n = TOC_SHARDS;
    return TOC_OK;
}

static enum toc_status
fake_list_nodes(void *self, struct toc_arena *arena,
                struct toc_node_row **ret_nodes, size_t *ret_n,
                struct toc_error *reterr)
{
    (void)self, (void)reterr;
    *ret_nodes = toc_arena_calloc(arena, 1, sizeof **ret_nodes);
    (*ret_nodes)[0].id = 7;
    (*ret_nodes)[0].name = TOC_STR("executor-1");
    *ret_n = 1;
    return TOC_OK;
}

static enum toc_status
fake_timeline(void *self, const struct toc_find *find, struct toc_arena *arena,
              struct toc_task *ret_task, struct toc_log_entry **ret_entries,
              size_t *ret_n, struct toc_error *reterr)
{
    struct toc_log_entry *log;
    char *detail = toc_arena_calloc(arena, 1024, 1);

    (void)self;
    if (toc_str_eq(find->biz_id, TOC_STR("absent")))
        return toc_error_set(reterr, TOC_NOT_FOUND, NULL, 0, "no such task");
    memset(detail, 'd', 1024);
    log = toc_arena_calloc(arena, 4000, sizeof *log);
    for (size_t i = 0; i < 4000; i++)
        log[i] = (struct toc_log_entry){.kind = TOC_LOG_KIND_ATTEMPT,
                                        .result = TOC_RESULT_FAILED,
                                        .fire = 1,
                                        .attempt = (uint16_t)(i + 1),
                                        .exec_node = 7,
                                        .claimed_ms = 10000 + (int64_t)i,
                                        .called_ms = 10000 + (int64_t)i,
                                        .at_ms = 10001 + (int64_t)i,
                                        .detail = {detail, 1024}};
    *ret_task = fx.rows[0];
    *ret_entries = log;
    *ret_n = 4000;
    return TOC_OK;
}

static enum toc_status
fake_snapshot(void *self, struct toc_arena *arena,
              struct toc_member **ret_members, size_t *ret_n_members,
              struct toc_owner **ret_owners, size_t *ret_n_owners,
              struct toc_error *reterr)
{
    (void)self, (void)reterr;
    *ret_members = toc_arena_calloc(arena, 2, sizeof **ret_members);
    (*ret_members)[0].role = TOC_STR("scheduler");
    (*ret_members)[0].node = TOC_STR("s2");
    (*ret_members)[0].address =
        fx.load > 0 ? toc_str_of(toc_rpc_server_address(fx.server))
                    : TOC_STR("127.0.0.1:1");
    (*ret_members)[1].role = TOC_STR("admin");
    (*ret_members)[1].node = TOC_STR("a1");
    *ret_n_members = 2;
    *ret_owners = toc_arena_calloc(arena, 3, sizeof **ret_owners);
    for (uint16_t i = 0; i < 3; i++) {
        (*ret_owners)[i].shard = i == 2 ? 999 : i; /* one is nonsense */
        (*ret_owners)[i].node = TOC_STR("s2");
    }
    *ret_n_owners = 3;
    return TOC_OK;
}

static const struct toc_store_ops store_ops = {
    .name = "fake",
    .timeline = fake_timeline,
    .list_tasks = fake_list_tasks,
    .list_dead = fake_list_dead,
    .redrive = fake_redrive,
    .list_shards = fake_list_shards,
    .list_nodes = fake_list_nodes,
};
static const struct toc_coord_ops coord_ops = {.name = "fake",
                                               .snapshot = fake_snapshot};

/* ---- the service on it ---- */

static void
add_row(enum toc_state state, int64_t due_ms, struct toc_str spec)
{
    struct toc_task *task = &fx.rows[fx.n_rows];

    *task = (struct toc_task){.state = state,
                              .fire = 1,
                              .version = 1,
                              .due_ms = due_ms,
                              /* The place in the list, as the fake wants it;
                               * far from the look-ahead unless due soon. */
                              .slot_ms = (int64_t)fx.n_rows};
    task->id.b[14] = (uint8_t)(fx.n_rows >> 8);
    task->id.b[15] = (uint8_t)fx.n_rows;
    task->biz_type = TOC_STR("order");
    task->biz_id = TOC_STR("42");
    task->spec = spec;
    fx.n_rows++;
}

/* The scheduler s2, on the same server. */
static void
answer_load(void *self, unsigned method, const ProtobufCMessage *request,
            struct toc_rpc_call *rpc)
{
    Toc__V1__GetLoadResponse answer = TOC__V1__GET_LOAD_RESPONSE__INIT;
    uint32_t quarantined[] = {1, 2, 4000000000u};

    (void)self, (void)request;
    ck_assert_uint_eq(method, 0);
    answer.load = fx.load;
    answer.quarantined = quarantined;
    answer.n_quarantined = sizeof quarantined / sizeof quarantined[0];
    toc_rpc_reply(rpc, &answer.base);
}

static void
serve(size_t workers, size_t queue_max)
{
    struct admin_service_options options = {
        .workers = workers, .queue_max = queue_max, .clk = toc_clock_os()};

    fx.store = (struct toc_store){.ops = &store_ops};
    fx.coord = (struct toc_coord){&coord_ops, NULL};
    options.store = &fx.store;
    options.coord = &fx.coord;
    pthread_mutex_init(&fx.gate, NULL);
    fx.service = admin_service_new(&options);
    ck_assert_int_eq(toc_rpc_server_new(
                         &(struct toc_rpc_server_options){
                             .listen = "127.0.0.1:0", .clock = toc_clock_os()},
                         &fx.server, &fx.error),
                     TOC_OK);
    admin_service_add(fx.service, fx.server);
    toc_rpc_server_add(fx.server, &toc__v1__balance_service__descriptor,
                       answer_load, NULL);
    ck_assert_int_eq(toc_rpc_server_start(fx.server, &fx.error), TOC_OK);
    /* A client as others have it: no more than 4 MiB. */
    fx.client = toc_rpc_client_new(&(struct toc_rpc_client_options){
        .clock = toc_clock_os(), .reply_bytes_max = 4 << 20});
}

static void
stop(void)
{
    admin_service_stop(fx.service);
    toc_rpc_server_stop(fx.server, 1000);
    toc_rpc_server_free(fx.server);
    admin_service_free(fx.service);
    toc_rpc_client_free(fx.client);
    toc_arena_done(&fx.arena);
}

static enum toc_status
call(const char *method, const ProtobufCMessage *request, void *ret_reply)
{
    ProtobufCMessage *reply = NULL;
    enum toc_status st =
        toc_rpc_call(fx.client, toc_rpc_server_address(fx.server),
                     &toc__v1__admin_service__descriptor, method, request,
                     TIMEOUT_MS, &fx.arena, &reply, &fx.details, &fx.error);

    *(ProtobufCMessage **)ret_reply = reply;
    return st;
}

static struct toc_str
big_spec(void)
{
    static struct toc_buf bytes;
    struct toc_spec spec = {.n_headers = 12};
    char *value = toc_arena_calloc(&fx.arena, 1, 256);

    memset(value, 'v', 250);
    spec.target = TOC_STR("grpc://a:1");
    for (size_t i = 0; i < spec.n_headers; i++)
        spec.headers[i] =
            (struct toc_header){TOC_STR("name"), toc_str_of(value)};
    toc_buf_reset(&bytes);
    toc_spec_encode(&spec, &bytes);
    return toc_buf_view(&bytes);
}

/* ---- tests ---- */

struct walk {
    size_t n, pages, largest;
};

static struct walk
walk_tasks(Toc__V1__TaskFilter *filter, uint32_t page_size)
{
    Toc__V1__ListTasksRequest request = TOC__V1__LIST_TASKS_REQUEST__INIT;
    struct walk walk = {0, 0, 0};

    request.filter = filter;
    request.page_size = page_size;
    do {
        Toc__V1__ListTasksResponse *page;
        size_t bytes;
        ck_assert_msg(call("ListTasks", &request.base, &page) == TOC_OK, "%s",
                      fx.error.msg);
        bytes = toc__v1__list_tasks_response__get_packed_size(page);
        walk.largest = bytes > walk.largest ? bytes : walk.largest;
        walk.n += page->n_tasks;
        walk.pages++;
        ck_assert_uint_le(page->n_tasks, page_size);
        ck_assert_uint_le(walk.pages, 10000);
        request.page_token = page->next_page_token;
    } while (request.page_token[0] != '\0');
    return walk;
}

START_TEST(pages_are_bounded_in_bytes_and_lose_nothing)
{
    struct walk walk;

    for (size_t i = 0; i < ROWS_MAX; i++)
        add_row(TOC_STATE_DEAD, 5000, big_spec());
    serve(2, 10);
    walk = walk_tasks(NULL, 1000);
    ck_assert_uint_eq(walk.n, ROWS_MAX);
    ck_assert_uint_gt(walk.pages, ROWS_MAX / 1000);
    ck_assert_uint_gt(walk.largest, 2 << 20); /* and not wastefully small */
    ck_assert_uint_lt(walk.largest, 3 << 20);
    walk = walk_tasks(NULL, 7);
    ck_assert_uint_eq(walk.n, ROWS_MAX);
    fx.per_call = 3; /* a store that gives little at a time */
    walk = walk_tasks(NULL, 1000);
    ck_assert_uint_eq(walk.n, ROWS_MAX);
    stop();
}
END_TEST

START_TEST(dead_letters_are_paged_too)
{
    Toc__V1__ListDeadRequest request = TOC__V1__LIST_DEAD_REQUEST__INIT;
    Toc__V1__ListDeadResponse *page;
    size_t n = 0;

    for (size_t i = 0; i < ROWS_MAX; i++)
        add_row(TOC_STATE_DEAD, 5000, big_spec());
    serve(2, 10);
    request.page_size = 1000;
    do {
        ck_assert_int_eq(call("ListDead", &request.base, &page), TOC_OK);
        ck_assert_uint_lt(toc__v1__list_dead_response__get_packed_size(page),
                          3 << 20);
        n += page->n_dead;
        request.page_token = page->next_page_token;
    } while (request.page_token[0] != '\0');
    ck_assert_uint_eq(n, ROWS_MAX);
    stop();
}
END_TEST

START_TEST(scheduling_is_what_is_shown)
{
    Toc__V1__State asked[1] = {TOC__V1__STATE__STATE_SCHEDULING};
    Toc__V1__TaskFilter filter = TOC__V1__TASK_FILTER__INIT;

    /* Slots are places of the list here, so long past: all INIT and RETRY is
     * inside the look-ahead. */
    add_row(TOC_STATE_INIT, 5000, TOC_STR(""));
    add_row(TOC_STATE_RETRY, 5000, TOC_STR(""));
    add_row(TOC_STATE_SUCCESS, 5000, TOC_STR(""));
    serve(1, 10);
    filter.states = asked;
    filter.n_states = 1;
    ck_assert_uint_eq(walk_tasks(&filter, 10).n, 2);
    asked[0] = TOC__V1__STATE__STATE_INIT; /* shown as SCHEDULING */
    ck_assert_uint_eq(walk_tasks(&filter, 10).n, 0);
    asked[0] = TOC__V1__STATE__STATE_SUCCESS;
    ck_assert_uint_eq(walk_tasks(&filter, 10).n, 1);
    stop();
}
END_TEST

START_TEST(tokens_of_another_filter_are_refused)
{
    Toc__V1__TaskFilter filter = TOC__V1__TASK_FILTER__INIT;
    Toc__V1__ListTasksRequest request = TOC__V1__LIST_TASKS_REQUEST__INIT;
    Toc__V1__ListTasksResponse *page;

    for (size_t i = 0; i < 10; i++)
        add_row(TOC_STATE_DEAD, 5000, TOC_STR(""));
    serve(1, 10);
    request.page_size = 3;
    ck_assert_int_eq(call("ListTasks", &request.base, &page), TOC_OK);
    request.page_token = page->next_page_token;
    ck_assert_int_eq(call("ListTasks", &request.base, &page), TOC_OK);
    filter.biz_type = "order";
    request.filter = &filter;
    ck_assert_int_eq(call("ListTasks", &request.base, &page), TOC_INVALID);
    ck_assert_uint_gt(fx.details.len, 0);
    ck_assert_ptr_nonnull(strstr(fx.error.msg, "page_token"));
    stop();
}
END_TEST

START_TEST(backend_words_stay_inside)
{
    Toc__V1__ListTasksRequest request = TOC__V1__LIST_TASKS_REQUEST__INIT;
    Toc__V1__ListTasksResponse *page;

    serve(1, 10);
    fx.fails = TOC_UNAVAILABLE;
    ck_assert_int_eq(call("ListTasks", &request.base, &page), TOC_UNAVAILABLE);
    ck_assert_ptr_null(strstr(fx.error.msg, "secret"));
    fx.fails = TOC_INTERNAL;
    ck_assert_int_eq(call("ListTasks", &request.base, &page), TOC_INTERNAL);
    ck_assert_ptr_null(strstr(fx.error.msg, "secret"));
    stop();
}
END_TEST

START_TEST(timelines_fit_too)
{
    Toc__V1__GetTimelineRequest request = TOC__V1__GET_TIMELINE_REQUEST__INIT;
    Toc__V1__TaskKey key = TOC__V1__TASK_KEY__INIT;
    Toc__V1__Timeline *timeline;
    const Toc__V1__TimelineEntry *last;

    add_row(TOC_STATE_INIT, 5000, TOC_STR(""));
    fx.rows[0].payload.len = 1 << 20;
    fx.rows[0].payload.ptr = toc_arena_calloc(&fx.arena, 1, 1 << 20);
    serve(1, 10);
    key.biz_type = "order";
    key.biz_id = "42";
    request.which_case = TOC__V1__GET_TIMELINE_REQUEST__WHICH_KEY;
    request.key = &key;
    ck_assert_msg(call("GetTimeline", &request.base, &timeline) == TOC_OK, "%s",
                  fx.error.msg);
    ck_assert_uint_lt(toc__v1__timeline__get_packed_size(timeline), 3 << 20);
    ck_assert_uint_eq(timeline->task->payload.len, 1 << 20);
    ck_assert_str_eq(timeline->entries[0]->event, "created");
    ck_assert_str_eq(timeline->entries[1]->event, "left out");
    last = timeline->entries[timeline->n_entries - 1];
    ck_assert_uint_eq(last->attempt->number, 4000);
    ck_assert_str_eq(last->attempt->executor_node, "executor-1");
    key.biz_id = "absent";
    ck_assert_int_eq(call("GetTimeline", &request.base, &timeline),
                     TOC_NOT_FOUND);
    stop();
}
END_TEST

static char *
id_text(uint8_t last)
{
    struct toc_task_id id = {{0}};
    char *text = toc_arena_alloc(&fx.arena, TOC_TASK_ID_TEXT_MAX);

    id.b[15] = last;
    return toc_task_id_format(id, text);
}

START_TEST(each_redrive_has_its_result)
{
    Toc__V1__RedriveDeadRequest request = TOC__V1__REDRIVE_DEAD_REQUEST__INIT;
    Toc__V1__RedriveDeadResponse *answer;
    char *ids[7];

    for (uint8_t i = 0; i < 3; i++)
        ids[i] = id_text(i);
    ids[3] = "not an id";
    ids[4] = id_text(9); /* the store goes away */
    ids[5] = id_text(0);
    ids[6] = "' OR 1=1";
    request.task_ids = ids;
    request.n_task_ids = 7;
    serve(1, 10);
    ck_assert_int_eq(call("RedriveDead", &request.base, &answer), TOC_OK);
    ck_assert_uint_eq(answer->n_results, 7);
    for (size_t i = 0; i < 7; i++)
        ck_assert_str_eq(answer->results[i]->task_id, ids[i]);
    ck_assert_ptr_null(answer->results[0]->error);
    ck_assert_int_eq(answer->results[1]->error->code, TOC_NOT_FOUND);
    ck_assert_int_eq(answer->results[2]->error->code, TOC_PRECONDITION);
    ck_assert_int_eq(answer->results[3]->error->code, TOC_INVALID);
    ck_assert_int_eq(answer->results[4]->error->code, TOC_UNAVAILABLE);
    ck_assert_int_eq(answer->results[5]->error->code, TOC_UNAVAILABLE);
    ck_assert_int_eq(answer->results[6]->error->code, TOC_INVALID);
    ck_assert_int_eq(atomic_load(&fx.calls), 4); /* not tried after that */
    request.n_task_ids = 0;
    ck_assert_int_eq(call("RedriveDead", &request.base, &answer), TOC_INVALID);
    stop();
}
END_TEST

START_TEST(shards_and_nodes)
{
    Toc__V1__ListShardsRequest shards = TOC__V1__LIST_SHARDS_REQUEST__INIT;
    Toc__V1__ListNodesRequest nodes = TOC__V1__LIST_NODES_REQUEST__INIT;
    Toc__V1__ListShardsResponse *s;
    Toc__V1__ListNodesResponse *n;

    serve(1, 10);
    ck_assert_int_eq(call("ListShards", &shards.base, &s), TOC_OK);
    ck_assert_uint_eq(s->n_shards, 256);
    ck_assert_str_eq(s->shards[1]->owner, "s2");
    ck_assert_str_eq(s->shards[2]->owner, "");
    ck_assert_str_eq(s->shards[2]->state, "OPEN");
    ck_assert_int_eq(call("ListNodes", &nodes.base, &n), TOC_OK);
    ck_assert_uint_eq(n->n_nodes, 2);
    ck_assert_str_eq(n->nodes[0]->name, "a1"); /* by role */
    ck_assert_uint_eq(n->nodes[1]->shards, 3);
    stop();
}
END_TEST

/* s2 owns the shard 1, and tells of 1 and of 2, which is not its own. */
START_TEST(a_scheduler_tells_what_it_cannot_read)
{
    Toc__V1__ListShardsRequest request = TOC__V1__LIST_SHARDS_REQUEST__INIT;
    Toc__V1__ListShardsResponse *answer;

    serve(1, 10);
    fx.load = 0.5;
    ck_assert_int_eq(call("ListShards", &request.base, &answer), TOC_OK);
    ck_assert(!answer->shards[1]->quarantined);
    request.with_quarantine = true;
    ck_assert_int_eq(call("ListShards", &request.base, &answer), TOC_OK);
    ck_assert(!answer->shards[0]->quarantined);
    ck_assert(answer->shards[1]->quarantined);
    ck_assert(!answer->shards[2]->quarantined);
    fx.load = 0; /* gone: the list is answered all the same */
    ck_assert_int_eq(call("ListShards", &request.base, &answer), TOC_OK);
    ck_assert(!answer->shards[1]->quarantined);
    stop();
}
END_TEST

START_TEST(a_scheduler_tells_its_load_when_asked)
{
    Toc__V1__ListNodesRequest nodes = TOC__V1__LIST_NODES_REQUEST__INIT;
    Toc__V1__ListNodesResponse *n;

    serve(1, 10);
    fx.load = 0.826;
    ck_assert_int_eq(call("ListNodes", &nodes.base, &n), TOC_OK);
    ck_assert_ptr_null(n->nodes[1]->load_percent);
    nodes.with_load = true;
    ck_assert_int_eq(call("ListNodes", &nodes.base, &n), TOC_OK);
    ck_assert_ptr_null(n->nodes[0]->load_percent); /* no scheduler */
    ck_assert_ptr_nonnull(n->nodes[1]->load_percent);
    ck_assert_uint_eq(n->nodes[1]->load_percent->value, 83);
    fx.load = 1e300; /* nonsense */
    ck_assert_int_eq(call("ListNodes", &nodes.base, &n), TOC_OK);
    ck_assert_ptr_null(n->nodes[1]->load_percent);
    fx.load = 0; /* gone: the list is answered all the same */
    ck_assert_int_eq(call("ListNodes", &nodes.base, &n), TOC_OK);
    ck_assert_uint_eq(n->n_nodes, 2);
    ck_assert_ptr_null(n->nodes[1]->load_percent);
    stop();
}
END_TEST

struct many {
    atomic_int done, refused, good;
};

static void
count(void *arg, const struct toc_rpc_result *result)
{
    struct many *many = arg;

    if (result->status == TOC_EXHAUSTED && result->details.len > 0)
        atomic_fetch_add(&many->refused, 1);
    if (result->status == TOC_OK)
        atomic_fetch_add(&many->good, 1);
    atomic_fetch_add(&many->done, 1);
}

static bool
all_busy(void *arg)
{
    (void)arg;
    return atomic_load(&fx.waiting) == 2;
}

static bool
refused_rest(void *arg)
{
    return atomic_load(&((struct many *)arg)->refused) == 5;
}

static bool
all_done(void *arg)
{
    return atomic_load(&((struct many *)arg)->done) == 10;
}

static void
start_some(struct many *many, int n)
{
    struct toc_rpc_request request = {
        .address = toc_rpc_server_address(fx.server),
        .method = "/toc.v1.AdminService/ListShards",
        .deadline = toc_mono_add_ms(toc_clock_mono(toc_clock_os()), TIMEOUT_MS),
        .wait_for_ready = true};

    for (int i = 0; i < n; i++)
        (void)toc_rpc_start(fx.client, &request, count, many);
}

START_TEST(too_many_calls_are_refused_at_once)
{
    static struct many many;

    serve(2, 3);
    pthread_mutex_lock(&fx.gate);
    start_some(&many, 2);
    ck_assert(toc_eventually(all_busy, NULL));
    start_some(&many, 8); /* 3 wait, 5 are refused while nothing moves */
    ck_assert(toc_eventually(refused_rest, &many));
    ck_assert_int_eq(atomic_load(&many.done), 5);
    pthread_mutex_unlock(&fx.gate);
    ck_assert(toc_eventually(all_done, &many));
    ck_assert_int_eq(atomic_load(&many.good), 5);
    stop();
}
END_TEST

static void
stop_service(void *arg)
{
    (void)arg;
    admin_service_stop(fx.service);
}

START_TEST(a_stop_answers_what_waits)
{
    static struct many many;
    struct toc_thread stopper = {.started = false};

    serve(2, 8);
    pthread_mutex_lock(&fx.gate);
    start_some(&many, 10);
    ck_assert(toc_eventually(all_busy, NULL));
    toc_thread_start(&stopper, "stopper", stop_service, NULL);
    pthread_mutex_unlock(&fx.gate);
    toc_thread_join(&stopper);
    ck_assert(toc_eventually(all_done, &many));
    stop();
}
END_TEST

TOC_CHECK_MAIN("admin_service", pages_are_bounded_in_bytes_and_lose_nothing,
               dead_letters_are_paged_too, scheduling_is_what_is_shown,
               tokens_of_another_filter_are_refused, backend_words_stay_inside,
               timelines_fit_too, each_redrive_has_its_result, shards_and_nodes,
               a_scheduler_tells_its_load_when_asked,
               a_scheduler_tells_what_it_cannot_read,
               too_many_calls_are_refused_at_once, a_stop_answers_what_waits)
