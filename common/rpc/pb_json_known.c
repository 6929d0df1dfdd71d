#include "common/rpc/pb_json_internal.h"

#include "common/base/str.h"

#include <string.h>

#define NANOS_MAX 999999999
#define DURATION_SEC_MAX INT64_C(315576000000)
#define TIME_SEC_MIN (-INT64_C(62135596800))
#define TIME_SEC_MAX INT64_C(253402300799)
#define DATE_TIME_LEN 19 /* "2030-01-31T12:00:00" */

enum pb_known
pb_known_of(const ProtobufCMessageDescriptor *type)
{
    static const struct {
        const char *name;
        enum pb_known known;
    } all[] = {
        {"google.protobuf.Timestamp", PB_KNOWN_TIMESTAMP},
        {"google.protobuf.Duration", PB_KNOWN_DURATION},
        {"google.protobuf.Any", PB_KNOWN_ANY},
        {"google.protobuf.DoubleValue", PB_KNOWN_WRAPPER},
        {"google.protobuf.FloatValue", PB_KNOWN_WRAPPER},
        {"google.protobuf.Int64Value", PB_KNOWN_WRAPPER},
        {"google.protobuf.UInt64Value", PB_KNOWN_WRAPPER},
        {"google.protobuf.Int32Value", PB_KNOWN_WRAPPER},
        {"google.protobuf.UInt32Value", PB_KNOWN_WRAPPER},
        {"google.protobuf.BoolValue", PB_KNOWN_WRAPPER},
        {"google.protobuf.StringValue", PB_KNOWN_WRAPPER},
        {"google.protobuf.BytesValue", PB_KNOWN_WRAPPER},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(type->name, all[i].name) == 0)
            return all[i].known;
    return PB_KNOWN_NONE;
}

char *
pb_json_name(char out[PB_JSON_NAME_MAX], const char *name)
{
    size_t len = 0;
    bool raise = false;

    for (const char *at = name; *at != '\0' && len + 1 < PB_JSON_NAME_MAX;
         at++) {
        if (*at == '_') {
            raise = true;
            continue;
        }
        out[len++] =
            raise && *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
        raise = false;
    }
    out[len] = '\0';
    return out;
}

const ProtobufCMessageDescriptor *
pb_json_type(const struct toc_pb_json_types *types, const char *type_url)
{
    const char *slash = strrchr(type_url, '/');
    const char *name = slash != NULL ? slash + 1 : type_url;

    for (size_t i = 0; types != NULL && i < types->n; i++)
        if (strcmp(types->types[i]->name, name) == 0)
            return types->types[i];
    return NULL;
}

/* ---- base64 (RFC 4648) ---- */

void
pb_base64_encode(struct toc_str bytes, struct toc_buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
        uint32_t group = 0;
        char text[4];
        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (k < n ? (uint8_t)bytes.ptr[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            text[k] = k <= n ? digits[group >> (6 * (3 - k)) & 63] : '=';
        toc_buf_add(out, text, 4);
    }
}

static int
base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    if (c == '/' || c == '_')
        return 63;
    return -1;
}

bool
pb_base64_decode(struct toc_str text, struct toc_buf *out)
{
    uint32_t group = 0;
    unsigned bits = 0;

    if (text.len % 4 == 0) { /* padded, or needs no padding */
        for (int pads = 0; pads < 2 && text.len > 0; pads++)
            if (text.ptr[text.len - 1] == '=')
                text.len--;
    }
    if (text.len % 4 == 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int value = base64_value(text.ptr[i]);
        if (value < 0)
            return false;
        group = group << 6 | (uint32_t)value;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            toc_buf_char(out, (char)(group >> bits & 0xff));
        }
    }
    return (group & ((1u << bits) - 1u)) == 0; /* left over bits are zero */
}

/* ---- times ---- */

/* ".25", ".250" style: 0, 3, 6 or 9 digits, as the mapping says. */
static void
add_fraction(struct toc_buf *out, int32_t nanos)
{
    if (nanos == 0)
        return;
    if (nanos % 1000000 == 0)
        toc_buf_printf(out, ".%03d", (int)(nanos / 1000000));
    else if (nanos % 1000 == 0)
        toc_buf_printf(out, ".%06d", (int)(nanos / 1000));
    else
        toc_buf_printf(out, ".%09d", (int)nanos);
}

