/*
 * Goal: requests are what etcd's gateway takes; its answers are read rightly,
 * numbers of 64 bits exactly; anything else is an error and never a crash.
 * Method: texts as etcd 3.4 sends them, then the same cut and damaged.
 */
#include "common/base/rng.h"
#include "common/coord/etcd/base64.h"
#include "common/coord/etcd/wire.h"
#include "tests/support/toc_check.h"

#include <string.h>

static struct toc_arena arena;

#define RANGE                                                              \
    "{\"header\":{\"cluster_id\":\"4234216306655491773\",\"revision\":"    \
    "\"9007199254740993\"},\"kvs\":[{\"key\":\"L3gvMg==\","                \
    "\"create_revision\":\"2\",\"mod_revision\":\"9007199254740993\","     \
    "\"version\":\"1\",\"value\":\"dg==\",\"lease\":\"9223372036854775807" \
    "\"},{\"key\":\"L3gvMw==\",\"mod_revision\":\"3\"}],\"count\":\"2\"}"
#define WATCH                                                                 \
    "{\"result\":{\"header\":{\"revision\":\"7\"},\"events\":[{\"kv\":{"      \
    "\"key\":\"L3gvMQ==\",\"mod_revision\":\"6\",\"value\":\"dg==\"}},{"      \
    "\"type\":\"DELETE\",\"kv\":{\"key\":\"L3gvMQ==\",\"mod_revision\":\"7\"" \
    "}}]}}"
#define CREATED \
    "{\"result\":{\"header\":{\"revision\":\"7\"},\"created\":true}}"
#define COMPACTED                                                      \
    "{\"result\":{\"header\":{\"member_id\":\"5\"},\"canceled\":true," \
    "\"compact_revision\":\"9223372036854775807\"}}"
#define WON                                                                \
    "{\"response_txn\":{\"header\":{},\"succeeded\":true,\"responses\":[{" \
    "\"response_put\":{\"header\":{\"revision\":\"2\"}}}]}}"
#define FOUND(lease)                                                         \
    "{\"response_txn\":{\"header\":{},\"responses\":[{\"response_range\":{"  \
    "\"kvs\":[{\"key\":\"L3gvMQ==\",\"lease\":\"" lease "\"}],\"count\":\"1" \
    "\"}}]}}"

START_TEST(reads_a_range)
{
    struct toc_etcd_reply reply;
    ck_assert_int_eq(toc_etcd_parse_range(TOC_STR(RANGE), &arena, &reply, NULL),
                     TOC_OK);
    ck_assert_int_eq(reply.revision, INT64_C(9007199254740993));
    ck_assert_uint_eq(reply.n_kvs, 2);
    TOC_ASSERT_STR(reply.kvs[0].key, "/x/2");
    TOC_ASSERT_STR(reply.kvs[0].value, "v");
    ck_assert_int_eq(reply.kvs[0].lease, INT64_MAX);
    ck_assert_int_eq(reply.kvs[0].mod_revision, INT64_C(9007199254740993));
    TOC_ASSERT_STR(reply.kvs[1].key, "/x/3");
    ck_assert_uint_eq(reply.kvs[1].value.len, 0);
    ck_assert_int_eq(reply.kvs[1].lease, 0);
    toc_arena_done(&arena);
}
END_TEST

START_TEST(reads_a_watch)
{
    struct toc_etcd_reply reply;
    ck_assert_int_eq(toc_etcd_parse_watch(TOC_STR(WATCH), &arena, &reply, NULL),
                     TOC_OK);
    ck_assert(!reply.created && !reply.canceled);
    ck_assert_uint_eq(reply.n_kvs, 2);
    ck_assert(!reply.kvs[0].deleted && reply.kvs[1].deleted);
    ck_assert_int_eq(reply.kvs[1].mod_revision, 7);
    ck_assert_int_eq(
        toc_etcd_parse_watch(TOC_STR(CREATED), &arena, &reply, NULL), TOC_OK);
    ck_assert(reply.created && reply.n_kvs == 0);
    ck_assert_int_eq(reply.revision, 7);
    ck_assert_int_eq(
        toc_etcd_parse_watch(TOC_STR(COMPACTED), &arena, &reply, NULL), TOC_OK);
    ck_assert(reply.canceled);
    ck_assert_int_eq(reply.compact_revision, INT64_MAX);
    toc_arena_done(&arena);
}
END_TEST

