/*
 * Goal: messages become the JSON of the proto3 mapping, and come back the same;
 * what is not the mapping is refused with the path of the mistake.
 * Method: texts with known messages, both ways, for every kind of field; then
 * one mistake at a time. Expected texts are written from the mapping's table,
 * not from the code.
 */
#include "common/rpc/pb_json.h"

#include "common/base/cleanup.h"
#include "common/rpc/rpc.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "tests/support/toc_check.h"
#include "tests/unit/ctl/kinds.h"
#include "toc/v1/timeout.pb-c.h"

static const ProtobufCMessageDescriptor *const any_types[] = {
    &google__rpc__bad_request__descriptor,
    &google__protobuf__duration__descriptor};
static const struct toc_pb_json_types types = {any_types, 2};

static struct toc_arena arena;

static char *
encode(const ProtobufCMessage *message)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};

    toc_pb_json_encode(message, 0, &types, &out);
    return toc_arena_text(&arena, toc_buf_view(&out));
}

static struct kinds *
decode(const char *text)
{
    ProtobufCMessage *message = NULL;
    struct toc_error error = {.status = TOC_OK};
    enum toc_status st = toc_pb_json_decode(&kinds_descriptor, toc_str_of(text),
                                            &types, &arena, &message, &error);

    ck_assert_msg(st == TOC_OK, "%s: %s", text, error.msg);
    return (struct kinds *)message;
}

static void
refuse_as(const ProtobufCMessageDescriptor *type, const char *text,
          const char *why)
{
    ProtobufCMessage *message = NULL;
    struct toc_error error = {.status = TOC_OK};
    enum toc_status st = toc_pb_json_decode(type, toc_str_of(text), &types,
                                            &arena, &message, &error);

    ck_assert_msg(st == TOC_INVALID, "%s was taken", text);
    ck_assert_msg(strncmp(error.msg, why, strlen(why)) == 0,
                  "%s: \"%s\" does not begin with \"%s\"", text, error.msg,
                  why);
}

static void
refuse(const char *text, const char *why)
{
    refuse_as(&kinds_descriptor, text, why);
}

/* Reads and writes again: must be the same text. */
static void
round_trip(const char *text)
{
    ck_assert_str_eq(encode(&decode(text)->base), text);
}

