#include "tests/sim/sched.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/model/spec.h"

#include <string.h>

#define FAR_NS (INT64_MAX / 4)
#define START_RETRY_MS 300
#define WINDOW_MS INT64_C(86400000)
#define CALL_TIMEOUT_MS 1000

/* What a scheduler process holds; all of it goes with a kill. */
struct sim_life_of_sched {
    struct sched_parts parts;
    struct sched_combiner combiner;
    struct sched_peers *peers;
    uint32_t node_id;
};

/* ---- steps as the runner makes them ---------------------------------- */

static int64_t
step_publisher(void *self)
{
    return sched_publisher_step(self);
}

static int64_t
step_loader(void *self)
{
    return sched_loader_step(self);
}

static int64_t
step_sweep(void *self)
{
    return sched_sweep_step(self);
}

static int64_t
step_lag(void *self)
{
    return sched_lag_step(self);
}

static int64_t
step_housekeep(void *self)
{
    return sched_housekeep_step(self);
}

static int64_t
step_skew(void *self)
{
    return sched_skew_step(self);
}

static int64_t
step_combiner(void *self)
{
    return sched_combiner_step(self);
}

static int64_t
step_coord(void *self)
{
    struct sim_sched *sched = self;

    sched_keeper_turn(&sched->life->parts.keeper, 1000);
    return 0;
}

/* ---- what its RPC front does ------------------------------------------ */

static void
end_request(struct sim_sched *sched, struct sim_request *request,
            enum toc_status st)
{
    struct sim_world *world = sched->proc.world;

    toc_list_remove(&request->in_hand);
    request->st = st;
    request->over = true;
    sim_nudge(world, request,
              world->now_ns + sim_between(world, SIM_MS / 20, SIM_MS));
}

struct submission {
    struct sched_submit_item item;
    struct sim_sched *sched;
    struct sim_request *request;
    struct toc_buf spec;
    char biz_id[16];
    uint8_t bytes[8];
};

static void
submit_done(struct sched_submit_item *item)
{
    struct submission *submission = item->arg;
    struct sim_sched *sched = submission->sched;

    submission->request->submitted = item->submit.result;
    if (item->st == TOC_OK && item->submit.result == TOC_SUBMIT_CREATED)
        sched_peers_offer(sched->life->peers, &item->task);
    end_request(sched, submission->request, item->st);
    toc_buf_done(&submission->spec);
    toc_free(submission);
}

static void
fill_spec(const struct sim_task *task, struct toc_buf *out)
{
    struct toc_spec spec = {.target = TOC_STR("grpc://business:1"),
                            .call_timeout_ms = CALL_TIMEOUT_MS,
                            .at_most_once = task->at_most_once,
                            .retry = {.max_retries = 8,
                                      .n_steps = 3,
                                      .step_ms = {500, 1000, 3000}}};

    toc_spec_encode(&spec, out);
}

static void
fill_item(struct submission *submission)
{
    const struct sim_request *request = submission->request;
    struct sched_submit_item *item = &submission->item;
    struct toc_task *task = &item->task;

    toc_copy(submission->biz_id, sizeof submission->biz_id,
             toc_str_of(request->task->biz_id));
    fill_spec(request->task, &submission->spec);
    *task = (struct toc_task){
        .state = TOC_STATE_INIT,
        .flags = request->task->at_most_once ? TOC_FLAG_AT_MOST_ONCE : 0,
        .fire = 1,
        .version = 1,
        .due_ms = request->due_ms,
        .created_ms = toc_clock_wall(&submission->sched->proc.clock).ms,
        .biz_type = TOC_STR(SIM_BIZ_TYPE),
        .biz_id = toc_str_of(submission->biz_id),
        .name = TOC_STR("close"),
        .spec = toc_buf_view(&submission->spec)};
    task->key_hash = toc_key_hash_of(task->biz_type, task->biz_id, task->name);
    task->slice =
        toc_slice_of(toc_key_shard(task->key_hash), request->task->priority);
    item->submit.task = task;
    item->submit.on_conflict = TOC_ON_CONFLICT_REJECT;
    item->submit.key_window_ms = WINDOW_MS;
    memcpy(item->submit.content, task->key_hash.b, sizeof item->submit.content);
    item->done = submit_done;
    item->arg = submission;
}

struct handing {
    struct sim_sched *sched;
    struct sim_request *request;
};

static void
take_submit(struct sim_sched *sched, struct sim_request *request)
{
    struct submission *submission = TOC_NEW(struct submission);
    struct sched_submit_item *item = &submission->item;

    submission->sched = sched;
    submission->request = request;
    fill_item(submission);
    if (sched_combiner_push(&sched->life->combiner, &item, 1))
        return;
    end_request(sched, request, TOC_EXHAUSTED);
    toc_buf_done(&submission->spec);
    toc_free(submission);
}

