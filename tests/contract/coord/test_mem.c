/*
 * Goal: the memory backend keeps the port's contract, and fails as it is told.
 * Method: the suite by a simulated clock; then each fault, one at a time; then
 * threads that wait by the real clock.
 */
#include "common/base/thread.h"
#include "common/clock/os/clock_os.h"
#include "common/clock/sim/clock_sim.h"
#include "common/coord/mem/coord_mem.h"

#include <stdbool.h>
#include <stdint.h>

static struct toc_clock_sim sim;
static struct toc_coord_mem_world *world;

static int64_t
now_ms(void)
{
    return toc_clock_mono(&sim.clock).ns / TOC_NS_PER_MS;
}

static void
time_goes_on(void)
{
    toc_clock_sim_advance_ns(&sim, 10 * TOC_NS_PER_MS);
}

#define SEEDS_USUAL 20
#include "tests/contract/coord/coord_suite.h"

static void
pass(int64_t ms)
{
    toc_clock_sim_advance_ns(&sim, ms * TOC_NS_PER_MS);
}

static void
backend_begin(void)
{
    toc_clock_sim_init(&sim, (struct toc_wall){1800000000000});
    world = toc_coord_mem_world_new(
        &(struct toc_coord_mem_world_options){.clock = &sim.clock});
}

static void
backend_join(struct view *view, const char *role, const char *node)
{
    memset(view, 0, sizeof *view);
    view->handle = toc_coord_mem_open(
        world,
        &(struct toc_coord_mem_options){.role = role,
                                        .node = node,
                                        .address = "127.0.0.1:4711",
                                        .node_id = 4000000000,
                                        .started_ms = INT64_C(9007199254740993),
                                        .watch_owners = true});
    view->coord = toc_coord_mem_port(view->handle);
}

static void
backend_part(struct view *view)
{
    toc_coord_mem_close(view->handle);
    view->handle = NULL;
}

static void
backend_revoke(const char *node)
{
    const struct {
        const char *node;
        const struct view *view;
    } all[] = {{"a", &va},
               {"b", &vb},
               {node_names[0], &nodes[0]},
               {node_names[1], &nodes[1]},
               {node_names[2], &nodes[2]}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].node, node) == 0)
            toc_coord_mem_expire(all[i].view->handle);
}

static void
backend_end(void)
{
    toc_coord_mem_world_free(world);
}

/* ---- faults -------------------------------------------------------------- */

static void
begin_two(void)
{
    backend_begin();
    join(&va, "a");
    join(&vb, "b");
}

static void
end_two(void)
{
    backend_part(&va);
    backend_part(&vb);
    backend_end();
}

static bool
acquire_one(struct view *view, uint16_t shard)
{
    bool won = false;
    ck_assert_int_eq(toc_coord_acquire(view->coord, &shard, 1, &won, NULL),
                     TOC_OK);
    return won;
}

START_TEST(a_process_cut_off_loses_its_session_by_its_own_clock_first)
{
    begin_two();
    ck_assert(acquire_one(&va, 5));
    POLL_UNTIL(&vb, strcmp(vb.owners[5], "a") == 0);
    toc_coord_mem_cut(va.handle, true);
    int64_t deadline = toc_coord_deadline_boot_ns(va.coord);
    pass((deadline - toc_clock_boot(&sim.clock).ns) / TOC_NS_PER_MS);
    ck_assert_int_eq(toc_coord_deadline_boot_ns(va.coord), 0);
    view_poll(&vb, 0);
    ck_assert_str_eq(vb.owners[5], "a"); /* the server waits a little longer */
    view_poll(&va, 0);
    ck_assert(!va.session);
    ck_assert_uint_eq(va.errors, 1);
    view_poll(&va, 0); /* a pause: not an error with each poll */
    ck_assert_uint_eq(va.errors, 1);
    pass(700);
    view_poll(&vb, 0);
    ck_assert_str_eq(vb.owners[5], "");
    ck_assert_uint_eq(vb.n_members, 1);
    toc_coord_mem_cut(va.handle, false);
    UNTIL_READY(&va);
    ck_assert_uint_eq(va.n_members, 2);
    end_two();
}
END_TEST

START_TEST(a_short_cut_costs_nothing)
{
    begin_two();
    ck_assert(acquire_one(&va, 5));
    toc_coord_mem_cut(va.handle, true);
    pass(900);
    bool won = false;
    ck_assert_int_eq(toc_coord_acquire(va.coord, &(uint16_t){6}, 1, &won, NULL),
                     TOC_UNAVAILABLE);
    toc_coord_mem_cut(va.handle, false);
    pass(5000);
    view_poll(&va, 0);
    ck_assert(va.session);
    ck_assert_ptr_null(strchr(va.kinds, 'L'));
    end_two();
}
END_TEST