START_TEST(reads_a_lease_and_its_end)
{
    int64_t id = 0, ttl = 0;
    ck_assert_int_eq(
        toc_etcd_parse_lease(
            TOC_STR("{\"ID\":\"723006071627243526\",\"TTL\":\"2\"}"), &id, &ttl,
            NULL),
        TOC_OK);
    ck_assert_int_eq(id, INT64_C(723006071627243526));
    ck_assert_int_eq(ttl, 2);
    /* of a dead lease: 200, without TTL */
    ck_assert_int_eq(
        toc_etcd_parse_lease(
            TOC_STR("{\"result\":{\"header\":{},\"ID\":\"123\"}}\n"), &id, &ttl,
            NULL),
        TOC_OK);
    ck_assert_int_eq(id, 123);
    ck_assert_int_eq(ttl, 0);
    const char *const bad[] = {"",
                               "{}",
                               "[]",
                               "{\"ID\":\"x\"}",
                               "{\"ID\":\"1\",\"TTL\":\"two\"}",
                               "{\"ID\":\"99999999999999999999\"}",
                               "{\"ID\":true}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(
            toc_etcd_parse_lease(toc_str_of(bad[i]), &id, &ttl, NULL),
            TOC_INTERNAL);
}
END_TEST

START_TEST(knows_who_won)
{
    bool won[3] = {false, true, false};
    const char *text = "{\"succeeded\":true,\"responses\":[" WON
                       "," FOUND("8") "," FOUND("9223372036854775807") "]}";
    ck_assert_int_eq(
        toc_etcd_parse_acquire(toc_str_of(text), 3, INT64_MAX, won, NULL),
        TOC_OK);
    ck_assert(won[0] && !won[1] && won[2]);
    /* a number too few */
    ck_assert_int_eq(
        toc_etcd_parse_acquire(toc_str_of(text), 2, INT64_MAX, won, NULL),
        TOC_INTERNAL);
    ck_assert(won[0] && !won[1] && won[2]);
    ck_assert_int_eq(toc_etcd_parse_acquire(
                         TOC_STR("{\"responses\":[{\"response_put\":{}}]}"), 1,
                         1, won, NULL),
                     TOC_INTERNAL);
}
END_TEST

START_TEST(a_refusal_keeps_its_code_and_text)
{
    struct toc_error error;
    ck_assert_int_eq(
        toc_etcd_parse_error(404,
                             TOC_STR("{\"error\":\"x\",\"message\":\"requested "
                                     "lease not found\",\"code\":5}"),
                             &error),
        TOC_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.msg, "lease not found"));
    ck_assert_int_eq(
        toc_etcd_parse_watch(
            TOC_STR("{\"error\":{\"grpc_code\":14,\"message\":\"no leader\"}}"),
            &arena, &(struct toc_etcd_reply){0}, &error),
        TOC_UNAVAILABLE);
    ck_assert_int_eq(toc_etcd_parse_error(502, TOC_STR("<html>"), &error),
                     TOC_UNAVAILABLE);
    ck_assert_int_eq(toc_etcd_parse_error(404, TOC_STR(""), &error),
                     TOC_UNKNOWN);
    ck_assert_int_eq(
        toc_etcd_parse_error(500, TOC_STR("{\"code\":4711}"), &error),
        TOC_UNKNOWN);
    toc_arena_done(&arena);
}
END_TEST

