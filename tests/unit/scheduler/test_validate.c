/*
 * Goal: every field of every request is held to its stated rule; what is wrong
 * is named (path, value, rule), all of it at once, and what is right is
 * understood as sent.
 * Method: a request that is right, changed in one thing at a time; each must
 * give exactly the violation named, or none.
 */
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/model/limits.h"
#include "scheduler/access/content.h"
#include "scheduler/access/validate.h"
#include "scheduler/access/wire.h"
#include "tests/support/toc_check.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define NOW INT64_C(1800000000000)
#define DAY 86400

/* A request and all that it may point to. */
static struct parts {
    Toc__V1__SubmitRequest request;
    Toc__V1__TaskKey key;
    Toc__V1__Target target;
    Toc__V1__RetryPolicy policy;
    Toc__V1__ExponentialBackoff backoff;
    Google__Protobuf__UInt32Value max_retries;
    Google__Protobuf__Timestamp due;
    Google__Protobuf__Duration delay, timeout, first, cap, steps[40];
    Google__Protobuf__Duration *step_refs[40];
    Toc__V1__Header headers[20];
    Toc__V1__Header *header_refs[20];
} p;
static struct toc_arena arena;
static struct sched_submit_ask ask;
static char longer[1100];

static void
make_right(void)
{
    memset(&p, 0, sizeof p);
    toc__v1__submit_request__init(&p.request);
    toc__v1__task_key__init(&p.key);
    toc__v1__target__init(&p.target);
    toc__v1__retry_policy__init(&p.policy);
    toc__v1__exponential_backoff__init(&p.backoff);
    google__protobuf__uint32_value__init(&p.max_retries);
    google__protobuf__timestamp__init(&p.due);
    google__protobuf__duration__init(&p.delay);
    google__protobuf__duration__init(&p.timeout);
    google__protobuf__duration__init(&p.first);
    google__protobuf__duration__init(&p.cap);
    for (size_t i = 0; i < 40; i++) {
        google__protobuf__duration__init(&p.steps[i]);
        p.step_refs[i] = &p.steps[i];
    }
    for (size_t i = 0; i < 20; i++) {
        static char names[20][8];
        toc_format(names[i], sizeof names[i], "x-%zu", i);
        toc__v1__header__init(&p.headers[i]);
        p.headers[i].name = names[i];
        p.headers[i].value = (char *)(uintptr_t) "v";
        p.header_refs[i] = &p.headers[i];
    }
    p.request.key = &p.key;
    p.key.biz_type = (char *)(uintptr_t) "order";
    p.key.biz_id = (char *)(uintptr_t) "42";
    p.key.name = (char *)(uintptr_t) "pay";
    p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_DELAY;
    p.request.delay = &p.delay;
    p.delay.seconds = 1800;
    p.request.target = &p.target;
    p.target.url = (char *)(uintptr_t) "grpc://127.0.0.1:7000";
    p.request.headers = p.header_refs;
    p.policy.ladder = p.step_refs;
    p.backoff.first = &p.first;
    p.first.seconds = 1;
}

static char *
text(const char *literal)
{
    return (char *)(uintptr_t)literal;
}

static char *
text_of(size_t len)
{
    memset(longer, 'x', sizeof longer);
    longer[len] = '\0';
    return longer;
}

/* ---- one change each -------------------- */

static void
due(int64_t seconds, int32_t nanos)
{
    p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_DUE_TIME;
    p.request.due_time = &p.due;
    p.due.seconds = seconds;
    p.due.nanos = nanos;
}

static void
policy(void)
{
    p.request.retry_policy = &p.policy;
}

static void
retries(uint32_t n)
{
    policy();
    p.policy.max_retries = &p.max_retries;
    p.max_retries.value = n;
}

static void
ladder(size_t n)
{
    policy();
    p.policy.n_ladder = n;
}

static void
backoff(void)
{
    policy();
    p.policy.exponential = &p.backoff;
}

static void
factor(double value)
{
    backoff();
    p.backoff.factor = value;
}

