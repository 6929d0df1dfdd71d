/* Requests. Texts in them are base64 or digits, so nothing needs escaping;
 * the values of our keys are made by the JSON library. */
#include "common/coord/etcd/wire.h"

#include "common/base/assert.h"
#include "common/coord/etcd/base64.h"

#include <inttypes.h>
#include <jansson.h>

static void
put_base64(struct toc_buf *out, const char *name, struct toc_str bytes)
{
    toc_buf_printf(out, "\"%s\":\"", name);
    toc_base64_add(out, bytes);
    toc_buf_char(out, '"');
}

/* Every key that starts with the prefix: up to the prefix with its last byte
 * raised (ours end in '/', so there is no carry). */
static void
put_prefix(struct toc_buf *out, struct toc_str prefix)
{
    TOC_ASSERT(prefix.len > 0 && prefix.ptr[prefix.len - 1] == '/');
    struct toc_buf end = {0};
    toc_buf_str(&end, prefix);
    end.data[end.len - 1]++;
    put_base64(out, "key", prefix);
    toc_buf_char(out, ',');
    put_base64(out, "range_end", toc_buf_view(&end));
    toc_buf_done(&end);
}

static void
put_i64(struct toc_buf *out, const char *name, int64_t value)
{
    toc_buf_printf(out, "\"%s\":\"%" PRId64 "\"", name, value);
}

void
toc_etcd_put_lease_grant(struct toc_buf *out, int64_t ttl_s)
{
    toc_buf_char(out, '{');
    put_i64(out, "TTL", ttl_s);
    toc_buf_char(out, '}');
}

void
toc_etcd_put_lease_id(struct toc_buf *out, int64_t lease)
{
    toc_buf_char(out, '{');
    put_i64(out, "ID", lease);
    toc_buf_char(out, '}');
}

void
toc_etcd_put_range(struct toc_buf *out, struct toc_str prefix)
{
    toc_buf_char(out, '{');
    put_prefix(out, prefix);
    toc_buf_char(out, '}');
}

void
toc_etcd_put_watch(struct toc_buf *out, struct toc_str prefix,
                   int64_t from_revision)
{
    toc_buf_text(out, "{\"create_request\":{");
    put_prefix(out, prefix);
    toc_buf_char(out, ',');
    put_i64(out, "start_revision", from_revision);
    toc_buf_text(out, ",\"progress_notify\":true}}");
}

void
toc_etcd_put_key(struct toc_buf *out, struct toc_str key, struct toc_str value,
                 int64_t lease)
{
    toc_buf_char(out, '{');
    put_base64(out, "key", key);
    toc_buf_char(out, ',');
    put_base64(out, "value", value);
    toc_buf_char(out, ',');
    put_i64(out, "lease", lease);
    toc_buf_char(out, '}');
}

static void
put_shard_key(struct toc_buf *out, struct toc_str prefix, const char *folder,
              uint16_t shard)
{
    struct toc_buf key = {0};
    toc_buf_str(&key, prefix);
    toc_buf_printf(&key, "%s/%03u", folder, (unsigned)shard);
    put_base64(out, "key", toc_buf_view(&key));
    toc_buf_done(&key);
}

static void
put_owner_key(struct toc_buf *out, struct toc_str prefix, uint16_t shard)
{
    put_shard_key(out, prefix, "own", shard);
}

static void
put_acquire_one(struct toc_buf *out, struct toc_str prefix, uint16_t shard,
                struct toc_str value, int64_t lease)
{
    toc_buf_text(out, "{\"request_txn\":{\"compare\":[{"
                      "\"target\":\"CREATE\",\"create_revision\":\"0\",");
    put_owner_key(out, prefix, shard);
    toc_buf_text(out, "}],\"success\":[{\"request_put\":{");
    put_owner_key(out, prefix, shard);
    toc_buf_char(out, ',');
    put_base64(out, "value", value);
    toc_buf_char(out, ',');
    put_i64(out, "lease", lease);
    toc_buf_text(out, "}}],\"failure\":[{\"request_range\":{");
    put_owner_key(out, prefix, shard);
    toc_buf_text(out, "}}]}}");
}

