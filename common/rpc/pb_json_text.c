#include "common/rpc/pb_json.h"

#include "common/base/str.h"

#include <jansson.h>
#include <stdlib.h>

struct dump {
    struct toc_buf *out;
    size_t indent;
};

static void dump_value(const struct dump *dump, const json_t *value,
                       size_t level);

void
toc_pb_json_real(double value, struct toc_buf *out)
{
    char text[40];
    bool whole = true;

    for (int digits = 15; digits <= 17; digits++) {
        toc_format(text, sizeof text, "%.*g", digits, value);
        if (!(strtod(text, NULL) < value) && !(strtod(text, NULL) > value))
            break;
    }
    toc_buf_text(out, text);
    for (const char *at = text; *at != '\0'; at++)
        if ((*at < '0' || *at > '9') && *at != '-')
            whole = false;
    if (whole)
        toc_buf_text(out, ".0"); /* stays a real when it is read */
}

static void
quote_char(struct toc_buf *out, struct toc_str s, size_t n)
{
    uint8_t byte = (uint8_t)s.ptr[0];

    if (byte == '"' || byte == '\\')
        toc_buf_printf(out, "\\%c", s.ptr[0]);
    else if (byte == '\n')
        toc_buf_text(out, "\\n");
    else if (byte == '\t')
        toc_buf_text(out, "\\t");
    else if (byte == '\r')
        toc_buf_text(out, "\\r");
    else if (byte < 0x20 || byte == 0x7f)
        toc_buf_printf(out, "\\u%04x", (unsigned)byte);
    else if (n == 2 && byte == 0xc2 && (uint8_t)s.ptr[1] < 0xa0) /* C1 */
        toc_buf_printf(out, "\\u%04x", (unsigned)(uint8_t)s.ptr[1]);
    else
        toc_buf_add(out, s.ptr, n);
}

/* JSON asks for C0 only; some terminals act on DEL and C1 too. */
void
toc_pb_json_quote(struct toc_str s, struct toc_buf *out)
{
    toc_buf_char(out, '"');
    while (s.len > 0) {
        size_t n = toc_utf8_len(s);
        n = n == 0 ? 1 : n;
        quote_char(out, s, n);
        s.ptr += n;
        s.len -= n;
    }
    toc_buf_char(out, '"');
}

static void
new_line(const struct dump *dump, size_t level)
{
    if (dump->indent > 0)
        toc_buf_printf(dump->out, "\n%*s", (int)(dump->indent * level), "");
}

static void
dump_object(const struct dump *dump, const json_t *object, size_t level)
{
    /* jansson's iteration takes no const; nothing is changed. */
    json_t *tree = (json_t *)(uintptr_t)object;
    const char *key;
    json_t *value;
    bool first = true;

    if (json_object_size(object) == 0) {
        toc_buf_text(dump->out, "{}");
        return;
    }
    toc_buf_char(dump->out, '{');
    json_object_foreach(tree, key, value)
    {
        if (!first)
            toc_buf_char(dump->out, ',');
        first = false;
        new_line(dump, level + 1);
        toc_pb_json_quote(toc_str_of(key), dump->out);
        toc_buf_text(dump->out, dump->indent > 0 ? ": " : ":");
        dump_value(dump, value, level + 1);
    }
    new_line(dump, level);
    toc_buf_char(dump->out, '}');
}

static void
dump_array(const struct dump *dump, const json_t *array, size_t level)
{
    if (json_array_size(array) == 0) {
        toc_buf_text(dump->out, "[]");
        return;
    }
    toc_buf_char(dump->out, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0)
            toc_buf_char(dump->out, ',');
        new_line(dump, level + 1);
        dump_value(dump, json_array_get(array, i), level + 1);
    }
    new_line(dump, level);
    toc_buf_char(dump->out, ']');
}

static void
dump_value(const struct dump *dump, const json_t *value, size_t level)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        dump_object(dump, value, level);
        break;
    case JSON_ARRAY:
        dump_array(dump, value, level);
        break;
    case JSON_STRING:
        toc_pb_json_quote((struct toc_str){json_string_value(value),
                                           json_string_length(value)},
                          dump->out);
        break;
    case JSON_INTEGER:
        toc_buf_i64(dump->out, json_integer_value(value));
        break;
    case JSON_REAL:
        toc_pb_json_real(json_real_value(value), dump->out);
        break;
    case JSON_TRUE:
        toc_buf_text(dump->out, "true");
        break;
    case JSON_FALSE:
        toc_buf_text(dump->out, "false");
        break;
    case JSON_NULL:
        toc_buf_text(dump->out, "null");
        break;
    }
}

void
toc_pb_json_text(const json_t *tree, size_t indent, struct toc_buf *out)
{
    const struct dump dump = {out, indent};

    dump_value(&dump, tree, 0);
}
