/*
 * The loop around every transaction: what is repeated, how often, and what is
 * done about a COMMIT whose outcome nobody knows.
 *
 * Such a transaction is repeated, and recognises its own work (bodies say how).
 * As long as the old connection lives on in the server, its locks make the
 * repetition wait; if they stay, the old connection is killed by its id, when
 * the server shows that id with the address that was ours (after a restart or
 * a failover it may be somebody else's).
 */
#include "common/store/mysql/store_mysql_internal.h"

#include "common/base/rng.h"
#include "common/store/mysql/sql.h"

#include <string.h>

#define CONNECTIONS_MAX 3 /* lost ones, then unavailable */
#define LOCKED_MAX 4      /* waits of 2 s each */
#define RACES_MAX 30      /* deadlocks and broken guards */

struct tries {
    struct toc_my_again again;
    unsigned lost, locked, races;
    bool made_days;
};

/* Waits about mean_ms: from half to one and a half of it. */
void
toc_my_pause(struct toc_store_mysql *store, int64_t mean_ms)
{
    uint64_t jitter = toc_rng_u64() % (uint64_t)(mean_ms + 1);
    struct toc_mono until = toc_mono_add_ms(toc_clock_mono(store->clock),
                                            mean_ms / 2 + (int64_t)jitter);
    struct toc_bell bell;

    toc_bell_init(&bell);
    (void)toc_bell_wait(&bell, until.ns);
    toc_bell_done(&bell);
}

void
toc_my_hold(struct toc_my_conn *conn)
{
    const char *hold = toc_my_dialect_hold(&conn->dialect);

    if (hold != NULL)
        toc_my_add(conn, hold);
}

void
toc_my_release(struct toc_my_conn *conn)
{
    const char *release = toc_my_dialect_release(&conn->dialect);

    if (release != NULL)
        toc_my_add(conn, release);
}

static void
remember_lost(struct tries *tries, const struct toc_my_conn *conn)
{
    if (conn->fault != TOC_MY_UNKNOWN)
        return;
    tries->again.unknown = true;
    tries->again.lost_id = conn->id;
    memcpy(tries->again.lost_host, conn->host, sizeof conn->host);
}

static void
kill_lost(struct toc_my_conn *conn, struct toc_my_again *again)
{
    struct toc_buf *sql = toc_my_begin(conn);

    if (again->lost_id == 0)
        return;
    toc_buf_text(sql, "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                      "WHERE ID=");
    toc_buf_u64(sql, again->lost_id);
    toc_buf_text(sql, " AND HOST=");
    toc_sql_bytes(sql, toc_str_of(again->lost_host));
    if (toc_my_run(conn, NULL) != TOC_OK || toc_my_number(conn, 0, 0) != 1)
        return;
    toc_buf_text(toc_my_begin(conn), "KILL ");
    toc_buf_u64(&conn->sql, again->lost_id);
    if (toc_my_run(conn, NULL) != TOC_OK && conn->fault == TOC_MY_REFUSED)
        conn->fault = TOC_MY_FINE; /* it is gone */
    again->lost_id = 0;
}

/* Shall the body run again, after this fault? Leaves the connection clean. */
static bool
try_again(struct toc_my_conn *conn, struct tries *tries, int64_t now_ms)
{
    enum toc_my_fault fault = conn->fault;

    if (fault == TOC_MY_LOST || fault == TOC_MY_UNKNOWN) {
        remember_lost(tries, conn);
        return ++tries->lost < CONNECTIONS_MAX;
    }
    toc_my_rollback(conn);
    if (conn->fault != TOC_MY_FINE)
        return ++tries->lost < CONNECTIONS_MAX;
    switch (fault) {
    case TOC_MY_LOCKED:
        kill_lost(conn, &tries->again);
        return ++tries->locked < LOCKED_MAX;
    case TOC_MY_DEADLOCK:
    case TOC_MY_GUARD:
    case TOC_MY_DUPLICATE:
        toc_my_pause(conn->store, tries->races < 4 ? 2 : 20);
        return ++tries->races < RACES_MAX;
    case TOC_MY_NO_DAY:
        if (tries->made_days)
            return false;
        tries->made_days = true;
        return toc_my_make_days(conn, now_ms, NULL) == TOC_OK;
    case TOC_MY_FINE:
    case TOC_MY_LOST:
    case TOC_MY_UNKNOWN:
    case TOC_MY_BUSY:
    case TOC_MY_REFUSED:
        break;
    }
    return false;
}

enum toc_status
toc_my_transact(struct toc_store_mysql *store, toc_my_body *body, void *arg,
                int64_t now_ms, struct toc_error *reterr)
{
    struct tries tries = {0};

    for (;;) {
        struct toc_my_conn *conn = NULL;
        enum toc_status st = toc_my_take(store, &conn, reterr);
        bool repeat, lost;
        if (st != TOC_OK)
            /* With an outcome unknown, nothing but "unavailable" is true. */
            return tries.again.unknown ? TOC_UNAVAILABLE : st;
        conn->again = &tries.again;
        st = body(conn, arg, reterr);
        if (st == TOC_OK) {
            toc_my_give(conn);
            return TOC_OK;
        }
        repeat = conn->fault != TOC_MY_FINE && try_again(conn, &tries, now_ms);
        if (!repeat && conn->fault == TOC_MY_FINE)
            toc_my_rollback(conn); /* harmless when there is nothing */
        lost = conn->fault == TOC_MY_LOST || conn->fault == TOC_MY_UNKNOWN;
        toc_my_give(conn);
        if (lost)
            toc_my_drop_idle(store);
        if (!repeat)
            return tries.again.unknown ? TOC_UNAVAILABLE : st;
    }
}
