/*
 * How fast the disk under the cluster says "durable", while a run goes on: each
 * claim and each submit waits for that at least once, so a run on a disk that
 * stalls is late, and only this tells it from a TOC that is.
 *
 * A thread writes half a kilobyte and calls fdatasync, 20 times a second, in a
 * file beside the database's.
 */
#ifndef TOC_BENCH_DISK_H
#define TOC_BENCH_DISK_H

#include "common/base/thread.h"
#include "tests/bench/report.h"

#include <stdbool.h>

struct disk_probe {
    struct toc_thread thread;
    struct toc_bell stop;
    struct samples samples;
    int fd; /* -1: the folder takes no file, nothing is measured */
};

void disk_begin(struct disk_probe *probe, const char *folder);
/* Joins the thread and says what it saw. */
void disk_end(struct disk_probe *probe, struct report *report);

#endif