static void
timeout(int64_t seconds, int32_t nanos)
{
    p.request.call_timeout = &p.timeout;
    p.timeout.seconds = seconds;
    p.timeout.nanos = nanos;
}

static void
headers(size_t n)
{
    p.request.n_headers = n;
}

static void
name(const char *value)
{
    headers(2);
    p.headers[1].name = text(value);
}

static enum toc_status
validate(const char *prefix, struct toc_rpc_failure *failure)
{
    const struct sched_rules rules = {.payload_max = 65536, .now_ms = NOW};
    struct sched_check check;

    toc_arena_reset(&arena);
    toc_rpc_failure_init(failure, &arena);
    sched_check_init(&check, failure, prefix);
    bool ok = sched_validate_submit(&check, &p.request, &rules, &ask);
    ck_assert(ok == (failure->status == TOC_OK));
    return failure->status;
}

/* The message is what begins so; exactly one thing is wrong. */
static void
expect(enum toc_status wanted, const char *begin, int line)
{
    struct toc_rpc_failure failure;
    enum toc_status st = validate("", &failure);

    ck_assert_msg(st == wanted, "line %d: %s, \"%s\"", line,
                  toc_status_text(st), failure.message ? failure.message : "");
    if (st == TOC_OK)
        return;
    ck_assert_msg(strncmp(failure.message, begin, strlen(begin)) == 0,
                  "line %d: \"%s\" is not \"%s\"", line, failure.message,
                  begin);
    ck_assert_uint_eq(failure.n_violations, st == TOC_INVALID ? 1 : 0);
}

#define CASE(st, begin, ...)         \
    do {                             \
        make_right();                \
        __VA_ARGS__;                 \
        expect(st, begin, __LINE__); \
    } while (0)
#define RIGHT(...) CASE(TOC_OK, NULL, __VA_ARGS__)
#define WRONG(begin, ...) CASE(TOC_INVALID, begin, __VA_ARGS__)
#define UNSERVED(begin, ...) CASE(TOC_UNIMPLEMENTED, begin, __VA_ARGS__)

START_TEST(key_and_time)
{
    RIGHT((void)0);
    WRONG("key: must be set", p.request.key = NULL);
    WRONG("key.biz_type: must not be empty", p.key.biz_type = text(""));
    RIGHT(p.key.biz_type = text_of(64));
    WRONG("key.biz_type: \"xxx", p.key.biz_type = text_of(65));
    RIGHT(p.key.biz_id = text(""));
    RIGHT(p.key.biz_id = text_of(128));
    WRONG("key.biz_id: \"xxx", p.key.biz_id = text_of(129));
    RIGHT(p.key.name = text(""));
    WRONG("key.name: \"xxx", p.key.name = text_of(65));
    RIGHT(p.key.biz_id = text("' OR 1=1 -- %s%n"));
    WRONG("when: one of",
          p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN__NOT_SET);
    RIGHT(p.delay.seconds = 0);
    WRONG("delay: seconds -1, nanos 0: must not", p.delay.seconds = -1);
    WRONG("delay: seconds 0, nanos -1", p.delay.seconds = 0;
          p.delay.nanos = -1);
    WRONG("delay: seconds 1800, nanos -5", p.delay.nanos = -5);
    WRONG("delay: seconds 1800, nanos 1000000000", p.delay.nanos = 1000000000);
    WRONG("delay: seconds 9223372036854775807", p.delay.seconds = INT64_MAX);
    WRONG("delay: seconds -9223372036854775808", p.delay.seconds = INT64_MIN);
    RIGHT(p.delay.seconds = (TOC_DUE_MS_MAX - NOW) / 1000;
          p.delay.nanos = 999000000);
    WRONG("delay: ", p.delay.seconds = (TOC_DUE_MS_MAX - NOW) / 1000;
          p.delay.nanos = 999000001);
    RIGHT(p.delay.seconds = INT64_C(4294967296));
    RIGHT(due(-5, 0));
    RIGHT(due(-INT64_C(62135596800), 0));
    WRONG("due_time: ", due(-INT64_C(62135596801), 0));
    RIGHT(due(INT64_C(253402300799), 999000000));
    WRONG("due_time: ", due(INT64_C(253402300799), 999000001));
    WRONG("due_time: ", due(INT64_C(253402300800), 0));
    WRONG("due_time: ", due(INT64_MAX, 0));
    WRONG("due_time: ", due(INT64_MIN, 0));
    WRONG("due_time: seconds 1, nanos 1000000000: nanos must",
          due(1, 1000000000));
    WRONG("due_time: ", due(1, -1));
}
END_TEST

