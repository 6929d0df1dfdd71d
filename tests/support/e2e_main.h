/*
 * The main function of an end-to-end test program: one cluster for all its
 * tests, made before the first and destroyed after the last. The program has a
 * `static struct cluster cluster;` of its own, before its tests.
 */
#ifndef TOC_TESTS_SUPPORT_E2E_MAIN_H
#define TOC_TESTS_SUPPORT_E2E_MAIN_H

#include "tests/support/cluster.h"
#include "tests/support/toc_check.h"

#define TOC_E2E_MAIN(name, schedulers, executors, ...)                  \
    static void cluster_setup(void)                                     \
    {                                                                   \
        cluster_up(&cluster, name, schedulers, executors);              \
    }                                                                   \
    static void cluster_teardown(void)                                  \
    {                                                                   \
        cluster_destroy(&cluster);                                      \
    }                                                                   \
    int main(void)                                                      \
    {                                                                   \
        const toc_check_test tests[] = {__VA_ARGS__};                   \
        return toc_e2e_run(name, tests, sizeof tests / sizeof tests[0], \
                           cluster_setup, cluster_teardown);            \
    }

static inline int
toc_e2e_run(const char *name, const toc_check_test *tests, size_t n, SFun setup,
            SFun teardown)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_unchecked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tcase, tests[i]);
    tcase_set_timeout(tcase, 240);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
