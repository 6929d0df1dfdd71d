#include "tests/bench/report.h"

#include "common/base/alloc.h"
#include "common/base/str.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_WIDTH 50

struct report {
    json_t *root;
    json_t *section; /* borrowed from root */
};

struct report *
report_new(const char *command)
{
    struct report *report = TOC_NEW(struct report);

    report->root = json_object();
    json_object_set_new(report->root, "command", json_string(command));
    report->section = report->root;
    return report;
}

void
report_end(struct report *report)
{
    printf("\n");
    json_dumpf(report->root, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    printf("\n");
    fflush(stdout);
    json_decref(report->root);
    toc_free(report);
}

void
report_section(struct report *report, const char *key, const char *title, ...)
{
    va_list ap;

    report->section = json_object();
    json_object_set_new(report->root, key, report->section);
    printf("\n== ");
    va_start(ap, title);
    vprintf(title, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
}

void
report_number(struct report *report, const char *key, const char *label,
              double value, int decimals)
{
    json_object_set_new(report->section, key, json_real(value));
    printf("  %-*s %14.*f\n", LABEL_WIDTH, label, decimals, value);
    fflush(stdout);
}

void
report_value(struct report *report, const char *key, double value)
{
    json_object_set_new(report->section, key, json_real(value));
}

void
report_count(struct report *report, const char *key, const char *label,
             uint64_t value)
{
    json_object_set_new(report->section, key, json_integer((json_int_t)value));
    printf("  %-*s %14llu\n", LABEL_WIDTH, label, (unsigned long long)value);
    fflush(stdout);
}

void
report_text(struct report *report, const char *key, const char *label,
            const char *text)
{
    json_object_set_new(report->section, key, json_string(text));
    printf("  %-24s %s\n", label, text);
    fflush(stdout);
}

void
report_note(const char *format, ...)
{
    va_list ap;

    printf("  ");
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
}

/* ---- samples -------------------------------------------------------- */

void
samples_init(struct samples *samples, size_t max)
{
    samples->us = TOC_NEW_ARRAY(int32_t, max + 1);
    samples->max = max;
    atomic_init(&samples->n, 0);
}

void
samples_done(struct samples *samples)
{
    toc_free(samples->us);
    samples->us = NULL;
}

void
samples_add(struct samples *samples, int64_t us)
{
    size_t at = atomic_fetch_add(&samples->n, 1);

    if (at >= samples->max)
        return;
    if (us > INT32_MAX)
        us = INT32_MAX;
    if (us < INT32_MIN)
        us = INT32_MIN;
    samples->us[at] = (int32_t)us;
}

static int
compare(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static size_t
samples_sort(struct samples *samples)
{
    size_t n = atomic_load(&samples->n);

    n = n < samples->max ? n : samples->max;
    qsort(samples->us, n, sizeof samples->us[0], compare);
    return n;
}

static double
nth_ms(const struct samples *samples, size_t n, double share)
{
    size_t at = (size_t)((double)n * share);

    if (n == 0)
        return 0;
    return samples->us[at < n ? at : n - 1] / 1000.0;
}

double
samples_percentile_ms(struct samples *samples, double share)
{
    return nth_ms(samples, samples_sort(samples), share);
}

void
report_percentiles(struct report *report, const char *prefix, const char *what,
                   struct samples *samples)
{
    static const struct {
        const char *key, *label;
        double share;
    } rows[] = {
        {"p50_ms", "p50 ms", 0.5},     {"p90_ms", "p90 ms", 0.9},
        {"p99_ms", "p99 ms", 0.99},    {"p999_ms", "p99.9 ms", 0.999},
        {"max_ms", "largest ms", 1.0},
    };
    size_t n = samples_sort(samples);
    char key[64], label[64];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        toc_format(key, sizeof key, "%s%s", prefix, rows[i].key);
        toc_format(label, sizeof label, "%s %s", what, rows[i].label);
        report_number(report, key, label, nth_ms(samples, n, rows[i].share), 3);
    }
}
