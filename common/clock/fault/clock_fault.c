#include "common/clock/fault/clock_fault.h"

#include "common/base/assert.h"

#define MILLION INT64_C(1000000)

/* What drift has added since it was set; in two steps, for an int64_t does not
 * hold ns * ppm for longer than hours. Locks: held. */
static int64_t
drifted_ns(const struct toc_clock_fault *fault)
{
    int64_t ns = toc_clock_mono(fault->base).ns - fault->since_ns;

    return ns / MILLION * fault->drift_ppm +
           ns % MILLION * fault->drift_ppm / MILLION;
}

static struct toc_wall
fault_wall(void *self)
{
    struct toc_clock_fault *fault = self;
    struct toc_wall wall = toc_clock_wall(fault->base);

    pthread_mutex_lock(&fault->lock);
    wall.ms += fault->wall_off_ms + drifted_ns(fault) / TOC_NS_PER_MS;
    pthread_mutex_unlock(&fault->lock);
    return wall;
}

static struct toc_mono
fault_mono(void *self)
{
    struct toc_clock_fault *fault = self;
    struct toc_mono mono;

    /* under the lock: two readings must not be put in the wrong order */
    pthread_mutex_lock(&fault->lock);
    mono = toc_clock_mono(fault->base);
    mono.ns += fault->mono_off_ns + drifted_ns(fault);
    pthread_mutex_unlock(&fault->lock);
    return mono;
}

static struct toc_boot
fault_boot(void *self)
{
    struct toc_clock_fault *fault = self;
    struct toc_boot boot;

    pthread_mutex_lock(&fault->lock);
    boot = toc_clock_boot(fault->base);
    boot.ns += fault->boot_off_ns + drifted_ns(fault);
    pthread_mutex_unlock(&fault->lock);
    return boot;
}

void
toc_clock_fault_init(struct toc_clock_fault *fault,
                     const struct toc_clock *base)
{
    static const struct toc_clock_ops ops = {.name = "fault",
                                             .wall = fault_wall,
                                             .mono = fault_mono,
                                             .boot = fault_boot};

    *fault = (struct toc_clock_fault){
        .clock = {&ops, fault},
        .base = base,
        .since_ns = toc_clock_mono(base).ns,
    };
    TOC_ASSERT(pthread_mutex_init(&fault->lock, NULL) == 0);
}

void
toc_clock_fault_done(struct toc_clock_fault *fault)
{
    pthread_mutex_destroy(&fault->lock);
}

void
toc_clock_fault_step_wall(struct toc_clock_fault *fault, int64_t by_ms)
{
    pthread_mutex_lock(&fault->lock);
    fault->wall_off_ms += by_ms;
    pthread_mutex_unlock(&fault->lock);
}

void
toc_clock_fault_drift(struct toc_clock_fault *fault, int64_t ppm)
{
    int64_t so_far_ns;

    TOC_ASSERT(ppm >= -TOC_CLOCK_DRIFT_PPM_MAX &&
               ppm <= TOC_CLOCK_DRIFT_PPM_MAX);
    pthread_mutex_lock(&fault->lock);
    so_far_ns = drifted_ns(fault);
    fault->mono_off_ns += so_far_ns;
    fault->boot_off_ns += so_far_ns;
    fault->wall_off_ms += so_far_ns / TOC_NS_PER_MS;
    fault->since_ns = toc_clock_mono(fault->base).ns;
    fault->drift_ppm = ppm;
    pthread_mutex_unlock(&fault->lock);
}