START_TEST(every_kind_both_ways)
{
    static const char *const texts[] = {
        "{}",
        "{\"int32Value\":-2147483648}",
        "{\"sint32Value\":2147483647}",
        "{\"sfixed32Value\":-1}",
        "{\"uint32Value\":4294967295}",
        "{\"fixed32Value\":7}",
        "{\"int64Value\":\"-9223372036854775808\"}",
        "{\"sint64Value\":\"9223372036854775807\"}",
        "{\"sfixed64Value\":\"-1\"}",
        "{\"uint64Value\":\"18446744073709551615\"}",
        "{\"fixed64Value\":\"1\"}",
        "{\"floatValue\":0.1}",
        "{\"floatValue\":\"NaN\"}",
        "{\"doubleValue\":0.1}",
        "{\"doubleValue\":2.0}",
        "{\"doubleValue\":1e+300}",
        "{\"doubleValue\":\"Infinity\"}",
        "{\"doubleValue\":\"-Infinity\"}",
        "{\"boolValue\":true}",
        "{\"enumValue\":\"STATE_DEAD\"}",
        "{\"enumValue\":77}",
        "{\"stringValue\":\"\xc3\xa4 \\\"quoted\\\" \\\\ \\n\"}",
        "{\"bytesValue\":\"AAH/\"}",
        "{\"bytesValue\":\"YQ==\"}",
        "{\"messageValue\":{}}",
        "{\"messageValue\":{\"messageValue\":{\"boolValue\":true}}}",
        "{\"numbers\":[0,-1,2]}",
        "{\"texts\":[\"\",\"b\"]}",
        "{\"blobs\":[\"\",\"YWI=\"]}",
        "{\"messages\":[{},{\"int32Value\":1}]}",
        "{\"states\":[\"STATE_UNSPECIFIED\",\"STATE_INIT\"]}",
        "{\"longs\":[\"0\",\"-5\"]}",
        "{\"maybe\":0}",
        "{\"oneNumber\":0}",
        "{\"oneText\":\"\"}",
        "{\"oneMessage\":{}}",
        "{\"time\":\"1970-01-01T00:00:00Z\"}",
        "{\"time\":\"2030-01-31T12:00:00.250Z\"}",
        "{\"time\":\"2030-01-31T12:00:00.000001Z\"}",
        "{\"time\":\"2030-01-31T12:00:00.000000001Z\"}",
        "{\"time\":\"0001-01-01T00:00:00Z\"}",
        "{\"time\":\"1969-12-31T23:59:59.500Z\"}",
        "{\"time\":\"9999-12-31T23:59:59.999999999Z\"}",
        "{\"span\":\"0s\"}",
        "{\"span\":\"1.500s\"}",
        "{\"span\":\"-0.500s\"}",
        "{\"span\":\"-315576000000.999999999s\"}",
        "{\"wrappedNumber\":0}",
        "{\"wrappedText\":\"\"}",
        "{\"any\":{\"@type\":\"type.googleapis.com/google.protobuf.Duration\","
        "\"value\":\"3s\"}}",
        "{\"any\":{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\","
        "\"fieldViolations\":[{\"field\":\"a\",\"description\":\"b\"}]}}",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        round_trip(texts[i]);
}
END_TEST

START_TEST(also_accepted)
{
    ck_assert_int_eq(decode("{\"int32_value\":5}")->int32_value, 5);
    ck_assert_int_eq(decode("{\"int32Value\":\"5\"}")->int32_value, 5);
    ck_assert_int_eq(decode("{\"int32Value\":5.0}")->int32_value, 5);
    ck_assert_int_eq(decode("{\"int32Value\":5e2}")->int32_value, 500);
    ck_assert_int_eq(decode("{\"int64Value\":5}")->int64_value, 5);
    ck_assert_int_eq(decode("{\"enumValue\":7}")->enum_value, 7);
    ck_assert(decode("{\"doubleValue\":\"2.5\"}")->double_value > 2.4);
    ck_assert_uint_eq(decode("{\"bytesValue\":\"_-8\"}")->bytes_value.len, 2);
    ck_assert_uint_eq(decode("{\"bytesValue\":\"YQ\"}")->bytes_value.len, 1);
    ck_assert_ptr_null(decode("{\"time\":null}")->time);
    ck_assert_ptr_null(decode("{\"messages\":null}")->messages);
    ck_assert_int_eq(decode("{\"oneNumber\":null}")->which, 0);
    ck_assert_int_eq(
        decode("{\"time\":\"1970-01-01T01:00:00.5+01:00\"}")->time->nanos,
        500000000);
    ck_assert_int_eq(
        decode("{\"time\":\"1970-01-01T01:00:00.5+01:00\"}")->time->seconds, 0);
    ck_assert_int_eq(decode("{\"span\":\"1.000000001s\"}")->span->nanos, 1);
}
END_TEST

START_TEST(mistakes_name_their_path)
{
    refuse("", "not JSON");
    refuse("[]", "must be an object");
    refuse("{\"a\":1,\"a\":1}", "not JSON");
    refuse("{\"nope\":1}", "nope: unknown field");
    refuse("{\"messages\":[{},{\"messageValue\":{\"urll\":1}}]}",
           "messages[1].messageValue.urll: unknown field");
    refuse("{\"int32_value\":1,\"int32Value\":1}", "int32Value: given twice");
    refuse("{\"oneNumber\":1,\"oneText\":\"\"}",
           "oneText: another member of its oneof");
    refuse("{\"int32Value\":2147483648}", "int32Value: must be an integer");
    refuse("{\"int32Value\":1.5}", "int32Value: must be an integer");
    refuse("{\"int32Value\":\"\"}", "int32Value: must be an integer");
    refuse("{\"int32Value\":\"1x\"}", "int32Value: must be an integer");
    refuse("{\"int32Value\":true}", "int32Value: must be an integer");
    refuse("{\"uint32Value\":-1}", "uint32Value: must be an integer from 0");
    refuse("{\"uint64Value\":\"18446744073709551616\"}", "uint64Value: must");
    refuse("{\"uint64Value\":-1}", "uint64Value: must");
    refuse("{\"int64Value\":\"9223372036854775808\"}", "int64Value: must");
    refuse("{\"int64Value\":1e300}", "int64Value: must");
    refuse("{\"floatValue\":1e300}", "floatValue: must be a number");
    refuse("{\"doubleValue\":\"nan\"}", "doubleValue: must be a number");
    refuse("{\"doubleValue\":\"0x10\"}", "doubleValue: must be a number");
    refuse("{\"boolValue\":1}", "boolValue: must be true or false");
    refuse("{\"boolValue\":\"true\"}", "boolValue: must be true or false");
    refuse("{\"enumValue\":\"DEAD\"}", "enumValue: must be one of STATE_");
    refuse("{\"enumValue\":1.5}", "enumValue: must be one of STATE_");
    refuse("{\"stringValue\":1}", "stringValue: must be a string");
    refuse("{\"stringValue\":\"\\u0000\"}", "not JSON");
    refuse("{\"stringValue\":\"\xff\"}", "not JSON");
    refuse("{\"bytesValue\":\"a\"}", "bytesValue: must be base64");
    refuse("{\"bytesValue\":\"YR==\"}", "bytesValue: must be base64");
    refuse("{\"bytesValue\":\"Y*==\"}", "bytesValue: must be base64");
    refuse("{\"numbers\":1}", "numbers: must be an array");
    refuse("{\"numbers\":[1,null]}", "numbers[1]: must be an integer");
    refuse("{\"messages\":[1]}", "messages[0]: must be an object");
    refuse("{\"time\":\"2030-02-31T12:00:00Z\"}", "time: must be a time");
    refuse("{\"time\":\"2030-01-31T12:00:00.Z\"}", "time: must be a time");
    refuse("{\"time\":\"2030-01-31 12:00:00Z\"}", "time: must be a time");
    refuse("{\"time\":1}", "time: must be a time");
    refuse("{\"span\":\"1\"}", "span: must be seconds");
    refuse("{\"span\":\"s\"}", "span: must be seconds");
    refuse("{\"span\":\"1.s\"}", "span: must be seconds");
    refuse("{\"span\":\"--1s\"}", "span: must be seconds");
    refuse("{\"span\":\"315576000001s\"}", "span: must be seconds");
    refuse("{\"any\":{}}", "any: must be an object with \"@type\"");
    refuse("{\"any\":{\"@type\":\"x/y\"}}", "any: of a type that is not known");
    refuse("{\"any\":{\"@type\":\"x/google.rpc.BadRequest\",\"x\":1}}",
           "any.x: unknown field");
}
END_TEST

START_TEST(nesting_is_bounded)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};

    for (int i = 0; i < 100; i++)
        toc_buf_text(&text, "{\"messageValue\":");
    toc_buf_text(&text, "{}");
    for (int i = 0; i < 100; i++)
        toc_buf_char(&text, '}');
    ProtobufCMessage *message = NULL;
    struct toc_error error = {.status = TOC_OK};
    ck_assert_int_eq(toc_pb_json_decode(&kinds_descriptor, toc_buf_view(&text),
                                        NULL, &arena, &message, &error),
                     TOC_INVALID);
    ck_assert_ptr_nonnull(strstr(error.msg, "messageValue.messageValue"));
}
END_TEST

