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

/* Where in the document we are: a list from the inside out. */
struct path {
    const struct path *outer;
    const char *name; /* NULL: an element */
    size_t index;
};

struct reader {
    struct toc_arena *arena;
    const struct toc_pb_json_types *types;
    struct toc_error *reterr;
};

static enum toc_status read_message(struct reader *r, const struct path *path,
                                    const json_t *tree,
                                    const ProtobufCMessageDescriptor *type,
                                    unsigned depth,
                                    ProtobufCMessage **ret_message);

static void
add_path(const struct path *path, struct toc_buf *out)
{
    if (path == NULL)
        return;
    add_path(path->outer, out);
    if (path->name == NULL) {
        toc_buf_printf(out, "[%zu]", path->index);
        return;
    }
    if (out->len > 0)
        toc_buf_char(out, '.');
    toc_buf_text(out, path->name);
}

static enum toc_status
fail(struct reader *r, const struct path *path, const char *why)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};

    add_path(path, &text);
    return toc_error_set(r->reterr, TOC_INVALID, "json", 0, "%s%s%s",
                         text.len > 0 ? text.data : "",
                         text.len > 0 ? ": " : "", why);
}

/* ---- numbers ---- */

/* Text of a number as jansson reads it; false: no number in text. */
static bool
real_of_text(struct toc_str s, double *ret_value)
{
    char text[64], *end;

    if (s.len == 0 || s.len >= sizeof text ||
        strspn(s.ptr, "0123456789+-.eE") != s.len)
        return false;
    toc_copy(text, sizeof text, s);
    *ret_value = strtod(text, &end);
    return *end == '\0';
}

/* 1.0 and 1e3 are integers too; only where a double is exact. */
static bool
int_of_real(double value, int64_t *ret_value)
{
    if (!(value >= -9007199254740992.0) || !(value <= 9007199254740992.0))
        return false;
    if (value < (double)(int64_t)value || value > (double)(int64_t)value)
        return false;
    *ret_value = (int64_t)value;
    return true;
}

static struct toc_str
text_of(const json_t *value)
{
    return (struct toc_str){json_string_value(value),
                            json_string_length(value)};
}

static bool
i64_of(const json_t *value, int64_t *ret_value)
{
    double real;

    if (json_is_integer(value)) {
        *ret_value = json_integer_value(value);
        return true;
    }
    if (json_is_real(value))
        return int_of_real(json_real_value(value), ret_value);
    if (!json_is_string(value))
        return false;
    if (toc_parse_i64(text_of(value), INT64_MIN, INT64_MAX, ret_value))
        return true;
    return real_of_text(text_of(value), &real) && int_of_real(real, ret_value);
}

static bool
u64_of(const json_t *value, uint64_t *ret_value)
{
    struct toc_str s;
    uint64_t total = 0;
    int64_t small;

    if (i64_of(value, &small)) {
        *ret_value = (uint64_t)small;
        return small >= 0;
    }
    if (!json_is_string(value))
        return false;
    s = text_of(value);
    if (s.len == 0 || s.len > 20)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        uint64_t digit = (uint64_t)(s.ptr[i] - '0');
        if (s.ptr[i] < '0' || s.ptr[i] > '9' ||
            total > (UINT64_MAX - digit) / 10)
            return false;
        total = total * 10 + digit;
    }
    *ret_value = total;
    return true;
}

static bool
double_of(const json_t *value, double *ret_value)
{
    if (json_is_number(value)) {
        *ret_value = json_number_value(value);
        return true;
    }
    if (!json_is_string(value))
        return false;
    if (toc_str_eq(text_of(value), TOC_STR("NaN")))
        *ret_value = (double)NAN;
    else if (toc_str_eq(text_of(value), TOC_STR("Infinity")))
        *ret_value = (double)INFINITY;
    else if (toc_str_eq(text_of(value), TOC_STR("-Infinity")))
        *ret_value = -(double)INFINITY;
    else
        return real_of_text(text_of(value), ret_value) && isfinite(*ret_value);
    return true;
}

static bool
float_of(const json_t *value, float *ret_value)
{
    double real;

    if (!double_of(value, &real))
        return false;
    *ret_value = (float)real;
    return !isfinite(real) || isfinite(*ret_value);
}

