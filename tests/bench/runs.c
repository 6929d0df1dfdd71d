/* The commands. */
#include "tests/bench/bench.h"

#include "common/model/key.h"
#include "tests/bench/disk.h"

#include <string.h>

#define MIB (1024 * 1024)
#define PAYLOAD 128
#define AHEAD_BATCH 1000
#define AHEAD_CALLERS 4
/* Submitted ahead: what is due first lies this much behind the end of the
 * submitting, more than the look-ahead window. */
#define AHEAD_MS 12000
#define AHEAD_PER_SECOND 15000 /* cautious: how fast submitting goes */
#define QUIET_MS 30000         /* nothing comes any more */
#define WARM_UP_TASKS 10000
#define WARM_UP_RATE 1000
#define LIVE_DUE_MS 50

/* ---- submit --------------------------------------------------------- */

#define SUBMIT_SECONDS 5
#define FAR_MS INT64_C(86400000)

/* Spread over an hour of tomorrow, so that nothing fires meanwhile. */
static int64_t
due_tomorrow(void *arg, size_t index, int64_t now_ms)
{
    (void)arg;
    return now_ms + FAR_MS + (int64_t)(index % 3600000);
}

static enum toc_status
submit_once(struct bench *bench, struct ledger *ledger, size_t callers,
            size_t batch, struct toc_error *reterr)
{
    static size_t next; /* so that keys are never used again */
    struct load_plan plan = bench_plan(bench, ledger);
    struct load_result result;
    struct disk_probe disk;
    struct cost before, after;
    enum toc_status st;
    char key[64];

    plan.callers = callers;
    plan.batch = batch;
    plan.first = next;
    plan.end = SIZE_MAX / 2;
    plan.seconds = or_else(bench->options.seconds, SUBMIT_SECONDS);
    plan.due = due_tomorrow;
    toc_format(key, sizeof key, batch > 0 ? "batch_%zu" : "unary_%zu",
               batch > 0 ? batch : callers);
    if (batch > 0)
        report_section(bench->report, key, "BatchSubmit of %zu, %zu callers",
                       batch, callers);
    else
        report_section(bench->report, key, "Submit, %zu caller%s", callers,
                       callers == 1 ? "" : "s");
    disk_begin(&disk, cluster_home(bench->cluster));
    cluster_cost(bench->cluster, &before);
    load_run(&plan, &result);
    cluster_cost(bench->cluster, &after);
    next += result.sent + callers * (batch + 1);
    st = bench_report_load(bench, &result, reterr);
    report_percentiles(bench->report, "call_", "call", &result.latency);
    disk_end(&disk, bench->report);
    cluster_report_cost(bench->report, &before, &after, result.acked);
    samples_done(&result.latency);
    return st;
}

enum toc_status
bench_submit(struct bench *bench, struct toc_error *reterr)
{
    static const struct {
        size_t callers, batch;
    } runs[] = {{1, 0},   {16, 0},  {64, 0},  {1000, 0},
                {4, 100}, {4, 500}, {4, 1000}};
    struct ledger ledger;
    enum toc_status st = bench_warm_up(bench, reterr);

    if (st == TOC_OK)
        st = ledger_open(&ledger, 0, reterr);
    if (st != TOC_OK)
        return st;
    for (size_t i = 0; st == TOC_OK && i < sizeof runs / sizeof runs[0]; i++)
        st =
            submit_once(bench, &ledger, runs[i].callers, runs[i].batch, reterr);
    ledger_close(&ledger);
    return st;
}

/* ---- lateness ------------------------------------------------------- */

struct schedule {
    struct bench *bench;
    int64_t begin_ms; /* due time of the first */
    int64_t rate;
    const struct ledger *ledger;
    char (*owners)[128]; /* addresses, by shard */
};

static int64_t
due_by_rate(void *arg, size_t index, int64_t now_ms)
{
    const struct schedule *schedule = arg;

    (void)now_ms;
    return schedule->begin_ms + (int64_t)index * 1000 / schedule->rate;
}

static int64_t
due_soon(void *arg, size_t index, int64_t now_ms)
{
    (void)arg;
    (void)index;
    return now_ms + LIVE_DUE_MS;
}

