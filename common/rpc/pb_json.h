/*
 * Messages as JSON and back, by their descriptors, following the proto3 JSON
 * mapping: lowerCamelCase names, enums by name, 64-bit integers as strings,
 * bytes in base64, google.protobuf.Timestamp as RFC 3339, Duration as "1.5s",
 * wrappers as what they wrap, Any with "@type". Fields at their default are
 * left out.
 *
 * Reading is strict: an unknown field, a wrong type, a number out of range or a
 * second member of a oneof is TOC_INVALID, and the error names the path
 * ("items[3].target.urll: unknown field"). Accepted besides what is written:
 * names as in the .proto, numbers as strings and the other way round, enums by
 * number, base64 for URLs and without padding, null for "not set".
 *
 * Not mapped, because no message here has them: maps, Struct, FieldMask,
 * groups.
 *
 * Ownership: trees are the caller's (json_decref); read messages live in the
 * arena. Threads: any.
 */
#ifndef TOC_RPC_PB_JSON_H
#define TOC_RPC_PB_JSON_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

struct json_t; /* jansson's */

/* The messages that an Any may hold; another one is written as its bytes and
 * cannot be read. */
struct toc_pb_json_types {
    const ProtobufCMessageDescriptor *const *types;
    size_t n;
};

/* types may be NULL. */
struct json_t *toc_pb_json_tree(const ProtobufCMessage *message,
                                const struct toc_pb_json_types *types);
/* Appends text: one line for indent 0. Control characters, DEL and C1 too, are
 * escaped. */
void toc_pb_json_text(const struct json_t *tree, size_t indent,
                      struct toc_buf *out);
/* A number as JSON and YAML write it: the shortest that reads back the same. */
void toc_pb_json_real(double value, struct toc_buf *out);
/* The text in double quotes, escaped as above. */
void toc_pb_json_quote(struct toc_str s, struct toc_buf *out);
/* Both in one. */
void toc_pb_json_encode(const ProtobufCMessage *message, size_t indent,
                        const struct toc_pb_json_types *types,
                        struct toc_buf *out);

TOC_MUST_CHECK enum toc_status toc_pb_json_from_tree(
    const ProtobufCMessageDescriptor *type, const struct json_t *tree,
    const struct toc_pb_json_types *types, struct toc_arena *arena,
    ProtobufCMessage **ret_message, struct toc_error *reterr);
/* Parses text; a key that stands twice in one object is an error. */
TOC_MUST_CHECK enum toc_status toc_pb_json_decode(
    const ProtobufCMessageDescriptor *type, struct toc_str text,
    const struct toc_pb_json_types *types, struct toc_arena *arena,
    ProtobufCMessage **ret_message, struct toc_error *reterr);
/* Text to a tree, for callers that look at its shape first. */
TOC_MUST_CHECK enum toc_status toc_pb_json_parse(struct toc_str text,
                                                 struct json_t **ret_tree,
                                                 struct toc_error *reterr);

#endif