static void
put_release_one(struct toc_buf *out, struct toc_str prefix, uint16_t shard,
                int64_t lease)
{
    toc_buf_text(out, "{\"request_txn\":{\"compare\":[{"
                      "\"target\":\"LEASE\",");
    put_i64(out, "lease", lease);
    toc_buf_char(out, ',');
    put_owner_key(out, prefix, shard);
    toc_buf_text(out, "}],\"success\":[{\"request_delete_range\":{");
    put_owner_key(out, prefix, shard);
    toc_buf_text(out, "}}]}}");
}

void
toc_etcd_put_acquire(struct toc_buf *out, struct toc_str prefix,
                     const uint16_t *shards, size_t n, struct toc_str value,
                     int64_t lease)
{
    TOC_ASSERT(n <= TOC_ETCD_TXN_MAX);
    toc_buf_text(out, "{\"success\":[");
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            toc_buf_char(out, ',');
        put_acquire_one(out, prefix, shards[i], value, lease);
    }
    toc_buf_text(out, "]}");
}

void
toc_etcd_put_release(struct toc_buf *out, struct toc_str prefix,
                     const uint16_t *shards, size_t n, int64_t lease)
{
    TOC_ASSERT(n <= TOC_ETCD_TXN_MAX);
    toc_buf_text(out, "{\"success\":[");
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            toc_buf_char(out, ',');
        put_release_one(out, prefix, shards[i], lease);
    }
    toc_buf_text(out, "]}");
}

static void
put_want_one(struct toc_buf *out, struct toc_str prefix, uint16_t shard,
             struct toc_str value, int64_t lease)
{
    toc_buf_text(out, lease != 0 ? "{\"request_put\":{"
                                 : "{\"request_delete_range\":{");
    put_shard_key(out, prefix, "want", shard);
    if (lease != 0) {
        toc_buf_char(out, ',');
        put_base64(out, "value", value);
        toc_buf_char(out, ',');
        put_i64(out, "lease", lease);
    }
    toc_buf_text(out, "}}");
}

void
toc_etcd_put_want(struct toc_buf *out, struct toc_str prefix,
                  const uint16_t *shards, size_t n, struct toc_str value,
                  int64_t lease)
{
    TOC_ASSERT(n <= TOC_ETCD_TXN_MAX);
    toc_buf_text(out, "{\"success\":[");
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            toc_buf_char(out, ',');
        put_want_one(out, prefix, shards[i], value, lease);
    }
    toc_buf_text(out, "]}");
}

static int
dump_to_buf(const char *bytes, size_t len, void *arg)
{
    struct toc_buf *out = arg;
    toc_buf_add(out, bytes, len);
    return 0;
}

/* Takes the object; NULL (a text was not UTF-8) gives false. */
static bool
put_object(struct toc_buf *out, json_t *object)
{
    if (object == NULL)
        return false;
    int rc = json_dump_callback(object, dump_to_buf, out, JSON_COMPACT);
    json_decref(object);
    return rc == 0;
}

static const char *
text_of(struct toc_str s)
{
    return s.len == 0 ? "" : s.ptr;
}

bool
toc_etcd_put_member_value(struct toc_buf *out, struct toc_str address,
                          uint32_t node_id, int64_t started_ms)
{
    return put_object(out,
                      json_pack("{s:s%, s:I, s:I}", "address", text_of(address),
                                address.len, "node_id", (json_int_t)node_id,
                                "started_ms", (json_int_t)started_ms));
}

bool
toc_etcd_put_owner_value(struct toc_buf *out, struct toc_str node,
                         struct toc_str address)
{
    return put_object(out,
                      json_pack("{s:s%, s:s%}", "node", text_of(node), node.len,
                                "address", text_of(address), address.len));
}
