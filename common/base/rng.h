/*
 * Randomness. toc_rng_bytes and toc_rng_u64 come from the kernel through a
 * buffer per thread (good for ids and tokens). struct toc_rng is a seeded
 * generator (xoshiro256**, Blackman and Vigna 2018) for jitter in logic that a
 * simulation must be able to repeat.
 *
 * Threads: any; a struct toc_rng one at a time.
 */
#ifndef TOC_BASE_RNG_H
#define TOC_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

void toc_rng_bytes(void *out, size_t len);
uint64_t toc_rng_u64(void);

struct toc_rng {
    uint64_t s[4];
};
/* From now on toc_rng_bytes and toc_rng_u64 come from this generator, so that a
 * simulation can be repeated; NULL: from the kernel again. Only while there is
 * one thread. */
void toc_rng_use(struct toc_rng *rng);
void toc_rng_seed(struct toc_rng *rng, uint64_t seed);
uint64_t toc_rng_next(struct toc_rng *rng);
/* Uniform in [0, bound); bound > 0. */
uint64_t toc_rng_below(struct toc_rng *rng, uint64_t bound);

#endif
