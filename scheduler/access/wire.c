#include "scheduler/access/wire.h"

#define DEPTH_MAX 8

static bool
take_varint(struct toc_str *rest, uint64_t *ret)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 70 && rest->len > 0; shift += 7) {
        uint8_t byte = (uint8_t)*rest->ptr++;
        rest->len--;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *ret = value;
            return true;
        }
    }
    return false;
}

static bool
take_bytes(struct toc_str *rest, uint64_t len, struct toc_str *ret)
{
    if (len > rest->len)
        return false;
    *ret = (struct toc_str){rest->ptr, (size_t)len};
    rest->ptr += len;
    rest->len -= (size_t)len;
    return true;
}

bool
sched_wire_next(struct toc_str *rest, struct sched_wire_field *ret_field)
{
    struct toc_str skipped;
    uint64_t key, len;

    if (rest->len == 0 || !take_varint(rest, &key))
        return false;
    *ret_field = (struct sched_wire_field){.number = (uint32_t)(key >> 3),
                                           .wire_type = (int)(key & 7)};
    switch (ret_field->wire_type) {
    case 0:
        return take_varint(rest, &ret_field->value);
    case 1:
        return take_bytes(rest, 8, &skipped);
    case 2:
        return take_varint(rest, &len) &&
               take_bytes(rest, len, &ret_field->bytes);
    case 5:
        return take_bytes(rest, 4, &skipped);
    default:
        return false; /* groups: protobuf-c does not take them either */
    }
}

static void
check_text(struct sched_check *check, const char *name, struct toc_str text)
{
    if (!toc_utf8_valid(text))
        sched_check_bad_text(check, name, text, "must be UTF-8");
    else if (toc_str_has_control(text))
        sched_check_bad_text(check, name, text,
                             "must not hold control characters");
}

static void
check_enum(struct sched_check *check, const ProtobufCFieldDescriptor *field,
           uint64_t value)
{
    const ProtobufCEnumDescriptor *type = field->descriptor;

    if (protobuf_c_enum_descriptor_get_value(type, (int)(int64_t)value) ==
            NULL ||
        (int64_t)value != (int)(int64_t)value)
        sched_check_bad_number(check, field->name, (int64_t)value,
                               "is no value of this enum");
}

static void check_message(struct sched_check *check, struct toc_str bytes,
                          const ProtobufCMessageDescriptor *type,
                          unsigned depth);

static void
check_field(struct sched_check *check, const ProtobufCFieldDescriptor *field,
            const struct sched_wire_field *wire, size_t index, unsigned depth)
{
    bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    size_t mark;

    if (field->type == PROTOBUF_C_TYPE_ENUM && wire->wire_type == 0)
        check_enum(check, field, wire->value);
    if (wire->wire_type != 2)
        return;
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        check_text(check, field->name, wire->bytes);
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE && depth < DEPTH_MAX) {
        mark = repeated
                   ? sched_check_push(check, "%s[%zu].", field->name, index)
                   : sched_check_push(check, "%s.", field->name);
        check_message(check, wire->bytes, field->descriptor, depth + 1);
        sched_check_pop(check, mark);
    }
}

static void
check_message(struct sched_check *check, struct toc_str bytes,
              const ProtobufCMessageDescriptor *type, unsigned depth)
{
    struct sched_wire_field wire;
    uint32_t last = 0;
    size_t index = 0;

    while (sched_wire_next(&bytes, &wire)) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, wire.number);
        /* Elements of a repeated field nearly always stand together. */
        index = wire.number == last ? index + 1 : 0;
        last = wire.number;
        if (field != NULL)
            check_field(check, field, &wire, index, depth);
    }
}

void
sched_wire_check(struct sched_check *check, struct toc_str bytes,
                 const ProtobufCMessageDescriptor *type)
{
    check_message(check, bytes, type, 0);
}
