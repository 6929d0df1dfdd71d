#include "scheduler/load.h"

#include "common/base/assert.h"

#include <string.h>

#define NS_PER_S 1e9
#define LOOK_AHEAD_NS INT64_C(10000000000)
#define VOLUME_EVERY_NS INT64_C(10000000000)
#define TELLING_SHARE 0.2    /* of a loop, from which capacity is measured */
#define CAPACITY_WEIGHT 0.05 /* of one second's measurement */
#define FORGET_WEIGHT 0.01   /* of the assumed one, while none is made */

void
sched_load_init(struct sched_load *load)
{
    memset(load, 0, sizeof *load);
    load->capacity = SCHED_CAPACITY_ASSUMED;
    load->figures.capacity = load->capacity;
    TOC_ASSERT(pthread_mutex_init(&load->lock, NULL) == 0);
}

void
sched_load_done(struct sched_load *load)
{
    pthread_mutex_destroy(&load->lock);
}

/* ---- shares
 * ------------------------------------------------------------------------ */

static double
larger(double a, double b)
{
    return a > b ? a : b;
}

static void
add_sample(struct sched_load *load, const struct sched_load_counters *now)
{
    struct sched_load_sample *samples = load->samples;

    if (load->n_samples == SCHED_LOAD_SAMPLES)
        memmove(samples, samples + 1, --load->n_samples * sizeof *samples);
    samples[load->n_samples++] = (struct sched_load_sample){
        .now_ns = now->now_ns,
        .cpu_ns = now->cpu_ns,
        .busy_ns = {now->busy_ns[0], now->busy_ns[1]},
        .sent = now->sent,
        .memory = now->memory,
    };
}

static double
mean_memory(const struct sched_load *load)
{
    double sum = 0;

    for (size_t i = 0; i < load->n_samples; i++)
        sum += load->samples[i].memory;
    return load->n_samples == 0 ? 0 : sum / (double)load->n_samples;
}

static void
take_shares(struct sched_load *load, double cores, struct sched_figures *to)
{
    const struct sched_load_sample *from = &load->samples[0];
    const struct sched_load_sample *last = &load->samples[load->n_samples - 1];
    double span_ns = (double)(last->now_ns - from->now_ns);

    to->memory = mean_memory(load);
    if (span_ns <= 0)
        return;
    to->cpu = (double)(last->cpu_ns - from->cpu_ns) / span_ns / cores;
    to->busy = larger((double)(last->busy_ns[0] - from->busy_ns[0]) / span_ns,
                      (double)(last->busy_ns[1] - from->busy_ns[1]) / span_ns);
    to->rows = (double)(last->sent - from->sent) / span_ns * NS_PER_S;
}

/* Loops are busy with rows alone, CPU goes to submits too. What was measured
 * under strain of another kind is forgotten when that is over. */
static void
measure_capacity(struct sched_load *load, const struct sched_figures *figures)
{
    if (figures->busy >= TELLING_SHARE && figures->rows >= 1)
        load->capacity +=
            (figures->rows / figures->busy - load->capacity) * CAPACITY_WEIGHT;
    else
        load->capacity +=
            (SCHED_CAPACITY_ASSUMED - load->capacity) * FORGET_WEIGHT;
}

/* ---- volumes
 * ---------------------------------------------------------------------- */

static void
add_volume(struct sched_volume *volume, int64_t at_ns, uint32_t offered)
{
    if (volume->n == SCHED_VOLUME_SAMPLES) {
        volume->n--;
        memmove(volume->at_ns, volume->at_ns + 1,
                volume->n * sizeof volume->at_ns[0]);
        memmove(volume->offered, volume->offered + 1,
                volume->n * sizeof volume->offered[0]);
    }
    volume->at_ns[volume->n] = at_ns;
    volume->offered[volume->n++] = offered;
}

/* What is due within the look-ahead comes at once with a shard that is newly
 * ours: as if it had come in the 10 s before. */
static void
begin_volume(struct sched_load *load, size_t shard, int64_t now_ns)
{
    struct sched_volume *volume = &load->volumes[shard];

    volume->n = 0;
    add_volume(volume, now_ns - LOOK_AHEAD_NS, load->offered[shard]);
}

static double
volume_of(const struct sched_volume *volume, int64_t now_ns, uint32_t offered)
{
    uint32_t came = offered - volume->offered[0]; /* may have wrapped */

    return (double)came / ((double)(now_ns - volume->at_ns[0]) / NS_PER_S) *
           SCHED_VOLUME_S;
}

static void
take_volume(struct sched_load *load, uint16_t shard,
            const struct sched_load_counters *now, struct sched_figures *to)
{
    struct sched_volume *volume = &load->volumes[shard];

    if (now->gen[shard] != load->gen[shard])
        begin_volume(load, shard, now->now_ns);
    load->gen[shard] = now->gen[shard];
    load->offered[shard] = now->offered[shard];
    if (now->gen[shard] == 0)
        return;
    to->shards[to->n_shards] = shard;
    to->volumes[to->n_shards++] =
        volume_of(volume, now->now_ns, now->offered[shard]);
    if (now->now_ns - volume->at_ns[volume->n - 1] >= VOLUME_EVERY_NS)
        add_volume(volume, now->now_ns, now->offered[shard]);
}

/* ---- noting
 * ------------------------------------------------------------------------ */

void
sched_load_note(struct sched_load *load,
                const struct sched_load_counters *counters)
{
    struct sched_figures figures = {.n_shards = 0};

    add_sample(load, counters);
    take_shares(load, counters->cores, &figures);
    measure_capacity(load, &figures);
    figures.capacity = load->capacity;
    figures.rate = figures.rows / load->capacity;
    figures.load = larger(larger(figures.cpu, figures.busy),
                          larger(figures.rate, figures.memory));
    for (uint16_t i = 0; i < TOC_SHARDS; i++)
        take_volume(load, i, counters, &figures);
    pthread_mutex_lock(&load->lock);
    load->figures = figures;
    pthread_mutex_unlock(&load->lock);
}

void
sched_load_figures(struct sched_load *load, struct sched_figures *ret)
{
    pthread_mutex_lock(&load->lock);
    *ret = load->figures;
    pthread_mutex_unlock(&load->lock);
}
