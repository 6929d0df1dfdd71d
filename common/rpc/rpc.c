#include "common/rpc/rpc.h"

#include "common/base/assert.h"

#include "google/protobuf/any.pb-c.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VIOLATIONS_MAX 100
#define TEXT_MAX 512
#define TYPE_PREFIX "type.googleapis.com/"

/*
 * What unpacking may use, for each byte received and at least. A real message
 * takes up to about 12 times its bytes (structs, text, the parser's notes); two
 * bytes of an empty repeated message take 150 times as much, and a peer must
 * not make us hold a gigabyte by sending a few megabytes of those.
 */
#define UNPACK_FACTOR ((size_t)16)
#define UNPACK_LEAST ((size_t)256 * 1024)

struct toc_rpc_violation {
    struct toc_rpc_violation *next;
    const char *field, *rule;
};

/* ---- arenas and protobuf-c ------------------------------------------ */

static void *
arena_alloc(void *arena, size_t size)
{
    return toc_arena_alloc(arena, size);
}

static void
arena_free(void *arena, void *ptr)
{
    (void)arena;
    (void)ptr;
}

ProtobufCAllocator
toc_rpc_allocator(struct toc_arena *arena)
{
    return (ProtobufCAllocator){arena_alloc, arena_free, arena};
}

struct allowance {
    struct toc_arena *arena;
    size_t left;
};

static void *
allowance_alloc(void *arg, size_t size)
{
    struct allowance *allowance = arg;

    if (size > allowance->left)
        return NULL;
    allowance->left -= size;
    return toc_arena_alloc(allowance->arena, size);
}

void *
toc_rpc_unpack(const ProtobufCMessageDescriptor *type, struct toc_str bytes,
               struct toc_arena *arena)
{
    struct allowance allowance = {
        .arena = arena,
        .left = UNPACK_LEAST + bytes.len * UNPACK_FACTOR,
    };
    ProtobufCAllocator allocator = {allowance_alloc, arena_free, &allowance};

    TOC_ASSERT(bytes.len < SIZE_MAX / UNPACK_FACTOR / 4);
    return protobuf_c_message_unpack(type, &allocator, bytes.len,
                                     (const uint8_t *)bytes.ptr);
}

void
toc_rpc_pack(const ProtobufCMessage *message, struct toc_buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    toc_buf_reserve(out, size);
    size = protobuf_c_message_pack(message, (uint8_t *)out->data + out->len);
    out->len += size;
    out->data[out->len] = '\0';
}

/* ---- failures ------------------------------------------------------- */

void
toc_rpc_failure_init(struct toc_rpc_failure *failure, struct toc_arena *arena)
{
    *failure = (struct toc_rpc_failure){.arena = arena};
}

/* Texts quote what peers sent; a protobuf string must be well-formed UTF-8 or
 * the other side cannot read the whole status. */
static void
make_utf8(char *text)
{
    struct toc_str rest = toc_str_of(text);

    while (rest.len > 0) {
        size_t len = toc_utf8_len(rest);
        if (len == 0) {
            text[rest.ptr - text] = '?';
            len = 1;
        }
        rest.ptr += len;
        rest.len -= len;
    }
}

__attribute__((format(printf, 2, 0))) static const char *
make_text(struct toc_arena *arena, const char *format, va_list args)
{
    char text[TEXT_MAX];

    if (vsnprintf(text, sizeof text, format, args) < 0)
        text[0] = '\0';
    make_utf8(text);
    return toc_arena_text(arena, toc_str_of(text));
}

void
toc_rpc_failure_set(struct toc_rpc_failure *failure, enum toc_status st,
                    const char *format, ...)
{
    va_list args;

    TOC_ASSERT(st != TOC_OK);
    va_start(args, format);
    failure->status = st;
    failure->message = make_text(failure->arena, format, args);
    va_end(args);
}

void
toc_rpc_violate(struct toc_rpc_failure *failure, const char *field,
                const char *format, ...)
{
    struct toc_rpc_violation **at = &failure->violations;
    struct toc_rpc_violation *violation;
    va_list args;

    if (failure->n_violations >= VIOLATIONS_MAX)
        return;
    violation = toc_arena_calloc(failure->arena, 1, sizeof *violation);
    violation->field = toc_arena_text(failure->arena, toc_str_of(field));
    va_start(args, format);
    violation->rule = make_text(failure->arena, format, args);
    va_end(args);
    while (*at != NULL)
        at = &(*at)->next;
    *at = violation;
    failure->n_violations++;
    if (failure->status == TOC_OK)
        failure->status = TOC_INVALID;
    if (failure->message == NULL)
        failure->message = toc_arena_printf(failure->arena, "%s: %s",
                                            violation->field, violation->rule);
}

