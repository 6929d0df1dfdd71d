/*
 * The business of the sample: orders, stock, and what happens when an order's
 * time to pay is over. Nothing in here knows gRPC; of TOC it knows only the
 * timeout that it is handed.
 *
 * A real shop keeps all this in its database. What matters is the same there:
 * on_timeout looks at the order, in one transaction with what it changes, and
 * does nothing when the order is paid or was closed before. So it may be called
 * twice for one fire, and late.
 *
 * Threads: any. Locks: one for all of a shop. Errors: as said.
 */
#ifndef TOC_SAMPLE_SHOP_H
#define TOC_SAMPLE_SHOP_H

#include "common/base/status.h"
#include "common/handler/handler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHOP_ORDER_ID_MAX 128
#define SHOP_ITEM_MAX 64
#define SHOP_QUANTITY_MAX 1000
#define SHOP_ORDERS_MAX 10000
#define SHOP_ITEMS_MAX 100
#define SHOP_CALLS_MAX 1000 /* the latest calls that are remembered */
#define SHOP_STOCK 1000000  /* pieces that there are of every item */

enum shop_state { SHOP_CREATED, SHOP_PAID, SHOP_TIMEOUT_CANCELLED };

enum shop_mode { SHOP_UP, SHOP_FAILING, SHOP_HANGING };

struct shop_order {
    char id[SHOP_ORDER_ID_MAX + 1];
    char item[SHOP_ITEM_MAX + 1];
    uint32_t quantity;
    enum shop_state state;
    int64_t pay_by_ms;
    bool has_timeout;   /* TOC has answered that it will call */
    char closed_by[64]; /* the fire id that closed it */
};

struct shop_stock {
    char item[SHOP_ITEM_MAX + 1];
    uint32_t available, reserved, sold;
};

/* One call by TOC. */
struct shop_call {
    char order_id[SHOP_ORDER_ID_MAX + 1];
    char fire_id[64];
    uint32_t attempt;
    int64_t due_ms, arrived_ms;
    char answer[64];
};

struct shop;

struct shop *shop_new(void);
void shop_free(struct shop *shop);

/*
 * Takes the pieces out of the stock for a new order. An order that is there
 * already is answered as it is when it is of the same item and quantity.
 * TOC_EXISTS: of others; TOC_PRECONDITION: not enough in stock; TOC_EXHAUSTED:
 * too many orders or items.
 */
TOC_MUST_CHECK enum toc_status shop_create(struct shop *shop,
                                           const struct shop_order *wanted,
                                           struct shop_order *ret_order,
                                           struct toc_error *reterr);
/* Tells whether the order has got its timeout. Without, it is forgotten (its
 * pieces go back), unless another request has got it one. False: there is no
 * such order. */
bool shop_timeout_set(struct shop *shop, const char *order_id, bool done);
/* TOC_NOT_FOUND, or TOC_PRECONDITION: closed. Paying twice is fine. */
TOC_MUST_CHECK enum toc_status shop_pay(struct shop *shop, const char *order_id,
                                        struct shop_order *ret_order,
                                        struct toc_error *reterr);
/* TOC_NOT_FOUND. */
TOC_MUST_CHECK enum toc_status shop_get(struct shop *shop, const char *order_id,
                                        struct shop_order *ret_order,
                                        struct toc_error *reterr);
void shop_stock(struct shop *shop, const char *item,
                struct shop_stock *ret_stock);

/* An order's time to pay is over. */
void shop_on_timeout(struct shop *shop, const struct toc_handler *handler,
                     const struct toc_timeout *timeout,
                     struct toc_timeout_answer *answer);
void shop_set_mode(struct shop *shop, enum shop_mode mode);

/* Copies, oldest first; the caller frees. */
struct shop_order *shop_list(struct shop *shop, size_t *ret_n);
struct shop_call *shop_calls(struct shop *shop, size_t *ret_n);

#endif
