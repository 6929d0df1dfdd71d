/*
 * Goal: the queue keeps its bound and its order, loses and doubles nothing
 * between threads, and close wakes all who wait.
 * Method: one thread at the edges, then several producers and consumers with
 * every item counted.
 */
#include "common/base/queue.h"

#include "common/base/os_time.h"
#include "common/base/thread.h"

#include "tests/support/toc_check.h"

#include <stdatomic.h>

static int items[64];

START_TEST(full_and_order_around_the_ring)
{
    struct toc_queue *queue = toc_queue_new(3);
    void *out[4];

    for (int round = 0; round < 5; round++) {
        ck_assert(toc_queue_push(queue, &items[0]));
        ck_assert(toc_queue_push(queue, &items[1]));
        ck_assert(toc_queue_push(queue, &items[2]));
        ck_assert(!toc_queue_push(queue, &items[3]));
        ck_assert_uint_eq(toc_queue_len(queue), 3);
        ck_assert_uint_eq(toc_queue_pop(queue, out, 2, 0), 2);
        ck_assert_ptr_eq(out[0], &items[0]);
        ck_assert_ptr_eq(out[1], &items[1]);
        ck_assert(toc_queue_push(queue, &items[3]));
        ck_assert_uint_eq(toc_queue_pop(queue, out, 4, 0), 2);
        ck_assert_ptr_eq(out[0], &items[2]);
        ck_assert_ptr_eq(out[1], &items[3]);
    }
    toc_queue_free(queue);
    toc_queue_free(NULL);
}
END_TEST

START_TEST(pop_of_an_empty_queue_waits_its_time)
{
    struct toc_queue *queue = toc_queue_new(1);
    int64_t until = toc_os_mono_ns() + 3000000;
    void *out;

    ck_assert_uint_eq(toc_queue_pop(queue, &out, 1, 0), 0);
    ck_assert_uint_eq(toc_queue_pop(queue, &out, 1, until), 0);
    ck_assert_int_ge(toc_os_mono_ns(), until);
    toc_queue_free(queue);
}
END_TEST

START_TEST(close_hands_out_the_rest)
{
    struct toc_queue *queue = toc_queue_new(2);
    void *out[2];

    ck_assert(!toc_queue_closed(queue));
    ck_assert(toc_queue_push(queue, &items[0]));
    toc_queue_close(queue);
    toc_queue_close(queue);
    ck_assert(toc_queue_closed(queue));
    ck_assert(!toc_queue_push(queue, &items[1]));
    ck_assert_uint_eq(toc_queue_pop(queue, out, 2, INT64_MAX), 1);
    ck_assert_uint_eq(toc_queue_pop(queue, out, 2, INT64_MAX), 0);
    toc_queue_free(queue);
}
END_TEST

#define PRODUCERS 3
#define CONSUMERS 3
#define PER_PRODUCER 5000

struct traffic {
    struct toc_queue *queue;
    _Atomic int seen[PRODUCERS * PER_PRODUCER];
    _Atomic int next_producer;
};

static void
produce(void *arg)
{
    struct traffic *traffic = arg;
    int first = atomic_fetch_add(&traffic->next_producer, 1) * PER_PRODUCER;

    for (int i = 0; i < PER_PRODUCER; i++)
        while (!toc_queue_push(traffic->queue, &traffic->seen[first + i]))
            toc_os_sleep_until_mono(toc_os_mono_ns() + 20000);
}

static void
consume(void *arg)
{
    struct traffic *traffic = arg;
    void *out[7];
    size_t n;

    while ((n = toc_queue_pop(traffic->queue, out, 7, INT64_MAX)) > 0)
        for (size_t i = 0; i < n; i++)
            atomic_fetch_add((_Atomic int *)out[i], 1);
}

START_TEST(threads_lose_and_double_nothing)
{
    static struct traffic traffic;
    struct toc_thread producers[PRODUCERS], consumers[CONSUMERS];

    traffic.queue = toc_queue_new(16);
    for (size_t i = 0; i < CONSUMERS; i++)
        toc_thread_start(&consumers[i], "consume", consume, &traffic);
    for (size_t i = 0; i < PRODUCERS; i++)
        toc_thread_start(&producers[i], "produce", produce, &traffic);
    for (size_t i = 0; i < PRODUCERS; i++)
        toc_thread_join(&producers[i]);
    toc_queue_close(traffic.queue); /* wakes those who wait for ever */
    for (size_t i = 0; i < CONSUMERS; i++)
        toc_thread_join(&consumers[i]);
    for (size_t i = 0; i < PRODUCERS * PER_PRODUCER; i++)
        ck_assert_int_eq(atomic_load(&traffic.seen[i]), 1);
    toc_queue_free(traffic.queue);
}
END_TEST

TOC_CHECK_MAIN("queue", full_and_order_around_the_ring,
               pop_of_an_empty_queue_waits_its_time, close_hands_out_the_rest,
               threads_lose_and_double_nothing)