static void
take(void *arg)
{
    struct handing *handing = arg;
    struct sim_sched *sched = handing->sched;

    if (handing->request->submits) {
        take_submit(sched, handing->request);
    } else {
        toc_list_push(&sched->commands, &handing->request->link);
        sim_nudge(sched->proc.world, &sched->commands,
                  sched->proc.world->now_ns);
    }
}

bool
sim_sched_ask(struct sim_sched *sched, struct sim_request *request)
{
    struct handing handing = {sched, request};

    if (!sched->proc.alive || !sched->serves)
        return false;
    toc_list_init(&request->link);
    toc_list_init(&request->in_hand);
    toc_list_push(&sched->in_hand, &request->in_hand);
    sim_proc_call(&sched->proc, take, &handing);
    return true;
}

/* One command, as a worker does it. */
static void
work(struct sim_sched *sched, struct sim_request *request)
{
    struct toc_arena arena = {0};
    struct toc_error err = {0};
    char biz_id[16];
    struct toc_command command = {
        .kind = request->kind,
        .find = {.biz_type = TOC_STR(SIM_BIZ_TYPE), .name = TOC_STR("close")},
        .due_ms = request->due_ms,
        .now_ms = toc_clock_wall(&sched->proc.clock).ms,
        .who = TOC_STR("sim"),
        .why = TOC_STR("because")};
    enum toc_status st;

    if (sched->proc.world->now_ns > request->until_ns ||
        sched_skew_off_ms(&sched->life->parts.skew) != 0) {
        end_request(sched, request, TOC_CANCELLED); /* not begun */
        return;
    }
    toc_copy(biz_id, sizeof biz_id, toc_str_of(request->task->biz_id));
    command.find.biz_id = toc_str_of(biz_id);
    st = toc_store_command(&sched->store.port, &command, &arena, &err);
    request->commanded = command.result;
    if (st == TOC_OK && command.result == TOC_COMMAND_APPLIED)
        sched_peers_offer(sched->life->peers, command.task);
    end_request(sched, request, st);
    toc_arena_done(&arena);
}

static int64_t
step_worker(void *self)
{
    struct sim_sched *sched = self;
    struct toc_link *link = toc_list_pop(&sched->commands);

    if (link != NULL)
        work(sched, toc_container_of(link, struct sim_request, link));
    else
        sim_loop_await(&sched->commands, FAR_NS);
    return 0;
}

/* ---- life ------------------------------------------------------------ */

static void
open_clients(struct sim_sched *sched)
{
    struct sim_world *world = sched->proc.world;
    struct sim_pool *before = sim_pool_use(&world->pool);

    sched->coord_client = toc_coord_mem_open(
        sched->servers->coord,
        &(struct toc_coord_mem_options){.clock = &sched->proc.clock,
                                        .role = "scheduler",
                                        .node = sched->proc.name,
                                        .address = sched->proc.name,
                                        .node_id = sched->life->node_id,
                                        .watch_owners = true});
    sched->bus_client = toc_bus_mem_open(
        sched->servers->bus,
        &(struct toc_bus_mem_options){.report = sched_publisher_reported});
    (void)sim_pool_use(before);
    sim_coord_init(&sched->coord, toc_coord_mem_port(sched->coord_client),
                   sched->servers->coord);
    sim_bus_init(&sched->bus, toc_bus_mem_port(sched->bus_client),
                 sched->servers->bus);
}

static void
make_parts(struct sim_sched *sched)
{
    struct sim_life_of_sched *life = sched->life;

    sched_parts_init(&life->parts,
                     &(struct sched_parts_options){.settings = &sched->settings,
                                                   .clk = &sched->proc.clock,
                                                   .store = &sched->store.port,
                                                   .bus = &sched->bus.port,
                                                   .partitions = SIM_PARTITIONS,
                                                   .topics = sim_topics,
                                                   .group = SIM_GROUP});
    sched_combiner_init(&life->combiner, &(struct sched_combiner_options){
                                             .clk = &sched->proc.clock,
                                             .store = &sched->store.port,
                                             .skew = &life->parts.skew});
    life->peers = sched_peers_new(
        &(struct sched_peers_options){.clk = &sched->proc.clock,
                                      .shards = &life->parts.shards,
                                      .memory = &life->parts.memory});
    sched_parts_join(&life->parts, &sched->coord.port, life->node_id);
}

