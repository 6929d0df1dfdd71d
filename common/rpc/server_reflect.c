/*
 * Server reflection: a stream of questions, each answered before the next is
 * read. v1alpha has v1's messages byte for byte, so v1's serve both.
 *
 * Each stream has one batch under way, a read or a write, whose completion
 * decides what is next; when the client goes or the server stops, gRPC makes
 * that batch fail, and the stream ends there.
 *
 * Locks: its own, over the list of streams.
 */
#include "common/rpc/server_internal.h"

#include "common/base/alloc.h"
#include "common/base/list.h"
#include "common/rpc/schema.h"

#include "grpc/reflection/v1/reflection.pb-c.h"
#include "grpc/reflection/v1alpha/reflection.pb-c.h"

#include <string.h>

#define NAME_SHOWN_MAX 200

#define ASKS(x) \
    GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##x
#define ANSWERS(x) \
    GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##x

struct rpc_reflect {
    struct toc_rpc_server *server;
    struct rpc_schema *schema;
    pthread_mutex_t lock;
    bool stopping;
    struct toc_link streams;
};

struct stream {
    struct toc_link link;
    struct rpc_reflect *reflect;
    struct toc_rpc_call *call;
    struct rpc_tag read, written;
    struct toc_arena arena; /* of the question under way */
    bool *sent;             /* per file of the schema */
};

/* ---- answers -------------------------------------------------------- */

static void
say_error(struct stream *stream,
          Grpc__Reflection__V1__ServerReflectionResponse *response,
          enum toc_status st, const char *what, struct toc_str name)
{
    Grpc__Reflection__V1__ErrorResponse *error =
        toc_arena_alloc(&stream->arena, sizeof *error);

    grpc__reflection__v1__error_response__init(error);
    error->error_code = (int32_t)st;
    if (name.len > NAME_SHOWN_MAX)
        name.len = NAME_SHOWN_MAX;
    error->error_message = toc_utf8_valid(name)
                               ? toc_arena_printf(&stream->arena, "%s: %.*s",
                                                  what, (int)name.len, name.ptr)
                               : (char *)what;
    response->message_response_case = ANSWERS(ERROR_RESPONSE);
    response->error_response = error;
}

static void
say_file(struct stream *stream,
         Grpc__Reflection__V1__ServerReflectionResponse *response, size_t file)
{
    const struct rpc_schema *schema = stream->reflect->schema;
    size_t max = rpc_schema_files(schema), n = 0;
    size_t *order = toc_arena_calloc(&stream->arena, max, sizeof *order);
    Grpc__Reflection__V1__FileDescriptorResponse *files =
        toc_arena_alloc(&stream->arena, sizeof *files);

    grpc__reflection__v1__file_descriptor_response__init(files);
    /* What was asked for is sent again, its imports only once a stream. */
    stream->sent[file] = false;
    rpc_schema_take(schema, file, stream->sent, order, &n);
    files->file_descriptor_proto = toc_arena_calloc(
        &stream->arena, n, sizeof *files->file_descriptor_proto);
    files->n_file_descriptor_proto = n;
    for (size_t i = 0; i < n; i++) {
        struct toc_str bytes = rpc_schema_bytes(schema, order[i]);
        files->file_descriptor_proto[i].data = (uint8_t *)bytes.ptr;
        files->file_descriptor_proto[i].len = bytes.len;
    }
    response->message_response_case = ANSWERS(FILE_DESCRIPTOR_RESPONSE);
    response->file_descriptor_response = files;
}

static bool
listed_before(const struct toc_rpc_server *server, size_t method)
{
    for (size_t i = 0; i < method; i++)
        if (server->methods[i].service == server->methods[method].service)
            return true;
    return false;
}

static void
say_services(struct stream *stream,
             Grpc__Reflection__V1__ServerReflectionResponse *response)
{
    const struct toc_rpc_server *server = stream->reflect->server;
    Grpc__Reflection__V1__ListServiceResponse *list =
        toc_arena_alloc(&stream->arena, sizeof *list);

    grpc__reflection__v1__list_service_response__init(list);
    list->service = toc_arena_calloc(&stream->arena, server->n_methods,
                                     sizeof *list->service);
    for (size_t i = 0; i < server->n_methods; i++) {
        Grpc__Reflection__V1__ServiceResponse *service;
        if (listed_before(server, i))
            continue;
        service = toc_arena_alloc(&stream->arena, sizeof *service);
        grpc__reflection__v1__service_response__init(service);
        service->name = (char *)server->methods[i].service->name;
        list->service[list->n_service++] = service;
    }
    response->message_response_case = ANSWERS(LIST_SERVICES_RESPONSE);
    response->list_services_response = list;
}

/* Nothing of ours is proto2: no type has extensions. */
static void
say_extensions(struct stream *stream,
               Grpc__Reflection__V1__ServerReflectionResponse *response,
               const char *type)
{
    Grpc__Reflection__V1__ExtensionNumberResponse *none;

    if (!rpc_schema_is_message(stream->reflect->schema, toc_str_of(type))) {
        say_error(stream, response, TOC_NOT_FOUND, "no such type",
                  toc_str_of(type));
        return;
    }
    none = toc_arena_alloc(&stream->arena, sizeof *none);
    grpc__reflection__v1__extension_number_response__init(none);
    none->base_type_name = (char *)type;
    response->message_response_case = ANSWERS(ALL_EXTENSION_NUMBERS_RESPONSE);
    response->all_extension_numbers_response = none;
}

