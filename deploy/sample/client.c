#include "deploy/sample/client.h"

#include "common/api/api.h"
#include "common/base/config.h"
#include "common/clock/os/clock_os.h"
#include "common/rpc/client.h"
#include "toc/sample/v1/shop.pb-c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS 10000
#define LADDER_MAX 32
#define USAGE 2

const char client_help[] =
    "toc-shop: a shop whose unpaid orders are closed by TOC\n\n"
    "  toc-shop                            serve\n"
    "  toc-shop order create ID ITEM N PAY_WITHIN [RETRY,RETRY...]\n"
    "  toc-shop order pay ID\n"
    "  toc-shop order get ID\n"
    "  toc-shop order list\n"
    "  toc-shop stock ITEM\n"
    "  toc-shop mode up|failing|hanging    how it answers TOC\n"
    "  toc-shop calls [ID]                 TOC's calls, with their lateness\n\n"
    "Times are written 1500ms, 5s, 30m, 2h. All but serving speaks to the shop "
    "at\nTOC_SHOP (host:port).";

struct client {
    struct toc_rpc_client *rpc;
    const char *address;
    struct toc_arena arena;
};

/* NULL: failed, and said so. */
static void *
ask(struct client *client, const char *method, const ProtobufCMessage *request)
{
    struct toc_error err = {0};
    ProtobufCMessage *reply;

    if (toc_rpc_call(client->rpc, client->address,
                     &toc__sample__v1__shop__descriptor, method, request,
                     CALL_MS, &client->arena, &reply, NULL, &err) == TOC_OK)
        return reply;
    fprintf(stderr, "toc-shop: %s\n", err.msg);
    return NULL;
}

/* "1500ms", "5s", "30m", "2h". */
static bool
parse_time(struct toc_str text, int64_t *ret_ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    size_t digits = 0;
    int64_t number;

    while (digits < text.len && text.ptr[digits] >= '0' &&
           text.ptr[digits] <= '9')
        digits++;
    if (!toc_parse_i64((struct toc_str){text.ptr, digits}, 0,
                       INT64_C(1000000000), &number))
        return false;
    text.ptr += digits;
    text.len -= digits;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (toc_str_eq(text, toc_str_of(units[i].unit))) {
            *ret_ms = number * units[i].ms;
            return true;
        }
    return false;
}

static char *
time_text(struct client *client, const Google__Protobuf__Timestamp *time)
{
    char *text = toc_arena_alloc(&client->arena, TOC_TIME_TEXT_MAX);
    int64_t ms;

    if (time == NULL || !toc_api_time_ms(time, &ms))
        return "-";
    return toc_time_format(text, ms);
}

static const char *
state_text(Toc__Sample__V1__OrderState state)
{
    static const char prefix[] = "ORDER_STATE_";
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(
        &toc__sample__v1__order_state__descriptor, (int)state);

    return value != NULL ? value->name + sizeof prefix - 1 : "?";
}

static int
print_orders(struct client *client, Toc__Sample__V1__Order *const *orders,
             size_t n)
{
    printf("%-20s %-18s %-10s %8s  %s\n", "ORDER", "STATE", "ITEM", "QUANTITY",
           "PAY BY");
    for (size_t i = 0; i < n; i++)
        printf("%-20s %-18s %-10s %8" PRIu32 "  %s\n", orders[i]->order_id,
               state_text(orders[i]->state), orders[i]->item,
               orders[i]->quantity, time_text(client, orders[i]->pay_by));
    return EXIT_SUCCESS;
}

static int
print_order(struct client *client, Toc__Sample__V1__Order *order)
{
    return order != NULL ? print_orders(client, &order, 1) : EXIT_FAILURE;
}

/* ---- commands ------------------------------------------------------- */

static int
bad_value(const char *what, const char *value)
{
    fprintf(stderr, "toc-shop: %s: \"%s\" is not valid\n", what, value);
    return USAGE;
}