START_TEST(a_killed_process_is_missed_when_its_lease_ends)
{
    begin_two();
    ck_assert(acquire_one(&va, 5));
    toc_coord_mem_kill(va.handle);
    int64_t next = toc_coord_mem_pump(world) - toc_clock_mono(&sim.clock).ns;
    ck_assert_int_gt(next, 0);
    ck_assert_int_le(next, 2000 * TOC_NS_PER_MS);
    pass(1900);
    view_poll(&vb, 0);
    ck_assert_str_eq(vb.owners[5], "a");
    pass(200);
    view_poll(&vb, 0);
    ck_assert_str_eq(vb.owners[5], "");
    ck_assert_uint_eq(vb.n_members, 1);
    backend_part(&vb);
    backend_end();
}
END_TEST

START_TEST(a_lie_makes_two_owners)
{
    begin_two();
    ck_assert(acquire_one(&va, 5));
    ck_assert(!acquire_one(&vb, 5));
    toc_coord_mem_lie(world, true);
    ck_assert(acquire_one(&vb, 5));
    toc_coord_mem_lie(world, false);
    ck_assert(!acquire_one(&vb, 5));
    end_two();
}
END_TEST

START_TEST(changes_can_be_lost_and_late)
{
    begin_two();
    view_poll(&va, 0);
    toc_coord_mem_lose_events(va.handle, 1);
    ck_assert(acquire_one(&vb, 1));
    ck_assert(acquire_one(&vb, 2));
    view_poll(&va, 0);
    ck_assert_str_eq(va.owners[1], "");
    ck_assert_str_eq(va.owners[2], "b");
    toc_coord_mem_delay_events(va.handle, 500);
    ck_assert(acquire_one(&vb, 3));
    pass(499);
    view_poll(&va, 0);
    ck_assert_str_eq(va.owners[3], "");
    pass(1);
    view_poll(&va, 0);
    ck_assert_str_eq(va.owners[3], "b");
    end_two();
}
END_TEST

START_TEST(a_compacted_history_is_read_anew)
{
    begin_two();
    view_poll(&va, 0);
    view_forget_kinds(&va);
    ck_assert(acquire_one(&vb, 1));
    toc_coord_mem_compact(world);
    view_poll(&va, 0);
    ck_assert_str_eq(va.kinds, "RUUOS");
    ck_assert(acquire_one(&vb, 2));
    view_poll(&va, 0);
    ck_assert_str_eq(va.kinds, "RUUOSO");
    end_two();
}
END_TEST

/* A history that is full forgets its older half. */
START_TEST(history_is_bounded)
{
    toc_clock_sim_init(&sim, (struct toc_wall){1800000000000});
    world = toc_coord_mem_world_new(&(struct toc_coord_mem_world_options){
        .clock = &sim.clock, .history_max = 8});
    join(&va, "a");
    join(&vb, "b");
    for (uint16_t s = 0; s < 100; s++)
        ck_assert(acquire_one(&vb, s));
    view_poll(&va, 0);
    ck_assert_uint_eq(view_owned_by(&va, "b"), 100);
    ck_assert_ptr_nonnull(strstr(va.kinds, "SR"));
    end_two();
}
END_TEST

START_TEST(a_wiped_server_is_told_anew)
{
    begin_two();
    ck_assert(acquire_one(&va, 9));
    view_poll(&va, 0);
    view_poll(&vb, 0);
    toc_coord_mem_wipe(world);
    view_poll(&vb, 0);
    ck_assert_str_eq(vb.owners[9], "");
    /* whose lease is gone notices at the next renewal */
    pass(700);
    view_poll(&va, 0);
    ck_assert_ptr_nonnull(strchr(va.kinds, 'L'));
    UNTIL_READY(&va);
    UNTIL_READY(&vb);
    ck_assert(acquire_one(&va, 9));
    end_two();
}
END_TEST

START_TEST(a_restored_server_goes_back)
{
    struct toc_coord_mem_backup *backup;
    begin_two();
    ck_assert(acquire_one(&va, 1));
    backup = toc_coord_mem_backup_new(world);
    ck_assert(acquire_one(&va, 2));
    ck_assert_int_eq(toc_coord_release(va.coord, &(uint16_t){1}, 1, NULL),
                     TOC_OK);
    POLL_UNTIL(&vb, strcmp(vb.owners[2], "a") == 0);
    ck_assert_str_eq(vb.owners[1], "");
    toc_coord_mem_restore(world, backup);
    toc_coord_mem_backup_free(world, backup);
    view_poll(&vb, 0);
    ck_assert_str_eq(vb.owners[1], "a");
    ck_assert_str_eq(vb.owners[2], "");
    pass(5000); /* its lease is there, so its session goes on */
    view_poll(&va, 0);
    ck_assert_ptr_null(strchr(va.kinds, 'L'));
    end_two();
}
END_TEST

START_TEST(a_server_that_stands_still_ends_no_lease)
{
    begin_two();
    ck_assert(acquire_one(&va, 1));
    toc_coord_mem_stop(world, true);
    pass(60000);
    view_poll(&va, 0);
    ck_assert(!va.session);
    ck_assert_uint_eq(va.errors, 1);
    toc_coord_mem_stop(world, false);
    view_poll(&vb, 0);
    UNTIL_READY(&va);
    UNTIL_READY(&vb);
    ck_assert(
        acquire_one(&vb, 1)); /* the old lease went with the new session */
    end_two();
}
END_TEST

