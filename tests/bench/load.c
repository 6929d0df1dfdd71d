#include "tests/bench/load.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/thread.h"
#include "common/clock/os/clock_os.h"
#include "common/rpc/client.h"
#include "toc/v1/timeout.pb-c.h"

#include <pthread.h>
#include <string.h>

#define CALL_MS 30000
#define TRIES_MAX 200
#define SAMPLES_MAX 4000000
#define TICK_MS 1

/* A task as it is sent. */
struct item {
    Toc__V1__SubmitRequest request;
    Toc__V1__TaskKey key;
    Google__Protobuf__Timestamp due;
    char biz_id[LEDGER_BIZ_ID_MAX];
};

struct caller {
    struct load *load;
    struct item *items;
    Toc__V1__SubmitRequest **requests; /* to the items */
    size_t first, n;                   /* tasks of the call under way */
    unsigned tries;
    size_t address;
    int64_t begun_ns;
    struct toc_buf bytes;
    struct toc_arena arena; /* for answers */
    struct caller *next_idle;
};

struct load {
    const struct load_plan *plan;
    struct load_result *result;
    struct toc_rpc_client *client;
    Toc__V1__Target target;
    char url[300];
    uint8_t *payload;
    atomic_size_t next; /* task */
    atomic_size_t turn; /* scheduler */
    atomic_size_t acked, failed, retried;
    int64_t stop_ns;
    pthread_mutex_t lock; /* guards what follows, and result->error */
    struct caller *idle;
    size_t busy;
    struct toc_bell all_idle;
};

static int64_t
mono_ns(void)
{
    return toc_clock_mono(toc_clock_os()).ns;
}

/* ---- one call ------------------------------------------------------- */

static void
fill_item(struct load *load, struct item *item, size_t index)
{
    const struct load_plan *plan = load->plan;
    int64_t due_ms =
        plan->due(plan->arg, index, toc_clock_wall(toc_clock_os()).ms);

    toc__v1__submit_request__init(&item->request);
    toc__v1__task_key__init(&item->key);
    google__protobuf__timestamp__init(&item->due);
    ledger_biz_id(plan->ledger, index, item->biz_id);
    item->key.biz_type = LEDGER_BIZ_TYPE;
    item->key.biz_id = item->biz_id;
    item->due.seconds = due_ms / 1000;
    item->due.nanos = (int32_t)(due_ms % 1000) * 1000000;
    item->request.key = &item->key;
    item->request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_DUE_TIME;
    item->request.due_time = &item->due;
    item->request.target = &load->target;
    item->request.payload.data = load->payload;
    item->request.payload.len = plan->payload;
    if (index < plan->ledger->n)
        plan->ledger->entries[index].due_ms = due_ms;
}

static void
fill_call(struct caller *caller, size_t first, size_t n)
{
    struct load *load = caller->load;
    Toc__V1__BatchSubmitRequest batch = TOC__V1__BATCH_SUBMIT_REQUEST__INIT;

    caller->first = first;
    caller->n = n;
    caller->tries = 0;
    caller->address = atomic_fetch_add(&load->turn, 1);
    for (size_t i = 0; i < n; i++)
        fill_item(load, &caller->items[i], first + i);
    toc_buf_reset(&caller->bytes);
    batch.n_items = n;
    batch.items = caller->requests;
    toc_rpc_pack(load->plan->batch > 0 ? &batch.base
                                       : &caller->items[0].request.base,
                 &caller->bytes);
}

static void on_done(void *arg, const struct toc_rpc_result *result);

static void
send_call(struct caller *caller)
{
    struct load *load = caller->load;
    const struct load_plan *plan = load->plan;
    const char *address =
        plan->address != NULL && caller->tries == 0
            ? plan->address(plan->arg, caller->first)
            : plan->schedulers[caller->address % plan->n_schedulers];

    toc_rpc_start(load->client,
                  &(struct toc_rpc_request){
                      .address = address,
                      .method = plan->batch > 0
                                    ? "/toc.v1.TimeoutService/BatchSubmit"
                                    : "/toc.v1.TimeoutService/Submit",
                      .bytes = toc_buf_view(&caller->bytes),
                      .deadline = {mono_ns() + CALL_MS * TOC_NS_PER_MS}},
                  on_done, caller);
}

