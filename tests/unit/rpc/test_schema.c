/*
 * Goal: server reflection finds files by all that they define.
 * Method: ask for names that are there, and names that nearly are.
 */
#include "common/rpc/schema.h"
#include "google/protobuf/descriptor.pb-c.h"
#include "tests/support/toc_check.h"

#include <string.h>

static struct rpc_schema *schema;

static void
expect(const char *symbol, const char *file)
{
    size_t found = rpc_schema_by_symbol(schema, toc_str_of(symbol));
    size_t wanted = file != NULL ? rpc_schema_by_name(schema, toc_str_of(file))
                                 : RPC_SCHEMA_NONE;

    ck_assert_msg(file == NULL || wanted != RPC_SCHEMA_NONE, "no file %s",
                  file);
    ck_assert_msg(found == wanted, "%s is not in %s", symbol,
                  file != NULL ? file : "no file");
}

START_TEST(finds_what_files_define)
{
    schema = rpc_schema_new();
    expect("toc.v1.TimeoutService", "toc/v1/timeout.proto");
    expect("toc.v1.TimeoutService.Submit", "toc/v1/timeout.proto");
    expect("toc.v1.SubmitRequest", "toc/v1/timeout.proto");
    expect("toc.v1.SubmitRequest.due_time", "toc/v1/timeout.proto");
    expect("toc.v1.State", "toc/v1/types.proto");
    expect("toc.v1.STATE_INIT", "toc/v1/types.proto");
    expect("google.rpc.BadRequest.FieldViolation",
           "google/rpc/error_details.proto");
    expect("grpc.health.v1.HealthCheckResponse.ServingStatus",
           "grpc/health/v1/health.proto");
    expect("grpc.health.v1.HealthCheckResponse.SERVING",
           "grpc/health/v1/health.proto");
    expect("grpc.reflection.v1alpha.ServerReflection",
           "grpc/reflection/v1alpha/reflection.proto");
    expect("google.protobuf.Timestamp", "google/protobuf/timestamp.proto");
    rpc_schema_free(schema);
}
END_TEST

START_TEST(does_not_find_what_is_not_there)
{
    schema = rpc_schema_new();
    expect("", NULL);
    expect("toc", NULL);
    expect("toc.v1", NULL);
    expect("toc.v1.", NULL);
    expect("toc.v1.Submit", NULL);
    expect("toc.v1.SubmitRequestX", NULL);
    expect("toc.v1.SubmitRequest.", NULL);
    expect("toc.v1.SubmitRequest.nothing", NULL);
    expect("toc.v1.State.STATE_INIT", NULL);
    expect("TimeoutService", NULL);
    expect(".toc.v1.TimeoutService", NULL);
    ck_assert_uint_eq(rpc_schema_by_name(schema, TOC_STR("timeout.proto")),
                      RPC_SCHEMA_NONE);
    rpc_schema_free(schema);
}
END_TEST

START_TEST(knows_messages_from_the_rest)
{
    schema = rpc_schema_new();
    ck_assert(rpc_schema_is_message(schema, TOC_STR("toc.v1.Task")));
    ck_assert(!rpc_schema_is_message(schema, TOC_STR("toc.v1.State")));
    ck_assert(!rpc_schema_is_message(schema, TOC_STR("toc.v1.Task.state")));
    rpc_schema_free(schema);
}
END_TEST

/* Each file is a whole FileDescriptorProto of that name; taking one takes all
 * that it imports, once. */
START_TEST(takes_files_with_their_imports)
{
    bool taken[64] = {false};
    size_t order[64], n = 0, again;

    schema = rpc_schema_new();
    ck_assert_uint_le(rpc_schema_files(schema), 64);
    rpc_schema_take(schema,
                    rpc_schema_by_name(schema, TOC_STR("toc/v1/timeout.proto")),
                    taken, order, &n);
    ck_assert_uint_ge(n, 6);
    for (size_t i = 0; i < n; i++) {
        struct toc_str bytes = rpc_schema_bytes(schema, order[i]);
        Google__Protobuf__FileDescriptorProto *file =
            google__protobuf__file_descriptor_proto__unpack(
                NULL, bytes.len, (const uint8_t *)bytes.ptr);
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(rpc_schema_by_name(schema, toc_str_of(file->name)),
                          order[i]);
        if (i == 0)
            ck_assert_str_eq(file->name, "toc/v1/timeout.proto");
        google__protobuf__file_descriptor_proto__free_unpacked(file, NULL);
    }
    again = n;
    rpc_schema_take(schema, order[0], taken, order, &again);
    ck_assert_uint_eq(again, n);
    rpc_schema_free(schema);
}
END_TEST

TOC_CHECK_MAIN("rpc_schema", finds_what_files_define,
               does_not_find_what_is_not_there, knows_messages_from_the_rest,
               takes_files_with_their_imports)
