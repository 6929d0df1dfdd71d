/* Waiting for the calls, and what is to be said about them. */
#include "tests/bench/bench.h"

#include "common/base/cleanup.h"
#include "common/clock/os/clock_os.h"
#include "common/model/key.h"
#include "common/rpc/client.h"
#include "toc/v1/admin.pb-c.h"

#include <stdio.h>
#include <string.h>

#define LOOK_MS 50
#define PROGRESS_MS 5000
#define CALL_MS 5000
/* Lateness after a kill is looked at for what was due within this. */
#define AFTER_KILL_MS 15000
/* Later than this after a kill is only what an executor's lock held. */
#define LOCKED_MS 5000
/* How long before the kill a call may have begun that the killed executor had
 * in its hands: its lock's length at most. */
#define IN_HANDS_MS 60000

int64_t
or_else(int64_t value, int64_t fallback)
{
    return value >= 0 ? value : fallback;
}

int64_t
bench_now_ms(void)
{
    return toc_clock_wall(toc_clock_os()).ms;
}

void
bench_sleep_ms(int64_t ms)
{
    if (ms > 0)
        toc_clock_os_sleep_until(
            toc_mono_add_ms(toc_clock_mono(toc_clock_os()), ms));
}

void
bench_wait_arrivals(const struct ledger *ledger, int64_t from_ms,
                    int64_t quiet_ms)
{
    int64_t news_ms = from_ms, told_ms = bench_now_ms();
    size_t seen = 0, arrived;

    for (;;) {
        arrived = atomic_load(&ledger->arrived);
        int64_t now_ms = bench_now_ms();
        if (arrived >= atomic_load(&ledger->acked))
            return;
        if (arrived != seen) {
            seen = arrived;
            news_ms = now_ms > from_ms ? now_ms : from_ms;
        }
        if (now_ms - news_ms > quiet_ms)
            return;
        if (now_ms - told_ms >= PROGRESS_MS) {
            told_ms = now_ms;
            fprintf(stderr, "... %zu of %zu\n", arrived,
                    atomic_load(&ledger->acked));
        }
        bench_sleep_ms(LOOK_MS);
    }
}

enum toc_status
bench_report_load(struct bench *bench, const struct load_result *result,
                  struct toc_error *reterr)
{
    struct report *report = bench->report;

    report_count(report, "stored", "tasks stored", result->acked);
    report_number(report, "store_s", "s it took", result->seconds, 2);
    report_number(report, "stored_per_second", "tasks stored a second",
                  (double)result->acked / result->seconds, 0);
    report_count(report, "refused", "tasks refused", result->failed);
    if (result->retried > 0)
        report_count(report, "retried", "calls repeated", result->retried);
    if (result->error[0] != '\0')
        report_text(report, "error", "the last error", result->error);
    if (result->failed > 0)
        return toc_error_set(reterr, TOC_INTERNAL, "bench", 0,
                             "%zu tasks were refused: %s", result->failed,
                             result->error);
    return TOC_OK;
}

/* ---- arrivals ------------------------------------------------------- */

void
bench_report_arrivals(struct bench *bench, const struct ledger *ledger,
                      size_t first, size_t end)
{
    size_t arrived = 0, lost = 0, repeated = 0;
    struct samples late;

    samples_init(&late, end - first);
    for (size_t i = first; i < end; i++) {
        struct entry *entry = &ledger->entries[i];
        int64_t us = atomic_load(&entry->first_us);
        if (us == 0) {
            lost += atomic_load(&entry->acked);
            continue;
        }
        arrived++;
        repeated += atomic_load(&entry->times) > 1;
        samples_add(&late, us - entry->due_ms * 1000);
    }
    report_count(bench->report, "called", "tasks called", arrived);
    report_count(bench->report, "lost", "lost (stored, never called)", lost);
    report_count(bench->report, "early", "called early",
                 atomic_load(&ledger->early));
    report_count(bench->report, "repeated", "called more than once", repeated);
    report_percentiles(bench->report, "", "late", &late);
    samples_done(&late);
}

/* ---- --kill --------------------------------------------------------- */

enum toc_status
bench_shard_owners(struct bench *bench, char (*ret_addresses)[128],
                   struct killing *killing, struct toc_error *reterr)
{
    Toc__V1__ListShardsRequest request = TOC__V1__LIST_SHARDS_REQUEST__INIT;
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    const Toc__V1__ListShardsResponse *response;
    struct toc_rpc_client *client = toc_rpc_client_new(
        &(struct toc_rpc_client_options){.clock = toc_clock_os()});
    ProtobufCMessage *reply;
    enum toc_status st;

    st = toc_rpc_call(client, cluster_admin(bench->cluster),
                      &toc__v1__admin_service__descriptor, "ListShards",
                      &request.base, CALL_MS, &arena, &reply, NULL, reterr);
    toc_rpc_client_free(client);
    if (st != TOC_OK)
        return st;
    response = (const Toc__V1__ListShardsResponse *)reply;
    for (size_t i = 0; i < response->n_shards; i++) {
        const Toc__V1__Shard *shard = response->shards[i];
        if (shard->shard >= TOC_SHARDS)
            continue;
        toc_copy(ret_addresses[shard->shard], 128,
                 toc_str_of(shard->owner_address));
        killing->shards[shard->shard] =
            strcmp(shard->owner, "scheduler-1") == 0;
    }
    return TOC_OK;
}

