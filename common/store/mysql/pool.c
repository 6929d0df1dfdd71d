/*
 * The pool: connections that nobody uses at the moment. One that saw a fault is
 * closed, never returned; when one is found dead, the idle ones go too, for a
 * server that was restarted has dropped them all.
 *
 * Locks: store->lock, a leaf; never held while talking to the server.
 */
#include "common/store/mysql/store_mysql_internal.h"

#include "common/base/thread_wait.h"

#define READ_TIMEOUT_MS 10000

/* An idle connection, or the right to open one (*ret_conn NULL). */
static bool
take_place(struct toc_store_mysql *store, struct toc_my_conn **ret_conn)
{
    int64_t until =
        toc_mono_add_ms(toc_clock_mono(store->clock), store->wait_timeout_ms)
            .ns;
    bool got = true;

    pthread_mutex_lock(&store->lock);
    while (store->idle == NULL && store->n_open == store->pool_max && got &&
           !atomic_load(&store->interrupted))
        got = toc_cond_wait_until(&store->freed, &store->lock, until);
    *ret_conn = store->idle;
    if (atomic_load(&store->interrupted)) {
        got = false;
    } else if (store->idle != NULL) {
        store->idle = store->idle->next;
        got = true;
    } else if (store->n_open < store->pool_max) {
        store->n_open++;
        got = true;
    }
    pthread_mutex_unlock(&store->lock);
    return got;
}

static void
leave_place(struct toc_store_mysql *store)
{
    pthread_mutex_lock(&store->lock);
    store->n_open--;
    pthread_cond_signal(&store->freed);
    pthread_mutex_unlock(&store->lock);
}

static enum toc_status
no_place(struct toc_store_mysql *store, struct toc_error *reterr)
{
    if (atomic_load(&store->interrupted))
        return toc_my_say_interrupted(reterr);
    return toc_error_set(reterr, TOC_EXHAUSTED, "mysql", 0,
                         "no free connection of %zu within %lld ms",
                         store->pool_max, (long long)store->wait_timeout_ms);
}

enum toc_status
toc_my_take(struct toc_store_mysql *store, struct toc_my_conn **ret_conn,
            struct toc_error *reterr)
{
    struct toc_my_conn *conn;
    enum toc_status st = TOC_OK;

    if (!take_place(store, &conn))
        return no_place(store, reterr);
    if (conn == NULL)
        st = toc_my_connect(store, READ_TIMEOUT_MS, &conn, reterr);
    if (st != TOC_OK) {
        leave_place(store);
        return st;
    }
    conn->fault = TOC_MY_FINE;
    *ret_conn = conn;
    return TOC_OK;
}

void
toc_my_give(struct toc_my_conn *conn)
{
    struct toc_store_mysql *store = conn->store;

    conn->again = NULL;
    if (conn->fault != TOC_MY_FINE) {
        toc_my_disconnect(conn);
        leave_place(store);
        return;
    }
    /* An idle connection keeps no megabytes of rows that nobody reads. */
    toc_my_forget(conn);
    pthread_mutex_lock(&store->lock);
    conn->next = store->idle;
    store->idle = conn;
    pthread_cond_signal(&store->freed);
    pthread_mutex_unlock(&store->lock);
}

void
toc_my_drop_idle(struct toc_store_mysql *store)
{
    struct toc_my_conn *conn;

    pthread_mutex_lock(&store->lock);
    conn = store->idle;
    store->idle = NULL;
    pthread_mutex_unlock(&store->lock);
    while (conn != NULL) {
        struct toc_my_conn *next = conn->next;
        toc_my_disconnect(conn);
        leave_place(store);
        conn = next;
    }
}
