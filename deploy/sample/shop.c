#include "deploy/sample/shop.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/clock/os/clock_os.h"

#include <pthread.h>
#include <string.h>

#define HANG_LOOK_MS 20

struct shop {
    pthread_mutex_t lock; /* guards all that follows */
    enum shop_mode mode;
    struct shop_order *orders;
    size_t n_orders;
    struct shop_stock *items;
    size_t n_items;
    struct shop_call *calls; /* a ring; the n-th call is at n % max */
    size_t n_calls;
};

struct shop *
shop_new(void)
{
    struct shop *shop = TOC_NEW(struct shop);

    TOC_ASSERT(pthread_mutex_init(&shop->lock, NULL) == 0);
    shop->orders = TOC_NEW_ARRAY(struct shop_order, SHOP_ORDERS_MAX);
    shop->items = TOC_NEW_ARRAY(struct shop_stock, SHOP_ITEMS_MAX);
    shop->calls = TOC_NEW_ARRAY(struct shop_call, SHOP_CALLS_MAX);
    return shop;
}

void
shop_free(struct shop *shop)
{
    if (shop == NULL)
        return;
    pthread_mutex_destroy(&shop->lock);
    toc_free(shop->orders);
    toc_free(shop->items);
    toc_free(shop->calls);
    toc_free(shop);
}

/* ---- under the lock ------------------------------------------------- */

static struct shop_order *
find_order(struct shop *shop, struct toc_str id)
{
    for (size_t i = 0; i < shop->n_orders; i++)
        if (toc_str_eq(toc_str_of(shop->orders[i].id), id))
            return &shop->orders[i];
    return NULL;
}

static struct shop_stock *
find_item(struct shop *shop, const char *item)
{
    for (size_t i = 0; i < shop->n_items; i++)
        if (strcmp(shop->items[i].item, item) == 0)
            return &shop->items[i];
    return NULL;
}

/* NULL: there are too many. */
static struct shop_stock *
find_or_add_item(struct shop *shop, const char *item)
{
    struct shop_stock *stock = find_item(shop, item);

    if (stock != NULL || shop->n_items == SHOP_ITEMS_MAX)
        return stock;
    stock = &shop->items[shop->n_items++];
    toc_copy(stock->item, sizeof stock->item, toc_str_of(item));
    stock->available = SHOP_STOCK;
    return stock;
}

/* The order's pieces are no longer reserved. */
static void
release(struct shop *shop, const struct shop_order *order, bool sold)
{
    struct shop_stock *stock = find_item(shop, order->item);

    stock->reserved -= order->quantity;
    if (sold)
        stock->sold += order->quantity;
    else
        stock->available += order->quantity;
}

static enum toc_status
add_order(struct shop *shop, const struct shop_order *wanted,
          struct toc_error *reterr)
{
    struct shop_stock *stock = find_or_add_item(shop, wanted->item);

    if (stock == NULL || shop->n_orders == SHOP_ORDERS_MAX)
        return toc_error_set(reterr, TOC_EXHAUSTED, "shop", 0,
                             "too many orders or items");
    if (stock->available < wanted->quantity)
        return toc_error_set(reterr, TOC_PRECONDITION, "shop", 0,
                             "only %u of %s are left", stock->available,
                             wanted->item);
    stock->available -= wanted->quantity;
    stock->reserved += wanted->quantity;
    shop->orders[shop->n_orders++] = *wanted;
    return TOC_OK;
}

/* ---- orders --------------------------------------------------------- */

enum toc_status
shop_create(struct shop *shop, const struct shop_order *wanted,
            struct shop_order *ret_order, struct toc_error *reterr)
{
    enum toc_status st = TOC_OK;
    struct shop_order *order;

    pthread_mutex_lock(&shop->lock);
    order = find_order(shop, toc_str_of(wanted->id));
    if (order == NULL)
        st = add_order(shop, wanted, reterr);
    else if (strcmp(order->item, wanted->item) != 0 ||
             order->quantity != wanted->quantity)
        st = toc_error_set(reterr, TOC_EXISTS, "shop", 0,
                           "order %s is another one", wanted->id);
    if (st == TOC_OK)
        *ret_order = order != NULL ? *order : *wanted;
    pthread_mutex_unlock(&shop->lock);
    return st;
}

bool
shop_timeout_set(struct shop *shop, const char *order_id, bool done)
{
    struct shop_order *order;

    pthread_mutex_lock(&shop->lock);
    order = find_order(shop, toc_str_of(order_id));
    if (order != NULL && done) {
        order->has_timeout = true;
    } else if (order != NULL && !order->has_timeout &&
               order->state == SHOP_CREATED) {
        release(shop, order, false);
        shop->n_orders--;
        memmove(order, order + 1,
                (size_t)(shop->orders + shop->n_orders - order) *
                    sizeof *order);
    }
    pthread_mutex_unlock(&shop->lock);
    return order != NULL;
}

static enum toc_status
no_order(const char *order_id, struct toc_error *reterr)
{
    return toc_error_set(reterr, TOC_NOT_FOUND, "shop", 0, "no order %s",
                         order_id);
}

enum toc_status
shop_pay(struct shop *shop, const char *order_id, struct shop_order *ret_order,
         struct toc_error *reterr)
{
    enum toc_status st = TOC_OK;
    struct shop_order *order;

    pthread_mutex_lock(&shop->lock);
    order = find_order(shop, toc_str_of(order_id));
    if (order == NULL) {
        st = no_order(order_id, reterr);
    } else if (order->state == SHOP_TIMEOUT_CANCELLED) {
        st = toc_error_set(reterr, TOC_PRECONDITION, "shop", 0,
                           "order %s was not paid in time", order_id);
    } else if (order->state == SHOP_CREATED) {
        order->state = SHOP_PAID;
        release(shop, order, true);
    }
    if (st == TOC_OK)
        *ret_order = *order;
    pthread_mutex_unlock(&shop->lock);
    return st;
}

