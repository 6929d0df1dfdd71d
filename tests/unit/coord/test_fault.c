/*
 * Goal: each operation can fail without effect, or take effect and lose its
 * answer; results are then untouched; without a plan nothing changes.
 * Method: the decorator on the memory backend, a table of faults, a second
 * handle that sees what stands there.
 */
#include "common/clock/sim/clock_sim.h"
#include "common/coord/fault/coord_fault.h"
#include "common/coord/mem/coord_mem.h"
#include "tests/support/fault_table.h"
#include "tests/support/toc_check.h"

static struct toc_clock_sim sim;
static struct toc_coord_mem_world *world;
static struct toc_coord_mem *mem, *look;
static struct toc_coord_fault fault;
static struct fault_table table;
static size_t events;

static void
count_event(void *arg, const struct toc_coord_event *event)
{
    (void)arg;
    (void)event;
    events++;
}

static struct toc_coord_mem *
open_handle(const char *role)
{
    return toc_coord_mem_open(world,
                              &(struct toc_coord_mem_options){
                                  .role = role, .node = "a", .address = "h:1"});
}

static void
setup(void)
{
    memset(&table, 0, sizeof table);
    events = 0;
    toc_clock_sim_init(&sim, (struct toc_wall){1800000000000});
    world = toc_coord_mem_world_new(
        &(struct toc_coord_mem_world_options){.clock = &sim.clock});
    mem = open_handle("scheduler");
    look = open_handle(NULL);
    toc_coord_fault_init(&fault, toc_coord_mem_port(mem),
                         fault_table_plan(&table));
}

static void
teardown(void)
{
    toc_coord_mem_close(mem);
    toc_coord_mem_close(look);
    toc_coord_mem_world_free(world);
}

static size_t
owners_now(void)
{
    struct toc_arena arena = {0};
    struct toc_member *members;
    struct toc_owner *owners;
    size_t n_members, n_owners;

    ck_assert_int_eq(toc_coord_snapshot(toc_coord_mem_port(look), &arena,
                                        &members, &n_members, &owners,
                                        &n_owners, NULL),
                     TOC_OK);
    toc_arena_done(&arena);
    return n_owners;
}

static enum toc_status
poll_once(void)
{
    return toc_coord_poll(&fault.port, 0, count_event, NULL, NULL);
}

static enum toc_status
acquire(uint16_t shard, bool *ret_won)
{
    return toc_coord_acquire(&fault.port, &shard, 1, ret_won, NULL);
}

START_TEST(a_claim_can_fail_or_lose_its_answer)
{
    bool won = false;

    table.rows[0] = (struct fault_row){"acquire", 1, TOC_FAULT_FAIL};
    table.rows[1] = (struct fault_row){"acquire", 2, TOC_FAULT_LOSE_ACK};
    ck_assert_int_eq(poll_once(), TOC_OK);
    ck_assert_int_eq(acquire(1, &won), TOC_UNAVAILABLE);
    ck_assert_uint_eq(owners_now(), 0);
    ck_assert_int_eq(acquire(1, &won), TOC_UNAVAILABLE);
    ck_assert_uint_eq(owners_now(), 1);
    ck_assert(!won);
    ck_assert_int_eq(acquire(1, &won), TOC_OK); /* it is ours */
    ck_assert(won);
    ck_assert_uint_eq(fault_table_count(&table, "acquire")->calls, 3);
    ck_assert_uint_eq(fault_table_count(&table, "acquire")->ended, 2);
}
END_TEST