START_TEST(payload_and_target)
{
    RIGHT(p.request.payload.len = 65536);
    WRONG("payload: 65537 bytes, must be at most 65536",
          p.request.payload.len = 65537);
    RIGHT(p.request.content_type = text_of(128));
    WRONG("content_type: ", p.request.content_type = text_of(129));
    WRONG("content_type: \"a\\xc3\\xa9\"",
          p.request.content_type = text("a\xc3\xa9"));
    WRONG("target: must be set", p.request.target = NULL);
    WRONG("target.url: must not be empty", p.target.url = text(""));
    WRONG("target.url: ", p.target.url = text_of(513));
    WRONG("target.url: \"http://h:1\" must begin",
          p.target.url = text("http://h:1"));
    WRONG("target.url: ", p.target.url = text("grpc://host"));
    WRONG("target.url: ", p.target.url = text("grpc://host:0"));
    WRONG("target.url: ", p.target.url = text("grpc://h:65536"));
    WRONG("target.url: ", p.target.url = text("grpc://h:+80"));
    WRONG("target.url: ", p.target.url = text("grpc://:80"));
    WRONG("target.url: ", p.target.url = text("grpc://a b:80"));
    WRONG("target.url: ", p.target.url = text("grpc://u@h:80"));
    WRONG("target.url: ", p.target.url = text("grpc://h:80/"));
    WRONG("target.url: ", p.target.url = text("grpc://h:80/pkg.Svc"));
    WRONG("target.url: ", p.target.url = text("grpc://h:80/a..b/M"));
    WRONG("target.url: ", p.target.url = text("grpc://h:80/a.B/M?x"));
    WRONG("target.url: ", p.target.url = text("grpc://h:80/a.B/M/N"));
    RIGHT(p.target.url = text("grpc://h:80/a.B/M"));
    RIGHT(p.target.url = text("grpc://[::1]:80"));
    WRONG("target.url: ", p.target.url = text("grpc://::1:80"));
    RIGHT(p.target.batch_max = 256);
    WRONG("target.batch_max: 257", p.target.batch_max = 257);
    WRONG("target.batch_max: 2", p.target.url = text("grpc://h:80/a.B/M");
          p.target.batch_max = 2);
}
END_TEST

START_TEST(retry_policy)
{
    RIGHT(retries(0));
    RIGHT(retries(1000));
    WRONG("retry_policy.max_retries: 1001", retries(1001));
    WRONG("retry_policy.max_retries: 4294967295", retries(UINT32_MAX));
    RIGHT(ladder(32));
    WRONG("retry_policy.ladder: 33", ladder(33));
    RIGHT(ladder(2); p.steps[1].seconds = 30 * DAY);
    WRONG("retry_policy.ladder[2]: ", ladder(3); p.steps[2].seconds = 30 * DAY;
          p.steps[2].nanos = 1);
    WRONG("retry_policy.ladder[1]: ", ladder(2); p.steps[1].nanos = -1);
    WRONG("retry_policy.exponential: ", ladder(1);
          p.policy.exponential = &p.backoff);
    WRONG("retry_policy.exponential.first: ", backoff();
          p.backoff.first = NULL);
    WRONG("retry_policy.exponential.first: ", backoff(); p.first.seconds = 0);
    WRONG("retry_policy.exponential.cap: ", backoff(); p.backoff.cap = &p.cap;
          p.cap.nanos = 999000000);
    RIGHT(backoff(); p.backoff.cap = &p.cap; p.cap.seconds = 1);
    RIGHT(factor(0));
    RIGHT(factor(1));
    RIGHT(factor(100));
    WRONG("retry_policy.exponential.factor: 0.999", factor(0.999));
    WRONG("retry_policy.exponential.factor: ", factor(100.001));
    WRONG("retry_policy.exponential.factor: ", factor(NAN));
    WRONG("retry_policy.exponential.factor: ", factor(INFINITY));
    WRONG("retry_policy.exponential.factor: ", factor(-DBL_MAX));
    RIGHT(policy(); p.policy.jitter_percent = 100);
    WRONG("retry_policy.jitter_percent: 101", policy();
          p.policy.jitter_percent = 101);
}
END_TEST