static uint16_t
shard_of(const struct ledger *ledger, size_t index)
{
    char biz_id[LEDGER_BIZ_ID_MAX];

    ledger_biz_id(ledger, index, biz_id);
    return toc_key_shard(toc_key_hash_of(TOC_STR(LEDGER_BIZ_TYPE),
                                         toc_str_of(biz_id), TOC_STR("")));
}

/* A scheduler that does not own the task: it has to tell the one that does. */
static const char *
another_scheduler(void *arg, size_t index)
{
    const struct schedule *schedule = arg;
    const char *owner = schedule->owners[shard_of(schedule->ledger, index)];
    const char *const *addresses;
    size_t n = cluster_schedulers(schedule->bench->cluster, &addresses);

    for (size_t i = 0; i < n; i++)
        if (strcmp(addresses[(index + i) % n], owner) != 0)
            return addresses[(index + i) % n];
    return addresses[0];
}

/* Sleeps through the run, with a kill in the middle if it is wanted. */
static enum toc_status
let_fire(struct bench *bench, const struct ledger *ledger,
         const struct schedule *schedule, int64_t seconds,
         struct killing *killing, struct toc_error *reterr)
{
    int64_t end_ms = schedule->begin_ms + seconds * 1000;
    int64_t middle_ms = schedule->begin_ms + seconds * 500;

    if (bench->options.kill != 0) {
        bench_sleep_ms(middle_ms - bench_now_ms());
        enum toc_status st = bench_kill(bench, killing, reterr);
        if (st != TOC_OK)
            return st;
    }
    bench_sleep_ms(end_ms - bench_now_ms());
    bench_wait_arrivals(ledger, end_ms, QUIET_MS);
    return TOC_OK;
}

static enum toc_status
submit_ahead(struct bench *bench, struct ledger *ledger,
             struct schedule *schedule, struct toc_error *reterr)
{
    struct load_plan plan = bench_plan(bench, ledger);
    struct load_result result;
    enum toc_status st;
    int64_t spare_ms;

    plan.callers = AHEAD_CALLERS;
    plan.batch = AHEAD_BATCH;
    plan.end = ledger->n;
    plan.due = due_by_rate;
    plan.arg = schedule;
    schedule->begin_ms = bench_now_ms() + AHEAD_MS +
                         (int64_t)ledger->n * 1000 / AHEAD_PER_SECOND;
    load_run(&plan, &result);
    spare_ms = schedule->begin_ms - bench_now_ms();
    report_section(bench->report, "ahead", "submitted ahead");
    st = bench_report_load(bench, &result, reterr);
    report_number(bench->report, "spare_s", "then s until the first is due",
                  (double)spare_ms / 1000, 1);
    samples_done(&result.latency);
    if (st == TOC_OK && spare_ms < 0)
        st = toc_error_set(reterr, TOC_INTERNAL, "bench", 0,
                           "submitting took too long: some were overdue");
    return st;
}

static enum toc_status
lateness_ahead(struct bench *bench, struct ledger *ledger,
               struct schedule *schedule, int64_t seconds,
               struct toc_error *reterr)
{
    struct killing killing = {.what = bench->options.kill};
    struct disk_probe disk;
    struct cost before, after;
    enum toc_status st = submit_ahead(bench, ledger, schedule, reterr);

    if (st == TOC_OK)
        st = bench_shard_owners(bench, schedule->owners, &killing, reterr);
    if (st != TOC_OK)
        return st;
    disk_begin(&disk, cluster_home(bench->cluster));
    cluster_cost(bench->cluster, &before);
    st = let_fire(bench, ledger, schedule, seconds, &killing, reterr);
    cluster_cost(bench->cluster, &after);
    report_section(bench->report, "lateness",
                   "lateness: %lld/s for %lld s, %s target",
                   (long long)schedule->rate, (long long)seconds,
                   bench->options.batch > 1 ? "batch" : "unary");
    bench_report_arrivals(bench, ledger, 0, ledger->n);
    disk_end(&disk, bench->report);
    cluster_report_cost(bench->report, &before, &after, ledger->n);
    if (killing.n > 0)
        bench_report_kill(bench, ledger, &killing);
    return st;
}

/* Unary Submit at the rate, each due in 50 ms, to a scheduler that does not
 * own it. */