START_TEST(control_characters_never_pass)
{
    struct kinds kinds;

    kinds_init(&kinds.base);
    kinds.string_value = (char *)(uintptr_t) "a\x1b[31m\x7f\xc2\x9b\n\tb";
    ck_assert_str_eq(encode(&kinds.base),
                     "{\"stringValue\":\"a\\u001b[31m\\u007f\\u009b\\n\\tb\"}");
    /* What was no UTF-8 is no reason to fail. */
    kinds.string_value = (char *)(uintptr_t) "a\xff";
    ck_assert_str_eq(encode(&kinds.base),
                     "{\"stringValue\":\"a\xef\xbf\xbd\"}");
}
END_TEST

START_TEST(what_its_form_cannot_say_is_an_object)
{
    struct kinds kinds;
    Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Google__Protobuf__Duration span = GOOGLE__PROTOBUF__DURATION__INIT;

    kinds_init(&kinds.base);
    time.seconds = INT64_MAX;
    kinds.time = &time;
    span.seconds = 1;
    span.nanos = -1;
    kinds.span = &span;
    ck_assert_str_eq(encode(&kinds.base),
                     "{\"time\":{\"seconds\":\"9223372036854775807\"},"
                     "\"span\":{\"seconds\":\"1\",\"nanos\":-1}}");
}
END_TEST

