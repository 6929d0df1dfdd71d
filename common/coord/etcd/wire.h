/*
 * What goes to and comes from etcd's v3 JSON gateway, as text and as structs.
 * Pure: no I/O.
 *
 * Ownership: parsed texts live in the arena that is passed. Threads: any.
 * Errors: TOC_INTERNAL when the answer is not what etcd says it sends;
 * toc_etcd_parse_error turns an answer other than 200 into a status (the
 * gateway's code is a gRPC code).
 *
 * Numbers of 64 bits are texts in this JSON; fields with zero values (false,
 * 0, "PUT") are left out by the server.
 */
#ifndef TOC_COORD_ETCD_WIRE_H
#define TOC_COORD_ETCD_WIRE_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/base/str.h"
#include "common/coord/coord.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shards are numbered 0 to 255, for ever: the first byte of a key's hash. */
#define TOC_ETCD_SHARDS 256
/* Keys in one transaction; the server refuses more than 128 operations. */
#define TOC_ETCD_TXN_MAX 64

struct toc_etcd_kv {
    struct toc_str key, value;
    int64_t lease, mod_revision;
    bool deleted;
};

/* A range's answer, or one message of a watch. */
struct toc_etcd_reply {
    int64_t revision;
    struct toc_etcd_kv *kvs;
    size_t n_kvs;
    bool created, canceled;   /* watch */
    int64_t compact_revision; /* watch: what was asked for is gone */
};

/* ---- requests ------------------------------------------------------- */

void toc_etcd_put_lease_grant(struct toc_buf *out, int64_t ttl_s);
void toc_etcd_put_lease_id(struct toc_buf *out, int64_t lease);
void toc_etcd_put_range(struct toc_buf *out, struct toc_str prefix);
void toc_etcd_put_watch(struct toc_buf *out, struct toc_str prefix,
                        int64_t from_revision);
void toc_etcd_put_key(struct toc_buf *out, struct toc_str key,
                      struct toc_str value, int64_t lease);
/* One transaction of n independent ones: create the key if it is absent, else
 * read it. n <= TOC_ETCD_TXN_MAX. */
void toc_etcd_put_acquire(struct toc_buf *out, struct toc_str prefix,
                          const uint16_t *shards, size_t n,
                          struct toc_str value, int64_t lease);
/* Likewise: delete the key if it stands under the lease. */
void toc_etcd_put_release(struct toc_buf *out, struct toc_str prefix,
                          const uint16_t *shards, size_t n, int64_t lease);

/* One transaction that puts the wishes under the lease, or (lease 0) removes
 * them. n <= TOC_ETCD_TXN_MAX. */
void toc_etcd_put_want(struct toc_buf *out, struct toc_str prefix,
                       const uint16_t *shards, size_t n, struct toc_str value,
                       int64_t lease);

/* ---- answers -------------------------------------------------------- */

TOC_MUST_CHECK enum toc_status toc_etcd_parse_error(long http_code,
                                                    struct toc_str body,
                                                    struct toc_error *reterr);
/* Of a grant or a keepalive; TTL 0: there is no such lease (any more). */
TOC_MUST_CHECK enum toc_status toc_etcd_parse_lease(struct toc_str body,
                                                    int64_t *ret_id,
                                                    int64_t *ret_ttl_s,
                                                    struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status toc_etcd_parse_range(
    struct toc_str body, struct toc_arena *arena,
    struct toc_etcd_reply *ret_reply, struct toc_error *reterr);
TOC_MUST_CHECK enum toc_status toc_etcd_parse_watch(
    struct toc_str line, struct toc_arena *arena,
    struct toc_etcd_reply *ret_reply, struct toc_error *reterr);
/* Won: created now, or there already under our lease. */
TOC_MUST_CHECK enum toc_status toc_etcd_parse_acquire(struct toc_str body,
                                                      size_t n, int64_t lease,
                                                      bool *ret_won,
                                                      struct toc_error *reterr);

/* ---- our keys ------------------------------------------------------- */

/* False when a text is not UTF-8. */
bool toc_etcd_put_member_value(struct toc_buf *out, struct toc_str address,
                               uint32_t node_id, int64_t started_ms);
bool toc_etcd_put_owner_value(struct toc_buf *out, struct toc_str node,
                              struct toc_str address);
/*
 * The event that a key stands for: MEMBER_UP or _DOWN, OWNED or FREED, WANTED
 * or UNWANTED; false when it means nothing to us. An owner whose value cannot
 * be read is told with empty texts: the key stands there, so nobody else can
 * take the shard.
 */
bool toc_etcd_event_of(struct toc_str prefix, const struct toc_etcd_kv *kv,
                       struct toc_arena *arena, struct toc_coord_event *ret);

#endif