static enum toc_status
lateness_live(struct bench *bench, struct ledger *ledger,
              struct schedule *schedule, int64_t seconds,
              struct toc_error *reterr)
{
    struct load_plan plan = bench_plan(bench, ledger);
    struct killing killing = {0};
    struct load_result result;
    struct disk_probe disk;
    struct cost before, after;
    enum toc_status st =
        bench_shard_owners(bench, schedule->owners, &killing, reterr);

    if (st != TOC_OK)
        return st;
    plan.callers = 1000;
    plan.rate = schedule->rate;
    plan.end = ledger->n;
    plan.due = due_soon;
    plan.address = another_scheduler;
    plan.arg = schedule;
    disk_begin(&disk, cluster_home(bench->cluster));
    cluster_cost(bench->cluster, &before);
    load_run(&plan, &result);
    bench_wait_arrivals(ledger, bench_now_ms(), QUIET_MS);
    cluster_cost(bench->cluster, &after);
    report_section(bench->report, "lateness",
                   "live: %lld/s for %lld s, due in %d ms, at a scheduler "
                   "that does not own the task",
                   (long long)schedule->rate, (long long)seconds, LIVE_DUE_MS);
    st = bench_report_load(bench, &result, reterr);
    report_percentiles(bench->report, "submit_", "submit call",
                       &result.latency);
    bench_report_arrivals(bench, ledger, 0, ledger->n);
    disk_end(&disk, bench->report);
    cluster_report_cost(bench->report, &before, &after, ledger->n);
    samples_done(&result.latency);
    return st;
}

enum toc_status
bench_lateness(struct bench *bench, struct toc_error *reterr)
{
    int64_t seconds = or_else(bench->options.seconds, 20);
    static char owners[TOC_SHARDS][128];
    struct schedule schedule = {
        .bench = bench,
        .rate = or_else(bench->options.rate, bench->options.live ? 200 : 1000),
        .owners = owners,
    };
    struct ledger ledger;
    enum toc_status st = bench_warm_up(bench, reterr);

    if (st == TOC_OK && bench->options.pending > 0)
        st = bench_fill_pending(bench, bench->options.pending, reterr);
    if (st == TOC_OK)
        st = ledger_open(&ledger, (size_t)(schedule.rate * seconds), reterr);
    if (st != TOC_OK)
        return st;
    schedule.ledger = &ledger;
    st = bench->options.live
             ? lateness_live(bench, &ledger, &schedule, seconds, reterr)
             : lateness_ahead(bench, &ledger, &schedule, seconds, reterr);
    ledger_close(&ledger);
    return st;
}

/* ---- drain ---------------------------------------------------------- */

static int64_t
due_now(void *arg, size_t index, int64_t now_ms)
{
    (void)arg;
    (void)index;
    return now_ms;
}

static enum toc_status
all_executors(struct bench *bench, const char *command,
              struct toc_error *reterr)
{
    static char names[CLUSTER_ADDRESSES_MAX][24];
    const char *pointers[CLUSTER_ADDRESSES_MAX];
    size_t n = cluster_executors(bench->cluster);

    for (size_t i = 0; i < n; i++) {
        toc_format(names[i], sizeof names[i], "executor-%zu", i + 1);
        pointers[i] = names[i];
    }
    return cluster_toc(bench->cluster, command, pointers, n, reterr);
}

static void
report_drain(struct bench *bench, const struct ledger *ledger,
             int64_t started_us)
{
    int64_t first = INT64_MAX, last = 0;
    struct samples since;

    samples_init(&since, ledger->n);
    for (size_t i = 0; i < ledger->n; i++) {
        int64_t us = atomic_load(&ledger->entries[i].first_us);
        if (us == 0)
            continue;
        first = us < first ? us : first;
        last = us > last ? us : last;
        samples_add(&since, us - started_us);
    }
    double n = (double)atomic_load(&ledger->arrived);
    double whole = (double)(last - first) / 1e6;
    double middle = (samples_percentile_ms(&since, 0.9) -
                     samples_percentile_ms(&since, 0.1)) /
                    1000;
    report_number(bench->report, "start_s",
                  "s from starting executors to the first call",
                  (double)(first - started_us) / 1e6, 2);
    report_number(bench->report, "drain_s", "s from the first call to the last",
                  whole, 2);
    report_number(bench->report, "per_second", "tasks a second, all",
                  whole > 0 ? n / whole : 0, 0);
    report_number(bench->report, "middle_per_second",
                  "tasks a second, the middle 80 %",
                  middle > 0 ? n * 0.8 / middle : 0, 0);
    samples_done(&since);
}