static bool
read_ladder(struct client *client, const char *text,
            Toc__Sample__V1__CreateOrderRequest *request)
{
    struct toc_str rest = toc_str_of(text), part;
    int64_t ms;

    request->retry_ladder = toc_arena_calloc(&client->arena, LADDER_MAX,
                                             sizeof(request->retry_ladder[0]));
    while (toc_str_next(&rest, ',', &part)) {
        if (request->n_retry_ladder == LADDER_MAX || !parse_time(part, &ms))
            return false;
        request->retry_ladder[request->n_retry_ladder++] =
            toc_api_duration(&client->arena, ms);
    }
    return true;
}

/* ID ITEM N PAY_WITHIN [LADDER] */
static int
order_create(struct client *client, int argc, char **argv)
{
    Toc__Sample__V1__CreateOrderRequest request =
        TOC__SAMPLE__V1__CREATE_ORDER_REQUEST__INIT;
    int64_t quantity, within_ms;

    if (!toc_parse_i64(toc_str_of(argv[2]), 0, UINT32_MAX, &quantity))
        return bad_value("quantity", argv[2]);
    if (!parse_time(toc_str_of(argv[3]), &within_ms))
        return bad_value("time to pay", argv[3]);
    request.order_id = argv[0];
    request.item = argv[1];
    request.quantity = (uint32_t)quantity;
    request.pay_within = toc_api_duration(&client->arena, within_ms);
    if (argc == 5 && !read_ladder(client, argv[4], &request))
        return bad_value("retries", argv[4]);
    return print_order(client, ask(client, "CreateOrder", &request.base));
}

static int
order_pay(struct client *client, int argc, char **argv)
{
    Toc__Sample__V1__PayOrderRequest request =
        TOC__SAMPLE__V1__PAY_ORDER_REQUEST__INIT;
    const Toc__Sample__V1__PayOrderResponse *response;

    (void)argc;
    request.order_id = argv[0];
    response = ask(client, "PayOrder", &request.base);
    if (response == NULL || response->order == NULL)
        return EXIT_FAILURE;
    printf("%-20s %-18s %s\n", "ORDER", "STATE", "TIMEOUT");
    printf("%-20s %-18s %s\n", response->order->order_id,
           state_text(response->order->state), response->timeout);
    return EXIT_SUCCESS;
}

static int
order_get(struct client *client, int argc, char **argv)
{
    Toc__Sample__V1__GetOrderRequest request =
        TOC__SAMPLE__V1__GET_ORDER_REQUEST__INIT;

    (void)argc;
    request.order_id = argv[0];
    return print_order(client, ask(client, "GetOrder", &request.base));
}

static int
order_list(struct client *client, int argc, char **argv)
{
    Toc__Sample__V1__ListOrdersRequest request =
        TOC__SAMPLE__V1__LIST_ORDERS_REQUEST__INIT;
    const Toc__Sample__V1__ListOrdersResponse *response;

    (void)argc;
    (void)argv;
    response = ask(client, "ListOrders", &request.base);
    if (response == NULL)
        return EXIT_FAILURE;
    return print_orders(client, response->orders, response->n_orders);
}

static int
stock(struct client *client, int argc, char **argv)
{
    Toc__Sample__V1__GetStockRequest request =
        TOC__SAMPLE__V1__GET_STOCK_REQUEST__INIT;
    const Toc__Sample__V1__Stock *answer;

    (void)argc;
    request.item = argv[0];
    answer = ask(client, "GetStock", &request.base);
    if (answer == NULL)
        return EXIT_FAILURE;
    printf("%-10s %10s %10s %10s\n", "ITEM", "AVAILABLE", "RESERVED", "SOLD");
    printf("%-10s %10" PRIu32 " %10" PRIu32 " %10" PRIu32 "\n", answer->item,
           answer->available, answer->reserved, answer->sold);
    return EXIT_SUCCESS;
}

