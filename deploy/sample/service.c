#include "deploy/sample/service.h"

#include "common/api/api.h"
#include "common/app/settings.h"
#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/clock/os/clock_os.h"
#include "common/handler/handler.h"
#include "common/rpc/client.h"
#include "deploy/sample/shop.h"
#include "toc/sample/v1/shop.pb-c.h"
#include "toc/v1/timeout.pb-c.h"

#include <string.h>

#define SCHEDULERS_MAX 16
#define CALL_MS 2000  /* for TOC to answer in */
#define GRACE_MS 2000 /* for calls under way when stopping */
#define WORKERS 16

struct service {
    struct shop *shop;
    struct toc_handler *handler; /* the gRPC server */
    struct toc_rpc_client *client;
    char *advertise;
    char *schedulers[SCHEDULERS_MAX];
    size_t n_schedulers;
};

/* ---- what the shop asks of TOC -------------------------------------- */

/* Any scheduler will do. Asking twice does no harm: Submit and Cancel name the
 * task by its key, and answer the second time as they did the first. */
static enum toc_status
ask_toc(struct service *service, const char *method,
        const ProtobufCMessage *request, struct toc_arena *arena,
        ProtobufCMessage **ret_reply, struct toc_error *reterr)
{
    enum toc_status st = TOC_UNAVAILABLE;

    for (size_t i = 0; i < service->n_schedulers; i++) {
        st = toc_rpc_call(service->client, service->schedulers[i],
                          &toc__v1__timeout_service__descriptor, method,
                          request, CALL_MS, arena, ret_reply, NULL, reterr);
        if (st != TOC_UNAVAILABLE && st != TOC_DEADLINE)
            break;
    }
    return st;
}

static void
key_of(const struct shop_order *order, Toc__V1__TaskKey *ret_key)
{
    toc__v1__task_key__init(ret_key);
    ret_key->biz_type = "order";
    ret_key->biz_id = (char *)order->id;
    ret_key->name = "pay";
}

/* "If this order is not paid by then, call me." */
static enum toc_status
submit_timeout(struct service *service, const struct shop_order *order,
               const Toc__Sample__V1__CreateOrderRequest *create,
               struct toc_arena *arena, struct toc_error *reterr)
{
    Toc__V1__SubmitRequest request = TOC__V1__SUBMIT_REQUEST__INIT;
    Toc__V1__Target target = TOC__V1__TARGET__INIT;
    Toc__V1__RetryPolicy policy = TOC__V1__RETRY_POLICY__INIT;
    Google__Protobuf__UInt32Value retries =
        GOOGLE__PROTOBUF__UINT32_VALUE__INIT;
    Toc__V1__TaskKey key;
    ProtobufCMessage *reply;

    key_of(order, &key);
    request.key = &key;
    request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_DUE_TIME;
    request.due_time = toc_api_time(arena, order->pay_by_ms);
    request.target = &target;
    target.url = toc_arena_printf(arena, "grpc://%s",
                                  service->advertise[0] != '\0'
                                      ? service->advertise
                                      : toc_handler_address(service->handler));
    if (create->n_retry_ladder > 0) {
        request.retry_policy = &policy;
        policy.n_ladder = create->n_retry_ladder;
        policy.ladder = create->retry_ladder;
        policy.max_retries = &retries;
        retries.value = (uint32_t)create->n_retry_ladder;
    }
    return ask_toc(service, "Submit", &request.base, arena, &reply, reterr);
}

/* "It is paid: do not call." */
static const char *
cancel_timeout(struct service *service, const struct shop_order *order,
               struct toc_arena *arena)
{
    Toc__V1__CancelRequest request = TOC__V1__CANCEL_REQUEST__INIT;
    const Toc__V1__CancelResponse *response;
    Toc__V1__TaskKey key;
    ProtobufCMessage *reply;
    enum toc_status st;

    key_of(order, &key);
    request.which_case = TOC__V1__CANCEL_REQUEST__WHICH_KEY;
    request.key = &key;
    request.reason = "paid";
    st = ask_toc(service, "Cancel", &request.base, arena, &reply, NULL);
    if (st == TOC_NOT_FOUND)
        return "ENDED";
    if (st != TOC_OK)
        return "UNKNOWN";
    response = (const Toc__V1__CancelResponse *)reply;
    if (response->n_results != 1)
        return "UNKNOWN";
    if (response->results[0]->outcome == TOC__V1__OUTCOME__OUTCOME_TOO_LATE)
        return "TOO_LATE";
    if (response->results[0]->outcome == TOC__V1__OUTCOME__OUTCOME_ENDED)
        return "ENDED";
    return "CANCELLED";
}