static void
begin_loops(struct sim_sched *sched)
{
    struct sim_proc *proc = &sched->proc;
    struct sched_parts *parts = &sched->life->parts;

    sim_proc_loop(proc, "combiner", step_combiner, &sched->life->combiner,
                  &sched->life->combiner.bell);
    sim_proc_loop(proc, "publisher", step_publisher, &parts->publisher,
                  &parts->publisher_bell);
    sim_proc_loop(proc, "loader", step_loader, &parts->loader,
                  &parts->loader_bell);
    sim_proc_loop(proc, "sweep", step_sweep, &parts->sweep, &parts->sweep_bell);
    sim_proc_loop(proc, "lag", step_lag, &parts->lag, NULL);
    sim_proc_loop(proc, "housekeep", step_housekeep, &parts->house, NULL);
    sim_proc_loop(proc, "skew", step_skew, &parts->skew, NULL);
    sim_proc_loop(proc, "coord", step_coord, sched, NULL);
    for (int i = 0; i < 3; i++)
        sim_proc_loop(proc, "worker", step_worker, sched, NULL);
}

/* The first loop: what main does, until it has a number and can begin. */
static int64_t
step_main(void *self)
{
    struct sim_sched *sched = self;
    struct sim_life_of_sched *life = sched->life;
    struct toc_str name = toc_str_of(sched->proc.name);
    struct toc_error err = {0};

    if (toc_store_register_node(&sched->store.port, TOC_STR("scheduler"), name,
                                name, toc_clock_wall(&sched->proc.clock).ms,
                                &life->node_id, &err) != TOC_OK)
        return toc_mono_add_ms(toc_clock_mono(&sched->proc.clock),
                               START_RETRY_MS)
            .ns;
    open_clients(sched);
    make_parts(sched);
    begin_loops(sched);
    sched->serves = true;
    return FAR_NS;
}

static void
make_life(void *arg)
{
    struct sim_sched *sched = arg;

    sched->life = TOC_NEW(struct sim_life_of_sched);
}

void
sim_sched_start(struct sim_sched *sched)
{
    sim_proc_begin(&sched->proc);
    sim_proc_call(&sched->proc, make_life, sched);
    sim_proc_loop(&sched->proc, "main", step_main, sched, NULL);
}

void
sim_sched_kill(struct sim_sched *sched)
{
    struct sim_pool *before;
    struct toc_link *link;

    if (!sched->proc.alive)
        return;
    before = sim_pool_use(&sched->proc.world->pool);
    if (sched->coord_client != NULL)
        toc_coord_mem_kill(sched->coord_client);
    if (sched->bus_client != NULL)
        toc_bus_mem_kill(sched->bus_client);
    (void)sim_pool_use(before);
    sched->coord_client = NULL;
    sched->bus_client = NULL;
    sched->serves = false;
    sim_proc_kill(&sched->proc);
    sched->life = NULL;
    while ((link = toc_list_pop(&sched->commands)) != NULL)
        continue;
    while ((link = toc_list_pop(&sched->in_hand)) != NULL)
        end_request(sched, toc_container_of(link, struct sim_request, in_hand),
                    TOC_UNAVAILABLE);
}

void
sim_sched_cut(struct sim_sched *sched, enum sim_port port, bool cut)
{
    if (port == SIM_STORE)
        sched->store_door.cut = cut;
    if (port == SIM_COORD && sched->coord_client != NULL)
        toc_coord_mem_cut(sched->coord_client, cut);
    if (port == SIM_BUS && sched->bus_client != NULL)
        toc_bus_mem_cut(sched->bus_client, cut);
}

void
sim_sched_freeze(struct sim_sched *sched, int64_t until_ns)
{
    sim_proc_freeze(&sched->proc, until_ns);
    sim_sched_cut(sched, SIM_COORD, true);
}

void
sim_sched_init(struct sim_sched *sched, const char *name,
               struct sim_servers *servers, struct sim_ledger *ledger,
               struct sim_faults *faults)
{
    memset(sched, 0, sizeof *sched);
    sim_proc_init(&sched->proc, servers->world, name);
    sched->servers = servers;
    sched->ledger = ledger;
    toc_list_init(&sched->commands);
    toc_list_init(&sched->in_hand);
    sim_door_init(&sched->store_door, faults, &sched->proc, SIM_STORE);
    sim_door_init(&sched->coord.door, faults, &sched->proc, SIM_COORD);
    sim_door_init(&sched->bus.door, faults, &sched->proc, SIM_BUS);
    toc_store_fault_init(&sched->store, toc_store_mem_port(servers->store),
                         &sched->store_door.plan);
    sched->settings = (struct sched_settings){.common = {.node = name},
                                              .lead_ms = 30,
                                              .memory_max_tasks = 10000,
                                              .lag_max = 10000,
                                              .sweep_ms = 5000,
                                              .retention_days = 30,
                                              .key_window_hours = 24,
                                              .payload_max = 65536};
}