enum toc_status
shop_get(struct shop *shop, const char *order_id, struct shop_order *ret_order,
         struct toc_error *reterr)
{
    enum toc_status st = TOC_OK;
    struct shop_order *order;

    pthread_mutex_lock(&shop->lock);
    order = find_order(shop, toc_str_of(order_id));
    if (order != NULL)
        *ret_order = *order;
    else
        st = no_order(order_id, reterr);
    pthread_mutex_unlock(&shop->lock);
    return st;
}

struct shop_order *
shop_list(struct shop *shop, size_t *ret_n)
{
    struct shop_order *copy;

    pthread_mutex_lock(&shop->lock);
    copy = TOC_NEW_ARRAY(struct shop_order, shop->n_orders + 1);
    memcpy(copy, shop->orders, shop->n_orders * sizeof *copy);
    *ret_n = shop->n_orders;
    pthread_mutex_unlock(&shop->lock);
    return copy;
}

void
shop_stock(struct shop *shop, const char *item, struct shop_stock *ret_stock)
{
    const struct shop_stock *stock;

    pthread_mutex_lock(&shop->lock);
    stock = find_item(shop, item);
    if (stock != NULL) {
        *ret_stock = *stock;
    } else {
        *ret_stock = (struct shop_stock){.available = SHOP_STOCK};
        toc_copy(ret_stock->item, sizeof ret_stock->item, toc_str_of(item));
    }
    pthread_mutex_unlock(&shop->lock);
}

/* ---- timeouts ------------------------------------------------------- */

static void
answer_set(struct toc_timeout_answer *answer, enum toc_timeout_verdict verdict,
           const char *message)
{
    answer->verdict = verdict;
    toc_copy(answer->message, sizeof answer->message, toc_str_of(message));
}

static enum shop_mode
mode_of(struct shop *shop)
{
    enum shop_mode mode;

    pthread_mutex_lock(&shop->lock);
    mode = shop->mode;
    pthread_mutex_unlock(&shop->lock);
    return mode;
}

/* Under the lock. */
static void
close_order(struct shop *shop, const struct toc_timeout *timeout,
            struct toc_timeout_answer *answer)
{
    struct shop_order *order = find_order(shop, timeout->biz_id);

    if (order == NULL) {
        answer_set(answer, TOC_TIMEOUT_STOP, "no such order");
    } else if (order->state == SHOP_PAID) {
        answer_set(answer, TOC_TIMEOUT_STOP, "paid");
    } else if (order->state == SHOP_TIMEOUT_CANCELLED) {
        /* An earlier call of this fire whose answer did not get through. */
        answer_set(answer, TOC_TIMEOUT_DONE,
                   toc_str_eq(toc_str_of(order->closed_by), timeout->fire_id)
                       ? "closed before, by this fire"
                       : "closed before");
    } else {
        order->state = SHOP_TIMEOUT_CANCELLED;
        toc_copy(order->closed_by, sizeof order->closed_by, timeout->fire_id);
        release(shop, order, false);
        answer_set(answer, TOC_TIMEOUT_DONE, "closed");
    }
}

/* Under the lock. */
static void
log_call(struct shop *shop, const struct toc_timeout *timeout,
         const struct toc_timeout_answer *answer)
{
    struct shop_call *call = &shop->calls[shop->n_calls++ % SHOP_CALLS_MAX];

    toc_copy(call->order_id, sizeof call->order_id, timeout->biz_id);
    toc_copy(call->fire_id, sizeof call->fire_id, timeout->fire_id);
    call->attempt = timeout->attempt;
    call->due_ms = timeout->due_ms;
    call->arrived_ms = timeout->arrived_ms;
    toc_copy(call->answer, sizeof call->answer, toc_str_of(answer->message));
}

void
shop_on_timeout(struct shop *shop, const struct toc_handler *handler,
                const struct toc_timeout *timeout,
                struct toc_timeout_answer *answer)
{
    const struct toc_clock *clk = toc_clock_os();

    while (mode_of(shop) == SHOP_HANGING &&
           !toc_timeout_expired(handler, timeout))
        toc_clock_os_sleep_until(
            toc_mono_add_ms(toc_clock_mono(clk), HANG_LOOK_MS));
    pthread_mutex_lock(&shop->lock);
    if (toc_timeout_expired(handler, timeout))
        answer_set(answer, TOC_TIMEOUT_RETRY, "ran out of time");
    else if (shop->mode == SHOP_FAILING)
        answer_set(answer, TOC_TIMEOUT_RETRY, "the shop is failing");
    else
        close_order(shop, timeout, answer);
    log_call(shop, timeout, answer);
    pthread_mutex_unlock(&shop->lock);
}

void
shop_set_mode(struct shop *shop, enum shop_mode mode)
{
    pthread_mutex_lock(&shop->lock);
    shop->mode = mode;
    pthread_mutex_unlock(&shop->lock);
}

struct shop_call *
shop_calls(struct shop *shop, size_t *ret_n)
{
    struct shop_call *copy;
    size_t n, first;

    pthread_mutex_lock(&shop->lock);
    n = shop->n_calls < SHOP_CALLS_MAX ? shop->n_calls : SHOP_CALLS_MAX;
    first = shop->n_calls - n;
    copy = TOC_NEW_ARRAY(struct shop_call, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = shop->calls[(first + i) % SHOP_CALLS_MAX];
    *ret_n = n;
    pthread_mutex_unlock(&shop->lock);
    return copy;
}
