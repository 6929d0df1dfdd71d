#include "scheduler/skew.h"

#include "common/base/log.h"

#define EVERY_MS 10000
#define AMISS_MS 1000 /* not measured, or off */

int64_t
sched_skew_of(int64_t before_ms, int64_t after_ms, int64_t store_ms)
{
    if (store_ms < before_ms)
        return before_ms - store_ms;
    if (store_ms > after_ms)
        return after_ms - store_ms;
    return 0;
}

static int64_t
ahead_of_boot_ms(const struct sched_skew *skew)
{
    return toc_clock_wall(skew->clk).ms -
           toc_clock_boot(skew->clk).ns / TOC_NS_PER_MS;
}

static bool
is_off(int64_t off_ms)
{
    return off_ms > SCHED_SKEW_MAX_MS || off_ms < -SCHED_SKEW_MAX_MS;
}

static void
judge(struct sched_skew *skew, int64_t base_ms)
{
    int64_t off_ms = ahead_of_boot_ms(skew) + base_ms;
    bool bad = is_off(off_ms);

    atomic_store(&skew->base_ms, base_ms);
    atomic_store(&skew->measured, true);
    if (bad && !skew->bad)
        TOC_LOG(ERROR, "clock.skewed",
                F_MSG("the clock is too far from the database's; refusing to "
                      "serve"),
                F_INT("ahead_ms", off_ms),
                F_STR("hint", "let a time service set both clocks"));
    if (!bad && skew->bad)
        TOC_LOG(INFO, "clock.right", F_MSG("the clock is right again"),
                F_INT("ahead_ms", off_ms));
    skew->bad = bad;
    atomic_store(&skew->ok, !bad);
}

int64_t
sched_skew_off_ms(struct sched_skew *skew)
{
    int64_t off_ms;

    if (!atomic_load(&skew->measured))
        return 0;
    off_ms = ahead_of_boot_ms(skew) + atomic_load(&skew->base_ms);
    return is_off(off_ms) ? off_ms : 0;
}

bool
sched_skew_right(struct sched_skew *skew)
{
    return atomic_load(&skew->measured) && sched_skew_off_ms(skew) == 0;
}

/* The wall clock may be set while the database answers: how long that took is
 * the boot clock's to say. */
int64_t
sched_skew_step(struct sched_skew *skew)
{
    struct toc_error err = {0};
    int64_t before = toc_clock_wall(skew->clk).ms, store_ms;
    int64_t boot_ms = toc_clock_boot(skew->clk).ns / TOC_NS_PER_MS;
    enum toc_status st = toc_store_now(skew->store, &store_ms, &err);
    int64_t after =
        before + toc_clock_boot(skew->clk).ns / TOC_NS_PER_MS - boot_ms;

    if (st != TOC_OK) {
        TOC_LOG(WARN, "clock.unmeasured",
                F_MSG("cannot read the database's clock, trying again in 1 s"),
                F_ERR(&err));
        atomic_store(&skew->ok, false);
    } else {
        judge(skew,
              sched_skew_of(before, after, store_ms) - (before - boot_ms));
    }
    return toc_mono_add_ms(toc_clock_mono(skew->clk),
                           atomic_load(&skew->ok) ? EVERY_MS : AMISS_MS)
        .ns;
}