START_TEST(timeout_headers_words)
{
    WRONG("call_timeout: ", timeout(0, 0));
    RIGHT(timeout(0, 1));
    RIGHT(timeout(600, 0));
    WRONG("call_timeout: ", timeout(600, 1));
    WRONG("call_timeout: ", timeout(-1, 0));
    RIGHT(headers(16));
    WRONG("headers: 17", headers(17));
    WRONG("headers[1].name: \"X-a\" must be of", name("X-a"));
    WRONG("headers[1].name: must not be empty", name(""));
    WRONG("headers[1].name: ", name("grpc-timeout"));
    WRONG("headers[1].name: ", name("toc-fire-id"));
    WRONG("headers[1].name: ", name("x-bin"));
    WRONG("headers[1].name: ", name("te"));
    WRONG("headers[1].name: ", name(":path"));
    WRONG("headers[1].name: \"x-0\" is there twice", name("x-0"));
    RIGHT(headers(1); p.headers[0].name = text_of(256));
    WRONG("headers[0].name: ", headers(1); p.headers[0].name = text_of(257));
    WRONG("headers[0].value: ", headers(1);
          p.headers[0].value = text("\xc3\xa9"));
    WRONG("headers[0].value: ", headers(1); p.headers[0].value = text_of(257));
    WRONG("headers: target, retry policy", headers(16);
          for (size_t i = 0; i < 16; i++) p.headers[i].value = text_of(200));
    WRONG("priority: 77", p.request.priority = 77);
}
END_TEST

START_TEST(not_served_yet)
{
    UNSERVED("rule is not served yet",
             p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_RULE;
             p.request.rule = text("r"));
    UNSERVED("cron is not served yet",
             p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_CRON);
    UNSERVED("period is not served yet",
             p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_PERIOD);
    UNSERVED("stages is not served yet",
             p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_STAGES);
    UNSERVED("attributes is not served yet", p.request.n_attributes = 1);
    UNSERVED("scene is not served yet", p.request.scene = text("s"));
    UNSERVED("spread is not served yet", p.request.spread = &p.cap);
    UNSERVED("max_lateness is not served yet", p.request.max_lateness = &p.cap);
    UNSERVED("request_id is not served yet", p.request.request_id = text("r"));
    UNSERVED("fire_if is not served yet", p.request.fire_if = text("true"));
    UNSERVED("result_target is not served yet",
             p.request.result_target = text("t"));
}
END_TEST

START_TEST(all_that_is_wrong_is_named_with_its_item)
{
    struct toc_rpc_failure failure;

    make_right();
    p.key.biz_type = text("");
    p.delay.seconds = -1;
    p.target.url = text("x");
    p.target.batch_max = 1000;
    ck_assert_int_eq(validate("items[3].", &failure), TOC_INVALID);
    ck_assert_uint_eq(failure.n_violations, 4);
    ck_assert(strncmp(failure.message, "items[3].key.biz_type: ", 23) == 0);
}
END_TEST

