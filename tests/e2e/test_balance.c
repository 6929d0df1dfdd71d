/*
 * Goal: shards with much to do leave a scheduler whose fellow has little, and
 * only those; nothing is lost, doubled or early by it; when the node that took
 * them is killed they come back. Method: a real cluster of two, told to move
 * after 5 s of skew; many tasks whose business ids hash to some shards of one
 * scheduler, spread over a minute.
 */
#include "tests/support/e2e_main.h"
#include "tests/support/stub.h"

#include "common/base/alloc.h"
#include "common/base/config.h"
#include "common/base/str.h"
#include "common/model/key.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TASKS 9000
#define SPAN_MS 60000
#define AHEAD_MS 8000
#define HOT 16
#define NUMBERS_MAX (TASKS * 32) /* 16 of 256 shards, and some to spare */
#define BATCH 500
#define FROM "scheduler-1"
#define TO "scheduler-2"

static struct cluster cluster;

struct look {
    struct caller caller;
    char owner[TOC_SHARDS][64];
    bool hot[TOC_SHARDS];
    size_t of_from;   /* shards that FROM owned when last looked at ... */
    int64_t since_ms; /* ... and since when */
};

/* ---- who owns what --------------------------------------------------- */

static bool
look_at_owners(struct look *look)
{
    Toc__V1__ListShardsRequest request = TOC__V1__LIST_SHARDS_REQUEST__INIT;
    Toc__V1__ListShardsResponse *reply = NULL;

    toc_arena_reset(&look->caller.arena);
    if (caller_admin(&look->caller, cluster.admin, "ListShards", &request.base,
                     &reply) != TOC_OK ||
        reply->n_shards != TOC_SHARDS)
        return false;
    for (size_t i = 0; i < TOC_SHARDS; i++)
        toc_copy(look->owner[reply->shards[i]->shard], 64,
                 toc_str_of(reply->shards[i]->owner));
    return true;
}

static size_t
count(const struct look *look, const char *owner, bool hot)
{
    size_t n = 0;

    for (size_t i = 0; i < TOC_SHARDS; i++)
        n += look->hot[i] == hot && strcmp(look->owner[i], owner) == 0;
    return n;
}

/* Two schedulers own everything, each its share by rendezvous hashing: nothing
 * has changed for a while. */
static bool
shared_out(void *arg)
{
    struct look *look = arg;
    size_t of_from = look_at_owners(look) ? count(look, FROM, false) : 0;
    size_t of_to = count(look, TO, false);

    if (of_from != look->of_from || of_from + of_to != TOC_SHARDS ||
        of_from < 64 || of_to < 64)
        look->since_ms = wall_ms();
    look->of_from = of_from;
    return wall_ms() - look->since_ms >= 3000;
}

static bool
some_moved(void *arg)
{
    struct look *look = arg;

    return look_at_owners(look) && count(look, TO, true) > 0;
}

static bool
all_back(void *arg)
{
    struct look *look = arg;

    return look_at_owners(look) && count(look, FROM, true) == HOT &&
           count(look, FROM, false) == TOC_SHARDS - HOT;
}

static void
choose_hot(struct look *look)
{
    size_t n = 0;

    for (size_t i = 0; i < TOC_SHARDS && n < HOT; i++)
        if (strcmp(look->owner[i], FROM) == 0) {
            look->hot[i] = true;
            n++;
        }
    ck_assert_uint_eq(n, HOT);
}

/* ---- tasks ------------------------------------------------------------- */

/* Numbers whose business ids lie in hot shards. */
static void
choose_numbers(const struct look *look, size_t *numbers)
{
    char id[24];
    size_t n = 0;

    for (size_t i = 0; n < TASKS; i++) {
        ck_assert_uint_lt(i, NUMBERS_MAX);
        toc_format(id, sizeof id, "%zu", i);
        if (look->hot[toc_key_shard(
                toc_key_hash_of(TOC_STR("hot"), toc_str_of(id), TOC_STR("")))])
            numbers[n++] = i;
    }
}

static void
submit(struct look *look, const char *target, const size_t *numbers,
       int64_t start_ms)
{
    for (size_t at = 0; at < TASKS; at += BATCH) {
        Toc__V1__BatchSubmitRequest batch = TOC__V1__BATCH_SUBMIT_REQUEST__INIT;
        Toc__V1__BatchSubmitResponse *reply = NULL;
        struct toc_arena *arena = &look->caller.arena;

        toc_arena_reset(arena);
        batch.n_items = BATCH;
        batch.items = toc_arena_calloc(arena, BATCH, sizeof *batch.items);
        for (size_t i = 0; i < BATCH; i++)
            batch.items[i] = caller_request(
                arena, "hot", numbers[at + i],
                start_ms + (int64_t)((at + i) * SPAN_MS / TASKS), target, 0);
        ck_assert_msg(caller_call(&look->caller, cluster.schedulers[0],
                                  "BatchSubmit", &batch.base, &reply) == TOC_OK,
                      "BatchSubmit: %s", look->caller.error.msg);
        for (size_t i = 0; i < BATCH; i++)
            ck_assert(reply->results[i]->response != NULL &&
                      reply->results[i]->response->created);
    }
}