/* What TOC asks of the shop. */
static void
on_timeout(void *self, const struct toc_timeout *timeout,
           struct toc_timeout_answer *answer)
{
    struct service *service = self;

    shop_on_timeout(service->shop, service->handler, timeout, answer);
}

/* ---- the shop's own API --------------------------------------------- */

static Toc__Sample__V1__Order *
order_message(struct toc_arena *arena, const struct shop_order *order)
{
    static const Toc__Sample__V1__OrderState states[] = {
        [SHOP_CREATED] = TOC__SAMPLE__V1__ORDER_STATE__ORDER_STATE_CREATED,
        [SHOP_PAID] = TOC__SAMPLE__V1__ORDER_STATE__ORDER_STATE_PAID,
        [SHOP_TIMEOUT_CANCELLED] =
            TOC__SAMPLE__V1__ORDER_STATE__ORDER_STATE_TIMEOUT_CANCELLED,
    };
    Toc__Sample__V1__Order *message = toc_arena_alloc(arena, sizeof *message);

    toc__sample__v1__order__init(message);
    message->order_id = toc_arena_text(arena, toc_str_of(order->id));
    message->item = toc_arena_text(arena, toc_str_of(order->item));
    message->quantity = order->quantity;
    message->state = states[order->state];
    message->pay_by = toc_api_time(arena, order->pay_by_ms);
    message->closed_by = toc_arena_text(arena, toc_str_of(order->closed_by));
    return message;
}

static void
reply_or_fail(struct toc_rpc_call *call, enum toc_status st,
              const struct toc_error *err, const ProtobufCMessage *reply)
{
    if (st == TOC_OK)
        toc_rpc_reply(call, reply);
    else
        toc_rpc_fail_text(call, st, "%s", err->msg);
}

/* False when the call has been answered with what is wrong. */
static bool
read_order(const Toc__Sample__V1__CreateOrderRequest *request,
           struct toc_rpc_call *call, struct shop_order *ret_order)
{
    struct toc_rpc_failure failure;
    int64_t within_ms = 0;

    toc_rpc_failure_init(&failure, toc_rpc_call_arena(call));
    if (request->order_id[0] == '\0' ||
        strlen(request->order_id) > SHOP_ORDER_ID_MAX)
        toc_rpc_violate(&failure, "order_id", "must have 1 to %d bytes",
                        SHOP_ORDER_ID_MAX);
    if (request->item[0] == '\0' || strlen(request->item) > SHOP_ITEM_MAX)
        toc_rpc_violate(&failure, "item", "must have 1 to %d bytes",
                        SHOP_ITEM_MAX);
    if (request->quantity == 0 || request->quantity > SHOP_QUANTITY_MAX)
        toc_rpc_violate(&failure, "quantity", "must be 1 to %d",
                        SHOP_QUANTITY_MAX);
    if (request->pay_within == NULL ||
        !toc_api_duration_ms(request->pay_within, &within_ms) || within_ms <= 0)
        toc_rpc_violate(&failure, "pay_within", "must be over 0");
    if (failure.status != TOC_OK) {
        toc_rpc_fail(call, &failure);
        return false;
    }
    *ret_order = (struct shop_order){
        .quantity = request->quantity,
        .pay_by_ms = toc_clock_wall(toc_clock_os()).ms + within_ms,
    };
    toc_copy(ret_order->id, sizeof ret_order->id,
             toc_str_of(request->order_id));
    toc_copy(ret_order->item, sizeof ret_order->item,
             toc_str_of(request->item));
    return true;
}

/*
 * First the order, then its timeout; without a timeout there is no order. A
 * crash in between would leave an order that is never closed: a shop with a
 * database writes the wish for a timeout there too, in the order's transaction.
 */
static void
create_order(struct service *service,
             const Toc__Sample__V1__CreateOrderRequest *request,
             struct toc_rpc_call *call)
{
    struct toc_arena *arena = toc_rpc_call_arena(call);
    struct toc_error err = {0};
    struct shop_order wanted, order = {0};
    enum toc_status st;

