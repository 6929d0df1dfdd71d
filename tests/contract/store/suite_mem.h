/*
 * The store in memory under the suite's helpers, on a clock that a test sets.
 */
#ifndef TOC_TESTS_CONTRACT_STORE_SUITE_MEM_H
#define TOC_TESTS_CONTRACT_STORE_SUITE_MEM_H

#include "common/clock/sim/clock_sim.h"
#include "common/store/mem/store_mem.h"
#include "tests/contract/store/store_suite.h"

static struct toc_clock_sim clock_sim;
static struct toc_store_mem *mem;

static inline void
open_mem(uint64_t seed)
{
    struct toc_store_mem_options options = {.clock = &clock_sim.clock,
                                            .seed = seed};

    toc_clock_sim_init(&clock_sim, (struct toc_wall){1800000000000});
    mem = toc_store_mem_open(&options);
    su_begin(toc_store_mem_port(mem));
}

static inline void
close_mem(void)
{
    su_end();
    toc_store_mem_close(mem);
    mem = NULL;
}

static inline void
setup(void)
{
    open_mem(1);
}

static inline int
run_mem(const char *name, const toc_check_test *tests, size_t n)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, close_mem);
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