/* Every cut and many damaged texts: an error or a sane answer, no crash. */
START_TEST(damaged_answers_do_no_harm)
{
    const char *const texts[] = {RANGE, WATCH, CREATED, COMPACTED,
                                 "{\"responses\":[" WON "," FOUND("8") "]}"};
    struct toc_rng rng;
    toc_rng_seed(&rng, 17);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct toc_etcd_reply reply;
        size_t len = strlen(texts[i]);
        char copy[1024];
        bool won[TOC_ETCD_TXN_MAX];
        int64_t id, ttl;
        for (size_t cut = 0; cut < len; cut++) {
            struct toc_str text = {texts[i], cut};
            ck_assert_int_ne(toc_etcd_parse_range(text, &arena, &reply, NULL),
                             TOC_OK);
            ck_assert_int_ne(toc_etcd_parse_watch(text, &arena, &reply, NULL),
                             TOC_OK);
            ck_assert_int_ne(toc_etcd_parse_acquire(text, 2, 1, won, NULL),
                             TOC_OK);
        }
        for (int round = 0; round < 3000; round++) {
            memcpy(copy, texts[i], len);
            for (int n = 0; n < 3; n++)
                copy[toc_rng_below(&rng, len)] = (char)toc_rng_next(&rng);
            struct toc_str text = {copy, len};
            if (toc_etcd_parse_range(text, &arena, &reply, NULL) == TOC_OK)
                ck_assert_int_gt(reply.revision, 0);
            if (toc_etcd_parse_watch(text, &arena, &reply, NULL) == TOC_OK)
                for (size_t k = 0; k < reply.n_kvs; k++)
                    ck_assert_int_gt(reply.kvs[k].mod_revision, 0);
            (void)!toc_etcd_parse_acquire(text, 2, 1, won, NULL);
            (void)!toc_etcd_parse_lease(text, &id, &ttl, NULL);
            toc_arena_reset(&arena);
        }
    }
    toc_arena_done(&arena);
}
END_TEST

static bool
event_of(const char *key, const char *value, struct toc_coord_event *event)
{
    struct toc_etcd_kv kv = {.key = toc_str_of(key),
                             .value = toc_str_of(value),
                             .deleted = value == NULL};
    return toc_etcd_event_of(TOC_STR("/toc/c/"), &kv, &arena, event);
}

START_TEST(keys_become_events)
{
    struct toc_coord_event event;
    struct toc_buf value = {0};
    ck_assert(toc_etcd_put_member_value(&value, TOC_STR("h\":1"), UINT32_MAX,
                                        INT64_MAX));
    ck_assert(event_of("/toc/c/members/executor/n/1", value.data, &event));
    ck_assert_int_eq(event.kind, TOC_COORD_MEMBER_UP);
    TOC_ASSERT_STR(event.member.role, "executor");
    TOC_ASSERT_STR(event.member.node, "n/1");
    TOC_ASSERT_STR(event.member.address, "h\":1");
    ck_assert_uint_eq(event.member.node_id, UINT32_MAX);
    ck_assert_int_eq(event.member.started_ms, INT64_MAX);
    ck_assert(event_of("/toc/c/members/executor/n/1", NULL, &event));
    ck_assert_int_eq(event.kind, TOC_COORD_MEMBER_DOWN);

    toc_buf_reset(&value);
    ck_assert(toc_etcd_put_owner_value(&value, TOC_STR("n"), TOC_STR("h:1")));
    ck_assert(event_of("/toc/c/own/255", value.data, &event));
    ck_assert_int_eq(event.kind, TOC_COORD_OWNED);
    ck_assert_uint_eq(event.owner.shard, 255);
    TOC_ASSERT_STR(event.owner.node, "n");
    TOC_ASSERT_STR(event.owner.address, "h:1");
    ck_assert(event_of("/toc/c/own/007", NULL, &event));
    ck_assert_int_eq(event.kind, TOC_COORD_FREED);
    ck_assert_uint_eq(event.owner.shard, 7);
    ck_assert(event_of("/toc/c/own/007", "rubbish", &event));
    ck_assert_int_eq(event.kind, TOC_COORD_OWNED);
    ck_assert_uint_eq(event.owner.node.len, 0);
    ck_assert(event_of("/toc/c/want/255", value.data, &event));
    ck_assert_int_eq(event.kind, TOC_COORD_WANTED);
    ck_assert_uint_eq(event.owner.shard, 255);
    TOC_ASSERT_STR(event.owner.node, "n");
    ck_assert(event_of("/toc/c/want/007", NULL, &event));
    ck_assert_int_eq(event.kind, TOC_COORD_UNWANTED);
    ck_assert_uint_eq(event.owner.shard, 7);
    toc_buf_done(&value);
    toc_arena_done(&arena);
}
END_TEST