    if (!read_order(request, call, &wanted))
        return;
    st = shop_create(service->shop, &wanted, &order, &err);
    if (st == TOC_OK && !order.has_timeout) {
        st = submit_timeout(service, &order, request, arena, &err);
        if (!shop_timeout_set(service->shop, order.id, st == TOC_OK) &&
            st == TOC_OK)
            st = toc_error_set(&err, TOC_UNAVAILABLE, "shop", 0,
                               "another request for this order has failed");
    }
    reply_or_fail(call, st, &err, &order_message(arena, &order)->base);
}

static void
pay_order(struct service *service, const char *order_id,
          struct toc_rpc_call *call)
{
    Toc__Sample__V1__PayOrderResponse response =
        TOC__SAMPLE__V1__PAY_ORDER_RESPONSE__INIT;
    struct toc_arena *arena = toc_rpc_call_arena(call);
    struct toc_error err = {0};
    struct shop_order order;
    enum toc_status st = shop_pay(service->shop, order_id, &order, &err);

    if (st == TOC_OK) {
        response.order = order_message(arena, &order);
        response.timeout = (char *)cancel_timeout(service, &order, arena);
    }
    reply_or_fail(call, st, &err, &response.base);
}

static void
get_order(struct service *service, const char *order_id,
          struct toc_rpc_call *call)
{
    struct toc_arena *arena = toc_rpc_call_arena(call);
    struct toc_error err = {0};
    struct shop_order order = {0};
    enum toc_status st = shop_get(service->shop, order_id, &order, &err);

    reply_or_fail(call, st, &err, &order_message(arena, &order)->base);
}

static void
list_orders(struct service *service, struct toc_rpc_call *call)
{
    Toc__Sample__V1__ListOrdersResponse response =
        TOC__SAMPLE__V1__LIST_ORDERS_RESPONSE__INIT;
    struct toc_arena *arena = toc_rpc_call_arena(call);
    size_t n;
    struct shop_order *orders = shop_list(service->shop, &n);

    response.orders = toc_arena_calloc(arena, n, sizeof(response.orders[0]));
    for (size_t i = 0; i < n; i++)
        response.orders[response.n_orders++] = order_message(arena, &orders[i]);
    toc_free(orders);
    toc_rpc_reply(call, &response.base);
}

static void
get_stock(struct service *service, const char *item, struct toc_rpc_call *call)
{
    Toc__Sample__V1__Stock message = TOC__SAMPLE__V1__STOCK__INIT;
    struct shop_stock stock;

    shop_stock(service->shop, item, &stock);
    message.item = stock.item;
    message.available = stock.available;
    message.reserved = stock.reserved;
    message.sold = stock.sold;
    toc_rpc_reply(call, &message.base);
}

static void
set_mode(struct service *service,
         const Toc__Sample__V1__SetModeRequest *request,
         struct toc_rpc_call *call)
{
    Toc__Sample__V1__SetModeResponse response =
        TOC__SAMPLE__V1__SET_MODE_RESPONSE__INIT;

    if (request->mode < TOC__SAMPLE__V1__MODE__MODE_UP ||
        request->mode > TOC__SAMPLE__V1__MODE__MODE_HANGING) {
        toc_rpc_fail_text(call, TOC_INVALID, "mode: must be given");
        return;
    }
    shop_set_mode(service->shop,
                  request->mode == TOC__SAMPLE__V1__MODE__MODE_UP ? SHOP_UP
                  : request->mode == TOC__SAMPLE__V1__MODE__MODE_FAILING
                      ? SHOP_FAILING
                      : SHOP_HANGING);
    toc_rpc_reply(call, &response.base);
}

static Toc__Sample__V1__Call *
call_message(struct toc_arena *arena, const struct shop_call *call)
{
    Toc__Sample__V1__Call *message = toc_arena_alloc(arena, sizeof *message);

    toc__sample__v1__call__init(message);
    message->order_id = toc_arena_text(arena, toc_str_of(call->order_id));
    message->fire_id = toc_arena_text(arena, toc_str_of(call->fire_id));
    message->attempt = call->attempt;
    message->due_time = toc_api_time(arena, call->due_ms);
    message->arrive_time = toc_api_time(arena, call->arrived_ms);
    message->lateness_ms = call->arrived_ms - call->due_ms;
    message->answer = toc_arena_text(arena, toc_str_of(call->answer));
    return message;
}