START_TEST(giving_up_can_fail_or_lose_its_answer)
{
    bool won = false;
    uint16_t shard = 1;

    table.rows[0] = (struct fault_row){"release", 1, TOC_FAULT_FAIL};
    table.rows[1] = (struct fault_row){"release", 2, TOC_FAULT_LOSE_ACK};
    table.rows[2] = (struct fault_row){"want", 1, TOC_FAULT_LOSE_ACK};
    table.rows[3] = (struct fault_row){"leave", 1, TOC_FAULT_FAIL};
    ck_assert_int_eq(poll_once(), TOC_OK);
    ck_assert_int_eq(acquire(1, &won), TOC_OK);
    ck_assert_int_eq(toc_coord_release(&fault.port, &shard, 1, NULL),
                     TOC_UNAVAILABLE);
    ck_assert_uint_eq(owners_now(), 1);
    ck_assert_int_eq(toc_coord_release(&fault.port, &shard, 1, NULL),
                     TOC_UNAVAILABLE);
    ck_assert_uint_eq(owners_now(), 0);
    ck_assert_int_eq(toc_coord_want(&fault.port, &shard, 1, true, NULL),
                     TOC_UNAVAILABLE);
    ck_assert_int_eq(toc_coord_leave(&fault.port, NULL), TOC_UNAVAILABLE);
    ck_assert_int_gt(toc_coord_deadline_boot_ns(&fault.port), 0);
    ck_assert_int_eq(toc_coord_leave(&fault.port, NULL), TOC_OK);
    ck_assert_int_eq(toc_coord_deadline_boot_ns(&fault.port), 0);
}
END_TEST

START_TEST(a_poll_that_fails_tells_nothing_one_without_answer_all)
{
    table.rows[0] = (struct fault_row){"poll", 1, TOC_FAULT_FAIL};
    table.rows[1] = (struct fault_row){"poll", 2, TOC_FAULT_LOSE_ACK};
    table.rows[2] = (struct fault_row){"deadline", 1, TOC_FAULT_FAIL};
    ck_assert_int_eq(poll_once(), TOC_UNAVAILABLE);
    ck_assert_uint_eq(events, 0);
    ck_assert_int_eq(poll_once(), TOC_UNAVAILABLE);
    ck_assert_uint_gt(events, 0);
    ck_assert_int_eq(toc_coord_deadline_boot_ns(&fault.port), 0);
    ck_assert_int_gt(toc_coord_deadline_boot_ns(&fault.port), 0);
}
END_TEST

START_TEST(a_list_whose_answer_is_lost_leaves_results_alone)
{
    struct toc_arena arena = {0};
    struct toc_member *members = NULL;
    struct toc_owner *owners = NULL;
    size_t n_members = 77, n_owners = 77;

    table.rows[0] = (struct fault_row){"snapshot", 1, TOC_FAULT_LOSE_ACK};
    ck_assert_int_eq(toc_coord_snapshot(&fault.port, &arena, &members,
                                        &n_members, &owners, &n_owners, NULL),
                     TOC_UNAVAILABLE);
    ck_assert_ptr_null(members);
    ck_assert_uint_eq(n_owners, 77);
    ck_assert_int_eq(toc_coord_snapshot(&fault.port, &arena, &members,
                                        &n_members, &owners, &n_owners, NULL),
                     TOC_OK);
    ck_assert_uint_eq(n_members, 0);
    toc_arena_done(&arena);
}
END_TEST

START_TEST(without_a_plan_nothing_changes)
{
    bool won = false;

    toc_coord_fault_init(&fault, toc_coord_mem_port(mem), NULL);
    ck_assert_int_eq(poll_once(), TOC_OK);
    ck_assert_int_eq(acquire(1, &won), TOC_OK);
    ck_assert(won);
}
END_TEST

int
main(void)
{
    const toc_check_test tests[] = {
        a_claim_can_fail_or_lose_its_answer,
        giving_up_can_fail_or_lose_its_answer,
        a_poll_that_fails_tells_nothing_one_without_answer_all,
        a_list_whose_answer_is_lost_leaves_results_alone,
        without_a_plan_nothing_changes,
    };

    return toc_check_run_with("coord faults", tests,
                              sizeof tests / sizeof tests[0], setup, teardown);
}
