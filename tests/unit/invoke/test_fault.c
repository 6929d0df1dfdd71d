/*
 * Goal: a call can be never sent, or be made and lose its answer; it ends once
 * and can be cancelled all the same.
 * Method: the decorator on the memory backend, a table of faults.
 */
#include "common/clock/sim/clock_sim.h"
#include "common/invoke/fault/invoke_fault.h"
#include "common/invoke/mem/invoke_mem.h"
#include "tests/support/fault_table.h"
#include "tests/support/toc_check.h"

#include <string.h>

static struct toc_clock_sim sim;
static struct toc_invoke_mem_world *world;
static struct toc_invoke_mem *mem;
static struct toc_invoke_fault fault;
static struct fault_table table;
static struct toc_task task;
static struct toc_spec spec;
static struct toc_fire fire;
static struct toc_call call;
static size_t served, done;
static bool hangs;

static void
serve(void *arg, struct toc_invoke_mem_request *request)
{
    const struct toc_answer answer = {.kind = TOC_ANSWER_DONE};

    (void)arg;
    served++;
    if (hangs)
        toc_invoke_mem_drop(world, request);
    else
        toc_invoke_mem_answer(world, request, &answer, 1);
}

static void
note_done(struct toc_call *ended)
{
    ck_assert_ptr_eq(ended, &call);
    ck_assert_ptr_null(ended->backend);
    done++;
}

static void
setup(void)
{
    memset(&table, 0, sizeof table);
    memset(&task, 0, sizeof task);
    memset(&spec, 0, sizeof spec);
    served = done = 0;
    hangs = false;
    toc_clock_sim_init(&sim, (struct toc_wall){1800000000000});
    world = toc_invoke_mem_world_new(
        &(struct toc_invoke_mem_options){.clock = &sim.clock});
    toc_invoke_mem_serve(world, "shop:1", serve, NULL);
    mem = toc_invoke_mem_new(world, NULL);
    toc_invoke_fault_init(&fault, toc_invoke_mem_port(mem),
                          fault_table_plan(&table));
}

static void
teardown(void)
{
    toc_invoke_mem_free(mem);
    toc_invoke_fault_done(&fault);
    toc_invoke_mem_world_free(world);
}

static void
start(void)
{
    fire = (struct toc_fire){.task = &task, .spec = &spec, .attempt = 1};
    call = (struct toc_call){.target = TOC_STR("grpc://shop:1"),
                             .fires = &fire,
                             .n = 1,
                             .deadline_ns = toc_clock_mono(&sim.clock).ns +
                                            1000 * TOC_NS_PER_MS,
                             .done = note_done};
    toc_invoke_start(&fault.port, &call);
    (void)toc_invoke_mem_pump(world);
}

START_TEST(a_call_can_be_kept_back_or_lose_its_answer)
{
    table.rows[0] = (struct fault_row){"start", 1, TOC_FAULT_FAIL};
    table.rows[1] = (struct fault_row){"start", 2, TOC_FAULT_LOSE_ACK};
    start();
    ck_assert_uint_eq(served, 0);
    ck_assert_int_eq(fire.answer.kind, TOC_ANSWER_UNREACHABLE);
    start();
    ck_assert_uint_eq(served, 1);
    ck_assert_int_eq(fire.answer.kind, TOC_ANSWER_UNKNOWN);
    start();
    ck_assert_int_eq(fire.answer.kind, TOC_ANSWER_DONE);
    ck_assert_uint_eq(done, 3);
    ck_assert_uint_eq(fault_table_count(&table, "start")->ended, 2);
}
END_TEST

START_TEST(a_call_can_be_cancelled)
{
    hangs = true;
    for (int all = 0; all < 2; all++) {
        start();
        ck_assert_uint_eq(done, (size_t)all);
        if (all)
            toc_invoke_cancel_all(&fault.port);
        else
            toc_invoke_cancel(&fault.port, &call);
        (void)toc_invoke_mem_pump(world);
        ck_assert_uint_eq(done, (size_t)all + 1);
        ck_assert_int_eq(fire.answer.kind, TOC_ANSWER_UNKNOWN);
        toc_invoke_cancel(&fault.port, &call); /* too late: nothing */
    }
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {
        a_call_can_be_kept_back_or_lose_its_answer,
        a_call_can_be_cancelled,
    };

    return toc_check_run_with("invoke faults", tests,
                              sizeof tests / sizeof tests[0], setup, teardown);
}
