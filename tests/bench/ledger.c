#include "tests/bench/ledger.h"

#include "common/base/alloc.h"
#include "common/base/os_time.h"
#include "common/base/rng.h"
#include "common/handler/handler.h"

#include <string.h>

#define STOP_GRACE_MS 1000

void
ledger_biz_id(const struct ledger *ledger, size_t index,
              char ret_biz_id[LEDGER_BIZ_ID_MAX])
{
    toc_format(ret_biz_id, LEDGER_BIZ_ID_MAX, "%s-%zu", ledger->run, index);
}

static bool
find(struct ledger *ledger, struct toc_str biz_id, struct entry **ret_entry)
{
    struct toc_str run;
    int64_t index;

    if (!toc_str_next(&biz_id, '-', &run) ||
        !toc_str_eq(run, toc_str_of(ledger->run)) ||
        !toc_parse_i64(biz_id, 0, (int64_t)ledger->n - 1, &index))
        return false;
    *ret_entry = &ledger->entries[index];
    return true;
}

/* The clock is read here and not by the handler library: microseconds. */
static void
on_timeout(void *self, const struct toc_timeout *timeout,
           struct toc_timeout_answer *answer)
{
    int64_t us = toc_os_wall_ns() / 1000;
    struct ledger *ledger = self;
    struct entry *entry;

    (void)answer; /* done */
    if (!find(ledger, timeout->biz_id, &entry)) {
        atomic_fetch_add(&ledger->strangers, 1);
        return;
    }
    if (us < entry->due_ms * 1000)
        atomic_fetch_add(&ledger->early, 1);
    atomic_store(&entry->last_us, us);
    if (atomic_fetch_add(&entry->times, 1) == 0) {
        atomic_store(&entry->first_us, us);
        atomic_fetch_add(&ledger->arrived, 1);
    }
}

enum toc_status
ledger_open(struct ledger *ledger, size_t n, struct toc_error *reterr)
{
    enum toc_status st;

    memset(ledger, 0, sizeof *ledger);
    ledger->entries = TOC_NEW_ARRAY(struct entry, n + 1);
    ledger->n = n;
    toc_format(ledger->run, sizeof ledger->run, "b%08x",
               (unsigned)(toc_rng_u64() & UINT32_MAX));
    st = toc_handler_start(
        &(struct toc_handler_options){.listen = "127.0.0.1:0",
                                      .on_timeout = on_timeout,
                                      .self = ledger,
                                      .inline_calls = true},
        &ledger->handler, reterr);
    if (st != TOC_OK)
        ledger_close(ledger);
    return st;
}

void
ledger_close(struct ledger *ledger)
{
    toc_handler_stop(ledger->handler, STOP_GRACE_MS);
    ledger->handler = NULL;
    toc_free(ledger->entries);
    ledger->entries = NULL;
}

const char *
ledger_address(const struct ledger *ledger)
{
    return toc_handler_address(ledger->handler);
}
