/*
 * Goal: every field of every request is held to its stated rule; what is wrong
 * is named (path, value, rule), all of it at once, and what is right is
 * understood as sent.
 * Method: a request that is right, changed by one mutation at a time from a
 * table; each must give exactly the violation named, or none.
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

/* ---- one mutation each ------------------------------------------------- */

static void
m_none(void)
{
}
static void
m_key_missing(void)
{
    p.request.key = NULL;
}
static void
m_type_empty(void)
{
    p.key.biz_type = text("");
}
static void
m_type_64(void)
{
    p.key.biz_type = text_of(64);
}
static void
m_type_65(void)
{
    p.key.biz_type = text_of(65);
}
static void
m_id_empty(void)
{
    p.key.biz_id = text("");
}
static void
m_id_128(void)
{
    p.key.biz_id = text_of(128);
}
static void
m_id_129(void)
{
    p.key.biz_id = text_of(129);
}
static void
m_name_empty(void)
{
    p.key.name = text("");
}
static void
m_name_65(void)
{
    p.key.name = text_of(65);
}
static void
m_sql(void)
{
    p.key.biz_id = text("' OR 1=1 -- %s%n");
}
static void
m_when_missing(void)
{
    p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN__NOT_SET;
}
static void
m_delay_0(void)
{
    p.delay.seconds = 0;
}
static void
m_delay_negative(void)
{
    p.delay.seconds = -1;
}
static void
m_delay_negative_nanos(void)
{
    p.delay.seconds = 0;
    p.delay.nanos = -1;
}
static void
m_delay_mixed(void)
{
    p.delay.nanos = -5;
}
static void
m_delay_nanos(void)
{
    p.delay.nanos = 1000000000;
}
static void
m_delay_max(void)
{
    p.delay.seconds = INT64_MAX;
}
static void
m_delay_min(void)
{
    p.delay.seconds = INT64_MIN;
}
static void
m_delay_9999(void)
{
    p.delay.seconds = (TOC_DUE_MS_MAX - NOW) / 1000;
    p.delay.nanos = 999000000;
}
static void
m_delay_10000(void)
{
    p.delay.seconds = (TOC_DUE_MS_MAX - NOW) / 1000;
    p.delay.nanos = 999000001;
}
static void
m_delay_2_32(void)
{
    p.delay.seconds = INT64_C(4294967296);
}

static void
due(int64_t seconds, int32_t nanos)
{
    p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_DUE_TIME;
    p.request.due_time = &p.due;
    p.due.seconds = seconds;
    p.due.nanos = nanos;
}
static void
m_due_past(void)
{
    due(-5, 0);
}
static void
m_due_year_1(void)
{
    due(-INT64_C(62135596800), 0);
}
static void
m_due_year_0(void)
{
    due(-INT64_C(62135596801), 0);
}
static void
m_due_9999(void)
{
    due(INT64_C(253402300799), 999000000);
}
static void
m_due_9999_up(void)
{
    due(INT64_C(253402300799), 999000001);
}
static void
m_due_10000(void)
{
    due(INT64_C(253402300800), 0);
}
static void
m_due_max(void)
{
    due(INT64_MAX, 0);
}
static void
m_due_min(void)
{
    due(INT64_MIN, 0);
}
static void
m_due_nanos(void)
{
    due(1, 1000000000);
}
static void
m_due_nanos_negative(void)
{
    due(1, -1);
}

static void
m_payload_max(void)
{
    p.request.payload.len = 65536;
}
static void
m_payload_over(void)
{
    p.request.payload.len = 65537;
}
static void
m_type_of(void)
{
    p.request.content_type = text_of(128);
}
static void
m_type_of_129(void)
{
    p.request.content_type = text_of(129);
}
static void
m_type_of_text(void)
{
    p.request.content_type = text("a\xc3\xa9");
}