/* ---- failure to google.rpc.Status ----------------------------------- */

static void
add_any(Google__Rpc__Status *status, const ProtobufCMessage *message,
        struct toc_arena *arena)
{
    Google__Protobuf__Any *any = toc_arena_alloc(arena, sizeof *any);

    google__protobuf__any__init(any);
    any->type_url =
        toc_arena_printf(arena, TYPE_PREFIX "%s", message->descriptor->name);
    any->value.len = protobuf_c_message_get_packed_size(message);
    any->value.data = toc_arena_alloc(arena, any->value.len);
    protobuf_c_message_pack(message, any->value.data);
    status->details[status->n_details++] = any;
}

static void
add_violations(Google__Rpc__Status *status,
               const struct toc_rpc_failure *failure, struct toc_arena *arena)
{
    Google__Rpc__BadRequest bad = GOOGLE__RPC__BAD_REQUEST__INIT;
    const struct toc_rpc_violation *at = failure->violations;

    bad.field_violations = toc_arena_calloc(arena, failure->n_violations,
                                            sizeof *bad.field_violations);
    for (; at != NULL && bad.n_field_violations < failure->n_violations;
         at = at->next) {
        Google__Rpc__BadRequest__FieldViolation *violation =
            toc_arena_alloc(arena, sizeof *violation);
        google__rpc__bad_request__field_violation__init(violation);
        violation->field = (char *)at->field;
        violation->description = (char *)at->rule;
        bad.field_violations[bad.n_field_violations++] = violation;
    }
    add_any(status, &bad.base, arena);
}

static void
add_retry(Google__Rpc__Status *status, int64_t after_ms,
          struct toc_arena *arena)
{
    Google__Rpc__RetryInfo retry = GOOGLE__RPC__RETRY_INFO__INIT;
    Google__Protobuf__Duration delay = GOOGLE__PROTOBUF__DURATION__INIT;

    delay.seconds = after_ms / 1000;
    delay.nanos = (int32_t)(after_ms % 1000) * 1000000;
    retry.retry_delay = &delay;
    add_any(status, &retry.base, arena);
}

void
toc_rpc_failure_pack(const struct toc_rpc_failure *failure, struct toc_buf *out)
{
    Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
    Google__Protobuf__Any
        *details[2 + sizeof failure->details / sizeof failure->details[0]];

    status.code = (int32_t)failure->status;
    if (failure->message != NULL)
        status.message = (char *)failure->message;
    status.details = details;
    if (failure->n_violations > 0)
        add_violations(&status, failure, failure->arena);
    if (failure->retry_after_ms > 0)
        add_retry(&status, failure->retry_after_ms, failure->arena);
    for (size_t i = 0; i < failure->n_details; i++)
        add_any(&status, failure->details[i], failure->arena);
    toc_rpc_pack(&status.base, out);
}

/* ---- google.rpc.Status to text -------------------------------------- */

static bool
any_is(const Google__Protobuf__Any *any, const ProtobufCMessageDescriptor *type)
{
    const char *slash = strrchr(any->type_url, '/');

    return strcmp(slash != NULL ? slash + 1 : any->type_url, type->name) == 0;
}

static void
violations_text(const Google__Protobuf__Any *any, struct toc_arena *arena,
                struct toc_buf *out)
{
    struct toc_str bytes = {(const char *)any->value.data, any->value.len};
    const Google__Rpc__BadRequest *bad =
        toc_rpc_unpack(&google__rpc__bad_request__descriptor, bytes, arena);

    if (bad == NULL)
        return;
    for (size_t i = 0; i < bad->n_field_violations; i++)
        toc_buf_printf(out, "  %s: %s\n", bad->field_violations[i]->field,
                       bad->field_violations[i]->description);
}

void
toc_rpc_failure_text(struct toc_str packed_status, struct toc_buf *out)
{
    struct toc_arena arena = {0};
    const Google__Rpc__Status *status =
        toc_rpc_unpack(&google__rpc__status__descriptor, packed_status, &arena);

    if (status != NULL) {
        toc_buf_printf(out, "%s\n", status->message);
        for (size_t i = 0; i < status->n_details; i++)
            if (any_is(status->details[i],
                       &google__rpc__bad_request__descriptor))
                violations_text(status->details[i], &arena, out);
    }
    toc_arena_done(&arena);
}
