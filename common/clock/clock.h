/*
 * The clock port: three clocks that must not be mixed up, so they are types.
 *
 * wall: what the world's clock shows, in ms since 1970 UTC. It may jump.
 *       Due times are compared with it; nothing waits by it.
 * mono: steady, in ns; all waits and deadlines in memory.
 * boot: steady and counting while the machine sleeps, in ns; leases and locks.
 *
 * Backends: os/ (the real one), sim/ (set by a test). Threads: any.
 */
#ifndef TOC_CLOCK_CLOCK_H
#define TOC_CLOCK_CLOCK_H

#include <stdint.h>

#define TOC_NS_PER_MS INT64_C(1000000)
#define TOC_MS_PER_SEC INT64_C(1000)
#define TOC_MS_PER_DAY INT64_C(86400000)

struct toc_wall {
    int64_t ms;
};
struct toc_mono {
    int64_t ns;
};
struct toc_boot {
    int64_t ns;
};

struct toc_clock;

struct toc_clock_ops {
    const char *name;
    struct toc_wall (*wall)(void *self);
    struct toc_mono (*mono)(void *self);
    struct toc_boot (*boot)(void *self);
};

struct toc_clock {
    const struct toc_clock_ops *ops;
    void *self;
};

/* Rounded down: a time is reached when wall >= time. */
struct toc_wall toc_clock_wall(const struct toc_clock *clk);
struct toc_mono toc_clock_mono(const struct toc_clock *clk);
struct toc_boot toc_clock_boot(const struct toc_clock *clk);

/* The moment of the monotonic clock at which the wall clock will show
 * `at`, if it does not jump; not before now. Rounded up to a whole ns, so that
 * a wait until then is never early. */
struct toc_mono toc_clock_mono_at(const struct toc_clock *clk,
                                  struct toc_wall at);

static inline struct toc_mono
toc_mono_add_ms(struct toc_mono at, int64_t ms)
{
    at.ns += ms * TOC_NS_PER_MS;
    return at;
}

#endif
