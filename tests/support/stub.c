#include "tests/support/stub.h"

#include "common/base/alloc.h"
#include "common/base/str.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

struct record {
    unsigned calls;
    struct stub_call kept[STUB_CALLS_KEPT];
};

struct stub {
    struct toc_handler *handler;
    char target[96];
    stub_answer_fn *answer;
    void *arg;
    size_t n;
    pthread_mutex_t lock; /* all below */
    struct record *records;
    size_t total, distinct, early, strange;
};

static unsigned
note(struct stub *stub, size_t i, const struct toc_timeout *timeout)
{
    struct record *record = &stub->records[i];
    unsigned seen = record->calls++;

    stub->total++;
    stub->distinct += seen == 0;
    stub->early += timeout->arrived_ms < timeout->due_ms;
    if (seen < STUB_CALLS_KEPT) {
        struct stub_call *kept = &record->kept[seen];

        kept->attempt = timeout->attempt;
        kept->due_ms = timeout->due_ms;
        kept->arrived_ms = timeout->arrived_ms;
        toc_copy(kept->fire_id, sizeof kept->fire_id, timeout->fire_id);
    }
    return seen;
}

static void
on_timeout(void *self, const struct toc_timeout *timeout,
           struct toc_timeout_answer *answer)
{
    struct stub *stub = self;
    int64_t i;
    unsigned seen = 0;
    bool known;

    known = toc_parse_i64(timeout->biz_id, 0, (int64_t)stub->n - 1, &i);
    pthread_mutex_lock(&stub->lock);
    if (known)
        seen = note(stub, (size_t)i, timeout);
    else
        stub->strange++;
    pthread_mutex_unlock(&stub->lock);
    if (known && stub->answer)
        stub->answer(stub->arg, (size_t)i, seen, answer);
}

struct stub *
stub_start(size_t n, stub_answer_fn *answer, void *arg)
{
    struct stub *stub = TOC_NEW(struct stub);
    struct toc_error err = {0};
    struct toc_handler_options options = {
        .listen = "127.0.0.1:0",
        .on_timeout = on_timeout,
        .self = stub,
        .inline_calls = answer == NULL,
        .threads = 16,
    };

    stub->n = n;
    stub->answer = answer;
    stub->arg = arg;
    stub->records = TOC_NEW_ARRAY(struct record, n);
    pthread_mutex_init(&stub->lock, NULL);
    ck_assert_msg(toc_handler_start(&options, &stub->handler, &err) == TOC_OK,
                  "stub: %s", err.msg);
    toc_format(stub->target, sizeof stub->target, "grpc://%s",
               toc_handler_address(stub->handler));
    return stub;
}

void
stub_stop(struct stub *stub)
{
    toc_handler_stop(stub->handler, 2000);
    pthread_mutex_destroy(&stub->lock);
    toc_free(stub->records);
    toc_free(stub);
}

const char *
stub_target(const struct stub *stub)
{
    return stub->target;
}

unsigned
stub_calls(struct stub *stub, size_t i)
{
    unsigned calls;

    ck_assert_uint_lt(i, stub->n);
    pthread_mutex_lock(&stub->lock);
    calls = stub->records[i].calls;
    pthread_mutex_unlock(&stub->lock);
    return calls;
}

struct stub_call
stub_call(struct stub *stub, size_t i, unsigned k)
{
    struct stub_call call;

    ck_assert_uint_lt(k, STUB_CALLS_KEPT);
    ck_assert_uint_lt(k, stub_calls(stub, i));
    pthread_mutex_lock(&stub->lock);
    call = stub->records[i].kept[k];
    pthread_mutex_unlock(&stub->lock);
    return call;
}

static size_t
read_count(struct stub *stub, const size_t *count)
{
    size_t value;

    pthread_mutex_lock(&stub->lock);
    value = *count;
    pthread_mutex_unlock(&stub->lock);
    return value;
}

size_t
stub_total(struct stub *stub)
{
    return read_count(stub, &stub->total);
}

size_t
stub_distinct(struct stub *stub)
{
    return read_count(stub, &stub->distinct);
}

size_t
stub_early(struct stub *stub)
{
    return read_count(stub, &stub->early);
}

size_t
stub_strange(struct stub *stub)
{
    return read_count(stub, &stub->strange);
}