static bool
enum_of(const json_t *value, const ProtobufCEnumDescriptor *type,
        int *ret_number)
{
    const ProtobufCEnumValue *named;
    int64_t number;

    if (json_is_string(value)) {
        named = protobuf_c_enum_descriptor_get_value_by_name(
            type, json_string_value(value));
        if (named == NULL)
            return false;
        *ret_number = named->value;
        return true;
    }
    if (!json_is_integer(value) || !i64_of(value, &number) ||
        number < INT32_MIN || number > INT32_MAX)
        return false;
    *ret_number = (int)number;
    return true;
}

/* ---- values ---- */

static enum toc_status
read_int(struct reader *r, const struct path *path, const json_t *value,
         const ProtobufCFieldDescriptor *field, void *at)
{
    bool is_signed = field->type == PROTOBUF_C_TYPE_INT32 ||
                     field->type == PROTOBUF_C_TYPE_SINT32 ||
                     field->type == PROTOBUF_C_TYPE_SFIXED32;
    int64_t number;

    if (!i64_of(value, &number) || number < (is_signed ? INT32_MIN : 0) ||
        number > (is_signed ? INT32_MAX : (int64_t)UINT32_MAX))
        return fail(r, path,
                    is_signed ? "must be an integer of 32 bits"
                              : "must be an integer from 0 to 4294967295");
    if (is_signed)
        *(int32_t *)at = (int32_t)number;
    else
        *(uint32_t *)at = (uint32_t)number;
    return TOC_OK;
}

static enum toc_status
read_text(struct reader *r, const struct path *path, const json_t *value,
          char **ret_text)
{
    if (!json_is_string(value))
        return fail(r, path, "must be a string");
    if (strlen(json_string_value(value)) != json_string_length(value))
        return fail(r, path, "must not hold NUL");
    *ret_text = toc_arena_text(r->arena, text_of(value));
    return TOC_OK;
}

static enum toc_status
read_bytes(struct reader *r, const struct path *path, const json_t *value,
           ProtobufCBinaryData *out)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf bytes = {0};
    struct toc_str copy;

    if (!json_is_string(value) || !pb_base64_decode(text_of(value), &bytes))
        return fail(r, path, "must be base64 in a string");
    copy = toc_arena_str(r->arena, toc_buf_view(&bytes));
    out->data = (uint8_t *)(uintptr_t)copy.ptr;
    out->len = copy.len;
    return TOC_OK;
}

static enum toc_status
read_enum(struct reader *r, const struct path *path, const json_t *value,
          const ProtobufCEnumDescriptor *type, int *ret_number)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf why = {0};

    if (enum_of(value, type, ret_number))
        return TOC_OK;
    toc_buf_text(&why, "must be one of ");
    for (unsigned i = 0; i < type->n_values && why.len < 160; i++)
        toc_buf_printf(&why, "%s%s", i > 0 ? ", " : "", type->values[i].name);
    return fail(r, path, why.data);
}

/* One value to `at`, which has room for it. */
static enum toc_status
read_value(struct reader *r, const struct path *path, const json_t *value,
           const ProtobufCFieldDescriptor *field, unsigned depth, void *at)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return read_int(r, path, value, field, at);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        if (!i64_of(value, at))
            return fail(r, path, "must be an integer of 64 bits");
        return TOC_OK;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        if (!u64_of(value, at))
            return fail(r, path, "must be an integer from 0 to 2^64 - 1");
        return TOC_OK;
    case PROTOBUF_C_TYPE_FLOAT:
        return float_of(value, at) ? TOC_OK : fail(r, path, "must be a number");
    case PROTOBUF_C_TYPE_DOUBLE:
        return double_of(value, at) ? TOC_OK
                                    : fail(r, path, "must be a number");
    case PROTOBUF_C_TYPE_BOOL:
        if (!json_is_boolean(value))
            return fail(r, path, "must be true or false");
        *(protobuf_c_boolean *)at = json_is_true(value);
        return TOC_OK;
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(r, path, value, field->descriptor, at);
    case PROTOBUF_C_TYPE_STRING:
        return read_text(r, path, value, at);
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(r, path, value, at);
    case PROTOBUF_C_TYPE_MESSAGE:
        return read_message(r, path, value, field->descriptor, depth + 1, at);
    }
    return fail(r, path, "of a kind that is not read");
}

static size_t
value_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM:
        break;
    }
    return 4;
}

