/*
 * Members and owners as they stand, for whoever asks; it has a connection of
 * its own and does not wait for poll.
 */
#include "common/coord/etcd/coord_etcd_internal.h"

#include <pthread.h>

static void
sort_out(struct toc_coord_etcd *coord, const struct toc_etcd_reply *reply,
         struct toc_arena *arena, struct toc_member *members,
         size_t *ret_n_members, struct toc_owner *owners, size_t *ret_n_owners)
{
    for (size_t i = 0; i < reply->n_kvs; i++) {
        struct toc_coord_event event;
        if (!toc_etcd_event_of(toc_coord_etcd_prefix(coord), &reply->kvs[i],
                               arena, &event))
            continue;
        if (event.kind == TOC_COORD_MEMBER_UP)
            members[(*ret_n_members)++] = event.member;
        else if (event.kind == TOC_COORD_OWNED)
            owners[(*ret_n_owners)++] = event.owner;
    }
}

enum toc_status
toc_coord_etcd_snapshot(void *self, struct toc_arena *arena,
                        struct toc_member **ret_members, size_t *ret_n_members,
                        struct toc_owner **ret_owners, size_t *ret_n_owners,
                        struct toc_error *reterr)
{
    struct toc_coord_etcd *coord = self;
    struct toc_etcd_reply reply;
    pthread_mutex_lock(&coord->snapshot_lock);
    enum toc_status st = toc_coord_etcd_read_all(
        &coord->snapshot_http, coord->prefix, arena, &reply, reterr);
    pthread_mutex_unlock(&coord->snapshot_lock);
    if (st != TOC_OK)
        return st;
    *ret_n_members = *ret_n_owners = 0;
    *ret_members =
        toc_arena_calloc(arena, reply.n_kvs + 1, sizeof **ret_members);
    *ret_owners = toc_arena_calloc(arena, reply.n_kvs + 1, sizeof **ret_owners);
    sort_out(coord, &reply, arena, *ret_members, ret_n_members, *ret_owners,
             ret_n_owners);
    return TOC_OK;
}
