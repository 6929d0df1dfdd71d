#include "tests/sim/trace.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"

#include <stdbool.h>
#include <string.h>

void
sim_trace_init(struct sim_trace *trace)
{
    *trace = (struct sim_trace){
        .entries = toc_alloc(SIM_TRACE_MAX * sizeof(struct sim_entry))};
}

void
sim_trace_done(struct sim_trace *trace)
{
    toc_free(trace->entries);
    trace->entries = NULL;
}

/* Literals have other addresses in another run: their letters count. */
static uint64_t
mix_text(uint64_t hash, const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t
mix(uint64_t hash, int64_t value)
{
    return toc_hash64_mix(hash ^ (uint64_t)value);
}

void
sim_trace_add(struct sim_trace *trace, const struct sim_entry *entry)
{
    uint64_t hash = mix(trace->hash, entry->at_ns);

    hash = mix_text(hash, entry->who);
    hash = mix_text(hash, entry->what);
    hash = mix(hash, entry->task);
    hash = mix(hash, entry->a);
    trace->hash = mix(hash, entry->b);
    trace->entries[trace->n % SIM_TRACE_MAX] = *entry;
    trace->n++;
}

static bool
is_about(const struct sim_entry *entry, int32_t task)
{
    return task == SIM_NO_TASK || entry->task == task ||
           entry->task == SIM_NO_TASK;
}

static void
print_entry(const struct sim_entry *entry, FILE *out)
{
    fprintf(out, "%12.3f ms  %-12s %-20s", (double)entry->at_ns / 1e6,
            entry->who, entry->what);
    if (entry->task != SIM_NO_TASK)
        fprintf(out, " task %d", (int)entry->task);
    fprintf(out, " %lld %lld", (long long)entry->a, (long long)entry->b);
    fprintf(out, "%s%s\n", entry->text != NULL ? " " : "",
            entry->text != NULL ? entry->text : "");
}

void
sim_trace_print(const struct sim_trace *trace, int32_t task, size_t n,
                FILE *out)
{
    size_t kept = trace->n < SIM_TRACE_MAX ? trace->n : SIM_TRACE_MAX;
    size_t first = trace->n - kept, at = trace->n, found = 0;

    while (at > first && found < n)
        found += is_about(&trace->entries[--at % SIM_TRACE_MAX], task);
    for (; at < trace->n; at++)
        if (is_about(&trace->entries[at % SIM_TRACE_MAX], task))
            print_entry(&trace->entries[at % SIM_TRACE_MAX], out);
}