/* Takes ".digits" at the front, 1 to 9 of them. */
static bool
take_fraction(struct toc_str *s, int32_t *ret_nanos)
{
    int32_t nanos = 0, scale = 100000000;
    size_t n = 0;

    for (n = 1; n < s->len && s->ptr[n] >= '0' && s->ptr[n] <= '9'; n++) {
        if (n > 9)
            return false;
        nanos += (s->ptr[n] - '0') * scale;
        scale /= 10;
    }
    if (n == 1)
        return false;
    s->ptr += n;
    s->len -= n;
    *ret_nanos = nanos;
    return true;
}

bool
pb_time_encode(int64_t seconds, int32_t nanos, struct toc_buf *out)
{
    char text[TOC_TIME_TEXT_MAX];

    if (seconds < TIME_SEC_MIN || seconds > TIME_SEC_MAX || nanos < 0 ||
        nanos > NANOS_MAX)
        return false;
    toc_time_format(text, seconds * 1000);
    toc_buf_add(out, text, DATE_TIME_LEN);
    add_fraction(out, nanos);
    toc_buf_char(out, 'Z');
    return true;
}

/* The fraction is cut out, so that whole seconds are left for toc_time_parse
 * (which would round it to milliseconds). */
bool
pb_time_decode(struct toc_str text, int64_t *ret_seconds, int32_t *ret_nanos)
{
    char whole[64];
    struct toc_str rest = text;
    int32_t nanos = 0;
    int64_t ms;

    if (text.len < DATE_TIME_LEN || text.len >= sizeof whole)
        return false;
    memcpy(whole, text.ptr, DATE_TIME_LEN);
    rest.ptr += DATE_TIME_LEN;
    rest.len -= DATE_TIME_LEN;
    if (rest.len > 0 && rest.ptr[0] == '.' && !take_fraction(&rest, &nanos))
        return false;
    memcpy(whole + DATE_TIME_LEN, rest.ptr, rest.len);
    if (!toc_time_parse((struct toc_str){whole, DATE_TIME_LEN + rest.len}, &ms))
        return false;
    *ret_seconds = ms / 1000 - (ms % 1000 < 0 ? 1 : 0);
    *ret_nanos = nanos;
    return true;
}

bool
pb_duration_encode(int64_t seconds, int32_t nanos, struct toc_buf *out)
{
    bool negative = seconds < 0 || nanos < 0;

    if (seconds < -DURATION_SEC_MAX || seconds > DURATION_SEC_MAX ||
        nanos < -NANOS_MAX || nanos > NANOS_MAX ||
        (negative && (seconds > 0 || nanos > 0)))
        return false;
    if (negative)
        toc_buf_char(out, '-');
    toc_buf_i64(out, negative ? -seconds : seconds);
    add_fraction(out, negative ? -nanos : nanos);
    toc_buf_char(out, 's');
    return true;
}

bool
pb_duration_decode(struct toc_str text, int64_t *ret_seconds,
                   int32_t *ret_nanos)
{
    bool negative = text.len > 0 && text.ptr[0] == '-';
    struct toc_str digits;
    int64_t seconds;
    int32_t nanos = 0;
    size_t n = 0;

    if (negative) {
        text.ptr++;
        text.len--;
    }
    if (text.len < 2 || text.ptr[text.len - 1] != 's')
        return false;
    text.len--;
    while (n < text.len && text.ptr[n] >= '0' && text.ptr[n] <= '9')
        n++;
    digits = (struct toc_str){text.ptr, n};
    text.ptr += n;
    text.len -= n;
    if (!toc_parse_i64(digits, 0, DURATION_SEC_MAX, &seconds))
        return false;
    if (text.len > 0 &&
        (text.ptr[0] != '.' || !take_fraction(&text, &nanos) || text.len > 0))
        return false;
    *ret_seconds = negative ? -seconds : seconds;
    *ret_nanos = negative ? -nanos : nanos;
    return true;
}
