/*
 * Goal: each transaction can fail without effect, or take effect and lose its
 * answer; without a plan nothing changes.
 * Method: the decorator on the memory backend, a table of faults; what stands
 * in the store is read past the decorator.
 */
#include "common/base/arena.h"
#include "common/clock/sim/clock_sim.h"
#include "common/store/fault/store_fault.h"
#include "common/store/mem/store_mem.h"
#include "tests/support/fault_table.h"
#include "tests/support/toc_check.h"

#define NOW INT64_C(1800000000000)

static struct toc_clock_sim sim;
static struct toc_store_mem *mem;
static struct toc_store *inner;
static struct toc_store_fault fault;
static struct fault_table table;
static struct toc_task task;

static void
setup(void)
{
    memset(&table, 0, sizeof table);
    toc_clock_sim_init(&sim, (struct toc_wall){NOW});
    mem = toc_store_mem_open(
        &(struct toc_store_mem_options){.clock = &sim.clock, .seed = 1});
    inner = toc_store_mem_port(mem);
    toc_store_fault_init(&fault, inner, fault_table_plan(&table));
}

static void
teardown(void)
{
    toc_store_mem_close(mem);
}

static size_t
nodes_now(void)
{
    struct toc_arena arena = {0};
    struct toc_node_row *nodes;
    size_t n = 0;

    ck_assert_int_eq(toc_store_list_nodes(inner, &arena, &nodes, &n, NULL),
                     TOC_OK);
    toc_arena_done(&arena);
    return n;
}

static enum toc_status
register_node(void)
{
    uint32_t id;

    return toc_store_register_node(&fault.port, TOC_STR("scheduler"),
                                   TOC_STR("a"), TOC_STR("h:1"), NOW, &id,
                                   NULL);
}

START_TEST(a_transaction_can_fail_or_lose_its_answer)
{
    table.rows[0] = (struct fault_row){"register_node", 1, TOC_FAULT_FAIL};
    table.rows[1] = (struct fault_row){"register_node", 2, TOC_FAULT_LOSE_ACK};
    ck_assert_int_eq(register_node(), TOC_UNAVAILABLE);
    ck_assert_uint_eq(nodes_now(), 0);
    ck_assert_int_eq(register_node(), TOC_UNAVAILABLE);
    ck_assert_uint_eq(nodes_now(), 1);
    ck_assert_int_eq(register_node(), TOC_OK);
    ck_assert_uint_eq(nodes_now(), 2);
    ck_assert_uint_eq(fault_table_count(&table, "register_node")->ended, 2);
}
END_TEST

static enum toc_status
submit(struct toc_submit *item)
{
    struct toc_submit *items[] = {item};

    return toc_store_submit(&fault.port, items, 1, NOW, NULL);
}

/* The id is kept, so that the repeated submit finds its own task. */
START_TEST(a_submit_whose_answer_is_lost_is_repeated_without_harm)
{
    struct toc_submit item = {.task = &task, .key_window_ms = 1000};

    task = (struct toc_task){.fire = 1,
                             .version = 1,
                             .due_ms = NOW + 5000,
                             .created_ms = NOW,
                             .biz_type = TOC_STR("order"),
                             .biz_id = TOC_STR("1")};
    task.key_hash = toc_key_hash_of(task.biz_type, task.biz_id, task.name);
    task.slice =
        toc_slice_of(toc_key_shard(task.key_hash), TOC_PRIORITY_NORMAL);
    table.rows[0] = (struct fault_row){"submit", 1, TOC_FAULT_FAIL};
    table.rows[1] = (struct fault_row){"submit", 2, TOC_FAULT_LOSE_ACK};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(submit(&item), TOC_UNAVAILABLE);
    ck_assert_int_eq(submit(&item), TOC_OK);
    ck_assert_int_eq(item.result, TOC_SUBMIT_CREATED);
}
END_TEST

START_TEST(without_a_plan_nothing_changes)
{
    int64_t now_ms = 0;

    toc_store_fault_init(&fault, inner, NULL);
    ck_assert_int_eq(toc_store_now(&fault.port, &now_ms, NULL), TOC_OK);
    ck_assert_int_eq(now_ms, NOW);
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {
        a_transaction_can_fail_or_lose_its_answer,
        a_submit_whose_answer_is_lost_is_repeated_without_harm,
        without_a_plan_nothing_changes,
    };

    return toc_check_run_with("store faults", tests,
                              sizeof tests / sizeof tests[0], setup, teardown);
}
