/*
 * What every program of tests/unit has in common: libcheck, its main function,
 * and waiting for something by the clock.
 *
 *     START_TEST(adds) { ... } END_TEST
 *     TOC_CHECK_MAIN("buf", adds, grows)
 *
 * Each test runs in a process of its own; CK_FORK=no runs them in one, for a
 * debugger. Define _GNU_SOURCE and the like before including this.
 */
#ifndef TOC_TESTS_SUPPORT_TOC_CHECK_H
#define TOC_TESTS_SUPPORT_TOC_CHECK_H

#include "common/base/os_time.h"
#include "common/base/str.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef const TTest *toc_check_test;

/* Each test must end by the signal (0: must return). Tests that must die are
 * left out when tests do not run in processes of their own. */
static inline int
toc_check_run_signal(const char *name, const toc_check_test *tests, size_t n,
                     int signal)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    for (size_t i = 0; i < n; i++)
        tcase_add_test_raise_signal(tcase, tests[i], signal);
    tcase_set_timeout(tcase, 60);
    if (signal == 0 || srunner_fork_status(runner) == CK_FORK)
        suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int
toc_check_run(const char *name, const toc_check_test *tests, size_t n)
{
    return toc_check_run_signal(name, tests, n, 0);
}

/* Each test between setup and teardown, in the test's own process. */
static inline int
toc_check_run_with(const char *name, const toc_check_test *tests, size_t n,
                   void (*setup)(void), void (*teardown)(void))
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tcase, tests[i]);
    tcase_set_timeout(tcase, 100);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define TOC_CHECK_MAIN(name, ...)                                          \
    int main(void)                                                         \
    {                                                                      \
        const toc_check_test tests[] = {__VA_ARGS__};                      \
        return toc_check_run(name, tests, sizeof tests / sizeof tests[0]); \
    }

/* Is a text of the code under test what it should be? */
#define TOC_ASSERT_STR(str, text)                      \
    ck_assert_msg(toc_str_eq((str), toc_str_of(text)), \
                  "\"%.*s\" is not \"%s\"", (int)(str).len, (str).ptr, (text))

/* Waits until fn(arg) holds, looking every ms, for at most 10 s. */
static inline bool
toc_eventually(bool (*fn)(void *), void *arg)
{
    int64_t now = toc_os_mono_ns();
    int64_t deadline = now + INT64_C(10000000000);

    while (!fn(arg)) {
        if (now >= deadline)
            return false;
        toc_os_sleep_until_mono(now + 1000000);
        now = toc_os_mono_ns();
    }
    return true;
}

#endif
