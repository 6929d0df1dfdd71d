/*
 * Goal: a walk reads every (slot, slice) of its range, however its chunks
 * shrink and grow and although its end moves on, and ends. Method: rows in a
 * grid; a chunk that holds more than the room is shrunk; what was read is
 * marked, and at the end nothing may be unmarked.
 */
#include "common/base/rng.h"
#include "scheduler/walk.h"
#include "tests/support/toc_check.h"

#include <string.h>

#define MS 300
#define SLICES 40

static uint32_t grid[MS][SLICES];
static bool seen[MS][SLICES];

static size_t
read_chunk(const struct sched_chunk *chunk, size_t room)
{
    size_t rows = 0;

    for (int64_t ms = chunk->after_ms + 1; ms <= chunk->to_ms; ms++)
        for (size_t i = chunk->first; i < chunk->first + chunk->n; i++)
            rows += grid[ms][i];
    if (rows > room)
        return rows;
    for (int64_t ms = chunk->after_ms + 1; ms <= chunk->to_ms; ms++)
        for (size_t i = chunk->first; i < chunk->first + chunk->n; i++)
            seen[ms][i] = true;
    return rows;
}

START_TEST(reads_all_in_pieces)
{
    struct toc_rng rng;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct sched_walk walk;
        struct sched_chunk chunk;
        int64_t end = 100;
        size_t steps = 0;
        toc_rng_seed(&rng, seed);
        memset(seen, 0, sizeof seen);
        for (size_t ms = 0; ms < MS; ms++)
            for (size_t i = 0; i < SLICES; i++)
                grid[ms][i] = (uint32_t)(toc_rng_below(&rng, 50) == 0
                                             ? 15000
                                             : toc_rng_below(&rng, 20));
        sched_walk_start(&walk, 0, 100, 250, SLICES);
        while (end < MS - 1 || walk.pos_ms < end) {
            ck_assert_uint_lt(++steps, 100000);
            if (end < MS - 1 && toc_rng_below(&rng, 2) == 0)
                end += (int64_t)toc_rng_below(&rng, 3);
            if (end > MS - 1)
                end = MS - 1;
            if (!sched_walk_next(&walk, end, SLICES, &chunk))
                continue;
            ck_assert(chunk.n > 0 && chunk.first + chunk.n <= SLICES);
            ck_assert(chunk.after_ms < chunk.to_ms && chunk.to_ms <= end);
            size_t rows = read_chunk(&chunk, 30000);
            if (rows > 30000)
                ck_assert(sched_walk_shrink(&walk, &chunk));
            else
                sched_walk_done(&walk, &chunk, SLICES, rows);
        }
        for (size_t ms = 1; ms < MS; ms++)
            for (size_t i = 0; i < SLICES; i++)
                ck_assert(seen[ms][i]);
    }
}
END_TEST

START_TEST(one_ms_of_one_slice_cannot_shrink)
{
    struct sched_walk walk;
    struct sched_chunk chunk;

    sched_walk_start(&walk, 10, 1, 100, 1);
    ck_assert(sched_walk_next(&walk, 11, 1, &chunk));
    ck_assert(!sched_walk_shrink(&walk, &chunk));
}
END_TEST

START_TEST(grows_when_there_is_little)
{
    struct sched_walk walk;
    struct sched_chunk chunk;

    sched_walk_start(&walk, 0, 1, 64, 8);
    for (int i = 0; i < 10; i++) {
        ck_assert(sched_walk_next(&walk, 100000, 8, &chunk));
        sched_walk_done(&walk, &chunk, 8, 0);
    }
    ck_assert(sched_walk_next(&walk, 100000, 8, &chunk));
    ck_assert_int_eq(chunk.to_ms - chunk.after_ms, 64);
}
END_TEST

TOC_CHECK_MAIN("walk", reads_all_in_pieces, one_ms_of_one_slice_cannot_shrink,
               grows_when_there_is_little)