static void
note_error(struct load *load, struct toc_str message)
{
    pthread_mutex_lock(&load->lock);
    toc_copy(load->result->error, sizeof load->result->error, message);
    pthread_mutex_unlock(&load->lock);
}

static void
mark_acked(struct load *load, size_t index)
{
    struct ledger *ledger = load->plan->ledger;

    atomic_fetch_add(&load->acked, 1);
    if (index < ledger->n &&
        !atomic_exchange(&ledger->entries[index].acked, true))
        atomic_fetch_add(&ledger->acked, 1);
}

/* Each item of a batch has its own answer. */
static void
take_batch(struct caller *caller, struct toc_str reply)
{
    struct load *load = caller->load;
    const Toc__V1__BatchSubmitResponse *response;

    toc_arena_reset(&caller->arena);
    response = toc_rpc_unpack(&toc__v1__batch_submit_response__descriptor,
                              reply, &caller->arena);
    if (response == NULL || response->n_results != caller->n) {
        note_error(load, TOC_STR("an answer that is not understood"));
        atomic_fetch_add(&load->failed, caller->n);
        return;
    }
    for (size_t i = 0; i < caller->n; i++) {
        if (response->results[i]->response != NULL) {
            mark_acked(load, caller->first + i);
            continue;
        }
        atomic_fetch_add(&load->failed, 1);
        if (response->results[i]->error != NULL)
            note_error(load, toc_str_of(response->results[i]->error->message));
    }
}

/* The next tasks of a closed loop; false: there are no more. */
static bool
next_call(struct caller *caller)
{
    struct load *load = caller->load;
    const struct load_plan *plan = load->plan;
    size_t n = plan->batch > 0 ? plan->batch : 1, first;

    if (plan->rate > 0 || mono_ns() >= load->stop_ns)
        return false;
    first = atomic_fetch_add(&load->next, n);
    if (first >= plan->end)
        return false;
    fill_call(caller, first, plan->end - first < n ? plan->end - first : n);
    return true;
}

static void
now_idle(struct caller *caller)
{
    struct load *load = caller->load;

    pthread_mutex_lock(&load->lock);
    caller->next_idle = load->idle;
    load->idle = caller;
    if (--load->busy == 0)
        toc_bell_ring(&load->all_idle);
    pthread_mutex_unlock(&load->lock);
}

static void
on_done(void *arg, const struct toc_rpc_result *result)
{
    struct caller *caller = arg;
    struct load *load = caller->load;

    if (result->status == TOC_OK) {
        samples_add(&load->result->latency,
                    (mono_ns() - caller->begun_ns) / 1000);
        if (load->plan->batch > 0)
            take_batch(caller, result->reply);
        else
            mark_acked(load, caller->first);
    } else if (toc_status_retryable(result->status) &&
               ++caller->tries < TRIES_MAX) {
        /* The same again, to another scheduler: safe, by the key. */
        note_error(load, result->message);
        atomic_fetch_add(&load->retried, 1);
        caller->address++;
        send_call(caller);
        return;
    } else {
        note_error(load, result->message);
        atomic_fetch_add(&load->failed, caller->n);
    }
    if (!next_call(caller)) {
        now_idle(caller);
        return;
    }
    caller->begun_ns = mono_ns();
    send_call(caller);
}

/* ---- all of them ---------------------------------------------------- */

static struct caller *
take_idle(struct load *load)
{
    struct caller *caller;

    pthread_mutex_lock(&load->lock);
    caller = load->idle;
    if (caller != NULL) {
        load->idle = caller->next_idle;
        load->busy++;
    }
    pthread_mutex_unlock(&load->lock);
    return caller;
}

static void
run_closed(struct load *load)
{
    struct caller *caller;

    for (size_t i = 0; i < load->plan->callers; i++) {
        caller = take_idle(load);
        if (!next_call(caller)) {
            now_idle(caller);
            break;
        }
        caller->begun_ns = mono_ns();
        send_call(caller);
    }
}

/* Every tick sends what the rate asks for by then. When no caller is idle the
 * tasks wait for one: the load falls behind rather than being dropped. */
