/*
 * Goal: a quota is read as cores, whatever else stands there limits nothing;
 * this process may use some. Method: texts; the machine the test runs on.
 */
#include "common/base/cores.h"

#include "tests/support/toc_check.h"

static double
cores(const char *text)
{
    return toc_cores_of_quota(toc_str_of(text));
}

START_TEST(quotas)
{
    ck_assert(cores("200000 100000\n") == 2);
    ck_assert(cores("50000 100000") == 0.5);
    ck_assert(cores("max 100000\n") == 0);
    ck_assert(cores("") == 0);
    ck_assert(cores("\n") == 0);
    ck_assert(cores("100000") == 0);
    ck_assert(cores("100000 0") == 0);
    ck_assert(cores("-1 100000") == 0);
    ck_assert(cores("99999999999999999999 100000") == 0);
}
END_TEST

START_TEST(there_are_some)
{
    ck_assert(toc_os_cores() > 0);
    ck_assert(toc_os_cores() < 100000);
}
END_TEST

TOC_CHECK_MAIN("cores", quotas, there_are_some)