static void
m_target_missing(void)
{
    p.request.target = NULL;
}
static void
m_url_empty(void)
{
    p.target.url = text("");
}
static void
m_url_513(void)
{
    p.target.url = text_of(513);
}
static void
m_url_http(void)
{
    p.target.url = text("http://h:1");
}
static void
m_url_no_port(void)
{
    p.target.url = text("grpc://host");
}
static void
m_url_port_0(void)
{
    p.target.url = text("grpc://host:0");
}
static void
m_url_port_65536(void)
{
    p.target.url = text("grpc://h:65536");
}
static void
m_url_port_sign(void)
{
    p.target.url = text("grpc://h:+80");
}
static void
m_url_no_host(void)
{
    p.target.url = text("grpc://:80");
}
static void
m_url_space(void)
{
    p.target.url = text("grpc://a b:80");
}
static void
m_url_user(void)
{
    p.target.url = text("grpc://u@h:80");
}
static void
m_url_slash(void)
{
    p.target.url = text("grpc://h:80/");
}
static void
m_url_half(void)
{
    p.target.url = text("grpc://h:80/pkg.Svc");
}
static void
m_url_dots(void)
{
    p.target.url = text("grpc://h:80/a..b/M");
}
static void
m_url_query(void)
{
    p.target.url = text("grpc://h:80/a.B/M?x");
}
static void
m_url_more(void)
{
    p.target.url = text("grpc://h:80/a.B/M/N");
}
static void
m_url_method(void)
{
    p.target.url = text("grpc://h:80/a.B/M");
}
static void
m_url_6(void)
{
    p.target.url = text("grpc://[::1]:80");
}
static void
m_url_6_bare(void)
{
    p.target.url = text("grpc://::1:80");
}
static void
m_batch_256(void)
{
    p.target.batch_max = 256;
}
static void
m_batch_257(void)
{
    p.target.batch_max = 257;
}
static void
m_batch_method(void)
{
    m_url_method();
    p.target.batch_max = 2;
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
m_retries_0(void)
{
    retries(0);
}
static void
m_retries_1000(void)
{
    retries(1000);
}
static void
m_retries_1001(void)
{
    retries(1001);
}
static void
m_retries_max(void)
{
    retries(UINT32_MAX);
}
static void
ladder(size_t n)
{
    policy();
    p.policy.n_ladder = n;
}
static void
m_ladder_32(void)
{
    ladder(32);
}
static void
m_ladder_33(void)
{
    ladder(33);
}
static void
m_ladder_30d(void)
{
    ladder(2);
    p.steps[1].seconds = 30 * DAY;
}
static void
m_ladder_over(void)
{
    ladder(3);
    p.steps[2].seconds = 30 * DAY;
    p.steps[2].nanos = 1;
}
static void
m_ladder_negative(void)
{
    ladder(2);
    p.steps[1].nanos = -1;
}
static void
backoff(void)
{
    policy();
    p.policy.exponential = &p.backoff;
}
static void
m_both(void)
{
    ladder(1);
    p.policy.exponential = &p.backoff;
}
static void
m_first_missing(void)
{
    backoff();
    p.backoff.first = NULL;
}
static void
m_first_0(void)
{
    backoff();
    p.first.seconds = 0;
}
static void
m_cap_under(void)
{
    backoff();
    p.backoff.cap = &p.cap;
    p.cap.nanos = 999000000;
}
static void
m_cap_equal(void)
{
    backoff();
    p.backoff.cap = &p.cap;
    p.cap.seconds = 1;
}
static void
factor(double value)
{
    backoff();
    p.backoff.factor = value;
}
static void
m_factor_0(void)
{
    factor(0);
}
static void
m_factor_1(void)
{
    factor(1);
}
static void
m_factor_100(void)
{
    factor(100);
}
static void
m_factor_small(void)
{
    factor(0.999);
}
static void
m_factor_large(void)
{
    factor(100.001);
}
static void
m_factor_nan(void)
{
    factor(NAN);
}
static void
m_factor_inf(void)
{
    factor(INFINITY);
}
static void
m_factor_negative(void)
{
    factor(-DBL_MAX);
}
static void
m_jitter_100(void)
{
    policy();
    p.policy.jitter_percent = 100;
}
static void
m_jitter_101(void)
{
    policy();
    p.policy.jitter_percent = 101;
}

static void
timeout(int64_t seconds, int32_t nanos)
{
    p.request.call_timeout = &p.timeout;
    p.timeout.seconds = seconds;
    p.timeout.nanos = nanos;
}
static void
m_timeout_0(void)
{
    timeout(0, 0);
}
static void
m_timeout_1(void)
{
    timeout(0, 1);
} /* rounded up to 1 ms */
static void
m_timeout_600(void)
{
    timeout(600, 0);
}
static void
m_timeout_over(void)
{
    timeout(600, 1);
}
static void
m_timeout_negative(void)
{
    timeout(-1, 0);
}

static void
headers(size_t n)
{
    p.request.n_headers = n;
}
static void
m_headers_16(void)
{
    headers(16);
}
static void
m_headers_17(void)
{
    headers(17);
}
static void
name(const char *value)
{
    headers(2);
    p.headers[1].name = text(value);
}
static void
m_name_upper(void)
{
    name("X-a");
}
static void
m_header_empty(void)
{
    name("");
}
static void
m_name_grpc(void)
{
    name("grpc-timeout");
}
static void
m_name_toc(void)
{
    name("toc-fire-id");
}
static void
m_name_bin(void)
{
    name("x-bin");
}
static void
m_name_te(void)
{
    name("te");
}
static void
m_name_colon(void)
{
    name(":path");
}
static void
m_name_twice(void)
{
    name("x-0");
}
static void
m_name_256(void)
{
    headers(1);
    p.headers[0].name = text_of(256);
}
static void
m_name_257(void)
{
    headers(1);
    p.headers[0].name = text_of(257);
}
static void
m_value_text(void)
{
    headers(1);
    p.headers[0].value = text("\xc3\xa9");
}
static void
m_value_257(void)
{
    headers(1);
    p.headers[0].value = text_of(257);
}
static void
m_spec_large(void)
{
    headers(16);
    for (size_t i = 0; i < 16; i++)
        p.headers[i].value = text_of(200);
}
static void
m_priority(void)
{
    p.request.priority = 77;
}

static void
m_rule(void)
{
    p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_RULE;
    p.request.rule = text("r");
}
static void
m_cron(void)
{
    p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_CRON;
}
static void
m_period(void)
{
    p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_PERIOD;
}
static void
m_stages(void)
{
    p.request.when_case = TOC__V1__SUBMIT_REQUEST__WHEN_STAGES;
}
static void
m_attributes(void)
{
    p.request.n_attributes = 1;
}
static void
m_scene(void)
{
    p.request.scene = text("s");
}
static void
m_spread(void)
{
    p.request.spread = &p.cap;
}
static void
m_lateness(void)
{
    p.request.max_lateness = &p.cap;
}
static void
m_request_id(void)
{
    p.request.request_id = text("r");
}
static void
m_fire_if(void)
{
    p.request.fire_if = text("true");
}
static void
m_result_target(void)
{
    p.request.result_target = text("t");
}

static const struct {
    void (*change)(void);
    const char *violation; /* NULL: it is right; "field: " */
    enum toc_status st;
} table[] = {
    {m_none, NULL, TOC_OK},
    {m_key_missing, "key: must be set", TOC_INVALID},
    {m_type_empty, "key.biz_type: must not be empty", TOC_INVALID},
    {m_type_64, NULL, TOC_OK},
    {m_type_65, "key.biz_type: \"xxx", TOC_INVALID},
    {m_id_empty, NULL, TOC_OK},
    {m_id_128, NULL, TOC_OK},
    {m_id_129, "key.biz_id: \"xxx", TOC_INVALID},
    {m_name_empty, NULL, TOC_OK},
    {m_name_65, "key.name: \"xxx", TOC_INVALID},
    {m_sql, NULL, TOC_OK},
    {m_when_missing, "when: one of", TOC_INVALID},
    {m_delay_0, NULL, TOC_OK},
    {m_delay_negative, "delay: seconds -1, nanos 0: must not", TOC_INVALID},
    {m_delay_negative_nanos, "delay: seconds 0, nanos -1", TOC_INVALID},
    {m_delay_mixed, "delay: seconds 1800, nanos -5", TOC_INVALID},
    {m_delay_nanos, "delay: seconds 1800, nanos 1000000000", TOC_INVALID},
    {m_delay_max, "delay: seconds 9223372036854775807", TOC_INVALID},
    {m_delay_min, "delay: seconds -9223372036854775808", TOC_INVALID},
    {m_delay_9999, NULL, TOC_OK},
    {m_delay_10000, "delay: ", TOC_INVALID},
    {m_delay_2_32, NULL, TOC_OK},
    {m_due_past, NULL, TOC_OK},
    {m_due_year_1, NULL, TOC_OK},
    {m_due_year_0, "due_time: ", TOC_INVALID},
    {m_due_9999, NULL, TOC_OK},
    {m_due_9999_up, "due_time: ", TOC_INVALID},
    {m_due_10000, "due_time: ", TOC_INVALID},
    {m_due_max, "due_time: ", TOC_INVALID},
    {m_due_min, "due_time: ", TOC_INVALID},
    {m_due_nanos, "due_time: seconds 1, nanos 1000000000: nanos must",
     TOC_INVALID},
    {m_due_nanos_negative, "due_time: ", TOC_INVALID},
    {m_payload_max, NULL, TOC_OK},
    {m_payload_over, "payload: 65537 bytes, must be at most 65536",
     TOC_INVALID},
    {m_type_of, NULL, TOC_OK},
    {m_type_of_129, "content_type: ", TOC_INVALID},
    {m_type_of_text, "content_type: \"a\\xc3\\xa9\"", TOC_INVALID},
    {m_target_missing, "target: must be set", TOC_INVALID},
    {m_url_empty, "target.url: must not be empty", TOC_INVALID},
    {m_url_513, "target.url: ", TOC_INVALID},
    {m_url_http, "target.url: \"http://h:1\" must begin", TOC_INVALID},
    {m_url_no_port, "target.url: ", TOC_INVALID},
    {m_url_port_0, "target.url: ", TOC_INVALID},
    {m_url_port_65536, "target.url: ", TOC_INVALID},
    {m_url_port_sign, "target.url: ", TOC_INVALID},
    {m_url_no_host, "target.url: ", TOC_INVALID},
    {m_url_space, "target.url: ", TOC_INVALID},
    {m_url_user, "target.url: ", TOC_INVALID},
    {m_url_slash, "target.url: ", TOC_INVALID},
    {m_url_half, "target.url: ", TOC_INVALID},
    {m_url_dots, "target.url: ", TOC_INVALID},
    {m_url_query, "target.url: ", TOC_INVALID},
    {m_url_more, "target.url: ", TOC_INVALID},
    {m_url_method, NULL, TOC_OK},
    {m_url_6, NULL, TOC_OK},
    {m_url_6_bare, "target.url: ", TOC_INVALID},
    {m_batch_256, NULL, TOC_OK},
    {m_batch_257, "target.batch_max: 257", TOC_INVALID},
    {m_batch_method, "target.batch_max: 2", TOC_INVALID},
    {m_retries_0, NULL, TOC_OK},
    {m_retries_1000, NULL, TOC_OK},
    {m_retries_1001, "retry_policy.max_retries: 1001", TOC_INVALID},
    {m_retries_max, "retry_policy.max_retries: 4294967295", TOC_INVALID},
    {m_ladder_32, NULL, TOC_OK},
    {m_ladder_33, "retry_policy.ladder: 33", TOC_INVALID},
    {m_ladder_30d, NULL, TOC_OK},
    {m_ladder_over, "retry_policy.ladder[2]: ", TOC_INVALID},
    {m_ladder_negative, "retry_policy.ladder[1]: ", TOC_INVALID},
    {m_both, "retry_policy.exponential: ", TOC_INVALID},
    {m_first_missing, "retry_policy.exponential.first: ", TOC_INVALID},
    {m_first_0, "retry_policy.exponential.first: ", TOC_INVALID},
    {m_cap_under, "retry_policy.exponential.cap: ", TOC_INVALID},
    {m_cap_equal, NULL, TOC_OK},
    {m_factor_0, NULL, TOC_OK},
    {m_factor_1, NULL, TOC_OK},
    {m_factor_100, NULL, TOC_OK},
    {m_factor_small, "retry_policy.exponential.factor: 0.999", TOC_INVALID},
    {m_factor_large, "retry_policy.exponential.factor: ", TOC_INVALID},
    {m_factor_nan, "retry_policy.exponential.factor: ", TOC_INVALID},
    {m_factor_inf, "retry_policy.exponential.factor: ", TOC_INVALID},
    {m_factor_negative, "retry_policy.exponential.factor: ", TOC_INVALID},
    {m_jitter_100, NULL, TOC_OK},
    {m_jitter_101, "retry_policy.jitter_percent: 101", TOC_INVALID},
    {m_timeout_0, "call_timeout: ", TOC_INVALID},
    {m_timeout_1, NULL, TOC_OK},
    {m_timeout_600, NULL, TOC_OK},
    {m_timeout_over, "call_timeout: ", TOC_INVALID},
    {m_timeout_negative, "call_timeout: ", TOC_INVALID},
    {m_headers_16, NULL, TOC_OK},
    {m_headers_17, "headers: 17", TOC_INVALID},
    {m_name_upper, "headers[1].name: \"X-a\" must be of", TOC_INVALID},
    {m_header_empty, "headers[1].name: must not be empty", TOC_INVALID},
    {m_name_grpc, "headers[1].name: ", TOC_INVALID},
    {m_name_toc, "headers[1].name: ", TOC_INVALID},
    {m_name_bin, "headers[1].name: ", TOC_INVALID},
    {m_name_te, "headers[1].name: ", TOC_INVALID},
    {m_name_colon, "headers[1].name: ", TOC_INVALID},
    {m_name_twice, "headers[1].name: \"x-0\" is there twice", TOC_INVALID},
    {m_name_256, NULL, TOC_OK},
    {m_name_257, "headers[0].name: ", TOC_INVALID},
    {m_value_text, "headers[0].value: ", TOC_INVALID},
    {m_value_257, "headers[0].value: ", TOC_INVALID},
    {m_spec_large, "headers: target, retry policy", TOC_INVALID},
    {m_priority, "priority: 77", TOC_INVALID},
    {m_rule, "rule is not served yet", TOC_UNIMPLEMENTED},
    {m_cron, "cron is not served yet", TOC_UNIMPLEMENTED},
    {m_period, "period is not served yet", TOC_UNIMPLEMENTED},
    {m_stages, "stages is not served yet", TOC_UNIMPLEMENTED},
    {m_attributes, "attributes is not served yet", TOC_UNIMPLEMENTED},
    {m_scene, "scene is not served yet", TOC_UNIMPLEMENTED},
    {m_spread, "spread is not served yet", TOC_UNIMPLEMENTED},
    {m_lateness, "max_lateness is not served yet", TOC_UNIMPLEMENTED},
    {m_request_id, "request_id is not served yet", TOC_UNIMPLEMENTED},
    {m_fire_if, "fire_if is not served yet", TOC_UNIMPLEMENTED},
    {m_result_target, "result_target is not served yet", TOC_UNIMPLEMENTED},
};

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

START_TEST(each_rule_from_both_sides)
{
    struct toc_rpc_failure failure;

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        make_right();
        table[i].change();
        enum toc_status st = validate("", &failure);
        ck_assert_msg(st == table[i].st, "row %zu (%s): %s, \"%s\"", i,
                      table[i].violation ? table[i].violation : "right",
                      toc_status_text(st),
                      failure.message ? failure.message : "");
        if (st == TOC_OK)
            continue;
        ck_assert_msg(strncmp(failure.message, table[i].violation,
                              strlen(table[i].violation)) == 0,
                      "row %zu: \"%s\" is not \"%s\"", i, failure.message,
                      table[i].violation);
        ck_assert_uint_eq(failure.n_violations, st == TOC_INVALID ? 1 : 0);
    }
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
    m_cap_equal();
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
    p.request.on_conflict = -1;
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

START_TEST(content_tells_requests_apart)
{
    void (*const changes[])(void) = {
        m_none,       m_type_64,     m_id_128,     m_name_empty,   m_delay_0,
        m_delay_9999, m_due_past,    m_due_9999,   m_payload_max,  m_type_of,
        m_url_method, m_batch_256,   m_retries_0,  m_retries_1000, m_ladder_32,
        m_ladder_30d, m_cap_equal,   m_factor_1,   m_factor_100,   m_jitter_100,
        m_timeout_1,  m_timeout_600, m_headers_16, m_name_256,
    };
    const size_t n = sizeof changes / sizeof changes[0];
    uint64_t seen[sizeof changes / sizeof changes[0]];
    static uint8_t payload[65536];

    for (size_t i = 0; i < n; i++) {
        make_right();
        changes[i]();
        p.request.payload.data = payload;
        seen[i] = content();
        for (size_t k = 0; k < i; k++)
            ck_assert_msg(seen[k] != seen[i], "changes %zu and %zu", k, i);
    }
    make_right();
    p.request.on_conflict = TOC__V1__ON_CONFLICT__ON_CONFLICT_KEEP;
    p.request.validate_only = true;
    p.request.priority = TOC__V1__PRIORITY__PRIORITY_NORMAL;
    p.request.delivery_guarantee =
        TOC__V1__DELIVERY_GUARANTEE__DELIVERY_GUARANTEE_AT_LEAST_ONCE;
    ck_assert(content() == seen[0]); /* says the same */
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

TOC_CHECK_MAIN("validate", each_rule_from_both_sides,
               all_that_is_wrong_is_named_with_its_item,
               what_is_right_is_understood, texts_are_checked_as_they_came,
               unknown_enum_numbers_are_named, commands,
               cancel_of_a_business_id, batches, content_tells_requests_apart,
               content_is_what_it_was)