static enum toc_status
drain(struct bench *bench, struct ledger *ledger, struct toc_error *reterr)
{
    struct load_plan plan = bench_plan(bench, ledger);
    struct load_result result;
    struct cost before, after;
    int64_t started_us;
    enum toc_status st;

    plan.callers = AHEAD_CALLERS;
    plan.batch = AHEAD_BATCH;
    plan.end = ledger->n;
    plan.due = due_now;
    st = all_executors(bench, "kill", reterr);
    if (st != TOC_OK)
        return st;
    load_run(&plan, &result);
    report_section(bench->report, "backlog", "submitted, no executor running");
    st = bench_report_load(bench, &result, reterr);
    samples_done(&result.latency);
    if (st != TOC_OK)
        return st;
    bench_sleep_ms(5000);
    cluster_cost(bench->cluster, &before);
    started_us = bench_now_ms() * 1000;
    st = all_executors(bench, "start", reterr);
    if (st != TOC_OK)
        return st;
    bench_wait_arrivals(ledger, bench_now_ms(), QUIET_MS);
    bench_sleep_ms(1000); /* for the last results to be written back */
    cluster_cost(bench->cluster, &after);
    report_section(bench->report, "drain", "drain of %zu overdue, %s target",
                   ledger->n, plan.target_batch > 1 ? "batch" : "unary");
    report_drain(bench, ledger, started_us);
    bench_report_arrivals(bench, ledger, 0, ledger->n);
    cluster_report_cost(bench->report, &before, &after, ledger->n);
    return TOC_OK;
}

enum toc_status
bench_drain(struct bench *bench, struct toc_error *reterr)
{
    size_t tasks = (size_t)or_else(bench->options.tasks, 500000);
    struct ledger ledger;
    enum toc_status st = bench_warm_up(bench, reterr);

    if (st == TOC_OK)
        st = ledger_open(&ledger, tasks, reterr);
    if (st != TOC_OK)
        return st;
    st = drain(bench, &ledger, reterr);
    ledger_close(&ledger);
    return st;
}

/* ---- idle ----------------------------------------------------------- */

enum toc_status
bench_idle(struct bench *bench, struct toc_error *reterr)
{
    int64_t pending = or_else(bench->options.pending, 1000000);
    struct cost before, after;
    enum toc_status st = bench_fill_pending(bench, pending, reterr);

    if (st != TOC_OK)
        return st;
    bench_sleep_ms(15000); /* the sweep and the page cleaner come to rest */
    cluster_cost(bench->cluster, &before);
    bench_sleep_ms(or_else(bench->options.seconds, 30) * 1000);
    cluster_cost(bench->cluster, &after);
    report_section(bench->report, "idle", "idle with %lld pending",
                   (long long)pending);
    cluster_report_idle(bench->report, &before, &after);
    return TOC_OK;
}

/* ---- life ----------------------------------------------------------- */

static int64_t
due_after_delay(void *arg, size_t index, int64_t now_ms)
{
    (void)index;
    return now_ms + *(const int64_t *)arg;
}

static enum toc_status
life(struct bench *bench, struct ledger *ledger, int64_t rate, int64_t delay_ms,
     struct toc_error *reterr)
{
    struct load_plan plan = bench_plan(bench, ledger);
    struct load_result result;
    struct disk_probe disk;
    struct cost before, after;
    enum toc_status st;

