/* Answers. */
#include "common/coord/etcd/wire.h"

#include "common/base/cleanup.h"
#include "common/coord/etcd/base64.h"

#include <jansson.h>
#include <string.h>

static void
json_done(json_t **json)
{
    json_decref(*json);
}

static enum toc_status
malformed(struct toc_error *reterr, const char *what)
{
    return toc_error_set(reterr, TOC_INTERNAL, "etcd", 0,
                         "etcd's answer is not what it says it sends: %s",
                         what);
}

/* ---- fields --------------------------------------------------------- */

static struct toc_str
text_at(const json_t *object, const char *name)
{
    const json_t *text = json_object_get(object, name);
    if (!json_is_string(text))
        return (struct toc_str){0};
    return (struct toc_str){json_string_value(text), json_string_length(text)};
}

/* A number, as a text or as a number; absent is 0; false when it is none. */
static bool
i64_at(const json_t *object, const char *name, int64_t *ret)
{
    const json_t *value = json_object_get(object, name);
    if (value == NULL) {
        *ret = 0;
        return true;
    }
    if (json_is_integer(value)) {
        *ret = json_integer_value(value);
        return true;
    }
    return json_is_string(value) &&
           toc_parse_i64(text_at(object, name), INT64_MIN, INT64_MAX, ret);
}

static bool
bytes_at(const json_t *object, const char *name, struct toc_arena *arena,
         struct toc_str *ret)
{
    struct toc_str text = text_at(object, name);
    char *out = toc_arena_alloc(arena, toc_base64_room(text.len) + 1);
    size_t len;
    if (!toc_base64_decode(text, out, &len))
        return false;
    *ret = (struct toc_str){out, len};
    return true;
}

static bool
kv_of(const json_t *json, struct toc_arena *arena, struct toc_etcd_kv *ret)
{
    return bytes_at(json, "key", arena, &ret->key) &&
           bytes_at(json, "value", arena, &ret->value) &&
           i64_at(json, "lease", &ret->lease) &&
           i64_at(json, "mod_revision", &ret->mod_revision);
}

static bool
revision_of(const json_t *json, int64_t *ret)
{
    return i64_at(json_object_get(json, "header"), "revision", ret);
}

/* ---- answers -------------------------------------------------------- */

static enum toc_status
status_of_code(int64_t code)
{
    switch (code) {
#define X(name, value, retryable, text) \
    case value:                         \
        return TOC_##name;
        TOC_STATUS_MAP(X)
#undef X
    default:
        return TOC_UNKNOWN;
    }
}

enum toc_status
toc_etcd_parse_error(long http_code, struct toc_str body,
                     struct toc_error *reterr)
{
    TOC_CLEANUP(json_done)
    json_t *json =
        json_loadb(body.ptr == NULL ? "" : body.ptr, body.len, 0, NULL);
    /* a stream wraps it in "error" and calls the code "grpc_code" */
    const json_t *error = json_object_get(json, "error");
    if (!json_is_object(error))
        error = json;
    int64_t code = 0;
    if (!i64_at(error, "code", &code) || code == 0)
        (void)i64_at(error, "grpc_code", &code);
    enum toc_status st = status_of_code(code);
    if (st == TOC_OK)
        st = http_code >= 500 ? TOC_UNAVAILABLE : TOC_UNKNOWN;
    struct toc_str text = text_at(error, "message");
    return toc_error_set(reterr, st, "etcd", (int)http_code,
                         "etcd refused (HTTP %ld): %.*s", http_code,
                         (int)(text.len < 160 ? text.len : 160),
                         text.len == 0 ? "" : text.ptr);
}

enum toc_status
toc_etcd_parse_lease(struct toc_str body, int64_t *ret_id, int64_t *ret_ttl_s,
                     struct toc_error *reterr)
{
    TOC_CLEANUP(json_done)
    json_t *json = json_loadb(body.ptr == NULL ? "" : body.ptr, body.len,
                              JSON_DISABLE_EOF_CHECK, NULL);
    if (json_object_get(json, "error") != NULL)
        return toc_etcd_parse_error(200, body, reterr);
    const json_t *result = json_object_get(json, "result");
    if (result == NULL)
        result = json;
    int64_t id, ttl_s;
    if (!i64_at(result, "ID", &id) || !i64_at(result, "TTL", &ttl_s) || id == 0)
        return malformed(reterr, "lease");
    *ret_id = id;
    *ret_ttl_s = ttl_s;
    return TOC_OK;
}

