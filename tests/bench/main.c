/* toc-bench: how fast, how late, how dear. README.md tells how to read it. */
#include "tests/bench/bench.h"

#include "common/base/log.h"
#include "common/base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "toc-bench: how fast, how late, how dear TOC is on this machine\n\n"
    "  toc-bench submit    Submit at 1, 16, 64 and 1,000 callers, and batches\n"
    "  toc-bench lateness  how late tasks are called at --rate (1000)\n"
    "  toc-bench drain     --tasks (500000) overdue, as fast as it goes\n"
    "  toc-bench idle      what --pending (1000000) tasks cost that wait\n"
    "  toc-bench life      submit and fire at --rate (5000)\n\n"
    "Options:\n"
    "  --home DIR       a cluster of deploy/local/toc that runs; without, one\n"
    "                   of its own is started and removed afterwards\n"
    "  --toc PATH       default deploy/local/toc\n"
    "  --schedulers N   of its own (2)\n"
    "  --executors N    of its own (2)\n"
    "  --rate N         tasks a second\n"
    "  --seconds N      how long (submit: 5 each, idle: 30, others: 20)\n"
    "  --tasks N        drain: how many\n"
    "  --pending N      tasks that wait meanwhile\n"
    "  --batch N        the target takes up to N in one call (0: one)\n"
    "  --payload N      bytes (128)\n"
    "  --delay N        life: ms from submit to due (2000)\n"
    "  --live           lateness: submit at the rate, due in 50 ms\n"
    "  --kill[=WHAT]    lateness: kill -9 halfway; scheduler, executor or "
    "both\n"
    "\nThe last line is all figures as one JSON object.\n";

static const struct {
    const char *name;
    bench_command_fn *run;
} commands[] = {
    {"submit", bench_submit}, {"lateness", bench_lateness},
    {"drain", bench_drain},   {"idle", bench_idle},
    {"life", bench_life},
};

static int
usage(const char *what, const char *word)
{
    fprintf(stderr, "toc-bench: %s%s (--help tells)\n", what, word);
    return 2;
}

struct number {
    const char *flag;
    int64_t *value;
    int64_t min, max;
};

/* False: not a number's flag, or not a value that it takes. */
static bool
take_number(struct bench_options *options, const char *flag, const char *text)
{
    const struct number numbers[] = {
        {"--rate", &options->rate, 1, 1000000},
        {"--seconds", &options->seconds, 1, 86400},
        {"--tasks", &options->tasks, 1, 200000000},
        {"--pending", &options->pending, 0, 200000000},
        {"--batch", &options->batch, 0, 256},
        {"--payload", &options->payload, 0, 65536},
        {"--delay", &options->delay_ms, 0, 3600000},
        {"--schedulers", &options->schedulers, 1, 32},
        {"--executors", &options->executors, 1, 32},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(flag, numbers[i].flag) == 0)
            return text != NULL &&
                   toc_parse_i64(toc_str_of(text), numbers[i].min,
                                 numbers[i].max, numbers[i].value);
    return false;
}

static bool
take_kill(struct bench_options *options, const char *word)
{
    if (strcmp(word, "--kill") == 0 || strcmp(word, "--kill=both") == 0)
        options->kill = KILL_SCHEDULER | KILL_EXECUTOR;
    else if (strcmp(word, "--kill=scheduler") == 0)
        options->kill = KILL_SCHEDULER;
    else if (strcmp(word, "--kill=executor") == 0)
        options->kill = KILL_EXECUTOR;
    else
        return false;
    return true;
}

/* 0, or the exit code. */
static int
parse(struct bench_options *options, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--live") == 0) {
            options->live = true;
            continue;
        }
        if (take_kill(options, argv[i]))
            continue;
        if (strcmp(argv[i], "--home") == 0 && value != NULL)
            options->home = value;
        else if (strcmp(argv[i], "--toc") == 0 && value != NULL)
            options->toc = value;
        else if (!take_number(options, argv[i], value))
            return usage("not understood: ", argv[i]);
        i++;
    }
    if (options->live && options->kill != 0)
        return usage("--live and --kill do not go together", "");
    return 0;
}

static int
run(struct bench *bench, const char *name, bench_command_fn *command)
{
    const struct bench_options *options = &bench->options;
    struct toc_error err = {0};
    enum toc_status st;

    st = cluster_open(
        &(struct cluster_options){.toc = options->toc,
                                  .home = options->home,
                                  .schedulers = options->schedulers,
                                  .executors = options->executors},
        &bench->cluster, &err);
    if (st != TOC_OK) {
        fprintf(stderr, "toc-bench: %s\n", err.msg);
        return EXIT_FAILURE;
    }
    bench->report = report_new(name);
    cluster_describe(bench->cluster, bench->report);
    st = command(bench, &err);
    if (st == TOC_OK)
        report_end(bench->report);
    else
        fprintf(stderr, "toc-bench: %s: %s\n", name, err.msg);
    cluster_close(bench->cluster);
    return st == TOC_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
    struct bench bench = {
        .options = {.toc = "deploy/local/toc",
                    .rate = -1,
                    .seconds = -1,
                    .tasks = -1,
                    .pending = -1,
                    .batch = -1,
                    .payload = -1,
                    .delay_ms = -1,
                    .schedulers = 2,
                    .executors = 2},
    };
    int rc;

    if (argc < 2)
        return usage("which one?", "");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        printf("%s", help);
        return EXIT_SUCCESS;
    }
    toc_log_init("bench", "bench", TOC_LOG_WARN);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        rc = parse(&bench.options, argc, argv);
        return rc != 0 ? rc : run(&bench, commands[i].name, commands[i].run);
    }
    return usage("no such command: ", argv[1]);
}
