#include "scheduler/bad_rows.h"

#include "common/base/log.h"

/* The sweep meets each at least once a minute. */
#define FORGET_NS (INT64_C(600) * 1000 * TOC_NS_PER_MS)

enum met { KNOWN, NEW, TOO_MANY, TOO_MANY_SAID };

/* Locks: held. */
static void
forget_old(struct sched_bad_rows *bad, int64_t now_ns)
{
    for (size_t i = bad->n; i-- > 0;)
        if (now_ns - bad->rows[i].seen_ns > FORGET_NS)
            bad->rows[i] = bad->rows[--bad->n];
    if (bad->n < SCHED_BAD_ROWS_MAX)
        bad->full = false;
}

/* Locks: held. */
static enum met
note(struct sched_bad_rows *bad, const struct toc_bad_row *row, int64_t now_ns)
{
    for (size_t i = 0; i < bad->n; i++)
        if (bad->rows[i].slice == row->slice &&
            bad->rows[i].slot_ms == row->slot_ms &&
            toc_task_id_cmp(bad->rows[i].id, row->id) == 0) {
            bad->rows[i].seen_ns = now_ns;
            return KNOWN;
        }
    forget_old(bad, now_ns);
    if (bad->full)
        return TOO_MANY_SAID;
    if (bad->n == SCHED_BAD_ROWS_MAX) {
        bad->full = true;
        return TOO_MANY;
    }
    bad->rows[bad->n].slice = row->slice;
    bad->rows[bad->n].slot_ms = row->slot_ms;
    bad->rows[bad->n].id = row->id;
    bad->rows[bad->n++].seen_ns = now_ns;
    return NEW;
}

static void
say(const struct toc_bad_row *row)
{
    char id[TOC_TASK_ID_TEXT_MAX];

    toc_task_id_format(row->id, id);
    TOC_LOG(ERROR, "row.unreadable",
            F_MSG("a task's row makes no sense: it is left out and read again, "
                  "the others go on"),
            F_STR("task", id), F_UINT("slice", row->slice),
            F_INT("slot_ms", row->slot_ms), F_STR("error", row->why),
            F_STR("hint", "something else wrote to the table, or its server "
                          "is damaged: mend the row's columns"));
}

static void
met(void *arg, const struct toc_bad_row *row)
{
    struct sched_bad_rows *bad = arg;
    int64_t now_ns = toc_clock_mono(bad->clk).ns;
    enum met what;

    pthread_mutex_lock(&bad->lock);
    what = note(bad, row, now_ns);
    pthread_mutex_unlock(&bad->lock);
    if (what == NEW)
        say(row);
    else if (what == TOO_MANY)
        TOC_LOG(ERROR, "row.unreadable_many",
                F_MSG("more rows make no sense than are said one by one"),
                F_UINT("rows", SCHED_BAD_ROWS_MAX));
}

void
sched_bad_rows_init(struct sched_bad_rows *bad, const struct toc_clock *clk,
                    struct toc_store *store)
{
    /* Nothing to be undone. */
    *bad =
        (struct sched_bad_rows){.clk = clk, .lock = PTHREAD_MUTEX_INITIALIZER};
    store->bad_row = met;
    store->bad_row_arg = bad;
}

size_t
sched_bad_rows_count(struct sched_bad_rows *bad)
{
    size_t n;

    pthread_mutex_lock(&bad->lock);
    forget_old(bad, toc_clock_mono(bad->clk).ns);
    n = bad->n;
    pthread_mutex_unlock(&bad->lock);
    return n;
}
