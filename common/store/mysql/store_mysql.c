#include "common/store/mysql/store_mysql.h"

#include "common/base/assert.h"
#include "common/base/thread_wait.h"
#include "common/store/mysql/store_mysql_internal.h"
#include "common/store/mysql/url.h"

#include <string.h>

#define DEFAULT_TIMEOUT_MS 3000

const struct toc_store_ops toc_my_ops = {
    .name = "mysql",
    .submit = toc_my_submit,
    .get = toc_my_get,
    .list_biz = toc_my_list_biz,
    .load = toc_my_load,
    .scan = toc_my_scan,
    .move_far = toc_my_move_far,
    .claim = toc_my_claim,
    .renew = toc_my_renew,
    .finish = toc_my_finish,
    .free_expired = toc_my_free_expired,
    .record_stragglers = toc_my_record_stragglers,
    .scan_stragglers = toc_my_scan_stragglers,
    .advance_low = toc_my_advance_low,
    .command = toc_my_command,
    .timeline = toc_my_timeline,
    .list_tasks = toc_my_list_tasks,
    .count_buckets = toc_my_count_buckets,
    .list_dead = toc_my_list_dead,
    .redrive = toc_my_redrive,
    .list_shards = toc_my_list_shards,
    .register_node = toc_my_register_node,
    .list_nodes = toc_my_list_nodes,
    .gc_keys = toc_my_gc_keys,
    .make_days = toc_my_make_days_op,
    .drop_days = toc_my_drop_days,
    .now = toc_my_now,
    .hasten = toc_my_hasten,
    .interrupt = toc_my_interrupt,
};

static void
init_library(void)
{
    TOC_ASSERT(mysql_library_init(0, NULL, NULL) == 0);
}

static int64_t
or_default(int64_t ms)
{
    return ms > 0 ? ms : DEFAULT_TIMEOUT_MS;
}

static enum toc_status
first_connection(struct toc_store_mysql *store, struct toc_error *reterr)
{
    struct toc_my_conn *conn;
    enum toc_status st = toc_my_take(store, &conn, reterr);

    if (st == TOC_OK)
        toc_my_give(conn);
    return st;
}

enum toc_status
toc_store_mysql_open(const struct toc_store_mysql_options *options,
                     struct toc_store_mysql **ret_store,
                     struct toc_error *reterr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct toc_my_address address;
    struct toc_store_mysql *store;
    enum toc_status st;

    if (options->pool_max < 1 || options->pool_max > 256)
        return toc_error_set(reterr, TOC_INVALID, "mysql", 0,
                             "a pool of %zu connections: 1 to 256 are possible",
                             options->pool_max);
    st = toc_my_url_parse(options->url, &address, reterr);
    if (st != TOC_OK)
        return st;
    (void)pthread_once(&once, init_library);
    store = TOC_NEW(struct toc_store_mysql);
    store->port.ops = &toc_my_ops;
    store->port.self = store;
    store->clock = options->clock;
    store->address = address;
    if (options->password != NULL)
        store->password = toc_strdup(options->password);
    store->connect_timeout_ms = or_default(options->connect_timeout_ms);
    store->wait_timeout_ms = or_default(options->wait_timeout_ms);
    store->pool_max = options->pool_max;
    toc_list_init(&store->watched);
    pthread_mutex_init(&store->lock, NULL);
    toc_cond_init_mono(&store->freed);
    st = first_connection(store, reterr);
    if (st != TOC_OK) {
        toc_store_mysql_close(store);
        return st;
    }
    *ret_store = store;
    return TOC_OK;
}

void
toc_store_mysql_close(struct toc_store_mysql *store)
{
    if (store == NULL)
        return;
    toc_my_drop_idle(store);
    TOC_ASSERT(store->n_open == 0);
    pthread_cond_destroy(&store->freed);
    pthread_mutex_destroy(&store->lock);
    if (store->password != NULL) {
        memset(store->password, 0, strlen(store->password));
        toc_free(store->password);
    }
    toc_free(store);
}

struct toc_store *
toc_store_mysql_port(struct toc_store_mysql *store)
{
    return &store->port;
}

uint64_t
toc_store_mysql_statements(const struct toc_store_mysql *store)
{
    return atomic_load_explicit(&store->statements, memory_order_relaxed);
}
