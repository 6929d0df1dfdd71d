#include "tests/bench/disk.h"

#include "common/base/str.h"
#include "common/clock/os/clock_os.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define EVERY_MS 50
#define BYTES 512
#define FILE_BYTES (1024 * 1024)
#define SAMPLES_MAX 100000

static int64_t
write_durably(int fd, off_t at)
{
    static const char bytes[BYTES];
    int64_t begun_ns = toc_clock_mono(toc_clock_os()).ns;

    if (pwrite(fd, bytes, sizeof bytes, at) != BYTES || fdatasync(fd) != 0)
        return -1;
    return toc_clock_mono(toc_clock_os()).ns - begun_ns;
}

static void
probe_disk(void *arg)
{
    struct disk_probe *probe = arg;
    off_t at = 0;
    int64_t took_ns;

    do {
        took_ns = write_durably(probe->fd, at);
        if (took_ns >= 0)
            samples_add(&probe->samples, took_ns / 1000);
        at = (at + BYTES) % FILE_BYTES;
    } while (!toc_bell_wait(
        &probe->stop,
        toc_mono_add_ms(toc_clock_mono(toc_clock_os()), EVERY_MS).ns));
}

void
disk_begin(struct disk_probe *probe, const char *folder)
{
    char path[512];

    toc_format(path, sizeof path, "%s/disk-probe-XXXXXX", folder);
    samples_init(&probe->samples, SAMPLES_MAX);
    toc_bell_init(&probe->stop);
    probe->fd = mkstemp(path);
    if (probe->fd < 0)
        return;
    (void)unlink(path);
    /* Laid out first, as the database's log is: fdatasync is then of data. */
    (void)posix_fallocate(probe->fd, 0, FILE_BYTES);
    (void)write_durably(probe->fd, 0);
    toc_thread_start(&probe->thread, "disk", probe_disk, probe);
}

void
disk_end(struct disk_probe *probe, struct report *report)
{
    toc_bell_ring(&probe->stop);
    if (probe->fd >= 0) {
        toc_thread_join(&probe->thread);
        report_percentiles(report, "disk_", "disk's fdatasync",
                           &probe->samples);
        (void)close(probe->fd);
    }
    toc_bell_done(&probe->stop);
    samples_done(&probe->samples);
}
