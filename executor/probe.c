#include "executor/probe.h"

#include "common/base/log.h"

#define EVERY_MS 1000

enum toc_status
exec_skew_measure(const struct toc_clock *clock, struct toc_store *store,
                  int64_t *ret_skew_ms, struct toc_error *reterr)
{
    int64_t before_ms = toc_clock_wall(clock).ms, after_ms, there_ms, set_ms;
    int64_t boot_ms = toc_clock_boot(clock).ns / TOC_NS_PER_MS;
    enum toc_status st = toc_store_now(store, &there_ms, reterr);

    if (st != TOC_OK)
        return st;
    /* The wall clock may have been set while the store answered: how long that
     * took is the boot clock's to say. */
    after_ms = before_ms + toc_clock_boot(clock).ns / TOC_NS_PER_MS - boot_ms;
    set_ms = toc_clock_wall(clock).ms - after_ms;
    *ret_skew_ms = 0;
    if (there_ms < before_ms)
        *ret_skew_ms = there_ms - before_ms;
    else if (there_ms > after_ms)
        *ret_skew_ms = there_ms - after_ms;
    *ret_skew_ms -= set_ms;
    return TOC_OK;
}

bool
exec_skew_is_bad(int64_t skew_ms)
{
    return skew_ms > EXEC_SKEW_MS_MAX || skew_ms < -EXEC_SKEW_MS_MAX;
}

static bool
is_sound(const struct exec_probe *probe)
{
    int64_t skew_ms = 0;
    struct toc_error err = {0};

    if (exec_skew_measure(probe->clock, probe->store, &skew_ms, &err) !=
        TOC_OK) {
        TOC_LOG(WARN, "executor.store_failed", F_MSG("looking again"),
                F_ERR(&err));
        return false;
    }
    if (!exec_skew_is_bad(skew_ms))
        return true;
    TOC_LOG(ERROR, "executor.clock_skewed",
            F_MSG("our clock is too far from the database's"),
            F_INT("skew_ms", skew_ms),
            F_STR("hint", "check time synchronisation of this machine"));
    return false;
}

int64_t
exec_probe_step(struct exec_probe *probe)
{
    struct toc_mono next =
        toc_mono_add_ms(toc_clock_mono(probe->clock), EVERY_MS);

    atomic_store(&probe->core->unsound, !is_sound(probe));
    return next.ns;
}
