/*
 * What a run prints: aligned lines for a person while it goes, and at the end
 * all of it again as one JSON object on one line. Also the samples that
 * percentiles come from: exact, by sorting.
 *
 * Threads: a report one at a time (main); samples_add any.
 */
#ifndef TOC_BENCH_REPORT_H
#define TOC_BENCH_REPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report;

struct report *report_new(const char *command);
/* Prints the JSON line and frees. */
void report_end(struct report *report);

/* What follows belongs to `key` in the JSON, under a heading. */
__attribute__((format(printf, 3, 4))) void report_section(struct report *report,
                                                          const char *key,
                                                          const char *title,
                                                          ...);
/* One figure; key: its name in the JSON; label with its unit. */
void report_number(struct report *report, const char *key, const char *label,
                   double value, int decimals);
void report_count(struct report *report, const char *key, const char *label,
                  uint64_t value);
void report_text(struct report *report, const char *key, const char *label,
                 const char *text);
/* Only in the JSON. */
void report_value(struct report *report, const char *key, double value);
/* A line that is not in the JSON. */
__attribute__((format(printf, 1, 2))) void report_note(const char *format, ...);

/* ---- samples -------------------------------------------------------- */

struct samples {
    int32_t *us; /* microseconds; negative ones are early */
    atomic_size_t n;
    size_t max; /* what comes beyond is counted, not kept */
};

void samples_init(struct samples *samples, size_t max);
void samples_done(struct samples *samples);
void samples_add(struct samples *samples, int64_t us);
/* Sorts; the share of samples (0 to 1) that is not above the value returned,
 * in ms. */
double samples_percentile_ms(struct samples *samples, double share);
/* p50, p90, p99, p99.9 and the largest, with `prefix` before their keys and
 * `what` before their labels. */
void report_percentiles(struct report *report, const char *prefix,
                        const char *what, struct samples *samples);

#endif
