#include "common/rpc/pb_json.h"

#include "common/base/cleanup.h"
#include "common/rpc/pb_json_internal.h"
#include "common/rpc/rpc.h"
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *write_message(const ProtobufCMessage *message,
                             const struct toc_pb_json_types *types,
                             unsigned depth);

/* Text of a peer may be no UTF-8, which jansson refuses: then byte by byte. */
static json_t *
write_string(struct toc_str s)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};

    if (toc_utf8_valid(s))
        return json_stringn(s.ptr != NULL ? s.ptr : "", s.len);
    while (s.len > 0) {
        size_t n = toc_utf8_len(s);
        if (n == 0)
            toc_buf_text(&out, "\xef\xbf\xbd"); /* U+FFFD */
        else
            toc_buf_add(&out, s.ptr, n);
        n = n == 0 ? 1 : n;
        s.ptr += n;
        s.len -= n;
    }
    return json_stringn(out.data, out.len);
}

static json_t *
write_bytes(const ProtobufCBinaryData *bytes)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};

    pb_base64_encode((struct toc_str){(const char *)bytes->data, bytes->len},
                     &out);
    return json_stringn(out.len > 0 ? out.data : "", out.len);
}

static json_t *
write_i64(int64_t value)
{
    char text[24];

    toc_format(text, sizeof text, "%lld", (long long)value);
    return json_string(text);
}

static json_t *
write_u64(uint64_t value)
{
    char text[24];

    toc_format(text, sizeof text, "%llu", (unsigned long long)value);
    return json_string(text);
}

static json_t *
write_double(double value)
{
    if (isnan(value))
        return json_string("NaN");
    if (isinf(value))
        return json_string(value > 0 ? "Infinity" : "-Infinity");
    return json_real(value);
}

/* The shortest decimal that reads back as the same float. */
static json_t *
write_float(float value)
{
    char text[32];

    if (!isfinite(value))
        return write_double((double)value);
    for (int digits = 6; digits <= 9; digits++) {
        toc_format(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    return json_real(strtod(text, NULL));
}

static json_t *
write_enum(const ProtobufCEnumDescriptor *type, int number)
{
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(type, number);

    return value != NULL ? json_string(value->name) : json_integer(number);
}

/* One value at `at`; NULL: a message that is not set. */
static json_t *
write_value(const ProtobufCFieldDescriptor *field, const void *at,
            const struct toc_pb_json_types *types, unsigned depth)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return json_integer(*(const int32_t *)at);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return json_integer(*(const uint32_t *)at);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return write_i64(*(const int64_t *)at);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return write_u64(*(const uint64_t *)at);
    case PROTOBUF_C_TYPE_FLOAT:
        return write_float(*(const float *)at);
    case PROTOBUF_C_TYPE_DOUBLE:
        return write_double(*(const double *)at);
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean(*(const protobuf_c_boolean *)at);
    case PROTOBUF_C_TYPE_ENUM:
        return write_enum(field->descriptor, *(const int *)at);
    case PROTOBUF_C_TYPE_STRING:
        return write_string(toc_str_of(*(const char *const *)at));
    case PROTOBUF_C_TYPE_BYTES:
        return write_bytes(at);
    case PROTOBUF_C_TYPE_MESSAGE:
        if (*(const ProtobufCMessage *const *)at == NULL)
            return NULL;
        return write_message(*(const ProtobufCMessage *const *)at, types,
                             depth + 1);
    }
    return NULL;
}

static size_t
element_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    }
    return 0;
}

/* The default value of proto3: what is left out. */
static bool
is_default(const ProtobufCFieldDescriptor *field, const void *at)
{
    static const char zero[8];
    const char *text;

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        text = *(const char *const *)at;
        return text == NULL || text[0] == '\0';
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)at)->len == 0;
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(const void *const *)at == NULL;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_BOOL:
        break;
    }
    return memcmp(at, zero, element_size(field)) == 0;
}

static bool
is_present(const ProtobufCMessage *message,
           const ProtobufCFieldDescriptor *field)
{
    const char *base = (const char *)message;
    const void *at = base + field->offset;

    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
        return *(const uint32_t *)(const void *)(base +
                                                 field->quantifier_offset) ==
               field->id;
    if (field->label == PROTOBUF_C_LABEL_REQUIRED)
        return true;
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL &&
        field->type != PROTOBUF_C_TYPE_MESSAGE &&
        field->type != PROTOBUF_C_TYPE_STRING)
        return *(const protobuf_c_boolean
                     *)(const void *)(base + field->quantifier_offset) != 0;
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL &&
        field->type == PROTOBUF_C_TYPE_STRING)
        return *(const char *const *)at != NULL &&
               *(const char *const *)at != field->default_value;
    return !is_default(field, at);
}

