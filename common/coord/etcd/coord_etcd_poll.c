/*
 * Poll: a small state machine.
 *
 *     session (if we are a member) -> read everything -> watch -> ...
 *          ^ lost                        ^ compacted, wiped, session lost
 *
 * Each step either makes progress, or fails and is tried again after a pause
 * that grows. The events of one step are told before poll returns.
 */
#include "common/coord/etcd/coord_etcd_internal.h"

#include "common/base/rng.h"

#include <stdatomic.h>

#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 1000

struct toc_str
toc_coord_etcd_prefix(const struct toc_coord_etcd *coord)
{
    return toc_str_of(coord->prefix);
}

void
toc_coord_etcd_tell(struct toc_coord_etcd *coord,
                    struct toc_coord_etcd_teller to,
                    const struct toc_coord_event *event)
{
    coord->told++;
    to.fn(to.arg, event);
}

void
toc_coord_etcd_tell_kind(struct toc_coord_etcd *coord,
                         struct toc_coord_etcd_teller to,
                         enum toc_coord_event_kind kind)
{
    toc_coord_etcd_tell(coord, to, &(struct toc_coord_event){.kind = kind});
}

bool
toc_coord_etcd_may_try(const struct toc_coord_etcd *coord)
{
    return toc_clock_mono(coord->clock).ns >= coord->retry_at.ns;
}

/* The next try, after a pause between half and all of the current length. */
enum toc_status
toc_coord_etcd_back_off(struct toc_coord_etcd *coord, enum toc_status st)
{
    uint64_t half = (uint64_t)coord->backoff_ms / 2;
    int64_t ms = (int64_t)(half + toc_rng_u64() % (half + 1));
    coord->retry_at = toc_mono_add_ms(toc_clock_mono(coord->clock), ms);
    coord->backoff_ms *= 2;
    if (coord->backoff_ms > BACKOFF_MS_MAX)
        coord->backoff_ms = BACKOFF_MS_MAX;
    return st;
}

void
toc_coord_etcd_all_is_well(struct toc_coord_etcd *coord)
{
    coord->backoff_ms = BACKOFF_MS_MIN;
    coord->retry_at.ns = 0;
}

static enum toc_status
step(struct toc_coord_etcd *coord, struct toc_coord_etcd_teller to,
     struct toc_error *reterr)
{
    enum toc_status st = toc_coord_etcd_step_session(coord, to, reterr);
    if (st == TOC_OK)
        st = toc_coord_etcd_step_sync(coord, to, reterr);
    if (st == TOC_OK)
        st = toc_coord_etcd_step_watch(coord, to, reterr);
    return st;
}

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When something is to be done that no byte announces. */
static int64_t
next_look(struct toc_coord_etcd *coord, int64_t until)
{
    int64_t now = toc_clock_mono(coord->clock).ns;
    int64_t next = until;
    if (coord->watch.open)
        next = earlier(next, toc_etcd_watch_stale_at(&coord->watch));
    if (coord->retry_at.ns > now &&
        (!coord->watch.open || toc_coord_etcd_session_missing(coord)))
        next = earlier(next, coord->retry_at.ns);
    else if (!coord->watch.open)
        next = now;
    int64_t deadline = toc_etcd_session_deadline(&coord->session);
    if (deadline != 0)
        next = earlier(next, now + deadline - toc_clock_boot(coord->clock).ns);
    return next;
}

enum toc_status
toc_coord_etcd_poll(void *self, int64_t timeout_ms, toc_coord_event_fn *fn,
                    void *arg, struct toc_error *reterr)
{
    struct toc_coord_etcd *coord = self;
    struct toc_coord_etcd_teller to = {fn, arg};
    int64_t until =
        toc_mono_add_ms(toc_clock_mono(coord->clock), timeout_ms).ns;
    coord->told = 0;
    for (;;) {
        enum toc_status st = step(coord, to, reterr);
        bool woken = atomic_exchange(&coord->woken, false);
        if (st != TOC_OK || coord->told > 0 || woken ||
            atomic_load(&coord->interrupted_ns) != 0 ||
            toc_clock_mono(coord->clock).ns >= until)
            return st;
        toc_etcd_watch_wait(&coord->watch, next_look(coord, until));
    }
}
