/*
 * How fast something comes, and how long to gather it: nothing at a low rate,
 * at a higher one as long as a batch of the wanted size takes to come, up to a
 * limit. That keeps single tasks prompt and statements per task few.
 *
 * Threads: one at a time. Pure.
 */
#ifndef TOC_EXECUTOR_PACE_H
#define TOC_EXECUTOR_PACE_H

#include <stddef.h>
#include <stdint.h>

struct exec_pace {
    /* Set once. */
    uint64_t from_per_sec; /* below: no gathering */
    uint64_t batch_n;      /* the wanted size */
    int64_t ms_max;
    /* Measured over slices of a quarter of a second. */
    int64_t slice_ns;
    uint64_t slice_n;
    uint64_t per_sec;
};

void exec_pace_note(struct exec_pace *pace, size_t n, int64_t now_ns);
int64_t exec_pace_gather_ns(const struct exec_pace *pace);

#endif
