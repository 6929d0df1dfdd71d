/*
 * Goal: the store in memory keeps the port's contract. Method: the suite, on a
 * clock that stands still.
 */
#include "common/clock/sim/clock_sim.h"
#include "common/store/mem/store_mem.h"
#include "tests/contract/store/suite_execute.h"
#include "tests/contract/store/suite_submit.h"
#include "tests/contract/store/suite_sweep.h"

static struct toc_clock_sim clock_sim;
static struct toc_store_mem *mem;

static void
setup(void)
{
    struct toc_store_mem_options options = {.clock = &clock_sim.clock,
                                            .seed = 1};

    toc_clock_sim_init(&clock_sim, (struct toc_wall){1800000000000});
    mem = toc_store_mem_open(&options);
    su_begin(toc_store_mem_port(mem));
}

static void
teardown(void)
{
    su_end();
    toc_store_mem_close(mem);
}

int
main(void)
{
    const toc_check_test tests[] = {STORE_SUITE};
    Suite *suite = suite_create("store_contract_mem");
    TCase *tcase = tcase_create("store_contract_mem");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
