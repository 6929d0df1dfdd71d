/*
 * What stands in etcd, told: everything at first, then the changes.
 */
#include "common/coord/etcd/coord_etcd_internal.h"

#include "common/base/cleanup.h"
#include "common/base/log.h"

enum toc_status
toc_coord_etcd_read_all(struct toc_etcd_http *http, const char *prefix,
                        struct toc_arena *arena,
                        struct toc_etcd_reply *ret_reply,
                        struct toc_error *reterr)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf body = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf reply = {0};
    toc_etcd_put_range(&body, toc_str_of(prefix));
    enum toc_status st =
        toc_etcd_http_post(http, "/v3/kv/range", toc_buf_view(&body),
                           TOC_COORD_ETCD_REQUEST_MS, &reply, reterr);
    if (st != TOC_OK)
        return st;
    return toc_etcd_parse_range(toc_buf_view(&reply), arena, ret_reply, reterr);
}

static void
tell_kvs(struct toc_coord_etcd *coord, struct toc_coord_etcd_teller to,
         const struct toc_etcd_reply *reply)
{
    for (size_t i = 0; i < reply->n_kvs; i++) {
        struct toc_coord_event event;
        if (toc_etcd_event_of(toc_coord_etcd_prefix(coord), &reply->kvs[i],
                              &coord->arena, &event))
            toc_coord_etcd_tell(coord, to, &event);
        else
            TOC_LOG(DEBUG, "etcd.key.ignored",
                    F_SPAN("key", reply->kvs[i].key));
    }
}

enum toc_status
toc_coord_etcd_step_sync(struct toc_coord_etcd *coord,
                         struct toc_coord_etcd_teller to,
                         struct toc_error *reterr)
{
    if (coord->in_sync || toc_coord_etcd_session_missing(coord) ||
        !toc_coord_etcd_may_try(coord))
        return TOC_OK;
    toc_etcd_watch_close(&coord->watch);
    toc_arena_reset(&coord->arena);
    struct toc_etcd_reply reply;
    enum toc_status st = toc_coord_etcd_read_all(
        &coord->http, coord->watch_prefix, &coord->arena, &reply, reterr);
    if (st != TOC_OK)
        return toc_coord_etcd_back_off(coord, st);
    toc_coord_etcd_tell_kind(coord, to, TOC_COORD_RESET);
    tell_kvs(coord, to, &reply);
    toc_coord_etcd_tell_kind(coord, to, TOC_COORD_SYNCED);
    coord->revision = reply.revision;
    coord->in_sync = true;
    return TOC_OK;
}

static void
open_watch(struct toc_coord_etcd *coord)
{
    toc_etcd_watch_open(&coord->watch, toc_str_of(coord->watch_prefix),
                        coord->revision + 1);
}

static void
take_reply(struct toc_coord_etcd *coord, struct toc_coord_etcd_teller to,
           const struct toc_etcd_reply *reply)
{
    /* Compacted, or cancelled for another reason; or the server knows less
     * than we do: it was wiped or restored. */
    if (reply->canceled ||
        (reply->created && reply->revision < coord->revision)) {
        TOC_LOG(DEBUG, "etcd.watch.reset",
                F_INT("compact_revision", reply->compact_revision),
                F_INT("revision", reply->revision));
        toc_etcd_watch_close(&coord->watch);
        coord->in_sync = false;
        return;
    }
    if (reply->created)
        toc_coord_etcd_all_is_well(coord);
    if (reply->n_kvs == 0) {
        /* progress: all up to this revision has come. (The answer to a new
         * watch says nothing about what is still to come.) */
        if (!reply->created && reply->revision > coord->revision)
            coord->revision = reply->revision;
        return;
    }
    tell_kvs(coord, to, reply);
    coord->revision = reply->kvs[reply->n_kvs - 1].mod_revision;
}

/* Takes every whole line. */
static enum toc_status
take_lines(struct toc_coord_etcd *coord, struct toc_coord_etcd_teller to,
           struct toc_error *reterr)
{
    struct toc_str line;
    while (coord->in_sync && toc_etcd_watch_line(&coord->watch, &line)) {
        if (line.len == 0)
            continue;
        struct toc_etcd_reply reply;
        toc_arena_reset(&coord->arena);
        enum toc_status st =
            toc_etcd_parse_watch(line, &coord->arena, &reply, reterr);
        if (st != TOC_OK) {
            toc_etcd_watch_close(&coord->watch);
            coord->in_sync = false;
            return toc_coord_etcd_back_off(coord, st);
        }
        take_reply(coord, to, &reply);
    }
    return TOC_OK;
}

enum toc_status
toc_coord_etcd_step_watch(struct toc_coord_etcd *coord,
                          struct toc_coord_etcd_teller to,
                          struct toc_error *reterr)
{
    struct toc_etcd_watch *watch = &coord->watch;
    if (!coord->in_sync)
        return TOC_OK;
    if (!watch->open && toc_coord_etcd_may_try(coord))
        open_watch(coord);
    enum toc_status ended = toc_etcd_watch_pump(watch, reterr);
    enum toc_status st = take_lines(coord, to, ended == TOC_OK ? reterr : NULL);
    if (ended != TOC_OK)
        return toc_coord_etcd_back_off(coord, ended);
    if (st != TOC_OK || !watch->open ||
        toc_clock_mono(coord->clock).ns < toc_etcd_watch_stale_at(watch))
        return st;
    bool answered = watch->answered;
    toc_etcd_watch_close(watch);
    toc_etcd_http_next_endpoint(&watch->http);
    if (answered)
        return TOC_OK; /* silent, which is usual: look anew */
    return toc_coord_etcd_back_off(
        coord, toc_error_set(reterr, TOC_DEADLINE, "etcd", 0,
                             "etcd does not answer the watch"));
}