enum toc_status
toc_etcd_parse_range(struct toc_str body, struct toc_arena *arena,
                     struct toc_etcd_reply *ret_reply, struct toc_error *reterr)
{
    TOC_CLEANUP(json_done)
    json_t *json =
        json_loadb(body.ptr == NULL ? "" : body.ptr, body.len, 0, NULL);
    struct toc_etcd_reply reply = {0};
    if (!revision_of(json, &reply.revision) || reply.revision <= 0)
        return malformed(reterr, "range");
    const json_t *kvs = json_object_get(json, "kvs");
    size_t n = json_array_size(kvs);
    reply.kvs = toc_arena_calloc(arena, n + 1, sizeof *reply.kvs);
    for (size_t i = 0; i < n; i++)
        if (!kv_of(json_array_get(kvs, i), arena, &reply.kvs[i]))
            return malformed(reterr, "a key of a range");
    reply.n_kvs = n;
    *ret_reply = reply;
    return TOC_OK;
}

static bool
watch_events_of(const json_t *events, struct toc_arena *arena,
                struct toc_etcd_reply *reply)
{
    size_t n = json_array_size(events);
    reply->kvs = toc_arena_calloc(arena, n + 1, sizeof *reply->kvs);
    for (size_t i = 0; i < n; i++) {
        const json_t *event = json_array_get(events, i);
        struct toc_etcd_kv *kv = &reply->kvs[i];
        if (!kv_of(json_object_get(event, "kv"), arena, kv) ||
            kv->mod_revision <= 0)
            return false;
        kv->deleted = toc_str_eq(text_at(event, "type"), TOC_STR("DELETE"));
    }
    reply->n_kvs = n;
    return true;
}

enum toc_status
toc_etcd_parse_watch(struct toc_str line, struct toc_arena *arena,
                     struct toc_etcd_reply *ret_reply, struct toc_error *reterr)
{
    TOC_CLEANUP(json_done)
    json_t *json =
        json_loadb(line.ptr == NULL ? "" : line.ptr, line.len, 0, NULL);
    if (json_object_get(json, "error") != NULL)
        return toc_etcd_parse_error(200, line, reterr);
    const json_t *result = json_object_get(json, "result");
    struct toc_etcd_reply reply = {
        .created = json_is_true(json_object_get(result, "created")),
        .canceled = json_is_true(json_object_get(result, "canceled")),
    };
    if (!json_is_object(result) || !revision_of(result, &reply.revision) ||
        !i64_at(result, "compact_revision", &reply.compact_revision))
        return malformed(reterr, "watch");
    if (!watch_events_of(json_object_get(result, "events"), arena, &reply))
        return malformed(reterr, "an event of a watch");
    *ret_reply = reply;
    return TOC_OK;
}

/* Did the inner transaction create the key, or find it under our lease? */
static bool
acquired_one(const json_t *response, int64_t lease, bool *ret_won)
{
    const json_t *txn = json_object_get(response, "response_txn");
    if (!json_is_object(txn))
        return false;
    if (json_is_true(json_object_get(txn, "succeeded"))) {
        *ret_won = true;
        return true;
    }
    const json_t *found = json_array_get(json_object_get(txn, "responses"), 0);
    const json_t *range = json_object_get(found, "response_range");
    const json_t *kv = json_array_get(json_object_get(range, "kvs"), 0);
    int64_t theirs;
    if (!i64_at(kv, "lease", &theirs))
        return false;
    *ret_won = theirs == lease && lease != 0;
    return true;
}

