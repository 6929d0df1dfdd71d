#include "common/rpc/schema.h"

#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/assert.h"
#include "common/rpc/rpc.h"

#include "google/protobuf/descriptor.pb-c.h"
#include "proto/descriptors.h"

#include <string.h>

/* FileDescriptorSet is nothing but field 1, length-delimited, again and again:
 * the key byte before each file. */
#define FILE_KEY 0x0a

struct rpc_schema {
    struct toc_arena arena;
    const Google__Protobuf__FileDescriptorSet *set;
    struct toc_str *bytes; /* of each file in the set */
};

/* ---- making --------------------------------------------------------- */

static size_t
read_varint(const unsigned char **at, const unsigned char *end)
{
    size_t value = 0;

    for (unsigned shift = 0; *at < end && shift < 35; shift += 7) {
        unsigned char byte = *(*at)++;
        value |= (size_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            break;
    }
    return value;
}

static void
find_bytes(struct rpc_schema *schema)
{
    const unsigned char *at = toc_descriptors;
    const unsigned char *end = at + toc_descriptors_len;

    schema->bytes = toc_arena_calloc(&schema->arena, schema->set->n_file,
                                     sizeof *schema->bytes);
    for (size_t i = 0; i < schema->set->n_file; i++) {
        size_t len;
        TOC_ASSERT(at < end && *at == FILE_KEY);
        at++;
        len = read_varint(&at, end);
        TOC_ASSERT(len <= (size_t)(end - at));
        schema->bytes[i] = (struct toc_str){(const char *)at, len};
        at += len;
    }
}

struct rpc_schema *
rpc_schema_new(void)
{
    struct rpc_schema *schema = TOC_NEW(struct rpc_schema);
    struct toc_str all = {(const char *)toc_descriptors, toc_descriptors_len};

    schema->set =
        toc_rpc_unpack(&google__protobuf__file_descriptor_set__descriptor, all,
                       &schema->arena);
    TOC_ASSERT(schema->set != NULL && "our own descriptors are readable");
    find_bytes(schema);
    return schema;
}

void
rpc_schema_free(struct rpc_schema *schema)
{
    if (schema == NULL)
        return;
    toc_arena_done(&schema->arena);
    toc_free(schema);
}

/* ---- names ---------------------------------------------------------- */

/* Splits "name" off the front of *rest, with the dot before what follows; false
 * when it is not there as a whole part. The empty name is there always. */
static bool
eat(struct toc_str *rest, const char *name)
{
    struct toc_str part = toc_str_of(name);

    if (part.len == 0)
        return true;
    if (!toc_str_starts(*rest, part))
        return false;
    rest->ptr += part.len;
    rest->len -= part.len;
    if (rest->len == 0)
        return true;
    if (rest->ptr[0] != '.' || rest->len == 1)
        return false;
    rest->ptr++;
    rest->len--;
    return true;
}

static bool
is(struct toc_str name, const char *text)
{
    return toc_str_eq(name, toc_str_of(text));
}

static bool
enum_has(const Google__Protobuf__EnumDescriptorProto *type, struct toc_str name)
{
    return is(name, type->name);
}

/* Values live beside their enum, not in it. */
static bool
enum_has_value(const Google__Protobuf__EnumDescriptorProto *type,
               struct toc_str name)
{
    for (size_t i = 0; i < type->n_value; i++)
        if (is(name, type->value[i]->name))
            return true;
    return false;
}

static bool
enums_have(Google__Protobuf__EnumDescriptorProto **types, size_t n,
           struct toc_str name)
{
    for (size_t i = 0; i < n; i++)
        if (enum_has(types[i], name) || enum_has_value(types[i], name))
            return true;
    return false;
}

/* only_types: fields and enums do not count. */
static bool
message_has(const Google__Protobuf__DescriptorProto *type, struct toc_str name,
            bool only_types)
{
    if (!eat(&name, type->name))
        return false;
    if (name.len == 0)
        return true;
    for (size_t i = 0; i < type->n_nested_type; i++)
        if (message_has(type->nested_type[i], name, only_types))
            return true;
    if (only_types)
        return false;
    for (size_t i = 0; i < type->n_field; i++)
        if (is(name, type->field[i]->name))
            return true;
    return enums_have(type->enum_type, type->n_enum_type, name);
}

static bool
service_has(const Google__Protobuf__ServiceDescriptorProto *type,
            struct toc_str name)
{
    if (!eat(&name, type->name))
        return false;
    if (name.len == 0)
        return true;
    for (size_t i = 0; i < type->n_method; i++)
        if (is(name, type->method[i]->name))
            return true;
    return false;
}

static bool
file_has(const Google__Protobuf__FileDescriptorProto *file, struct toc_str name,
         bool only_messages)
{
    if (!eat(&name, file->package) || name.len == 0)
        return false;
    for (size_t i = 0; i < file->n_message_type; i++)
        if (message_has(file->message_type[i], name, only_messages))
            return true;
    if (only_messages)
        return false;
    for (size_t i = 0; i < file->n_service; i++)
        if (service_has(file->service[i], name))
            return true;
    return enums_have(file->enum_type, file->n_enum_type, name);
}

/* ---- questions ------------------------------------------------------ */

size_t
rpc_schema_files(const struct rpc_schema *schema)
{
    return schema->set->n_file;
}

size_t
rpc_schema_by_name(const struct rpc_schema *schema, struct toc_str name)
{
    for (size_t i = 0; i < schema->set->n_file; i++)
        if (is(name, schema->set->file[i]->name))
            return i;
    return RPC_SCHEMA_NONE;
}

size_t
rpc_schema_by_symbol(const struct rpc_schema *schema, struct toc_str symbol)
{
    for (size_t i = 0; i < schema->set->n_file; i++)
        if (file_has(schema->set->file[i], symbol, false))
            return i;
    return RPC_SCHEMA_NONE;
}

bool
rpc_schema_is_message(const struct rpc_schema *schema, struct toc_str symbol)
{
    for (size_t i = 0; i < schema->set->n_file; i++)
        if (file_has(schema->set->file[i], symbol, true))
            return true;
    return false;
}

struct toc_str
rpc_schema_bytes(const struct rpc_schema *schema, size_t file)
{
    return schema->bytes[file];
}

void
rpc_schema_take(const struct rpc_schema *schema, size_t file, bool *taken,
                size_t *order, size_t *n)
{
    const Google__Protobuf__FileDescriptorProto *at = schema->set->file[file];

    if (taken[file])
        return;
    taken[file] = true;
    order[(*n)++] = file;
    for (size_t i = 0; i < at->n_dependency; i++) {
        size_t import =
            rpc_schema_by_name(schema, toc_str_of(at->dependency[i]));
        if (import != RPC_SCHEMA_NONE)
            rpc_schema_take(schema, import, taken, order, n);
    }
}