START_TEST(other_keys_mean_nothing)
{
    const char *const keys[] = {
        "",
        "/toc/c",
        "/toc/c/",
        "/toc/other/own/001",
        "/toc/c/own/",
        "/toc/c/own/256",
        "/toc/c/own/1",
        "/toc/c/own/-00",
        "/toc/c/own/0x1",
        "/toc/c/own/0001",
        "/toc/c/want/256",
        "/toc/c/members/",
        "/toc/c/members/executor",
        "/toc/c/members/executor/",
        "/toc/c/members//n",
        "/toc/c/owner/001",
        "/toc/c/rules/revision",
    };
    struct toc_coord_event event;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ck_assert_msg(!event_of(keys[i], "{}", &event), "%s", keys[i]);
    const char *const values[] = {"",
                                  "[]",
                                  "null",
                                  "{\"node_id\":-1}",
                                  "{\"node_id\":4294967296}",
                                  "{\"node_id\":\"x\"}",
                                  "{\"started_ms\":true}",
                                  "\xff"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        ck_assert(!event_of("/toc/c/members/r/n", values[i], &event));
    toc_arena_done(&arena);
}
END_TEST

START_TEST(texts_that_are_no_text_are_refused)
{
    struct toc_buf value = {0};
    ck_assert(!toc_etcd_put_owner_value(&value, TOC_STR("\xff"), TOC_STR("")));
    ck_assert(
        !toc_etcd_put_member_value(&value, TOC_STR("\xed\xa0\x80"), 1, 1));
    toc_buf_done(&value);
}
END_TEST

START_TEST(requests_say_what_they_should)
{
    struct toc_buf out = {0};
    toc_etcd_put_range(&out, TOC_STR("/x/"));
    TOC_ASSERT_STR(toc_buf_view(&out),
                   "{\"key\":\"L3gv\",\"range_end\":\"L3gw\"}");
    toc_buf_reset(&out);
    toc_etcd_put_lease_id(&out, INT64_MAX);
    TOC_ASSERT_STR(toc_buf_view(&out), "{\"ID\":\"9223372036854775807\"}");
    toc_buf_reset(&out);
    toc_etcd_put_watch(&out, TOC_STR("/x/"), INT64_C(9007199254740993));
    TOC_ASSERT_STR(toc_buf_view(&out),
                   "{\"create_request\":{\"key\":\"L3gv\",\"range_end\":"
                   "\"L3gw\",\"start_revision\":\"9007199254740993\","
                   "\"progress_notify\":true}}");
    toc_buf_reset(&out);
    toc_etcd_put_release(&out, TOC_STR("/x/"), &(uint16_t){7}, 1, 5);
    TOC_ASSERT_STR(
        toc_buf_view(&out),
        "{\"success\":[{\"request_txn\":{\"compare\":[{\"target\":\"LEASE\","
        "\"lease\":\"5\",\"key\":\"L3gvb3duLzAwNw==\"}],\"success\":[{"
        "\"request_delete_range\":{\"key\":\"L3gvb3duLzAwNw==\"}}]}}]}");
    toc_buf_done(&out);
}
END_TEST

TOC_CHECK_MAIN("coord wire", reads_a_range, reads_a_watch,
               reads_a_lease_and_its_end, knows_who_won,
               a_refusal_keeps_its_code_and_text, damaged_answers_do_no_harm,
               keys_become_events, other_keys_mean_nothing,
               texts_that_are_no_text_are_refused,
               requests_say_what_they_should)
