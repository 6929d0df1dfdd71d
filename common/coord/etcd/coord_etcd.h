/*
 * Coordination by etcd v3, through its JSON gateway with libcurl.
 *
 * Keys: <prefix>members/<role>/<node> (JSON: address, node_id, started_ms) and
 * <prefix>own/<shard, 3 digits> (JSON: node, address); wishes likewise under
 * <prefix>want/. Keepalive runs on a
 * thread of its own at a third of the TTL; the deadline is the boot-time clock
 * before sending + TTL - 300 ms. After a compacted watch everything is read
 * anew. No heartbeat writes to the store.
 */
#ifndef TOC_COORD_ETCD_H
#define TOC_COORD_ETCD_H

#include "common/clock/clock.h"
#include "common/coord/coord.h"

struct toc_coord_etcd_options {
    const char *endpoints; /* http://host:port[,...] */
    const char *prefix;    /* "/toc/<cluster>/" */
    const struct toc_clock *clock;
    const char *role, *node,
        *address; /* our member key; role NULL: look only */
    uint32_t node_id;
    int64_t started_ms;
    int64_t ttl_s;     /* 0: 2 */
    bool watch_owners; /* executors need members only */
};

struct toc_coord_etcd;
TOC_MUST_CHECK enum toc_status toc_coord_etcd_open(
    const struct toc_coord_etcd_options *options,
    struct toc_coord_etcd **ret_coord, struct toc_error *reterr);
/* Leaves (bounded by the request timeout) and frees. */
void toc_coord_etcd_close(struct toc_coord_etcd *coord);
struct toc_coord *toc_coord_etcd_port(struct toc_coord_etcd *coord);

#endif
