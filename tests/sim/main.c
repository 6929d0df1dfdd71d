/* toc-sim: runs histories by their seeds, and tells what they met. */
#include "common/base/log.h"
#include "common/base/os_time.h"
#include "tests/sim/history.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "toc-sim: whole clusters in one thread, by seed\n"
    "\n"
    "  --seeds N     so many histories (default 100)\n"
    "  --first N     beginning with this seed (default 1)\n"
    "  --seed N      only this one\n"
    "  --trace       print what happened\n"
    "  --log         print what the processes log, too\n"
    "  --entries N   so many lines of trace (default 200)\n"
    "\n"
    "Exit codes: 0 nothing is broken, 1 something is, 2 wrong usage.\n";

struct options {
    uint64_t first, seeds;
    size_t entries;
    bool trace, log;
};

static bool
number(const char *text, uint64_t *ret)
{
    int64_t n;

    if (text == NULL || !toc_parse_i64(toc_str_of(text), 0, INT64_MAX, &n))
        return false;
    *ret = (uint64_t)n;
    return true;
}

static bool
parse(int argc, char **argv, struct options *options)
{
    uint64_t entries;

    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(name, "--trace") == 0) {
            options->trace = true;
            continue;
        }
        if (strcmp(name, "--log") == 0) {
            options->log = true;
            continue;
        }
        if (strcmp(name, "--seed") == 0 && number(value, &options->first))
            options->seeds = 1;
        else if (strcmp(name, "--entries") == 0 && number(value, &entries))
            options->entries = (size_t)entries;
        else if (!(strcmp(name, "--seeds") == 0 &&
                   number(value, &options->seeds)) &&
                 !(strcmp(name, "--first") == 0 &&
                   number(value, &options->first)))
            return false;
        i++;
    }
    return true;
}

static struct sim_history history;
static struct sim_coverage coverage;
static bool print_log;

static void
log_sink(void *arg, enum toc_log_level level, const char *event,
         const struct toc_field *fields, size_t n)
{
    (void)arg;
    (void)level;
    if (!print_log)
        return;
    fprintf(stdout, "%12.3f ms  %-12s %s", (double)history.world.now_ns / 1e6,
            sim_loop_running() != NULL ? sim_loop_running()->proc->name : "-",
            event);
    for (size_t i = 0; i < n; i++) {
        if (fields[i].kind == TOC_FIELD_STR)
            fprintf(stdout, " %s=%.*s", fields[i].name, (int)fields[i].str.len,
                    fields[i].str.ptr);
        else
            fprintf(stdout, " %s=%lld", fields[i].name,
                    fields[i].kind == TOC_FIELD_INT ? (long long)fields[i].i
                                                    : (long long)fields[i].u);
    }
    fputc('\n', stdout);
}

static size_t entries_on_abort;

/* An assertion of the code under test failed: which history was it? */
static void
on_abort(int signal_number)
{
    (void)signal_number;
    toc_copy(history.ledger.broken, sizeof history.ledger.broken,
             TOC_STR("an assertion failed"));
    sim_history_explain(&history, entries_on_abort, stdout);
    fflush(stdout);
}

struct totals {
    uint64_t histories, broken, events, calls, repeats, commands, submits;
};

static bool
run_seed(uint64_t seed, const struct options *options, struct totals *totals)
{
    bool good;

    sim_history_init(&history, seed, &coverage);
    good = sim_history_run(&history);
    totals->histories++;
    totals->broken += !good;
    totals->events += history.world.happened;
    totals->calls += history.ledger.calls;
    totals->repeats += history.ledger.repeats;
    totals->commands += history.commands;
    totals->submits += history.submits;
    if (!good || options->trace)
        sim_history_explain(&history, options->entries, stdout);
    if (options->seeds == 1)
        printf("hash %016llx\n", (unsigned long long)history.world.trace.hash);
    sim_history_done(&history);
    return good;
}

static void
print_coverage(void)
{
    sim_coverage_print(&coverage, stdout);
    printf("%zu pairs of an operation and a fault never met\n",
           sim_coverage_missing(&coverage));
}

int
main(int argc, char **argv)
{
    struct options options = {.first = 1, .seeds = 100, .entries = 200};
    struct totals totals = {0};
    int64_t begun_ns = toc_os_mono_ns();
    double s;

    if (!parse(argc, argv, &options)) {
        fputs(help, stderr);
        return 2;
    }
    sim_pool_begin();
    print_log = options.log;
    entries_on_abort = options.entries;
    (void)signal(SIGABRT, on_abort);
    toc_log_init("sim", "sim", options.log ? TOC_LOG_INFO : TOC_LOG_ERROR);
    toc_log_use(log_sink, NULL);
    for (uint64_t i = 0; i < options.seeds && totals.broken == 0; i++)
        (void)run_seed(options.first + i, &options, &totals);
    s = (double)(toc_os_mono_ns() - begun_ns) / 1e9;
    if (options.seeds > 1)
        print_coverage();
    printf(
        "%llu histories, %llu broken, %.1f s, %.1f a second, %llu events, "
        "%llu submits, %llu commands, %llu calls, %llu again after done\n",
        (unsigned long long)totals.histories, (unsigned long long)totals.broken,
        s, (double)totals.histories / s, (unsigned long long)totals.events,
        (unsigned long long)totals.submits, (unsigned long long)totals.commands,
        (unsigned long long)totals.calls, (unsigned long long)totals.repeats);
    sim_fiber_trim();
    return totals.broken > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