static void
say_found(struct stream *stream,
          Grpc__Reflection__V1__ServerReflectionResponse *response, size_t file,
          const char *missing, const char *name)
{
    if (file != RPC_SCHEMA_NONE)
        say_file(stream, response, file);
    else
        say_error(stream, response, TOC_NOT_FOUND, missing, toc_str_of(name));
}

static void
answer(struct stream *stream,
       const Grpc__Reflection__V1__ServerReflectionRequest *request,
       Grpc__Reflection__V1__ServerReflectionResponse *response)
{
    const struct rpc_schema *schema = stream->reflect->schema;

    if (request->message_request_case == ASKS(FILE_BY_FILENAME))
        say_found(
            stream, response,
            rpc_schema_by_name(schema, toc_str_of(request->file_by_filename)),
            "no such file", request->file_by_filename);
    else if (request->message_request_case == ASKS(FILE_CONTAINING_SYMBOL))
        say_found(stream, response,
                  rpc_schema_by_symbol(
                      schema, toc_str_of(request->file_containing_symbol)),
                  "no such symbol", request->file_containing_symbol);
    else if (request->message_request_case == ASKS(FILE_CONTAINING_EXTENSION))
        say_error(
            stream, response, TOC_NOT_FOUND, "no such extension of",
            toc_str_of(request->file_containing_extension->containing_type));
    else if (request->message_request_case ==
             ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE))
        say_extensions(stream, response,
                       request->all_extension_numbers_of_type);
    else if (request->message_request_case == ASKS(LIST_SERVICES))
        say_services(stream, response);
    else
        say_error(stream, response, TOC_UNIMPLEMENTED, "unknown question",
                  TOC_STR(""));
}

/* ---- the stream ----------------------------------------------------- */

static void
leave(struct stream *stream)
{
    pthread_mutex_lock(&stream->reflect->lock);
    toc_list_remove(&stream->link);
    pthread_mutex_unlock(&stream->reflect->lock);
    toc_arena_done(&stream->arena);
}

static void
end_with(struct stream *stream, enum toc_status st, const char *why)
{
    leave(stream);
    toc_rpc_fail_text(stream->call, st, "%s", why);
}

static void
on_read(void *object, bool ok)
{
    struct stream *stream = object;
    struct toc_rpc_call *call = stream->call;
    Grpc__Reflection__V1__ServerReflectionResponse response =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    Grpc__Reflection__V1__ServerReflectionRequest *request;

    if (!ok || call->payload == NULL) { /* half closed, or gone */
        leave(stream);
        rpc_stream_end(call);
        return;
    }
    toc_arena_reset(&stream->arena);
    request = toc_rpc_unpack(
        &grpc__reflection__v1__server_reflection_request__descriptor,
        rpc_buffer_view(call->payload, &stream->arena), &stream->arena);
    if (request == NULL) {
        end_with(stream, TOC_INVALID, "the request is malformed");
        return;
    }
    response.valid_host = request->host;
    response.original_request = request;
    answer(stream, request, &response);
    rpc_stream_send(call, &response.base, &stream->written);
}

static void
on_written(void *object, bool ok)
{
    struct stream *stream = object;

    if (ok)
        rpc_stream_recv(stream->call, &stream->read);
    else
        end_with(stream, TOC_CANCELLED, "the client has gone");
}

static void
begin(struct toc_rpc_call *call)
{
    struct rpc_reflect *reflect = call->method->server->reflect;
    struct stream *stream = toc_arena_calloc(&call->arena, 1, sizeof *stream);
    bool stopping;

    stream->reflect = reflect;
    stream->call = call;
    stream->sent = toc_arena_calloc(
        &call->arena, rpc_schema_files(reflect->schema), sizeof *stream->sent);
    rpc_tag_init(&stream->read, on_read, stream);
    rpc_tag_init(&stream->written, on_written, stream);
    toc_list_init(&stream->link);
    pthread_mutex_lock(&reflect->lock);
    stopping = reflect->stopping;
    if (!stopping)
        toc_list_push(&reflect->streams, &stream->link);
    pthread_mutex_unlock(&reflect->lock);
    if (stopping)
        end_with(stream, TOC_UNAVAILABLE, "the server stops");
    else
        rpc_stream_recv(call, &stream->read);
}

/* ---- the service ---------------------------------------------------- */

struct rpc_reflect *
rpc_reflect_new(struct toc_rpc_server *server)
{
    struct rpc_reflect *reflect = TOC_NEW(struct rpc_reflect);

    reflect->server = server;
    reflect->schema = rpc_schema_new();
    pthread_mutex_init(&reflect->lock, NULL);
    toc_list_init(&reflect->streams);
    rpc_server_add_stream(server,
                          &grpc__reflection__v1__server_reflection__descriptor,
                          0, false, begin);
    rpc_server_add_stream(
        server, &grpc__reflection__v1alpha__server_reflection__descriptor, 0,
        false, begin);
    return reflect;
}

void
rpc_reflect_stop(struct rpc_reflect *reflect)
{
    pthread_mutex_lock(&reflect->lock);
    reflect->stopping = true;
    for (struct toc_link *at = reflect->streams.next; at != &reflect->streams;
         at = at->next) {
        struct stream *stream = toc_container_of(at, struct stream, link);
        grpc_call_cancel_with_status(stream->call->grpc,
                                     GRPC_STATUS_UNAVAILABLE,
                                     "the server stops", NULL);
    }
    pthread_mutex_unlock(&reflect->lock);
}

void
rpc_reflect_free(struct rpc_reflect *reflect)
{
    if (reflect == NULL)
        return;
    pthread_mutex_destroy(&reflect->lock);
    rpc_schema_free(reflect->schema);
    toc_free(reflect);
}