static enum toc_status
read_repeated(struct reader *r, const struct path *path, const json_t *array,
              const ProtobufCFieldDescriptor *field, unsigned depth,
              ProtobufCMessage *message)
{
    char *base = (char *)message;
    size_t n = json_array_size(array), size = value_size(field);
    char *items;

    if (!json_is_array(array))
        return fail(r, path, "must be an array");
    items = toc_arena_calloc(r->arena, n > 0 ? n : 1, size);
    for (size_t i = 0; i < n; i++) {
        struct path element = {path, NULL, i};
        enum toc_status st = read_value(r, &element, json_array_get(array, i),
                                        field, depth, items + i * size);
        if (st != TOC_OK)
            return st;
    }
    *(size_t *)(void *)(base + field->quantifier_offset) = n;
    *(void **)(void *)(base + field->offset) = items;
    return TOC_OK;
}

/* Which member of a oneof is set, or whether an optional one is. */
static enum toc_status
mark_present(struct reader *r, const struct path *path,
             const ProtobufCFieldDescriptor *field, ProtobufCMessage *message)
{
    char *quantifier = (char *)message + field->quantifier_offset;

    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        uint32_t *which = (uint32_t *)(void *)quantifier;
        if (*which != 0)
            return fail(r, path, "another member of its oneof is set too");
        *which = field->id;
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL &&
               field->type != PROTOBUF_C_TYPE_MESSAGE &&
               field->type != PROTOBUF_C_TYPE_STRING) {
        *(protobuf_c_boolean *)(void *)quantifier = 1;
    }
    return TOC_OK;
}

static const ProtobufCFieldDescriptor *
field_named(const ProtobufCMessageDescriptor *type, const char *key)
{
    char name[PB_JSON_NAME_MAX];

    for (unsigned i = 0; i < type->n_fields; i++)
        if (strcmp(type->fields[i].name, key) == 0 ||
            strcmp(pb_json_name(name, type->fields[i].name), key) == 0)
            return &type->fields[i];
    return NULL;
}

/* seen: fields that had a key, so that "due_time" beside "dueTime" is told. */
static enum toc_status
read_field(struct reader *r, const struct path *path, const json_t *value,
           bool *seen, unsigned depth, ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    const ProtobufCFieldDescriptor *field = field_named(type, path->name);
    enum toc_status st;

    if (field == NULL)
        return fail(r, path, "unknown field");
    if (seen[field - type->fields])
        return fail(r, path, "given twice");
    seen[field - type->fields] = true;
    if (json_is_null(value))
        return TOC_OK;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return read_repeated(r, path, value, field, depth, message);
    st = mark_present(r, path, field, message);
    if (st != TOC_OK)
        return st;
    return read_value(r, path, value, field, depth,
                      (char *)message + field->offset);
}

static ProtobufCMessage *
new_message(struct toc_arena *arena, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message =
        toc_arena_calloc(arena, 1, type->sizeof_message);

    type->message_init(message);
    return message;
}

/* skip: a key that is not a field ("@type"); may be NULL. */
static enum toc_status
read_object(struct reader *r, const struct path *path, const json_t *tree,
            const char *skip, unsigned depth, ProtobufCMessage *message)
{
    json_t *object = (json_t *)(uintptr_t)tree; /* iteration takes no const */
    bool *seen;
    const char *key;
    json_t *value;

    if (!json_is_object(tree))
        return fail(r, path, "must be an object");
    seen = toc_arena_calloc(r->arena, message->descriptor->n_fields + 1,
                            sizeof *seen);
    json_object_foreach(object, key, value)
    {
        struct path member = {path, key, 0};
        enum toc_status st;
        if (skip != NULL && strcmp(key, skip) == 0)
            continue;
        st = read_field(r, &member, value, seen, depth, message);
        if (st != TOC_OK)
            return st;
    }
    return TOC_OK;
}

static enum toc_status
read_time(struct reader *r, const struct path *path, const json_t *tree,
          Google__Protobuf__Timestamp *out)
{
    if (!json_is_string(tree) ||
        !pb_time_decode(text_of(tree), &out->seconds, &out->nanos))
        return fail(r, path,
                    "must be a time as in \"2030-01-31T12:00:00.250Z\"");
    return TOC_OK;
}

static enum toc_status
read_duration(struct reader *r, const struct path *path, const json_t *tree,
              Google__Protobuf__Duration *out)
{
    if (!json_is_string(tree) ||
        !pb_duration_decode(text_of(tree), &out->seconds, &out->nanos))
        return fail(r, path, "must be seconds as in \"1.5s\"");
    return TOC_OK;
}

