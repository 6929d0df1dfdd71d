/*
 * Goal: a mark never passes an undecided hint, and passes every decided prefix.
 * Method: random messages over several partitions, their hints decided in
 * random order, against a model that simply looks at everything each time;
 * then the same with a revocation in between.
 */
#include "executor/offsets.h"

#include "common/base/rng.h"

#include "tests/support/toc_check.h"

#define PARTITIONS 3
#define MESSAGES 200
#define HINTS_MAX 6
#define ROUNDS 50

struct model {
    int64_t offset[MESSAGES];
    size_t left[MESSAGES];
    struct exec_message *real[MESSAGES];
    size_t n;
    int64_t mark; /* as taken from the code under test */
};

static struct model models[PARTITIONS];

static struct exec_place
place_of(int32_t partition, uint32_t generation)
{
    return (struct exec_place){.partition = partition,
                               .generation = generation};
}

static int64_t
expected(const struct model *model)
{
    int64_t mark = 0;

    for (size_t i = 0; i < model->n && model->left[i] == 0; i++)
        mark = model->offset[i] + 1;
    return mark;
}

static void
take(void *arg, const struct exec_place *place, int64_t next_offset)
{
    (void)arg;
    ck_assert_int_gt(next_offset, models[place->partition].mark);
    models[place->partition].mark = next_offset;
}

static void
compare(struct exec_offsets *offsets)
{
    exec_offsets_take_marks(offsets, take, NULL);
    for (int32_t p = 0; p < PARTITIONS; p++)
        ck_assert_int_eq(models[p].mark, expected(&models[p]));
}

static void
arrive(struct exec_offsets *offsets, struct toc_rng *rng, int32_t partition)
{
    struct model *model = &models[partition];
    struct exec_place place = place_of(partition, 1);
    struct exec_partition *to = exec_offsets_find(offsets, &place);
    size_t n = toc_rng_below(rng, HINTS_MAX), i = model->n++;

    /* Offsets may have gaps. */
    model->offset[i] =
        (i > 0 ? model->offset[i - 1] : 0) + 1 + (int64_t)toc_rng_below(rng, 3);
    model->left[i] = n;
    model->real[i] = exec_offsets_arrive(offsets, to, model->offset[i], n);
    ck_assert_int_eq(model->real[i] == NULL, n == 0);
}

static void
decide(struct exec_offsets *offsets, struct toc_rng *rng, int32_t partition)
{
    struct model *model = &models[partition];
    size_t i;

    if (model->n == 0)
        return;
    i = toc_rng_below(rng, model->n);
    if (model->left[i] == 0)
        return;
    model->left[i]--;
    exec_offsets_decide(offsets, model->real[i]);
}

static void
one_round(uint64_t seed)
{
    struct exec_offsets offsets;
    struct toc_rng rng;

    toc_rng_seed(&rng, seed);
    exec_offsets_init(&offsets);
    for (int32_t p = 0; p < PARTITIONS; p++) {
        struct exec_place place = place_of(p, 1);
        models[p] = (struct model){0};
        exec_offsets_assign(&offsets, &place);
    }
    for (int step = 0; step < 4000; step++) {
        int32_t p = (int32_t)toc_rng_below(&rng, PARTITIONS);
        if (toc_rng_below(&rng, 4) == 0 && models[p].n < MESSAGES)
            arrive(&offsets, &rng, p);
        else
            decide(&offsets, &rng, p);
        compare(&offsets);
    }
    exec_offsets_done(&offsets);
    ck_assert_uint_eq(offsets.messages, 0);
}

START_TEST(marks_follow_the_model)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        one_round(seed);
}
END_TEST

START_TEST(revoked_partition_is_forgotten)
{
    struct exec_offsets offsets;
    struct exec_place first = place_of(0, 1), second = place_of(0, 2);
    struct exec_partition *partition;

    exec_offsets_init(&offsets);
    exec_offsets_assign(&offsets, &first);
    partition = exec_offsets_find(&offsets, &first);
    ck_assert_ptr_nonnull(partition);
    (void)exec_offsets_arrive(&offsets, partition, 5, 2);
    ck_assert_uint_eq(offsets.messages, 1);
    exec_offsets_revoke(&offsets, partition);
    ck_assert_uint_eq(offsets.messages, 0);
    ck_assert_ptr_null(exec_offsets_find(&offsets, &first));
    exec_offsets_assign(&offsets, &second);
    ck_assert_ptr_null(exec_offsets_find(&offsets, &first));
    ck_assert_ptr_nonnull(exec_offsets_find(&offsets, &second));
    exec_offsets_done(&offsets);
}
END_TEST

TOC_CHECK_MAIN("exec_offsets", marks_follow_the_model,
               revoked_partition_is_forgotten)
