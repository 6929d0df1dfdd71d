#include "common/clock/clock.h"

struct toc_wall
toc_clock_wall(const struct toc_clock *clk)
{
    return clk->ops->wall(clk->self);
}

struct toc_mono
toc_clock_mono(const struct toc_clock *clk)
{
    return clk->ops->mono(clk->self);
}

struct toc_boot
toc_clock_boot(const struct toc_clock *clk)
{
    return clk->ops->boot(clk->self);
}

struct toc_mono
toc_clock_mono_at(const struct toc_clock *clk, struct toc_wall at)
{
    /* The wall clock first: what passes between the two readings makes the
     * answer late, never early. */
    int64_t wall_ms = toc_clock_wall(clk).ms;
    struct toc_mono mono = toc_clock_mono(clk);
    int64_t left_ms_max = (INT64_MAX - mono.ns) / TOC_NS_PER_MS;

    if (at.ms <= wall_ms)
        return mono;
    if (wall_ms < 0 && at.ms > INT64_MAX + wall_ms)
        return (struct toc_mono){INT64_MAX};
    if (at.ms - wall_ms > left_ms_max)
        return (struct toc_mono){INT64_MAX};
    return toc_mono_add_ms(mono, at.ms - wall_ms);
}
