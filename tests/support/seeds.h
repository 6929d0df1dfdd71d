/*
 * How many random sequences a contract test makes: TOC_CONTRACT_SEEDS, or what
 * is usual for the backend. They are 1, 2, …, so a failure can be repeated; a
 * test prints the seed it fails with.
 */
#ifndef TOC_TESTS_SUPPORT_SEEDS_H
#define TOC_TESTS_SUPPORT_SEEDS_H

#include "common/base/config.h"
#include "common/base/str.h"

#include <stdio.h>

static inline uint64_t
seeds_wanted(uint64_t usual)
{
    const char *text = toc_env("TOC_CONTRACT_SEEDS");
    int64_t n;

    if (text == NULL || !toc_parse_i64(toc_str_of(text), 1, INT32_MAX, &n))
        return usual;
    return (uint64_t)n;
}

/* The output of a test that passes is not looked at. */
static inline void
seed_begins(uint64_t seed)
{
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
}

#endif