static void
list_calls(struct service *service, const char *order_id,
           struct toc_rpc_call *call)
{
    Toc__Sample__V1__ListCallsResponse response =
        TOC__SAMPLE__V1__LIST_CALLS_RESPONSE__INIT;
    struct toc_arena *arena = toc_rpc_call_arena(call);
    size_t n;
    struct shop_call *calls = shop_calls(service->shop, &n);

    response.calls = toc_arena_calloc(arena, n, sizeof(response.calls[0]));
    for (size_t i = 0; i < n; i++)
        if (order_id[0] == '\0' || strcmp(order_id, calls[i].order_id) == 0)
            response.calls[response.n_calls++] = call_message(arena, &calls[i]);
    toc_free(calls);
    toc_rpc_reply(call, &response.base);
}

/* In the order in which shop.proto lists them. */
enum { CREATE, PAY, GET, LIST, STOCK, SET_MODE, LIST_CALLS };

static void
on_call(void *self, unsigned method, const ProtobufCMessage *request,
        struct toc_rpc_call *call)
{
    const void *message = request;

    switch (method) {
    case CREATE:
        create_order(self, message, call);
        break;
    case PAY:
        pay_order(self,
                  ((const Toc__Sample__V1__PayOrderRequest *)message)->order_id,
                  call);
        break;
    case GET:
        get_order(self,
                  ((const Toc__Sample__V1__GetOrderRequest *)message)->order_id,
                  call);
        break;
    case LIST:
        list_orders(self, call);
        break;
    case STOCK:
        get_stock(self,
                  ((const Toc__Sample__V1__GetStockRequest *)message)->item,
                  call);
        break;
    case SET_MODE:
        set_mode(self, message, call);
        break;
    case LIST_CALLS:
        list_calls(
            self,
            ((const Toc__Sample__V1__ListCallsRequest *)message)->order_id,
            call);
        break;
    default:
        TOC_ASSERT(false && "shop.proto has a method that is not served");
    }
}

/* ---- start and stop ------------------------------------------------- */

static enum toc_status
read_schedulers(struct service *service, const char *text,
                struct toc_error *reterr)
{
    struct toc_str items[SCHEDULERS_MAX];
    size_t n;

    if (!toc_list_split(toc_str_of(text), items, SCHEDULERS_MAX, &n) || n == 0)
        return toc_error_set(reterr, TOC_INVALID, "shop", 0,
                             "scheduler: 1 to %d of host:port, with commas",
                             SCHEDULERS_MAX);
    for (size_t i = 0; i < n; i++)
        service->schedulers[i] = toc_strndup(items[i].ptr, items[i].len);
    service->n_schedulers = n;
    return TOC_OK;
}

void
service_stop(struct service *service)
{
    if (service == NULL)
        return;
    toc_handler_stop(service->handler, GRACE_MS);
    toc_rpc_client_free(service->client);
    for (size_t i = 0; i < service->n_schedulers; i++)
        toc_free(service->schedulers[i]);
    shop_free(service->shop);
    toc_free(service->advertise);
    toc_free(service);
}

enum toc_status
service_start(const struct service_options *options,
              struct service **ret_service, struct toc_error *reterr)
{
    struct service *service = TOC_NEW(struct service);
    const struct toc_handler_service api = {
        .service = &toc__sample__v1__shop__descriptor,
        .handler = on_call,
        .self = service,
    };
    const struct toc_handler_options handler_options = {
        .listen = options->listen,
        .on_timeout = on_timeout,
        .self = service,
        .threads = WORKERS,
        .services = &api,
        .n_services = 1,
    };
    enum toc_status st;

    service->shop = shop_new();
    service->advertise = toc_strdup(options->advertise);
    service->client = toc_rpc_client_new(
        &(struct toc_rpc_client_options){.clock = toc_clock_os()});
    st = read_schedulers(service, options->schedulers, reterr);
    if (st == TOC_OK)
        st = toc_handler_start(&handler_options, &service->handler, reterr);
    if (st != TOC_OK) {
        service_stop(service);
        return st;
    }
    *ret_service = service;
    return TOC_OK;
}

const char *
service_address(const struct service *service)
{
    return toc_handler_address(service->handler);
}
