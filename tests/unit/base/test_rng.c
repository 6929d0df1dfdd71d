/*
 * Goal: the seeded generator is xoshiro256** and fair; the kernel's bytes do
 * not repeat, between threads and across fork neither.
 * Method: the authors' first outputs for a known state; counts; sets of ids.
 */
#include "common/base/rng.h"

#include "common/base/alloc.h"
#include "common/base/thread.h"

#include "tests/support/toc_check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(xoshiro_known_values)
{
    /* from the state {1, 2, 3, 4}, as in the reference implementation */
    static const uint64_t want[] = {
        UINT64_C(11520), UINT64_C(0), UINT64_C(1509978240),
        UINT64_C(1215971899390074240), UINT64_C(1216172134540287360)};
    struct toc_rng rng = {{1, 2, 3, 4}};

    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        ck_assert_uint_eq(toc_rng_next(&rng), want[i]);
}
END_TEST

START_TEST(seeds)
{
    struct toc_rng a, b;

    toc_rng_seed(&a, 7);
    toc_rng_seed(&b, 7);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(toc_rng_next(&a), toc_rng_next(&b));
    toc_rng_seed(&b, 8);
    ck_assert(toc_rng_next(&a) != toc_rng_next(&b));
    toc_rng_seed(&a, 0);
    /* splitmix64's first output for seed 0 */
    ck_assert_uint_eq(a.s[0], UINT64_C(0xe220a8397b1dcdaf));
}
END_TEST

START_TEST(below_is_fair)
{
    struct toc_rng rng;
    unsigned counts[7] = {0};
    uint64_t most = (UINT64_C(1) << 63) + 1;

    toc_rng_seed(&rng, 3);
    for (int i = 0; i < 70000; i++)
        counts[toc_rng_below(&rng, 7)]++;
    for (size_t i = 0; i < 7; i++) {
        ck_assert_uint_ge(counts[i], 9500);
        ck_assert_uint_le(counts[i], 10500);
    }
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(toc_rng_below(&rng, 1), 0);
        ck_assert(toc_rng_below(&rng, most) < most);
    }
}
END_TEST

START_TEST(bytes_of_every_length)
{
    unsigned char out[600], zero[600] = {0};

    for (size_t len = 16; len <= 512; len++) {
        memset(out, 0, sizeof out);
        toc_rng_bytes(out, len);
        ck_assert(memcmp(out, zero, len) != 0);
        ck_assert(memcmp(out + len, zero, sizeof out - len) == 0);
        /* the end is filled as well (all zero: once in 2^64) */
        ck_assert(memcmp(out + len - 8, zero, 8) != 0);
    }
    toc_rng_bytes(out, 0);
}
END_TEST

START_TEST(a_child_has_other_bytes)
{
    uint64_t mine, theirs;
    int fds[2], status;
    pid_t pid;

    (void)toc_rng_u64(); /* fills the pool that fork copies */
    ck_assert_int_eq(pipe(fds), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        theirs = toc_rng_u64();
        _exit(write(fds[1], &theirs, sizeof theirs) == sizeof theirs ? 0 : 1);
    }
    mine = toc_rng_u64();
    ck_assert_int_eq(read(fds[0], &theirs, sizeof theirs), sizeof theirs);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(mine != theirs);
}
END_TEST

#define IDS 2000

static void
draw(void *arg)
{
    uint64_t *ids = arg;

    for (size_t i = 0; i < IDS; i++)
        ids[i] = toc_rng_u64();
}

static int
compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

START_TEST(threads_have_different_ids)
{
    uint64_t *ids = TOC_NEW_ARRAY(uint64_t, 4 * IDS);
    struct toc_thread threads[4];

    for (size_t i = 0; i < 4; i++)
        toc_thread_start(&threads[i], "draw", draw, ids + i * IDS);
    for (size_t i = 0; i < 4; i++)
        toc_thread_join(&threads[i]);
    qsort(ids, 4 * IDS, sizeof ids[0], compare);
    for (size_t i = 1; i < 4 * IDS; i++)
        ck_assert(ids[i - 1] != ids[i]);
    toc_free(ids);
}
END_TEST

/* The same seed, the same bytes; without it the kernel's again. */
START_TEST(a_seed_for_everything)
{
    struct toc_rng rng;
    unsigned char a[100], b[100];

    toc_rng_seed(&rng, 42);
    toc_rng_use(&rng);
    toc_rng_bytes(a, sizeof a);
    uint64_t id = toc_rng_u64();
    toc_rng_seed(&rng, 42);
    toc_rng_bytes(b, sizeof b);
    ck_assert_mem_eq(a, b, sizeof a);
    ck_assert_uint_eq(toc_rng_u64(), id);
    toc_rng_seed(&rng, 42);
    toc_rng_use(NULL);
    toc_rng_bytes(b, sizeof b);
    ck_assert_mem_ne(a, b, sizeof a);
}
END_TEST

TOC_CHECK_MAIN("rng", xoshiro_known_values, seeds, below_is_fair,
               bytes_of_every_length, a_child_has_other_bytes,
               threads_have_different_ids, a_seed_for_everything)