static int
mode(struct client *client, int argc, char **argv)
{
    static const char *const names[] = {"up", "failing", "hanging"};
    Toc__Sample__V1__SetModeRequest request =
        TOC__SAMPLE__V1__SET_MODE_REQUEST__INIT;

    (void)argc;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(argv[0], names[i]) == 0)
            request.mode = (Toc__Sample__V1__Mode)(i + 1);
    if (request.mode == TOC__SAMPLE__V1__MODE__MODE_UNSPECIFIED)
        return bad_value("mode", argv[0]);
    if (ask(client, "SetMode", &request.base) == NULL)
        return EXIT_FAILURE;
    printf("the shop is %s\n", argv[0]);
    return EXIT_SUCCESS;
}

static int
calls(struct client *client, int argc, char **argv)
{
    Toc__Sample__V1__ListCallsRequest request =
        TOC__SAMPLE__V1__LIST_CALLS_REQUEST__INIT;
    const Toc__Sample__V1__ListCallsResponse *response;

    if (argc > 0)
        request.order_id = argv[0];
    response = ask(client, "ListCalls", &request.base);
    if (response == NULL)
        return EXIT_FAILURE;
    printf("%-20s %-30s %7s  %-24s  %-24s %8s  %s\n", "ORDER", "FIRE",
           "ATTEMPT", "DUE", "ARRIVED", "LATE MS", "ANSWER");
    for (size_t i = 0; i < response->n_calls; i++) {
        const Toc__Sample__V1__Call *call = response->calls[i];
        printf("%-20s %-30s %7" PRIu32 "  %-24s  %-24s %8" PRId64 "  %s\n",
               call->order_id, call->fire_id, call->attempt,
               time_text(client, call->due_time),
               time_text(client, call->arrive_time), call->lateness_ms,
               call->answer);
    }
    return EXIT_SUCCESS;
}

/* ---- choosing one --------------------------------------------------- */

struct command {
    const char *words[2];
    int args_min, args_max;
    int (*run)(struct client *client, int argc, char **argv);
};

static const struct command commands[] = {
    {{"order", "create"}, 4, 5, order_create},
    {{"order", "pay"}, 1, 1, order_pay},
    {{"order", "get"}, 1, 1, order_get},
    {{"order", "list"}, 0, 0, order_list},
    {{"stock", NULL}, 1, 1, stock},
    {{"mode", NULL}, 1, 1, mode},
    {{"calls", NULL}, 0, 1, calls},
};

/* NULL: no such command with so many arguments. */
static const struct command *
find_command(int argc, char **argv, int *ret_words)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const struct command *command = &commands[i];
        int words = command->words[1] != NULL ? 2 : 1;
        if (argc < words || strcmp(argv[0], command->words[0]) != 0 ||
            (words == 2 && strcmp(argv[1], command->words[1]) != 0))
            continue;
        *ret_words = words;
        if (argc - words >= command->args_min &&
            argc - words <= command->args_max)
            return command;
    }
    return NULL;
}

int
client_main(int argc, char **argv)
{
    struct client client = {.address = toc_env("TOC_SHOP")};
    const struct command *command;
    int words, rc;

    command = find_command(argc, argv, &words);
    if (command == NULL) {
        bool help = strcmp(argv[0], "help") == 0;
        fprintf(help ? stdout : stderr, "%s\n", client_help);
        return help ? EXIT_SUCCESS : USAGE;
    }
    if (client.address == NULL || client.address[0] == '\0') {
        fprintf(stderr, "toc-shop: TOC_SHOP is not set: where is the shop?\n");
        return USAGE;
    }
    client.rpc = toc_rpc_client_new(
        &(struct toc_rpc_client_options){.clock = toc_clock_os()});
    rc = command->run(&client, argc - words, argv + words);
    toc_rpc_client_free(client.rpc);
    toc_arena_done(&client.arena);
    return rc;
}
