#include "common/coord/etcd/session.h"

#include "common/base/assert.h"
#include "common/base/cleanup.h"
#include "common/coord/etcd/wire.h"

/* etcd's clock and ours may run differently, and its answer takes a while. */
#define MARGIN_MS 300
#define RETRY_MS 100

static int64_t
deadline_after(struct toc_boot sent, int64_t ttl_ms)
{
    return sent.ns + (ttl_ms - MARGIN_MS) * TOC_NS_PER_MS;
}

/* Locks: session->lock is held. */
static void
lose(struct toc_etcd_session *session)
{
    session->lost = true;
    atomic_store(&session->deadline_boot_ns, 0);
}

/* Marks the session lost when its deadline has passed. Locks: held. */
static void
check_deadline(struct toc_etcd_session *session)
{
    if (session->lease != 0 && !session->lost &&
        toc_clock_boot(session->clock).ns >=
            atomic_load(&session->deadline_boot_ns))
        lose(session);
}

/* ---- keepalive ------------------------------------------------------- */

enum renewal { RENEWED, DEAD, FAILED };

static enum renewal
renew(struct toc_etcd_session *session, int64_t lease, int64_t ttl_ms,
      int64_t *ret_ttl_ms)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf body = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf reply = {0};
    toc_etcd_put_lease_id(&body, lease);
    /* short, so that another try fits before the deadline */
    int64_t timeout_ms = ttl_ms / 4;
    enum toc_status st =
        toc_etcd_http_post(&session->http, "/v3/lease/keepalive",
                           toc_buf_view(&body), timeout_ms, &reply, NULL);
    int64_t id, ttl_s;
    if (st == TOC_OK)
        st = toc_etcd_parse_lease(toc_buf_view(&reply), &id, &ttl_s, NULL);
    if (st == TOC_NOT_FOUND)
        return DEAD;
    if (st != TOC_OK || id != lease)
        return FAILED;
    *ret_ttl_ms = ttl_s * TOC_MS_PER_SEC;
    return ttl_s > 0 ? RENEWED : DEAD;
}

/* What to renew; false: nothing. */
static bool
take_work(struct toc_etcd_session *session, int64_t *ret_lease,
          int64_t *ret_ttl_ms, bool *ret_stopping)
{
    pthread_mutex_lock(&session->lock);
    bool due = session->lease != 0 && !session->lost;
    *ret_lease = session->lease;
    *ret_ttl_ms = session->ttl_ms;
    *ret_stopping = session->stopping;
    pthread_mutex_unlock(&session->lock);
    return due;
}

/* Enters the outcome, unless the lease is another one by now; true: lost. */
static bool
enter(struct toc_etcd_session *session, int64_t lease, enum renewal renewal,
      struct toc_boot sent, int64_t ttl_ms)
{
    pthread_mutex_lock(&session->lock);
    bool ours = session->lease == lease && !session->lost;
    if (ours) {
        check_deadline(session); /* an answer that comes too late is none */
        if (!session->lost && renewal == DEAD)
            lose(session);
        if (!session->lost && renewal == RENEWED)
            atomic_store(&session->deadline_boot_ns,
                         deadline_after(sent, ttl_ms));
    }
    bool lost = ours && session->lost;
    pthread_mutex_unlock(&session->lock);
    return lost;
}

static int64_t
mono_after(struct toc_etcd_session *session, int64_t ms)
{
    return toc_mono_add_ms(toc_clock_mono(session->clock), ms).ns;
}

static void
keepalive_main(void *arg)
{
    struct toc_etcd_session *session = arg;
    int64_t lease, ttl_ms, known = 0, next = TOC_BELL_FOREVER;
    bool stopping;
    for (;;) {
        bool due = take_work(session, &lease, &ttl_ms, &stopping);
        if (stopping)
            return;
        if (!due) {
            next = TOC_BELL_FOREVER;
        } else if (lease != known) {
            next = mono_after(session, ttl_ms / 3);
        } else if (toc_clock_mono(session->clock).ns >= next) {
            int64_t begun_mono = toc_clock_mono(session->clock).ns;
            enum renewal renewal = renew(session, lease, ttl_ms, &ttl_ms);
            if (enter(session, lease, renewal, session->http.sent, ttl_ms))
                session->on_loss(session->arg);
            next = renewal == RENEWED ? begun_mono + ttl_ms / 3 * TOC_NS_PER_MS
                                      : mono_after(session, RETRY_MS);
        }
        known = lease;
        (void)toc_bell_wait(&session->bell, next);
    }
}

/* ---- the handle's side ----------------------------------------------- */

void
toc_etcd_session_init(struct toc_etcd_session *session,
                      const struct toc_clock *clock,
                      const struct toc_etcd_endpoints *endpoints,
                      void (*on_loss)(void *arg), void *arg)
{
    *session = (struct toc_etcd_session){
        .clock = clock, .on_loss = on_loss, .arg = arg};
    toc_etcd_http_init(&session->http, clock, endpoints);
    pthread_mutex_init(&session->lock, NULL);
    toc_bell_init(&session->bell);
    atomic_init(&session->deadline_boot_ns, 0);
}

void
toc_etcd_session_done(struct toc_etcd_session *session)
{
    pthread_mutex_lock(&session->lock);
    session->stopping = true;
    pthread_mutex_unlock(&session->lock);
    toc_bell_ring(&session->bell);
    toc_thread_join(&session->thread);
    toc_bell_done(&session->bell);
    pthread_mutex_destroy(&session->lock);
    toc_etcd_http_done(&session->http);
}

void
toc_etcd_session_begin(struct toc_etcd_session *session, int64_t lease,
                       int64_t ttl_ms, struct toc_boot sent)
{
    pthread_mutex_lock(&session->lock);
    TOC_ASSERT(session->lease == 0);
    session->lease = lease;
    session->ttl_ms = ttl_ms;
    session->lost = false;
    atomic_store(&session->deadline_boot_ns, deadline_after(sent, ttl_ms));
    pthread_mutex_unlock(&session->lock);
    if (!session->thread.started)
        toc_thread_start(&session->thread, "etcd-keepalive", keepalive_main,
                         session);
    toc_bell_ring(&session->bell);
}

int64_t
toc_etcd_session_end(struct toc_etcd_session *session)
{
    pthread_mutex_lock(&session->lock);
    int64_t lease = session->lease;
    session->lease = 0;
    session->lost = false;
    atomic_store(&session->deadline_boot_ns, 0);
    pthread_mutex_unlock(&session->lock);
    toc_bell_ring(&session->bell);
    return lease;
}

void
toc_etcd_session_fail(struct toc_etcd_session *session, int64_t lease)
{
    pthread_mutex_lock(&session->lock);
    if (session->lease == lease)
        lose(session);
    pthread_mutex_unlock(&session->lock);
}

int64_t
toc_etcd_session_lease(struct toc_etcd_session *session)
{
    pthread_mutex_lock(&session->lock);
    check_deadline(session);
    int64_t lease = session->lost ? 0 : session->lease;
    pthread_mutex_unlock(&session->lock);
    return lease;
}

bool
toc_etcd_session_take_loss(struct toc_etcd_session *session, int64_t *ret_lease)
{
    pthread_mutex_lock(&session->lock);
    check_deadline(session);
    bool lost = session->lost;
    if (lost) {
        *ret_lease = session->lease;
        session->lease = 0;
        session->lost = false;
    }
    pthread_mutex_unlock(&session->lock);
    return lost;
}

int64_t
toc_etcd_session_deadline(struct toc_etcd_session *session)
{
    return atomic_load(&session->deadline_boot_ns);
}
