/*
 * How much this node has to do: shares between 0 and 1 (means of 10 s), and
 * what each of its shards brings.
 *
 *     load = max(cpu, busy, rate, memory)
 *
 * cpu: CPU time of the process over the cores it may use. busy: the busier of
 * publisher and loader, time inside steps over time. memory: hints held over
 * the room that the loader may fill. rate: rows sent a second over capacity,
 * which is measured: rows/s over busy, while busy says something; a node whose
 * loops have little to do counts as SCHED_CAPACITY_ASSUMED.
 *
 * The volume of a shard, its rows due in the next 10 min, is not counted in the
 * store (a row of the next 10 min would be read, or indexed, for that alone).
 * It is what has come within the look-ahead of 10 s during the last minute,
 * times ten: next to nothing to know, since memory sees each hint once. A wave
 * is seen when it is 10 s away; a move takes a second then, and a wave over
 * sooner is not worth one.
 *
 * Pure arithmetic on counters that are noted once a second. Threads: note: one;
 * figures: any. Locks: its own, a leaf. Nothing blocks.
 */
#ifndef TOC_SCHEDULER_LOAD_H
#define TOC_SCHEDULER_LOAD_H

#include "common/model/key.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHED_LOAD_EVERY_MS 1000
#define SCHED_LOAD_SAMPLES 11         /* a second apart: 10 s */
#define SCHED_VOLUME_SAMPLES 7        /* 10 s apart: a minute */
#define SCHED_VOLUME_S 600            /* what volume looks ahead */
#define SCHED_CAPACITY_ASSUMED 5000.0 /* rows/s */

/* Counters as they stand now. */
struct sched_load_counters {
    int64_t now_ns;           /* monotonic */
    int64_t cpu_ns;           /* of the process, all its threads */
    double cores;             /* that it may use */
    int64_t busy_ns[2];       /* of the publisher's and the loader's steps */
    uint64_t sent;            /* hints */
    double memory;            /* share, now */
    uint32_t gen[TOC_SHARDS]; /* 0: not ours */
    uint32_t offered[TOC_SHARDS]; /* hints that memory took */
};

struct sched_figures {
    double load, cpu, busy, rate, memory;
    double rows;     /* a second */
    double capacity; /* rows a second */
    size_t n_shards; /* ours */
    uint16_t shards[TOC_SHARDS];
    double volumes[TOC_SHARDS]; /* of shards[i] */
};

struct sched_load {
    pthread_mutex_t lock; /* guards figures */
    struct sched_figures figures;

    /* Thread: the one that notes. */
    struct sched_load_sample {
        int64_t now_ns, cpu_ns, busy_ns[2];
        uint64_t sent;
        double memory;
    } samples[SCHED_LOAD_SAMPLES]; /* oldest first */
    size_t n_samples;
    double capacity;
    uint32_t gen[TOC_SHARDS], offered[TOC_SHARDS]; /* as last noted */
    struct sched_volume {
        int64_t at_ns[SCHED_VOLUME_SAMPLES]; /* oldest first */
        uint32_t offered[SCHED_VOLUME_SAMPLES];
        size_t n;
    } volumes[TOC_SHARDS];
};

void sched_load_init(struct sched_load *load);
void sched_load_done(struct sched_load *load);
void sched_load_note(struct sched_load *load,
                     const struct sched_load_counters *counters);
void sched_load_figures(struct sched_load *load, struct sched_figures *ret);

#endif