enum toc_status
toc_etcd_parse_acquire(struct toc_str body, size_t n, int64_t lease,
                       bool *ret_won, struct toc_error *reterr)
{
    TOC_CLEANUP(json_done)
    json_t *json =
        json_loadb(body.ptr == NULL ? "" : body.ptr, body.len, 0, NULL);
    const json_t *responses = json_object_get(json, "responses");
    bool won[TOC_ETCD_TXN_MAX];
    if (json_array_size(responses) != n || n > TOC_ETCD_TXN_MAX)
        return malformed(reterr, "transaction");
    for (size_t i = 0; i < n; i++)
        if (!acquired_one(json_array_get(responses, i), lease, &won[i]))
            return malformed(reterr, "transaction in a transaction");
    memcpy(ret_won, won, n * sizeof *won);
    return TOC_OK;
}

/* ---- our keys ------------------------------------------------------- */

static struct toc_str
arena_text_at(const json_t *object, const char *name, struct toc_arena *arena)
{
    struct toc_str text = text_at(object, name);
    return text.len == 0 ? text : toc_arena_str(arena, text);
}

static bool
member_of(struct toc_str path, const struct toc_etcd_kv *kv,
          struct toc_arena *arena, struct toc_coord_event *ret)
{
    struct toc_str rest = path;
    struct toc_member member = {0};
    if (!toc_str_next(&rest, '/', &member.role) || member.role.len == 0 ||
        rest.len == 0)
        return false;
    member.node = rest;
    *ret = (struct toc_coord_event){.kind = TOC_COORD_MEMBER_DOWN,
                                    .member = member};
    if (kv->deleted)
        return true;
    TOC_CLEANUP(json_done)
    json_t *json = json_loadb(kv->value.ptr, kv->value.len, 0, NULL);
    int64_t node_id;
    if (!json_is_object(json) || !i64_at(json, "node_id", &node_id) ||
        node_id < 0 || node_id > UINT32_MAX ||
        !i64_at(json, "started_ms", &member.started_ms))
        return false;
    member.node_id = (uint32_t)node_id;
    member.address = arena_text_at(json, "address", arena);
    ret->kind = TOC_COORD_MEMBER_UP;
    ret->member = member;
    return true;
}

/* own/ and want/ look alike: kind when the key stands there, else gone. */
static bool
owner_of(struct toc_str path, const struct toc_etcd_kv *kv,
         enum toc_coord_event_kind kind, enum toc_coord_event_kind gone,
         struct toc_arena *arena, struct toc_coord_event *ret)
{
    int64_t shard;
    if (path.len != 3 || path.ptr[0] == '-' ||
        !toc_parse_i64(path, 0, TOC_ETCD_SHARDS - 1, &shard))
        return false;
    *ret =
        (struct toc_coord_event){.kind = gone, .owner.shard = (uint16_t)shard};
    if (kv->deleted)
        return true;
    TOC_CLEANUP(json_done)
    json_t *json = json_loadb(kv->value.ptr, kv->value.len, 0, NULL);
    ret->kind = kind;
    ret->owner.node = arena_text_at(json, "node", arena);
    ret->owner.address = arena_text_at(json, "address", arena);
    return true;
}

/* Cuts the front off; false when it is not there. */
static bool
after(struct toc_str s, struct toc_str front, struct toc_str *ret)
{
    if (!toc_str_starts(s, front))
        return false;
    *ret = (struct toc_str){s.ptr + front.len, s.len - front.len};
    return true;
}

bool
toc_etcd_event_of(struct toc_str prefix, const struct toc_etcd_kv *kv,
                  struct toc_arena *arena, struct toc_coord_event *ret)
{
    struct toc_str path, rest;
    if (!after(kv->key, prefix, &path))
        return false;
    if (after(path, TOC_STR("members/"), &rest))
        return member_of(rest, kv, arena, ret);
    if (after(path, TOC_STR("own/"), &rest))
        return owner_of(rest, kv, TOC_COORD_OWNED, TOC_COORD_FREED, arena, ret);
    if (after(path, TOC_STR("want/"), &rest))
        return owner_of(rest, kv, TOC_COORD_WANTED, TOC_COORD_UNWANTED, arena,
                        ret);
    return false;
}