static void
run_paced(struct load *load)
{
    const struct load_plan *plan = load->plan;
    size_t most = plan->batch > 0 ? plan->batch : 1, next = plan->first;
    int64_t begun = mono_ns();
    struct caller *caller;

    while (next < plan->end) {
        double elapsed = (double)(mono_ns() - begun) / 1e9;
        size_t want = plan->first + (size_t)(elapsed * (double)plan->rate);
        want = want < plan->end ? want : plan->end;
        while (next < want && (caller = take_idle(load)) != NULL) {
            size_t n = want - next < most ? want - next : most;
            fill_call(caller, next, n);
            next += n;
            caller->begun_ns = mono_ns();
            send_call(caller);
        }
        toc_clock_os_sleep_until(
            toc_mono_add_ms(toc_clock_mono(toc_clock_os()), TICK_MS));
    }
    atomic_store(&load->next, next);
}

static void
make_callers(struct load *load)
{
    const struct load_plan *plan = load->plan;
    size_t n = plan->batch > 0 ? plan->batch : 1;

    for (size_t i = 0; i < plan->callers; i++) {
        struct caller *caller = TOC_NEW(struct caller);
        caller->load = load;
        caller->items = TOC_NEW_ARRAY(struct item, n);
        caller->requests = TOC_NEW_ARRAY(Toc__V1__SubmitRequest *, n);
        for (size_t k = 0; k < n; k++)
            caller->requests[k] = &caller->items[k].request;
        caller->next_idle = load->idle;
        load->idle = caller;
    }
}

static void
free_callers(struct load *load)
{
    struct caller *caller;

    while ((caller = load->idle) != NULL) {
        load->idle = caller->next_idle;
        toc_free(caller->items);
        toc_free(caller->requests);
        toc_buf_done(&caller->bytes);
        toc_arena_done(&caller->arena);
        toc_free(caller);
    }
}

static void
load_init(struct load *load, const struct load_plan *plan,
          struct load_result *result)
{
    memset(load, 0, sizeof *load);
    load->plan = plan;
    load->result = result;
    load->client = toc_rpc_client_new(
        &(struct toc_rpc_client_options){.clock = toc_clock_os()});
    toc__v1__target__init(&load->target);
    toc_format(load->url, sizeof load->url, "grpc://%s",
               ledger_address(plan->ledger));
    load->target.url = load->url;
    load->target.batch_max = plan->target_batch;
    load->payload = toc_calloc(1, plan->payload + 1);
    memset(load->payload, 'x', plan->payload);
    atomic_store(&load->next, plan->first);
    load->stop_ns = plan->seconds > 0
                        ? mono_ns() + plan->seconds * 1000 * TOC_NS_PER_MS
                        : INT64_MAX;
    pthread_mutex_init(&load->lock, NULL);
    toc_bell_init(&load->all_idle);
    make_callers(load);
}

void
load_run(const struct load_plan *plan, struct load_result *ret_result)
{
    struct load load;
    int64_t begun;

    memset(ret_result, 0, sizeof *ret_result);
    samples_init(&ret_result->latency, SAMPLES_MAX);
    load_init(&load, plan, ret_result);
    begun = mono_ns();
    load.busy = 1; /* ours, so that it does not ring before all have begun */
    if (plan->rate > 0)
        run_paced(&load);
    else
        run_closed(&load);
    pthread_mutex_lock(&load.lock);
    if (--load.busy == 0)
        toc_bell_ring(&load.all_idle);
    pthread_mutex_unlock(&load.lock);
    toc_bell_wait(&load.all_idle, TOC_BELL_FOREVER);
    ret_result->seconds = (double)(mono_ns() - begun) / 1e9;
    ret_result->acked = atomic_load(&load.acked);
    ret_result->failed = atomic_load(&load.failed);
    ret_result->retried = atomic_load(&load.retried);
    ret_result->sent = ret_result->acked + ret_result->failed;
    toc_rpc_client_free(load.client);
    free_callers(&load);
    toc_bell_done(&load.all_idle);
    pthread_mutex_destroy(&load.lock);
    toc_free(load.payload);
}