START_TEST(what_is_right_is_understood)
{
    struct toc_rpc_failure failure;

    make_right();
    backoff();
    p.backoff.cap = &p.cap;
    p.cap.seconds = 1;
    p.backoff.factor = 1.5;
    p.delay.nanos = 1; /* rounded up */
    p.request.priority = TOC__V1__PRIORITY__PRIORITY_CORE;
    p.request.on_conflict = TOC__V1__ON_CONFLICT__ON_CONFLICT_REPLACE;
    p.request.delivery_guarantee =
        TOC__V1__DELIVERY_GUARANTEE__DELIVERY_GUARANTEE_AT_MOST_ONCE;
    headers(2);
    ck_assert_int_eq(validate("", &failure), TOC_OK);
    ck_assert_int_eq(ask.due_ms, NOW + 1800001);
    ck_assert_int_eq(ask.priority, TOC_PRIORITY_CORE);
    ck_assert_int_eq(ask.on_conflict, TOC_ON_CONFLICT_REPLACE);
    ck_assert(ask.spec.at_most_once);
    ck_assert_uint_eq(ask.spec.n_headers, 2);
    ck_assert_uint_eq(ask.spec.retry.factor_permille, 1500);
    ck_assert_int_eq(ask.spec.retry.first_ms, 1000);
    ck_assert_int_eq(ask.spec.retry.cap_ms, 1000);
    ck_assert_uint_eq(ask.spec.retry.max_retries, 10);
    TOC_ASSERT_STR(ask.biz_type, "order");
}
END_TEST

/* ---- the wire ------------------------------------------------------------ */

static const char *
wire_message(const void *message, const char *find, const char *put,
             size_t put_len)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf packed = {0};
    struct toc_rpc_failure failure;
    struct sched_check check;

    toc_arena_reset(&arena);
    toc_rpc_pack(message, &packed);
    for (size_t i = 0; find != NULL && i + put_len <= packed.len; i++)
        if (memcmp(packed.data + i, find, put_len) == 0)
            memcpy(packed.data + i, put, put_len);
    toc_rpc_failure_init(&failure, &arena);
    sched_check_init(&check, &failure, "");
    sched_wire_check(&check, toc_buf_view(&packed),
                     ((const ProtobufCMessage *)message)->descriptor);
    return failure.status == TOC_OK ? "" : failure.message;
}

START_TEST(texts_are_checked_as_they_came)
{
    make_right();
    headers(2);
    p.key.biz_id = text("abcd");
    p.headers[1].value = text("wxyz");
    ck_assert_str_eq(wire_message(&p.request, NULL, "", 0), "");
    ck_assert_str_eq(wire_message(&p.request, "abcd", "ab\0d", 4),
                     "key.biz_id: \"ab\\x00d\" must not hold control "
                     "characters");
    ck_assert_str_eq(wire_message(&p.request, "abcd", "ab\xff\xfe", 4),
                     "key.biz_id: \"ab\\xff\\xfe\" must be UTF-8");
    ck_assert_str_eq(wire_message(&p.request, "abcd", "a\x1b[m", 4),
                     "key.biz_id: \"a\\x1b[m\" must not hold control "
                     "characters");
    ck_assert_str_eq(wire_message(&p.request, "wxyz", "w\ny\r", 4),
                     "headers[1].value: \"w\\x0ay\\x0d\" must not hold "
                     "control characters");
    /* C1 controls, surrogates, overlong forms; NFC and NFD are both fine. */
    ck_assert_str_ne(wire_message(&p.request, "abcd",
                                  "a\xc2\x85"
                                  "d",
                                  4),
                     "");
    ck_assert_str_ne(wire_message(&p.request, "abcd",
                                  "\xed\xa0\x80"
                                  "d",
                                  4),
                     "");
    ck_assert_str_ne(wire_message(&p.request, "abcd", "ab\xc0\x80", 4), "");
    ck_assert_str_eq(wire_message(&p.request, "abcd",
                                  "e\xcc\x81"
                                  "d",
                                  4),
                     "");
}
END_TEST

START_TEST(unknown_enum_numbers_are_named)
{
    make_right();
    p.request.priority = 9;
    ck_assert_str_eq(wire_message(&p.request, NULL, "", 0),
                     "priority: 9 is no value of this enum");
    make_right();
    p.request.on_conflict = (Toc__V1__OnConflict)-1;
    ck_assert_str_eq(wire_message(&p.request, NULL, "", 0),
                     "on_conflict: -1 is no value of this enum");
    make_right();
    p.request.delivery_guarantee = INT32_MAX;
    ck_assert_str_eq(wire_message(&p.request, NULL, "", 0),
                     "delivery_guarantee: 2147483647 is no value of this enum");
}
END_TEST