START_TEST(who_watches_members_only_hears_of_no_shard)
{
    begin_two();
    backend_part(&vb);
    memset(&vb, 0, sizeof vb);
    vb.handle = toc_coord_mem_open(
        world, &(struct toc_coord_mem_options){
                   .role = "executor", .node = "e", .address = "h:1"});
    vb.coord = toc_coord_mem_port(vb.handle);
    UNTIL_READY(&vb);
    ck_assert(acquire_one(&va, 1));
    view_poll(&vb, 0);
    ck_assert_ptr_null(strchr(vb.kinds, 'O'));
    ck_assert_uint_eq(vb.n_members, 2);
    end_two();
}
END_TEST

START_TEST(an_interrupted_handle_can_only_leave)
{
    bool won = false;
    begin_two();
    toc_coord_interrupt(va.coord);
    ck_assert_int_eq(toc_coord_acquire(va.coord, &(uint16_t){1}, 1, &won, NULL),
                     TOC_UNAVAILABLE);
    view_poll(&va, 60000);
    ck_assert_uint_eq(va.errors, 1);
    ck_assert_int_eq(toc_coord_leave(va.coord, NULL), TOC_OK);
    POLL_UNTIL(&vb, vb.n_members == 1);
    end_two();
}
END_TEST

/* ---- threads --------------------------------------------------------------
 */

struct racer {
    struct toc_coord_mem *handle;
    struct toc_thread thread;
    _Atomic bool ready;
    uint16_t shards[ALL];
    bool won[ALL];
    enum toc_status st;
};

static void
note_synced(void *arg, const struct toc_coord_event *event)
{
    struct racer *racer = arg;
    if (event->kind == TOC_COORD_SYNCED)
        racer->ready = true;
}

static void
race_main(void *arg)
{
    struct racer *racer = arg;
    struct toc_coord *coord = toc_coord_mem_port(racer->handle);
    while (!racer->ready)
        racer->st = toc_coord_poll(coord, 1000, note_synced, racer, NULL);
    racer->st = toc_coord_acquire(coord, racer->shards, ALL, racer->won, NULL);
}

START_TEST(one_winner_for_each_shard_among_threads)
{
    enum { N = 3 };
    static struct racer racers[N];
    world = toc_coord_mem_world_new(&(struct toc_coord_mem_world_options){
        .clock = toc_clock_os(), .threads = true});
    for (size_t i = 0; i < N; i++) {
        shards_from(racers[i].shards, ALL, 0);
        racers[i].handle = toc_coord_mem_open(
            world, &(struct toc_coord_mem_options){.role = "scheduler",
                                                   .node = node_names[i],
                                                   .address = "h:1",
                                                   .watch_owners = true});
        toc_thread_start(&racers[i].thread, "racer", race_main, &racers[i]);
    }
    for (size_t i = 0; i < N; i++)
        toc_thread_join(&racers[i].thread);
    for (size_t s = 0; s < ALL; s++)
        ck_assert_int_eq(racers[0].won[s] + racers[1].won[s] + racers[2].won[s],
                         1);
    for (size_t i = 0; i < N; i++) {
        ck_assert_int_eq(racers[i].st, TOC_OK);
        toc_coord_mem_close(racers[i].handle);
    }
    toc_coord_mem_world_free(world);
}
END_TEST

static void
leave_main(void *arg)
{
    toc_coord_mem_close(arg);
}

START_TEST(a_waiting_poll_ends_with_a_change_or_a_wake)
{
    struct toc_thread thread = {0};
    world = toc_coord_mem_world_new(&(struct toc_coord_mem_world_options){
        .clock = toc_clock_os(), .threads = true});
    backend_join(&va, "scheduler", "a");
    backend_join(&vb, NULL, NULL);
    while (!va.synced)
        view_poll(&va, 1000);
    while (!vb.synced)
        view_poll(&vb, 1000);
    toc_thread_start(&thread, "leaver", leave_main, va.handle);
    while (vb.n_members > 0)
        view_poll(&vb, 60000); /* the test's time limit would end it */
    toc_thread_join(&thread);
    toc_coord_wake(vb.coord);
    view_poll(&vb, 60000);
    backend_part(&vb);
    toc_coord_mem_world_free(world);
}
END_TEST

TOC_CHECK_MAIN("coord contract: memory", COORD_SUITE,
               a_process_cut_off_loses_its_session_by_its_own_clock_first,
               a_short_cut_costs_nothing,
               a_killed_process_is_missed_when_its_lease_ends,
               a_lie_makes_two_owners, changes_can_be_lost_and_late,
               a_compacted_history_is_read_anew, history_is_bounded,
               a_wiped_server_is_told_anew, a_restored_server_goes_back,
               a_server_that_stands_still_ends_no_lease,
               who_watches_members_only_hears_of_no_shard,
               an_interrupted_handle_can_only_leave,
               one_winner_for_each_shard_among_threads,
               a_waiting_poll_ends_with_a_change_or_a_wake)