static json_t *
write_repeated(const ProtobufCMessage *message,
               const ProtobufCFieldDescriptor *field,
               const struct toc_pb_json_types *types, unsigned depth)
{
    const char *base = (const char *)message;
    size_t n = *(const size_t *)(const void *)(base + field->quantifier_offset);
    const char *at = *(const char *const *)(const void *)(base + field->offset);
    json_t *array;

    if (n == 0)
        return NULL;
    array = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *value = write_value(field, at, types, depth);
        json_array_append_new(array, value != NULL ? value : json_null());
        at += element_size(field);
    }
    return array;
}

static json_t *
write_object(const ProtobufCMessage *message,
             const struct toc_pb_json_types *types, unsigned depth)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    json_t *object = json_object();
    char name[PB_JSON_NAME_MAX];

    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        json_t *value = NULL;
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            value = write_repeated(message, field, types, depth);
        else if (is_present(message, field))
            value = write_value(field, (const char *)message + field->offset,
                                types, depth);
        if (value != NULL)
            json_object_set_new(object, pb_json_name(name, field->name), value);
    }
    return object;
}

/* Its own form, or NULL when it holds what that form cannot say. */
static json_t *
write_time(const ProtobufCMessage *message, bool is_time)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};
    bool good;

    if (is_time) {
        const Google__Protobuf__Timestamp *time =
            (const Google__Protobuf__Timestamp *)message;
        good = pb_time_encode(time->seconds, time->nanos, &out);
    } else {
        const Google__Protobuf__Duration *duration =
            (const Google__Protobuf__Duration *)message;
        good = pb_duration_encode(duration->seconds, duration->nanos, &out);
    }
    return good ? json_stringn(out.data, out.len) : NULL;
}

static json_t *
write_any_bytes(const Google__Protobuf__Any *any)
{
    json_t *object = json_object();

    json_object_set_new(object, "@type",
                        write_string(toc_str_of(any->type_url)));
    json_object_set_new(object, "value", write_bytes(&any->value));
    return object;
}

static json_t *
write_any(const Google__Protobuf__Any *any,
          const struct toc_pb_json_types *types, unsigned depth)
{
    TOC_CLEANUP(toc_arena_done) struct toc_arena arena = {0};
    const ProtobufCMessageDescriptor *type = pb_json_type(types, any->type_url);
    const ProtobufCMessage *inner = NULL;
    json_t *object, *value;

    if (type != NULL)
        inner = toc_rpc_unpack(
            type,
            (struct toc_str){(const char *)any->value.data, any->value.len},
            &arena);
    if (inner == NULL)
        return write_any_bytes(any);
    object = json_object();
    json_object_set_new(object, "@type",
                        write_string(toc_str_of(any->type_url)));
    value = write_message(inner, types, depth + 1);
    if (pb_known_of(type) != PB_KNOWN_NONE) {
        json_object_set_new(object, "value", value);
    } else {
        json_object_update(object, value);
        json_decref(value);
    }
    return object;
}

static json_t *
write_message(const ProtobufCMessage *message,
              const struct toc_pb_json_types *types, unsigned depth)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    json_t *value = NULL;

    if (depth > PB_JSON_DEPTH_MAX)
        return json_null();
    switch (pb_known_of(type)) {
    case PB_KNOWN_TIMESTAMP:
        value = write_time(message, true);
        break;
    case PB_KNOWN_DURATION:
        value = write_time(message, false);
        break;
    case PB_KNOWN_WRAPPER:
        return write_value(&type->fields[0],
                           (const char *)message + type->fields[0].offset,
                           types, depth);
    case PB_KNOWN_ANY:
        return write_any((const Google__Protobuf__Any *)message, types, depth);
    case PB_KNOWN_NONE:
        break;
    }
    return value != NULL ? value : write_object(message, types, depth);
}

json_t *
toc_pb_json_tree(const ProtobufCMessage *message,
                 const struct toc_pb_json_types *types)
{
    return write_message(message, types, 0);
}

void
toc_pb_json_encode(const ProtobufCMessage *message, size_t indent,
                   const struct toc_pb_json_types *types, struct toc_buf *out)
{
    json_t *tree = toc_pb_json_tree(message, types);

    toc_pb_json_text(tree, indent, out);
    json_decref(tree);
}