    plan.callers = 64;
    plan.batch = (size_t)(rate / 50 < 1     ? 1
                          : rate / 50 > 500 ? 500
                                            : rate / 50);
    plan.rate = rate;
    plan.end = ledger->n;
    plan.due = due_after_delay;
    plan.arg = &delay_ms;
    disk_begin(&disk, cluster_home(bench->cluster));
    cluster_cost(bench->cluster, &before);
    load_run(&plan, &result);
    bench_wait_arrivals(ledger, bench_now_ms() + delay_ms, QUIET_MS);
    bench_sleep_ms(1000); /* for the last results to be written back */
    cluster_cost(bench->cluster, &after);
    report_section(bench->report, "life",
                   "life: %zu tasks at %lld/s, due in %lld ms, %s target",
                   ledger->n, (long long)rate, (long long)delay_ms,
                   plan.target_batch > 1 ? "batch" : "unary");
    st = bench_report_load(bench, &result, reterr);
    report_percentiles(bench->report, "submit_", "submit call",
                       &result.latency);
    bench_report_arrivals(bench, ledger, 0, ledger->n);
    disk_end(&disk, bench->report);
    cluster_report_cost(bench->report, &before, &after, ledger->n);
    samples_done(&result.latency);
    return st;
}

enum toc_status
bench_life(struct bench *bench, struct toc_error *reterr)
{
    int64_t rate = or_else(bench->options.rate, 5000);
    int64_t seconds = or_else(bench->options.seconds, 20);
    struct ledger ledger;
    enum toc_status st = bench_warm_up(bench, reterr);

    if (st == TOC_OK && bench->options.pending > 0)
        st = bench_fill_pending(bench, bench->options.pending, reterr);
    if (st == TOC_OK)
        st = ledger_open(&ledger, (size_t)(rate * seconds), reterr);
    if (st != TOC_OK)
        return st;
    st = life(bench, &ledger, rate, or_else(bench->options.delay_ms, 2000),
              reterr);
    ledger_close(&ledger);
    return st;
}

/* ---- shared --------------------------------------------------------- */

struct load_plan
bench_plan(const struct bench *bench, struct ledger *ledger)
{
    struct load_plan plan = {
        .ledger = ledger,
        .payload = (size_t)or_else(bench->options.payload, PAYLOAD),
        .target_batch = (uint32_t)or_else(bench->options.batch, 0),
    };

    plan.n_schedulers = cluster_schedulers(bench->cluster, &plan.schedulers);
    return plan;
}

enum toc_status
bench_warm_up(struct bench *bench, struct toc_error *reterr)
{
    int64_t delay_ms = 1000;
    struct load_plan plan;
    struct load_result result;
    struct ledger ledger;
    enum toc_status st;

    if (!cluster_fresh(bench->cluster))
        return TOC_OK;
    st = ledger_open(&ledger, WARM_UP_TASKS, reterr);
    if (st != TOC_OK)
        return st;
    plan = bench_plan(bench, &ledger);
    plan.callers = 64;
    plan.batch = 10;
    plan.rate = WARM_UP_RATE;
    plan.end = ledger.n;
    plan.due = due_after_delay;
    plan.arg = &delay_ms;
    load_run(&plan, &result);
    bench_wait_arrivals(&ledger, bench_now_ms() + delay_ms, QUIET_MS);
    report_section(bench->report, "warm_up", "warm-up, not counted");
    st = bench_report_load(bench, &result, reterr);
    report_count(bench->report, "called", "tasks called",
                 atomic_load(&ledger.arrived));
    samples_done(&result.latency);
    ledger_close(&ledger);
    return st;
}

/* From an hour to 30 days ahead. */
static int64_t
due_some_day(void *arg, size_t index, int64_t now_ms)
{
    const int64_t *pending = arg;

    return now_ms + 3600000 +
           (int64_t)((double)index / (double)*pending * 29 * 86400000);
}

enum toc_status
bench_fill_pending(struct bench *bench, int64_t pending,
                   struct toc_error *reterr)
{
    struct load_plan plan;
    struct load_result result;
    struct ledger ledger;
    enum toc_status st = ledger_open(&ledger, 0, reterr);

    if (st != TOC_OK)
        return st;
    plan = bench_plan(bench, &ledger);
    plan.callers = AHEAD_CALLERS;
    plan.batch = AHEAD_BATCH;
    plan.end = (size_t)pending;
    plan.due = due_some_day;
    plan.arg = &pending;
    load_run(&plan, &result);
    report_section(bench->report, "pending", "stored for later");
    st = bench_report_load(bench, &result, reterr);
    samples_done(&result.latency);
    ledger_close(&ledger);
    return st;
}