struct goal {
    struct stub *stub;
    size_t total;
};

static bool
called(void *arg)
{
    const struct goal *goal = arg;

    return stub_total(goal->stub) >= goal->total;
}

static bool
all_called(void *arg)
{
    return stub_distinct(arg) == TASKS;
}

static int64_t
latest_ms(struct stub *stub, const size_t *numbers, int64_t from_ms,
          int64_t to_ms)
{
    int64_t most = 0;

    for (size_t i = 0; i < TASKS; i++) {
        struct stub_call call = stub_call(stub, numbers[i], 0);
        int64_t late_ms = call.arrived_ms - call.due_ms;
        if (call.due_ms >= from_ms && call.due_ms < to_ms && late_ms > most)
            most = late_ms;
    }
    return most;
}

START_TEST(hot_shards_move_and_nothing_is_lost)
{
    struct look *look = TOC_NEW(struct look);
    size_t *numbers = TOC_NEW_ARRAY(size_t, TASKS);
    struct stub *stub = stub_start(NUMBERS_MAX, NULL, NULL);
    struct goal more = {stub, 0};
    size_t cold, moved;
    int64_t start_ms, moved_ms, killed_ms;

    caller_init(&look->caller);
    look->since_ms = wall_ms();
    ck_assert(eventually(shared_out, look, 30000));
    choose_hot(look);
    choose_numbers(look, numbers);
    cold = count(look, FROM, false);
    start_ms = wall_ms() + AHEAD_MS;
    submit(look, stub_target(stub), numbers, start_ms);

    ck_assert_msg(eventually(some_moved, look, SPAN_MS),
                  "no shard moved in %d ms", SPAN_MS);
    moved_ms = wall_ms();
    more.total = stub_total(stub) + 3 * TASKS * 1000 / SPAN_MS;
    ck_assert(eventually(called, &more, 20000)); /* 3 s go on with both */
    ck_assert(look_at_owners(look));
    moved = count(look, TO, true);
    ck_assert_uint_lt(moved, HOT);                     /* some, not all */
    ck_assert_uint_eq(count(look, FROM, false), cold); /* and no others */

    killed_ms = wall_ms();
    ck_assert_int_eq(cluster_toc(&cluster, "kill %s", TO), 0);
    ck_assert(eventually(all_back, look, 20000));
    ck_assert_msg(eventually(all_called, stub, SPAN_MS + 60000),
                  "%zu of %d tasks were called", stub_distinct(stub), TASKS);
    ck_assert_uint_eq(stub_total(stub), TASKS);
    ck_assert_uint_eq(stub_early(stub), 0);
    ck_assert_uint_eq(stub_strange(stub), 0);
    printf("%zu of %d hot shards moved after %lld ms; latest call %lld ms late "
           "until the kill, %lld ms after it\n",
           moved, HOT, (long long)(moved_ms - start_ms),
           (long long)latest_ms(stub, numbers, 0, killed_ms - 1000),
           (long long)latest_ms(stub, numbers, killed_ms - 1000, INT64_MAX));
    caller_done(&look->caller);
    stub_stop(stub);
    toc_free(numbers);
    toc_free(look);
}
END_TEST

/* The cluster's folder is made before it, with a setting for its roles. */
static void
cluster_setup(void)
{
    const char *tmp = toc_env("TOC_TEST_TMP");
    char path[512];
    FILE *file;

    ck_assert_msg(tmp != NULL,
                  "TOC_TEST_TMP is not set: run this by tests/run");
    toc_format(path, sizeof path, "%s/e2e-balance", tmp);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    toc_format(path, sizeof path, "%s/e2e-balance/.toc-local", tmp);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    toc_format(path, sizeof path, "%s/e2e-balance/roles.env", tmp);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("TOC_MOVE_SKEW_S=5\n", file);
    fclose(file);
    cluster_up(&cluster, "balance", 2, 2);
}

static void
cluster_teardown(void)
{
    cluster_destroy(&cluster);
}

int
main(void)
{
    const toc_check_test tests[] = {hot_shards_move_and_nothing_is_lost};

    return toc_e2e_run("balance", tests, 1, cluster_setup, cluster_teardown);
}
