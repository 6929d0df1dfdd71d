/*
 * Goal: the store in memory keeps the port's contract. Method: the suite, on a
 * clock that stands still.
 */
#include "tests/contract/store/suite_execute.h"
#include "tests/contract/store/suite_mem.h"
#include "tests/contract/store/suite_submit.h"
#include "tests/contract/store/suite_sweep.h"

int
main(void)
{
    const toc_check_test tests[] = {STORE_SUITE};

    return run_mem("store_contract_mem", tests, sizeof tests / sizeof tests[0]);
}
