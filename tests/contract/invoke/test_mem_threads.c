/*
 * Goal: the memory backend keeps the port's contract when it has a thread of
 * its own.
 * Method: the suite by the real clock, as an embedded center runs.
 */
#include "common/base/os_time.h"
#include "common/clock/os/clock_os.h"
#include "common/invoke/mem/invoke_mem.h"

static void
time_goes_on(void)
{
    toc_os_sleep_until_mono(toc_os_mono_ns() + 1000000);
}

#define SEEDS_USUAL 3
#include "tests/contract/invoke/invoke_suite.h"

#include "tests/contract/invoke/mem_business.h"

static struct toc_invoke_mem_world *world;
static struct toc_invoke_mem *client;

static const struct toc_clock *
backend_clock(void)
{
    return toc_clock_os();
}

static void
backend_begin(void)
{
    world = toc_invoke_mem_world_new(&(struct toc_invoke_mem_options){
        .clock = toc_clock_os(), .threads = true});
    client = toc_invoke_mem_new(world, NULL);
    fx.invoke = toc_invoke_mem_port(client);
    business_begin(world);
}

static void
backend_release(void)
{
    business_release();
}

static void
backend_stop_server(void)
{
    toc_invoke_mem_unserve(world, BUSINESS);
}

static void
backend_end(void)
{
    toc_invoke_mem_free(client);
    toc_invoke_mem_world_free(world);
}

int
main(void)
{
    const toc_check_test tests[] = {INVOKE_SUITE};

    return invoke_suite_run("invoke contract: memory, threads", tests,
                            sizeof tests / sizeof tests[0]);
}