enum toc_status
bench_kill(struct bench *bench, struct killing *killing,
           struct toc_error *reterr)
{
    if ((killing->what & KILL_SCHEDULER) != 0)
        killing->names[killing->n++] = "scheduler-1";
    if ((killing->what & KILL_EXECUTOR) != 0)
        killing->names[killing->n++] = "executor-1";
    killing->at_ms = bench_now_ms();
    enum toc_status st =
        cluster_toc(bench->cluster, "kill", killing->names, killing->n, reterr);
    killing->done_ms = bench_now_ms();
    return st;
}

struct after_kill {
    struct {
        size_t tasks;
        int64_t worst_us;
    } shards[TOC_SHARDS];
    size_t locked; /* claimed by the killed executor: waited for its lock */
    size_t unexplained; /* called twice, not in its hands */
};

static uint16_t
shard_of(const struct ledger *ledger, size_t index)
{
    char biz_id[LEDGER_BIZ_ID_MAX];

    ledger_biz_id(ledger, index, biz_id);
    return toc_key_shard(toc_key_hash_of(TOC_STR(LEDGER_BIZ_TYPE),
                                         toc_str_of(biz_id), TOC_STR("")));
}

/* Could the killed executor have been calling it when it died? */
static bool
in_hands(const struct killing *killing, int64_t us)
{
    return (killing->what & KILL_EXECUTOR) != 0 &&
           us >= (killing->at_ms - IN_HANDS_MS) * 1000 &&
           us <= killing->done_ms * 1000;
}

/* How late the latest of each shard's tasks was that were due after the kill,
 * and what the killed executor's locks did. */
static void
look_after_kill(const struct ledger *ledger, const struct killing *killing,
                struct after_kill *ret)
{
    for (size_t i = 0; i < ledger->n; i++) {
        struct entry *entry = &ledger->entries[i];
        int64_t us = atomic_load(&entry->first_us);
        int64_t late_us = us - entry->due_ms * 1000;
        uint16_t shard = shard_of(ledger, i);
        if (us == 0)
            continue;
        if (atomic_load(&entry->times) > 1 && !in_hands(killing, us))
            ret->unexplained++;
        if (late_us > LOCKED_MS * 1000 &&
            in_hands(killing, entry->due_ms * 1000)) {
            ret->locked++;
            continue;
        }
        if (entry->due_ms < killing->at_ms ||
            entry->due_ms > killing->at_ms + AFTER_KILL_MS)
            continue;
        ret->shards[shard].tasks++;
        if (late_us > ret->shards[shard].worst_us)
            ret->shards[shard].worst_us = late_us;
    }
}

static void
report_shards(struct bench *bench, const struct after_kill *after,
              const struct killing *killing, bool killed, const char *prefix,
              const char *whose)
{
    double sum = 0, worst = 0;
    char key[64], label[96];
    size_t n = 0;

    for (size_t i = 0; i < TOC_SHARDS; i++) {
        double s = (double)after->shards[i].worst_us / 1e6;
        if (after->shards[i].tasks == 0 || killing->shards[i] != killed)
            continue;
        n++;
        sum += s;
        worst = s > worst ? s : worst;
    }
    toc_format(key, sizeof key, "%s_shards", prefix);
    toc_format(label, sizeof label, "shards of %s", whose);
    report_count(bench->report, key, label, n);
    toc_format(key, sizeof key, "%s_mean_s", prefix);
    report_number(bench->report, key, "  s the latest task was late, mean",
                  n > 0 ? sum / (double)n : 0, 2);
    toc_format(key, sizeof key, "%s_max_s", prefix);
    report_number(bench->report, key, "  s the latest task was late, worst",
                  worst, 2);
}

void
bench_report_kill(struct bench *bench, const struct ledger *ledger,
                  const struct killing *killing)
{
    static struct after_kill after;
    struct toc_error err;

    memset(&after, 0, sizeof after);
    look_after_kill(ledger, killing, &after);

    report_section(bench->report, "kill", "kill -9 of %s%s%s",
                   killing->names[0], killing->n > 1 ? " and " : "",
                   killing->n > 1 ? killing->names[1] : "");
    report_count(bench->report, "unexplained",
                 "repeated, not in the killed executor's hands",
                 after.unexplained);
    report_count(bench->report, "locked",
                 "claimed by it and not called: waited for its lock",
                 after.locked);
    report_shards(bench, &after, killing, true, "takeover",
                  "the killed scheduler, taken over");
    report_shards(bench, &after, killing, false, "other", "the others");
    if (cluster_toc(bench->cluster, "start", killing->names, killing->n,
                    &err) != TOC_OK)
        report_note("%s", err.msg);
}
