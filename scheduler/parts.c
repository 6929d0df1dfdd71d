#include "scheduler/parts.h"

#define MS_PER_HOUR INT64_C(3600000)

static void
shards_changed(void *arg)
{
    struct sched_parts *parts = arg;

    toc_bell_ring(&parts->loader_bell);
    toc_bell_ring(&parts->sweep_bell);
    toc_bell_ring(&parts->publisher_bell);
}

static void
init_firing(struct sched_parts *parts)
{
    const struct sched_parts_options *opt = &parts->opt;
    const struct sched_settings *settings = opt->settings;

    sched_shards_init(&parts->shards, opt->clk);
    sched_memory_init(&parts->memory,
                      &(struct sched_memory_options){
                          .shards = &parts->shards,
                          .bell = &parts->publisher_bell,
                          .entries_max = (size_t)settings->memory_max_tasks,
                          .now_ms = toc_clock_wall(opt->clk).ms});
    sched_marks_init(&parts->marks, opt->partitions, settings->lag_max);
    sched_publisher_init(&parts->publisher, &(struct sched_publisher_options){
                                                .clk = opt->clk,
                                                .bus = opt->bus,
                                                .shards = &parts->shards,
                                                .memory = &parts->memory,
                                                .marks = &parts->marks,
                                                .topics = opt->topics,
                                                .lead_ms = settings->lead_ms});
    sched_loader_init(&parts->loader,
                      &(struct sched_loader_options){.clk = opt->clk,
                                                     .store = opt->store,
                                                     .shards = &parts->shards,
                                                     .memory = &parts->memory});
}

static void
init_care(struct sched_parts *parts)
{
    const struct sched_parts_options *opt = &parts->opt;
    const struct sched_settings *settings = opt->settings;

    sched_sweep_init(&parts->sweep, &(struct sched_sweep_options){
                                        .clk = opt->clk,
                                        .store = opt->store,
                                        .bus = opt->bus,
                                        .shards = &parts->shards,
                                        .memory = &parts->memory,
                                        .marks = &parts->marks,
                                        .skew = &parts->skew,
                                        .loader = &parts->loader,
                                        .publisher = &parts->publisher,
                                        .topics = opt->topics,
                                        .group = opt->group,
                                        .period_ms = settings->sweep_ms});
    parts->lag = (struct sched_lag){.clk = opt->clk,
                                    .bus = opt->bus,
                                    .marks = &parts->marks,
                                    .topics = opt->topics,
                                    .group = opt->group};
    sched_housekeep_init(
        &parts->house,
        &(struct sched_housekeep_options){
            .clk = opt->clk,
            .store = opt->store,
            .shards = &parts->shards,
            .skew = &parts->skew,
            .retention_ms = settings->retention_days * TOC_MS_PER_DAY,
            .key_window_ms = settings->key_window_hours * MS_PER_HOUR});
    parts->skew.clk = opt->clk;
    parts->skew.store = opt->store;
}

void
sched_parts_init(struct sched_parts *parts,
                 const struct sched_parts_options *opt)
{
    *parts = (struct sched_parts){.opt = *opt};
    toc_bell_init(&parts->publisher_bell);
    toc_bell_init(&parts->loader_bell);
    toc_bell_init(&parts->sweep_bell);
    init_firing(parts);
    init_care(parts);
    sched_roster_init(&parts->roster);
}

void
sched_parts_join(struct sched_parts *parts, struct toc_coord *coord,
                 uint32_t node_id)
{
    sched_shards_set_coord(&parts->shards, coord);
    sched_roster_set_coord(&parts->roster, coord);
    parts->publisher.opt.node_id = node_id;
    parts->keeper = (struct sched_keeper){.clk = parts->opt.clk,
                                          .coord = coord,
                                          .shards = &parts->shards,
                                          .memory = &parts->memory,
                                          .roster = &parts->roster,
                                          .skew = &parts->skew,
                                          .changed = shards_changed,
                                          .arg = parts};
    sched_keeper_init(&parts->keeper,
                      toc_str_of(parts->opt.settings->common.node));
}

void
sched_parts_done(struct sched_parts *parts)
{
    sched_roster_done(&parts->roster);
    sched_sweep_done(&parts->sweep);
    sched_publisher_done(&parts->publisher);
    sched_marks_done(&parts->marks);
    sched_memory_done(&parts->memory);
    sched_shards_done(&parts->shards);
    toc_bell_done(&parts->publisher_bell);
    toc_bell_done(&parts->loader_bell);
    toc_bell_done(&parts->sweep_bell);
}
