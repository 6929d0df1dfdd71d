/*
 * The watch: one streaming answer of etcd's gateway, read line by line.
 *
 * A stream over which nothing comes for a while may be half dead: it is opened
 * again from where it stood, at the next endpoint, which loses nothing.
 *
 * Threads: one, except wake. Blocking: wait, up to its timeout or a wake.
 */
#ifndef TOC_COORD_ETCD_WATCH_H
#define TOC_COORD_ETCD_WATCH_H

#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/clock/clock.h"
#include "common/coord/etcd/http.h"

#include <stdbool.h>
#include <stdint.h>

struct toc_etcd_watch {
    const struct toc_clock *clock;
    struct toc_etcd_http http;
    CURLM *multi;
    bool open;
    struct toc_buf data; /* received */
    size_t read;         /* of it, handed out */
    size_t received;     /* what data held when we last looked */
    struct toc_mono heard;
    bool answered; /* since it was opened */
};

void toc_etcd_watch_init(struct toc_etcd_watch *watch,
                         const struct toc_clock *clock,
                         const struct toc_etcd_endpoints *endpoints);
void toc_etcd_watch_done(struct toc_etcd_watch *watch);

/* Watches every key with the prefix from the revision on. */
void toc_etcd_watch_open(struct toc_etcd_watch *watch, struct toc_str prefix,
                         int64_t from_revision);
void toc_etcd_watch_close(struct toc_etcd_watch *watch);

/* Moves bytes without waiting. An error closes the watch: open it again. */
TOC_MUST_CHECK enum toc_status toc_etcd_watch_pump(struct toc_etcd_watch *watch,
                                                   struct toc_error *reterr);
/* The next whole line; valid until the next pump. */
bool toc_etcd_watch_line(struct toc_etcd_watch *watch, struct toc_str *ret);
/* When to look at a silent watch; it is then stale. */
int64_t toc_etcd_watch_stale_at(const struct toc_etcd_watch *watch);

/* Waits for bytes, a wake or the moment; also while no watch is open. */
void toc_etcd_watch_wait(struct toc_etcd_watch *watch, int64_t until_mono_ns);
void toc_etcd_watch_wake(struct toc_etcd_watch *watch);

#endif