/* ---- commands
 * ---------------------------------------------------------------- */

static const char *
reschedule_message(Toc__V1__RescheduleRequest *request,
                   struct sched_command_ask *ret)
{
    const struct sched_rules rules = {.now_ms = NOW};
    struct toc_rpc_failure failure;
    struct sched_check check;

    toc_arena_reset(&arena);
    toc_rpc_failure_init(&failure, &arena);
    sched_check_init(&check, &failure, "");
    return sched_validate_reschedule(&check, request, &rules, ret)
               ? ""
               : failure.message;
}

START_TEST(commands)
{
    Toc__V1__RescheduleRequest request = TOC__V1__RESCHEDULE_REQUEST__INIT;
    struct sched_command_ask ret;

    make_right();
    ck_assert_str_eq(reschedule_message(&request, &ret),
                     "which: task_id or key must be set");
    request.which_case = TOC__V1__RESCHEDULE_REQUEST__WHICH_TASK_ID;
    request.task_id = text("3QETNGRGQX06H32RMX8WJM58SV");
    ck_assert_str_eq(reschedule_message(&request, &ret),
                     "when: one of due_time, delay must be set");
    request.when_case = TOC__V1__RESCHEDULE_REQUEST__WHEN_DELAY;
    request.delay = &p.delay;
    ck_assert_str_eq(reschedule_message(&request, &ret), "");
    ck_assert(ret.find.by_id);
    ck_assert_int_eq(ret.due_ms, NOW + 1800000);
    request.task_id = text("8QETNGRGQX06H32RMX8WJM58SV"); /* over 128 bits */
    ck_assert(strncmp(reschedule_message(&request, &ret), "task_id: ", 9) == 0);
    request.which_case = TOC__V1__RESCHEDULE_REQUEST__WHICH_KEY;
    request.key = &p.key;
    request.etag = text("12");
    request.reason = text_of(256);
    ck_assert_str_eq(reschedule_message(&request, &ret), "");
    ck_assert_uint_eq(ret.etag, 12);
    request.reason = text_of(257);
    ck_assert(strncmp(reschedule_message(&request, &ret), "reason: ", 8) == 0);
    request.reason = text("");
    request.etag = text("0012");
    ck_assert(strncmp(reschedule_message(&request, &ret), "etag: ", 6) == 0);
    request.etag = text("4294967296");
    ck_assert(strncmp(reschedule_message(&request, &ret), "etag: ", 6) == 0);
    request.etag = text("");
    p.key.biz_id = text(""); /* fine in Submit, names nothing here */
    ck_assert(strncmp(reschedule_message(&request, &ret), "key.biz_id: ", 12) ==
              0);
    request.request_id = text("again");
    ck_assert_str_eq(reschedule_message(&request, &ret),
                     "request_id is not served yet");
}
END_TEST

START_TEST(cancel_of_a_business_id)
{
    Toc__V1__CancelRequest request = TOC__V1__CANCEL_REQUEST__INIT;
    Toc__V1__BizRef biz = TOC__V1__BIZ_REF__INIT;
    struct toc_rpc_failure failure;
    struct sched_command_ask ret;
    struct sched_check check;

    biz.biz_type = text("order");
    biz.biz_id = text("42");
    request.which_case = TOC__V1__CANCEL_REQUEST__WHICH_BIZ;
    request.biz = &biz;
    toc_rpc_failure_init(&failure, &arena);
    sched_check_init(&check, &failure, "");
    ck_assert(sched_validate_cancel(&check, &request, &ret));
    ck_assert(ret.biz);
    request.etag = text("3");
    ck_assert(!sched_validate_cancel(&check, &request, &ret));
    ck_assert(strncmp(failure.message, "etag: \"3\" must not", 18) == 0);
}
END_TEST

