#include "common/clock/os/clock_os.h"

#include "common/base/os_time.h"

#include <stddef.h>

static struct toc_wall
os_wall(void *self)
{
    int64_t ns = toc_os_wall_ns();
    int64_t ms = ns / TOC_NS_PER_MS;

    (void)self;
    if (ns % TOC_NS_PER_MS < 0)
        ms--;
    return (struct toc_wall){ms};
}

static struct toc_mono
os_mono(void *self)
{
    (void)self;
    return (struct toc_mono){toc_os_mono_ns()};
}

static struct toc_boot
os_boot(void *self)
{
    (void)self;
    return (struct toc_boot){toc_os_boot_ns()};
}

const struct toc_clock *
toc_clock_os(void)
{
    static const struct toc_clock_ops ops = {
        .name = "os", .wall = os_wall, .mono = os_mono, .boot = os_boot};
    static const struct toc_clock clock = {.ops = &ops, .self = NULL};

    return &clock;
}

void
toc_clock_os_sleep_until(struct toc_mono until)
{
    toc_os_sleep_until_mono(until.ns);
}
