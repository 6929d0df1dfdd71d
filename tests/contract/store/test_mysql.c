/*
 * Goal: the store on a real server keeps the port's contract. Method: the
 * suite, each test in a database of its own.
 */
#include "tests/contract/store/suite_execute.h"
#include "tests/contract/store/suite_submit.h"
#include "tests/contract/store/suite_sweep.h"
#include "tests/integration/store/fixture.h"

static void
begin(void)
{
    setup();
    su_begin(fx.store);
}

int
main(void)
{
    const toc_check_test tests[] = {STORE_SUITE};

    return run_tests("store_contract_mysql", tests,
                     sizeof tests / sizeof tests[0], 120, begin);
}
