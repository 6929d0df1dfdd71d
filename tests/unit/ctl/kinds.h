/*
 * A message with a field of every kind, described by hand: TOC's own messages
 * do not have them all.
 */
#ifndef TOC_TESTS_UNIT_CTL_KINDS_H
#define TOC_TESTS_UNIT_CTL_KINDS_H

#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "google/protobuf/wrappers.pb-c.h"
#include "toc/v1/types.pb-c.h"

#include <stddef.h>
#include <string.h>

struct kinds {
    ProtobufCMessage base;
    int32_t int32_value, sint32_value, sfixed32_value;
    uint32_t uint32_value, fixed32_value;
    int64_t int64_value, sint64_value, sfixed64_value;
    uint64_t uint64_value, fixed64_value;
    float float_value;
    double double_value;
    protobuf_c_boolean bool_value;
    int enum_value;
    char *string_value;
    ProtobufCBinaryData bytes_value;
    struct kinds *message_value;
    size_t n_numbers, n_texts, n_blobs, n_messages, n_states, n_longs;
    int32_t *numbers;
    char **texts;
    ProtobufCBinaryData *blobs;
    struct kinds **messages;
    int *states;
    int64_t *longs;
    protobuf_c_boolean has_maybe;
    uint32_t maybe;
    uint32_t which;
    union {
        uint32_t one_number;
        char *one_text;
        struct kinds *one_message;
    };
    Google__Protobuf__Timestamp *time;
    Google__Protobuf__Duration *span;
    Google__Protobuf__UInt32Value *wrapped_number;
    Google__Protobuf__StringValue *wrapped_text;
    Google__Protobuf__Any *any;
};

static const ProtobufCMessageDescriptor kinds_descriptor;

static void
kinds_init(ProtobufCMessage *message)
{
    struct kinds *kinds = (struct kinds *)message;

    memset(kinds, 0, sizeof *kinds);
    kinds->base.descriptor = &kinds_descriptor;
    kinds->string_value = (char *)(uintptr_t)protobuf_c_empty_string;
}

#define KIND(id_, member, type_, descriptor_)                                 \
    {                                                                         \
        .name = #member, .id = (id_), .label = PROTOBUF_C_LABEL_NONE,         \
        .type = PROTOBUF_C_TYPE_##type_,                                      \
        .offset = offsetof(struct kinds, member), .descriptor = (descriptor_) \
    }
#define KINDS(id_, member, type_, descriptor_)                            \
    {                                                                     \
        .name = #member, .id = (id_), .label = PROTOBUF_C_LABEL_REPEATED, \
        .type = PROTOBUF_C_TYPE_##type_,                                  \
        .offset = offsetof(struct kinds, member),                         \
        .quantifier_offset = offsetof(struct kinds, n_##member),          \
        .descriptor = (descriptor_)                                       \
    }
#define ONE_OF(id_, member, type_, descriptor_)                           \
    {                                                                     \
        .name = #member, .id = (id_), .label = PROTOBUF_C_LABEL_NONE,     \
        .type = PROTOBUF_C_TYPE_##type_,                                  \
        .offset = offsetof(struct kinds, member),                         \
        .quantifier_offset = offsetof(struct kinds, which),               \
        .flags = PROTOBUF_C_FIELD_FLAG_ONEOF, .descriptor = (descriptor_) \
    }

static const ProtobufCFieldDescriptor kinds_fields[] = {
    KIND(1, int32_value, INT32, NULL),
    KIND(2, sint32_value, SINT32, NULL),
    KIND(3, sfixed32_value, SFIXED32, NULL),
    KIND(4, uint32_value, UINT32, NULL),
    KIND(5, fixed32_value, FIXED32, NULL),
    KIND(6, int64_value, INT64, NULL),
    KIND(7, sint64_value, SINT64, NULL),
    KIND(8, sfixed64_value, SFIXED64, NULL),
    KIND(9, uint64_value, UINT64, NULL),
    KIND(10, fixed64_value, FIXED64, NULL),
    KIND(11, float_value, FLOAT, NULL),
    KIND(12, double_value, DOUBLE, NULL),
    KIND(13, bool_value, BOOL, NULL),
    KIND(14, enum_value, ENUM, &toc__v1__state__descriptor),
    KIND(15, string_value, STRING, NULL),
    KIND(16, bytes_value, BYTES, NULL),
    KIND(17, message_value, MESSAGE, &kinds_descriptor),
    KINDS(18, numbers, INT32, NULL),
    KINDS(19, texts, STRING, NULL),
    KINDS(20, blobs, BYTES, NULL),
    KINDS(21, messages, MESSAGE, &kinds_descriptor),
    KINDS(22, states, ENUM, &toc__v1__state__descriptor),
    KINDS(23, longs, INT64, NULL),
    {.name = "maybe",
     .id = 24,
     .label = PROTOBUF_C_LABEL_OPTIONAL,
     .type = PROTOBUF_C_TYPE_UINT32,
     .offset = offsetof(struct kinds, maybe),
     .quantifier_offset = offsetof(struct kinds, has_maybe)},
    ONE_OF(25, one_number, UINT32, NULL),
    ONE_OF(26, one_text, STRING, NULL),
    ONE_OF(27, one_message, MESSAGE, &kinds_descriptor),
    KIND(28, time, MESSAGE, &google__protobuf__timestamp__descriptor),
    KIND(29, span, MESSAGE, &google__protobuf__duration__descriptor),
    KIND(30, wrapped_number, MESSAGE,
         &google__protobuf__uint32_value__descriptor),
    KIND(31, wrapped_text, MESSAGE,
         &google__protobuf__string_value__descriptor),
    KIND(32, any, MESSAGE, &google__protobuf__any__descriptor),
};

static const ProtobufCMessageDescriptor kinds_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "test.Kinds",
    .sizeof_message = sizeof(struct kinds),
    .n_fields = sizeof kinds_fields / sizeof kinds_fields[0],
    .fields = kinds_fields,
    .message_init = kinds_init,
};

#endif