START_TEST(unknown_any_shows_its_bytes)
{
    struct kinds kinds;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;

    kinds_init(&kinds.base);
    any.type_url = (char *)(uintptr_t) "type.googleapis.com/some.Thing";
    any.value.data = (uint8_t *)(uintptr_t) "ab";
    any.value.len = 2;
    kinds.any = &any;
    ck_assert_str_eq(encode(&kinds.base),
                     "{\"any\":{\"@type\":\"type.googleapis.com/some.Thing\","
                     "\"value\":\"YWI=\"}}");
    /* Of a known type, but not its bytes. */
    any.type_url = (char *)(uintptr_t) "x/google.rpc.BadRequest";
    any.value.data = (uint8_t *)(uintptr_t) "\xff\xff";
    ck_assert_str_eq(
        encode(&kinds.base),
        "{\"any\":{\"@type\":\"x/google.rpc.BadRequest\",\"value\":\"//8=\"}}");
}
END_TEST

START_TEST(a_submit_request_as_a_person_writes_it)
{
    const char *text =
        "{\"key\": {\"biz_type\": \"order\", \"bizId\": \"42\"},\n"
        " \"delay\": \"1800s\", \"payload\": \"e30=\",\n"
        " \"target\": {\"url\": \"grpc://a:1\", \"batchMax\": 5},\n"
        " \"retryPolicy\": {\"maxRetries\": 0, \"ladder\": [\"1s\"]},\n"
        " \"priority\": \"PRIORITY_CORE\",\n"
        " \"headers\": [{\"name\": \"a\", \"value\": \"b\"}]}";
    ProtobufCMessage *message = NULL;
    const Toc__V1__SubmitRequest *request;

    ck_assert_int_eq(toc_pb_json_decode(&toc__v1__submit_request__descriptor,
                                        toc_str_of(text), NULL, &arena,
                                        &message, NULL),
                     TOC_OK);
    request = (const Toc__V1__SubmitRequest *)message;
    ck_assert_str_eq(request->key->biz_id, "42");
    ck_assert_int_eq(request->when_case, TOC__V1__SUBMIT_REQUEST__WHEN_DELAY);
    ck_assert_int_eq(request->delay->seconds, 1800);
    ck_assert_int_eq(request->retry_policy->max_retries->value, 0);
    ck_assert_int_eq(request->priority, TOC__V1__PRIORITY__PRIORITY_CORE);
    ck_assert_uint_eq(request->payload.len, 2);
    /* It can be sent: what was read is a whole message. */
    ck_assert_uint_gt(toc__v1__submit_request__get_packed_size(request), 20);
    refuse_as(&toc__v1__submit_request__descriptor,
              "{\"delay\":\"1s\",\"dueTime\":\"2030-01-31T12:00:00Z\"}",
              "dueTime: another member of its oneof");
}
END_TEST

TOC_CHECK_MAIN("json", every_kind_both_ways, also_accepted,
               mistakes_name_their_path, nesting_is_bounded,
               control_characters_never_pass,
               what_its_form_cannot_say_is_an_object,
               unknown_any_shows_its_bytes,
               a_submit_request_as_a_person_writes_it)