static enum toc_status
read_any(struct reader *r, const struct path *path, const json_t *tree,
         unsigned depth, Google__Protobuf__Any *out)
{
    const char *url = json_string_value(json_object_get(tree, "@type"));
    const ProtobufCMessageDescriptor *type;
    TOC_CLEANUP(toc_buf_done) struct toc_buf packed = {0};
    ProtobufCMessage *inner;
    struct toc_str copy;
    enum toc_status st;

    if (url == NULL)
        return fail(r, path, "must be an object with \"@type\"");
    type = pb_json_type(r->types, url);
    if (type == NULL)
        return fail(r, path, "of a type that is not known");
    if (pb_known_of(type) != PB_KNOWN_NONE) {
        struct path value = {path, "value", 0};
        st = read_message(r, &value, json_object_get(tree, "value"), type,
                          depth + 1, &inner);
    } else {
        inner = new_message(r->arena, type);
        st = read_object(r, path, tree, "@type", depth, inner);
    }
    if (st != TOC_OK)
        return st;
    toc_rpc_pack(inner, &packed);
    copy = toc_arena_str(r->arena, toc_buf_view(&packed));
    out->type_url = toc_arena_text(r->arena, toc_str_of(url));
    out->value.data = (uint8_t *)(uintptr_t)copy.ptr;
    out->value.len = copy.len;
    return TOC_OK;
}

static enum toc_status
fill_message(struct reader *r, const struct path *path, const json_t *tree,
             unsigned depth, ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *only = &message->descriptor->fields[0];

    switch (pb_known_of(message->descriptor)) {
    case PB_KNOWN_TIMESTAMP:
        return read_time(r, path, tree, (Google__Protobuf__Timestamp *)message);
    case PB_KNOWN_DURATION:
        return read_duration(r, path, tree,
                             (Google__Protobuf__Duration *)message);
    case PB_KNOWN_WRAPPER:
        return read_value(r, path, tree, only, depth,
                          (char *)message + only->offset);
    case PB_KNOWN_ANY:
        return read_any(r, path, tree, depth, (Google__Protobuf__Any *)message);
    case PB_KNOWN_NONE:
        break;
    }
    return read_object(r, path, tree, NULL, depth, message);
}

static enum toc_status
read_message(struct reader *r, const struct path *path, const json_t *tree,
             const ProtobufCMessageDescriptor *type, unsigned depth,
             ProtobufCMessage **ret_message)
{
    ProtobufCMessage *message;
    enum toc_status st;

    if (depth > PB_JSON_DEPTH_MAX)
        return fail(r, path, "nested too deeply");
    if (tree == NULL)
        return fail(r, path, "is missing");
    message = new_message(r->arena, type);
    st = fill_message(r, path, tree, depth, message);
    if (st == TOC_OK)
        *ret_message = message;
    return st;
}

enum toc_status
toc_pb_json_from_tree(const ProtobufCMessageDescriptor *type,
                      const json_t *tree, const struct toc_pb_json_types *types,
                      struct toc_arena *arena, ProtobufCMessage **ret_message,
                      struct toc_error *reterr)
{
    struct reader r = {arena, types, reterr};

    return read_message(&r, NULL, tree, type, 0, ret_message);
}

enum toc_status
toc_pb_json_parse(struct toc_str text, json_t **ret_tree,
                  struct toc_error *reterr)
{
    json_error_t error;
    json_t *tree = json_loadb(text.ptr != NULL ? text.ptr : "", text.len,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);

    if (tree == NULL)
        return toc_error_set(reterr, TOC_INVALID, "json", 0,
                             "not JSON: line %d, column %d: %s", error.line,
                             error.column, error.text);
    *ret_tree = tree;
    return TOC_OK;
}

enum toc_status
toc_pb_json_decode(const ProtobufCMessageDescriptor *type, struct toc_str text,
                   const struct toc_pb_json_types *types,
                   struct toc_arena *arena, ProtobufCMessage **ret_message,
                   struct toc_error *reterr)
{
    json_t *tree;
    enum toc_status st = toc_pb_json_parse(text, &tree, reterr);

    if (st != TOC_OK)
        return st;
    st = toc_pb_json_from_tree(type, tree, types, arena, ret_message, reterr);
    json_decref(tree);
    return st;
}