START_TEST(batches)
{
    struct toc_rpc_failure failure;
    struct sched_check check;
    const size_t sizes[] = {0, 1, 1000, 1001};

    for (size_t i = 0; i < 4; i++) {
        toc_rpc_failure_init(&failure, &arena);
        sched_check_init(&check, &failure, "");
        ck_assert(sched_validate_batch(&check, sizes[i]) ==
                  (sizes[i] == 1 || sizes[i] == 1000));
    }
}
END_TEST

/* ---- content
 * ------------------------------------------------------------------ */

static uint64_t
content(void)
{
    uint64_t hash;
    uint8_t bytes[8];

    sched_content_hash(&p.request, bytes);
    memcpy(&hash, bytes, sizeof hash);
    return hash;
}

static uint64_t contents[64];
static size_t n_contents;

static void
differs(int line)
{
    static uint8_t payload[65536];
    uint64_t hash;

    p.request.payload.data = payload;
    hash = content();
    for (size_t i = 0; i < n_contents; i++)
        ck_assert_msg(contents[i] != hash, "line %d is as number %zu", line, i);
    contents[n_contents++] = hash;
}

#define DIFFERS(...)       \
    do {                   \
        make_right();      \
        __VA_ARGS__;       \
        differs(__LINE__); \
    } while (0)

START_TEST(content_tells_requests_apart)
{
    n_contents = 0;
    DIFFERS((void)0);
    DIFFERS(p.key.biz_type = text_of(64));
    DIFFERS(p.key.biz_id = text_of(128));
    DIFFERS(p.key.name = text(""));
    DIFFERS(p.delay.seconds = 0);
    DIFFERS(p.delay.seconds = (TOC_DUE_MS_MAX - NOW) / 1000;
            p.delay.nanos = 999000000);
    DIFFERS(due(-5, 0));
    DIFFERS(due(INT64_C(253402300799), 999000000));
    DIFFERS(p.request.payload.len = 65536);
    DIFFERS(p.request.content_type = text_of(128));
    DIFFERS(p.target.url = text("grpc://h:80/a.B/M"));
    DIFFERS(p.target.batch_max = 256);
    DIFFERS(retries(0));
    DIFFERS(retries(1000));
    DIFFERS(ladder(32));
    DIFFERS(ladder(2); p.steps[1].seconds = 30 * DAY);
    DIFFERS(backoff(); p.backoff.cap = &p.cap; p.cap.seconds = 1);
    DIFFERS(factor(1));
    DIFFERS(factor(100));
    DIFFERS(policy(); p.policy.jitter_percent = 100);
    DIFFERS(timeout(0, 1));
    DIFFERS(timeout(600, 0));
    DIFFERS(headers(16));
    DIFFERS(headers(1); p.headers[0].name = text_of(256));
    make_right();
    p.request.on_conflict = TOC__V1__ON_CONFLICT__ON_CONFLICT_KEEP;
    p.request.validate_only = true;
    p.request.priority = TOC__V1__PRIORITY__PRIORITY_NORMAL;
    p.request.delivery_guarantee =
        TOC__V1__DELIVERY_GUARANTEE__DELIVERY_GUARANTEE_AT_LEAST_ONCE;
    ck_assert(content() == contents[0]); /* says the same */
}
END_TEST

START_TEST(content_is_what_it_was)
{
    static const uint8_t stored[8] = {0x66, 0x1b, 0x2b, 0x27,
                                      0x78, 0x9f, 0xe4, 0xf0};
    uint8_t bytes[8];

    make_right();
    sched_content_hash(&p.request, bytes);
    ck_assert_mem_eq(bytes, stored, 8); /* in databases: never change it */
}
END_TEST

TOC_CHECK_MAIN("validate", key_and_time, payload_and_target, retry_policy,
               timeout_headers_words, not_served_yet,
               all_that_is_wrong_is_named_with_its_item,
               what_is_right_is_understood, texts_are_checked_as_they_came,
               unknown_enum_numbers_are_named, commands,
               cancel_of_a_business_id, batches, content_tells_requests_apart,
               content_is_what_it_was)
