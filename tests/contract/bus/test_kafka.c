/*
 * Goal: the backend on Kafka keeps the port's contract.
 * Method: the suite on a real Kafka, whose broker is also frozen.
 */
#define _GNU_SOURCE
#include "tests/integration/bus/kafka_fixture.h"

#define SEEDS_USUAL 1
#include "tests/contract/bus/bus_suite.h"

int
main(void)
{
    const toc_check_test tests[] = {BUS_SUITE};
    if (kafka_cannot_run())
        return EXIT_SUCCESS;
    int failed =
        toc_check_run_with("bus contract: kafka", tests,
                           sizeof tests / sizeof tests[0], broker_thaw, NULL);
    broker_thaw(); /* a test that failed may have left it frozen */
    return failed;
}
